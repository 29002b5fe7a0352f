"""Weakly typed operands: which results of `lax` are weakly typed is as in jax, for every combination of operands."""

import itertools
import re

import jax
import jax.lax.linalg
import numpy as np
import pytest

import xtrace
import xtrace.lax.linalg

# How a case names its operands: the shape and dtype of each.
OPERANDS = {
    "F": ((2, 2), "float32"), "S": ((), "float32"), "V": ((2,), "float32"), "E": ((1, 2), "float32"),
    "B": ((2, 2, 2), "float32"), "R": ((1, 2, 2), "float32"), "N": ((1, 1, 2), "float32"), "C": ((2, 2), "complex64"),
    "I": ((2, 2), "int32"), "J": ((), "int32"), "W": ((2,), "int32"), "G": ((1,), "int32"), "P": ((2, 2), "bool"),
}

CASES = """
abs F; neg F; sin F; exp F; sqrt F; log F; tanh F; sign F; floor F; erf F; lgamma F; digamma F; bessel_i0e F; cbrt F
logistic F; is_finite F; integer_pow F 2; square F; rsqrt F; expm1 F; erf_inv F; real C; imag C; conj C; neg I
bitwise_not I; population_count I; clz I; round F; reduce_precision F 5 5; stop_gradient F; abs C
add F F; sub F F; mul F F; div F F; rem F F; max F F; min F F; pow F F; pow F I; atan2 F F; nextafter F F; complex F F
igamma F F; igammac F F; polygamma F F; zeta F F; betainc F F F; clamp F F F; eq F F; lt F F; bitwise_and I I
shift_left I I; shift_right_logical I I; select P F F; select_n P F F; convert_element_type F np.float32
convert_element_type F np.int32; convert_element_type F float; convert_element_type F int
bitcast_convert_type F np.int32; broadcast F (2,); broadcast_in_dim F (2,2,2) (1,2); reshape F (4,); transpose F (1,0)
squeeze E (0,); expand_dims F (0,); rev F (0,); concatenate [F,F] 0; pad F S ((0,0,0),(1,1,0)); slice F (0,0) (1,2)
slice_in_dim F 0 1; index_in_dim F 0; dynamic_slice F (J,J) (1,1); dynamic_slice_in_dim F J 1; tile F (1,2)
dynamic_index_in_dim F J; dynamic_update_slice F F (J,J); dynamic_update_slice_in_dim F F J 0; collapse F 0 2
full_like F 1.; full_like F 1; full_like F S; split F (1,1); reduce_sum F (0,); reduce_max F (0,); reduce_prod F (0,)
reduce_and P (0,); reduce_xor I (0,); argmax F 0 np.int32; cumsum F; cumprod F; cummax F; cumlogsumexp F; sort F
sort_key_val F F; top_k F 1; approx_max_k F 1; dot F F; dot_general F F (((1,),(0,)),((),())); batch_matmul B B
conv N N (1,) 'SAME'; conv_general_dilated N N (1,) 'SAME'; ragged_dot F R G
conv_general_dilated_patches N (1,) (1,) 'SAME'; fft C 'FFT' (2,); fft F 'RFFT' (2,); rng_uniform S S (2,)
optimization_barrier F; reduce_window F S lax.add (1,1) (1,1) 'VALID'
linalg.cholesky F; linalg.cholesky C; linalg.qr F; linalg.lu F; linalg.lu C; linalg.eigh F; linalg.eigh C; linalg.eig F
linalg.svd F; linalg.svd C; linalg.schur F; linalg.hessenberg F; linalg.tridiagonal F; linalg.householder_product F V
linalg.triangular_solve F F; linalg.tridiagonal_solve V V V F; linalg.qdwh F; linalg.cholesky_update F V
linalg.symmetric_product F F; linalg.lu_pivots_to_permutation W 2; linalg.ormqr F V F
"""
NAMES = [case.strip() for case in re.split("[;\n]", CASES) if case.strip()]


def results(api, case, weak):
    """The shape, dtype and weak type of each result; `weak` says it of each operand."""
    name, *tokens = case.split(" ")
    flags, structs = iter(weak), []

    def source(token):
        if token in OPERANDS:
            shape, dtype = OPERANDS[token]
            i = len(structs)
            structs.append(api.ShapeDtypeStruct(shape, np.dtype(dtype), weak_type=next(flags)))
            return lambda operands: operands[i]
        inner = re.fullmatch(r"[\[(]([A-Z](?:,[A-Z])*)[\])]", token)
        if inner:
            parts = [source(t) for t in inner[1].split(",")]
            return lambda operands: [part(operands) for part in parts]
        value = eval(token, {"np": np, "lax": api.lax})
        return lambda operands: value

    sources = [source(t) for t in tokens]
    function = api.lax
    for part in name.split("."):
        function = getattr(function, part)
    found = api.eval_shape(lambda *operands: function(*[s(operands) for s in sources]), *structs)
    return [(x.shape, str(x.dtype), bool(x.weak_type)) for x in api.tree_util.tree_leaves(found)]


@pytest.mark.parametrize("case", NAMES)
def test_results_are_weakly_typed_as_in_jax(case):
    count = len(re.findall(r"(?<![\w.'])[A-Z](?![\w.'])", case))
    for weak in itertools.product([True, False], repeat=min(count, 3)):
        weak = (*weak, *[True] * (count - len(weak)))
        assert results(xtrace, case, weak) == results(jax, case, weak), weak


@pytest.mark.parametrize("name", ["cholesky", "eigh", "svd", "lu", "qr"])
def test_derivatives_of_weakly_typed_matrices(name):
    def both(api):
        weak = api.ShapeDtypeStruct((2, 2), np.float32, weak_type=True)
        strong = api.ShapeDtypeStruct((2, 2), np.float32)
        function = getattr(api.lax.linalg, name)
        moved = api.eval_shape(lambda x, t: api.jvp(function, (x,), (t,)), weak, weak)
        gradient = api.eval_shape(api.grad(lambda x: sum(api.numpy.sum(y) for y in api.tree_util.tree_leaves(
            function(x)) if y.dtype == np.float32)), strong)
        return [(x.shape, str(x.dtype), bool(x.weak_type)) for x in api.tree_util.tree_leaves((moved, gradient))
                if x.dtype == np.float32]

    assert both(xtrace) == both(jax)
