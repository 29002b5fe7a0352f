"""Optimizers as triples of functions (``jax.example_libraries.optimizers``).

An optimizer is ``(init_fn, update_fn, params_fn)``: ``init_fn(params)`` returns its state, ``update_fn(step, grads,
state)`` the next state, and ``params_fn(state)`` the parameters in a state. Parameters are pytrees of arrays.
"""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.example_libraries.optimizers.descent import *
from xtrace.example_libraries.optimizers.norms import *
from xtrace.example_libraries.optimizers.schedules import *
from xtrace.example_libraries.optimizers.states import *

_make_public(globals())
