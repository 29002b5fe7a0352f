"""Programs that derive many keys: the same bits, in fewer instructions."""

import jax
import numpy as np
import pytest

import xtrace
from benchmarks.compiled import instructions
from benchmarks.random_programs import RANDOM_PROGRAMS
from xtrace import NamedSharding, P, random
from xtrace._src.stablehlo import repeated_calls

pytestmark = pytest.mark.thorough

KEPT = 'inlineable = "false", xla_cpu_small_call = "true"'


def chain(random, length):
    """Return the function that splits a key so often, and draws each time."""

    def draw(seed):
        key, drawn = random.key(seed), []
        for _ in range(length):
            key, own = random.split(key)
            drawn.append(random.bits(own, (3,)))
        return drawn

    return draw


def text(function, *arguments):
    return xtrace.lower(function, *arguments).as_text()


@pytest.mark.parametrize("length", [1, 2, 3, 12])
def test_the_bits_are_the_same(length):
    assert (KEPT in text(chain(random, length), 1)) == (length > 1)
    expected = jax.jit(chain(jax.random, length))(7)
    np.testing.assert_array_equal(xtrace.jit(chain(random, length))(7), expected)
    mapped = xtrace.jit(xtrace.vmap(chain(random, length)))(np.arange(4))
    np.testing.assert_array_equal(mapped, jax.jit(jax.vmap(chain(jax.random, length)))(np.arange(4)))


def test_xla_is_told_to_make_one_function_of_a_call():
    def derive(key):
        return [random.key_data(random.fold_in(key, i)) for i in range(4)]

    lines = xtrace.lower(derive, random.key(0)).compile().as_text().splitlines()
    calls = [line for line in lines if " call(" in line and 'xla_cpu_small_call="true"' in line]
    assert len(calls) == 4 and all("threefry2x32" in line for line in calls)


def test_a_chain_of_keys_has_fewer_instructions(monkeypatch):
    kept = instructions(xtrace.lower(chain(random, 12), 1).compile())
    monkeypatch.setattr(repeated_calls, "_MANY_CALLS", 1000)
    written_out = instructions(xtrace.lower(lambda seed: chain(random, 12)(seed), 1).compile())
    assert kept < 0.6 * written_out


def test_calls_inside_of_functions_count_as_often_as_these_are_called():
    helper = xtrace.jit(lambda key: random.bits(key, (3,)))
    assert KEPT not in text(lambda keys: [helper(keys[i]) for i in range(2)], random.split(random.key(0), 2))
    assert KEPT in text(lambda keys: [helper(keys[i]) for i in range(6)], random.split(random.key(0), 6))


def test_ciphers_of_large_arrays_are_part_of_the_loops_that_read_them():
    program = text(lambda key: [random.normal(k, (100,)) for k in random.split(key, 6)], random.key(0))
    calls = [line for line in program.splitlines() if "call @threefry2x32" in line]
    assert [KEPT in line for line in calls] == ["tensor<100xui32>" not in line for line in calls]
    assert any("tensor<100xui32>" in line for line in calls)


def test_programs_on_meshes_and_of_other_platforms_are_as_they_were():
    mesh = xtrace.make_mesh((2,), ("x",), axis_types=(xtrace.sharding.AxisType.Auto,))
    seed = xtrace.device_put(np.int32(3), NamedSharding(mesh, P()))
    assert KEPT not in text(chain(random, 12), seed)
    lowered = xtrace.jit(chain(random, 12)).trace(1).lower(lowering_platforms=("cuda",))
    assert KEPT not in lowered.as_text()


@pytest.mark.parametrize("name", RANDOM_PROGRAMS)
def test_programs_draw_what_they_draw_in_jax(name):
    ours, theirs = RANDOM_PROGRAMS[name](xtrace), RANDOM_PROGRAMS[name](jax)
    got = xtrace.tree.leaves(xtrace.jit(ours.function)(*ours.arguments))
    expected = jax.tree.leaves(jax.jit(theirs.function)(*theirs.arguments))
    for one, other in zip(got, expected, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=1e-6 * ours.roundings, atol=1e-6 * ours.roundings)
