"""The types that the algorithms of `dot_general` say, as in jax."""

import jax.numpy as jnp
import numpy as np
import pytest
from jax import lax as theirs

from xtrace import lax

PAIRS = [("float32", "float32"), ("float16", "float16"), (jnp.bfloat16, jnp.bfloat16), ("float16", "float32")]


@pytest.mark.parametrize("name", [p.name for p in theirs.DotAlgorithmPreset])
def test_types(name):
    ours, other = lax.DotAlgorithmPreset[name], theirs.DotAlgorithmPreset[name]
    for member in ("accumulation_type", "supported_lhs_types", "supported_rhs_types"):
        assert getattr(ours, member) == getattr(other, member), member
    for pair in PAIRS:
        left, right = map(np.dtype, pair)
        assert ours.supported_output_types(left, right) == other.supported_output_types(left, right), pair
