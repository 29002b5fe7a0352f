"""What the programs over lineax record of each of its solvers."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx


def solve_and_differentiate(solver, operator, vector, options=None):
    """Return a solution, its derivatives in both modes, a batch of solutions, and the solver's numbers."""

    def solve(operator, v):
        return lx.linear_solve(operator, v, solver, options=options).value

    @eqx.filter_jit
    def ask(operator, v):
        solution = lx.linear_solve(operator, v, solver, options=options)
        primals, tangents = (operator, v), (jax.tree.map(jnp.cos, eqx.filter(operator, eqx.is_array)), jnp.sin(v))
        value, pull = eqx.filter_vjp(solve, operator, v)
        rows = jax.vmap(solve, (None, 0))(operator, jnp.stack([v, 2 * v, v + 1]))
        numbers = {name: x for name, x in solution.stats.items() if eqx.is_array(x) and x.ndim == 0}
        succeeded = solution.result == lx.RESULTS.successful
        inverse = lx.invert(operator, solver, options=options).mv(v)
        return solution.value, eqx.filter_jvp(solve, primals, tangents), pull(value), rows, numbers, succeeded, inverse

    return ask(operator, vector)
