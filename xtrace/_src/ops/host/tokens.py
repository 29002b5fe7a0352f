"""Tokens: values without data that order operations."""

from __future__ import annotations

from typing import Any

from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import AbstractToken, ShapedArray, aval_of, is_array_like, short_repr
from xtrace._src.core.primitive import Primitive, no_rule, primitive
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

_CONSTANT = no_rule("a token has no data to differentiate")


def _create_abstract() -> ShapedArray:
    """Return a new token, without preceding operations."""
    return AbstractToken()


def _create_emit(builder: FunctionBuilder) -> Value:
    return builder.create_token(builder.results[0])


create_token_p = Primitive(
    "create_token", abstract=_create_abstract, emit=_create_emit, jvp=_CONSTANT,
    batch=no_rule("create_token has no operand that could be mapped"),
)


def create_token(_: object = None) -> Any:
    """Create a token.

    Args:
        _: not used.

    Returns:
        A token.

    Example:
        >>> lax.create_token().shape
        ()
    """
    return create_token_p.bind_positional(())


def _after_abstract(*tokens: ShapedArray) -> ShapedArray:
    for position, aval in enumerate(tokens):
        if type(aval) is not AbstractToken:
            raise _no_token(position, aval.str_short(True))
    return AbstractToken()


def _no_token(position: int, described: str) -> TypeError:
    return TypeError(
        f"Arguments to after_all must be tokens; argument {position} is {described}. lax.create_token() makes one"
    )


def _after_emit(builder: FunctionBuilder, *tokens: Value) -> Value:
    names = ", ".join([x.name for x in tokens])
    return builder.line(f"stablehlo.after_all {names}{' ' if names else ''}: !stablehlo.token", builder.results[0])


@primitive(
    abstract=_after_abstract, emit=_after_emit, jvp=_CONSTANT,
    batch=no_rule("after_all of tokens that are mapped: a token has no axis"),
)
def after_all(*operands: ArrayLike) -> Any:
    """Return a token that depends on all given tokens.

    Args:
        operands: tokens, any number of them.

    Returns:
        A token.

    Raises:
        TypeError: an operand is no token.

    Example:
        >>> type(lax.after_all(lax.create_token())).__name__
        'ConcreteArray'
    """
    for position, x in enumerate(operands):
        if not is_array_like(x) or type(aval_of(x)) is not AbstractToken:
            raise _no_token(position, short_repr(x))
    return after_all.bind_positional(operands)
