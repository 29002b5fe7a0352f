"""Calls under settings that forbid promotion, which judge the operands of a user alone: outcomes compared with jax's.

Calls are traced and not compiled. The drawn calls of test_draws.py run under these settings, too; here are those that
they do not draw.
"""

from __future__ import annotations

import contextlib
import importlib
import warnings
from typing import Any

import jax
import numpy as np
import pytest

import xtrace

_MODULES = {
    "np": "numpy", "la": "numpy.linalg", "lax": "lax", "nn": "nn", "image": "image", "random": "random",
    "initializers": "nn.initializers", "special": "scipy.special", "signal": "scipy.signal", "cosine": "scipy.fft",
    "stats": "scipy.stats", "linalg": "scipy.linalg", "ode": "experimental.ode",
}
# f, i, b and c are vectors of floats, integers, booleans and complex numbers; f2 … have a row more; h is of float16.
_ARRAYS: dict[str, Any] = {
    "f": np.arange(1, 4, dtype=np.float32), "f2": np.arange(1, 7, dtype=np.float32).reshape(2, 3),
    "h": np.arange(1, 4, dtype=np.float16), "i": np.arange(1, 4, dtype=np.int32),
    "i2": np.arange(6, dtype=np.int32).reshape(2, 3), "b": np.array([True, False, True]),
    "b2": np.array([[True, False, True]] * 2), "c": np.array([1 + 2j, 2, 3j], np.complex64),
    "c2": np.array([[1 + 2j, 2, 3j], [2, 1, 3]], np.complex64), "s": np.float32(2),
    "m": np.array([[2, 1, 0], [1, 3, 1], [0, 1, 4]], np.float32), "m3": np.stack([np.eye(3, dtype=np.float32)] * 2),
    "wave": np.ones(16, np.float32),
}
_SETTINGS = (("numpy_rank_promotion", "raise"), ("numpy_dtype_promotion", "strict"))
_CALLS = """
np.where(b, 1, f)
np.where(b2, f, f2)
np.where(b2, s, f)
np.where(b, f, i)
f ** i
f2 ** f
f ** 2
2.0 ** i
f + True
i * True
np.multiply.outer(f, f)
np.add.outer(f2, f)
np.logical_or.outer(f, f)
np.logical_and.at(f, np.array([0]), f[:1], inplace=False)
np.logical_and.at(f, np.array([0]), i[:1], inplace=False)
np.gcd(i2, i)
np.lcm(i2, i)
np.heaviside(f2, f)
np.heaviside(f, i)
np.angle(s)
np.nan_to_num(f2, nan=f)
np.array_equiv(f2, f)
np.array_equiv(f, i)
np.array_equal(f, i)
np.corrcoef(f2)
np.corrcoef(c2)
np.cov(c2)
np.cov(f2, aweights=f)
np.cov(f2, f)
np.average(f2, weights=i2)
np.average(f2, axis=1, weights=f)
np.average(i, weights=2 * i)
np.quantile(h, f / 4)
np.quantile(f, h / 4)
np.quantile(f2, f / 4, weights=f2, axis=1, method='inverted_cdf')
np.nanquantile(f2, f / 4, axis=1)
np.nanpercentile(f2, 50, axis=1)
np.delete(f, np.array([0, 1]), assume_unique_indices=True)
np.vander(f)
np.vander(i)
np.polyfit(f, f, 1, w=f)
np.polyfit(f, f2.T, 1)
np.mgrid[0:3.0, 0:2]
np.ogrid[0:3.0, 0:2]
np.histogram2d(f, f, density=True)
np.histogramdd(i2, density=True)
np.interp(f, f, i)
np.interp(i, f, f)
np.linspace(f2, f, 5)
np.linspace(f2, 1.0, 5)
np.dot(f, i)
np.dot(f, i, preferred_element_type=np.float32)
np.matmul(f2, i, preferred_element_type=np.float32)
np.vecdot(f2, f)
np.einsum('i,i', f, i)
np.einsum('i,i', f, i, preferred_element_type=np.float32)
np.tensordot(f, i, 1, preferred_element_type=np.float32)
np.place(f, b, i, inplace=False)
np.place(f, b, 2, inplace=False)
np.put(f, 0, i[:1], inplace=False)
np.fill_diagonal(m, i, inplace=False)
np.fill_diagonal(m, f, inplace=False)
np.vectorize(lambda x, y: x + y)(f2, f)
np.vectorize(lambda x, y: x + y)(f2, 2.0)
np.vectorize(lambda x, y: x + y, signature='(n),(n)->(n)')(f2, f)
np.vectorize(lambda x, y: x + y, signature='(n),()->(n)')(f2, f[:2])
np.vectorize(lambda x, y: x + y, signature='(n),()->(n)')(f, f2)
np.vectorize(lambda x, y: x + y, signature='(n),()->(n)')(f2, s)
np.vectorize(lambda x, y: x + y, excluded={1})(f2, f)
np.frompyfunc(lambda x, y: x + y, 2, 1)(f2, f)
np.frompyfunc(lambda x, y: x + y, 2, 1).outer(f, f)
la.solve(m3, f)
la.solve(m, f2.T)
la.solve(m, m3)
linalg.solve(m3, f2)
linalg.toeplitz(f2, f)
linalg.eigh_tridiagonal(f, f[:2], eigvals_only=True)
special.logsumexp(c)
special.logsumexp(f2, b=f, axis=1)
special.gamma(c)
special.owens_t(f, f)
nn.logmeanexp(c2, axis=1)
nn.log_softmax(f2, where=b)
nn.softmax(f2, where=b)
cosine.dct(f2)
cosine.idct(f2, axis=0)
cosine.dctn(c2)
cosine.idctn(f2, norm='ortho')
signal.stft(wave, nperseg=8)
signal.istft(c2.T[:, :, None].transpose(1, 0, 2) * f, nperseg=4)
signal.welch(wave, nperseg=8)
signal.welch(f2, nperseg=2, axis=0)
signal.csd(wave, wave, nperseg=8)
signal.csd(wave[None], np.stack([wave, wave]), nperseg=8)
stats.gaussian_kde(f2)(f2)
stats.gaussian_kde(f, weights=f).logpdf(f)
stats.gaussian_kde(f2).integrate_gaussian(f[:2], m[:2, :2])
stats.gaussian_kde(f).integrate_box_1d(0, 1)
stats.gaussian_kde(f).integrate_kde(stats.gaussian_kde(f + 1))
stats.gaussian_kde(f).resample(key, (4,))
random.choice(key, f, (2,), p=f / 6)
random.multivariate_normal(key, f, m, (2,))
random.multivariate_normal(key, f, m3)
random.binomial(key, i, 0.5)
random.gamma(key, f, (2, 3))
initializers.orthogonal()(key, (3, 4))
initializers.delta_orthogonal()(key, (3, 3, 3, 4))
initializers.variance_scaling(2.0, 'fan_in', 'uniform')(key, (3, 4), np.complex64)
image.scale_and_translate(f2, (4, 4), (0, 1), f[:2], f[:2], 'linear')
ode.odeint(lambda y, t: -y, c, f)
ode.odeint(lambda y, t: -y, f, f)
f.at[0].set(i[0])
f.at[i - 1].add(i)
f2.at[0].set(f)
f2.at[:].add(f)
i.at[0].add(1.5)
f2[np.array([[0, 1]]), i[:2] - 1]
package.grad(lambda x: np.prod(x))(f)
package.grad(lambda x: abs(la.eigvals(x)).sum())(m)
package.grad(lambda x: la.svd(x, full_matrices=False)[0].sum())(f2)
package.hessian(lambda x: (x ** 3).sum())(f)
package.vmap(lambda x: lax.dynamic_slice(f, (x,), (1,)))(i - 1)
package.vmap(lambda x: x + f)(f)
package.vmap(lambda x, y: x + y, (0, None))(f2, f)
lax.fori_loop(0, 3, lambda i, x: x + i, f)
lax.cumlogsumexp(f)
""".strip().splitlines()


def _outcome(package: Any, call: str) -> str:
    """Return the class of the error, or "accepted"."""
    names = {name: importlib.import_module(f"{package.__name__}.{module}") for name, module in _MODULES.items()}
    arrays = {name: package.numpy.asarray(value) for name, value in _ARRAYS.items()}
    key = package.random.key(0)

    def results() -> Any:
        found = eval(call, {**names, **arrays, "key": key, "package": package})
        return [leaf for leaf in package.tree.leaves(found) if hasattr(leaf, "dtype")]

    try:
        package.make_jaxpr(results)()
    except (TypeError, ValueError) as error:
        return type(error).__name__
    return "accepted"


@pytest.mark.parametrize(("setting", "value"), _SETTINGS)
def test_calls_are_refused_where_jax_refuses_them(setting: str, value: str) -> None:
    differences = []
    for call in _CALLS:
        with getattr(xtrace, setting)(value), getattr(jax, setting)(value), warnings.catch_warnings():
            warnings.simplefilter("ignore")
            got, expected = _outcome(xtrace, call), _outcome(jax, call)
        if got != expected:
            differences.append(f"{call}: {got}, jax: {expected}")
    assert differences == []


@pytest.mark.parametrize("call", [
    "np.where(b2, f, f2)", "np.corrcoef(f2)", "cosine.dct(f2)", "f2 + f", "np.vectorize(lambda x, y: x)(f2, f)",
    "la.solve(m3, f)",
])
def test_a_warning_is_given_where_jax_gives_one(call: str) -> None:
    warned = []
    for package in (xtrace, jax):
        with package.numpy_rank_promotion("warn"), warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            assert _outcome(package, call) == "accepted"
        warned.append(any("rank promotion" in str(warning.message) for warning in caught))
    assert warned[0] == warned[1]


@pytest.mark.parametrize("call", ["np.add.outer(f, f)", "np.corrcoef(f2)", "cosine.idct(f2)", "special.gamma(c)"])
def test_settings_do_not_change_values(call: str) -> None:
    names = {name: importlib.import_module(f"xtrace.{module}") for name, module in _MODULES.items()}
    arrays = {name: xtrace.numpy.asarray(value) for name, value in _ARRAYS.items()}
    expected = eval(call, {**names, **arrays})
    with contextlib.ExitStack() as stack:
        for setting, value in _SETTINGS:
            stack.enter_context(getattr(xtrace, setting)(value))
        np.testing.assert_array_equal(eval(call, {**names, **arrays}), expected)


def test_what_was_remembered_without_strict_promotion_is_refused_under_it() -> None:
    assert _outcome(xtrace, "f * True") == "accepted"
    with xtrace.numpy_dtype_promotion("strict"), jax.numpy_dtype_promotion("strict"):
        assert _outcome(xtrace, "f * True") == _outcome(jax, "f * True") == "TypePromotionError"
