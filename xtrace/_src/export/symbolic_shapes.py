"""Shapes with symbolic dimensions, as users write them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.api.tracing import struct_of
from xtrace._src.core import pytree
from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.sizes import is_symbolic
from xtrace._src.core.symbolic_scopes import SymbolicScope as SymbolicScope
from xtrace._src.core.symbolic_texts import parse_shape


def is_symbolic_dim(p: Any) -> bool:
    """Return whether a size is a symbolic dimension, and no integer.

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
    """Return a shape with symbolic dimensions, as a text describes it.

    A dimension is a sum of products of integers, variables such as ``n``, their powers ``n^2``, and the operations
    ``floordiv(n, 2)``, ``mod(n, 2)``, ``max(n, m)``, ``min(n, m)`` and ``non_negative(n - m)``. Variables are at least
    1.

    Args:
        shape_spec: the dimensions, such as ``"batch, 2 * n + 1, 3"``. ``_`` is the size that `like` has there, and
            ``...`` at the end are all of the rest. None is ``"..."``.
        constraints: what is known of the variables, such as ``"n >= 2 * m"`` or ``"mod(n, 8) == 0"``.
        scope: the scope of the variables, where shapes made by other calls share them; None for a new one with the
            `constraints`.
        like: a shape that gives the sizes left open.

    Returns:
        A tuple of integers and symbolic dimensions.

    Raises:
        ValueError: the text or a constraint cannot be read (the message says where), the sizes of `like` are others,
            no sizes satisfy all constraints, or both `scope` and `constraints` are given.

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
    whole = _scope_of("symbolic_shape", constraints, scope)
    return parse_shape("..." if shape_spec is None else shape_spec, like, whole)


def _scope_of(function: str, constraints: Sequence[str], scope: Any) -> SymbolicScope:
    if scope is None:
        return SymbolicScope(constraints)
    if not isinstance(scope, SymbolicScope):
        raise TypeError(f"{function}: scope must be an export.SymbolicScope, got {abbreviate(scope)}")
    if constraints:
        raise ValueError(
            f"{function}: Cannot specify both a `scope` and `constraints`; give the constraints to the scope, as "
            "SymbolicScope([...])"
        )
    return scope


@boundary
def symbolic_args_specs(
    args: Any, shapes_specs: Any, constraints: Sequence[str] = (), scope: SymbolicScope | None = None
) -> Any:
    """Return descriptions of arguments with symbolic shapes, for ``export(f)(*specs)``.

    Args:
        args: a pytree of arrays, or of what has their shape and dtype.
        shapes_specs: a pytree of texts as `symbolic_shape` takes them, or of None, which keeps the shape. It may end
            above the leaves of `args`: a text then is for all of them.
        constraints: what is known of the variables.
        scope: the scope of the variables; None for a new one with the `constraints`.

    Returns:
        The structure of `args`, with a ShapeDtypeStruct for each leaf.

    Raises:
        ValueError: the structures do not fit, or as `symbolic_shape`.
        TypeError: a leaf of `args` is no array.

    Example:
        >>> xtrace.export.symbolic_args_specs((jnp.ones((3, 4)), jnp.ones(4)), ("b, ...", None))
        (ShapeDtypeStruct(shape=(b, 4), dtype=float32), ShapeDtypeStruct(shape=(4,), dtype=float32))
    """
    whole = _scope_of("symbolic_args_specs", constraints, scope)
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
        shape = parse_shape("..." if text is None else text, aval.shape, whole)
        structs.append(struct_of(aval.update(shape=shape, weak_type=False)))
    return pytree.tree_unflatten(tree, structs)
