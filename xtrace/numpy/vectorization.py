"""Functions of numbers or slices mapped over arrays: vectorize, apply_along_axis, apply_over_axes."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import canonical_axis, check_broadcast
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.api.operators.promotion import check_mapped_ranks
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.array_protocol import array_boundary
from xtrace._src.core.arrays import Array
from xtrace._src.core.callables import wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees import pytree
from xtrace._src.ops.arrays.shape import expand_dims, squeeze
from xtrace.numpy.arrays.conversion import asarray, to_array_operand

_Names = tuple[str, ...]
_TERM = r"\((?:\s*\w+\s*(?:,\s*\w+\s*)*)?\)"
_TERMS = rf"\s*{_TERM}\s*(?:,\s*{_TERM}\s*)*"
_SIGNATURE = re.compile(rf"{_TERMS}->{_TERMS}")


class _Signature(NamedTuple):
    """The names of the core axes of each argument and each result."""

    inputs: tuple[_Names, ...]
    outputs: tuple[_Names, ...]


def _parse_signature(text: str) -> _Signature:
    if not _SIGNATURE.fullmatch(text):
        raise ValueError(f"vectorize: signature must look like '(n,m),(m)->(n)', got {abbreviate(text)}")
    sides = [tuple([tuple(re.findall(r"\w+", term)) for term in re.findall(_TERM, side)]) for side in text.split("->")]
    return _Signature(*sides)


def vectorize(
    pyfunc: Callable[..., Any], *, excluded: Collection[int | str] = frozenset(), signature: str | None = None
) -> Callable[..., Any]:
    """Return a function of arrays, which broadcast, from a function of single numbers.

    Args:
        pyfunc: the function, which is traced and mapped by `vmap`.
        excluded: positions and names of arguments to pass on unchanged.
        signature: the axes that `pyfunc` itself takes and returns, such as ``"(n,m),(m)->(n)"``; None for none.
            An argument None is passed on unchanged.

    Returns:
        A function.

    Raises:
        TypeError: at the call, an argument is not an array, or the number of arguments differs.
        ValueError: `signature` cannot be read, or, at the call, arguments or results do not fit it.

    Example:
        >>> jnp.vectorize(jnp.dot, signature='(n),(n)->()')(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    if any(not isinstance(exclude, (str, int)) for exclude in excluded):
        raise TypeError(f"vectorize can only exclude integer or string arguments, but excluded={abbreviate(excluded)}")
    if any(isinstance(exclude, int) and exclude < 0 for exclude in excluded):
        raise ValueError(f"vectorize: excluded={abbreviate(excluded)} contains negative numbers; count from the front")
    without = frozenset(excluded)
    parsed = None if signature is None else _parse_signature(signature)
    about = f"of the function vectorized with excluded={set(without) or '{}'} and signature={signature!r}"

    @array_boundary
    @wraps(pyfunc)
    def vectorized(*args: Array, **kwargs: object) -> Any:
        mapped = [i for i, x in enumerate(args) if i not in without and (x is not None or parsed is None)]
        names = [k for k in kwargs if k not in without]
        if names:
            raise TypeError(
                f"vectorize: the argument {abbreviate(names[0])} {about} must be given by position, or be in excluded"
            )

        def function(*values: Any) -> Any:
            full = list(args)
            for i, value in zip(mapped, values, strict=True):
                full[i] = value
            return pyfunc(*full, **kwargs)

        cores: tuple[_Names, ...] = ((),) * len(mapped)
        if parsed is not None:
            signed = [i for i in range(len(args)) if i not in without]
            if len(parsed.inputs) != len(signed):
                raise TypeError(
                    f"vectorize: wrong number of positional arguments {about}: expected {len(parsed.inputs)}, got "
                    f"{len(signed)}; those in excluded have no place in the signature"
                )
            of_argument = dict(zip(signed, parsed.inputs, strict=True))
            for i, core in of_argument.items():
                if args[i] is None and core:
                    raise ValueError(
                        f"vectorize: argument {i} {about} is None, which has no axes {core}; name it in excluded"
                    )
            cores = tuple([of_argument[i] for i in mapped])
        values = [asarray(args[i]) for i in mapped]
        sizes = _find_core_sizes(values, cores, about)
        if parsed is not None:
            function = _check_results(function, parsed.outputs, sizes, about)
        check_mapped_ranks([x.shape for x in values], [len(core) for core in cores], function=f"vectorize {about}")
        return _map_over_batch(function, values, [x.ndim - len(core) for x, core in zip(values, cores, strict=True)])

    return vectorized


def _find_core_sizes(values: list[Any], cores: Iterable[_Names], about: str) -> dict[str, int]:
    """Return the length of each named axis; ValueError where two differ, or an array has too few axes."""
    sizes: dict[str, int] = {}
    for value, names in zip(values, cores, strict=True):
        if value.ndim < len(names):
            raise ValueError(
                f"vectorize: input with shape {value.shape} does not have enough dimensions for all core dimensions "
                f"{names} {about}"
            )
        _check_sizes(value.shape[value.ndim - len(names) :], names, sizes, about)
    return sizes


def _check_sizes(shape: tuple[int, ...], names: _Names, sizes: dict[str, int], about: str) -> None:
    for name, size in zip(names, shape, strict=True):
        if sizes.setdefault(name, size) != size:
            raise ValueError(
                f"vectorize: inconsistent size for core dimension {abbreviate(name)}: {size} vs {sizes[name]} {about}"
            )


def _check_results(
    function: Callable[..., Any], outputs: tuple[_Names, ...], sizes: dict[str, int], about: str
) -> Callable[..., Any]:
    """Return `function` with a check of its results against its signature."""

    def call(*values: ArrayLike) -> Any:
        output = function(*values)
        results = output if isinstance(output, (list, tuple)) else (output,)
        if len(outputs) > 1 and not isinstance(output, (list, tuple)):
            raise TypeError(f"vectorize: output must be a tuple {about}; got {abbreviate(output)}")
        if len(results) != len(outputs):
            raise TypeError(
                f"vectorize: wrong number of output arguments {about}: expected {len(outputs)}, got {len(results)}"
            )
        known = dict(sizes)
        for result, names in zip(results, outputs, strict=True):
            shape = asarray(result).shape
            if len(shape) != len(names):
                raise ValueError(f"vectorize: output shape {shape} does not match core dimensions {names} {about}")
            _check_sizes(shape, names, known, about)
        return output

    return call


def _map_over_batch(function: Callable[..., Any], values: list[Any], ranks: list[int]) -> Any:
    """Return `function` mapped over the broadcast leading axes of `values`; `ranks` are their numbers."""
    whole = check_broadcast([x.shape[:rank] for x, rank in zip(values, ranks, strict=True)])
    ready, kept = [], []
    for x, rank in zip(values, ranks, strict=True):
        axes = range(len(whole) - rank, len(whole))
        # Axes of size 1 are not mapped, so no elements are repeated; axes of size 1 in all arrays are added at the end.
        kept.append([axis for axis in axes if x.shape[axis - len(whole) + rank] != 1])
        ready.append(squeeze(x, [i for i, axis in enumerate(axes) if axis not in kept[-1]]))
    for axis in reversed(range(len(whole))):
        positions = tuple([0 if axis in own else None for own in kept])
        if 0 in positions:
            function = vmap(function, in_axes=positions)
    result = function(*ready)
    added = [axis for axis, size in enumerate(whole) if size == 1]
    if added:
        return pytree.tree_map(lambda x: expand_dims(asarray(x), added), result)
    return result if whole else pytree.tree_map(asarray, result)


def apply_along_axis(
    func1d: Callable[..., Array], axis: int, arr: ArrayLike, *args: ArrayLike, **kwargs: object
) -> Array:
    """Apply a function to every vector of an array along an axis.

    Args:
        func1d: a function of a vector, which is traced and mapped by `vmap`.
        axis: the axis of the vectors.
        arr: an array.
        args, kwargs: further arguments of the function.

    Returns:
        An array, with the axes of the function's result in place of `axis`.

    Raises:
        TypeError: `arr` is not an array.
        ValueError: `arr` has no such axis.

    Example:
        >>> jnp.apply_along_axis(jnp.sum, 0, jnp.array([[1, 2], [3, 4]]))
        Array([4, 6], dtype=int32)
    """
    arr = to_array_operand(arr)
    along = canonical_axis(axis, arr.ndim)

    def function(vector: Array) -> Array:
        return func1d(vector, *args, **kwargs)

    # In the result, the axes after `axis` follow the axes of the function's result.
    for i in range(1, arr.ndim - along):
        function = vmap(function, in_axes=i, out_axes=-1)
    for _ in range(along):
        function = vmap(function)
    return function(arr)


def apply_over_axes(func: Callable[[Any, int], Any], a: Any, axes: Iterable[int]) -> Any:
    """Apply a function over one axis after the other.

    Args:
        func: a function of an array and an axis; an axis that it removes comes back, with size 1.
        a: an array.
        axes: the axes.

    Returns:
        An array of the rank of `a`.

    Raises:
        TypeError: `a` is not an array.
        ValueError: the function returns an array of another rank.

    Example:
        >>> jnp.apply_over_axes(jnp.sum, jnp.array([[1, 2], [3, 4]]), [0])
        Array([[4, 6]], dtype=int32)
    """
    a = to_array_operand(a)
    for axis in axes:
        applied = func(a, axis)
        if applied.ndim == a.ndim:
            a = applied
        elif applied.ndim == a.ndim - 1:
            a = expand_dims(applied, (canonical_axis(axis, a.ndim),))
        else:
            raise ValueError(
                "apply_over_axes: the function must give an array of as many dimensions, or one less; it made "
                f"{applied.shape} of the shape {a.shape}"
            )
    return a
