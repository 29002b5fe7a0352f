"""Operations on values of high types, computed on the arrays that represent the values.

A jaxpr records an operation as operations on arrays. Only differentiation of the Python function uses the operation's
own derivative, so differentiation of a compiled function calls the Python function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, cast

from xtrace._src.algebra.vector_space import convert_to
from xtrace._src.algebra.zero_tangents import Zero
from xtrace._src.api.mapping.vmap import vmap
from xtrace._src.core.avals import ShapedArray, aval_of, is_array_like
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import OWN_DERIVATIVE_EFFECT
from xtrace._src.core.jaxprs.ir import JaxprEqn
from xtrace._src.core.primitive import Parameters, Primitive, no_rule
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.settings.jax_version import is_newer
from xtrace._src.core.tangents import is_differentiable, tangent_aval
from xtrace._src.core.trace import Trace, Tracer, current_trace
from xtrace._src.core.value_objects import EqualByKey
from xtrace._src.extension.gradient_accumulators import ValAccum
from xtrace._src.extension.rules import from_jax_axis_batcher, from_jax_jvp
from xtrace._src.ops.calls.lower_fun import lower_fun
from xtrace._src.ops.custom_rules.custom_jvp import custom_jvp_call
from xtrace._src.ops.custom_rules.custom_vjp import custom_vjp_call
from xtrace._src.ops.custom_rules.rule import Rule, to_user_operand
from xtrace._src.ops.reductions.reductions import add_elements
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.replay import StackedTrace
from xtrace._src.transforms.stage import StagingTrace

__all__ = ["HiPrimitive", "VJPHiPrimitive", "jvp_from_lin", "linearize_from_jvp", "vjp_from_jvp", "vjp_from_lin"]

# Attributes that a subclass may define; they replace those of the instance.
_CLASS_ATTRIBUTES = ("multiple_results", "jvp", "transpose", "batch", "abstract")


class HiPrimitive(Primitive):
    """The base class of operations on values of high types.

    A subclass has the methods

    - ``to_lojax(*values, **parameters)``: returns the result, computed by operations on arrays;
    - ``abstract_eval(*types, **parameters)``: returns the type of the result and the effects;
    - ``jvp(primals, tangents, **parameters)``, for derivatives: returns the result and its tangent;
    - ``batch(mapped, values, axes, **parameters)``, for `vmap`: returns the result and its mapped axis.

    A zero tangent is a `Zero`. With ``multiple_results = True`` results are lists.

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
        for attribute in _CLASS_ATTRIBUTES:
            if hasattr(type(self), attribute):
                vars(self).pop(attribute, None)
        if "jvp" in own:
            self.jvp = from_jax_jvp(self, own["jvp"])
        if "batch" in own:
            self.batch = from_jax_axis_batcher(self, own["batch"])
        self.replayable = False

    def is_high(self, *_: object, **__: object) -> bool:
        """Return whether the operation has operands or results of high types."""
        return True

    def is_effectful(self, *_: object, **__: object) -> bool:
        """Return whether the operation has effects."""
        return False

    def to_lojax(self, *values: Any, **parameters: Any) -> Any:
        """Compute the result by operations on arrays."""
        raise NotImplementedError(
            f"the operation {self.name} has no method to_lojax; define {type(self).__name__}.to_lojax, which computes "
            "the result by operations on arrays"
        )

    def bind(self, *operands: Any, **parameters: Any) -> Any:
        """Apply the operation: by its rule if an operand is differentiated or mapped, else by `to_lojax`."""
        for trace in current_trace.get().enclosing():
            if isinstance(trace, StackedTrace) and _owns_any(trace, operands):
                return trace.process(self, operands, (Parameters(parameters),))
            if isinstance(trace, StagingTrace) and not trace.is_tape:
                trace.effects |= {OWN_DERIVATIVE_EFFECT}
        return self.to_lojax(*operands, **parameters)


def _has_rule_for(values: Sequence[Any]) -> bool:
    """Return whether one of `values` is differentiated or mapped."""
    return any(isinstance(t, StackedTrace) and _owns_any(t, values) for t in current_trace.get().enclosing())


def _owns_any(trace: Trace, values: Sequence[Any]) -> bool:
    return any(isinstance(x, Tracer) and x.owner is trace for x in values)


class VJPHiPrimitive(EqualByKey):
    """The base class of operations with derivatives of their own, which may be recorded.

    A subclass sets `in_avals`, a tuple of trees of types, `out_aval`, a tree of types, and `params`, a dictionary of
    static values, which become attributes, and calls ``super().__init__()``. Its method `expand` computes the result.
    Reverse mode takes ``vjp_fwd(nonzero, *args)``, which returns the result and residuals, and
    ``vjp_bwd_retval(residuals, cotangent)``, the cotangents of the arguments, or ``vjp_bwd(residuals, cotangent,
    *accumulators)``. It may have ``jvp(primals, tangents)``; ``lin(nonzero, *args)``, which returns the result and
    residuals, with ``linearized(residuals, *tangents)``; and ``batch(axis_data, args, axes)``, or
    ``batch_dim_rule(axis_data, axes)``, which returns the axis of the result that is mapped. Zero tangents and
    cotangents are `Zero`.

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
        vars(self).update(self.params)
        self.in_avals_flat, self.in_tree = pytree.tree_flatten(self.in_avals)
        self.out_avals_flat, self.out_tree = pytree.tree_flatten(self.out_aval)

    def __repr__(self) -> str:
        return f"{type(self).__name__}[{self.params}]"

    def _key(self) -> Any:
        static = tuple(sorted(self.params.items()))
        return type(self), self.in_tree, tuple(self.in_avals_flat), self.out_tree, tuple(self.out_avals_flat), static

    def expand(self, *args: Any) -> Any:
        """Compute the result by other operations."""
        raise self._report_missing("expand", "computes the result by other operations")

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        """Return the result and residuals; `nzs_in` has a flag for each leaf, whether its derivative is needed."""
        raise self._report_missing("vjp_fwd", "returns the result and residuals for the backward pass")

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        """Return the cotangents of the arguments."""
        raise self._report_missing("vjp_bwd_retval", "returns the cotangents of the arguments")

    def vjp_bwd(self, res: Any, outgrad: Any, /, *arg_accums: Any) -> Any:
        """Add the cotangents of the arguments to the accumulators, in the arguments' structure."""
        leaves = [accumulator for one in arg_accums for accumulator in pytree.tree_leaves(one)]
        returned = self.vjp_bwd_retval(res, outgrad)
        for accumulator, cotangent in zip(leaves, pytree.tree_leaves(returned, is_leaf=_is_zero), strict=True):
            accumulator.accum(cotangent)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        """Return the result and its tangent."""
        raise self._report_missing("jvp", "returns the result and its tangent, for forward mode")

    def lin(self, nzs_in: Any, *primals: Any) -> Any:
        """Return the result and residuals; `nzs_in` has a flag for each leaf, whether it has a tangent."""
        raise self._report_missing("lin", "returns the result and residuals for the linear map")

    def linearized(self, residuals: Any, *tangents: Any) -> Any:
        """Return the tangent of the result."""
        raise self._report_missing("linearized", "returns the tangent of the result")

    def batch_dim_rule(self, axis_data: Any, dims: Any, /) -> Any:
        """Return the position of the mapped axis in the result, given those in the arguments."""
        raise self._report_missing(
            "batch", "returns the result of mapped arguments and the axes where it is mapped, or batch_dim_rule"
        )

    def batch(self, axis_data: Any, args: Any, dims: Any) -> Any:
        """Return the result of mapped arguments, and the position of the mapped axis in it."""
        place = self.batch_dim_rule(axis_data, dims)
        return _Mapped(self, axis_data, args, dims, place)(*args), place

    def _report_missing(self, method: str, contract: str) -> NotImplementedError:
        name = type(self).__name__
        return NotImplementedError(f"{name} has no method {method}; define {name}.{method}, which {contract}")

    def __call__(self, *args: Any) -> Any:
        leaves, tree = pytree.tree_flatten(args)
        if tree != self.in_tree:
            raise TypeError(f"{abbreviate(self)} takes arguments of the structure {self.in_tree}, got {tree}")
        if any(a.is_high for a in (*self.in_avals_flat, *self.out_avals_flat)):
            if not _has_rule_for(leaves):
                # The values of programs are arrays.
                return self.expand(*args)
        else:
            self._check_types(leaves)
        return pytree.tree_unflatten(self.out_tree, call_hi_primitive_p.bind(*leaves, _prim=self))

    def _check_types(self, leaves: Sequence[Any]) -> None:
        for leaf, aval in zip(leaves, self.in_avals_flat, strict=True):
            own = aval_of(leaf)
            if (own.shape, own.dtype) != (aval.shape, aval.dtype):
                types = ", ".join([a.str_short(True) for a in self.in_avals_flat])
                raise TypeError(
                    f"{abbreviate(self)} takes arguments of the types {types}, got one of type {own.str_short(True)}"
                )

    def flat(self, *leaves: Any) -> list[Any]:
        """Compute the leaves of the result from the leaves of the arguments."""
        return pytree.tree_leaves(self.expand(*pytree.tree_unflatten(self.in_tree, leaves)))


def _has_own(prim: VJPHiPrimitive, method: str) -> bool:
    return getattr(type(prim), method) is not getattr(VJPHiPrimitive, method)


def _is_zero(x: Any) -> bool:
    return x is None or isinstance(x, Zero)


class _Derived:
    """A rule that follows from another one; as a pair it stands for both methods of a class."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __iter__(self) -> Iterator[_Derived]:
        return iter((self, self))

    def __repr__(self) -> str:
        return self.name


linearize_from_jvp, vjp_from_lin, vjp_from_jvp = map(_Derived, ("linearize_from_jvp", "vjp_from_lin", "vjp_from_jvp"))


def jvp_from_lin(self: VJPHiPrimitive, primals: Any, tangents: Any) -> Any:
    """Return the result and its tangent by the rules `lin` and `linearized`.

    Args:
        self: the operation.
        primals: its arguments.
        tangents: a tangent for each.

    Returns:
        A pair of the result and its tangent.

    Raises:
        NotImplementedError: the operation has no such rules.

    Example:
        >>> class Double(xtrace.experimental.hijax.HiPrim):
        ...     def __init__(self, aval):
        ...         self.in_avals, self.out_aval, self.params = (aval,), aval, {}
        ...         super().__init__()
        ...     def expand(self, x): return 2.0 * x
        ...     def lin(self, nonzero, x): return self(x), None
        ...     def linearized(self, residuals, t): return 10.0 * t
        ...     jvp = xtrace.experimental.hijax.jvp_from_lin
        >>> xtrace.jvp(lambda x: Double(xtrace.typeof(x))(x), (1.0,), (1.0,))
        (Array(2., dtype=float32, weak_type=True), Array(10., dtype=float32, weak_type=True))
    """
    nonzero = pytree.tree_map(lambda t: not isinstance(t, Zero), tangents, is_leaf=_is_zero)
    result, residuals = self.lin(nonzero, *primals)[:2]
    return result, self.linearized(residuals, *tangents)


class _Mapped(VJPHiPrimitive):
    """An operation mapped over an axis, with the rules of the operation mapped."""

    def __init__(self, prim: VJPHiPrimitive, axis_data: Any, args: Any, dims: Any, place: Any) -> None:
        self.in_avals = pytree.tree_map(aval_of, args)
        self.out_aval = pytree.tree_unflatten(prim.out_tree, [
            axis_data.stack(aval, at)
            for aval, at in zip(prim.out_avals_flat, _places(place, prim.out_aval), strict=True)
        ])
        self.params = {"prim": prim, "size": axis_data.size, "dims": _Hashable(dims), "place": _Hashable(place)}
        super().__init__()

    def _map(self, function: Callable[..., Any], in_axes: Any, out_axes: Any) -> Callable[..., Any]:
        return vmap(function, in_axes=in_axes, out_axes=out_axes, axis_size=self.params["size"])

    @property
    def _rules(self) -> tuple[VJPHiPrimitive, Any, Any]:
        return self.params["prim"], self.params["dims"].value, self.params["place"].value

    def expand(self, *args: Any) -> Any:
        prim, dims, place = self._rules
        return self._map(prim.expand, dims, place)(*args)

    def jvp(self, primals: Any, tangents: Any) -> Any:
        prim, dims, place = self._rules
        tangents = instantiate_tree(tangents)
        return self._map(lambda x, t: prim.jvp(x, t), (dims, dims), (place, place))(primals, tangents)

    def vjp_fwd(self, nzs_in: Any, /, *args: Any) -> Any:
        prim, dims, place = self._rules
        return self._map(lambda *x: tuple(_forward(prim, nzs_in, x)), dims, (place, 0))(*args)

    def vjp_bwd_retval(self, res: Any, outgrad: Any, /) -> Any:
        prim, dims, place = self._rules

        def backward(res: Any, outgrad: Any) -> Any:
            return [None if _is_zero(c) else c for c in _backward(prim, res, outgrad)]

        axes = pytree.tree_leaves(dims, is_leaf=lambda x: x is None)
        out_axes = [i or 0 for i in axes]
        cotangents = self._map(backward, (0, place), out_axes)(res, instantiate_tree(outgrad))
        return [
            add_elements(c, (0,)) if c is not None and i is None else c for c, i in zip(cotangents, axes, strict=True)
        ]


class _Hashable(EqualByKey):
    """A tree as a static value."""

    def __init__(self, value: Any) -> None:
        self.value = value
        leaves, tree = pytree.tree_flatten(value, is_leaf=lambda x: x is None)
        self._leaves = tuple(leaves), tree

    def _key(self) -> Any:
        return self._leaves

    def __repr__(self) -> str:
        return repr(self.value)


def _places(place: Any, tree: Any) -> list[Any]:
    return pytree.broadcast_prefix(place, tree, is_leaf=lambda x: x is None)


def instantiate_tree(tree: Any) -> Any:
    """Return a tree with arrays in the place of `Zero`."""
    return pytree.tree_map(lambda x: x.instantiate() if isinstance(x, Zero) else x, tree, is_leaf=_is_zero)


def _abstract(*_: ShapedArray, _prim: VJPHiPrimitive) -> list[ShapedArray]:
    """Apply an operation defined by a `VJPHiPrimitive`."""
    return _prim.out_avals_flat


def _flat(*leaves: Any, _prim: VJPHiPrimitive) -> list[Any]:
    return _prim.flat(*leaves)


def _with_zeros(values: Sequence[Any], avals: Sequence[ShapedArray]) -> list[Any]:
    return [Zero(tangent_aval(a)) if t is None else to_user_operand(t) for t, a in zip(values, avals, strict=True)]


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, _prim: VJPHiPrimitive) -> tuple[list[Any], list[Any]]:
    return _apply_jvp(_prim, type(_prim).jvp, primals, tangents)


def _apply_jvp(
    prim: VJPHiPrimitive, rule: Callable[..., Any], primals: Sequence[Any], tangents: Sequence[Any]
) -> tuple[list[Any], list[Any]]:
    values = [to_user_operand(x) for x in primals]
    moved = _with_zeros(tangents, prim.in_avals_flat)
    result, tangent = rule(prim, *[pytree.tree_unflatten(prim.in_tree, x) for x in (values, moved)])
    out = pytree.tree_leaves(tangent, is_leaf=_is_zero)
    return pytree.tree_leaves(result), [None if _is_zero(t) else t for t in out]


def _linearize(
    primals: Sequence[Any], tangents: Sequence[Any], *, _prim: VJPHiPrimitive
) -> tuple[list[Any], list[Any]]:
    nonzero = pytree.tree_unflatten(_prim.in_tree, [t is not None for t in tangents])
    kind: Any = type(_prim)
    by_vjp, by_lin = _has_own(_prim, "vjp_fwd"), _has_own(_prim, "lin")
    if isinstance(kind.vjp_fwd, _Derived):
        by_vjp, by_lin = False, kind.vjp_fwd is vjp_from_lin
    if not by_vjp and (by_lin or kind.vjp_fwd is vjp_from_jvp):
        from_jvp = not by_lin or isinstance(kind.lin, _Derived)
        return _linearize_forward(primals, tangents, _prim, kind.jvp if from_jvp else jvp_from_lin)
    rule = Rule(functools.partial(_forward_leaves, _prim, nonzero), type(_prim).__name__)
    linearize: Any = custom_vjp_call.linearize
    results: tuple[list[Any], list[Any]] = linearize(
        primals, tangents, name=rule.name, call_jaxpr=None, fwd=rule, num_consts=0
    )
    return results


def _linearize_forward(
    primals: Sequence[Any], tangents: Sequence[Any], prim: VJPHiPrimitive, rule: Callable[..., Any]
) -> tuple[list[Any], list[Any]]:
    """Linearize by a rule for forward mode, ``rule(prim, primals, tangents)``."""

    def forward(leaves: Sequence[Any], directions: Sequence[Any]) -> tuple[list[Any], list[Any]]:
        return _apply_jvp(prim, rule, leaves, directions)

    name, linearize = type(prim).__name__, cast(Any, custom_jvp_call.linearize)
    results: tuple[list[Any], list[Any]] = linearize(
        primals, tangents, name=name, call_jaxpr=None, jvp=Rule(forward, name), num_consts=0
    )
    return results


def _forward_leaves(
    prim: VJPHiPrimitive, nonzero: Any, primals: Sequence[Any], _: Sequence[bool]
) -> tuple[list[Any], list[Any], Rule]:
    """Return the leaves of the result and of the residuals, and the backward rule."""
    values = [to_user_operand(x) for x in primals]
    result, residuals = _forward(prim, nonzero, pytree.tree_unflatten(prim.in_tree, values))
    kept, tree = pytree.tree_flatten(residuals)
    static = {i: x for i, x in enumerate(kept) if type(x) is bool or not is_array_like(x)}

    def backward(saved: Sequence[Any], cotangents: Sequence[Any]) -> list[Any]:
        left = map(to_user_operand, saved)
        restored = [static[i] if i in static else next(left) for i in range(len(kept))]
        given = pytree.tree_unflatten(prim.out_tree, _with_zeros(cotangents, prim.out_avals_flat))
        in_cotangents = _backward(prim, pytree.tree_unflatten(tree, restored), given)
        return [
            None if _is_zero(c) or not is_differentiable(a)
            else convert_to(c, a.to_cotangent_aval().dtype, aval_of(c).weak_type and a.weak_type)
            for c, a in zip(in_cotangents, prim.in_avals_flat, strict=True)
        ]

    arrays = [x for i, x in enumerate(kept) if i not in static]
    return pytree.tree_leaves(result), arrays, Rule(backward, type(prim).__name__)


def _forward(prim: VJPHiPrimitive, nonzero: Any, args: Sequence[Any]) -> Sequence[Any]:
    """Return the result and the residuals of the forward rule, which may say besides which results are zero."""
    returned: Sequence[Any] = prim.vjp_fwd(nonzero, *args)
    return returned[:2]


def _backward(prim: VJPHiPrimitive, residuals: Any, cotangent: Any) -> list[Any]:
    """Return the cotangents of the leaves of the arguments."""
    if not _has_own(prim, "vjp_bwd"):
        return pytree.tree_leaves(prim.vjp_bwd_retval(residuals, cotangent), is_leaf=_is_zero)
    accumulators = [ValAccum(a.to_cotangent_aval()) for a in prim.in_avals_flat]
    prim.vjp_bwd(residuals, cotangent, *pytree.tree_unflatten(prim.in_tree, accumulators))
    return [x.freeze() for x in accumulators]


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, _prim: VJPHiPrimitive
) -> tuple[list[Any], list[Any]]:
    args, dims = (pytree.tree_unflatten(_prim.in_tree, x) for x in (operands, axes))
    result, out_dims = _prim.batch(mapped, args, dims)
    leaves, tree = pytree.tree_flatten(result)
    return leaves, _places(out_dims, pytree.tree_unflatten(tree, leaves))


def _printed(printer: Any, equation: JaxprEqn) -> str | None:
    """Return the equation as newer JAX prints it, by the name of the class; None for the usual form."""
    if not is_newer():
        return None
    prim = equation.params["_prim"]
    shown = ", ".join([f"{k}={v}" for k, v in prim.params.items()])
    binders = " ".join(map(printer.binder, equation.outvars))
    operands = " ".join(map(printer.atom, equation.invars))
    return f"{binders} = {type(prim).__name__}{f'[{shown}]' if shown else ''} {operands}"


call_hi_primitive_p = Primitive(
    "call_hi_primitive", ("_prim",), abstract=_abstract, emit=lower_fun(_flat), jvp=_jvp, linearize=_linearize,
    transpose=no_rule("an operation of a VJPHiPrimitive is linearized, not transposed"), batch=_batch, evaluate=_flat,
    multiple_results=True, printed=_printed,
)
