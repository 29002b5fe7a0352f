"""Functions of keys of the generator threefry2x32, under the names of jax's private module."""

from __future__ import annotations

from xtrace._src.ops.random.keys import generators

_threefry = generators["threefry2x32"]
threefry_seed, threefry_split = _threefry.seed, _threefry.split
threefry_random_bits, threefry_fold_in = _threefry.random_bits, _threefry.fold_in
