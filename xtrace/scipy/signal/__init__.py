"""Signal processing (``jax.scipy.signal``)."""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.scipy.signal.convolutions import convolve, convolve2d, correlate, correlate2d, fftconvolve
from xtrace.scipy.signal.spectra import csd, istft, stft, welch
from xtrace.scipy.signal.trends import detrend

__all__ = [
    "convolve", "convolve2d", "correlate", "correlate2d", "csd", "detrend", "fftconvolve", "istft", "stft", "welch",
]

_make_public(globals(), __all__)
