"""Classes that `vmap` maps by functions of their own, against jax."""

import jax
import jax.interpreters.batching
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.interpreters.batching

LIBRARIES = (jax, xtrace)


class Ragged:
    """Rows of several lengths, one after the other."""

    def __init__(self, data, lengths):
        self.data, self.lengths = data, lengths


class Row(Ragged):
    """A class with a size."""

    @property
    def shape(self):
        return self.data.shape


class Places:
    """Where the axis is in `data`."""

    def __init__(self, data):
        self.data = data


def to_element(take, indices, x, axis):
    element = type(x)(take(x.data, getattr(axis, "data", axis)), x.lengths)
    element.index = indices() if axis is not None else 0
    return element


def from_element(join, size, x, axis):
    return type(x)(join(size, x.data, getattr(axis, "data", axis)), (x.lengths, size))


@pytest.fixture(autouse=True)
def registered():
    for library in LIBRARIES:
        for cls in (Ragged, Row):
            library.interpreters.batching.register_vmappable(cls, Places, int, to_element, from_element, None)
    yield
    for library in LIBRARIES:
        for cls in (Ragged, Row):
            library.interpreters.batching.unregister_vmappable(cls)
    with pytest.raises(TypeError):
        xtrace.vmap(lambda x: x)(Ragged(np.ones(3), 0))


def plus(e, x):
    return Row(e.data * x + e.index, e.lengths)


CASES = {
    "sizes of objects": lambda jax, x: jax.vmap(lambda e: e.data.sum())(Row(x, 1)),
    "no size": lambda jax, x: jax.vmap(lambda e, y: e.data + y)(Ragged(x, 1), x),
    "results": lambda jax, x: jax.vmap(plus)(Row(x, 1), x[:, 0]),
    "other axes": lambda jax, x: jax.vmap(plus, (1, 0), 1)(Row(x, 1), x[0]),
    "negative axes": lambda jax, x: jax.vmap(plus, (-1, None), -1)(Row(x, 1), 2.0),
    "not mapped": lambda jax, x: jax.vmap(plus, (None, 0))(Row(x, 1), x[:, 0]),
    "specifications": lambda jax, x: jax.vmap(plus, (Places(1), 0), Places(0))(Ragged(x, 1), x[0]),
    "trees": lambda jax, x: jax.vmap(lambda t: [t["a"], t["b"]], ({"a": 0, "b": 1},))({"a": Row(x, 1), "b": x.T}),
    "results only": lambda jax, x: jax.vmap(lambda y: Row(y, 1), 0, 1)(x),
    "one result for all": lambda jax, x: jax.vmap(lambda e: Row(x, 1))(Row(x, 1)),
    "nested": lambda jax, x: jax.vmap(lambda y: jax.vmap(plus, (0, None))(Row(y, 1), 2.0))(x),
    "jit": lambda jax, x: jax.jit(lambda x: jax.vmap(lambda e: e.data.sum())(Row(x, 1)))(x),
    "grad": lambda jax, x: jax.grad(lambda x: (jax.vmap(lambda e: e.data)(Row(x, 1)) ** 2).sum())(x),
}


def flat(tree):
    return [
        (type(x).__name__, np.asarray(x.data), x.lengths) if isinstance(x, Ragged) else np.asarray(x)
        for x in jax.tree.leaves(tree)
    ]


@pytest.mark.parametrize("name", CASES)
def test_functions_of_classes(name):
    x = np.arange(6.0, dtype=np.float32).reshape(2, 3)
    expected, found = (flat(CASES[name](library, library.numpy.asarray(x))) for library in LIBRARIES)
    for a, b in zip(found, expected, strict=True):
        np.testing.assert_equal(a, b)


@pytest.mark.parametrize("library", LIBRARIES)
def test_wrong_places(library):
    x = library.numpy.ones((2, 3))
    with pytest.raises(ValueError, match="out_axes"):
        library.vmap(plus, (0, 0), None)(Row(x, 1), x[:, 0])
    with pytest.raises(ValueError, match="at least one non-None"):
        library.vmap(lambda e: e.data)(Ragged(x, 1))


def test_classes_of_sizes():
    with pytest.raises(NotImplementedError, match="axis_size_type float"):
        xtrace.interpreters.batching.register_vmappable(Ragged, Places, float, to_element, from_element, None)
