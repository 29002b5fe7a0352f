"""Drawn calls of public functions under the settings of a user, compared with jax; and with weakly typed operands.

The calls are those of test_draws.py. Most are traced and not compiled, and an ordinary run takes a part of the
functions, by the commit; --whole-tables takes all.
"""

from __future__ import annotations

import jax
import numpy as np
import pytest

import xtrace
from tests.differential.test_draws import COSTLY, JAX_PROMOTES, ROWS, whole
from tests.support.draws import (
    Call,
    converted_operands,
    differences,
    drawn_calls,
    setting_differences,
    type_differences,
    weakened,
)
from tests.support.operands import ours, theirs
from tests.support.sampling import number_of_draws

pytestmark = pytest.mark.thorough

_TABLE = ROWS | COSTLY
_NAMES = list(_TABLE)
# A run takes one function in so many, of those that are traced and of those that are compiled, and one round of their
# calls. Its number draws both, and every pair of them is some number's.
_TRACED, _COMPILED, _ROUNDS = 8, 48, 4
_SETTINGS = (
    ("jax_check_static_indices", True), ("jax_explicit_x64_dtypes", "error"), ("jax_legacy_prng_key", "error"),
    ("jax_softmax_custom_jvp", True), ("jax_default_prng_impl", "rbg"), ("jax_check_tracer_leaks", True),
    ("jax_debug_key_reuse", True), ("jax_enable_custom_prng", True), ("jax_default_matmul_precision", "highest"),
    ("jax_threefry_partitionable", False), ("jax_numpy_rank_promotion", "warn"), ("jax_debug_nans", True),
    ("jax_debug_infs", True), ("jax_transfer_guard_host_to_device", "disallow"), ("jax_no_tracing", True),
    ("jax_disable_jit", True), ("jax_allow_f16_reductions", False),
)
# Functions that a setting changes otherwise than in jax, and why.
OTHERWISE = {
    f"{setting} {name}": why
    for setting, names, why in (
        ("jax_disable_jit", "nn.sparse_sigmoid", "then jax adds to NumPy's numbers in NumPy, which makes them strong"),
        ("jax_explicit_x64_dtypes", "numpy.result_type", "jax takes it for a request for arrays"),
    )
    for name in names.split()
}
# Settings under which jax refuses arithmetic of its own, such as loops without steps: ours may take it.
WIDER = ("jax_disable_jit", "jax_allow_f16_reductions")
# Functions of which some results are weakly typed where jax's are not, or the reverse, and why.
WEAKNESS = {
    name
    for why, names in {
        "in jax results of size 0 are strong": "numpy.repeat",
        "in jax it depends on the number of rows": "numpy.linalg.det scipy.linalg.det numpy.linalg.slogdet",
        "jax returns the diagonal of one element as it is given": "scipy.linalg.eigh_tridiagonal",
        "jax has weakly typed booleans": "numpy.logical_and.outer numpy.logical_or.outer numpy.logical_xor.outer",
        "in jax a method's results are weak where the function's are strong, or the reverse":
            "numpy.logaddexp2.outer numpy.logaddexp2.reduceat",
        "jax traces a transform of no elements with one result, and cannot compile it":
            "numpy.fft.rfft numpy.fft.rfft2 numpy.fft.rfftn",
        "in jax results are weak under jit and strong eagerly": "scipy.sparse.linalg.cg",
        "in jax what is scalar is strong": "scipy.stats.uniform.cdf",
        "in jax a scalar that is spread is strong": "scipy.stats.beta.cdf scipy.stats.beta.logpdf scipy.stats.beta.sf",
    }.items()
    for name in names.split()
}


def drawn(config: pytest.Config, parts: int) -> tuple[int, list[str]]:
    """Return the number of this run, and the functions that it takes."""
    number = number_of_draws(config.getoption("sample_seed"))
    return number, _NAMES if whole(config) else _NAMES[number // _ROUNDS % parts :: parts]


@pytest.mark.slow
def test_results_are_weakly_typed_where_they_are_in_jax(pytestconfig: pytest.Config) -> None:
    number, names = drawn(pytestconfig, _TRACED)
    calls = [weakened(call, number % _ROUNDS + i) for name in names if name not in WEAKNESS
             for i, call in enumerate(drawn_calls(name, _TABLE[name], number % _ROUNDS, 3))]
    found = type_differences(calls, x64=False)
    assert not found, f"XTRACE_DRAWS_SEED={number}:\n" + "\n\n".join(found)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", [
    "numpy.ediff1d", "numpy.interp", "numpy.maximum.at", "numpy.minimum.at", "numpy.polydiv", "numpy.polyfit",
    "scipy.linalg.leslie", "scipy.signal.detrend", "scipy.stats.multivariate_normal.logpdf",
])
def test_results_of_weakly_typed_operands(name: str) -> None:
    calls = [call for number in range(_ROUNDS) for call in drawn_calls(name, _TABLE[name], number, 3)]
    calls = [weakened(call, how) for call in calls for how in range(5)]
    assert type_differences(calls, x64=False) == []


@pytest.mark.drawn(0.2)
@pytest.mark.slow
@pytest.mark.parametrize(("setting", "value"), _SETTINGS)
def test_settings_change_what_they_change_in_jax(setting: str, value: object, pytestconfig: pytest.Config) -> None:
    number, names = drawn(pytestconfig, _TRACED * 6)
    calls = [call for name in names if f"{setting} {name}" not in OTHERWISE
             for call in drawn_calls(name, _TABLE[name], number % _ROUNDS, 2)]
    found = setting_differences(calls, setting, value, setting in WIDER)
    assert not found, f"XTRACE_DRAWS_SEED={number}:\n" + "\n\n".join(found)


@pytest.mark.slow
@pytest.mark.parametrize(("setting", "value"), [("numpy_rank_promotion", "raise"), ("numpy_dtype_promotion", "strict")])
def test_values_under_settings_that_forbid_promotion(setting: str, value: str, pytestconfig: pytest.Config) -> None:
    number, names = drawn(pytestconfig, _COMPILED)
    promoting = {name for names in JAX_PROMOTES.values() for name in names.split()}
    calls = [call for name in names for call in drawn_calls(name, _TABLE[name], number % _ROUNDS, 1)]
    rows = [_TABLE[c.function] for c in calls]
    rows = [row._replace(wider="jax promotes") if c.function in promoting else row
            for row, c in zip(rows, calls, strict=True)]
    with getattr(xtrace, setting)(value), getattr(jax, setting)(value):
        found = differences(calls, rows, x64=False)
    assert not found, f"XTRACE_DRAWS_SEED={number}:\n" + "\n\n".join(found)


def outcome(package: object, call: Call, setting: str) -> object:
    """Return whether evaluating the call finds a bad number, or None where it fails otherwise."""
    operands = converted_operands(call, ours if package is xtrace else theirs, False)
    try:
        with getattr(package, setting)(True):
            call.evaluate(package, operands)
    except FloatingPointError:
        return True
    except Exception:
        return None
    return False


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("setting", ["debug_nans", "debug_infs"])
def test_bad_numbers_that_are_masked_out_are_no_errors(setting: str, pytestconfig: pytest.Config) -> None:
    number, names = drawn(pytestconfig, _COMPILED)
    wrong = []
    for name in names:
        for call in drawn_calls(name, _TABLE[name], number % _ROUNDS, 1):
            operands = converted_operands(call, ours, False)
            # What a user hands over is no matter of the function's.
            if f"jax_{setting} {name}" in OTHERWISE or not all(np.isfinite(x).all() for x in numbers(operands)):
                continue
            if outcome(xtrace, call, setting) is True and outcome(jax, call, setting) is False:
                wrong.append(str(call))
    assert wrong == [], f"XTRACE_DRAWS_SEED={number}"


def numbers(operands: list[object]) -> list[np.ndarray]:
    """Return the floating operands as NumPy's arrays of a dtype that it computes with."""
    found = [np.asarray(x) for x in operands]
    return [x.astype(np.complex64) for x in found if x.dtype.kind not in "biu" and x.dtype.names is None]
