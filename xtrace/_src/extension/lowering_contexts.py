"""The contexts of lowering rules: the module, the equation, the devices, and the tokens of ordered effects."""

from __future__ import annotations

import dataclasses
import itertools
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import DebugEffect, Effect, EffectTypes, NamedAxis
from xtrace._src.core.jaxprs.source_info import NameStack
from xtrace._src.core.primitive import Primitive
from xtrace._src.core.shardings.mesh import AbstractMesh, Mesh
from xtrace._src.stablehlo.builder import ModuleBuilder
from xtrace._src.xla import clients
from xtrace._src.xla.late_modules import late_modules

with late_modules(globals()):
    from xtrace._src.extension import mlir_functions


lowerable_effects = EffectTypes([DebugEffect, NamedAxis])


class TokenSet:
    """The current token of each ordered effect: the next operation with the effect takes it.

    Args:
        tokens: a dict from effects to MLIR values; None for none.

    Example:
        >>> len(xtrace.interpreters.mlir.TokenSet())
        0
    """

    __slots__ = ("_tokens",)

    def __init__(self, tokens: Mapping[Effect, Any] | None = None) -> None:
        self._tokens = dict(tokens or {})

    @staticmethod
    def create(effects: Sequence[Effect]) -> TokenSet:
        """Build a new token for each effect, at the current insertion point."""
        return TokenSet({effect: mlir_functions.create_token() for effect in effects})

    def __len__(self) -> int:
        return len(self._tokens)

    def get(self, effect: Effect) -> Any:
        """Return the token of an effect; KeyError if it has none."""
        return self._tokens[effect]

    def items(self) -> Sequence[tuple[Effect, Any]]:
        """Return the pairs of effects and tokens."""
        return list(self._tokens.items())

    def effects(self) -> set[Effect]:
        """Return the effects."""
        return set(self._tokens)

    def subset(self, effects: Sequence[Effect]) -> TokenSet:
        """Return the tokens of some effects; KeyError if one has none."""
        return TokenSet({effect: self._tokens[effect] for effect in effects})

    def update_tokens(self, tokens: TokenSet) -> TokenSet:
        """Return the same effects with their tokens in `tokens`, where it has them."""
        given = dict(tokens.items())
        return TokenSet({effect: given.get(effect, token) for effect, token in self._tokens.items()})


@dataclasses.dataclass(frozen=True)
class LoweringParameters:
    """Options for the lowering of a module.

    Args:
        override_lowering_rules: pairs of a primitive and a rule that replaces its own; None for none.
        global_constant_computation: not used.
        for_export: whether the module is exported for later use.
        export_ignore_forward_compatibility: not used.
        hoist_constants_as_args: not used; constants are written into the module.

    Example:
        >>> xtrace.interpreters.mlir.LoweringParameters().for_export
        False
    """

    override_lowering_rules: tuple[tuple[Primitive, Any], ...] | None = None
    global_constant_computation: bool = False
    for_export: bool = False
    export_ignore_forward_compatibility: bool = False
    hoist_constants_as_args: bool = False


@dataclasses.dataclass(frozen=True)
class SPMDAxisContext:
    """The mesh of a program.

    Args:
        mesh: the mesh.
        manual_axes: the manual axes of the mesh, over which the program computes on shards.

    Example:
        >>> mesh = xtrace.make_mesh((1,), ("x",))
        >>> xtrace.interpreters.mlir.SPMDAxisContext(mesh).manual_axes
        frozenset()
    """

    mesh: Mesh
    manual_axes: frozenset[Any] = frozenset()


@dataclasses.dataclass(frozen=True)
class ShardingContext:
    """The devices of a program.

    Args:
        num_devices: the number of devices.
        device_assignment: the devices in the order of their numbers in the program; None if unknown.
        abstract_mesh: the mesh of the shardings; None for none.

    Example:
        >>> xtrace.interpreters.mlir.ShardingContext(8).num_devices
        8
    """

    num_devices: int
    device_assignment: tuple[Any, ...] | None = None
    abstract_mesh: AbstractMesh | None = None


class ShapePolyLoweringState:
    """The names of a module's symbolic sizes.

    Args:
        dim_vars: the names.
        lowering_platforms: the platforms of the module; with several, its first argument is the platform's index.

    Example:
        >>> xtrace.interpreters.mlir.ShapePolyLoweringState((), ("cpu",)).uses_dim_vars
        False
    """

    def __init__(self, dim_vars: tuple[str, ...], lowering_platforms: tuple[str, ...] | None) -> None:
        self.uses_dim_vars = bool(dim_vars)
        self.has_platform_index_argument = lowering_platforms is not None and len(lowering_platforms) > 1
        self.dim_vars = ("_platform_index", *dim_vars) if self.has_platform_index_argument else tuple(dim_vars)


class LoweringResult(NamedTuple):
    """A lowered module, and the objects that must live as long as its compiled programs.

    Args:
        module: the MLIR module.
        keepalive: the Python functions that the module calls, and other objects.
        host_callbacks: functions that the module calls by transfers to the host.
        shape_poly_state: the names of the module's symbolic sizes.

    Example:
        >>> xtrace.interpreters.mlir.LoweringResult(None, None, [], None).host_callbacks
        []
    """

    module: Any
    keepalive: Any
    host_callbacks: list[Any]
    shape_poly_state: Any


class ModuleContext:
    """The module of a lowering rule.

    Args:
        platforms: the platforms of the module.
        backend: jaxlib's client; None for the client of the first platform.
        axis_context: the devices, a `ShardingContext` or `SPMDAxisContext`.
        keepalives: a list of objects that must live as long as the module's programs.
        channel_iterator: yields the numbers of unused channels.
        host_callbacks: a list of the functions that the module calls by transfers to the host.
        lowering_parameters: options for the whole module.
        context, module, ip, symbol_table: the MLIR context, the module, the insertion point for functions, and the
            table of their names; None for new ones.
        lowering_cache, cached_primitive_lowerings, traceback_caches: for the rules' own use.
        shape_poly_state: the names of symbolic sizes.
        all_default_mem_kind: whether all arrays are in the devices' own memory.
        sharding_attr_cache, aval_to_ir_types_cache, pallas_lowering_cache: dicts for the rules' own use.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> context = mlir.ModuleContext(platforms=("cpu",), backend=None, axis_context=mlir.ShardingContext(1))
        >>> context.platforms, context.new_channel()
        (('cpu',), 1)
    """

    def __init__(
        self, *, platforms: Sequence[str], backend: Any = None, axis_context: Any = None,
        keepalives: list[Any] | None = None, channel_iterator: Iterator[int] | None = None,
        host_callbacks: list[Any] | None = None, lowering_parameters: LoweringParameters | None = None,
        context: Any = None, module: Any = None, ip: Any = None, symbol_table: Any = None,
        lowering_cache: dict[Any, Any] | None = None, cached_primitive_lowerings: dict[Any, Any] | None = None,
        traceback_caches: Any = None, shape_poly_state: Any = None, all_default_mem_kind: bool = True,
        sharding_attr_cache: dict[Any, Any] | None = None, aval_to_ir_types_cache: dict[Any, Any] | None = None,
        pallas_lowering_cache: dict[Any, Any] | None = None,
    ) -> None:
        if isinstance(platforms, str) or not platforms:
            raise ValueError(f"ModuleContext: platforms must be names such as ('cpu',), got {abbreviate(platforms)}")
        self.platforms = tuple(platforms)
        self.backend, self.axis_context = backend, axis_context or ShardingContext(1)
        self.keepalives = [] if keepalives is None else keepalives
        self.host_callbacks = [] if host_callbacks is None else host_callbacks
        self.channel_iterator = itertools.count(1) if channel_iterator is None else channel_iterator
        self.lowering_parameters = lowering_parameters or LoweringParameters()
        if module is None or symbol_table is None:
            made = mlir_functions.make_surroundings(module)
            context, module, symbol_table = made.context, made.module, made.symbol_table
            ip = made.ip if ip is None else ip
        self.context, self.module, self.ip, self.symbol_table = context, module, ip, symbol_table
        self.lowering_cache = {} if lowering_cache is None else lowering_cache
        self.cached_primitive_lowerings = {} if cached_primitive_lowerings is None else cached_primitive_lowerings
        self.traceback_caches, self.all_default_mem_kind = traceback_caches, all_default_mem_kind
        self.shape_poly_state = shape_poly_state or ShapePolyLoweringState((), self.platforms)
        self.sharding_attr_cache = {} if sharding_attr_cache is None else sharding_attr_cache
        self.aval_to_ir_types_cache = {} if aval_to_ir_types_cache is None else aval_to_ir_types_cache
        self.pallas_lowering_cache = {} if pallas_lowering_cache is None else pallas_lowering_cache
        # The builder of the outer module of text; None for a user's module.
        self.builder: ModuleBuilder | None = None

    def get_backend(self, optional: bool = False) -> Any:
        """Return jaxlib's client for the platform; if there is none, None with `optional`, else an error."""
        if self.backend is not None:
            return self.backend
        platform, *others = self.platforms
        if others:
            if optional:
                return None
            raise NotImplementedError(
                f"get_backend: the module is for several platforms, {', '.join(self.platforms)}; ask with optional=True"
            )
        try:
            return clients.client(platform)
        except RuntimeError:
            if optional:
                return None
            raise

    def new_channel(self) -> int:
        """Return the number of an unused channel."""
        return next(self.channel_iterator)

    def add_host_callback(self, host_callback: Any) -> None:
        """Add a function that the module calls by transfers to the host."""
        self.host_callbacks.append(host_callback)

    def add_keepalive(self, keepalive: Any) -> None:
        """Add an object that must live as long as the module's programs."""
        self.keepalives.append(keepalive)

    def replace(self, **kw: Any) -> ModuleContext:
        """Return the context with some fields changed."""
        fields = {name: value for name, value in vars(self).items() if name != "builder"}
        made = ModuleContext(**(fields | kw))
        made.builder = self.builder
        return made


@dataclasses.dataclass
class LoweringRuleContext:
    """The equation of a lowering rule.

    Args:
        module_context: the module.
        name_stack: the named scopes around the equation.
        traceback: the position of the equation in the user's code; None if unknown.
        primitive: the operation.
        avals_in: the types of the operands.
        avals_out: the types of the results.
        tokens_in: the tokens of the equation's ordered effects.
        tokens_out: the tokens for later operations; the rule sets them with `set_tokens_out`.
        const_lowering: a dict of lowered constants.
        axis_size_env: not used.
        dim_var_values: the values of symbolic sizes.
        jaxpr_eqn_ctx: not used.
        platforms: the platforms of this rule; None for the module's platforms.

    Example:
        >>> from xtrace.extend.source_info_util import new_name_stack
        >>> from xtrace.interpreters import mlir
        >>> module = mlir.ModuleContext(platforms=("cpu",))
        >>> tokens = mlir.TokenSet()
        >>> context = mlir.LoweringRuleContext(module, new_name_stack(), None, lax.sin_p, (), (), tokens, None, {})
        >>> context.replace(primitive=lax.cos_p).primitive
        cos
    """

    module_context: ModuleContext
    name_stack: NameStack
    traceback: Any
    primitive: Primitive | None
    avals_in: Sequence[ShapedArray]
    avals_out: Any
    tokens_in: TokenSet
    tokens_out: TokenSet | None
    const_lowering: dict[Any, Any]
    axis_size_env: dict[Any, Any] | None = None
    dim_var_values: Sequence[Any] = ()
    jaxpr_eqn_ctx: Any = None
    platforms: Sequence[str] | None = None

    def set_tokens_out(self, tokens_out: TokenSet) -> None:
        """Set the tokens for later operations."""
        if not isinstance(tokens_out, TokenSet):
            raise TypeError(f"set_tokens_out: tokens_out must be a TokenSet, got {abbreviate(tokens_out)}")
        self.tokens_out = tokens_out

    def replace(self, **kw: Any) -> LoweringRuleContext:
        """Return the context with some fields changed."""
        return dataclasses.replace(self, **kw)

    def is_forward_compat(self) -> bool:
        """Return whether the module must be readable by older compilers."""
        parameters = self.module_context.lowering_parameters
        return parameters.for_export and not parameters.export_ignore_forward_compatibility
