"""Calls of foreign functions, compiled code registered with XLA under a name."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike
from xtrace._src.core.avals import AbstractToken, ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.errors import UnexpectedTracerError
from xtrace._src.core.jaxprs.effects import NO_EFFECTS, Effect, Effects
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.trace import Tracer
from xtrace._src.core.value_objects import EqualByKey
from xtrace._src.ops.control_flow.bodies import flatten_argument
from xtrace._src.ops.host.mapped_calls import batch_by_method, check_method
from xtrace._src.stablehlo import attributes as mlir
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis

_CALLED = Effect("ForeignCall")


class CallAttribute(EqualByKey):
    """An attribute of an ffi or composite call; its MLIR text gives equality and hash, also of arrays and dicts."""

    __slots__ = ("value", "text")

    def __init__(self, function: str, name: str, value: ArrayLike) -> None:
        self.value, self.text = value, attribute_text(function, name, value)

    def _key(self) -> Any:
        return self.text

    def __repr__(self) -> str:
        return repr(self.value)


def attribute_text(function: str, name: str, value: ArrayLike) -> str:
    """Return an attribute as MLIR text; TypeError for a value without an MLIR attribute."""
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, (int, float)) or (isinstance(value, np.generic) and _is_real(value.dtype)):
        dtype = value.dtype if isinstance(value, np.generic) else np.dtype(type(value))
        return f"{mlir.scalar(value, dtype).removeprefix('dense<')[:-1]} : {dtypes.mlir_name(dtype)}"
    if isinstance(value, str):
        return mlir.string(value)
    if isinstance(value, bytes):
        return mlir.string(value.decode())
    if isinstance(value, np.dtype):
        return dtypes.mlir_name(value)
    if isinstance(value, np.ndarray) and value.dtype != object:
        aval = ShapedArray(value.shape, value.dtype)
        return f"{mlir.dense(value)} : {aval.mlir_type}"
    if type(value).__module__.startswith("jaxlib.mlir"):
        return str(value)
    if isinstance(value, Mapping):
        entries = [f"{mlir.string(k)} = {attribute_text(function, k, v)}" for k, v in sorted(value.items())]
        return f"{{{', '.join(entries)}}}"
    if isinstance(value, (list, tuple)):
        return f"[{', '.join(attribute_text(function, name, v) for v in value)}]"
    if isinstance(value, Tracer) and function == "composite":
        raise UnexpectedTracerError(
            f"{function}: attribute {name} is the traced value {abbreviate(value)}; attributes are constants of "
            "the program. Pass arrays by position, also those that the decomposition closes over"
        )
    raise TypeError(
        f"{function}: attribute {name} is {abbreviate(value)} of type {type(value)}; attributes are booleans, "
        "numbers, strings, NumPy arrays and dtypes, and sequences and dicts of these"
    )


def _is_real(dtype: np.dtype[Any]) -> bool:
    return dtypes.is_integer(dtype) or dtypes.is_floating(dtype)


def _abstract(*avals: ShapedArray, result_avals: Sequence[ShapedArray], **_: Any) -> list[ShapedArray]:
    """Return the results of a foreign function."""
    return list(result_avals)


def _layout(order: Sequence[int]) -> str:
    inner = "" if not order else str(order[0]) if len(order) == 1 else mlir.list_text(order)
    return f"dense<{inner}> : tensor<{len(order)}xindex>"


def _emit(
    builder: FunctionBuilder, *values: Value, attributes: Any, custom_call_api_version: int, has_side_effect: bool,
    input_layouts: Any, input_output_aliases: Any, legacy_backend_config: Any, output_layouts: Any,
    result_avals: Any, target_name: str, vmap_method: Any,
) -> list[Value]:
    results = builder.results
    texts = call_attributes(
        attributes, custom_call_api_version, has_side_effect, input_layouts, input_output_aliases,
        legacy_backend_config, output_layouts,
    )
    names = ", ".join(x.name for x in values)
    call = f"stablehlo.custom_call @{_symbol(target_name)}({names})"
    given = ", ".join([f"{name} = {text}" for name, text in texts.items()])
    return builder.line_of_many(f"{call} {{{given}}} : {builder.function_type(values, results)}", results)


def call_attributes(
    attributes: Any, api_version: int, has_side_effect: bool, input_layouts: Sequence[Sequence[int]],
    input_output_aliases: Sequence[tuple[int, int]], legacy_backend_config: str | None,
    output_layouts: Sequence[Sequence[int]],
) -> dict[str, str]:
    """Return the attributes of a call of a foreign function as MLIR text; layouts are minor to major."""
    texts = {}
    if api_version >= 4:
        texts["backend_config"] = '""'
    else:
        texts["api_version"] = f"{api_version} : i32"
        texts["backend_config"] = mlir.string(legacy_backend_config or "")
    if has_side_effect:
        texts["has_side_effect"] = "true"
    if api_version >= 4:
        texts["mhlo.backend_config"] = f"{{{', '.join(f'{k} = {v.text}' for k, v in attributes)}}}"
    texts["operand_layouts"] = f"[{', '.join(map(_layout, input_layouts))}]"
    if input_output_aliases:
        pairs = [
            f"#stablehlo.output_operand_alias<output_tuple_indices = [{'' if len(output_layouts) == 1 else result}], "
            f"operand_index = {operand}, operand_tuple_indices = []>"
            for operand, result in input_output_aliases
        ]
        texts["output_operand_aliases"] = f"[{', '.join(pairs)}]"
    texts["result_layouts"] = f"[{', '.join(map(_layout, output_layouts))}]"
    return texts


def _symbol(name: str) -> str:
    plain = all(c.isascii() and (c.isalnum() or c in "_.$") for c in name) and not name[:1].isdigit()
    return name if plain and name else mlir.string(name)


def _effects(*, has_side_effect: bool, **_: object) -> Effects:
    return frozenset((_CALLED,)) if has_side_effect else NO_EFFECTS


def _batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], **parameters: Any
) -> tuple[list[Any], list[int]]:
    if parameters["vmap_method"] == "legacy_vectorized" and None in axes:
        raise NotImplementedError(
            "vmap_method='legacy_vectorized' needs every operand to be mapped; use 'expand_dims' or 'broadcast_all'"
        )
    # The mapped axis is the most major.
    layouts = {
        name: tuple([(*[d + 1 for d in order], 0) for order in parameters[name]])
        for name in ("input_layouts", "output_layouts")
    }
    described = f"the foreign function {parameters['target_name']} needs a vmap_method"
    return batch_by_method(ffi_call_p, described, "ffi_call", mapped, operands, axes, parameters, layouts)


ffi_call_p = Primitive(
    "ffi_call",
    (
        "attributes", "custom_call_api_version", "has_side_effect", "input_layouts", "input_output_aliases",
        "legacy_backend_config", "output_layouts", "result_avals", "target_name", "vmap_method",
    ),
    abstract=_abstract, emit=_emit, effects=_effects, batch=_batch, multiple_results=True,
    jvp=no_rule(
        "a foreign function cannot be differentiated: its mathematics is unknown. Wrap the call in a function with a "
        "custom rule, xtrace.custom_jvp or xtrace.custom_vjp", ValueError,
    ),
)


def ffi_call(
    target_name: str, result_shape_dtypes: Any, *, has_side_effect: bool = False, vmap_method: str | None = None,
    input_layouts: Sequence[Any] | None = None, output_layouts: Any = None,
    input_output_aliases: dict[int, int] | None = None, custom_call_api_version: int = 4,
    legacy_backend_config: Any = None,
) -> Callable[..., Any]:
    """Return a function that calls a foreign function.

    A call with a wrong number or types of operands can end the process.

    Args:
        target_name: the name under which the function was registered.
        result_shape_dtypes: an object with a shape and a dtype, `abstract_token` for a token, or a sequence for several
            results.
        has_side_effect: whether to keep the call if its results are not used.
        vmap_method: the behaviour under `vmap`, as in `pure_callback`; None for an error.
        input_layouts, output_layouts: for each array its axes, major to minor; None for row-major.
        input_output_aliases: for operands, the results that reuse their memory.
        custom_call_api_version: 4 for XLA's typed interface.
        legacy_backend_config: a string for older interfaces.

    Returns:
        A function of arrays by position and attributes (numbers, strings, NumPy arrays) by name.

    Raises:
        TypeError: an argument has another type.
        ValueError: layouts or aliases do not fit the arrays, or the call is differentiated.

    Example:
        >>> call = xtrace.ffi.ffi_call("my_handler", xtrace.ShapeDtypeStruct((2,), jnp.float32))
        >>> xtrace.eval_shape(call, jnp.ones(2))
        ShapeDtypeStruct(shape=(2,), dtype=float32)
    """
    if not isinstance(target_name, str):
        raise TypeError(f"ffi_call: target_name must be a string, got {abbreviate(target_name)}")
    check_method(vmap_method)
    if legacy_backend_config is not None:
        if custom_call_api_version >= 4:
            raise ValueError(
                f"ffi_call of {target_name}: legacy_backend_config needs a custom_call_api_version below 4, got "
                f"{custom_call_api_version}; pass attributes to the call in its place"
            )
        if not isinstance(legacy_backend_config, str):
            raise ValueError(
                f"ffi_call of {target_name}: legacy_backend_config must be a string, got "
                f"{abbreviate(legacy_backend_config)}"
            )
    several = isinstance(result_shape_dtypes, (tuple, list))
    described = list(result_shape_dtypes) if several else [result_shape_dtypes]
    results = tuple([_result_aval(i, d) for i, d in enumerate(described)])
    aliases = tuple(sorted((input_output_aliases or {}).items()))

    @boundary
    def call(*args: Any, **attributes: Any) -> Any:
        if attributes and custom_call_api_version < 4:
            raise ValueError(
                f"ffi_call of {target_name}: attributes need custom_call_api_version=4, got {custom_call_api_version} "
                f"and {', '.join(attributes)}; earlier versions take the string legacy_backend_config"
            )
        leaves, _, avals = flatten_argument("args", args)
        if len(leaves) != len(args):
            raise TypeError(f"ffi_call of {target_name} takes arrays, not trees of them: {pytree.tree_structure(args)}")
        for operand, result in aliases:
            if not (0 <= operand < len(avals) and 0 <= result < len(results)):
                raise ValueError(
                    f"ffi_call of {target_name}: input_output_aliases {aliases} names an operand or result that does "
                    "not exist"
                )
            one, other = avals[operand], results[result]
            if (one.shape, one.dtype) != (other.shape, other.dtype):
                raise ValueError(
                    f"ffi_call of {target_name}: operand {operand}, {one.str_short(True)}, and result {result}, "
                    f"{other.str_short(True)}, share memory and must have one type"
                )
        given = output_layouts if several or output_layouts is None else [output_layouts]
        outputs = ffi_call_p.bind_positional(
            leaves,
            (
                tuple([(k, CallAttribute("ffi_call", k, v)) for k, v in sorted(attributes.items())]),
                custom_call_api_version, bool(has_side_effect),
                _layouts("input_layouts", input_layouts, avals), aliases,
                legacy_backend_config, _layouts("output_layouts", given, results), results, target_name, vmap_method,
            ),
        )
        return tuple(outputs) if several else outputs[0]

    return call


class ForeignLowering:
    """The lowering of a user's primitive to a call of a foreign function, as text or as MLIR objects.

    operand_layouts, result_layouts: for each array its axes, minor to major; None for row-major. TypeError for unknown
    options.
    """

    def __init__(
        self, function: str, target_name: str, operand_layouts: Sequence[Any] | None,
        result_layouts: Sequence[Any] | None, backend_config: Any, **options: Any,
    ) -> None:
        if not isinstance(target_name, str):
            raise TypeError(f"{function}: call_target_name must be a string, got {abbreviate(target_name)}")
        self.target_name, self.backend_config = target_name, backend_config
        self.layouts = operand_layouts, result_layouts
        self.version = options.pop("api_version", 4)
        self.side_effect = bool(options.pop("has_side_effect", False))
        self.aliases = tuple(sorted((options.pop("operand_output_aliases", None) or {}).items()))
        if options:
            raise TypeError(
                f"{function} takes api_version, has_side_effect and operand_output_aliases besides layouts and "
                f"configuration; got {', '.join(options)}"
            )

    def emit(self, builder: FunctionBuilder, *values: Value, **parameters: Any) -> Any:
        """Write the call as text."""
        inputs, outputs = self._layouts([x.aval for x in values], builder.results)
        results = _emit(
            builder, *values, attributes=self._attributes(parameters), custom_call_api_version=self.version,
            has_side_effect=self.side_effect, input_layouts=inputs, input_output_aliases=self.aliases,
            legacy_backend_config=self._text(), output_layouts=outputs, result_avals=None,
            target_name=self.target_name, vmap_method=None,
        )
        return results[0] if len(results) == 1 else results

    def texts(
        self, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray], parameters: dict[str, Any]
    ) -> dict[str, str]:
        """Return the attributes of the call as MLIR text."""
        inputs, outputs = self._layouts(in_avals, out_avals)
        texts = call_attributes(
            self._attributes(parameters), self.version, self.side_effect, inputs, self.aliases, self._text(), outputs
        )
        return {"call_target_name": mlir.string(self.target_name)} | texts

    def _layouts(self, in_avals: Sequence[ShapedArray], out_avals: Sequence[ShapedArray]) -> list[Any]:
        return [_expand_layouts(g, a) for g, a in zip(self.layouts, (in_avals, out_avals), strict=True)]

    def _attributes(self, parameters: dict[str, Any]) -> list[tuple[str, CallAttribute]]:
        fixed = self.backend_config if isinstance(self.backend_config, Mapping) else {}
        return [(k, CallAttribute("ffi_call", k, v)) for k, v in sorted((dict(fixed) | parameters).items())]

    def _text(self) -> str | None:
        return self.backend_config if isinstance(self.backend_config, str) else None


def _expand_layouts(given: Sequence[Any] | None, avals: Sequence[ShapedArray]) -> list[tuple[int, ...]]:
    if given is None:
        given = [None] * len(avals)
    if len(given) != len(avals):
        raise ValueError(f"a call of a foreign function has {len(avals)} arrays, but {len(given)} layouts were given")
    return [tuple(reversed(range(a.ndim))) if g is None else tuple(g) for g, a in zip(given, avals, strict=True)]


def _result_aval(position: int, described: Any) -> ShapedArray:
    if not hasattr(described, "shape") or not hasattr(described, "dtype"):
        raise ValueError(
            f"ffi_call: result_shape_dtypes must be objects with a shape and a dtype, such as ShapeDtypeStruct; result "
            f"{position} is {abbreviate(described)}"
        )
    if isinstance(described, AbstractToken):
        return described
    return ShapedArray(tuple(described.shape), np.dtype(described.dtype))


def _layouts(name: str, given: Sequence[Any] | None, avals: Sequence[ShapedArray]) -> tuple[tuple[int, ...], ...]:
    """Return the axes of each array, minor to major, from axes major to minor; ValueError for no permutation."""
    if given is None:
        return tuple([tuple(reversed(range(a.ndim))) for a in avals])
    if len(given) != len(avals):
        raise ValueError(f"ffi_call: {name} has {len(given)} entries for {len(avals)} arrays")
    layouts = []
    for aval, order in zip(avals, given, strict=True):
        axes = tuple(range(aval.ndim)) if order is None else tuple(order)
        if not all(hasattr(i, "__index__") for i in axes) or sorted(axes) != list(range(aval.ndim)):
            raise ValueError(
                f"ffi_call: {name} must be permutations of the axes; got {axes} for {aval.str_short(True)}"
            )
        layouts.append(axes[::-1])
    return tuple(layouts)
