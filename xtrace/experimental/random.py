"""A random number generator with a state (``jax.experimental.random``)."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import Any

import numpy as np

from xtrace._src.core.arrays import Array
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.core.trace import base_trace, current_trace
from xtrace._src.ops.references.reference import Ref, addupdate, new_ref
from xtrace.numpy import asarray, broadcast_shapes, shape, zeros
from xtrace.random import fold_in, normal, randint, split, uniform
from xtrace.random import key as make_key
from xtrace.tree_util import register_dataclass

__all__ = ["StatefulPRNG", "stateful_rng"]


def _to_shape(size: int | Sequence[int] | None, *operands: Any) -> tuple[int, ...]:
    """Return `size` as a shape, or for None the broadcast shape of the operands."""
    if size is None:
        return tuple(broadcast_shapes(*[shape(x) for x in operands]))
    return (int(size),) if isinstance(size, (int, np.integer)) else tuple(size)


def _new_counter() -> Ref:
    # Up to jax 0.10 the counter is weakly typed.
    return new_ref(zeros((), int) if is_newer() else 0)


@dataclasses.dataclass(frozen=True)
class StatefulPRNG:
    """A generator of random numbers: a key, and a counter that each draw increments.

    `stateful_rng` makes it. Compiled functions can take a generator and draw from it. They cannot return it, and loops
    cannot carry it, since the counter is a reference.

    Args:
        _base_key: a random key.
        _counter: a reference to an integer.

    Example:
        >>> from xtrace.experimental.random import stateful_rng
        >>> rng = stateful_rng(0)
        >>> rng.uniform(), rng.integers(0, 10, 2)
        (Array(0.8423141, dtype=float32), Array([2, 2], dtype=int32))
    """

    _base_key: Any
    _counter: Ref

    @boundary
    def key(self, shape: int | Sequence[int] = ()) -> Array:
        """Return a new key, or an array of keys of a shape."""
        if self._base_key.shape:
            raise ValueError(
                f"StatefulPRNG: cannot operate on an array of generators, here of shape {self._base_key.shape}; map a "
                "function over it with vmap, or make a list of generators with spawn"
            )
        count = self._counter[...]
        addupdate(self._counter, ..., 1)
        fresh = fold_in(self._base_key, count)
        sizes = _to_shape(shape)
        return split(fresh, sizes) if sizes else fresh

    @boundary
    def random(self, size: int | Sequence[int] | None = None, dtype: Any = float) -> Array:
        """Draw floating numbers from [0, 1)."""
        return uniform(self.key(), _to_shape(size), dtype)

    @boundary
    def uniform(
        self, low: Any = 0, high: Any = 1, size: int | Sequence[int] | None = None, *, dtype: Any = float
    ) -> Array:
        """Draw floating numbers from [low, high); without a size, in the broadcast shape of the bounds."""
        return uniform(self.key(), _to_shape(size, low, high), dtype, minval=low, maxval=high)

    @boundary
    def normal(
        self, loc: Any = 0, scale: Any = 1, size: int | Sequence[int] | None = None, *, dtype: Any = float
    ) -> Array:
        """Draw from the normal distribution with mean `loc` and standard deviation `scale`."""
        return asarray(loc + normal(self.key(), _to_shape(size, loc, scale), dtype) * scale)

    @boundary
    def integers(
        self, low: Any, high: Any = None, size: int | Sequence[int] | None = None, *, dtype: Any = int
    ) -> Array:
        """Draw integers from [low, high); with one bound, from 0 up to that bound."""
        low, high = (0, low) if high is None else (low, high)
        return randint(self.key(), _to_shape(size, low, high), low, high, dtype)

    @boundary
    def spawn(self, n_children: int) -> list[StatefulPRNG]:
        """Return a list of `n_children` independent generators."""
        return [StatefulPRNG(key, _new_counter()) for key in self.key((n_children,))]

    @boundary
    def split(self, num: int | Sequence[int]) -> StatefulPRNG:
        """Return an array of independent generators of shape `num`, for use under `vmap`."""
        sizes = _to_shape(num)
        return StatefulPRNG(self.key(sizes), new_ref(zeros(sizes, int)))


register_dataclass(StatefulPRNG, data_fields=["_base_key", "_counter"], meta_fields=[])


def stateful_rng(seed: Any = None, *, impl: Any = None) -> StatefulPRNG:
    """Create a generator of random numbers with a state, which each draw changes.

    Args:
        seed: an integer; None for a seed from the operating system, outside of transformed functions.
        impl: the implementation, such as ``"threefry2x32"``; None for the default one.

    Returns:
        A `StatefulPRNG`.

    Raises:
        TypeError: the seed is not an integer, or it is None in a transformed function.

    Example:
        >>> from xtrace.experimental.random import stateful_rng
        >>> rng = stateful_rng(42)
        >>> [float(rng.normal()) for _ in range(2)]
        [0.07592554, 0.60576403]
    """
    if seed is None:
        if current_trace.get() is not base_trace:
            raise TypeError(
                "stateful_rng: a seed is needed in a transformed function, which would always draw the same; pass the "
                "function a generator, or a seed"
            )
        seed = int(np.random.SeedSequence().generate_state(1)[0])
    return StatefulPRNG(make_key(seed, impl=impl), _new_counter())


_make_public(globals(), __all__)
