"""Files of exported functions that jax reads, and files of jax's that xtrace reads: the same results and gradients."""

import jax
import jax.export
import pytest

import xtrace
import xtrace.export
from tests.support.exports import PROGRAMS, WITHOUT_GRADIENT, assert_equal, gradient

PACKAGES = {"xtrace": xtrace, "jax": jax}


@pytest.mark.parametrize("writer", PACKAGES)
@pytest.mark.parametrize(("name", "make", "args"), PROGRAMS, ids=[row[0] for row in PROGRAMS])
def test_the_other_package_reads_and_runs_the_file(name, make, args, writer):
    write, reader = PACKAGES[writer], "jax" if writer == "xtrace" else "xtrace"
    read = PACKAGES[reader]
    exported = write.export.export(write.jit(make(write)))(*args)
    has_gradient = name not in WITHOUT_GRADIENT
    data = exported.serialize(vjp_order=1 if has_gradient else 0)
    restored = read.export.deserialize(bytearray(data))
    assert_equal(restored.call(*args), jax.jit(make(jax))(*args), 64)
    assert str(restored.in_tree) == str(exported.in_tree) and restored.platforms == exported.platforms
    assert restored.module_kept_var_idx == exported.module_kept_var_idx
    if has_gradient:
        assert_equal(gradient(read, restored.call, args), gradient(jax, make(jax), args), 64)
    # What was read can be written again, and is what it was.
    again = write.export.deserialize(bytearray(restored.serialize(1 if has_gradient else 0)))
    assert bytes(again.mlir_module_serialized) == bytes(exported.mlir_module_serialized)
    assert again.in_avals == write.export.deserialize(data).in_avals
