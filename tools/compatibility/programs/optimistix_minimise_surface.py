"""Each minimiser, descent and search of optimistix, with derivatives of the minima."""

import equinox as eqx
import jax
import jax.numpy as jnp
import optax
import optimistix as optx
import optimistix.compat
from surface import Surface

jax.config.update("jax_enable_x64", True)
# Minima are found where gradients are below 1e-9, and the Hessians are of order one.
surface = Surface(1e-6)


def bowl(y, args):
    """A convex function whose minimum depends on `args`."""
    return jnp.sum((y["a"] - args) ** 2) + 0.1 * jnp.sum(y["a"] ** 4) + 0.5 * (y["b"] - jnp.sum(y["a"])) ** 2


start = {"a": jnp.array([1.0, -0.5]), "b": jnp.array(0.3)}
centre = jnp.array([0.4, 0.9])


def use(name, solver, function=bowl, y0=start, args=centre, max_steps=2000, **options):
    """Record a minimum, its value and success, and its derivatives by the arguments, in both modes."""

    def find(args):
        return optx.minimise(function, solver, y0, args, max_steps=max_steps, **options)

    @jax.jit
    def ask(args):
        solution = find(args)
        rows = jax.vmap(lambda a: find(a).value)(jnp.stack([args, args + 0.1]))
        tangent = jax.jvp(lambda a: find(a).value, (args,), (jnp.ones_like(args),))[1]
        gradient = jax.grad(lambda a: sum(jnp.sum(x) for x in jax.tree.leaves(find(a).value)))(args)
        return solution.value, solution.result == optx.RESULTS.successful, rows, tangent, gradient

    surface.record(name, ask(args))


tight = {"rtol": 1e-9, "atol": 1e-9}
use("BFGS", optx.BFGS(**tight))
use("BFGS of Hessians", optx.BFGS(**tight, use_inverse=False))
use("DFP", optx.DFP(**tight, norm=optx.rms_norm))
use("LBFGS", optx.LBFGS(**tight, history_length=4))
use("GradientDescent", optx.GradientDescent(0.1, **tight, norm=optx.two_norm))
for method in (optx.polak_ribiere, optx.fletcher_reeves, optx.hestenes_stiefel, optx.dai_yuan):
    use(f"NonlinearCG {method.__name__}", optx.NonlinearCG(**tight, method=method))
use("OptaxMinimiser", optx.OptaxMinimiser(optax.adam(3e-2), rtol=1e-10, atol=1e-10, norm=optx.max_norm))
use("NelderMead", optx.NelderMead(rtol=1e-10, atol=1e-10))
use("BestSoFarMinimiser", optx.BestSoFarMinimiser(optx.BFGS(**tight)))
golden = {"lower": jnp.array(-1.0), "upper": jnp.array(2.0)}
use(
    "GoldenSearch", optx.GoldenSearch(rtol=1e-9, atol=1e-9), lambda y, a: (y - a) ** 2 + 0.1 * y**4, jnp.array(0.3),
    jnp.array(0.7), options=golden,
)
unrolled = optx.RecursiveCheckpointAdjoint(checkpoints=20)
forward = jax.jit(jax.grad(lambda a: optx.minimise(
    lambda y, a: jnp.sum((y - a) ** 2), optx.GradientDescent(0.2, **tight), jnp.zeros(2), a, max_steps=64,
    adjoint=unrolled, throw=False,
).value.sum()))
surface.record("RecursiveCheckpointAdjoint", forward(centre))
assert isinstance(unrolled, optx.AbstractAdjoint)
surface.record("least squares by a minimiser", optx.least_squares(
    lambda y, a: [y - a, y**2], optx.BFGS(**tight), jnp.ones(2), centre).value)
surface.record("roots by a minimiser", optx.root_find(
    lambda y, a: jnp.exp(y) - a - 1, optx.BFGS(rtol=1e-10, atol=1e-12), jnp.ones(2), centre).value)


# Solvers made of parts.
class Quasi(optx.AbstractBFGS):
    rtol: float
    atol: float
    norm: object = optx.max_norm
    use_inverse: bool = True
    descent: optx.AbstractDescent = optx.NewtonDescent()
    search: optx.AbstractSearch = optx.BacktrackingArmijo(decrease_factor=0.4, slope=0.05)
    verbose: object = eqx.field(default=lambda *_, **__: None)


class QuasiDFP(optx.AbstractDFP):
    rtol: float
    atol: float
    norm: object = optx.max_norm
    use_inverse: bool = False
    descent: optx.AbstractDescent = optx.DampedNewtonDescent()
    search: optx.AbstractSearch = optx.ClassicalTrustRegion(low_cutoff=0.02)
    verbose: object = eqx.field(default=lambda *_, **__: None)


class Limited(optx.AbstractLBFGS):
    rtol: float
    atol: float
    norm: object = optx.max_norm
    use_inverse: bool = True
    history_length: int = 3
    descent: optx.AbstractDescent = optx.NewtonDescent()
    search: optx.AbstractSearch = optx.LearningRate(0.5)
    verbose: object = eqx.field(default=lambda *_, **__: None)


class Descent(optx.AbstractGradientDescent):
    rtol: float
    atol: float
    descent: optx.AbstractDescent
    search: optx.AbstractSearch
    norm: object = optx.max_norm


use("AbstractBFGS", Quasi(**tight))
use("AbstractDFP", QuasiDFP(**tight))
use("AbstractLBFGS", Limited(**tight))
steepest = optx.SteepestDescent(norm=None)
searches = (optx.LinearTrustRegion(high_constant=2.0), optx.BacktrackingArmijo(step_init=0.5), optx.LearningRate(0.1))
for search in searches:
    use(f"AbstractGradientDescent {type(search).__name__}", Descent(**tight, descent=steepest, search=search))
conjugate = optx.NonlinearCGDescent(optx.dai_yuan)
use("AbstractGradientDescent of conjugates", Descent(**tight, descent=conjugate, search=optx.BacktrackingArmijo()))
parents = (optx.AbstractMinimiser, optx.AbstractQuasiNewton, optx.AbstractIterativeSolver)
surface.record("classes", [issubclass(Quasi, parent) for parent in parents])
information = optx.FunctionInfo.EvalGrad(jnp.array(2.0), start)
direction = jax.tree.map(jnp.ones_like, start)
surface.record("FunctionInfo", [information.as_min(), information.compute_grad_dot(direction)])

# By steps, failures and the interface of jax.scipy.
solver, options = optx.BFGS(**tight), {}
state = solver.init(lambda y, a: (bowl(y, a), None), start, centre, options, *[
    jax.eval_shape(lambda: jnp.zeros(())), None, frozenset()])
step = eqx.filter_jit(
    lambda y, state: solver.step(lambda y, a: (bowl(y, a), None), y, centre, options, state, frozenset())
)
y = start
for _ in range(5):
    y, state, _ = step(y, state)
surface.record("steps", [y, solver.terminate(None, y, centre, options, state, frozenset())[0]])
with_aux = optx.minimise(lambda y, a: (bowl(y, a), jnp.sum(y["a"])), optx.BFGS(**tight), start, centre, has_aux=True)
assert isinstance(with_aux, optx.Solution)
surface.record("auxiliary output", with_aux.aux)
hasty = eqx.filter_jit(lambda: optx.minimise(bowl, optx.GradientDescent(1e-3, **tight), start, centre, max_steps=5))
surface.record_error("too few steps", "maximum number of steps", hasty)
silent = optx.minimise(bowl, optx.GradientDescent(1e-3, **tight), start, centre, max_steps=5, throw=False)
reached = silent.result == optx.RESULTS.nonlinear_max_steps_reached
surface.record("too few steps, silently", [silent.value, reached, silent.stats["num_steps"]])
surface.record("result", " ".join(optx.RESULTS[silent.result].split()))
surface.record_error("objective of a vector", "scalar", optx.minimise, lambda y, a: y, optx.BFGS(**tight), jnp.ones(2))
surface.record_error(
    "not finite", "onlinear", optx.minimise, lambda y, a: jnp.nan * y, optx.BFGS(**tight), jnp.array(1.0)
)
given = optimistix.compat.minimize(
    lambda y, a: jnp.sum((y - a) ** 2) ** 2 + y[0], jnp.ones(2), (centre,), method="BFGS"
)
surface.record("compat.minimize", [given.x, given.fun, given.success])

surface.finish(__file__, {"optx": optx}, {})
