"""The setting that chooses between the behaviours of jax 0.10 and 0.12, each compared with the installed jax."""

from __future__ import annotations

import os
import subprocess
import sys

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.reference import IS_REFERENCE
from xtrace import lax
from xtrace.sharding import AbstractMesh

RELEASES = ["0.10.2", "0.12.0"]
INSTALLED = RELEASES[not IS_REFERENCE]
X = np.arange(6, dtype=np.float32).reshape(2, 3)
ZEROS = np.zeros((2, 2), np.float32)


# Each row: what a program sees, as a function of the package, and what it is in 0.10 and in 0.12.
DIFFERENCES = {
    "meshgrid": (lambda p: type(p.numpy.meshgrid(X[0], X[1])), list, tuple),
    "broadcast_arrays": (lambda p: type(p.numpy.broadcast_arrays(X, 1.0)), list, tuple),
    "atleast_1d": (lambda p: type(p.numpy.atleast_1d(X, 1.0)), list, tuple),
    "atleast_2d": (lambda p: type(p.numpy.atleast_2d(X, 1.0)), list, tuple),
    "atleast_3d": (lambda p: type(p.numpy.atleast_3d(X, 1.0)), list, tuple),
    "log2": (lambda p: p.numpy.log2(8.0).weak_type, False, True),
    "log2 in jaxprs": (lambda p: "log2" in str(p.make_jaxpr(p.numpy.log2)(X[0])).split(), False, True),
    "log2 of complex numbers": (
        lambda p: "log2" in str(p.make_jaxpr(p.numpy.log2)(X[0] * 1j)).split(), False, True
    ),
    "hypot": (lambda p: p.numpy.hypot(np.ones(2, np.int8), 2.5).weak_type, False, True),
    "argwhere": (lambda p: p.numpy.argwhere(X, size=7, fill_value=(1, 2.5)).weak_type, True, False),
    "take_along_axis": (
        lambda p: p.numpy.take_along_axis(p.numpy.asarray(X), np.array([[-1], [-2]]), 1, "promise_in_bounds").tolist(),
        [[0.0], [3.0]], [[2.0], [4.0]],
    ),
    "quantiles of no elements but NaN": (
        lambda p: refused(lambda: p.numpy.nanquantile(np.ones((2, 0), np.int8), 0.5, 1)), True, False
    ),
    "median of no elements but NaN": (lambda p: refused(lambda: p.numpy.nanmedian(ZEROS[:0])), True, False),
    "condition of zeros": (lambda p: str(p.numpy.linalg.cond(ZEROS)), "nan", "inf"),
    "condition by the largest singular value": (lambda p: str(p.numpy.linalg.cond(ZEROS, 2)), "nan", "inf"),
    "cross products of vectors of 2 elements": (
        lambda p: refused(lambda: p.numpy.cross(X[:, :2], X[:, :2])), False, True
    ),
    "igamma of an infinite order": (lambda p: str(p.lax.igamma(np.inf, 1.0)), "nan", "0.0"),
    "igammac of two infinities": (lambda p: str(p.lax.igammac(np.inf, np.inf)), "0.0", "nan"),
    "axes of abstract meshes": (
        lambda p: {kind.name for kind in p.sharding.AbstractMesh((2, 1), ("x", "y")).axis_types}, {"Auto"}, {"Explicit"}
    ),
    "references to Python's numbers": (lambda p: p.new_ref(1.0)[...].weak_type, True, False),
    "the array API": (lambda p: p.numpy.__array_api_version__, "2024.12", "2025.12"),
}


def refused(call):
    try:
        call()
    except (ValueError, IndexError, TypeError):
        return True
    return False


@pytest.mark.parametrize("case", DIFFERENCES)
def test_each_release_is_followed(case):
    seen, *expected = DIFFERENCES[case]
    assert expected[0] != expected[1]
    for release, value in zip(RELEASES, expected, strict=True):
        with xtrace.jax_version(release):
            assert seen(xtrace) == value, release
            assert xtrace.config.xtrace_jax_version == release
    assert seen(jax) == expected[RELEASES.index(INSTALLED)]


def test_programs_are_cached_by_release():
    function = xtrace.jit(lambda x: jnp.atleast_1d(x, x))
    types = []
    for release in (*RELEASES, *RELEASES):
        with xtrace.jax_version(release):
            types.append(type(function(X)))
    assert types == [list, tuple] * 2 and function._cache_size() == 2


def test_library_functions_are_replayed_by_release():
    def both(x):
        return jnp.log2(x) + jnp.log2(x)

    counts = []
    for release in RELEASES:
        with xtrace.jax_version(release):
            counts.append(str(xtrace.make_jaxpr(xtrace.grad(both))(2.0)).split().count("log2"))
    assert counts == [0, 2]


def test_functions_of_the_library_do_not_depend_on_it():
    """`AbstractMesh` with types, and functions of xtrace's own that use those above."""
    kinds = [xtrace.sharding.AxisType.Auto]
    for release in RELEASES:
        with xtrace.jax_version(release):
            assert AbstractMesh((2,), ("x",), tuple(kinds)).axis_types == tuple(kinds)
            assert type(jnp.ogrid[0:2, 0:2]) is list and jnp.mgrid[0:2, 0:2].shape == (2, 2, 2)
            assert jnp.array_equiv(X, X[:1]) == np.array_equiv(X, X[:1])
            assert jnp.linalg.cross(np.eye(3)[0], np.eye(3)[1]).tolist() == [0, 0, 1]
            assert lax.top_k(X, 1)[0].tolist() == [[2.0], [5.0]]


@pytest.mark.parametrize(
    ("given", "release"),
    [("0.10.2", "0.10.2"), ("0.10", "0.10.2"), ("0.10.1", "0.10.2"), ("0.12", "0.12.0"), ("0.12.0.1", "0.12.0")],
)
def test_any_release_of_a_series_names_it(given, release):
    with xtrace.jax_version(given):
        assert xtrace.config.xtrace_jax_version == release


@pytest.mark.parametrize("given", ["0.11", "1.0", "", "newest", None, 0.9])
def test_other_releases_are_refused(given):
    with pytest.raises(ValueError, match=r"xtrace_jax_version: the setting accepts '0.10.2' and '0.12.0'; got"):
        xtrace.config.update("xtrace_jax_version", given)


def test_the_environment_and_the_alias_know_the_release():
    code = """
import xtrace
xtrace.as_jax()
import jax
print(jax.__version__, jax.__version_info__, jax.version.__version__)
"""
    for release in RELEASES:
        done = subprocess.run(
            [sys.executable, "-c", code], capture_output=True, text=True, check=True,
            env={**os.environ, "XTRACE_JAX_VERSION": release},
        )
        info = tuple(map(int, release.split(".")))
        assert done.stdout.split(" ", 1)[0] == release and str(info) in done.stdout
        assert done.stdout.split()[-1] == release
