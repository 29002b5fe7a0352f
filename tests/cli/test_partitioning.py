"""``python -m xtrace inspect --mesh``: a function partitioned over devices, and its report."""

import subprocess
import sys

import pytest

SOURCE = '''
import xtrace
import xtrace.numpy as jnp

def step(params, x):
    def loss(p):
        return ((jnp.tanh(x @ p["in"] + p["bias"]) @ p["out"]) ** 2).mean()
    return xtrace.tree.map(lambda p, g: p - 0.1 * g, params, xtrace.grad(loss)(params))
'''
ARGUMENTS = ["--arg", '{"in": f32[8,32], "out": f32[32,8], "bias": f32[32]}', "--arg", "f32[16,8]"]


@pytest.fixture
def inspect(tmp_path):
    (tmp_path / "model.py").write_text(SOURCE)

    def run(*options):
        command = [sys.executable, "-m", "xtrace", "inspect", str(tmp_path / "model.py:step"), *ARGUMENTS, *options]
        return subprocess.run(command, capture_output=True, text=True, check=False)

    return run


def test_the_report_of_a_mesh_of_cpus(inspect):
    done = inspect(
        "--mesh", "data=2,model=2", "--sharding", "params['in']=-,model", "--sharding", "params['out']=model",
        "--sharding", "x=data",
    )
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "step: 4 devices of kind cpu, mesh data=2, model=2"
    assert [line.split()[-1] for line in lines if line.startswith("  128 B")] == ["params['bias']"]
    collectives = [line for line in lines if line.startswith("  all-reduce")]
    assert {line.split()[-2] for line in collectives} == {"data", "model"}
    assert all(line.endswith("model.py:7") for line in collectives)


def test_other_stages(inspect):
    done = inspect("--mesh", "data=4", "--sharding", "x=data", "--stage", "stablehlo")
    assert 'sdy.mesh @mesh = <["data"=4]>' in done.stdout and '[{"data"}, {}]' in done.stdout


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(("options", "words"), [
    (["--mesh", "data:4"], "--mesh data:4: write each axis once"), (["--mesh", "data=0"], "write each axis once"),
    (["--mesh", "data=2,data=2"], "write each axis once"),
    (["--mesh", "data=99999999"], "--mesh: jax_num_cpu_devices: the setting accepts at most 2048, since XLA numbers"),
    (["--mesh", "data=2", "--sharding", "x=modle"], "modle is not a mesh axis; the axes are data"),
    (["--mesh", "data=2", "--sharding", "q=data"], "there is no such argument; the arguments are params, x"),
    (["--mesh", "data=2", "--sharding", "x"], "write NAME=AXIS,AXIS"),
    (["--mesh", "data=3", "--sharding", "x=data"], "--sharding of x: "),
    (["--mesh", "data=2", "--sharding", "x=data,data"], "used"), (["--sharding", "x=data"], "give the mesh, too"),
    (["--mesh", "data=2", "--target", "abacus"], "unknown target 'abacus'"),
])
def test_wrong_options(inspect, options, words):
    done = inspect(*options)
    assert done.returncode == 2 and words in done.stderr and "Traceback" not in done.stderr, done.stderr
