"""Approximate top k, against jax.lax; on CPUs it is exact."""

import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.operands import FLOAT, finite_values, random_values
from tests.support.operations import check_error, check_jaxpr, check_types, check_values
from tests.support.rules import check_rules
from xtrace import lax


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", ["approx_max_k", "approx_min_k"])
@pytest.mark.parametrize("dtype", FLOAT, ids=str)
def test_values(name, dtype):
    values = random_values(dtype, (4, 7), 1)
    values = np.where(np.isnan(values), dtype.type(0), values)
    for arguments in ((3,), (2, 0), (4, -2, 0.5), (7, 1, 0.9, 100)):
        operation = lambda m, x, a=arguments: getattr(m, name)(x, *a)  # noqa: E731
        check_values(operation, values)
        check_jaxpr(operation, values)
        check_types(operation, ((4, 7), dtype))


def test_candidates():
    for shape in ((100,), (2, 1000), (3000,)):
        operation = lambda m, x: m.approx_max_k(x, 10, aggregate_to_topk=False)  # noqa: E731
        check_types(operation, (shape, np.float32))
        check_values(operation, finite_values(np.float32, shape, 2))


def test_on_a_tpu_it_is_no_sort():
    text = xtrace.jit(lambda x: lax.approx_min_k(x, 2)).trace(np.ones((3, 4), np.float32)).lower(
        lowering_platforms=("tpu",)
    ).as_text()
    assert "@ApproxTopK" in text and "is_fallback" not in text


@pytest.mark.parametrize("axis", [0, -1])
def test_rules(axis):
    # Distinct values, in the rolled copies of the mapped forms too.
    values = np.random.default_rng(3).permutation(20).astype(np.float32).reshape(4, 5)
    check_rules(lambda lax, x: lax.approx_max_k(x, 2, axis)[0], values)
    check_rules(lambda lax, x: lax.approx_min_k(x, 3, axis)[1], values, derivatives=False)


ERRORS = {
    "more than there are": (lambda m, x: m.approx_max_k(x, 6), ValueError, ["approx_max_k: k", "size 5", "got 6"]),
    "none": (lambda m, x: m.approx_min_k(x, 0), ValueError, ["approx_min_k: k", "got 0"]),
    "no such axis": (lambda m, x: m.approx_max_k(x, 1, 2), ValueError, ["approx_max_k", "2"]),
    "recall above 1": (lambda m, x: m.approx_max_k(x, 1, recall_target=1.5), ValueError, ["recall_target", "1.5"]),
    "no recall": (lambda m, x: m.approx_max_k(x, 1, recall_target=0.0), ValueError, ["recall_target", "0.0"]),
    "integers": (
        lambda m, x: m.approx_max_k(m.convert_element_type(x, np.int32), 1), ValueError, ["floating", "int32", "top_k"],
    ),
    "half an element": (lambda m, x: m.approx_max_k(x, 2.5), TypeError, ["approx_max_k: k must be an integer"]),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    operation, kind, words = ERRORS[name]
    check_error(operation, kind, words, finite_values(np.float32, (4, 5), 4))


def test_narrow_floats():
    check_types(lambda m, x: m.approx_max_k(x, 2), ((3, 4), ml_dtypes.float8_e5m2))
