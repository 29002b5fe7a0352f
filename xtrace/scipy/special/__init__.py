"""Special functions (``jax.scipy.special``)."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.nn.normalization import logsumexp as logsumexp
    from xtrace.scipy.special.bessel import bessel_jn as bessel_jn
    from xtrace.scipy.special.entropies import (
        boxcox as boxcox, boxcox1p as boxcox1p, entr as entr, kl_div as kl_div, log_softmax as log_softmax,
        logit as logit, rel_entr as rel_entr, softmax as softmax, xlog1py as xlog1py, xlogy as xlogy,
    )
    from xtrace.scipy.special.error_functions import (
        dawsn as dawsn, erfcinv as erfcinv, erfcx as erfcx, wofz as wofz,
    )
    from xtrace.scipy.special.factorials import (
        bernoulli as bernoulli, beta as beta, betaln as betaln, comb as comb, factorial as factorial, gamma as gamma,
        gammasgn as gammasgn, loggamma as loggamma, multigammaln as multigammaln, poch as poch,
    )
    from xtrace.scipy.special.hypergeometric import hyp1f1 as hyp1f1, hyp2f1 as hyp2f1
    from xtrace.scipy.special.integrals import (
        exp1 as exp1, expi as expi, expn as expn, fresnel as fresnel, sici as sici, spence as spence,
    )
    from xtrace.scipy.special.normal import log_ndtr as log_ndtr, ndtr as ndtr, ndtri as ndtri
    from xtrace.scipy.special.owen import owens_t as owens_t
    from xtrace.scipy.special.primitive import (
        betainc as betainc, digamma as digamma, erf as erf, erfc as erfc, erfinv as erfinv, expit as expit,
        gammainc as gammainc, gammaincc as gammaincc, gammaln as gammaln, i0 as i0, i0e as i0e, i1 as i1, i1e as i1e,
        polygamma as polygamma, zeta as zeta,
    )
    from xtrace.scipy.special.spherical_harmonics import sph_harm_y as sph_harm_y

# Libraries use these names, which JAX deprecates.
with _late_imports(globals(), listed=False):
    from xtrace.scipy.special.legendre import lpmn as lpmn, lpmn_values as lpmn_values
