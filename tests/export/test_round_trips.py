"""Files of exported functions that jax reads, and files of jax's that xtrace reads: the same results and gradients."""

import functools

import jax
import jax.export
import numpy as np
import pytest

import xtrace
import xtrace.export
from tests.support.exports import PROGRAMS, WITHOUT_GRADIENT, assert_equal, gradient

pytestmark = pytest.mark.thorough

PACKAGES = {"xtrace": xtrace, "jax": jax}


@functools.cache
def expected(name):
    """What jax computes without a file: the results of a program, and its gradient."""
    make, args = program(name)
    return jax.jit(make(jax))(*args), None if name in WITHOUT_GRADIENT else gradient(jax, make(jax), args)


@pytest.mark.parametrize("writer", PACKAGES)
@pytest.mark.parametrize(("name", "make", "args"), PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_the_other_package_reads_and_runs_the_file(name, make, args, writer):
    write, reader = PACKAGES[writer], "jax" if writer == "xtrace" else "xtrace"
    read = PACKAGES[reader]
    exported = write.export.export(write.jit(make(write)))(*args)
    has_gradient = name not in WITHOUT_GRADIENT
    data = exported.serialize(vjp_order=1 if has_gradient else 0)
    restored = read.export.deserialize(bytearray(data))
    results, slopes = expected(name)
    assert_equal(restored.call(*args), results, 64)
    assert str(restored.in_tree) == str(exported.in_tree) and restored.platforms == exported.platforms
    assert restored.module_kept_var_idx == exported.module_kept_var_idx
    if has_gradient:
        assert_equal(gradient(read, restored.call, args), slopes, 64)
    # What was read can be written again, and is what it was.
    again = write.export.deserialize(bytearray(restored.serialize(1 if has_gradient else 0)))
    assert bytes(again.mlir_module_serialized) == bytes(exported.mlir_module_serialized)
    assert again.in_avals == write.export.deserialize(data).in_avals


def program(name):
    (found,) = [(function, args) for row, function, args in PROGRAMS if row == name]
    return found


@pytest.mark.parametrize("writer", PACKAGES)
@pytest.mark.parametrize("name", ["elementwise", "softmax", "scan", "cholesky", "checkpoint"])
def test_second_derivatives_are_in_the_file(name, writer):
    function, (x,) = program(name)
    write, read = PACKAGES[writer], PACKAGES["jax" if writer == "xtrace" else "xtrace"]
    data = write.export.export(write.jit(function(write)))(x).serialize(vjp_order=2)
    restored = read.export.deserialize(bytearray(data))

    def curvature(P, call):
        def slope(x):
            return P.grad(lambda x: sum([y.sum() ** 2 for y in P.tree.leaves(call(x))]))(x)

        return P.grad(lambda x: (slope(x) ** 2).sum())(x)

    assert_equal(curvature(read, restored.call), curvature(jax, function(jax)), 2048)


@pytest.mark.parametrize("writer", PACKAGES)
@pytest.mark.parametrize("name", ["network", "cumulative", "solve", "random", "top_k"])
def test_programs_for_several_platforms(name, writer):
    function, args = program(name)
    write, read = PACKAGES[writer], PACKAGES["jax" if writer == "xtrace" else "xtrace"]
    exported = write.export.export(write.jit(function(write)), platforms=["tpu", "cuda", "cpu"])(*args)
    restored = read.export.deserialize(bytearray(exported.serialize()))
    assert restored.platforms == ("tpu", "cuda", "cpu") == exported.platforms
    assert_equal(restored.call(*args), expected(name)[0], 64)


@pytest.mark.parametrize("writer", PACKAGES)
def test_keys_are_arguments_and_results(writer):
    write, read = PACKAGES[writer], PACKAGES["jax" if writer == "xtrace" else "xtrace"]
    exported = write.export.export(write.jit(lambda key: write.random.split(key, 3)))(write.random.key(1))
    restored = read.export.deserialize(bytearray(exported.serialize()))
    words = read.random.key_data(restored.call(read.random.key(1)))
    np.testing.assert_array_equal(words, jax.random.key_data(jax.random.split(jax.random.key(1), 3)))
