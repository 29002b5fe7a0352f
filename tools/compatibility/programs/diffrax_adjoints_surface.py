"""Derivatives of solutions of diffrax, and events."""

import diffrax as dfx
import jax
import jax.numpy as jnp
import optimistix as optx
from pendulum import adaptive, loose, solve, start
from surface import Surface

surface = Surface(1e-7)
adjoints = {
    "checkpoints": dfx.RecursiveCheckpointAdjoint(4), "direct": dfx.DirectAdjoint(),
    "backsolve": dfx.BacksolveAdjoint(
        stepsize_controller=dfx.PIDController(rtol=1e-5, atol=1e-7, norm=dfx.adjoint_rms_seminorm)),
}
for name, adjoint in adjoints.items():
    assert isinstance(adjoint, dfx.AbstractAdjoint)

    def loss(values, adjoint=adjoint, steps=16 if name == "direct" else 256):
        y, gravity = values
        return jnp.sum(solve(dfx.Bosh3(), adjoint=adjoint, y=y, args=gravity, max_steps=steps).ys ** 2)

    surface.record(name, jax.jit(jax.grad(loss))((start, jnp.array(1.5))))
surface.record("forward mode", jax.jit(lambda y: jax.jvp(
    lambda y: solve(dfx.Tsit5(), adaptive, y=y, adjoint=dfx.ForwardMode()).ys, (y,), (jnp.ones(2),)))(start))


def settle(decay):
    """Return the place where a decay comes to rest."""
    event = dfx.Event(dfx.steady_state_event())
    return dfx.diffeqsolve(
        dfx.ODETerm(lambda t, y, args: args * (2.0 - y)), dfx.Tsit5(), 0.0, jnp.inf, 0.1, jnp.array(1.0), decay,
        stepsize_controller=adaptive, event=event, adjoint=dfx.ImplicitAdjoint(), max_steps=1024,
    ).ys


surface.record("implicit", jax.jit(jax.value_and_grad(lambda d: settle(d)[0]))(1.5))


def height(t, y, args, **_):
    """Return how far the pendulum is above an angle."""
    return y[0] - 0.9


crossing = dfx.Event(height, optx.Newton(1e-10, 1e-10))
found = solve(dfx.Tsit5(), adaptive, y=jnp.array([1.0, 0.0]), event=crossing)
surface.record("event", [found.ts, found.ys, dfx.is_event(found.result), dfx.is_okay(found.result)])
surface.record("no success", dfx.is_successful(found.result))
surface.record("gradient through an event", jax.jit(jax.grad(
    lambda v: solve(dfx.Bosh3(), loose, y=jnp.stack([v, 0.0]), event=crossing, max_steps=64).ts[0]))(1.0))
several = dfx.Event([height, lambda t, y, args, **_: t > 0.35])
stopped = solve(dfx.Euler(), y=start, event=several)
surface.record("several events", [stopped.ts, stopped.event_mask])
old = dfx.SteadyStateEvent()
assert isinstance(old, (dfx.DiscreteTerminatingEvent, dfx.AbstractDiscreteTerminatingEvent))

surface.finish(__file__, {}, {})
