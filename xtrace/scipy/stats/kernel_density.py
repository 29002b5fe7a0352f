"""Densities estimated from samples, by a normal distribution around each of them."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Sequence
from typing import Any, NoReturn, Union

import numpy as np

from xtrace._src.algebra.vector_space import convert_to, operand_aval
from xtrace._src.api.jit.inline_jit import inline_jit
from xtrace._src.api.operators.promotion import as_inexact, common_dtype
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees.pytree_registration import register_pytree_node_class
from xtrace.nn.normalization import logsumexp
from xtrace.numpy.arrays.creation import full, zeros
from xtrace.numpy.arrays.scalar_types import isscalar
from xtrace.numpy.elementwise.ufuncs import exp, log, sqrt, square
from xtrace.numpy.linalg import cholesky, inv
from xtrace.numpy.manipulation.rearrangement import diagonal
from xtrace.numpy.manipulation.shapes import atleast_2d, moveaxis
from xtrace.numpy.operands import cast_to
from xtrace.numpy.products.contraction import matmul
from xtrace.numpy.reductions.covariances import cov
from xtrace.numpy.reductions.reductions import sum
from xtrace.random.discrete import choice
from xtrace.random.keys import split
from xtrace.random.multivariate import multivariate_normal
from xtrace.scipy.special.normal import ndtr
from xtrace.scipy.stats.multivariate_normal import logpdf as normal_logpdf

# The name of a rule, a factor, or a function that returns a factor.
_Bandwidth = Union[str, float, Array, Callable[["gaussian_kde"], Any], None]  # noqa: UP007


@inline_jit
def _normalize_weights(dataset: Array, weights: Array | None) -> tuple[Array, Array]:
    """Return the effective number of samples, and normalized weights; without weights they are equal."""
    count = dataset.shape[1]
    shares = full((count,), 1 / count, dataset.dtype) if weights is None else weights / sum(weights)
    return 1 / sum(square(shares)), shares


@inline_jit
def _compute_covariances(
    dataset: Array, weights: Array, neff: Array, factor: ArrayLike | None, *, rule: str
) -> tuple[Array, Array]:
    """Return the kernels' covariance (the data's covariance times the squared bandwidth) and its inverse."""
    d = dataset.shape[0]
    base = neff * (d + 2) / 4 if rule == "silverman" else neff
    factor = square(base ** (-1 / (d + 4)) if factor is None else factor)
    covariance = atleast_2d(cov(dataset, rowvar=True, bias=False, aweights=weights))
    return covariance * factor, inv(covariance) / factor


def _evaluate_log_kernels(dataset: Array, inverse: Array, points: Array) -> Array:
    """Return (points, samples): the log density at a point of the normal distribution around a sample."""
    factor = cholesky(inverse)
    samples, places = [matmul(x.T, factor, precision="highest") for x in (dataset, points)]
    distances = sum(square(places[:, None] - samples[None]), -1)
    return sum(log(diagonal(factor))) - dataset.shape[0] * math.log(2 * math.pi) / 2 - distances / 2


@inline_jit
def _evaluate_density(dataset: Array, weights: Array, inverse: Array, points: Array, *, logarithm: bool) -> Array:
    kernels = _evaluate_log_kernels(dataset, inverse, points)
    return logsumexp(kernels, -1, weights[None]) if logarithm else sum(exp(kernels) * weights[None], -1)


@inline_jit
def _integrate_with_normal(dataset: Array, weights: Array, covariance: Array, mean: Any, cov: Any) -> Array:
    density = normal_logpdf(dataset.T, mean.reshape((1, -1)), covariance + cov.reshape(covariance.shape))
    return sum(exp(density) * weights)


@inline_jit
def _integrate_product(first: Sequence[Any], second: Sequence[Any]) -> Array:
    """Return the integral of the product of two densities; each has samples, weights and a covariance."""
    (x, x_weights, x_covariance), (y, y_weights, y_covariance) = first, second
    # For two normal distributions this is a normal density at the difference of their means.
    products = exp(normal_logpdf(x.T[:, None], y.T[None], x_covariance + y_covariance))
    return sum(products * x_weights[:, None] * y_weights[None])


@inline_jit
def _integrate_interval(dataset: Array, weights: Array, covariance: Array, low: ArrayLike, high: ArrayLike) -> Array:
    deviation = sqrt(covariance[0, 0])
    below = [ndtr((limit - dataset[0]) / deviation) for limit in (low, high)]
    return sum(weights * (below[1] - below[0]))


@register_pytree_node_class
@dataclasses.dataclass(frozen=True, init=False, eq=False, slots=True)
class gaussian_kde:
    """The density of a sample: the mean of normal distributions around its elements.

    It is a pytree of its arrays: transformed functions take and return it.

    Args:
        dataset: an array (d, n), n vectors of d numbers, or (n,).
        bw_method: the ratio of a kernel's deviation to the deviation of the data: ``"scott"`` or None,
            ``"silverman"``, a number, or a function of this object.
        weights: an array (n,), the weight of each vector; None for equal ones.

    Raises:
        NotImplementedError: the data are complex.
        ValueError: there are fewer than two numbers, the weights have another shape, or there is no such method.

    Example:
        >>> scipy.stats.gaussian_kde(jnp.array([0.0, 1.0])).pdf(jnp.array([0.5])).shape
        (1,)
    """

    neff: Array
    dataset: Array
    weights: Array
    covariance: Array
    inv_cov: Array

    def __init__(self, dataset: ArrayLike, bw_method: _Bandwidth = None, weights: Array | None = None) -> None:
        operands = (dataset,) if weights is None else (dataset, weights)
        avals, dtype, _ = common_dtype(operands, as_inexact, function="gaussian_kde")
        if dtypes.is_complex(avals[0].dtype):
            raise NotImplementedError("gaussian_kde: complex data are not supported; give real and imaginary parts")
        if avals[0].ndim > 2 or avals[0].size < 2:
            raise ValueError(
                "gaussian_kde: dataset must have shape (d, n) or (n,) and multiple elements; "
                f"got shape {avals[0].shape}"
            )
        data = atleast_2d(cast_to(dataset, avals[0], dtype))
        if weights is not None and avals[1].shape != data.shape[1:]:
            raise ValueError(
                f"gaussian_kde: weights must be a vector, one for each of the {data.shape[1]} samples; "
                f"got shape {avals[1].shape}"
            )
        neff, normalized = _normalize_weights(data, None if weights is None else cast_to(weights, avals[1], dtype))
        self._set_fields(neff=neff, dataset=data, weights=normalized)
        covariance, inverse = self._scale_covariance(bw_method)
        self._set_fields(covariance=covariance, inv_cov=inverse)

    def _set_fields(self, **fields: Any) -> None:
        for name, value in fields.items():
            object.__setattr__(self, name, value)

    def _scale_covariance(self, bw_method: _Bandwidth) -> tuple[Array, Array]:
        """Return the covariance and its inverse."""
        factor: Any = None
        rule = "scott" if bw_method is None else bw_method
        if not isinstance(bw_method, str) and (callable(bw_method) or isscalar(bw_method)):
            rule, factor = "given", bw_method(self) if callable(bw_method) else bw_method
        elif not isinstance(rule, str) or rule not in ("scott", "silverman"):
            raise ValueError(
                "gaussian_kde: `bw_method` must be 'scott', 'silverman', a scalar or a function; got "
                f"{abbreviate(bw_method)}"
            )
        return _compute_covariances(self.dataset, self.weights, self.neff, factor, rule=rule)

    def tree_flatten(self) -> tuple[tuple[Any, ...], None]:
        """Return the arrays."""
        return (self.neff, self.dataset, self.weights, self.covariance, self.inv_cov), None

    @classmethod
    def tree_unflatten(cls, aux_data: None, children: Sequence[Any]) -> gaussian_kde:
        """Return an object that holds the given arrays."""
        estimate = object.__new__(cls)
        estimate._set_fields(**dict(zip(cls.__slots__, children, strict=True)))
        return estimate

    @property
    def d(self) -> int:
        """The dimension of the samples."""
        return int(self.dataset.shape[0])

    @property
    def n(self) -> int:
        """The number of samples."""
        return int(self.dataset.shape[1])

    def _to_columns(self, function: str, points: ArrayLike) -> tuple[Array, np.dtype[Any]]:
        """Return `points` as columns, and the dtype of results."""
        aval = operand_aval(points, 0, function=function)
        if dtypes.is_complex(aval.dtype):
            raise NotImplementedError(f"gaussian_kde.{function}: complex points are not supported")
        _, dtype, _ = common_dtype((points, self.dataset), as_inexact, function=function)
        places = atleast_2d(cast_to(points, aval, dtype))
        if places.ndim == 2 and places.shape == (1, self.d):
            places = places.T
        if places.ndim > 2 or places.shape[0] != self.d:
            raise ValueError(
                f"gaussian_kde.{function}: points must have shape (d, m) with d = {self.d}, the dimension of the "
                f"dataset; got shape {aval.shape}"
            )
        return places, dtype

    def _evaluate_at(self, function: str, points: ArrayLike, logarithm: bool) -> Array:
        places, dtype = self._to_columns(function, points)
        dataset, weights, inverse = [convert_to(x, dtype) for x in (self.dataset, self.weights, self.inv_cov)]
        return _evaluate_density(dataset, weights, inverse, places, logarithm=logarithm)

    def evaluate(self, points: ArrayLike) -> Array:
        """Return the densities (m,) at `points` of shape (d, m), (d,) for one point, or (m,) if d is 1.

        ValueError for other shapes, NotImplementedError for complex points.
        """
        return self._evaluate_at("evaluate", points, False)

    def __call__(self, points: ArrayLike) -> Array:
        """Return the density at `points`, as `evaluate`."""
        return self.evaluate(points)

    def pdf(self, x: ArrayLike) -> Array:
        """Return the density at `x`, as `evaluate`."""
        return self.evaluate(x)

    def logpdf(self, x: ArrayLike) -> Array:
        """Return the logarithm of the density at `x`, without underflow; shapes and errors as in `evaluate`."""
        return self._evaluate_at("logpdf", x, True)

    def integrate_gaussian(self, mean: ArrayLike, cov: ArrayLike) -> Array:
        """Return the integral of the density times the normal density of `mean`, (d,), and `cov`, (d, d).

        ValueError for other shapes; where d is 1 they may be numbers.
        """
        sizes = [operand_aval(x, i) for i, x in enumerate((mean, cov))]
        shape = tuple([n for n in sizes[0].shape if n != 1]) or (1,)
        if shape != (self.d,):
            raise ValueError(f"gaussian_kde.integrate_gaussian: mean does not have dimension {self.d}: {sizes[0]}")
        matrix = (1,) * (2 - sizes[1].ndim) + sizes[1].shape
        if matrix != (self.d, self.d):
            raise ValueError(f"gaussian_kde.integrate_gaussian: cov does not have dimension {self.d}: {sizes[1]}")
        return _integrate_with_normal(self.dataset, self.weights, self.covariance, mean, cov)

    def integrate_box_1d(self, low: ArrayLike, high: ArrayLike) -> Array:
        """Return the integral of the density from `low` to `high`. ValueError unless d is 1 and both are scalars."""
        if self.d != 1:
            raise ValueError(f"gaussian_kde.integrate_box_1d: the data must be 1-dimensional, got dimension {self.d}")
        limits = [operand_aval(x, i) for i, x in enumerate((low, high))]
        if limits[0].shape or limits[1].shape:
            raise ValueError(
                "gaussian_kde.integrate_box_1d: the limits of integration must be scalars; "
                f"got {limits[0]} and {limits[1]}"
            )
        return _integrate_interval(self.dataset, self.weights, self.covariance, low, high)

    def integrate_kde(self, other: gaussian_kde) -> Array:
        """Return the integral of the product of the densities of this object and `other`.

        ValueError where the dimensions differ, TypeError unless `other` is a gaussian_kde.
        """
        if not isinstance(other, gaussian_kde):
            raise TypeError(f"gaussian_kde.integrate_kde: other must be a gaussian_kde, got {type(other).__name__}")
        if other.d != self.d:
            raise ValueError(
                f"gaussian_kde.integrate_kde: KDEs are not the same dimensionality, {self.d} and {other.d}"
            )
        parts = [(x.dataset, x.weights, x.covariance) for x in (self, other)]
        return _integrate_product(*parts)

    def integrate_box(self, low_bounds: ArrayLike, high_bounds: ArrayLike, maxpts: int | None = None) -> NoReturn:
        """Raise NotImplementedError: only integrals over intervals are implemented, by `integrate_box_1d`."""
        raise NotImplementedError("gaussian_kde.integrate_box: only 1D integrations are supported: integrate_box_1d")

    def set_bandwidth(self, bw_method: _Bandwidth = None) -> NoReturn:
        """Raise NotImplementedError: the object does not change; make a new one with another `bw_method`."""
        raise NotImplementedError(
            "gaussian_kde.set_bandwidth: changing the bandwidth of an object is not supported; make a new "
            "gaussian_kde(dataset, bw_method)"
        )

    def resample(self, key: ArrayLike, shape: Sequence[int] = ()) -> Array:
        """Return a sample of the density, of shape (d, *shape). TypeError unless the shape is a sequence."""
        which, around = split(key)
        chosen = choice(which, self.n, shape, p=self.weights)
        noise = multivariate_normal(around, zeros(self.d, self.covariance.dtype), self.covariance, shape)
        return self.dataset[:, chosen] + moveaxis(noise, -1, 0)
