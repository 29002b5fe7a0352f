"""Contractions: products of two arrays, summed over pairs of axes."""

from __future__ import annotations

import enum
from collections.abc import Sequence
from typing import Any, NamedTuple, Union

import numpy as np

from xtrace._src.algebra.families import BILINEAR
from xtrace._src.algebra.resharding import cast_to_auto, reshard_result
from xtrace._src.algebra.vector_space import convert_to, operand_aval, transpose
from xtrace._src.core import dtypes
from xtrace._src.core.annotations import ArrayLike, DTypeLike
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.jaxprs.ir import NEVER_PRINTED
from xtrace._src.core.primitive import primitive
from xtrace._src.core.settings import config
from xtrace._src.core.settings.dtype_arguments import requested_dtype
from xtrace._src.core.shardings import sharding_rules, sum_rules
from xtrace._src.core.shardings.mesh import context_abstract_mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec, get_entry_axes
from xtrace._src.core.shardings.requested_shardings import requested_out_sharding
from xtrace._src.core.shardings.sharding_rules import contract
from xtrace._src.core.shardings.shardings import NamedSharding
from xtrace._src.core.tangents import UndefinedPrimal
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis


class Precision(enum.Enum):
    """The precision of products of 32-bit floats on GPU and TPU: rounded to bfloat16 or TF32, in parts, or exact.

    Example:
        >>> lax.dot(jnp.ones(2), jnp.ones(2), precision=lax.Precision.HIGHEST)
        Array(2., dtype=float32)
    """

    DEFAULT = 0
    HIGH = 1
    HIGHEST = 2

    @classmethod
    def _missing_(cls, value: object) -> Precision | None:
        return _precision_names.get(value) if isinstance(value, str) else None

    def __repr__(self) -> str:
        return f"Precision.{self.name}"

    def __str__(self) -> str:
        return self.name


_precision_names = {
    "default": Precision.DEFAULT, "fastest": Precision.DEFAULT, "bfloat16": Precision.DEFAULT,
    "high": Precision.HIGH, "bfloat16_3x": Precision.HIGH, "tensorfloat32": Precision.HIGH,
    "highest": Precision.HIGHEST, "float32": Precision.HIGHEST,
}


class DotAlgorithm(NamedTuple):
    """The precision of a contraction: the dtypes of operands and sums, and the decomposition of operands into parts.

    Args:
        lhs_precision_type, rhs_precision_type: the dtypes to which operands are rounded.
        accumulation_type: the dtype of the sums.
        lhs_component_count, rhs_component_count: the number of parts into which an operand is split.
        num_primitive_operations: the number of products of parts to sum.
        allow_imprecise_accumulation: whether tensor cores may accumulate with fewer bits than the accumulation type.

    Example:
        >>> lax.DotAlgorithm(np.float32, np.float32, np.float32).accumulation_type
        <class 'numpy.float32'>
    """

    lhs_precision_type: Any
    rhs_precision_type: Any
    accumulation_type: Any
    # The numbers of parts of each operand, and of products of parts.
    lhs_component_count: int = 1
    rhs_component_count: int = 1
    num_primitive_operations: int = 1
    # Whether sums may have fewer bits than the accumulation type.
    allow_imprecise_accumulation: bool = False

    def operand_dtype(self, position: int, dtype: DTypeLike) -> np.dtype[Any]:
        """Return the dtype to which an operand of `dtype` is converted; XLA splits it into parts."""
        if self[position] == "tf32":
            return dtypes.float32
        precision: np.dtype[Any] = dtypes.resolve(self[position])
        if precision == dtypes.bfloat16 and (dtype == dtypes.float32 or self.num_primitive_operations > 1):
            return dtypes.float32
        return precision

    def result_dtype(self, operand: Any, dtype: Any) -> Any:
        """Return the dtype of the product before its conversion to `dtype`."""
        own = self.lhs_precision_type != "tf32" and operand == dtypes.resolve(self.lhs_precision_type)
        if own and (operand == dtype or _is_float8_pair(operand, operand)):
            return dtype
        return dtypes.resolve(self.accumulation_type)

    def attribute(self) -> str:
        """Return the StableHLO attribute."""
        types = [_type_name(t) for t in self[:3]]
        return (
            f"<lhs_precision_type = {types[0]}, rhs_precision_type = {types[1]}, accumulation_type = {types[2]}, "
            f"lhs_component_count = {self.lhs_component_count}, rhs_component_count = {self.rhs_component_count}, "
            f"num_primitive_operations = {self.num_primitive_operations}, "
            f"allow_imprecise_accumulation = {'true' if self.allow_imprecise_accumulation else 'false'}>"
        )


def _type_name(dtype: np.dtype[Any]) -> str:
    return "tf32" if dtype == "tf32" else dtypes.mlir_name(dtypes.resolve(dtype))


class DotAlgorithmPreset(enum.Enum):
    """The algorithms of hardware, named LHS_RHS_ACCUMULATION, with the number of products after an X.

    Example:
        >>> lax.DotAlgorithmPreset.BF16_BF16_F32_X3
        DotAlgorithmPreset.BF16_BF16_F32_X3
    """

    DEFAULT = enum.auto()
    # Two float8 types.
    ANY_F8_ANY_F8_F32 = enum.auto()
    ANY_F8_ANY_F8_F32_FAST_ACCUM = enum.auto()
    # Two float8 types, with sums in the type of the result.
    ANY_F8_ANY_F8_ANY = enum.auto()
    ANY_F8_ANY_F8_ANY_FAST_ACCUM = enum.auto()
    # Half precision.
    F16_F16_F16 = enum.auto()
    F16_F16_F32 = enum.auto()
    # One product of bfloat16.
    BF16_BF16_BF16 = enum.auto()
    BF16_BF16_F32 = enum.auto()
    # Several products of bfloat16, which recover the precision of float32.
    BF16_BF16_F32_X3 = enum.auto()
    BF16_BF16_F32_X6 = enum.auto()
    BF16_BF16_F32_X9 = enum.auto()
    # float32 with a mantissa of ten bits.
    TF32_TF32_F32 = enum.auto()
    TF32_TF32_F32_X3 = enum.auto()
    # Full precision.
    F32_F32_F32 = enum.auto()
    F64_F64_F64 = enum.auto()

    def __repr__(self) -> str:
        return f"DotAlgorithmPreset.{self.name}"

    def __str__(self) -> str:
        return self.name

    def on(self, lhs: DTypeLike, rhs: DTypeLike) -> DotAlgorithm | None:
        """Return the algorithm for operands of these dtypes; None for the platform's default."""
        if self is DotAlgorithmPreset.DEFAULT:
            return None
        words = self.name.removesuffix("_FAST_ACCUM").split("_")
        fast = self.name.endswith("_FAST_ACCUM")
        if words[0] == "ANY":
            return DotAlgorithm(lhs, rhs, dtypes.float32, allow_imprecise_accumulation=fast)
        products = int(words.pop()[1:]) if words[-1].startswith("X") else 1
        types = [_words[w] for w in words]
        return DotAlgorithm(types[0], types[1], types[2], num_primitive_operations=products)

    def _types(self) -> list[Any]:
        """Return the types of lhs, rhs and sums in the name; None for a type that the name leaves open."""
        words = self.name.removesuffix("_FAST_ACCUM").split("_")
        if words[0] == "ANY":
            return [None, None, dtypes.float32 if words[-1] == "F32" else None]
        types = [_words.get(w) for w in (*words, "", "")[:3]]
        return [dtypes.float32 if t == "tf32" else t for t in types]

    @property
    def accumulation_type(self) -> Any:
        """The type of the sums; None if the platform chooses it."""
        return _scalar_type(self._types()[2])

    @property
    def supported_lhs_types(self) -> tuple[Any, ...] | None:
        """The types that the algorithm accepts for the left operand; None for any."""
        own, products = self._types()[0], self.name.rpartition("_X")[1]
        if own is None:
            return None
        if own == dtypes.bfloat16:
            own, more = (dtypes.float32, []) if products else (own, [dtypes.float32])
            return tuple([_scalar_type(t) for t in (own, *more)])
        return (_scalar_type(own),)

    @property
    def supported_rhs_types(self) -> tuple[Any, ...] | None:
        """The types that the algorithm accepts for the right operand; None for any."""
        return self.supported_lhs_types

    def supported_output_types(self, lhs_dtype: DTypeLike, rhs_dtype: DTypeLike) -> tuple[Any, ...] | None:
        """Return the possible types of the result for operands of these dtypes; None for any."""
        own, _, total = self._types()
        if total is None:
            return None
        if own is None:
            names = "e4m3fn", "e5m2", "e5m2fnuz", "e4m3fnuz", "e4m3b11fnuz"
            small = [dtypes.float16, dtypes.bfloat16, *[np.dtype(f"float8_{name}") for name in names]]
            return tuple([_scalar_type(t) for t in (total, *small)])
        narrow = own != total and not self.name.rpartition("_X")[1] and own == lhs_dtype == rhs_dtype
        return tuple([_scalar_type(t) for t in ((total, own) if narrow else (total,))])


def _scalar_type(dtype: Any) -> Any:
    return None if dtype is None else np.dtype(dtype).type


_words: dict[str, Any] = {
    "F16": dtypes.float16, "BF16": dtypes.bfloat16, "TF32": "tf32", "F32": dtypes.float32, "F64": dtypes.float64,
}
_CPU_PRESETS = frozenset(
    ["DEFAULT", "F16_F16_F16", "BF16_BF16_F32", "BF16_BF16_F32_X3", "BF16_BF16_F32_X6", "F32_F32_F32", "F64_F64_F64"]
)


# A typing.Union, as inspect shows it in JAX.
PrecisionLike = Union[  # noqa: UP007
    str, Precision, tuple[str | Precision, str | Precision], DotAlgorithm, DotAlgorithmPreset, None
]


def canonical_precision(precision: object, *, function: str = "") -> Any:
    """Return None, a pair of Precision, a DotAlgorithm or a preset; ValueError lists the accepted values.

    `precision` may be one Precision or string for both operands. None means the setting default_matmul_precision.
    """
    if precision is None:
        precision = config.default_matmul_precision.value
        if precision is None:
            return None
    if isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return precision
    if isinstance(precision, str) and precision not in _precision_names and precision in DotAlgorithmPreset.__members__:
        return DotAlgorithmPreset[precision]
    pair = precision if isinstance(precision, (tuple, list)) and len(precision) == 2 else (precision, precision)
    precisions = tuple([_one_precision(p) for p in pair])
    if None in precisions:
        raise ValueError(
            f"{function or called_function()}: precision {abbreviate(precision)} is not one of None, "
            f"{', '.join(map(repr, _precision_names))}, a lax.Precision, a pair of these (one for each operand), a "
            "lax.DotAlgorithm, a lax.DotAlgorithmPreset or the name of one"
        )
    return precisions


def _one_precision(precision: object) -> Precision | None:
    if isinstance(precision, Precision):
        return precision
    return _precision_names.get(precision) if isinstance(precision, str) else None


class DotDimensionNumbers(tuple[Any, ...]):
    """The axes of a contraction: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``.

    Args:
        iterable: the two pairs of sequences.

    Example:
        >>> xtrace.make_jaxpr(jnp.dot)(jnp.ones(2), jnp.ones(2)).eqns[0].params["dimension_numbers"]
        (((0,), (0,)), ((), ()))
    """

    __slots__ = ()

    def __str__(self) -> str:
        pairs = [f"({list(lhs)}, {list(rhs)})" for lhs, rhs in self]
        return f"({pairs[0]}, {pairs[1]})"


AxisPairs = tuple[tuple[tuple[int, ...], tuple[int, ...]], tuple[tuple[int, ...], tuple[int, ...]]]


def canonical_axis_pairs(dimension_numbers: Any, *, function: str = "") -> AxisPairs:
    """Return dimension numbers of a contraction as nested tuples of ints; TypeError for another form."""
    try:
        (lhs, rhs), (lhs_batch, rhs_batch) = dimension_numbers
        groups = [(g,) if isinstance(g, int) else tuple([int(i) for i in g]) for g in (lhs, rhs, lhs_batch, rhs_batch)]
    except (TypeError, ValueError):
        raise TypeError(
            f"{function or called_function()}: dimension_numbers must be ((lhs_contracting, rhs_contracting), "
            f"(lhs_batch, rhs_batch)), each a sequence of axes; got {abbreviate(dimension_numbers)}"
        ) from None
    return (groups[0], groups[1]), (groups[2], groups[3])


def _canonical_dimension_numbers(dimension_numbers: Any) -> DotDimensionNumbers:
    return DotDimensionNumbers(canonical_axis_pairs(dimension_numbers, function="dot_general"))


def _check_dimension_numbers(lhs: ShapedArray, rhs: ShapedArray, dimension_numbers: DotDimensionNumbers) -> None:
    contracting, batch = dimension_numbers
    for side, aval, summed, batched in zip(("lhs", "rhs"), (lhs, rhs), contracting, batch, strict=True):
        axes = (*batched, *summed)
        if any(not 0 <= a < aval.ndim for a in axes):
            raise TypeError(
                f"dot_general: {side} dimension numbers must be axes of the {side}, counted from the front; got "
                f"{side}_batch {batched} and {side}_contracting {summed} for {side} of shape {aval.shape}"
            )
        if len(set(axes)) != len(axes):
            raise TypeError(
                f"dot_general: {side} dimension numbers must be distinct; got {side}_batch {batched} and "
                f"{side}_contracting {summed}"
            )
    for kind, (left, right) in (("batch", batch), ("contracting", contracting)):
        if len(left) != len(right):
            raise TypeError(
                f"dot_general: equal numbers of {kind} dimensions are required, got lhs_{kind} {left} and "
                f"rhs_{kind} {right}"
            )
        sizes = tuple([lhs.shape[i] for i in left]), tuple([rhs.shape[i] for i in right])
        if sizes[0] != sizes[1]:
            raise TypeError(
                f"dot_general requires {kind} dimensions to have the same shape, got {sizes[0]} and {sizes[1]}; "
                f"lhs has shape {lhs.shape}, rhs {rhs.shape}, dimension_numbers {dimension_numbers}"
            )


def _higher_precision(lhs: np.dtype[Any], rhs: np.dtype[Any]) -> np.dtype[Any]:
    """Return the dtype of higher precision, by XLA's order and not by NumPy's promotion."""
    return lhs if lhs == rhs else max(lhs, rhs, key=_precision_rank)


def _precision_rank(dtype: np.dtype[Any]) -> tuple[Any, ...]:
    """Return a sort key: complex over floating over integer, then more bits, then more exponent bits or a sign."""
    if dtypes.is_boolean(dtype):
        return (0,)
    inexact = dtypes.is_inexact(dtype)
    exponent = dtypes.finfo(dtypes.real_part_dtype(dtype)).nexp if inexact else 0
    kind = 3 if dtypes.is_complex(dtype) else 2 if inexact else 1
    return kind, dtypes.bit_width(dtype), exponent, dtypes.is_signed(dtype), dtype.name


def _dot_abstract(
    lhs: ShapedArray, rhs: ShapedArray, *, dimension_numbers: DotDimensionNumbers,
    preferred_element_type: np.dtype[Any] | None, **_: object
) -> ShapedArray:
    for side, aval in (("lhs", lhs), ("rhs", rhs)):
        if isinstance(aval.dtype, dtypes.ExtendedDType):
            raise TypeError(f"dot_general: {side} must have a numeric or boolean dtype, got {aval.dtype.name}")
    _check_dimension_numbers(lhs, rhs, dimension_numbers)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    shape = (
        *[lhs.shape[i] for i in lhs_batch],
        *[n for i, n in enumerate(lhs.shape) if i not in lhs_batch and i not in lhs_contracting],
        *[n for i, n in enumerate(rhs.shape) if i not in rhs_batch and i not in rhs_contracting],
    )
    own = _higher_precision(lhs.dtype, rhs.dtype)
    dtype = own if preferred_element_type is None else preferred_element_type
    if not dtypes.is_floating(own) and _width(dtype) < _width(own):
        raise TypeError(
            f"dot_general: preferred_element_type {dtype.name} must not be narrower than the operands' {own.name}; "
            "convert the result with astype"
        )
    return ShapedArray(shape, dtype, lhs.weak_type and rhs.weak_type)


def _width(dtype: np.dtype[Any]) -> int:
    """Return the number of bits of an element, of one part for complex numbers."""
    return 1 if dtypes.is_boolean(dtype) else dtypes.bit_width(dtypes.real_part_dtype(dtype))


def _dot_emit(
    builder: FunctionBuilder, lhs: Value, rhs: Value, *, dimension_numbers: DotDimensionNumbers,
    precision: object, preferred_element_type: np.dtype[Any] | None, out_sharding: object,
) -> Value:
    result = builder.results[0]
    algorithm = _algorithm(builder.platform, precision, lhs.aval.dtype, rhs.aval.dtype, result.dtype)
    if algorithm is not None:
        lhs, rhs = [builder.convert(x, algorithm.operand_dtype(i, x.aval.dtype)) for i, x in enumerate((lhs, rhs))]
    elif lhs.aval.dtype != rhs.aval.dtype and not _is_float8_pair(lhs.aval.dtype, rhs.aval.dtype):
        lhs, rhs = builder.convert(lhs, result.dtype), builder.convert(rhs, result.dtype)
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    texts = [f"stablehlo.dot_general {lhs.name}, {rhs.name}"]
    if lhs_batch:
        texts.append(f"batching_dims = {attributes.list_text(lhs_batch)} x {attributes.list_text(rhs_batch)}")
    texts.append(
        f"contracting_dims = {attributes.list_text(lhs_contracting)} x {attributes.list_text(rhs_contracting)}"
    )
    pair = precision if isinstance(precision, tuple) and algorithm is None else (Precision.DEFAULT,) * 2
    texts.append(f"precision = [{pair[0].name}, {pair[1].name}]")
    written = result
    if algorithm is not None:
        texts.append(f"algorithm = {algorithm.attribute()}")
        written = result.update(dtype=algorithm.result_dtype(lhs.aval.dtype, result.dtype))
    types = f"({lhs.aval.mlir_type}, {rhs.aval.mlir_type}) -> {written.mlir_type}"
    return builder.convert(builder.line(f"{', '.join(texts)} : {types}", written), result.dtype)


def _algorithm(
    platform: str, precision: object, lhs: np.dtype[Any], rhs: np.dtype[Any], result: np.dtype[Any]
) -> DotAlgorithm | None:
    """Return the algorithm of a precision for these dtypes; None for the default. ValueError if it is unsupported."""
    if precision is DotAlgorithmPreset.DEFAULT or not isinstance(precision, (DotAlgorithm, DotAlgorithmPreset)):
        return None
    if any(map(dtypes.is_complex, (lhs, rhs, result))):
        raise ValueError(f"dot_general: the algorithm {precision} is for real numbers; the operands are complex")
    algorithm = precision.on(lhs, rhs) if isinstance(precision, DotAlgorithmPreset) else precision
    on_cpu = [p.on(lhs, rhs) for p in DotAlgorithmPreset if p.name in _CPU_PRESETS]
    if platform == "cpu" and (algorithm not in on_cpu or "_F8_" in str(precision)):
        raise ValueError(f"dot_general: the precision {precision} is not supported on the platform cpu")
    if "_F8_" in str(precision) and not _is_float8_pair(lhs, rhs):
        raise ValueError(
            f"dot_general: the algorithm {precision} is for float8 operands, got {lhs.name} and {rhs.name}"
        )
    return algorithm


def _is_float8_pair(lhs: np.dtype[Any], rhs: np.dtype[Any]) -> bool:
    return all(dtypes.is_floating(d) and dtypes.bit_width(d) == 8 for d in (lhs, rhs))


def move_axes(x: Array, positions: Sequence[int]) -> Array:
    """Return `x` with axis i moved to ``positions[i]``."""
    return transpose(x, sorted(range(len(positions)), key=positions.__getitem__))


def _free(ndim: int, *taken: Sequence[int]) -> list[int]:
    return [i for i in range(ndim) if not any(i in axes for axes in taken)]


def _dot_transpose(
    cotangent: Array, lhs: Array | UndefinedPrimal, rhs: Array, *, dimension_numbers: DotDimensionNumbers,
    precision: object, preferred_element_type: np.dtype[Any] | None, out_sharding: object,
) -> list[Any]:
    (lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch) = dimension_numbers
    left = type(lhs) is UndefinedPrimal
    wanted, known = (lhs.aval, rhs) if left else (rhs.aval, lhs)
    own_batch, own_contracting = (lhs_batch, lhs_contracting) if left else (rhs_batch, rhs_contracting)
    other_batch, other_contracting = (rhs_batch, rhs_contracting) if left else (lhs_batch, lhs_contracting)
    batch_count, known_ndim = len(own_batch), aval_of(known).ndim
    own_free = _free(wanted.ndim, own_batch, own_contracting)
    other_free = _free(known_ndim, other_batch, other_contracting)
    # The axes of the cotangent are batch axes, free axes of lhs, free axes of rhs; the free axes of `known` are summed.
    start = batch_count + len(own_free) if left else batch_count
    summed = tuple(range(start, start + len(other_free)))
    numbers = DotDimensionNumbers(((summed, tuple(other_free)), (tuple(range(batch_count)), tuple(other_batch))))
    if isinstance(precision, tuple):
        precision = precision if left else precision[::-1]
    # The axes of the product: batch, free axes of the linear operand, contracted axes of `known` in ascending order.
    partner = dict(zip(other_contracting, own_contracting, strict=True))
    order = [*own_batch, *own_free, *[partner[i] for i in sorted(other_contracting)]]
    sharding = wanted.explicit_sharding
    if sharding is None:
        # The cotangent of an operand on no mesh is replicated.
        meshes = [s.mesh for s in (aval_of(x).explicit_sharding for x in (cotangent, known)) if s is not None]
        sharding = NamedSharding(meshes[0], PartitionSpec(*[None] * wanted.ndim)) if meshes else None
    else:
        entries = tuple([sharding.spec[i] for i in order])
        terms = sharding.spec.unreduced if _are_terms(cotangent, known, numbers, sharding.spec.unreduced) else ()
        sharding = sharding.update(spec=PartitionSpec(*entries, unreduced=frozenset(terms)))
    of_operand = dot_general.bind_positional((cotangent, known), (numbers, precision, preferred_element_type, sharding))
    of_operand = move_axes(cast_to_auto(of_operand) if wanted.explicit_sharding is None else of_operand, order)
    of_operand = convert_to(of_operand, wanted.dtype, aval_of(of_operand).weak_type)
    return [of_operand, None] if left else [None, of_operand]


def _are_terms(lhs: Any, rhs: Any, numbers: DotDimensionNumbers, axes: frozenset[Any]) -> bool:
    """Whether a product is unreduced over mesh axes: exactly these axes split the contracted axes of both operands."""
    split = []
    for x, contracted in zip((lhs, rhs), numbers[0], strict=True):
        own = aval_of(x).explicit_sharding
        split.append([own.spec[i] for i in contracted] if own is not None else [])
    return split[0] == split[1] and {axis for entry in split[0] for axis in get_entry_axes(entry)} == axes


def choose_product_sharding(out_sharding: object, *, function: str = "") -> NamedSharding | None:
    """Return the sharding that a user requests for a product, without reduced axes, which a product cannot have."""
    sharding = requested_out_sharding(out_sharding, function=function)
    return sharding.update(spec=sharding.spec.update(reduced=frozenset())) if sharding is not None else None


def multiply_shards(
    lhs: Any, rhs: Any, dimension_numbers: object, precision: object, preferred_element_type: object,
    unreduced: frozenset[Any],
) -> Array:
    """Return the product of arrays as an unreduced value: sums over the mesh axes `unreduced` are not formed."""
    numbers = _canonical_dimension_numbers(dimension_numbers)
    sharding = None
    if unreduced:
        batched: list[Any] = []
        free: list[Any] = []
        mesh = context_abstract_mesh()
        for x, contracted, batch in zip((lhs, rhs), *numbers, strict=True):
            own = aval_of(x).explicit_sharding
            mesh = own.mesh if own is not None else mesh
            split = own.spec.partitions if own is not None else (None,) * aval_of(x).ndim
            batched = [split[i] or p for i, p in zip(batch, batched or [None] * len(batch), strict=True)]
            free += [split[i] for i in _free(len(split), batch, contracted)]
        # An unreduced axis must not split a dimension of the result as well.
        kept = [tuple([axis for axis in get_entry_axes(p) if axis not in unreduced]) for p in (*batched, *free)]
        sharding = NamedSharding(mesh, PartitionSpec(*kept, unreduced=unreduced))
    return dot_general.bind_positional(
        (lhs, rhs), (numbers, canonical_precision(precision), preferred_element_type, sharding)
    )


def _dot_batch(
    mapped: MappedAxis, operands: Sequence[Any], axes: Sequence[int | None], *, dimension_numbers: DotDimensionNumbers,
    precision: object, preferred_element_type: np.dtype[Any] | None, out_sharding: NamedSharding | None,
) -> tuple[Any, int]:
    contracting, batch = dimension_numbers
    shifted = [
        (tuple(c), tuple(b)) if axis is None
        else (tuple([i + (i >= axis) for i in c]), tuple([i + (i >= axis) for i in b]))
        for axis, c, b in zip(axes, contracting, batch, strict=True)
    ]
    (lhs_contracting, lhs_batch), (rhs_contracting, rhs_batch) = shifted
    left, right = axes
    if left is not None and right is not None:
        lhs_batch, rhs_batch, place = (left, *lhs_batch), (right, *rhs_batch), 0
    elif left is not None:
        place = len(lhs_batch) + _free(aval_of(operands[0]).ndim, lhs_batch, lhs_contracting).index(left)
    else:
        assert right is not None
        lhs_free = _free(aval_of(operands[0]).ndim, lhs_batch, lhs_contracting)
        rhs_free = _free(aval_of(operands[1]).ndim, rhs_batch, rhs_contracting)
        place = len(lhs_batch) + len(lhs_free) + rhs_free.index(right)
    numbers = DotDimensionNumbers(((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch)))
    if out_sharding is not None:
        side = 0 if left is not None else 1
        axis, ndim = axes[side] or 0, len(out_sharding.spec)
        out_sharding = sharding_rules.batch(mapped, operands[side], axis, place, out_sharding, ndim)
    return dot_general.bind_positional(operands, (numbers, precision, preferred_element_type, out_sharding)), place


@primitive(
    ("dimension_numbers", "precision", "preferred_element_type", "out_sharding"), sharding=contract,
    sums=sum_rules.contract, sharding_parameter="out_sharding", abstract=_dot_abstract,
    emit=_dot_emit, jvp=BILINEAR, transpose=_dot_transpose, batch=_dot_batch, unprinted={"out_sharding": NEVER_PRINTED},
)
def dot_general(
    lhs: ArrayLike, rhs: ArrayLike, dimension_numbers: object, precision: object = None,
    preferred_element_type: object = None, *, out_sharding: object = None,
) -> Array:
    """Multiply two arrays and sum over pairs of axes, for each index of pairs of batch axes.

    Args:
        lhs, rhs: arrays.
        dimension_numbers: ``((lhs_contracting, rhs_contracting), (lhs_batch, rhs_batch))``, sequences of axes, counted
            from the front; the axes of a pair have one size.
        precision: a `Precision`, a name, a pair of these, a `DotAlgorithm` or None for the default.
        preferred_element_type: the dtype of the sums and the result; None for the more precise of the operands' dtypes.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array with the batch axes, then the remaining axes of `lhs`, then the remaining axes of `rhs`.

    Raises:
        TypeError: `dimension_numbers` has another form, axes or sizes do not agree, or a dtype is not accepted.
        ValueError: `precision` is unknown.

    Example:
        >>> lax.dot_general(jnp.array([[1, 2], [3, 4]]), jnp.array([1, 1]), (((1,), (0,)), ((), ())))
        Array([3, 7], dtype=int32)
    """
    if preferred_element_type is not None:
        preferred_element_type = requested_dtype(preferred_element_type)
    parameters = (
        _canonical_dimension_numbers(dimension_numbers), canonical_precision(precision), preferred_element_type, None
    )
    sharding = choose_product_sharding(out_sharding)
    if sharding is not None and sharding.spec.unreduced:
        product = multiply_shards(lhs, rhs, *parameters[:3], sharding.spec.unreduced)
        return reshard_result(product, sharding)
    if sharding is not None:
        lhs, rhs = cast_to_auto(lhs), cast_to_auto(rhs)
    return reshard_result(dot_general.bind_positional((lhs, rhs), parameters), sharding)


def dot(
    lhs: ArrayLike, rhs: ArrayLike, *, dimension_numbers: object = None, precision: object = None,
    preferred_element_type: object = None, out_sharding: object = None,
) -> Array:
    """Return the product of vectors or matrices, or the contraction of arrays that `dimension_numbers` describes.

    Args:
        lhs: an array.
        rhs: an array.
        dimension_numbers: the axes as in `dot_general`; None for vectors and matrices.
        precision: the precision of products, a `Precision`, its name, or a pair of these for both operands; None for
            the default.
        preferred_element_type: the dtype of the result; None for the operands' dtype.
        out_sharding: the sharding of the result over explicit mesh axes; None to infer it.

    Returns:
        An array.

    Raises:
        TypeError: an operand is no array.
        ValueError: without `dimension_numbers` an operand is neither a vector nor a matrix, or the sizes disagree.

    Example:
        >>> lax.dot(jnp.ones((2, 3)), jnp.ones(3))
        Array([3., 3.], dtype=float32)
    """
    if dimension_numbers is None:
        left, right = operand_aval(lhs, "lhs").shape, operand_aval(rhs, "rhs").shape
        if not (1 <= len(left) <= 2 and 1 <= len(right) <= 2 and left[-1] == right[0]):
            raise ValueError(
                f"dot: arrays of shapes {left} and {right} cannot be multiplied: both must be vectors or matrices, and "
                "the last size of lhs the first of rhs; give dimension_numbers for other products"
            )
        dimension_numbers = (((len(left) - 1,), (0,)), ((), ()))
    return dot_general(lhs, rhs, dimension_numbers, precision, preferred_element_type, out_sharding=out_sharding)


def batch_matmul(lhs: ArrayLike, rhs: ArrayLike, precision: object = None) -> Array:
    """Return the products of the matrices in the last two axes, for each index of the batch axes before them.

    Args:
        lhs: an array of at least two axes.
        rhs: an array of the same rank, with the same batch axes.
        precision: the precision of products, a `Precision`, its name, or a pair of these for both operands; None for
            the default.

    Returns:
        An array.

    Raises:
        TypeError: sizes or dtypes disagree.
        ValueError: the operands have fewer than two axes, or differ in their number.

    Example:
        >>> lax.batch_matmul(jnp.ones((4, 2, 3)), jnp.ones((4, 3, 5))).shape
        (4, 2, 5)
    """
    left, right = operand_aval(lhs, "lhs"), operand_aval(rhs, "rhs")
    if left.ndim < 2 or right.ndim < 2:
        raise ValueError(f"batch_matmul: lhs and rhs must have at least 2 axes, got {left.shape} and {right.shape}")
    if left.ndim != right.ndim:
        raise ValueError(f"batch_matmul: lhs and rhs must have the same rank, got {left.shape} and {right.shape}")
    batch = tuple(range(left.ndim - 2))
    return dot_general(lhs, rhs, (((left.ndim - 1,), (left.ndim - 2,)), (batch, batch)), precision)
