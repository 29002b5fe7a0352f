"""Primitives defined by formulas in other operations; the formula gives their rules."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.jaxprs.ir import DebugInfo
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.transforms.batch import MappedAxis, batch
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.transforms.jaxpr_transforms import scatter_by_mask, stage_to_jaxpr, transpose_jaxpr
from xtrace._src.transforms.jvp import jvp

if TYPE_CHECKING:
    from xtrace._src.core.primitive import Operation

_Result = TypeVar("_Result")


class _Rules:
    """The rules of a primitive that computes ``formula(*operands, **parameters)``.

    A jaxpr contains the primitive; after differentiation or `vmap` it contains the operations of the formula.
    """

    def __init__(self, name: str, formula: Callable[..., Any], multiple_results: bool) -> None:
        self.name, self.formula, self.several = name, formula, multiple_results

    def _flatten(self, parameters: dict[str, Any]) -> Callable[..., list[Any]]:
        def function(*operands: Any) -> list[Any]:
            results = self.formula(*operands, **parameters)
            return list(results) if self.several else [results]

        return function

    def _pack(self, results: Sequence[Any]) -> Any:
        return list(results) if self.several else results[0]

    def abstract(self, *avals: ShapedArray, **parameters: Any) -> Any:
        """Return the types of the results, by staging the formula."""
        info = DebugInfo("primitive", self.name, None, None)
        return self._pack(stage_to_jaxpr(self._flatten(parameters), avals, info).out_avals)

    def jvp(self, primals: Sequence[Any], tangents: Sequence[Any], **parameters: Any) -> tuple[Any, Any]:
        """Return the results of the formula and their tangents."""
        results, moved = jvp(self._flatten(parameters), primals, tangents)
        return self._pack(results), self._pack(moved)

    def batch(
        self, mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
    ) -> tuple[Any, Any]:
        """Return the mapped formula's results, and the axis of each."""
        results, out_axes = batch(self._flatten(parameters), mapped, operands, axes)
        return self._pack(results), self._pack(out_axes)

    def transpose(self, cotangents: Any, *operands: Any, **parameters: Any) -> list[Any]:
        """Return the cotangents of the linear operands."""
        linear = tuple([isinstance(x, UndefinedPrimal) for x in operands])
        avals = [x.aval if is_linear else aval_of(x) for x, is_linear in zip(operands, linear, strict=True)]
        closed = stage_to_jaxpr(self._flatten(parameters), avals, None)
        given = list(cotangents) if self.several else [cotangents]
        transposed, nonzero = transpose_jaxpr(closed, linear, tuple([c is not None for c in given]))
        known = [x for x, is_linear in zip(operands, linear, strict=True) if not is_linear]
        inputs = [*known, *[c for c in given if c is not None]]
        results = evaluate(transposed.jaxpr, transposed.consts, inputs)
        return scatter_by_mask(scatter_by_mask(results, nonzero), linear)


def formula_primitive(
    name: str, parameters: Sequence[str], formula: Callable[..., _Result], multiple_results: bool = False
) -> Operation[..., _Result]:
    """Return the primitive `name` that computes ``formula(*operands, **parameters)``.

    The formula returns an array, or with `multiple_results` a sequence of arrays.
    """
    rules = _Rules(name, formula, multiple_results)
    made = Primitive(
        name, parameters, abstract=rules.abstract, emit=lower_fun(rules.formula), jvp=rules.jvp,
        transpose=rules.transpose, batch=rules.batch, multiple_results=multiple_results,
    )
    made.__doc__ = formula.__doc__
    return made  # type: ignore[return-value]
