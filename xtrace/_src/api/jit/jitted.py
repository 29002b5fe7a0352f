"""A jitted function: its options, its traces and its programs, and a call of it under any trace."""

from __future__ import annotations

import functools
import time
import weakref
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.api.compilation import sharding_assignment
from xtrace._src.api.compilation.compilation import Compilation, check_execution, evaluates_on_host
from xtrace._src.api.eager import check_live
from xtrace._src.api.function_caches import find_table
from xtrace._src.api.jit import dispatch, static_arguments
from xtrace._src.api.jit.argument_paths import list_argument_paths
from xtrace._src.api.jit.jit_cache import Cache, CompiledCall, Options, Prepared
from xtrace._src.api.jit.static_arguments import Selection, Static
from xtrace._src.api.tracing import TracedFunction, abstract_leaf, abstract_leaves, trace
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of, aval_of_value, high_types, is_high
from xtrace._src.core.callables import LazySignature, function_name, result_paths, wraps
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.diagnostics.warn import warn_each_time
from xtrace._src.core.jaxprs.effects import OWN_DERIVATIVE_EFFECT
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.sentinels import UNSPECIFIED
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.core.settings import config
from xtrace._src.core.settings.compiler_choices import compilation
from xtrace._src.core.shardings.memory_layout import Format, Layout, is_default
from xtrace._src.core.sizes import has_symbolic
from xtrace._src.core.trace import Tracer, base_trace, current_trace
from xtrace._src.ops.references.binding import bind_with_references
from xtrace._src.ops.shardings.sharding_constraints import constrain_all
from xtrace._src.runtime.arrays import DELETED, ConcreteArray
from xtrace._src.runtime.execute import Assignment, Program
from xtrace._src.runtime.transfer import committed_sharding
from xtrace._src.transforms import dead_code
from xtrace._src.transforms.discharge import has_references
from xtrace._src.transforms.lower import LoweredModule
from xtrace._src.transforms.lower import lower as lower_to_stablehlo
from xtrace._src.transforms.stage import StagingTrace
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    from xtrace._src.api.compilation import tiered_compilation
    from xtrace._src.api.jit import stages
    from xtrace._src.api.jit.annotated_arguments import find_described_arguments
    from xtrace._src.api.jit.reference_programs import ReferenceProgram
    from xtrace._src.api.kept_traces import kept_traces
    from xtrace._src.api.reports import cache_info, cache_miss_reports
    from xtrace._src.core.high_types import high_nodes
    from xtrace._src.debug_nans import search as debug_nans
    from xtrace._src.host_evaluation import programs as host_programs
    from xtrace._src.key_reuse import check as key_reuse
    from xtrace._src.ops.calls import calls
    from xtrace._src.ops.random import draw_loops
    from xtrace._src.ops.shardings.device_put import put
    from xtrace._src.transforms.evaluate import evaluate
    from xtrace._src.transforms.jaxpr_transforms import move_constants_to_inputs

# Measured: so many equal draws compile faster as a loop.
_MANY_DRAWS = 4


def make_jitted(fun: Callable[..., Any], static: Selection, donated: Selection, options: Options) -> Jitted:
    """Return `fun` jitted; functions that are jitted twice with the same options share a cache."""
    return Jitted(fun, static, donated, options, find_table(fun).setdefault(options, Cache()))


def _with_options(fun: Callable[..., Any], options: Options) -> Jitted:
    """Return `fun` jitted with the checked options of another function."""
    static = Selection("static", fun, options.static_numbers, options.static_names)
    return make_jitted(fun, static, Selection("donate", fun, options.donated_numbers, options.donated_names), options)


def _count_draws(jaxpr: Jaxpr) -> int:
    # The name: an import of the operation would slow down the start of programs without random numbers.
    return sum([e.primitive.name == "random_bits" for e in jaxpr.eqns]) if not jaxpr.effects else 0


class Jitted:
    """A function with its options and its cache; `callable` returns the function for users."""

    # Whether only a compiled program is known, which was loaded from bytes.
    is_loaded = False

    def __init__(
        self, fun: Callable[..., Any], static: Selection, donated: Selection, options: Options, cache: Cache
    ) -> None:
        self.fun, self.static, self.donated, self.options, self.cache = fun, static, donated, options, cache
        self.name = function_name(fun)
        self.wrapper: Callable[[], Any] = lambda: None
        # Whether the function is the library's own: eager calls evaluate a single operation without a program.
        self.of_library = False

    @property
    def inlines(self) -> bool:
        """Whether calls in other traced functions record its operations; messages then name the calling line."""
        return self.options.inline is True or self.of_library

    def callable(self) -> Callable[..., Any]:
        """Return the jitted function, with its stages as attributes."""
        jitted = self.cache.call_shapes.entry_point(self.call)
        wraps(self.fun, ("__dict__",) if isinstance(self.fun, FunctionType) else ())(jitted)
        if not isinstance(getattr(self.fun, "__name__", None), str):
            jitted.__name__ = jitted.__qualname__ = self.name
        vars(jitted).update(
            self.stage_attributes(), __signature__=LazySignature(self.fun), warm_up=self.warm_up,
            warm_up_all=self.warm_up_all, cache_info=self.cache_info, _cache_size=self.cache.count_programs,
            wait_for_compilation=self.cache.wait_for_compilation, _xtrace_jitted=self,
        )
        self.wrapper = weakref.ref(jitted)
        return jitted

    def stage_attributes(self) -> dict[str, Callable[..., Any]]:
        """Return the attributes of jitted functions that the library's own functions have, too."""
        return {
            "trace": self.trace, "lower": self.lower, "eval_shape": self.eval_shape, "clear_cache": self.cache.clear
        }

    def __reduce__(self) -> Any:
        """Support cloudpickle, which writes the code and the attributes of jitted functions in ``__main__``."""
        return _with_options, (self.fun, self.options), (self.wrapper(), self.name, self.of_library)

    def __setstate__(self, state: tuple[Any, str, bool]) -> None:
        wrapper, self.name, self.of_library = state
        # A function that is being loaded has no attributes yet.
        if wrapper is not None and not hasattr(wrapper, "_xtrace_jitted"):
            self.cache.call_shapes.adopt(wrapper, self.call)
            self.wrapper = weakref.ref(wrapper)

    def call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call with any arguments under any trace."""
        if config.disable_jit.value:
            return self.fun(*args, **kwargs)
        static, leaves, in_tree = static_arguments.flatten(self.fun, self.static, args, kwargs)
        if high_types and any(map(is_high, leaves)):
            return self._call_with_high_types(leaves, args, kwargs)
        if current_trace.get() is not base_trace or any(isinstance(x, Tracer) for x in leaves):
            return self._bind(static, leaves, in_tree, args, kwargs)
        donated = self.flag_donated_leaves(static, in_tree)
        if True in donated:
            self.check_donation(donated, static, leaves, in_tree)
        signatures = [
            x.signature if type(x) is ConcreteArray else self._get_leaf_aval(x, static, leaves, in_tree) for x in leaves
        ]
        if DELETED in signatures:
            check_live(leaves, self.name, lambda: list_argument_paths(self.fun, static, in_tree))
        settings = config.cache_key()
        key = (settings, static, in_tree, *signatures)
        compiled = self.cache.compiled.get_or_make(key, lambda: self._compile(static, in_tree, leaves, key))
        if compiled.upgrade is not None:
            compiled.use_full_program()
        result = compiled(leaves)
        calls = dispatch.count_call(compiled.calls, leaves)
        is_final, program = compiled.upgrade is None, compiled.program
        due = is_final and compiled.is_due(calls)
        if due and program is not None and compiled.run is program and not program.callbacks:
            code = dispatch.specialise(
                args, kwargs, static, donated, program, compiled.out_tree, settings, compiled.forget_calls
            )
            if code is not None:
                compiled.specialised = True
                self.cache.call_shapes.add(args, kwargs, code)
        for leaf, gone in zip(leaves, donated, strict=True):
            if gone and type(leaf) is ConcreteArray:
                leaf.note_deletion()
        return result

    def _call_with_high_types(self, leaves: Sequence[Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call on values of high types; only its own trace can process a traced one."""
        if any(isinstance(x, Tracer) and is_high(x) for x in leaves):
            return self.fun(*args, **kwargs)
        if self.cache.jitted_on_nodes is None:
            options = self.options._replace(
                donated_numbers=(), donated_names=(), in_shardings=sharding_assignment.NO_SHARDINGS,
                out_shardings=sharding_assignment.NO_SHARDINGS,
            )
            self.cache.jitted_on_nodes = _with_options(
                high_nodes.with_written_arguments(self.fun), options
            ).callable()
        return high_nodes.call_and_write_back(self.cache.jitted_on_nodes, args, kwargs)

    def _get_leaf_aval(self, leaf: object, static: Static, leaves: Sequence[Any], in_tree: PyTreeDef) -> ShapedArray:
        try:
            return aval_of_value(leaf)
        except (TypeError, ValueError):
            return abstract_leaves(self.fun, static, leaves, in_tree, aval_of_value)[0]

    def _bind(
        self, static: Static, leaves: list[Any], in_tree: PyTreeDef, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """Record a call of this function in the current trace."""
        if self.options.compiler_options:
            raise ValueError(
                f"jit: {self.name} has compiler_options={dict(self.options.compiler_options)}, but it is called inside "
                "another traced function and becomes part of its program; give the options to the outermost jit"
            )
        fusion_level = current_trace.get().fusion_level
        if self.inlines and not fusion_level and (self.of_library or all(isinstance(x, Array) for x in leaves)):
            return self.fun(*args, **kwargs)  # A user's function sees numbers as arrays, below.
        if self.options.has_shardings and self.inlines:
            leaves = constrain_all(leaves, self.list_given_shardings(in_tree, None)[0])
        avals = abstract_leaves(self.fun, static, leaves, in_tree, aval_of)
        # Python's stack bounds the depth of nested jits: keep few frames between two of them.
        traced = self.cache.traced.get_or_make(*self._find_trace(static, in_tree, avals))
        if traced.is_unfused(fusion_level) if self.of_library else self.inlines and not fusion_level:
            return pytree.tree_unflatten(traced.out_tree, evaluate(traced.jaxpr, traced.consts, leaves))
        if OWN_DERIVATIVE_EFFECT in traced.jaxpr.effects and not isinstance(current_trace.get(), StagingTrace):
            return self.fun(*args, **kwargs)
        jaxpr = move_constants_to_inputs(traced.closed)
        donated = (*(False for _ in traced.consts), *self.flag_donated_leaves(static, in_tree))
        donated = donated if any(donated) else ()
        operands = [*traced.consts, *leaves]
        parameters = (
            self.name, jaxpr, donated, self.options.keep_unused, self.options.compiler_options or None,
            self.options.inline, *self._make_places(traced, in_tree),
        )
        if has_references(jaxpr.jaxpr):
            results = bind_with_references(calls.jit_call, operands, parameters, jaxpr.effects)
        else:
            results = calls.jit_call.bind_positional(operands, parameters)
        if self.options.has_shardings and self.inlines:
            results = constrain_all(results, self.list_given_shardings(None, traced.out_tree)[1])
        return pytree.tree_unflatten(traced.out_tree, results)

    def _make_places(self, traced: TracedFunction, in_tree: PyTreeDef) -> calls.Places:
        """Return the shardings in the parameters of a call's equation, and the mesh in force."""
        places = calls.Places(ctx_mesh=config.mesh.value)
        if not self.options.has_shardings or self.inlines:
            return places
        sides = []
        rows = self.list_given_shardings(in_tree, traced.out_tree), self._list_given_layouts(in_tree, traced.out_tree)
        for shardings, layouts in zip(*rows, strict=True):
            pairs = zip(shardings, layouts or [None] * len(shardings), strict=True)
            sides.append([calls.Place(UNSPECIFIED if s is None else s, layout) for s, layout in pairs])
        before = [calls.Place()] * len(traced.consts) if sides[0] else []
        return calls.Places.of([*before, *sides[0]], sides[1], config.mesh.value)

    def get_trace(self, static: Static, in_tree: PyTreeDef, avals: Sequence[ShapedArray]) -> TracedFunction:
        """Return the trace for a signature; a new signature is traced."""
        return self.cache.traced.get_or_make(*self._find_trace(static, in_tree, avals))

    def _find_trace(
        self, static: Static, in_tree: PyTreeDef, avals: Sequence[ShapedArray]
    ) -> tuple[tuple[Any, ...], Callable[[], TracedFunction]]:
        """Return the key of the trace for a signature, and a function that traces."""
        key, forgotten = self.cache.find_trace(static, in_tree, avals)
        if config.explain_cache_misses.value or config.log_compiles.value:
            return key, functools.partial(self._trace, key, forgotten)
        return key, functools.partial(trace, "jit", self.fun, static, in_tree, avals, self._result_mover)

    @property
    def _result_mover(self) -> Any:
        """The function that moves results to the memory spaces in ``out_shardings``; None if there are none."""
        return self._put_in_memory if self.options.out_shardings.has_memory else None

    def _put_in_memory(self, results: list[Any], tree: PyTreeDef) -> list[Any]:
        try:
            spaces = self.options.out_shardings.list_leaf_spaces(tree)
        except ValueError:
            return results  # The assignment of devices reports the tree.
        return [
            x if space is None or aval_of(x).memory_space is space else put([x], [space])[0]
            for x, space in zip(results, spaces, strict=True)
        ]

    def _trace(self, key: tuple[Any, ...], forgotten: bool) -> TracedFunction:
        """Trace, and report it; `forgotten` if there was a trace that closed over a tracer of an ended trace."""
        _, static, in_tree, *avals = key
        if config.explain_cache_misses.value:
            reason = self.cache.explain_miss(find_table(self.fun).values(), forgotten)
            cache_miss_reports.report_miss(self.fun, key, list(self.cache.traced.entries), since=reason)
        traced = trace("jit", self.fun, static, in_tree, avals, self._result_mover)
        if config.log_compiles.value:
            cache_miss_reports.report_step("tracing", self.name, traced.seconds)
        return traced

    def _compile(self, static: Static, in_tree: PyTreeDef, leaves: Sequence[Any], key: tuple[Any, ...]) -> CompiledCall:
        if cache_settings.trace_cache.value and not self.of_library:
            return kept_traces.load_or_compile(self, static, in_tree, leaves, key)
        on_host = (self.of_library or self.options.is_plain) and evaluates_on_host(not self.of_library)
        if on_host and (host := self._evaluate_on_host(static, in_tree, leaves, key)) is not None:
            return host
        return self.compile(self.prepare(static, in_tree, leaves, key, aval_of_value))

    def compile(self, prepared: Prepared | CompiledCall) -> CompiledCall:
        """Compile a signature that was traced and lowered."""
        if isinstance(prepared, CompiledCall):
            return prepared
        start, way = time.perf_counter(), self.options.compilation or compilation.value
        # Checks wrap one program: they exclude a later replacement.
        if way == "full" or self.of_library or (way == "tiered" and prepared.checks):
            program, upgrade = self._compile_fully(prepared), None
        else:
            program, upgrade = tiered_compilation.compile_by(way, prepared.compilation)
        return self.make_compiled_call(prepared, program, time.perf_counter() - start, upgrade)

    def _compile_fully(self, prepared: Prepared) -> Program:
        """Return the fully compiled program of a signature; `Lowered.compile` and other calls share it."""
        made = prepared.compilation
        if prepared.checks:  # it keeps donated arguments, which other programs do not
            return made.compile()
        return self.cache.compile(prepared.traced, made.assignment, self.options.compiler_options, made.compile)

    def _evaluate_on_host(
        self, static: Static, in_tree: PyTreeDef, leaves: Sequence[Any], key: tuple[Any, ...]
    ) -> CompiledCall | None:
        """Return a program that the host evaluates at its first calls; None if the signature must be compiled."""
        traced = self.get_trace(static, in_tree, abstract_leaves(self.fun, static, leaves, in_tree, aval_of_value))
        closed = traced.closed if self.of_library else dead_code.drop_inputs(traced.closed)
        if traced.takes_references or closed is None:
            return None

        def compile_for(values: Sequence[Any]) -> Any:
            prepared = self.prepare(static, in_tree, values, key, aval_of_value)
            return prepared.program if isinstance(prepared, CompiledCall) else self._compile_fully(prepared)

        assignment = self._assign_devices(leaves, traced)
        host = host_programs.host_program(closed, assignment, compile_for, self.of_library)
        return None if host is None else CompiledCall(None, host, traced, (traced.seconds, 0.0, 0.0), host)

    def prepare(
        self, static: Static, in_tree: PyTreeDef, leaves: Sequence[Any], key: tuple[Any, ...],
        of: Callable[[Any], ShapedArray],
    ) -> Prepared | CompiledCall:
        """Trace and lower for leaves of the types ``of(leaf)``; a function of references is compiled when called.

        A program that ``lower(...).compile()`` made is used again.
        """
        avals = abstract_leaves(self.fun, static, leaves, in_tree, of)
        avals = sharding_assignment.apply_shardings_to_types(avals, self.list_given_shardings(in_tree, None)[0], leaves)
        traces = set(self.cache.traced.entries.values()) if config.explain_cache_misses.value else ()
        traced = self.get_trace(static, in_tree, avals)
        if traced in traces:
            cache_miss_reports.report_miss(self.fun, key, list(self.cache.compiled.entries), traced=False)
        if traced.takes_references:
            return ReferenceProgram(traced, self.jit_array_function(traced, static), (traced.seconds, 0.0, 0.0))
        assignment = self._assign_devices(leaves, traced)
        if config.log_compiles.value:
            count = len(in_tree.children()[0].children()) + len(static.positional)
            named = cache_miss_reports.static_values(self.fun, static, count)
            cache_miss_reports.report_types(self.name, traced.debug_info.argument_paths(), avals, named)
        start = time.perf_counter()
        checks: list[Callable[..., Any]] = []
        if config.debug_key_reuse.value:
            checks.append(lambda run: key_reuse.check_keys(run, traced.closed, self.inlines))
        if config.checks_numbers():
            donated = self.flag_donated_leaves(static, in_tree)
            checks.append(
                lambda run: debug_nans.check_results(
                    run, traced.closed, self.name, traced.out_tree, donated, self.inlines
                )
            )
        check_execution(self.name)
        known = None if checks else self.cache.find_program(traced, assignment, self.options.compiler_options)
        if known is not None:
            return CompiledCall(known, known, traced, (traced.seconds, None, None))
        module, kept = self.lower_module(
            traced, static, assignment.platform, keep=config.checks_numbers(), assignment=assignment
        )
        text = module.text(debug_info=True)
        seconds = time.perf_counter() - start
        if config.log_compiles.value:
            cache_miss_reports.report_step("lowering", self.name, seconds)
        made = Compilation(module, text, traced.closed, assignment, dict(self.options.compiler_options), kept=kept)
        return Prepared(key, traced, made, checks, seconds)

    def make_compiled_call(
        self, prepared: Prepared, program: Program, seconds: float, upgrade: Any = None
    ) -> CompiledCall:
        """Return a compiled program with the checks that the settings ask for; `seconds` is the compile time."""
        if config.log_compiles.value:
            cache_miss_reports.report_step("XLA compilation", f"jit({self.name})", seconds)
        run: Callable[..., Any] = program
        for check in prepared.checks:
            run = check(run)
        self.cache.count_compilation(self.fun, prepared.compilation.text, prepared.key)
        traced = prepared.traced
        return CompiledCall(program, run, traced, (traced.seconds, prepared.seconds, seconds), upgrade)

    @boundary
    def warm_up(self, *args: object, **kwargs: object) -> None:
        """Compile for the given arguments or ShapeDtypeStructs, without a call; the next call finds the program."""
        tiered_compilation.warm_up(self, [(args, kwargs)])

    @boundary
    def warm_up_all(self, signatures: Iterable[tuple[Any, ...]]) -> None:
        """Compile for each of these tuples of positional arguments, as `warm_up` does, on all cores."""
        tiered_compilation.warm_up_all(self, signatures)

    def jit_array_function(self, traced: TracedFunction, static: Static) -> Callable[..., Any]:
        """Return a trace with references as a function of their arrays, jitted with this function's options."""
        function, captured = traced.make_array_function(self.name)
        shardings = self.list_given_shardings(traced.in_tree, None)[0]
        gone = traced.donated_arrays(self.flag_donated_leaves(static, traced.in_tree))
        given = (*[None] * captured, *shardings) if shardings else None
        return _with_options(function, self.options._replace(
            static_numbers=(), static_names=(), donated_numbers=tuple(gone), donated_names=(),
            in_shardings=sharding_assignment.make_sharding_tree("in_shardings", given),
            out_shardings=sharding_assignment.NO_SHARDINGS,
        )).callable()

    def cache_info(self) -> Any:
        """Return the entries of the cache with their keys; see `xtrace._src.api.reports.cache_info.CacheInfo`.

        Printed, it is a table. `entries` are the programs, and the traces that became part of other programs: argument
        types by path, static values, settings, seconds of tracing, lowering and compiling, calls. `hits` is the number
        of calls that found a program, `misses` the number of calls that compiled one. Specialised code counts no calls:
        the entry of its signature shows "4+".
        """
        return cache_info.cache_info(self.fun, self.cache)

    def lower_module(
        self, traced: TracedFunction, static: Static, platform: str, keep: bool = False,
        assignment: Assignment | None = None, hides_constants: bool = True,
    ) -> tuple[LoweredModule, list[int] | None]:
        """Return the StableHLO module of a trace, and the positions of its inputs; None if it takes all inputs.

        keep: whether donated arguments keep their memory. assignment: the devices and the shardings of all inputs.
        hides_constants: whether large constants are leading arguments of the module.
        """
        traced = traced.discharge()
        jaxpr, read = dead_code.eliminate_dead_code(traced.jaxpr)
        donated = [False] * len(read) if keep else self.flag_donated_leaves(static, traced.in_tree)
        kept = None
        # With symbolic sizes the module reads the sizes of all arguments.
        if not (self.options.keep_unused or all(read) or any(has_symbolic(v.aval.shape) for v in jaxpr.invars)):
            kept = [i for i, used in enumerate(read) if used]
            jaxpr = jaxpr.replace(invars=[jaxpr.invars[i] for i in kept])
            donated = [donated[i] for i in kept]

        def paths() -> Sequence[str]:
            paths = traced.debug_info.argument_paths()
            return paths if kept is None else [paths[i] for i in kept]

        closed = ClosedJaxpr(jaxpr, traced.consts)
        if platform == "cpu" and (assignment is None or assignment.mesh is None) and _count_draws(jaxpr) >= _MANY_DRAWS:
            closed = draw_loops.loop_over_equal_draws(closed, _MANY_DRAWS)
        module = lower_to_stablehlo(
            closed, self.name, platform, donated=donated, argument_names=paths,
            result_names=functools.partial(result_paths, traced.out_tree),
            assignment=assignment.keep(kept) if assignment is not None else None, hides_constants=hides_constants,
        )
        if module.unusable_donations:
            names = [paths()[i] for i in module.unusable_donations]
            warn_each_time(
                f"Some donated buffers were not usable: {', '.join(names)}. No result of {self.name} has the same "
                "shape and dtype, so their memory could not be reused"
            )
        return module, kept

    def flag_donated_leaves(self, static: Static, in_tree: Any) -> list[bool]:
        """Return a flag for each leaf: whether it is donated."""
        return self.donated.flag_leaves(in_tree, [n for n, _ in static.positional])

    def check_donation(self, flags: Sequence[bool], static: Static, leaves: Sequence[Any], in_tree: PyTreeDef) -> None:
        """Raise JaxRuntimeError if a donated array is passed twice."""
        static_arguments.check_donation(
            self.name, flags, leaves, lambda: list_argument_paths(self.fun, static, in_tree)
        )

    def _abstract_call(
        self, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> tuple[Static, TracedFunction, Assignment]:
        """Return the static arguments, the trace, and the assignment of devices."""
        static, leaves, in_tree = static_arguments.flatten(self.fun, self.static, args, kwargs)
        avals = abstract_leaves(self.fun, static, leaves, in_tree, abstract_leaf)
        avals = sharding_assignment.apply_shardings_to_types(avals, self.list_given_shardings(in_tree, None)[0], leaves)
        traced = self.get_trace(static, in_tree, avals)
        return static, traced, self._assign_devices(leaves, traced)

    def _assign_devices(self, leaves: Sequence[Any], traced: TracedFunction) -> Assignment:
        """Return the devices of the program and, on a mesh, the shardings of its inputs and results."""
        if self.options.device is not None:
            return Assignment((self.options.device,), True)
        unread: frozenset[int] = frozenset()
        if not self.options.keep_unused and any(committed_sharding(x) is not None for x in leaves):
            read = dead_code.eliminate_dead_code(traced.jaxpr)[1]
            unread = frozenset([i for i, used in enumerate(read) if not used])
        inputs, results = self.list_given_shardings(traced.in_tree, traced.out_tree)
        return sharding_assignment.assign(
            leaves, self.name, traced.debug_info.argument_paths, traced.jaxpr, inputs, results, traced.out_avals,
            unread, functools.partial(result_paths, traced.out_tree), traced.consts, not self.of_library,
            *self._list_given_layouts(traced.in_tree, traced.out_tree),
        )

    def _list_given_layouts(self, in_tree: Any, out_tree: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the layouts in the arguments of `jit` for all leaves; the trees have been checked."""
        given, wanted = self.options.in_shardings, self.options.out_shardings
        inputs = given.list_leaf_layouts(in_tree.children()[0]) if given.has_layout else ()
        return inputs, wanted.list_leaf_layouts(out_tree) if wanted.has_layout else ()

    def list_given_shardings(self, in_tree: Any, out_tree: Any) -> tuple[Sequence[Any], Sequence[Any]]:
        """Return the shardings in the arguments of `jit` for the leaves of the trees that are not None."""
        inputs: Sequence[Any] = ()
        if in_tree is not None and not self.options.in_shardings.is_empty:
            args, kwargs = in_tree.children()
            if kwargs.num_leaves:
                raise ValueError(
                    f"jit: {self.name} has in_shardings, which are for arguments by position; it is called with the "
                    f"keyword arguments {', '.join(kwargs.node_data()[1])}. Pass these by position"
                )
            inputs = self.options.in_shardings.list_leaf_shardings("in_shardings", args)
        results: Sequence[Any] = ()
        if out_tree is not None and not self.options.out_shardings.is_empty:
            results = self.options.out_shardings.list_leaf_shardings("out_shardings", out_tree)
        return inputs, results

    @boundary
    def trace(self, *args: object, **kwargs: object) -> stages.Traced:
        """Trace for the given arguments or ShapeDtypeStructs; the result has the jaxpr."""
        return stages.Traced(self, *self._abstract_call(args, kwargs))

    @boundary
    def lower(self, *args: object, **kwargs: object) -> stages.Lowered:
        """Trace and lower for the given arguments or ShapeDtypeStructs; the result has the StableHLO."""
        return self.trace(*args, **kwargs).lower()

    def lower_without_arguments(self) -> stages.Lowered:
        """Lower for the last signature called, or for the signature in annotations and defaults."""
        if self.cache.last_signature is not None:
            static, in_tree, avals = self.cache.last_signature
            traced = self.get_trace(static, in_tree, avals)
            return stages.Traced(self, static, traced, self._assign_devices(avals, traced)).lower()
        positional, named, missing = find_described_arguments(self.fun)
        if missing:
            raise TypeError(
                f"lower: {self.name} has not been called, so the types of its arguments are unknown "
                f"({', '.join(missing)}). Pass example arguments or shapes, as in lower({self.name}, "
                "xtrace.ShapeDtypeStruct((128, 128), 'float32')), or give each parameter a ShapeDtypeStruct as its "
                "annotation or default."
            )
        return self.lower(*positional, **named)

    @boundary
    def eval_shape(self, *args: object, **kwargs: object) -> Any:
        """Return the results' shapes and dtypes, and their shardings in ``out_shardings``."""
        return self.out_info(self._abstract_call(args, kwargs)[1])

    def out_info(self, traced: TracedFunction) -> Any:
        """Return the results of a trace as a tree of ShapeDtypeStruct."""
        places: Sequence[Any] = self.list_given_shardings(traced.in_tree, traced.out_tree)[1]
        layouts = self._list_given_layouts(traced.in_tree, traced.out_tree)[1]
        if layouts:
            pairs = zip(layouts, places, strict=True)
            places = [Format(x, s) if isinstance(x, Layout) and not is_default(x) else s for x, s in pairs]
        return traced.describe_results(places)
