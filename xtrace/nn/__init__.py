"""Functions of neural networks, as ``jax.nn`` has them: activations, softmax and its relatives, attention."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.nn.activations import (
        celu as celu, elu as elu, gelu as gelu, glu as glu, hard_sigmoid as hard_sigmoid, hard_silu as hard_silu,
        hard_swish as hard_swish, hard_tanh as hard_tanh, identity as identity, leaky_relu as leaky_relu,
        log1mexp as log1mexp, log_sigmoid as log_sigmoid, mish as mish, relu as relu, relu6 as relu6, selu as selu,
        sigmoid as sigmoid, silu as silu, soft_sign as soft_sign, softplus as softplus, sparse_plus as sparse_plus,
        sparse_sigmoid as sparse_sigmoid, squareplus as squareplus, swish as swish,
    )
    from xtrace.nn.attention import dot_product_attention as dot_product_attention
    from xtrace.nn.normalization import (
        log_softmax as log_softmax, logmeanexp as logmeanexp, logsumexp as logsumexp, one_hot as one_hot,
        softmax as softmax, standardize as standardize,
    )
    from xtrace.nn.scaling import (
        get_scaled_dot_general_config as get_scaled_dot_general_config, scaled_dot_general as scaled_dot_general,
        scaled_matmul as scaled_matmul,
    )
    from xtrace.numpy.ufuncs import tanh as tanh
    from xtrace.nn import initializers as initializers

_late, __getattr__, __dir__ = _late_names(
    "xtrace.nn",
    {
        "xtrace.nn.activations": (
            "celu", "elu", "gelu", "glu", "hard_sigmoid", "hard_silu", "hard_swish", "hard_tanh", "identity",
            "leaky_relu", "log1mexp", "log_sigmoid", "mish", "relu", "relu6", "selu", "sigmoid", "silu", "soft_sign",
            "softplus", "sparse_plus", "sparse_sigmoid", "squareplus", "swish",
        ),
        "xtrace.nn.attention": ("dot_product_attention",),
        "xtrace.nn.normalization": (
            "log_softmax", "logmeanexp", "logsumexp", "one_hot", "softmax", "standardize",
        ),
        "xtrace.nn.scaling": ("get_scaled_dot_general_config", "scaled_dot_general", "scaled_matmul"),
        "xtrace.numpy.ufuncs": ("tanh",),
    },
    submodules=("initializers",),
)
__all__ = _late
