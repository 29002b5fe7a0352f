"""Public names beside the operations: `core`, `errors`, `extend`, `stages`, `typing`, and what few programs use."""

from __future__ import annotations

import importlib

import jax
import jax.extend.core
import jax.extend.core.primitives
import numpy as np
import pytest

import xtrace
from tests.support.elementwise_operations import OWN_OPERATIONS
from tests.support.operands import assert_same, ours, theirs
from tests.support.reference import DROPPED, IS_REFERENCE, NEWER
from xtrace import lax
from xtrace._src.core.primitive import Primitive

X, W = np.ones((3, 2), np.float32), np.full((2, 2), 0.5, np.float32)


# What jax has no counterpart of.
OWN = {
    "BroadcastError", "DuplicateSpecError", "IndivisibleError", "MatrixShapeError", "NoMeshError",
    "RecompilationWarning", "ShardingTypeError", "StaticArgumentError",
}


@pytest.mark.parametrize("module", ["core", "errors", "extend.core", "extend.core.primitives", "stages", "typing"])
def test_every_name_is_jaxs(module):
    mine, other = importlib.import_module(f"xtrace.{module}"), importlib.import_module(f"jax.{module}")
    assert mine.__all__
    for name in mine.__all__:
        other_release = (NEWER if IS_REFERENCE else DROPPED).get(f"xtrace.{module}", ())
        own = OWN | OWN_OPERATIONS.get(f"xtrace.{module}", set())
        assert hasattr(mine, name) and hasattr(other, name) != (name in own or name in other_release), name


# Derivatives in two functions


def product(package):
    return lambda x, w: package.numpy.sin(x @ w)


@pytest.mark.parametrize("jitted", [True, False])
@pytest.mark.parametrize("argnums", [0, 1, (0, 1), (1,), -1])
def test_forward_and_backward_functions(argnums, jitted):
    found = []
    for package, convert in ((xtrace, ours), (jax, theirs)):
        fwd, bwd = package.fwd_and_bwd(product(package), argnums, jitted=jitted)
        y, residuals = fwd(*convert([X, W]))
        found.append((y, bwd(residuals, y)))
    assert_same(*found, 16)


def test_the_backward_function_is_compiled_once():
    traces = []

    def function(x, w):
        traces.append(1)
        return x @ w, {"aux": x}

    fwd, bwd = xtrace.fwd_and_bwd(function, (0, 1), has_aux=True)
    for scale in range(3):
        y, residuals, aux = fwd(scale * X, W)
        dx, dw = bwd(residuals, y)
        np.testing.assert_allclose(np.asarray(dx), np.asarray(y) @ W.T, 1e-6)
        np.testing.assert_allclose(np.asarray(dw), scale * X.T @ np.asarray(y), 1e-6)
        np.testing.assert_array_equal(np.asarray(aux["aux"]), scale * X)
    assert len(traces) == 1 and bwd._cache_size() == 1


def test_forward_and_backward_errors():
    with pytest.raises(TypeError, match="Expected a callable value"):
        xtrace.fwd_and_bwd(3, 0)
    with pytest.raises(ValueError, match="argnums=5 requires at least 6 positional"):
        xtrace.fwd_and_bwd(product(xtrace), 5)[0](X, W)
    assert xtrace.jacobian.__name__ == "jacobian" and xtrace.jacobian.__doc__ == xtrace.jacrev.__doc__


# vmap(sum_match=True)


@pytest.mark.parametrize("dtype", ["float32", "int8", "uint8", "bool", "int32", "bfloat16", "complex64"])
def test_results_that_match_none_are_summed(dtype):
    x = np.asarray(ours(np.arange(6).reshape(3, 2)).astype(dtype))
    results = []
    for package, convert in ((xtrace, ours), (jax, theirs)):
        mapped = package.vmap(lambda x: (x, x), out_axes=(None, 0), sum_match=True)
        results.append(mapped(convert(x)))
    assert_same(*results)
    # What does not depend on the axis is no sum.
    assert xtrace.vmap(lambda x: 3.0, out_axes=None, sum_match=True)(X) == 3.0


def test_results_that_depend_on_the_axis_are_refused_without():
    with pytest.raises(ValueError, match="mapped output but out_axes is None"):
        xtrace.vmap(lambda x: x, out_axes=None)(X)
    for package in (xtrace, jax):
        place = r"at vmap out_axes\['a'\]\[1\], got axis spec None but output was batched on axis 0"
        with pytest.raises(ValueError, match=place):
            package.vmap(lambda x: {"a": [1.0, x]}, out_axes=None)(X)


# Settings, devices, types


def test_disable_jit_takes_its_argument_by_name():
    with xtrace.disable_jit():
        assert xtrace.config.jax_disable_jit
        with xtrace.disable_jit(disable=False):
            assert not xtrace.config.jax_disable_jit


def test_processes():
    assert xtrace.process_indices() == xtrace.host_ids() == jax.process_indices()
    assert (xtrace.host_id(), xtrace.host_count()) == (jax.process_index(), jax.process_count())


def test_float0_is_the_dtype_of_tangents_of_integers():
    assert xtrace.float0 == jax.float0
    assert xtrace.grad(lambda n: 1.0 * n, allow_int=True)(2).dtype == xtrace.float0


def test_what_annotations_name():
    for value in (xtrace.numpy.ones(3), X, np.float32(1), True, 1, 1.0, 1j):
        assert isinstance(value, xtrace.typing.ArrayLike)
    assert not isinstance([1], xtrace.typing.ArrayLike)
    assert isinstance(xtrace.jit(lambda x: x), xtrace.stages.Wrapped)
    assert not isinstance(lambda x: x, xtrace.stages.Wrapped)


ERRORS = [name for name in xtrace.errors.__all__ if name not in {"JaxRuntimeError", *OWN}]


@pytest.mark.parametrize("name", ERRORS)
def test_errors_descend_as_jaxs_do(name):
    mine, other = getattr(xtrace.errors, name), getattr(jax.errors, name)
    builtin = (TypeError, IndexError, ValueError, RuntimeError)
    named = [n for n in ERRORS if issubclass(other, getattr(jax.errors, n))]
    assert [issubclass(mine, e) for e in builtin] == [issubclass(other, e) for e in builtin]
    assert all(issubclass(mine, getattr(xtrace.errors, n)) for n in named)


# core and extend.core


def both_jaxprs():
    function = lambda p: lambda x: p.jit(lambda y: p.lax.sin(y) * 2)(x) + 1  # noqa: E731
    return [p.make_jaxpr(function(p))(np.float32(3)) for p in (xtrace, jax)]


def test_jaxprs_run_as_functions():
    mine, other = both_jaxprs()
    core, theirs_core = xtrace.extend.core, jax.extend.core
    assert_same(core.jaxpr_as_fun(mine)(2.0), theirs_core.jaxpr_as_fun(other)(2.0))
    expected = jax.core.eval_jaxpr(other.jaxpr, other.consts, 2.0)
    assert_same(xtrace.core.eval_jaxpr(mine.jaxpr, mine.consts, 2.0), expected)
    assert len(list(core.subjaxprs(mine.jaxpr))) == len(list(theirs_core.subjaxprs(other.jaxpr))) == 1
    assert list(core.jaxprs_in_params(mine.eqns[0].params)) == list(core.subjaxprs(mine.jaxpr))
    core.check_jaxpr(mine.jaxpr)
    again = xtrace.make_jaxpr(
        lambda x: xtrace.core.eval_jaxpr(mine.jaxpr, mine.consts, x, propagate_source_info=False)
    )(2.0)
    assert str(again) == str(mine) and again.eqns[0].source is None and mine.eqns[0].source is not None


def test_jaxprs_can_be_made():
    core, primitives = xtrace.extend.core, xtrace.extend.core.primitives
    x, y = map(core.gensym(), [xtrace.core.ShapedArray((3,), np.dtype("float32"))] * 2)
    equation = core.new_jaxpr_eqn([x], [y], primitives.sin_p, {"accuracy": None}, core.no_effects)
    jaxpr = core.Jaxpr([], [x], [y], [equation])
    core.check_jaxpr(jaxpr)
    values = np.arange(3, dtype=np.float32)
    assert_same(core.jaxpr_as_fun(core.ClosedJaxpr(jaxpr, []))(values), [jax.lax.sin(values)])
    with pytest.raises(TypeError, match=r"sin has the parameters \(accuracy\); got \(\)"):
        core.new_jaxpr_eqn([x], [y], primitives.sin_p, {}, core.no_effects)


def test_types_of_mapped_values():
    mine, other = xtrace.extend.core, jax.extend.core
    for axis in (0, 1, None):
        shapes = []
        for core, package in ((mine, xtrace), (other, jax)):
            aval = package.core.ShapedArray((3, 4), np.dtype("float32"))
            size = 1 if axis is None else aval.shape[axis]
            shapes.append((core.mapped_aval(size, axis, aval).shape, core.unmapped_aval(5, axis, aval).shape))
        assert shapes[0] == shapes[1]
    with pytest.raises(ValueError, match=r"axis 0 of f32\[3\] has size 3, not 4"):
        mine.mapped_aval(4, 0, xtrace.core.ShapedArray((3,), np.dtype("float32")))
    for dtype in (np.int32, np.float32, np.bool_):
        found = mine.primal_dtype_to_tangent_dtype(np.dtype(dtype))
        assert found == other.primal_dtype_to_tangent_dtype(np.dtype(dtype))
    for value in (1.0, X, "text", None, np.array(["a"])):
        assert mine.valid_jaxtype(value) == other.valid_jaxtype(value)


def test_what_is_around():
    found = {}
    for package in (xtrace, jax):
        core, seen = package.extend.core, found.setdefault(package.__name__, [])

        def note(x, core=core, seen=seen):
            seen.append(
                (core.unsafe_am_i_under_a_jit_DO_NOT_USE(), core.unsafe_am_i_under_a_vmap_DO_NOT_USE(),
                 core.unsafe_get_axis_names_DO_NOT_USE(), core.nonempty_axis_env_DO_NOT_USE())
            )
            return x

        note(X)
        package.vmap(note, axis_name="i")(X)
        package.vmap(package.vmap(note, axis_name="j"), axis_name="i")(X)
        package.jit(package.vmap(note, axis_name="k"))(X)
        package.make_jaxpr(note)(X)
        package.grad(lambda x, note=note: note(x))(1.0)
    assert found["xtrace"] == found["jax"]


def test_small_functions_of_core():
    assert (xtrace.core.max_dim(2, 3), xtrace.core.min_dim(2, 3)) == (3, 2)
    token = xtrace.typeof(lax.create_token())
    assert isinstance(token, xtrace.core.AbstractValue) and isinstance(token, xtrace.extend.core.AbstractToken)

    @xtrace.jit
    def function(x):
        assert isinstance(x, xtrace.core.Tracer)
        with xtrace.core.eval_context():
            known = int(lax.add(1, 2))
        return x + known

    assert function(1) == 4


PRIMITIVES = xtrace.extend.core.primitives.__all__


def test_primitives_have_the_names_they_have_in_jaxprs():
    mine, other = xtrace.extend.core.primitives, jax.extend.core.primitives
    assert len(PRIMITIVES) > 150
    for name in PRIMITIVES:
        assert isinstance(getattr(mine, name), Primitive), name
    other_release = NEWER["xtrace.extend.core.primitives"] if IS_REFERENCE else {"call_p", "closed_call_p"}
    shared = set(PRIMITIVES) - other_release - OWN_OPERATIONS["xtrace.extend.core.primitives"]
    different = {n for n in shared if getattr(mine, n).name != getattr(other, n).name}
    assert different == set()
