"""When a jitted function becomes part of its caller: the choices of `Inline`, which newer jax has."""

from __future__ import annotations

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.reference import IS_REFERENCE
from xtrace import Inline
from xtrace._src.core.settings import config

X = np.array([0.5, -1.0, 2.0], np.float32)

# Whether the jaxpr has the call, whether the module has it, and the mark on it.
CHOICES = {
    "JAX_EARLY": (False, False, None), "JAX_LATE": (True, False, None), "XLA_EARLY": (True, True, "xla_early"),
    "XLA_LATE": (True, True, "xla_late"), "AUTO": (True, True, None),
}


def callee(x):
    return jnp.sin(x) * x


def caller(choice):
    inner = xtrace.jit(callee, inline=Inline[choice])
    return lambda x: inner(x) + 1


def functions_of(text):
    return text.count("func.func private"), [line for line in text.splitlines() if "inlineable" in line]


def test_choices_are_those_of_jax():
    assert {choice.name for choice in Inline} == set(CHOICES)
    for name in ("Inline", "CompilerEffortLevel"):
        if hasattr(jax, name):
            mine, other = getattr(xtrace, name), getattr(jax, name)
            assert {c.name: c.value for c in mine} == {c.name: c.value for c in other}


@pytest.mark.parametrize("choice", CHOICES)
def test_where_the_call_is(choice):
    in_jaxpr, in_module, mark = CHOICES[choice]
    names = [e.primitive.name for e in xtrace.make_jaxpr(caller(choice))(X).jaxpr.eqns]
    assert ("jit" in names) == in_jaxpr
    functions, marked = functions_of(xtrace.jit(caller(choice)).lower(X).as_text())
    assert functions == in_module
    assert len(marked) == (mark is not None) and all(f'inlineable = "{mark}"' in line for line in marked)


@pytest.mark.parametrize("choice", CHOICES)
def test_transformations_keep_the_choice(choice):
    _, in_module, mark = CHOICES[choice]
    gradient = xtrace.vmap(xtrace.grad(caller(choice)))
    functions, marked = functions_of(xtrace.jit(gradient).lower(X).as_text())
    assert (functions > 0) == in_module and (len(marked) > 0) == (mark is not None)
    np.testing.assert_allclose(xtrace.jit(gradient)(X), np.cos(X) * X + np.sin(X), rtol=1e-6)
    np.testing.assert_allclose(gradient(X), np.cos(X) * X + np.sin(X), rtol=1e-6)


@pytest.mark.parametrize("choice", CHOICES)
def test_the_function_alone_is_compiled_as_others_are(choice):
    np.testing.assert_allclose(xtrace.jit(callee, inline=Inline[choice])(X), np.sin(X) * X, rtol=1e-6)


def test_levels_of_the_compilers_effort():
    for level in xtrace.CompilerEffortLevel:
        with config.find_setting("jax_optimization_level")(level):
            assert xtrace.config.jax_optimization_level == level.name
    with pytest.raises(ValueError, match="jax_optimization_level: the setting accepts 'UNKNOWN'"):
        xtrace.config.update("jax_optimization_level", 9)


def test_numbers_are_arrays_in_an_inlined_function():
    programs = []
    for package in (xtrace, jax):
        result_type = package.numpy.result_type
        scale = package.jit(lambda a, b, f=result_type: (a * b).astype(f(a.dtype, b.dtype)), inline=True)
        programs.append(str(package.make_jaxpr(lambda x, scale=scale: scale(2.0, x))(np.ones(2, np.float32))))
        assert package.jit(lambda x, scale=scale: scale(2, x))(np.ones(2, np.float32)).tolist() == [2.0, 2.0]
    # Newer jax keeps the call in the jaxpr, whatever `inline` says.
    for program in programs if IS_REFERENCE else programs[:1]:
        assert "mul" in program and "jit[" not in program
