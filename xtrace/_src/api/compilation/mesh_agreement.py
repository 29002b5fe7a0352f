"""The check that the operands of each operation are on compatible meshes.

Meshes without explicit axes may differ. If one mesh has explicit axes, all operands must be on it: otherwise the type
of the result would depend on the operand that determines it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from xtrace._src.algebra.resharding import reshard_p
from xtrace._src.core.diagnostics.positions import describe
from xtrace._src.core.errors import ShardingTypeError
from xtrace._src.core.jaxprs.ir import Atom, ClosedJaxpr, Jaxpr, JaxprEqn, Literal
from xtrace._src.core.shardings.mesh import AbstractMesh, context_abstract_mesh, context_mesh
from xtrace._src.core.shardings.sharding_rules import different_meshes
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.ops.collectives.shard_map import shard_map_p
from xtrace._src.ops.shardings.device_put import device_put_p
from xtrace._src.ops.shardings.sharding_constraints import sharding_constraint_p

_Meshes = Mapping[Any, AbstractMesh | None]
_Sources = Mapping[Any, Atom]


def check_meshes(
    function: str, jaxpr: Jaxpr, shardings: Sequence[Any], constants: Sequence[Any],
    others: Sequence[AbstractMesh], names: Callable[[], Sequence[str]] | None, of_user: bool,
) -> list[AbstractMesh | None]:
    """Return the mesh of each result of a program; None for the program's own mesh, and for an unknown one.

    Raises ShardingTypeError if an operation has operands on incompatible meshes.

    shardings: the shardings of the inputs, None for unknown ones. constants: the shardings of the arrays that the
    program closes over, likewise. others: the meshes in the parameters of equations. names: returns the names of the
    inputs, for messages. of_user: whether a user calls the program; its inputs must then be on the mesh in force.
    (This is false for derivatives of `explicit_axes`.)
    """
    pairs = [*zip(jaxpr.invars, shardings, strict=True), *zip(jaxpr.constvars, constants, strict=True)]
    known = {v: _get_mesh(s) for v, s in pairs}
    axes = context_abstract_mesh()
    context = axes if of_user and not axes.empty and axes is context_mesh().abstract_mesh else None
    meshes = {mesh for mesh in (*known.values(), *others, context) if mesh is not None}
    if len(meshes) < 2 or not any(mesh.explicit_axes for mesh in meshes):
        return [None] * len(jaxpr.outvars)
    shown = dict(zip(jaxpr.invars, names(), strict=True)) if names is not None else {}
    return _Check(function, context, known, shown).results(jaxpr, known)


def _get_mesh(sharding: Any) -> AbstractMesh | None:
    return sharding.mesh.abstract_mesh if isinstance(sharding, NamedSharding) else None


class _Check:
    """The check of one program: the mesh in force, the meshes of the program's inputs, and the inputs' names."""

    def __init__(self, function: str, context: AbstractMesh | None, inputs: _Meshes, names: Mapping[Any, str]) -> None:
        self.function, self.context, self.inputs, self.names = function, context, inputs, names

    def results(self, jaxpr: Jaxpr, known: _Meshes, sources: _Sources | None = None) -> list[Any]:
        """Return the mesh of each result of a jaxpr, or None.

        known: the meshes of the inputs. sources: maps inputs of this jaxpr to inputs of the whole program.
        """
        meshes = dict(known)
        sources = {v: v for v in self.inputs} if sources is None else sources
        for equation in jaxpr.eqns:
            operands = [_get_atom_mesh(x, meshes) for x in equation.invars]
            of_results = self._check_equation(equation, operands, sources)
            for out, mesh in zip(equation.outvars, of_results, strict=True):
                meshes[out] = _get_mesh(out.aval.explicit_sharding) or mesh
        return [_get_atom_mesh(x, meshes) for x in jaxpr.outvars]

    def _check_equation(
        self, equation: JaxprEqn, operands: list[AbstractMesh | None], sources: _Sources
    ) -> list[AbstractMesh | None]:
        """Return the mesh of each result of an equation."""
        named = _named_meshes(equation, operands)
        if named is not None:
            return named
        first = next((mesh for mesh in operands if mesh is not None), None)
        results = [first] * len(equation.outvars)
        if not equation.primitive.holds_jaxprs:
            self._check_operands(equation, operands, sources)
            return results
        for inner, places in _inner_jaxprs(equation):
            pairs = list(zip(inner.invars, places, strict=True))
            known = {v: operands[i] for v, i in pairs}
            outer = {v: sources[equation.invars[i]] for v, i in pairs if equation.invars[i] in sources}
            returned = self.results(inner, known, outer)
            if len(returned) == len(results):
                results = returned
        return results

    def _check_operands(self, equation: JaxprEqn, operands: list[AbstractMesh | None], sources: _Sources) -> None:
        placed = [(x, mesh) for x, mesh in zip(equation.invars, operands, strict=True) if mesh is not None]
        shown = [(f"{self._name(x, sources)}{x.aval.str_short(short_dtypes=False)}", mesh) for x, mesh in placed]
        meshes = {mesh for _, mesh in shown}
        context, name = self.context, equation.primitive.name
        elsewhere = [
            (text, mesh) for (text, mesh), (x, _) in zip(shown, placed, strict=True)
            if context is not None and mesh is not context and x in sources
            and (mesh.explicit_axes or context.explicit_axes)
        ]
        if len(meshes) > 1 and any(mesh.explicit_axes for mesh in meshes):
            error = different_meshes(name, shown)
        elif context is not None and elsewhere:
            text, mesh = elsewhere[0]
            error = ShardingTypeError(
                f"{name}: the context mesh {context.update(abstract_device=None)} should match the aval mesh "
                f"{mesh.update(abstract_device=None)}, that of {text}. Move the array with "
                "xtrace.device_put(x, xtrace.P(...)), or put its own mesh in force with xtrace.set_mesh"
            )
        else:
            return
        if equation.source is not None:
            error.add_note(f"operation {name} in {self.function}, called at {describe(equation.source)}")
        raise error

    def _name(self, atom: Atom, sources: _Sources) -> str:
        name = self.names.get(sources[atom]) if atom in sources else None
        return f"argument {name} of {self.function}, " if name is not None else ""


def _get_atom_mesh(atom: Atom, meshes: _Meshes) -> AbstractMesh | None:
    if isinstance(atom, Literal):
        return None
    return _get_mesh(atom.aval.explicit_sharding) or meshes.get(atom)


def _named_meshes(equation: JaxprEqn, operands: Sequence[AbstractMesh | None]) -> list[AbstractMesh | None] | None:
    """Return the meshes of the results of an operation that moves its operands; None for all other operations."""
    parameters = equation.params
    if equation.primitive is sharding_constraint_p:
        return [_get_mesh(parameters["sharding"])]
    if equation.primitive is reshard_p:
        # `auto_axes` and `explicit_axes` change the types of the axes in force.
        return [None]
    if equation.primitive is device_put_p:
        targets = zip(parameters["devices"], operands, strict=True)
        return [mesh if target is None else _get_mesh(target) for target, mesh in targets]
    if equation.primitive is shard_map_p:
        return [parameters["mesh"].abstract_mesh] * len(equation.outvars)
    return None


def _inner_jaxprs(equation: JaxprEqn) -> Iterator[tuple[Jaxpr, Sequence[int]]]:
    """Yield the jaxprs that an equation applies to its operands, each with the positions of its operands."""
    count, parameters = len(equation.invars), equation.params
    for key, value in parameters.items():
        for one in value if isinstance(value, (tuple, list)) else (value,):
            inner = one.jaxpr if isinstance(one, ClosedJaxpr) else one
            if not isinstance(inner, Jaxpr):
                continue
            # The arguments are the last operands, after the index of a branch or the constants of another jaxpr.
            places = list(range(count - len(inner.invars), count))
            if key == "cond_jaxpr":
                constants, others = parameters["cond_nconsts"], parameters["body_nconsts"]
                places = [*range(constants), *range(constants + others, count)]
            if len(places) == len(inner.invars) <= count and _fit(inner, [equation.invars[i] for i in places]):
                yield inner, places


def _fit(jaxpr: Jaxpr, operands: Sequence[Atom]) -> bool:
    """Whether a jaxpr takes operands of these types, or their elements along the first axis."""
    return all(
        v.aval.dtype == x.aval.dtype and v.aval.shape in (x.aval.shape, x.aval.shape[1:])
        for v, x in zip(jaxpr.invars, operands, strict=True)
    )
