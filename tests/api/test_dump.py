"""``jax_dump_ir_to``: each compilation's jaxpr, StableHLO and optimised HLO in files."""

import os
import subprocess
import sys
import warnings

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.architecture.source_tree import ROOT
from xtrace.core import config

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
