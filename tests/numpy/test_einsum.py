"""einsum and einsum_path, compared with jax."""

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly, check_jitted
from tests.support.operands import assert_same, assert_same_type, dtypes_in, finite_values, ours, seeds, theirs
from tests.support.rules import check_rules

SUMS = [
    "jnp.einsum('ij,j->i', x, v)", "jnp.einsum('ij,kj', x, x)", "jnp.einsum('ij,kj->ki', x, x)",
    "jnp.einsum('ij->ji', x)", "jnp.einsum('ba', x)", "jnp.einsum('ij->', x)", "jnp.einsum('ij->j', i)",
    "jnp.einsum('ij->i', b)", "jnp.einsum('ij,ij->ij', b, x)", "jnp.einsum('ij,kj->ik', b, b)",
    "jnp.einsum('ii', x[:, :3])", "jnp.einsum('ii->i', x[:, :3])", "jnp.einsum('ii->i', b[:, :3])",
    "jnp.einsum('ii->i', c[:, :2])", "jnp.einsum('iii->i', jnp.ones((2, 2, 2)))",
    "jnp.einsum('iij,j->ij', jnp.ones((3, 3, 4)), v)", "jnp.einsum('iijj->ij', jnp.arange(36.).reshape(3, 3, 2, 2))",
    "jnp.einsum('iji->j', jnp.arange(12.).reshape(2, 3, 2))", "jnp.einsum(',ab,abab->ab', s, x[:2, :3], "
    "jnp.arange(36.).reshape(2, 3, 2, 3))",
    "jnp.einsum('...ij,...kj->...ik', y, x)", "jnp.einsum('...j,j', y, v)", "jnp.einsum('b...d,b...d->b...', y, y)",
    "jnp.einsum('...,...', x, x)", "jnp.einsum('...,...->', x, x)", "jnp.einsum('...j->j', y)",
    "jnp.einsum('j...,j->...', y.T, v)", "jnp.einsum('...a,...a', y[:1], y[:, :1])",
    "jnp.einsum('ij,ij->i', x[:1], x)", "jnp.einsum('ij,ij->j', x[:1], x)", "jnp.einsum('ij,ij', x[:, :1], x[:1])",
    "jnp.einsum('ij,kj,kl->il', x, x, x)", "jnp.einsum('ij,kj,kl->il', h, h, x, optimize=False)",
    "jnp.einsum('ij,kj,kl->', x, x, x, optimize=True)", "jnp.einsum('ij,kj,kl', x, x, x, optimize='greedy')",
    "jnp.einsum('ij,kj,kl', x, x, x, optimize=[(1, 2), (0, 1)])", "jnp.einsum('i,j,k->ikj', n, n, v)",
    "jnp.einsum('ab,cb,cd->adbc', x, x, x)", "jnp.einsum('ab,ab,c->', x, x, v)", "jnp.einsum('ij,k->i', x, v)",
    "jnp.einsum('i j -> j i', x)", "jnp.einsum('IJ,KJ', x, x)", "jnp.einsum('->', s)", "jnp.einsum(',', s, s)",
    "jnp.einsum(',', w, w)", "jnp.einsum(',', 2.0, 3)", "jnp.einsum('i,->i', i[0], 2.5)", "jnp.einsum('->', wi)",
    "jnp.einsum('ij,j->i', h, v)", "jnp.einsum('ij,kj', i, x)", "jnp.einsum('ij,kj', c.T, c.T)",
    "jnp.einsum('ij->i', h, preferred_element_type=jnp.float32)", "jnp.einsum('ij->i', f16[None], "
    "preferred_element_type='int32')", "jnp.einsum('ij->i', i, preferred_element_type='int32')",
    "jnp.einsum('ij,kj', i, i, preferred_element_type=jnp.int32)",
    "jnp.einsum('ij,j,ik->k', x, v, x, preferred_element_type='int32')",
    "jnp.einsum('ij,kj', x, x, precision='high')", "jnp.einsum('ij,kj', x, x, precision=('high', 'default'))",
    "jnp.einsum('ij,kl', z, x)", "jnp.einsum('ij->j', z)", "jnp.einsum('ij,kj->ik', z, z)",
    "jnp.einsum(x, [0, 1], x, [2, 1], [0, 2])", "jnp.einsum(x, [0, 1], x, [2, 1])",
    "jnp.einsum(y, [..., 1], x, [..., 1], [...])", "jnp.einsum(x, [4, 3])", "jnp.einsum(x, ['b', 'a'], ['a'])",
    "jnp.einsum('ij,jk', np.ones((2, 3)), np.ones((3, 2), 'i'))",
    "jnp.einsum_path('ij,kj,kl', x, x, x)[0]", "jnp.einsum_path('ij,kj,kl', x, x, x, optimize=False)[0]",
    "jnp.einsum_path('ij,kj,kl', x, x, x, optimize=True)[0]", "jnp.einsum_path(x, [0, 1], x, [2, 1])[0]",
    "jnp.einsum_path('ij', x, optimize=False)[0]",
    "jnp.einsum('ij,kj->ki', x, h, _dot_general=lambda *a, **k: lax.dot_general(*a, **k) * 2)",
]


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("text", SUMS)
def test_eager_values_are_those_of_jax(text):
    check_eagerly(text, among=SUMS)


def test_jitted_values_are_those_of_jax():
    check_jitted(SUMS)


ERRORS = [
    ("jnp.einsum('ij,jk', x, x)", ValueError, r"einsum: Size of label 'j' .*\(3, 4\), \(3, 4\)"),
    ("jnp.einsum('ij->k', x)", ValueError, "einsum: Output character 'k' .*'ij->k'"),
    ("jnp.einsum('ij->ii', x)", ValueError, "more than once"),
    ("jnp.einsum('i', x)", ValueError, "number of indices for operand 0"),
    ("jnp.einsum('ij,jk', x)", ValueError, "Number of einsum subscripts, 2"),
    ("jnp.einsum('i.j', x)", ValueError, "Ellipses"),
    ("jnp.einsum('ij->ij->i', x)", ValueError, "only contain one"),
    ("jnp.einsum('')", ValueError, "einsum: Number of"),
    ("jnp.einsum('ij->', [[1, 2]])", TypeError, "einsum requires ndarray or scalar arguments; argument 0"),
    ("jnp.einsum(3, x)", TypeError, "einsum: the first argument must be a string"),
    ("jnp.einsum('ij', x, out=x)", NotImplementedError, "'out' argument to xtrace.numpy.einsum"),
    ("jnp.einsum('ij', x, out_sharding=x)", TypeError, "einsum: out_sharding leaf specifications"),
    ("jnp.einsum('ij', x, optimize=3)", TypeError, "optimize must be a bool"),
    ("jnp.einsum('ij,kj,lj', x, x, x, optimize='bogus')", KeyError, "einsum: .*bogus"),
    ("jnp.einsum('ij,kj', x, x, optimize=['einsum_path', (0, 1)])", TypeError, "list of tuples of positions"),
    ("jnp.einsum('ij,kj', x, x, optimize=[(0, 5)])", IndexError, r"optimize=.*\(0, 5\) where 2 are"),
    ("jnp.einsum('ij,kj,lj', x, x, x, optimize=[(0, 1)])", ValueError, "leaves 2 operands"),
    ("jnp.einsum('ij,kj', x, x, precision='bogus')", ValueError, "precision 'bogus'"),
    ("jnp.einsum('ij,kj', x, x, preferred_element_type='bogus')", TypeError, "einsum: 'bogus' is not a dtype"),
    ("jnp.einsum_path('ij,jk', x, x)", ValueError, "einsum_path: Size of label"),
]


@pytest.mark.parametrize(("text", "error", "fragment"), ERRORS, ids=lambda p: p if isinstance(p, str) else "")
def test_wrong_arguments_are_named(text, error, fragment):
    with pytest.raises(error, match=fragment):
        eval(text, {"jnp": jnp, "x": jnp.ones((3, 4))})


def test_several_operands_in_one_entry_are_multiplied_pair_by_pair():
    x = jnp.arange(12.0).reshape(3, 4)
    expected = np.einsum("ij,kj,kl,il->", *[np.asarray(x)] * 4)
    for path in ([(0, 1, 2, 3)], [(0, 1, 2), (0, 1)], [(1, 2, 3), (0, 1)]):
        np.testing.assert_array_equal(jnp.einsum("ij,kj,kl,il->", x, x, x, x, optimize=path), expected)


def test_weak_integers_adapt():
    found = jnp.einsum("i,->i", jnp.array([1, 2], "int8"), 2)
    assert found.dtype == np.int8 and found.tolist() == [2, 4]


def test_a_gradient_and_batches_are_those_of_jax():
    x, y, square = (finite_values(np.float32, shape, 3) for shape in ((2, 3), (4, 3), (3, 3)))
    modules = {xtrace.lax: jnp, jax.lax: jax.numpy}
    check_rules(lambda lax, x, y: modules[lax].einsum("ij,kj->ki", x, y), x, y, rounding=64, second=False)
    check_rules(lambda lax, x: modules[lax].einsum("ii->i", x), square, rounding=16, batching=False)


@pytest.mark.parametrize(
    "subscripts",
    ["ij,jk->ki", "bqhd,bkhd->bhqk", "bhqk,bkhd->bqhd", "ab,bc,cd->adbc", "ijk,jik->kij", "abc,cd,de,ef->abf",
     "i,j,k->ikj", "iijj->ij", "ij,jk,kl->il"],
)
def test_no_more_is_emitted_than_by_jax(subscripts):
    sizes = dict(zip("abcdefhijklq", (2, 3, 4, 5, 6, 2, 3, 4, 5, 6, 2, 3), strict=True))
    shapes = [tuple([sizes[k] for k in term]) for term in subscripts.split("->")[0].split(",")]
    values = [np.ones(shape, np.float32) for shape in shapes]
    counts = [
        len(package.make_jaxpr(lambda *a, numpy=numpy: numpy.einsum(subscripts, *a))(*values).eqns)
        for package, numpy in ((xtrace, jnp), (jax, jax.numpy))
    ]
    assert counts[0] <= counts[1]


@st.composite
def sums(draw):
    """Draw subscripts of up to three terms and shapes for them, with sizes of 1 that broadcast."""
    sizes = {k: draw(st.integers(0, 3)) for k in "abcd"}
    terms = draw(st.lists(st.text("abcd", max_size=4), min_size=1, max_size=3))
    letters = sorted(set("".join(terms)))
    output = "".join(draw(st.permutations(letters))[: draw(st.integers(0, len(letters)))])
    shapes = []
    for term in terms:
        thin = {k for k in term if draw(st.integers(0, 5)) == 0 and term.count(k) == 1}
        shapes.append(tuple([1 if k in thin else sizes[k] for k in term]))
    implicit = draw(st.integers(0, 3)) == 0
    return ",".join(terms) + ("" if implicit else "->" + output), shapes


@given(sums(), dtypes_in([np.float32, np.int8, np.float16]), st.sampled_from(["auto", True, False, "greedy"]), seeds)
@settings(max_examples=30)
def test_any_subscripts(drawn, dtype, optimize, seed):
    subscripts, shapes = drawn
    # Small integers, so that sums are exact in any order.
    values = [np.round(finite_values(np.float32, shape, seed + i) / 2).astype(dtype) for i, shape in enumerate(shapes)]
    expected = jax.numpy.einsum(subscripts, *map(theirs, values), optimize=optimize)
    got = jnp.einsum(subscripts, *map(ours, values), optimize=optimize)
    assert_same(got, expected, 0)
    jitted = xtrace.jit(lambda *a: jnp.einsum(subscripts, *a, optimize=optimize))(*map(ours, values))
    assert_same_type(jitted, expected)
    np.testing.assert_array_equal(jitted, got)
