"""Each operator, tag and property of lineax, under jit, grad and vmap."""

import equinox as eqx
import jax
import jax.numpy as jnp
import lineax as lx
from surface import Surface

jax.config.update("jax_enable_x64", True)
surface = Surface(1e-9)
keys = iter(jax.random.split(jax.random.key(0), 100))


def draw(*shape):
    return jax.random.normal(next(keys), shape)


matrix = draw(4, 4) + 4 * jnp.eye(4)
definite = matrix @ matrix.T
vector = draw(4)
four = jax.ShapeDtypeStruct((4,), jnp.float64)
predicates = (
    lx.is_symmetric, lx.is_diagonal, lx.is_tridiagonal, lx.has_unit_diagonal, lx.is_lower_triangular,
    lx.is_upper_triangular, lx.is_positive_semidefinite, lx.is_negative_semidefinite,
)


def use_operator(name, operator, v):
    """Record what an operator is asked: products, forms, properties, sizes and derivatives."""

    @eqx.filter_jit
    def ask(operator, v):
        out = operator.mv(v)
        answers = [
            out, operator.as_matrix(), operator.transpose().mv(jax.tree.map(jnp.ones_like, out)),
            operator.T.as_matrix(),
            lx.linearise(operator).mv(v), lx.materialise(operator).mv(v), lx.conj(operator).as_matrix(),
        ]
        if operator.in_size() == operator.out_size():
            answers += [lx.diagonal(operator), lx.tridiagonal(operator)]
        return answers

    surface.record(name, ask(operator, v))
    surface.record(f"{name} properties", [bool(predicate(operator)) for predicate in predicates])
    structures = (operator.in_structure(), operator.out_structure(), operator.in_size(), operator.out_size())
    surface.record(f"{name} structure", str(structures))

    def total(pair):
        operator, v = pair
        return sum(jnp.sum(jnp.sin(jnp.abs(x))) for x in jax.tree.leaves(operator.mv(v)))

    surface.record(f"{name} gradient", eqx.filter_jit(eqx.filter_grad(total))((operator, v)))


# Operators.
use_operator("MatrixLinearOperator", lx.MatrixLinearOperator(draw(3, 4)), vector)
use_operator("MatrixLinearOperator symmetric", lx.MatrixLinearOperator(definite, lx.symmetric_tag), vector)
tree = {"a": [draw(1, 2, 3), draw(1, 2, 2, 2)], "b": [draw(3), draw(2, 2)]}
structure = {"a": jax.ShapeDtypeStruct((1, 2), jnp.float64), "b": jax.ShapeDtypeStruct((), jnp.float64)}
use_operator("PyTreeLinearOperator", lx.PyTreeLinearOperator(tree, structure), [draw(3), draw(2, 2)])
use_operator("DiagonalLinearOperator", lx.DiagonalLinearOperator(draw(4)), vector)
use_operator("DiagonalLinearOperator of a tree", lx.DiagonalLinearOperator((draw(2), draw())), (draw(2), draw()))


def curved(x, args):
    return jnp.sin(matrix @ x) * args


for jac in (None, "fwd", "bwd"):
    use_operator(f"JacobianLinearOperator {jac}", lx.JacobianLinearOperator(curved, vector, 2.0, jac=jac), draw(4))
wide = lx.JacobianLinearOperator(lambda x, args: (jnp.sum(x["a"]) * x["b"]), {"a": vector, "b": draw(2)})
use_operator("JacobianLinearOperator of a tree", wide, {"a": draw(4), "b": draw(2)})
use_operator("FunctionLinearOperator", lx.FunctionLinearOperator(lambda x: jnp.cumsum(x)[1:], four), vector)
use_operator("IdentityLinearOperator", lx.IdentityLinearOperator(four), vector)
pair = (jax.ShapeDtypeStruct((2,), jnp.float64), jax.ShapeDtypeStruct((2, 1), jnp.float64))
use_operator("IdentityLinearOperator between structures", lx.IdentityLinearOperator(four, pair), vector)
bands = (draw(4) + 4, draw(3), draw(3))
use_operator("TridiagonalLinearOperator", lx.TridiagonalLinearOperator(*bands), vector)
use_operator("NegLinearOperator", -lx.MatrixLinearOperator(matrix), vector)
use_operator("AddLinearOperator", lx.MatrixLinearOperator(matrix) + lx.IdentityLinearOperator(four), vector)
use_operator("AddLinearOperator minus", lx.TridiagonalLinearOperator(*bands) - lx.IdentityLinearOperator(four), vector)
use_operator("MulLinearOperator", lx.MatrixLinearOperator(matrix) * 3.2, vector)
use_operator("MulLinearOperator by an array", jnp.array(2.0) * lx.DiagonalLinearOperator(draw(4)), vector)
use_operator("DivLinearOperator", lx.MatrixLinearOperator(matrix) / 2.5, vector)
composed = lx.MatrixLinearOperator(draw(3, 4)) @ lx.DiagonalLinearOperator(draw(4))
use_operator("ComposedLinearOperator", composed, vector)
use_operator("complex operator", lx.MatrixLinearOperator(matrix + 1j * definite), vector + 0j)
types = [
    lx.NegLinearOperator(composed), lx.AddLinearOperator(composed, composed), lx.MulLinearOperator(composed, 2.0),
    lx.DivLinearOperator(composed, 2.0), lx.ComposedLinearOperator(lx.MatrixLinearOperator(matrix), composed.T),
]
surface.record("operators by class", [operator.as_matrix() for operator in types])
surface.record("operators are operators", [isinstance(operator, lx.AbstractLinearOperator) for operator in types])
tangent = lx.TangentLinearOperator(lx.MatrixLinearOperator(matrix), lx.MatrixLinearOperator(definite))
surface.record("TangentLinearOperator", jax.jit(lambda v: tangent.mv(v))(vector))
surface.record("TangentLinearOperator transpose", tangent.transpose().as_matrix())
batched = jax.vmap(lambda m, v: lx.MatrixLinearOperator(m).T.mv(v))
surface.record("operators in vmap", batched(draw(3, 2, 2), draw(3, 2)))
surface.record_error("wrong vector", "contracting", lx.MatrixLinearOperator(matrix).mv, draw(3))
surface.record_error("wrong sum", "structure", lambda: composed + lx.IdentityLinearOperator(four))
surface.record_error("wrong composition", "structure", lambda: composed @ composed)
surface.record_error("matrix of rank three", "2-dimensional", lx.MatrixLinearOperator, draw(2, 2, 2))
surface.record_error("symmetric and wide", "must have matching", lx.MatrixLinearOperator, draw(2, 3), lx.symmetric_tag)
surface.record_error("wrong bands", "consistent size", lx.TridiagonalLinearOperator, draw(3), draw(3), draw(2))
surface.record_error(
    "trees of other structures", "keys", lx.PyTreeLinearOperator, tree, {"a": four}
)

# Tags.
tags = {
    "symmetric": lx.symmetric_tag, "diagonal": lx.diagonal_tag, "tridiagonal": lx.tridiagonal_tag,
    "unit": lx.unit_diagonal_tag, "lower": lx.lower_triangular_tag, "upper": lx.upper_triangular_tag,
    "positive": lx.positive_semidefinite_tag, "negative": lx.negative_semidefinite_tag,
}
for name, tag in tags.items():
    tagged = lx.TaggedLinearOperator(lx.FunctionLinearOperator(lambda x: 2.0 * x, four), tag)
    surface.record(f"tag {name}", [bool(predicate(tagged)) for predicate in predicates])
    surface.record(f"tag {name} transposed", [bool(predicate(tagged.T)) for predicate in predicates])
    surface.record(f"tag {name} of functions", [
        tag in lx.transpose_tags(frozenset([tag])),
        *[bool(predicate(-tagged)) for predicate in predicates],
        *[bool(predicate(tagged * 2)) for predicate in predicates],
    ])
own = object()


@lx.transpose_tags_rules.append
def keep_own(given):
    return own if own in given else None


surface.record("transpose_tags_rules", [own in lx.transpose_tags(frozenset([own])), len(lx.transpose_tags_rules)])
surface.record_error("operator of no rule", "has not been implemented", lx.is_symmetric, 3)

surface.finish(__file__, {"lx": lx}, {})
