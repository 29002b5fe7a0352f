"""The strict layer: operations that neither promote nor default, as ``jax.lax`` has them."""
# ruff: noqa: I001

from xtrace._src.core.late import make_public as _make_public
from xtrace._src.algebra.families import AccuracyMode, Tolerance
from xtrace._src.algebra.vector_space import broadcast_in_dim, convert_element_type, reduce_sum, reshape, transpose
from xtrace._src.ops.approximate import approx_max_k, approx_min_k
from xtrace._src.ops.approximate import approx_top_k as approx_top_k_p
from xtrace._src.ops.collectives import (
    all_gather, all_gather_p, all_to_all, all_to_all_p, axis_index, axis_index_p, axis_size, pbroadcast, pmax, pmean,
    pmin, ppermute, ppermute_p, pshuffle, psum, psum_scatter, pswapaxes, reduce_scatter_p,
)
from xtrace.lax import linalg as linalg
from xtrace._src.ops.composites import composite, dce_sink, dce_sink_p
from xtrace._src.ops.contractions.contraction import (
    DotAlgorithm, DotAlgorithmPreset, DotDimensionNumbers, Precision, PrecisionLike, batch_matmul, dot, dot_general,
)
from xtrace._src.ops.control_flow.cond import cond, cond_p, platform_dependent, platform_index_p, switch
from xtrace._src.ops.control_flow.mapping import associative_scan, map
from xtrace._src.ops.control_flow.scan import scan, scan_p
from xtrace._src.ops.control_flow.while_loop import fori_loop, while_loop, while_p
from xtrace._src.ops.contractions.convolution import (
    ConvDimensionNumbers, ConvGeneralDilatedDimensionNumbers, conv, conv_dimension_numbers, conv_general_dilated,
    conv_general_dilated_local, conv_general_dilated_patches, conv_general_permutations, conv_general_shape_tuple,
    conv_shape_tuple, conv_transpose, conv_transpose_shape_tuple, conv_with_general_padding, padtype_to_pads,
)
from xtrace._src.ops.elementwise import (
    RoundingMethod, abs, acos, acosh, add, asin, asinh, atan, atan2, atanh, bitcast_convert_type, bitwise_and,
    bitwise_not, bitwise_or, bitwise_xor, cbrt, ceil, clamp, clz, complex, conj, cos, cosh, div, eq, exp, exp2, expm1,
    floor, ge, gt, imag, integer_pow, is_finite, le, log, log1p, logistic, lt, max, min, mul, mulhi, ne, neg,
    nextafter, optimization_barrier, population_count, pow, real, reciprocal, reduce_precision, rem, round, rsqrt,
    select, select_n, shift_left, shift_right_arithmetic, shift_right_logical, sign, sin, sinh, sqrt, square, sub,
    tan, tanh,
)
from xtrace._src.ops.elementwise import eq_to as eq_to_p
from xtrace._src.ops.elementwise import le_to as le_to_p
from xtrace._src.ops.elementwise import lt_to as lt_to_p
from xtrace._src.ops.fft import FftType, fft
from xtrace._src.ops.arrays.gathering import (
    GatherDimensionNumbers, GatherScatterMode, ScatterDimensionNumbers, gather, index_take, scatter, scatter_add,
    scatter_apply, scatter_max, scatter_min, scatter_mul, scatter_sub,
)
from xtrace._src.ops.placement import device_put_p
from xtrace._src.ops.contractions.ragged import RaggedDotDimensionNumbers, ragged_dot, ragged_dot_general, scaled_dot
from xtrace._src.ops.random.random_bits import RandomAlgorithm, rng_bit_generator, rng_uniform
from xtrace._src.ops.reductions import (
    argmax, argmin, cumlogsumexp, cummax, cummin, cumprod, cumsum, reduce, reduce_and, reduce_max, reduce_min,
    reduce_or, reduce_prod, reduce_xor,
)
from xtrace._src.ops.arrays.shape import (
    broadcast, broadcast_like, broadcast_shapes, broadcast_to_rank, broadcasted_iota, collapse, concatenate, empty,
    expand_dims, full, full_like, iota, rev, shape_as_value, split, squeeze, stack, tile, unstack,
)
from xtrace._src.ops.arrays.shape import copy as copy_p
from xtrace._src.ops.arrays.slicing import (
    dynamic_index_in_dim, dynamic_slice, dynamic_slice_in_dim, dynamic_update_index_in_dim, dynamic_update_slice,
    dynamic_update_slice_in_dim, index_in_dim, pad, slice, slice_in_dim,
)
from xtrace._src.ops.solvers import custom_linear_solve, custom_root
from xtrace._src.ops.solvers import linear_solve as linear_solve_p
from xtrace._src.ops.arrays.sorting import sort, sort_key_val, top_k
from xtrace._src.ops.stop_gradient import stop_gradient
from xtrace._src.ops.stop_gradient import stop_gradient_of_one as stop_gradient_p
from xtrace._src.ops.host.tokens import after_all, create_token, create_token_p
from xtrace._src.ops.values import dtype, stage
from xtrace._src.ops.windows import reduce_window, reduce_window_shape_tuple
from xtrace._src.ops.windows import reduce_window as reduce_window_p
from xtrace._src.ops.windows import reduce_window_max as reduce_window_max_p
from xtrace._src.ops.windows import reduce_window_min as reduce_window_min_p
from xtrace._src.ops.windows import reduce_window_sum as reduce_window_sum_p
from xtrace._src.ops.windows import select_and_gather_add as select_and_gather_add_p
from xtrace._src.ops.windows import select_and_scatter as select_and_scatter_p
from xtrace._src.ops.windows import select_and_scatter_add as select_and_scatter_add_p
from xtrace._src.ops.special import (
    bessel_i0e, bessel_i1e, betainc, digamma, erf, erf_inv, erfc, igamma, igamma_grad_a, igammac, lgamma, polygamma,
    random_gamma_grad, zeta,
)

# The primitives under the names that programs which walk jaxprs use.
abs_p = abs
pmax_p = pmax
pmin_p = pmin
psum_p = psum
acos_p = acos
acosh_p = acosh
add_p = add
asin_p = asin
asinh_p = asinh
atan_p = atan
atan2_p = atan2
atanh_p = atanh
bessel_i0e_p = bessel_i0e
bessel_i1e_p = bessel_i1e
bitcast_convert_type_p = bitcast_convert_type
and_p = bitwise_and
not_p = bitwise_not
or_p = bitwise_or
xor_p = bitwise_xor
cbrt_p = cbrt
ceil_p = ceil
clamp_p = clamp
clz_p = clz
complex_p = complex
conj_p = conj
convert_element_type_p = convert_element_type
cos_p = cos
cosh_p = cosh
digamma_p = digamma
div_p = div
eq_p = eq
erf_p = erf
erf_inv_p = erf_inv
erfc_p = erfc
exp_p = exp
exp2_p = exp2
expm1_p = expm1
floor_p = floor
ge_p = ge
gt_p = gt
igamma_p = igamma
igamma_grad_a_p = igamma_grad_a
igammac_p = igammac
imag_p = imag
integer_pow_p = integer_pow
is_finite_p = is_finite
le_p = le
lgamma_p = lgamma
log_p = log
log1p_p = log1p
logistic_p = logistic
lt_p = lt
max_p = max
min_p = min
mul_p = mul
mulhi_p = mulhi
ne_p = ne
neg_p = neg
nextafter_p = nextafter
optimization_barrier_p = optimization_barrier
polygamma_p = polygamma
population_count_p = population_count
pow_p = pow
real_p = real
reduce_precision_p = reduce_precision
regularized_incomplete_beta_p = betainc
rem_p = rem
round_p = round
rsqrt_p = rsqrt
select_n_p = select_n
shift_left_p = shift_left
shift_right_arithmetic_p = shift_right_arithmetic
shift_right_logical_p = shift_right_logical
sign_p = sign
sin_p = sin
sinh_p = sinh
sqrt_p = sqrt
square_p = square
sub_p = sub
tan_p = tan
tanh_p = tanh
zeta_p = zeta
after_all_p = after_all
argmax_p = argmax
argmin_p = argmin
broadcast_in_dim_p = broadcast_in_dim
concatenate_p = concatenate
cumlogsumexp_p = cumlogsumexp
cummax_p = cummax
cummin_p = cummin
cumprod_p = cumprod
cumsum_p = cumsum
dot_general_p = dot_general
conv_general_dilated_p = conv_general_dilated
dynamic_slice_p = dynamic_slice
dynamic_update_slice_p = dynamic_update_slice
fft_p = fft
gather_p = gather
pad_p = pad
reduce_p = reduce
reduce_and_p = reduce_and
reduce_max_p = reduce_max
reduce_min_p = reduce_min
reduce_or_p = reduce_or
reduce_prod_p = reduce_prod
reduce_sum_p = reduce_sum
reduce_xor_p = reduce_xor
reshape_p = reshape
rev_p = rev
rng_bit_generator_p = rng_bit_generator
rng_uniform_p = rng_uniform
scatter_p = scatter
scatter_add_p = scatter_add
scatter_max_p = scatter_max
scatter_min_p = scatter_min
scatter_mul_p = scatter_mul
scatter_sub_p = scatter_sub
slice_p = slice
sort_p = sort
split_p = split
squeeze_p = squeeze
stack_p = stack
stage_p = stage
tile_p = tile
top_k_p = top_k
transpose_p = transpose
unstack_p = unstack
iota_p = broadcasted_iota

__all__ = [
    "custom_linear_solve", "custom_root", "linalg", "linear_solve_p",
    "all_gather_p", "all_to_all_p", "axis_index_p", "composite", "dce_sink", "dce_sink_p", "pbroadcast", "ppermute_p",
    "reduce_scatter_p",
    "all_gather", "all_to_all", "axis_index", "axis_size", "pmax", "pmax_p", "pmean", "pmin", "pmin_p", "ppermute",
    "pshuffle", "psum", "psum_p", "psum_scatter", "pswapaxes",
    "AccuracyMode", "RoundingMethod", "Tolerance", "abs", "acos", "acosh", "add", "asin", "asinh", "atan", "atan2",
    "atanh", "bessel_i0e", "bessel_i1e", "bitcast_convert_type", "bitwise_and", "bitwise_not", "bitwise_or",
    "bitwise_xor", "cbrt", "ceil", "clamp", "clz", "complex", "conj", "convert_element_type", "cos", "cosh",
    "digamma", "div", "eq", "erf", "erf_inv", "erfc", "exp", "exp2", "expm1", "floor", "ge", "gt", "imag",
    "integer_pow", "is_finite", "le", "lgamma", "log", "log1p", "logistic", "lt", "max", "min", "mul", "mulhi",
    "ne", "neg", "nextafter", "optimization_barrier", "polygamma", "population_count", "pow", "real", "reciprocal",
    "reduce_precision", "rem", "round", "rsqrt", "select", "select_n", "shift_left", "shift_right_arithmetic",
    "shift_right_logical", "sign", "sin", "sinh", "sqrt", "square", "sub", "tan", "tanh", "zeta",
    "abs_p", "acos_p", "acosh_p", "add_p", "and_p", "asin_p", "asinh_p", "atan2_p", "atan_p", "atanh_p",
    "betainc", "igamma", "igamma_grad_a", "igammac", "random_gamma_grad", "igamma_p", "igamma_grad_a_p", "igammac_p",
    "regularized_incomplete_beta_p",
    "bessel_i0e_p", "bessel_i1e_p", "bitcast_convert_type_p", "cbrt_p", "ceil_p", "clamp_p", "clz_p", "complex_p",
    "conj_p", "convert_element_type_p", "cos_p", "cosh_p", "digamma_p", "div_p", "eq_p", "eq_to_p", "erf_inv_p",
    "erf_p", "erfc_p", "exp2_p", "exp_p", "expm1_p", "floor_p", "ge_p", "gt_p", "imag_p", "integer_pow_p",
    "is_finite_p", "le_p", "le_to_p", "lgamma_p", "log1p_p", "log_p", "logistic_p", "lt_p", "lt_to_p", "max_p",
    "min_p", "mul_p", "mulhi_p", "ne_p", "neg_p", "nextafter_p", "not_p", "optimization_barrier_p", "or_p",
    "polygamma_p", "population_count_p", "pow_p", "real_p", "reduce_precision_p", "rem_p", "round_p", "rsqrt_p",
    "select_n_p", "shift_left_p", "shift_right_arithmetic_p", "shift_right_logical_p", "sign_p", "sin_p", "sinh_p",
    "sqrt_p", "square_p", "sub_p", "tan_p", "tanh_p", "xor_p", "zeta_p",
    "DotAlgorithm", "DotAlgorithmPreset", "DotDimensionNumbers", "GatherDimensionNumbers", "GatherScatterMode",
    "Precision", "PrecisionLike",
    "ScatterDimensionNumbers", "argmax", "argmin", "batch_matmul", "broadcast", "broadcast_in_dim",
    "broadcast_like", "broadcast_shapes", "broadcast_to_rank", "broadcasted_iota", "collapse", "concatenate",
    "cumlogsumexp", "cummax", "cummin", "cumprod", "cumsum", "dot", "dot_general", "dynamic_index_in_dim",
    "dynamic_slice", "dynamic_slice_in_dim", "dynamic_update_index_in_dim", "dynamic_update_slice",
    "dynamic_update_slice_in_dim", "empty", "expand_dims", "full", "full_like", "gather", "index_in_dim",
    "index_take", "iota", "pad", "reduce", "reduce_and", "reduce_max", "reduce_min", "reduce_or", "reduce_prod",
    "reduce_sum", "reduce_xor", "reshape", "rev", "scatter", "scatter_add", "scatter_apply", "scatter_max",
    "scatter_min", "scatter_mul", "scatter_sub", "shape_as_value", "slice", "slice_in_dim", "sort", "sort_key_val",
    "split", "squeeze", "stack", "stop_gradient", "stop_gradient_p", "tile", "top_k", "transpose", "unstack",
    "argmax_p", "argmin_p", "broadcast_in_dim_p", "concatenate_p", "copy_p", "cumlogsumexp_p", "cummax_p", "cummin_p",
    "cumprod_p", "cumsum_p", "dot_general_p", "dynamic_slice_p", "dynamic_update_slice_p", "gather_p", "iota_p",
    "pad_p", "reduce_and_p", "reduce_max_p", "reduce_min_p", "reduce_or_p", "reduce_p", "reduce_prod_p",
    "reduce_sum_p", "reduce_xor_p", "reshape_p", "rev_p", "scatter_add_p", "scatter_max_p", "scatter_min_p",
    "scatter_mul_p", "scatter_p", "scatter_sub_p", "slice_p", "sort_p", "split_p", "squeeze_p", "stack_p", "tile_p",
    "top_k_p", "transpose_p", "unstack_p",
    "associative_scan", "fori_loop", "map", "scan", "scan_p", "while_loop", "while_p",
    "cond", "cond_p", "platform_dependent", "platform_index_p", "switch",
    "ConvDimensionNumbers", "ConvGeneralDilatedDimensionNumbers", "conv", "conv_dimension_numbers",
    "conv_general_dilated", "conv_general_dilated_local", "conv_general_dilated_p", "conv_general_dilated_patches",
    "conv_general_permutations", "conv_general_shape_tuple", "conv_shape_tuple", "conv_transpose",
    "conv_transpose_shape_tuple", "conv_with_general_padding", "padtype_to_pads",
    "reduce_window", "reduce_window_max_p", "reduce_window_min_p", "reduce_window_p",
    "reduce_window_shape_tuple", "reduce_window_sum_p", "select_and_gather_add_p", "select_and_scatter_add_p",
    "select_and_scatter_p",
    "FftType", "fft", "fft_p",
    "RandomAlgorithm", "rng_bit_generator", "rng_bit_generator_p", "rng_uniform", "rng_uniform_p",
    "approx_max_k", "approx_min_k", "approx_top_k_p",
    "RaggedDotDimensionNumbers", "ragged_dot", "ragged_dot_general", "scaled_dot",
    "after_all", "after_all_p", "create_token", "create_token_p", "device_put_p", "dtype", "stage", "stage_p",
]

_make_public(globals(), __all__)
