"""`shard_map`: a function mapped over the shards of arrays on a mesh."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence, Set
from typing import Any

from xtrace._src.algebra.varying import vary, vary_unreduced_cast
from xtrace._src.api.jit.jit import jit
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.callables import check_callable, function_name, positional_names, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.name_suggestions import suggest_name
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, DebugInfo
from xtrace._src.core.pytrees import key_paths, pytree
from xtrace._src.core.shardings.axis_names import name_tuple
from xtrace._src.core.shardings.mesh import BaseMesh, context_abstract_mesh, context_mesh, naming_mesh
from xtrace._src.core.shardings.partition_spec import UNCONSTRAINED, PartitionSpec, get_entry_axes, restrict_spec
from xtrace._src.core.shardings.shardings import NamedSharding, explicit_part
from xtrace._src.core.shardings.sums import Sums
from xtrace._src.core.tables import Table
from xtrace._src.core.trace import Tracer, base_trace, current_trace
from xtrace._src.ops.collectives.shard_map import (
    bind_shard_map,
    count_shards,
    manual_axes_in_scope,
    named_axes,
    shard_aval,
)
from xtrace._src.ops.references.binding import check_results, unwrap, wrap
from xtrace._src.transforms.jaxpr_transforms import stage_to_jaxpr


class _Infer:
    """Stands for specifications that the types of the arguments determine."""

    def __repr__(self) -> str:
        return "Infer"


Infer = _Infer()


def shard_map(
    f: Callable[..., Any] | None = None, /, *, out_specs: Any, in_specs: Any = Infer, mesh: Any = None,
    axis_names: Set[Any] = frozenset(), check_vma: bool = True,
) -> Callable[..., Any]:
    """Return `f` mapped over the shards of arrays: each device of a mesh calls it with its own shards.

    In `f`, collectives such as `lax.psum` name the axes of the mesh. Without `f`, a decorator is returned.

    Args:
        f: a function of shards; its arguments are positional.
        out_specs: a `PartitionSpec` for each result, or a tree prefix of them: how the shards are joined. Along an axis
            that it does not name, all devices must have the same result.
        in_specs: a `PartitionSpec` for each argument, or a tree prefix of them: how the argument is split. The default
            is the specification in the argument's type, on explicit axes.
        mesh: a `Mesh` or an `AbstractMesh`; None for the mesh of `set_mesh`.
        axis_names: the manual axes of the mesh in `f`; the compiler splits arrays along the others. An empty set means
            all axes.
        check_vma: whether types track the axes along which values vary; `out_specs` are checked against them.

    Returns:
        A function of whole arrays; its results are joined from the shards.

    Raises:
        TypeError: `f` is not callable, or a specification is no PartitionSpec.
        ValueError: a dimension is no multiple of its number of parts, an axis does not exist, or a result varies along
            an axis that its specification does not name.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("x",), axis_types=xtrace.sharding.AxisType.Auto)
        >>> total = lambda x: lax.psum(x.sum(), "x")
        >>> xtrace.shard_map(total, mesh=mesh, in_specs=xtrace.P("x"), out_specs=xtrace.P())(jnp.arange(4.0))
        Array(6., dtype=float32)
    """
    if f is None:
        return functools.partial(
            shard_map, out_specs=out_specs, in_specs=in_specs, mesh=mesh, axis_names=axis_names, check_vma=check_vma
        )
    check_callable(f)
    if isinstance(axis_names, str):
        raise TypeError(f"shard_map: axis_names must be a set of names, got {abbreviate(axis_names)}; write {{'x'}}")
    if mesh is not None and not isinstance(mesh, BaseMesh):
        raise TypeError(
            "shard_map requires a `xtrace.sharding.Mesh` or a `xtrace.sharding.AbstractMesh` as mesh, such as "
            f"make_mesh returns, but got {abbreviate(mesh)}"
        )
    _check_specs("in_specs", in_specs)
    _check_specs("out_specs", out_specs)
    manual = frozenset(name_tuple("shard_map", "axis_names", axis_names))
    call = ShardMap(f, out_specs, in_specs, mesh, manual, bool(check_vma))
    # Called eagerly, the whole computation is one program for each mesh.
    programs = Table(64)

    @wraps(f)
    @boundary
    def mapped(*args: Any, **kwargs: Any) -> Any:
        if kwargs:
            raise TypeError(
                f"shard_map: {function_name(f)} takes its arguments by position, got {', '.join(kwargs)} by name; bind "
                "others with functools.partial"
            )
        traced = current_trace.get() is not base_trace or any(isinstance(x, Tracer) for x in pytree.tree_leaves(args))
        if traced:
            return call.bind(*args)
        mesh = call.find_mesh()
        program = programs.get(mesh)
        if program is None:
            program = _make_program(call, mesh)
            programs.remember(mesh, program)
        return program(*args)

    return mapped


def _make_program(call: ShardMap, mesh: BaseMesh) -> Callable[..., Any]:
    """Return a mapped function as one program; mapped over the whole mesh, its results keep `out_specs` as given."""
    shardings = None
    if not call.axis_names or call.axis_names.issuperset(mesh.axis_names):
        try:
            shardings = pytree.tree_map(lambda spec: NamedSharding(mesh, spec), call.out_specs)
        except ValueError:
            pass  # The call says what is wrong with a specification.
    return jit(call.bind, out_shardings=shardings)


def _check_specs(argument: str, specs: Any) -> None:
    if specs is Infer and argument == "in_specs":
        return
    for leaf in pytree.tree_leaves(specs, is_leaf=lambda s: s is None):
        if leaf is not None and not isinstance(leaf, PartitionSpec):
            raise TypeError(
                f"shard_map {argument} argument must be a pytree of `xtrace.sharding.PartitionSpec` instances, such as "
                f"xtrace.P('x'), but got {abbreviate(leaf)}"
            )


class ShardMap:
    """A function with its specifications; `out_specs` may be a function of the structure of the result."""

    def __init__(
        self, function: Callable[..., Any], out_specs: Any, in_specs: Any, mesh: Any, axis_names: frozenset[Any],
        check_vma: bool,
    ) -> None:
        self.function, self.out_specs, self.in_specs, self.mesh = function, out_specs, in_specs, mesh
        self.axis_names, self.check_vma = axis_names, check_vma
        self.name = function_name(function)

    def bind(self, *args: Any) -> Any:
        """Trace the function on shards of the arguments, and bind the computation."""
        mesh = self.find_mesh()
        manual = self.axis_names or frozenset(mesh.axis_names) - frozenset(mesh.manual_axes)
        bound = sorted((self.axis_names or set(mesh.axis_names)).intersection(mesh.manual_axes), key=str)
        if bound:
            raise ValueError(
                f"shard_map: the mesh axes {bound} of {self.name} are manual already, by the shard_map around it; give "
                "axis_names= with others"
            )
        if mesh.manual_axes and self.mesh is not None and self.mesh.axis_types != mesh.axis_types:
            raise ValueError(
                f"shard_map: The context mesh {mesh} should match the mesh passed to shard_map, "
                f"{abbreviate(self.mesh)}, for {self.name}. Leave out mesh"
            )
        unknown = manual - set(mesh.axis_names)
        if unknown:
            raise ValueError(
                f"shard_map requires axis_names={sorted(map(str, manual))} to be a subset of mesh.axis_names="
                f"{mesh.axis_names}; for {abbreviate(min(unknown, key=str))} "
                f"{suggest_name(min(unknown, key=str), mesh.axis_names)}"
            )
        pairs, in_tree = pytree.tree_flatten_with_path(args)
        leaves, paths = unwrap([leaf for _, leaf in pairs]), [path for path, _ in pairs]
        avals = [aval_of(x) for x in leaves]
        specs = self._in_specs(args, avals, manual)
        for path, aval, spec in zip(paths, avals, specs, strict=True):
            self._check_input(len(args), path, aval, spec, mesh, manual)
        out: list[Any] = []

        def flat(*pieces: Any) -> Sequence[Any]:
            given = pytree.tree_unflatten(in_tree, wrap(pieces, types))
            result = self.function(*given)
            results, tree = pytree.tree_flatten(result)
            check_results(results, result, lambda: self.name)
            specs = self._out_specs(tree)
            out[:] = [tree, specs]
            return [self._as_result(x, s) for x, s in zip(results, specs, strict=True)]

        types = [shard_aval(a, mesh, s, manual, self.check_vma) for a, s in zip(avals, specs, strict=True)]
        with manual_axes_in_scope(mesh, manual, self.check_vma):
            closed = stage_to_jaxpr(flat, types, DebugInfo("shard_map", self.name, None, None))
        tree, out_specs = out
        self._check_closed_over(closed.consts, mesh, manual)
        self._check_results(closed, tree, out_specs, mesh, manual)
        results = bind_shard_map(closed, leaves, specs, out_specs, mesh, manual, self.check_vma)
        return pytree.tree_unflatten(tree, results)

    def _as_result(self, x: Any, spec: PartitionSpec) -> Any:
        """Return a result that varies along the axes of `spec`, with its unreduced axes."""
        x = vary(x, sorted(named_axes(spec), key=str))
        terms = tuple(sorted(spec.unreduced & aval_of(x).varying, key=str))
        return vary_unreduced_cast.bind_positional((x,), (terms,)) if terms else x

    def find_mesh(self) -> BaseMesh:
        """Return the mesh that the function is mapped over; ValueError if there is none."""
        outer = context_abstract_mesh()
        if outer.manual_axes and (self.mesh is None or self.mesh.shape_tuple == outer.shape_tuple):
            # Inside another shard_map.
            return outer
        mesh: BaseMesh = self.mesh if self.mesh is not None else context_mesh()
        if mesh.empty:
            mesh = naming_mesh()
        if mesh.empty:
            mesh = outer
        if mesh.empty:
            raise ValueError(
                "shard_map: The context mesh cannot be empty. Give mesh=, or write with xtrace.set_mesh(mesh):"
            )
        return mesh

    def _in_specs(
        self, args: tuple[Any, ...], avals: Sequence[ShapedArray], manual: frozenset[Any]
    ) -> list[PartitionSpec]:
        if self.in_specs is Infer:
            if any(a.explicit_sharding is None for a in avals):
                raise TypeError(
                    f"shard_map: in_specs of {self.name} are needed: the arguments are on no mesh with explicit axes, "
                    "whose types would say them"
                )
            return [restrict_spec(a.explicit_sharding.spec, a.ndim, manual) for a in avals]
        if self.in_specs is None:
            return [PartitionSpec()] * len(avals)
        try:
            return pytree.broadcast_prefix(self.in_specs, args)
        except ValueError as error:
            raise ValueError(
                f"shard_map in_specs, pytree structure error: a PartitionSpec, or a tree prefix of the arguments of "
                f"{self.name} is expected; {error}. Give one specification for all, or a tuple with one for each "
                "argument"
            ) from None

    def _check_input(
        self, count: int, path: Sequence[Any], aval: ShapedArray, spec: PartitionSpec, mesh: BaseMesh,
        manual: frozenset[Any],
    ) -> None:
        self._check_axes("in_specs", spec, manual)
        self._check_sums("in_specs", spec, mesh)
        self._check_length("in_specs", spec, aval, self._argument(count, path), "the argument")
        own = aval.explicit_sharding
        if manual.issuperset(mesh.axis_names):
            entries = explicit_part(NamedSharding(mesh, spec), aval.ndim)
            whole = PartitionSpec(*[None] * aval.ndim)
            if entries is not None and entries.spec != (whole if own is None else own.spec):
                raise ValueError(
                    f"in_specs passed to shard_map: {spec} of {self._argument(count, path)} does not match the specs "
                    f"of the input, {aval.str_short(True)}. Leave in_specs out, which takes those of the type, or call "
                    f"xtrace.reshard(x, {spec}) on it first"
                )
        for dimension, (size, parts) in enumerate(zip(aval.shape, count_shards(mesh, spec, aval.ndim), strict=True)):
            if size % parts:
                axes = get_entry_axes(spec[dimension])
                raise ValueError(
                    f"shard_map applied to the function '{self.name}' was given argument arrays with axis sizes that "
                    f"are not evenly divisible by the corresponding mesh axis sizes: in_specs {spec} of "
                    f"{self._argument(count, path)}, of shape {aval.shape}, split array axis {dimension} (of size "
                    f"{size}) over the mesh axes {axes} (of total size {parts}). Pad it to "
                    f"{-(-size // parts) * parts}, or write None for it in in_specs"
                )

    def _check_length(
        self, argument: str, spec: PartitionSpec, aval: ShapedArray, name: str, what: str, advice: str = "Write"
    ) -> None:
        if len(spec) > aval.ndim:
            raise ValueError(
                f"shard_map applied to the function '{self.name}' was given an {argument} entry which is too long to "
                f"be compatible with {name}: {spec} has length {len(spec)}, and {what} has the shape {aval.shape}, "
                f"which has rank {aval.ndim}. {advice} {spec.update(partitions=spec.partitions[: aval.ndim])}"
            )

    def _argument(self, count: int, path: Sequence[Any]) -> str:
        """Return the user's expression for an argument."""
        name = positional_names(self.function, count)[path[0].idx]
        return f"argument {name}{key_paths.keystr(path[1:])} of {self.name}"

    def _check_axes(self, argument: str, spec: PartitionSpec, manual: frozenset[Any]) -> None:
        unconstrained = [entry for entry in spec.partitions if entry is UNCONSTRAINED]
        for axis in [*named_axes(spec), *spec.unreduced, *spec.reduced, *unconstrained]:
            if axis not in manual:
                raise ValueError(
                    f"shard_map {argument} argument must refer to an axis marked as manual, of "
                    f"{sorted(map(str, manual))}, but {argument} refers to {abbreviate(axis)}: it is {spec} of "
                    f"{self.name}; {suggest_name(axis, sorted(manual, key=str))}"
                )

    def _check_sums(self, argument: str, spec: PartitionSpec, mesh: BaseMesh) -> None:
        for kind in ("unreduced", "reduced"):
            if getattr(spec, kind) and mesh.auto_axes:
                raise ValueError(
                    f"shard_map: {kind} axes in {argument}, {spec} of {self.name}, need a mesh whose axes are all "
                    f"explicit, and it is {abbreviate(mesh)}. Make it with axis_types=xtrace.sharding.AxisType.Explicit"
                )

    def _check_closed_over(self, values: Sequence[Any], mesh: BaseMesh, manual: frozenset[Any]) -> None:
        """Raise NotImplementedError for an array from outside with manual axes in its type: it has no shard here."""
        for aval in map(aval_of, values):
            own = aval.explicit_sharding
            axes = frozenset[Any]() if own is None else named_axes(own.spec)
            if axes & manual or not axes.issubset(mesh.axis_names):
                raise NotImplementedError(
                    f"shard_map: {self.name} uses an array from outside of it, {aval}, whose type names mesh axes that "
                    "the function is mapped over. Make it an argument, with a specification in in_specs"
                )

    def _out_specs(self, tree: Any) -> list[PartitionSpec]:
        if callable(self.out_specs):
            specs: Any = self.out_specs(tree)
            return list(specs)
        try:
            return pytree.broadcast_prefix_to_structure(self.out_specs, tree)
        except ValueError as error:
            raise ValueError(
                f"shard_map out_specs, pytree structure error: a PartitionSpec, or a tree prefix of the result of "
                f"{self.name} is expected; {error}. Give one specification for all, or a tree like the result"
            ) from None

    def _check_results(
        self, closed: ClosedJaxpr, tree: Any, specs: Sequence[PartitionSpec], mesh: BaseMesh, manual: frozenset[Any]
    ) -> None:
        for path, aval, spec in zip(pytree.leaf_paths(tree), closed.out_avals, specs, strict=True):
            name = f"result{key_paths.keystr(path)}"
            self._check_axes("out_specs", spec, manual)
            self._check_sums("out_specs", spec, mesh)
            advice = "Give a scalar an axis with x[None], or write"
            self._check_length("out_specs", spec, aval, name, "the result", advice)
            sums, wanted = aval.manual_sums.within(manual), Sums(spec.unreduced, spec.reduced)
            if self.check_vma and sums != wanted:
                raise ValueError(
                    f"shard_map: out_specs {spec} should have the unreduced and reduced axes of the result: {name} of "
                    f"{self.name} is {aval.str_short(True)}. Write {spec.update(**sums._asdict())}, or change it with "
                    "lax.psum or lax.pcast"
                )
            varying = (aval.varying & manual) - named_axes(spec)
            if varying:
                shown, names = ", ".join(sorted(map(repr, varying))), tuple(sorted(varying, key=str))
                axes = abbreviate(names[0] if len(names) == 1 else names)
                raise ValueError(
                    f"shard_map applied to the function '{self.name}' was given out_specs which require replication "
                    f"which can't be statically inferred: {spec} is given, and {name} of "
                    f"{self.name} may vary along the mesh axes {shown}, which they do not name. Return lax.psum(x, "
                    f"{axes}), or name them in out_specs, or give check_vma=False if the devices have the same value"
                )
