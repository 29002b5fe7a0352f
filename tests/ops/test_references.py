"""References: programs that make, read and write them give jax's results, jaxprs and final contents."""

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy
from xtrace.errors import UnexpectedTracerError

LIBRARIES = [xtrace, jax]
jnp = xtrace.numpy


def arrays(library):
    """The contents of the references of a test: a matrix and a scalar."""
    jnp = library.numpy
    return jnp.arange(12.0).reshape(3, 4), jnp.float32(2.0)


# Functions of the library, two references and an index, which may be traced.


def read_and_write(library, a, b, i):
    a[0] = a[1] + b[...]
    b[...] = a[i, 2]
    return a[...].sum()


def slices(library, a, b, i):
    a[1:, ::2] = a[:2, 1::2] * 2
    return a[i], a[library.ds(0, 2), library.ds(i, 2)], a[-1, -3:]


def strided_ds(library, a, b, i):
    a[0, library.ds(i, 2, 2)] = library.numpy.ones(2)
    return a[i, library.ds(0, 2, 3)]


def index_arrays(library, a, b, i):
    rows = library.numpy.array([0, 2, -1])
    a[rows, library.numpy.array([1, 0, 3])] = library.numpy.array([5.0, 6.0, 7.0])
    return a[rows], a[:, rows], a[i, rows], a[rows, 1:3]


def indices_outside(library, a, b, i):
    outside = library.numpy.array([1, 9, -9])
    before = a[outside]
    a[outside] = before + 100
    return before


def adds(library, a, b, i):
    library.ref.addupdate(a, (library.numpy.array([0, 0, 9]),), library.numpy.ones((3, 4)))
    library.ref.addupdate(a, (i, 1), 3.0)
    library.ref.addupdate(b, None, 1.0)


def swaps(library, a, b, i):
    return library.ref.swap(a, (i, slice(1, 3)), library.numpy.zeros(2)), library.ref.swap(b, None, 7.0), a[...]


def gets_and_sets(library, a, b, i):
    library.ref.set(a, (slice(None), i), library.ref.get(a, (slice(None), 0)))
    return library.ref.get(b), library.ref.get(a, ...)


def parts(library, a, b, i):
    def body(part):
        return part.at[1:].at[0][...], part.at[i].at[library.ds(i, 2)][...]

    return library.jit(body)(a)


def in_scan(library, a, b, i):
    def step(total, x):
        a[0, x] = total
        b[...] += a[1, x]
        return total + b[...], a[0, x]

    return library.lax.scan(step, library.numpy.float32(0.0), library.numpy.arange(4), reverse=True)


def over_rows(library, a, b, i):
    def step(total, row):
        row[0] = total
        return total + row[1], row[...] * 2

    return library.lax.scan(step, b[...], a)


def in_for(library, a, b, i):
    def body(n, total):
        a[n, i] = total
        return total + a[n, 3]

    return library.lax.fori_loop(0, 3, body, b[...])


def in_while(library, a, b, i):
    def body(n):
        b[...] = b[...] * 2
        return n + 1

    return library.lax.while_loop(lambda n: (b[...] < 20) & (n < 10), body, i)


def in_cond(library, a, b, i):
    def write():
        a[0, 0] = b[...]
        return a[1, 1]

    return library.lax.cond(i > 0, write, lambda: a[2, 2])


def operands_of_cond(library, a, b, i):
    def write(ref):
        ref[i] = ref[0]
        return ref[1, 1]

    return library.lax.cond(i > 5, write, lambda ref: ref[0, 0], a)


def in_switch(library, a, b, i):
    def branch(k):
        def write():
            a[k] = a[0] + k
            return b[...] + k

        return write

    return library.lax.switch(i, [branch(0), branch(1), branch(2)])


def nested_jit(library, a, b, i):
    @library.jit
    def inner(ref, n):
        ref[n] = ref[0] * 2
        return ref[n, 1] + b[...]

    return inner(a, i) + inner(a, 2)


def in_checkpoint(library, a, b, i):
    def inner(x):
        a[0, 0] = x * 3
        return library.numpy.sin(x) + a[1, 1]

    return library.checkpoint(inner)(b[...])


def local(library, a, b, i):
    ref = library.new_ref(a[0])
    ref[i] = 10.0

    def step(c, x):
        ref[...] += x
        return c, None

    library.lax.scan(step, 0, library.numpy.arange(3.0))
    return library.freeze(ref)


def local_in_loop(library, a, b, i):
    def step(c, row):
        ref = library.new_ref(row)
        ref[0] += c
        return ref[0], ref[...]

    return library.lax.scan(step, b[...], a[...])


def mapped(library, a, b, i):
    def row(ref, x):
        ref[1] += x
        return ref[1] * 2

    return library.vmap(row)(a, library.numpy.arange(3.0))


def mapped_along_second_axis(library, a, b, i):
    def column(ref):
        ref[...] = ref[...] + ref[0]

    library.vmap(column, in_axes=1)(a)
    return library.vmap(lambda x: a[i] * x)(library.numpy.arange(2.0))


def mapped_index(library, a, b, i):
    return library.vmap(lambda n: a[n, 1])(library.numpy.array([2, 0]))


def differentiated(library, a, b, i):
    def function(x):
        ref = library.new_ref(x)
        ref[0] = ref[1] * a[1, 1]
        library.lax.fori_loop(0, 3, lambda n, _: ref.__setitem__(n, ref[n] * ref[0]), None)
        return ref[...].sum()

    return library.grad(function)(a[0]), library.jvp(function, (a[1],), (a[2],))


def hessian(library, a, b, i):
    def without_references(x):
        def step(carry, y):
            c, total = carry
            total = total + y * y * c
            return (c + total, total), None

        return library.lax.scan(step, (x[0], library.numpy.float32(0)), x)[0][0]

    def function(x):
        ref = library.new_ref(library.numpy.zeros(()))

        def step(c, y):
            ref[...] += y * y * c
            return c + ref[...], None

        return library.lax.scan(step, x[0], x)[0]

    if library is jax:  # which cannot map over a function that makes a reference to a constant
        function = without_references
    return library.jacfwd(library.jacfwd(function))(a[1]), library.jacrev(library.jit(function))(a[1])


def mapped_gradient(library, a, b, i):
    def function(x):
        ref = library.new_ref(x)
        ref[1] = ref[0] * x[2]
        return ref[...].prod()

    return library.vmap(library.grad(function))(a[...])


def written_beside_gradient(library, a, b, i):
    def function(x):
        a[0, 0] = 5.0
        return x * a[0, 0]

    return library.grad(function)(b[...])


def keys(library, a, b, i):
    ref = library.new_ref(library.random.key(3))
    first = library.random.bits(ref[...])
    ref[...] = library.random.fold_in(ref[...], 1)
    return first, library.random.bits(ref[...])


# Programs that jax refuses or computes wrongly in one of the three ways, and their results.
FIRST, SECOND = map(np.asarray, arrays(xtrace))
DEFINITIONS = {
    strided_ds: ([4, 7], np.array([[0, 1, 2, 1], *FIRST[1:]]), 2),
    in_while: (5, FIRST, 32),
    mapped_index: ([9, 1], FIRST, 2),
    mapped_along_second_axis: (np.outer([0, 1], FIRST[1] + FIRST[0]), FIRST + FIRST[0], 2),
    in_for: (2 + 3 + 7 + 11, np.c_[FIRST[:, 0], [2, 5, 12], FIRST[:, 2:]], 2),
    operands_of_cond: (0, FIRST, 2),
}

PROGRAMS = [
    read_and_write, slices, strided_ds, index_arrays, indices_outside, adds, swaps, gets_and_sets, parts, in_scan,
    over_rows, in_for, in_while, in_cond, operands_of_cond, in_switch, nested_jit, in_checkpoint, local, local_in_loop,
    mapped, mapped_along_second_axis, mapped_index, differentiated, hessian, mapped_gradient, written_beside_gradient,
    keys,
]


def outcome(library, program, how):
    """The results of a program and the contents of its references, as NumPy arrays."""
    first, second = map(library.new_ref, arrays(library))

    def function(i):
        return program(library, first, second, i)

    def function_of_references(a, b, i):
        return program(library, a, b, i)

    if how == "eager":
        results = function(library.numpy.int32(1))
    elif how == "closed over":
        results = library.jit(function)(library.numpy.int32(1))
    else:
        results = library.jit(function_of_references)(first, second, library.numpy.int32(1))
    return library.tree.map(np.asarray, (results, first[...], second[...]))


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("how", ["eager", "closed over", "arguments"])
@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_programs_give_jaxs_results(program, how):
    # jax's references have no `at` outside of traced functions.
    how_in_jax = "arguments" if how == "eager" and program is parts else how
    expected = DEFINITIONS[program] if program in DEFINITIONS else outcome(jax, program, how_in_jax)
    if program in DEFINITIONS:
        expected = jax.tree.map(lambda x: np.float32(x), expected, is_leaf=lambda x: isinstance(x, list))
    actual = outcome(xtrace, program, how)
    assert xtrace.tree.structure(actual).num_leaves == jax.tree.structure(expected).num_leaves
    for ours, theirs in zip(xtrace.tree.leaves(actual), jax.tree.leaves(expected), strict=True):
        assert ours.dtype == theirs.dtype or program is in_while
        # Some dozen roundings of float32.
        np.testing.assert_allclose(ours, theirs, rtol=2e-6)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.__name__)
def test_compiled_programs_can_be_called_again(program):
    first, second = map(xtrace.new_ref, arrays(xtrace))
    jitted = xtrace.jit(lambda a, b, i: program(xtrace, a, b, i))
    for number in range(6):
        for i, x in enumerate(arrays(xtrace)):
            (first, second)[i][...] = x
        results = xtrace.tree.map(np.asarray, (jitted(first, second, 1), first[...], second[...]))
        if not number:
            expected = results
        xtrace.tree.map(np.testing.assert_array_equal, results, expected)


JAXPRS = [
    (read_and_write, """{ lambda ; a:Ref{f32[3,4]} b:Ref{f32[]} c:i32[]. let
    d:f32[4] <- a[1,:]
    e:f32[] <- b[...]
    f:f32[4] = add d e
    a[0,:] <- f
    g:f32[] <- a[c,2]
    b[...] <- g
    h:f32[3,4] <- a[...]
    i:f32[] = reduce_sum[axes=(0, 1)] h
  in (i,) }"""),
    (adds, """{ lambda ; a:Ref{f32[3,4]} b:Ref{f32[]} c:i32[]. let
    d:f32[3,4] = broadcast_in_dim 1.0
    a[e,:] += d
    a[c,1] += 3.0
    b[...] += 1.0
  in () }"""),
    (swaps, """{ lambda ; a:Ref{f32[3,4]} b:Ref{f32[]} c:i32[]. let
    d:f32[2] = broadcast_in_dim 0.0
    e:f32[2], a[c,1:3] <- a[c,1:3], d
    f:f32[], b[...] <- b[...], 7.0
    g:f32[3,4] <- a[...]
  in (e, f, g) }"""),
    (local, """{ lambda ; a:Ref{f32[3,4]} b:Ref{f32[]} c:i32[]. let
    d:f32[4] <- a[0,:]
    e:Ref{f32[4]} = new_ref d
    e[c] <- 10.0"""),
]


@pytest.mark.parametrize("program, text", JAXPRS, ids=lambda x: getattr(x, "__name__", "text"))
def test_jaxprs_print_references_as_jax(program, text):
    first, second = map(xtrace.new_ref, arrays(xtrace))
    jaxpr = xtrace.make_jaxpr(lambda a, b, i: program(xtrace, a, b, i))(first, second, 1)
    if program is adds:  # the constant of the index
        text = text.replace("lambda ;", "lambda e:i32[3];", 1)
        names = dict(zip("eabcd", "abcde", strict=True))
        text = "".join(names.get(c, c) if not (text[n - 1].isalpha() or text[n + 1 : n + 2].isalpha()) else c
                       for n, c in enumerate(text))
    assert str(jaxpr).startswith(text)


def test_modules_have_no_references():
    ref = xtrace.new_ref(xtrace.numpy.ones(3))

    def rotate(ref):
        ref[0] = ref[1]

    lowered = xtrace.jit(rotate).lower(ref)
    assert "tensor<3xf32>" in lowered.as_text() and "ref" not in lowered.as_text().lower()
    ref[1] = 4.0
    assert lowered.compile()(ref) is None
    np.testing.assert_array_equal(ref[...], [4, 4, 1])


def test_descriptions_trace_references():
    description = xtrace.ShapeDtypeStruct((3,), "float32", is_ref=True)
    assert repr(description) == "ShapeDtypeStruct(shape=(3,), dtype=float32, is_ref=True)"
    assert description != xtrace.ShapeDtypeStruct((3,), "float32")
    assert str(xtrace.make_jaxpr(lambda ref: ref[0])(description)) == (
        "{ lambda ; a:Ref{f32[3]}. let b:f32[] <- a[0] in (b,) }"
    )
    assert xtrace.eval_shape(lambda ref: ref[1:], description).shape == (2,)


def test_jaxprs_with_references_are_evaluated():
    ref = xtrace.new_ref(xtrace.numpy.arange(3.0))

    def double(ref, x):
        ref[0] = x
        return ref[...] * 2

    closed = xtrace.make_jaxpr(double)(ref, 1.0)
    (result,) = xtrace.core.eval_jaxpr(closed.jaxpr, closed.consts, ref, 5.0)
    np.testing.assert_array_equal(result, [10, 2, 4])
    np.testing.assert_array_equal(ref[...], [5, 1, 2])


def gradients_in_references(library):
    jnp = library.numpy
    x, y = jnp.arange(3.0), {"a": jnp.ones(3), "b": 2.0}
    pullback = library.vjp(lambda x, y: (jnp.sin(x) * y["a"] * y["b"]).sum(), x, y)[1]
    of_x, of_a = library.new_ref(jnp.ones(3)), library.new_ref(jnp.zeros(3))
    adding = pullback.with_refs(of_x, {"a": of_a, "b": library.ad.GradValue()})
    first = adding(1.0)
    second = pullback.with_refs(library.ad.DontWant(), {"a": of_a, "b": library.ad.DontWant()})(2.0)

    @library.jit
    def step(ref, x):
        library.vjp(lambda x: jnp.cos(x).sum(), x)[1].with_refs(ref)(1.0)

    step(of_x, x)
    return str(first), str(second), np.asarray(of_x[...]), np.asarray(of_a[...])


def test_pullbacks_add_gradients_to_references():
    ours, theirs = gradients_in_references(xtrace), gradients_in_references(jax)
    assert ours[:2] == theirs[:2]
    # Sums of three products of two roundings each.
    np.testing.assert_allclose(ours[2], theirs[2], rtol=1e-6)
    np.testing.assert_allclose(ours[3], theirs[3], rtol=1e-6)


def test_wrong_references_for_gradients_are_not_written():
    pullback = xtrace.vjp(lambda x, y: x * y, 2.0, 3.0)[1]
    right, wrong = xtrace.new_ref(0.0), xtrace.new_ref(xtrace.numpy.zeros(2))
    with pytest.raises(ValueError, match="a reference has the shape of its argument"):
        pullback.with_refs(right, wrong)(1.0)
    assert float(right[...]) == 0
    with pytest.raises(ValueError, match="for each argument, in the structure of these"):
        pullback.with_refs(right)


def custom_rules_with_references(library):
    """Yield what comes out of custom_vjp functions that write to references they are given, in one nesting each."""
    jax, jnp = library, library.numpy

    @jax.custom_vjp
    def scale(ref, x):
        return x * ref[...]

    def forward(ref, x):
        ref[...] += 1
        return 2 * x, ({"x": x}, ref)

    def backward(residuals, cotangent):
        kept, ref = residuals
        ref[...] += cotangent * kept["x"]
        return None, 5 * cotangent

    scale.defvjp(forward, backward)
    one = jnp.float32(1.5)
    for of in (
        lambda r, x: scale(r, x), lambda r, x: jax.jit(scale)(r, x), jax.grad(scale, 1), jax.jit(jax.grad(scale, 1)),
        jax.grad(jax.jit(scale), 1), jax.grad(lambda r, x: scale(r, scale(r, x)), 1),
        jax.grad(lambda r, x: jnp.sin(jax.jit(lambda y: scale(r, y))(x)), 1),
    ):
        ref = jax.new_ref(jnp.float32(3))
        yield np.asarray(of(ref, one)), np.asarray(ref[...])
    for of in (jax.vmap(scale), jax.vmap(jax.grad(scale, 1)), jax.jit(jax.vmap(jax.grad(scale, 1)))):
        ref = jax.new_ref(jnp.ones(3))
        yield np.asarray(of(ref, jnp.arange(3.0))), np.asarray(ref[...])
    written = jax.new_ref(jnp.float32(0))
    plain = jax.custom_vjp(jnp.sin)
    plain.defvjp(
        lambda x: (jnp.sin(x), x), lambda x, cotangent: (jax.ref.set(written, ..., cotangent), 7 * cotangent)[1:]
    )
    for of in (jax.grad(plain), jax.grad(jax.jit(plain)), jax.jit(jax.grad(lambda x: 3 * plain(x)))):
        yield np.asarray(of(one)), np.asarray(written[...])


def test_rules_write_to_references_as_jax():
    for ours, theirs in zip(custom_rules_with_references(xtrace), custom_rules_with_references(jax), strict=True):
        # A few products and sums, and a cosine.
        np.testing.assert_allclose(ours[0], theirs[0], rtol=1e-6)
        np.testing.assert_allclose(ours[1], theirs[1], rtol=1e-6)


def step_on_arrays(array, x, weights):
    """What `step_on_references` does, as a function of arrays: its result and the last array."""
    last = array.at[1].multiply(x["a"])
    return (weights * last * last).sum() * x["b"], last


def step_on_references(ref, x, weights):
    ref[1] = ref[1] * x["a"]
    return (weights * ref[...] * ref[...]).sum() * x["b"]


@pytest.mark.parametrize("jitted", [False, True])
def test_gradients_of_references_are_those_of_arrays(jitted):
    array, weights, seed = jnp.arange(1.0, 4.0), jnp.array([2.0, 3.0, 5.0]), jnp.array([10.0, 20.0, 30.0])
    x, of_a = {"a": 1.5, "b": 0.5}, xtrace.new_ref(7.0)
    (result, last), pullback = xtrace.vjp(step_on_arrays, array, x, weights)
    of_array, of_x, _ = pullback((jnp.float32(2.0), seed))
    ref, of_ref = xtrace.new_ref(array), xtrace.new_ref(seed)

    def both(ref, of_ref, of_a):
        result, pullback = xtrace.vjp(step_on_references, ref, x, weights)
        adding = pullback.with_refs(of_ref, {"a": of_a, "b": xtrace.ad.GradValue()}, xtrace.ad.DontWant())
        return result, adding(2.0)

    found, gradients = (xtrace.jit(both) if jitted else both)(ref, of_ref, of_a)
    # Sums of three terms of a few products each.
    np.testing.assert_allclose(found, result, rtol=1e-6)
    np.testing.assert_array_equal(ref[...], last)
    np.testing.assert_allclose(of_ref[...], of_array, rtol=1e-6)
    np.testing.assert_allclose(of_a[...], 7 + of_x["a"], rtol=1e-6)
    np.testing.assert_allclose(gradients[1]["b"], of_x["b"], rtol=1e-6)
    assert gradients[0] == xtrace.ad.GradRef() and gradients[2] == xtrace.ad.DidntWant()


def test_pullbacks_of_references_are_pytrees_and_have_aux():
    ref, of_ref = xtrace.new_ref(2.0), xtrace.new_ref(0.0)
    result, pullback, aux = xtrace.vjp(lambda r: (r[...] ** 2, 3 * r[...]), ref, has_aux=True)
    leaves, tree = xtrace.tree.flatten(pullback)
    again = xtrace.tree.unflatten(tree, leaves)
    again.with_refs(of_ref)(1.0)
    assert (float(result), float(aux), float(of_ref[...])) == (4, 6, 4)
    assert pullback.in_tree == again.in_tree and pullback.out_tree == again.out_tree
    assert len(again.args_res) == 1 and again.opaque_residuals == pullback.opaque_residuals
    # References to integers have no gradient.
    _, of_integers = xtrace.vjp(lambda r, x: r[...] * x, xtrace.new_ref(3), 2.0)
    assert float(of_integers(1.0)[1]) == 3


def test_gradients_that_are_not_wanted_are_not_computed():
    w, x = np.ones((4, 4), np.float32), np.ones(4, np.float32)
    counts = []
    for m in (xtrace, jax):
        _, pullback = m.vjp(lambda w, x: w @ x, w, x)
        value, none = m.ad.GradValue(), m.ad.DontWant()
        wishes = [(value, none), (none, value), (none, none)]
        each = [pullback, *[pullback.with_refs(*wish) for wish in wishes]]
        counts.append([str(m.make_jaxpr(p)(x)).count("dot_general") for p in each])
    assert counts[0] == counts[1] == [2, 1, 1, 0]


def test_attributes():
    ours, theirs = (library.new_ref(library.numpy.zeros((2, 3))) for library in LIBRARIES)
    for name in ("shape", "dtype", "ndim", "size"):
        assert getattr(ours, name) == getattr(theirs, name), name
    assert len(ours) == len(theirs) == 2
    assert str(xtrace.typeof(ours)) == str(jax.typeof(theirs)) == "Ref{float32[2,3]}"
    assert repr(ours).replace("\n", "") == repr(theirs).replace("\n", "")
    assert ours.unsafe_buffer_pointer() == ours.get().unsafe_buffer_pointer()
    array = ours[...]
    assert (ours.committed, ours.sharding, ours.format) == (array.committed, array.sharding, array.format)
    assert isinstance(ours, xtrace.Ref) and not isinstance(ours, xtrace.Array)
    assert [float(row.sum()) for row in ours] == [0, 0]
    assert repr(ours.at[0]) == "Ref(float32[3])" and ours.at[0, 1:].shape == (2,)


def addresses_of_writes(library):
    """Yield whether calls write where the array was before, and what is read between them."""
    jax, jnp = library, library.numpy

    @jax.jit
    def write(ref, i):
        ref[i] = jnp.sin(ref[i]) + 1

    @jax.jit
    def scaled():
        return closed_over[0] * 2

    ref, closed_over = jax.new_ref(jnp.arange(5.0)), jax.new_ref(jnp.ones(3))
    for reads in (False, True, False):
        place = ref.unsafe_buffer_pointer()
        for i in range(6):
            write(ref, i % 5)
            if reads:
                str(ref)
        yield place == ref.unsafe_buffer_pointer(), np.asarray(ref[...]).tolist()
    place = closed_over.unsafe_buffer_pointer()
    yield [float(scaled()) for _ in range(6)], place == closed_over.unsafe_buffer_pointer()


def test_compiled_functions_write_in_place():
    assert list(addresses_of_writes(xtrace)) == list(addresses_of_writes(jax))


def test_arrays_that_users_hold_are_not_written_to():
    first, write = jnp.zeros(3), xtrace.jit(lambda *refs: [r.__setitem__(0, r[0] + 1) for r in refs] and None)
    one, two = xtrace.new_ref(first), xtrace.new_ref(first)
    write(one, two)
    second, before = one[...], one.swap(jnp.full(3, 5.0))
    frozen = xtrace.new_ref(second)
    write(one, frozen)
    one[...] = third = jnp.full(3, 7.0)
    write(one, two)
    held = [first, second, before, third, xtrace.freeze(frozen), one[...], two[...]]
    expected = [[0, 0, 0], [1, 0, 0], [1, 0, 0], [7, 7, 7], [2, 0, 0], [8, 7, 7], [2, 0, 0]]
    assert [np.asarray(x).tolist() for x in held] == expected


def test_a_failing_call_leaves_references_as_they_were():
    def fail(x):
        raise RuntimeError("not now")

    def write(ref):
        ref[0] = 5.0
        return xtrace.pure_callback(fail, xtrace.ShapeDtypeStruct((), "float32"), ref[0])

    ref = xtrace.new_ref(xtrace.numpy.zeros(2))
    with pytest.raises(Exception, match="not now"):
        xtrace.jit(write)(ref).block_until_ready()
    ref[1] = 1.0
    assert ref.shape == (2,)


def test_values_that_are_no_arrays_become_arrays():
    ref, scalar = xtrace.new_ref(xtrace.numpy.zeros(2)), xtrace.new_ref(1.0)
    value = np.ones(2, np.float32)
    ref[...] = value
    value[0] = 7
    scalar[...] = 2.0
    assert repr(ref) == "Ref([1., 1.], dtype=float32)" and isinstance(ref[...], xtrace.Array)
    assert repr(scalar) == "Ref(2., dtype=float32, weak_type=True)" and isinstance(scalar[...], xtrace.Array)
    assert isinstance(xtrace.jit(lambda r: r[...])(scalar), xtrace.Array)


def leak():
    kept = []
    xtrace.jit(lambda x: kept.append(xtrace.new_ref(x)))(1.0)
    return kept[0][...]


def use_after(end):
    ref = xtrace.new_ref(1.0)
    end(ref)
    return ref[...]


def write_from(transform):
    ref = xtrace.new_ref(1.0)
    transform(lambda x: ref.__setitem__(..., x) or x)


def twice(a, b):
    return a[...] + b[...]


def rule_that_makes_references():
    function = xtrace.custom_vjp(lambda x: x)
    function.defvjp(lambda x: (x, xtrace.new_ref(x)), lambda ref, cotangent: (cotangent,))
    return function


ref, float_ref = xtrace.new_ref(xtrace.numpy.arange(3.0)), xtrace.new_ref(1.0)
of_reference = xtrace.custom_vjp(lambda ref, x: x * ref[...])
of_reference.defvjp(lambda ref, x: (x, ref), lambda ref, cotangent: (None, cotangent))

ERRORS = [
    ("leak", leak, UnexpectedTracerError, "used after the trace of the function"),
    ("after freeze", lambda: use_after(xtrace.freeze), ValueError, r"was frozen at .*test_references.py:\d+"),
    ("after free", lambda: use_after(xtrace.free_ref), ValueError, r"was freed at .*test_references.py:\d+"),
    ("same twice", lambda: xtrace.jit(twice)(ref, ref), ValueError, "is passed as a and as b"),
    ("closure and argument", lambda: xtrace.jit(lambda a: a[0] + ref[1])(ref), ValueError, "its closure"),
    ("result", lambda: xtrace.jit(lambda a: a)(ref), ValueError, "cannot be returned from traced functions"),
    ("result of vmap", lambda: xtrace.vmap(lambda a: a)(ref), ValueError, "cannot be returned"),
    ("carry", lambda: xtrace.lax.scan(lambda c, x: (c, x), ref, jnp.ones(2)), ValueError, "cannot be returned"),
    ("write from vmap", lambda: write_from(lambda f: xtrace.vmap(f)(jnp.ones(2))), ValueError, "a vmapped value was"),
    ("write from grad", lambda: write_from(lambda f: xtrace.grad(f)(2.0)), ValueError, "a differentiated value was"),
    (
        "write from grad in jit", lambda: write_from(lambda f: xtrace.jit(xtrace.grad(f))(2.0)), ValueError,
        "a differentiated value was",
    ),
    ("write in predicate", lambda: xtrace.lax.while_loop(
        lambda n: ref.__setitem__(0, 1.0) is None, lambda n: n + 1, 0), ValueError, "cond_fun writes"),
    ("operand", lambda: jnp.sin(ref), TypeError, r"read the array of a reference with ref\[\.\.\.\]"),
    ("residual", lambda: xtrace.grad(rule_that_makes_references())(1.0), ValueError, "that is none of its arguments"),
    (
        "custom rule in scan", lambda: xtrace.grad(lambda x: xtrace.lax.scan(
            lambda c, _: (of_reference(float_ref, c), None), x, length=2)[0])(1.0), NotImplementedError,
        "own derivative would be lost",
    ),
    (
        "custom rule in vmap", lambda: xtrace.grad(lambda x: xtrace.vmap(of_reference)(ref, x).sum())(jnp.ones(3)),
        NotImplementedError, "differentiate inside of vmap",
    ),
    ("gradient of reference", lambda: xtrace.vjp(lambda r: r[0], ref)[1](1.0), ValueError, r"with_refs\(\.\.\.\)"),
    (
        "shape of gradient", lambda: xtrace.vjp(lambda r: r[0], ref)[1].with_refs(float_ref)(1.0), ValueError,
        "in another one of that type",
    ),
    (
        "cotangents", lambda: xtrace.vjp(lambda r: r[0], ref)[1].with_refs(ref)(1.0, 2.0), TypeError,
        "takes one cotangent",
    ),
    ("gradient by", lambda: xtrace.grad(lambda a: a[0])(ref), TypeError, r"ref\[\.\.\.\]"),
    ("out of bounds", lambda: ref[3], IndexError, "the index 3 is out of bounds for axis 0 of a reference, of size 3"),
    ("out of bounds, ds", lambda: ref[xtrace.ds(2, 2)], IndexError, "out of bounds: the size of the axis is 3"),
    ("too many", lambda: ref[0, 0], IndexError, "fewer axes"),
    ("two ellipses", lambda: ref[..., ...], IndexError, "more than one ellipsis"),
    ("negative step", lambda: ref[::-1], IndexError, "step of 1 or more, got -1"),
    ("traced slice", lambda: xtrace.jit(lambda i: ref[i:])(1), TypeError, r"xtrace\.ds\(start, size\)"),
    ("traced size", lambda: xtrace.jit(lambda i: ref[xtrace.ds(0, i)])(1), TypeError, "known while tracing"),
    ("float index", lambda: ref[1.5], TypeError, "indices are integers"),
    ("mask", lambda: ref[jnp.array([True, False, True])], TypeError, "jnp.where"),
    ("name", lambda: ref["a"], TypeError, "'a' of type <class 'str'> is no index"),
    ("new axis", lambda: ref[None,], TypeError, "is no index"),
    ("arrays do not fit", lambda: xtrace.new_ref(jnp.ones((3, 3)))[np.arange(2), np.arange(3)], IndexError, "fit"),
    ("shape", lambda: ref.set(jnp.ones(2)), ValueError, r"a value of shape \(2,\) was written"),
    ("scalar", lambda: ref.set(1.0), ValueError, r"jnp.broadcast_to\(value, \(3,\)\)"),
    ("dtype", lambda: ref.__setitem__(0, 1), ValueError, r"astype\(float32\)"),
    ("no array", lambda: ref.__setitem__(0, "x"), TypeError, "expected an array or a number"),
    ("added shape", lambda: ref.addupdate(1.0), ValueError, "addupdate: a value of shape"),
    ("reference to one", lambda: xtrace.new_ref(ref), TypeError, "cannot hold another one"),
    ("tree", lambda: xtrace.new_ref({"a": 1.0}), TypeError, "reference of each leaf"),
    ("kind", lambda: xtrace.new_ref(1.0, kind="anselm"), NotImplementedError, "leave memory_space and kind out"),
    ("no type", lambda: xtrace.empty_ref(3), TypeError, "empty_ref takes a type"),
    ("freeze of array", lambda: xtrace.freeze(jnp.ones(2)), TypeError, "make one with xtrace.new_ref"),
    ("freeze of part", lambda: xtrace.freeze(ref.at[0]), ValueError, "ends a whole reference"),
    ("part as argument", lambda: xtrace.jit(lambda a: a[...])(ref.at[0]), TypeError, r"with \.at"),
    ("solver", lambda: xtrace.jit(lambda: xtrace.lax.custom_linear_solve(
        lambda x: x + ref[...], jnp.ones(3), lambda f, b: b))(), NotImplementedError, "takes arrays only"),
]


@pytest.mark.parametrize("call, kind, message", [row[1:] for row in ERRORS], ids=[row[0] for row in ERRORS])
def test_errors_say_the_cause(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
