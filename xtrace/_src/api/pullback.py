"""The pullbacks that `vjp` returns: functions of cotangents that show, and let one replace, the values they keep."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

from xtrace._src.api.gradient_references import fulfil, is_wanted, wishes_of
from xtrace._src.core import pytree, pytree_registration
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.ir import Jaxpr
from xtrace._src.transforms.inlined_calls import without_calls
from xtrace._src.transforms.stage import StagedTracer
from xtrace._src.xla.pytree_registry import PyTreeDef


class NotNeeded:
    """Stands for an argument, or a leaf of one, of which a pullback keeps nothing; a tree without leaves."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "NotNeeded()"


pytree_registration.register_pytree_node(NotNeeded, lambda _: ((), None), lambda _, __: NotNeeded())


class Backward:
    """What a pullback does: ``call(residuals, wanted, cotangent)`` transposes the linear `jaxpr`; residuals: its consts.

    sources: for each residual whether it is a leaf of the arguments, and its place among these or among the others.
    """

    __slots__ = ("call", "linear", "sources")

    def __init__(self, call: Callable[..., Any], linear: Jaxpr, sources: Sequence[tuple[bool, int]]) -> None:
        self.call, self.linear, self.sources = call, linear, tuple(sources)

    def __call__(
        self, arguments: Sequence[Any], others: Sequence[Any], wanted: Sequence[bool] | None, /, *cotangents: Any,
        **named: Any,
    ) -> Any:
        """Return the cotangents of the arguments; ValueError where a residual was taken away.

        wanted: for each leaf of the arguments whether its cotangent is asked for; None for all.
        """
        residuals = [(arguments if given else others)[i] for given, i in self.sources]
        if any(isinstance(x, NotNeeded) for x in residuals):
            raise ValueError("the pullback needs a value of args_res that is NotNeeded(): put the argument there again")
        return self.call(residuals, wanted, *cotangents, **named)


class VJP:
    """The function of cotangents that `vjp` returns: a pytree whose leaves are the values that it keeps.

    args_res: for each argument its leaves, those of containers as tuples, with `NotNeeded` for leaves that are not
    kept. They may be replaced. opaque_residuals: the other values that are kept. in_tree, out_tree: the structures of
    the arguments and of the result.
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
        """What of the arguments is kept, a list of nested tuples of leaves."""
        if self._args is None:
            left = iter(self._leaves)
            self._args = [_as_tuples(tree, left) for tree in self.in_tree.children()]
        return self._args

    @args_res.setter
    def args_res(self, trees: Sequence[Any]) -> None:
        self._args = list(trees)

    @property
    def jaxpr(self) -> Jaxpr:
        """The linear map from tangents of the arguments to those of the result; its constvars are the residuals."""
        jaxpr = self.fun.linear
        return without_calls(jaxpr, [None] * len(jaxpr.constvars))[0]

    @boundary
    def __call__(self, *out_ct: Any, **named: Any) -> Any:
        return pull_back(self, None, *out_ct, **named)

    def _argument_leaves(self) -> Sequence[Any]:
        """Return the kept value of each leaf of the arguments, as `args_res` has it now."""
        if self._args is None:
            return self._leaves
        return pytree.tree_leaves(self._args, is_leaf=lambda x: isinstance(x, NotNeeded))

    @boundary
    def with_refs(self, *refs: Any) -> Callable[..., Any]:
        """Return a pullback that adds gradients to references.

        refs: for each argument its tree, with a reference, ``xtrace.ad.GradValue()`` to have the gradient returned, or
        ``xtrace.ad.DontWant()``. ValueError if the trees are not the arguments'.
        """
        wishes = wishes_of(self.in_tree, refs)
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
    return pullback.fun(pullback._argument_leaves(), pullback.opaque_residuals, wanted, *out_ct, **named)


def pullback_of(
    call: Callable[..., Any], linear: Jaxpr, residuals: Sequence[Any], in_tree: PyTreeDef, out_tree: PyTreeDef,
    leaves: Sequence[Any],
) -> VJP:
    """Return the pullback that keeps `residuals`, some of which are among the `leaves` of the arguments."""
    places = {_identity(x): i for i, x in enumerate(leaves)}
    others: list[Any] = []
    sources = []
    for x in residuals:
        i = places.get(_identity(x))
        sources.append((False, len(others)) if i is None else (True, i))
        if i is None:
            others.append(x)
    kept = {_identity(x) for x in residuals}
    given = [x if _identity(x) in kept else NotNeeded() for x in leaves]
    return VJP(Backward(call, linear, sources), in_tree, out_tree, given, others)


def _as_tuples(tree: Any, leaves: Iterator[Any]) -> Any:
    """Return the next leaves in the structure `tree`, whose containers are tuples."""
    return next(leaves) if tree.node_data() is None else tuple([_as_tuples(child, leaves) for child in tree.children()])


def _identity(value: object) -> Any:
    """Return a key that is equal for the same array, also for tracers of one variable."""
    return value.variable if type(value) is StagedTracer else id(value)


pytree_registration.register_pytree_node(
    VJP, lambda x: ((list(x._argument_leaves()), x.opaque_residuals), (x.fun, x.in_tree, x.out_tree)),
    lambda data, children: VJP(*data, *children),
)
