"""Initializers of weights: functions of a key, a shape and a dtype."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any, Protocol, runtime_checkable

import numpy as np

from xtrace import numpy as jnp
from xtrace import random
from xtrace._src.algebra.resharding import with_out_sharding
from xtrace._src.algebra.vector_space import canonical_shape, transpose
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike, RealLike, Shape, ShapeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.dtypes import DType
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace.lax import linalg

__all__ = [
    "Initializer", "constant", "delta_orthogonal", "glorot_normal", "glorot_uniform", "he_normal", "he_uniform",
    "kaiming_normal", "kaiming_uniform", "lecun_normal", "lecun_uniform", "normal", "ones", "orthogonal",
    "truncated_normal", "uniform", "variance_scaling", "xavier_normal", "xavier_uniform", "zeros",
]

_Axes = int | Sequence[int]


@runtime_checkable
class Initializer(Protocol):
    """The protocol of initializers: ``initializer(key, shape, dtype=None, out_sharding=None)`` gives an array."""

    def __call__(
        self, key: ArrayLike, shape: ShapeLike, dtype: DTypeLike | None = None, out_sharding: object = None
    ) -> Array:
        """Return an array of `shape` and `dtype`; None stands for the initializer's own dtype."""
        ...


def _make_initializer(name: str, dtype: DTypeLike | None, make: Callable[[Any, Any, Any], Array]) -> Initializer:
    """Return the initializer that calls ``make(key, shape, dtype)`` with a canonical dtype."""

    def init(key: ArrayLike, shape: ShapeLike, dtype: DTypeLike | None = dtype, out_sharding: object = None) -> Array:
        if out_sharding is not None:
            return with_out_sharding(init, out_sharding, key, shape, dtype)
        sizes = None if shape is None else canonical_shape(shape, function=name)
        return make(key, sizes, _choose_dtype(dtype, function=name))

    init.__qualname__ = f"{name}.<locals>.init"
    init.__doc__ = f"Return an array of `shape` and `dtype` by the initializer {name}."
    return init


def _choose_dtype(dtype: DTypeLike | None, *, function: str = "") -> np.dtype[Any]:
    requested = requested_dtype(dtype, function=function)
    return dtypes.default_float(config.enable_x64.value) if requested is None else requested


# Constants


def zeros(key: object, shape: ShapeLike, dtype: DTypeLike | None = None, out_sharding: object = None) -> Array:
    """Return an array of zeros: an initializer that uses no key.

    Args:
        key: not used.
        shape: the shape of the array.
        dtype: the dtype; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        TypeError: `shape` is not a shape.

    Example:
        >>> nn.initializers.zeros(None, (2,))
        Array([0., 0.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(zeros, out_sharding, key, shape, dtype)
    return jnp.full(shape, 0, _choose_dtype(dtype))


def ones(key: object, shape: ShapeLike, dtype: DTypeLike | None = None, out_sharding: object = None) -> Array:
    """Return an array of ones: an initializer that uses no key.

    Args:
        key: not used.
        shape: the shape of the array.
        dtype: the dtype; None for the default floating dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        TypeError: `shape` is not a shape.

    Example:
        >>> nn.initializers.ones(None, (2,))
        Array([1., 1.], dtype=float32)
    """
    if out_sharding is not None:
        return with_out_sharding(ones, out_sharding, key, shape, dtype)
    return jnp.full(shape, 1, _choose_dtype(dtype))


def constant(value: ArrayLike, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of arrays filled with a value.

    Args:
        value: a scalar, or an array that broadcasts to the shape.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape that `value` does not broadcast to.

    Example:
        >>> nn.initializers.constant(2.0)(random.key(0), (2,))
        Array([2., 2.], dtype=float32)
    """
    return _make_initializer(
        "constant", dtype, lambda key, shape, kind: jnp.broadcast_to(jnp.asarray(value, kind), shape)
    )


# Independent elements


def normal(stddev: RealLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of normal numbers of mean 0.

    Args:
        stddev: the standard deviation.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a dtype that is not floating.

    Example:
        >>> nn.initializers.normal(1.0)(random.key(0), (2,)).shape
        (2,)
    """
    return _make_initializer(
        "normal", dtype, lambda key, shape, kind: random.normal(key, shape, kind) * jnp.array(stddev, kind)
    )


def uniform(scale: ArrayLike = 1e-2, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of uniform numbers in [0, scale).

    Args:
        scale: the upper bound.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a dtype that is not floating.

    Example:
        >>> nn.initializers.uniform(1.0)(random.key(0), (2,)).shape
        (2,)
    """
    return _make_initializer(
        "uniform", dtype, lambda key, shape, kind: random.uniform(key, shape, kind) * jnp.array(scale, kind)
    )


def truncated_normal(
    stddev: RealLike = 1e-2, dtype: DTypeLike | None = None, lower: RealLike = -2.0, upper: RealLike = 2.0
) -> Initializer:
    """Return an initializer of normal numbers that lie between two bounds.

    Args:
        stddev: the standard deviation before truncation.
        dtype: the default dtype of the arrays; None for the default floating dtype.
        lower: the lower bound, in standard deviations.
        upper: the upper bound, in standard deviations.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a dtype that is not floating.

    Example:
        >>> nn.initializers.truncated_normal(1.0)(random.key(0), (2,)).shape
        (2,)
    """
    return _make_initializer(
        "truncated_normal", dtype,
        lambda key, shape, kind: random.truncated_normal(key, lower, upper, shape, kind) * jnp.array(stddev, kind),
    )


# Variance scaling: the layer preserves the variance of its input or output

# The standard deviations of real and complex normal numbers truncated at 2.
_TRUNCATED_STDDEV, _COMPLEX_TRUNCATED_STDDEV = 0.87962566103423978, 0.95311164380491208


def _multiply_sizes(shape: Sequence[int], axes: _Axes) -> int:
    try:
        return math.prod([shape[i] for i in ((axes,) if isinstance(axes, int) else axes)])
    except IndexError:
        raise IndexError(f"initializer: axes {axes} are out of bounds for shape {tuple(shape)}") from None


def _count_fans(shape: Sequence[int], in_axis: _Axes, out_axis: _Axes, batch_axis: _Axes) -> tuple[float, float]:
    """Return the number of inputs per output and the number of outputs per input."""
    if len(shape) <= 1:
        raise ValueError(
            f"Can't compute input and output sizes of a {len(shape)}-dimensional weights tensor with these axes; it "
            "must be at least 2D: the shape is " + str(tuple(shape))
        )
    inputs, outputs, batch = [_multiply_sizes(shape, axes) for axes in (in_axis, out_axis, batch_axis)]
    field = math.prod(shape) / inputs / outputs / batch
    return inputs * field, outputs * field


_MODES: dict[str, Callable[[float, float], float]] = {
    "fan_in": lambda fan_in, fan_out: fan_in, "fan_out": lambda fan_in, fan_out: fan_out,
    "fan_avg": lambda fan_in, fan_out: (fan_in + fan_out) / 2,
    "fan_geo_avg": lambda fan_in, fan_out: math.sqrt(fan_in * fan_out),
}


def _draw_phases(key: Array, shape: Shape, dtype: np.dtype[Any]) -> Array:
    """Draw complex numbers of modulus 1 and uniform angle."""
    part = dtypes.real_part_dtype(dtype)
    return jnp.exp(1j * (2 * math.pi * random.uniform(key, shape, part).astype(dtype)))


def _draw_scaled_normal(key: Array, shape: Shape, dtype: np.dtype[Any], variance: Array) -> Array:
    return random.normal(key, shape, dtype) * jnp.sqrt(variance)


def _draw_scaled_uniform(key: Array, shape: Shape, dtype: np.dtype[Any], variance: Array) -> Array:
    if not dtypes.is_complex(dtype):
        return random.uniform(key, shape, dtype, -1) * jnp.sqrt(3 * variance)
    length, angle = random.split(key)
    # Uniform in a disc of area 2 pi, in which the mean square of the modulus is 1.
    radius = jnp.sqrt(2 * random.uniform(length, shape, dtypes.real_part_dtype(dtype)))
    return radius.astype(dtype) * _draw_phases(angle, shape, dtype) * jnp.sqrt(variance)


def _draw_scaled_truncated_normal(key: Array, shape: Shape, dtype: np.dtype[Any], variance: Array) -> Array:
    if not dtypes.is_complex(dtype):
        scale = jnp.sqrt(variance) / jnp.array(_TRUNCATED_STDDEV, dtype)
        return random.truncated_normal(key, -2, 2, shape, dtype) * scale
    length, angle = random.split(key)
    # The squared modulus is exponentially distributed, truncated at 4.
    level = (1 - math.exp(-4)) * random.uniform(length, shape, dtypes.real_part_dtype(dtype)).astype(dtype)
    radius = jnp.sqrt(-jnp.log(1 - level))
    scale = jnp.sqrt(variance) / jnp.array(_COMPLEX_TRUNCATED_STDDEV, dtype)
    return radius * _draw_phases(angle, shape, dtype) * scale


_DISTRIBUTIONS: dict[str, Callable[..., Array]] = {
    "normal": _draw_scaled_normal, "uniform": _draw_scaled_uniform, "truncated_normal": _draw_scaled_truncated_normal
}


def variance_scaling(
    scale: ArrayLike, mode: str, distribution: str, in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (),
    dtype: DTypeLike | None = None,
) -> Initializer:
    """Return an initializer of numbers of mean 0 and variance `scale` / n, for a number n of inputs or outputs.

    Args:
        scale: the variance times n.
        mode: the number n: "fan_in", the number of inputs of an output; "fan_out", the number of outputs of an input;
            "fan_avg" or "fan_geo_avg", the arithmetic or the geometric mean of both.
        distribution: "normal", "truncated_normal", truncated at two standard deviations, or "uniform".
        in_axis: the axis, or axes, of the inputs.
        out_axis: the axis, or axes, of the outputs.
        batch_axis: the axis, or axes, of neither, which do not count.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the mode or the distribution is unknown, or the initializer is called with a shape of too few axes.

    Example:
        >>> nn.initializers.variance_scaling(1.0, "fan_in", "normal")(random.key(0), (3, 2)).shape
        (3, 2)

    Reference:
        LeCun, Bottou, Orr and Müller, "Efficient BackProp" (1998).
    """

    def make(key: Array, shape: Shape, kind: DType) -> Array:
        fans = _count_fans(shape, in_axis, out_axis, batch_axis)
        if mode not in _MODES:
            raise ValueError(f"invalid mode for variance scaling initializer: {mode}; use one of {', '.join(_MODES)}")
        if distribution not in _DISTRIBUTIONS:
            raise ValueError(
                f"invalid distribution for variance scaling initializer: {distribution}; use one of "
                f"{', '.join(_DISTRIBUTIONS)}"
            )
        variance = jnp.array(scale / _MODES[mode](*fans), kind)
        return _DISTRIBUTIONS[distribution](key, shape, kind, variance)

    return _make_initializer("variance_scaling", dtype, make)


def glorot_uniform(
    in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of uniform numbers of variance 1 / n, for the mean n of inputs and outputs.

    Args:
        in_axis: the axis, or axes, of the inputs.
        out_axis: the axis, or axes, of the outputs.
        batch_axis: the axis, or axes, of neither, which do not count.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape of too few axes.

    Example:
        >>> nn.initializers.glorot_uniform()(random.key(0), (3, 2)).shape
        (3, 2)

    Reference:
        Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010).
    """
    return variance_scaling(1.0, "fan_avg", "uniform", in_axis, out_axis, batch_axis, dtype)


def glorot_normal(
    in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of truncated normal numbers of variance 1 / n, for the mean n of inputs and outputs.

    Args:
        in_axis: the axis, or axes, of the inputs.
        out_axis: the axis, or axes, of the outputs.
        batch_axis: the axis, or axes, of neither, which do not count.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape of too few axes.

    Example:
        >>> nn.initializers.glorot_normal()(random.key(0), (3, 2)).shape
        (3, 2)

    Reference:
        Glorot and Bengio, "Understanding the difficulty of training deep feedforward neural networks" (2010).
    """
    return variance_scaling(1.0, "fan_avg", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def lecun_uniform(
    in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of uniform numbers of variance 1 / n, for n inputs.

    Args:
        in_axis: the axis, or axes, of the inputs.
        out_axis: the axis, or axes, of the outputs.
        batch_axis: the axis, or axes, of neither, which do not count.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape of too few axes.

    Example:
        >>> nn.initializers.lecun_uniform()(random.key(0), (3, 2)).shape
        (3, 2)

    Reference:
        LeCun, Bottou, Orr and Müller, "Efficient BackProp" (1998).
    """
    return variance_scaling(1.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def lecun_normal(
    in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of truncated normal numbers of variance 1 / n, for n inputs.

    Args:
        in_axis: the axis, or axes, of the inputs.
        out_axis: the axis, or axes, of the outputs.
        batch_axis: the axis, or axes, of neither, which do not count.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape of too few axes.

    Example:
        >>> nn.initializers.lecun_normal()(random.key(0), (3, 2)).shape
        (3, 2)

    Reference:
        LeCun, Bottou, Orr and Müller, "Efficient BackProp" (1998).
    """
    return variance_scaling(1.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


def he_uniform(
    in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of uniform numbers of variance 2 / n, for n inputs.

    Args:
        in_axis: the axis, or axes, of the inputs.
        out_axis: the axis, or axes, of the outputs.
        batch_axis: the axis, or axes, of neither, which do not count.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape of too few axes.

    Example:
        >>> nn.initializers.he_uniform()(random.key(0), (3, 2)).shape
        (3, 2)

    Reference:
        He, Zhang, Ren and Sun, "Delving deep into rectifiers" (2015).
    """
    return variance_scaling(2.0, "fan_in", "uniform", in_axis, out_axis, batch_axis, dtype)


def he_normal(
    in_axis: _Axes = -2, out_axis: _Axes = -1, batch_axis: _Axes = (), dtype: DTypeLike | None = None
) -> Initializer:
    """Return an initializer of truncated normal numbers of variance 2 / n, for n inputs.

    Args:
        in_axis: the axis, or axes, of the inputs.
        out_axis: the axis, or axes, of the outputs.
        batch_axis: the axis, or axes, of neither, which do not count.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape of too few axes.

    Example:
        >>> nn.initializers.he_normal()(random.key(0), (3, 2)).shape
        (3, 2)

    Reference:
        He, Zhang, Ren and Sun, "Delving deep into rectifiers" (2015).
    """
    return variance_scaling(2.0, "fan_in", "truncated_normal", in_axis, out_axis, batch_axis, dtype)


xavier_uniform, xavier_normal = glorot_uniform, glorot_normal
kaiming_uniform, kaiming_normal = he_uniform, he_normal


# Orthogonal matrices


def _draw_orthogonal_matrix(key: Array, rows: int, columns: int, dtype: np.dtype[Any]) -> Array:
    """Draw a uniformly distributed matrix with orthonormal columns, or rows if these are fewer.

    It is the factor Q of a normal matrix, each column times the sign of R's diagonal element (Mezzadri, How to generate
    random matrices from the classical compact groups, 2007).
    """
    gaussian = random.normal(key, (max(rows, columns), min(rows, columns)), dtype)
    factor, triangle = linalg.qr(gaussian, full_matrices=False)
    matrix = factor * jnp.sign(jnp.diagonal(triangle))[None]
    return matrix if rows >= columns else transpose(matrix, (1, 0))


def orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of multiples of orthogonal matrices.

    Args:
        scale: the factor.
        column_axis: the axis of the columns; the other axes together are the rows.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape of fewer than two axes.

    Example:
        >>> nn.initializers.orthogonal()(random.key(0), (2, 2)).shape
        (2, 2)

    Reference:
        Saxe, McClelland and Ganguli, "Exact solutions to the nonlinear dynamics of learning in deep linear neural
        networks" (2014).
    """

    def make(key: Array, shape: Shape, kind: DType) -> Array:
        if len(shape) < 2:
            raise ValueError(f"orthogonal initializer requires at least a 2D shape, got {tuple(shape)}")
        columns = shape[column_axis]
        matrix = _draw_orthogonal_matrix(key, math.prod(shape) // columns if columns else 0, columns, kind)
        others = [n for i, n in enumerate(shape) if i != column_axis % len(shape)]
        return jnp.array(scale, kind) * jnp.moveaxis(matrix.reshape((*others, columns)), -1, column_axis)

    return _make_initializer("orthogonal", dtype, make)


def delta_orthogonal(scale: ArrayLike = 1.0, column_axis: int = -1, dtype: DTypeLike | None = None) -> Initializer:
    """Return an initializer of kernels that are an orthogonal matrix at their center, and 0 elsewhere.

    Args:
        scale: the factor.
        column_axis: the axis of the columns.
        dtype: the default dtype of the arrays; None for the default floating dtype.

    Returns:
        An initializer ``initializer(key, shape, dtype=None, out_sharding=None)``, which returns an array.

    Raises:
        ValueError: the initializer is called with a shape of other than three to five axes, or with more inputs than
            outputs.

    Example:
        >>> nn.initializers.delta_orthogonal()(random.key(0), (3, 2, 2)).shape
        (3, 2, 2)

    Reference:
        Xiao, Bahri, Sohl-Dickstein, Schoenholz and Pennington, "Dynamical isometry and a mean field theory of CNNs"
        (2018).
    """

    def make(key: Array, shape: Shape, kind: DType) -> Array:
        if len(shape) not in (3, 4, 5):
            raise ValueError(f"Delta orthogonal initializer requires a 3D, 4D or 5D shape, got {tuple(shape)}")
        if shape[-1] < shape[-2]:
            raise ValueError(f"`fan_in` must be less or equal than `fan_out`, got {shape[-2]} and {shape[-1]}")
        matrix = orthogonal(scale, column_axis, kind)(key, shape[-2:])
        windows = tuple(shape[:-2])
        if not all(windows):
            return jnp.full(shape, 0, kind)
        middle = sum([((n - 1) // 2) * math.prod(windows[i + 1 :]) for i, n in enumerate(windows)])
        before, after = [jnp.full((n, *shape[-2:]), 0, kind) for n in (middle, math.prod(windows) - middle - 1)]
        return jnp.concatenate([before, matrix[None], after]).reshape(tuple(shape))

    return _make_initializer("delta_orthogonal", dtype, make)


_make_public(globals(), __all__)
