"""Random programs: a description that Hypothesis draws, and its interpreter over xtrace or jax.

A value is *exact* when both frontends must give it bit for bit: inputs, and what exact operations make of exact
values. Discontinuous operations (comparisons, argmax, conversion to integers) take exact values only, so that a last
digit that rounds differently cannot turn into a different answer.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import ml_dtypes
import numpy as np
from hypothesis import strategies as st

KINDS = {"bool": "b", "int": "i", "float": "f", "complex": "c"}
_ORDER = "bifc"
DTYPES = {
    "b": ["bool"],
    "i": ["int8", "int32", "uint8", "int64"],
    "f": ["float32", "float16", "float64", "bfloat16"],
    "c": ["complex64"],
}


@dataclass(frozen=True)
class Type:
    """What the generator knows of a value: its shape, its kind of element, and whether it is exact."""

    shape: tuple[int, ...]
    kind: str
    exact: bool


@dataclass(frozen=True)
class Step:
    """One operation: its name, the values it takes by number, and what else it is given."""

    operation: str
    operands: tuple[int, ...]
    details: Any = None


@dataclass(frozen=True)
class Program:
    """Inputs, steps, and which values come out in which tree."""

    inputs: tuple[Any, ...]
    steps: tuple[Step, ...]
    outputs: Any
    repeats: int


Rule = Callable[[Any, list[Type]], tuple[tuple[int, ...], Any, Type] | None]


def _broadcast(*shapes: tuple[int, ...]) -> tuple[int, ...] | None:
    try:
        return np.broadcast_shapes(*shapes)
    except ValueError:
        return None


def _kind(*kinds: str) -> str:
    return max(kinds, key=_ORDER.index)


def _pick(draw: Any, types: list[Type], accept: Callable[[Type], bool]) -> int | None:
    found = [i for i, t in enumerate(types) if accept(t)]
    return draw(st.sampled_from(found)) if found else None


def _elementwise(kinds: str, result: str | None = None, *, discontinuous: bool = False, keeps: bool = False) -> Rule:
    def rule(draw: Any, types: list[Type]) -> Any:
        x = _pick(draw, types, lambda t: t.kind in kinds and (t.exact or not discontinuous))
        if x is None:
            return None
        t = types[x]
        return (x,), None, Type(t.shape, result or t.kind, t.exact and (keeps or discontinuous))

    return rule


def _binary(kinds: str, result: str | None = None, *, discontinuous: bool = False, keeps: bool = True) -> Rule:
    def rule(draw: Any, types: list[Type]) -> Any:
        def accept(t: Type) -> bool:
            return t.kind in kinds and (t.exact or not discontinuous)

        x = _pick(draw, types, accept)
        if x is None:
            return None
        y = _pick(draw, types, lambda t: accept(t) and _broadcast(t.shape, types[x].shape) is not None)
        tx, ty = types[x], types[y]
        shape = _broadcast(tx.shape, ty.shape)
        exact = tx.exact and ty.exact and keeps
        return (x, y), None, Type(shape, result or _kind(tx.kind, ty.kind), exact)

    return rule


def _with_scalar(kinds: str) -> Rule:
    def rule(draw: Any, types: list[Type]) -> Any:
        x = _pick(draw, types, lambda t: t.kind in kinds)
        if x is None:
            return None
        scalar = draw(st.sampled_from([2, 3, 0.5, 1.25, -1, True, -2.5]))
        kind = _kind(types[x].kind, "b" if scalar is True else "i" if isinstance(scalar, int) else "f")
        return (x,), scalar, Type(types[x].shape, kind, types[x].exact)

    return rule


def _reduction(kinds: str, result: str | None = None, *, discontinuous: bool = False, keeps: bool = False) -> Rule:
    def rule(draw: Any, types: list[Type]) -> Any:
        x = _pick(draw, types, lambda t: t.kind in kinds and 0 not in t.shape and (t.exact or not discontinuous))
        if x is None:
            return None
        shape = types[x].shape
        axis = draw(st.none() | st.integers(-len(shape), len(shape) - 1)) if shape else None
        keepdims = draw(st.booleans())
        if axis is None:
            out = (1,) * len(shape) if keepdims else ()
        else:
            n = axis % len(shape)
            out = shape[:n] + ((1,) if keepdims else ()) + shape[n + 1 :]
        return (x,), (axis, keepdims), Type(out, result or types[x].kind, types[x].exact and (keeps or discontinuous))

    return rule


def _reshape(draw: Any, types: list[Type]) -> Any:
    x = _pick(draw, types, lambda t: True)
    t = types[x]
    size = int(np.prod(t.shape))
    choices = [(size,), (1, size), (size, 1)] + ([(2, size // 2)] if size % 2 == 0 and size else [])
    shape = draw(st.sampled_from(choices))
    return (x,), shape, Type(shape, t.kind, t.exact)


def _transpose(draw: Any, types: list[Type]) -> Any:
    x = _pick(draw, types, lambda t: True)
    t = types[x]
    axes = tuple(draw(st.permutations(range(len(t.shape)))))
    return (x,), axes, Type(tuple(t.shape[a] for a in axes), t.kind, t.exact)


def _index(draw: Any, types: list[Type]) -> Any:
    x = _pick(draw, types, lambda t: t.shape and 0 not in t.shape)
    if x is None:
        return None
    t = types[x]
    bound = st.none() | st.integers(-3, 3)
    item = st.builds(slice, bound, bound, st.sampled_from([None, 1, 2, -1]))
    index: list[Any] = [draw(st.integers(-n, n - 1) | item) for n in t.shape[: draw(st.integers(1, len(t.shape)))]]
    if draw(st.booleans()):
        index.insert(draw(st.integers(0, len(index))), None)
    chosen = tuple(index)
    return (x,), chosen, Type(np.empty(t.shape, "b")[chosen].shape, t.kind, t.exact)


def _expand(draw: Any, types: list[Type]) -> Any:
    x = _pick(draw, types, lambda t: len(t.shape) < 3)
    if x is None:
        return None
    t = types[x]
    axis = draw(st.integers(-len(t.shape) - 1, len(t.shape)))
    return (x,), axis, Type(np.expand_dims(np.empty(t.shape, "b"), axis).shape, t.kind, t.exact)


def _join(stacked: bool) -> Rule:
    def rule(draw: Any, types: list[Type]) -> Any:
        x = _pick(draw, types, lambda t: bool(t.shape))
        if x is None:
            return None
        y = _pick(draw, types, lambda t: t.shape == types[x].shape)
        tx, ty = types[x], types[y]
        axis = draw(st.integers(0, len(tx.shape) - (0 if stacked else 1)))
        join = np.stack if stacked else np.concatenate
        shape = join([np.empty(tx.shape, "b"), np.empty(ty.shape, "b")], axis).shape
        return (x, y), axis, Type(shape, _kind(tx.kind, ty.kind), tx.exact and ty.exact)

    return rule


def _dot(draw: Any, types: list[Type]) -> Any:
    x = _pick(draw, types, lambda t: 1 <= len(t.shape) <= 2 and t.kind in "if" and 0 not in t.shape)
    if x is None:
        return None
    tx = types[x]

    def fits(t: Type) -> bool:
        return t.kind in "if" and 1 <= len(t.shape) <= 2 and t.shape[-2 if len(t.shape) == 2 else 0] == tx.shape[-1]

    y = _pick(draw, types, fits)
    if y is None:
        return None
    ty = types[y]
    kind = _kind(tx.kind, ty.kind)
    shape = np.dot(np.empty(tx.shape), np.empty(ty.shape)).shape
    return (x, y), None, Type(shape, kind, kind == "i" and tx.exact and ty.exact)


def _where(draw: Any, types: list[Type]) -> Any:
    c = _pick(draw, types, lambda t: t.kind == "b")
    if c is None:
        return None
    x = _pick(draw, types, lambda t: _broadcast(t.shape, types[c].shape) is not None)
    if x is None:
        return None
    shape = _broadcast(types[c].shape, types[x].shape)
    y = _pick(draw, types, lambda t: _broadcast(t.shape, shape) is not None)
    if y is None:
        return None
    tx, ty = types[x], types[y]
    exact = types[c].exact and tx.exact and ty.exact
    return (c, x, y), None, Type(_broadcast(shape, ty.shape), _kind(tx.kind, ty.kind), exact)


def _astype(draw: Any, types: list[Type]) -> Any:
    x = _pick(draw, types, lambda t: t.kind in "bif")
    if x is None:
        return None
    t = types[x]
    kinds = "bif" if t.exact and t.kind in "bi" else "f"
    # A 64-bit dtype asked for by name is a warning while x64 is off.
    dtype = draw(st.sampled_from([d for k in kinds for d in DTYPES[k] if not d.endswith("64")]))
    kind = next(k for k in "bif" if dtype in DTYPES[k])
    return (x,), dtype, Type(t.shape, kind, t.exact)


# name: (how it is drawn, how it is run: (library, details, *operands))
OPERATIONS: dict[str, tuple[Rule, Callable[..., Any]]] = {
    "add": (_binary("bifc"), lambda lib, _, x, y: x + y),
    "subtract": (_binary("ifc"), lambda lib, _, x, y: x - y),
    "multiply": (_binary("ifc", keeps=False), lambda lib, _, x, y: x * y),
    "true_divide": (_binary("if", "f", keeps=False), lambda lib, _, x, y: x / (1 + lib.np.abs(y.astype("float32")))),
    "maximum": (_binary("bif"), lambda lib, _, x, y: lib.np.maximum(x, y)),
    "minimum": (_binary("bif"), lambda lib, _, x, y: lib.np.minimum(x, y)),
    "less": (_binary("bif", "b", discontinuous=True), lambda lib, _, x, y: x < y),
    "equal": (_binary("bifc", "b", discontinuous=True), lambda lib, _, x, y: x == y),
    "greater_equal": (_binary("bif", "b", discontinuous=True), lambda lib, _, x, y: x >= y),
    "bitwise_and": (_binary("bi"), lambda lib, _, x, y: x & y),
    "bitwise_or": (_binary("bi"), lambda lib, _, x, y: x | y),
    "bitwise_xor": (_binary("bi"), lambda lib, _, x, y: x ^ y),
    "add_scalar": (_with_scalar("ifc"), lambda lib, s, x: x + s),
    "scalar_times": (_with_scalar("ifc"), lambda lib, s, x: s * x),
    "scalar_minus": (_with_scalar("ifc"), lambda lib, s, x: s - x),
    "negative": (_elementwise("ifc", keeps=True), lambda lib, _, x: -x),
    "abs": (_elementwise("if", keeps=True), lambda lib, _, x: abs(x)),
    "invert": (_elementwise("bi", keeps=True), lambda lib, _, x: ~x),
    "sign": (_elementwise("if", discontinuous=True), lambda lib, _, x: lib.np.sign(x)),
    "floor": (_elementwise("f", discontinuous=True), lambda lib, _, x: lib.np.floor(x)),
    "tanh": (_elementwise("if", "f"), lambda lib, _, x: lib.np.tanh(x)),
    "sin": (_elementwise("if", "f"), lambda lib, _, x: lib.np.sin(x)),
    "cos": (_elementwise("f"), lambda lib, _, x: lib.np.cos(x)),
    "exp": (_elementwise("if", "f"), lambda lib, _, x: lib.np.exp(-abs(x))),
    "log": (_elementwise("f"), lambda lib, _, x: lib.np.log(1.5 + abs(x))),
    "sqrt": (_elementwise("f"), lambda lib, _, x: lib.np.sqrt(0.5 + abs(x))),
    "logistic": (_elementwise("f"), lambda lib, _, x: lib.lax.logistic(x)),
    "square": (_elementwise("ifc"), lambda lib, _, x: lib.np.square(x)),
    "where": (_where, lambda lib, _, c, x, y: lib.np.where(c, x, y)),
    "sum": (_reduction("bif", None), lambda lib, d, x: lib.np.sum(x, axis=d[0], keepdims=d[1])),
    "mean": (_reduction("if", "f"), lambda lib, d, x: lib.np.mean(x, axis=d[0], keepdims=d[1])),
    "std": (_reduction("f", "f"), lambda lib, d, x: lib.np.std(x, axis=d[0], keepdims=d[1])),
    "max": (_reduction("bif", keeps=True), lambda lib, d, x: x.max(axis=d[0], keepdims=d[1])),
    "min": (_reduction("if", keeps=True), lambda lib, d, x: x.min(axis=d[0], keepdims=d[1])),
    "any": (_reduction("b", "b", keeps=True), lambda lib, d, x: x.any(axis=d[0], keepdims=d[1])),
    "argmax": (_reduction("if", "i", discontinuous=True), lambda lib, d, x: x.argmax(axis=d[0], keepdims=d[1])),
    "reshape": (_reshape, lambda lib, shape, x: x.reshape(shape)),
    "transpose": (_transpose, lambda lib, axes, x: lib.np.transpose(x, axes)),
    "index": (_index, lambda lib, index, x: x[index]),
    "expand_dims": (_expand, lambda lib, axis, x: lib.np.expand_dims(x, axis)),
    "concatenate": (_join(False), lambda lib, axis, x, y: lib.np.concatenate([x, y], axis)),
    "stack": (_join(True), lambda lib, axis, x, y: lib.np.stack([x, y], axis)),
    "dot": (_dot, lambda lib, _, x, y: lib.np.dot(x, y)),
    "astype": (_astype, lambda lib, dtype, x: x.astype(dtype)),
    "inner_jit": (_elementwise("f"), lambda lib, _, x: lib.inner(x)),
}


@st.composite
def inputs(draw: Any) -> tuple[Any, Type]:
    """An argument: a NumPy array of quarters between -2 and 2 (or small integers), or a Python scalar."""
    if draw(st.integers(0, 5)) == 0:
        scalar = draw(st.sampled_from([2, -1.5, True, 3, 0.25]))
        kind = "b" if scalar is True else "i" if isinstance(scalar, int) else "f"
        return scalar, Type((), kind, True)
    kind = draw(st.sampled_from("fffiibc"))
    dtype = draw(st.sampled_from(DTYPES[kind]))
    shape = draw(st.sampled_from([(), (1,), (3,), (4,), (2, 3), (3, 1), (1, 3), (3, 3), (0, 3), (2, 1, 3)]))
    size = int(np.prod(shape))
    quarters = np.array(draw(st.lists(st.integers(-8, 8), min_size=size, max_size=size)), np.int64).reshape(shape)
    if kind == "b":
        values = quarters > 0
    elif kind == "i":
        values = (abs(quarters) if dtype.startswith("u") else quarters).astype(dtype)
    elif kind == "c":
        values = ((quarters + 1j * quarters[..., ::-1]) / 4 if shape else quarters + 0.5j).astype(dtype)
    else:
        values = (quarters / 4).astype(ml_dtypes.bfloat16 if dtype == "bfloat16" else dtype)
    return values, Type(shape, kind, True)


@st.composite
def programs(draw: Any, max_steps: int = 8) -> Program:
    """A program of up to `max_steps` operations on one to three arguments, with a tree of results."""
    arguments = draw(st.lists(inputs(), min_size=1, max_size=3))
    types = [t for _, t in arguments]
    steps: list[Step] = []
    names = list(OPERATIONS)
    for _ in range(draw(st.integers(1, max_steps))):
        name = draw(st.sampled_from(names))
        found = OPERATIONS[name][0](draw, types)
        if found is None:
            continue
        operands, details, result = found
        if int(np.prod(result.shape)) > 200:
            continue
        steps.append(Step(name, operands, details))
        types.append(result)
    last = len(types) - 1
    others = draw(st.lists(st.integers(0, last), max_size=3))
    outputs = draw(
        st.sampled_from(
            [
                last,
                (last,),
                [last, None],
                {"result": last, "others": others},
                ({"a": [last]}, tuple(others)),
                (last, last),
            ]
        )
    )
    return Program(tuple(v for v, _ in arguments), tuple(steps), outputs, draw(st.integers(0, 2)))


def library(module: Any) -> SimpleNamespace:
    """The parts of xtrace or jax that programs use."""
    inner = module.jit(lambda x: module.numpy.tanh(x) * 0.5 + 1)
    return SimpleNamespace(np=module.numpy, lax=module.lax, jit=module.jit, inner=inner, map=module.tree_util.tree_map)


def run(lib: Any, program: Program, arguments: tuple[Any, ...], repeats: int) -> Any:
    """Run `program` over `lib`; `repeats`, a static argument, is how often the last value is halved."""
    # With NumPy's arrays Python would compute in NumPy.
    values = [lib.np.asarray(x) for x in arguments]
    for step in program.steps:
        function = OPERATIONS[step.operation][1]
        values.append(function(lib, step.details, *[values[i] for i in step.operands]))
    for _ in range(repeats):
        values[-1] = values[-1] * 0.5
    return lib.map(lambda i: values[i], program.outputs)
