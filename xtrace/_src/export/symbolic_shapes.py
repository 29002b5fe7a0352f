"""Shapes with symbolic dimensions, from the texts of users."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.api.tracing import make_struct
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.symbolic_dimensions.scopes import SymbolicScope as SymbolicScope
from xtrace._src.core.symbolic_dimensions.texts import parse_shape


def is_symbolic_dim(p: Any) -> bool:
    """Return whether a size is a symbolic dimension, not an integer.

    Args:
        p: anything.

    Returns:
        A bool.

    Example:
        >>> n, = xtrace.export.symbolic_shape("n")
        >>> xtrace.export.is_symbolic_dim(n), xtrace.export.is_symbolic_dim(n - n)
        (True, False)
    """
    return is_symbolic(p)


@boundary
def symbolic_shape(
    shape_spec: str | None, *, constraints: Sequence[str] = (), scope: SymbolicScope | None = None,
    like: Sequence[int | None] | None = None,
) -> Sequence[Any]:
    """Return the shape, with symbolic dimensions, that a text describes.

    A dimension is a sum of products of integers, variables such as ``n``, their powers ``n^2``, and the operations
    ``floordiv(n, 2)``, ``mod(n, 2)``, ``max(n, m)``, ``min(n, m)`` and ``non_negative(n - m)``. Variables are at least
    1.

    Args:
        shape_spec: the dimensions, such as ``"batch, 2 * n + 1, 3"``. ``_`` is the size of `like` at this position, and
            ``...`` at the end are the remaining sizes of `like`. None is ``"..."``.
        constraints: facts about the variables, such as ``"n >= 2 * m"`` or ``"mod(n, 8) == 0"``.
        scope: the scope of the variables, to share them with other calls; None for a new scope with the `constraints`.
        like: a shape with the sizes for ``_`` and ``...``.

    Returns:
        A tuple of integers and symbolic dimensions.

    Raises:
        ValueError: the text or a constraint is no such expression (the message has the position), the sizes of `like`
            differ, no sizes satisfy all constraints, or both `scope` and `constraints` are given.

    Example:
        >>> b, n = xtrace.export.symbolic_shape("b, 2*n", constraints=["n >= 4"])
        >>> n // 2, n + b, n >= 8
        (n, 2*n + b, True)
    """
    if shape_spec is not None and not isinstance(shape_spec, str):
        raise ValueError(
            f"symbolic_shape: shape_spec, a polymorphic shape spec, should be None or a string such as 'b, 3'. Found "
            f"{abbreviate(shape_spec)}"
        )
    scope = _make_scope(constraints, scope)
    return parse_shape("..." if shape_spec is None else shape_spec, like, scope)


def _make_scope(constraints: Sequence[str], scope: Any) -> SymbolicScope:
    if scope is None:
        return SymbolicScope(constraints)
    if not isinstance(scope, SymbolicScope):
        raise TypeError(f"{called_function()}: scope must be an export.SymbolicScope, got {abbreviate(scope)}")
    if constraints:
        raise ValueError(
            f"{called_function()}: Cannot specify both a `scope` and `constraints`; give the constraints to the scope, "
            "as SymbolicScope([...])"
        )
    return scope


@boundary
def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Return the types of arguments with symbolic shapes, for ``export(f)(*specs)``.

    Args:
        args: a pytree of arrays, or of objects with a shape and a dtype.
        shapes_specs: a tree prefix of `args` with texts, see `symbolic_shape`; None keeps the shape.
        constraints: facts about the variables.
        scope: the scope of the variables; None for a new scope with the `constraints`.

    Returns:
        The structure of `args`, with a ShapeDtypeStruct for each leaf.

    Raises:
        ValueError: `shapes_specs` is no tree prefix of `args`, or an error of `symbolic_shape`.
        TypeError: a leaf of `args` is no array.

    Example:
        >>> xtrace.export.symbolic_args_specs((jnp.ones((3, 4)), jnp.ones(4)), ("b, ...", None))
        (ShapeDtypeStruct(shape=(b, 4), dtype=float32), ShapeDtypeStruct(shape=(4,), dtype=float32))
    """
    scope = _make_scope(constraints, scope)
    leaves, tree = pytree.tree_flatten(args)
    try:
        texts = pytree.broadcast_prefix(shapes_specs, args, is_leaf=lambda x: x is None)
    except ValueError as error:
        raise ValueError(f"symbolic_args_specs: shapes_specs has another structure than args: {error}") from None
    structs = []
    for leaf, text in zip(leaves, texts, strict=True):
        aval = aval_of(leaf)
        if text is not None and not isinstance(text, str):
            raise ValueError(
                "symbolic_args_specs: each of shapes_specs, a polymorphic shape spec, should be None or a string. "
                f"Found {abbreviate(text)}"
            )
        shape = parse_shape("..." if text is None else text, aval.shape, scope)
        structs.append(make_struct(aval.update(shape=shape, weak_type=False)))
    return pytree.tree_unflatten(tree, structs)
