"""``jax_dump_ir_to``: each compilation's jaxpr, StableHLO and optimised HLO in files."""

import gzip
import os
import subprocess
import sys
import warnings

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.architecture.source_tree import ROOT
from xtrace._src.core.settings import config

X = np.ones(3, np.float32)


def test_each_compilation_is_written(tmp_path):
    def function(x):
        with xtrace.named_scope("outer"):
            return jnp.sin(x) * 2

    folder = tmp_path / "deeper" / "still"
    with config.dump_ir_to(folder):
        jitted = xtrace.jit(function)
        jitted(X), jitted(X), jitted(X[:2])
        jitted.lower(X).compile()
    names = sorted(os.listdir(folder))
    assert len(names) == 9 and len({n.split("_jit_")[0] for n in names}) == 3
    first = [folder / n for n in names[:3]]
    assert [n.name.split("_jit_function")[1] for n in first] == [".hlo.txt", ".jaxpr.txt", ".mlir"]
    hlo, jaxpr, module = [path.read_text() for path in first]
    line = function.__code__.co_firstlineno + 2
    assert f"sin a # {__file__}:{line} (function) [outer]" in " ".join(jaxpr.split())
    assert jaxpr.startswith("{ lambda ; a:f32[3]. let\n") and jaxpr.endswith("in (c,) }\n")
    assert module.startswith("module @jit_function")
    assert f'"jit(function)/outer/sin"("function"("{__file__}":{line}:' in module
    assert hlo.startswith("HloModule jit_function") and 'op_name="jit(function)/outer/sin"' in hlo


def test_modes_choose_what_is_written(tmp_path):
    with config.dump_ir_to(str(tmp_path)), config.dump_ir_modes("jaxpr, hlo"):
        xtrace.jit(lambda x: x + 1)(X)
    assert sorted(n.split(".", 1)[1] for n in os.listdir(tmp_path)) == ["hlo.txt", "jaxpr.txt"]
    with pytest.raises(ValueError, match=r"jax_dump_ir_modes: the setting accepts 'jaxpr', 'stablehlo', 'hlo'.*'mlir'"):
        xtrace.config.update("jax_dump_ir_modes", "mlir")


def read_varint(data, at):
    found, shift = 0, 0
    while True:
        found |= (data[at] & 127) << shift
        at, shift = at + 1, shift + 7
        if data[at - 1] < 128:
            return found, at


def fields(data):
    """The numbered fields of a message of protobuf: integers and bytes."""
    found, at = [], 0
    while at < len(data):
        tag, at = read_varint(data, at)
        value, at = read_varint(data, at)
        if tag & 7 == 2:
            value, at = data[at : at + value], at + value
        found.append((tag >> 3, value))
    return found


def packed(data):
    found, at = [], 0
    while at < len(data):
        value, at = read_varint(data, at)
        found.append(value)
    return found


def samples(path):
    """The counts of a profile of equations, by primitive and lines of this file, innermost first."""
    profile = fields(gzip.decompress(path.read_bytes()))
    texts = [value.decode() for field, value in profile if field == 6]
    kind = dict(fields(next(v for f, v in profile if f == 1)))
    assert texts[0] == "" and (texts[kind[1]], texts[kind[2]]) == ("equations", "count")
    assert len([texts[packed(v)[0]] for f, v in profile if f == 13]) == 1, "the program's name is the comment"
    functions = {(one := dict(fields(v)))[1]: texts[one[4]] for f, v in profile if f == 5}
    lines = {(one := dict(fields(v)))[1]: dict(fields(one[4])) for f, v in profile if f == 4}
    found = {}
    for sample in (dict(fields(v)) for f, v in profile if f == 2):
        label = dict(fields(sample[3]))
        assert texts[label[1]] == "primitive"
        places = [lines[i][2] for i in packed(sample[1]) if functions[lines[i][1]] == __file__]
        key = texts[label[2]], places[0]
        found[key] = found.get(key, 0) + packed(sample[2])[0]
    return found


def dumped(package, function, folder, **settings):
    """The file that one compilation of the function writes."""
    names = {"dump_ir_to": str(folder), **settings}
    before = {name: package.config.values[f"jax_{name}"] for name in names}
    x = package.numpy.ones(3)
    try:
        for name, value in names.items():
            package.config.update(f"jax_{name}", value)
        package.jit(function(package)).lower(x).compile()
    finally:
        for name, value in before.items():
            package.config.update(f"jax_{name}", value)
    (name,) = os.listdir(folder)
    return folder / name


def of_equations(package):
    numpy, called = package.numpy, package.jit(lambda x: package.numpy.exp(x))

    def function(x):
        for _ in range(150):
            x = numpy.sin(x) * 2
        return package.lax.scan(lambda c, _: (numpy.cos(c), c), called(x) + called(x), None, length=2)

    return function


def test_profiles_count_equations_by_line_and_primitive_as_in_jax(tmp_path):
    found = []
    for package in (xtrace, jax):
        folder = tmp_path / package.__name__
        folder.mkdir()
        path = dumped(package, of_equations, folder, dump_ir_modes="eqn_count_pprof")
        assert path.name.endswith("function.eqn_count_pprof")
        found.append(samples(path))
    assert found[0] == found[1]
    assert sorted(found[0].values())[-2:] == [150, 150]


def test_pages_show_equations_beside_their_lines(tmp_path):
    def function(package):
        return lambda x: package.numpy.where(x < 3, x, 2)

    paths = []
    for package in (xtrace, jax):
        folder = tmp_path / package.__name__
        folder.mkdir()
        paths.append(dumped(package, function, folder, dump_ir_modes="jaxpr_html",
                            source_url_schema="https://code.example{file}?a&line={line}"))
        assert paths[-1].name.endswith(".jaxpr.html")
    page = paths[0].read_text()
    line = function.__code__.co_firstlineno + 1
    assert "= lt a 3.0" in page and "lambda ; a:f32[3]. let" in page
    link = f'<a href="https://code.example{__file__}?a&amp;line={line}">{__file__}:{line} (&lt;lambda&gt;)</a>'
    assert page.count(link) >= 2 and "<lambda>" not in page


def test_eager_operations_are_compilations(tmp_path):
    xtrace.clear_caches()
    with config.dump_ir_to(str(tmp_path)):
        xtrace.lax.tan(X)
    assert any("_jit_tan.mlir" in n for n in os.listdir(tmp_path))


def test_a_folder_that_cannot_be_written_to_costs_a_warning_only(tmp_path):
    file = tmp_path / "file"
    file.write_text("")
    with config.dump_ir_to(str(file / "below")), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert xtrace.jit(lambda x: x * 3)(X).tolist() == [3, 3, 3]
    assert len(caught) == 3 and "XTRACE_DUMP_IR_TO" in str(caught[0].message) and caught[0].filename == __file__


@pytest.mark.slow
def test_the_environment_names_the_folder(tmp_path):
    code = "import xtrace, xtrace.numpy as jnp; xtrace.jit(lambda x: x + 1)(1.0)"
    for variable in ("XTRACE_DUMP_IR_TO", "JAX_DUMP_IR_TO"):
        folder = tmp_path / variable
        environment = os.environ | {variable: str(folder)}
        subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=environment, check=True, timeout=60)
        assert len(os.listdir(folder)) >= 3
