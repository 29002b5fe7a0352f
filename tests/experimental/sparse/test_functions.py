"""Functions of BCOO and BCSR arrays in all layouts, by the results of jax's."""

import itertools

import numpy as np
import pytest

import xtrace
from tests.support.sparse_arrays import OURS, THEIRS, assert_facts, compare, compare_programs, draw, facts_of

pytestmark = pytest.mark.thorough

X = draw((2, 3, 4))
MATRIX = draw((3, 4), 1)
LAYOUTS = [(b, d) for b, d in itertools.product(range(4), repeat=2) if b + d <= 3]


def bcoo(package, values, n_batch=0, n_dense=0, **keywords):
    return package.sparse.BCOO.fromdense(package.np.array(values), n_batch=n_batch, n_dense=n_dense, **keywords)


@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 1), (2, 1)])
def test_conversions(n_batch, n_dense):
    def case(p):
        mat = bcoo(p, X, n_batch, n_dense)
        padded = bcoo(p, X, n_batch, n_dense, nse=mat.nse + 2, index_dtype=np.int16)
        extracted = p.sparse.bcoo_extract(padded, p.np.array(X + 1))
        ordered = p.sparse.bcoo_sort_indices(mat), p.sparse.bcoo_sum_duplicates(padded)
        return [mat, mat.data, mat.indices, padded.indices, extracted.data, *ordered, ordered[1].indices,
                p.sparse.bcoo_fromdense(X, nse=1, n_batch=n_batch, n_dense=n_dense), p.sparse.bcoo_todense(mat)]

    compare(case)


PERMUTATIONS = [(0, 0, (2, 0, 1)), (2, 0, (1, 0, 2)), (0, 2, (0, 2, 1)), (1, 0, (0, 2, 1)), (1, 1, (0, 1, 2))]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(("n_batch", "n_dense", "permutation"), PERMUTATIONS)
def test_transposition(n_batch, n_dense, permutation):
    compare_programs(
        lambda p, m: p.sparse.bcoo_transpose(m, permutation=permutation), lambda p: bcoo(p, X, n_batch, n_dense)
    )


CHANGES = [
    ((0, 0), (1, 0)), ((0, 0), (0, 1)), ((0, 0), (2, 1)), ((1, 0), (0, 0)), ((1, 0), (0, 2)), ((1, 0), (1, 1)),
    ((0, 1), (1, 0)), ((0, 1), (0, 0)), ((1, 1), (0, 0)), ((1, 1), (2, 0)), ((1, 1), (0, 3)), ((1, 1), (3, 0)),
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(("old", "new"), CHANGES)
def test_layouts(old, new):
    options = {"n_batch": new[0], "n_dense": new[1], "on_inefficient": None}
    compare_programs(lambda p, m: m.update_layout(**options), lambda p: bcoo(p, X, *old))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("axes", [(0,), (1,), (0, 2), (0, 1, 2)])
@pytest.mark.parametrize(("n_batch", "n_dense"), [(1, 1), (2, 0)])
def test_sums(n_batch, n_dense, axes):
    compare_programs(lambda p, m: p.sparse.bcoo_reduce_sum(m, axes=axes), lambda p: bcoo(p, X, n_batch, n_dense))


PARTS = {
    "slice": lambda s, m: s.bcoo_slice(m, start_indices=(0, 1, 0), limit_indices=(2, 3, 3)),
    "strides": lambda s, m: s.bcoo_slice(m, start_indices=(0, 0, 1), limit_indices=(2, 3, 4), strides=(1, 2, 2)),
    "one": lambda s, m: s.bcoo_slice(m, start_indices=(1, 1, 1), limit_indices=(2, 2, 2)),
    "none": lambda s, m: s.bcoo_slice(m, start_indices=(0, 1, 1), limit_indices=(2, 1, 3)),
    "dynamic_slice": lambda s, m: s.bcoo_dynamic_slice(m, (0, 7, 1), (1, 2, 2)),
    "rev": lambda s, m: s.bcoo_rev(m, (0, 2)),
    "squeeze": lambda s, m: s.bcoo_squeeze(
        s.bcoo_slice(m, start_indices=(1, 0, 2), limit_indices=(2, 3, 3)), dimensions=(0, 2)
    ),
    "concatenate_0": lambda s, m: s.bcoo_concatenate([m, m], dimension=0),
    "multiply_dense": lambda s, m: s.bcoo_multiply_dense(m, MATRIX),
    "multiply_column": lambda s, m: s.bcoo_multiply_dense(m, X[:, :, :1]),
    "multiply_sparse": lambda s, m: s.bcoo_multiply_sparse(m, s.bcoo_rev(m, (2,))),
}


# Operators and indices have the layout without batch and dense axes.
@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", PARTS)
def test_parts_and_products(name):
    compare_programs(lambda p, m: PARTS[name](p.sparse, m), lambda p: bcoo(p, X, 1, 1))


@pytest.mark.parametrize("axis", [1, 2])
def test_concatenation(axis):
    # Elements outside of an operand stay outside, which those of jax do not; the dense arrays are the same.
    found = [p.sparse.bcoo_concatenate([bcoo(p, X, 1)] * 2, dimension=axis).todense() for p in (OURS, THEIRS)]
    np.testing.assert_array_equal(*found)


def test_concatenation_of_different_lengths():
    parts = [bcoo(OURS, X, 1), bcoo(OURS, X[:1] * 0 + 1, 1)]
    joined = OURS.sparse.bcoo_concatenate(parts, dimension=0)
    np.testing.assert_array_equal(joined.todense(), np.concatenate([X, X[:1] * 0 + 1]))


SHAPES = [
    (0, 0, (6, 4)), (0, 0, (24,)), (0, 0, (1, 24)), (1, 0, (2, 12)), (1, 0, (1, 2, 3, 4)), (2, 0, (6, 4)),
    (0, 1, (6, 4)),
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize(("n_batch", "n_dense", "shape"), SHAPES)
def test_shapes(n_batch, n_dense, shape):
    compare_programs(
        lambda p, m: p.sparse.bcoo_reshape(m, new_sizes=shape), lambda p: bcoo(p, X, n_batch, n_dense, nse=12)
    )


def test_shape_of_transposed_axes():
    compare(lambda p: p.sparse.bcoo_reshape(bcoo(p, MATRIX), new_sizes=(12,), dimensions=(1, 0)).todense())


BROADCASTS = [
    (0, 0, (5, 3, 4), (1, 2)), (1, 0, (5, 3, 4), (1, 2)), (0, 1, (3, 4, 5), (0, 1)), (0, 0, (3, 1, 4), (0, 2)),
    (1, 0, (3, 5, 4), (0, 2)), (0, 0, (3, 4, 1), (0, 1)),
]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize(("n_batch", "n_dense", "shape", "axes"), BROADCASTS)
def test_broadcasts(n_batch, n_dense, shape, axes):
    compare_programs(
        lambda p, m: p.sparse.bcoo_broadcast_in_dim(m, shape=shape, broadcast_dimensions=axes),
        lambda p: bcoo(p, MATRIX, n_batch, n_dense),
    )


def test_broadcast_of_a_dense_axis():
    column = MATRIX[:, :1] + 1
    mat = bcoo(OURS, column, 0, 1)
    wide = OURS.sparse.bcoo_broadcast_in_dim(mat, shape=(3, 5), broadcast_dimensions=(0, 1))
    np.testing.assert_array_equal(wide.todense(), np.broadcast_to(column, (3, 5)))


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("index", [
    -1, (1, 2), (slice(None, None, -1),), (..., 0), (slice(None), None),
    (slice(None), slice(None, None, 2)), np.array([0, 2, 1]), (slice(None), np.array([0, 3, 1])),
    (np.array([0, 2]), np.array([1, 2])),
], ids=str)
@pytest.mark.parametrize("n_batch", [0, 1])
def test_indexing(index, n_batch):
    compare_programs(lambda p, m: m[index], lambda p: bcoo(p, MATRIX, n_batch))


def test_gather():
    def case(p, mat):
        numbers = p.lax.GatherDimensionNumbers((1,), (0,), (0,))
        return p.sparse.bcoo_gather(mat, np.array([[2], [0]], np.int32), numbers, (1, 4))

    compare_programs(case, lambda p: bcoo(p, MATRIX))


ROWS = draw((4, 2), 2)
PRODUCTS = [
    ((((2,), (0,)), ((), ())), draw((4, 2), 3)), ((((0, 2), (1, 0)), ((), ())), draw((4, 2, 5), 4)),
    ((((0, 1, 2), (0, 1, 2)), ((), ())), X), ((((), ()), ((), ())), draw((2,), 5)),
    ((((1,), (1,)), ((0,), (2,))), draw((5, 3, 2), 6)),
]


@pytest.mark.parametrize(("numbers", "other"), PRODUCTS, ids=str)
@pytest.mark.parametrize(("n_batch", "n_dense"), [(0, 0), (1, 1), (2, 1)])
def test_contractions_with_dense_arrays(n_batch, n_dense, numbers, other):
    mat = bcoo(OURS, X, n_batch, n_dense)
    expected = np.asarray(THEIRS.lax.dot_general(X, other, numbers))
    np.testing.assert_allclose(
        OURS.sparse.bcoo_dot_general(mat, other, dimension_numbers=numbers), expected, rtol=1e-5
    )
    turned = tuple([pair[::-1] for pair in numbers])
    swapped = np.asarray(THEIRS.lax.dot_general(other, X, turned))
    np.testing.assert_allclose(
        OURS.sparse.bcoo_dot_general(other, mat, dimension_numbers=turned), swapped, rtol=1e-5
    )


@pytest.mark.parametrize(("numbers", "shapes"), [
    ((((1,), (0,)), ((), ())), ((3, 4), (4, 5))), ((((2,), (1,)), ((0,), (0,))), ((2, 3, 4), (2, 4, 5))),
])
def test_sampled_contractions(numbers, shapes):
    left, right = (draw(shape, i, share=1) for i, shape in enumerate(shapes))
    dense = np.asarray(THEIRS.lax.dot_general(left, right, numbers))
    pattern = draw(dense.shape, 7)
    for n_batch, n_dense in ((0, 0), (1, 0), (0, 1), (1, 1)):
        indices = bcoo(OURS, pattern, n_batch, n_dense, nse=9).indices
        found = OURS.sparse.bcoo_dot_general_sampled(left, right, indices, dimension_numbers=numbers)
        other = THEIRS.sparse.bcoo_dot_general_sampled(
            left, right, THEIRS.np.array(np.asarray(indices)), dimension_numbers=numbers
        )
        np.testing.assert_array_equal(found, other)


SPARSE_PRODUCTS = [
    (MATRIX, 0, ROWS, 0, (((1,), (0,)), ((), ()))), (MATRIX, 1, ROWS, 0, (((1,), (0,)), ((), ()))),
    (X, 1, draw((2, 4, 3), 8), 1, (((2,), (1,)), ((0,), (0,)))), (MATRIX, 0, MATRIX, 0, (((0, 1), (0, 1)), ((), ()))),
    (MATRIX, 0, ROWS, 0, (((), ()), ((), ()))), (MATRIX, 0, ROWS[:, 0], 0, (((1,), (0,)), ((), ()))),
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize(("left", "left_batch", "right", "right_batch", "numbers"), SPARSE_PRODUCTS)
def test_contractions_of_sparse_arrays(left, left_batch, right, right_batch, numbers):
    compare_programs(
        lambda p, pair: p.sparse.bcoo_dot_general(*pair, dimension_numbers=numbers),
        lambda p: (bcoo(p, left, left_batch), bcoo(p, right, right_batch)),
    )


def test_dtypes_of_contractions():
    whole = MATRIX.astype(np.int32)
    compare(lambda p: bcoo(p, whole) @ p.np.array(ROWS))
    compare(lambda p: bcoo(p, MATRIX.astype(np.float16)) @ p.np.array(ROWS.astype(np.float16)))
    compare(lambda p: p.sparse.bcoo_dot_general(
        bcoo(p, whole), whole.T, dimension_numbers=(((1,), (0,)), ((), ())), preferred_element_type=np.float32
    ))


SIGNAL, KERNEL = np.array([[[1, 0, 2, 0, 3.0]]], np.float32), np.array([[[1, 0, 2.0]]], np.float32)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("padding", ["VALID", "SAME", [(2, 2)], [(0, 1)]])
def test_convolutions(padding):
    options = {"window_strides": (1,), "padding": padding}
    for kernel in (lambda p: bcoo(p, KERNEL), lambda p: p.np.array(KERNEL)):
        compare_programs(
            lambda p, pair: p.sparse.bcoo_conv_general_dilated(*pair, **options),
            lambda p, kernel=kernel: (bcoo(p, SIGNAL), kernel(p)),
        )


def duplicates(p, **keywords):
    data = p.np.array([1.0, 2.0, 3.0, 4.0, -3.0])
    return p.sparse.BCOO((data, p.np.array([[1, 0], [0, 1], [1, 0], [2, 5], [-1, 0]])), shape=(2, 3), **keywords)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("case", [
    lambda m: m, lambda m: m.sum_duplicates(nse=4), lambda m: m.sum_duplicates(nse=1), lambda m: m.sort_indices().data,
    lambda m: m.sort_indices().indices, lambda m: m.T, lambda m: 2 * m,
])
def test_elements_stored_several_times(case):
    compare(lambda p: case(p.sparse.BCOO((duplicates(p).data[:4], duplicates(p).indices[:4]), shape=(2, 3))))


def test_elements_extracted_several_times():
    dense = np.arange(6, dtype=np.float32).reshape(2, 3) + 1
    for unique in (None, True, False):
        compare(lambda p, unique=unique: p.sparse.bcoo_extract(duplicates(p), dense, assume_unique=unique).data[:4])


def test_functions_of_elements_stored_several_times():
    # A function that is not linear applies to the sum, and not to the terms.
    dense = np.asarray(duplicates(OURS).todense())
    for function in (OURS.np.sin, OURS.np.square, lambda x: x**3):
        found = OURS.sparse.sparsify(function)(duplicates(OURS)).todense()
        np.testing.assert_allclose(found, function(dense), rtol=1e-6)


@pytest.mark.parametrize("remove_zeros", [True, False])
def test_zeros_are_removed(remove_zeros):
    def case(p):
        mat = p.sparse.BCOO((p.np.array([1.0, 0, 3, -3]), p.np.array([[1, 0], [0, 1], [1, 1], [1, 1]])), shape=(2, 3))
        return mat.sum_duplicates(remove_zeros=remove_zeros)

    compare(case)


def broadcast_batches(p, which):
    data, indices = np.array([[1.0, 2]], np.float32), np.array([[[0], [1]], [[1], [2]], [[0], [0]], [[2], [1]]])
    if which == "indices":
        data, indices = np.arange(8, dtype=np.float32).reshape(4, 2), np.array([[[1], [0]]])
    return p.sparse.BCOO((p.np.array(data), p.np.array(indices)), shape=(4, 3))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("case", [
    lambda s, m: m, lambda s, m: m.sort_indices(), lambda s, m: m @ np.ones((3, 2), np.float32),
    lambda s, m: s.bcoo_slice(m, start_indices=(0, 0), limit_indices=(2, 1)), lambda s, m: s.bcoo_rev(m, (0, 1)),
    lambda s, m: s.bcoo_reduce_sum(m, axes=(1,)), lambda s, m: s.bcoo_multiply_dense(m, np.ones((4, 1), np.float32)),
    lambda s, m: m.sum_duplicates(nse=2), lambda s, m: m.transpose((0, 1)),
])
@pytest.mark.parametrize("which", ["data", "indices"])
def test_batches_stored_once(case, which):
    compare_programs(lambda p, m: case(p.sparse, m), lambda p: broadcast_batches(p, which))


@pytest.mark.parametrize("format", ["bcoo", "bcsr", "coo", "csr", "csc"])
def test_empty_arrays_and_identities(format):
    compare(lambda p: p.sparse.empty((2, 3), np.int32, sparse_format=format))
    for n, m, k in ((3, None, 0), (3, 4, 1), (3, 4, -1), (2, 3, 5)):
        if format == "bcsr":
            found = OURS.sparse.eye(n, m, k, sparse_format=format)
            np.testing.assert_array_equal(found.todense(), np.eye(n, m, k))
        else:
            compare(lambda p, n=n, m=m, k=k: p.sparse.eye(n, m, k, np.float16, sparse_format=format))


@pytest.mark.parametrize(("n_batch", "n_dense"), [(1, 0), (0, 1), (1, 1)])
def test_empty_arrays_and_identities_in_batches(n_batch, n_dense):
    compare(lambda p: p.sparse.empty((2, 3), n_batch=n_batch, n_dense=n_dense, nse=2))
    compare(lambda p: p.sparse.eye(3, k=1, n_batch=n_batch, n_dense=n_dense))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("case", [
    lambda p, m: m, lambda p, m: [m.data, m.indices, m.indptr], lambda p, m: m.to_bcoo(),
    lambda p, m: m @ p.np.ones((4, 2)), lambda p, m: p.sparse.bcsr_todense(m),
    lambda p, m: p.sparse.bcsr_extract(m.indices, m.indptr, p.np.array(X)), lambda p, m: m.sum_duplicates(nse=7),
    lambda p, m: p.sparse.bcsr_sum_duplicates(m, m.nse + 1),
    lambda p, m: p.sparse.bcsr_concatenate([m, m], dimension=2),
    lambda p, m: p.sparse.bcsr_concatenate([m, m], dimension=1),
    lambda p, m: p.sparse.bcsr_broadcast_in_dim(m, shape=(5, 2, 3, 4), broadcast_dimensions=(1, 2, 3)),
])
def test_compressed_rows(case):
    compare_programs(case, lambda p: p.sparse.BCSR.fromdense(p.np.array(X), n_batch=1))


def test_compressed_rows_of_other_layouts():
    compare(lambda p: p.sparse.bcsr_fromdense(p.np.array(X), n_dense=1, nse=8))
    compare(lambda p: p.sparse.BCSR.from_bcoo(bcoo(p, MATRIX, nse=9).T))
    numbers = (((0,), (0,)), ((), ()))
    compare(lambda p: p.sparse.bcsr_dot_general(
        p.sparse.BCSR.fromdense(MATRIX), p.np.array(MATRIX), dimension_numbers=numbers
    ))
    product = MATRIX.T @ OURS.sparse.BCSR.fromdense(MATRIX)
    np.testing.assert_array_equal(product, MATRIX.T @ MATRIX)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("options", [
    {}, {"nse": 3, "n_batch": 1}, {"nse": 0.5, "n_dense": 1, "sorted_indices": True},
    {"nse": 3, "unique_indices": False}, {"nse": 2, "dtype": np.float16, "indices_dtype": np.int8},
])
def test_random_arrays(options):
    def case(p):
        options.setdefault("dtype", np.float32)
        mat = p.sparse.random_bcoo(p.api.random.key(0), (4, 5), **options)
        return [mat, mat.data, mat.indices]

    compare(case)


def test_arrays_of_scipy():
    scipy_sparse = pytest.importorskip("scipy.sparse")
    values = scipy_sparse.csr_matrix(MATRIX)
    compare(lambda p: [p.sparse.BCOO.from_scipy_sparse(values), p.sparse.BCSR.from_scipy_sparse(values)])


def test_functions_under_jit():
    def function(m, v):
        product = OURS.sparse.bcoo_multiply_sparse(m, m)
        return product.sum_duplicates(nse=6) @ v, m.T, m[1:], OURS.sparse.BCOO.fromdense(v, nse=4)

    mat, v = bcoo(OURS, MATRIX), OURS.np.arange(4.0)
    assert_facts(facts_of(OURS, xtrace.jit(function)(mat, v)), facts_of(OURS, function(mat, v)))
