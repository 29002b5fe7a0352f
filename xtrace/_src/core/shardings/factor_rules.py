"""Sharding rules of Shardy: each dimension of an array is a product of factors, and a factor has one sharding."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from xtrace._src.core.diagnostics.abbreviation import abbreviate

__all__ = ["BATCHING", "ArrayMapping", "CompoundFactor", "SdyShardingRule"]

BATCHING = "…"


class CompoundFactor(tuple[str, ...]):
    """The factors of one dimension, the outermost first.

    Args:
        factors: their names, at least two.

    Raises:
        ValueError: there are fewer than two names, or one is no name.
    """

    __slots__ = ()

    def __new__(cls, *factors: str) -> CompoundFactor:
        """Check the factors."""
        if len(factors) < 2:
            raise ValueError(f"a CompoundFactor needs two names or more, got {factors}")
        for factor in factors:
            if not isinstance(factor, str):
                raise ValueError(f"CompoundFactor takes names, got {type(factor)}")
            _check_name(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factors of the dimensions of an array.

    Args:
        dim_mappings: a name or a `CompoundFactor` for each dimension. `BATCHING` as the first, with or without digits
            behind it, stands for any number of leading dimensions.

    Raises:
        ValueError: an element is another object, or `BATCHING` is not the first.
    """

    __slots__ = ()

    def __new__(cls, *dim_mappings: Any) -> ArrayMapping:
        """Check the dimensions."""
        for i, dimension in enumerate(dim_mappings):
            if isinstance(dimension, CompoundFactor):
                continue
            if not isinstance(dimension, str):
                raise ValueError(f"ArrayMapping takes names and CompoundFactors, got {type(dimension)}")
            if dimension.startswith(BATCHING):
                if i:
                    raise ValueError(f"an ellipsis is for leading dimensions, it must be the first; got {dim_mappings}")
            else:
                _check_name(dimension)
        return super().__new__(cls, dim_mappings)


def _check_name(factor: str) -> None:
    if not factor[:1].isalpha():
        raise ValueError(f"names of factors begin with a letter, got {abbreviate(factor)}")
    unknown = [c for c in factor if not (c.isalnum() or c == "_")]
    if unknown:
        raise ValueError(f"Unknown character {abbreviate(unknown[0])} in {abbreviate(factor)}")


class SdyShardingRule:
    """How the dimensions of an operation's operands and results are sharded together.

    Args:
        operand_mappings: an `ArrayMapping` for each operand.
        result_mappings: one for each result.
        reduction_factors: factors over which the operation sums; results are summed along the factors' mesh axes.
        need_replication_factors: factors that must not be sharded.
        permutation_factors: factors whose sharding needs a permutation of the shards.
        factor_sizes: the sizes of factors that occur in compound factors only.

    Raises:
        ValueError: a factor is in two of the sets, is not used, or has a size where a dimension gives it.
    """

    def __init__(
        self, operand_mappings: Sequence[Any], result_mappings: Sequence[Any], *,
        reduction_factors: Sequence[str] = (), need_replication_factors: Sequence[str] = (),
        permutation_factors: Sequence[str] = (), **factor_sizes: int,
    ) -> None:
        self.operand_mappings, self.result_mappings = tuple(operand_mappings), tuple(result_mappings)
        self.reduction_factors = tuple(reduction_factors)
        self.need_replication_factors = tuple(need_replication_factors)
        self.permutation_factors = tuple(permutation_factors)
        self.factor_sizes = factor_sizes
        whole: set[str] = set()
        parts: set[str] = set()
        for mapping in (*self.operand_mappings, *self.result_mappings):
            for dimension in mapping:
                if isinstance(dimension, tuple):
                    parts.update(dimension)
                else:
                    whole.add(dimension)
        for factor in factor_sizes:
            if factor in whole:
                raise ValueError(f"Factor {factor} is a whole dimension, which gives its size; leave the size out")
            if factor not in parts:
                raise ValueError(f"Factor {factor} has a size and is in no dimension of the rule")
        for factor in sorted(parts - whole - set(factor_sizes)):
            raise ValueError(f"Factor {factor} is in compound factors only; give its size")
        seen: set[str] = set()
        for kind in ("reduction_factors", "need_replication_factors", "permutation_factors"):
            for factor in getattr(self, kind):
                if factor not in whole | parts:
                    raise ValueError(f"Factor {factor} in {kind} is not used in the rule")
                if factor in seen:
                    raise ValueError(
                        f"Factor {factor} is of two kinds; name it in one of reduction_factors, "
                        "need_replication_factors and permutation_factors"
                    )
                seen.add(factor)

    def __repr__(self) -> str:
        kinds = "reduction_factors", "need_replication_factors", "permutation_factors"
        special = "".join([f" {kind}={getattr(self, kind)}" for kind in kinds if getattr(self, kind)])
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{special})"

    def format_attribute(self, operands: Sequence[Sequence[int]], results: Sequence[Sequence[int]]) -> str:
        """Return the text of the rule for operands and results of these shapes.

        Raises ValueError if the rule has other numbers, ranks or sizes of them.
        """
        groups: list[list[tuple[str, list[Any], Sequence[int]]]] = []
        for what, mappings, shapes in (
            ("operand", self.operand_mappings, operands), ("result", self.result_mappings, results)
        ):
            if len(mappings) != len(shapes):
                raise ValueError(
                    f"Sharding rule has {len(mappings)} {what}s, but the operation has {len(shapes)} {what}s"
                )
            groups.append([
                (f"{i}th {what}", _entries(f"{i}th {what}", mapping, len(shape)), shape)
                for i, (mapping, shape) in enumerate(zip(mappings, shapes, strict=True))
            ])
        sizes = self._sizes([array for group in groups for array in group])
        names = {factor: _symbol(i) for i, factor in enumerate(sizes)}
        written = [
            ", ".join([
                f"[{', '.join([''.join([names[f] for f in _factors(entry)]) for entry in entries])}]"
                for _, entries, _ in group
            ])
            for group in groups
        ]
        text = f"({written[0]})->({written[1]})"
        text += f" {{{', '.join([f'{names[f]}={n}' for f, n in sizes.items()])}}}" if sizes else ""
        for kind in ("reduction", "need_replication", "permutation"):
            chosen = [s for f, s in names.items() if f in getattr(self, f"{kind}_factors")]
            text += f" {kind}={{{', '.join(chosen)}}}" if chosen else ""
        return f"#sdy.op_sharding_rule<{text}, custom>"

    def _sizes(self, arrays: Sequence[tuple[str, list[Any], Sequence[int]]]) -> dict[str, int]:
        """Return the size of each factor, in the order of first use."""
        sizes: dict[str, int] = {}
        for _, entries, shape in arrays:
            for entry, size in zip(entries, shape, strict=True):
                for factor in _factors(entry):
                    whole = 1 if isinstance(entry, tuple) else size
                    sizes[factor] = max(sizes.get(factor, self.factor_sizes.get(factor, 1)), whole)
        for name, entries, shape in arrays:
            for entry, size in zip(entries, shape, strict=True):
                product = math.prod([sizes[factor] for factor in _factors(entry)])
                if isinstance(entry, tuple) and product != size:
                    raise ValueError(
                        f"{name} actual size {size} doesn't match the size {product} derived from the compound "
                        f"factors {tuple(entry)}"
                    )
                if size not in (1, product):
                    raise ValueError(f"Factor {entry} has the sizes {product} and {size}; it must have one")
        return sizes


def _factors(entry: Any) -> tuple[str, ...]:
    return tuple(entry) if isinstance(entry, tuple) else (entry,)


def _entries(name: str, mapping: Sequence[Any], rank: int) -> list[Any]:
    """Return the factors of each dimension of an array."""
    entries = list(mapping)
    if entries and isinstance(entries[0], str) and entries[0].startswith(BATCHING):
        if rank < len(entries) - 1:
            raise ValueError(
                f"Sharding rule {name} has rank {len(entries) - 1} or more, but the operation {name} has rank {rank}"
            )
        entries[:1] = [f"{entries[0]}{i}" for i in range(rank - len(entries) + 1)]
    if len(entries) != rank:
        raise ValueError(f"Sharding rule {name} has rank {len(entries)}, but the operation {name} has rank {rank}")
    return entries


def _symbol(number: int) -> str:
    letters = "ijklmnopqrstuvwxyz"
    return letters[number] if number < len(letters) else f"z_{number - len(letters) + 1}"


def parse_rule(text: str, **options: Any) -> SdyShardingRule:
    """Return the rule of a text such as ``"... i j, j k -> ... i k"``; ValueError for other text."""
    if text.count("->") != 1:
        raise ValueError(f"There {'are several' if '->' in text else 'is no'} -> in rule: {abbreviate(text)}")
    sides = [[_parse_mapping(part, text) for part in side.split(",")] for side in text.split("->")]
    return SdyShardingRule(*sides, **options)


def _parse_mapping(text: str, rule: str) -> ArrayMapping:
    dimensions: list[Any] = []
    compound: list[str] | None = None
    for word in text.replace("...", f" {BATCHING}").replace("(", " ( ").replace(")", " ) ").split():
        if word == "(":
            if compound is not None:
                raise ValueError(f"Compound factors cannot be nested: {abbreviate(rule)}")
            compound = []
        elif word == ")":
            if compound is None:
                raise ValueError(f"There is a ) without ( in rule: {abbreviate(rule)}")
            dimensions.append(CompoundFactor(*compound) if len(compound) != 1 else compound[0])
            compound = None
        else:
            (dimensions if compound is None else compound).append(word)
    if compound is not None:
        raise ValueError(f"There is a ( without ) in rule: {abbreviate(rule)}")
    return ArrayMapping(*dimensions)
