"""Optimizers: the states after each step, the schedules and the errors of jax's."""

from __future__ import annotations

import jax
import jax.example_libraries.optimizers as jax_optimizers
import numpy as np
import pytest

import xtrace
from tests.support.operands import assert_same, finite_values, ours, theirs
from xtrace.example_libraries import optimizers

BOTH = ((xtrace, optimizers, ours), (jax, jax_optimizers, theirs))
PARAMETERS = {
    "w": finite_values(np.float32, (2, 3), 0), "b": (finite_values(np.float32, (), 1),),
    "v": finite_values(np.float32, (4,), 2),
}
GRADIENTS = [
    {"w": finite_values(np.float32, (2, 3), 3 + i), "b": (finite_values(np.float32, (), 7 + i),),
     "v": finite_values(np.float32, (4,), 11 + i) * np.array([1, 0, -1, 1e-3], np.float32)}
    for i in range(3)
]


def decay(i):
    return 0.5 / (1.0 + i)


MADE = {
    "sgd": lambda o: o.sgd(0.125), "sgd by a schedule": lambda o: o.sgd(decay),
    "momentum": lambda o: o.momentum(0.1, 0.9), "momentum by a schedule": lambda o: o.momentum(decay, mass=0.3),
    "nesterov": lambda o: o.nesterov(0.1, 0.9), "adagrad": lambda o: o.adagrad(0.1),
    "adagrad, another momentum": lambda o: o.adagrad(decay, momentum=0.5),
    "rmsprop": lambda o: o.rmsprop(0.1), "rmsprop, other constants": lambda o: o.rmsprop(decay, gamma=0.7, eps=1e-3),
    "rmsprop_momentum": lambda o: o.rmsprop_momentum(0.1, momentum=0.8),
    "adam": lambda o: o.adam(1e-2), "adam, other constants": lambda o: o.adam(decay, b1=0.8, b2=0.9, eps=1e-4),
    "adamax": lambda o: o.adamax(1e-2), "adamax, other constants": lambda o: o.adamax(decay, 0.8, 0.9, 1e-4),
    "sm3": lambda o: o.sm3(0.1), "sm3, another momentum": lambda o: o.sm3(decay, momentum=0.5),
}


def leaves_after_steps(package, library, convert, make, jitted):
    opt = make(library)
    update = package.jit(opt.update_fn) if jitted else opt.update_fn
    state = opt.init_fn(convert(PARAMETERS))
    found = [package.tree.leaves(state)]
    for i, gradients in enumerate(GRADIENTS):
        state = update(i, convert(gradients), state)
        assert isinstance(state, library.OptimizerState)
        found.append(package.tree.leaves(state))
    # The sizes in the states of sm3 are Python's.
    arrays = [[np.asarray(x) for x in leaves] for leaves in found]
    return arrays if jitted else [*arrays, opt.params_fn(state)]


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("jitted", [False, True], ids=["eager", "jit"])
@pytest.mark.parametrize("name", MADE)
def test_states_are_those_of_jax(name, jitted):
    mine, other = [leaves_after_steps(*library, MADE[name], jitted) for library in BOTH]
    if not jitted:
        assert_same(mine.pop(), other.pop(), 64, f"{name}, parameters")
    # A step rounds about ten times, relative to terms of the size of the parameters, 4.
    assert_same(mine, other, 30, name, floor=4)


def test_the_size_of_a_scalar_stays_known_under_jit():
    opt = optimizers.sm3(0.1)
    for shape in ((), (2, 2)):
        x = xtrace.numpy.ones(shape)
        state = xtrace.jit(opt.update_fn)(0, x, opt.init_fn(x))
        assert xtrace.jit(opt.params_fn)(state).shape == opt.params_fn(state).shape == shape


SCHEDULES = {
    "constant": lambda o: o.constant(0.1), "exponential_decay": lambda o: o.exponential_decay(0.1, 3, 0.5),
    "inverse_time_decay": lambda o: o.inverse_time_decay(0.1, 3, 0.5),
    "staircase": lambda o: o.inverse_time_decay(0.1, 3, 0.5, staircase=True),
    "polynomial_decay": lambda o: o.polynomial_decay(0.1, 3, 0.02),
    "a square": lambda o: o.polynomial_decay(0.1, 3, 0.02, power=2.0),
    "piecewise_constant": lambda o: o.piecewise_constant([1, 3], [0.1, 0.2, 0.3]),
    "make_schedule": lambda o: o.make_schedule(0.1), "make_schedule of one": lambda o: o.make_schedule(decay),
}


@pytest.mark.parametrize("name", SCHEDULES)
def test_schedules(name):
    mine, other = SCHEDULES[name](optimizers), SCHEDULES[name](jax_optimizers)
    for i in range(5):
        # At most five roundings; a Python number is the same.
        assert_same(xtrace.numpy.asarray(mine(i)), jax.numpy.asarray(other(i)), 8, f"{name}({i})")
        assert isinstance(mine(i), float) == isinstance(other(i), float)
        assert_same(xtrace.jit(mine)(i), jax.jit(other)(i), 8, f"{name}({i}) in jit")


@pytest.mark.parametrize("max_norm", [0.5, 1e3])
def test_norms_and_clipping(max_norm):
    results = []
    for _, library, convert in BOTH:
        tree = convert(PARAMETERS | {"half": np.ones(3, np.float16)})
        results.append([library.l2_norm(tree), library.clip_grads(tree, max_norm), library.l2_norm({})])
    assert_same(*results, 16)


def test_states_go_into_marked_trees_and_back():
    opt = optimizers.adam(0.1)
    state = opt.init_fn(ours(PARAMETERS))
    marked = optimizers.unpack_optimizer_state(state)
    leaves = xtrace.tree.leaves(marked)
    assert xtrace.tree.structure(marked) == xtrace.tree.structure(PARAMETERS)
    assert all(isinstance(leaf, optimizers.JoinPoint) and len(next(iter(leaf))) == 3 for leaf in leaves)
    again = optimizers.pack_optimizer_state(marked)
    assert xtrace.tree.structure(again) == xtrace.tree.structure(state)
    assert all(one is other for one, other in zip(xtrace.tree.leaves(again), xtrace.tree.leaves(state), strict=True))


def test_an_optimizer_of_a_user():
    results = []
    for package, library, convert in BOTH:
        @library.optimizer
        def signs(step_size, package=package):
            """Go by the signs."""
            sign = package.numpy.sign
            return (lambda x: {"x": x}), (lambda i, g, s: {"x": s["x"] - step_size * sign(g)}), (lambda s: s["x"])

        opt = signs(0.5)
        assert isinstance(opt, library.Optimizer) and (signs.__name__, signs.__doc__) == ("signs", "Go by the signs.")
        results.append(opt.params_fn(opt.update_fn(0, convert(GRADIENTS[0]), opt.init_fn(convert(PARAMETERS)))))
    assert_same(*results)


def test_a_loss_falls_in_a_loop():
    opt = optimizers.adam(0.1)
    data = finite_values(np.float32, (20, 3), 5)

    def loss(w):
        return ((data @ w - data @ np.array([1, 2, 3], np.float32)) ** 2).mean()

    @xtrace.jit
    def run(state):
        step = lambda i, state: opt.update_fn(i, xtrace.grad(loss)(opt.params_fn(state)), state)  # noqa: E731
        return xtrace.lax.fori_loop(0, 300, step, state)

    found = opt.params_fn(run(opt.init_fn(xtrace.numpy.zeros(3))))
    assert loss(found) < 1e-3 * loss(np.zeros(3, np.float32))


def test_mistakes():
    opt = optimizers.adam(0.1)
    state = opt.init_fn(ours(PARAMETERS))
    with pytest.raises(TypeError, match="did not match the parameter tree"):
        opt.update_fn(0, {"w": 1.0}, state)
    with pytest.raises(TypeError, match=r"update_fn: the state must be an OptimizerState, .* got \(1, 2, 3\)"):
        opt.update_fn(0, PARAMETERS, (1, 2, 3))
    grows = optimizers.optimizer(lambda: (lambda x: (x,), lambda i, g, s: (s, s), lambda s: s))()
    with pytest.raises(TypeError, match=r"did not match its input structure: the state was PyTreeDef\(\(\*,\)\)"):
        grows.update_fn(0, 1.0, grows.init_fn(1.0))
    with pytest.raises(TypeError, match="every leaf must be a JoinPoint, got 3"):
        optimizers.pack_optimizer_state({"a": 3})
    with pytest.raises(TypeError, match="unpack_optimizer_state: the state must be an OptimizerState"):
        optimizers.unpack_optimizer_state({"a": 3})
    for step_size in ("0.1", np.ones(2), None):
        with pytest.raises(TypeError, match="the step size must be a number or a function of the step"):
            optimizers.sgd(step_size)
    with pytest.raises(ValueError, match="must be one shorter than values length, got 2 and 2"):
        optimizers.piecewise_constant([1, 2], [1, 2])
    with pytest.raises(ValueError, match="must be sequences"):
        optimizers.piecewise_constant(1, [1, 2])
    with pytest.raises(TypeError, match="callable"):
        optimizers.optimizer(3)
