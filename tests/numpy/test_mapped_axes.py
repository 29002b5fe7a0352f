"""Reductions over mapped axes by name, beside axes of the array."""

import numpy as np
import pytest

import xtrace
from xtrace import lax, nn
from xtrace import numpy as jnp

VALUES = np.linspace(-1.0, 2.5, 24, dtype=np.float32).reshape(3, 2, 4)
MASK = VALUES > -0.5
# Sums of 24 elements of about 1.
TOLERANCE = 24 * np.finfo(np.float32).eps

REDUCTIONS = {
    **{name: getattr(jnp, name) for name in (
        "sum", "mean", "max", "min", "amax", "amin", "var", "std", "ptp", "count_nonzero", "nansum", "nanmean",
        "nanvar", "nanstd",
    )},
    "logsumexp": nn.logsumexp,
    "logmeanexp": nn.logmeanexp,
    "method": lambda x, **options: x.mean(**options),
    "ddof": lambda x, **options: jnp.var(x, ddof=2, **options),
    "initial": lambda x, **options: jnp.max(x, initial=1.0, **options),
}
MASKED = {
    "sum": jnp.sum, "mean": jnp.mean, "var": jnp.var, "nanmean": jnp.nanmean, "logsumexp": nn.logsumexp,
    "logmeanexp": nn.logmeanexp, "max": lambda x, **options: jnp.max(x, initial=-3.0, **options),
}
# The axis inside of vmap, and the same axes of the whole array.
AXES = [("i", (0,)), (("i",), (0,)), (["i"], (0,)), (("i", 0), (0, 1)), ((-1, "i"), (0, 2)), ((0, "i", 1), (0, 1, 2))]


def _reduce_whole(function, axes, mask=None):
    """Reduce the whole array and give each index of the mapped axis the result."""
    options = {} if mask is None else {"where": mask}
    whole = function(jnp.array(VALUES), axis=axes, keepdims=True, **options)
    kept = jnp.squeeze(whole, tuple(i for i in axes if i))
    return np.broadcast_to(kept, (3, *kept.shape[1:]))


@pytest.mark.parametrize(("axis", "axes"), AXES)
@pytest.mark.parametrize("name", REDUCTIONS)
def test_elements_along_mapped_axes_are_reduced(name, axis, axes):
    mapped = xtrace.vmap(lambda x: REDUCTIONS[name](x, axis=axis), axis_name="i")(VALUES)
    np.testing.assert_allclose(mapped, _reduce_whole(REDUCTIONS[name], axes), TOLERANCE, TOLERANCE)


@pytest.mark.parametrize(("axis", "axes"), AXES)
@pytest.mark.parametrize("name", MASKED)
def test_masks_leave_elements_along_mapped_axes_out(name, axis, axes):
    def reduce(x, mask):
        return MASKED[name](x, axis=axis, where=mask)

    mapped = xtrace.vmap(reduce, axis_name="i")(VALUES, MASK)
    np.testing.assert_allclose(mapped, _reduce_whole(MASKED[name], axes, MASK), TOLERANCE, TOLERANCE)


@pytest.mark.parametrize(("axis", "axes"), AXES)
@pytest.mark.parametrize("function", [nn.softmax, nn.log_softmax, nn.standardize])
def test_normalization_over_mapped_axes_keeps_the_shape(function, axis, axes):
    mapped = xtrace.vmap(lambda x: function(x, axis=axis), axis_name="i")(VALUES)
    np.testing.assert_allclose(mapped, function(jnp.array(VALUES), axis=axes), 4 * TOLERANCE, 4 * TOLERANCE)


def test_keepdims_keeps_axes_of_the_array_only():
    kept = xtrace.vmap(lambda x: jnp.sum(x, axis=("i", 1), keepdims=True), axis_name="i")(VALUES)
    assert kept.shape == (3, 2, 1)


def test_one_function_is_mapped_over_axes_of_several_sizes():
    mean = xtrace.jit(xtrace.vmap(lambda x: jnp.mean(x, axis="i"), axis_name="i"))
    for size in (2, 5):
        np.testing.assert_array_equal(mean(np.arange(size, dtype=np.float32)), [(size - 1) / 2] * size)


@pytest.mark.parametrize("name", ["mean", "var", "max", "logsumexp"])
def test_derivatives_pass_through_mapped_axes(name):
    def along_mapped(x):
        return xtrace.vmap(lambda y: REDUCTIONS[name](y, axis=("i", 0)), axis_name="i")(x)[0].sum()

    def along_own(x):
        return REDUCTIONS[name](x, axis=(0, 1)).sum()

    np.testing.assert_allclose(xtrace.grad(along_mapped)(VALUES), xtrace.grad(along_own)(VALUES), TOLERANCE, TOLERANCE)


def test_unmapped_operands_count_once_for_each_index():
    total = xtrace.vmap(lambda x: jnp.sum(2.0, axis="i") + 0 * x, axis_name="i")(VALUES[:, 0, 0])
    np.testing.assert_array_equal(total, [6.0] * 3)


@pytest.mark.parametrize("name", ["prod", "any", "all", "nanmax"])
def test_reductions_without_a_collective_say_to_gather(name):
    with pytest.raises(NotImplementedError, match=f"{name}: no reduction over mapped axes.*lax.all_gather"):
        xtrace.vmap(lambda x: getattr(jnp, name)(x, axis=("i", 0)), axis_name="i")(VALUES)
    whole = xtrace.vmap(lambda x: getattr(jnp, name)(lax.all_gather(x, "i"), axis=0), axis_name="i")(VALUES)
    np.testing.assert_allclose(whole[1], getattr(np, name)(VALUES, axis=0), TOLERANCE)


@pytest.mark.parametrize("name", ["sum", "mean", "max", "var", "count_nonzero"])
def test_unknown_names_are_errors_that_list_the_mapped_axes(name):
    with pytest.raises(NameError, match=r"unbound axis name: rows. Mapped axes in scope: none"):
        getattr(jnp, name)(VALUES, axis="rows")
    with pytest.raises(NameError, match=r"unbound axis name: j. Mapped axes in scope: 'i'"):
        xtrace.vmap(lambda x: getattr(jnp, name)(x, axis=("j", 0)), axis_name="i")(VALUES)


def test_a_mapped_axis_named_twice_is_an_error():
    with pytest.raises(ValueError, match="names 'i' twice"):
        xtrace.vmap(lambda x: jnp.sum(x, axis=("i", "i")), axis_name="i")(VALUES)
