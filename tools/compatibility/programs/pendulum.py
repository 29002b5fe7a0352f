"""What the programs of diffrax share: a pendulum with friction, its solution from 0 to 1, and what is compared."""

import diffrax as dfx
import jax
import jax.numpy as jnp

jax.config.update("jax_enable_x64", True)
start = jnp.array([1.0, 0.5])
times = jnp.linspace(0, 1, 5)
adaptive = dfx.PIDController(rtol=1e-6, atol=1e-8)
loose = dfx.PIDController(rtol=1e-4, atol=1e-6)


def slope(t, y, args):
    """Return the velocity and acceleration of a pendulum that is driven; `args` is the gravity."""
    return jnp.stack([y[1], -args * jnp.sin(y[0]) - 0.1 * y[1] + 0.1 * jnp.cos(t)])


term = dfx.ODETerm(slope)


def solve(solver, controller=None, terms=term, y=start, adjoint=None, args=1.5, dt0=0.1, **options):
    """Return the solution from 0 to 1, by steps of `dt0` unless a controller chooses them."""
    controller = dfx.ConstantStepSize() if controller is None else controller
    adjoint = dfx.RecursiveCheckpointAdjoint() if adjoint is None else adjoint
    return dfx.diffeqsolve(
        terms, solver, 0.0, 1.0, dt0, y, args, stepsize_controller=controller, adjoint=adjoint, **options,
    )


def values_of(solution):
    """Return the times, the values, the numbers of steps, and the success of a solution."""
    numbers = {k: v for k, v in solution.stats.items() if k != "max_steps"}
    return [solution.ts, solution.ys, numbers, solution.result == dfx.RESULTS.successful]
