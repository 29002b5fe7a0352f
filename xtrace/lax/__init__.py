"""The strict layer: operations that neither promote nor default, as ``jax.lax`` has them."""
# ruff: noqa: I001

from xtrace._late_imports import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace.lax import linalg as linalg
    from xtrace._src.algebra.families import (
        AccuracyMode as AccuracyMode, Tolerance as Tolerance, mul as mul, mul as mul_p, neg as neg, neg as neg_p,
    )
    from xtrace._src.algebra.vector_space import (
        broadcast_in_dim as broadcast_in_dim, broadcast_in_dim as broadcast_in_dim_p,
        convert_element_type as convert_element_type, convert_element_type as convert_element_type_p,
        reduce_sum as reduce_sum, reduce_sum as reduce_sum_p, reshape as reshape, reshape as reshape_p,
        transpose as transpose, transpose as transpose_p,
    )
    from xtrace._src.ops.reductions.approx_top_k import (
        approx_max_k as approx_max_k, approx_min_k as approx_min_k, approx_top_k as approx_top_k_p,
    )
    from xtrace._src.ops.collectives.collectives import (
        axis_index as axis_index, axis_index_p as axis_index_p, axis_size as axis_size, pcast as pcast, pmax as pmax,
        pmax as pmax_p, pmean as pmean, pmin as pmin, pmin as pmin_p, psum as psum, psum as psum_p,
    )
    from xtrace._src.ops.collectives.exchanges import (
        all_gather as all_gather, all_gather_p as all_gather_p, all_to_all as all_to_all, all_to_all_p as all_to_all_p,
        pbroadcast as pbroadcast, ppermute as ppermute, ppermute_p as ppermute_p, pshuffle as pshuffle,
        psum_scatter as psum_scatter, pswapaxes as pswapaxes, reduce_scatter_p as reduce_scatter_p,
    )
    from xtrace._src.ops.collectives.ragged_exchanges import (
        precv as precv, psend as psend, ragged_all_to_all as ragged_all_to_all,
        ragged_all_to_all_p as ragged_all_to_all_p,
    )
    from xtrace._src.ops.calls.composites import composite as composite, dce_sink as dce_sink, dce_sink_p as dce_sink_p
    from xtrace._src.ops.contractions.contraction import (
        DotAlgorithm as DotAlgorithm, DotAlgorithmPreset as DotAlgorithmPreset,
        DotDimensionNumbers as DotDimensionNumbers, Precision as Precision, PrecisionLike as PrecisionLike,
        batch_matmul as batch_matmul, dot as dot, dot_general as dot_general, dot_general as dot_general_p,
    )
    from xtrace._src.ops.control_flow.cond import (
        cond as cond, cond_p as cond_p, platform_dependent as platform_dependent, platform_index_p as platform_index_p,
        switch as switch,
    )
    from xtrace._src.ops.control_flow.mapping import (  # every name
        associative_scan as associative_scan, map as map,
    )
    from xtrace._src.ops.control_flow.scan import scan as scan, scan_p as scan_p
    from xtrace._src.ops.control_flow.while_loop import (
        fori_loop as fori_loop, while_loop as while_loop, while_p as while_p,
    )
    from xtrace._src.ops.contractions.convolution import (  # every name
        conv as conv, conv_general_dilated as conv_general_dilated,
        conv_general_dilated_local as conv_general_dilated_local, conv_general_dilated as conv_general_dilated_p,
        conv_general_dilated_patches as conv_general_dilated_patches, conv_transpose as conv_transpose,
        conv_with_general_padding as conv_with_general_padding,
    )
    from xtrace._src.ops.contractions.convolution_shapes import (
        ConvDimensionNumbers as ConvDimensionNumbers,
        ConvGeneralDilatedDimensionNumbers as ConvGeneralDilatedDimensionNumbers,
        conv_dimension_numbers as conv_dimension_numbers, conv_general_permutations as conv_general_permutations,
        conv_general_shape_tuple as conv_general_shape_tuple, conv_shape_tuple as conv_shape_tuple,
        conv_transpose_shape_tuple as conv_transpose_shape_tuple, padtype_to_pads as padtype_to_pads,
    )
    from xtrace._src.ops.elementwise.elementwise import (  # every name
        RoundingMethod as RoundingMethod, abs as abs, abs as abs_p, add as add, add as add_p, cbrt as cbrt,
        cbrt as cbrt_p, ceil as ceil, ceil as ceil_p, div as div, div as div_p, exp as exp, exp2 as exp2,
        exp2 as exp2_p, exp as exp_p, expm1 as expm1, expm1 as expm1_p, floor as floor, floor as floor_p,
        integer_pow as integer_pow, integer_pow as integer_pow_p, is_finite as is_finite, is_finite as is_finite_p,
        log as log, log1p as log1p, log1p as log1p_p, log2 as log2, log2 as log2_p, log as log_p, logistic as logistic,
        logistic as logistic_p, max as max, max as max_p, min as min, min as min_p, mulhi as mulhi, mulhi as mulhi_p,
        nextafter as nextafter, nextafter as nextafter_p, pow as pow, pow as pow_p, reciprocal as reciprocal,
        rem as rem, rem as rem_p, round as round, round as round_p, rsqrt as rsqrt, rsqrt as rsqrt_p, sign as sign,
        sign as sign_p, sqrt as sqrt, sqrt as sqrt_p, square as square, square as square_p, sub as sub, sub as sub_p,
    )
    from xtrace._src.ops.elementwise.trigonometry import (  # every name
        acos as acos, acos as acos_p, acosh as acosh, acosh as acosh_p, asin as asin, asin as asin_p, asinh as asinh,
        asinh as asinh_p, atan as atan, atan2 as atan2, atan2 as atan2_p, atan as atan_p, atanh as atanh,
        atanh as atanh_p, cos as cos, cos as cos_p, cosh as cosh, cosh as cosh_p, sin as sin, sin as sin_p,
        sinh as sinh, sinh as sinh_p, tan as tan, tan as tan_p, tanh as tanh, tanh as tanh_p,
    )
    from xtrace._src.ops.elementwise.comparisons import (
        bitwise_and as and_p, bitwise_and as bitwise_and, bitwise_not as bitwise_not, bitwise_or as bitwise_or,
        bitwise_xor as bitwise_xor, clz as clz, clz as clz_p, eq as eq, eq as eq_p, eq_to as eq_to_p, ge as ge,
        ge as ge_p, gt as gt, gt as gt_p, le as le, le as le_p, le_to as le_to_p, lt as lt, lt as lt_p,
        lt_to as lt_to_p, ne as ne, ne as ne_p, bitwise_not as not_p, bitwise_or as or_p,
        population_count as population_count, population_count as population_count_p, shift_left as shift_left,
        shift_left as shift_left_p, shift_right_arithmetic as shift_right_arithmetic,
        shift_right_arithmetic as shift_right_arithmetic_p, shift_right_logical as shift_right_logical,
        shift_right_logical as shift_right_logical_p, bitwise_xor as xor_p,
    )
    from xtrace._src.ops.elementwise.complex_numbers import (  # every name
        complex as complex, complex as complex_p, conj as conj, conj as conj_p, imag as imag, imag as imag_p,
        real as real, real as real_p,
    )
    from xtrace._src.ops.elementwise.selection import (  # every name
        clamp as clamp, clamp as clamp_p, select as select, select_n as select_n, select_n as select_n_p,
    )
    from xtrace._src.ops.elementwise.reinterpretation import (  # every name
        bitcast_convert_type as bitcast_convert_type, bitcast_convert_type as bitcast_convert_type_p,
        optimization_barrier as optimization_barrier, optimization_barrier as optimization_barrier_p,
        reduce_precision as reduce_precision, reduce_precision as reduce_precision_p,
    )
    from xtrace._src.ops.fft import (  # every name
        FftType as FftType, fft as fft, fft as fft_p,
    )
    from xtrace._src.ops.arrays.gather_scatter import (
        gather as gather, gather as gather_p, scatter as scatter, scatter_add as scatter_add,
        scatter_add as scatter_add_p, scatter_max as scatter_max, scatter_max as scatter_max_p,
        scatter_min as scatter_min, scatter_min as scatter_min_p, scatter_mul as scatter_mul,
        scatter_mul as scatter_mul_p, scatter as scatter_p, scatter_sub as scatter_sub, scatter_sub as scatter_sub_p,
    )
    from xtrace._src.ops.arrays.gather_scatter_variants import (
        index_take as index_take, scatter_apply as scatter_apply,
    )
    from xtrace._src.ops.arrays.index_vectors import (
        GatherDimensionNumbers as GatherDimensionNumbers, GatherScatterMode as GatherScatterMode,
        ScatterDimensionNumbers as ScatterDimensionNumbers,
    )
    from xtrace._src.ops.shardings.device_put import device_put_p as device_put_p
    from xtrace._src.ops.contractions.ragged import (
        RaggedDotDimensionNumbers as RaggedDotDimensionNumbers, ragged_dot as ragged_dot,
        ragged_dot_general as ragged_dot_general, scaled_dot as scaled_dot,
    )
    from xtrace._src.ops.random.xla_generators import (  # every name
        RandomAlgorithm as RandomAlgorithm, rng_bit_generator as rng_bit_generator,
        rng_bit_generator as rng_bit_generator_p, rng_uniform as rng_uniform, rng_uniform as rng_uniform_p,
    )
    from xtrace._src.ops.reductions.reductions import (
        argmax as argmax, argmax as argmax_p, argmin as argmin, argmin as argmin_p, reduce as reduce,
        reduce_and as reduce_and, reduce_and as reduce_and_p, reduce_max as reduce_max, reduce_max as reduce_max_p,
        reduce_min as reduce_min, reduce_min as reduce_min_p, reduce_or as reduce_or, reduce_or as reduce_or_p,
        reduce as reduce_p, reduce_prod as reduce_prod, reduce_prod as reduce_prod_p, reduce_xor as reduce_xor,
        reduce_xor as reduce_xor_p,
    )
    from xtrace._src.ops.reductions.cumulative import (
        cumlogsumexp as cumlogsumexp, cumlogsumexp as cumlogsumexp_p, cummax as cummax, cummax as cummax_p,
        cummin as cummin, cummin as cummin_p, cumprod as cumprod, cumprod as cumprod_p, cumsum as cumsum,
        cumsum as cumsum_p,
    )
    from xtrace._src.ops.shardings.sharding_constraints import (
        sharding_constraint_p as sharding_constraint_p, with_sharding_constraint as with_sharding_constraint,
    )
    from xtrace._src.ops.arrays.shape import (
        broadcast as broadcast, broadcast_like as broadcast_like, broadcast_shapes as broadcast_shapes,
        broadcast_to_rank as broadcast_to_rank, collapse as collapse, copy as copy_p, expand_dims as expand_dims,
        rev as rev, rev as rev_p, squeeze as squeeze, squeeze as squeeze_p,
    )
    from xtrace._src.ops.arrays.creation import (
        broadcasted_iota as broadcasted_iota, empty as empty, full as full, full_like as full_like, iota as iota,
        broadcasted_iota as iota_p, shape_as_value as shape_as_value,
    )
    from xtrace._src.ops.arrays.concatenation import (
        concatenate as concatenate, concatenate as concatenate_p, split as split, split as split_p, stack as stack,
        stack as stack_p, tile as tile, tile as tile_p, unstack as unstack, unstack as unstack_p,
    )
    from xtrace._src.ops.arrays.slicing import (
        index_in_dim as index_in_dim, pad as pad, pad as pad_p, slice as slice, slice_in_dim as slice_in_dim,
        slice as slice_p,
    )
    from xtrace._src.ops.arrays.dynamic_slicing import (  # every name
        dynamic_index_in_dim as dynamic_index_in_dim, dynamic_slice as dynamic_slice,
        dynamic_slice_in_dim as dynamic_slice_in_dim, dynamic_slice as dynamic_slice_p,
        dynamic_update_index_in_dim as dynamic_update_index_in_dim, dynamic_update_slice as dynamic_update_slice,
        dynamic_update_slice_in_dim as dynamic_update_slice_in_dim, dynamic_update_slice as dynamic_update_slice_p,
    )
    from xtrace._src.ops.solvers import (
        custom_linear_solve as custom_linear_solve, custom_root as custom_root, linear_solve as linear_solve_p,
    )
    from xtrace._src.ops.arrays.sorting import (
        sort as sort, sort_key_val as sort_key_val, sort as sort_p, top_k as top_k, top_k as top_k_p,
    )
    from xtrace._src.ops.elementwise.stop_gradient import (
        stop_gradient as stop_gradient, stop_gradient_of_one as stop_gradient_p,
    )
    from xtrace._src.ops.host.tokens import (  # every name
        after_all as after_all, after_all as after_all_p, create_token as create_token,
        create_token_p as create_token_p,
    )
    from xtrace._src.ops.elementwise.polynomials import (  # every name
        one_minus_square as one_minus_square, one_minus_square as one_minus_square_p, polynomial as polynomial,
        polynomial as polynomial_p,
    )
    from xtrace._src.ops.values import (  # every name
        dtype as dtype, stage as stage, stage as stage_p,
    )
    from xtrace._src.ops.reductions.windows import (
        reduce_window as reduce_window, reduce_window_max as reduce_window_max_p,
        reduce_window_min as reduce_window_min_p, reduce_window as reduce_window_p,
        reduce_window_shape_tuple as reduce_window_shape_tuple, reduce_window_sum as reduce_window_sum_p,
        select_and_gather_add as select_and_gather_add_p, select_and_scatter_add as select_and_scatter_add_p,
        select_and_scatter as select_and_scatter_p,
    )
    from xtrace._src.ops.elementwise.special import (
        bessel_i0e as bessel_i0e, bessel_i0e as bessel_i0e_p, bessel_i1e as bessel_i1e, bessel_i1e as bessel_i1e_p,
        digamma as digamma, digamma as digamma_p, erf as erf, erf_inv as erf_inv, erf_inv as erf_inv_p, erf as erf_p,
        erfc as erfc, erfc as erfc_p, lgamma as lgamma, lgamma as lgamma_p, polygamma as polygamma,
        polygamma as polygamma_p, zeta as zeta, zeta as zeta_p,
    )
    from xtrace._src.ops.elementwise.incomplete_functions import (
        betainc as betainc, igamma as igamma, igamma_grad_a as igamma_grad_a, igamma_grad_a as igamma_grad_a_p,
        igamma as igamma_p, igammac as igammac, igammac as igammac_p, random_gamma_grad as random_gamma_grad,
        betainc as regularized_incomplete_beta_p,
    )
