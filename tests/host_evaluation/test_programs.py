"""Small programs of the library give XLA's bits when NumPy evaluates them, and are compiled when called again."""

from __future__ import annotations

import gc

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from xtrace import lax, random
from xtrace._src.core.settings import config
from xtrace._src.host_evaluation import programs
from xtrace._src.host_evaluation.rules import EXACT, MOVES, ROUNDED, Declined
from xtrace._src.xla.executables import executables

_SPECIAL = [0.0, -0.0, 1.0, -1.5, 3.0, 1e-40, -1e-42, 1.2e-38, 3e38, -3e38, np.inf, -np.inf, np.nan, 0.1, 1 / 3]
_INTEGERS = [0, 1, -1, 2, 7, 31, 32, 33, 2**31 - 1, -(2**31)]


@pytest.fixture
def compiled(monkeypatch):
    """The names of the programs that are compiled during a test, which starts without any."""
    names, compile_text = [], executables.compile_text

    def count(text, *rest):
        names.append(text.split(maxsplit=2)[1])
        return compile_text(text, *rest)

    monkeypatch.setattr(executables, "compile_text", count)
    xtrace.clear_caches()
    return names


def _bits(tree):
    leaves = xtrace.tree.leaves(tree)
    arrays = [random.key_data(x) if jnp.issubdtype(x.dtype, xtrace.dtypes.prng_key) else x for x in leaves]
    return [(a.dtype, a.weak_type, a.shape, a.committed, np.asarray(a).tobytes()) for a in arrays]


def _check_bits(function):
    """Check that the first call of a function, and one of its compiled program, give the same."""
    xtrace.clear_caches()
    first = _bits(function())
    with config.host_evaluation(False):
        xtrace.clear_caches()
        assert _bits(function()) == first


_KEY = random.key(3)
_MATRIX = jnp.array(np.arange(12.0, dtype=np.float32).reshape(3, 4))
_CALLS = {
    "zeros": lambda: jnp.zeros((3, 4)), "ones": lambda: jnp.ones(3, jnp.int8), "full": lambda: jnp.full((2, 2), 1j),
    "arange": lambda: jnp.arange(5.0),
    "arange_of_integers": lambda: jnp.arange(2, 9, 3),
    "eye": lambda: jnp.eye(3, 4, 1),
    "tri": lambda: jnp.tri(3), "iota": lambda: lax.broadcasted_iota(jnp.uint8, (2, 3), 1),
    "bfloat16": lambda: jnp.zeros(3, jnp.bfloat16), "int4": lambda: jnp.zeros(3, jnp.int4),
    "split": lambda: random.split(_KEY, 3), "iterated": lambda: list(random.split(_KEY)),
    "fold_in": lambda: random.fold_in(_KEY, 7), "bits": lambda: random.bits(_KEY, (3, 5)),
    "bytes": lambda: random.bits(_KEY, (5,), jnp.uint8), "data": lambda: random.key_data(random.split(_KEY)),
    "old_keys": lambda: random.split(random.PRNGKey(1)), "rbg": lambda: random.split(random.key(1, impl="rbg")),
    "keys_moved": lambda: jnp.concatenate([random.split(_KEY, 4).reshape(2, 2).T[1], random.split(_KEY)]),
    "row": lambda: _MATRIX[1],
    "last_rows": lambda: _MATRIX[-2:],
    "column": lambda: _MATRIX[:, 1],
    "reversed": lambda: _MATRIX[::-1],
    "transposed": lambda: _MATRIX.T,
    "new_axis": lambda: _MATRIX[None],
    "row_at": lambda: lax.dynamic_slice(_MATRIX, (9, -1), (2, 2)),
    "updated": lambda: lax.dynamic_update_slice(_MATRIX, _MATRIX[:1, :2], (5, 3)),
    "padded": lambda: lax.pad(_MATRIX, 7.0, [(1, 0, 1), (0, 2, 0)]),
    "cut": lambda: lax.pad(_MATRIX, 7.0, [(-1, 0, 1), (0, 2, 0)]), "split_rows": lambda: jnp.split(_MATRIX, 2, axis=1),
    "stacked": lambda: jnp.stack([_MATRIX, _MATRIX], 1), "where": lambda: jnp.where(_MATRIX > 3, _MATRIX, 0),
    "widened": lambda: jnp.arange(4).astype(jnp.float32), "narrowed": lambda: jnp.arange(300).astype(jnp.int8),
    "truncated": lambda: (_MATRIX * 1e12).astype(jnp.int32), "flags": lambda: _MATRIX.astype(bool),
    "counted": lambda: jnp.cumsum(jnp.arange(5)),
    "scalar": lambda: jnp.array(3) * 5 - 2,
    "empty": lambda: jnp.zeros((0, 3)).T,
}


@pytest.mark.parametrize("name", _CALLS)
def test_the_first_call_gives_the_bits_of_the_compiled_program(name):
    _check_bits(_CALLS[name])


_RULES = [(p, rule) for table in (EXACT, ROUNDED) for p, rule in table.items() if p.name != "iota"]


@pytest.mark.parametrize("dtype", ["float32", "float64", "int8", "int32", "uint32", "int64", "bool"])
@pytest.mark.parametrize(("primitive", "rule"), _RULES, ids=lambda x: getattr(x, "name", ""))
def test_rules_give_the_bits_of_programs_for_all_pairs_of_special_numbers(primitive, rule, dtype):
    table = ROUNDED if np.dtype(dtype).kind == "f" else EXACT
    if table.get(primitive) is not rule:
        return
    values = np.array(_SPECIAL if table is ROUNDED else _INTEGERS).astype(dtype)
    x, y = map(np.ravel, np.meshgrid(values, values))
    operands = (x, y) if isinstance(primitive.kinds, list) and len(primitive.kinds) == 2 else (x,)
    with xtrace.enable_x64(True):
        try:
            compiled = np.asarray(xtrace.jit(primitive)(*operands))
        except TypeError:  # the operation does not take this dtype
            return
    evaluated = 0
    with np.errstate(all="ignore"):
        for i in range(x.size):
            try:
                result = rule(*[v[i : i + 1] for v in operands])
            except Declined:
                continue
            evaluated += 1
            assert result.dtype == compiled.dtype and result.tobytes() == compiled[i : i + 1].tobytes(), (x[i], y[i])
    assert evaluated > 10


_SHAPES = [
    ((999,), (999,)), ((999,), ()), ((), (999,)), ((999,), (1,)), ((30, 40), (1, 40)), ((30, 40), (30, 1)), ((), ()),
]


@pytest.mark.parametrize("shapes", _SHAPES, ids=str)
@pytest.mark.parametrize("operation", ["add", "sub", "mul", "div", "lt", "add_numpy", "divide_numpy"])
def test_operations_on_random_numbers_of_two_shapes(operation, shapes):
    x, y = [np.random.default_rng(i).uniform(0.1, 3, shape).astype(np.float32) for i, shape in enumerate(shapes)]
    x, y = jnp.asarray(x), jnp.asarray(y)
    name, _, of_numpy = operation.partition("_")
    _check_bits(lambda: getattr(jnp if of_numpy else lax, name)(x, y))


@pytest.mark.parametrize("call", [
    lambda x: x / 3, lambda x: 3 / x, lambda x: x / x[0], lambda x: (x - 1) * 2, lambda x: x * 0.1, lambda x: x - x[:1],
    jnp.sqrt, jnp.square, jnp.reciprocal, jnp.abs, lambda x: x.astype(int), lambda x: x**2, lambda x: x**-1,
    lambda x: jnp.clip(x, 0.5, 1.5), lambda x: jnp.maximum(x, 1), lambda x: jnp.sign(x - 1), lambda x: x % 1,
    lambda x: x // 0.3,
])
def test_functions_of_random_numbers(call):
    x = jnp.asarray(np.random.default_rng(5).uniform(0.1, 3, 999).astype(np.float32))
    _check_bits(lambda: call(x))


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.floats(width=32), min_size=1, max_size=6), st.sampled_from(["float32", "float64", "int32", "uint8"]),
    st.sampled_from(["bool", "int16", "uint32", "float16", "bfloat16", "float32", "float64", "complex64"]),
)
def test_conversions_give_the_bits_of_programs(numbers, source, target):
    with np.errstate(all="ignore"), xtrace.enable_x64(True):
        x = np.array(numbers, np.float32).astype(source)
        try:
            result = MOVES[lax.convert_element_type_p](x, new_dtype=jnp.dtype(target))
        except Declined:
            return
        compiled = np.asarray(xtrace.jit(lambda x: x.astype(target))(x))
    assert result.dtype == compiled.dtype and result.tobytes() == compiled.tobytes()


def test_first_calls_compile_nothing(compiled):
    keys = random.split(random.key(0), 3)
    x = jnp.arange(12.0).reshape(3, 4)
    random.fold_in(keys[0], 1), jnp.zeros((5, 7)), jnp.eye(3), x.T, x[1], x[:, 2:], [*x]
    x * x, x / (x + 1), -x, x == 3
    jnp.stack([x, x]), jnp.concatenate([x, x]), jnp.where(x > 2, x, 0.0), jnp.arange(3) * 2
    assert compiled == []


def test_the_fourth_call_is_compiled_and_later_ones_run_that_program(compiled):
    results = [jnp.zeros((2, 9)) + k for k in range(6)]
    assert [float(r.sum()) for r in results] == [18.0 * k for k in range(6)]
    assert compiled.count("@jit_add") == 1 and len([n for n in compiled if n == "@jit_full"]) <= 1


def test_numbers_that_xla_flushes_are_left_to_it(compiled):
    x = jnp.array([1e-30, 1.0])
    assert (x * 1e-10).tolist()[0] == 0 and compiled


def test_operands_keep_no_memory_and_can_be_donated_afterwards():
    double = xtrace.jit(lambda x: x * 2, donate_argnums=0)
    x = jnp.ones(3)
    for _ in range(6):
        row, x = x[:2], double(x)
        assert float(row[0]) * 2 == float(x[0])


def test_results_have_memory_of_their_own():
    x = jnp.arange(6.0)
    row = x[:3]
    x.delete()
    assert row.tolist() == [0, 1, 2]


def test_large_programs_and_those_of_users_are_compiled(compiled):
    jnp.zeros((2**11, 2**10))
    xtrace.jit(lambda x: x + 1)(3)
    assert len(compiled) == 2


_LIKE = {"weight": jnp.ones((3, 4)), "bias": (jnp.ones(2, jnp.bfloat16), jnp.arange(3))}
# Programs of users that read no argument: the state that an optimizer starts from, and such.
_CONSTANT = {
    "zeros": lambda tree: (jnp.zeros([], jnp.int32), xtrace.tree.map(jnp.zeros_like, tree)),
    "filled": lambda tree: xtrace.tree.map(lambda x: jnp.full(x.shape, 0.1), tree),
    "numbers": lambda tree: (1, 2.5, True, jnp.float32(3)), "counted": lambda tree: jnp.arange(7) * 3 - 2,
    "nothing": lambda tree: (),
}


@pytest.mark.parametrize("name", _CONSTANT)
def test_programs_of_users_that_read_no_argument_have_the_bits_of_compiled_ones(name, compiled):
    function = xtrace.jit(_CONSTANT[name])
    results = [_bits(function(_LIKE)) for _ in range(3)]
    assert not compiled
    results.append(_bits(function(_LIKE)))
    assert len(compiled) == 1 and all(r == results[0] for r in results)


@pytest.mark.parametrize("function", [
    xtrace.jit(lambda x: jnp.full(3, 0.1) * jnp.full(3, 0.3)), xtrace.jit(lambda x: (x, jnp.zeros(3))),
    xtrace.jit(lambda x: _MATRIX), xtrace.jit(lambda x: jnp.zeros(3), donate_argnums=0),
    xtrace.jit(lambda x: jnp.zeros(3), compiler_options={"xla_cpu_enable_fast_math": True}),
    xtrace.jit(lambda x: jnp.zeros((2**11, 2**10))), xtrace.jit(lambda x: jnp.sin(jnp.zeros(3))),
])
def test_other_programs_of_users_are_compiled(function, compiled):
    function(jnp.ones(3))
    assert "jit__lambda" in " ".join(compiled)


@pytest.mark.parametrize("setting", ["log_compiles", "debug_nans", "debug_key_reuse"])
def test_settings_that_look_at_programs_have_them_compiled(compiled, setting):
    with getattr(xtrace, setting)(True):
        jnp.zeros((3, 8))
    assert compiled


def test_transfers_that_are_forbidden_are_not_made(compiled):
    x = jnp.arange(6.0)
    with xtrace.transfer_guard("disallow"):
        x.reshape(2, 3)
    assert compiled


def test_a_device_of_the_operand_is_that_of_the_result():
    x = xtrace.device_put(jnp.arange(6.0), xtrace.devices()[0])
    assert x[1:].committed and not jnp.arange(6.0)[1:].committed


def test_programs_that_are_evaluated_are_freed():
    for size in range(1, 30):
        jnp.zeros((size, 3))
    xtrace.clear_caches()
    gc.collect()
    assert not [x for x in gc.get_objects() if type(x) is programs.HostProgram]

