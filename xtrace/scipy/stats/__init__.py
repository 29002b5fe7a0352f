"""Distributions, a module each, as ``jax.scipy.stats`` has them."""

from xtrace.core.late import late_names as _late_names

__all__, __getattr__ = _late_names(
    "xtrace.scipy.stats",
    {},
    submodules=(
        "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "expon", "gamma", "gennorm", "geom",
        "gumbel_l", "gumbel_r", "laplace", "logistic", "nbinom", "norm", "pareto", "poisson", "t", "uniform",
        "vonmises", "wrapcauchy",
    ),
)  # fmt: skip
