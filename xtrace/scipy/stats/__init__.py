"""Distributions, a module each, and statistics of samples (``jax.scipy.stats``)."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.scipy.stats.descriptive import mode as mode, rankdata as rankdata, sem as sem
    from xtrace.scipy.stats.kernel_density import gaussian_kde as gaussian_kde
    from xtrace.scipy.stats import (
        bernoulli as bernoulli, beta as beta, betabinom as betabinom, binom as binom, cauchy as cauchy, chi2 as chi2,
        dirichlet as dirichlet, expon as expon, gamma as gamma, gennorm as gennorm, geom as geom, gumbel_l as gumbel_l,
        gumbel_r as gumbel_r, laplace as laplace, logistic as logistic, multinomial as multinomial,
        multivariate_normal as multivariate_normal, nbinom as nbinom, norm as norm, pareto as pareto,
        poisson as poisson, t as t, truncnorm as truncnorm, uniform as uniform, vonmises as vonmises,
        wrapcauchy as wrapcauchy,
    )
