"""The jaxpr intermediate representation: typed, functional, in single-assignment form."""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, Union

from xtrace._late_imports import late_modules
from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, aval_rules, own_aval
from xtrace._src.core.diagnostics.positions import Position
from xtrace._src.core.errors import InconclusiveDimensionOperation
from xtrace._src.core.jaxprs.effects import NO_EFFECTS, Effects
from xtrace._src.core.settings import config
from xtrace._src.xla.source_locations import name_file

with late_modules(globals()):
    from xtrace._src.core.jaxprs import jaxpr_views, printer
    from xtrace._src.core.jaxprs import source_info as sources

if TYPE_CHECKING:
    from xtrace._src.core.primitive import Primitive

# The number of columns of a jaxpr's text.
PRINTED_WIDTH = 80

# In a primitive's `unprinted`: the parameter follows from the result's type and is never shown.
NEVER_PRINTED = object()
# Likewise: no parameter equals it, so the parameter is shown even if it is None.
ALWAYS_PRINTED = object()


class Var:
    """A variable, which a jaxpr or an equation binds once; the printer gives it a name.

    Args:
        aval: its type.

    Example:
        >>> xtrace.extend.core.Var(xtrace.typeof(1.0)).aval
        ShapedArray(float32[], weak_type=True)
    """

    __slots__ = ("aval",)

    def __init__(self, aval: ShapedArray) -> None:
        self.aval = aval

    def __repr__(self) -> str:
        return f"Var(id={id(self)}):{self.aval.str_short(short_dtypes=False)}"


class DropVar(Var):
    """An output of an equation that no equation reads; printed as ``_``.

    Args:
        aval: its type.

    Example:
        >>> xtrace.extend.core.DropVar(xtrace.typeof(1.0)).aval.dtype
        dtype('float32')
    """

    __slots__ = ()


class Literal:
    """A scalar constant, written as an operand of an equation.

    Args:
        val: a Python or NumPy scalar.
        aval: its type.

    Example:
        >>> xtrace.make_jaxpr(lambda x: x + 1.0)(1.0).eqns[0].invars[1]
        Literal(1.0)
    """

    __slots__ = ("value", "aval")

    def __init__(self, val: Any, aval: ShapedArray) -> None:
        self.value, self.aval = val, aval

    @property
    def val(self) -> Any:
        """The scalar for interpreters of jaxprs: a Python number if it is weakly typed, else a NumPy scalar.

        A Python number would get the default dtype when an operation takes it.
        """
        value, dtype = self.value, self.aval.dtype
        if self.aval.weak_type or type(value) is bool or not (dtypes.is_integer(dtype) or dtypes.is_inexact(dtype)):
            return value
        return dtypes.cast(value, dtype)[()]

    def __repr__(self) -> str:
        return f"Literal({self.value})"


aval_rules[Literal] = own_aval


def scalar_literal(value: Any, dtype: Any, weak_type: bool = False) -> Literal:
    """Return a number as a literal of the dtype."""
    try:
        number = dtypes.scalar_type_of(dtype)(value)
    except InconclusiveDimensionOperation:  # a symbolic size, which the program computes
        number = value
    return Literal(number, ShapedArray((), dtype, weak_type))


# A `Union`, which jax has here, too: libraries ask for its origin.
Atom = Union[Var, Literal]  # noqa: UP007


class JaxprEqn:
    """An equation: ``outvars = primitive[params] invars``.

    Args:
        invars: variables and literals.
        outvars: variables.
        primitive: the operation.
        parameters: the values of its parameters, in the order of ``primitive.parameters``.
        effects: its effects.
        source: the position in the user's source, or None.

    Example:
        >>> equation = xtrace.make_jaxpr(lambda x: x.sum(0))(jnp.ones(2)).eqns[0]
        >>> equation.primitive, equation.params["axes"]
        (reduce_sum, (0,))
    """

    __slots__ = ("invars", "outvars", "primitive", "parameters", "effects", "source")

    def __init__(
        self, invars: list[Atom], outvars: list[Var], primitive: Primitive, parameters: tuple[Any, ...],
        effects: Effects, source: Position | None,
    ) -> None:
        self.invars, self.outvars, self.primitive = invars, outvars, primitive
        self.parameters, self.effects, self.source = parameters, effects, source

    @property
    def params(self) -> dict[str, Any]:
        """The parameters by name."""
        primitive = self.primitive
        named = primitive.given_parameters(dict(zip(primitive.parameters, self.parameters, strict=True)))
        return primitive.expand_parameters(named)

    @property
    def source_info(self) -> sources.SourceInfo:
        """The origin of the equation: the user's line, and the scopes around it."""
        return sources.source_info(self.source)

    def __repr__(self) -> str:
        return printer.format_equation(self)

    @property
    def ctx(self) -> EquationContext:
        """The settings to evaluate the equation under."""
        return EquationContext(threefry_partitionable=config.threefry_partitionable.value)

    def replace(self, **changes: Any) -> JaxprEqn:
        """Return a copy with the given fields changed; these may be jax's `params`, `source_info` and `ctx`, too."""
        fields = {name: getattr(self, name) for name in JaxprEqn.__slots__}
        changes.pop("ctx", None)
        if "params" in changes:
            primitive = changes.get("primitive", self.primitive)
            changes["parameters"] = pack_given_parameters("JaxprEqn.replace", primitive, changes.pop("params"))
        if "source_info" in changes:
            changes["source"] = sources.get_position(changes.pop("source_info"))
        return JaxprEqn(**(fields | changes))


def pack_given_parameters(function: str, primitive: Primitive, params: Mapping[str, Any]) -> tuple[Any, ...]:
    """Return the parameters that a user gave by name in the form of equations; TypeError if they are others."""
    if not primitive.is_users and params.keys() != set(primitive.parameters):
        raise TypeError(
            f"{function}: {primitive} has the parameters ({', '.join(primitive.parameters)}); got ({', '.join(params)})"
        )
    return primitive.pack_parameters(params)


class EquationContext(NamedTuple):
    """The settings that JAX records in an equation, for interpreters written for JAX.

    Equations of xtrace have such settings among their parameters, so evaluation restores none.
    """

    threefry_partitionable: bool
    compute_type: str | None = None
    xla_metadata: dict[str, Any] | None = None

    @property
    def manager(self) -> contextlib.AbstractContextManager[None]:
        """A context to evaluate the equation in."""
        return contextlib.nullcontext()


class DebugInfo:
    """The origin of a jaxpr, for messages and printing.

    Args:
        transformation: the name of the transformation that traced the function.
        function: the name of the function.
        file, line: the place of its definition, or None.
        argument_paths: a function that returns the names of the inputs, or None.

    Example:
        >>> xtrace.make_jaxpr(jnp.sin)(1.0).jaxpr.debug_info.transformation
        'make_jaxpr'
    """

    __slots__ = ("transformation", "function", "file", "line", "_argument_paths")

    def __init__(
        self, transformation: str, function: str, file: str | None, line: int | None,
        argument_paths: Callable[[], Sequence[str]] | None = None,
    ) -> None:
        self.transformation, self.function, self.file, self.line = transformation, function, file, line
        self._argument_paths = argument_paths

    def argument_paths(self) -> Sequence[str]:
        """Return the path of each input in the form users write, such as ``x['w'][0]``; computed on demand."""
        return self._argument_paths() if self._argument_paths is not None else ()

    @property
    def place(self) -> str:
        """The file and the line."""
        return f"{name_file(self.file) if self.file is not None else None}:{self.line}"

    # Names of jax.
    traced_for = property(lambda self: self.transformation)
    func_name = property(lambda self: self.function)
    func_src_info = property(lambda self: f"{self.function} at {self.place}")
    func_filename = property(lambda self: self.file)
    func_lineno = property(lambda self: self.line)
    arg_names = property(lambda self: tuple(self.argument_paths()))
    # JAX has None where it does not know them.
    result_paths = None

    def __str__(self) -> str:
        place = f" at {self.place}" if self.file is not None else ""
        return f"{self.function}{place} for {self.transformation}"


class _Printed:
    """A jaxpr, closed or not."""

    __slots__ = ()

    @property
    def _opened(self) -> Any:
        return getattr(self, "jaxpr", self)

    def __repr__(self) -> str:
        return printer.format_jaxpr(self._opened)

    def _repr_html_(self) -> str:
        return jaxpr_views.write_jaxpr_html(self._opened)

    def pretty_print(
        self, *, source_info: bool = False, print_shapes: bool = True, name_stack: bool = False,
        custom_pp_eqn_rules: bool = True, print_effects: bool = False, use_color: bool | None = None,
        width: int = PRINTED_WIDTH,
    ) -> str:
        """Return the text of the jaxpr.

        source_info, name_stack: show the user's line and the `named_scope` names behind the first line of each
        equation. print_shapes: show the types of variables. custom_pp_eqn_rules: leave out parameters with default
        values. print_effects: show the effects of each jaxpr. use_color: colour keywords and types, by escape codes of
        terminals. width: the number of columns.
        """
        style = printer.Style(source_info, name_stack, print_shapes, print_effects, not custom_pp_eqn_rules, width)
        text = printer.format_jaxpr(self._opened, style)
        return printer.colour(text) if use_color else text


class Jaxpr(_Printed):
    """A typed program: ``{ lambda constvars ; invars. let eqns in outvars }``.

    Args:
        constvars: the variables of constants; jaxprs inside of equations have none.
        invars: the variables of inputs.
        outvars: variables or literals, the outputs.
        eqns: the equations, in order.
        effects: the effects of the equations.
        debug_info: the origin, or None.

    Example:
        >>> xtrace.make_jaxpr(lambda x: x + 1.0)(1.0).jaxpr
        { lambda ; a:f32[]. let b:f32[] = add a 1.0 in (b,) }
    """

    __slots__ = ("constvars", "invars", "outvars", "eqns", "effects", "debug_info", "__weakref__")

    def __init__(
        self, constvars: Sequence[Var], invars: Sequence[Var], outvars: Sequence[Atom], eqns: Sequence[JaxprEqn],
        effects: Effects = NO_EFFECTS, debug_info: DebugInfo | None = None,
    ) -> None:
        self.constvars, self.invars, self.outvars = list(constvars), list(invars), list(outvars)
        self.eqns, self.effects, self.debug_info = list(eqns), effects, debug_info

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The types of the inputs."""
        return [v.aval for v in self.invars]

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the outputs."""
        return [v.aval for v in self.outvars]

    def with_constants_as_inputs(self) -> Jaxpr:
        """Return the jaxpr whose constvars are its leading inputs."""
        return self.replace(constvars=[], invars=[*self.constvars, *self.invars])

    def replace(self, **changes: Any) -> Jaxpr:
        """Return a copy with the given fields changed."""
        fields = {n: getattr(self, n) for n in ("constvars", "invars", "outvars", "eqns", "effects", "debug_info")}
        return Jaxpr(**(fields | changes))


class ClosedJaxpr(_Printed):
    """A jaxpr with the values of its constants.

    Args:
        jaxpr: a `Jaxpr`.
        consts: the values of its constvars, in order.

    Example:
        >>> xtrace.make_jaxpr(jnp.sin)(1.0)
        { lambda ; a:f32[]. let b:f32[] = sin a in (b,) }
    """

    __slots__ = ("jaxpr", "consts", "__weakref__")

    def __init__(self, jaxpr: Jaxpr, consts: Sequence[Any]) -> None:
        if len(consts) != len(jaxpr.constvars):
            raise ValueError(f"a jaxpr with {len(jaxpr.constvars)} constvars was closed over {len(consts)} values")
        self.jaxpr, self.consts = jaxpr, list(consts)

    @property
    def literals(self) -> list[Any]:
        """The values of the constvars, under the name older programs use."""
        return self.consts

    @property
    def in_avals(self) -> list[ShapedArray]:
        """The types of the inputs."""
        return self.jaxpr.in_avals

    @property
    def out_avals(self) -> list[ShapedArray]:
        """The types of the outputs."""
        return self.jaxpr.out_avals

    @property
    def constvars(self) -> list[Var]:
        """The variables of the constants."""
        return self.jaxpr.constvars

    @property
    def invars(self) -> list[Var]:
        """The variables of the inputs."""
        return self.jaxpr.invars

    @property
    def outvars(self) -> list[Atom]:
        """The variables and literals that are returned."""
        return self.jaxpr.outvars

    @property
    def eqns(self) -> list[JaxprEqn]:
        """The equations."""
        return self.jaxpr.eqns

    @property
    def effects(self) -> Effects:
        """The effects of all equations."""
        return self.jaxpr.effects

    @property
    def debug_info(self) -> DebugInfo | None:
        """The function that the jaxpr was traced from, and the names of its arguments and results."""
        return self.jaxpr.debug_info

    def map_jaxpr(self, function: Callable[[Jaxpr], Jaxpr]) -> ClosedJaxpr:
        """Return ``function(jaxpr)``, closed over the same values."""
        return ClosedJaxpr(function(self.jaxpr), self.consts)

    def replace(self, *, jaxpr: Jaxpr | None = None, consts: Sequence[Any] | None = None) -> ClosedJaxpr:
        """Return a copy with another jaxpr or other values of its constants."""
        return ClosedJaxpr(self.jaxpr if jaxpr is None else jaxpr, self.consts if consts is None else consts)


def find_jaxprs(parameters: Sequence[Any]) -> list[Jaxpr]:
    """Return the jaxprs among an equation's parameters, also inside tuples; a closed one gives its jaxpr."""
    jaxprs: list[Jaxpr] = []
    for value in parameters:
        if isinstance(value, Jaxpr):
            jaxprs.append(value)
        elif isinstance(value, ClosedJaxpr):
            jaxprs.append(value.jaxpr)
        elif isinstance(value, (tuple, list)):
            jaxprs.extend(find_jaxprs(value))
    return jaxprs


def walk_jaxprs(jaxpr: Jaxpr) -> Iterator[Jaxpr]:
    """Yield a jaxpr and all jaxprs in it, each once."""
    seen, left = {jaxpr}, [jaxpr]
    while left:
        current = left.pop()
        yield current
        for equation in current.eqns:
            for inner in find_jaxprs(equation.parameters):
                if inner not in seen:
                    seen.add(inner)
                    left.append(inner)


def walk_equations(equations: Iterable[JaxprEqn]) -> Iterator[JaxprEqn]:
    """Yield the equations without inner jaxprs; those in an inner jaxpr come once for each use of it."""
    for equation in equations:
        inner = find_jaxprs(equation.parameters)
        if not inner:
            yield equation
        for jaxpr in inner:
            yield from walk_equations(jaxpr.eqns)


def called_jaxpr(primitive: Primitive, parameters: Sequence[Any], avals: Iterable[ShapedArray]) -> ClosedJaxpr | None:
    """Return the jaxpr that an equation calls on its operands of types `avals`: its only closed jaxpr.

    Returns None if there is no closed jaxpr; functions of elements, such as the body of a reduction, are open ones.
    Raises TypeError for several closed jaxprs, or for one with inputs of other shapes.
    """
    called, count = None, 0
    for value in parameters:
        if isinstance(value, ClosedJaxpr):
            called, count = value, count + 1
        elif isinstance(value, tuple) and any(isinstance(x, ClosedJaxpr) for x in value):
            count += 2
    if count > 1 or (called is not None and [a.shape for a in called.in_avals] != [a.shape for a in avals]):
        raise TypeError(
            f"{primitive.name} holds jaxprs that are not called on its operands: the feature that follows programs "
            "into operations needs a rule for it, in its rules.py"
        )
    return called


def are_cacheable(parameters: Sequence[Any]) -> bool:
    """Whether an equation's parameters can be a key of a primitive's cache.

    Floats cannot, because 0.0 and -0.0 are equal keys; jaxprs cannot, because the cache would keep them alive.
    """
    try:
        hash(tuple(parameters))
    except TypeError:
        return False
    return not any(
        isinstance(x, (float, complex, Jaxpr, ClosedJaxpr)) or (isinstance(x, tuple) and not are_cacheable(x))
        for x in parameters
    )
