"""Tokens: the values by which operations with ordered effects wait for each other in a program."""

from __future__ import annotations

from collections.abc import Sequence

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.jaxprs.effects import Effect
from xtrace._src.stablehlo.builder import FunctionBuilder, Value

TOKEN = ShapedArray((), dtypes.token)


def get_tokens(builder: FunctionBuilder, effects: Sequence[Effect]) -> list[Value]:
    """Return the tokens on which the next operations with these ordered effects wait."""
    return [builder.tokens[e] for e in effects]


def with_tokens(builder: FunctionBuilder, effects: Sequence[Effect], values: Sequence[Value]) -> list[Value]:
    """Store the new tokens of these ordered effects, which are the first of `values`; return the rest."""
    if not effects:
        return list(values)
    builder.tokens.update(zip(effects, values, strict=False))
    return list(values[len(effects) :])
