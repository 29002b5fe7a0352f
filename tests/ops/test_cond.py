"""`cond`, `switch` and `platform_dependent`: choice, printing, programs that are found again, and errors."""

import re

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as xnp
from xtrace import lax
from xtrace._src.ops.control_flow.cond import cond_p

X = np.array([0.5, -1.0, 2.0], np.float32)


def text_of(maker, function, *args):
    """The jaxpr's text in the way both packages print it, with the types of literals left out."""
    text = str(maker(function)(*args))
    return re.sub(r"(-?[\d.]+):\w+\[\]", r"\1", text).replace(" out_sharding=None", "")


@pytest.mark.parametrize("pred", [True, False, np.True_, 0, 3, 0.0, -1.5, np.uint8(0), np.float16(1)])
def test_predicates(pred):
    for f in (lambda p: lax.cond(p, lambda: 1.0, lambda: 2.0), xtrace.jit(lambda p: lax.cond(p, lambda: 1, lambda: 2))):
        assert f(pred) == (1 if pred else 2)
        assert f(xnp.asarray(pred)) == (1 if pred else 2)


@pytest.mark.parametrize("index", [-5, -1, 0, 1, 2, 3, 99, np.uint8(200), np.int64(-(2**40)), 2**40])
def test_indices_outside_count_as_the_nearest(index):
    branches = [lambda x: x, lambda x: x * 2, lambda x: x * 3]
    expected = X * (1 + min(max(int(index), 0), 2))
    np.testing.assert_array_equal(lax.switch(index, branches, X), expected)
    if abs(int(index)) < 2**31:
        np.testing.assert_array_equal(xtrace.jit(lambda i: lax.switch(i, branches, X))(index), expected)


def test_forms_of_the_call():
    assert lax.cond(True, lambda x: x + 1, lambda x: x, operand=2) == 3
    assert lax.cond(False, lambda x: 1, lambda x: 2, operand=None) == 2
    assert lax.cond(True, 3.0, lambda x: x * 2, 5.0, lambda x: x) == 6
    assert lax.cond(False, 3.0, lambda x: x * 2, 5.0, lambda x: x) == 5
    assert lax.switch(7, [lambda x: x + 1], 2) == 3
    found = lax.cond(True, lambda d: {"c": d["a"], "d": (d["b"], None)}, lambda d: {"c": 0, "d": (0.0, None)},
                     {"a": 1, "b": 2.0})
    assert found["c"] == 1 and found["d"][0] == 2.0 and found["d"][1] is None
    with xtrace.disable_jit():
        assert lax.cond(True, lambda: 1, lambda: "a") == 1
        assert lax.switch(5, [lambda: 1, lambda: "a"]) == "a"


def test_results_that_are_weak_in_all_branches_stay_weak():
    assert lax.cond(True, lambda: 1.0, lambda: 2.0).weak_type
    assert not lax.cond(True, lambda: 1.0, lambda: np.float32(2.0)).weak_type
    assert not lax.cond(True, lambda x: x, lambda x: np.float32(2.0), 3.0).weak_type


@pytest.mark.parametrize("branches", [(0, 1), (1, 0), (0, 0, 1), (1, 1, 0), (1, 1)])
@pytest.mark.parametrize("axes", [(0, 0), (0, None), (None, 0)])
def test_results_that_are_weak_in_some_branches(branches, axes):
    """The first branch decides; `vmap` over the index selects among all results."""
    operands = [np.int32([0, 1, 2]) if axes[0] == 0 else np.int32(1), X if axes[1] == 0 else X[0]]

    def call(lib):
        of_kind = [lambda x: x * 2, lambda x: 1.0]
        mapped = lib.vmap(lambda i, x: lib.lax.switch(i, [of_kind[b] for b in branches], x), axes)
        found = [mapped(*operands), *lib.vmap(lib.value_and_grad(
            lambda x, i: lib.lax.switch(i, [of_kind[b] for b in branches], x)), axes[::-1])(*operands[::-1])]
        return [(x.tolist(), x.weak_type) for x in found], text_of(lib.make_jaxpr, mapped, *operands).split()

    assert call(xtrace) == call(jax)


@pytest.mark.parametrize(
    "function",
    [
        lambda api, p, x: api.lax.cond(p, lambda x: api.lax.sin(x), lambda x: x * 2, x),
        lambda api, p, x: api.lax.cond(p, lambda: api.lax.sin(x), lambda: x * 2),
        lambda api, p, x: api.lax.cond(True, lambda: api.lax.sin(x), lambda: x * 2),
        lambda api, p, x: api.lax.cond(p, lambda: 1.0, lambda: x.max()),
        lambda api, p, x: api.lax.switch(p.astype("int32"), [api.lax.sin, api.lax.cos, lambda x: x], x),
        lambda api, p, x: api.lax.platform_dependent(x, cpu=api.lax.sin, tpu=api.lax.cos, default=lambda x: x),
        lambda api, p, x: api.jvp(
            lambda x: api.lax.cond(p, lambda x: api.lax.sin(api.lax.sin(x)), lambda x: x * 3, x), (x,), (x,)
        ),
        lambda api, p, x: api.vmap(lambda x: api.lax.cond(p, lambda x: (api.lax.sin(x), 1.0), lambda x: (x, 2.0), x))(
            x
        ),
    ],
)
def test_jaxprs_read_as_those_of_jax(function):
    got = text_of(xtrace.make_jaxpr, lambda p, x: function(xtrace, p, x), np.True_, X)
    assert got == text_of(jax.make_jaxpr, lambda p, x: function(jax, p, x), np.True_, X)


def test_only_the_chosen_branch_is_computed():
    text = xtrace.lower(lambda p, x: lax.cond(p, lax.sin, lax.cos, x), True, X).as_text()
    assert text.count("stablehlo.case") == 1
    assert "select" not in text
    # A platform's function is known when the program is written.
    text = xtrace.lower(lambda x: lax.platform_dependent(x, cpu=lax.sin, tpu=lax.cos), X).as_text()
    assert "case" not in text and "sine" in text and "cosine" not in text


def test_residuals_of_one_type_share_their_place():
    def f(p, x):
        return lax.cond(p, lambda x: lax.sin(lax.sin(x)), lambda x: lax.exp(lax.exp(x)) * x, x).sum()

    jaxpr = xtrace.make_jaxpr(xtrace.grad(f, 1))(True, X)
    forward, backward = [e for e in jaxpr.eqns if e.primitive is cond_p]
    # The result, and the two arrays that each branch needs besides its operand.
    assert len(forward.outvars) == 3
    assert len(backward.outvars) == 1


def test_programs_are_found_again():
    def f(x):
        return lax.cond(x > 0, lambda x: lax.sin(x) * x, lambda x: x * 2, x)

    gradient = xtrace.grad(f)
    mapped = xtrace.vmap(lambda p, x: lax.cond(p, lambda x: lax.sin(x), lambda x: x, x), (None, 0))
    for _ in range(2):
        gradient(xnp.float32(1.5))
        mapped(True, xnp.ones(3))
        f(xnp.float32(2.0))
    before = len(cond_p.programs)
    for value in (0.25, -1.0, 3.0):
        gradient(xnp.float32(value))
        mapped(False, xnp.ones(3))
        f(xnp.float32(value))
    assert len(cond_p.programs) == before


def test_a_branch_that_is_not_taken_does_not_spoil_gradients():
    mapped = xtrace.vmap(lambda p, x: lax.cond(p, lambda x: lax.log(x), lambda x: x, x))
    found = xtrace.grad(lambda x: mapped(xnp.array([True, False]), x).sum())(xnp.array([2.0, 0.0]))
    np.testing.assert_array_equal(found, np.array([0.5, 1.0], np.float32))


def test_constants_of_branches():
    table, other = np.arange(600, dtype=np.float32), np.arange(3, dtype=np.float32)

    def f(p, x):
        return lax.cond(p, lambda x: x + table[:3] + xnp.asarray(other), lambda x: x * xnp.asarray(table).sum(), x)

    expected = X + table[:3] + other
    np.testing.assert_allclose(f(True, X), expected)
    np.testing.assert_allclose(xtrace.jit(f)(True, X), expected)
    np.testing.assert_allclose(f(False, X), X * table.sum(), rtol=1e-6)


ERRORS = {
    "structure": (
        lambda x: lax.cond(True, lambda x: {"a": x, "b": x}, lambda x: {"a": x}, x),
        TypeError, r"same pytree structure[\s\S]*true_fun is <lambda> at [\s\S]*'b'",
    ),
    "shape at a path": (
        lambda x: lax.cond(True, lambda x: {"a": [x, x]}, lambda x: {"a": [x, x[:2]]}, x),
        TypeError, r"true_fun at path \['a'\]\[1\] has type float32\[3\] .* false_fun has type float32\[2\]",
    ),
    "dtype": (
        lambda x: lax.switch(0, [lambda x: x, lambda x: x, lambda x: x > 0], x),
        TypeError, r"branch 0 has type float32\[3\] .* branch 2 has type bool\[3\], so the dtypes do not match",
    ),
    "leaf against tree": (
        lambda x: lax.cond(True, lambda x: x, lambda x: (x,), x),
        TypeError, "a leaf against tuple of length 1",
    ),
    "predicate with a shape": (lambda x: lax.cond(x, lax.sin, lax.cos, x), TypeError, r"must be a scalar.*\(3,\)"),
    "complex predicate": (lambda x: lax.cond(1j, lax.sin, lax.cos, x), TypeError, "either boolean or number"),
    "text as predicate": (lambda x: lax.cond("yes", lax.sin, lax.cos, x), TypeError, "be a scalar, got 'yes'"),
    "no predicate": (lambda x: lax.cond(None, lax.sin, lax.cos, x), TypeError, "cond predicate is None"),
    "not callable": (lambda x: lax.cond(True, lax.sin, 3, x), TypeError, "must be callable"),
    "both kinds of operand": (lambda x: lax.cond(True, lax.sin, lax.cos, x, operand=x), TypeError, "'operand' keyword"),
    "operand of text": (lambda x: lax.cond(True, lax.sin, lax.cos, "a"), TypeError, r"operands\[0\]: 'a'"),
    "result of text": (lambda x: lax.cond(True, lambda x: "a", lax.cos, x), TypeError, "returned a value of type"),
    "fractional index": (lambda x: lax.switch(1.0, [lax.sin, lax.cos], x), TypeError, "must be an integer.*float32"),
    "boolean index": (lambda x: lax.switch(True, [lax.sin, lax.cos], x), TypeError, "must be an integer.*bool"),
    "index with a shape": (lambda x: lax.switch(np.arange(3), [lax.sin, lax.cos], x), TypeError, "must be scalar"),
    "no branches": (lambda x: lax.switch(0, [], x), ValueError, "Empty branch sequence"),
    "branches not callable": (lambda x: lax.switch(0, [lax.sin, 1], x), TypeError, "sequence of callables"),
    "one branch, no sequence": (lambda x: lax.switch(0, lax.sin, x), TypeError, "sequence of callables"),
    "no platform": (lambda x: lax.platform_dependent(x), TypeError, "give a function"),
    "another platform": (lambda x: lax.platform_dependent(x, tpu=lax.sin), NotImplementedError, "tpu.*for cpu"),
    "gpu": (lambda x: lax.platform_dependent(x, gpu=lax.sin), ValueError, "cuda= or rocm="),
    "platform's value": (lambda x: lax.platform_dependent(x, cpu=3), TypeError, "'cpu' branch must be a callable"),
}


@pytest.mark.parametrize("name", ERRORS)
def test_errors(name):
    function, kind, message = ERRORS[name]
    with pytest.raises(kind, match=message):
        function(xnp.asarray(X))
