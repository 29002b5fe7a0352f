"""The rules of sort and top_k, and of NumPy's functions made of them."""

import numpy as np
import pytest

from tests.support.operands import finite_values
from tests.support.rules import check_rules

X = finite_values(np.float32, (3, 4), 1)
Y = finite_values(np.float32, (3, 4), 2)
KEYS = np.array([[2, 0, 2, 1], [0, 0, 0, 0], [3, 1, 2, 1]], np.int32)
COMPLEX = finite_values(np.complex64, (3, 4), 3)
CASES = {
    "sort": (lambda m, x: m.sort(x), X),
    "sort columns": (lambda m, x: m.sort(x, 0), X),
    "sort not stably": (lambda m, x: m.sort(x, is_stable=False), X),
    "sort of equal elements": (lambda m, x: m.sort(x), KEYS.astype(np.float32)),
    "sort of integers": (lambda m, x: m.sort(x), KEYS),
    "sort of complex": (lambda m, x: m.sort(x), COMPLEX),
    "sort two": (lambda m, x, y: m.sort((x, y), num_keys=2), KEYS.astype(np.float32), Y),
    "sort by integers": (lambda m, k, x, y: m.sort((k, x, y), 0)[1:], KEYS, X, Y),
    "sort by a constant": (lambda m, x: m.sort((KEYS, x))[1], X),
    "sort_key_val": (lambda m, x, y: m.sort_key_val(x, y), X, Y),
    "top_k": (lambda m, x: m.top_k(x, 2), X),
    "top_k of columns": (lambda m, x: m.top_k(x, 2, axis=0)[0], X),
    "top_k of none": (lambda m, x: m.top_k(x, 0)[0], X),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    function, *operands = CASES[name]
    turning = "turns where keys are equal" if name in ("sort of equal elements", "sort two") else ""
    check_rules(function, *operands, not_smooth=turning)
