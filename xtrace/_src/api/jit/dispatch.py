"""Specialised dispatch: the call of a compiled function as generated Python code, for one call shape.

After a few calls, a signature gets code, which looks up the leaves' types in a table and runs the program, without
loops and tree flattening. Signatures that differ only in shapes, dtypes or static values have one call shape, and share
code and table. The code of one shape is the body of the jitted function itself, which saves a Python call: that of the
newest shape, until calls of another one are frequent.
"""

from __future__ import annotations

import builtins
import operator
import sys
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.api.jit.static_arguments import Static, same_static
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.sentinels import MISS, MISSING
from xtrace._src.core.settings import config
from xtrace._src.core.tables import memoize
from xtrace._src.core.trace import Trace, base_trace, current_trace
from xtrace._src.runtime import staging_memory
from xtrace._src.runtime.arrays import ConcreteArray, get_layout, mesh_sharding
from xtrace._src.runtime.execute import Program
from xtrace._src.runtime.transfer import put_at, scalar_buffers
from xtrace._src.xla import buffers
from xtrace._src.xla.pytree_registry import PyTreeDef

# The number of calls after which a signature gets code; generating it takes a fraction of a millisecond.
CALLS_BEFORE_SPECIALISING = 4


# Limits of trees: generating code for larger ones takes long, and Python's compiler refuses expressions nested about 90
# deep.
_MAX_LEAVES = 2000
_MAX_DEPTH = 32

# Up to this number, positional arguments are parameters of the code, which saves a tuple.
_MAX_PARAMETERS = 8

# The placeholder of the name of a call shape's table in its text.
_TABLE = "$table"

# The number of signatures of one function that have code, and of call shapes with the same names of arguments.
_MAX_SIGNATURES = 1024
_MAX_CALL_SHAPES = 8

# The number of calls after which the code of a shape becomes the body.
_CALLS_BEFORE_BODY = 32

_lock = threading.RLock()

# The end of each function, for a failed call; see ``core/diagnostics/tracebacks.py``.
_BOUNDARY = " except BaseException as error:\n  hide_frames(error)\n  raise"

_ELSE_SLOW = "  return slow(args, kwargs) if result is MISS else result\n" + _BOUNDARY

# The code for arguments of other signatures than the body's, and the code of a function without a body.
_OTHERWISE = "  result = run(args, kwargs, True)\n" + _ELSE_SLOW
_UNSPECIALISED = "def jitted(*args, **kwargs):\n try:\n  result = run(args, kwargs)\n" + _ELSE_SLOW

_Slow = Callable[[tuple[Any, ...], dict[str, Any]], Any]


class CallShapes:
    """The code of one function under one set of options, by call shapes.

    The code of one shape is the body of the functions from `entry_point`; they try the other shapes after a miss.
    """

    __slots__ = ("_call_shapes", "_by_arguments", "_body", "_wrappers", "_made")

    def __init__(self) -> None:
        self._made = 0
        self._body: _CallShape | None = None
        self._call_shapes: dict[Any, _CallShape] = {}
        # By the number of positional arguments and the names of keywords.
        self._by_arguments: dict[tuple[Any, ...], tuple[_CallShape, ...]] = {}
        self._wrappers: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()

    def __len__(self) -> int:
        """Return the number of signatures with code."""
        return sum(len(shape.table) for shape in list(self._call_shapes.values()))

    def entry_point(self, slow: _Slow) -> Callable[..., Any]:
        """Return a function whose body is replaced by specialised code, and which passes other calls to `slow`."""
        wrapper = _make_entry_point(slow, self.run)
        with _lock:
            self._wrappers.add(wrapper)
        return wrapper

    def adopt(self, wrapper: Any, slow: _Slow) -> None:
        """Give a function that pickle has just made, without variables, the variables of one from `entry_point`."""
        wrapper.__code__ = _compile_source(_UNSPECIALISED)
        wrapper.__globals__.update(_make_variables(slow, self.run))
        with _lock:
            self._wrappers.add(wrapper)

    def jitted(self) -> Any:
        """Return the `Jitted` that has this code; TypeError if there is none."""
        for wrapper in list(self._wrappers):
            jitted = getattr(wrapper, "_xtrace_jitted", None)
            if jitted is not None:
                return jitted
        raise TypeError("cannot pickle the code of a compiled function")

    def __reduce__(self) -> Any:
        return operator.attrgetter("cache.call_shapes"), (self.jitted(),)

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any], body_missed: bool = False) -> Any:
        """Call the program for these arguments, or return MISS if they have no code."""
        if current_trace.get() is base_trace:
            for shape in self._by_arguments.get((len(args), *kwargs), ()):
                if body_missed and shape is self._body:
                    continue
                result = shape.call(*args, **kwargs)
                if result is not MISS:
                    shape.calls += 1
                    if shape.calls == _CALLS_BEFORE_BODY:
                        self._make_body(shape, (len(args), *kwargs))
                    return result
        return MISS

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any], call: SpecialisedCall) -> None:
        """Use the code of `call` for further calls with arguments like these."""
        with _lock:
            if len(self) >= _MAX_SIGNATURES:
                self.clear()
            shape = self._call_shapes.get(call.shape)
            if shape is None:
                # Names of tables are unique, because another thread may be running code with an older name.
                shape = self._call_shapes[call.shape] = _CallShape(call, f"table{self._made}")
                self._made += 1
            shape.table[call.key] = call.row
            self._make_body(shape, (len(args), *kwargs))

    def _make_body(self, shape: _CallShape, place: tuple[Any, ...]) -> None:
        """Make the code of `shape` the body; `place` is its key in `_by_arguments`."""
        with _lock:
            others = [s for s in self._by_arguments.get(place, ()) if s is not shape]
            self._by_arguments[place] = (shape, *others[: _MAX_CALL_SHAPES - 1])
            self._body, shape.calls = shape, 0
            for wrapper in self._wrappers:
                shape.become_body_of(wrapper)

    def clear(self) -> None:
        """Drop all code. Code that is the body of a function stays, but its table is empty, so each call misses."""
        with _lock:
            for shape in self._call_shapes.values():
                shape.table.clear()
            self._call_shapes.clear()
            self._by_arguments.clear()


class SpecialisedCall(NamedTuple):
    """The specialised call of a signature: the text of its call shape, objects in this text, and a key and row.

    The call shape's table maps the key to the row. The first object of a row is called when the program fails; the
    signature is then dropped from the table.
    """

    source: str
    objects: tuple[tuple[str, Any], ...]
    key: Any
    row: tuple[Any, ...]

    @property
    def shape(self) -> Any:
        """The parts that all calls of one shape share."""
        return self.source, self.objects


class _Rows(dict[Any, tuple[Any, ...]]):
    """The table of a call shape; a pickle of it is empty."""

    __slots__ = ()

    def __reduce__(self) -> Any:
        return _Rows, ()


class _CallShape:
    """The code for calls that differ only in their rows of `table`; `call` returns MISS for all others.

    Objects that all calls share are constants of the code. The table is a global of the functions with this body, and
    no constant: arrays refer to the code of their traceback, and would keep the table and its programs alive.
    """

    __slots__ = ("call", "calls", "table", "_code", "_name")

    def __init__(self, call: SpecialisedCall, name: str) -> None:
        self.table = _Rows()
        # The calls by `CallShapes.run`, since the code was made the body.
        self.calls = 0
        self._name = name
        code = _compile_source(call.source.replace(_TABLE, name))
        named = {f"@{name}": value for name, value in (*_COMMON.items(), *call.objects)}
        self._code = code.replace(co_consts=tuple([named.get(c, c) if type(c) is str else c for c in code.co_consts]))
        self.call = _make_entry_point(_miss, _miss)
        self.become_body_of(self.call)

    def become_body_of(self, function: Any) -> None:
        """Make this the code of a function from `_make_entry_point`."""
        function.__globals__[self._name] = self.table
        function.__code__ = self._code


def count_call(calls: dict[tuple[type, ...], int], leaves: Sequence[Any]) -> int:
    """Return the number of calls of a program with leaves of these Python types, this one included."""
    kinds = tuple([type(x) for x in leaves])
    count = calls[kinds] = calls.get(kinds, 0) + 1
    return count


def _miss(args: tuple[Any, ...], kwargs: dict[str, Any], body_missed: bool = False) -> Any:
    return MISS


def _forget(table: dict[Any, tuple[Any, ...]], key: object) -> None:
    """Drop a signature whose program failed from its call shape's table."""
    row = table.pop(key, None)
    if row is not None:
        row[0]()


def _drop_missing(*args: object) -> tuple[Any, ...]:
    """Return the arguments of a call, without the defaults of parameters that got none."""
    return tuple([x for x in args if x is not MISSING])


@memoize(1024)
def _compile_source(source: str) -> CodeType:
    """Return the code of the function that `source` defines."""
    with warnings.catch_warnings():
        # The source calls strings and compares them by identity, which Python warns of; objects will replace them.
        warnings.simplefilter("ignore", SyntaxWarning)
        module = compile(source, "<xtrace dispatch>", "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


def _make_entry_point(slow: _Slow, run: Callable[..., Any]) -> Callable[..., Any]:
    """Return a function without specialised code: it calls `run`, and `slow` after a miss."""
    # The parameters of specialised code have defaults, so that it notices calls with fewer arguments.
    defaults = (MISSING,) * _MAX_PARAMETERS
    return FunctionType(_compile_source(_UNSPECIALISED), _make_variables(slow, run), "jitted", defaults)


def _make_variables(slow: _Slow, run: Callable[..., Any]) -> dict[str, Any]:
    """Return the global variables of a function from `_make_entry_point`."""
    return {
        "slow": slow, "run": run, "MISS": MISS, "given": _drop_missing, "hide_frames": hide_frames,
        "__builtins__": builtins,
        # chex recognizes a transformed function by a global of this name.
        "api_boundary": hide_frames,
    }


class _Leaf(NamedTuple):
    """A leaf of an argument, whether the program reads it, and whether it is donated."""

    value: Any
    kept: bool
    donated: bool


class _StagedInput(NamedTuple):
    """An input that can have staging memory: its name, its type, its value, and the expression of an own buffer.

    narrows: whether numbers of the value can be beyond the range of the type.
    """

    name: str
    aval: ShapedArray
    value: str
    narrows: bool
    put: str


class _Writer:
    """Collects the parts of the generated function, and the values of the present signature.

    `checks` are statements that check the parts common to the call shape. `keys` are expressions of the parts that
    differ between signatures, with their values in `key`. The table maps the key to `row`, whose objects have the names
    `names`; `agreements` are statements that compare arguments with these objects. `inputs` are the expressions of the
    program's inputs, `staged` those of them that can have staging memory, and `after` are statements after the
    program's call. `objects` are constants of the call shape.
    """

    def __init__(self, program: Program) -> None:
        device = program.device
        self.device, self.devices, self.sharding = device, [device], buffers.transfer_sharding(device)
        # The shardings of the remaining inputs, for a program on a mesh.
        self.input_shardings = None if program.inputs is None else list(program.inputs)
        self.input_layouts = None if program.layouts is None else list(program.layouts.inputs)
        self.checks: list[str] = []
        self.keys: list[str] = []
        self.key: list[Any] = []
        self.names: list[str] = []
        self.row: list[Any] = []
        self.agreements: list[str] = []
        self.inputs: list[str] = []
        self.after: list[str] = []
        self.staged: list[_StagedInput] = []
        self.objects: list[tuple[str, Any]] = []
        self.supported = True
        self._known: dict[int, str] = {}

    def name_in_row(self, prefix: str, value: object) -> str:
        """Add `value` to the row, if it is not there, and return its name in the function."""
        name = self._known.get(id(value))
        if name is None:
            name = self._known[id(value)] = f"{prefix}{len(self.row)}"
            self.names.append(name)
            self.row.append(value)
        return name

    def constant(self, value: object) -> str:
        name = f"K{len(self.objects)}"
        self.objects.append((name, value))
        return f"'@{name}'"

    def variable(self, expression: str) -> str:
        if expression.isidentifier():
            return expression
        name = f"v{len(self.checks)}"
        self.checks.append(f"{name} = {expression}")
        return name

    def require(self, condition: str) -> None:
        self.checks.append(f"if not ({condition}): raise KeyError")

    def distinguish(self, expression: str, value: object) -> None:
        """Add an expression and its value to the key."""
        self.keys.append(expression)
        self.key.append(value)

    def lookup(self) -> tuple[str, Any]:
        """Return the expression of the key, and its value."""
        if len(self.keys) == 1:
            return self.keys[0], self.key[0]
        return f"({', '.join(self.keys)})", tuple(self.key)

    def arguments(
        self, args: tuple[Any, ...], kwargs: dict[str, Any], static: Static, donated: Sequence[bool],
        kept: Sequence[int] | None,
    ) -> list[str]:
        """Write the checks and inputs of the arguments; return the names of the parameters, empty if there are many.

        kept: the positions of the leaves that the program reads; None for all.
        """
        kept_positions = range(len(donated)) if kept is None else set(kept)
        position = 0

        def describe_leaves(value: object) -> tuple[Any, list[_Leaf]]:
            nonlocal position
            leaves, tree = pytree.tree_flatten(value)
            described = [_Leaf(leaf, i in kept_positions, donated[i]) for i, leaf in enumerate(leaves, position)]
            position += len(leaves)
            return tree, described

        fixed_positions, fixed_names = {n for n, _ in static.positional}, {n for n, _ in static.named}
        self.require(f"len(kwargs) == {len(kwargs)}" if kwargs else "not kwargs")
        names = [f"a{n}" for n in range(len(args))]
        parameters = names if len(args) <= _MAX_PARAMETERS else []
        if parameters:
            self.require("not args")
        else:
            # Unpacking checks the number of arguments: it raises ValueError for another one.
            self.checks.append(f"[{', '.join(names)}] = args")
        for number, value in enumerate(args):
            if number in fixed_positions:
                self.static(f"a{number}", value)
            else:
                self.tree(*describe_leaves(value), f"a{number}")
        for name in sorted(kwargs):
            if name in fixed_names:
                self.static(self.variable(f"kwargs[{name!r}]"), kwargs[name])
            else:
                self.tree(*describe_leaves(kwargs[name]), f"kwargs[{name!r}]")
        return parameters

    def results(
        self, avals: Sequence[ShapedArray], signatures: Sequence[Any], out_tree: PyTreeDef
    ) -> tuple[list[str], list[str], str]:
        """Return the names of the results' buffers, the statements that make arrays of them, and the result."""
        outputs = [f"b{i}" for i in range(len(avals))]
        arrays = [f"r{i}" for i in range(len(avals))]
        making = [
            f"{r} = {self.name_in_row('zeros', np.zeros(aval.shape, dtypes.float0))}"
            if aval.dtype == dtypes.float0
            else f"{r} = '@Array'(); {r}.buffer = {b}; {r}.aval = {self.name_in_row('t', aval)}; "
            f"{r}.signature = {self.name_in_row('t', signature)}"
            for r, b, aval, signature in zip(arrays, outputs, avals, signatures, strict=True)
        ]
        result = _write_result(out_tree, list(arrays))
        if result is None:
            unflatten = self.name_in_row("unflatten", out_tree.unflatten)
            result = f"{unflatten}(({''.join(a + ', ' for a in arrays)}))"
        return outputs, making, result

    def static(self, source: str, value: Any) -> None:
        """Write the comparison of a static argument with its compiled value."""
        self.distinguish(source, value)
        wanted = self.name_in_row("c", value)
        # Equal keys may have different types, such as 1 and True.
        unlike = f"{source} is not {wanted} and not '@same_static'({source}, {wanted})"
        self.agreements.append(f"if {unlike}: raise KeyError")

    def tree(self, tree: Any, leaves: list[_Leaf], source: str, depth: int = 0) -> None:
        """Write the checks of the subtree in the expression `source`; its leaves are removed from `leaves`."""
        data = tree.node_data()
        if data is None:
            self.leaf(source, leaves.pop(0))
            return
        kind, metadata = data
        children = tree.children()
        if kind is type(None):
            self.require(f"{source} is None")
            return
        if kind not in (tuple, list, dict) or depth > _MAX_DEPTH:
            self.supported = False
            return
        variable = self.variable(source)
        self.require(f"type({variable}) is {kind.__name__} and len({variable}) == {len(children)}")
        keys = metadata if kind is dict else range(len(children))
        for key, child in zip(keys, children, strict=True):
            plain = type(key) is int or (type(key) is str and key.isidentifier())
            shown = repr(key) if plain else self.constant(key)
            self.tree(child, leaves, f"{variable}[{shown}]", depth + 1)

    def leaf(self, source: str, example: _Leaf) -> None:
        """Write the expressions of a leaf's type and of the program's input."""
        value = example.value
        if example.kept:
            # An array in another layout is converted at every call, which takes longer than the slow path's checks.
            wanted_layout = self.input_layouts.pop(0) if self.input_layouts is not None else None
            self.supported &= (get_layout(value) if type(value) is ConcreteArray else None) == wanted_layout
        if type(value) is ConcreteArray:
            variable = self.variable(source) if example.kept else source
            self.distinguish(f"{variable}.signature", value.signature)
            if self.input_shardings is None:
                # An array on another device is moved at every call.
                self.supported &= value._place is self.device
            elif example.kept:
                own, wanted = mesh_sharding(value), self.input_shardings.pop(0)
                if own is None or not own.is_equivalent_to(wanted, value.ndim):
                    self.inputs.append(f"'@put_at'({variable}, {self.name_in_row('at', wanted)}).buffer")
                    return
            if example.kept:
                self.inputs.append(f"{variable}.buffer")
                if example.donated:
                    self.after.append(f"{variable}.note_deletion()")
            return
        variable = self.variable(source)
        if type(value) is np.ndarray:
            self.require(f"type({variable}) is '@ndarray'")
            self.distinguish(f"{variable}.dtype", value.dtype)
            self.distinguish(f"{variable}.shape", value.shape)
            self.supported &= value.dtype.isnative and value.dtype != dtypes.float0
        elif isinstance(value, np.generic):
            self.distinguish(f"type({variable})", type(value))
        elif type(value) in (bool, int, float, complex):
            condition = f"type({variable}) is {type(value).__name__}"
            if type(value) is int:
                bound = 2 ** (31 if not config.enable_x64.value else 63)
                condition += f" and {-bound} <= {variable} < {bound}"
            self.require(condition)
        else:
            self.supported = False
        if example.kept and self.supported:
            self.inputs.append(self.put(variable, example))

    def put(self, variable: str, example: _Leaf) -> str:
        """Return the expression that puts a NumPy value or a Python scalar on the device."""
        value, x64 = example.value, config.enable_x64.value
        if self.input_shardings is not None:
            return f"'@put_at'({variable}, {self.name_in_row('at', self.input_shardings.pop(0))}).buffer"
        dtype = dtypes.canonicalize(getattr(value, "dtype", type(value)), x64)
        input_type = ShapedArray(np.shape(value), dtype, type(value) in (int, float, complex))
        aval = self.name_in_row("t", input_type)
        if type(value) in (bool, int, float) and not example.donated:
            scalars = scalar_buffers(self.row[self.names.index(aval)], self.device)
            return f"{self.name_in_row('scalars', scalars)}({variable})"
        # Numbers beyond the narrower dtype become infinite; jaxlib's own cast would warn.
        narrows = getattr(value, "dtype", dtype) != dtype and dtypes.is_inexact(dtype)
        data = f"'@cast'({variable}, {self.name_in_row('d', dtype)})" if narrows else variable
        sharding, devices = self.name_in_row("sharding", self.sharding), self.name_in_row("devices", self.devices)
        call, copy = self.name_in_row("put", buffers.put_many), self.name_in_row("copy", buffers.ZERO_COPY)
        put = f"{call}({aval}, {sharding}, [{data}], {devices}, True, True, {copy}, {x64})"
        if example.donated or type(value) is complex or not staging_memory.can_stage(input_type, self.device):
            return put
        self.staged.append(_StagedInput(f"x{len(self.staged)}", input_type, variable, narrows, put))
        return self.staged[-1].name

    def stage_inputs(self, example: str | None) -> list[str]:
        """Return the statements that make the staged inputs; `example` is the expression of one of the results.

        The memory may be used again when the results are ready.
        """
        if not self.staged:
            return []
        making = [f"{x.name} = {x.put}" for x in self.staged]
        stack = staging_memory.allocate([x.aval for x in self.staged], self.device) if example is not None else []
        if not stack:
            return making
        memory = self.name_in_row("memory", stack)
        parts = ", ".join([f"m_{x.name}, {x.name}" for x in self.staged])
        self.after.append(f"if staged is not None and {example}.is_ready(): {memory}.append(staged)")
        return [
            f"try: staged = None if '@staging'.guarded_threads else {memory}.pop()",
            "except IndexError: staged = None",
            f"if staged is None: {'; '.join(making)}",
            "else:",
            f" {parts} = staged",
            *[
                f" '@cast_into'(m_{x.name}, {x.value})" if x.narrows else f" m_{x.name}[...] = {x.value}"
                for x in self.staged
            ],
        ]


def _write_result(tree: Any, arrays: list[str], depth: int = 0) -> str | None:
    """Return the expression of a result from the expressions of its arrays; None for nodes other than containers."""
    data = tree.node_data()
    if data is None:
        return arrays.pop(0)
    kind, metadata = data
    if depth > _MAX_DEPTH:
        return None
    children = [_write_result(child, arrays, depth + 1) for child in tree.children()]
    if any(c is None for c in children):
        return None
    if kind is type(None):
        return "None"
    if kind is tuple:
        return f"({''.join(f'{c}, ' for c in children)})"
    if kind is list:
        return f"[{', '.join(map(str, children))}]"
    if kind is dict and all(type(k) is int or (type(k) is str and k.isidentifier()) for k in metadata):
        return "{" + ", ".join(f"{k!r}: {c}" for k, c in zip(metadata, children, strict=True)) + "}"
    return None


def specialise(
    args: tuple[Any, ...], kwargs: dict[str, Any], static: Static, donated: Sequence[bool], program: Program,
    out_tree: PyTreeDef, settings: Any, forget: Callable[[], None],
) -> SpecialisedCall | None:
    """Return the specialised call for arguments like `args` and `kwargs`; None for unsupported kinds of arguments.

    donated: whether each leaf is donated. forget: called when the program fails; the slow path then raises the error.
    """
    if len(donated) > _MAX_LEAVES:
        return None
    writer = _Writer(program)
    writer.name_in_row("forget", forget)
    execute = writer.name_in_row("execute", program.execute)
    handlers = writer.name_in_row("handlers", program.handlers)
    collect_garbage = writer.name_in_row("collect", buffers.collect_garbage)
    parameters = writer.arguments(args, kwargs, static, donated, program.kept)
    if not writer.supported:
        return None
    outputs, making, result = writer.results(program.out_avals, program.list_result_signatures(), out_tree)
    written = [b for b, aval in zip(outputs, program.out_avals, strict=True) if aval.dtype != dtypes.float0]
    staging_inputs = writer.stage_inputs(written[0] if written else None)
    targets = f"[{', '.join(outputs)}] = " if outputs else ""
    hidden = [f"*{writer.name_in_row('hidden', program.hidden)}"] if program.hidden else []
    inputs = f"({''.join(i + ', ' for i in hidden + writer.inputs)})"
    head, given = "def jitted(*args, **kwargs):", "args"
    if parameters:
        head = f"def jitted({', '.join(f'{p}=missing' for p in parameters)}, /, *args, **kwargs):"
        given = f"given({', '.join(parameters)}, *args)"
    lookup, key = writer.lookup()
    # A miss continues outside of the handlers, so that errors of the slow path have no other error as context.
    lines = [
        head,
        " try:",
        "  if '@traces'.get_current_trace() is '@base' and "
        "('@store'.key_everywhere is '@settings' or '@cache_key'() is '@settings'):",
        "   try:",
        *[f"    {line}" for line in writer.checks],
        f"    {', '.join(writer.names)} = {_TABLE}[{lookup}]",
        *[f"    {line}" for line in writer.agreements],
        "   except (AttributeError, KeyError, TypeError, ValueError):",
        "    pass",
        "   else:",
        "    try:",
        *[f"     {line}" for line in staging_inputs],
        f"     {targets}{execute}({inputs}).consume_with_handlers({handlers})",
        f"     {collect_garbage}()",
        "    except Exception:",
        f"     '@forget'({_TABLE}, {lookup})",
        "    else:",
        *[f"     {line}" for line in [*writer.after, *making]],
        f"     return {result}",
        f"  args = {given}",
        _OTHERWISE,
    ]
    return SpecialisedCall("\n".join(lines), (("settings", settings), *writer.objects), key, tuple(writer.row))


# The objects in the code of all call shapes. Pickles of jitted functions contain their code, so jaxlib's functions are
# in the rows.
_COMMON = {
    "traces": sys.modules[Trace.__module__], "base": base_trace, "cache_key": config.cache_key, "store": config.store,
    "ndarray": np.ndarray, "Array": ConcreteArray, "put_at": put_at, "same_static": same_static, "cast": dtypes.cast,
    "cast_into": dtypes.cast_into, "staging": staging_memory, "forget": _forget,
}
