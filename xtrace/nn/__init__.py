"""Functions of neural networks, as ``jax.nn`` has them: activations, softmax and its relatives, attention."""

from xtrace._src.core.late import late_names as _late_names

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
