"""Random stacks of transformations over random smooth functions: a description, and its interpreter over xtrace or jax.

Every function takes and returns a vector of `SIZE` numbers, and every transformation makes one such function of
another, so that they stack in any order. Results go through tanh, which keeps derivatives of derivatives bounded.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from hypothesis import strategies as st

SIZE = 3
WEIGHTS = np.array([0.75, -0.5, 0.25])
MATRIX = np.array([[0.5, -0.25, 0.125], [0.25, 0.75, -0.5], [-0.125, 0.5, 0.25]])
ORDER = np.array([2, 0, 1])

Vector = Callable[[Any], Any]


@dataclass(frozen=True)
class Composition:
    """Operations from the inside out, transformations from the inside out, and the argument."""

    operations: tuple[str, ...]
    transformations: tuple[str, ...]
    argument: tuple[float, ...]


# name: (library, x) -> vector
OPERATIONS: dict[str, Callable[[Any, Any], Any]] = {
    "sin": lambda lib, x: lib.numpy.sin(x),
    "product": lambda lib, x: x * x[::-1],
    "quotient": lambda lib, x: x / (2 + x**2),
    "exponential": lambda lib, x: lib.numpy.exp(-x * x),
    "logarithm": lambda lib, x: lib.numpy.log(2 + x * x),
    "root": lambda lib, x: lib.numpy.sqrt(1 + x * x),
    "logistic": lambda lib, x: lib.lax.logistic(x),
    "choice": lambda lib, x: lib.numpy.where(x > 0.1, x * x, 3 * x),
    "maximum": lambda lib, x: lib.numpy.maximum(x, 0.3),
    "matrix": lambda lib, x: lib.numpy.asarray(MATRIX) @ x,
    "quadratic form": lambda lib, x: x * (x @ lib.numpy.asarray(MATRIX) @ x),
    "mean": lambda lib, x: x - x.mean(),
    "cumulative sum": lambda lib, x: lib.numpy.cumsum(x),
    "reshape": lambda lib, x: lib.numpy.stack([x, 2 * x]).T.reshape(-1)[:SIZE],
    "gather": lambda lib, x: x[ORDER] + x,
    "scatter": lambda lib, x: x.at[1].set(x[0] * x[2]),
    "scatter add": lambda lib, x: x.at[np.array([0, 0, 2])].add(x * x),
    "pad": lambda lib, x: lib.numpy.pad(x, 1)[:SIZE] + x,
    "concatenate": lambda lib, x: lib.numpy.concatenate([x[1:], x[:1] * 2]),
    "slice": lambda lib, x: lib.lax.dynamic_slice(lib.numpy.concatenate([x, x * x]), (1,), (SIZE,)),
    "sort": lambda lib, x: lib.numpy.sort(x + lib.numpy.arange(float(SIZE))),
    "integer power": lambda lib, x: x**3 - x**2,
    "largest": lambda lib, x: x * (x + lib.numpy.arange(float(SIZE)) / 7).max(),
    "convert": lambda lib, x: (x > 0).astype(x.dtype) * x,
    "stop gradient": lambda lib, x: x * lib.lax.stop_gradient(x),
    "clip": lambda lib, x: lib.numpy.clip(x, -0.9, 0.9),
}


def _scan(lib: Any, f: Vector) -> Vector:
    def body(carry: Any, y: Any) -> Any:
        new = f(carry + y)
        return new, new * carry

    def scanned(x: Any) -> Any:
        carry, ys = lib.lax.scan(body, x, lib.numpy.stack([x, 0.5 * x]))
        return carry + ys.sum(0)

    return scanned


def _batched_cond(lib: Any, f: Vector) -> Vector:
    def chosen(x: Any) -> Any:
        return lib.lax.cond(x[0] > 0.05, f, lambda y: 0.5 * y, x)

    return lambda x: lib.vmap(chosen)(lib.numpy.stack([x, -x])).sum(0)


def _while(lib: Any, f: Vector) -> Vector:
    # Forward mode only: the gradient is not taken through it.
    def looped(x: Any) -> Any:
        return lib.lax.while_loop(lambda s: s[0] < 2, lambda s: (s[0] + 1, f(s[1])), (0, x))[1]

    return lambda x: lib.jvp(looped, (x,), (lib.numpy.asarray(WEIGHTS),))[1]


# name: (library, function) -> function
TRANSFORMATIONS: dict[str, Callable[[Any, Vector], Vector]] = {
    "jit": lambda lib, f: lib.jit(f),
    "grad": lambda lib, f: lib.grad(lambda x: (f(x) * WEIGHTS).sum()),
    "vjp": lambda lib, f: lambda x: lib.vjp(f, x)[1](x)[0],
    "jvp": lambda lib, f: lambda x: lib.jvp(f, (x,), (lib.numpy.asarray(WEIGHTS),))[1],
    "linearize": lambda lib, f: lambda x: lib.linearize(f, x)[1](x * x),
    "vmap": lambda lib, f: lambda x: lib.vmap(f)(lib.numpy.stack([x, 2 * x])).sum(0),
    "vmap of columns": lambda lib, f: lambda x: lib.vmap(f, 1, 1)(lib.numpy.stack([x, x - 1], 1))[:, 1],
    "vmap of a closure": lambda lib, f: lambda x: lib.vmap(lambda a: f(x * a))(lib.numpy.asarray(WEIGHTS)).sum(0),
    "jacfwd": lambda lib, f: lambda x: lib.jacfwd(f)(x) @ x,
    "jacrev": lambda lib, f: lambda x: x @ lib.jacrev(f)(x),
    "checkpoint": lambda lib, f: lib.checkpoint(f),
    "scan": _scan,
    "cond": lambda lib, f: lambda x: lib.lax.cond(x.sum() > 0, f, lambda y: y * y, x),
    "cond of a batch": _batched_cond,
    "switch": lambda lib, f: lambda x: lib.lax.switch(1, [lambda y: y, f, lambda y: y * 2], x),
    "fori_loop": lambda lib, f: lambda x: lib.lax.fori_loop(0, 2, lambda i, c: f(c) + 0.1 * i, x),
    "while_loop": _while,
    "custom_jvp": lambda lib, f: _custom_jvp(lib, f),
    "custom_vjp": lambda lib, f: _custom_vjp(lib, f),
}


def _custom_jvp(lib: Any, f: Vector) -> Vector:
    custom = lib.custom_jvp(f)

    @custom.defjvp
    def _(primals: Any, tangents: Any) -> Any:
        # The result is that of the function: where a rule gives another one, it is not defined which of them counts.
        result, tangent = lib.jvp(f, primals, tangents)
        return result, 2 * tangent

    return lambda x: custom(x)


def _custom_vjp(lib: Any, f: Vector) -> Vector:
    custom = lib.custom_vjp(f)
    custom.defvjp(lambda x: (f(x), x), lambda x, ct: lib.vjp(lambda y: 3 * f(y), x)[1](ct))
    return lambda x: custom(x)


# Reverse mode is refused through a while loop, forward mode through a function with a custom vjp.
_REVERSE = frozenset(("grad", "vjp", "jacrev"))
_FORWARD = frozenset(("jvp", "linearize", "jacfwd", "while_loop"))


def _allowed(stack: list[str], name: str) -> bool:
    return not (
        (name in _REVERSE | {"linearize", "custom_vjp"} and "while_loop" in stack)
        or (name in _FORWARD and "custom_vjp" in stack)
    )


@st.composite
def compositions(draw: Any) -> Composition:
    """One to four transformations, of four operations at most, of two where all four transform: they multiply."""
    stack: list[str] = []
    for _ in range(draw(st.integers(1, 4))):
        stack.append(draw(st.sampled_from([n for n in sorted(TRANSFORMATIONS) if _allowed(stack, n)])))
    most = min(4, 6 - len(stack))
    operations = draw(st.lists(st.sampled_from(sorted(OPERATIONS)), min_size=1, max_size=most))
    # No two elements are equal, or multiples of each other: there the derivatives of sort and maximum jump.
    argument = tuple(draw(st.integers(-20, 20)) / 16 + n / 64 + 0.0078125 for n in (0, 1.37, 2.71))
    return Composition(tuple(operations), tuple(stack), argument)


def build(lib: Any, composition: Composition) -> Vector:
    """The composed function over `lib`, which is xtrace or jax."""

    def innermost(x: Any) -> Any:
        for name in composition.operations:
            x = OPERATIONS[name](lib, x)
        return lib.numpy.tanh(x)

    function: Vector = innermost
    for name in composition.transformations:
        function = _bounded(lib, TRANSFORMATIONS[name](lib, function))
    return function


def _bounded(lib: Any, function: Vector) -> Vector:
    return lambda x: lib.numpy.tanh(function(x))
