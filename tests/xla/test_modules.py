"""Parsing, verification and the portable form of StableHLO modules, in a process that has jax and never imports it."""

import re
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jaxlib.mlir import ir
from jaxlib.mlir._mlir_libs import _stablehlo

from xtrace._src.xla.mlir import modules
from xtrace._src.xla.mlir.modules import InvalidModuleError

ROOT = Path(__file__).parents[2]

ADD = """module @jit_f {
  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = stablehlo.add %a, %a : tensor<2xf32>
    return %0 : tensor<2xf32>
  }
}
"""
OF_DIALECT = {
    "stablehlo": ADD,
    "chlo": ADD.replace("stablehlo.add %a, %a : tensor<2xf32>", "chlo.erf %a : tensor<2xf32> -> tensor<2xf32>"),
    "mhlo": ADD.replace("stablehlo.add %a, %a", "mhlo.erf %a"),
    "arith": ADD.replace("stablehlo.add", "arith.addf"),
    "sdy": ADD.replace("  func", '  sdy.mesh @mesh = <["x"=2]>\n  func', 1).replace(
        "%a: tensor<2xf32>", '%a: tensor<2xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}]>}'
    ),
}
LOCATED = """module {
  func.func public @main(%a: tensor<2xf32>) -> tensor<2xf32> {
    %0 = "stablehlo.transpose"(%a) {permutation = array<i64: 3>} : (tensor<2xf32>) -> tensor<2xf32> loc(#loc2)
    return %0 : tensor<2xf32> loc(#loc1)
  } loc(#loc)
} loc(#loc)
#loc = loc(unknown)
#loc1 = loc("model.py":7:4)
#loc2 = loc("transpose"("model.py":33:8))
"""


@pytest.mark.parametrize("dialect", OF_DIALECT)
def test_dialects_parse_and_print_to_a_fixed_point(dialect):
    module = modules.parse(OF_DIALECT[dialect])
    printed = modules.write_text(module)
    assert f"{dialect}." in printed
    assert modules.write_text(modules.parse(printed)) == printed


def test_bytes_are_text_too():
    assert modules.write_text(modules.parse(ADD.encode())) == modules.write_text(modules.parse(ADD))


def test_text_of_shows_locations_on_request():
    module = modules.parse(LOCATED.replace("i64: 3", "i64: 0"))
    assert "model.py" not in modules.write_text(module)
    assert '"model.py":33:8' in modules.write_text(module, debug_info=True)


@pytest.mark.parametrize(
    ("text", "line", "column", "source", "message"),
    [
        (
            ADD.replace("-> tensor<2xf32>", "-> tensor<3xf32>"),
            4, 5, "    return %0 : tensor<2xf32>",
            "type of return operand 0 ('tensor<2xf32>') doesn't match function result type ('tensor<3xf32>')",
        ),
        (ADD.replace(".add", ".plus"), 3, 10, None, "custom op 'stablehlo.plus' is unknown"),
        (ADD.replace("%a, %a", "%a, %b"), 3, 28, None, "use of undeclared SSA value name"),
        (ADD.replace("add %a, %a :", "concatenate %a, dim = 1 :"), 3, None, None, "concatenate"),
        ("no module at all", 1, 1, "no module at all", "custom op 'no' is unknown"),
        (ADD[:80], None, None, None, "invalid module: "),
    ],
    ids=["verifier", "operation", "operand", "attribute", "nonsense", "truncated"],
)
def test_an_invalid_module_is_reported_with_its_line(text, line, column, source, message, capfd):
    with pytest.raises(InvalidModuleError, match=re.escape(message)) as caught:
        modules.verify(text)
    error = caught.value
    assert isinstance(error, ValueError)
    assert error.diagnostics
    if line is not None:
        assert error.line == line
        assert error.source == text.split("\n")[line - 1]
        assert f"  line {line}: {error.source.strip()}" in str(error)
    if column is not None:
        assert error.column == column
    if source is not None:
        assert error.source == source
    assert capfd.readouterr() == ("", "")


def test_the_caret_is_below_the_column():
    with pytest.raises(InvalidModuleError) as caught:
        modules.verify(ADD.replace("%a, %a", "%a, %b"))
    _, quoted, caret = str(caught.value).split("\n")[:3]
    assert quoted[caret.index("^") :].startswith("%b :")


def test_an_operation_with_a_location_is_reported_by_both():
    with pytest.raises(InvalidModuleError) as caught:
        modules.verify(LOCATED)
    error, text = caught.value, str(caught.value)
    assert "(from model.py:33)" in text
    assert error.line == 3
    assert '"stablehlo.transpose"(%a)' in error.source
    assert "see current operation" in text


def test_long_lines_are_cut_around_the_column():
    with pytest.raises(InvalidModuleError) as caught:
        modules.verify(ADD.replace("add %a, %a", f"constant dense<[{'1.0, ' * 3000}oops]>"))
    assert caught.value.line == 3
    assert "oops" in str(caught.value)
    assert len(str(caught.value)) < 2000


def test_a_note_of_a_whole_operation_is_cut():
    values = ", ".join(map(str, range(3000)))
    with pytest.raises(InvalidModuleError) as caught:
        modules.verify(f"module {{\n %0 = stablehlo.constant dense<[{values}]> : tensor<3001xi32>\n}}")
    assert len(str(caught.value)) < 2000


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (ADD + "\0", "null character"),
        (b"\xff\xfe", "not UTF-8"),
        ("module {\n" * 5000 + "}" * 5000, "nested more than 1000 deep"),
        ("module attributes {a = " + "[" * 50000 + "]" * 50000 + "} {}", "nested more than 1000 deep"),
        ("module { func.func private @f(tensor<2x" + "tuple<" * 200000 + "f32" + ">" * 200000 + ") }", "nested"),
    ],
    ids=["null", "encoding", "regions", "attributes", "types"],
)
def test_text_that_would_mislead_or_kill_the_parser_is_refused(text, message):
    with pytest.raises(InvalidModuleError, match=message):
        modules.parse(text)


def test_many_braces_side_by_side_are_no_nesting():
    modules.verify("module {" + "module {}\n" * 3000 + "}")


@pytest.mark.parametrize("wrong", [None, 3, ["module {}"], object()])
def test_only_text_is_parsed(wrong):
    with pytest.raises(TypeError, match="a module is given as text, not as"):
        modules.parse(wrong)
    with pytest.raises(TypeError, match=r"not (NoneType|int|list|object)"):
        modules.write_text(wrong)


@given(
    st.lists(
        st.tuples(st.integers(0, len(ADD) - 1), st.sampled_from(["", *'{}()<>[]%@#"=,:x0 \n\xe9']), st.booleans()),
        min_size=1,
        max_size=4,
    )
)
def test_damaged_text_is_a_module_or_an_error(edits):
    text = ADD
    for at, new, replace in edits:
        text = text[:at] + new + text[at + replace :]
    try:
        assert isinstance(modules.parse(text), ir.Module)
    except InvalidModuleError as error:
        assert error.line is None or 1 <= error.line <= text.count("\n") + 1


def test_threads_get_their_own_errors():
    found = {}

    def check(number):
        bad = ADD.replace("stablehlo.add", f"stablehlo.op{number}")
        for _ in range(20):
            modules.verify(ADD)
            try:
                modules.verify(bad)
            except InvalidModuleError as error:
                found.setdefault(number, set()).add(error.diagnostics)

    threads = [threading.Thread(target=check, args=(n,)) for n in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == {n: {(f"custom op 'stablehlo.op{n}' is unknown",)} for n in range(8)}


def test_a_module_outlives_the_others_and_shares_their_context():
    first, second = modules.parse(ADD), modules.parse(ADD)
    assert first.context == second.context == modules.context()
    del second
    assert "stablehlo.add" in modules.write_text(first)


def read_back(artifact):
    return modules.write_text(_stablehlo.deserialize_portable_artifact(modules.context(), artifact))


@pytest.mark.parametrize("given_as", [str, str.encode, modules.parse], ids=["str", "bytes", "module"])
def test_portable_artifact_reads_back(given_as):
    artifact = modules.serialize(given_as(ADD))
    assert artifact.startswith(b"ML\xefR")
    assert read_back(artifact) == modules.write_text(modules.parse(ADD))


def test_portable_artifact_of_an_older_version():
    assert b"StableHLO_v1.0.0" in modules.serialize(ADD, "1.0.0")
    assert b"StableHLO_v" + modules.current_version().encode() in modules.serialize(ADD)


def test_chlo_is_expanded_in_a_copy():
    module = modules.parse(OF_DIALECT["chlo"])
    text = read_back(modules.serialize(module))
    assert "chlo." not in text
    assert "stablehlo." in text
    assert "chlo.erf" in modules.write_text(module)


@pytest.mark.parametrize(
    ("text", "version", "message"),
    [
        (ADD, "99.0.0", "target version 99.0.0 is greater than current version"),
        (ADD, "newest", "Invalid target version argument 'newest'"),
        (OF_DIALECT["arith"], None, "failed to legalize"),
        ("module {", None, "invalid module"),
    ],
    ids=["newer", "malformed", "dialect", "text"],
)
def test_no_portable_artifact(text, version, message, capfd):
    with pytest.raises(ValueError, match=message):
        modules.serialize(text, version)
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize("name", ["mlir.modules", "plugins.plugins", "plugins.absent_devices", "versions"])
def test_nothing_here_imports_jax(name):
    code = (
        "import importlib, importlib.util, sys\n"
        f"module = importlib.import_module('xtrace._src.xla.{name}')\n"
        "getattr(module, 'available_platforms', list)()\n"
        f"if '{name}' == 'mlir.modules': module.serialize({ADD!r})\n"
        "loaded = sorted(m for m in sys.modules if m.partition('.')[0] in ('jax', 'jax_plugins', 'libtpu'))\n"
        "assert not loaded, loaded\n"
        "print('jaxlib.mlir.ir' in sys.modules, 'importlib.metadata' in sys.modules)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [str(name in ("mlir.modules", "plugins.absent_devices")), "False"]
