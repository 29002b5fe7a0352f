"""Interpolations and controls of diffrax, and the messages of solutions that fail."""

import diffrax as dfx
import jax.numpy as jnp
from pendulum import adaptive, solve, start, term, times, values_of
from surface import Surface

surface = Surface(1e-9)
values = jnp.array([[0.0, 1.0], [1.0, jnp.nan], [0.5, 3.0], [2.0, 2.0], [1.0, 0.0]])
full = dfx.linear_interpolation(times, values)
surface.record("linear_interpolation", full)
surface.record("rectilinear_interpolation", dfx.rectilinear_interpolation(times, values, replace_nans_at_start=0.0))
coefficients = dfx.backward_hermite_coefficients(times, full)
surface.record("backward_hermite_coefficients", coefficients)
linear, cubic = dfx.LinearInterpolation(times, full), dfx.CubicInterpolation(times, coefficients)
for path in (linear, cubic):
    assert isinstance(path, dfx.AbstractGlobalInterpolation) and isinstance(path, dfx.AbstractPath)
    surface.record(type(path).__name__, [path.evaluate(0.3), path.evaluate(0.1, 0.6), path.derivative(0.4)])
stages = jnp.stack([start, start + 0.5, start - 0.5, start * 2])
pieces = (
    dfx.LocalLinearInterpolation(t0=0.0, t1=1.0, y0=start, y1=2 * start),
    dfx.ThirdOrderHermitePolynomialInterpolation.from_k(
        t0=0.0, t1=1.0, y0=start, y1=2 * start, k=jnp.stack([start, start])),
    type("Fourth", (dfx.FourthOrderPolynomialInterpolation,), {"c_mid": jnp.array([0.1, 0.2, 0.3, 0.4])})(
        t0=0.0, t1=1.0, y0=start, y1=2 * start, k=stages),
)
for piece in pieces:
    assert isinstance(piece, dfx.AbstractLocalInterpolation)
    surface.record(type(piece).__name__, [piece.evaluate(0.25), piece.evaluate(0.25, 0.5)])

# Controlled equations.
control = dfx.ControlTerm(lambda t, y, args: jnp.outer(jnp.sin(y), jnp.ones(2)), cubic)
assert isinstance(control, dfx.AbstractTerm)
surface.record("controlled", values_of(solve(dfx.Heun(), terms=control)))
surface.record("controlled as an ODE", values_of(solve(dfx.Tsit5(), terms=control.to_ode())))
products = [control.vf(0.1, start, None), control.contr(0.1, 0.3), control.vf_prod(0.1, start, None, jnp.ones(2))]
surface.record("a control's parts", products)

# Failures and messages.
few = {"max_steps": 2}
surface.record_error(
    "too few steps", "maximum number of solver steps", lambda: solve(dfx.Bosh3(), adaptive, **few))
silent = solve(dfx.Bosh3(), adaptive, throw=False, **few)
surface.record("too few steps, silently", silent.result == dfx.RESULTS.max_steps_reached)
surface.record_error("no adaptive steps", "error estimate", lambda: solve(dfx.Euler(), adaptive))
surface.record_error("no step size", "dt0", lambda: solve(dfx.Euler(), dt0=None))
surface.record_error("a term too many", "erm", lambda: solve(dfx.Euler(), terms=(term, term)))
surface.record_error("times in no order", "", lambda: solve(dfx.Euler(), saveat=dfx.SaveAt(ts=times[::-1])))

surface.finish(__file__, {"dfx": dfx}, {
    "dfx.TextProgressMeter": "writes to the terminal",
    "dfx.TqdmProgressMeter": "writes to the terminal",
    "dfx.citation": "prints what to cite",
    "dfx.citation_rules": "prints what to cite",
})
