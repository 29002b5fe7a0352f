"""Special functions, as ``jax.scipy.special`` has them."""

from xtrace._src.core.late import late_names as _late_names

__all__, __getattr__, __dir__ = _late_names(
    "xtrace.scipy.special",
    {
        "xtrace.nn.normalization": ("logsumexp",),
        "xtrace.scipy.special.bessel": ("bessel_jn",),
        "xtrace.scipy.special.entropies": (
            "boxcox", "boxcox1p", "entr", "kl_div", "log_softmax", "logit", "rel_entr", "softmax", "xlog1py", "xlogy",
        ),
        "xtrace.scipy.special.error_functions": ("dawsn", "erfcx", "wofz"),
        "xtrace.scipy.special.factorials": (
            "bernoulli", "beta", "betaln", "comb", "factorial", "gamma", "gammasgn", "loggamma", "multigammaln",
            "poch",
        ),
        "xtrace.scipy.special.hypergeometric": ("hyp1f1", "hyp2f1"),
        "xtrace.scipy.special.integrals": ("exp1", "expi", "expn", "fresnel", "sici", "spence"),
        "xtrace.scipy.special.normal": ("log_ndtr", "ndtr", "ndtri"),
        "xtrace.scipy.special.owen": ("owens_t",),
        "xtrace.scipy.special.primitive": (
            "betainc", "digamma", "erf", "erfc", "erfinv", "expit", "gammainc", "gammaincc", "gammaln", "i0", "i0e",
            "i1", "i1e", "polygamma", "zeta",
        ),
        "xtrace.scipy.special.spherical_harmonics": ("sph_harm_y",),
    },
)
