"""Programs that return many equal draws compute them in a loop; the numbers are the same."""

import jax
import numpy as np
import pytest

import xtrace

LOOP = "stablehlo.while"
SHAPE = (24, 32)


def initialise(lib, key, draw, count=5):
    return [draw(lib, lib.random.fold_in(key, i), i) for i in range(count)]


def initialise_by_splitting(lib, key, draw, count=5):
    return [draw(lib, k, i) for i, k in enumerate(lib.random.split(key, count))]


def initialise_in_turn(lib, key, draw, count=5):
    results = []
    for i in range(count):
        key, used = lib.random.split(key)
        results.append(draw(lib, used, i))
    return results


def lowered_text(function):
    return xtrace.lower(function, xtrace.random.key(0)).as_text()


def compare_with_separate_draws(make, draw, count=5):
    """The numbers are those of programs that draw once, to the bit, and jax's up to rounding."""
    results = xtrace.jit(lambda key: make(xtrace, key, draw, count))(xtrace.random.key(3))
    expected = jax.jit(lambda key: make(jax, key, draw, count))(jax.random.key(3))
    for i, (mine, theirs) in enumerate(zip(results, expected, strict=True)):
        alone = xtrace.jit(lambda key, i=i: make(xtrace, key, draw, count)[i])(xtrace.random.key(3))
        np.testing.assert_array_equal(mine, alone)
        assert mine.dtype == theirs.dtype
        assert mine.weak_type == theirs.weak_type
        # Twenty operations follow the uniform numbers, and the inverse error function magnifies errors near 1.
        wide = np.asarray(theirs, np.float64)
        tolerance = 20 * float(xtrace.numpy.finfo(mine.dtype).eps) if mine.dtype.kind == "f" else 0
        np.testing.assert_allclose(np.asarray(mine, np.float64), wide, rtol=tolerance, atol=tolerance)


DRAWS = {
    "uniform": lambda lib, key, i: lib.random.uniform(key, SHAPE),
    "normal": lambda lib, key, i: lib.random.normal(key, SHAPE),
    "scaled": lambda lib, key, i: lib.random.normal(key, SHAPE) * (0.5 + i) + 1,
    "scaled by arrays": lambda lib, key, i: lib.random.normal(key, SHAPE) / lib.numpy.sqrt(1.5 + i),
    "truncated": lambda lib, key, i: lib.random.truncated_normal(key, -2.0, 2.0, SHAPE) / 3,
    "reshaped": lambda lib, key, i: lib.random.normal(key, SHAPE).reshape(8, -1).T,
    "a mask": lambda lib, key, i: lib.random.bernoulli(key, 0.25 + i / 8, SHAPE),
    "integers": lambda lib, key, i: lib.random.randint(key, SHAPE, -i, 100),
    "bits": lambda lib, key, i: lib.random.bits(key, SHAPE),
    "a narrow dtype": lambda lib, key, i: lib.random.normal(key, SHAPE, "bfloat16") * 2,
    "Glorot's": lambda lib, key, i: lib.nn.initializers.glorot_uniform()(key, SHAPE),
    "a key in two parts": lambda lib, key, i: (
        lib.random.uniform(lib.random.fold_in(key, 1), SHAPE) + lib.random.uniform(lib.random.fold_in(key, 2), SHAPE)
    ),
}


@pytest.mark.parametrize("make", [initialise, initialise_by_splitting, initialise_in_turn])
@pytest.mark.parametrize("name", DRAWS)
def test_equal_draws_are_a_loop_with_the_same_numbers(name, make):
    draw = DRAWS[name]
    assert lowered_text(lambda key: make(xtrace, key, draw)).count(LOOP) == 1
    compare_with_separate_draws(make, draw)


def test_each_group_of_equal_draws_has_a_loop():
    def draw(lib, key, i):
        return lib.random.normal(key, ((24, 32), (32, 24))[i % 2]) * (i + 1)

    assert lowered_text(lambda key: initialise(xtrace, key, draw, 8)).count(LOOP) == 2
    compare_with_separate_draws(initialise, draw, 8)


def test_batched_programs_draw_in_a_loop():
    def make(lib):
        return lib.vmap(lambda key: initialise(lib, key, DRAWS["scaled"]))

    keys = xtrace.random.split(xtrace.random.key(1), 3)
    assert xtrace.lower(make(xtrace), keys).as_text().count(LOOP) == 1
    expected = jax.jit(make(jax))(jax.random.split(jax.random.key(1), 3))
    for mine, theirs in zip(xtrace.jit(make(xtrace))(keys), expected, strict=True):
        np.testing.assert_allclose(mine, theirs, rtol=20 * np.finfo(np.float32).eps, atol=1e-6)


@pytest.mark.parametrize("impl", ["rbg", "unsafe_rbg"])
def test_keys_of_other_generators(impl):
    def make(key):
        return initialise(xtrace, key, DRAWS["normal"])

    key = xtrace.random.key(0, impl=impl)
    assert xtrace.lower(make, key).as_text().count(LOOP) == 1
    for i, x in enumerate(xtrace.jit(make)(key)):
        np.testing.assert_array_equal(x, xtrace.jit(lambda key, i=i: make(key)[i])(key))


def test_numbers_of_64_bits():
    with xtrace.enable_x64(True), jax.enable_x64(True):
        draw = DRAWS["scaled"]
        assert lowered_text(lambda key: initialise(xtrace, key, draw)).count(LOOP) == 1
        compare_with_separate_draws(initialise, draw)


def test_results_may_repeat_and_come_with_others():
    def make(lib, key):
        draws = initialise(lib, key, DRAWS["scaled"])
        return {"key": key, "draws": [*draws, draws[0]], "ones": lib.numpy.ones(300)}

    assert lowered_text(lambda key: make(xtrace, key)).count(LOOP) == 1
    results = xtrace.jit(lambda key: make(xtrace, key))(xtrace.random.key(3))
    expected = jax.jit(lambda key: make(jax, key))(jax.random.key(3))
    np.testing.assert_array_equal(results["draws"][0], results["draws"][-1])
    np.testing.assert_array_equal(xtrace.random.key_data(results["key"]), jax.random.key_data(expected["key"]))
    np.testing.assert_allclose(results["draws"][2], expected["draws"][2], rtol=1e-5, atol=1e-6)


def read_by_others(lib, key):
    draws = initialise(lib, key, DRAWS["normal"])
    return draws, [x.sum() for x in draws]


def normalised(lib, key):
    return [x / lib.numpy.sqrt((x * x).sum()) for x in initialise(lib, key, DRAWS["normal"])]


def chained(lib, key):
    results = [lib.random.normal(key, SHAPE)]
    for i in range(4):
        results.append(lib.random.normal(lib.random.fold_in(key, i), SHAPE) + results[-1])
    return results


def of_one_key(lib, key):
    return [lib.random.normal(key, SHAPE) for _ in range(5)]


def of_many_elements(lib, key):
    return [lib.random.uniform(lib.random.fold_in(key, i), (512, 512)) for i in range(5)]


def of_few_elements(lib, key):
    return [lib.random.uniform(lib.random.fold_in(key, i), (8, 8)) for i in range(5)]


def of_other_shapes(lib, key):
    return [lib.random.uniform(lib.random.fold_in(key, i), (24, 32 + i)) for i in range(5)]


def of_few_draws(lib, key):
    return initialise(lib, key, DRAWS["normal"], 3)


def with_signs(lib, key):
    """The zeros differ in their sign, so the draws are two groups of three."""
    return [lib.random.uniform(lib.random.fold_in(key, i), SHAPE) * (0.0 if i % 2 else -0.0) for i in range(6)]


@pytest.mark.parametrize("make", [
    read_by_others, normalised, chained, of_one_key, of_many_elements, of_few_elements, of_other_shapes, of_few_draws,
])
def test_other_programs_have_no_loop(make):
    assert LOOP not in lowered_text(lambda key: make(xtrace, key))
    ours = xtrace.tree.leaves(xtrace.jit(lambda key: make(xtrace, key))(xtrace.random.key(5)))
    theirs = jax.tree.leaves(jax.jit(lambda key: make(jax, key))(jax.random.key(5)))
    for mine, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(mine, other, rtol=768 * np.finfo(np.float32).eps, atol=1e-5)


def test_signs_of_zeros():
    for i, x in enumerate(xtrace.jit(lambda key: with_signs(xtrace, key))(xtrace.random.key(0))):
        assert (np.signbit(x) == (i % 2 == 0)).all()


def test_programs_with_effects_have_no_loop():
    def make(key):
        xtrace.debug.print("drawing")
        return initialise(xtrace, key, DRAWS["normal"])

    assert LOOP not in lowered_text(make)


def test_programs_on_a_mesh_have_no_loop():
    """XLA partitions the draws of a program on a mesh."""
    mesh = xtrace.make_mesh((1,), ("i",), devices=xtrace.devices()[:1])
    rows = xtrace.NamedSharding(mesh, xtrace.P("i"))
    program = xtrace.jit(lambda key: initialise(xtrace, key, DRAWS["normal"]), out_shardings=rows)
    assert LOOP not in program.lower(xtrace.random.key(0)).as_text()


def test_an_exported_program_draws_in_a_loop():
    program = xtrace.jit(lambda key: initialise(xtrace, key, DRAWS["scaled"]))
    key = xtrace.random.key(2)
    restored = xtrace.export.deserialize(xtrace.export.export(program)(key).serialize())
    for mine, theirs in zip(restored.call(key), program(key), strict=True):
        np.testing.assert_array_equal(mine, theirs)


def test_operations_of_loops_have_the_line_of_the_draw():
    def make(key):
        return [xtrace.random.normal(xtrace.random.fold_in(key, i), SHAPE) for i in range(4)]

    lines = xtrace.lower(make, xtrace.random.key(0)).as_text(debug_info=True).splitlines()
    inside = [line for line in lines if line.startswith("#loc") and "while/body" in line]
    assert inside
    place = f'test_draw_loops.py":{make.__code__.co_firstlineno + 1}:'
    assert [line for line in inside if place not in line] == []
