"""Optimizers as triples of functions (``jax.example_libraries.optimizers``).

An optimizer is ``(init_fn, update_fn, params_fn)``: ``init_fn(params)`` returns its state, ``update_fn(step, grads,
state)`` the next state, and ``params_fn(state)`` the parameters in a state. Parameters are pytrees of arrays.
"""
# ruff: noqa: I001

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.example_libraries.optimizers.descent import (
    adagrad, adam, adamax, momentum, nesterov, rmsprop, rmsprop_momentum, sgd, sm3,
)
from xtrace.example_libraries.optimizers.norms import clip_grads, l2_norm
from xtrace.example_libraries.optimizers.schedules import (
    constant, exponential_decay, inverse_time_decay, make_schedule, piecewise_constant, polynomial_decay,
)
from xtrace.example_libraries.optimizers.states import (
    JoinPoint, Optimizer, OptimizerState, optimizer, pack_optimizer_state, unpack_optimizer_state,
)

__all__ = [
    "JoinPoint", "Optimizer", "OptimizerState", "adagrad", "adam", "adamax", "clip_grads", "constant",
    "exponential_decay", "inverse_time_decay", "l2_norm", "make_schedule", "momentum", "nesterov", "optimizer",
    "pack_optimizer_state", "piecewise_constant", "polynomial_decay", "rmsprop", "rmsprop_momentum", "sgd", "sm3",
    "unpack_optimizer_state",
]

_make_public(globals(), __all__)
