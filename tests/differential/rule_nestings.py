"""Transformations whose rules call other transformations, for stacks of them; without their rules they do nothing.

Each rule is the derivative of its function, written with jvp, vjp or linearize inside of a call, a loop or a branch, so
that a program with rules and the same one without them give the same: jax refuses some with rules, and none without.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tests.differential.compositions import SIZE, TRANSFORMATIONS, Vector

Product = Callable[[Any, Any], Any]


def _product(lib: Any, f: Vector) -> Product:
    return lambda x, v: lib.jvp(f, (x,), (v,))[1]


def _mapped(product: Callable[[Any, Vector], Product]) -> Callable[[Any, Vector], Product]:
    def mapped(lib: Any, f: Vector) -> Product:
        return lambda x, v: lib.vmap(product(lib, f), (None, 0))(x, lib.numpy.stack([v, 2 * v]))[0]

    return mapped


def _looped_product(lib: Any, f: Vector) -> Product:
    def product(x: Any, v: Any) -> Any:
        halves = lib.numpy.stack([0.5 * v, 0.5 * v])
        return lib.lax.scan(lambda sum, w: (sum + _product(lib, f)(x, w), None), 0 * v, halves)[0]

    return product


def _conditional_product(lib: Any, f: Vector) -> Product:
    product = _product(lib, f)
    return lambda x, v: lib.lax.cond(x[0] > 0, product, lambda y, w: 0.5 * product(y, 2 * w), x, v)


def _pullback(lib: Any, f: Vector) -> Product:
    return lambda x, ct: lib.vjp(f, x)[1](ct)[0]


def _with_product(product: Callable[[Any, Vector], Product]) -> Callable[[Any, Vector], Vector]:
    def transformed(lib: Any, f: Vector) -> Vector:
        custom, moved = lib.custom_jvp(f), product(lib, f)
        custom.defjvp(lambda primals, tangents: (custom(*primals), moved(primals[0], tangents[0])))
        return lambda x: custom(x)

    return transformed


def _with_pullback(pullback: Callable[[Any, Vector], Product]) -> Callable[[Any, Vector], Vector]:
    def transformed(lib: Any, f: Vector) -> Vector:
        custom, pulled = lib.custom_vjp(f), pullback(lib, f)
        custom.defvjp(lambda x: (custom(x), x), lambda x, ct: (pulled(x, ct),))
        return lambda x: custom(x)

    return transformed


def _custom_vmap(lib: Any, f: Vector) -> Vector:
    custom = lib.custom_batching.custom_vmap(f)

    @custom.def_vmap
    def _(size: int, in_batched: Any, xs: Any) -> Any:
        return lib.lax.map(f, xs) if in_batched[0] else f(xs), in_batched[0]

    return lambda x: custom(x)


def _custom_root(lib: Any, f: Vector) -> Vector:
    # The root of y + y³/8 = f(x); its derivative is taken with a solver that closes over the argument.
    def root(x: Any) -> Any:
        def solve(g: Any, start: Any) -> Any:
            return lib.lax.fori_loop(0, 8, lambda _, y: y - g(y) / (1 + 0.375 * y * y), start)

        def tangent_solve(g: Any, y: Any) -> Any:
            return y / g(lib.numpy.ones(SIZE)) + 0 * x

        return lib.lax.custom_root(lambda y: y + y**3 / 8 - f(x), lib.numpy.zeros(SIZE), solve, tangent_solve)

    return root


def _root(lib: Any, f: Vector) -> Vector:
    return lambda x: 2 * np.sqrt(8 / 3) * lib.numpy.sinh(lib.numpy.arcsinh(1.5 * np.sqrt(3 / 8) * f(x)) / 3)


def _linear_solve(lib: Any, f: Vector) -> Vector:
    def solution(x: Any) -> Any:
        def solve(product: Any, b: Any) -> Any:
            return b / product(lib.numpy.ones(SIZE))

        return lib.lax.custom_linear_solve(lambda y: (2 + x * x) * y, f(x), solve, solve)

    return solution


def _quotient(lib: Any, f: Vector) -> Vector:
    return lambda x: f(x) / (2 + x * x)


def _itself(lib: Any, f: Vector) -> Vector:
    return f


_PRODUCTS: dict[str, Callable[[Any, Vector], Product]] = {
    "product": _product,
    "jitted product": lambda lib, f: lib.jit(_product(lib, f)),
    "mapped product": _mapped(_product),
    "loop over products": _looped_product,
    "conditional product": _conditional_product,
    "recomputed product": lambda lib, f: lib.checkpoint(_product(lib, f)),
    "linear map": lambda lib, f: lib.jit(lambda x, v: lib.linearize(f, x)[1](v)),
}
_PULLBACKS: dict[str, Callable[[Any, Vector], Product]] = {
    "pullback": _pullback,
    "jitted pullback": lambda lib, f: lib.jit(_pullback(lib, f)),
    "mapped pullback": _mapped(_pullback),
    "recomputed pullback": lambda lib, f: lib.checkpoint(_pullback(lib, f)),
}

# name: (library, function) -> function, with rules; and the same without
RULES: dict[str, Callable[[Any, Vector], Vector]] = {
    **{f"{name} in a rule": _with_product(product) for name, product in _PRODUCTS.items()},
    **{f"{name} in a rule": _with_pullback(pullback) for name, pullback in _PULLBACKS.items()},
    "custom_vmap": _custom_vmap,
    "custom_root": _custom_root,
    "custom_linear_solve": _linear_solve,
}
_WITHOUT: dict[str, Callable[[Any, Vector], Vector]] = {"custom_root": _root, "custom_linear_solve": _quotient}
# The rules of these are not derivatives.
_OTHERS = {name: made for name, made in TRANSFORMATIONS.items() if name not in ("custom_jvp", "custom_vjp")}

_NOT_FORWARD = frozenset(name for name in RULES if "pullback" in name)
_REVERSE = frozenset(("grad", "vjp", "jacrev", "linearize", "linear map in a rule")) | _NOT_FORWARD
_FORWARD = frozenset(("jvp", "linearize", "jacfwd", "while_loop")) | {f"{name} in a rule" for name in _PRODUCTS}


def drawn_stack(draw: Any, most: int) -> tuple[str, ...]:
    """Return up to `most` transformations, from the inside out; two of three have rules. `draw` is a random.Random."""
    stack: list[str] = []
    for _ in range(draw.randint(2, most)):
        names = [name for name in (RULES if draw.random() < 2 / 3 else _OTHERS) if _allowed(stack, name)]
        stack.append(draw.choice(names))
    return tuple(stack)


def _allowed(stack: list[str], name: str) -> bool:
    # Reverse mode is refused through a while loop, forward mode through a function with a rule for reverse mode only.
    return not ((name in _REVERSE and "while_loop" in stack) or (name in _FORWARD and _NOT_FORWARD.intersection(stack)))


def nested(lib: Any, stack: tuple[str, ...], innermost: Vector, rules: bool) -> Vector:
    """Return the function of the stack over `innermost`, whose results are bounded, with or without rules."""
    function: Vector = lambda x: lib.numpy.tanh(innermost(x))  # noqa: E731
    for name in stack:
        if name in RULES:
            function = _bounded(lib, (RULES[name] if rules else _WITHOUT.get(name, _itself))(lib, function))
        else:
            function = _bounded(lib, _OTHERS[name](lib, function))
    return function


def _bounded(lib: Any, function: Vector) -> Vector:
    return lambda x: lib.numpy.tanh(function(x))
