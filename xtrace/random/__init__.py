"""Random numbers from explicit keys, as ``jax.random`` has them: the same bits for the same key, shape and dtype."""

from xtrace._src.core.late import late_names as _late_names
from xtrace._src.core.late import make_public as _make_public
from xtrace.random.continuous import bits, gumbel, normal, uniform
from xtrace.random.discrete import bernoulli, categorical, choice, geometric, permutation, rademacher, randint
from xtrace.random.formulas import (
    cauchy,
    double_sided_maxwell,
    exponential,
    laplace,
    logistic,
    lognormal,
    maxwell,
    pareto,
    rayleigh,
    triangular,
    truncated_normal,
    wald,
    weibull_min,
)
from xtrace.random.keys import PRNGKey, clone, fold_in, key, key_data, key_dtype, key_impl, split, wrap_key_data

__all__ = [
    "PRNGKey", "bernoulli", "bits", "categorical", "cauchy", "choice", "clone", "double_sided_maxwell", "exponential",
    "fold_in", "geometric", "gumbel", "key", "key_data", "key_dtype", "key_impl", "laplace", "logistic", "lognormal",
    "maxwell", "normal", "pareto", "permutation", "rademacher", "randint", "rayleigh", "split", "triangular",
    "truncated_normal", "uniform", "wald", "weibull_min", "wrap_key_data",
]

_make_public(globals(), __all__)

# What few programs use is loaded when it is first asked for.
_late, __getattr__, __dir__ = _late_names(
    "xtrace.random",
    {
        "xtrace.random.trials": ("binomial", "multinomial"),
        "xtrace.random.gamma_family": (
            "ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "random_gamma_p",
            "t",
        ),
        "xtrace.random.multivariate": ("multivariate_normal", "orthogonal"),
        "xtrace.random.rejection": ("poisson",),
    },
)
__all__ += _late
