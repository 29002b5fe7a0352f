"""The strict layer: operations that neither promote nor default, as ``jax.lax`` has them."""
# ruff: noqa: I001

from xtrace._src.core.late import make_public as _make_public
from xtrace._src.core.primitive import primitive_aliases as _primitive_aliases
from xtrace._src.algebra.families import AccuracyMode, Tolerance
from xtrace._src.algebra.vector_space import *
from xtrace._src.ops.approx_top_k import *
from xtrace._src.ops.approx_top_k import approx_top_k as approx_top_k_p
from xtrace._src.ops.collectives import *
from xtrace._src.ops.exchanges import *
from xtrace._src.ops.ragged_exchanges import *
from xtrace.lax import linalg as linalg
from xtrace._src.ops.composites import *
from xtrace._src.ops.contractions.contraction import *
from xtrace._src.ops.control_flow.cond import *
from xtrace._src.ops.control_flow.mapping import *
from xtrace._src.ops.control_flow.scan import *
from xtrace._src.ops.control_flow.while_loop import *
from xtrace._src.ops.contractions.convolution import *
from xtrace._src.ops.contractions.convolution_shapes import *
from xtrace._src.ops.elementwise import *
from xtrace._src.ops.comparisons import *
from xtrace._src.ops.complex_numbers import *
from xtrace._src.ops.selection import *
from xtrace._src.ops.reinterpretation import *
from xtrace._src.ops.comparisons import eq_to as eq_to_p
from xtrace._src.ops.comparisons import le_to as le_to_p
from xtrace._src.ops.comparisons import lt_to as lt_to_p
from xtrace._src.ops.fft import *
from xtrace._src.ops.arrays.gathering import *
from xtrace._src.ops.arrays.index_vectors import *
from xtrace._src.ops.device_put import *
from xtrace._src.ops.contractions.ragged import *
from xtrace._src.ops.random.random_bits import *
from xtrace._src.ops.reductions import *
from xtrace._src.ops.sharding_constraints import *
from xtrace._src.ops.arrays.shape import *
from xtrace._src.ops.arrays.creation import *
from xtrace._src.ops.arrays.concatenation import *
from xtrace._src.ops.arrays.shape import copy as copy_p
from xtrace._src.ops.arrays.slicing import *
from xtrace._src.ops.arrays.dynamic_slicing import *
from xtrace._src.ops.solvers import *
from xtrace._src.ops.solvers import linear_solve as linear_solve_p
from xtrace._src.ops.arrays.sorting import *
from xtrace._src.ops.stop_gradient import *
from xtrace._src.ops.stop_gradient import stop_gradient_of_one as stop_gradient_p
from xtrace._src.ops.host.tokens import *
from xtrace._src.ops.polynomials import *
from xtrace._src.ops.values import *
from xtrace._src.ops.windows import *
from xtrace._src.ops.windows import reduce_window_max as reduce_window_max_p
from xtrace._src.ops.windows import reduce_window_min as reduce_window_min_p
from xtrace._src.ops.windows import reduce_window_sum as reduce_window_sum_p
from xtrace._src.ops.windows import select_and_gather_add as select_and_gather_add_p
from xtrace._src.ops.windows import select_and_scatter as select_and_scatter_p
from xtrace._src.ops.windows import select_and_scatter_add as select_and_scatter_add_p
from xtrace._src.ops.special import *

# The primitives under the names that programs which walk jaxprs use: most public operations are primitives themselves.
_without = ("custom_linear_solve", "empty", "ragged_dot_general", "random_gamma_grad", "scaled_dot")
globals().update(_primitive_aliases(globals(), _without))

__all__ = _make_public(globals(), submodules=("linalg",))
