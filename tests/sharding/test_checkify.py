"""`checkify` of functions on pieces: the first error of all devices, with the numbers of jax's message."""

import re

import numpy as np
import pytest
from jax.experimental import checkify as their_checkify

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from xtrace.experimental import checkify
from xtrace.sharding import PartitionSpec as P

X = np.linspace(1, 8, 8, dtype=np.float32)


def _checked_log(lib, checkify, transform):
    def log(x):
        checkify.check(lib.np.all(x > 0), "not positive: {x}", x=x)
        return lib.np.log(x)

    return transform(lib, log)


TRANSFORMS = {
    "pmap": lambda lib, f: lib.module.pmap(f),
    "jit_of_pmap": lambda lib, f: lib.jit(lib.module.pmap(f)),
    "shard_map": lambda lib, f: lib.module.shard_map(
        f, mesh=lib.mesh("x8"), in_specs=lib.P("x"), out_specs=lib.P("x")
    ),
    "unchecked_vma": lambda lib, f: lib.jit(
        lib.module.shard_map(
            f, mesh=lib.mesh("x4y2"), in_specs=lib.P("x"), out_specs=lib.P("x"), check_vma=False
        )
    ),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("shift", [0.0, 1.0, 3.0])
@pytest.mark.parametrize("errors", ["user_checks", "all_checks"])
@pytest.mark.parametrize("name", TRANSFORMS)
def test_errors_leave_mapped_functions(name, errors, shift):
    results = []
    for lib, module in ((OURS, checkify), (THEIRS, their_checkify)):
        function = _checked_log(lib, module, TRANSFORMS[name])
        error, result = module.checkify(function, errors=getattr(module, errors))(lib.np.asarray(X - shift))
        message = error.get()
        shown = message and re.search(r"not positive: (\[?[^(]*) \(`check` failed\)", message)[1]
        results.append((shown, np.asarray(result)))
    (shown, result), (expected, expected_result) = results
    np.testing.assert_array_equal(result, expected_result)
    assert (shown is None) == (expected is None) == (shift == 0.0)
    if shift == 1.0:
        assert shown == expected


def test_errors_leave_functions_on_explicit_axes():
    mesh = OURS.mesh("x8", "Explicit")
    log = _checked_log(OURS, checkify, lambda _, f: xtrace.shard_map(f, mesh=mesh, in_specs=P("x"), out_specs=P("x")))
    operand = xtrace.device_put(X - 2, xtrace.NamedSharding(mesh, P("x")))
    error, result = checkify.checkify(log)(operand)
    assert "not positive: [-1.]" in error.get()
    assert result.sharding.spec == P("x")
