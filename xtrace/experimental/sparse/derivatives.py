"""Derivatives of functions of sparse arrays with respect to the stored elements."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.api.differentiation import grad as dense_derivatives
from xtrace._src.api.differentiation import jacobian as dense_jacobians
from xtrace._src.core.callables import check_callable, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import pytree
from xtrace.experimental.sparse.coordinate_storage import CoordinateStorage
from xtrace.experimental.sparse.row_storage import RowStorage
from xtrace.experimental.sparse.sparse_arrays import JAXSparse
from xtrace.numpy.manipulation.broadcasting import broadcast_to

__all__ = ["grad", "jacfwd", "jacobian", "jacrev", "value_and_grad"]


def _is_sparse(x: object) -> bool:
    return isinstance(x, JAXSparse)


def _get_values(x: Any) -> Any:
    return x.data if _is_sparse(x) else x


def _replace_values(x: Any, values: Any) -> Any:
    """Replace the stored elements of a sparse `x`; for a dense `x` return `values`."""
    if not _is_sparse(x):
        return values
    (_, *rest), info = x.tree_flatten()
    return type(x).tree_unflatten(info, (values, *rest))


class _Arguments:
    """The arguments of a function, and the variables of derivatives: stored elements and dense arrays."""

    def __init__(self, name: str, args: Sequence[Any], argnums: int | Sequence[int]) -> None:
        self.args, self.single = list(args), not isinstance(argnums, Sequence)
        numbers: list[Any] = [argnums] if self.single else list(argnums)  # type: ignore[arg-type]
        if any(not isinstance(i, int) or not -len(args) <= i < len(args) for i in numbers):
            raise ValueError(
                f"{name}: argnums={abbreviate(argnums)} must be positions of the {len(args)} positional arguments"
            )
        self.numbers = [i % len(args) for i in numbers]
        self.leaves, self.tree = pytree.tree_flatten([args[i] for i in self.numbers], is_leaf=_is_sparse)

    @property
    def values(self) -> list[Any]:
        """The variables."""
        return [_get_values(x) for x in self.leaves]

    def insert(self, values: Sequence[Any]) -> list[Any]:
        """Return all arguments, with other values of the variables."""
        leaves = [_replace_values(x, v) for x, v in zip(self.leaves, values, strict=True)]
        args = list(self.args)
        for i, arg in zip(self.numbers, pytree.tree_unflatten(self.tree, leaves), strict=True):
            args[i] = arg
        return args

    def pack(self, results: Sequence[Any]) -> Any:
        """Return one result for each leaf in the structure of the arguments."""
        packed = pytree.tree_unflatten(self.tree, list(results))
        return packed[0] if self.single else tuple(packed)


def value_and_grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False, **kwargs: Any
) -> Callable[..., tuple[Any, Any]]:
    """Return a function of the value and the gradient of `fun`, of sparse arrays with respect to stored elements.

    Args:
        fun: a function that returns a scalar.
        argnums: the position, or positions, of the arguments to differentiate by.
        has_aux: whether `fun` returns a pair of the scalar and other results.
        kwargs: other options of `xtrace.value_and_grad`.

    Returns:
        A function of the arguments of `fun` that returns the pair of the value and the gradient. The gradient by a
        sparse array is a sparse array that stores the same elements.

    Raises:
        TypeError: `fun` is not callable, or does not return a scalar.
        ValueError: `argnums` are no positions of arguments.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.array([0.0, 3.0]))
        >>> value, gradient = sparse.value_and_grad(lambda x: (x @ jnp.array([5.0, 7.0])) ** 2)(mat)
        >>> value, gradient.data
        (Array(441., dtype=float32), Array([294.], dtype=float32))
    """
    check_callable(fun)

    @boundary
    @wraps(fun)
    def function(*args: Any, **keywords: Any) -> tuple[Any, Any]:
        arguments = _Arguments("value_and_grad", args, argnums)
        differentiate = dense_derivatives.value_and_grad(
            lambda values: fun(*arguments.insert(values), **keywords), has_aux=has_aux, **kwargs
        )
        value, gradients = differentiate(arguments.values)
        sparse_gradients = [_replace_values(x, g) for x, g in zip(arguments.leaves, gradients, strict=True)]
        return value, arguments.pack(sparse_gradients)

    return function


def grad(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: Any = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return the gradient function of `fun`, of sparse arrays with respect to stored elements.

    Args:
        fun: a function that returns a scalar.
        argnums: the position, or positions, of the arguments to differentiate by.
        has_aux: whether `fun` returns a pair of the scalar and other results.
        kwargs: other options of `xtrace.grad`.

    Returns:
        A function of the arguments of `fun` that returns the gradient, and with `has_aux` the pair of it and the other
        results. The gradient by a sparse array is a sparse array that stores the same elements.

    Raises:
        TypeError: `fun` is not callable, or does not return a scalar.
        ValueError: `argnums` are no positions of arguments.

    Example:
        >>> from xtrace.experimental import sparse
        >>> mat = sparse.BCOO.fromdense(jnp.arange(6.0))
        >>> sparse.grad(lambda x, y: x @ y)(mat, jnp.ones(6))
        BCOO(float32[6], nse=5)
    """
    differentiate = value_and_grad(fun, argnums, has_aux, **kwargs)

    @boundary
    @wraps(fun)
    def function(*args: Any, **keywords: Any) -> Any:
        value, gradient = differentiate(*args, **keywords)
        return (gradient, value[1]) if has_aux else gradient

    return function


def _pack_jacobian(x: Any, jacobian: Any) -> Any:
    """Return the Jacobian by `x` with the axes of the result, followed by the axes of `x`."""
    if not _is_sparse(x):
        return jacobian
    outer = jacobian.shape[: jacobian.ndim - x.data.ndim]
    if not outer:
        return _replace_values(x, jacobian)
    if not isinstance(x, CoordinateStorage | RowStorage):
        raise NotImplementedError(
            f"the Jacobian by a {type(x).__name__} matrix would need batches, which the format does not have; use BCOO"
        )
    (_, *rest), info = x.tree_flatten()
    rest = [broadcast_to(buffer, (*outer, *buffer.shape)) for buffer in rest]
    return type(x).tree_unflatten(info._replace(shape=(*outer, *x.shape)), (jacobian, *rest))


def _make_jacobian(
    name: str, dense: Callable[..., Any], fun: Callable[..., Any], argnums: int | Sequence[int], has_aux: Any,
    options: dict[str, Any],
) -> Callable[..., Any]:
    check_callable(fun, function=name)

    @boundary
    @wraps(fun)
    def function(*args: Any, **keywords: Any) -> Any:
        arguments = _Arguments(name, args, argnums)
        trees: list[Any] = []

        def evaluate(values: Sequence[Any]) -> Any:
            result = fun(*arguments.insert(values), **keywords)
            leaves, tree = pytree.tree_flatten(result[0] if has_aux else result, is_leaf=_is_sparse)
            if any(map(_is_sparse, leaves)):
                raise TypeError(f"{name}: the function returned a sparse array; convert it with todense() first")
            trees.append(tree)
            return (leaves, result[1]) if has_aux else leaves

        result = dense(evaluate, has_aux=has_aux, **options)(arguments.values)
        rows, aux = result if has_aux else (result, None)
        packed = [
            arguments.pack([_pack_jacobian(x, j) for x, j in zip(arguments.leaves, row, strict=True)]) for row in rows
        ]
        jacobian = pytree.tree_unflatten(trees[-1], packed)
        return (jacobian, aux) if has_aux else jacobian

    return function


def jacfwd(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return the Jacobian function of `fun` in forward mode, of sparse arrays with respect to stored elements.

    Args:
        fun: a function that returns dense arrays.
        argnums: the position, or positions, of the arguments to differentiate by.
        has_aux: whether `fun` returns a pair of the arrays and other results.
        kwargs: other options of `xtrace.jacfwd`.

    Returns:
        A function of the arguments of `fun`. The derivative by a sparse array is a sparse array, whose first batch axes
        are the axes of the result.

    Raises:
        NotImplementedError: the format of a sparse array does not have batches.
        TypeError: `fun` is not callable, or returns a sparse array.
        ValueError: `argnums` are no positions of arguments.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.jacfwd(lambda x: x @ jnp.ones((3, 2)))(sparse.BCOO.fromdense(jnp.arange(3.0)))
        BCOO(float32[2, 3], nse=2, n_batch=1)
    """
    return _make_jacobian("jacfwd", dense_jacobians.jacfwd, fun, argnums, has_aux, kwargs)


def jacrev(
    fun: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False, **kwargs: Any
) -> Callable[..., Any]:
    """Return the Jacobian function of `fun` in reverse mode, of sparse arrays with respect to stored elements.

    Args:
        fun: a function that returns dense arrays.
        argnums: the position, or positions, of the arguments to differentiate by.
        has_aux: whether `fun` returns a pair of the arrays and other results.
        kwargs: other options of `xtrace.jacrev`.

    Returns:
        A function of the arguments of `fun`. The derivative by a sparse array is a sparse array, whose first batch axes
        are the axes of the result.

    Raises:
        NotImplementedError: the format of a sparse array does not have batches.
        TypeError: `fun` is not callable, or returns a sparse array.
        ValueError: `argnums` are no positions of arguments.

    Example:
        >>> from xtrace.experimental import sparse
        >>> sparse.jacrev(lambda x: x @ jnp.ones((3, 2)))(sparse.BCOO.fromdense(jnp.arange(3.0)))
        BCOO(float32[2, 3], nse=2, n_batch=1)
    """
    return _make_jacobian("jacrev", dense_jacobians.jacrev, fun, argnums, has_aux, kwargs)


# jax's other name.
jacobian = jacrev
