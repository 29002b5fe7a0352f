"""Random numbers from explicit keys, as ``jax.random`` has them: the same bits for the same key, shape and dtype."""
# ruff: noqa: I001

import typing as _typing

from xtrace._src.core.late import late_names as _late_names
from xtrace._src.core.late import make_public as _make_public
from xtrace.random.continuous import *
from xtrace.random.discrete import *
from xtrace.random.keys import *
from xtrace.random.transformed_distributions import *

__all__ = _make_public(globals())

# The names that load late, for type checkers.
if _typing.TYPE_CHECKING:
    from xtrace.random.binomial_family import binomial as binomial, multinomial as multinomial
    from xtrace.random.gamma_family import (
        ball as ball, beta as beta, chisquare as chisquare, dirichlet as dirichlet, f as f, gamma as gamma,
        generalized_normal as generalized_normal, loggamma as loggamma, random_gamma_p as random_gamma_p, t as t,
    )
    from xtrace.random.multivariate import multivariate_normal as multivariate_normal, orthogonal as orthogonal
    from xtrace.random.rejection import poisson as poisson

# Names that few programs use load on first touch.
_late, __getattr__, __dir__ = _late_names(
    "xtrace.random",
    {
        "xtrace.random.binomial_family": ("binomial", "multinomial"),
        "xtrace.random.gamma_family": (
            "ball", "beta", "chisquare", "dirichlet", "f", "gamma", "generalized_normal", "loggamma", "random_gamma_p",
            "t",
        ),
        "xtrace.random.multivariate": ("multivariate_normal", "orthogonal"),
        "xtrace.random.rejection": ("poisson",),
    },
)
__all__ += _late
