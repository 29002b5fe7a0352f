"""Pullbacks of functions of references: the gradient of one is that of the array that it held at first.

The function becomes one of arrays that also returns the last ones. So the reference of a gradient holds the cotangent
of the last array before the pullback is called, and that of the first array afterwards.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.algebra.vector_space import zeros
from xtrace._src.api.differentiation.gradient_references import GradValue, fulfil, is_wanted, read_wishes
from xtrace._src.api.differentiation.pullback import VJP, pull_back
from xtrace._src.core.avals import AbstractRef, ShapedArray, aval_of
from xtrace._src.core.callables import function_name, wraps
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.pytrees import pytree, pytree_registration
from xtrace._src.core.references import Reference
from xtrace._src.core.tangents import is_differentiable
from xtrace._src.ops.references.binding import make_reference, read_reference, write_reference


def make_vjp_with_references(
    vjp: Callable[..., Any], fun: Callable[..., Any], primals: Sequence[Any], has_aux: bool, saveable_args: Any
) -> tuple[Any, ...]:
    """Return what `vjp` returns, for arguments among which are references; they are written to as `fun` says."""
    leaves, in_tree = pytree.tree_flatten(tuple(primals))
    places = [i for i, x in enumerate(leaves) if isinstance(x, Reference)]
    arrays = [read_reference(x) if isinstance(x, Reference) else x for x in leaves]
    written: list[bool] = []

    @wraps(fun)
    def of_arrays(*args: Any) -> Any:
        values = pytree.tree_leaves(args)
        references = {i: make_reference(values[i]) for i in places}
        result = fun(*pytree.tree_unflatten(in_tree, [references.get(i, x) for i, x in enumerate(values)]))
        last = [read_reference(references[i]) for i in places]
        written[:] = [x is not values[i] for i, x in zip(places, last, strict=True)]
        if not has_aux or not isinstance(result, (tuple, list)) or len(result) != 2:
            return result, last
        return (result[0], last), result[1]

    (result, last), pullback, *aux = vjp(
        of_arrays, *pytree.tree_unflatten(in_tree, arrays), has_aux=has_aux, saveable_args=saveable_args
    )
    for i, array, changed in zip(places, last, written, strict=True):
        if changed:
            write_reference(leaves[i], array)
    types = {i: aval_of(arrays[i]) for i in places}
    return result, ReferenceVJP(pullback, types, function_name(fun)), *aux


class ReferenceVJP:
    """The function of cotangents that `vjp` returns for arguments among which are references.

    pullback: that of the function of arrays. types: those of the arrays that the references hold, by their positions
    among the leaves of the arguments. name: the function's.
    """

    __slots__ = ("pullback", "types", "name")

    def __init__(self, pullback: VJP, types: dict[int, ShapedArray], name: str) -> None:
        self.pullback, self.types, self.name = pullback, types, name

    @property
    def in_tree(self) -> Any:
        """The structure of the arguments."""
        return self.pullback.in_tree

    @property
    def out_tree(self) -> Any:
        """The structure of the result."""
        return self.pullback.out_tree.children()[0]

    @property
    def args_res(self) -> list[Any]:
        """What of the arguments is kept, with the first array of each reference: a list of nested tuples of leaves."""
        return self.pullback.args_res

    @property
    def opaque_residuals(self) -> list[Any]:
        """The other values that are kept."""
        return self.pullback.opaque_residuals

    @boundary
    def __call__(self, *out_ct: Any, **named: Any) -> Any:
        return self._call([GradValue()] * self.in_tree.num_leaves, out_ct, named)

    @boundary
    def with_refs(self, *refs: Any) -> Callable[..., Any]:
        """Return a pullback that adds gradients to references; those of references among the arguments must be given.

        refs: for each argument its tree, with a reference, ``xtrace.ad.GradValue()`` to have the gradient returned, or
        ``xtrace.ad.DontWant()``. ValueError if the trees are not the arguments'.
        """
        wishes = read_wishes(self.in_tree, refs)

        @boundary
        def adding(*out_ct: Any, **named: Any) -> Any:
            return self._call(wishes, out_ct, named)

        return adding

    def _call(self, wishes: Sequence[Any], out_ct: tuple[Any, ...], named: dict[str, Any]) -> Any:
        if named or len(out_ct) != 1:
            raise TypeError(f"vjp: the pullback of {self.name} takes one cotangent, by position")
        last = [self._last_cotangent(wishes[i], aval) for i, aval in self.types.items()]
        wanted = [is_wanted(wish) for wish in wishes]
        gradients = self.in_tree.flatten_up_to(pull_back(self.pullback, wanted, (out_ct[0], last)))
        return pytree.tree_unflatten(self.in_tree, fulfil(wishes, gradients, self.types))

    def _last_cotangent(self, wish: Any, aval: ShapedArray) -> Any:
        """Return the cotangent of the last array of a reference of type `aval`."""
        if isinstance(wish, Reference) and aval_of(wish.target).update(weak_type=aval.weak_type) == AbstractRef(aval):
            return read_reference(wish)
        if not is_wanted(wish) or not is_differentiable(aval):
            return zeros(aval)
        raise ValueError(
            f"vjp: {self.name} has a reference of type {AbstractRef(aval)} as an argument, whose gradient must be "
            f"added up in another one of that type, got {abbreviate(wish)}: bind it with pullback.with_refs(...) "
            "before the call, or say there that it is not wanted, xtrace.ad.DontWant()"
        )


pytree_registration.register_pytree_node(
    ReferenceVJP, lambda x: ((x.pullback,), (tuple(x.types.items()), x.name)),
    lambda data, children: ReferenceVJP(children[0], dict(data[0]), data[1]),
)
