"""Layouts, and the older name of jit."""

import pickle

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.sharding.meshes import OURS, THEIRS
from xtrace.experimental.layout import Format, Layout, with_layout_constraint
from xtrace.experimental.pjit import pjit

X = np.arange(24, dtype=np.float32).reshape(2, 3, 4)
ONE = xtrace.sharding.SingleDeviceSharding(OURS.devices[0])


def test_layouts():
    layout = Layout((1, 0), ((8, 128),))
    assert repr(layout) == repr(THEIRS.module.experimental.layout.Layout((1, 0), ((8, 128),)))
    assert layout == Layout([1, 0], [[8, 128]]) != Layout((1, 0))
    assert {layout: 1}[Layout((1, 0), ((8, 128),))] == 1
    assert layout.update(tiling=None) == Layout((1, 0))
    assert pickle.loads(pickle.dumps(layout)) == layout
    array = jnp.ones((2, 3))
    assert Layout.from_pjrt_layout(array.buffer._pjrt_layout) == array.format.layout == Layout((0, 1), ())
    assert pickle.loads(pickle.dumps(Layout.AUTO)) is Layout.AUTO
    assert repr(Format(Layout.AUTO)) == "Format(layout=AUTO, sharding=None)"
    assert Format(Layout((0,)), ONE) == Format(Layout((0,)), ONE)


def test_a_format_says_where_an_array_goes():
    array = OURS.put(X, OURS.named("x4y2", None, None, "x"))
    again = OURS.put(X, array.format)
    assert (again.sharding, again.format) == (array.sharding, array.format)
    doubled = xtrace.jit(lambda x: x * 2, in_shardings=array.format, out_shardings=Format(Layout.AUTO))(array)
    np.testing.assert_array_equal(doubled, X * 2)
    compiled = xtrace.jit(jnp.sin, in_shardings=Format(Layout.AUTO)).lower(X).compile()
    assert compiled.input_formats[0][0].layout.major_to_minor == (0, 1, 2)


CONSTRAINED = {
    "jit": lambda lib, f: lib.jit(f)(X),
    "grad": lambda lib, f: lib.jit(lib.module.grad(lambda x: (f(x) ** 2).sum()))(X),
    "vmap": lambda lib, f: lib.jit(lib.module.vmap(f, in_axes=1))(np.stack([X, X], 1)),
    "jvp": lambda lib, f: lib.jit(lambda x: lib.module.jvp(f, (x,), (x,))[1])(X),
}


@pytest.mark.parametrize("order", [(2, 0, 1), (0, 1, 2)])
@pytest.mark.parametrize("name", CONSTRAINED)
def test_layouts_of_values_inside_of_programs(name, order):
    ours = CONSTRAINED[name](OURS, lambda x: with_layout_constraint(x * 2, Layout(order)) + 1)
    module = THEIRS.module.experimental.layout
    theirs = CONSTRAINED[name](THEIRS, lambda x: module.with_layout_constraint(x * 2, module.Layout(order)) + 1)
    np.testing.assert_array_equal(ours, theirs)


def test_the_text_says_the_layout():
    def transposed(lib, module):
        return lib.jit(lambda x: module.with_layout_constraint(x * 2, module.Layout((2, 0, 1)))).lower(X).as_text()

    lines = [
        [line.split("result_layouts")[1] for line in transposed(lib, module).splitlines() if "LayoutC" in line]
        for lib, module in ((OURS, xtrace.experimental.layout), (THEIRS, THEIRS.module.experimental.layout))
    ]
    assert lines[0] == lines[1]


BAD = [
    (lambda: Layout(3), TypeError, "major_to_minor must be a tuple of axes, got 3"),
    (lambda: Format("x"), TypeError, "layout must be a Layout, Layout.AUTO or None, got 'x'"),
    (lambda: Format(None, "x"), TypeError, "sharding must be a sharding such as"),
    (lambda: Format(Layout((0,))), ValueError, "is for known devices; give a sharding, too"),
    (lambda: Layout((1, 0)).check_compatible_aval((3,)), ValueError, r"each axis of the array once.*shape is \(3,\)"),
    (lambda: Layout((1, 1)).check_compatible_aval((3, 3)), ValueError, "each axis of the array once, 0 to 1"),
    (lambda: with_layout_constraint(jnp.ones((2, 2)), "x"), ValueError, "layouts must be of type Layout, got 'x'"),
    (lambda: xtrace.jit(lambda x: with_layout_constraint(x, Layout((0,))))(X), ValueError, "each axis of the array"),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD)
def test_bad_input(call, kind, text):
    with pytest.raises(kind, match=text):
        call()


def test_pjit():
    sharding = OURS.named("x4y2", "x")
    result = pjit(lambda x, n: x * n, (sharding,), sharding, static_argnums=1)(np.ones((8, 2)), 3)
    assert result.sharding == sharding
    np.testing.assert_array_equal(result, np.full((8, 2), 3))
