"""The ``--arg`` grammar: what is written comes back as the pytree it says, and what is wrong is pointed at."""

import math
import string

import ml_dtypes
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xtrace
from xtrace.cli.argument_grammar import parse_argument, parse_static
from xtrace.cli.errors import CommandError

DTYPES = {
    "bool": "bool", "i8": "int8", "i16": "int16", "i32": "int32", "u8": "uint8", "u16": "uint16", "u32": "uint32",
    "f16": "float16", "f32": "float32", "c64": "complex64", "float32": "float32", "int32": "int32",
    "bf16": ml_dtypes.bfloat16, "f8_e4m3fn": ml_dtypes.float8_e4m3fn, "f8_e5m2": ml_dtypes.float8_e5m2,
    "bfloat16": ml_dtypes.bfloat16, "i4": ml_dtypes.int4, "u4": ml_dtypes.uint4, "f4_e2m1fn": ml_dtypes.float4_e2m1fn,
}


def described(value):
    """A pytree with its `ShapeDtypeStruct`s as pairs that compare equal when they describe the same type."""
    if isinstance(value, xtrace.ShapeDtypeStruct):
        return (tuple(value.shape), np.dtype(value.dtype))
    if isinstance(value, dict):
        return {key: described(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return type(value)(map(described, value))
    return value


@pytest.mark.parametrize(("name", "dtype"), DTYPES.items(), ids=DTYPES)
def test_dtype_names(name, dtype):
    assert described(parse_argument(f"{name}[2,3]")) == ((2, 3), np.dtype(dtype))


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("f32[]", ((), np.dtype("float32"))),
        (" i32 [ 7 , 0, ] ", ((7, 0), np.dtype("int32"))),
        ('{"w": f32[3,4], "b": f32[4]}', {"w": ((3, 4), np.dtype("float32")), "b": ((4,), np.dtype("float32"))}),
        ("[f32[2], i32[]]", [((2,), np.dtype("float32")), ((), np.dtype("int32"))]),
        ("(f32[2], None)", (((2,), np.dtype("float32")), None)),
        ("(f32[2])", ((2,), np.dtype("float32"))),
        ("(f32[2],)", (((2,), np.dtype("float32")),)),
        ("()", ()),
        ("[]", []),
        ("{}", {}),
        ("{0: [1, (2, {'a': 3})],}", {0: [1, (2, {"a": 3})]}),
        ("3", 3),
        ("-2.5e-3", -2.5e-3),
        ("1_000", 1000),
        (".5", 0.5),
        ("2j", 2j),
        ("True", True),
        ("'a b\\n'", "a b\n"),
        ('"it\'s"', "it's"),
        ("-inf", -math.inf),
    ],
)
def test_values(text, value):
    found = described(parse_argument(text))
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("text", "column", "expected"),
    [
        ("", 0, "an array type, a literal, or one of [ ( {"),
        ("f32", 3, "'[' and the shape, such as f32[3,4], or f32[] for a scalar"),
        ("f32[2", 5, "',' and another dimension, or ']'"),
        ("f32[2 3]", 6, "',' and another dimension, or ']'"),
        ("f32[,]", 4, "a dimension (a whole number) or ']'"),
        ("f32[-1]", 4, "a dimension (a whole number) or ']'"),
        ("f32[2.5]", 4, "a dimension (a whole number) or ']'"),
        ("f32[n]", 4, "a dimension (a whole number) or ']'"),
        ("f32[99999999999999999999]", 4, "a dimension below 10**18"),
        ("f33[2]", 0, "a dtype (did you mean f32?)"),
        ("f32[2] f32[3]", 7, "the end of the argument"),
        ("f32[2]]", 6, "the end of the argument"),
        ("[f32[2], i32[]", 14, "',' and another item, or ']'"),
        ("[f32[2] i32[]]", 8, "',' and another item, or ']'"),
        ("(1, 2]", 5, "',' and another item, or ')'"),
        ("{w: f32[]}", 1, 'a key in quotes, such as "w"'),
        ('{"w" f32[]}', 5, "':' and the value of 'w'"),
        ('{"w": f32[]; "b": 1}', 11, "',' and another key, or '}'"),
        ('{"w": 1, "w": 2}', 9, "a new key; "),
        ('"open', 0, "an array type, a literal"),
        ("007", 0, "a Python literal"),
        ("[1,,2]", 3, "an array type, a literal"),
        ("[" * 100_000, None, "fewer containers inside each other"),
    ],
    ids=lambda value: value[:12] if isinstance(value, str) else None,
)
def test_what_is_wrong_is_pointed_at(text, column, expected):
    with pytest.raises(CommandError) as caught:
        parse_argument(text)
    lines = str(caught.value).splitlines()
    assert lines[0] == "--arg cannot be read:"
    if column is not None:
        assert lines[2] == f"    {text}"
        assert lines[3].index("^") == len("    ") + column
    assert expected in lines[3]
    assert "f32[128,128]" in str(caught.value)
    assert caught.value.exit_code == 2


def test_wide_dtypes_need_x64():
    with pytest.raises(CommandError, match="f64 needs 64-bit types, which are off"):
        parse_argument("[f64[2]]")
    with xtrace.enable_x64(True):
        assert described(parse_argument("[f64[2]]")) == [((2,), np.dtype("float64"))]


@pytest.mark.parametrize(
    ("text", "pair"), [("n=3", ("n", 3)), (" shape = (2, 3)", ("shape", (2, 3))), ("s='a=b'", ("s", "a=b"))]
)
def test_static(text, pair):
    assert parse_static(text) == pair


@pytest.mark.parametrize("text", ["n", "=3", "2n=3", "a b=3"])
def test_static_without_a_name(text):
    with pytest.raises(CommandError, match="expected NAME=VALUE"):
        parse_static(text)


def test_static_with_a_malformed_value():
    with pytest.raises(CommandError, match=r"--static n cannot be read"):
        parse_static("n=[1")


types = st.builds(
    lambda name, shape: (f"{name}[{','.join(map(str, shape))}]", (tuple(shape), np.dtype(DTYPES[name]))),
    st.sampled_from(sorted(DTYPES)),
    st.lists(st.integers(0, 10**6), max_size=4),
)
literals = st.one_of(
    st.integers(), st.booleans(), st.none(), st.floats(allow_nan=False), st.text(string.printable, max_size=8)
).map(lambda value: (repr(value), value))


def containers(items):
    """Pairs of a text and its value, of lists, tuples and dicts of such pairs."""
    several = st.lists(items, max_size=3)
    keyed = st.dictionaries(st.text(string.printable, max_size=4), items, max_size=3)
    return st.one_of(
        several.map(lambda pairs: (f"[{', '.join(t for t, _ in pairs)}]", [v for _, v in pairs])),
        several.map(lambda pairs: (f"({''.join(t + ', ' for t, _ in pairs)})", tuple(v for _, v in pairs))),
        keyed.map(
            lambda d: (f"{{{', '.join(f'{k!r}: {t}' for k, (t, _) in d.items())}}}", {k: v for k, (_, v) in d.items()})
        ),
    )


@given(st.recursive(types | literals, containers, max_leaves=8))
def test_any_tree_of_types_and_literals_comes_back(pair):
    text, value = pair
    assert described(parse_argument(text)) == value


@given(st.text(alphabet="f32i8b[](){},:'\"0.-+ eTrueNone\\\n", max_size=20))
def test_any_text_is_read_or_refused(text):
    try:
        parse_argument(text)
    except CommandError as error:
        assert error.exit_code == 2


def test_the_word_that_is_wrong_is_named():
    with pytest.raises(CommandError, match=r"found 'f99'; expected a dtype, one of bool"):
        parse_argument("f99[3]")
