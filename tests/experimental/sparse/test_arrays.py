"""Sparse arrays as objects: matrices, operators, trees, transformations, `sparsify`, and errors."""

import re

import numpy as np
import pytest

import xtrace
from tests.support.sparse_arrays import OURS, THEIRS, assert_facts, compare, compare_programs, draw, facts_of
from xtrace.experimental import sparse

pytestmark = pytest.mark.thorough

MATRIX = draw((3, 4), 1)
VECTOR, COLUMNS = np.arange(4, dtype=np.float32), np.arange(8, dtype=np.float32).reshape(4, 2)
FORMATS = ["BCOO", "BCSR", "COO", "CSR", "CSC"]


def bcoo(package, values=MATRIX, **keywords):
    return package.sparse.BCOO.fromdense(package.np.array(values), **keywords)


# Matrices of two axes


@pytest.mark.parametrize("format", ["COO", "CSR", "CSC"])
def test_matrices(format):
    def case(p):
        kind = getattr(p.sparse, format)
        mat = kind.fromdense(p.np.array(MATRIX))
        padded = kind.fromdense(p.np.array(MATRIX), nse=9, index_dtype=np.int16)
        transposed = mat.T @ p.np.array(COLUMNS[:3]), mat.T.todense()
        return [mat, padded, padded.data, mat @ p.np.array(VECTOR), mat @ p.np.array(COLUMNS.astype(int)), *transposed,
                mat.T.T, mat.nse, mat.size, mat.ndim, len(mat), repr(mat), p.sparse.todense(mat),
                *p.api.tree_util.tree_leaves(padded)]

    compare(case)


def test_functions_of_matrices():
    def case(p):
        results = []
        for kind in ("coo", "csr"):
            mat = getattr(p.sparse, f"{kind}_fromdense")(p.np.array(MATRIX))
            matvec, matmat = (getattr(p.sparse, f"{kind}_{name}") for name in ("matvec", "matmat"))
            results += [mat, getattr(p.sparse, f"{kind}_todense")(mat), matvec(mat, p.np.array(VECTOR)),
                        matvec(mat, p.np.array(VECTOR[:3]), transpose=True), matmat(mat, p.np.array(COLUMNS)),
                        matmat(mat, p.np.array(COLUMNS[:3]), transpose=True)]
        return results

    compare(case)
    # Names that the cases above make.
    assert sparse.coo_fromdense and sparse.coo_matmat and sparse.coo_matvec and sparse.coo_todense
    assert sparse.csr_fromdense and sparse.csr_matmat and sparse.csr_matvec and sparse.csr_todense


def test_elements_in_the_order_of_rows():
    for p in (OURS, THEIRS):
        mat = p.sparse.COO.fromdense(p.np.array(MATRIX)).T._sort_indices()
        np.testing.assert_array_equal(mat.row, np.sort(mat.row))
        np.testing.assert_array_equal(mat.todense(), MATRIX.T)


# The derivative of a product with a CSC matrix is wrong in jax.
@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("format", FORMATS[:-1])
def test_derivatives_and_programs_of_formats(format):
    def case(p):
        mat = getattr(p.sparse, format).fromdense(p.np.array(MATRIX))

        def loss(data, v):
            leaves, tree = p.api.tree_util.tree_flatten(mat)
            made = p.api.tree_util.tree_unflatten(tree, [data, *leaves[1:]])
            return p.np.sin(made @ v).sum() + (made.todense() ** 2).sum()

        jitted = p.api.jit(lambda m, v: m @ v)(mat, p.np.array(VECTOR))
        arguments = mat.data, p.np.array(VECTOR)
        tangents = p.api.jvp(loss, arguments, arguments)
        return [jitted, *p.api.jit(p.api.grad(loss, (0, 1)))(*arguments), *tangents, p.sparse.grad(
            lambda m: (m @ p.np.array(VECTOR)).sum())(mat)]

    compare(case, rounding=64)


def test_derivatives_of_compressed_columns():
    mat = sparse.CSC.fromdense(MATRIX)

    def loss(product):
        return OURS.np.sin(product).sum()

    gradient = xtrace.grad(lambda d: loss(sparse.CSC((d, mat.indices, mat.indptr), shape=mat.shape) @ VECTOR))(mat.data)
    dense = np.asarray(xtrace.grad(lambda x: loss(x @ VECTOR))(MATRIX))
    columns = np.repeat(np.arange(4), np.diff(mat.indptr))
    np.testing.assert_allclose(gradient, dense[np.asarray(mat.indices), columns], rtol=1e-5)


# Operators


OPERATORS = {
    "neg": lambda p, m, d: -m, "abs": lambda p, m, d: abs(m), "pos": lambda p, m, d: +m, "add": lambda p, m, d: m + m,
    "add_dense": lambda p, m, d: m + d, "radd": lambda p, m, d: d + m, "sub": lambda p, m, d: m - m,
    "mul": lambda p, m, d: m * m, "scale": lambda p, m, d: 2 * m, "mul_dense": lambda p, m, d: m * d,
    "rmul": lambda p, m, d: d * m, "mul_row": lambda p, m, d: m * d[0], "mul_column": lambda p, m, d: m * d[:, :1],
    "mul_first": lambda p, m, d: m * m[:1], "div": lambda p, m, d: m / 2, "div_dense": lambda p, m, d: m / (d + 9),
    "pow": lambda p, m, d: m**3, "matmul": lambda p, m, d: m @ d.T, "rmatmul": lambda p, m, d: d.T @ m,
    "vector": lambda p, m, d: m @ d[0], "rvector": lambda p, m, d: d[:, 0] @ m, "sparse": lambda p, m, d: m @ m.T,
    "batches": lambda p, m, d: m @ p.np.ones((2, 4, 3)), "rbatches": lambda p, m, d: p.np.ones((2, 5, 3)) @ m,
    "sum": lambda p, m, d: m.sum(), "sum_0": lambda p, m, d: m.sum(0), "sum_1": lambda p, m, d: m.sum(axis=1),
    "keepdims": lambda p, m, d: m.sum(0, keepdims=True), "astype": lambda p, m, d: m.astype(np.int32),
    "reshape": lambda p, m, d: m.reshape(4, -1), "list": lambda p, m, d: list(m)[1],
    "transpose": lambda p, m, d: m.transpose((1, 0)), "dtype": lambda p, m, d: m.sum(0, dtype=np.int32),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators(name):
    compare_programs(lambda p, pair: OPERATORS[name](p, *pair), lambda p: (bcoo(p), p.np.array(MATRIX)))


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", ["mul", "mul_dense", "matmul", "sum_0", "rmatmul"])
def test_operators_on_batches(name):
    compare_programs(lambda p, pair: OPERATORS[name](p, *pair), lambda p: (bcoo(p, n_batch=1), p.np.array(MATRIX)))


def test_operators_that_jax_has_not():
    mat = bcoo(OURS)
    np.testing.assert_array_equal(mat - MATRIX, MATRIX * 0)
    np.testing.assert_array_equal(np.ones((2, 3), np.float32) @ mat, np.ones((2, 3), np.float32) @ MATRIX)
    np.testing.assert_array_equal((np.float32(2) * mat).todense(), 2 * MATRIX)
    assert (MATRIX * mat).nse == mat.nse


# Trees and transformations


@pytest.mark.parametrize("format", FORMATS)
def test_trees(format):
    mat = getattr(sparse, format).fromdense(MATRIX)
    leaves, tree = xtrace.tree.flatten(mat)
    assert repr(xtrace.tree.unflatten(tree, leaves)) == repr(mat)
    assert repr(xtrace.tree.unflatten(tree, [None] * len(leaves))) == f"{format}(<invalid>)"
    assert hash(tree) == hash(xtrace.tree.structure(mat)) and tree == xtrace.tree.structure(mat)
    assert mat.block_until_ready() is mat and isinstance(mat, sparse.JAXSparse)
    described = []
    xtrace.jit(lambda m: described.append(repr(m)) or m.data)(mat)
    assert described == [f"DynamicJaxprTracer[{mat!r}]"]
    with pytest.raises(TypeError, match="unhashable"):
        hash(mat)


BATCHED = draw((2, 3, 4), 3)


def test_batches_are_mapped():
    def case(p, arrays):
        mat, rows = arrays
        vmap = p.api.vmap
        return [
            vmap(lambda m: m.todense())(mat), vmap(lambda m: m @ p.np.array(VECTOR))(mat), vmap(lambda m: 2 * m)(mat),
            vmap(vmap(lambda m: m.sum()))(mat), vmap(lambda m: m.todense(), in_axes=1)(mat),
            vmap(lambda m, v: m @ v, (None, 0))(p.sparse.eye(4), p.np.array(COLUMNS.T)),
            vmap(lambda x: p.sparse.BCOO.fromdense(x, nse=3))(p.np.array(MATRIX)),
            vmap(lambda m: m @ p.np.array(COLUMNS))(rows),
        ]

    compare_programs(
        case, lambda p: (bcoo(p, BATCHED, n_batch=2), p.sparse.BCSR.fromdense(p.np.array(BATCHED), n_batch=1))
    )


def test_primitives_show_in_jaxprs():
    def names(p, function, *args):
        return [e.primitive.name for e in p.api.make_jaxpr(function)(*args).eqns]

    def shown(p):
        mat, rows = bcoo(p), p.sparse.BCSR.fromdense(p.np.array(MATRIX))
        coo, csr = p.sparse.COO.fromdense(p.np.array(MATRIX)), p.sparse.CSR.fromdense(p.np.array(MATRIX))
        return [
            *names(p, lambda m: m.T.todense(), mat), *names(p, lambda m: m @ COLUMNS, mat),
            *names(p, lambda m: p.sparse.bcoo_sum_duplicates(m.sort_indices(), nse=2), mat),
            *names(p, lambda x: p.sparse.BCOO.fromdense(x, nse=2).data, MATRIX), *names(p, p.sparse.todense, mat),
            *names(p, lambda m: p.sparse.bcoo_extract(m, MATRIX), mat), *names(p, lambda m: m @ COLUMNS, rows),
            *names(p, lambda x: p.sparse.BCSR.fromdense(x, nse=2).data, MATRIX),
            *names(p, lambda m: m @ VECTOR, coo), *names(p, lambda m: m.todense(), csr),
        ]

    assert shown(OURS) == shown(THEIRS)


def test_primitives_are_transposed():
    mat = bcoo(OURS)
    (data,) = xtrace.linear_transpose(lambda d: mat.with_data(d).todense(), mat.data)(MATRIX)
    np.testing.assert_array_equal(data, mat.data)
    (vector,) = xtrace.linear_transpose(lambda v: mat @ v, VECTOR)(VECTOR[:3])
    np.testing.assert_array_equal(vector, VECTOR[:3] @ MATRIX)
    (data,) = xtrace.linear_transpose(lambda d: mat.with_data(d).sort_indices().data, mat.data)(mat.data)
    np.testing.assert_array_equal(data, mat.data)


# Derivatives by stored elements


def loss(p, m, v):
    return (p.np.sin(m @ v)).sum()


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("case", [
    lambda p, m, v: p.sparse.grad(lambda m, v: loss(p, m, v))(m, v),
    lambda p, m, v: p.sparse.grad(lambda m, v: loss(p, m, v), 1)(m, v),
    lambda p, m, v: p.sparse.value_and_grad(lambda m, v: (loss(p, m, v), v), (0, 1), has_aux=True)(m, v),
    lambda p, m, v: p.sparse.grad(lambda both: loss(p, both["m"], both["v"]))({"m": m, "v": v}),
    lambda p, m, v: p.sparse.jacfwd(lambda m, v: m @ v)(m, v),
    lambda p, m, v: p.sparse.jacrev(lambda m, v: m @ v, (0, 1))(m, v),
    lambda p, m, v: p.sparse.jacobian(lambda m, v: (m @ v, v), has_aux=True)(m, v),
    lambda p, m, v: p.sparse.jacrev(lambda m: m.todense())(m),
], ids=range(8))
@pytest.mark.parametrize("format", ["BCOO", "BCSR"])
def test_derivatives(case, format):
    compare_programs(
        lambda p, pair: case(p, *pair),
        lambda p: (getattr(p.sparse, format).fromdense(p.np.array(MATRIX)), p.np.array(VECTOR)),
    )


# sparsify


FUNCTIONS = {
    "sin": lambda p, m: p.np.sin(m), "square": lambda p, m: p.np.square(m), "conj": lambda p, m: p.np.conj(m),
    "same": lambda p, m: m * m, "sub_same": lambda p, m: m - m, "twice": lambda p, m: m + p.np.sin(m),
    "mean": lambda p, m: m.mean(), "norm": lambda p, m: p.np.linalg.norm(m), "stack": lambda p, m: p.np.stack([m, m]),
    "concatenate": lambda p, m: p.np.concatenate([m, m], 1), "einsum": lambda p, m: p.np.einsum("ij,kj->ik", m, MATRIX),
    "vdot": lambda p, m: p.np.vdot(m, MATRIX), "roll": lambda p, m: p.np.roll(m, 1, 0),
    "outer": lambda p, m: p.np.outer(m[0], m[1]), "expand": lambda p, m: p.np.expand_dims(m, 0),
    "dynamic": lambda p, m: p.lax.dynamic_slice(m, (0, 1), (2, 2)), "tree": lambda p, m: {"a": m, "b": [m * 2]},
    "for": lambda p, m: p.lax.fori_loop(0, 3, lambda i, x: x * 2, m),
    "for_dense": lambda p, m: p.lax.fori_loop(0, 3, lambda i, x: m.T @ (m @ x), p.np.ones(4)),
    "while": lambda p, m: p.lax.while_loop(lambda c: c[0] < 3, lambda c: (c[0] + 1, c[1] * 2), (0, m)),
    "cond": lambda p, m: p.lax.cond(True, lambda m: m * 2, lambda m: m * 3, m),
    "jit": lambda p, m: p.api.jit(lambda m: m @ COLUMNS)(m), "shape": lambda p, m: m.shape[0] * 1.0,
    "vmap": lambda p, m: p.api.vmap(lambda v: m @ v)(p.np.array(COLUMNS.T)),
    "grad": lambda p, m: p.api.grad(lambda v: (m @ v).sum())(p.np.array(VECTOR)),
    "todense": lambda p, m: p.sparse.todense(m), "tanh": lambda p, m: p.np.tanh(m) * 2,
    "copy": lambda p, m: p.np.copy(m), "zeros": lambda p, m: p.np.zeros_like(m),
    "diagonal": lambda p, m: p.np.diag(m), "dot": lambda p, m: p.np.dot(m, COLUMNS),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_sparsified_functions(name):
    compare_programs(lambda p, m: p.sparse.sparsify(lambda m: FUNCTIONS[name](p, m))(m), bcoo)


@pytest.mark.parametrize("name", ["sin", "einsum", "for", "while", "cond", "jit", "tree", "todense", "grad"])
def test_functions_of_sparse_tracers(name):
    kinds = []

    def function(m):
        kinds.append(type(m))
        return FUNCTIONS[name](OURS, m)

    found = sparse.sparsify(function, use_tracer=True)(bcoo(OURS))
    assert_facts(facts_of(OURS, found), facts_of(THEIRS, THEIRS.sparse.sparsify(
        lambda m: FUNCTIONS[name](THEIRS, m), use_tracer=True)(bcoo(THEIRS))))
    assert kinds == [sparse.SparseTracer]


def test_sparsified_functions_that_jax_has_not():
    mat, apply = bcoo(OURS), OURS.sparse.sparsify
    first, second = apply(lambda m: OURS.np.split(m, 2, axis=1))(mat)
    np.testing.assert_array_equal(np.concatenate([first.todense(), second.todense()], 1), MATRIX)
    carry, rows = apply(lambda m: xtrace.lax.scan(lambda c, x: (c * 2, m @ x), m, COLUMNS.T))(mat)
    np.testing.assert_array_equal(carry.todense(), 4 * MATRIX)
    np.testing.assert_array_equal(rows, (MATRIX @ COLUMNS).T)
    np.testing.assert_array_equal(apply(xtrace.checkpoint(lambda m: m @ COLUMNS))(mat), MATRIX @ COLUMNS)


def test_sparsify_inside_of_transformations():
    def case(p):
        mat, apply = bcoo(p), p.sparse.sparsify
        rows = p.sparse.BCSR.fromdense(p.np.array(MATRIX))

        def by_data(data):
            made = p.sparse.BCOO((data, mat.indices), shape=mat.shape)
            return apply(lambda m: p.np.sin(m @ p.np.array(COLUMNS)).sum())(made)

        return [p.api.jit(apply(lambda m: m @ p.np.array(COLUMNS)))(mat), p.api.grad(by_data)(mat.data),
                apply(lambda m, v: m @ v)(rows, v=p.np.array(VECTOR)),
                apply(lambda m: m @ p.np.array(VECTOR))(p.sparse.COO.fromdense(p.np.array(MATRIX)))]

    compare(case, rounding=64)


# Errors


def layout_of(mat):
    return sparse.bcoo_update_layout(mat, n_batch=1)


ERRORS = [
    (lambda m: layout_of(m), sparse.SparseEfficiencyError, "raising n_batch from 0 to 1 stores all elements"),
    (lambda m: m.update_layout(n_dense=3), ValueError, "do not fit an array of 2 axes"),
    (lambda m: m.update_layout(n_dense=1, on_inefficient="no"), ValueError, "on_inefficient is 'error', 'warn' or"),
    (lambda m: m @ COLUMNS[:3], TypeError, "contracting dimensions to have the same shape"),
    (lambda m: m + 1, NotImplementedError, "would make a dense array"), (lambda m: 1 / m, NotImplementedError, "dense"),
    (lambda m: m > 0, NotImplementedError, "sparse rule for gt is not implemented because it would result in dense"),
    (lambda m: m**-1, NotImplementedError, "non-positive exponent"), (lambda m: m**m, NotImplementedError, "pow"),
    (lambda m: m * np.ones((2, 3, 4), np.float32), NotImplementedError, "larger than the sparse array"),
    (lambda m: m + m[:1], NotImplementedError, "different shapes"), (lambda m: m.reshape(5), TypeError, "reshape"),
    (lambda m: m + m.update_layout(n_dense=1, on_inefficient=None), NotImplementedError, "update_layout"),
    (lambda m: m.T[0, 0, 0], IndexError, "."), (lambda m: sparse.bcoo_rev(m, (0, 0)), ValueError, "."),
    (lambda m: sparse.bcoo_todense(MATRIX), TypeError, "must be a BCOO array"),
    (lambda m: sparse.bcoo_squeeze(m, dimensions=(0,)), ValueError, "not of size 1"),
    (lambda m: sparse.bcoo_concatenate([], dimension=0), ValueError, "no operands"),
    (lambda m: sparse.bcoo_concatenate([m, m[:, 1:]], dimension=0), ValueError, "same sizes but along axis 0"),
    (lambda m: sparse.bcoo_slice(m, start_indices=(0, 0), limit_indices=(9, 1)), ValueError, "do not fit an array"),
    (lambda m: sparse.bcoo_dynamic_slice(m, (0, 0), (9, 1)), ValueError, "do not fit"),
    (lambda m: sparse.bcoo_multiply_sparse(m, m[0]), TypeError, "as many axes"),
    (lambda m: sparse.bcoo_broadcast_in_dim(m, shape=(3, 4, 5), broadcast_dimensions=(0, 1)), NotImplementedError,
     "would repeat elements"),
    (lambda m: xtrace.jit(sparse.bcoo_sum_duplicates)(m), ValueError, "nse must be given"),
    (lambda m: xtrace.jit(sparse.BCOO.fromdense)(MATRIX), xtrace.errors.ConcretizationTypeError, "without nse="),
    (lambda m: xtrace.vmap(lambda m: m.todense())(m), ValueError, "indices of a BCOO array have shape"),
    (lambda m: sparse.BCOO((np.ones(3), np.ones((2, 2), int)), shape=(2, 3)), ValueError, "2 stored elements"),
    (lambda m: sparse.BCOO((np.ones(2), np.ones((2, 2))), shape=(2, 3)), TypeError, "indices must be integers"),
    (lambda m: sparse.BCOO((np.ones(2), np.ones((2, 2), int)), shape=(2,)), ValueError, "more than the shape"),
    (lambda m: sparse.BCSR((np.ones(1), np.ones(1, int), np.ones(2, int)), shape=(2, 3)), ValueError, "needs 3"),
    (lambda m: sparse.COO((np.ones(2), np.ones(1, int), np.ones(1, int)), shape=(2, 3)), ValueError, "same length"),
    (lambda m: sparse.COO.fromdense(MATRIX) @ VECTOR[:2], ValueError, re.escape("v must have shape (4,)")),
    (lambda m: sparse.CSR.fromdense(MATRIX) + 1, NotImplementedError, "have no operator"),
    (lambda m: sparse.CSC.fromdense(VECTOR), ValueError, "must be a matrix"),
    (lambda m: sparse.BCSR.fromdense(VECTOR), ValueError, "has 2 sparse axes"),
    (lambda m: sparse.BCSR.from_bcoo(m[0]), ValueError, "2 sparse axes"),
    (lambda m: sparse.empty((2, 3), sparse_format="ell"), ValueError, "must be one of"),
    (lambda m: sparse.grad(lambda m: m.sum(), 2)(m), ValueError, "must be positions of the 1"),
    (lambda m: sparse.jacfwd(lambda m: 2 * m)(m), TypeError, "returned a sparse array"),
    (lambda m: sparse.random_bcoo(xtrace.random.key(0), (2, 3), nse=7), ValueError, "between 0 and 6"),
    (lambda m: sparse.sparsify(xtrace.numpy.cos)(m), NotImplementedError, "would result in dense output"),
    (lambda m: sparse.sparsify(xtrace.numpy.sort)(m), NotImplementedError, "sparse rule for sort is not implemented"),
    (lambda m: sparse.sparsify(3), TypeError, "callable"),
]


@pytest.mark.parametrize(("function", "kind", "message"), ERRORS)
def test_errors(function, kind, message):
    with pytest.raises(kind, match=message):
        function(bcoo(OURS))


def test_warning_of_inefficient_layouts():
    with pytest.warns(sparse.SparseEfficiencyWarning, match="stores all elements"):
        bcoo(OURS).update_layout(n_batch=1, on_inefficient="warn")
    assert issubclass(sparse.CuSparseEfficiencyWarning, sparse.SparseEfficiencyWarning)
