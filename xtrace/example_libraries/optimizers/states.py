"""Optimizers of arrays extended to pytrees of arrays, and their states."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import pytree
from xtrace.tree_util import register_pytree_node

__all__ = ["JoinPoint", "Optimizer", "OptimizerState", "optimizer", "pack_optimizer_state", "unpack_optimizer_state"]


class Optimizer(NamedTuple):
    """The three functions of an optimizer.

    Attributes:
        init_fn: ``init_fn(params)`` returns the first state.
        update_fn: ``update_fn(step, grads, state)`` returns the next state.
        params_fn: ``params_fn(state)`` returns the parameters.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> init_fn, update_fn, params_fn = optimizers.sgd(0.5)
        >>> params_fn(update_fn(0, jnp.ones(2), init_fn(jnp.zeros(2))))
        Array([-0.5, -0.5], dtype=float32)
    """

    init_fn: Callable[..., Any]
    update_fn: Callable[..., Any]
    params_fn: Callable[..., Any]


class OptimizerState(NamedTuple):
    """The state of an optimizer: the leaves of the state of each parameter, and the trees of these leaves.

    It is a pytree of the arrays in packed_state.

    Attributes:
        packed_state: for each leaf of the parameters, the leaves of its state.
        tree_def: the tree of the parameters.
        subtree_defs: for each leaf of the parameters, the tree of its state.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> optimizers.momentum(0.1, 0.9).init_fn({"w": jnp.ones(1)}).packed_state
        ([Array([1.], dtype=float32), Array([0.], dtype=float32)],)
    """

    packed_state: Any
    tree_def: Any
    subtree_defs: Any


register_pytree_node(
    OptimizerState,
    lambda state: ((state.packed_state,), (state.tree_def, state.subtree_defs)),
    lambda trees, children: OptimizerState(*children, *trees),
)


class JoinPoint:
    """A leaf of a pytree that holds another pytree, the state of one parameter.

    Args:
        subtree: the pytree inside.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> list(optimizers.JoinPoint({"a": 1}))
        [{'a': 1}]
    """

    def __init__(self, subtree: Any) -> None:
        self.subtree = subtree

    def __iter__(self) -> Iterator[Any]:
        # Some libraries that store trees iterate over leaves.
        yield self.subtree


def _check_state(state: object, *, function: str = "") -> OptimizerState:
    if not isinstance(state, OptimizerState):
        raise TypeError(
            f"{function or called_function()}: the state must be an OptimizerState, the result of init_fn, got "
            f"{abbreviate(state)}"
        )
    return state


def _unflatten_states(state: OptimizerState) -> list[Any]:
    """Return the state of each parameter as a tree."""
    return [tree.unflatten(leaves) for tree, leaves in zip(state.subtree_defs, state.packed_state, strict=True)]


def _pack_states(states: list[Any], tree: Any) -> OptimizerState:
    flat = [pytree.tree_flatten(state) for state in states]
    return OptimizerState(tuple(leaves for leaves, _ in flat), tree, tuple(treedef for _, treedef in flat))


def optimizer(opt_maker: Callable[..., Any]) -> Callable[..., Optimizer]:
    """Decorate a maker of optimizers of arrays: it makes optimizers of pytrees of arrays.

    Args:
        opt_maker: a function that returns ``init(x)``, ``update(step, gradient, state)`` and ``get_params(state)``,
            with arrays as x and gradient, and a pytree as state.

    Returns:
        A function with the same parameters, which returns an `Optimizer` with states of class `OptimizerState`.

    Raises:
        TypeError: opt_maker cannot be called; or, in an update, the trees of gradients and parameters differ.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> @optimizers.optimizer
        ... def signs(step_size):
        ...     return (lambda x: x), (lambda i, g, x: x - step_size * jnp.sign(g)), (lambda x: x)
        >>> opt = signs(0.5)
        >>> opt.params_fn(opt.update_fn(0, [3.0, -2.0], opt.init_fn([1.0, 1.0])))
        [Array(0.5, dtype=float32, weak_type=True), Array(1.5, dtype=float32, weak_type=True)]
    """
    check_callable(opt_maker)

    @functools.wraps(opt_maker)
    def make_optimizer(*args: Any, **kwargs: Any) -> Optimizer:
        init, update, get_params = opt_maker(*args, **kwargs)

        @boundary
        def init_fn(params: Any) -> OptimizerState:
            leaves, tree = pytree.tree_flatten(params)
            return _pack_states([init(x) for x in leaves], tree)

        @boundary
        def update_fn(step: Any, grads: Any, opt_state: Any) -> OptimizerState:
            state = _check_state(opt_state, function="update_fn")
            leaves, tree = pytree.tree_flatten(grads)
            if tree != state.tree_def:
                raise TypeError(
                    "optimizer update function was passed a gradient tree that did not match the parameter tree: "
                    f"the parameters are {state.tree_def}, and the gradients {tree}"
                )
            states = _unflatten_states(state)
            new = _pack_states([update(step, g, s) for g, s in zip(leaves, states, strict=True)], tree)
            for before, after in zip(state.subtree_defs, new.subtree_defs, strict=True):
                if before != after:
                    raise TypeError(
                        "optimizer update function produced an output structure that did not match its input "
                        f"structure: the state was {before}, and the update returned {after}"
                    )
            return new

        @boundary
        def params_fn(opt_state: Any) -> Any:
            state = _check_state(opt_state, function="params_fn")
            return state.tree_def.unflatten([get_params(s) for s in _unflatten_states(state)])

        return Optimizer(init_fn, update_fn, params_fn)

    return make_optimizer


def unpack_optimizer_state(opt_state: Any) -> Any:
    """Convert the state of an optimizer to a pytree like the parameters, with a `JoinPoint` for each.

    Args:
        opt_state: an `OptimizerState`.

    Returns:
        A pytree with the state of each parameter in a leaf; `pack_optimizer_state` is the inverse.

    Raises:
        TypeError: opt_state is not an OptimizerState.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> state = optimizers.momentum(0.1, 0.9).init_fn({"w": jnp.ones(1)})
        >>> optimizers.unpack_optimizer_state(state)["w"].subtree
        (Array([1.], dtype=float32), Array([0.], dtype=float32))
    """
    state = _check_state(opt_state)
    return state.tree_def.unflatten([JoinPoint(s) for s in _unflatten_states(state)])


def pack_optimizer_state(marked_pytree: Any) -> OptimizerState:
    """Convert a pytree with a `JoinPoint` for each parameter to the state of an optimizer.

    Args:
        marked_pytree: a result of `unpack_optimizer_state`.

    Returns:
        An `OptimizerState`.

    Raises:
        TypeError: a leaf is not a JoinPoint.

    Example:
        >>> from xtrace.example_libraries import optimizers
        >>> state = optimizers.pack_optimizer_state([optimizers.JoinPoint((1.0, 2.0))])
        >>> state.packed_state
        ([1.0, 2.0],)
    """
    leaves, tree = pytree.tree_flatten(marked_pytree)
    for leaf in leaves:
        if not isinstance(leaf, JoinPoint):
            raise TypeError(f"pack_optimizer_state: every leaf must be a JoinPoint, got {abbreviate(leaf)}")
    return _pack_states([leaf.subtree for leaf in leaves], tree)
