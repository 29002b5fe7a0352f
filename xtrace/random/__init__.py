"""Random numbers from explicit keys (``jax.random``): the same bits for the same key, shape and dtype."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.random.continuous import bits as bits, gumbel as gumbel, normal as normal, uniform as uniform
    from xtrace.random.discrete import (
        bernoulli as bernoulli, categorical as categorical, choice as choice, geometric as geometric,
        permutation as permutation, rademacher as rademacher, randint as randint,
    )
    from xtrace.random.keys import (
        Key as Key, PRNGKey as PRNGKey, clone as clone, fold_in as fold_in, key as key, key_data as key_data,
        key_dtype as key_dtype, key_impl as key_impl, split as split, wrap_key_data as wrap_key_data,
    )
    from xtrace.random.transformed_distributions import (
        cauchy as cauchy, double_sided_maxwell as double_sided_maxwell, exponential as exponential, laplace as laplace,
        logistic as logistic, lognormal as lognormal, maxwell as maxwell, pareto as pareto, rayleigh as rayleigh,
        triangular as triangular, truncated_normal as truncated_normal, wald as wald, weibull_min as weibull_min,
    )
    from xtrace.random.binomial_family import binomial as binomial, multinomial as multinomial
    from xtrace.random.gamma_family import (
        ball as ball, beta as beta, chisquare as chisquare, dirichlet as dirichlet, f as f, gamma as gamma,
        generalized_normal as generalized_normal, loggamma as loggamma, random_gamma_p as random_gamma_p, t as t,
    )
    from xtrace.random.multivariate import multivariate_normal as multivariate_normal, orthogonal as orthogonal
    from xtrace.random.rejection import poisson as poisson
