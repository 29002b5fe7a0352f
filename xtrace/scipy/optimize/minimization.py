"""`minimize`, with SciPy's arguments and results."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from xtrace._src.algebra.vector_space import operand_aval
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, RealLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.callables import check_callable
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace.numpy.arrays.conversion import asarray
from xtrace.numpy.elementwise.complex_parts import conj
from xtrace.scipy.optimize.quasi_newton import State, bfgs, limited_bfgs

_BFGS = ("maxiter", "norm", "gtol", "line_search_maxiter")
_LIMITED = ("maxiter", "norm", "maxcor", "ftol", "gtol", "maxfun", "maxgrad", "maxls")
_METHODS: dict[str, tuple[Callable[..., State], tuple[str, ...]]] = {
    "bfgs": (bfgs, _BFGS), "l-bfgs-experimental-do-not-rely-on-this": (limited_bfgs, _LIMITED)
}


class OptimizeResults(NamedTuple):
    """The result of `minimize`.

    Attributes:
        x: the point.
        success: whether the gradient there is below the tolerance.
        status: 0 for success, or the reason of failure: 1 too many steps, 2 too many values, 3 too many gradients or,
            for BFGS, an exhausted line search, 4 hardly any decrease, 5 a failed line search.
        fun, jac: the value and the gradient.
        hess_inv: the estimate of the inverse Hessian; None for L-BFGS.
        nfev, njev, nit: the numbers of values, gradients and steps.

    Example:
        >>> scipy.optimize.minimize(lambda x: (x**2).sum(), jnp.ones(1), method="BFGS").success
        Array(True, dtype=bool)
    """

    x: Array
    success: Array
    status: RealLike
    fun: Array
    jac: Array
    hess_inv: Array | None
    nfev: RealLike
    njev: RealLike
    nit: RealLike


def minimize(
    fun: Callable[..., Any], x0: ArrayLike, args: tuple[Any, ...] = (), *, method: str, tol: float | None = None,
    options: Mapping[str, Any] | None = None,
) -> OptimizeResults:
    """Find a local minimum of a function of a vector.

    Args:
        fun: a function ``fun(x, *args)`` that returns a real number.
        x0: a vector of floats, the first point.
        args: a tuple of further arguments.
        method: ``"BFGS"``, with the options maxiter, norm, gtol and line_search_maxiter, or
            ``"l-bfgs-experimental-do-not-rely-on-this"``, with maxiter, norm, maxcor, ftol, gtol, maxfun, maxgrad,
            maxls.
        tol: without effect; set the option gtol.
        options: a mapping of options, or None.

    Returns:
        An `OptimizeResults`; it has derivatives in forward mode only.

    Raises:
        TypeError: `args` is not a tuple, `x0` has integers, or there is no such option.
        ValueError: `x0` is not a vector, or there is no such method.

    Example:
        >>> scipy.optimize.minimize(lambda x: ((x - 1.0) ** 2).sum(), jnp.zeros(2), method="BFGS").x.round(3)
        Array([1., 1.], dtype=float32)

    Reference:
        J. Nocedal and S. J. Wright, Numerical Optimization, 2nd ed. (2006), algorithms 3.5, 3.6, 6.1 and 7.4.
    """
    check_callable(fun)
    if not isinstance(args, tuple):
        raise TypeError(f"args argument to xtrace.scipy.optimize.minimize must be a tuple, got {args}; write (args,)")
    aval = operand_aval(x0, 1)
    if not dtypes.is_inexact(aval.dtype):
        raise TypeError(
            f"minimize: x0 must have a floating or complex dtype to be differentiated by, got {aval.str_short(True)}; "
            "write x0.astype(float)"
        )
    if aval.ndim != 1:
        raise ValueError(
            f"minimize: x0 must be a vector, got {aval.str_short(True)}; see xtrace.flatten_util.ravel_pytree"
        )
    known = _METHODS.get(method.lower())
    if known is None:
        raise ValueError(
            f"Method {method} not recognized by minimize; write 'BFGS' or {abbreviate(list(_METHODS)[1])}"
        )
    solve, names = known
    given = dict(options or {})
    for name in given:
        if name not in names:
            raise TypeError(
                f"minimize with method {method} got an unexpected option {abbreviate(name)}; it takes "
                f"{', '.join(names)}"
            )
    x = asarray(x0)
    state = solve(lambda x: fun(x, *args), x.astype(x.dtype), **given)
    hessian = state.memory if solve is bfgs else None
    return OptimizeResults(
        state.x, (state.status == 0) & ~state.going, state.status, state.value, conj(state.gradient), hessian,
        state.evaluations, state.evaluations, state.steps,
    )
