"""The call of a compiled function, written out as Python code for one signature.

A signature that has been called a few times gets code of its own: it compares each leaf's type with the one it was
compiled for, by identity, and runs the program. Loops, key tuples and tree flattening all disappear. The newest such
code becomes the body of the jitted function itself, which saves a Python call.
"""

from __future__ import annotations

import builtins
import functools
import warnings
from collections.abc import Callable, Sequence
from types import CodeType, FunctionType
from typing import Any, NamedTuple

import numpy as np

from xtrace.api.arguments import Static, same_static
from xtrace.core import config, dtypes, pytree
from xtrace.core.avals import ShapedArray
from xtrace.core.diagnostics.tracebacks import hide_frames
from xtrace.core.trace import base_trace, current_trace
from xtrace.runtime.arrays import ConcreteArray
from xtrace.runtime.execute import Program
from xtrace.xla import buffers

# What a specialised call returns when the arguments are not of its signature.
MISS = object()

# Code for larger trees takes long to write, and Python's compiler refuses expressions nested about 90 deep.
_MOST_LEAVES = 2000
_DEEPEST = 32

# Arguments by position get parameters of their own up to this number: that saves making a tuple of them.
_MOST_PARAMETERS = 8
_MISSING = object()

# How every call ends that fails; see ``core/diagnostics/tracebacks.py``.
_BOUNDARY = " except BaseException as error:\n  hide_frames(error)\n  raise"

_UNSPECIALISED = "def jitted(*args, **kwargs):\n try:\n  return slow(args, kwargs)\n" + _BOUNDARY


class Specialised:
    """Code for one signature. `call` takes a call's arguments and returns MISS for those of another signature.

    The objects it refers to are constants of the code: taking it back out of a function does not disturb a call that
    another thread is in the middle of.
    """

    __slots__ = ("call", "_code")

    def __init__(self, parameters: Sequence[str], lines: Sequence[str], objects: dict[str, Any]) -> None:
        """Arguments by position are called `parameters`; `lines` name objects as ``'@name'``."""
        head, given = "def jitted(*args, **kwargs):", "args"
        if parameters:
            head = f"def jitted({', '.join(f'{p}=missing' for p in parameters)}, /, *args, **kwargs):"
            given = f"given({', '.join(parameters)}, *args)"
        code = _code_of("\n".join([head, " try:", *lines, f"  return slow({given}, kwargs)", _BOUNDARY]))
        # Signatures of one form have one text; only the constants differ.
        named = {f"@{name}": value for name, value in objects.items()}
        self._code = code.replace(
            co_consts=tuple([named.get(c, c) if type(c) is str else c for c in code.co_consts])
        )
        self.call = entry_point(_missed)
        self.become_body_of(self.call)

    def become_body_of(self, jitted: Callable[..., Any]) -> None:
        """Make this the code of `jitted`, made by `entry_point`; other signatures go on to its `slow`."""
        jitted.__code__ = self._code

    def leave(self, jitted: Callable[..., Any]) -> None:
        """Take this code back out of `jitted`, if it is there."""
        if jitted.__code__ is self._code:
            jitted.__code__ = _code_of(_UNSPECIALISED)


def _missed(args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return MISS


def _given(*args: Any) -> tuple[Any, ...]:
    """Return the arguments that a call has: those of parameters that got none are missing."""
    return tuple([x for x in args if x is not _MISSING])


@functools.lru_cache(maxsize=1024)
def _code_of(source: str) -> CodeType:
    made: dict[str, Any] = {"missing": _MISSING}
    with warnings.catch_warnings():
        # Python's compiler wonders at strings that are called and compared by identity; they stand for objects.
        warnings.simplefilter("ignore", SyntaxWarning)
        exec(compile(source, "<xtrace dispatch>", "exec"), made)
    code: CodeType = made["jitted"].__code__
    return code


def entry_point(slow: Callable[[tuple[Any, ...], dict[str, Any]], Any]) -> Callable[..., Any]:
    """Return the function users call: one that knows no signature yet and hands everything to `slow`."""
    names = {"slow": slow, "given": _given, "hide_frames": hide_frames, "__builtins__": builtins}
    # Specialised code has parameters; a default for each lets it see that a call has fewer arguments.
    return FunctionType(_code_of(_UNSPECIALISED), names, "jitted", (_MISSING,) * _MOST_PARAMETERS)


class _Leaf(NamedTuple):
    """An argument's leaf, whether the program reads it, and whether it is donated."""

    value: Any
    kept: bool
    donated: bool


class _Writer:
    """Collects the lines of the function and the objects they refer to, each under a short name.

    `checks` compare the arguments, `inputs` are the expressions of the program's inputs, `after` runs when it has been
    called.
    """

    def __init__(self) -> None:
        self.checks: list[str] = []
        self.inputs: list[str] = []
        self.objects: dict[str, Any] = {}
        self.after: list[str] = []
        self.supported = True
        self._names: dict[int, str] = {}

    def name(self, prefix: str, value: Any) -> str:
        name = self._names.setdefault(id(value), f"{prefix}{len(self.objects)}")
        self.objects[name] = value
        return f"'@{name}'"

    def variable(self, expression: str) -> str:
        if expression.isidentifier():
            return expression
        name = f"v{len(self.checks)}"
        self.checks.append(f"{name} = {expression}")
        return name

    def require(self, condition: str) -> None:
        self.checks.append(f"if not ({condition}): raise KeyError")

    def tree(self, tree: Any, leaves: list[_Leaf], source: str, device: Any, depth: int = 0) -> None:
        """Write the checks of a subtree that `source` evaluates to; `leaves` are consumed from the front."""
        data = tree.node_data()
        if data is None:
            self.leaf(source, leaves.pop(0), device)
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
            shown = repr(key) if plain else self.name("K", key)
            self.tree(child, leaves, f"{variable}[{shown}]", device, depth + 1)

    def leaf(self, source: str, example: _Leaf, device: Any) -> None:
        """Write the check of one leaf, and how the program's input is made from it."""
        value = example.value
        variable = self.variable(source)
        if type(value) is ConcreteArray:
            self.checks.append(
                f"if {variable}.signature is not {self.name('S', value.signature)}: raise KeyError"
            )
            # One that is elsewhere is moved to the program's device, at every call.
            self.supported &= value.device is device
            if example.kept:
                self.inputs.append(f"{variable}.buffer")
                if example.donated:
                    self.after.append(f"{variable}.note_deletion()")
            return
        if type(value) is np.ndarray:
            self.require(
                f"type({variable}) is '@ndarray' and {variable}.dtype is {self.name('D', value.dtype)} "
                f"and {variable}.shape == {value.shape!r}"
            )
            self.supported &= value.dtype.isnative
        elif isinstance(value, np.generic):
            self.require(f"type({variable}) is {self.name('Y', type(value))}")
        elif type(value) in (bool, int, float, complex):
            condition = f"type({variable}) is {type(value).__name__}"
            if type(value) is int:
                bound = 2 ** (31 if not config.enable_x64.value else 63)
                condition += f" and {-bound} <= {variable} < {bound}"
            self.require(condition)
        else:
            self.supported = False
        if example.kept and self.supported:
            x64 = config.enable_x64.value
            dtype = dtypes.canonicalize(getattr(value, "dtype", type(value)), x64)
            aval = self.name("A", ShapedArray(np.shape(value), dtype, type(value) in (int, float, complex)))
            data = variable
            if getattr(value, "dtype", dtype) != dtype and dtypes.is_inexact(dtype):
                # Numbers beyond the narrower type become infinite; jaxlib's cast would warn of it.
                data = f"'@cast'({variable}, {self.name('D', dtype)})"
            self.inputs.append(
                f"'@put'({aval}, '@sharding', [{data}], '@devices', True, True, '@zero_copy', {x64})"
            )


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
    args: tuple[Any, ...],
    kwargs: dict[str, Any],
    static: Static,
    donated: Sequence[bool],
    program: Program,
    out_tree: Any,
    settings: Any,
    retire: Callable[[], None],
) -> Specialised | None:
    """Return the specialised call for arguments like `args` and `kwargs`, or None if their kinds are not simple.

    `donated` says so of each leaf. `retire` is called when the program fails; the slow way, taken then, says why.
    """
    if len(donated) > _MOST_LEAVES:
        return None
    writer = _Writer()
    kept = range(len(donated)) if program.kept is None else set(program.kept)
    position = 0

    def leaves_of(value: Any) -> tuple[Any, list[_Leaf]]:
        nonlocal position
        leaves, tree = pytree.tree_flatten(value)
        found = [_Leaf(leaf, i in kept, donated[i]) for i, leaf in enumerate(leaves, position)]
        position += len(leaves)
        return tree, found

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
            _static(writer, f"a{number}", value)
        else:
            writer.tree(*leaves_of(value), f"a{number}", program.device)
    for name in sorted(kwargs):
        if name in fixed_names:
            _static(writer, f"kwargs[{name!r}]", kwargs[name])
        else:
            writer.tree(*leaves_of(kwargs[name]), f"kwargs[{name!r}]", program.device)
    if not writer.supported:
        return None
    signatures = program.signatures_of_results()
    outputs = [f"b{i}" for i in range(len(signatures))]
    arrays = [f"r{i}" for i in range(len(signatures))]
    making = [
        f"{r} = '@Array'(); {r}.buffer = {b}; "
        f"{r}.aval = {writer.name('T', aval)}; {r}.signature = {writer.name('T', signature)}"
        for r, b, aval, signature in zip(arrays, outputs, program.out_avals, signatures, strict=True)
    ]
    result = _result(out_tree, list(arrays)) or f"'@unflatten'(({''.join(a + ', ' for a in arrays)}))"
    targets = f"[{', '.join(outputs)}] = " if outputs else ""
    hidden = ["*'@hidden'"] if program.hidden else []
    inputs = f"({''.join(i + ', ' for i in hidden + writer.inputs)})"
    # Whatever misses goes on from outside the handlers, so that errors of the slow way have no other as context.
    lines = [
        "  if '@current_trace'() is '@base' and "
        "('@store'.key_everywhere is '@settings' or '@cache_key'() is '@settings'):",
        "   try:",
        *[f"    {line}" for line in writer.checks],
        "   except (AttributeError, KeyError, TypeError, ValueError):",
        "    pass",
        "   else:",
        "    try:",
        f"     {targets}'@execute'({inputs}).consume_with_handlers('@handlers')",
        "    except Exception:",
        "     '@retire'()",
        "    else:",
        *[f"     {line}" for line in [*writer.after, *making]],
        f"     return {result}",
    ]
    objects = {
        **writer.objects, "current_trace": current_trace.get, "base": base_trace, "cache_key": config.cache_key,
        "store": config.store(), "settings": settings, "ndarray": np.ndarray, "Array": ConcreteArray,
        "put": buffers.put_many, "zero_copy": buffers.ZERO_COPY, "sharding": buffers.sharding_of(program.device),
        "devices": [program.device], "execute": program.executable.execute_sharded, "handlers": program.handlers,
        "hidden": program.hidden, "unflatten": out_tree.unflatten, "retire": retire, "same_static": same_static,
        "cast": dtypes.cast,
    }  # fmt: skip
    return Specialised(parameters, lines, objects)


def _static(writer: _Writer, source: str, value: Any) -> None:
    """Write the comparison of a static argument with the one compiled for."""
    wanted, variable = writer.name("C", value), writer.variable(source)
    kind = writer.name("Y", type(value))
    equal = f"{variable} == {wanted}" if type(value) in (int, str, bool) else f"'@same_static'({variable}, {wanted})"
    writer.require(f"{variable} is {wanted} or (type({variable}) is {kind} and {equal})")
