"""Emission of calls to linear algebra libraries, and checks of their status."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.stablehlo import symbolic_sizes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.xla.custom_calls import lapack
from xtrace._src.xla.plugins import plugins


def character(letter: str) -> str:
    """Return a letter, as LAPACK's options are, as an attribute."""
    return f"{ord(letter)} : ui8"


def flag(value: bool) -> str:
    """Return a boolean as an attribute."""
    return "true" if value else "false"


def lapack_call(
    builder: FunctionBuilder, routine: str, operands: Sequence[Value], results: Sequence[ShapedArray], **details: Any
) -> list[Value]:
    """Write a call of the LAPACK routine for the first operand's dtype; see `foreign_call`.

    NotImplementedError for dtypes without LAPACK routines.
    """
    dtype = operands[0].aval.dtype
    if not lapack.supports(dtype):
        raise NotImplementedError(
            f"the LAPACK routine {routine} is for float32, float64, complex64 and complex128; the operand has dtype "
            f"{dtype.name}. Convert it with x.astype(...) first."
        )
    return foreign_call(builder, lapack.target(routine, dtype), operands, results, **details)


def foreign_call(
    builder: FunctionBuilder, target: str, operands: Sequence[Value], results: Sequence[ShapedArray], *, batch: int,
    options: Mapping[str, str] | None = None, aliases: Mapping[int, int] | None = None, row_major: bool = False,
) -> list[Value]:
    """Write a call of a foreign function for a batch of matrices.

    batch: the number of batch axes. options: attributes of the call. aliases: for positions of results, the positions
    of the operands whose memory they reuse. row_major: whether matrices are row-major; otherwise they are column-major.
    """
    rule = _sharding_rule([x.aval for x in operands], results, batch)
    operands, sizes = _add_sizes(builder, operands, results)
    texts = ", ".join(f"{name} = {value}" for name, value in sorted((options or {}).items()))
    single = len(results) == 1
    attributes = [
        'backend_config = ""', f"mhlo.backend_config = {{{texts}}}",
        f'mhlo.frontend_attributes = {{num_batch_dims = "{batch}"}}',
        f"operand_layouts = [{', '.join(_layout(x.aval, batch, row_major) for x in operands)}]",
        f"result_layouts = [{', '.join(_layout(a, batch, row_major) for a in results)}]",
        *(sizes or [f"sdy.sharding_rule = {rule}"]),
    ]
    if aliases:
        pairs = [
            f"#stablehlo.output_operand_alias<output_tuple_indices = [{'' if single else result}], "
            f"operand_index = {operand}, operand_tuple_indices = []>"
            for result, operand in aliases.items()
        ]
        attributes.insert(4, f"output_operand_aliases = [{', '.join(pairs)}]")
    return _write_call(builder, target, operands, results, attributes)


def hybrid_call(
    builder: FunctionBuilder, target: str, operands: Sequence[Value], results: Sequence[ShapedArray], **details: Any
) -> list[Value]:
    """Write a call of a hybrid CPU and GPU kernel of the CUDA plugin; see `foreign_call`."""
    plugins.prepare_hybrid_kernels()
    return foreign_call(builder, target, operands, results, **details)


def xla_call(
    builder: FunctionBuilder, target: str, operands: Sequence[Value], results: Sequence[ShapedArray], *,
    config: str = "", version: int = 1,
) -> list[Value]:
    """Write a custom call that XLA's TPU compiler expands."""
    operands, sizes = _add_sizes(builder, operands, results)
    attributes = [f'backend_config = "{config}"', *sizes]
    if version != 1:
        attributes.insert(0, f"api_version = {version} : i32")
    return _write_call(builder, target, operands, results, attributes)


def _add_sizes(
    builder: FunctionBuilder, operands: Sequence[Value], results: Sequence[ShapedArray]
) -> tuple[list[Value], list[str]]:
    """Return the operands followed by the sizes of symbolic results, and the attribute that marks these."""
    if not any(map(symbolic_sizes.is_dynamic, results)):
        return list(operands), []
    positions = [len(operands) + i for i in range(len(results))]
    # XLA's shape refinement removes these operands when all sizes are known.
    attribute = f"indices_of_shape_operands = dense<{positions}> : tensor<{len(results)}xi64>"
    return [*operands, *[builder.sizes_vector(aval.shape) for aval in results]], [attribute]


def _write_call(
    builder: FunctionBuilder, target: str, operands: Sequence[Value], results: Sequence[ShapedArray],
    attributes: Sequence[str],
) -> list[Value]:
    names = ", ".join(x.name for x in operands)
    call = f"stablehlo.custom_call @{target}({names}) {{{', '.join(attributes)}}}"
    return builder.line_of_many(f"{call} : {builder.function_type(operands, results)}", results)


def _layout(aval: ShapedArray, batch: int, row_major: bool) -> str:
    """Return the layout, minor to major: column-major for matrices unless `row_major`, row-major for other arrays."""
    ndim = aval.ndim
    order = list(reversed(range(ndim)))
    if ndim - batch == 2 and not row_major:
        order[:2] = [ndim - 2, ndim - 1]
    inner = "" if not order else str(order[0]) if ndim == 1 else str(order)
    return f"dense<{inner}> : tensor<{ndim}xindex>"


def _letters() -> Iterator[str]:
    yield from "ijklmnopqrstuvwxyz"
    for number in itertools.count(1):
        yield f"z_{number}"


def _sharding_rule(operands: Sequence[ShapedArray], results: Sequence[ShapedArray], batch: int) -> str:
    """Return the Shardy rule that partitions the call along its batch axes only."""
    fresh = _letters()
    common = [next(fresh) for _ in range(batch)]
    sizes: dict[str, int] = {}

    def names(aval: ShapedArray) -> str:
        own = [*common, *[next(fresh) for _ in range(aval.ndim - batch)]]
        sizes.update(zip(own, aval.shape, strict=True))
        return f"[{', '.join(own)}]"

    ins, outs = [names(a) for a in operands], [names(a) for a in results]
    factors = ", ".join(f"{name}={size}" for name, size in sizes.items())
    return f"#sdy.op_sharding_rule<({', '.join(ins)})->({', '.join(outs)}) {{{factors}}}, custom>"


def keep_valid(
    builder: FunctionBuilder, values: Sequence[Value], status: Value, *, singular: bool = False
) -> list[Value]:
    """Write `values` with NaN for the matrices whose LAPACK status is not 0, or with `singular` is negative."""
    zero = builder.constant(0, status.aval)
    good = builder.compare("GE" if singular else "EQ", status, zero)
    valid = []
    for x in values:
        nan = complex(math.nan, math.nan) if dtypes.is_complex(x.aval.dtype) else math.nan
        aval = x.aval.update(weak_type=False)
        mask = builder.broadcast(good, aval.shape, range(good.aval.ndim))
        valid.append(builder.select(mask, x.bitcast(aval), builder.constant(nan, aval)))
    return valid


def platform_error(builder: FunctionBuilder, name: str) -> NotImplementedError:
    """Return the error for an operation without an implementation on the module's platform."""
    return NotImplementedError(
        f"{name} is not implemented on the platform {builder.platform}; compute it on the CPU, "
        "with xtrace.device_put(x, xtrace.devices('cpu')[0])"
    )
