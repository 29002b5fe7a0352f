"""Brownian motion of diffrax, its areas, and the solvers of stochastic differential equations of Euler's kind."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import lineax as lx
from pendulum import start, times
from surface import Surface

surface = Surface(1e-9)


def draw_path(area):
    """Return Brownian motion in two dimensions with an area of Lévy's."""
    return dfx.VirtualBrownianTree(0.0, 1.0, 0.1, (2,), jax.random.key(1), levy_area=area)


for area in (dfx.BrownianIncrement, dfx.SpaceTimeLevyArea, dfx.SpaceTimeTimeLevyArea):
    path = draw_path(area)
    assert isinstance(path, dfx.AbstractBrownianPath)
    increment = jax.jit(lambda a, b, path=path: path.evaluate(a, b, use_levy=True))(0.2, 0.7)
    surface.record(f"path of {area.__name__}", increment)
    kinds = (dfx.AbstractBrownianIncrement, dfx.AbstractSpaceTimeLevyArea, dfx.AbstractSpaceTimeTimeLevyArea)
    surface.record(f"kinds of {area.__name__}", [isinstance(increment, kind) for kind in kinds])
unsafe = dfx.UnsafeBrownianPath((2,), jax.random.key(2), levy_area=dfx.SpaceTimeLevyArea)
surface.record("UnsafeBrownianPath", unsafe.evaluate(0.2, 0.7, use_levy=True))
plain = draw_path(dfx.BrownianIncrement)
surface.record("many times", jax.jit(jax.vmap(plain.evaluate))(times))


def drift(t, y, args):
    """Pull towards zero."""
    return -0.5 * y + 0.1 * jnp.sin(t)


def solve(solver, control, y=start):
    """Return the solution at some times."""
    terms = dfx.MultiTerm(dfx.ODETerm(drift), control)
    return dfx.diffeqsolve(terms, solver, 0.0, 1.0, 0.1, y, saveat=dfx.SaveAt(ts=times)).ys


diagonal = dfx.ControlTerm(lambda t, y, args: lx.DiagonalLinearOperator(0.3 * y), plain)
for solver in (dfx.Euler(), dfx.EulerHeun(), dfx.Heun(), dfx.ItoMilstein(), dfx.StratonovichMilstein()):
    kinds = (dfx.AbstractItoSolver, dfx.AbstractStratonovichSolver)
    surface.record(type(solver).__name__, [solve(solver, diagonal), *[isinstance(solver, kind) for kind in kinds]])
full = dfx.ControlTerm(lambda t, y, args: jnp.outer(y, jnp.ones(2)), plain)
surface.record("a full matrix", solve(dfx.Heun(), full))
old = dfx.WeaklyDiagonalControlTerm(lambda t, y, args: 0.3 * y, plain)
surface.record("a diagonal of the old kind", solve(dfx.Euler(), old))
surface.record("gradient", jax.jit(jax.grad(lambda y: jnp.sum(dfx.diffeqsolve(
    dfx.MultiTerm(dfx.ODETerm(drift), diagonal), dfx.Euler(), 0.0, 1.0, 0.2, y, max_steps=8).ys)))(start))

surface.finish(__file__, {}, {})
