"""Arrays made of their storage, and dtypes whose tangents have a dtype of their own, as in jax."""

import jax
import jax.experimental
import jax.numpy
import ml_dtypes
import numpy as np
import pytest

import xtrace
import xtrace.experimental
import xtrace.numpy

STORED, TANGENTS = np.dtype(ml_dtypes.float8_e4m3fn), np.dtype(ml_dtypes.bfloat16)
X = np.array([1.0, 2.0, -3.0], STORED)


class Library:
    """A frontend, a dtype of its `primal_tangent_dtype`, and an array of it."""

    def __init__(self, api):
        self.api, self.experimental = api, api.experimental
        self.dtype = api.experimental.primal_tangent_dtype(STORED, TANGENTS)
        self.type = api.core.ShapedArray(X.shape, self.dtype)
        self.array = api.experimental.EArray(self.type, api.numpy.asarray(X))

    def to(self, x):
        return self.api.lax.convert_element_type(x, self.dtype)

    def read(self, x):
        return self.api.lax.convert_element_type(x, STORED)

    def loss(self, x):
        """Add up two uses, so that cotangents are summed at the precision of tangents."""
        first, second = (self.read(x).astype(TANGENTS) * c for c in (1.25, 0.1875))
        return (first + second).sum().astype(np.float32)


LIBRARIES = [Library(xtrace), Library(jax)]
CALLS = {
    "value": lambda lib: lib.loss(lib.array),
    "value in a program": lambda lib: lib.api.jit(lib.loss)(lib.array),
    "cotangents": lambda lib: lib.api.vjp(lib.loss, lib.array)[1](np.float32(1.001)),
    "tangents": lambda lib: lib.api.jvp(lib.loss, (lib.array,), (lib.api.numpy.full(3, 1.01, TANGENTS),)),
    "linearized": lambda lib: lib.api.linearize(lib.loss, lib.array)[1](lib.api.numpy.ones(3, TANGENTS)),
    "through both conversions": lambda lib: lib.api.jit(lib.api.grad(lambda x: lib.loss(lib.to(x))))(X),
    "wide storage": lambda lib: lib.api.jit(lib.api.grad(lambda x: lib.api.lax.convert_element_type(
        lib.api.lax.convert_element_type(x, lib.experimental.primal_tangent_dtype(np.float32, TANGENTS)), np.float32,
    ).sum() * 1.001))(np.ones(2, np.float32)),
    "moved": lambda lib: lib.api.jit(lambda x: lib.read(x[::-1].reshape(3, 1)))(lib.array),
    "mapped": lambda lib: lib.api.vmap(lib.loss)(lib.array),
}


@pytest.mark.parametrize("name", CALLS)
def test_values_and_derivatives_are_those_of_jax(name):
    found, expected = [lib.api.tree.leaves(CALLS[name](lib)) for lib in LIBRARIES]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        assert a.dtype == b.dtype
        np.testing.assert_array_equal(np.asarray(a), np.asarray(b))


@pytest.mark.parametrize("describe", [
    lambda lib: str(lib.dtype),
    lambda lib: lib.dtype.name,
    lambda lib: lib.experimental.primal_tangent_dtype("float32", "bfloat16", "mine").name,
    lambda lib: lib.dtype == lib.experimental.primal_tangent_dtype("float8_e4m3fn", "bfloat16"),
    lambda lib: lib.dtype == lib.experimental.primal_tangent_dtype(STORED, TANGENTS, "mine"),
    lambda lib: lib.dtype == lib.experimental.primal_tangent_dtype(STORED, np.float32),
    lambda lib: len({lib.dtype, lib.experimental.primal_tangent_dtype(STORED, TANGENTS)}),
    lambda lib: lib.api.dtypes.issubdtype(lib.dtype, lib.api.dtypes.extended),
    lambda lib: lib.array.dtype == lib.dtype and lib.array.shape,
    lambda lib: lib.api.typeof(lib.array) == lib.type,
    lambda lib: isinstance(lib.array, lib.api.Array),
    lambda lib: issubclass(lib.experimental.EArray, lib.api.Array),
    lambda lib: [isinstance(x, lib.experimental.EArray) for x in (
        lib.array, lib.api.numpy.ones(2), lib.api.random.key(0), np.ones(2))],
    lambda lib: lib.api.tree.map(lambda x: x.shape, {"a": lib.array}),
    lambda lib: lib.api.eval_shape(lib.read, lib.array).dtype,
])
def test_dtypes_and_types_are_those_of_jax(describe):
    ours, theirs = map(describe, LIBRARIES)
    assert ours == theirs


def test_keys_are_made_of_their_words():
    found, expected = [
        np.asarray(lib.api.random.uniform(lib.experimental.EArray(
            lib.api.core.ShapedArray((), lib.api.random.key(7).dtype), lib.api.random.key_data(lib.api.random.key(7)),
        ))) for lib in LIBRARIES
    ]
    assert found == expected


def test_elements_are_moved_outside_of_jit():
    ours = LIBRARIES[0]
    np.testing.assert_array_equal(np.asarray(ours.read(ours.array[1:]).astype(np.float32)), [2.0, -3.0])
    stacked = xtrace.numpy.stack([ours.array, ours.array])
    assert isinstance(stacked, xtrace.experimental.EArray) and stacked.shape == (2, 3)
    np.testing.assert_array_equal(np.asarray(ours.read(xtrace.numpy.full(2, 2, ours.dtype)).astype(np.float32)), 2.0)


def test_the_memory_is_shared_and_the_place_kept():
    data = xtrace.device_put(X, xtrace.devices()[0])
    array = xtrace.experimental.EArray(LIBRARIES[0].type, data)
    assert array.unsafe_buffer_pointer() == data.unsafe_buffer_pointer()
    assert array.committed and array.sharding == data.sharding


@pytest.mark.parametrize("aval, data, message", [
    (xtrace.core.ShapedArray((3,), STORED), X, "extended dtype"), (1, X, "extended dtype"),
    (LIBRARIES[0].type, xtrace.numpy.ones(3), r"f8_e4m3fn\[3\]"), (LIBRARIES[0].type, X[:2], r"f8_e4m3fn\[3\]"),
    (LIBRARIES[0].type, 3, "concrete array"),
])
def test_other_storage_is_refused(aval, data, message):
    with pytest.raises(TypeError, match=message):
        xtrace.experimental.EArray(aval, data)
