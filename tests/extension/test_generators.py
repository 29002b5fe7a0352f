"""Generators of random bits of users: their keys under functions and transformations, compared with jax."""

import pickle

import jax
import jax.extend.random
import numpy as np
import pytest

import xtrace
import xtrace.extend.random

PACKAGES = (xtrace, jax)
_calls = []


def functions(package, shape=(3,)):
    """The functions of a weak generator, written for one key of a shape."""
    jnp = package.numpy

    def seed(number):
        return jnp.full(shape, number).astype("uint32") * np.uint32(2654435761)

    def split(key, sizes):
        _calls.append((key.shape, sizes))
        steps = jnp.arange(int(np.prod(sizes)), dtype="uint32").reshape(*sizes, *(1,) * len(shape))
        return key + steps * np.uint32(40503) + np.uint32(1)

    def random_bits(key, width, sizes):
        steps = jnp.arange(int(np.prod(sizes)), dtype="uint32").reshape(sizes)
        return ((key.sum().astype("uint32") + steps) * np.uint32(2246822519) >> np.uint32(7)).astype(f"uint{width}")

    def fold_in(key, data):
        assert data.dtype == np.uint32 and data.shape == ()
        return key ^ (data * np.uint32(97))

    return {"seed": seed, "split": split, "random_bits": random_bits, "fold_in": fold_in}


def defined(package, shape=(3,), **changes):
    given = functions(package, shape) | {"name": "weak", "tag": "wk"} | changes
    return package.extend.random.define_prng_impl(key_shape=shape, **given)


def data(package, keys):
    return np.asarray(package.random.key_data(keys))


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("shape", [(3,), (1,), (2, 2)])
@pytest.mark.parametrize("use", [
    lambda p, key: data(p, key),
    lambda p, key: data(p, p.random.split(key)),
    lambda p, key: data(p, p.random.split(key, (2, 3))[:, 1:]),
    lambda p, key: data(p, p.random.fold_in(key, 5)),
    lambda p, key: data(p, p.vmap(p.random.fold_in, (None, 0))(key, np.arange(3))),
    lambda p, key: data(p, p.vmap(p.random.fold_in)(p.random.split(key, 3), np.arange(3))),
    lambda p, key: data(p, p.vmap(p.random.split)(p.random.split(key, (4,)))),
    lambda p, key: [p.random.bits(key, (2, 3), f"uint{n}") for n in (8, 16, 32)],
    lambda p, key: [p.random.uniform(key, (5,)), p.random.normal(key, (2,)), p.random.randint(key, (4,), 0, 9)],
    lambda p, key: p.jit(lambda k: p.random.uniform(p.random.split(k)[1], (3,)))(key),
    lambda p, key: p.vmap(p.vmap(lambda k: p.random.bits(k, (2,))))(p.random.split(key, (2, 3))),
    lambda p, key: p.lax.scan(lambda k, _: (p.random.fold_in(k, 1), p.random.bits(k)), key, None, length=4)[1],
    lambda p, key: p.grad(lambda x: (x * p.random.uniform(key, (3,))).sum())(p.numpy.ones(3)),
    lambda p, key: p.random.permutation(key, 6),
])
def test_keys_work_everywhere(use, shape):
    mine, other = (use(p, p.random.key(7, impl=defined(p, shape))) for p in PACKAGES)
    for x, y in zip(xtrace.tree.leaves(mine), jax.tree.leaves(other), strict=True):
        np.testing.assert_array_equal(np.asarray(x), np.asarray(y))


def test_seeds():
    for make in (
        lambda p: data(p, p.random.key(np.int32(-3), impl=defined(p))),
        lambda p: np.asarray(p.random.PRNGKey(5, impl=defined(p))),
        lambda p: data(p, p.jit(lambda n: p.random.key(n, impl=defined(p)))(4)),
        lambda p: data(p, p.random.wrap_key_data(np.arange(6, dtype=np.uint32).reshape(2, 3), impl=defined(p))),
        lambda p: data(p, p.extend.random.random_seed(2**40 + 3, p.extend.random.threefry_prng_impl)),
        lambda p: data(p, p.extend.random.random_seed(np.arange(4).reshape(2, 2), p.extend.random.rbg_prng_impl)),
        lambda p: data(p, p.extend.random.seed_with_impl(p.extend.random.unsafe_rbg_prng_impl, True)),
        lambda p: data(p, p.random.key(3, impl=p.extend.random.rbg_prng_impl)),
    ):
        mine, other = map(make, PACKAGES)
        np.testing.assert_array_equal(mine, other)
    seeds = xtrace.extend.random.random_seed(np.arange(4), defined(xtrace))
    assert [data(xtrace, s).tolist() for s in seeds] == [
        data(xtrace, xtrace.random.key(n, impl=defined(xtrace))).tolist() for n in range(4)
    ]


def test_names_and_jaxprs():
    texts = []
    for package in PACKAGES:
        impl = defined(package)
        key = package.random.key(1, impl=impl)
        assert str(key.dtype) == "key<wk>" and str(impl) == "wk" == str(package.random.key_impl(key))
        assert package.random.key(1, impl=package.random.key_impl(key)).dtype == key.dtype
        assert package.random.key(1, dtype=key.dtype).dtype == key.dtype == package.random.key_dtype(impl)
        texts.append([
            str(package.make_jaxpr(package.random.split)(key)),
            str(package.make_jaxpr(lambda n, p=package, impl=impl: p.random.key(n, impl=impl))(1)), str(key),
        ])
    assert texts[0] == texts[1]


def test_equal_definitions_are_one():
    for package in PACKAGES:
        given = functions(package)
        first, again = (package.extend.random.define_prng_impl(key_shape=(3,), **given) for _ in range(2))
        assert first == again and hash(first) == hash(again)
        assert package.random.key(0, impl=first).dtype == package.random.key(0, impl=again).dtype
        other = package.extend.random.define_prng_impl(key_shape=(3,), **given | {"seed": lambda n: 0})
        assert other != first and str(other) == "?"


def test_functions_are_traced_once_for_each_shape():
    key = xtrace.random.key(0, impl=defined(xtrace, name="counted"))
    _calls.clear()
    for _ in range(3):
        key = xtrace.random.split(key, 2)[0]
    assert _calls == [((3,), (2,))]


def test_keys_of_other_generators_do_not_mix():
    first, second = (xtrace.random.key(0, impl=defined(xtrace)) for _ in range(2))
    assert first.dtype != second.dtype
    with pytest.raises(TypeError):
        xtrace.numpy.stack([first, second])


def test_built_in_generators_have_their_functions():
    for name in ("threefry_prng_impl", "rbg_prng_impl", "unsafe_rbg_prng_impl"):
        mine, other = (getattr(p.extend.random, name) for p in PACKAGES)
        assert (mine.name, mine.tag, mine.key_shape) == (other.name, other.tag, other.key_shape)
        words = np.arange(mine.key_shape[0], dtype=np.uint32)
        for use in (lambda g: g.seed(np.int32(5)), lambda g, w=words: g.split(w, (2, 2)),
                    lambda g, w=words: g.fold_in(w, np.uint32(3)), lambda g, w=words: g.random_bits(w, 16, (5,))):
            np.testing.assert_array_equal(np.asarray(use(mine)), np.asarray(use(other)))
        assert pickle.loads(pickle.dumps(mine)) is mine


def test_threefry():
    key, words = np.array([3, 2**31], np.uint32), np.arange(15, dtype=np.uint32)
    for given in (words, words.reshape(3, 5), words[:2], words[:1], words[:0], np.uint32(7)):
        for pair in (key, tuple(key)):
            mine, other = (np.asarray(p.extend.random.threefry_2x32(pair, given)) for p in PACKAGES)
            np.testing.assert_array_equal(mine, other)
    for p in PACKAGES:
        assert p.extend.random.threefry2x32_p.multiple_results


@pytest.mark.parametrize("axes", [(0, None, 0, None), (None, None, 1, 1), (0, 1, None, None), (None, None, None, 0)])
@pytest.mark.parametrize("key_shape", [(), (4,)])
def test_threefry_maps_over_axes(axes, key_shape):
    bind = xtrace.extend.random.threefry2x32_p.bind
    operands, rows = [], [[] for _ in range(3)]
    for position, (axis, shape) in enumerate(zip(axes, (key_shape, key_shape, (4,), (4,)), strict=True)):
        axis = axis and min(axis, len(shape))
        parts = [np.arange(int(np.prod(shape)), dtype=np.uint32).reshape(shape) + position + 9 * i for i in range(3)]
        operands.append(parts[0] if axis is None else np.stack(parts, axis))
        for row, part in zip(rows, parts, strict=True):
            row.append(parts[0] if axis is None else part)
    axes = tuple([a and min(a, x.ndim - 1) for a, x in zip(axes, operands, strict=True)])
    mapped = xtrace.vmap(lambda *xs: bind(*xs), axes)(*operands)
    for word, expected in zip(mapped, zip(*[bind(*row) for row in rows], strict=True), strict=True):
        np.testing.assert_array_equal(np.asarray(word), np.stack([np.asarray(x) for x in expected]))


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda r: r.threefry_2x32(np.arange(2, dtype=np.int32), np.arange(2, dtype=np.uint32)), TypeError, "uint32"),
    (lambda r: r.threefry_2x32(np.zeros(3, np.uint32), np.zeros(3, np.uint32)), ValueError, None),
    (lambda r: r.define_prng_impl(key_shape=(3,)), TypeError, "missing"),
    (lambda r: r.random_seed(1.5, r.threefry_prng_impl), TypeError, "seed must be an integer"),
    (lambda r: r.random_seed("a seed", r.threefry_prng_impl), TypeError, "a seed"),
])
def test_what_jax_refuses_is_refused(call, kind, message):
    for package in PACKAGES:
        with pytest.raises(kind, match=message):
            call(package.extend.random)


@pytest.mark.parametrize(("changes", "use", "message"), [
    ({"seed": lambda n: xtrace.numpy.zeros(3)}, lambda key: key, r"seed of .* uint32\[3\], and returned float32\[3\]"),
    ({"split": lambda k, s: k}, xtrace.random.split, r"split of .*weak.* uint32\[2,3\], and returned uint32\[3\]"),
    ({"random_bits": lambda k, w, s: k}, xtrace.random.bits, r"random_bits of .* uint32\[\], and returned uint32\[3\]"),
    ({"fold_in": lambda k, n: "a"}, lambda key: xtrace.random.fold_in(key, 1), "fold_in of the random generator weak"),
])
def test_functions_of_wrong_types_are_named(changes, use, message):
    with pytest.raises(TypeError, match=message):
        use(xtrace.random.key(0, impl=defined(xtrace, **changes)))


@pytest.mark.parametrize(("call", "kind", "message"), [
    (lambda: defined(xtrace, 3), TypeError, "key_shape must be a sequence of integers, got 3"),
    (lambda: defined(xtrace, ()), ValueError, "key_shape must have an axis"),
    (lambda: defined(xtrace, fold_in=3), TypeError, "fold_in must be a function, got 3"),
    (lambda: xtrace.random.wrap_key_data(np.zeros(3, np.uint32), impl=defined(xtrace, (2, 2))), TypeError,
     r"last axes of sizes \(2, 2\); got shape \(3,\)"),
    (lambda: xtrace.extend.random.threefry_2x32(np.zeros(3, np.uint32), np.zeros(3, np.uint32)), ValueError,
     "keypair must be two words, got 3"),
])
def test_wrong_definitions_say_so(call, kind, message):
    with pytest.raises(kind, match=message):
        call()
