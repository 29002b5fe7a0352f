"""The call of a compiled function, written out as Python code for one call shape.

A signature that has been called a few times gets code: it looks the signature up in a table, by the leaves' types, and
runs the program. Loops and tree flattening disappear. Signatures that differ in shapes, dtypes or static values have
one call shape, and share code and table. The newest shape becomes the body of the jitted function itself, which saves a
Python call.
"""

from __future__ import annotations

import builtins
import threading
import warnings
import weakref
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.api.call_arguments import Static, same_static
from xtrace._src.core import config, dtypes, pytree
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.tables import memoize
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.runtime.arrays import ConcreteArray, layout_of, mesh_sharding
from xtrace._src.runtime.execute import Program
from xtrace._src.runtime.transfer import put_at, scalar_buffers
from xtrace._src.xla import buffers
from xtrace._src.xla.pytree_registry import PyTreeDef

# A signature called this often gets code of its own; writing it takes a fraction of a millisecond.
CALLS_BEFORE_SPECIALISING = 4

# What a specialised call returns when the arguments are not of its signature.
MISS = object()

# Code for larger trees takes long to write, and Python's compiler refuses expressions nested about 90 deep.
_MOST_LEAVES = 2000
_DEEPEST = 32

# Arguments by position get parameters of their own up to this number: that saves making a tuple of them.
_MOST_PARAMETERS = 8
_MISSING = object()

# Stands for the name of a call shape's table in its text.
_TABLE = "$table"

# How many signatures of one function have code, and how many shapes calls with arguments of the same names have.
_MOST_SIGNATURES = 1024
_MOST_CALL_SHAPES = 8

_lock = threading.RLock()

# How every call ends that fails; see ``core/diagnostics/tracebacks.py``.
_BOUNDARY = " except BaseException as error:\n  hide_frames(error)\n  raise"

# What code does with arguments that it does not take.
_OTHERWISE = "  result = run(args, kwargs)\n  return slow(args, kwargs) if result is MISS else result\n" + _BOUNDARY

_UNSPECIALISED = "def jitted(*args, **kwargs):\n try:\n" + _OTHERWISE

_Slow = Callable[[tuple[Any, ...], dict[str, Any]], Any]


class CallShapes:
    """The code there is for one function under one set of options, by call shapes.

    The newest is the body of the functions made by `entry_point`; these try the others for calls that it does not take.
    """

    __slots__ = ("_call_shapes", "_by_arguments", "_wrappers", "_made")

    def __init__(self) -> None:
        self._made = 0
        self._call_shapes: dict[Any, _CallShape] = {}
        # By the number of arguments by position, and the names of the others.
        self._by_arguments: dict[tuple[Any, ...], tuple[_CallShape, ...]] = {}
        self._wrappers: weakref.WeakSet[Callable[..., Any]] = weakref.WeakSet()

    def __len__(self) -> int:
        """How many signatures there is code for."""
        return sum(len(shape.table) for shape in list(self._call_shapes.values()))

    def entry_point(self, slow: _Slow) -> Callable[..., Any]:
        """Return a function that gets the code written here, and leaves other calls to `slow`."""
        wrapper = _entry_point(slow, self.run)
        with _lock:
            self._wrappers.add(wrapper)
        return wrapper

    def run(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Call the program for these arguments, or return MISS if there is no code for them."""
        if current_trace.get() is base_trace:
            for shape in self._by_arguments.get((len(args), *kwargs), ()):
                result = shape.call(*args, **kwargs)
                if result is not MISS:
                    return result
        return MISS

    def add(self, args: tuple[Any, ...], kwargs: dict[str, Any], call: Call) -> None:
        """Use the code of `call` from now on for calls with arguments such as these."""
        with _lock:
            if len(self) >= _MOST_SIGNATURES:
                self.clear()
            shape = self._call_shapes.get(call.shape)
            if shape is None:
                # No table's name is used again: another thread may be in the middle of code that has it.
                shape = self._call_shapes[call.shape] = _CallShape(call, f"table{self._made}")
                self._made += 1
            shape.table[call.key] = call.row
            place = (len(args), *kwargs)
            others = [s for s in self._by_arguments.get(place, ()) if s is not shape]
            self._by_arguments[place] = (shape, *others[: _MOST_CALL_SHAPES - 1])
            for wrapper in self._wrappers:
                shape.become_body_of(wrapper)

    def clear(self) -> None:
        """Forget all code. What is the body of a function goes on as such, and takes nothing."""
        with _lock:
            for shape in self._call_shapes.values():
                shape.table.clear()
            self._call_shapes.clear()
            self._by_arguments.clear()


class Call(NamedTuple):
    """How a signature is called: the text of its call shape, the objects named there, and a key and row of its table.

    The first object of a row is called when the program fails, and the signature is forgotten.
    """

    source: str
    objects: tuple[tuple[str, Any], ...]
    key: Any
    row: tuple[Any, ...]

    @property
    def shape(self) -> Any:
        """The parts that calls of one shape share."""
        return self.source, self.objects


class _CallShape:
    """Code for calls that differ in their rows of `table` only. `call` returns MISS for all others.

    What all have in common are constants of the code. The table is a global of the functions whose body it is: arrays
    know the code they come from, and would keep a table there, with its programs, as long as they live.
    """

    __slots__ = ("call", "table", "_code", "_name")

    def __init__(self, call: Call, name: str) -> None:
        self.table: dict[Any, tuple[Any, ...]] = {}
        self._name = name
        code = _code_of(call.source.replace(_TABLE, name))
        named = {f"@{name}": value for name, value in (*_COMMON.items(), *call.objects)}
        self._code = code.replace(co_consts=tuple([named.get(c, c) if type(c) is str else c for c in code.co_consts]))
        self.call = _entry_point(_miss, _miss)
        self.become_body_of(self.call)

    def become_body_of(self, function: Any) -> None:
        """Make this the code of a function made by `_entry_point`."""
        function.__globals__[self._name] = self.table
        function.__code__ = self._code


def count_call(calls: dict[tuple[type, ...], int], leaves: Sequence[Any]) -> int:
    """Return how often a program was called with leaves of these Python types, this time included."""
    kinds = tuple([type(x) for x in leaves])
    count = calls[kinds] = calls.get(kinds, 0) + 1
    return count


def _miss(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return MISS


def _forget(table: dict[Any, tuple[Any, ...]], key: object) -> None:
    """Take a signature whose program failed out of its call shape's table."""
    row = table.pop(key, None)
    if row is not None:
        row[0]()


def _drop_missing(*args: object) -> tuple[Any, ...]:
    """Return the arguments that a call has: those of parameters that got none are missing."""
    return tuple([x for x in args if x is not _MISSING])


@memoize(1024)
def _code_of(source: str) -> CodeType:
    """Return the code of the function whose definition `source` is."""
    with warnings.catch_warnings():
        # Python's compiler wonders at strings that are called and compared by identity; they stand for objects.
        warnings.simplefilter("ignore", SyntaxWarning)
        module = compile(source, "<xtrace dispatch>", "exec")
    return next(constant for constant in module.co_consts if isinstance(constant, CodeType))


def _entry_point(slow: _Slow, run: _Slow) -> Callable[..., Any]:
    """Return a function that has no code for any signature yet: it asks `run`, and calls `slow` if that has none."""
    names = {
        "slow": slow, "run": run, "MISS": MISS, "given": _drop_missing, "hide_frames": hide_frames,
        "__builtins__": builtins,
        # chex tells a transformed function by a global of this name.
        "api_boundary": hide_frames,
    }
    # Specialised code has parameters; a default for each lets it see that a call has fewer arguments.
    return FunctionType(_code_of(_UNSPECIALISED), names, "jitted", (_MISSING,) * _MOST_PARAMETERS)


class _Leaf(NamedTuple):
    """An argument's leaf, whether the program reads it, and whether it is donated."""

    value: Any
    kept: bool
    donated: bool


class _Writer:
    """Collects the parts of the function, and the values that the signature at hand adds to them.

    `checks` compare the parts that all signatures of the call shape share; `keys` are expressions of their differences,
    with their values in `key`; `names` are the names of the objects in `row`, which the key leads to. `agreements`
    compare arguments with such objects, `inputs` are the expressions of the program's inputs, `after` runs when it has
    been called. `objects` are constants of the call shape.
    """

    def __init__(self, program: Program) -> None:
        device = program.device
        self.device, self.devices, self.sharding = device, [device], buffers.transfer_sharding(device)
        # The shardings of the inputs that are left, of a program on a mesh.
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
        self.objects: list[tuple[str, Any]] = []
        self.supported = True
        self._known: dict[int, str] = {}

    def name_in_row(self, prefix: str, value: object) -> str:
        """Return the name that `value` has in the function: the rest of its row."""
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
        """Make the value of an expression part of the key."""
        self.keys.append(expression)
        self.key.append(value)

    def lookup(self) -> tuple[str, Any]:
        """Return the expression of the key, and its value."""
        if len(self.keys) == 1:
            return self.keys[0], self.key[0]
        return f"({', '.join(self.keys)})", tuple(self.key)

    def static(self, source: str, value: Any) -> None:
        """Write the comparison of a static argument with the one compiled for."""
        self.distinguish(source, value)
        wanted = self.name_in_row("c", value)
        # Equal keys may be of unlike types, as 1 and True are.
        unlike = f"{source} is not {wanted} and not '@same_static'({source}, {wanted})"
        self.agreements.append(f"if {unlike}: raise KeyError")

    def tree(self, tree: Any, leaves: list[_Leaf], source: str, depth: int = 0) -> None:
        """Write the checks of a subtree that `source` evaluates to; `leaves` are consumed from the front."""
        data = tree.node_data()
        if data is None:
            self.leaf(source, leaves.pop(0))
            return
        kind, metadata = data
        children = tree.children()
        if kind is type(None):
            self.require(f"{source} is None")
            return
        if kind not in (tuple, list, dict) or depth > _DEEPEST:
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
        """Write the expressions of one leaf's type and of the program's input."""
        value = example.value
        if example.kept:
            # An array in another layout is moved to the program's, at every call; this takes longer than the checks.
            wanted_layout = self.input_layouts.pop(0) if self.input_layouts is not None else None
            self.supported &= (layout_of(value) if type(value) is ConcreteArray else None) == wanted_layout
        if type(value) is ConcreteArray:
            variable = self.variable(source) if example.kept else source
            self.distinguish(f"{variable}.signature", value.signature)
            if self.input_shardings is None:
                # One that is elsewhere is moved to the program's device, at every call.
                self.supported &= value.device is self.device
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
        aval = self.name_in_row("t", ShapedArray(np.shape(value), dtype, type(value) in (int, float, complex)))
        if type(value) in (bool, int, float) and not example.donated:
            scalars = scalar_buffers(self.row[self.names.index(aval)], self.device)
            return f"{self.name_in_row('scalars', scalars)}({variable})"
        data = variable
        if getattr(value, "dtype", dtype) != dtype and dtypes.is_inexact(dtype):
            # Numbers beyond the narrower type become infinite; jaxlib's cast would warn of it.
            data = f"'@cast'({variable}, {self.name_in_row('d', dtype)})"
        sharding, devices = self.name_in_row("sharding", self.sharding), self.name_in_row("devices", self.devices)
        return f"'@put'({aval}, {sharding}, [{data}], {devices}, True, True, '@zero_copy', {x64})"


def _result(tree: Any, arrays: list[str], depth: int = 0) -> str | None:
    """Return the expression that builds the result from those of its arrays, or None if it is not simple."""
    data = tree.node_data()
    if data is None:
        return arrays.pop(0)
    kind, metadata = data
    if depth > _DEEPEST:
        return None
    children = [_result(child, arrays, depth + 1) for child in tree.children()]
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
) -> Call | None:
    """Return the specialised call for arguments like `args` and `kwargs`, or None if their kinds are not simple.

    `donated` says so of each leaf. `forget` is called when the program fails; the slow way, taken then, says why.
    """
    if len(donated) > _MOST_LEAVES:
        return None
    writer = _Writer(program)
    writer.name_in_row("forget", forget)
    execute = writer.name_in_row("execute", program.execute)
    handlers = writer.name_in_row("handlers", program.handlers)
    kept = range(len(donated)) if program.kept is None else set(program.kept)
    position = 0

    def leaves_of(value: object) -> tuple[Any, list[_Leaf]]:
        nonlocal position
        leaves, tree = pytree.tree_flatten(value)
        kept_leaves = [_Leaf(leaf, i in kept, donated[i]) for i, leaf in enumerate(leaves, position)]
        position += len(leaves)
        return tree, kept_leaves

    fixed_positions, fixed_names = {n for n, _ in static.positional}, {n for n, _ in static.named}
    writer.require(f"len(kwargs) == {len(kwargs)}" if kwargs else "not kwargs")
    names = [f"a{n}" for n in range(len(args))]
    parameters = names if len(args) <= _MOST_PARAMETERS else []
    if parameters:
        writer.require("not args")
    else:
        # Unpacking checks the number of arguments: it raises ValueError otherwise.
        writer.checks.append(f"[{', '.join(names)}] = args")
    for number, value in enumerate(args):
        if number in fixed_positions:
            writer.static(f"a{number}", value)
        else:
            writer.tree(*leaves_of(value), f"a{number}")
    for name in sorted(kwargs):
        if name in fixed_names:
            writer.static(writer.variable(f"kwargs[{name!r}]"), kwargs[name])
        else:
            writer.tree(*leaves_of(kwargs[name]), f"kwargs[{name!r}]")
    if not writer.supported:
        return None
    signatures = program.signatures_of_results()
    outputs = [f"b{i}" for i in range(len(signatures))]
    arrays = [f"r{i}" for i in range(len(signatures))]
    making = [
        f"{r} = {writer.name_in_row('zeros', np.zeros(aval.shape, dtypes.float0))}"
        if aval.dtype == dtypes.float0
        else f"{r} = '@Array'(); {r}.buffer = {b}; {r}.aval = {writer.name_in_row('t', aval)}; "
        f"{r}.signature = {writer.name_in_row('t', signature)}"
        for r, b, aval, signature in zip(arrays, outputs, program.out_avals, signatures, strict=True)
    ]
    result = _result(out_tree, list(arrays))
    if result is None:
        result = f"{writer.name_in_row('unflatten', out_tree.unflatten)}(({''.join(a + ', ' for a in arrays)}))"
    targets = f"[{', '.join(outputs)}] = " if outputs else ""
    hidden = [f"*{writer.name_in_row('hidden', program.hidden)}"] if program.hidden else []
    inputs = f"({''.join(i + ', ' for i in hidden + writer.inputs)})"
    head, given = "def jitted(*args, **kwargs):", "args"
    if parameters:
        head = f"def jitted({', '.join(f'{p}=missing' for p in parameters)}, /, *args, **kwargs):"
        given = f"given({', '.join(parameters)}, *args)"
    lookup, key = writer.lookup()
    # Whatever misses goes on from outside the handlers, so that errors of the slow way have no other as context.
    lines = [
        head,
        " try:",
        "  if '@current_trace'() is '@base' and "
        "('@store'.key_everywhere is '@settings' or '@cache_key'() is '@settings'):",
        "   try:",
        *[f"    {line}" for line in writer.checks],
        f"    {', '.join(writer.names)} = {_TABLE}[{lookup}]",
        *[f"    {line}" for line in writer.agreements],
        "   except (AttributeError, KeyError, TypeError, ValueError):",
        "    pass",
        "   else:",
        "    try:",
        f"     {targets}{execute}({inputs}).consume_with_handlers({handlers})",
        "     '@collect_garbage'()",
        "    except Exception:",
        f"     '@forget'({_TABLE}, {lookup})",
        "    else:",
        *[f"     {line}" for line in [*writer.after, *making]],
        f"     return {result}",
        f"  args = {given}",
        _OTHERWISE,
    ]
    return Call("\n".join(lines), (("settings", settings), *writer.objects), key, tuple(writer.row))


# What the code of all call shapes refers to.
_COMMON = {
    "current_trace": current_trace.get, "base": base_trace, "cache_key": config.cache_key, "store": config.store(),
    "ndarray": np.ndarray, "Array": ConcreteArray, "put": buffers.put_many, "zero_copy": buffers.ZERO_COPY,
    "put_at": put_at, "same_static": same_static, "cast": dtypes.cast, "forget": _forget,
    "collect_garbage": buffers.collect_garbage,
}
