"""Random keys: both forms of them, new keys, bits, and what can be done with arrays of keys."""

import copy
import pickle

import jax
import jax.random
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.random import IMPLS, assert_identical, pair, settings
from xtrace import lax, random

KEYS = [("threefry2x32", True), ("threefry2x32", False), ("rbg", True)]


def splits_and_draws(random_, lax_):
    """Return a function that splits a key, scans over keys and carries one."""

    def function(key):
        carried, other = random_.split(key)

        def step(state, x):
            state, drawn = random_.split(state)
            return state, (drawn, random_.normal(x, (2,)))

        return lax_.scan(step, carried, random_.split(other, 3))

    return function


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("impl", IMPLS)
def test_split_and_normal_in_a_scan(impl):
    ours, theirs = pair(3, impl)
    expected = jax.jit(splits_and_draws(jax.random, jax.lax))(theirs)
    assert_identical(splits_and_draws(random, lax)(ours), expected)
    assert_identical(xtrace.jit(splits_and_draws(random, lax))(ours), expected)
    expected = jax.vmap(splits_and_draws(jax.random, jax.lax))(jax.random.split(theirs, 3))
    got = xtrace.vmap(splits_and_draws(random, lax))(random.split(ours, 3))
    assert_identical(got, expected)


def test_the_seeds_numbers():
    with xtrace.threefry_partitionable(False):
        drawn = random.normal(random.PRNGKey(0), (10,))
    expected = [
        -0.3721109, 0.26423115, -0.18252768, -0.7368197, -0.44030377, -0.1521442, -0.67135346, -0.5908641, 0.73168886,
        0.5673026,
    ]
    np.testing.assert_array_equal(drawn, np.array(expected, np.float32))


@pytest.mark.drawn(0.15)
@pytest.mark.slow
@pytest.mark.parametrize("partitionable", [True, False])
@pytest.mark.parametrize("impl", IMPLS)
def test_new_keys_and_bits(impl, partitionable):
    with settings("threefry_partitionable", partitionable):
        ours, theirs = pair(42, impl)
        many, their_many = random.split(ours, 3), jax.random.split(theirs, 3)
        for shape in [(2, 3), (0,)]:
            assert_identical(random.split(ours, shape), jax.random.split(theirs, shape))
            assert_identical(
                xtrace.vmap(lambda k, s=shape: random.split(k, s))(many),
                jax.vmap(lambda k, s=shape: jax.random.split(k, s))(their_many),
            )
            for dtype in ("uint8", "uint32"):
                assert_identical(random.bits(ours, shape, dtype), jax.random.bits(theirs, shape, dtype))
            assert_identical(
                xtrace.vmap(lambda k, s=shape: random.bits(k, s))(many),
                jax.vmap(lambda k, s=shape: jax.random.bits(k, s))(their_many),
            )
        assert_identical(random.fold_in(ours, 7), jax.random.fold_in(theirs, 7))
        numbers = np.arange(3)
        for axes in [(0, 0), (0, None), (None, 0)]:
            got = xtrace.vmap(random.fold_in, axes)(many if axes[0] == 0 else ours, numbers if axes[1] == 0 else 5)
            expected = jax.vmap(jax.random.fold_in, axes)(
                their_many if axes[0] == 0 else theirs, numbers if axes[1] == 0 else 5
            )
            assert_identical(got, expected)
        with settings("enable_x64", True):
            assert_identical(random.bits(ours, (3, 2)), jax.random.bits(theirs, (3, 2)))


@pytest.mark.parametrize(("impl", "typed"), KEYS)
@pytest.mark.parametrize("seed", [0, 5, -1, 2**40 + 3, True, np.int8(-3), np.uint32(2**32 - 1)])
def test_seeds(impl, typed, seed):
    ours, theirs = (random.key, jax.random.key) if typed else (random.PRNGKey, jax.random.PRNGKey)
    for x64 in (False, True):
        with settings("enable_x64", x64):
            expected = theirs(seed, impl=impl)
            assert_identical(ours(seed, impl=impl), expected)
            if x64 or seed != 2**40 + 3:
                assert_identical(xtrace.jit(lambda s: ours(s, impl=impl))(seed), expected)


def test_legacy_keys_give_legacy_keys():
    ours, theirs = random.PRNGKey(7), jax.random.PRNGKey(7)
    assert_identical(random.split(ours, (2, 2)), jax.random.split(theirs, (2, 2)))
    assert_identical(random.fold_in(ours, 3), jax.random.fold_in(theirs, 3))
    assert_identical(random.normal(np.asarray(ours), (3,)), jax.random.normal(theirs, (3,)))
    with settings("default_prng_impl", "rbg"):
        assert_identical(random.normal(random.PRNGKey(1), (3,)), jax.random.normal(jax.random.PRNGKey(1), (3,)))


def test_parts_and_types():
    key = random.key(3)
    assert (key.shape, key.ndim, key.size, key.dtype.name, key.itemsize) == ((), 0, 1, "key<fry>", 8)
    assert xtrace.dtypes.issubdtype(key.dtype, xtrace.dtypes.prng_key)
    assert repr(key) == repr(jax.random.key(3)) == str(key) == f"{key}"
    assert repr(random.split(key, 3)) == repr(jax.random.split(jax.random.key(3), 3))
    assert random.key_impl(key) == "threefry2x32" == random.key_impl(random.PRNGKey(0))
    assert random.key_dtype("rbg") == random.key(0, impl="rbg").dtype == random.key(0, dtype="rbg").dtype
    assert_identical(random.key_data(key), jax.random.key_data(jax.random.key(3)))
    words = np.arange(6, dtype=np.uint32).reshape(3, 2)
    assert_identical(random.wrap_key_data(words), jax.random.wrap_key_data(words))
    assert_identical(random.clone(key), jax.random.key(3))


OPERATIONS = [
    lambda np_, k, many: many[1],
    lambda np_, k, many: many[np_.array([2, 0])],
    lambda np_, k, many: many[1:],
    lambda np_, k, many: many[np_.array([True, False, True])],
    lambda np_, k, many: many.reshape(3, 1).T,
    lambda np_, k, many: many.at[0].set(k),
    lambda np_, k, many: many.at[np_.array([2, 5])].set(k),
    lambda np_, k, many: np_.where(np_.array([True, False, True]), many, k),
    lambda np_, k, many: np_.concatenate([many, many]),
    lambda np_, k, many: np_.stack([k, many[0]]),
    lambda np_, k, many: np_.broadcast_to(k, (2, 2)),
    lambda np_, k, many: np_.expand_dims(k, 0),
    lambda np_, k, many: many[:1].squeeze(),
    lambda np_, k, many: np_.flip(many),
    lambda np_, k, many: np_.roll(many, 1),
    lambda np_, k, many: np_.repeat(many, 2),
    lambda np_, k, many: np_.tile(many, 2),
    lambda np_, k, many: np_.take(many, np_.array([0, 5])),
    lambda np_, k, many: many.flatten(),
    lambda np_, k, many: [np_.zeros_like(many), np_.ones_like(k), np_.full_like(many, k), np_.zeros(3, many.dtype)],
    lambda np_, k, many: [np_.pad(many, 1, mode="edge"), np_.insert(many, 1, k), np_.append(many, many)],
    lambda np_, k, many: [np_.array([k, k]), many.copy(), many == k, many[:, None] != many, np_.isnan(k)],
    lambda np_, k, many: [np_.select([np_.array([True, False, True])], [many], k), many.at[1].get()],
    lambda np_, k, many: [np_.isclose(k, many), np_.allclose(k, many[0]), np_.array_equal(many, many)],
    lambda np_, k, many: list(many),
]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("operation", OPERATIONS)
def test_operations_on_arrays_of_keys(operation):
    ours, theirs = pair(1, "rbg")
    expected = operation(jax.numpy, theirs, jax.random.split(theirs, 3))
    many = random.split(ours, 3)
    assert_identical(operation(jnp, ours, many), expected)
    if operation is not OPERATIONS[3]:
        assert_identical(xtrace.jit(lambda k, m: operation(jnp, k, m))(ours, many), expected)


def test_keys_in_control_flow():
    ours, theirs = pair(2, "threefry2x32")
    many, their_many = random.split(ours, 3), jax.random.split(theirs, 3)

    def loop(lax_, random_):
        return lambda k: lax_.while_loop(
            lambda s: s[1] < 3, lambda s: (random_.split(s[0])[1], s[1] + random_.uniform(s[0])), (k, np.float32(0))
        )

    def choice(lax_, random_):
        return lambda p, k: lax_.cond(p, lambda k: random_.split(k)[0], lambda k: random_.fold_in(k, 3), k)

    assert_identical(loop(lax, random)(ours), loop(jax.lax, jax.random)(theirs))
    assert_identical(xtrace.vmap(loop(lax, random))(many), jax.vmap(loop(jax.lax, jax.random))(their_many))
    which = np.array([True, False, True])
    assert_identical(choice(lax, random)(True, ours), choice(jax.lax, jax.random)(True, theirs))
    assert_identical(
        xtrace.vmap(choice(lax, random))(which, many), jax.vmap(choice(jax.lax, jax.random))(which, their_many)
    )


def test_keys_in_lax():
    ours, theirs = pair(4, "threefry2x32")
    which = np.array([True, False, True])

    def results(lax_, random_, k, many, which):
        branches = [lambda k: k, lambda k: random_.fold_in(k, 1)]
        return [
            lax_.select(which, many, many[::-1]), lax_.select_n(which, many, many[::-1]), lax_.switch(1, branches, k),
            lax_.full_like(many, k), lax_.full((2,), 7, k.dtype), lax_.dynamic_update_slice(many, many[:1], (2,)),
            lax_.eq(many, many[::-1]), lax_.ne(many, many), lax_.fori_loop(0, 3, lambda i, k: random_.fold_in(k, i), k),
        ]

    many, their_many = random.split(ours, 3), jax.random.split(theirs, 3)
    got = xtrace.jit(lambda k, m, w: results(lax, random, k, m, w))(ours, many, which)
    assert_identical(got, jax.jit(lambda k, m, w: results(jax.lax, jax.random, k, m, w))(theirs, their_many, which))
    assert_identical(results(lax, random, ours, many, which), got)
    assert xtrace.device_get(many) is many


@pytest.mark.parametrize("impl", IMPLS)
def test_keys_made_inside_a_program_are_used_there(impl):
    def drawn(random_):
        return lambda seed: random_.bits(random_.split(random_.key(seed, impl=impl))[1], (2,))

    assert_identical(xtrace.jit(drawn(random))(5), jax.jit(drawn(jax.random))(5))


def test_types_of_keys_compare():
    key, other = random.key(0), random.key(0, impl="rbg")
    assert key.dtype == random.key(1).dtype != other.dtype and key.dtype != np.float32
    assert {key.dtype: 1}[random.key(7).dtype] == 1
    for kind in (xtrace.dtypes.prng_key, xtrace.dtypes.extended):
        assert jnp.issubdtype(key.dtype, kind) and not jnp.issubdtype(np.float32, kind)
    assert not jnp.issubdtype(key.dtype, np.integer)


def test_keys_as_constants_and_copies():
    ours, theirs = pair(9, "threefry2x32")
    assert_identical(xtrace.jit(lambda: random.normal(ours, (2,)))(), jax.random.normal(theirs, (2,)))
    big, their_big = random.split(ours, 1000), jax.random.split(theirs, 1000)
    assert_identical(xtrace.jit(lambda i: big[i])(3), their_big[3])
    assert_identical(copy.deepcopy(big), their_big)
    assert_identical(pickle.loads(pickle.dumps(big)), their_big)
    assert_identical(xtrace.device_put(big), their_big)


def test_keys_have_no_derivatives():
    key, zero = random.key(0), np.zeros((), xtrace.dtypes.float0)
    value, tangent = xtrace.jvp(lambda x, k: x * random.normal(k), (2.0, key), (1.0, zero))
    assert value == 2 * tangent
    assert xtrace.vjp(random.normal, key)[1](np.float32(1))[0].dtype == xtrace.dtypes.float0
    with pytest.raises(TypeError, match="key<fry>"):
        xtrace.grad(random.normal)(key)


@pytest.mark.parametrize("name", ["logical_not", "logical_and", "logical_or", "logical_xor", "where", "clamp", "clip"])
def test_keys_are_no_numbers(name):
    for package in (xtrace, jax):
        keys = package.random.split(package.random.key(0), 2)
        function = getattr(package.lax if name == "clamp" else package.numpy, name)
        args = {"where": (keys, 1, 0), "clamp": (keys,) * 3, "clip": (keys,) * 3, "logical_not": (keys,)}
        with pytest.raises(TypeError, match="key<fry>"):
            function(*args.get(name, (keys, keys)))


def test_jaxprs_name_the_operations():
    text = str(xtrace.make_jaxpr(lambda s: random.fold_in(random.split(random.PRNGKey(s))[0], 2))(3))
    for line in (
        "b:key<fry>[] = random_seed[impl=fry] a", "c:u32[2] = random_unwrap b",
        "d:key<fry>[] = random_wrap[impl=fry] c",
        "e:key<fry>[2] = random_split[shape=(2,)] d", "random_fold_in",
    ):
        assert line in text


MISTAKES = [
    (lambda: random.key(0, impl="philox"), ValueError, "unrecognized PRNG implementation 'philox'"),
    (lambda: random.key(0, impl=3), TypeError, "threefry2x32, rbg, unsafe_rbg"),
    (lambda: random.key(0, impl="rbg", dtype=random.key_dtype()), ValueError, "cannot both be given"),
    (lambda: random.key(random.key(0)), TypeError, "was given a random key"),
    (lambda: random.key(1.5), TypeError, r"the seed must be an integer; got float32\[\]"),
    (lambda: random.key([1, 2]), TypeError, r"an array of shape \(2,\). Use vmap"),
    (lambda: random.key("a"), TypeError, "seed"),
    (lambda: random.key(2**70), OverflowError, "too large|out of bounds"),
    (lambda: random.wrap_key_data(np.zeros(3, np.uint32)), TypeError, r"last axis of size 2; got shape \(3,\)"),
    (lambda: random.wrap_key_data(np.zeros(2, np.int32)), TypeError, "uint32; got int32"),
    (lambda: random.normal(3), TypeError, "normal: invalid PRNG key 3"),
    (lambda: random.normal(None), TypeError, "normal: invalid PRNG key None"),
    (lambda: random.normal(np.zeros(3, np.uint32)), TypeError, "normal: invalid PRNG key"),
    (lambda: random.normal(random.split(random.key(0), 3)), ValueError, r"normal accepts a single key.*\(3,\)"),
    (lambda: random.split(random.split(random.PRNGKey(0), 3)), ValueError, r"split accepts a single key"),
    (lambda: random.split(random.key(0), 1.5), TypeError, "split: num must be an integer, got 1.5"),
    (lambda: random.split(random.key(0), -1), TypeError, "negative"),
    (lambda: random.fold_in(random.key(0), np.arange(3)), TypeError, r"fold_in accepts a scalar.*\(3,\)"),
    (lambda: random.fold_in(random.key(0), -1), OverflowError, "too large|out of bounds"),
    (lambda: random.fold_in(random.key(0), 2**32), OverflowError, "too large|out of bounds"),
    (lambda: np.asarray(random.key(0)), TypeError, "key_data"),
    (lambda: random.key(0) + random.key(0), TypeError, "key<fry>"),
    (lambda: random.key(0) < random.key(0), TypeError, "key<fry>"),
    (lambda: bool(random.key(0)), TypeError, "key<fry>"),
    (lambda: int(random.key(0)), TypeError, "key<fry>"),
    (lambda: hash(random.key(0)), TypeError, "unhashable"),
    (lambda: len(random.key(0)), TypeError, "unsized"),
    (lambda: list(random.key(0)), TypeError, "0-d"),
    (lambda: lax.convert_element_type(random.key(0), np.uint32), TypeError, "key<fry>"),
    (lambda: random.key(0) == 3, TypeError, "key<fry> have no common dtype"),
    (lambda: random.key(0) == random.PRNGKey(0), TypeError, "key<fry> and uint32"),
    (lambda: random.key(0) == random.key(0, impl="rbg"), TypeError, "key<fry> and key<rbg>"),
    (lambda: np.ones(2) == random.key(0), TypeError, "key<fry>"),
    (lambda: jnp.where(True, random.key(0), 1), ValueError, "key<fry>"),
    (lambda: random.split(random.key(0)).at[0].set(1), TypeError, "key<fry>"),
    (lambda: jnp.pad(random.split(random.key(0)), 1), TypeError, "i32.* does not convert to key<fry>"),
    (lambda: lax.pad(random.split(random.key(0)), random.key(0), [(1, 1, 0)]), TypeError, "pad does not accept"),
    (lambda: jnp.sort(random.split(random.key(0))), TypeError, "sort does not accept dtype key<fry>"),
    (lambda: random.permutation(random.key(0), random.split(random.key(0))), TypeError, "sort does not accept"),
    (lambda: f"{random.key(0):.2f}", TypeError, "'.2f' is for numbers; this is an array of key<fry>"),
    (lambda: random.key(0).__dlpack__(), BufferError, "dlpack does not know key<fry>"),
    (lambda: random.key(0).item(), TypeError, "key_data"),
    (lambda: random.key(0).sum(), TypeError, "key<fry>"),
    (lambda: random.key(0).astype("f"), TypeError, "key<fry>.* does not convert to float32"),
]


@pytest.mark.parametrize(("call", "error", "words"), MISTAKES)
def test_mistakes(call, error, words):
    with pytest.raises(error, match=words):
        call()


def test_the_type_of_keys_for_annotations():
    key = xtrace.random.key(0)
    assert xtrace.random.Key(key) is key and xtrace.random.Key.__supertype__ is xtrace.Array
