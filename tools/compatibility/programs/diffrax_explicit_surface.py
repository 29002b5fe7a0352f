"""The explicit solvers of diffrax, with fixed and adaptive steps, one of one's own, and what they save."""

from typing import ClassVar

import diffrax as dfx
import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from pendulum import adaptive, loose, solve, start, term, times, values_of
from surface import Surface

# Adaptive steps amplify roundings a little.
surface = Surface(1e-7)
saved = dfx.SaveAt(t0=True, ts=times, t1=True)
for solver in (dfx.Tsit5(), dfx.Dopri5(), dfx.Dopri8(), dfx.Bosh3()):
    assert isinstance(solver, (dfx.AbstractERK, dfx.AbstractRungeKutta)) and isinstance(solver, dfx.AbstractSolver)
    surface.record(type(solver).__name__, values_of(solve(solver, adaptive, saveat=saved)))
for solver in (dfx.Heun(), dfx.Midpoint(), dfx.Ralston(), dfx.ReversibleHeun()):
    assert isinstance(solver, dfx.AbstractAdaptiveSolver)
    surface.record(type(solver).__name__, values_of(solve(solver, loose, saveat=saved)))
halves = dfx.HalfSolver(dfx.Euler())
assert isinstance(halves, dfx.AbstractWrappedSolver)
surface.record("HalfSolver", values_of(solve(halves, dfx.PIDController(rtol=1e-2, atol=1e-3))))
surface.record("Euler", values_of(solve(dfx.Euler())))
surface.record("LeapfrogMidpoint", values_of(solve(dfx.LeapfrogMidpoint())))
parts = (dfx.ODETerm(lambda t, p, args: -p), dfx.ODETerm(lambda t, q, args: q))
surface.record("SemiImplicitEuler", values_of(solve(dfx.SemiImplicitEuler(), terms=parts, y=(start, start + 1))))


class ThreeEighths(dfx.AbstractERK):
    """Kutta's rule of 1901, without an estimate of the error."""

    tableau: ClassVar[dfx.ButcherTableau] = dfx.ButcherTableau(
        c=np.array([1 / 3, 2 / 3, 1.0]), b_sol=np.array([1 / 8, 3 / 8, 3 / 8, 1 / 8]),
        b_error=np.array([0.0, 0.0, 0.0, 0.0]),
        a_lower=(np.array([1 / 3]), np.array([-1 / 3, 1.0]), np.array([1.0, -1.0, 1.0])),
    )
    interpolation_cls: ClassVar = dfx.ThirdOrderHermitePolynomialInterpolation.from_k

    def order(self, terms):
        return 4


surface.record("a solver of one's own", values_of(solve(ThreeEighths(), saveat=saved)))

# Step sizes and what is saved.
assert isinstance(adaptive, dfx.AbstractAdaptiveStepSizeController)
clipped = dfx.ClipStepSizeController(adaptive, step_ts=jnp.array([0.25, 0.7]), jump_ts=jnp.array([0.5]))
assert isinstance(clipped, dfx.AbstractStepSizeController)
surface.record("clipped", values_of(solve(dfx.Tsit5(), clipped, saveat=dfx.SaveAt(steps=True), max_steps=32)))
surface.record("StepTo", values_of(solve(dfx.Tsit5(), dfx.StepTo(times), dt0=None)))
several = dfx.SaveAt(subs=[dfx.SubSaveAt(ts=times, fn=lambda t, y, args: y[0] * t), dfx.SubSaveAt(t1=True)])
surface.record("several", values_of(solve(dfx.Dopri5(), adaptive, saveat=several)))
dense = solve(dfx.Tsit5(), adaptive, saveat=dfx.SaveAt(dense=True), max_steps=32)
surface.record("dense", [jax.vmap(dense.evaluate)(times), jax.vmap(dense.derivative)(times)])
assert isinstance(dense, dfx.Solution) and isinstance(dense.interpolation, dfx.DenseInterpolation)
first = solve(dfx.Dopri5(), loose, saveat=dfx.SaveAt(t1=True, solver_state=True, controller_state=True))
surface.record("states", [first.controller_state, first.solver_state])
surface.record("in vmap", eqx.filter_jit(jax.vmap(lambda y: solve(dfx.Bosh3(), loose, y=y).ys))(
    jnp.stack([start, 2 * start])))
assert isinstance(dfx.NoProgressMeter(), dfx.AbstractProgressMeter)
quiet = solve(dfx.Euler(), dfx.ConstantStepSize(), terms=term, progress_meter=dfx.NoProgressMeter())
surface.record("progress", quiet.ys)

surface.finish(__file__, {}, {})
