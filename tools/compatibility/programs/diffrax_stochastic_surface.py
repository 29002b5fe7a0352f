"""The stochastic Runge-Kutta solvers of diffrax, and Langevin dynamics."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import lineax as lx
from pendulum import start
from surface import Surface

surface = Surface(1e-9)
area = dfx.VirtualBrownianTree(0.0, 1.0, 0.2, (2,), jax.random.key(1), levy_area=dfx.SpaceTimeLevyArea)


def solve(solver, terms, y=start):
    """Return the solution at 1, by few steps."""
    return dfx.diffeqsolve(terms, solver, 0.0, 1.0, 0.25, y).ys


def make_terms(scale):
    """Return a pull towards zero and noise of a scale that may depend on the place."""
    noise = dfx.ControlTerm(lambda t, y, args: lx.DiagonalLinearOperator(scale(y)), area)
    return dfx.MultiTerm(dfx.ODETerm(lambda t, y, args: -0.5 * y + 0.1 * jnp.sin(t)), noise)


for solver in (dfx.SPaRK(), dfx.GeneralShARK(), dfx.SlowRK()):
    assert isinstance(solver, dfx.AbstractSRK) and isinstance(solver.tableau, dfx.StochasticButcherTableau)
    surface.record(type(solver).__name__, solve(solver, make_terms(lambda y: 0.3 * y)))
for solver in (dfx.SEA(), dfx.ShARK(), dfx.SRA1()):
    surface.record(type(solver).__name__, solve(solver, make_terms(lambda y: jnp.full(2, 0.3))))
surface.record("adaptive", dfx.diffeqsolve(
    make_terms(lambda y: 0.3 * y), dfx.SPaRK(), 0.0, 1.0, 0.25, start,
    stepsize_controller=dfx.PIDController(rtol=1e-1, atol=1e-2, dtmin=0.1)).ys)
friction, inverse_mass = jnp.array([0.5, 0.7]), jnp.array([1.0, 1.2])
tree = dfx.VirtualBrownianTree(0.0, 1.0, 0.2, (2,), jax.random.key(1), levy_area=dfx.SpaceTimeTimeLevyArea)
langevin = dfx.MultiTerm(
    dfx.UnderdampedLangevinDriftTerm(friction, inverse_mass, lambda x, args: 2 * x),
    dfx.UnderdampedLangevinDiffusionTerm(friction, inverse_mass, tree),
)
for solver in (dfx.ALIGN(0.1), dfx.QUICSORT(0.1), dfx.ShOULD(0.1)):
    assert isinstance(solver, dfx.AbstractFosterLangevinSRK)
    surface.record(type(solver).__name__, solve(solver, langevin, (start, start - 1)))

surface.finish(__file__, {}, {})
