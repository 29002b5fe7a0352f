"""NumPy's elementwise functions and Python's operators against jax.numpy's: values, dtypes, weak types, errors."""

from __future__ import annotations

import functools
import inspect
import operator
import warnings
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as xnp
from tests.support.elementwise_operations import ALIASES, NUMPY, NamedOperation, in_jax
from tests.support.operands import (
    ALL,
    FLOAT,
    FLOAT8,
    assert_same,
    assert_same_type,
    broadcastable_shapes,
    ours,
    random_values,
    seeds,
    theirs,
)

jnp = jax.numpy
SHAPE = (11,)


# Compiling is what takes the time; integers of 16 bits are as those of 8.
TRIED = [d for d in ALL if d.name not in ("int16", "uint16", "uint8")]


def values_for(row: NamedOperation, dtypes: list[Any], shapes: Any = None, seed: int = 3) -> list[Any]:
    """Return NumPy operands of the given dtypes."""
    shapes = [SHAPE] * len(dtypes) if shapes is None else shapes
    return [
        random_values(d, s, seed + i, row.low, row.high) for i, (d, s) in enumerate(zip(dtypes, shapes, strict=True))
    ]


def attempt(function: Callable[..., Any], *operands: Any) -> Any:
    """Return the result, or the class of the error."""
    try:
        return function(*operands)
    except (TypeError, ValueError, NotImplementedError, OverflowError) as error:
        return type(error)


def is_error(result: Any) -> bool:
    """Whether `attempt` returned an error."""
    return isinstance(result, type)


def accepts(row: NamedOperation, dtype: Any) -> bool:
    """Whether jax accepts `dtype` for all operands."""
    structs = [jax.ShapeDtypeStruct(SHAPE, dtype)] * row.operands
    return not is_error(attempt(jax.eval_shape, lambda *xs: row.call(jnp, *xs), *structs))


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("row", NUMPY, ids=str)
def test_values_and_types_agree(row):
    values = [values_for(row, [d] * row.operands) for d in TRIED if accepts(row, d)]
    # One program holds all dtypes: compiling is what takes the time.
    expected = jax.jit(lambda all_values: [row.call(jnp, *xs) for xs in all_values])(theirs(values))
    got = xtrace.jit(lambda all_values: [row.call(xnp, *xs) for xs in all_values])(ours(values))
    assert_same(got, expected, row.rounding, "jit")
    # Eagerly one dtype, another one for each row.
    i = NUMPY.index(row) % len(values)
    assert_same(row.call(xnp, *ours(values[i])), expected[i], row.rounding, "eager")


def operand(text: str, seed: int, shape: Any = SHAPE) -> Any:
    """Return the operand that `text` describes: a dtype, weak after "weak", a NumPy scalar, a Python scalar."""
    kind, _, rest = text.partition(" ")
    if kind == "weak":
        return random_values(rest, shape, seed), True
    if kind == "numpy":
        return np.dtype(rest).type(2.5 if "float" in rest else 2)
    if text in ("True", "2", "-3", "2.5", "1j"):
        return eval(text)
    return random_values(text, shape, seed), False


def both(operands: list[Any]) -> tuple[list[Any], list[Any]]:
    """Return the operands as arrays of ours and of jax's; scalars stay what they are."""
    pairs = [(ours(*x), theirs(*x)) if isinstance(x, tuple) else (x, x) for x in operands]
    return [p[0] for p in pairs], [p[1] for p in pairs]


ONE = ["bool", "int8", "uint32", "float16", "bfloat16", "float32", "complex64", "weak int32", "weak float32"]
ONE += ["weak complex64", "True", "2", "2.5", "1j", "numpy float64", "numpy int64"]
TWO = [
    ("int8", "2"), ("int8", "2.5"), ("float16", "2"), ("float16", "2.5"), ("bool", "2"), ("bool", "True"),
    ("int8", "True"), ("2", "int32"), ("int8", "uint8"), ("int8", "float16"), ("2", "2.5"), ("2", "2"),
    ("2.5", "2.5"), ("float32", "1j"), ("weak int32", "weak float32"), ("weak int32", "weak int32"),
    ("weak float32", "int32"), ("int32", "weak float32"), ("float32", "numpy float64"), ("float16", "numpy float32"),
    ("float32", "int32"), ("uint32", "int32"), ("bfloat16", "float16"), ("2.5", "int32"), ("True", "float32"),
    ("True", "True"), ("uint8", "2.5"), ("complex64", "float32"), ("weak float32", "float16"), ("-3", "uint8"),
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("row", [row for row in NUMPY if row.operands < 3], ids=str)
def test_types_of_mixed_operands_agree(row):
    for kinds in [(k,) for k in ONE] if row.operands == 1 else TWO:
        mine, other = both([operand(k, 5 + i) for i, k in enumerate(kinds)])
        # Scalars are closed over, so that they stay Python's.
        expected = attempt(jax.eval_shape, lambda: row.call(jnp, *other))  # noqa: B023
        got = attempt(xtrace.eval_shape, lambda: row.call(xnp, *mine))  # noqa: B023
        label = f"{row.name} of {kinds}"
        if is_error(expected):
            assert got is expected, f"{label}: {got} and {expected}"
            continue
        assert not is_error(got), f"{label}: {got}"
        for one, two in zip(*[r if isinstance(r, tuple) else (r,) for r in (got, expected)], strict=True):
            assert_same_type(one, two, label)


PAIRS = st.one_of(
    st.tuples(st.sampled_from([row for row in NUMPY if row.operands == 1]), st.tuples(st.sampled_from(ONE))),
    st.tuples(st.sampled_from([row for row in NUMPY if row.operands == 2]), st.sampled_from(TWO)),
)


@pytest.mark.drawn(0.3)
@settings(max_examples=60)
@given(PAIRS, seeds, st.data())
def test_eager_results_of_mixed_operands_agree(pair, seed, data):
    row, kinds = pair
    shapes = data.draw(broadcastable_shapes(len(kinds)), label="shapes")
    operands = [operand(k, seed + i, s) for i, (k, s) in enumerate(zip(kinds, shapes, strict=True))]
    mine, other = both(operands)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        expected = attempt(lambda: row.call(jnp, *other))
    got = attempt(lambda: row.call(xnp, *mine))
    if is_error(expected):
        assert is_error(got)
        return
    assert_same(got, expected, row.rounding, f"{row} of {kinds}")
    # The second call takes the way that the first one remembered.
    assert_same(row.call(xnp, *mine), expected, row.rounding, "again")


@pytest.mark.parametrize("name", ["add", "multiply", "floor_divide", "maximum", "where", "power", "less"])
def test_numpy_operands(name):
    x, y = random_values(np.float32, (2, 3), 1, 0.5, 4), random_values(np.int32, (3,), 2, 1, 5)
    row = next(row for row in NUMPY if row.name == name)
    operands = (x > 1, x, y) if name == "where" else (x, y)
    expected = row.call(jnp, *operands)
    assert_same(row.call(xnp, *operands), expected)
    assert_same(row.call(xnp, ours(operands[0]), *operands[1:]), expected)
    assert_same(xtrace.jit(lambda x: row.call(xnp, x, *operands[1:]))(operands[0]), expected)


def test_eight_bit_floats():
    dtype = FLOAT8[0]
    # For these jax's formulas need wider bits than there are, or XLA has no operation.
    left_out = ("spacing", "frexp", "signbit", "copysign", "nextafter", "ldexp", "isclose")
    rows = [row for row in NUMPY if row.operands < 3 and row.name not in left_out and accepts(row, dtype)]
    values = [values_for(row, [dtype] * row.operands) for row in rows]
    expected = jax.jit(lambda all_values: [r.call(jnp, *xs) for r, xs in zip(rows, all_values)])(theirs(values))
    got = xtrace.jit(lambda all_values: [r.call(xnp, *xs) for r, xs in zip(rows, all_values)])(ours(values))
    for row, one, other in zip(rows, got, expected, strict=True):
        assert_same(one, other, row.rounding, str(row))


POWERS = [
    "P.numpy.int8(2) ** n", "2 ** n", "2.5 ** n", "P.numpy.asarray(2.5) ** n", "P.numpy.float16(2.5) ** n",
    "P.numpy.power(2.5, n)", "P.numpy.int32(3) ** P.numpy.int32(100)", "P.numpy.bool_(True) ** n", "np.int8(2) ** n",
    "P.numpy.int8(2) ** np.array(3)", "P.numpy.int8(2) ** P.numpy.uint8(3)", "P.numpy.int8(2) ** P.numpy.array([3])",
    "P.numpy.float32(2) ** P.numpy.int32(-2)", "P.numpy.int32(2) ** P.numpy.int32(-1)", "2 ** np.array(-1)",
    "P.jit(lambda y: P.numpy.int8(2) ** y)(n)", "P.jit(lambda x: x ** n)(P.numpy.int8(2))",
    "P.jvp(lambda x: x ** n, (0.0,), (1.0,))", "P.vmap(lambda x: x ** n)(P.numpy.arange(3, dtype='int8'))",
    "P.jit(lambda x: x ** P.numpy.int32(3))(P.numpy.int8(2))",
]


@pytest.mark.parametrize("text", POWERS)
def test_powers_to_integer_scalars(text):
    got, expected = [
        attempt(lambda: eval(text, {"P": package, "n": package.numpy.int32(3), "np": np}))  # noqa: B023
        for package in (xtrace, jax)
    ]
    if is_error(expected):
        assert got is expected
    else:
        assert_same(got, expected)


def test_powers_to_constants_are_multiplied_out():
    for exponent in (np.array(3), np.int64(3), xnp.array(3)):
        assert "integer_pow[y=3] a" in str(xtrace.make_jaxpr(lambda x: x**exponent)(2.0))  # noqa: B023


# Operators

OPERATORS: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add, "-": operator.sub, "*": operator.mul, "/": operator.truediv, "//": operator.floordiv,
    "%": operator.mod, "**": operator.pow, "divmod": divmod, "&": operator.and_, "|": operator.or_,
    "^": operator.xor, "<<": operator.lshift, ">>": operator.rshift, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, "<=": operator.le, ">": operator.gt, ">=": operator.ge,
}
MIXED = [
    ("float32", "float32"), ("int32", "int32"), ("bool", "bool"), ("float32", "2.5"), ("2.5", "float32"),
    ("int32", "2"), ("2", "int32"), ("float16", "int8"), ("int8", "numpy float32"), ("uint8", "-3"),
    ("complex64", "complex64"), ("bool", "True"),
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("symbol", OPERATORS)
def test_operators(symbol):
    function = OPERATORS[symbol]
    chosen = []
    for kinds in MIXED:
        mine, other = both([operand(k, 7 + i) for i, k in enumerate(kinds)])
        expected = attempt(jax.eval_shape, lambda: function(*other))  # noqa: B023
        if is_error(expected):
            assert is_error(attempt(lambda: function(*mine))), kinds  # noqa: B023
        else:
            chosen.append((kinds, mine, other))
    expected = jax.jit(lambda *_: [function(*other) for _, _, other in chosen])(0)
    got = xtrace.jit(lambda *_: [function(*mine) for _, mine, _ in chosen])(0)
    assert_same(got, expected, where=symbol)
    for (kinds, mine, _), wanted in list(zip(chosen, expected, strict=True))[:4]:
        assert_same(function(*mine), wanted, where=f"{symbol} of {kinds}")


@pytest.mark.parametrize("function", [operator.neg, operator.pos, abs, operator.invert, round, lambda x: round(x, 1)])
def test_unary_operators(function):
    for kind in ("float32", "int32", "bool", "complex64", "uint8", "weak float32"):
        if function is round and kind == "complex64":
            continue  # jax is about to refuse it, and warns
        mine, other = both([operand(kind, 7)])
        expected = attempt(lambda: function(*other))  # noqa: B023
        if is_error(expected):
            assert is_error(attempt(lambda: function(*mine))), kind  # noqa: B023
        else:
            assert_same(function(*mine), expected, where=kind)
            traced = xtrace.eval_shape(lambda: function(*mine))  # noqa: B023
            assert (traced.shape, traced.dtype) == (expected.shape, expected.dtype)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("exponent", [np.int32(2), np.int8(-2), np.uint32(200), np.array(3), np.array(-1), np.bool_(1)])
def test_one_known_integer_as_the_exponent(exponent):
    bases = (3, 2.5, np.uint8([2, 3]), np.float32([0, 2]), np.array([True, False]))
    places: dict[str, Callable[..., Any]] = {
        "as an operator": lambda p, x, n: p.numpy.asarray(x) ** n,
        "in jit": lambda p, x, n: p.jit(lambda x: p.numpy.power(x, n))(x),
        "traced": lambda p, x, n: p.jit(p.numpy.power)(x, n),
        "not mapped": lambda p, x, n: p.vmap(p.numpy.power, (None, None), axis_size=2)(x, n),
        "differentiated": lambda p, x, n: p.vjp(lambda n: p.numpy.power(x, n), n)[0],
        "without tangent": lambda p, x, n: p.jvp(
            p.numpy.power, (1.5 * x, n), (1.5 * x, np.zeros((), jax.dtypes.float0))
        ),
    }
    mine, other = ours(exponent), theirs(exponent)
    for base in bases:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for known, kept in ((exponent, exponent), (mine, other)):
                expected = attempt(jnp.power, base, kept)
                if not is_error(expected):
                    assert_same(xnp.power(base, known), expected, 4, f"{base} ** {known!r}")
            for place, call in places.items():
                expected = attempt(jax.eval_shape, lambda: call(jax, base, other))  # noqa: B023
                got = attempt(xtrace.eval_shape, lambda: call(xtrace, base, mine))  # noqa: B023
                where = f"{base} ** {mine!r} {place}"
                assert is_error(got) == is_error(expected), where
                if not is_error(expected):
                    jax.tree.map(functools.partial(assert_same_type, where=where), got, expected)


def test_operators_with_what_is_no_array():
    x = ours(np.arange(3, dtype=np.float32))
    for wrong in ([1, 2, 3], (1, 2, 3)):
        for function in (operator.add, operator.mul, operator.eq, operator.lt, operator.pow):
            with pytest.raises(TypeError, match=r"xtrace\.numpy\.asarray"):
                function(x, wrong)
    for wrong in ("text", None, {}, object()):
        for function in (operator.add, operator.lt, operator.floordiv, operator.pow, divmod):
            with pytest.raises(TypeError):
                function(x, wrong)
            with pytest.raises(TypeError):
                function(wrong, x)
        if wrong == {}:
            for function in (operator.eq, operator.ne):
                with pytest.raises(TypeError, match=r"xtrace\.numpy\.asarray"):
                    function(x, wrong)
        else:
            assert (x == wrong) is False and (x != wrong) is True

    class Other:
        def __radd__(self, other):
            return "theirs"

    assert x + Other() == "theirs"


def test_python_scalars_that_do_not_fit():
    x = ours(np.array([1, 2], np.int8))
    assert_same(x + 1000, theirs(np.array([1, 2], np.int8)) + 1000)
    with pytest.raises(OverflowError, match="1099511627776"):
        x + 2**40
    with pytest.raises(OverflowError):
        xtrace.make_jaxpr(lambda x: x + 2**40)(x)


# jaxprs


def test_operators_read_as_the_operations_behind_them():
    x = np.arange(3, dtype=np.float32)
    for function, text in (
        (lambda x: x + 1, "add a 1.0"), (lambda x: 2 * x, "mul 2.0 a"), (lambda x: x - 1.5, "sub a 1.5"),
        (lambda x: x**2, "integer_pow[y=2] a"), (lambda x: x**-1, "integer_pow[y=-1] a"),
        (lambda x: x**0.5, "pow a 0.5"), (lambda x: x < 2, "lt a 2.0"), (lambda x: -x, "neg a"),
        (lambda x: xnp.maximum(x, 0), "max a 0.0"), (lambda x: abs(x), "abs a"), (lambda x: x == x, "eq a a"),
    ):
        jaxpr = xtrace.make_jaxpr(function)(x)
        assert len(jaxpr.eqns) == 1 and f"= {text} in" in str(jaxpr), text


def test_a_lower_rank_gets_its_axes_and_nothing_else():
    jaxpr = xtrace.make_jaxpr(lambda x, y: x + y)(np.zeros((2, 3), np.float32), np.zeros(3, np.float32))
    assert [e.primitive.name for e in jaxpr.eqns] == ["broadcast_in_dim", "add"]
    jaxpr = xtrace.make_jaxpr(lambda x, y: x + y)(np.zeros((2, 3), np.float32), np.zeros((), np.float32))
    assert [e.primitive.name for e in jaxpr.eqns] == ["add"]


# Functions on their own


def test_where_with_a_condition_only():
    x = np.array([[0, 3], [5, 0]], np.int32)
    assert_same(list(xnp.where(ours(x))), list(jnp.where(theirs(x))))
    assert_same(list(xnp.where(ours(x), size=3)), list(jnp.where(theirs(x), size=3)))
    with pytest.raises(ValueError, match="size"):
        xnp.where(ours(x), ours(x), ours(x), size=2)
    with pytest.raises(TypeError):
        xnp.where(ours(x), ours(x))


@settings(max_examples=12)
@given(broadcastable_shapes(3), seeds)
def test_where_broadcasts_condition_and_cases(shapes, seed):
    condition = random_values(bool, shapes[0], seed)
    x, y = random_values(np.float32, shapes[1], seed), random_values(np.int32, shapes[2], seed)
    assert_same(xnp.where(*ours((condition, x, y))), jnp.where(*theirs((condition, x, y))))


@pytest.mark.parametrize("bounds", [{}, {"min": 0}, {"max": 1.5}, {"min": -1, "max": 1}, {"min": 2.0, "max": 1.0}])
@pytest.mark.parametrize("kind", ["int32", "float32", "bfloat16", "bool", "weak float32", "2"])
def test_clip(kind, bounds):
    mine, other = both([operand(kind, 1)])
    assert_same(xnp.clip(*mine, **bounds), jnp.clip(*other, **bounds))


def test_clip_takes_arrays_as_bounds_and_no_complex_numbers():
    x, low, high = [random_values(np.float32, s, 1) for s in ((2, 3), (3,), (2, 1))]
    assert_same(xnp.clip(*ours((x, low, high))), jnp.clip(*theirs((x, low, high))))
    with pytest.raises(ValueError, match="complex"):
        xnp.clip(ours(x.astype(np.complex64)), 0, 1)


@pytest.mark.parametrize("decimals", [-2, -1, 0, 1, 3])
@pytest.mark.parametrize("dtype", FLOAT, ids=lambda d: d.name)
def test_round_to_decimals(dtype, decimals):
    x = random_values(dtype, SHAPE, 1, -300, 300)
    expected = jnp.round(theirs(x), decimals)
    assert_same(xnp.round(ours(x), decimals), expected)
    assert_same(xnp.around(ours(x), decimals), expected)


def test_round_refuses():
    x = ours(np.array([12, 27], np.int32))
    with pytest.raises(NotImplementedError):
        xnp.round(x, -1)
    with pytest.raises(TypeError, match="must be an integer"):
        xnp.round(x, 1.5)
    with pytest.raises(ValueError, match="round does not accept dtype bool"):
        xnp.round(ours(np.array([True])))


def test_shapes_that_do_not_broadcast_are_all_listed():
    shapes = ((2, 3), (4,), (2, 5))
    x, y, z = [ours(np.zeros(s, np.float32)) for s in shapes]
    calls = (lambda: x + y, lambda: xnp.arctan2(x, z), lambda: xnp.where(x > 0, y, z), lambda: xnp.clip(x, y, z))
    for function in calls:
        with pytest.raises((TypeError, ValueError)) as caught:
            function()
        assert sum(str(s) in str(caught.value) for s in shapes) >= 2


@pytest.mark.parametrize("name", ["add", "sin", "where", "hypot", "divmod", "clip", "isclose", "power", "logical_and"])
def test_operands_that_are_no_arrays_are_named(name):
    row = next(row for row in NUMPY if row.name == name)
    for wrong in ([1.0], "text", None):
        # Without an array to choose from or to clip, something else is wrong.
        if name in ("where", "clip") and wrong is None:
            continue
        operands = [wrong] + [1.0] * (row.operands - 1)
        with pytest.raises(TypeError, match=rf"(?s)(?=.*{name if name != 'mod' else ''})(?=.*valid JAX type)"):
            row.call(xnp, *operands)


def test_parameters_of_ufuncs_that_immutable_arrays_do_not_have():
    x = ours(np.zeros(2, np.float32))
    for name in ("add", "subtract", "multiply", "negative", "maximum", "bitwise_or", "logical_and", "logaddexp"):
        operands = [x] if name == "negative" else [x, x]
        with pytest.raises(NotImplementedError, match=rf"'out' argument to xtrace\.numpy\.{name}"):
            getattr(xnp, name)(*operands, out=x)
        with pytest.raises(NotImplementedError, match="'where' argument"):
            getattr(xnp, name)(*operands, where=x)
    with pytest.raises(NotImplementedError):
        xnp.modf(x, out=(x, x))
    with pytest.raises(TypeError):
        xnp.sin(x, out=x)


def test_rank_promotion_follows_the_setting():
    x, y = ours(np.zeros((2, 3), np.float32)), ours(np.zeros(3, np.float32))
    with xtrace.numpy_rank_promotion("raise"), pytest.raises(ValueError, match="rank"):
        x * y
    assert (x * y).shape == (2, 3)


def test_what_was_remembered_follows_x64():
    weak = ours(np.array([1, 2], np.int32), True)
    assert (weak + weak).dtype == np.int32 and xnp.true_divide(1, 2).dtype == np.float32
    with xtrace.enable_x64(True):
        assert xnp.true_divide(1, 2).dtype == np.float64
        assert (weak + weak).dtype == np.int64
    assert (weak + weak).dtype == np.int32 and xnp.true_divide(1, 2).dtype == np.float32


def test_powers_of_ten_have_exact_logarithms_in_doubles():
    """The factor is 1 / log(10) rounded once; the quotient of two doubles is off by one in the last place."""
    with xtrace.enable_x64(True):
        np.testing.assert_array_equal(xnp.log10(10.0 ** np.arange(15)), np.arange(15))
        np.testing.assert_array_equal(xnp.geomspace(10, 1000, 3, dtype=int), [10, 100, 1000])


@pytest.mark.parametrize("row", in_jax(NUMPY), ids=str)
def test_parameters_are_those_of_jax(row):
    expected = inspect.signature(getattr(jnp, row.name)).parameters
    if row.name in ("add", "subtract", "multiply", "negative", "bitwise_and", "bitwise_or", "bitwise_xor"):
        assert list(expected) == ["args", "out", "where"]
    assert list(inspect.signature(getattr(xnp, row.name)).parameters) == list(expected)
    assert (getattr(xnp, row.name).__doc__ or "").strip()


def test_aliases_and_kinds_of_objects():
    for alias, name in ALIASES.items():
        found, original = getattr(xnp, alias), getattr(xnp, name)
        assert found.__name__ == found.__qualname__ == alias == getattr(jnp, alias).__name__
        assert found.__doc__ == original.__doc__ and inspect.signature(found) == inspect.signature(original)
        operands = [np.arange(1, 4)] * len(inspect.signature(found).parameters)
        np.testing.assert_array_equal(found(*operands), original(*operands))
    assert xnp.iscomplexobj(1j) and not xnp.iscomplexobj(ours(np.zeros(2, np.float32)))
    assert xnp.isrealobj(2.0) and not xnp.isrealobj(ours(np.zeros(2, np.complex64)))


def test_every_function_of_the_module_has_a_row():
    source = xtrace.numpy.elementwise.ufuncs
    public = {
        name for name, value in vars(source).items()
        if callable(value) and not name.startswith("_") and getattr(value, "__module__", "").startswith("xtrace")
        and hasattr(xnp, name) and getattr(xnp, name) is value
    }
    tested = {row.name for row in NUMPY} | set(ALIASES) | {"around", "iscomplexobj", "isrealobj", "nonzero"}
    assert public <= tested, sorted(public - tested)


def test_wide_constants_under_jit_wrap_as_arrays_do():
    numbers = np.array([1, -1, -6701771231528497213])
    for name in ("fabs", "sin", "negative"):
        function = getattr(xnp, name)
        assert_same(xtrace.jit(lambda f=function: f(numbers))(), getattr(jax.numpy, name)(numbers), 4)
    for name in ("copysign", "hypot", "true_divide"):
        function = getattr(xnp, name)
        theirs = getattr(jax.numpy, name)(numbers, numbers[:1])
        assert_same(xtrace.jit(lambda f=function: f(numbers, numbers[:1]))(), theirs, 4)
