"""Functions with a user's partition function: XLA calls it for the program of one device."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xtrace._src.core.avals import ShapedArray, ShapeDtypeStruct, aval_of
from xtrace._src.core.callables import check_callable, function_name
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import Effects
from xtrace._src.core.jaxprs.ir import ALWAYS_PRINTED, ClosedJaxpr, DebugInfo
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.factor_rules import SdyShardingRule, parse_rule
from xtrace._src.core.shardings.mesh import Mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec, full_entries
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding, sharding_with_tiles
from xtrace._src.core.trace import Tracer, base_trace, use_trace
from xtrace._src.ops.collectives.shard_map import manual_axes_in_scope
from xtrace._src.ops.control_flow.bodies import flatten_argument
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.element_functions import CALLING_PYTHON
from xtrace._src.transforms.jaxpr_transforms import stage_to_jaxpr
from xtrace._src.transforms.lower import emit_jaxpr, lower
from xtrace._src.xla import shardings


class PartitionFunction:
    """A user's partition function and the callbacks that XLA calls; equations keep them alive."""

    __slots__ = ("function", "name", "_partitioners")

    def __init__(self, function: Callable[..., Any], name: str) -> None:
        self.function, self.name = function, name
        self._partitioners: dict[Any, shardings.Partitioner] = {}

    def __repr__(self) -> str:
        return repr(self.function)

    def number(
        self, mesh: Mesh, platform: str, trees: tuple[Any, Any], avals: tuple[Sequence[ShapedArray], ...],
        static: tuple[Any, ...],
    ) -> str:
        """Return the number under which XLA finds the function for operands and results of the types `avals`."""
        key = mesh, platform, trees, tuple(map(tuple, avals)), tuple(map(_identity, static))
        made = self._partitioners.get(key)
        if made is None:

            def partition(*tiles: Any) -> Any:
                return self._partition(mesh, platform, trees, avals, static, tiles)

            made = self._partitioners[key] = shardings.Partitioner(partition, mesh.size, len(avals[1]) != 1)
        return made.number

    def _partition(
        self, mesh: Mesh, platform: str, trees: tuple[Any, Any], avals: Sequence[Sequence[ShapedArray]],
        static: tuple[Any, ...], tiles: Sequence[Sequence[Any]],
    ) -> tuple[str, list[Any], list[Any]]:
        """Return the module of one device, and the tiles of its operands and results."""
        proposed = [
            pytree.tree_unflatten(tree, [
                ShapeDtypeStruct(a.shape, a.dtype, sharding=_proposed_sharding(mesh, a.ndim, *place))
                for a, place in zip(types, places, strict=True)
            ])
            for tree, types, places in zip(trees, avals, tiles, strict=True)
        ]
        returned = self.function(*static, mesh, *proposed)
        if not isinstance(returned, tuple) or len(returned) != 4:
            raise TypeError(
                f"custom_partitioning: partition of {self.name} must return (mesh, function, shardings of the result, "
                f"shardings of the arguments), got {abbreviate(returned)}"
            )
        chosen_mesh, function, results, arguments = returned
        mesh = mesh if chosen_mesh is None else chosen_mesh
        places = [
            self._shardings(name, given, tree)
            for name, given, tree in (("arguments", arguments, trees[0]), ("result", results, trees[1]))
        ]
        pieces = [
            [a.update(shape=s.shard_shape(a.shape), sharding=None) for a, s in zip(types, row, strict=True)]
            for types, row in zip(avals, places, strict=True)
        ]

        def flat(*values: Any) -> Sequence[Any]:
            return pytree.tree_leaves(function(*pytree.tree_unflatten(trees[0], values)))

        with use_trace(base_trace), manual_axes_in_scope(mesh, frozenset(mesh.axis_names), False):
            closed = stage_to_jaxpr(flat, pieces[0], DebugInfo("custom_partitioning", self.name, None, None))
        types = [(a.shape, a.dtype) for a in closed.out_avals]
        if types != [(a.shape, a.dtype) for a in pieces[1]]:
            raise ValueError(
                f"custom_partitioning: the function that partition of {self.name} returns must give one device's "
                f"shards, {[a.str_short(True) for a in pieces[1]]}; it gives "
                f"{[a.str_short(True) for a in closed.out_avals]}"
            )
        lowered = lower(closed, self.name, platform, manual_mesh=mesh)
        if lowered.hidden:
            raise NotImplementedError(
                f"custom_partitioning: the function that partition of {self.name} returns closes over a large array; "
                "make it an argument"
            )
        rows = [[s.tiles(a.ndim) for a, s in zip(t, row, strict=True)] for t, row in zip(avals, places, strict=True)]
        return lowered.text(), *[[(t.parts, t.numbers) for t in row] for row in rows]  # type: ignore[return-value]

    def _shardings(self, name: str, given: Any, tree: Any) -> list[Sharding]:
        leaves = pytree.broadcast_prefix_to_structure(given, tree)
        for leaf in leaves:
            if not isinstance(leaf, Sharding):
                raise TypeError(
                    f"custom_partitioning: partition of {self.name} must return a sharding for each array of the "
                    f"{name}, got {abbreviate(leaf)}"
                )
        return leaves


def _proposed_sharding(mesh: Mesh, ndim: int, parts: tuple[int, ...], numbers: tuple[int, ...]) -> Sharding:
    """Return the sharding with these tiles; a `NamedSharding` has an entry for each dimension."""
    sharding = sharding_with_tiles(mesh, (*parts, *(1,) * (ndim - len(parts))), numbers)
    if isinstance(sharding, NamedSharding):
        return sharding.update(spec=PartitionSpec(*full_entries(sharding.spec, ndim)))
    return sharding


def _identity(value: Any) -> Any:
    return (type(value), value) if isinstance(value, (int, str, float, bool, tuple, type(None))) else id(value)


def _abstract(*avals: ShapedArray, call: ClosedJaxpr, **_: object) -> list[ShapedArray]:
    """Call a function that a user partitions."""
    return call.out_avals


def _effects(*, call: ClosedJaxpr, **_: object) -> Effects:
    return call.effects


def _emit(
    builder: FunctionBuilder, *values: Value, call: ClosedJaxpr, in_tree: Any, out_tree: Any,
    infer_sharding_from_operands: Any, partition: PartitionFunction, propagate_user_sharding: Any, sharding_rule: Any,
    static_args: tuple[Any, ...], **_: object,
) -> list[Value]:
    mesh, results = builder.module.mesh, builder.results
    if mesh is None or builder.module.manual_mesh is not None:
        return emit_jaxpr(builder, call.jaxpr, values, list(map(np.asarray, call.consts)))
    avals = [v.aval for v in values]
    if callable(sharding_rule):
        sharding_rule = _read_returned_rule(sharding_rule(*static_args, mesh, avals, list(results)))
    if sharding_rule is None and (infer_sharding_from_operands or propagate_user_sharding):
        raise NotImplementedError(
            f"custom_partitioning: Shardy partitions programs, and {partition.name} has callbacks of the older "
            "partitioner; give def_partition a sharding_rule such as 'i j -> i j'"
        )
    number = partition.number(mesh, builder.platform, (in_tree, out_tree), (avals, list(results)), static_args)
    rule = ""
    if sharding_rule is not None:
        text = sharding_rule.format_attribute([a.shape for a in avals], [a.shape for a in results])
        rule = f", sdy.sharding_rule = {text}"
    operands = ", ".join([v.name for v in values])
    return builder.line_of_many(
        f"stablehlo.custom_call @{shardings.Partitioner.target}({operands}) {{api_version = 2 : i32, backend_config = "
        f"{attributes.string(number)}{rule}}} : {builder.function_type(values, results)}", results,
    )


custom_partitioning_p = Primitive(
    "custom_partitioning",
    ("call", "decode_shardings", "in_tree", "infer_sharding_from_operands", "out_tree", "partition",
     "propagate_user_sharding", "sharding_rule", "static_args"),
    holds_jaxprs=True, abstract=_abstract, emit=_emit, effects=_effects, multiple_results=True, memoised=False,
    unprinted=dict.fromkeys(
        ("infer_sharding_from_operands", "propagate_user_sharding", "sharding_rule"), ALWAYS_PRINTED
    ),
    jvp=no_rule(
        "Differentiation rule for 'custom_partitioning' not implemented: XLA calls the function that partitions it, "
        "which has no derivative. Give the function around it one with xtrace.custom_jvp or xtrace.custom_vjp",
        NotImplementedError,
    ),
    batch=no_rule(
        "Batching rule for 'custom_partitioning' not implemented: its sharding rule is for arrays without another axis."
        " Give the function around it one with xtrace.custom_batching.custom_vmap"
    ),
)
CALLING_PYTHON.add(custom_partitioning_p)


def _as_rule(given: Any, **options: Any) -> Any:
    if isinstance(given, str):
        return parse_rule(given, **options)
    if given is not None and not isinstance(given, SdyShardingRule) and not callable(given):
        raise TypeError(
            f"def_partition: sharding_rule must be a text such as 'i j -> i j', an SdyShardingRule or a function that "
            f"returns one, got {abbreviate(given)}"
        )
    return given


def _read_returned_rule(given: Any) -> Any:
    """Return the rule of a function's result: a rule, or a pair of one and the options of its text."""
    rule, options = given if isinstance(given, (tuple, list)) and len(given) == 2 else (given, {})
    if rule is None or callable(rule) or not isinstance(options, Mapping):
        raise TypeError(
            "def_partition: the function sharding_rule must return a text such as 'i j -> i j', an SdyShardingRule, or "
            f"a pair such as ('i j -> i j', {{'reduction_factors': ('j',)}}), got {abbreviate(given)}"
        )
    return _as_rule(rule, **options)


class custom_partitioning:
    """A function with a user-defined way to run on the shards of its arguments.

    On one device, and inside of a `shard_map`, it is the function itself. It has no derivative and no batching rule.

    Args:
        fun: a function of arrays or trees of arrays.
        static_argnums: the positions of arguments that are no arrays; they come first in calls of `partition`.

    Raises:
        TypeError: `fun` cannot be called.

    Example:
        >>> from xtrace.experimental.custom_partitioning import custom_partitioning
        >>> double = custom_partitioning(lambda x: 2 * x)
        >>> double.def_partition(lambda mesh, args, result: (mesh, lambda x: 2 * x, result.sharding,
        ...     (args[0].sharding,)), sharding_rule="... -> ...")
        >>> double(jnp.arange(3))
        Array([0, 2, 4], dtype=int32)
    """

    def __init__(self, fun: Callable[..., Any], static_argnums: Sequence[int] | int = ()) -> None:
        check_callable(fun)
        self.fun = fun
        self.static_argnums = (static_argnums,) if isinstance(static_argnums, int) else tuple(static_argnums)
        self._name = function_name(fun)
        self._rules: tuple[Any, ...] | None = None

    def def_partition(
        self, partition: Callable[..., Any], infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None, decode_shardings: bool = True,
        sharding_rule: Any = None, *, reduction_factors: Sequence[str] = (),
        need_replication_factors: Sequence[str] = (), permutation_factors: Sequence[str] = (), **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Define the partitioning of the function and return `partition`.

        Args:
            partition: ``partition(mesh, args, result)``, called with the types of the arguments and the result, each
                with the sharding that XLA proposes. It returns the mesh, a function of one device's shards, the
                shardings of the result, and the shardings of the arguments. That function may use collectives along
                the mesh axes.
            infer_sharding_from_operands, propagate_user_sharding: for the older partitioner, which is not used.
            decode_shardings: not used; shardings are `NamedSharding` where the mesh can express them.
            sharding_rule: the dimensions to shard alike, as a text such as ``"i j, j k -> i k"``, an
                `SdyShardingRule`, or a function of the mesh and the types of operands and results that returns one, or
                a pair of a text and a dict of the arguments below. None: operands and results are replicated.
            reduction_factors: names in a text that the function sums over, such as ``("j",)``.
            need_replication_factors: names in a text whose dimensions must not be sharded.
            permutation_factors: names in a text whose sharding needs a permutation.
            factor_sizes: the sizes of names that occur only in parentheses.

        Returns:
            `partition`.

        Raises:
            TypeError: `partition` cannot be called, or `sharding_rule` is none of these.
            ValueError: the text is no rule.
        """
        check_callable(partition)
        options = dict(
            reduction_factors=reduction_factors, need_replication_factors=need_replication_factors,
            permutation_factors=permutation_factors, **factor_sizes,
        )
        rule = _as_rule(sharding_rule, **options)
        self._rules = (
            bool(decode_shardings), infer_sharding_from_operands, PartitionFunction(partition, self._name),
            propagate_user_sharding, rule,
        )
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Call the function."""
        if self._rules is None:
            raise AttributeError(
                f"custom_partitioning: {self._name} has no partition yet; call its def_partition(partition, "
                "sharding_rule=...) first"
            )
        args = self._positional(args, kwargs)
        static = tuple([args[i] for i in self.static_argnums])
        dynamic = tuple([x for i, x in enumerate(args) if i not in self.static_argnums])
        leaves, in_tree, avals = flatten_argument("args", dynamic)
        out_tree: Any = None

        def flat(*values: Any) -> Sequence[Any]:
            nonlocal out_tree
            given = iter(pytree.tree_unflatten(in_tree, values))
            results, out_tree = pytree.tree_flatten(
                self.fun(*[x if i in self.static_argnums else next(given) for i, x in enumerate(args)])
            )
            for leaf in results:
                aval_of(leaf)
            return results

        call = stage_to_jaxpr(flat, avals, DebugInfo("custom_partitioning", self._name, None, None))
        if any(isinstance(c, Tracer) for c in call.consts):
            raise NotImplementedError(
                f"custom_partitioning: {self._name} closes over a traced value; make it an argument"
            )
        decode, infer, partition, propagate, rule = self._rules
        results = custom_partitioning_p.bind_positional(
            leaves, (call, decode, in_tree, infer, out_tree, partition, propagate, rule, static)
        )
        return pytree.tree_unflatten(out_tree, results)

    def _positional(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        """Return all arguments by position, with defaults."""
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise TypeError(
                "custom_partitioning: keyword arguments could not be resolved to positions: "
                f"{', '.join(bound.kwargs)} of {self._name}"
            )
        return bound.args
