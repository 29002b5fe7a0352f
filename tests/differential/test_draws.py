"""Public functions with drawn arguments, compared with jax: values, types, errors, derivatives, vmap.

There are `EXAMPLES` calls of each function in each of `ROUNDS` rounds, always the same ones, and an ordinary run takes
the round that the commit, or else the day, draws; the header of the report names it. `XTRACE_DRAWS_SEED=n` repeats
that, `XTRACE_DRAWS=all` and --whole-tables run all rounds. Of the functions in `COSTLY` a run takes one in `PARTS`.
"""

from __future__ import annotations

import importlib
import os
from collections.abc import Sequence

import pytest

from tests.architecture.test_names_in_tests import public_functions
from tests.differential import (
    draws_elementwise,
    draws_linear,
    draws_other,
    draws_reductions,
    draws_scipy,
    draws_shapes,
    draws_trees,
    draws_ufuncs,
)
from tests.support.draws import Row, differences, drawn_calls, flag_differences
from tests.support.sampling import number_of_draws

pytestmark = pytest.mark.thorough

EXAMPLES, ROUNDS, PARTS = 3, 2, 12
# Functions whose calls are one program on each side.
_TOGETHER = 16
_NUMPY = (draws_elementwise, draws_reductions, draws_shapes, draws_linear, draws_other)
ROWS: dict[str, Row] = {
    f"{module}.{name}": row
    for module, tables in {
        "numpy": [part.NUMPY for part in _NUMPY], "numpy.linalg": [draws_linear.LINALG],
        "numpy.fft": [draws_linear.FFT], "nn": [draws_other.NN], "scipy.special": [draws_other.SPECIAL],
        "image": [draws_other.IMAGE],
        "ops": [draws_other.OPS], "tree_util": [draws_trees.TREE_UTIL],
    }.items()
    for table in tables
    for name, row in table.items()
}
COSTLY: dict[str, Row] = draws_scipy.OTHER | {
    f"{module}.{name}": row
    for module, table in {
        "scipy.special": draws_scipy.SPECIAL, "scipy.stats": draws_scipy.STATS, "scipy.linalg": draws_scipy.LINALG,
        "scipy.signal": draws_scipy.SIGNAL, "scipy.fft": draws_scipy.FFT, "random": draws_scipy.RANDOM,
        "nn.initializers": draws_scipy.INITIALIZERS, "numpy": draws_ufuncs.NUMPY,
    }.items()
    for name, row in table.items()
}
_NAMES = list(ROWS)
_COSTLY_NAMES = list(COSTLY)
_FLAGGED = _NAMES + _COSTLY_NAMES
# Why functions have no row.
WITHOUT = {
    "it reads or writes files and buffers: tests/numpy/test_files.py":
        "from_dlpack frombuffer fromfile fromiter fromstring load save savez",
    "it takes a function: tests/numpy/test_vectorization.py, test_selection.py":
        "apply_along_axis apply_over_axes fromfunction vectorize",
    "it returns text, or sets how text looks: tests/numpy/test_array_methods.py":
        "array_repr array_str get_printoptions printoptions set_printoptions",
    "it plans a contraction: tests/numpy/test_einsum.py": "einsum_path",
    "the order of eigenvalues is LAPACK's: tests/numpy/test_polynomials.py": "roots",
    "degrees, orders and angles belong together: tests/scipy/test_special_integrals.py": "sph_harm_y",
    "it takes dtypes and scales of 8 bits: tests/nn": "get_scaled_dot_general_config scaled_dot_general scaled_matmul",
    "factors are not unique, or it takes a function: tests/scipy/test_linalg.py":
        "funm rsf2csf schur solve_sylvester",
    "the result is an object: tests/scipy/test_samples.py": "gaussian_kde",
    "it stops at a tolerance: tests/scipy/test_optimize.py, test_sparse.py": "minimize bicgstab gmres",
    "it makes typed keys or takes them apart: tests/random/test_keys.py":
        "Key clone key key_data key_dtype key_impl wrap_key_data",
    "it may return anything of a set: tests/random": "random_gamma_p",
    "it returns a function: tests/nn":
        "constant delta_orthogonal glorot_normal glorot_uniform he_normal he_uniform kaiming_normal kaiming_uniform "
        "lecun_normal lecun_uniform variance_scaling xavier_normal xavier_uniform nn.initializers.normal "
        "nn.initializers.orthogonal nn.initializers.truncated_normal nn.initializers.uniform",
    "it makes or takes structures, paths or functions: tests/core/test_pytree.py":
        "broadcast flatten flatten_with_path leaves_with_path map_with_path static structure transpose unflatten "
        "ravel_pytree",
    "it registers types, or is one: tests/core/test_pytree.py":
        "KeyPath register_dataclass register_pytree_node register_pytree_node_class register_pytree_with_keys "
        "register_pytree_with_keys_class register_static",
    "jax 0.10.2 has none: tests/core/test_pytree.py": "build_tree",
    "jax 0.10.2 has none: tests/numpy/test_newer_functions.py, tests/scipy/test_inverse_erfc.py":
        "minmax top_k erfcinv",
    "it makes a dtype: tests/core/test_dtypes.py": "finfo iinfo",
}
# Where settings that forbid promotion make jax refuse what it does itself.
JAX_PROMOTES = {
    "it computes with integers and booleans as they are given, and then with floats":
        "nn.logsumexp scipy.special.logsumexp nn.standardize numpy.var numpy.nanvar scipy.special.hyp1f1",
    "it makes constants of the default float, or coordinates as they are given, and multiplies":
        "scipy.special.owens_t scipy.ndimage.map_coordinates",
    "it makes axes of its own that meet the operands'": "numpy.geomspace scipy.stats.poisson.entropy",
    "it converts what it keeps for the derivative": "nn.dot_product_attention",
    "mapped, it adds numbers of the dtype asked for to those of the operands'": "numpy.einsum",
    # In all of them parameters are used as they are given; those that are drawn have a higher rank or a wider dtype.
    "it compares uniform numbers of the shape asked for with p of fewer axes": "random.bernoulli",
    "it divides gamma variates of the dtype asked for, whose parameters are of another one": "random.beta random.f",
    "it halves df of its own dtype, and multiplies by numbers of the dtype asked for": "random.chisquare",
    "it divides numbers of the shape and dtype asked for by b of its own": "random.pareto",
    "it multiplies numbers of the dtype asked for by scale of its own": "random.rayleigh",
    "it divides df of its own shape and dtype by gamma variates of those asked for": "random.t",
    "it multiplies normal numbers of the dtype asked for by mean of its own": "random.wald",
}
_MODULES = ["numpy", "numpy.linalg", "numpy.fft", "nn", "scipy.special", "image", "ops", "scipy.stats", "scipy.linalg",
            "scipy.signal", "scipy.fft", "scipy.ndimage", "scipy.integrate", "scipy.cluster.vq", "scipy.optimize",
            "scipy.sparse.linalg", "random", "nn.initializers", "tree", "tree_util", "dtypes",
            "flatten_util",
            *sorted({f"scipy.stats.{n.partition('.')[0]}" for n in draws_scipy.STATS if "." in n})]


def rounds(config: pytest.Config) -> Sequence[int]:
    """Return the numbers of the rounds that this run takes."""
    if whole(config):
        return range(ROUNDS)
    return [number_of_draws(config.getoption("sample_seed")) % ROUNDS]


def whole(config: pytest.Config) -> bool:
    """Return whether the run takes all rounds, and all functions."""
    return os.environ.get("XTRACE_DRAWS") == "all" or bool(config.getoption("whole_tables"))


def check(rows: dict[str, Row], names: Sequence[str], number: int, examples: int) -> None:
    """Compare calls of the functions; every other round is under x64."""
    calls = [call for name in names for call in drawn_calls(name, rows[name], number, examples)]
    found = differences(calls, [rows[call.function] for call in calls], x64=bool(number % 2))
    assert not found, f"XTRACE_DRAWS_SEED={number}:\n" + "\n\n".join(found)


@pytest.mark.drawn(0.15)
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(_NAMES), _TOGETHER), ids=lambda i: f"from {_NAMES[i]}")
def test_drawn_calls_give_what_they_give_in_jax(first: int, pytestconfig: pytest.Config) -> None:
    for number in rounds(pytestconfig):
        check(ROWS, _NAMES[first : first + _TOGETHER], number, EXAMPLES)


@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(_COSTLY_NAMES), _TOGETHER * PARTS),
                         ids=lambda i: f"from {_COSTLY_NAMES[i]}")
def test_drawn_calls_of_costly_functions(first: int, pytestconfig: pytest.Config) -> None:
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    if "XTRACE_DRAWS_SEED" not in os.environ:
        # As of the others, there are so many rounds of each part.
        number %= ROUNDS * PARTS
    parts = range(PARTS) if whole(pytestconfig) else [number // ROUNDS % PARTS]
    for part in parts:
        # The number says which part is drawn, so it is that of the calls too.
        check(COSTLY, _COSTLY_NAMES[first + part : first + _TOGETHER * PARTS : PARTS], number, 1)


@pytest.mark.drawn(0.15)
@pytest.mark.slow
@pytest.mark.parametrize("first", range(0, len(_FLAGGED), _TOGETHER * PARTS),
                         ids=lambda i: f"from {_FLAGGED[i]}")
def test_promotion_settings_judge_operands_as_in_jax(first: int, pytestconfig: pytest.Config) -> None:
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    table = ROWS | COSTLY
    numbers = range(4) if whole(pytestconfig) else [number % 4]
    # An ordinary run takes every third function.
    names = _FLAGGED[first : first + _TOGETHER * PARTS]
    names = names if whole(pytestconfig) else names[number % 3 :: 3]
    for number in numbers:
        calls = [call for name in names for call in drawn_calls(name, table[name], number, EXAMPLES)]
        found = flag_differences(calls, number, {name for names in JAX_PROMOTES.values() for name in names.split()})
        assert not found, f"XTRACE_DRAWS_SEED={number}:\n" + "\n\n".join(found)


def functions_of(name: str) -> set[str]:
    """Return the functions of a module that are no classes."""
    module = importlib.import_module(f"xtrace.{name}")
    values = {n: getattr(module, n, None) for n in public_functions(name)}
    return {n for n, v in values.items() if callable(v) and not isinstance(v, type)}


@pytest.mark.parametrize("name", _MODULES)
def test_every_public_function_has_a_row(name: str) -> None:
    reasons = {n for names in WITHOUT.values() for n in names.split()}
    rows = ROWS.keys() | COSTLY.keys()
    missing = sorted(n for n in functions_of(name) if f"{name}.{n}" not in rows and not {n, f"{name}.{n}"} & reasons)
    assert missing == [], f"xtrace.{name}: no row draws arguments for {missing}; add one to draws_*.py"


def test_every_method_of_ufuncs_has_a_row() -> None:
    numpy = importlib.import_module("xtrace.numpy")
    ufuncs = [name for name in dir(numpy) if isinstance(getattr(numpy, name), numpy.ufunc)]
    wanted = {f"numpy.{name}.{method}" for name in [*ufuncs, "frompyfunc"] for method in draws_ufuncs.METHODS}
    missing = wanted - COSTLY.keys() - {f"numpy.negative.{m}" for m in draws_ufuncs.METHODS if m != "at"}
    assert missing == set(), f"no row draws arguments for {sorted(missing)}; add one to draws_ufuncs.py"
