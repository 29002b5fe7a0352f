"""The pullbacks of `vjp`: functions of cotangents whose residuals can be read and replaced."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xtrace._src.api.differentiation.gradient_references import (
    Marker,
    fulfil,
    is_wanted,
    read_wishes,
    register_without_leaves,
)
from xtrace._src.core.avals import aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.ir import Jaxpr
from xtrace._src.core.pytrees import key_paths, pytree, pytree_registration
from xtrace._src.core.shardings.shardings import Sharding
from xtrace._src.core.shardings.sums import NO_SUMS
from xtrace._src.core.trace import Tracer
from xtrace._src.runtime.arrays import ConcreteArray
from xtrace._src.runtime.transfer import put_at
from xtrace._src.transforms.inlined_calls import inline_calls_in_jaxpr
from xtrace._src.transforms.stage import StagedTracer
from xtrace._src.xla.pytree_registry import PyTreeDef


class NotNeeded(Marker):
    """Stands for a leaf of an argument that a pullback does not keep; a pytree without leaves."""

    __slots__ = ()


class NotSaveable(Marker):
    """Stands for an argument, or a leaf of one, that a pullback needs and does not keep; a tree without leaves."""

    __slots__ = ()


register_without_leaves(NotNeeded)
register_without_leaves(NotSaveable)


class Backward:
    """What a pullback does: ``call(residuals, wanted, cotangent)`` transposes `linear`, whose constants they are.

    sources: for each residual a flag, whether it is a leaf of the arguments, and its position among these leaves or
    among the other residuals.
    """

    __slots__ = ("call", "linear", "sources")

    def __init__(self, call: Callable[..., Any], linear: Jaxpr, sources: Sequence[tuple[bool, int]]) -> None:
        self.call, self.linear, self.sources = call, linear, tuple(sources)

    def __call__(
        self, arguments: Sequence[Any], others: Sequence[Any], wanted: Sequence[bool] | None, /, *cotangents: Any,
        **named: Any,
    ) -> Any:
        """Return the cotangents of the arguments.

        wanted: for each leaf of the arguments whether its cotangent is asked for; None for all.
        """
        residuals = [(arguments if given else others)[i] for given, i in self.sources]
        return self.call(residuals, wanted, *cotangents, **named)


class VJP:
    """The pullback that `vjp` returns: a function of cotangents, and a pytree whose leaves are its residuals.

    args_res: for each argument its leaves, those of containers as tuples, with `NotNeeded` for leaves that are not
    needed, and `NotSaveable` for those that are not kept. They may be replaced. opaque_residuals: the other values
    that are kept. in_tree, out_tree: the structures of the arguments and of the result.
    """

    __slots__ = ("fun", "in_tree", "out_tree", "opaque_residuals", "_leaves", "_args")

    def __init__(
        self, fun: Backward, in_tree: PyTreeDef, out_tree: PyTreeDef, leaves: Sequence[Any], opaque_residuals: list[Any]
    ) -> None:
        self.fun, self.in_tree, self.out_tree, self.opaque_residuals = fun, in_tree, out_tree, opaque_residuals
        self._leaves: Sequence[Any] = leaves
        self._args: list[Any] | None = None

    @property
    def args_res(self) -> list[Any]:
        """The kept leaves of the arguments, a nested tuple for each argument."""
        if self._args is None:
            left = iter(self._leaves)
            self._args = [_as_tuples(tree, left) for tree in self.in_tree.children()]
        return self._args

    @args_res.setter
    def args_res(self, trees: Sequence[Any]) -> None:
        self._args = list(trees)

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear map from tangents of the arguments to tangents of the result; its constvars are the residuals."""
        jaxpr = self.fun.linear
        return inline_calls_in_jaxpr(jaxpr, [None] * len(jaxpr.constvars))[0]

    @boundary
    def __call__(self, *out_ct: Any, **named: Any) -> Any:
        return pull_back(self, None, *out_ct, **named)

    def _argument_leaves(self) -> Sequence[Any]:
        """Return the value in `args_res` of each leaf of the arguments."""
        if self._args is None:
            return self._leaves
        return pytree.tree_leaves(self._args, is_leaf=_is_missing)

    def replace(self, **changes: Any) -> VJP:
        """Return a pullback with other values of `args_res` or `opaque_residuals`."""
        made = VJP(self.fun, self.in_tree, self.out_tree, self._argument_leaves(), self.opaque_residuals)
        for name, value in changes.items():
            if name not in ("args_res", "opaque_residuals"):
                raise TypeError(f"replace takes args_res and opaque_residuals, got {name}")
            setattr(made, name, value)
        return made

    @boundary
    def with_refs(self, *refs: Any) -> Callable[..., Any]:
        """Return a pullback that adds gradients to references.

        refs: for each argument a tree of its structure. A leaf is a reference, ``xtrace.ad.GradValue()`` to return
        the gradient, or ``xtrace.ad.DontWant()``. Raises ValueError for another structure.
        """
        wishes = read_wishes(self.in_tree, refs)
        wanted = list(map(is_wanted, wishes))

        @boundary
        def adding(*out_ct: Any, **named: Any) -> Any:
            gradients = self.in_tree.flatten_up_to(pull_back(self, wanted, *out_ct, **named))
            return pytree.tree_unflatten(self.in_tree, fulfil(wishes, gradients))

        return adding

    def __repr__(self) -> str:
        return (
            f"VJP(fun={self.fun.call.__name__}, in_tree={self.in_tree}, out_tree={self.out_tree}, "
            f"args_res={self._argument_leaves()}, opaque_residuals={self.opaque_residuals})"
        )


def pull_back(pullback: VJP, wanted: Sequence[bool] | None, /, *out_ct: Any, **named: Any) -> Any:
    """Return the cotangents of the arguments; those of leaves that are not wanted are zeros."""
    leaves = pullback._argument_leaves()
    missing = sorted({i for given, i in pullback.fun.sources if given and _is_missing(leaves[i])})
    if missing:
        paths = pytree.leaf_paths(pullback.in_tree)
        shown = ", ".join([f"args_res{key_paths.keystr(paths[i])}" for i in missing])
        raise ValueError(
            f"the pullback needs arguments that it did not keep: put them into {shown} before the call, or call "
            "pullback.replace(args_res=[...])"
        )
    return pullback.fun(leaves, pullback.opaque_residuals, wanted, *out_ct, **named)


def _is_missing(value: object) -> bool:
    return isinstance(value, (NotNeeded, NotSaveable))


def saveable_leaves(saveable_args: Any, tree: PyTreeDef) -> list[bool]:
    """Return for each leaf of the arguments whether it may be kept.

    `saveable_args` is a bool, or a tuple with an entry for each child of the node, whatever its type.
    """
    if isinstance(saveable_args, bool):
        return [saveable_args] * tree.num_leaves
    children = [] if tree.node_data() is None else tree.children()
    if not isinstance(saveable_args, (tuple, list)) or len(saveable_args) != len(children):
        raise ValueError(
            f"vjp: saveable_args must be a bool, or a tuple of bools or tuples for the {len(children)} children of "
            f"{tree}; got {abbreviate(saveable_args)}"
        )
    return [flag for one, child in zip(saveable_args, children, strict=True) for flag in saveable_leaves(one, child)]


def make_pullback(
    call: Callable[..., Any], linear: Jaxpr, residuals: Sequence[Any], in_tree: PyTreeDef, out_tree: PyTreeDef,
    leaves: Sequence[Any], saveable: Sequence[bool],
) -> VJP:
    """Return the pullback that keeps `residuals`, some of which are among the `leaves` of the arguments.

    Of those it keeps the ones that are `saveable`.
    """
    places = {_identity(x): i for i, x in enumerate(leaves)}
    others: list[Any] = []
    sources = []
    for x in residuals:
        i = places.get(_identity(x))
        sources.append((False, len(others)) if i is None else (True, i))
        if i is None:
            others.append(x)
    kept = {_identity(x) for x in residuals}
    given = [
        NotNeeded() if _identity(x) not in kept else x if may_keep else NotSaveable()
        for x, may_keep in zip(leaves, saveable, strict=True)
    ]
    return VJP(Backward(call, linear, sources), in_tree, out_tree, given, others)


def mesh_place(result: Any) -> Sharding | None:
    """Return the place of a result whose type says explicit mesh axes; None for another one, and for a traced one."""
    is_placed = type(result) is ConcreteArray and result.aval.explicit_sharding is not None
    return result.sharding if is_placed else None


def put_beside(place: Sharding | None, cotangent: Any) -> Any:
    """Return a cotangent where its result is: operations on it know the devices of the mesh then."""
    if place is None or cotangent is None or isinstance(cotangent, Tracer):
        return cotangent
    return cotangent if aval_of(cotangent).sums != NO_SUMS else put_at(cotangent, place)


def _as_tuples(tree: Any, leaves: Iterator[Any]) -> Any:
    """Return the next leaves in nested tuples that follow the structure `tree`."""
    return next(leaves) if tree.node_data() is None else tuple([_as_tuples(child, leaves) for child in tree.children()])


def _identity(value: object) -> Any:
    """Return a key that is equal for one array, and for all tracers of one variable."""
    return value.variable if type(value) is StagedTracer else id(value)


pytree_registration.register_pytree_node(
    VJP, lambda x: ((list(x._argument_leaves()), x.opaque_residuals), (x.fun, x.in_tree, x.out_tree)),
    lambda data, children: VJP(*data, *children),
)
