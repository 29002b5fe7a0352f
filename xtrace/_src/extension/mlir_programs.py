"""Jaxprs and calls of Python in lowering rules that build MLIR, and jaxprs as whole modules."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import Effect
from xtrace._src.core.jaxprs.ir import ClosedJaxpr, Jaxpr
from xtrace._src.extension.lowering_contexts import (
    LoweringParameters,
    LoweringResult,
    LoweringRuleContext,
    ModuleContext,
    TokenSet,
)
from xtrace._src.extension.mlir_functions import add_function, build_jaxpr_call, function_text, inline_text, jaxpr_text
from xtrace._src.ops.calls.calls import close_jaxpr
from xtrace._src.ops.host.callback_lowering import emit_host_call
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.donation import pair_donations
from xtrace._src.transforms.effect_tokens import TOKEN
from xtrace._src.xla.mlir import mlir_objects


def merge_mlir_modules(dst_module: Any, sym_name: str, src_module: Any, dst_symtab: Any = None) -> str:
    """Add the functions of a module to another module, as private functions.

    Args:
        dst_module: the module that receives the functions.
        sym_name: the new name of the function ``main``; a name in use gets a number.
        src_module: the module with the functions; afterwards they have their names in `dst_module`.
        dst_symtab: the symbol table of `dst_module`; None for a new one.

    Returns:
        The new name of ``main``.

    Raises:
        TypeError: an argument is no MLIR module.
        ValueError: `src_module` has no function ``main``.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> target, other = [xtrace.jit(f).lower(1.0).compiler_ir() for f in (jnp.sin, jnp.cos)]
        >>> mlir.merge_mlir_modules(target, "cosine", other)
        'cosine'
    """
    for name, module in (("dst_module", dst_module), ("src_module", src_module)):
        if not isinstance(module, mlir_objects.ir.Module):
            raise TypeError(f"merge_mlir_modules: {name} must be an MLIR module, got {abbreviate(module)}")
    if "main" not in mlir_objects.list_function_names(src_module):
        raise ValueError("merge_mlir_modules: src_module has no function called main")
    return mlir_objects.merge_modules(dst_module, dst_symtab, src_module, sym_name)


def core_call_lowering(
    ctx: LoweringRuleContext, *args: Any, name: str, backend: object = None, call_jaxpr: ClosedJaxpr | Jaxpr
) -> list[Any]:
    """Build a call of a jaxpr, which becomes a function of the module.

    Args:
        ctx: the context of the rule.
        args: the MLIR values of the jaxpr's inputs.
        name: the name of the function.
        backend: not used.
        call_jaxpr: the jaxpr.

    Returns:
        A list of the MLIR values of the results.

    Raises:
        TypeError: `call_jaxpr` is no jaxpr, or takes another number of inputs.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> wave_p = xtrace.extend.core.Primitive("wave")
        >>> _ = wave_p.def_abstract_eval(lambda x: x)
        >>> jaxpr = xtrace.make_jaxpr(jnp.sin)(0.0)
        >>> mlir.register_lowering(wave_p, lambda ctx, x: mlir.core_call_lowering(ctx, x, name="f", call_jaxpr=jaxpr))
        >>> xtrace.jit(wave_p.bind)(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    closed = _close("core_call_lowering", "call_jaxpr", call_jaxpr)
    values = _flatten_values("core_call_lowering", closed, args)
    results, tokens = build_jaxpr_call(ctx.module_context, closed, name, ctx.tokens_in, values, inline=False)
    ctx.set_tokens_out(tokens)
    return results


def jaxpr_subcomp(
    ctx: ModuleContext, jaxpr: Jaxpr, name_stack: object, tokens: TokenSet, consts_for_constvars: Sequence[Any],
    *args: Any, dim_var_values: Sequence[Any], const_lowering: object, outer_traceback: object,
) -> tuple[list[Any], TokenSet]:
    """Build the operations of a jaxpr at the current insertion point.

    Args:
        ctx: the context of the module.
        jaxpr: the jaxpr.
        name_stack: not used.
        tokens: the tokens of its ordered effects.
        consts_for_constvars: the MLIR values of its constants.
        args: the MLIR values of its inputs.
        dim_var_values: not used; there are no symbolic sizes.
        const_lowering: not used.
        outer_traceback: not used.

    Returns:
        A list of the MLIR values of the results, and the new tokens.

    Raises:
        TypeError: `jaxpr` is no jaxpr, or takes another number of inputs.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> ripple_p = xtrace.extend.core.Primitive("ripple")
        >>> _ = ripple_p.def_abstract_eval(lambda x: x)
        >>> jaxpr = xtrace.make_jaxpr(jnp.sin)(0.0).jaxpr
        >>> def rule(ctx, x):
        ...     return mlir.jaxpr_subcomp(
        ...         ctx.module_context, jaxpr, ctx.name_stack, ctx.tokens_in, (), x, dim_var_values=(),
        ...         const_lowering={}, outer_traceback=None)[0]
        >>> mlir.register_lowering(ripple_p, rule)
        >>> xtrace.jit(ripple_p.bind)(0.0)
        Array(0., dtype=float32, weak_type=True)
    """
    if not isinstance(jaxpr, Jaxpr):
        raise TypeError(f"jaxpr_subcomp: jaxpr must be a Jaxpr, got {abbreviate(jaxpr)}")
    opened = jaxpr.with_constants_as_inputs()
    values = _flatten_values("jaxpr_subcomp", opened, [*consts_for_constvars, *args])
    return build_jaxpr_call(ctx, ClosedJaxpr(opened, []), "inlined", tokens, values, inline=True)


def lower_jaxpr_to_fun(
    ctx: ModuleContext, name: str, jaxpr: ClosedJaxpr, effects: Sequence[Effect], *, num_const_args: int,
    main_function: bool = False, replicated_args: Sequence[bool] | None = None, in_avals: Sequence[ShapedArray],
    arg_shardings: Sequence[Any] | None = None, result_shardings: Sequence[Any] | None = None,
    use_sharding_annotations: bool = True, input_output_aliases: Sequence[int | None] | None = None,
    xla_donated_args: Sequence[bool] | None = None, arg_names: Sequence[str | None] | None = None,
    result_names: Sequence[str] | None = None, arg_memory_kinds: Sequence[str | None] | None = None,
    result_memory_kinds: Sequence[str | None] | None = None, arg_layouts: Sequence[Any] | None = None,
    result_layouts: Sequence[Any] | None = None, propagated_out_mem_kinds: Sequence[str | None] | None = None,
) -> Any:
    """Add a jaxpr to the module as a function.

    Args:
        ctx: the context of the module.
        name: the name of the function; a name in use gets a number.
        jaxpr: the jaxpr.
        effects: its ordered effects; the function has a token of each before its other arguments and results.
        num_const_args: must be 0; constants are written into the function.
        main_function: whether the function is the public ``main``.
        replicated_args: for each argument whether it is the same on all replicas.
        in_avals: the types of the arguments.
        arg_shardings, result_shardings: for each argument or result its sharding, or None.
        use_sharding_annotations: not used.
        input_output_aliases: for each argument the number of the result that reuses its memory, or None.
        xla_donated_args: for each argument whether XLA may reuse its memory for a result.
        arg_names: not used.
        result_names: the names of the results in XLA's reports.
        arg_memory_kinds, result_memory_kinds: for each argument or result the kind of its memory, or None.
        arg_layouts, result_layouts: must be None.
        propagated_out_mem_kinds: not used.

    Returns:
        The function, an MLIR operation.

    Raises:
        TypeError: `jaxpr` is no closed jaxpr, or has arguments of other types than `in_avals`.
        ValueError: a sequence has more or fewer entries than there are arguments or results.
        NotImplementedError: there are constant arguments or layouts.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> context = mlir.ModuleContext(platforms=("cpu",))
        >>> jaxpr = xtrace.make_jaxpr(jnp.sin)(0.0)
        >>> function = mlir.lower_jaxpr_to_fun(context, "wave", jaxpr, [], num_const_args=0, in_avals=jaxpr.in_avals)
        >>> print(function.name)
        "wave"
    """
    closed = _close("lower_jaxpr_to_fun", "jaxpr", jaxpr)
    kinds = [(a.shape, a.dtype) for a in closed.in_avals]
    if num_const_args or arg_layouts is not None or result_layouts is not None:
        raise NotImplementedError(
            "lower_jaxpr_to_fun: constant arguments and layouts are not supported; leave num_const_args at 0, and "
            "arg_layouts and result_layouts at None"
        )
    if kinds != [(a.shape, a.dtype) for a in in_avals]:
        raise TypeError(
            f"lower_jaxpr_to_fun: in_avals are ({', '.join([a.str_short(True) for a in in_avals])}), and jaxpr takes "
            f"({', '.join([a.str_short(True) for a in closed.in_avals])})"
        )
    function = "lower_jaxpr_to_fun"
    function_attributes = _FunctionAttributes(
        *_list_entries(function, len(closed.in_avals), {
            "replicated_args": replicated_args, "arg_shardings": arg_shardings,
            "input_output_aliases": input_output_aliases, "xla_donated_args": xla_donated_args,
            "arg_memory_kinds": arg_memory_kinds,
        }),
        *_list_entries(function, len(closed.out_avals), {
            "result_names": result_names, "result_shardings": result_shardings,
            "result_memory_kinds": result_memory_kinds,
        }),
    )
    return _add_jaxpr(ctx, closed, name, list(effects), main_function, function_attributes)


def lower_jaxpr_to_module(
    module_name: str, jaxpr: ClosedJaxpr, *, num_const_args: int, in_avals: Sequence[ShapedArray],
    ordered_effects: list[Effect], platforms: Sequence[str], backend: Any, axis_context: Any,
    donated_args: Sequence[bool], replicated_args: Sequence[bool] | None = None,
    arg_shardings: Sequence[Any] | None = None, result_shardings: Sequence[Any] | None = None,
    in_layouts: Sequence[Any] | None = None, out_layouts: Sequence[Any] | None = None,
    arg_names: Sequence[str] | None = None, result_names: Sequence[str] | None = None, num_partitions: int = 1,
    all_default_mem_kind: bool = True, input_output_aliases: Sequence[int | None] | None = None,
    propagated_out_mem_kinds: Sequence[str | None] | None = None, lowering_parameters: LoweringParameters,
) -> LoweringResult:
    """Lower a jaxpr to a module.

    Args:
        module_name: the name of the module.
        jaxpr: the jaxpr.
        num_const_args: must be 0; constants are written into the module.
        in_avals: the types of the arguments.
        ordered_effects: its ordered effects; ``main`` has a token of each before its other arguments and results.
        platforms: the platform of the module, one.
        backend: jaxlib's client; None for the client of the platform.
        axis_context: the devices, a `ShardingContext` or `SPMDAxisContext`.
        donated_args: for each argument whether a result of its type may reuse its memory.
        replicated_args: for each argument whether it is the same on all replicas.
        arg_shardings, result_shardings: for each argument or result its sharding, or None.
        in_layouts, out_layouts: must be None.
        arg_names: not used.
        result_names: the names of the results in XLA's reports.
        num_partitions: the number of partitions of the program.
        all_default_mem_kind: not used.
        input_output_aliases: for each argument the number of the result that reuses its memory, or None.
        propagated_out_mem_kinds: not used.
        lowering_parameters: options for the whole module.

    Returns:
        A `LoweringResult`.

    Raises:
        TypeError: `jaxpr` is no closed jaxpr, or has arguments of other types than `in_avals`.
        ValueError: a sequence has more or fewer entries than there are arguments or results.
        NotImplementedError: there are several platforms, constant arguments, layouts, or overridden rules.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> jaxpr = xtrace.make_jaxpr(jnp.sin)(0.0)
        >>> made = mlir.lower_jaxpr_to_module(
        ...     "wave", jaxpr, num_const_args=0, in_avals=jaxpr.in_avals, ordered_effects=[], platforms=["cpu"],
        ...     backend=None, axis_context=mlir.ShardingContext(1), donated_args=[False],
        ...     lowering_parameters=mlir.LoweringParameters())
        >>> "stablehlo.sine" in str(made.module)
        True
    """
    closed = _close("lower_jaxpr_to_module", "jaxpr", jaxpr)
    if len(platforms) > 1 or in_layouts is not None or out_layouts is not None:
        raise NotImplementedError(
            "lower_jaxpr_to_module: several platforms and layouts are not supported; write a module for each platform, "
            "and leave in_layouts and out_layouts at None"
        )
    if lowering_parameters.override_lowering_rules:
        raise NotImplementedError(
            "lower_jaxpr_to_module: override_lowering_rules are not supported; use register_lowering"
        )
    (donated,) = _list_entries("lower_jaxpr_to_module", len(closed.in_avals), {"donated_args": donated_args})
    context = ModuleContext(
        platforms=platforms, backend=backend, axis_context=axis_context, lowering_parameters=lowering_parameters
    )
    mlir_objects.describe_module(context.module, module_name, num_partitions)
    aliases = input_output_aliases
    if aliases is None:
        pairs = pair_donations(closed.jaxpr, donated)
        aliases = [pairs.get(i) for i in range(len(donated))]
    lower_jaxpr_to_fun(
        context, "main", closed, ordered_effects, num_const_args=num_const_args, main_function=True,
        replicated_args=replicated_args, in_avals=in_avals, arg_shardings=arg_shardings,
        result_shardings=result_shardings, input_output_aliases=aliases, result_names=result_names,
    )
    context.module.operation.verify()
    callbacks = context.builder.callbacks if context.builder is not None else []
    keepalive = [*callbacks, *context.keepalives]
    return LoweringResult(context.module, keepalive, context.host_callbacks, context.shape_poly_state)


def emit_python_callback(
    ctx: LoweringRuleContext, callback: Callable[..., Any], token: Any, operands: Sequence[Any],
    operand_avals: Sequence[ShapedArray], result_avals: Sequence[ShapedArray], *, has_side_effect: bool,
    returns_token: bool = True, partitioned: bool = False, sharding: Any = None,
) -> tuple[list[Any], Any, Any]:
    """Build a call of a Python function.

    Args:
        ctx: the context of the rule.
        callback: a function of arrays that returns a sequence of arrays.
        token: the token of an ordered call; None for a call in any order.
        operands: the MLIR values of the arguments.
        operand_avals: the types of the arguments.
        result_avals: the types of the results.
        has_side_effect: whether the call stays if nothing reads its results.
        returns_token: whether an ordered call returns a new token.
        partitioned: whether each device of a mesh calls the function with its shards.
        sharding: not used; the first device makes the call, or each device if `partitioned`.

    Returns:
        A list of the MLIR values of the results, the new token or None, and an object that must live as long as the
        program.

    Raises:
        TypeError: `callback` is no function, or there are more or fewer operands than types.
        NotImplementedError: programs for the platform cannot call Python.

    Example:
        >>> from xtrace.interpreters import mlir
        >>> twofold_p = xtrace.extend.core.Primitive("twofold")
        >>> _ = twofold_p.def_abstract_eval(lambda x: x)
        >>> def rule(ctx, x):
        ...     double = lambda x: (2 * np.asarray(x),)
        ...     return mlir.emit_python_callback(
        ...         ctx, double, None, [x], ctx.avals_in, ctx.avals_out, has_side_effect=False)[0]
        >>> mlir.register_lowering(twofold_p, rule)
        >>> xtrace.jit(twofold_p.bind)(np.float32(3))
        Array(6., dtype=float32)
    """
    if not callable(callback):
        raise TypeError(f"emit_python_callback: callback must be a function, got {abbreviate(callback)}")
    given = mlir_objects.flatten(operands)
    if len(given) != len(operand_avals):
        raise TypeError(
            f"emit_python_callback: there are {len(given)} operands, and operand_avals has {len(operand_avals)} types"
        )
    results, after = _call_python(
        ctx, callback, token, given, operand_avals, result_avals, has_side_effect, partitioned
    )
    return results, after if returns_token else None, callback


def _close(function: str, name: str, jaxpr: object) -> ClosedJaxpr:
    if not isinstance(jaxpr, (Jaxpr, ClosedJaxpr)) or (isinstance(jaxpr, Jaxpr) and jaxpr.constvars):
        raise TypeError(f"{function}: {name} must be a ClosedJaxpr, got {abbreviate(jaxpr)}")
    return close_jaxpr(jaxpr)


def _flatten_values(function: str, jaxpr: Any, given: Sequence[Any]) -> list[Any]:
    """Return the MLIR values of a jaxpr's inputs; TypeError for another number of values."""
    values = mlir_objects.flatten(given)
    if len(values) != len(jaxpr.in_avals):
        raise TypeError(f"{function}: the jaxpr has {len(jaxpr.in_avals)} inputs, and was given {len(values)} values")
    return values


class _FunctionAttributes(NamedTuple):
    """The attributes of a function's arguments and results, an entry for each."""

    replicated: Sequence[Any]
    arg_shardings: Sequence[Any]
    aliases: Sequence[Any]
    donated: Sequence[Any]
    arg_memories: Sequence[Any]
    names: Sequence[Any]
    result_shardings: Sequence[Any]
    result_memories: Sequence[Any]

    def write(self, function: FunctionBuilder, tokens: int) -> None:
        """Write the attributes; tokens come before the arguments and the results."""
        arguments = [
            [
                _format_flag("mhlo.is_same_data_across_replicas", replicated),
                _format_sharding(function, sharding, value.aval),
                "" if alias is None else f"tf.aliasing_output = {alias + tokens} : i32",
                _format_flag("jax.buffer_donor", donated), _format_memory(memory),
            ]
            for value, replicated, sharding, alias, donated, memory in zip(
                function.arguments[tokens:], self.replicated, self.arg_shardings, self.aliases, self.donated,
                self.arg_memories, strict=True,
            )
        ]
        results = [
            [
                "" if name is None else f"jax.result_info = {attributes.string(name)}",
                "" if sharding is None else function.module.meshes.attribute(sharding, ndim), _format_memory(memory),
            ]
            for name, sharding, memory, ndim in zip(
                self.names, self.result_shardings, self.result_memories, self._list_ranks(function, tokens), strict=True
            )
        ]
        function.argument_attributes = [*[""] * tokens, *[", ".join(filter(None, texts)) for texts in arguments]]
        function.result_attributes = [*[""] * tokens, *[", ".join(filter(None, texts)) for texts in results]]

    @staticmethod
    def _list_ranks(function: FunctionBuilder, tokens: int) -> list[int]:
        return [physical_aval(a).ndim for a in function.results[tokens:]]


def _format_flag(name: str, value: object) -> str:
    return f"{name} = true" if value else ""


def _format_sharding(function: FunctionBuilder, sharding: Any, aval: ShapedArray) -> str:
    return "" if sharding is None else function.module.meshes.attribute(sharding, physical_aval(aval).ndim)


def _format_memory(kind: str | None) -> str:
    return "" if kind is None else f"mhlo.memory_kind = {attributes.string(kind)}"


def _list_entries(function: str, count: int, given: Mapping[str, Sequence[Any] | None]) -> list[list[Any]]:
    """Return each sequence as a list of `count` entries, a list of None for None; ValueError for another number."""
    for name, entries in given.items():
        if entries is not None and len(entries) != count:
            raise ValueError(f"{function}: {name} must have {count} entries, as the jaxpr does; got {len(entries)}")
    return [[None] * count if entries is None else list(entries) for entries in given.values()]


def _add_jaxpr(
    context: ModuleContext, closed: ClosedJaxpr, name: str, effects: Sequence[Effect], is_main: bool,
    function_attributes: _FunctionAttributes,
) -> Any:
    text = jaxpr_text(context, closed, effects, lambda function: function_attributes.write(function, len(effects)))
    function = add_function(context, text, "main" if is_main else name)
    if is_main:
        mlir_objects.make_public(function)
    return function


def _call_python(
    context: LoweringRuleContext, callback: Callable[..., Any], token: Any, operands: Sequence[Any],
    in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], has_side_effect: bool, partitioned: bool,
) -> tuple[list[Any], Any]:
    """Build a call of Python, and return its results and the new token; None without `token`."""
    name = getattr(callback, "__name__", "callback")
    effect = Effect("Callback", ordered=token is not None) if has_side_effect or token is not None else None

    def call(*arrays: Any) -> list[Any]:
        results = list(callback(*arrays))
        if len(results) != len(out_avals):
            raise ValueError(f"{name}: the callback returned {len(results)} arrays, and must return {len(out_avals)}")
        made = [np.asarray(x, a.dtype) for x, a in zip(results, out_avals, strict=True)]
        for position, (x, aval) in enumerate(zip(made, out_avals, strict=True)):
            if x.shape != aval.shape and not partitioned:
                raise ValueError(
                    f"{name}: result {position} of the callback has the shape {x.shape}, and must have {aval.shape}"
                )
        return made

    def write(function: FunctionBuilder) -> list[Value]:
        given = list(function.arguments)
        if token is not None:
            function.tokens[effect] = given.pop(0)
        function.results = list(out_avals)
        values = emit_host_call(function, given, object(), name, call, effect, partitioned=partitioned)
        return values if token is None else [function.tokens[effect], *values]

    tokens = [TOKEN] * (token is not None)
    text = function_text(context.module_context, [*tokens, *in_avals], [*tokens, *out_avals], write)
    results = inline_text(context.module_context, text, [*[token] * (token is not None), *operands])
    return results[len(tokens) :], results[0] if tokens else None
