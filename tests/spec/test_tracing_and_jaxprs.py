"""Specification, section 1: tracing and jaxprs."""

from __future__ import annotations

import numpy as np
import pytest

import xtrace as jax
import xtrace.numpy as jnp


def test_1_1_a_jaxpr_prints_in_exactly_this_form() -> None:
    global_list = []

    def log2(x):
        global_list.append(x)
        ln_x = jnp.log(x)
        ln_2 = jnp.log(2.0)
        return ln_x / ln_2

    assert str(jax.make_jaxpr(log2)(3.0)) == (
        "{ lambda ; a:f32[]. let\n    b:f32[] = log a\n    c:f32[] = log 2.0\n    d:f32[] = div b c\n  in (d,) }"
    )
    assert len(global_list) == 1


def test_1_1_multi_line_parameters_break_after_the_bracket() -> None:
    x, y = np.ones((3, 4), np.float32), np.ones(4, np.float32)
    assert str(jax.make_jaxpr(lambda x, y: jnp.dot(x + 1, y + 1))(x, y)) == (
        "{ lambda ; a:f32[3,4] b:f32[4]. let\n"
        "    c:f32[3,4] = add a 1.0\n"
        "    d:f32[4] = add b 1.0\n"
        "    e:f32[3] = dot_general[\n"
        "      dimension_numbers=(([1], [0]), ([], []))\n"
        "      preferred_element_type=float32\n"
        "    ] c d\n"
        "  in (e,) }"
    )


def _log2_if_rank_2(x):
    if x.ndim == 2:
        return jnp.log(x) / jnp.log(2.0)
    return x


def test_1_1_an_empty_body() -> None:
    assert str(jax.make_jaxpr(_log2_if_rank_2)(jnp.array([1, 2, 3]))) == "{ lambda ; a:i32[3]. let  in (a,) }"


def test_1_2_operations_on_constants_are_staged() -> None:
    jaxpr = jax.make_jaxpr(lambda: jnp.log(2.0) + jnp.sin(1.0))()
    assert [e.primitive.name for e in jaxpr.eqns] == ["log", "sin", "add"]


def test_1_3_side_effects_run_at_trace_time_only(capsys: pytest.CaptureFixture[str]) -> None:
    @jax.jit
    def log2_with_print(x):
        print("printed x:", x)
        return jnp.log(x) / jnp.log(2.0)

    jax.make_jaxpr(log2_with_print)(3.0)
    text = "printed x: JitTracer(~float32[])\n"
    assert capsys.readouterr().out == text
    log2_with_print(3.0)
    log2_with_print(4.0)
    assert capsys.readouterr().out == ""


def test_1_3_how_a_tracer_prints(capsys: pytest.CaptureFixture[str]) -> None:
    def show(x, y):
        print("printed x:", x)
        print(f"  y = {y}")
        assert repr(x) == str(x) == f"{x}"
        print(jnp.dot(x + 1, y + 1))
        return x

    jax.make_jaxpr(show)(np.ones((3, 4)), np.ones(4))
    assert capsys.readouterr().out.splitlines() == [
        "printed x: JitTracer(float32[3,4])",
        "  y = JitTracer(float32[4])",
        "JitTracer(float32[3])",
    ]

    def weak(x):
        print("printed x:", x)
        return x

    jax.jit(weak)(3.0)
    assert capsys.readouterr().out == ("printed x: JitTracer(~float32[])\n")


def test_1_4_python_scalars_are_weakly_typed() -> None:
    assert repr(jnp.add(1, 1.0)) == "Array(2., dtype=float32, weak_type=True)"


def test_1_5_a_branch_on_a_static_property_is_taken_in_python() -> None:
    matrix = jax.make_jaxpr(_log2_if_rank_2)(np.ones((2, 2), np.float32))
    vector = jax.make_jaxpr(_log2_if_rank_2)(np.ones(2, np.float32))
    # The logarithm of a Python number is weakly typed, so it is converted to the type of the matrix.
    assert [e.primitive.name for e in matrix.eqns] == ["log", "log", "convert_element_type", "div"]
    assert vector.eqns == []

    def by_dtype(x):
        return jnp.sin(x) if x.dtype == jnp.float32 else x

    assert [e.primitive.name for e in jax.make_jaxpr(by_dtype)(1.0).eqns] == ["sin"]
    assert jax.make_jaxpr(by_dtype)(1).eqns == []


def test_1_6_a_jaxpr_depends_on_shape_and_dtype_not_on_values() -> None:
    def f(x):
        return jnp.sin(x) * 2

    one, other = jax.make_jaxpr(f)(np.zeros(3, np.float32)), jax.make_jaxpr(f)(np.arange(3, dtype=np.float32))
    assert str(one) == str(other)
    assert str(one) != str(jax.make_jaxpr(f)(np.zeros(4, np.float32)))
