"""Compiling for devices that are not there; the compilers themselves come with the extra ``aot``."""

import json
import re
import subprocess
import sys
import threading
import types
from pathlib import Path

import pytest

import xtrace
from xtrace._src.xla import clients
from xtrace._src.xla.mlir import modules
from xtrace._src.xla.plugins import absent_devices, plugins

ROOT = Path(__file__).parents[2]
TARGETS = ["a100", "h100", "h200", "tpu-v4", "tpu-v5e", "tpu-v5p", "tpu-v6e"]
KINDS = {
    "a100": "NVIDIA A100-SXM4-80GB", "h100": "NVIDIA H100 80GB HBM3", "h200": "NVIDIA H200",
    "tpu-v4": "TPU v4", "tpu-v5e": "TPU v5 lite", "tpu-v5p": "TPU v5", "tpu-v6e": "TPU v6 lite",
}

MATMUL = """module @jit_matmul {
  func.func public @main(%a: tensor<1024x1024xf32>, %b: tensor<1024x1024xf32>) -> tensor<1024x1024xf32> {
    %0 = stablehlo.dot_general %a, %b, contracting_dims = [1] x [0]
      : (tensor<1024x1024xf32>, tensor<1024x1024xf32>) -> tensor<1024x1024xf32>
    return %0 : tensor<1024x1024xf32>
  }
}
"""
ELEMENTWISE = """module @jit_elementwise {
  func.func public @main(%a: tensor<64x128xf32>, %b: tensor<64x128xf32>) -> tensor<64x128xf32> {
    %0 = stablehlo.add %a, %b : tensor<64x128xf32>
    %1 = stablehlo.tanh %0 : tensor<64x128xf32>
    %2 = chlo.erf %1 : tensor<64x128xf32> -> tensor<64x128xf32>
    return %2 : tensor<64x128xf32>
  }
}
"""
CONVOLUTION = """module @jit_convolution {
  func.func public @main(%a: tensor<8x32x32x16xf32>, %k: tensor<3x3x16x32xf32>) -> tensor<8x30x30x32xf32> {
    %0 = stablehlo.convolution(%a, %k) dim_numbers = [b, 0, 1, f]x[0, 1, i, o]->[b, 0, 1, f],
      window = {stride = [1, 1], pad = [[0, 0], [0, 0]]} {batch_group_count = 1 : i64, feature_group_count = 1 : i64}
      : (tensor<8x32x32x16xf32>, tensor<3x3x16x32xf32>) -> tensor<8x30x30x32xf32>
    return %0 : tensor<8x30x30x32xf32>
  }
}
"""
SHARDED = """module @jit_sum {
  sdy.mesh @mesh = <["x"=4]>
  func.func public @main(%a: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}) -> tensor<f32> {
    %c = stablehlo.constant dense<0.0> : tensor<f32>
    %0 = stablehlo.reduce(%a init: %c) applies stablehlo.add across dimensions = [0, 1]
      : (tensor<16x8xf32>, tensor<f32>) -> tensor<f32>
    return %0 : tensor<f32>
  }
}
"""

MISSING = [
    name
    for name, found in (
        ("libtpu", plugins.find_library("tpu")),
        ("jax-cuda12-pjrt", plugins.find_library("cuda")),
        ("nvidia-cuda-nvcc-cu12", plugins.cuda_data_directory()),
    )
    if found is None
]
needs_compilers = pytest.mark.skipif(
    bool(MISSING), reason=f"the extra aot is not installed: no {', '.join(MISSING)}; .ci/aot runs this"
)


def is_matmul(flops, size):
    """Whether so many operations multiply square matrices: the compiler may add up as many as 64 partial products."""
    return 2 * size**3 <= flops <= 2 * size**3 + 64 * size**2


def test_targets_are_listed():
    assert list(absent_devices.TARGETS) == TARGETS


@pytest.mark.parametrize("target", [*TARGETS, " TPU-V5e:2x2 ", "h200:8"])
def test_platform_of(target):
    assert absent_devices.get_platform(target) == ("tpu" if "tpu" in target.lower() else "cuda")


@pytest.mark.parametrize("target", ["", "tpu", "tpu-v9", "gpu", "h20", "v5e", "cpu", "tpu-v5e-4", ":2x2"])
def test_an_unknown_target_is_answered_with_the_known_ones(target):
    with pytest.raises(ValueError, match=re.escape(f"unknown target {target!r}")) as caught:
        absent_devices.compile_only_device(target)
    assert all(known in str(caught.value) for known in TARGETS)


TOPOLOGIES = ["", "0", "0x0", "2x", "x2", "-1x2", "2,2", "2 2", "2x2x2x2", "1e3", "٢x٢", "99999x99999", "2x2_twisted"]


@pytest.mark.parametrize("topology", TOPOLOGIES)
@pytest.mark.parametrize("name", ["h200", "tpu-v4", "tpu-v5e"])
def test_a_malformed_topology_is_an_error(name, topology):
    with pytest.raises(ValueError, match=re.escape(f"the target '{name}:{topology}' has no topology")) as caught:
        absent_devices.compile_only_device(f"{name}:{topology}")
    assert f"write {name}:" in str(caught.value)


@pytest.mark.parametrize("target", ["tpu-v5e:2x2x2", "tpu-v5e:4", "tpu-v4:2x2", "h200:1x2x4"])
def test_a_topology_has_the_rank_of_its_target(target):
    with pytest.raises(ValueError, match="has no topology"):
        absent_devices.get_platform(target)


@pytest.mark.parametrize("target", [None, 3, ["h200"], b"h200"])
def test_a_target_is_a_string(target):
    with pytest.raises(TypeError, match="a target is a string such as 'tpu-v5e', not"):
        absent_devices.compile_only_device(target)


@pytest.mark.parametrize("target", TARGETS)
def test_without_the_extra_the_error_names_the_one_command(target, monkeypatch):
    monkeypatch.setattr(absent_devices, "_topologies", {})
    monkeypatch.setattr(plugins, "find_library", lambda platform: None)
    with pytest.raises(ImportError) as caught:
        absent_devices.compile_only_device(target)
    command = "pip install 'xtrace[aot]'"
    assert str(caught.value) == f"compiling for {target} needs a compiler that is not installed: {command}"


def test_a_cuda_plugin_without_ptxas_is_answered_with_the_command(monkeypatch):
    monkeypatch.setattr(absent_devices, "_topologies", {})
    monkeypatch.setattr(plugins, "find_library", lambda platform: "xla_cuda_plugin.so")
    monkeypatch.setattr(plugins, "cuda_data_directory", lambda: None)
    monkeypatch.setattr(absent_devices.shutil, "which", lambda name: None)
    monkeypatch.setattr(absent_devices.os.path, "isfile", lambda path: False)
    with pytest.raises(ImportError, match=re.escape("needs ptxas and libdevice: pip install 'xtrace[aot]'")):
        absent_devices.compile_only_device("h200")


@pytest.mark.parametrize("devices", [None, [], (), 3, "h200", [object()]])
def test_devices_are_devices(devices):
    with pytest.raises(TypeError, match="devices are what compile_only_devices returns"):
        absent_devices.compile(ELEMENTWISE, devices)


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("target", TARGETS)
def test_a_target_alone_is_one_chip(target):
    (device,) = absent_devices.compile_only_devices(target)
    assert absent_devices.compile_only_device(target) is device
    assert (device.device_kind, device.platform) == (KINDS[target], "tpu" if "tpu" in target else "gpu")
    assert "tpu" in target or (device.compute_capability, device.core_count) == (
        ("8.0", 108) if target == "a100" else ("9.0", 132)
    )


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize(
    ("target", "count"),
    [
        ("tpu-v5e:2x2", 4), ("tpu-v5e:2x2x1", 4), ("tpu-v5e:1x2", 2), ("tpu-v5e:2x4", 8), ("tpu-v5e:16x16", 256),
        ("tpu-v4:2x2x1", 4), ("tpu-v4:2x2x4", 16), ("tpu-v5p:1x2x1", 2), ("tpu-v5p:4x4x4", 64), ("tpu-v6e:4x4", 16),
        ("h200:8", 8), ("h200:2x8", 16), ("a100:1x1", 1),
    ],
)
def test_a_topology_has_a_device_for_each_chip(target, count):
    devices = absent_devices.compile_only_devices(target)
    assert len(devices) == len({device.id for device in devices}) == count


@needs_compilers
@pytest.mark.aot
def test_a_topology_the_compiler_refuses():
    with pytest.raises(ValueError, match="the compiler has no such topology of tpu-v5e: INVALID_ARGUMENT"):
        absent_devices.compile_only_devices("tpu-v5e:3x3")


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("given_as", [str, str.encode, modules.parse], ids=["str", "bytes", "module"])
def test_matmul_compiles_however_it_is_given(given_as):
    executable = absent_devices.compile(given_as(MATMUL), absent_devices.compile_only_device("tpu-v5e"))
    assert "is_scheduled=true" in executable.hlo_modules()[0].to_string()


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("target", TARGETS)
def test_matmul_and_elementwise(target):
    device = absent_devices.compile_only_device(target)
    matmul = absent_devices.compile(MATMUL, device)
    (module,) = matmul.hlo_modules()
    assert module.name == "jit_matmul"
    assert "f32[1024,1024]" in module.to_string()
    costs = matmul.cost_analysis()
    assert is_matmul(costs["flops"], 1024)
    assert costs["bytes accessed"] >= 3 * 4 * 1024**2
    memory = matmul.get_compiled_memory_stats()
    assert memory.argument_size_in_bytes == 2 * 4 * 1024**2
    assert memory.output_size_in_bytes == 4 * 1024**2

    elementwise = absent_devices.compile(ELEMENTWISE, device)
    costs = elementwise.cost_analysis()
    assert costs["flops"] == 64 * 128
    assert costs["transcendentals"] == 2 * 64 * 128
    # One fusion reads both arguments once and writes the result.
    assert costs["bytes accessed"] == 3 * 4 * 64 * 128
    assert elementwise.get_compiled_memory_stats().temp_size_in_bytes == 0
    assert elementwise.target == KINDS[target]


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("target", ["h200", "tpu-v5e"])
def test_what_a_library_computes_is_counted(target):
    costs = absent_devices.compile(CONVOLUTION, absent_devices.compile_only_device(target)).cost_analysis()
    # Two operations for each product of the 3x3 window over 16 channels; a TPU's compiler may pad.
    assert costs["flops"] >= 2 * (8 * 30 * 30 * 32) * (3 * 3 * 16)
    assert min(costs.values()) >= 0


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("target", ["h200:4", "tpu-v5e:2x2"])
def test_a_sharded_program_is_partitioned(target):
    executable = absent_devices.compile(SHARDED, absent_devices.compile_only_devices(target))
    assert "all-reduce" in executable.hlo_modules()[0].to_string()
    # Each device gets a quarter; a TPU pads it to its tiles.
    quarter = 16 * 8 * 4 // 4
    assert quarter <= executable.get_compiled_memory_stats().argument_size_in_bytes < 16 * 8 * 4 * 8


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("target", ["h200", "tpu-v5e"])
def test_compiler_options(target):
    device = absent_devices.compile_only_device(target)
    assert absent_devices.compile(ELEMENTWISE, device, {"xla_backend_optimization_level": 1}).hlo_modules()
    with pytest.raises(RuntimeError, match="No such compile option: 'xla_nonsense'"):
        absent_devices.compile(ELEMENTWISE, device, {"xla_nonsense": 1})
    with pytest.raises(TypeError, match="compiler option 'xla_dump_to' is None"):
        absent_devices.compile(ELEMENTWISE, device, {"xla_dump_to": None})


UNKNOWN_CALL = """module {
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = stablehlo.custom_call @nothing(%a) {api_version = 4 : i32} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
FOUR_REPLICAS = """module {
  func.func public @main(%a: tensor<4xf32>) -> tensor<4xf32> {
    %0 = "stablehlo.all_reduce"(%a) ({
    ^bb0(%x: tensor<f32>, %y: tensor<f32>):
      %s = stablehlo.add %x, %y : tensor<f32>
      stablehlo.return %s : tensor<f32>
    }) {replica_groups = dense<[[0, 1, 2, 3]]> : tensor<1x4xi64>} : (tensor<4xf32>) -> tensor<4xf32>
    return %0 : tensor<4xf32>
  }
}
"""
BAD = {
    "text": ("module {", "InvalidModuleError"),
    "type": (ELEMENTWISE.replace("-> tensor<64x128xf32> {", "-> tensor<64xf32> {"), "InvalidModuleError"),
    "null": (ELEMENTWISE + "\0", "InvalidModuleError"),
    "no main": (ELEMENTWISE.replace("@main", "@other"), "JaxRuntimeError"),
    "empty": ("module {}", "JaxRuntimeError"),
    "dynamic": (ELEMENTWISE.replace("64x", "?x"), "InvalidModuleError"),
    "dialect": (ELEMENTWISE.replace("stablehlo.add", "arith.addf"), "JaxRuntimeError"),
    "unknown call": (UNKNOWN_CALL, "JaxRuntimeError"),
    "overflow": (ELEMENTWISE.replace("64x128", "4294967296x4294967296x16"), "RuntimeError"),
    "replicas": (FOUR_REPLICAS, "InvalidModuleError"),
}


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("target", ["h200", "tpu-v5e"])
def test_bad_modules_raise_and_the_process_lives(target):
    code = (
        "import json, sys\n"
        "from xtrace._src.xla.plugins import absent_devices\n"
        f"device = absent_devices.compile_only_device({target!r})\n"
        "errors = {}\n"
        "for name, text in json.load(sys.stdin).items():\n"
        "    try:\n"
        "        absent_devices.compile(text, device)\n"
        "        errors[name] = None\n"
        "    except Exception as error:\n"
        "        errors[name] = [c.__name__ for c in type(error).__mro__]\n"
        f"absent_devices.compile({ELEMENTWISE!r}, device)\n"
        "print(json.dumps(errors))\n"
    )
    texts = json.dumps({name: text for name, (text, _) in BAD.items()})
    command = [sys.executable, "-c", code]
    done = subprocess.run(command, cwd=ROOT, input=texts, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    errors = json.loads(done.stdout.splitlines()[-1])
    assert {name for name in BAD if BAD[name][1] not in (errors[name] or ())} == set()


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("target", ["h200", "tpu-v5e"])
def test_threads_compile_at_once(target):
    device = absent_devices.compile_only_device(target)
    flops = {}

    def run(size):
        flops[size] = absent_devices.compile(MATMUL.replace("1024", str(size)), device).cost_analysis()["flops"]

    threads = [threading.Thread(target=run, args=(128 * n,)) for n in range(1, 5)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert set(flops) == {128, 256, 384, 512}
    assert all(is_matmul(flops[size], size) for size in flops)


@needs_compilers
@pytest.mark.aot
@pytest.mark.parametrize("target", ["h200", "tpu-v5e"])
def test_a_fresh_process_compiles_without_jax_and_keeps_its_environment(target):
    code = (
        "import os, sys\n"
        "before = dict(os.environ)\n"
        "from xtrace._src.xla.plugins import absent_devices\n"
        f"absent_devices.compile({ELEMENTWISE!r}, absent_devices.compile_only_device({target!r})).cost_analysis()\n"
        "loaded = [m for m in sys.modules if m.partition('.')[0] in ('jax', 'jax_plugins', 'libtpu')]\n"
        "assert not loaded, loaded\n"
        "print(sorted(n for n in os.environ if os.environ[n] != before.get(n)))\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    changed = eval(done.stdout.splitlines()[-1])
    assert set(changed) <= {"TF_CPP_MIN_LOG_LEVEL", "XLA_FLAGS"}
    assert "tpu" not in target or done.stderr == ""


@pytest.mark.parametrize(
    ("version", "name"), [("cuda 13000", "cuda"), ("rocm 70000", "rocm"), (None, "cuda")]
)
def test_programs_for_gpus_are_lowered_for_cuda_or_rocm(version, name):
    """jaxlib calls both platforms ``gpu``, for which there are no kernels; a planned device has no client."""
    client = {} if version is None else {"client": types.SimpleNamespace(platform_version=version)}
    assert clients.lowering_platform(types.SimpleNamespace(platform="gpu", **client)) == name
    assert clients.lowering_platform(xtrace.devices("cpu")[0]) == "cpu"
