"""`export`: lowering a jitted function for files and for other processes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, cast

from xtrace._late_imports import late_modules
from xtrace._src.api.differentiation.grad import vjp
from xtrace._src.api.jit.jit import jit
from xtrace._src.api.jit.jitted import Jitted
from xtrace._src.api.jit.stages import ExportedTrace, Traced, lower_for_export
from xtrace._src.api.tracing import make_struct
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.effects import ordered_effects
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.mesh import Mesh
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding
from xtrace._src.core.sizes import has_symbolic, is_symbolic
from xtrace._src.core.tangents import tangent_aval
from xtrace._src.export.checks import check_custom_calls, maximum_supported_calling_convention_version
from xtrace._src.export.disabled_checks import DisabledSafetyCheck
from xtrace._src.export.exported import Exported
from xtrace._src.export.platforms import write_platforms_module
from xtrace._src.export.symbolic_calls import name_path
from xtrace._src.transforms.evaluate import evaluate
from xtrace._src.xla.clients import canonical_platform, default_platform

with late_modules(globals()):
    from xtrace._src.xla.mlir import artifacts


def default_export_platform() -> str:
    """Return the default platform of `export`, the platform of new arrays.

    Returns:
        The name: ``"cpu"``, ``"cuda"``, ``"rocm"`` or ``"tpu"``.

    Raises:
        RuntimeError: no platform starts.

    Example:
        >>> xtrace.export.default_export_platform()
        'cpu'
    """
    return default_platform()


def export(
    fun_jit: Callable[..., Any], *, platforms: Sequence[str] | None = None,
    disabled_checks: Sequence[DisabledSafetyCheck] = (), _override_lowering_rules: Any = None,
) -> Callable[..., Exported]:
    """Return a function that traces a jitted function, and lowers it for files and other processes.

    Args:
        fun_jit: the result of `jit`.
        platforms: the platforms of the program, such as ``["cpu", "tpu"]``; None for the default platform.
        disabled_checks: checks to skip.
        _override_lowering_rules: must be None.

    Returns:
        A function of the arguments of `fun_jit`, or of their `ShapeDtypeStruct`, that returns an `Exported`.

    Raises:
        TypeError: `platforms` is no sequence of strings, or `disabled_checks` no sequence of checks.
        ValueError: `fun_jit` is not the result of `jit`; in a call, also: the program has custom calls that later
            releases may not know.
        NotImplementedError: the program calls Python, or takes references; rules are overridden.

    Example:
        >>> exported = xtrace.export.export(xtrace.jit(jnp.sin))(xtrace.ShapeDtypeStruct((2,), "float32"))
        >>> saved = exported.serialize(vjp_order=1)
        >>> xtrace.export.deserialize(saved).call(jnp.zeros(2))
        Array([0., 0.], dtype=float32)
    """
    if not isinstance(getattr(fun_jit, "_xtrace_jitted", None), Jitted):
        raise ValueError(
            f"export: fun_jit must be the result of jit, got {abbreviate(fun_jit)}; write export(xtrace.jit(f))"
        )
    if _override_lowering_rules is not None:
        raise NotImplementedError("export: _override_lowering_rules is not supported; leave it None")
    checks = tuple(disabled_checks)
    for check in checks:
        if not isinstance(check, DisabledSafetyCheck):
            raise TypeError(
                "export: disabled_checks must be checks such as export.DisabledSafetyCheck.platform(), got "
                f"{abbreviate(check)}"
            )
    names = _canonical_platforms(platforms)

    @boundary
    def do_export(*args: Any, **kwargs: Any) -> Exported:
        _check_scopes(fun_jit, args, kwargs)
        traced = cast(Any, fun_jit).trace(*args, **kwargs)
        return _export_trace(traced, names or (default_export_platform(),), checks)

    return do_export


def _check_scopes(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
    """Raise ValueError if symbolic dimensions of the arguments' shapes are of several scopes."""
    expected: tuple[str, Any] | None = None
    for path, leaf in pytree.tree_leaves_with_path((args, kwargs)):
        for size in filter(is_symbolic, getattr(leaf, "shape", ())):
            name = name_path(path)
            expected = expected or (name, size.scope)
            if size.scope is not expected[1]:
                raise ValueError(
                    f"Invalid mixing of symbolic scopes when exporting {abbreviate(function)}. Expected current (from "
                    f"{expected[0]}) scope {expected[1]}, and found for '{size}' ({name}) scope {size.scope}. Give "
                    "symbolic_shape the same scope=, for all shapes of a function"
                )


def _canonical_platforms(platforms: Sequence[str] | None) -> tuple[str, ...]:
    if isinstance(platforms, str) or not all(isinstance(p, str) for p in platforms or ()):
        raise TypeError(
            f"export: platforms must be a sequence of names such as ['cpu', 'tpu'], got {abbreviate(platforms)}"
        )
    names = tuple(map(canonical_platform, platforms or ()))
    if len(set(names)) < len(names):
        raise ValueError(f"export: platforms names one twice: {', '.join(names)}")
    return names


def _export_trace(traced: Traced, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]) -> Exported:
    lowered = lower_for_export(traced, platforms)
    name, function = traced.fun_name, lowered.traced
    _check_effects(name, lowered)
    module = write_platforms_module(name, platforms, lowered)
    in_avals, out_avals = tuple(function.jaxpr.in_avals), tuple(function.out_avals)
    is_symbolic = any(has_symbolic(aval.shape) for aval in in_avals)
    try:
        data = artifacts.write_artifact(module)
    except ValueError as error:
        line = getattr(error, "source", None)
        if not is_symbolic or line is None:
            raise
        raise NotImplementedError(
            f"export: {name} has an operation that has no form for symbolic sizes; give the argument known sizes, or "
            f"leave it out. It would be\n  {line.strip()}"
        ) from None
    check_custom_calls(name, artifacts.find_custom_calls(artifacts.read_artifact(data)), checks)
    mesh, inputs, results = lowered.assignment.mesh, lowered.assignment.inputs, lowered.assignment.results
    kept = range(len(in_avals)) if lowered.kept is None else lowered.kept
    read = [sharding if i in kept else None for i, sharding in enumerate(inputs)]
    in_shardings = _drop_devices(name, in_avals, read if mesh is not None else ())
    out_shardings = _drop_devices(name, out_avals, results if mesh is not None else ())
    return Exported(
        fun_name=name, in_tree=function.in_tree, in_avals=in_avals, out_tree=function.out_tree, out_avals=out_avals,
        _has_named_shardings=True, _in_named_shardings=in_shardings, _out_named_shardings=out_shardings,
        in_shardings_hlo=(None,) * len(in_avals), out_shardings_hlo=(None,) * len(out_avals),
        nr_devices=mesh.size if mesh is not None else 1, platforms=platforms, ordered_effects=(),
        unordered_effects=tuple(function.jaxpr.effects), disabled_safety_checks=checks, mlir_module_serialized=data,
        calling_convention_version=maximum_supported_calling_convention_version, module_kept_var_idx=tuple(kept),
        uses_global_constants=len(platforms) > 1 or is_symbolic,
        _get_vjp=_make_derivative_exporter(lowered, platforms, checks),
    )


def _check_effects(name: str, lowered: ExportedTrace) -> None:
    """Raise NotImplementedError for programs with callbacks or ordered effects."""
    if any(module.callbacks for module in lowered.modules):
        raise NotImplementedError(
            f"export: {name} calls Python (by a callback, or a print), and serialization of host_callbacks is not "
            "possible: other processes do not have the Python function. Leave the call out, or return its operands"
        )
    ordered = ordered_effects(lowered.traced.jaxpr.effects)
    if ordered:
        raise NotImplementedError(f"export: {name} has ordered effects ({', '.join(map(str, ordered))})")


def _drop_devices(
    name: str, avals: Sequence[ShapedArray], shardings: Sequence[Sharding | None]
) -> tuple[NamedSharding | None, ...]:
    """Return shardings without their devices."""
    abstract: list[NamedSharding | None] = []
    for sharding in shardings or [None] * len(avals):
        if sharding is not None and not isinstance(sharding, NamedSharding):
            raise NotImplementedError(
                f"export: an argument or result of {name} has the sharding {sharding}, which has no mesh; move it to a "
                "NamedSharding with xtrace.device_put, or give jit in_shardings and out_shardings"
            )
        kind = None if sharding is None else sharding.memory_kind
        abstract.append(sharding and NamedSharding(sharding.mesh.abstract_mesh, sharding.spec, kind))
    return tuple(abstract)


def _make_derivative_exporter(
    lowered: ExportedTrace, platforms: tuple[str, ...], checks: tuple[DisabledSafetyCheck, ...]
) -> Callable[[Exported], Exported]:
    """Return a function that exports the derivative of a trace at its first call."""
    function, assignment, made = lowered.traced, lowered.assignment, list[Exported]()

    def pull(*leaves: Any) -> Any:
        count = len(function.jaxpr.invars)
        _, back = vjp(lambda *args: evaluate(function.jaxpr, function.consts, args), *leaves[:count])
        return back(list(leaves[count:]))

    def get(exported: Exported) -> Exported:
        if not made:
            pull.__name__ = pull.__qualname__ = f"vjp_{exported.fun_name}"
            shardings: dict[str, Any] = {}
            if assignment.mesh is not None:
                shardings = {
                    "in_shardings": (*assignment.inputs, *assignment.results), "out_shardings": assignment.inputs
                }
            cotangents = map(tangent_aval, function.out_avals)
            structs = [_make_struct(assignment.mesh, aval) for aval in (*function.jaxpr.in_avals, *cotangents)]
            jitted: Any = jit(pull, **shardings)
            made.append(_export_trace(jitted.trace(*structs), platforms, checks))
        return made[0]

    return get


def _make_struct(mesh: Mesh | None, aval: ShapedArray) -> Any:
    """Return the ShapeDtypeStruct of a type, with its sharding on the program's devices."""
    struct, sharding = make_struct(aval), aval.explicit_sharding
    return struct if sharding is None or mesh is None else struct.update(sharding=NamedSharding(mesh, sharding.spec))
