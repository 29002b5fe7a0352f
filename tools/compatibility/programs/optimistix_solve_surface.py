"""Each solver of optimistix for roots, fixed points and least squares, with derivatives of the solutions."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
import optimistix as optx
from surface import Surface

jax.config.update("jax_enable_x64", True)
# Solutions are found to 1e-9, and the systems are well conditioned.
surface = Surface(1e-6)
tight = {"rtol": 1e-9, "atol": 1e-9}
args = jnp.array([0.4, 0.9])


def record(name, find, args=args):
    """Record a solution, its success, a batch of solutions, and derivatives by the arguments in both modes."""

    @jax.jit
    def ask(args):
        solution = find(args)
        rows = jax.vmap(lambda a: find(a).value)(jnp.stack([args, args + 0.1]))
        tangent = jax.jvp(lambda a: find(a).value, (args,), (jnp.ones_like(args),))[1]
        gradient = jax.grad(lambda a: sum(jnp.sum(x) for x in jax.tree.leaves(find(a).value)))(args)
        return solution.value, solution.result == optx.RESULTS.successful, rows, tangent, gradient

    surface.record(name, ask(args))


def equations(y, args):
    return {"first": jnp.tanh(y[0]) + 2 * y[1] - args[0], "second": y[0] + 0.2 * y[1] ** 3 - args[1]}


# Roots.
guess = jnp.array([0.5, 0.1])
solvers = {
    "Newton": optx.Newton(**tight), "Chord": optx.Chord(**tight, kappa=1e-4), "Dogleg": optx.Dogleg(**tight),
    "Newton of other norms": optx.Newton(**tight, norm=optx.rms_norm, linear_solver=lx.QR()),
    "BestSoFarRootFinder": optx.BestSoFarRootFinder(optx.Newton(**tight)),
    "LevenbergMarquardt": optx.LevenbergMarquardt(**tight),
}
for name, solver in solvers.items():
    record(f"root by {name}", lambda a, solver=solver: optx.root_find(equations, solver, guess, a, max_steps=500))
interval = {"lower": jnp.array(-1.0), "upper": jnp.array(2.0)}
for flip in ("detect", False):
    bisection = optx.Bisection(rtol=1e-10, atol=1e-10, flip=flip)
    record(f"root by Bisection {flip}", lambda a, bisection=bisection: optx.root_find(
        lambda y, a: y**3 + y - jnp.sum(a), bisection, jnp.array(0.1), a, options=interval))
narrow = {"lower": jnp.array(-0.1), "upper": jnp.array(0.1)}
expanding = optx.Bisection(rtol=1e-10, atol=1e-10, expand_if_necessary=True)
record("root by Bisection expanding", lambda a: optx.root_find(
    lambda y, a: y**3 + y - jnp.sum(a), expanding, jnp.array(0.1), a, options=narrow))
surface.record_error("Bisection without a change of sign", "root", lambda: optx.root_find(
    lambda y, a: y**2 + 1, optx.Bisection(**tight), jnp.array(0.1), options=interval))
bounded = optx.root_find(
    lambda y, a: y**2 - 2, optx.Newton(**tight), jnp.array(1.0), options={"lower": 0.0, "upper": 3.0}
)
surface.record("root within bounds", bounded.value)
parents = (optx.AbstractRootFinder, optx.AbstractIterativeSolver)
surface.record("classes of root finders", [isinstance(optx.Newton(**tight), parent) for parent in parents])

# Fixed points.


def contraction(y, args):
    return {"x": jnp.cos(y["x"]) * 0.5 + args[0], "y": 0.3 * jnp.sin(y["x"]) + args[1]}


start = {"x": jnp.array(0.1), "y": jnp.array(0.2)}
fixed = {
    "FixedPointIteration": optx.FixedPointIteration(**tight),
    "FixedPointIteration damped": optx.FixedPointIteration(**tight, damp=0.2, norm=optx.two_norm),
    "BestSoFarFixedPoint": optx.BestSoFarFixedPoint(optx.FixedPointIteration(**tight)),
    "Newton": optx.Newton(**tight), "GaussNewton": optx.GaussNewton(**tight),
}
for name, solver in fixed.items():
    record(f"fixed point by {name}", lambda a, solver=solver: optx.fixed_point(contraction, solver, start, a))
assert isinstance(fixed["FixedPointIteration"], optx.AbstractFixedPointSolver)
unrolled = optx.RecursiveCheckpointAdjoint()
loop = optx.FixedPointIteration(**tight)
surface.record("fixed point, unrolled", jax.jit(jax.grad(lambda a: optx.fixed_point(
    contraction, loop, start, a, adjoint=unrolled, max_steps=64).value["y"]))(args))
implicit = optx.ImplicitAdjoint(linear_solver=lx.GMRES(1e-12, 1e-12))
surface.record("fixed point, implicit", jax.jit(jax.grad(lambda a: optx.fixed_point(
    contraction, loop, start, a, adjoint=implicit).value["y"]))(args))

# Least squares.
times = jnp.linspace(0.0, 2.0, 12)
data = 1.3 * jnp.exp(-0.7 * times) + 0.05 * jnp.sin(9 * times)


def residuals(y, args):
    return (y["scale"] * jnp.exp(-y["rate"] * times) - data, args * y["rate"])


squares = {
    "GaussNewton": optx.GaussNewton(**tight),
    "GaussNewton of QR": optx.GaussNewton(**tight, linear_solver=lx.QR()),
    "LevenbergMarquardt": optx.LevenbergMarquardt(**tight),
    "IndirectLevenbergMarquardt": optx.IndirectLevenbergMarquardt(**tight),
    "Dogleg": optx.Dogleg(**tight),
    "BestSoFarLeastSquares": optx.BestSoFarLeastSquares(optx.LevenbergMarquardt(**tight)),
}


class Mixed(optx.AbstractGaussNewton):
    rtol: float
    atol: float
    descent: optx.AbstractDescent
    norm: object = optx.max_norm
    search: optx.AbstractSearch = optx.LinearTrustRegion()
    verbose: object = eqx.field(default=lambda *_, **__: None)


descents = (optx.DoglegDescent(), optx.DampedNewtonDescent(), optx.IndirectDampedNewtonDescent())
for descent in descents:
    squares[f"AbstractGaussNewton {type(descent).__name__}"] = Mixed(**tight, descent=descent)
unknowns = {"scale": jnp.array(1.0), "rate": jnp.array(0.5)}
for name, solver in squares.items():
    record(f"least squares by {name}", lambda a, solver=solver: optx.least_squares(
        residuals, solver, unknowns, a, max_steps=3000), jnp.array(0.1))
assert isinstance(squares["GaussNewton"], optx.AbstractLeastSquaresSolver)
backward = optx.least_squares(
    residuals, optx.LevenbergMarquardt(**tight), unknowns, jnp.array(0.1), options={"jac": "bwd"}
)
surface.record("least squares, backward Jacobians", backward.value)
norms = [norm({"a": args, "b": -args}) for norm in (optx.max_norm, optx.rms_norm, optx.two_norm)]
surface.record("norms", norms)

# Failures.
surface.record_error("Newton without a root", "onlinear", eqx.filter_jit(
    lambda: optx.root_find(lambda y, a: y**2 + 1.0, optx.Newton(**tight), jnp.array(0.3), max_steps=20)))
diverging = optx.fixed_point(lambda y, a: 2 * y + 1, loop, jnp.array(1.0), max_steps=10, throw=False)
surface.record(
    "diverging", [diverging.value, diverging.stats["num_steps"], diverging.result == optx.RESULTS.successful]
)
surface.record_error("diverging fails", "maximum number of steps", lambda: optx.fixed_point(
    lambda y, a: 2 * y + 1, loop, jnp.array(1.0), max_steps=10))
surface.record_error("fixed point of another structure", "structure", lambda: optx.fixed_point(
    lambda y, a: (y, y), loop, jnp.array(1.0)))

surface.finish(__file__, {"optx": optx}, {})
