"""Primitives: the operations of the IR, each one object with its rules beside it."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Generic, Literal, ParamSpec, TypeVar, overload

from xtrace._src.core.array_protocol import convert_array_objects
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.callables import LazySignature
from xtrace._src.core.diagnostics.positions import describe, user_position
from xtrace._src.core.diagnostics.tracebacks import hide_frames
from xtrace._src.core.docstrings import complete_docstring
from xtrace._src.core.errors import ShardingTypeError
from xtrace._src.core.flag_parameters import check_flags, find_flags
from xtrace._src.core.jaxprs.effects import NO_EFFECTS, Effects
from xtrace._src.core.memory_spaces import MemorySpace, common_memory_space
from xtrace._src.core.shardings import sum_rules
from xtrace._src.core.shardings.partition_spec import PartitionSpec, get_entry_axes
from xtrace._src.core.shardings.sharding_rules import Split, different_meshes, join, whole
from xtrace._src.core.shardings.shardings import NamedSharding, explicit_part
from xtrace._src.core.shardings.sums import NO_SUMS, Sums
from xtrace._src.core.tables import Table
from xtrace._src.core.trace import FUSES_ALL, FUSES_NONLINEAR, FUSES_SEVERAL, Trace, current_trace, use_trace

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")

# Names of the library's primitives that users have given other rules.
with_rules_of_users: set[str] = set()
_primitives: dict[str, Primitive] = {}


class Parameters(dict[str, Any]):
    """The parameters of an equation of a user's primitive; hashable if their values are."""

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))


def _undefined_types(name: str) -> Callable[..., Any]:
    return no_rule(
        f"Abstract evaluation for '{name}' not implemented: the types of its results are unknown. Register a function "
        "of the operands' types with def_abstract_eval"
    )


def _no_emit(name: str) -> Callable[..., Any]:
    return no_rule(
        f"MLIR translation rule for primitive '{name}' not found: it cannot be part of a compiled program. Register "
        "one with xtrace.interpreters.mlir.register_lowering, such as mlir.lower_fun(function, multiple_results=False)"
    )


# For each kind of rule its name in messages, and the registry for users' rules.
_RULES = {
    "jvp": ("Differentiation rule", "ad.primitive_jvps"), "transpose": ("Transpose rule", "ad.primitive_transposes"),
    "batch": ("Batching rule", "batching.primitive_batchers"),
}


def no_rule(why: str, error: type[Exception] = NotImplementedError) -> Callable[..., Any]:
    """Return a rule that raises `error` with the reason `why` the operation has no such rule."""

    def refuse(*_: object, **__: object) -> Any:
        raise error(why)

    return refuse


# Parameters that `bind` may leave out, as code written for JAX does; they are None then.
_OPTIONAL = frozenset(("accuracy", "algorithm", "input_dtype", "out_dtype", "out_sharding", "prevent_mlir_dce"))


class MixedVarying(Exception):
    """Operands vary along different manual mesh axes; `varying` is the union of these."""

    def __init__(self, varying: frozenset[Any]) -> None:
        super().__init__(f"the operands vary along different mesh axes, together {sorted(map(str, varying))}")
        self.varying = varying


class MixedSums(Exception):
    """Scalars are combined with operands that are reduced along mesh axes; the scalars should have `sharding`.

    `manual` are the reduced axes that are manual, which are not part of shardings.
    """

    def __init__(self, sharding: NamedSharding | None, manual: frozenset[Any]) -> None:
        super().__init__(f"scalars must be reduced, as {sharding} says, and along {sorted(map(str, manual))}")
        self.sharding, self.manual = sharding, manual

    def concerns(self, aval: ShapedArray) -> bool:
        """Whether an operand of type `aval` is one of the scalars."""
        return not aval.ndim and not any(aval.sums)


class Derived:
    """A rule that follows from the kind of the operation: `make`, called with the primitive as its first argument.

    `sums` is the sum rule of such operations (`core/shardings/sum_rules.py`).
    """

    __slots__ = ("make", "sums")

    def __init__(self, make: Callable[..., Any], sums: Callable[..., Any] = sum_rules.nonlinear) -> None:
        self.make, self.sums = make, sums

    def of(self, primitive: Primitive) -> Callable[..., Any]:
        """Return the rule of `primitive`."""
        return functools.partial(self.make, primitive)


class Primitive:
    """An operation: its name in the IR, its parameters in order, and its rules.

    A call runs the public operation: `operation` checks and normalizes the arguments, and binds. `bind` neither checks
    nor converts operands and parameters. A rule that an operation cannot have is ``no_rule(why)``. `programs` holds the
    programs of eager evaluation, `subprograms` and `emission_templates` the recorded work of rules; types, parameters,
    settings and the platform are the keys of their entries.

    A primitive with a name only is a user's: its rules are registered after its definition, and `bind` takes any
    parameters. Its equations hold these as one `Parameters`, so its rules here get them as ``parameters=``.

    Args:
        name: the name in the IR.
        parameters: the names of the static parameters.
        abstract: ``abstract(*avals, **parameters)`` returns the type of the result, a list where `multiple_results`;
            it raises errors for wrong operands.
        emit: ``emit(builder, *values, **parameters)`` writes StableHLO and returns the value, or a list.
        effects: ``effects(**parameters)`` returns the effects of an equation.
        jvp: ``jvp(primals, tangents, **parameters)`` returns the result and its tangent, or a list of each; None stands
            for a zero tangent.
        linearize: replaces `jvp` under linearization, for operations that hold jaxprs: operations on tangents are bound
            in equations of their own.
        partial_evaluate: ``partial_evaluate(unknown, **parameters)`` splits an operation that holds jaxprs. It returns
            a function from operands to results that binds the equations without unknown operands apart; None if there
            are no such equations.
        transpose: ``transpose(cotangent, *operands, **parameters)`` returns a cotangent or None for each operand. The
            operands in which the operation is linear are `UndefinedPrimal`; where `multiple_results`, the cotangents
            are a list, None for zero.
        transposes_zeros: whether `transpose` is called also if all cotangents are zero: a user's rule may return
            cotangents that are not zero.
        batch: ``batch(mapped, operands, axes, **parameters)`` returns the result and the position of its mapped axis,
            or a list of each; None is the position of no axis.
        evaluate: ``evaluate(*arrays, **parameters)`` computes the results in Python, without a compiled program.
        multiple_results: whether the result is a list.
        unprinted: values of parameters that jaxprs do not show.
        memoised: whether the results of `abstract` are remembered.
        moves_elements: whether the result's elements are elements of operands; arrays of keys may be operands, too.
        varying: ``varying(axes, **parameters)`` returns the manual mesh axes along which the results vary, if the
            operands vary along `axes`; None if these are the same.
        sums: ``sums(name, operands, requested, **parameters)`` returns the mesh axes along which the result is
            unreduced or reduced: one of the rules of `core/shardings/sum_rules.py`.
        manual_sums: ``manual_sums(sums, **parameters)`` returns the manual mesh axes along which the result is
            unreduced or reduced, from the axes of the operands; None if these are the same.
        sharding: ``sharding(name, operands, result, **parameters)`` returns the split of the result over explicit mesh
            axes (`core/shardings/sharding_rules.py`); None if operands must be whole.
        sharding_parameter: the name of the parameter with the user's sharding of the result, whose value None leaves
            the sharding to the rule; None if there is no such parameter.
        memory_operand: the position of the operand whose memory is the result's, while others may be in any; None if
            all arrays must be in one memory.
        holds_jaxprs: whether jaxprs among the parameters determine the types of the results; by default whether there
            is a `linearize` or `partial_evaluate`.
        discharge: for operations on references, or with jaxprs that have them: ``discharge(keys, operands,
            **parameters)`` does the same on arrays in the place of references; `keys` has an object for each reference,
            and None for other operands. It returns the new array of each written reference, None for others, and the
            list of results.
        printed: ``printed(printer, equation)`` returns the text of an equation in jaxprs, or None for the usual one.
        operation: the function that a call runs; None for `bind`.

    Example:
        >>> lax.sin_p.name, lax.sin_p.bind(0.0)
        ('sin', Array(0., dtype=float32, weak_type=True))
        >>> double_p = xtrace.extend.core.Primitive("double")
        >>> _ = double_p.def_impl(lambda x: x * 2)
        >>> double_p.bind(jnp.array(3.0))
        Array(6., dtype=float32, weak_type=True)
    """

    call_primitive = map_primitive = multiple_results = False

    def __init__(
        self, name: str, parameters: Sequence[str] = (), *, abstract: Callable[..., Any] | None = None,
        emit: Callable[..., Any] | None = None,
        effects: Callable[..., Effects] | None = None, jvp: Callable[..., Any] | Derived | None = None,
        linearize: Callable[..., Any] | Derived | None = None,
        partial_evaluate: Callable[..., Callable[[Sequence[Any]], list[Any]] | None] | None = None,
        transpose: Callable[..., Any] | None = None, transposes_zeros: bool = False,
        batch: Callable[..., Any] | Derived | None = None,
        evaluate: Callable[..., Any] | None = None, multiple_results: bool = False,
        unprinted: Mapping[str, Any] | None = None, memoised: bool = True, moves_elements: bool = False,
        varying: Callable[..., frozenset[Any]] | None = None, sums: Callable[..., Any] | None = None,
        manual_sums: Callable[..., Sums] | None = None, sharding: Callable[..., Any] | None = None,
        sharding_parameter: str | None = None, memory_operand: int | None = None, holds_jaxprs: bool | None = None,
        discharge: Callable[..., tuple[list[Any], list[Any]]] | None = None,
        printed: Callable[..., str | None] | None = None, operation: Callable[..., Any] | None = None,
    ) -> None:
        self.is_users = abstract is None
        if abstract is None:
            parameters, memoised = ("parameters",), False
        self.name, self.parameters = name, tuple(parameters)
        self.abstract, self.emit, self.effects = abstract or _undefined_types(name), emit or _no_emit(name), effects
        self.jvp = jvp.of(self) if isinstance(jvp, Derived) else jvp
        self.batch = batch.of(self) if isinstance(batch, Derived) else batch
        self.linearize = linearize.of(self) if isinstance(linearize, Derived) else linearize
        self.partial_evaluate, self.transpose, self.evaluate = partial_evaluate, transpose, evaluate
        self.transposes_zeros = transposes_zeros
        self.memoised, self.moves_elements = memoised, moves_elements
        self.multiple_results = multiple_results or type(self).multiple_results
        self.varying, self.sharding, self.sharding_parameter = varying, sharding, sharding_parameter
        self.manual_sums, self.memory_operand = manual_sums, memory_operand
        self.sums = sums or (jvp.sums if isinstance(jvp, Derived) else sum_rules.nonlinear)
        self.discharge, self.printed = discharge, printed
        own_evaluation = linearize is not None or partial_evaluate is not None
        self.holds_jaxprs = own_evaluation if holds_jaxprs is None else holds_jaxprs
        self.unprinted = dict.fromkeys(self.parameters) | dict(unprinted or {})
        self.users_impl: Callable[..., Any] | None = None
        # A user's function from the operands' types to the results' types and the effects.
        self._effects_of_types: Callable[..., tuple[Any, Any]] | None = None
        self._types = Table(8192)
        self.programs = Table()
        self.subprograms = Table()
        self.replayable = linearize is None and effects is None and memoised
        self.emission_templates = Table()
        self.__name__ = self.__qualname__ = name
        self.__module__ = "xtrace.lax"
        self.__doc__ = abstract.__doc__ if abstract is not None else None
        self.operation = operation
        if operation is not None:
            self.__name__ = self.__qualname__ = operation.__name__
            self.__doc__, self.__signature__ = operation.__doc__, LazySignature(operation)
            self.flags = find_flags(operation)
        if not self.is_users:
            _primitives[name] = self
        # Methods of a user's subclass are rules.
        if type(self).abstract_eval is not Primitive.abstract_eval:
            self.def_effectful_abstract_eval(self.abstract_eval)
        if type(self).impl is not Primitive.impl:
            self.def_impl(self.impl)

    @classmethod
    def define(
        cls, *arguments: Any, **details: Any
    ) -> Callable[[Callable[_Arguments, _Result]], Operation[_Arguments, _Result]]:
        """Return the decorator that makes an operation of this family from a function with these arguments.

        The function gives the name, the signature and the docstring; the family's constructor says whether it has a
        body.
        """

        def decorate(function: Callable[_Arguments, _Result]) -> Operation[_Arguments, _Result]:
            return cls(function, *arguments, **details)  # type: ignore[arg-type, return-value]

        return decorate

    def declare(
        self, declaration: Callable[..., Any], arguments: Mapping[str, str], returns: str, raises: Mapping[str, str]
    ) -> None:
        """Take the public name, the signature and the docstring from `declaration`, a function without a body.

        The other arguments are the parts of the docstring that all operations of a family share.
        """
        self.__name__ = self.__qualname__ = declaration.__name__
        self.__signature__ = LazySignature(declaration)
        self.__doc__ = complete_docstring(declaration.__doc__, arguments, returns, raises)

    def __call__(self, *arguments: Any, **keywords: Any) -> Any:
        try:
            if self.operation is None:
                return self.bind(*arguments, **keywords)
            if keywords and self.flags and not self.flags.keys().isdisjoint(keywords):
                check_flags(self.__name__, self.flags, arguments, keywords)
            return self.operation(*arguments, **keywords)
        except BaseException as error:
            hide_frames(error)
            converted = convert_array_objects(error, arguments, keywords)
            if converted is None:
                raise
        return self(*converted[0], **converted[1])

    def bind(self, *operands: object, **parameters: object) -> Any:
        """Apply the primitive under the current trace, without any check or conversion of the operands."""
        if self.is_users:
            return current_trace.get().process(self, operands, (Parameters(parameters),))
        if parameters.keys() != set(self.parameters):
            # Code for JAX may leave out an optional parameter, and give None for a parameter that is unknown here.
            given = {p: v for p, v in parameters.items() if v is not None or p in self.parameters}
            parameters = {p: None for p in self.parameters if p in _OPTIONAL} | given
        if len(parameters) != len(self.parameters) or any(p not in parameters for p in self.parameters):
            raise TypeError(
                f"primitive {self.name} has the parameters ({', '.join(self.parameters)}); "
                f"got ({', '.join(parameters)})"
            )
        return current_trace.get().process(self, operands, tuple([parameters[p] for p in self.parameters]))

    def bind_positional(self, operands: Sequence[Any], parameters: tuple[Any, ...] = ()) -> Any:
        """Apply the primitive as `bind` does, to a tuple of parameters in order, without a check; for hot paths."""
        return current_trace.get().process(self, operands, parameters)

    @property
    def fusion_level(self) -> int:
        """The least `Trace.fusion_level` at which this operation, as a function of its own, is one compiled program."""
        if self.partial_evaluate is not None:  # it holds a jaxpr of several operations
            return FUSES_SEVERAL
        return FUSES_NONLINEAR if self.transpose is None else FUSES_ALL

    def abstract_eval(self, *avals: ShapedArray, **parameters: Any) -> tuple[Any, Effects]:
        """Return the result's type, and the effects; a subclass of users may define it."""
        packed = self.pack_parameters({p: None for p in self.parameters if p in _OPTIONAL} | parameters)
        return self.infer_types(avals, packed), self.find_effects(packed, avals)

    def infer_types(self, avals: tuple[ShapedArray, ...], parameters: tuple[Any, ...]) -> Any:
        """Return the result of `abstract`, remembered per operand avals and parameters."""
        try:
            return self._types[parameters, avals]
        except KeyError:
            pass
        except TypeError:  # an unhashable parameter
            return self._apply_abstract_rule(avals, parameters)
        types = self._apply_abstract_rule(avals, parameters)
        if self.memoised:
            self._types.remember((parameters, avals), types)
        return types

    def _apply_abstract_rule(self, avals: tuple[ShapedArray, ...], parameters: tuple[Any, ...]) -> Any:
        try:
            named = dict(zip(self.parameters, parameters, strict=True))
            requested = named[self.sharding_parameter] if self.sharding_parameter is not None else None
            if not self.holds_jaxprs and (requested is not None or any(a.is_placed for a in avals)):
                return self._abstract_eval_placed(avals, named, requested)
            return self.abstract(*avals, **named)
        except Exception as error:
            operands = ", ".join(a.str_short(True) for a in avals)
            error.add_note(f"operation {self.name} on ({operands}), called at {describe(user_position())}")
            raise

    def _abstract_eval_placed(
        self, avals: Sequence[ShapedArray], named: dict[str, Any], requested: NamedSharding | None
    ) -> Any:
        """Infer the types of results: in the operands' memory, varying along their manual axes, split by the rule.

        requested: the user's sharding of the result, which replaces the rule. Raises MixedVarying if some operands vary
        along fewer axes than others, and MixedSums if scalars should be reduced.
        """
        varying = frozenset().union(*[a.varying for a in avals])
        if any(a.varying != varying for a in avals):
            _check_no_terms(self.name, avals, varying)
            raise MixedVarying(varying)
        space = self._find_result_memory(avals)
        plain = avals if self.multiple_results else [a.update(memory_space=MemorySpace.Device) for a in avals]
        plain = [a.update(varying=frozenset(), sharding=None, manual_sums=NO_SUMS) for a in plain]
        result = self.abstract(*plain, **named)
        results = result if self.multiple_results else [result]
        varying = self.varying(varying, **named) if self.varying is not None else varying
        sums = self._find_result_sums(avals, plain, len(results), named, requested)
        manual = frozenset().union(*[axes for a in avals for axes in a.manual_sums])
        explicit = [s.without(manual) for s in sums]
        if requested is not None:
            shardings = [_choose_sharding(requested, a, s) for a, s in zip(results, explicit, strict=True)]
        else:
            shardings = result_shardings(self, avals, plain, result, named, explicit)
        inner = [s.within(manual) for s in sums]
        if self.manual_sums is not None:
            inner = [self.manual_sums(s, **named) for s in inner]
        types = [
            a.update(varying=varying, sharding=sharding, manual_sums=s, memory_space=space or a.memory_space)
            for a, sharding, s in zip(results, shardings, inner, strict=True)
        ]
        return types if self.multiple_results else types[0]

    def _find_result_memory(self, avals: Sequence[ShapedArray]) -> MemorySpace | None:
        """Return the memory of all results; None if the abstract rule chooses it for each."""
        if self.memory_operand is not None:
            return avals[self.memory_operand].memory_space
        if not self.multiple_results:
            return common_memory_space(self.name, avals)
        spaces = {a.memory_space for a in avals if a.shape}
        return spaces.pop() if len(spaces) == 1 and self.sharding is not None else None

    def _find_result_sums(
        self, avals: Sequence[ShapedArray], plain: Sequence[ShapedArray], count: int, named: dict[str, Any],
        requested: NamedSharding | None,
    ) -> list[Sums]:
        """Return the unreduced and reduced axes of each of `count` results; MixedSums if scalars should be reduced."""
        asked = requested.sums if requested is not None else None
        if not any(asked or ()) and not any(any(a.sums) for a in avals):
            return [NO_SUMS] * count
        meshes = _find_meshes(avals)
        mesh = meshes[0] if meshes else None
        operands = [
            Split(p, _get_entries(a), mesh, a.sums, a.varying, a.explicit_sharding is not None or not mesh)
            for a, p in zip(avals, plain, strict=True)
        ]
        sums = self.sums(self.name, operands, asked, **named)
        if isinstance(sums, list):
            return sums
        if self.sharding is join:
            multiplies = self.sums in (sum_rules.product, sum_rules.quotient)
            reduced = sums.reduced | sums.unreduced if multiplies else sums.reduced
            if reduced and any(not a.ndim and not any(a.sums) for a in avals):
                manual = reduced & frozenset().union(*[axes for a in avals for axes in a.manual_sums])
                explicit = reduced - manual
                raise MixedSums(NamedSharding(mesh, PartitionSpec(reduced=explicit)) if explicit else None, manual)
        return [sums] * count

    @property
    def impl(self) -> Callable[..., Any]:
        """A function of concrete operands, with the parameters as keywords, that computes the results."""
        return self.users_impl or self.bind

    def def_impl(self, impl: Callable[..., Any]) -> Callable[..., Any]:
        """Register and return ``impl(*operands, **parameters)``, which computes the results from concrete operands.

        A number or a NumPy array that a caller gives remains one, with the dtype that it has in jax.
        """
        self.users_impl = impl
        self.evaluate = lambda *arrays, **named: impl(*arrays, **self.given_parameters(named))
        return impl

    def def_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Register and return ``abstract_eval(*avals, **parameters)``, which returns the result's type."""
        self.abstract = lambda *avals, **named: abstract_eval(*avals, **self.given_parameters(named))
        self._types.clear()
        return abstract_eval

    def def_effectful_abstract_eval(self, abstract_eval: Callable[..., Any]) -> Callable[..., Any]:
        """Register and return a function that returns the result's type and the set of an equation's effects."""
        self.def_abstract_eval(lambda *avals, **parameters: abstract_eval(*avals, **parameters)[0])
        self._effects_of_types = abstract_eval
        self.effects, self.replayable = lambda **_: NO_EFFECTS, False
        return abstract_eval

    def def_bind_with_trace(self, bind_with_trace: Callable[..., Any]) -> Callable[..., Any]:
        """Replace the method `bind_with_trace` of this primitive by a function, and return the function."""
        self.bind_with_trace = bind_with_trace  # type: ignore[method-assign]
        return bind_with_trace

    def bind_with_trace(
        self, trace: Any, args: Sequence[Any], avals: Sequence[Any], params: Mapping[str, Any], /
    ) -> Any:
        """Apply the primitive to operands of the types `avals` under a trace."""
        with use_trace(trace):
            return trace.process(self, args, self.pack_parameters(params))

    def process_by_users_trace(self, trace: Trace, operands: Sequence[Any], named: dict[str, Any]) -> Any:
        """Apply the primitive by the method of a user's trace."""
        return trace.process_primitive(self, operands, self.expand_parameters(self.given_parameters(named)))

    def pack_parameters(self, named: Mapping[str, Any]) -> tuple[Any, ...]:
        """Return named parameters in the form of equations: a tuple in order."""
        return (Parameters(named),) if self.is_users else tuple([named[p] for p in self.parameters])

    def get_bind_params(self, params: Mapping[str, Any]) -> dict[str, Any]:
        """Return an equation's parameters as the keywords of `bind`."""
        return dict(params)

    def expand_parameters(self, named: dict[str, Any]) -> dict[str, Any]:
        """Return parameters as programs that walk jaxprs expect them; `pack_parameters` takes these, too."""
        return named

    def given_parameters(self, named: dict[str, Any]) -> dict[str, Any]:
        """Return the keywords of `bind`, given a rule's keywords: a user's primitive has one, its `Parameters`."""
        given = named.get("parameters") if self.is_users else None
        return dict(given) if type(given) is Parameters and len(named) == 1 else named

    def set_rule(self, kind: str, rule: Callable[..., Any] | None) -> None:
        """Replace a rule (jvp, transpose, batch or emit) and drop the recorded work of the old one."""
        setattr(self, kind, rule)
        for table in (self.subprograms, self.programs, self.emission_templates):
            table.clear()
        # A user's rule may have side effects, which a replay would leave out.
        self.replayable = False
        if not self.is_users:
            with_rules_of_users.add(self.name)

    @overload
    def rule(self, kind: Literal["jvp", "batch"]) -> Callable[..., tuple[Any, Any]]: ...
    @overload
    def rule(self, kind: Literal["transpose"]) -> Callable[..., list[Any]]: ...

    def rule(self, kind: str) -> Callable[..., Any]:
        """Return the rule of that kind: jvp, transpose or batch; NotImplementedError if there is none."""
        rule = getattr(self, kind)
        if rule is None:
            words, registry = _RULES[kind]
            advice = f". Register one with xtrace.interpreters.{registry}[primitive] = rule" if self.is_users else ""
            raise NotImplementedError(f"{words} for '{self.name}' not implemented{advice}")
        return rule  # type: ignore[no-any-return]

    def find_effects(self, parameters: tuple[Any, ...], avals: Sequence[ShapedArray] | None = None) -> Effects:
        """Return the effects of an equation with these parameters and types of operands."""
        if self.effects is None:
            return NO_EFFECTS
        if self._effects_of_types is not None and avals is not None:
            named = self.given_parameters(dict(zip(self.parameters, parameters, strict=True)))
            return frozenset(self._effects_of_types(*avals, **named)[1])
        return self.effects(**dict(zip(self.parameters, parameters, strict=True)))

    def __repr__(self) -> str:
        return self.name

    def __reduce__(self) -> Any:
        return _primitive_named, (self.name,)


def result_shardings(
    primitive: Primitive, avals: Sequence[ShapedArray], plain: Sequence[ShapedArray], result: Any,
    named: dict[str, Any], sums: Sequence[Sums],
) -> list[NamedSharding | None]:
    """Return the sharding of each result over explicit mesh axes, with its axes `sums`; None without a mesh."""
    meshes = _find_meshes(avals)
    if not meshes:
        return [None] * len(sums)
    if len(meshes) > 1:
        placed = [(a.str_short(short_dtypes=False), a.explicit_sharding) for a in avals]
        raise different_meshes(primitive.name, [(text, s.mesh) for text, s in placed if s is not None])
    (mesh,) = meshes
    operands = [Split(p, _get_entries(a), mesh) for a, p in zip(avals, plain, strict=True)]
    rule = primitive.sharding or whole
    entries = rule(primitive.name, operands, result, **named)
    entries = entries if primitive.multiple_results else [entries]
    for each, axes in zip(entries, sums, strict=True):
        used = {axis for entry in each for axis in get_entry_axes(entry)} & (axes.unreduced | axes.reduced)
        if used:
            shown = ", ".join([a.str_short(short_dtypes=False) for a in avals])
            raise ShardingTypeError(
                f"{primitive.name}: the result would be split over the mesh axes {', '.join(map(str, used))}, along "
                f"which an operand is a sum, got {shown}. Split one otherwise with xtrace.reshard(x, xtrace.P(...))"
            )
    return [
        NamedSharding(mesh, PartitionSpec(*each, **axes._asdict()))
        for each, axes in zip(entries, sums, strict=True)
    ]


def _find_meshes(avals: Sequence[ShapedArray]) -> list[Any]:
    return list(dict.fromkeys([a.explicit_sharding.mesh for a in avals if a.explicit_sharding is not None]))


def _get_entries(aval: ShapedArray) -> tuple[Any, ...]:
    sharding = aval.explicit_sharding
    return sharding.spec.partitions if sharding is not None else (None,) * aval.ndim


def _check_no_terms(name: str, avals: Sequence[ShapedArray], varying: frozenset[Any]) -> None:
    """Raise ShardingTypeError if an operand is unreduced along an axis along which another one varies."""
    for aval in avals:
        if aval.manual_sums.unreduced & varying:
            raise ShardingTypeError(
                f"{name}: {aval.str_short(True)} is a sum that has not been formed along mesh axes that another "
                "operand "
                f"varies along, got {', '.join([a.str_short(True) for a in avals])}. Form it first with xtrace.lax.psum"
            )


def _choose_sharding(requested: NamedSharding, result: ShapedArray, sums: Sums) -> NamedSharding | None:
    requested.check_compatible_aval(result.shape)
    requested.check_divisible(result.shape)
    return explicit_part(requested.update(spec=requested.spec.update(**sums._asdict())), result.ndim)


def _primitive_named(name: str) -> Primitive:
    return _primitives[name]


def all_primitives() -> Iterable[Primitive]:
    """Return every primitive that has been defined."""
    return list(_primitives.values())


def forget_programs() -> None:
    """Drop the compiled programs of all primitives."""
    for each in all_primitives():
        each.programs.clear()


if TYPE_CHECKING:

    class ArrayPrimitive(Primitive):
        """A primitive with one result."""

        operation: Callable[..., Array] | None

        def __call__(self, *operands: Any, **keywords: Any) -> Array: ...
        def bind(self, *operands: object, **parameters: object) -> Array: ...
        def bind_positional(self, operands: Sequence[Any], parameters: tuple[Any, ...] = ()) -> Array: ...

    class ListPrimitive(Primitive):
        """A primitive with a list of results."""

        def bind(self, *operands: object, **parameters: object) -> list[Any]: ...
        def bind_positional(self, operands: Sequence[Any], parameters: tuple[Any, ...] = ()) -> list[Any]: ...

    class Operation(Primitive, Generic[_Arguments, _Result]):
        """A primitive with the signature of its public function."""

        __call__: Callable[_Arguments, _Result]

        def bind(self, *operands: object, **parameters: object) -> _Result: ...
        def bind_positional(self, operands: Sequence[Any], parameters: tuple[Any, ...] = ()) -> _Result: ...

else:
    ArrayPrimitive = ListPrimitive = Primitive


def primitive(
    parameters: Sequence[str] = (), *, name: str | None = None, **rules: Any
) -> Callable[[Callable[_Arguments, _Result]], Operation[_Arguments, _Result]]:
    """Decorate a public function, so that its name becomes a primitive with `rules`; a call runs the function.

    name: the name in the IR, if it is not the function's.
    """

    def define(operation: Callable[_Arguments, _Result]) -> Operation[_Arguments, _Result]:
        made = Primitive(name or operation.__name__, parameters, operation=operation, **rules)
        return made  # type: ignore[return-value]

    return define
