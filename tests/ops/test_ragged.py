"""Products of groups of rows and of scaled operands against jax.lax, and their rules."""

import jax
import ml_dtypes
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, finite_values, ours, random_values, theirs
from tests.support.operations import check_error, check_jaxpr, check_types, check_values
from tests.support.rules import check_rules
from xtrace import lax


def numbers(module, contracting, batch, ragged, group):
    return module.RaggedDotDimensionNumbers((contracting, batch), (ragged,), group)


# lhs shape, rhs shape, shape of the sizes, dimension numbers.
FORMS = {
    "rows": ((6, 3), (2, 3, 4), (2,), ((1,), (1,)), ((), ()), 0, (0,)),
    "rows, other axes": ((3, 6), (4, 2, 3), (2,), ((0,), (2,)), ((), ()), 1, (1,)),
    "more rows": ((2, 6, 3), (2, 3, 4), (2,), ((2,), (1,)), ((), ()), 1, (0,)),
    "more rows, each with groups": ((2, 6, 3), (2, 3, 4), (2, 2), ((2,), (1,)), ((), ()), 1, (0,)),
    "inner rows": ((6, 2, 3), (2, 3, 4), (2,), ((2,), (1,)), ((), ()), 0, (0,)),
    "batches": ((2, 6, 3), (2, 3, 3, 4), (3,), ((2,), (2,)), ((0,), (0,)), 1, (1,)),
    "batches with groups": ((2, 6, 3), (3, 3, 2, 4), (2, 3), ((2,), (1,)), ((0,), (2,)), 1, (0,)),
    "two summed axes": ((5, 3, 2), (2, 2, 3, 4), (2,), ((1, 2), (2, 1)), ((), ()), 0, (0,)),
    "summed": ((3, 6), (6, 4), (2,), ((1,), (0,)), ((), ()), 1, ()),
    "summed, two axes": ((3, 2, 6), (6, 2, 4), (2, 3), ((1, 2), (1, 0)), ((), ()), 2, ()),
    "summed in batches": ((2, 3, 6), (2, 6, 4), (2, 2), ((2,), (1,)), ((0,), (0,)), 2, ()),
    "batch": ((6, 2, 3), (6, 3, 4), (2,), ((2,), (1,)), ((0,), (0,)), 0, ()),
    "a later batch": ((2, 6, 3), (6, 3, 2), (2, 3), ((2,), (1,)), ((0, 1), (2, 0)), 1, ()),
    "no group": ((6, 3), (0, 3, 4), (0,), ((1,), (1,)), ((), ()), 0, (0,)),
    "no row": ((0, 3), (2, 3, 4), (2,), ((1,), (1,)), ((), ()), 0, (0,)),
}


def product(form, **others):
    """Return the operation of a form."""
    *_, contracting, batch, ragged, group = form
    return lambda module, x, y, sizes: module.ragged_dot_general(
        x, y, sizes, numbers(module, contracting, batch, ragged, group), **others
    )


def operands(form, dtype=np.float32):
    left, right, sizes = form[:3]
    return (random_values(dtype, left, 1, -2, 2), random_values(dtype, right, 2, -2, 2),
            np.random.default_rng(3).integers(0, 4, sizes).astype(np.int32))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", FORMS)
def test_forms(name):
    form = FORMS[name]
    x, y, sizes = operands(form)
    check_values(product(form), x, y, sizes, rounding=64)
    check_jaxpr(product(form), x, y, sizes)
    check_types(product(form), (x.shape, x.dtype), (y.shape, y.dtype), (sizes.shape, sizes.dtype))


def test_the_definition():
    x, y, sizes = operands(FORMS["rows"])
    sizes = np.array([1, 3], np.int32)
    expected = np.concatenate([x[:1] @ y[0], x[1:4] @ y[1], np.zeros((2, 4), np.float32)])
    np.testing.assert_allclose(lax.ragged_dot(x, y, sizes), expected, atol=12 * 2.0**-22)


@pytest.mark.parametrize("sizes", [(2, 4), (0, 6), (6, 0), (2, 2), (2, 8), (0, 0)])
def test_sizes(sizes):
    x, y, _ = operands(FORMS["rows"])
    for dtype in (np.int32, np.uint8, np.int8):
        check_values(lambda m, x, y, s: m.ragged_dot(x, y, s), x, y, np.array(sizes, dtype), rounding=64)


@pytest.mark.parametrize(
    "dtype", [bool, np.int8, np.uint8, np.int32, np.float16, ml_dtypes.bfloat16, np.complex64], ids=str
)
def test_dtypes(dtype):
    check_values(lambda m, x, y, s: m.ragged_dot(x, y, s), *operands(FORMS["rows"], dtype), rounding=64)


def test_mixed_and_preferred_types():
    x, y, sizes = operands(FORMS["rows"])
    check_values(lambda m, x, y, s: m.ragged_dot(x, y, s), x.astype(np.float16), y, sizes, rounding=64)
    for dtype, preferred in ((np.float16, np.float32), (np.int8, np.int32)):

        def operation(m, x, y, s, preferred=preferred):
            return m.ragged_dot(x, y, s, preferred_element_type=preferred)

        check_values(operation, x.astype(dtype), y.astype(dtype), sizes, rounding=64)
    check_jaxpr(lambda m, x, y, s: m.ragged_dot(x, y, s, precision="high"), x, y, sizes)


def module_text(module, run, arguments, platform):
    lowered = module.jit(run).trace(*arguments).lower(lowering_platforms=(platform,))
    return next(line for line in lowered.as_text().splitlines() if "ragged_dot" in line and "=" in line)


@pytest.mark.parametrize("name", ["rows", "batches with groups", "summed in batches"])
def test_other_platforms_have_an_operation_for_it(name):
    form = FORMS[name]
    arguments = operands(form)
    operation = product(form, precision="highest")
    got = module_text(xtrace, lambda *a: operation(lax, *a), arguments, "tpu")
    expected = module_text(jax, lambda *a: operation(jax.lax, *a), arguments, "tpu")
    assert got.strip() == expected.strip()


def test_dimension_numbers():
    pairs = ([[1], [1]], [[], []])
    mine, other = (m.RaggedDotDimensionNumbers(pairs, [0], [0]) for m in (lax, jax.lax))
    assert repr(mine) == repr(other)
    assert mine == lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,))
    assert hash(mine) == hash(lax.RaggedDotDimensionNumbers((((1,), (1,)), ((), ())), (0,), (0,)))
    with pytest.raises(TypeError, match="lhs_contracting"):
        lax.RaggedDotDimensionNumbers((1, 2), (0,), (0,))


# Rules. jax has no transposes where the ragged axis is summed or a batch, and maps over all operands or none.

DERIVED = [name for name, form in FORMS.items() if form[-1] and "no " not in name]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", DERIVED)
def test_derivatives(name):
    x, y, sizes = operands(FORMS[name])
    check_rules(product(FORMS[name]), x, y, sizes, rounding=256, batching=False)


def total(x):
    return float(np.sum(np.asarray(x, np.float64)))


@pytest.mark.parametrize("name", FORMS)
def test_transposes_are_adjoint(name):
    """The product with a cotangent is the product of the operand with what the transpose gives of it."""
    form = FORMS[name]
    x, y, sizes = operands(form)
    call = product(form)
    result, pullback = xtrace.vjp(lambda x, y: call(lax, x, y, sizes), x, y)
    cotangent = finite_values(np.float32, result.shape, 9)
    for operand, found in zip((x, y), pullback(cotangent), strict=True):
        assert found.shape == operand.shape
        size = np.sum(np.abs(np.asarray(result) * cotangent)) + 1
        assert abs(total(np.asarray(result) * cotangent) - total(np.asarray(found) * operand)) < 1e-5 * size


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("which", [(0,), (1,), (2,), (0, 1), (0, 2), (1, 2), (0, 1, 2)], ids=str)
def test_batched_forms_are_loops(name, which):
    form = FORMS[name]
    given = operands(form)
    axes = [(1 if given[i].ndim > 1 else 0) if i in which else None for i in range(3)]
    stacked = [
        x if axis is None else np.stack([x, np.roll(x, 1), x[::-1]], axis) for x, axis in zip(given, axes, strict=True)
    ]
    call = product(form)
    got = xtrace.vmap(lambda *a: call(lax, *a), axes)(*stacked)
    for i in range(3):
        one = [x if axis is None else np.take(x, i, axis) for x, axis in zip(stacked, axes, strict=True)]
        assert_same(got[i], call(lax, *one), 64)


def test_all_operands_mapped_as_in_jax():
    form = FORMS["rows"]
    stacked = [np.stack([x, np.roll(x, 1)]) for x in operands(form)]
    mapped = [m.vmap(module.ragged_dot)(*map(make, stacked))
              for m, module, make in ((xtrace, lax, ours), (jax, jax.lax, theirs))]
    assert_same(*mapped, 64)


ERRORS = {
    "two ragged axes": (((1,), (1,)), ((), ()), (0, 1), (0,), (2, 3, 4), "exactly one lhs ragged"),
    "no ragged axis": (((1,), (1,)), ((), ()), (), (0,), (2, 3, 4), "exactly one lhs ragged"),
    "no such axis": (((1,), (1,)), ((), ()), (4,), (0,), (2, 3, 4), "got 4 for lhs of rank 2"),
    "no group axis": (((1,), (0,)), ((), ()), (0,), (), (3, 4), "exactly one rhs group"),
    "a group axis": (((1,), (1,)), ((), ()), (1,), (0,), (2, 3, 4), "zero group dimensions"),
    "summed groups": (((1,), (1,)), ((), ()), (0,), (1,), (2, 3, 4), "distinct from contracting"),
    "sizes": (((1,), (1,)), ((), ()), (0,), (0,), (2, 4, 4), "contracting dimensions to have the same shape"),
    "number of groups": (((1,), (1,)), ((), ()), (0,), (0,), (3, 3, 4), "group dimension size to be 2, got 3"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    *pairs, ragged, group, shape, words = ERRORS[name]
    x, sizes = np.ones((6, 3), np.float32), np.array([2, 4], np.int32)
    check_error(
        lambda m, x, y, s: m.ragged_dot_general(x, y, s, m.RaggedDotDimensionNumbers(tuple(pairs), ragged, group)),
        TypeError, [words], x, np.ones(shape, np.float32), sizes,
    )


def test_errors_of_sizes():
    x, y = np.ones((6, 3), np.float32), np.ones((2, 3, 4), np.float32)
    for sizes, words in ((np.ones(2, np.float32), "integers, got float32"), (np.ones((3, 2), np.int32), "(3, 2)"),
                         (np.int32(2), "rank of group_sizes")):
        check_error(lambda m, x, y, s: m.ragged_dot(x, y, s), TypeError, [words], x, y, sizes)
    with pytest.raises(NotImplementedError, match="group_offset"):
        lax.ragged_dot(x, y, np.ones(2, np.int32), group_offset=np.zeros(1, np.int32))
    with pytest.raises(TypeError, match="RaggedDotDimensionNumbers"):
        lax.ragged_dot_general(x, y, np.ones(2, np.int32), (((1,), (1,)), ((), ())))


# Operands with scales

NARROW, SCALE = ml_dtypes.float8_e4m3fn, ml_dtypes.float8_e8m0fnu


def scaled_operands(left=(2, 3, 8), right=(2, 8, 4), scales=((2, 3, 2), (2, 4, 4)), dtype=NARROW):
    powers = [2.0 ** np.random.default_rng(i).integers(-2, 3, s) for i, s in enumerate(scales)]
    return (random_values(dtype, left, 1, -2, 2), random_values(dtype, right, 2, -2, 2),
            *[p.astype(SCALE) for p in powers])


def scaled(**others):
    return lambda m, x, y, a, b: m.scaled_dot(x, y, lhs_scale=a, rhs_scale=b, **others)


@pytest.mark.parametrize("preferred", [None, np.float32, ml_dtypes.bfloat16], ids=str)
def test_scaled_dot(preferred):
    given = scaled_operands()
    check_values(scaled(preferred_element_type=preferred), *given, rounding=32)
    if preferred is None:
        check_jaxpr(scaled(), *given)


def test_scaled_dot_of_other_operands():
    check_values(scaled(), *[x[0] for x in scaled_operands()], rounding=32)
    check_values(scaled(), *scaled_operands(dtype=ml_dtypes.bfloat16), rounding=32)
    x, y, a, _ = scaled_operands()
    check_values(lambda m, x, y, a: m.scaled_dot(x, y, lhs_scale=a), x, y, a, rounding=32)
    check_values(lambda m, x, y: m.scaled_dot(x, y, preferred_element_type="float32"), x, y, rounding=32)
    pairs = (((2,), (2,)), ((0,), (0,)))
    given = scaled_operands((2, 3, 8), (2, 4, 8), ((2, 3, 2), (2, 4, 4)))
    check_values(scaled(dimension_numbers=pairs), *given, rounding=32)
    multiplied = scaled_operands((2, 4, 8), (2, 4, 8), ((2, 2, 2), (2, 1, 4)))
    check_values(scaled(dimension_numbers=(((1, 2), (1, 2)), ((0,), (0,)))), *multiplied, rounding=64)


def test_scaled_dot_is_batched():
    check_rules(scaled(), *scaled_operands(), derivatives=False, rounding=32)


def test_scaled_dot_is_a_composite():
    text = xtrace.jit(lambda *a: scaled()(lax, *a)).lower(*scaled_operands()).as_text()
    line = next(line for line in text.splitlines() if "stablehlo.composite" in line)
    other = jax.jit(lambda *a: scaled()(jax.lax, *a)).lower(*scaled_operands()).as_text()
    assert line.strip() == next(line for line in other.splitlines() if "stablehlo.composite" in line).strip()


def test_scaled_dot_errors():
    x, y, a, b = scaled_operands()
    for given, words in (((x, y, a[:, :2], b), "axis 1 of lhs_scale must have the size 3"), ((x, y, a[0], b), "rank"),
                         ((x, y, np.ones((2, 3, 3), SCALE), b), "divide the size 8"),
                         ((x, y, np.ones((2, 3, 8), SCALE), b), "at least two elements"),
                         ((x, y[:, :6], a, b), "contracting dimensions")):
        check_error(scaled(), TypeError, [words], *given)
    check_error(lambda m, x: m.scaled_dot(x, x), TypeError, ["at least 2 axes"], x[0, 0])
    with pytest.raises(NotImplementedError, match="Differentiation rule for 'scaled_dot'"):
        xtrace.grad(lambda x: lax.reduce_sum(lax.scaled_dot(x, x), (0, 1)))(np.ones((2, 2), np.float32))
