"""Distributions, a module each, and statistics of samples, as ``jax.scipy.stats`` has them."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.scipy.stats",
    {
        "xtrace.scipy.stats.descriptive": ("mode", "rankdata", "sem"),
        "xtrace.scipy.stats.kernel_density": ("gaussian_kde",),
    },
    submodules=(
        "bernoulli", "beta", "betabinom", "binom", "cauchy", "chi2", "dirichlet", "expon", "gamma", "gennorm", "geom",
        "gumbel_l", "gumbel_r", "laplace", "logistic", "multinomial", "multivariate_normal", "nbinom", "norm",
        "pareto", "poisson", "t", "truncnorm", "uniform", "vonmises", "wrapcauchy",
    ),
)
