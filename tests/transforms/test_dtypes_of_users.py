"""Extended dtypes that libraries derive: conversions, and cotangents added by the dtype's own rule, as in jax."""

import dataclasses
from typing import Any

import jax
import jax._src.core
import jax._src.dtypes
import numpy as np
import pytest

import xtrace
import xtrace.numpy
from xtrace._src.core import dtypes

X = np.arange(3, dtype=np.float32)
ONES = np.ones(3, np.float32)


def make_dtype(api, base, array_type):
    """Return a dtype stored as float32, whose cotangents add up to the largest."""

    class Rules:
        @staticmethod
        def physical_element_aval(dtype):
            return array_type((), dtype.number)

        @staticmethod
        def convert_from(dtype, other):
            return dtype.number == other

        @staticmethod
        def convert_to(other, dtype):
            return dtype.number == other

        @staticmethod
        def tangent_dtype(dtype):
            return dtype

        @staticmethod
        def add(dtype, x, y):
            larger = api.lax.max(*[api.lax.convert_element_type(v, dtype.number) for v in (x, y)])
            return api.lax.convert_element_type(larger, dtype)

        @staticmethod
        def zero(dtype):
            return api.lax.convert_element_type(np.float32(-np.inf), dtype)

        @staticmethod
        def full(shape, value, dtype):
            return api.lax.convert_element_type(api.lax.full(shape, value, dtype.number), dtype)

    kind = type("kind", (api.dtypes.extended,), {})

    @dataclasses.dataclass(frozen=True)
    class Largest(base):
        number: Any
        _rules: type = Rules
        type: type = kind

        def __repr__(self):
            return "largest"

        name = property(__repr__)

    return Largest(np.dtype(np.float32))


class Library:
    """A frontend, a dtype of a user's in it, and a function whose rule sends the other operand's size to that dtype."""

    def __init__(self, api, base, array_type):
        self.api, self.dtype = api, make_dtype(api, base, array_type)

        @api.custom_vjp
        def use(x, largest):
            return x * 2

        use.defvjp(lambda x, largest: (x * 2, x), lambda x, g: (g * 2, self.to(api.numpy.abs(x))))
        self.use = use

    def to(self, x):
        return self.api.lax.convert_element_type(x, self.dtype)

    def back(self, x):
        return self.api.lax.convert_element_type(x, np.float32)


LIBRARIES = [
    Library(xtrace, dtypes.ExtendedDType, xtrace.core.ShapedArray),
    Library(jax, jax._src.dtypes.ExtendedDType, jax._src.core.ShapedArray),
]


def twice(lib):
    def function(x, s):
        largest = lib.to(s)
        return lib.use(lib.use(x, largest), largest).sum()

    return function


def in_loop(lib):
    def function(x, s):
        largest = lib.to(s)
        return lib.api.lax.scan(lambda c, _: (lib.use(c, largest), None), x, None, 3)[0].sum()

    return function


def in_branch(lib):
    return lambda x, s: lib.api.lax.cond(x.sum() > 0, lambda: lib.use(x, lib.to(s)).sum(), lambda: x.sum())


GRADIENTS = {"twice": twice, "in a loop": in_loop, "in a branch": in_branch}
VALUES = {
    "converted and back": lambda lib: lambda x, s: lib.back(lib.to(x)),
    "elements moved": lambda lib: lambda x, s: lib.back(lib.to(x)[1:].reshape(2, 1)),
    "repeated": lambda lib: lambda x, s: lib.back(lib.api.numpy.broadcast_to(lib.to(x), (2, 3))),
    "filled": lambda lib: lambda x, s: lib.back(lib.api.numpy.full_like(lib.to(x), 2.0)),
    "zeros": lambda lib: lambda x, s: lib.back(lib.api.numpy.zeros_like(lib.to(x))),
    "mapped": lambda lib: lib.api.vmap(lambda x, s: lib.back(lib.to(x)[None])),
    **{name: lambda lib, f=f: lib.api.grad(f(lib), (0, 1)) for name, f in GRADIENTS.items()},
    "gradients mapped": lambda lib: lambda x, s: lib.api.vmap(lib.api.grad(twice(lib), (0, 1)), (0, None))(
        lib.api.numpy.stack([x, x * 3]), s),
}


@pytest.mark.parametrize("name", VALUES)
def test_values_and_gradients_are_those_of_jax(name):
    found, expected = [lib.api.tree.leaves(lib.api.jit(VALUES[name](lib))(X, ONES)) for lib in LIBRARIES]
    assert len(found) == len(expected)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_array_equal(a, b)


def test_arrays_of_the_dtype_outside_jit():
    ours = LIBRARIES[0]
    array = ours.to(X)
    assert array.dtype == ours.dtype and xtrace.dtypes.issubdtype(array.dtype, ours.dtype.type)
    assert xtrace.dtypes.issubdtype(array.dtype, xtrace.dtypes.extended) and array.dtype.itemsize == 4
    assert repr(array) == "Array((3,), dtype=largest) overlaying:\n[0. 1. 2.]"
    np.testing.assert_array_equal(ours.back(array), X)
    np.testing.assert_array_equal(xtrace.grad(twice(ours), 1)(X, ONES), 2 * X)
    with pytest.raises(TypeError, match="dtype largest and shape"):
        np.asarray(array)


@pytest.mark.parametrize("function", [
    lambda lib: lib.to(X.astype(np.int32)), lambda lib: lib.api.lax.convert_element_type(lib.to(X), np.int32),
    lambda lib: lib.api.lax.sin(lib.to(X)), lambda lib: lib.api.lax.add(lib.to(X), lib.to(X)),
])
def test_the_dtype_refuses_what_it_is_not_stored_as_and_arithmetic(function):
    with pytest.raises(TypeError, match="largest"):
        function(LIBRARIES[0])


def test_keys_are_no_dtype_of_users():
    key = xtrace.random.key(0)
    assert isinstance(key.dtype, dtypes.StoredDType) and dtypes.tangent_dtype(key.dtype) is dtypes.float0
    assert not dtypes.converts(key.dtype, np.dtype(np.uint32)) and dtypes.converts(key.dtype, key.dtype)


def test_keys_are_filled_with_a_number_as_in_jax():
    for fill in ("zeros_like", "ones_like"):
        found, expected = [
            np.asarray(api.random.key_data(getattr(api.numpy, fill)(api.random.split(api.random.key(0), 2))))
            for api in (xtrace, jax)
        ]
        np.testing.assert_array_equal(found, expected)
