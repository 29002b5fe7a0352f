"""The direct solvers of lineax and those that it selects, with their derivatives, states and failures."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from linear_solutions import solve_and_differentiate
from surface import Surface

jax.config.update("jax_enable_x64", True)
# The condition numbers are below 100.
surface = Surface(1e-8)
keys = iter(jax.random.split(jax.random.key(0), 100))


def draw(*shape):
    return jax.random.normal(next(keys), shape)


matrix = draw(4, 4) + 4 * jnp.eye(4)
definite = matrix @ matrix.T
vector = draw(4)
bands = (draw(4) + 4, draw(3), draw(3))
dense, spd = lx.MatrixLinearOperator(matrix), lx.MatrixLinearOperator(definite, lx.positive_semidefinite_tag)
surface.record("LU", solve_and_differentiate(lx.LU(), dense, vector))
surface.record("QR", solve_and_differentiate(lx.QR(), dense, vector))
surface.record("QR tall", solve_and_differentiate(lx.QR(), lx.MatrixLinearOperator(draw(6, 3)), draw(6)))
surface.record("QR wide", solve_and_differentiate(lx.QR(), lx.MatrixLinearOperator(draw(3, 5)), draw(3)))
surface.record("SVD", solve_and_differentiate(lx.SVD(), dense, vector))
cut = lx.MatrixLinearOperator(jnp.diag(jnp.array([2.0, 1.0, 1e-3])))
surface.record("SVD of a cut", solve_and_differentiate(lx.SVD(rcond=0.05), cut, draw(3)))
surface.record(
    "SVD of low rank", solve_and_differentiate(lx.SVD(), lx.MatrixLinearOperator(jnp.outer(draw(4), draw(3))), draw(4))
)
surface.record("Cholesky", solve_and_differentiate(lx.Cholesky(), spd, vector))
surface.record(
    "Cholesky negative",
    solve_and_differentiate(lx.Cholesky(), lx.MatrixLinearOperator(-definite, lx.negative_semidefinite_tag), vector),
)
surface.record("Diagonal", solve_and_differentiate(lx.Diagonal(), lx.DiagonalLinearOperator(draw(4)), vector))
surface.record(
    "Diagonal well posed",
    solve_and_differentiate(lx.Diagonal(well_posed=True), lx.DiagonalLinearOperator(draw(4)), vector),
)
surface.record(
    "Diagonal of zeros",
    solve_and_differentiate(lx.Diagonal(), lx.DiagonalLinearOperator(jnp.array([2.0, 0.0])), draw(2)),
)
lower = lx.MatrixLinearOperator(jnp.tril(matrix), lx.lower_triangular_tag)
surface.record("Triangular", solve_and_differentiate(lx.Triangular(), lower, vector))
unit = lx.MatrixLinearOperator(jnp.triu(draw(4, 4), 1) + jnp.eye(4), (lx.upper_triangular_tag, lx.unit_diagonal_tag))
surface.record("Triangular unit", solve_and_differentiate(lx.Triangular(), unit, vector))
surface.record("Tridiagonal", solve_and_differentiate(lx.Tridiagonal(), lx.TridiagonalLinearOperator(*bands), vector))
for well_posed in (True, False, None):
    auto = lx.AutoLinearSolver(well_posed)
    for name, operator in {"dense": dense, "definite": spd, "diagonal": lx.DiagonalLinearOperator(vector)}.items():
        surface.record(f"AutoLinearSolver {well_posed} {name}", lx.linear_solve(operator, draw(4), auto).value)
    surface.record(f"AutoLinearSolver {well_posed} selects", " ".join(
        type(auto.select_solver(o)).__name__ for o in (dense, spd, lower, lx.TridiagonalLinearOperator(*bands))
    ))
jacobian = lx.JacobianLinearOperator(lambda x, args: jnp.sin(matrix @ x) * args, vector / 10, 2.0)
surface.record("AutoLinearSolver of a Jacobian", solve_and_differentiate(lx.AutoLinearSolver(None), jacobian, draw(4)))
surface.record("complex LU", jax.jit(
    lambda v: lx.linear_solve(lx.MatrixLinearOperator(matrix + 1j * definite), v).value)(vector + 1j))
trees = lx.PyTreeLinearOperator({"a": {"a": matrix[:2, :2], "b": draw(2)}, "b": {"a": draw(2), "b": draw() + 9}}, {
    "a": jax.ShapeDtypeStruct((2,), jnp.float64), "b": jax.ShapeDtypeStruct((), jnp.float64)})
surface.record("solution of a tree", eqx.filter_jit(lx.linear_solve)(trees, {"a": draw(2), "b": draw()}).value)
states = [solver.init(operator, {}) for solver, operator in ((lx.LU(), dense), (lx.Cholesky(), spd), (lx.QR(), dense))]
for solver, operator, state in zip((lx.LU(), lx.Cholesky(), lx.QR()), (dense, spd, dense), states, strict=True):
    assert isinstance(solver, lx.AbstractLinearSolver)
    name = type(solver).__name__
    surface.record(f"state of {name}", lx.linear_solve(operator, vector, solver, state=state).value)
    transposed, options = solver.transpose(state, {})
    surface.record(f"state of {name} transposed", solver.compute(transposed, vector, options)[0])
    conjugated, options = solver.conj(state, {})
    surface.record(f"state of {name} conjugated", solver.compute(conjugated, vector, options)[0])
    assumed = [bool(solver.assume_full_rank())]
    surface.record(f"assumptions of {name}", assumed)


def solve_outer(v):
    return jnp.sum(lx.linear_solve(lx.MatrixLinearOperator(jnp.outer(v, v) + matrix), v).value)


surface.record("second derivative", jax.jit(jax.hessian(solve_outer))(vector))
solve_each = eqx.filter_jit(eqx.filter_vmap(lambda m, v: lx.linear_solve(lx.MatrixLinearOperator(m), v).value))
surface.record("solutions in vmap", solve_each(draw(3, 2, 2), draw(3, 2)))
surface.record("solution in scan", jax.lax.scan(
    lambda v, _: (lx.linear_solve(spd, v, lx.CG(1e-12, 1e-12)).value, jnp.sum(v)), vector, length=3))
inverse = lx.invert(dense)
surface.record("invert", [inverse.mv(vector), inverse.as_matrix(), (inverse @ dense).mv(vector)])

# Failures.
singular = lx.MatrixLinearOperator(jnp.ones((3, 3)))
ones = jnp.array([1.0, 2.0, 3.0])
surface.record_error("singular", "non-finite", eqx.filter_jit(lx.linear_solve), singular, ones)
surface.record_error("singular outside jit", "non-finite", lx.linear_solve, singular, ones)
hasty = lx.CG(1e-12, 1e-12, max_steps=1)
surface.record_error("too few steps", "maximum number", lambda: lx.linear_solve(spd, vector, hasty))
silent = eqx.filter_jit(lambda: lx.linear_solve(spd, vector, hasty, throw=False))()
assert isinstance(silent, lx.Solution)
surface.record(
    "too few steps, silently", [silent.value, silent.result == lx.RESULTS.max_steps_reached, silent.stats["num_steps"]]
)
surface.record("results", " ".join(lx.RESULTS[silent.result].split()))
wide = lx.MatrixLinearOperator(draw(3, 4))
surface.record_error("wide and well posed", "square", lx.linear_solve, wide, draw(3), lx.AutoLinearSolver(True))
surface.record_error("LU of a wide operator", "square", lx.linear_solve, wide, draw(3), lx.LU())
surface.record_error("Cholesky of any operator", "definite", lx.linear_solve, dense, vector, lx.Cholesky())
surface.record_error("CG of any operator", "definite", lx.linear_solve, dense, vector, lx.CG(1e-6, 1e-6))
surface.record_error("Triangular of any operator", "triangular", lx.linear_solve, dense, vector, lx.Triangular())
surface.record_error("Diagonal of any operator", "diagonal", lx.linear_solve, dense, vector, lx.Diagonal())
surface.record_error("Tridiagonal of any operator", "tridiagonal", lx.linear_solve, dense, vector, lx.Tridiagonal())
surface.record_error("vector of another structure", "structure", lx.linear_solve, dense, draw(3))

surface.finish(__file__, {"lx": lx}, {})
