"""The normal distribution. Libraries import this module when they are imported, so its functions load late."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.scipy.stats.normal import (
        cdf as cdf, isf as isf, logcdf as logcdf, logpdf as logpdf, logsf as logsf, pdf as pdf, ppf as ppf, sf as sf,
    )
