"""Lowering: a jaxpr becomes the text of a StableHLO module, one equation at a time."""

from __future__ import annotations

import itertools
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xtrace._late_imports import late_modules
from xtrace._src.core import monitoring
from xtrace._src.core.avals import ShapedArray, check_size, physical_aval
from xtrace._src.core.diagnostics.positions import (
    Annotation,
    Position,
    Scopes,
    annotations_in,
    format_scopes,
    merge_annotations,
)
from xtrace._src.core.dtypes import ExtendedDType
from xtrace._src.core.garbage_collection import collection_paused
from xtrace._src.core.jaxprs.effects import Effects, ordered_effects
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal, are_cacheable, find_jaxprs
from xtrace._src.core.memory_spaces import MemorySpace
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.memory_layout import layout_mode
from xtrace._src.core.shardings.mesh import Mesh
from xtrace._src.core.shardings.shardings import open_dimensions
from xtrace._src.core.sizes import has_symbolic
from xtrace._src.core.tables import memoize
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.execute import Assignment, get_constant_sharding
from xtrace._src.stablehlo.builder import Constant, FunctionBuilder, ModuleBuilder, Value, symbol
from xtrace._src.stablehlo.emission_templates import record_emission_template
from xtrace._src.transforms.donation import pair_donations
from xtrace._src.transforms.effect_tokens import TOKEN, get_tokens, with_tokens
from xtrace._src.transforms.hidden_constants import split_constants, warn_of_large_constants

with late_modules(globals()):
    from xtrace._src.core.diagnostics.rule_error_notes import note_rule
    from xtrace._src.stablehlo import cipher_calls
    from xtrace._src.stablehlo.frontend_attributes import annotate, annotate_lines, is_broadcast
    from xtrace._src.transforms import symbolic_arguments
    from xtrace._src.transforms.physical_types import stage_on_physical_types

_numbers = itertools.count()


@memoize(1024)
def _number_context(platform: str, settings: Any) -> int:
    """Return a number for a platform and settings, on which texts depend; a new one after clearing or eviction."""
    return next(_numbers)


class LoweredModule:
    """A lowered module: the builder with its text, the constants `hidden` that are leading arguments, and its effects.

    `unusable_donations` are the positions of donated inputs that no result can take over.
    """

    __slots__ = ("builder", "hidden", "unusable_donations", "effects")

    def __init__(
        self, builder: ModuleBuilder, hidden: list[Any], unusable_donations: list[int], effects: Effects
    ) -> None:
        self.builder, self.hidden, self.unusable_donations = builder, hidden, unusable_donations
        self.effects = effects

    @property
    def callbacks(self) -> list[Callable[..., Any]]:
        """The Python functions that the program calls."""
        return self.builder.callbacks

    def text(self, debug_info: bool = False) -> str:
        """Return the StableHLO text, with locations if `debug_info`."""
        with collection_paused():
            return self.builder.text(debug_info)


def lower(
    closed: ClosedJaxpr, name: str, platform: str, *, donated: Sequence[bool] = (), scope: str | None = None,
    argument_names: Callable[[], Sequence[str]] = tuple, result_names: Callable[[], Sequence[str]] = tuple,
    assignment: Assignment | None = None, manual_mesh: Mesh | None = None, hides_constants: bool = True,
) -> LoweredModule:
    """Return the module ``jit_NAME`` of `closed` for `platform`.

    donated: whether the memory of each input may be reused.
    scope: the outermost scope of the operations; by default ``jit(NAME)``.
    argument_names: a function that returns the names of the inputs in XLA's reports, called for a text with locations.
    result_names: a function that returns the paths of the results, such as ``result['a']``, called for a text.
    assignment: the devices of a program on a mesh, and the shardings of its inputs and results.
    manual_mesh: the mesh of the axes that collectives name, for a program on one device's shards.
    hides_constants: whether large constants are leading arguments of the program.
    """
    start = time.perf_counter()
    mesh = assignment.mesh if assignment is not None else None
    module = ModuleBuilder("jit_" + symbol(name), platform, num_partitions=mesh.size if mesh is not None else 1)
    module.mesh, module.manual_mesh = mesh, manual_mesh
    module.is_explicit = mesh is not None
    main = FunctionBuilder(module, "main", scope or f"jit({name})", public=True)
    main.argument_names, main.result_names = argument_names, result_names
    main.annotations = config.frontend_annotations.value or ()
    module.functions.append(main)
    jaxpr = closed.jaxpr
    count_occurrences_in(module, jaxpr)
    values: dict[Atom, Value] = {}
    hidden, small = split_constants(closed, hides_constants)
    for variable, constant in hidden:
        # XLA would choose a split for an argument without a sharding.
        place = get_constant_sharding(constant, mesh) if mesh is not None else None
        attribute = module.meshes.attribute(place, physical_aval(variable.aval).ndim)
        values[variable] = main.argument(variable.aval, attribute)
    if hidden:
        warn_of_large_constants([constant for _, constant in hidden], name)
    donors = list(donated) or [False] * len(jaxpr.invars)
    layouts = assignment.layouts if assignment is not None else None
    aliases = pair_donations(jaxpr, donors, layouts)
    inputs, results_at = _shardings(module, assignment, jaxpr)
    for i, (variable, sharding) in enumerate(zip(jaxpr.invars, inputs, strict=True)):
        text = f"tf.aliasing_output = {aliases[i]} : i32" if i in aliases else ""
        if text and mesh is not None:
            # XLA pairs the input with a result after it has partitioned the program.
            text = "jax.buffer_donor = true"
        is_moved = layouts is not None and donors[i] and not text
        texts = [
            "jax.buffer_donor = true" if is_moved else "", _layout_attribute(layouts.inputs[i] if layouts else None),
            sharding, text or _memory_attribute(variable.aval),
        ]
        values[variable] = main.argument(variable.aval, ", ".join(filter(None, texts)))
    if any(has_symbolic(getattr(v.aval, "shape", ())) for v in jaxpr.invars):
        # Only exported programs have symbolic shapes.
        symbolic_arguments.find_variables(main, [values[v] for v in jaxpr.invars], argument_names())
    for variable, constant in small:
        values[variable] = emit_program_constant(main, constant, variable.aval)
    for effect in ordered_effects(jaxpr.effects):
        main.tokens[effect] = main.create_token(TOKEN)
    with collection_paused():
        results = emit_equations(main, jaxpr, values)
        memories = [_memory_attribute(v.aval) for v in jaxpr.outvars]
        modes = map(_layout_attribute, layouts.results if layouts is not None else [None] * len(results))
        rows = zip(modes, results_at, memories, strict=True)
        main.return_values(results, [", ".join(filter(None, row)) for row in rows])
    if platform == "cpu" and module.has_function("threefry2x32"):
        cipher_calls.arrange_cipher_calls(module, "threefry2x32", is_portable=not hides_constants)
    module.finish()
    unusable = [i for i, donor in enumerate(donors) if donor and i not in aliases] if layouts is None else []
    monitoring.record_step(monitoring.LOWERING, time.perf_counter() - start, main.scope)
    return LoweredModule(module, [constant for _, constant in hidden], unusable, jaxpr.effects)


def _shardings(
    module: ModuleBuilder, assignment: Assignment | None, jaxpr: Jaxpr
) -> tuple[Sequence[str], Sequence[str]]:
    """Return the sharding attributes of the inputs and of the results; empty without a mesh."""
    if assignment is None or assignment.mesh is None:
        return [""] * len(jaxpr.invars), [""] * len(jaxpr.outvars)
    pairs = (jaxpr.invars, assignment.inputs), (jaxpr.outvars, assignment.results)
    inputs, results = [
        [module.meshes.attribute(s, physical_aval(v.aval).ndim) for v, s in zip(variables, given, strict=True)]
        for variables, given in pairs
    ]
    return inputs, results


def _layout_attribute(layout: Any) -> str:
    """Return the attribute of an argument's or result's layout; empty for the default layout, None."""
    return f'mhlo.layout_mode = "{layout_mode(layout)}"' if layout is not None else ""


def _memory_attribute(aval: ShapedArray) -> str:
    """Return the attribute of an argument's or result's memory; empty for the device's own."""
    if aval.memory_space is MemorySpace.Device:
        return ""
    return f'mhlo.memory_kind = "{aval.memory_space.kind}"'


def emit_program_constant(builder: FunctionBuilder, constant: object, aval: ShapedArray) -> Value:
    """Write a constant that a program closes over, and return it as a value of type `aval`."""
    return builder.constant(_to_numpy(constant), physical_aval(aval)).bitcast(aval)


def _to_numpy(constant: object) -> Any:
    """Return a constant of the program as a NumPy array."""
    return constant.physical_array() if isinstance(constant, ConcreteArray) else np.asarray(constant)


def is_unreduced(x: Value) -> bool:
    """Whether a value is unreduced along explicit mesh axes."""
    sharding = x.aval.explicit_sharding
    return sharding is not None and bool(sharding.spec.unreduced)


def emit_equations(
    builder: FunctionBuilder, jaxpr: Jaxpr, values: dict[Atom, Value], position: Position | None = None
) -> list[Value]:
    """Write the equations of `jaxpr` and return the values of its outputs.

    values: the values of the inputs; others are added. position: the position of equations that have none.
    """
    outer, places, inherited = builder.scope, builder.place, builder.annotations
    # Maps an operation and its scopes below `outer` to its whole scope, its name and its annotations.
    paths: dict[tuple[Scopes, Primitive], tuple[str, str, tuple[Annotation, ...]]] = {}
    context = _number_context(builder.platform, config.cache_key())
    # Values that a name describes completely; `values` keeps the others, such as literals.
    names: dict[Atom, str] = {}
    _keep(names, values, values, list(values.values()))

    def get_emitted(atom: Atom) -> Value:
        name = names.get(atom)
        if name is not None:
            return Value(name, atom.aval)
        if type(atom) is Literal and atom not in values:
            values[atom] = builder.literal(atom.value, atom.aval)
        return values[atom]

    explicit = builder.module.is_explicit
    if explicit:
        for variable in jaxpr.invars:
            if variable.aval.is_placed and variable.aval.sums.unreduced:
                names[variable] = builder.keep_terms(get_emitted(variable).bitcast(variable.aval)).name
                values.pop(variable, None)
    for equation in jaxpr.eqns:
        primitive, invars, source = equation.primitive, equation.invars, equation.source or position
        own = equation.source
        scopes = own[2] if own is not None else ()
        path = paths.get((scopes, primitive))
        if path is None:
            scope = "/".join([x for x in (outer, format_scopes(scopes)) if x])
            name = f"{scope}/{primitive.name}" if scope else primitive.name
            path = paths[scopes, primitive] = (scope, name, inherited + annotations_in(scopes))
        builder.scope = path[0]
        builder.place = (source, path[1])
        annotations = path[2]
        if annotations:
            builder.annotations, first_line = tuple([a for a in annotations if a.inherited]), len(builder.lines)
        try:
            operands = [names[x] for x in invars]
            template = primitive.emission_templates.get((context, equation.parameters, *[x.aval for x in invars]))
        except (KeyError, TypeError):  # a literal, a parameter without a hash
            template = None
        if template is None:
            emitted = _emit(builder, equation, context, [get_emitted(x) for x in invars])
            _keep(names, values, equation.outvars, emitted if primitive.multiple_results else [emitted])
        elif primitive.multiple_results:
            names.update(zip(equation.outvars, template.write(builder, operands), strict=True))
        else:
            names[equation.outvars[0]] = template.write(builder, operands)
        if annotations:
            builder.annotations = inherited
            _annotate_equation(builder, annotations, primitive, first_line)
        if explicit:
            for variable in equation.outvars:
                sharding = variable.aval.explicit_sharding
                if sharding is not None:
                    value = get_emitted(variable)
                    values.pop(variable, None)
                    free = open_dimensions(sharding, variable.aval.ndim)
                    names[variable] = builder.constrain(value, sharding, free).name
    builder.scope, builder.place = outer, places
    return [get_emitted(x) for x in jaxpr.outvars]


def _annotate_equation(
    builder: FunctionBuilder, annotations: tuple[Annotation, ...], primitive: Primitive, start: int
) -> None:
    """Give the lines of an equation, from `start` on, the attributes of its annotations."""
    attributes, lines = merge_annotations(annotations), builder.lines
    if not attributes:
        return
    # Metadata is for the user's operation only; the annotation of a place is for everything that runs there.
    if primitive.name == "broadcast_in_dim" or any(a.of_place for a in annotations):
        annotate_lines(lines, start, attributes)
        return
    for i in range(start, len(lines)):
        if not is_broadcast(lines[i]):
            lines[i] = annotate(lines[i], attributes)


def _keep(
    names: dict[Atom, str], values: dict[Atom, Value], variables: Iterable[Atom], emitted: Sequence[Value]
) -> None:
    """Store the values of variables: in `names` if the value has the variable's type, else in `values`."""
    for variable, value in zip(variables, emitted, strict=True):
        if type(value) is Value and value.aval is variable.aval:
            names[variable] = value.name
        else:
            values[variable] = value


def _emit(builder: FunctionBuilder, equation: JaxprEqn, context: int, operands: Sequence[Value]) -> Any:
    """Write an equation that has literals, or no emission template, and return its values."""
    primitive, parameters, place = equation.primitive, equation.parameters, builder.place
    results = builder.results = [v.aval for v in equation.outvars]
    # In a template, literals are part of the text; other operands are gaps.
    kinds = [(x.text, x.aval) if type(x) is Constant else x.aval for x in operands]
    key = (context, parameters, *kinds) if primitive.memoised else (context, parameters, *kinds, tuple(results))
    try:
        template = primitive.emission_templates.get(key)
    except TypeError:  # a parameter without a hash
        template = None
    if template is not None:
        return template.write_values(builder, operands, results)
    try:
        for aval in results:
            check_size(aval, primitive.name)
        if primitive.moves_elements and any(isinstance(a.dtype, ExtendedDType) for a in results):
            return _emit_on_physical_types(builder, primitive, parameters, operands)
        named = dict(zip(primitive.parameters, parameters, strict=True))
        if primitive.linearize is None and are_cacheable(parameters) and key not in primitive.emission_templates:
            template = record_emission_template(primitive.emit, builder.platform, operands, results, named)
            primitive.emission_templates.remember(key, template)
            if template is not None:
                return template.write_values(builder, operands, results)
        return primitive.emit(builder, *operands, **named)
    except Exception as error:
        note_rule(error, "emit", primitive, operands, place[0] if place is not None else None)
        raise


def _emit_on_physical_types(
    builder: FunctionBuilder, primitive: Primitive, parameters: tuple[Any, ...], operands: Sequence[Value]
) -> Any:
    """Write an operation that moves elements of an extended dtype, with the position of its equation."""
    avals, jaxpr = builder.results, stage_on_physical_types(primitive, parameters, [x.aval for x in operands])
    source = builder.place[0] if builder.place is not None else None
    for equation in jaxpr.eqns:
        equation.source = (*source[:2], ()) if source is not None else None
    stored = [x.to_physical() for x in operands]
    results = emit_jaxpr(builder, jaxpr, stored)
    seen = [x.bitcast(aval) for x, aval in zip(results, avals, strict=True)]
    return seen if primitive.multiple_results else seen[0]


def emit_jaxpr(
    builder: FunctionBuilder, jaxpr: Jaxpr, operands: Sequence[Value], consts: Sequence[Any] = (),
    position: Position | None = None,
) -> list[Value]:
    """Write the equations of `jaxpr` on operands, and return its results; `consts` are the values of its constvars."""
    values: dict[Atom, Value] = dict(zip(jaxpr.invars, operands, strict=True))
    for variable, constant in zip(jaxpr.constvars, consts, strict=True):
        values[variable] = builder.constant(constant, variable.aval)
    return emit_equations(builder, jaxpr, values, position)


def emit_call(
    builder: FunctionBuilder, jaxpr: Jaxpr, name: str, operands: Sequence[Value], operation: str = "call",
    attributes: str = "",
) -> list[Value]:
    """Write `jaxpr` as a private function, and a call of it with the text `attributes`; return the results.

    operation: the operation that calls; in programs with a manual mesh it is ``func.call``.
    """
    if builder.module.axis_indices:
        # A private function cannot read the indices of axes.
        return emit_jaxpr(builder, jaxpr, operands)
    if builder.module.manual_mesh is not None:
        operation = "func.call"
    function = emit_private_function(builder, jaxpr, name)
    effects = ordered_effects(jaxpr.effects)
    sizes = [builder.sizes[variable] for variable in builder.module.variables]
    operands, results = [*sizes, *get_tokens(builder, effects), *operands], [*[TOKEN] * len(effects), *jaxpr.out_avals]
    names = ", ".join(x.name for x in operands)
    line = f"{operation} @{function.name}({names}){attributes} : {builder.function_type(operands, results)}"
    called = builder.line_of_many(line, results)
    return with_tokens(builder, effects, called)


# The key in a module's memo for the number of equations that hold each jaxpr, or for the function that counts them.
_OCCURRENCES = object()


def count_occurrences_in(module: ModuleBuilder, jaxpr: Jaxpr) -> None:
    """Let `occurs_again` count in `jaxpr`, the program of the module."""
    module.memo[_OCCURRENCES] = lambda: _occurrences(jaxpr)


def occurs_again(builder: FunctionBuilder, jaxpr: Jaxpr) -> bool:
    """Whether several equations of the program hold `jaxpr`."""
    memo = builder.module.memo
    if _OCCURRENCES not in memo:
        return False
    if callable(memo[_OCCURRENCES]):
        memo[_OCCURRENCES] = memo[_OCCURRENCES]()
    return bool(memo[_OCCURRENCES][jaxpr] > 1)


def _occurrences(jaxpr: Jaxpr) -> Counter[Jaxpr]:
    counts: Counter[Jaxpr] = Counter()
    pending = [jaxpr]
    while pending:
        for equation in pending.pop().eqns:
            if equation.primitive.linearize is not None:  # it may hold jaxprs
                for inner in find_jaxprs(equation.parameters):
                    counts[inner] += 1
                    if counts[inner] == 1:
                        pending.append(inner)
    return counts


def emit_private_function(
    builder: FunctionBuilder, jaxpr: Jaxpr, name: str, takes_sizes: bool = True
) -> FunctionBuilder:
    """Write `jaxpr` as a private function of the module and return it; the same jaxpr is written once.

    takes_sizes: whether the values of symbolic sizes are its first arguments; XLA calls some functions without them.
    """
    memo = builder.module.memo
    # Collectives depend on the mesh.
    key = (jaxpr, builder.module.manual_mesh, builder.annotations)
    known = memo.get(key)
    if known is None:
        # No scope: XLA prefixes the names of a function's operations with the name of the call.
        function = FunctionBuilder(builder.module, name, "")
        function.annotations = builder.annotations
        if takes_sizes:
            function.take_sizes()
        effects = ordered_effects(jaxpr.effects)
        function.tokens = {e: function.argument(TOKEN) for e in effects}
        results = emit_jaxpr(function, jaxpr, [function.argument(v.aval) for v in jaxpr.invars])
        function.return_values([*get_tokens(function, effects), *results])
        function.name = builder.module.add_private(function, name)
        known = memo[key] = function
    return known
