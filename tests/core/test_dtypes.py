"""Dtypes: names, canonical forms, kinds and promotion, compared with jax for all of them."""

import copy
import itertools
import pickle
import subprocess
import sys
import warnings

import jax
import jax.numpy as jnp
import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xtrace.dtypes
from tests.support.names import stable_name
from xtrace._src.core import dtypes, type_promotion
from xtrace._src.core.settings import config
from xtrace._src.core.tables import Table

ALL = list(dtypes.all_dtypes.values())
ALL_AND_FLOAT0 = [*ALL, dtypes.float0]
ABSTRACT = [
    np.generic, np.number, np.integer, np.signedinteger, np.unsignedinteger, np.inexact, np.floating,
    np.complexfloating, np.bool_, np.flexible, np.character,
]


def name(dtype):
    return dtypes.full_name(dtype)


def aval(dtype, weak=False):
    return jax.ShapeDtypeStruct((), dtype, weak_type=weak)


# Only newer releases of ml_dtypes have them.
ONE_BIT = [name for name in ("int1", "uint1") if name in dtypes.all_dtypes]


def test_every_dtype_of_jax_numpy_is_known():
    scalars = [getattr(jnp, n) for n in dir(jnp) if isinstance(getattr(jnp, n), type(jnp.float32))]
    assert {np.dtype(s) for s in scalars} == set(ALL)


def test_constants_carry_full_names():
    for full, dtype in dtypes.all_dtypes.items():
        if full not in ONE_BIT:
            assert getattr(dtypes, "bool_" if full == "bool" else full) is dtype
        assert dtype.name == full == name(dtype)
    assert dtypes.float0 == jax.dtypes.float0


@pytest.mark.parametrize("dtype", ALL_AND_FLOAT0, ids=name)
def test_names_are_those_that_jax_prints(dtype):
    with jax.enable_x64(True):
        traced = jax.jit(lambda x: x).trace(jax.ShapeDtypeStruct((2,), dtype))
        jaxpr, module = str(traced.jaxpr), traced.lower().as_text()
    assert f"a:{dtypes.short_name(dtype)}[2]." in jaxpr
    # jax writes one-bit integers as booleans or as a type that XLA refuses.
    if name(dtype) not in ONE_BIT:
        assert f"%arg0: tensor<2x{dtypes.mlir_name(dtype)}>" in module
    assert f"{name(dtype)}[2]" == str(jax.core.ShapedArray((2,), dtype))


@pytest.mark.parametrize("dtype", ALL, ids=name)
def test_bit_widths(dtype):
    assert dtypes.bit_width(dtype) == jax.dtypes.itemsize_bits(dtype)


def test_bit_width_of_what_has_none():
    for dtype in (dtypes.float0, dtypes.StoredDType("key<fry>", dtypes.uint32, (2,))):
        with pytest.raises(ValueError, match="has no bit width"):
            dtypes.bit_width(dtype)


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize(
    "given_dtype",
    [*ALL, *[d.type for d in ALL], *[d.name for d in ALL], bool, int, float, complex, "f4", "i8", "u8", "c16", "float",
     "int", jnp.float64, jnp.bfloat16, dtypes.float0],
    ids=str,
)
def test_canonicalize_as_jax(given_dtype, x64):
    with jax.enable_x64(x64):
        expected = jax.dtypes.canonicalize_dtype(given_dtype)
    for _ in range(2):
        found = dtypes.canonicalize(given_dtype, x64)
        assert found == expected
        assert isinstance(found, np.dtype)


@pytest.mark.parametrize("text", [">f4", ">i2", ">c8", ">u4"])
def test_other_byte_orders_become_native(text):
    found = dtypes.canonicalize(np.dtype(text), False)
    assert found == np.dtype(text).newbyteorder("=")
    assert found.isnative


@pytest.mark.parametrize(
    "bad", [object, "O", str, "U3", "S2", "M8[s]", "m8[ms]", np.longdouble, np.clongdouble, "V4", [("x", "f4")],
            "nonsense", 3, 2.5, (), np.floating, np.generic, ml_dtypes.complex32, {"a": 1}],
    ids=stable_name,
)
@pytest.mark.parametrize("x64", [False, True])
def test_other_dtypes_are_rejected_with_what_is_accepted(bad, x64):
    with pytest.raises(TypeError, match=r"Accepted are bool, .*float32.*scalar class, and Python's bool, int"):
        dtypes.canonicalize(bad, x64)


def test_arrays_and_none_are_not_dtypes():
    with pytest.raises(TypeError, match=r"an array was given where a dtype belongs; write x\.dtype"):
        dtypes.canonicalize(np.zeros(3), False)
    with pytest.raises(TypeError, match="name the dtype"):
        dtypes.canonicalize(None, False)


def test_default_dtypes():
    for x64 in (False, True):
        with jax.enable_x64(x64):
            for make, scalar in [(dtypes.default_int, int), (dtypes.default_float, float),
                                 (dtypes.default_complex, complex)]:
                assert make(x64) == jnp.asarray(scalar(1)).dtype
            assert dtypes.default_uint(x64) == jax.dtypes.canonicalize_dtype("uint64")


class Integer(int):
    pass


class Float(float):
    pass


VALUES = [
    1, 1.0, 1j, True, 2**70, Integer(3), Float(3.0), float, int, complex, bool, "float32", "int16", np.float32,
    np.dtype("int8"), np.float64(1), np.int64(2), np.bool_(True), np.zeros(3), np.zeros(2, np.int16), np.zeros(2, "c8"),
    np.zeros(2, ml_dtypes.bfloat16), ml_dtypes.bfloat16(1), jnp.float16, jnp.asarray(1), jnp.asarray(1.0),
    jnp.asarray(True), jnp.float32(1), jnp.arange(3, dtype="uint8"), np.complex128(1),
]


@pytest.mark.parametrize("value", VALUES, ids=lambda v: f"{type(v).__name__}-{v}")
@pytest.mark.parametrize("x64", [False, True])
def test_dtype_and_weakness_of_values(value, x64):
    with jax.enable_x64(x64):
        expected = jax.dtypes.result_type(value, return_weak_type_flag=True)
    pair = dtypes.dtype_and_weak(value, x64)
    assert pair[1] == expected[1]
    assert type_promotion.promote((pair,), x64) == expected
    assert dtypes.scalar_type_of(value) is jax.dtypes.scalar_type_of(value)


def test_values_without_a_dtype():
    for value in ("word", [1, 2], object(), np.array(["a"]), np.array([object()]), np.str_("a")):
        for function in (lambda v: dtypes.dtype_and_weak(v, False), dtypes.scalar_type_of):
            with pytest.raises(TypeError, match="Accepted are"):
                function(value)
    with pytest.raises(TypeError, match="have no Python scalar type"):
        dtypes.scalar_type_of(dtypes.float0)


@pytest.mark.parametrize("dtype", ALL_AND_FLOAT0, ids=name)
def test_kinds(dtype):
    kinds = {
        np.bool_: dtypes.is_boolean, np.integer: dtypes.is_integer, np.floating: dtypes.is_floating,
        np.complexfloating: dtypes.is_complex, np.inexact: dtypes.is_inexact,
    }
    for abstract, function in kinds.items():
        assert function(dtype) == jax.dtypes.issubdtype(dtype, abstract)
    unsigned = not jax.dtypes.issubdtype(dtype, np.number) or jax.dtypes.issubdtype(dtype, np.unsignedinteger)
    assert dtypes.is_signed(dtype) == (not unsigned)
    real = {"complex64": "float32", "complex128": "float64"}.get(dtype.name)
    assert dtypes.real_part_dtype(dtype) == (np.dtype(real) if real else dtype)


def test_issubdtype_as_jax_for_all_pairs():
    operands = [*ALL_AND_FLOAT0, *[d.type for d in ALL], *ABSTRACT, float, int, bool, complex, "float32", jnp.float16]
    for a, b in itertools.product(operands, operands):
        assert dtypes.issubdtype(a, b) == jax.dtypes.issubdtype(a, b), (a, b)
    with pytest.raises(TypeError):
        dtypes.issubdtype("nonsense", np.floating)
    with pytest.raises(TypeError):
        dtypes.issubdtype(np.float32, 3)


@pytest.mark.parametrize("dtype", [d for d in ALL if dtypes.is_floating(d) or dtypes.is_complex(d)], ids=name)
def test_finfo(dtype):
    ours, theirs = dtypes.finfo(dtype), jax.dtypes.finfo(dtype)
    for field in ("bits", "dtype", "max", "min", "eps", "tiny", "smallest_subnormal", "maxexp", "minexp", "nmant"):
        assert getattr(ours, field) == getattr(theirs, field)


@pytest.mark.parametrize("dtype", [d for d in ALL if dtypes.is_integer(d)], ids=name)
def test_iinfo(dtype):
    info = dtypes.iinfo(dtype)
    signed, bits = dtypes.is_signed(dtype), dtypes.bit_width(dtype)
    assert (info.bits, info.dtype) == (bits, dtype)
    assert (info.min, info.max) == ((-(2 ** (bits - 1)), 2 ** (bits - 1) - 1) if signed else (0, 2**bits - 1))


def keys_of(x64):
    return [(d, w) for d in ALL if x64 or d == dtypes.canonicalize(d, False) for w in (False, True)]


def narrow_and_weak(keys):
    """Whether jax's result is a weak integer narrower than a byte, for which it fails with KeyError('V')."""
    return any(weak and dtypes.is_integer(d) and dtypes.bit_width(d) < 8 for d, weak in keys)


def jax_promotions(x64, mode, operands):
    """Return {((dtype, weak), ...): (dtype, weak), None for an error} for all multisets of `operands` operands."""
    found = {}
    keys = keys_of(x64)

    def record(*tracers):
        for chosen in itertools.combinations_with_replacement(range(len(keys)), operands):
            key = tuple(keys[i] for i in chosen)
            try:
                found[key] = jax.dtypes.result_type(*[tracers[i] for i in chosen], return_weak_type_flag=True)
            except jax.dtypes.TypePromotionError:
                found[key] = None
            except KeyError:
                assert narrow_and_weak(key)
        return 0

    with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode):
        jax.eval_shape(record, *[aval(d, w) for d, w in keys])
    return found


def promote(key, x64, mode):
    try:
        return type_promotion.promote(key, x64, mode)
    except type_promotion.TypePromotionError:
        return None


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("mode", ["standard", "strict"])
@pytest.mark.parametrize("operands", [1, 2, pytest.param(3, marks=pytest.mark.slow)])
def test_promotion_of_every_combination(x64, mode, operands):
    expected = jax_promotions(x64, mode, operands)
    assert len(expected) > len(ALL)
    wrong = {key: (promote(key, x64, mode), want) for key, want in expected.items() if promote(key, x64, mode) != want}
    assert wrong == {}


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_promotion_does_not_depend_on_order(x64, mode):
    for a, b in itertools.product(keys_of(x64), repeat=2):
        assert promote((a, b), x64, mode) == promote((b, a), x64, mode)


@given(st.data(), st.booleans(), st.sampled_from(["standard", "strict"]))
def test_promotion_of_many(data, x64, mode):
    keys = data.draw(st.lists(st.sampled_from(keys_of(x64)), min_size=4, max_size=8))
    expected = []

    def record(*tracers):
        try:
            expected.append(jax.dtypes.result_type(*tracers, return_weak_type_flag=True))
        except jax.dtypes.TypePromotionError:
            expected.append(None)
        except KeyError:
            assert narrow_and_weak(keys)
        return 0

    with jax.enable_x64(x64), jax.numpy_dtype_promotion(mode):
        jax.eval_shape(record, *[aval(d, w) for d, w in keys])
    if expected:
        assert promote(tuple(keys), x64, mode) == expected[0]


def test_promotion_of_64_bit_dtypes_without_x64():
    wide = [d for d in ALL if d != dtypes.canonicalize(d, False)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        for a, b in itertools.product(wide, ALL):
            try:
                expected = jax.dtypes.result_type(a, b, return_weak_type_flag=True)
            except jax.dtypes.TypePromotionError:
                expected = None
            assert promote(((a, False), (b, False)), False, "standard") == expected


def test_weak_narrow_integers_promote_like_other_weak_integers():
    for d in (dtypes.int2, dtypes.uint4):
        assert type_promotion.promote(((d, True),), False)[1]
        assert type_promotion.promote(((d, True), (dtypes.int16, False)), False) == (dtypes.int16, False)


def test_promotion_errors_name_the_dtypes_and_a_way_out():
    message = r"float32 and float8_e5m2 have no common dtype.*astype\('float32'\)"
    with pytest.raises(type_promotion.TypePromotionError, match=message) as info:
        type_promotion.promote(((dtypes.float8_e5m2, False), (dtypes.float32, False)), False)
    assert isinstance(info.value, ValueError)
    with pytest.raises(type_promotion.TypePromotionError, match=r"float32 \(weak\) and int32 differ.*'strict'.*astype"):
        type_promotion.promote(((dtypes.int32, False), (dtypes.float32, True)), False, "strict")
    with pytest.raises(ValueError, match="at least one"):
        type_promotion.promote((), False)


def test_promotion_of_what_is_no_number():
    key = dtypes.StoredDType("key<fry>", dtypes.uint32, (2,), dtypes.prng_key)
    for dtype, why in ((key, "combine only with their own dtype"), (dtypes.float0, "the derivative by an integer")):
        assert type_promotion.promote(((dtype, False), (dtype, False)), False) == (dtype, False)
        with pytest.raises(type_promotion.TypePromotionError, match=why):
            type_promotion.promote(((dtype, False), (dtypes.float32, True)), False)


def test_the_promotion_cache_is_bounded(monkeypatch):
    monkeypatch.setattr(type_promotion, "_promotions", Table(3))
    for d in ALL:
        assert type_promotion.promote(((d, False),), True) == (d, False)
        assert len(type_promotion._promotions) <= 3


def test_extended_dtypes():
    make = dtypes.StoredDType
    key = make("key<fry>", dtypes.uint32, (2,), dtypes.prng_key)
    assert key == make("key<fry>", dtypes.uint32, (2,), dtypes.prng_key)
    assert hash(key) == hash(make("key<fry>", dtypes.uint32, (2,), dtypes.prng_key))
    assert key not in (make("key<rbg>", dtypes.uint32, (2,), dtypes.prng_key), dtypes.uint32, None)
    assert key != make("key<fry>", dtypes.uint32, (4,), dtypes.prng_key)
    assert key != np.dtype("float32") and np.dtype("float32") != key
    assert repr(key) == str(key) == dtypes.short_name(key) == dtypes.full_name(key) == "key<fry>"
    assert dtypes.mlir_name(key) == "ui32"
    assert key.itemsize == 8
    assert dtypes.canonicalize(key, False) is key
    assert pickle.loads(pickle.dumps(key)) == copy.deepcopy(key) == key
    for abstract in (dtypes.prng_key, dtypes.extended, np.generic, key):
        assert dtypes.issubdtype(key, abstract)
    for abstract in (np.number, np.floating, dtypes.uint32, make("key<rbg>", dtypes.uint32)):
        assert not dtypes.issubdtype(key, abstract)
    assert not dtypes.issubdtype(np.float32, dtypes.extended)
    assert dtypes.issubdtype(dtypes.prng_key, dtypes.extended)
    for abstract in (dtypes.extended, dtypes.prng_key):
        with pytest.raises(TypeError, match="cannot create"):
            abstract()
    for kind in (dtypes.is_floating, dtypes.is_integer, dtypes.is_complex, dtypes.is_boolean, dtypes.is_inexact):
        assert not kind(key)


def test_mlir_name_of_an_unknown_dtype():
    with pytest.raises(TypeError, match="is not a dtype that arrays can have"):
        dtypes.mlir_name(np.dtype(object))


def test_older_ml_dtypes_has_no_one_bit_integers():
    code = (
        "import ml_dtypes\n"
        "for one in ('int1', 'uint1'):\n"
        "    if hasattr(ml_dtypes, one): delattr(ml_dtypes, one)\n"
        "from xtrace._src.core import dtypes, type_promotion\n"
        "assert 'int1' not in dtypes.all_dtypes and 'int2' in dtypes.all_dtypes\n"
        "print(type_promotion.promote(((dtypes.int8, False), (dtypes.float32, True)), False))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "(dtype('float32'), True)\n"


@pytest.mark.parametrize("x64", [False, True])
@pytest.mark.parametrize("mode", ["standard", "strict"])
def test_the_public_functions_follow_the_settings(x64, mode):
    ours = xtrace.dtypes
    values = [1, 1.0, True, 1j, np.float16(1), np.zeros(2, np.int8), "float32", "bfloat16", np.uint8, float, None]
    with (
        config.enable_x64(x64), config.numpy_dtype_promotion(mode),
        jax.enable_x64(x64), jax.numpy_dtype_promotion(mode),
    ):
        for pair in itertools.product(values, repeat=2):
            for options in ({}, {"return_weak_type_flag": True}):
                try:
                    expected = jax.dtypes.result_type(*pair, **options)
                except jax.dtypes.TypePromotionError:
                    with pytest.raises(ours.TypePromotionError):
                        ours.result_type(*pair, **options)
                else:
                    assert ours.result_type(*pair, **options) == expected
        for dtype in ("int64", np.float64, complex, int, None, ml_dtypes.int4):
            assert ours.canonicalize_dtype(dtype) == jax.dtypes.canonicalize_dtype(dtype)
    with pytest.raises(ValueError, match="at least one"):
        ours.result_type()


def test_the_public_canonical_form_of_extended_dtypes():
    key = dtypes.StoredDType("key<fry>", dtypes.uint32, (2,), dtypes.prng_key)
    assert xtrace.dtypes.canonicalize_dtype(key, allow_extended_dtype=True) == key
    with pytest.raises(ValueError, match="allow_extended_dtype=True"):
        xtrace.dtypes.canonicalize_dtype(key)
    assert xtrace.dtypes.bfloat16 is jax.dtypes.bfloat16


@pytest.mark.parametrize("dtype", [np.float32, np.float16, ml_dtypes.bfloat16, np.complex64, np.int8], ids=str)
def test_cast_is_numpy_s_without_warnings(dtype):
    values = np.array([0.0, -0.0, 1.5, 1e300, -1e300, np.inf, np.nan])
    if np.dtype(dtype) == np.int8:
        values = values[:3]
    with np.errstate(all="ignore"):
        expected = values.astype(dtype)
    found = dtypes.cast(values, dtype)
    assert found.dtype == dtype and found.tobytes() == expected.tobytes()
    assert not np.shares_memory(found, values) and dtypes.cast(found, dtype) is not found
    assert dtypes.cast(1.5, dtype).shape == ()


@pytest.mark.parametrize("name", ONE_BIT)
def test_one_bit_integers_are_stored_but_not_computed_with(name):
    values = np.array([0, 1, 1], np.int8).astype(dtypes.all_dtypes.get(name))
    array = xtrace.numpy.asarray(values)
    assert array.dtype == values.dtype
    np.testing.assert_array_equal(np.asarray(array).astype(np.int8), values.astype(np.int8))
    message = f"no operation takes or gives {name}.*np.asarray"
    for call in (
        lambda: array + array, lambda: array.astype("int8"), lambda: xtrace.jit(lambda x: x)(array),
        lambda: xtrace.numpy.zeros(3, values.dtype), lambda: xtrace.jit(lambda x: x).lower(array).as_text(),
    ):
        with pytest.raises(TypeError, match=message):
            call()
