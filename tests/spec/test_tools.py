"""Spec section 7: the tools that the seeds name, without those that call Python (``test_callbacks.py``)."""

import os

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import profiler
from xtrace._src.core.settings import config

X = np.arange(4, dtype=np.float32)


def selu(x, alpha=1.67, lmbda=1.05):
    return lmbda * jnp.where(x > 0, x, alpha * jnp.exp(x) - alpha)


def test_a_way_to_dump_the_ir(tmp_path):
    with config.dump_ir_to(tmp_path):
        xtrace.jit(selu)(X)
    found = {name.split("_selu")[1]: (tmp_path / name).read_text() for name in os.listdir(tmp_path)}
    assert found.keys() == {".jaxpr.txt", ".mlir", ".hlo.txt"}
    assert "exp" in found[".jaxpr.txt"] and "stablehlo.exponential" in found[".mlir"]
    assert found[".hlo.txt"].startswith("HloModule jit_selu")


def test_the_ir_at_each_stage():
    lowered = xtrace.jit(selu).lower(X)
    assert f"{__file__}:{selu.__code__.co_firstlineno + 1} (selu)" in xtrace.make_jaxpr(selu)(X).pretty_print(
        source_info=True
    )
    assert "stablehlo.exponential" in lowered.as_text() and "loc(" not in lowered.as_text()
    assert f'"{__file__}":{selu.__code__.co_firstlineno + 1}:' in lowered.as_text(debug_info=True)
    assert lowered.compile().as_text().startswith("HloModule jit_selu")


def test_tensorboard_readable_profiles(tmp_path):
    with profiler.trace(tmp_path), profiler.TraceAnnotation("selu"):
        xtrace.jit(selu)(X).block_until_ready()
    (run,) = (tmp_path / "plugins" / "profile").iterdir()
    # What the plugin of TensorBoard looks for: HOST.xplane.pb in a folder for each run.
    (file,) = run.glob("*.xplane.pb")
    theirs = jax.profiler.ProfileData.from_file(str(file))
    assert {"/host:CPU", "/host:metadata"} <= {plane.name for plane in theirs.planes}


def test_leaked_tracers_are_found():
    kept = []
    with pytest.raises(xtrace.errors.UnexpectedTracerError), xtrace.checking_leaks():
        xtrace.jit(lambda x: kept.append(x) or x)(X)
