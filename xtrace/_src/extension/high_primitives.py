"""Operations on values of high types: they are carried out on the arrays that hold the values.

An operation is recorded as operations on arrays. Its own derivative applies only where the Python function that uses it
is differentiated, so differentiation calls the Python function of a compiled function.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from xtrace._src.api.custom_rules.custom_vjp import custom_vjp
from xtrace._src.core import pytree
from xtrace._src.core.abbreviation import abbreviate
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.effects import OWN_DERIVATIVE_EFFECT
from xtrace._src.core.primitive import Parameters, Primitive, no_rule
from xtrace._src.core.trace import Trace, Tracer, current_trace
from xtrace._src.extension.rules import from_jax_axis_batcher, from_jax_jvp
from xtrace._src.ops.lower_fun import lower_fun
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.jvp import jvp
from xtrace._src.transforms.replay import StackedTrace
from xtrace._src.transforms.stage import StagingTrace

_OF_CLASS = ("multiple_results", "jvp", "transpose", "batch", "abstract")


class HiPrimitive(Primitive):
    """The base class of operations on values of high types.

    A subclass has the methods ``to_lojax(*values, **parameters)``, which computes the result by operations on arrays,
    ``abstract_eval(*types, **parameters)``, which returns its type and effects, for derivatives
    ``jvp(primals, tangents, **parameters)``, which returns the result and its tangent, and for `vmap`
    ``batch(mapped, values, axes, **parameters)``. A tangent that is zero is a `Zero`. With ``multiple_results = True``
    results are lists.

    Args:
        name: the name.

    Example:
        >>> class Double(xtrace.experimental.hijax.HiPrimitive):
        ...     def to_lojax(self, x): return x + x
        ...     def jvp(self, primals, tangents): return self.bind(*primals), 10 * tangents[0]
        >>> double = Double("double")
        >>> double.bind(2.0), xtrace.grad(double.bind)(2.0)
        (4.0, Array(10., dtype=float32, weak_type=True))
    """

    def __init__(self, name: str) -> None:
        super().__init__(name)
        own = {n: getattr(type(self), n).__get__(self) for n in ("jvp", "batch") if hasattr(type(self), n)}
        for attribute in _OF_CLASS:
            if hasattr(type(self), attribute):
                vars(self).pop(attribute, None)
        if "jvp" in own:
            self.jvp = from_jax_jvp(self, own["jvp"])
        if "batch" in own:
            self.batch = from_jax_axis_batcher(self, own["batch"])
        self.replayable = False

    def is_high(self, *_: object, **__: object) -> bool:
        """Whether the operation has operands or results of high types."""
        return True

    def is_effectful(self, *_: object, **__: object) -> bool:
        """Whether the operation has effects."""
        return False

    def to_lojax(self, *values: Any, **parameters: Any) -> Any:
        """Compute the result by operations on arrays."""
        raise NotImplementedError(
            f"the operation {self.name} has no method to_lojax; define {type(self).__name__}.to_lojax, which computes "
            "the result by operations on arrays"
        )

    def bind(self, *operands: Any, **parameters: Any) -> Any:
        """Apply the operation: its rule where an operand is differentiated or mapped, otherwise `to_lojax`."""
        for trace in current_trace.get().enclosing():
            if isinstance(trace, StackedTrace) and _owns_any(trace, operands):
                return trace.process(self, operands, (Parameters(parameters),))
            if isinstance(trace, StagingTrace) and not trace.is_tape:
                trace.effects |= {OWN_DERIVATIVE_EFFECT}
        return self.to_lojax(*operands, **parameters)


def _owns_any(trace: Trace, values: Sequence[Any]) -> bool:
    return any(isinstance(x, Tracer) and x.owner is trace for x in values)


class VJPHiPrimitive:
    """The base class of operations with a derivative of their own in reverse mode, which may be recorded.

    A subclass sets `in_avals`, a tuple of trees of types, `out_aval`, a tree of types, and `params`, a dictionary of
    static values, and calls ``super().__init__()``. Its method `expand` computes the result;
    ``vjp_fwd(nonzero, *args)`` returns the result and residuals, ``vjp_bwd_retval(residuals, cotangent)`` the
    cotangents of the arguments. It may have ``jvp(primals, tangents)`` and ``batch(axis_data, args, axes)``.

    Example:
        >>> class Sin(xtrace.experimental.hijax.VJPHiPrimitive):
        ...     def __init__(self, aval):
        ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        ...         super().__init__()
        ...     def expand(self, x): return jnp.sin(x)
        ...     def vjp_fwd(self, nonzero, x): return jnp.sin(x), x
        ...     def vjp_bwd_retval(self, x, g): return (100.0 * g,)
        >>> xtrace.grad(lambda x: Sin(xtrace.typeof(x))(x))(0.0)
        Array(100., dtype=float32, weak_type=True)
    """

    __module__ = "xtrace.experimental.hijax"

    in_avals: tuple[Any, ...]
    out_aval: Any
    params: dict[str, Any]

    def __init__(self) -> None:
        for attribute in ("in_avals", "out_aval", "params"):
            if not hasattr(self, attribute):
                raise AttributeError(
                    f"{type(self).__name__} must set in_avals, out_aval and params before it calls super().__init__(); "
                    f"{attribute} is missing"
                )
        self.in_avals_flat, self.in_tree = pytree.tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = pytree.tree_flatten(self.out_aval)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> Any:
        static = tuple(sorted(self.params.items()))
        return type(self), self.in_tree, tuple(self.in_avals_flat), self.out_tree, tuple(self.out_avals_flat), static

    def __eq__(self, other: object) -> bool:
        return isinstance(other, VJPHiPrimitive) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def expand(self, *args: Any) -> Any:
        """Compute the result by other operations."""
        raise self._report_missing("expand", "computes the result by other operations")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        """Return the result and residuals; `nzs_in` has a flag for each leaf, whether its derivative is asked for."""
        raise self._report_missing("vjp_fwd", "returns the result and residuals for the backward pass")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """Return the cotangents of the arguments."""
        raise self._report_missing("vjp_bwd_retval", "returns the cotangents of the arguments")

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """Return the result and its tangent."""
        raise self._report_missing("jvp", "returns the result and its tangent, for forward mode")

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """Return the result of mapped arguments, and the position of the mapped axis in it."""
        raise self._report_missing("batch", "returns the result of mapped arguments and the axes where it is mapped")

    def _report_missing(self, method: str, contract: str) -> NotImplementedError:
        name = type(self).__name__
        return NotImplementedError(f"{name} has no method {method}; define {name}.{method}, which {contract}")

    def __call__(self, *args: Any) -> Any:
        leaves, tree = pytree.tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{abbreviate(self)} takes arguments of the structure {self.in_tree}, got {tree}")
        for leaf, aval in zip(leaves, self.in_avals_flat, strict=True):
            own = aval_of(leaf)
            if (own.shape, own.dtype) != (aval.shape, aval.dtype):
                types = ", ".join([a.str_short() for a in self.in_avals_flat])
                raise TypeError(
                    f"{abbreviate(self)} takes arguments of the types {types}, got one of type {own.str_short()}"
                )
        return pytree.tree_unflatten(self.out_tree, call_hi_primitive_p.bind(*leaves, _prim=self))

    def flat(self, *leaves: Any) -> list[Any]:
        """Compute the leaves of the result from the leaves of the arguments."""
        return pytree.tree_leaves(self.expand(*pytree.tree_unflatten(self.in_tree, leaves)))


def _abstract(*_: ShapedArray, _prim: VJPHiPrimitive) -> list[ShapedArray]:
    """Apply an operation that users define."""
    return _prim.out_avals_flat


def _flat(*leaves: Any, _prim: VJPHiPrimitive) -> list[Any]:
    return _prim.flat(*leaves)


def _jvp(
    primals: Sequence[Any], tangents: Sequence[Any], *, _prim: VJPHiPrimitive
) -> tuple[list[Any], list[Any]]:
    result, tangent = _prim.jvp(*[pytree.tree_unflatten(_prim.in_tree, x) for x in (primals, tangents)])
    return pytree.tree_leaves(result), pytree.tree_leaves(tangent)


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, _prim: VJPHiPrimitive
) -> tuple[list[Any], list[Any]]:
    nonzero = pytree.tree_unflatten(_prim.in_tree, [t is not None for t in tangents])
    function = custom_vjp(_prim.flat)

    def forward(*leaves: Any) -> tuple[list[Any], Any]:
        result, residuals = _prim.vjp_fwd(nonzero, *pytree.tree_unflatten(_prim.in_tree, leaves))
        return pytree.tree_leaves(result), residuals

    def backward(residuals: Any, cotangents: list[Any]) -> tuple[Any, ...]:
        given = pytree.tree_unflatten(_prim.out_tree, cotangents)
        returned = _prim.vjp_bwd_retval(residuals, given)
        return tuple(pytree.tree_leaves(returned, is_leaf=lambda x: x is None))

    function.defvjp(forward, backward)
    return jvp(function, primals, tangents)


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, _prim: VJPHiPrimitive
) -> tuple[list[Any], list[Any]]:
    args, dims = (pytree.tree_unflatten(_prim.in_tree, x) for x in (operands, axes))
    result, places = _prim.batch(mapped, args, dims)
    leaves, tree = pytree.tree_flatten(result)
    return leaves, pytree.broadcast_prefix(places, pytree.tree_unflatten(tree, leaves), is_leaf=lambda x: x is None)


call_hi_primitive_p = Primitive(
    "call_hi_primitive", ("_prim",), abstract=_abstract, emit=lower_fun(_flat), jvp=_jvp, linearize=_linearize,
    transpose=no_rule("an operation of a VJPHiPrimitive is linearized, not transposed"), batch=_batch,
    multiple_results=True,
)
