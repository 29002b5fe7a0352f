"""Whether programs fit devices that are not here, with the compilers of these devices."""

from __future__ import annotations

import importlib.util

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace._src.xla.hlo.lifetimes import TEMPORARY

_HERE = all(importlib.util.find_spec(name) for name in ("libtpu", "jax_plugins"))
needs_extra = pytest.mark.skipif(not _HERE, reason="the compilers of the extra `aot` are not installed")


def loss(params, x):
    for w in params:
        x = jnp.tanh(x @ w)
    return (x * x).sum()


@needs_extra
@pytest.mark.aot
@pytest.mark.slow
@pytest.mark.parametrize(("target", "kind"), [("h200", "NVIDIA H200"), ("tpu-v5e", "TPU v5 lite")])
def test_the_report_of_a_target(target: str, kind: str) -> None:
    params, x = [np.ones((512, 512), np.float32)] * 6, np.ones((4096, 512), np.float32)
    compiled = xtrace.lower(xtrace.value_and_grad(loss), params, x).compile(target=target)
    report = compiled.memory_analysis()
    assert report.device == kind and report.fits() and compiled.fits()
    sizes = {b.name: b.size for b in report.buffers if b.kind == "argument"}
    assert sizes["params[3]"] == 4 * 512 * 512 and sum(sizes.values()) == report.memory.arguments
    temporaries = sum(b.size for b in report.buffers if b.at_peak and b.kind == TEMPORARY)
    # The assignment of memory is not known there.
    assert temporaries == pytest.approx(report.memory.temporaries, rel=0.05, abs=1 << 20)
    # The same, asked of a program that is compiled for the device at hand.
    answer = xtrace.memory(xtrace.value_and_grad(loss), params, x).fits(target)
    assert answer and answer.needed == report.peak and not answer.note


@needs_extra
@pytest.mark.aot
@pytest.mark.slow
def test_a_compiler_that_finds_no_room() -> None:
    huge = xtrace.ShapeDtypeStruct((1 << 16, 1 << 16), np.float32)
    lowered = xtrace.lower(lambda x: jnp.sort(x @ x, axis=0), huge)
    with pytest.raises(RuntimeError, match="RESOURCE_EXHAUSTED") as caught:
        lowered.compile(target="tpu-v5e")
    assert any("largest arrays when memory is fullest" in note for note in caught.value.__notes__)
    answer = xtrace.memory(lambda x: jnp.sort(x @ x, axis=0), huge).fits("tpu-v5e")
    assert not answer and answer.needed > 32 << 30 and "found no room" in str(answer)
