"""Serialized programs without the HLO of fusions: they give the same bits, and are described by the whole program."""

from __future__ import annotations

import functools
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from benchmarks import applications
from tests.support.reference import IS_REFERENCE
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.runtime.compilation_cache import KeptCode
from xtrace._src.xla.executables import executables
from xtrace._src.xla.executables.stripped_executables import StrippedExecutable, strip_executable
from xtrace._src.xla.hlo.protobuf import fields, replace_fields, write_field
from xtrace.experimental.compilation_cache.compilation_cache import reset_cache


@pytest.fixture
def cache(tmp_path):
    """Use a folder of compiled programs, where every program is stored."""
    reset_cache()
    with cache_settings.directory(str(tmp_path / "programs")), cache_settings.min_compile_seconds(0.0):
        yield
    reset_cache()


def compile_and_load(function, *args, is_stripped=True):
    """Return a function as it was compiled, and as it is loaded from the folder."""
    compiled = []
    for _ in range(2):
        xtrace.clear_caches()
        compiled.append(xtrace.jit(function).lower(*args).compile())
    first, second = compiled
    assert isinstance(second.runtime_executable(), StrippedExecutable) is is_stripped
    assert not isinstance(first.runtime_executable(), StrippedExecutable)
    return first, second


def assert_same_bits(first, second):
    assert xtrace.tree.structure(first) == xtrace.tree.structure(second)
    for one, other in zip(xtrace.tree.leaves(first), xtrace.tree.leaves(second), strict=True):
        assert np.asarray(one).tobytes() == np.asarray(other).tobytes()


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("name", applications.APPLICATIONS)
def test_applications_give_the_same_bits(cache, name):
    function, arguments = applications.build(xtrace, name)[:2]
    # jaxlib 0.12 cannot load this program without its HLO, so the whole one is loaded.
    is_stripped = IS_REFERENCE or name != "residual network"
    first, second = compile_and_load(function, *arguments, is_stripped=is_stripped)
    assert_same_bits(first(*arguments), second(*arguments))


def loops(x):
    """Fusions in the bodies of loops and branches, reductions, a sort by a comparison, and scatters."""

    def body(carry, row):
        carry = jnp.where(carry > 0, jnp.sin(carry) + row, row)
        return carry, jnp.sum(jnp.exp(row) * carry)

    carry, sums = xtrace.lax.scan(body, x[0], x)
    halved = xtrace.lax.while_loop(lambda v: jnp.max(v) > 0.5, lambda v: v * 0.5 - jnp.tanh(v) * 0.1, jnp.abs(x))
    chosen = xtrace.lax.cond(sums[0] > 0, lambda: x + 1, lambda: jnp.cos(x) * x)
    order = jnp.argsort(jnp.sin(x * 3), axis=1)
    return carry, halved, chosen, jnp.cumsum(x, 1), jnp.zeros(9).at[order].add(x * 2), jnp.max(x, 0), x @ x.T


def test_programs_with_loops_give_the_same_bits(cache):
    x = np.linspace(-2, 2, 63, dtype=np.float32).reshape(7, 9)
    first, second = compile_and_load(loops, x)
    assert_same_bits(first(x), second(x))
    first, second = compile_and_load(xtrace.grad(lambda x: jnp.sum(loops(x)[0])), x)
    assert_same_bits(first(x), second(x))


def computations(text):
    """Return the computations of HLO text without the numbers of source lines, which XLA counts again when it loads."""
    return re.sub(r" ?stack_frame_id=\d+", "", text[text.index("{\n  ") :])


def test_whole_programs_describe_stripped_ones(cache):
    x = np.linspace(-2, 2, 63, dtype=np.float32).reshape(7, 9)
    first, second = compile_and_load(loops, x)
    text = second.as_text()
    assert computations(text) == computations(first.as_text())
    assert "kind=kLoop" in text and 'op_name="' in text
    assert second.cost_analysis() == first.cost_analysis()
    assert str(second.memory_analysis()) == str(first.memory_analysis())
    running = executables.hlo_text(second.runtime_executable().running)
    assert 'custom_call_target="stripped"' in running
    assert not any(part in running for part in ("kind=kLoop", 'op_name="')) and len(running) < len(text)


def test_programs_with_collectives_take_turns(cache):
    mesh = xtrace.make_mesh((8,), ("x",), axis_types=(xtrace.sharding.AxisType.Auto,))
    rows = xtrace.NamedSharding(mesh, xtrace.P("x"))
    x = xtrace.device_put(np.arange(64, dtype=np.float32).reshape(8, 8), rows)
    function = xtrace.jit(lambda x: (jnp.sum(jnp.sin(x)), x.T @ x), out_shardings=(None, rows))
    first, second = compile_and_load(function, x)
    assert_same_bits(first(x), second(x))
    assert second.output_shardings == first.output_shardings
    assert executables._takes_turns(second.runtime_executable())


@pytest.mark.parametrize("stripped", [None, b"no program"])
def test_the_whole_program_is_loaded_where_there_is_no_stripped_one_that_xla_takes(stripped):
    executable = xtrace.jit(lambda x: jnp.sin(x) * 2 + 1).lower(np.float32(1)).compile().runtime_executable()
    code = KeptCode.of_executable(executable)
    assert strip_executable(code.read()) == code.stripped and KeptCode.decode(code.encode()) == code
    whole = KeptCode.decode(code._replace(stripped=stripped).encode())
    assert not isinstance(whole.load(executable.local_devices(), None, None, ()), StrippedExecutable)


@given(st.data())
def test_a_changed_program_is_stripped_or_not(data):
    """Another release of XLA may give a field's number to a field of another kind."""
    code = bytearray(_code())
    for place in data.draw(st.lists(st.integers(0, len(code) - 1), min_size=1, max_size=20)):
        code[place] = data.draw(st.integers(0, 255))
    stripped = strip_executable(bytes(code))
    assert stripped is None or len(stripped) < len(code)


@functools.cache
def _code():
    executable = xtrace.jit(lambda x: jnp.sin(x) * 2 + 1).lower(np.float32(1)).compile().runtime_executable()
    return executables.serialize_executable(executable)


@given(st.binary(max_size=100))
def test_bytes_of_any_kind_are_stripped_or_not(code):
    stripped = strip_executable(code)
    assert stripped is None or len(stripped) < len(code)


def test_fields_are_replaced_where_they_stand():
    values = [(1, b"one"), (2, 300), (1, b"two"), (3, b"x" * 200)]
    message = b"".join([write_field(*field) for field in values])
    assert list(fields(message)) == values
    replaced = replace_fields(message, 1, bytes.upper)
    assert list(fields(replaced)) == [(1, b"ONE"), (2, 300), (1, b"TWO"), (3, b"x" * 200)]
    assert replace_fields(message, 1, lambda _: None) == write_field(2, 300) + write_field(3, b"x" * 200)
    assert replace_fields(message, 2, bytes.upper) == message == replace_fields(message, 4, bytes.upper)
