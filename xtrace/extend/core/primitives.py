"""The primitives under their names in jax, for programs that walk jaxprs (``jax.extend.core.primitives``)."""

from xtrace import lax as _lax
from xtrace._src.algebra.families import add_any as add_jaxvals_p
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.ops.arrays.creation import empty2_p
from xtrace._src.ops.calls.call_primitives import call_p, closed_call_p
from xtrace._src.ops.calls.calls import jit_call as jit_p
from xtrace._src.ops.custom_rules.custom_vjp import custom_lin as custom_lin_p
from xtrace._src.ops.random.keys import random_bits as random_bits_p
from xtrace._src.ops.random.keys import random_fold_in as random_fold_in_p
from xtrace._src.ops.random.keys import random_seed as random_seed_p
from xtrace._src.ops.random.keys import random_split as random_split_p
from xtrace._src.ops.random.threefry import threefry2x32 as threefry2x32_p
from xtrace._src.ops.references.operations import get_p, swap_p
from xtrace._src.ops.remat.checkpoint_name import checkpoint_name as name_p
from xtrace._src.ops.remat.rematerialization import remat_call as remat_p
from xtrace.custom_derivatives import custom_jvp_call_p, custom_vjp_call_p
from xtrace.random.gamma_family import random_gamma_p

_without = (
    "cholesky_update_p", "dce_sink_p", "geqp3_p", "geqrf_p", "lu_pivots_to_permutation_p", "mulhi_p",
    "optimization_barrier_p", "ormqr_p", "platform_index_p", "reduce_scatter_p", "scatter_sub_p", "split_p", "stack_p",
    "stage_p", "symmetric_product_p", "tile_p", "unstack_p",
)
for _module in (_lax, _lax.linalg):
    globals().update({n: getattr(_module, n) for n in _module.__all__ if n.endswith("_p") and n not in _without})

__all__ = _make_public(globals())
