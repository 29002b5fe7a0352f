"""The iterative solvers of lineax, with their derivatives."""

import warnings

import jax
import jax.numpy as jnp
import lineax as lx
from linear_solutions import solve_and_differentiate
from surface import Surface

jax.config.update("jax_enable_x64", True)
# Iterative solvers stop at 1e-12, and the condition numbers are below 100.
surface = Surface(1e-8)
keys = iter(jax.random.split(jax.random.key(0), 100))


def draw(*shape):
    return jax.random.normal(next(keys), shape)


matrix = draw(4, 4) + 4 * jnp.eye(4)
definite = matrix @ matrix.T
vector = draw(4)
dense, spd = lx.MatrixLinearOperator(matrix), lx.MatrixLinearOperator(definite, lx.positive_semidefinite_tag)
surface.record("CG", solve_and_differentiate(lx.CG(rtol=1e-12, atol=1e-12), spd, vector))
surface.record(
    "CG stabilised", solve_and_differentiate(lx.CG(1e-12, 1e-12, stabilise_every=2, max_steps=50), spd, vector)
)
preconditioner = lx.DiagonalLinearOperator(1 / jnp.diag(definite)), lx.positive_semidefinite_tag
options = {"preconditioner": lx.TaggedLinearOperator(*preconditioner), "y0": jnp.ones(4)}
surface.record("CG preconditioned", solve_and_differentiate(lx.CG(1e-12, 1e-12), spd, vector, options=options))
surface.record("GMRES", solve_and_differentiate(lx.GMRES(rtol=1e-12, atol=1e-12), dense, vector))
surface.record(
    "GMRES restarted", solve_and_differentiate(lx.GMRES(1e-10, 1e-10, restart=3, stagnation_iters=50), dense, vector)
)
surface.record("BiCGStab", solve_and_differentiate(lx.BiCGStab(rtol=1e-12, atol=1e-12), dense, vector))
surface.record(
    "LSMR", solve_and_differentiate(lx.LSMR(rtol=1e-13, atol=1e-13), lx.MatrixLinearOperator(draw(6, 3)), draw(6))
)
surface.record(
    "LSMR wide", solve_and_differentiate(lx.LSMR(rtol=1e-13, atol=1e-13), lx.MatrixLinearOperator(draw(3, 5)), draw(3))
)
surface.record(
    "Normal", solve_and_differentiate(lx.Normal(lx.Cholesky()), lx.MatrixLinearOperator(draw(6, 3)), draw(6))
)
surface.record(
    "Normal of CG",
    solve_and_differentiate(lx.Normal(lx.CG(1e-13, 1e-13)), lx.MatrixLinearOperator(draw(3, 5)), draw(3)),
)
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    normal = lx.NormalCG(1e-13, 1e-13)
surface.record("NormalCG", solve_and_differentiate(normal, dense, vector))
surface.finish(__file__, {"lx": lx}, {})
