"""Dependencies between operations: the programs have jax's custom calls, and give the same results."""

import re

import jax
import numpy as np
import pytest

import xtrace
import xtrace.experimental.control_deps
import xtrace.numpy

pytest.importorskip("jax.experimental.control_deps", reason="newer jax has none")


def scheduled(library):
    def function(x):
        jnp = library.numpy
        parts = [jnp.sin(x), jnp.cos(x), jnp.tanh(x)]
        library.experimental.control_deps.schedule(parts)
        return parts[0] + parts[2]

    return function


def test_programs_have_jaxs_dependencies():
    ours, theirs = (library.jit(scheduled(library)).lower(1.0).as_text() for library in (xtrace, jax))
    calls = [re.findall(r"custom_call @control_dep\((%\d+), (%\d+)\)", text) for text in (ours, theirs)]
    assert calls[0] == calls[1] == [("%0", "%1"), ("%1", "%2")]
    assert ours.count("has_side_effect = true") == theirs.count("has_side_effect = true") == 2


def test_programs_with_dependencies_run():
    x = np.arange(3, dtype=np.float32)
    ours, theirs = (library.jit(scheduled(library))(x) for library in (xtrace, jax))
    # Two roundings of functions of XLA's.
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    assert xtrace.experimental.control_deps.control_dep(1.0, x) is None
    assert xtrace.experimental.control_deps.schedule([x]) is None


def test_arguments_that_are_no_arrays_are_named():
    with pytest.raises(TypeError, match="control_dep: dst must be an array, got 'x'"):
        xtrace.experimental.control_deps.control_dep(1.0, "x")
