"""``python -m xtrace export`` and ``run ARTIFACT``."""

import json

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace.cli.main import main
from xtrace.cli.programs import is_artifact

SOURCE = '''
import xtrace
import xtrace.numpy as jnp

def forward(params, x, scale=2.0):
    return {"y": jnp.tanh(x @ params["w"]) * scale, "n": x.sum()}

def power(x, n):
    return x**n

def wrong(x):
    return x @ jnp.ones(7)
'''
SAVED = ["--arg", '{"w": f32[3,2]}', "--arg", "f32[4,3]"]


@pytest.fixture
def command(tmp_path, capsys):
    """Return a function that runs a command in a folder, and returns its exit code and what it printed."""
    model = tmp_path / "model.py"
    model.write_text(SOURCE)

    def run(*words):
        words = [word.replace("model.py", str(model)).replace("OUT", str(tmp_path / "out")) for word in words]
        try:
            code = main(words)
        except SystemExit as end:
            code = end.code
        printed = capsys.readouterr()
        return code, printed.out + printed.err

    return run


def test_a_function_goes_to_a_file_and_runs_from_there(command, tmp_path):
    code, text = command(
        "export", "model.py:forward", *SAVED, "--out", "OUT", "--platforms", "cpu,cuda", "--vjp-order", "1"
    )
    assert code == 0 and "forward(float32[3,2], float32[4,3]) for cpu, cuda, vjp order 1, " in text
    exported = xtrace.export.deserialize((tmp_path / "out").read_bytes())
    assert exported.platforms == ("cpu", "cuda") and exported.has_vjp()
    code, text = command("run", "OUT")
    assert code == 0
    assert text.startswith("result['n']: float32[]\n12.0\nresult['y']: float32[4,2]\n[[1.99010")
    code, text = command("run", "OUT", "--json", *SAVED[:2], "--arg", "[[1,2,3],[4,5,6],[7,8,9],[0.5,0,0]]")
    first, second = json.loads(text)["results"]
    assert code == 0 and first == {"name": "result['n']", "shape": [], "dtype": "float32", "data": 45.5}
    np.testing.assert_allclose(second["data"][3], 2 * np.tanh([0.5, 0.5]), 1e-6)


def test_static_arguments_numbers_and_keys(command, tmp_path):
    assert command("export", "model.py:power", "--arg", "f32[]", "--static", "n=3", "--out", "OUT")[0] == 0
    assert command("run", "OUT", "--arg", "2") == (0, "result: float32[]\n8.0\n")
    exported = xtrace.export.export(xtrace.jit(lambda k: (k, xtrace.random.bits(k))))(xtrace.random.key(0))
    (tmp_path / "out").write_bytes(exported.serialize())
    code, text = command("run", "OUT", "--json")
    assert code == 0 and [r["dtype"] for r in json.loads(text)["results"]] == ["key<fry>", "uint32"]


def test_numbers_that_json_lacks_are_texts(command):
    assert command("export", "model.py:power", "--arg", "f32[4]", "--static", "n=1", "--out", "OUT")[0] == 0
    code, text = command("run", "OUT", "--json", "--arg", "[nan, inf, -inf, 2]")
    assert code == 0 and "NaN," not in text.replace('"NaN"', "")
    assert json.loads(text)["results"][0]["data"] == ["NaN", "Infinity", "-Infinity", 2]


def test_modules(command, tmp_path):
    path = tmp_path / "module.mlir"
    path.write_text(xtrace.jit(lambda x: (jnp.sin(x), x + 1j)).lower(jnp.ones(3)).as_text())
    np.save(tmp_path / "x.npy", np.zeros(3, np.float32))
    assert command("run", str(path))[1].startswith("result[0]: float32[3]\n[0.84147")
    for written in (str(tmp_path / "x.npy"), f'"{tmp_path / "x.npy"}"'):
        code, text = command("run", str(path), "--json", "--arg", written)
        assert code == 0 and json.loads(text)["results"][1]["data"] == [[0, 1]] * 3
    path.write_text("func.func @f(%x: tensor<?xf32>) -> tensor<?xf32> { return %x : tensor<?xf32> }")
    assert command("run", str(path), "--arg", "f32[2]") == (0, "result: float32[2]\n[1. 1.]\n")


def test_errors_in_words_and_codes(command, tmp_path):
    def check(code, words, *command_words):
        assert command(*command_words)[0] == code
        assert words in command(*command_words)[1]

    check(1, "exporting wrong failed:\n", "export", "model.py:wrong", "--arg", "f32[4,3]", "--out", "OUT")
    check(2, "--platforms: cdua is no platform; they are cpu, cuda", "export", "model.py:power", "--static", "n=2",
          "--arg", "f32[]", "--out", "OUT", "--platforms", "cpu,cdua")
    check(2, "'x' is not a whole number", "export", "model.py:power", "--out", "OUT", "--vjp-order", "x")
    check(1, "No such file or directory", "export", "model.py:power", "--arg", "f32[]", "--static", "n=2", "--out",
          "OUT/there")
    check(2, "--target goes with --mesh", "export", "model.py:power", "--arg", "f32[]", "--static", "n=2", "--out",
          "OUT", "--target", "h200")
    check(1, "vjp_order must be at most 10, got 99", "export", "model.py:power", "--arg", "f32[]", "--static", "n=2",
          "--out", "OUT", "--vjp-order", "99")
    assert command("export", "model.py:power", "--arg", "f32[2]", "--static", "n=2", "--out", "OUT")[0] == 0
    check(1, "Shape mismatch for args[0] of power", "run", "OUT", "--arg", "f32[3]")
    check(2, "--arg cannot be read", "run", "OUT", "--arg", "f32[")
    check(1, "the arguments do not fit into memory: Unable to allocate", "run", "OUT", "--arg", "f32[99999999999999]")
    check(2, "is no file of an array", "run", "OUT", "--arg", "missing.npy")
    check(2, "unrecognized arguments: --what", "run", "OUT", "--what")
    check(2, "usage: python -m xtrace run ARTIFACT", "run", "OUT", "--what")
    check(2, "an exported function or a StableHLO module", "run")
    out = tmp_path / "out"
    out.write_bytes(out.read_bytes()[:200])
    check(1, "is no exported function, or is damaged", "run", "OUT")
    out.write_bytes(b"ML\xefR\0")
    check(1, "no StableHLO that can be read here", "run", "OUT")


def test_what_is_an_artifact(tmp_path):
    def written(name, content):
        (tmp_path / name).write_bytes(content)
        return is_artifact(str(tmp_path / name))

    assert written("f.mlir", b"module {}") and written("f", b"ML\xefR\0") and written("f.bin", b"\0\1")
    assert not written("f.py", b"\0") and not written("g", b"print(1)") and not written("f.pyz", b"PK\0")
    assert not is_artifact(str(tmp_path)) and not is_artifact(str(tmp_path / "missing"))
