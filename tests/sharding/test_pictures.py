"""Pictures of shardings, and looking at those of values inside of programs."""

import numpy as np
import pytest

import xtrace
from tests.sharding.meshes import OURS, THEIRS
from tests.sharding.test_arrays import MATRIX

NAMED = [
    ((16, 8), ("x", "y"), {}), ((16, 8), ("x",), {}), ((16, 8), (), {}), ((16, 8), (None, "y"), {}),
    ((16, 8), (("x", "y"),), {}), ((16, 8), ("y", "x"), {}), ((64, 128), ("y", "x"), {}), ((256, 8), ("x",), {}),
    ((16, 8), ("x", "y"), {"scale": 2.0}), ((16, 8), ("x", "y"), {"min_width": 14}), ((4, 6), ("x", "y"), {}),
    ((16,), ("x",), {}), ((16,), (), {}), ((64,), (("x", "y"),), {"min_width": 4}), ((8,), ("y",), {"scale": 7.0}),
    ((10, 10), (None, "y"), {"scale": 0.5}), ((1, 2), (), {"max_width": 30}), ((8, 8), ("x",), {"max_width": 15}),
]


@pytest.mark.parametrize(("shape", "spec", "options"), NAMED)
def test_pictures(shape, spec, options, capsys):
    texts = []
    for lib in (OURS, THEIRS):
        lib.module.debug.visualize_sharding(shape, lib.named("x4y2", *spec), use_color=False, **options)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


@pytest.mark.parametrize(("shape", "scale"), [((1,), 1), ((3,), 3), ((1, 1), 1), ((2, 3), 1), ((5, 7), 1.3)])
def test_one_device(shape, scale, capsys):
    texts = []
    for lib in (OURS, THEIRS):
        array = lib.put(np.zeros(shape), lib.devices[3])
        lib.module.debug.visualize_array_sharding(array, use_color=False, scale=scale)
        texts.append(capsys.readouterr().out)
    assert texts[0] == texts[1]


def test_narrow_pictures_keep_the_names_of_devices(capsys):
    xtrace.debug.visualize_sharding((8, 256), OURS.named("x4y2", "y", "x"))
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 80
    assert all(f"CPU {i}" in "".join(lines) for i in range(8))


def test_colours(capsys):
    xtrace.debug.visualize_sharding((16, 8), OURS.named("x4y2", "x", "y"), color_map=lambda number: (number, 0, 0, 1))
    colored = capsys.readouterr().out
    xtrace.debug.visualize_sharding((16, 8), OURS.named("x4y2", "x", "y"), use_color=False)
    # Not in a file.
    assert colored == capsys.readouterr().out


def test_notebooks_show_pictures():
    shown = OURS.named("x4y2", None, ("y", "x"))._repr_html_()
    assert [f"CPU {i}<" in shown for i in range(8)] == [True] * 8
    assert "NamedSharding(mesh=" in shown and shown.count("<tr>") == 1
    assert OURS.put(MATRIX, OURS.devices[2]).sharding._repr_html_().count("CPU 2") == 1
    abstract = xtrace.NamedSharding(OURS.mesh("x8").abstract_mesh, xtrace.P("x"))
    assert abstract._repr_html_() is None


def inspected(value):
    def function(lib, seen):
        def look(x):
            lib.module.debug.inspect_array_sharding(value(lib, x), callback=lambda s: seen.append(repr(s)))
            return x * 3

        return look

    return function


LOOKS = {
    "eager": lambda lib, look, x: look(x),
    "jit": lambda lib, look, x: lib.jit(look)(x),
    "vmap": lambda lib, look, x: lib.module.vmap(look)(x),
    "vmap of jit": lambda lib, look, x: lib.jit(lib.module.vmap(look))(x),
    "grad": lambda lib, look, x: lib.jit(lib.module.grad(lambda x: look(x).sum()))(x),
    "eager grad": lambda lib, look, x: lib.module.grad(lambda x: look(x).sum())(x),
    "scan": lambda lib, look, x: lib.jit(lambda x: lib.lax.scan(lambda c, _: (look(c), None), x, None, length=2))(x),
    "compile": lambda lib, look, x: lib.jit(look).lower(x).compile(),
    "twice": lambda lib, look, x: [f(y) for f in [lib.jit(look)] for y in (x, x, lib.put(x, lib.named("x4y2", "y")))],
}


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("spec", [("x",), (None, "y"), ()])
@pytest.mark.parametrize("name", LOOKS)
def test_looking_at_shardings(name, spec):
    found = []
    for lib in (OURS, THEIRS):
        seen = []
        LOOKS[name](lib, inspected(lambda lib, x: x * 2)(lib, seen), lib.put(MATRIX, lib.named("x4y2", *spec)))
        found.append(seen)
    assert found[0] == found[1] and found[0]


@pytest.mark.parametrize("value", [lambda lib, x: x @ x.T, lambda lib, x: x[0], lambda lib, x: x.T, lambda lib, x: {}])
def test_values_inside_of_programs(value):
    found = []
    for lib in (OURS, THEIRS):
        seen = []
        lib.jit(inspected(value)(lib, seen))(lib.put(MATRIX, lib.named("x4y2", "x", "y")))
        found.append(seen)
    assert found[0] == found[1]


def test_pictures_inside_of_programs(capsys):
    def show(x):
        xtrace.debug.visualize_array_sharding(x.T)
        return x

    xtrace.jit(show)(OURS.put(MATRIX, OURS.named("x4y2", "x", "y")))
    assert capsys.readouterr().out.splitlines()[2] == "│  CPU 0   │  CPU 2   │  CPU 4   │  CPU 6   │"
    xtrace.jit(show)(MATRIX)
    assert "CPU 0" in capsys.readouterr().out


def test_one_device_is_seen_when_the_program_is_lowered():
    seen = []
    xtrace.jit(inspected(lambda lib, x: x)(OURS, seen))(MATRIX)
    assert seen == [repr(xtrace.sharding.SingleDeviceSharding(OURS.devices[0]))]


def fail(sharding):
    raise KeyError("mine")


BAD = [
    (lambda: xtrace.debug.visualize_sharding((2, 2, 2), OURS.named("x8")), ValueError, r"one or two axes.*\(2, 2, 2\)"),
    (lambda: xtrace.debug.visualize_sharding((), OURS.named("x8")), ValueError, "one or two axes"),
    (lambda: xtrace.debug.visualize_sharding((7,), OURS.named("x8", "x")), ValueError, "partitioned 8 times"),
    (lambda: xtrace.debug.visualize_array_sharding(MATRIX), TypeError, "must be arrays on devices"),
    (lambda: xtrace.debug.visualize_array_sharding(xtrace.numpy.ones(2), zoom=2), TypeError, "zoom"),
    (lambda: xtrace.debug.inspect_array_sharding(xtrace.numpy.ones(2), callback=3), TypeError, "must be a function"),
    (lambda: xtrace.debug.inspect_array_sharding(xtrace.numpy.ones(2), callback=fail), KeyError, "mine"),
    (lambda: xtrace.jit(lambda x: (xtrace.debug.inspect_array_sharding(x, callback=fail), x)[1])(
        OURS.put(MATRIX, OURS.named("x4y2", "x"))), xtrace.errors.JaxRuntimeError, "mine"),
]


@pytest.mark.parametrize(("call", "kind", "text"), BAD)
def test_bad_input(call, kind, text):
    with pytest.raises(kind, match=text):
        call()
