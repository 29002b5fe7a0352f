"""Public numerical functions with drawn arguments, compared with jax: values, types, errors, derivatives, vmap.

There are `EXAMPLES` calls of each function in each of `ROUNDS` rounds, always the same ones, and an ordinary run takes
the round that the commit, or else the day, draws; the header of the report names it. `XTRACE_DRAWS_SEED=n` repeats
that, `XTRACE_DRAWS=all` and --whole-tables run all rounds.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence

import pytest

from tests.architecture.test_names_in_tests import public_functions
from tests.differential import draws_elementwise, draws_linear, draws_other, draws_reductions, draws_shapes
from tests.support.draws import Row, differences, drawn_calls
from tests.support.sampling import number_of_draws

EXAMPLES, ROUNDS = 3, 2
# Functions whose calls are one program on each side.
_TOGETHER = 16
_NUMPY = (draws_elementwise, draws_reductions, draws_shapes, draws_linear, draws_other)
ROWS: dict[str, Row] = {
    f"{module}.{name}": row
    for module, tables in {
        "numpy": [part.NUMPY for part in _NUMPY], "numpy.linalg": [draws_linear.LINALG],
        "numpy.fft": [draws_linear.FFT], "nn": [draws_other.NN], "scipy.special": [draws_other.SPECIAL],
        "image": [draws_other.IMAGE],
        "ops": [draws_other.OPS],
    }.items()
    for table in tables
    for name, row in table.items()
}  # fmt: skip
_NAMES = list(ROWS)
# Why functions have no row.
WITHOUT = {
    "it reads or writes files and buffers: tests/numpy/test_files.py":
        "from_dlpack frombuffer fromfile fromiter fromstring load save savez",
    "it takes a function: tests/numpy/test_vectorization.py, test_choices.py":
        "apply_along_axis apply_over_axes fromfunction frompyfunc vectorize",
    "it returns text, or sets how text looks: tests/numpy/test_array_methods.py":
        "array_repr array_str get_printoptions printoptions set_printoptions",
    "it plans a contraction: tests/numpy/test_einsum.py": "einsum_path",
    "the order of eigenvalues is LAPACK's: tests/numpy/test_polynomials.py": "roots",
    "jax has no number, or few digits, in some dtypes: tests/scipy/test_special_integrals.py":
        "bernoulli bessel_jn expi expn wofz",
    "costly to compile: tests/scipy/test_special_integrals.py": "hyp2f1 sici",
    "degrees, orders and angles belong together: tests/scipy/test_special_integrals.py": "sph_harm_y",
    "it takes dtypes and scales of 8 bits: tests/nn": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
}  # fmt: skip
_MODULES = ["numpy", "numpy.linalg", "numpy.fft", "nn", "scipy.special", "image", "ops"]


def rounds(config: pytest.Config) -> Sequence[int]:
    """Return the numbers of the rounds that this run takes."""
    if os.environ.get("XTRACE_DRAWS") == "all" or config.getoption("whole_tables"):
        return range(ROUNDS)
    return [number_of_draws(config.getoption("sample_seed")) % ROUNDS]


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(_NAMES), _TOGETHER), ids=lambda i: f"from {_NAMES[i]}")
def test_drawn_calls_give_what_they_give_in_jax(first: int, pytestconfig: pytest.Config) -> None:
    """Every other round is under x64."""
    for number in rounds(pytestconfig):
        calls = [c for n in _NAMES[first : first + _TOGETHER] for c in drawn_calls(n, ROWS[n], number, EXAMPLES)]
        found = differences(calls, [ROWS[c.function] for c in calls], x64=bool(number % 2))
        assert not found, f"XTRACE_DRAWS_SEED={number}:\n" + "\n\n".join(found)


@pytest.mark.parametrize("name", _MODULES)
def test_every_public_function_has_a_row(name: str) -> None:
    module = importlib.import_module(f"xtrace.{name}")
    functions = {n for n in public_functions(name) if not isinstance(getattr(module, n), type)}
    reasons = {n for names in WITHOUT.values() for n in names.split()}
    missing = sorted(n for n in functions if f"{name}.{n}" not in ROWS and n not in reasons)
    assert missing == [], f"xtrace.{name}: no row draws arguments for {missing}; add one to draws_*.py"
