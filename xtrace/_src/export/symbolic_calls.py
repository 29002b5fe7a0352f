"""The values of symbolic dimensions in calls of programs for symbolic shapes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.pytrees.key_paths import keystr
from xtrace._src.core.sizes import has_symbolic
from xtrace._src.core.symbolic_dimensions.dimensions import evaluate
from xtrace._src.core.symbolic_dimensions.solver import Dimension, Solution, find_values, solve
from xtrace._src.core.tables import memoize_by_owner


def has_symbolic_shapes(exported: Any) -> bool:
    """Return whether an argument of an exported function has a symbolic shape."""
    return any(has_symbolic(aval.shape) for aval in exported.in_avals)


def name_argument(exported: Any, number: int) -> str:
    """Return the path of a leaf of the arguments, such as ``args[0]['w']``."""
    return name_path(pytree.leaf_paths(exported.in_tree)[number])


def name_path(path: Sequence[Any]) -> str:
    """Return the path in the pair of arguments and keyword arguments as users write it."""
    return f"{('args', 'kwargs')[path[0].idx]}{keystr(path[1:])}"


@memoize_by_owner
def _solve_shapes(exported: Any) -> Solution:
    return solve([aval.shape for aval in exported.in_avals], lambda i: name_argument(exported, i))


def fits(shape: Sequence[Any], expected: Sequence[Any]) -> bool:
    """Return whether a shape has the rank and the known sizes of `expected`."""
    pairs = zip(shape, expected, strict=False)
    return len(shape) == len(expected) and all(has_symbolic([wanted]) or n == wanted for n, wanted in pairs)


def find_symbolic_values(exported: Any, avals: Sequence[ShapedArray]) -> dict[str, Any]:
    """Return the values of the symbolic dimensions for arguments of types `avals`.

    Without a solution, ValueError names the argument, the dimension and the constraint.
    """
    solution = _solve_shapes(exported)

    def fail(dimension: Dimension | None, why: str) -> Exception:
        name = "the arguments" if dimension is None else dimension.name
        return ValueError(
            f"Shape mismatch for {name} of {exported.fun_name}: {why}. It was exported for the symbolic shapes "
            f"{solution.specification}"
        )

    return dict(find_values(solution, lambda d: avals[d.argument].shape[d.axis], fail))


def substitute_sizes(avals: Sequence[ShapedArray], values: dict[str, Any]) -> list[ShapedArray]:
    """Return types with symbolic dimensions evaluated for the `values` of their variables."""
    return [aval.update(shape=tuple([evaluate(n, values) for n in aval.shape])) for aval in avals]
