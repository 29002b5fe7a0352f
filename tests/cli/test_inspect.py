"""``python -m xtrace inspect``: every stage of a user's function, and readable words for whatever goes wrong."""

import subprocess
import sys
import textwrap
from importlib.util import find_spec

import pytest

import xtrace
from tests.architecture.source_tree import ROOT
from xtrace._src.core.settings import config
from xtrace.cli.main import main

MODEL = """
import functools
import helper
import xtrace
import xtrace.numpy as jnp

print("the file runs")

def forward(p, x, depth=2):
    print("forward runs")
    for _ in range(depth):
        x = jnp.tanh(x @ p["w"] + p["b"])
    return x

@xtrace.jit
def jitted(x):
    return jnp.sin(x) * helper.FACTOR

@functools.partial(xtrace.jit, static_argnames="n")
def powers(n, x):
    return [x * k for k in range(n)]

def static_first(n, x, *, scale=1.0, shift):
    return x * n * scale + shift

def described(x: xtrace.ShapeDtypeStruct((2,), "float32"), y=xtrace.ShapeDtypeStruct((), "int32")):
    return x + y

TREE = {"w": xtrace.ShapeDtypeStruct((2,), "float32"), "b": [xtrace.ShapeDtypeStruct((), "int32")]}

def described_trees(p=TREE, k=2):
    return p["w"] * k + p["b"][0]

def variadic(*xs, **named):
    return sum(xs), named

def sequence(x, y):
    return (x, y)

def branches(x):
    if x > 0:
        return x
    return -x

def wrong_shapes(x, y):
    return x @ y

def returns_text(x):
    return "text"

def fails(x):
    raise KeyError("the user's own")

CONSTANT = 3

class Model:
    def apply(self, x):
        return x + 1

model = Model()
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    """The path of a user's file, imported by a test in this process and forgotten after it."""
    monkeypatch.setattr(sys, "path", list(sys.path))
    before = set(sys.modules)
    (tmp_path / "helper.py").write_text("FACTOR = 2.0\n")
    path = tmp_path / "user_model.py"
    path.write_text(MODEL)
    yield path
    for name in {"helper", "user_model", "broken"} & (set(sys.modules) - before):
        del sys.modules[name]


@pytest.fixture
def inspect(capsys):
    """Run the command; returns the exit code, what it printed and what it complained about."""

    def run(*arguments):
        code = main(["inspect", *map(str, arguments)])
        captured = capsys.readouterr()
        return code, captured.out, captured.err

    return run


def test_jaxpr(model, inspect):
    code, out, err = inspect(
        f"{model}:forward", "--arg", '{"w": f32[3,3], "b": f32[3]}', "--arg", "f32[2,3]", "--static", "depth=1"
    )
    assert code == 0
    assert out.startswith("{ lambda ; a:f32[3] b:f32[3,3] c:f32[2,3]. let\n")
    assert out.count("dot_general") == out.count("tanh") == 1
    assert "the file runs" in err
    assert "forward runs" in err


def test_a_default_stays_python(model, inspect):
    code, out, _ = inspect(f"{model}:forward", "--arg", '{"w": f32[3,3], "b": f32[3]}', "--arg", "f32[2,3]")
    assert (code, out.count("tanh")) == (0, 2)


def test_stablehlo(model, inspect):
    code, out, _ = inspect(f"{model}:jitted", "--arg", "bf16[8]", "--stage", "stablehlo")
    assert code == 0
    assert out.startswith("module @jit_jitted")
    assert "stablehlo.sine" in out
    assert "tensor<8xbf16>" in out


def test_hlo(model, inspect):
    code, out, _ = inspect(f"{model}:jitted", "--arg", "f32[8]", "--stage", "hlo")
    assert code == 0
    assert out.startswith("HloModule jit_jitted")
    assert "f32[8]" in out


def test_cost(model, inspect):
    code, out, _ = inspect(f"{model}:jitted", "--arg", "f32[1000]", "--stage", "cost")
    assert code == 0
    rows = dict(line.rsplit(maxsplit=1) for line in out.splitlines())
    assert rows["transcendentals"] == rows["flops"] == "1,000"
    assert rows["bytes accessed"] == "8,000" and not [name for name in rows if "{" in name]


def test_memory(model, inspect):
    code, out, _ = inspect(f"{model}:sequence", "--arg", "f32[1000]", "--arg", "i32[]", "--stage", "memory")
    assert code == 0
    assert out.startswith("sequence on cpu: ")
    rows = dict(line.split(maxsplit=1) for line in out.splitlines())
    assert (rows["arguments"], rows["results"]) == ("3.91 KiB", "3.926 KiB")
    assert "temporaries" not in rows


def test_static_of_a_jitted_function_before_an_array(model, inspect):
    code, out, _ = inspect(f"{model}:powers", "--static", "n=3", "--arg", "f32[2]")
    assert code == 0
    assert out.startswith("{ lambda ; a:f32[2]. let")
    assert out.count("mul") == 3


def test_static_before_and_by_keyword(model, inspect):
    code, out, _ = inspect(f"{model}:static_first", "--static", "n=3", "--arg", "f32[2]", "--static", "shift=1.5")
    assert code == 0
    assert "mul a 3.0" in out
    assert "1.5" in out


def test_python_literals_are_weakly_typed_arguments(model, inspect):
    code, out, _ = inspect(f"{model}:sequence", "--arg", "3", "--arg", "[2.5, True]")
    assert code == 0
    assert out.startswith("{ lambda ; a:i32[] b:f32[] c:bool[]. let")


def test_parameters_described_by_trees_of_types(model, inspect):
    code, out, _ = inspect(f"{model}:described_trees")
    assert code == 0 and "a:i32[] b:f32[2]" in out and "mul b 2.0" in out


def test_parameters_described_by_annotation_and_default(model, inspect):
    code, out, _ = inspect(f"{model}:described")
    assert code == 0
    assert out.startswith("{ lambda ; a:f32[2] b:i32[]. let")
    code, out, _ = inspect(f"{model}:described", "--arg", "f32[5]", "--arg", "f32[5]")
    assert out.startswith("{ lambda ; a:f32[5] b:f32[5]. let")


def test_methods_and_variadic_functions(model, inspect):
    assert inspect(f"{model}:model.apply", "--arg", "f32[]")[0] == 0
    code, out, _ = inspect(f"{model}:variadic", "--arg", "f32[2]", "--arg", "f32[2]")
    assert code == 0
    assert out.startswith("{ lambda ; a:f32[2] b:f32[2]. let")


def test_a_compile_target_is_for_compiled_stages(model, inspect):
    code, out, err = inspect(f"{model}:jitted", "--arg", "f32[8]", "--stage", "jaxpr", "--target", "h200")
    assert (code, out) == (2, "")
    assert "--target goes with --stage hlo, cost, memory, report, not jaxpr" in err


def test_an_unknown_target(model, inspect):
    code, out, err = inspect(f"{model}:jitted", "--arg", "f32[8]", "--stage", "hlo", "--target", "h2000")
    assert (code, out) == (2, "")
    assert "--target: unknown target 'h2000'" in err and "File" not in err
    assert "h200" in err.replace("h2000", "")


@pytest.mark.parametrize(
    ("target", "arguments", "code", "texts"),
    [
        ("{}", [], 2, ["expected FILE.py:FUNCTION"]),
        ("{}:", [], 2, ["expected FILE.py:FUNCTION"]),
        ("{}x:forward", [], 2, ["there is no file", "near it: user_model.py"]),
        ("{parent}:forward", [], 2, ["is a folder"]),
        ("nowhere/at_all.py:forward", [], 2, ["there is no file nowhere/at_all.py"]),
        ("{}:forwrd", [], 2, ["there is no forwrd in", "near it: forward"]),
        ("{}:zzz", [], 2, ["there is no zzz in", "near it: Model, branches"]),
        ("{}:model.aply", [], 2, ["Model in", "has no attribute aply; near it: apply"]),
        ("{}:CONSTANT", [], 2, ["CONSTANT in", "is int, not a function"]),
        ("{}:sequence", ["--arg", "f32[2"], 2, ["--arg cannot be read", "^ the text ends here"]),
        ("{}:sequence", ["--static", "y"], 2, ["--static y: expected NAME=VALUE"]),
        ("{}:sequence", ["--static", "z=1"], 2, ["--static z: there is no such parameter in sequence(x, y)"]),
        ("{}:sequence", ["--arg", "1"], 2, ["sequence(x, y) was given 1 --arg", "nothing is given for y"]),
        ("{}:jitted", ["--arg", "1.", "--arg", "2."], 2, ["jitted(x) was given 2 --arg", "too many are given"]),
        ("{}:static_first", ["--static=n=1", "--arg=1"], 2, ["nothing is given for shift"]),
    ],
)
def test_a_wrong_command(target, arguments, code, texts, model, inspect):
    found, out, err = inspect(target.format(model, parent=model.parent), *arguments)
    assert (found, out) == (code, "")
    assert all(text in err for text in texts), err
    assert "Traceback" not in err


@pytest.mark.parametrize(
    ("content", "text"),
    [(b"x = 1\xff", "save it as UTF-8"), (b"a\0b", "null characters"), (b"# -*- coding: none -*-", "unknown encoding")],
)
def test_a_file_that_is_no_source(content, text, tmp_path, inspect):
    path = tmp_path / "broken.py"
    path.write_bytes(content)
    code, out, err = inspect(f"{path}:f")
    assert (code, out) == (2, "") and text in err and "is no Python source" in err, err


@pytest.mark.parametrize(
    ("function", "arguments", "texts"),
    [
        ("branches", ["f32[]"], ["tracing branches failed", "if x > 0:", "TracerBoolConversionError"]),
        ("wrong_shapes", ["f32[2,3]", "f32[2,3]"], ["tracing wrong_shapes failed", "return x @ y", "TypeError"]),
        ("fails", ["f32[]"], ["raise KeyError(", "the user's own"]),
        ("returns_text", ["f32[]"], ["TypeError", "str"]),
        ("sequence", ["'text'", "1"], ["TypeError", "str"]),
    ],
)
def test_a_function_that_cannot_be_traced(function, arguments, texts, model, inspect):
    with config.traceback_filtering("auto"):
        code, out, err = inspect(f"{model}:{function}", *(f"--arg={text}" for text in arguments))
    assert (code, out) == (1, "")
    assert all(text in err for text in texts), err
    assert_no_internal_frames(err)


def test_the_setting_that_brings_frames_back(model, inspect):
    with config.traceback_filtering("off"):
        err = inspect(f"{model}:branches", "--arg=f32[]")[2]
    assert f'File "{xtrace.__path__[0]}' in err and "if x > 0:" in err


def assert_no_internal_frames(text):
    """No line of a traceback is in the package or the import system."""
    for line in text.splitlines():
        if line.strip().startswith("File "):
            assert xtrace.__path__[0] not in line
            assert "importlib" not in line


@pytest.mark.parametrize(
    ("source", "texts"),
    [
        ("import nothing_of_the_kind", ["line 1, in <module>", "ModuleNotFoundError", "nothing_of_the_kind"]),
        ("def f(:\n    pass", ["line 1", "SyntaxError"]),
        ("def g():\n    return 1 / 0\ng()", ["line 2, in g", "ZeroDivisionError"]),
        ("import sys\nsys.exit(3)", ["called sys.exit(3) while it was imported", '__name__ == "__main__"']),
        ("try:\n    {}['a']\nexcept KeyError as e:\n    raise OSError('second') from e", ["KeyError", "second"]),
    ],
)
def test_a_file_that_cannot_be_imported(source, texts, model, inspect):
    path = model.with_name("broken.py")
    path.write_text(source)
    with config.traceback_filtering("auto"):
        code, out, err = inspect(f"{path}:f", "--arg", "f32[]")
    assert (code, out) == (1, "")
    assert all(text in err for text in texts), err
    assert_no_internal_frames(err)
    assert "broken" not in sys.modules


def test_the_compilers_for_other_devices_may_be_missing(model, inspect):
    if find_spec("libtpu") is not None:
        code, out, _ = inspect(f"{model}:jitted", "--arg", "f32[8]", "--stage", "hlo", "--target", "tpu-v5e")
        assert code == 0
        assert out.startswith("HloModule")
        return
    code, out, err = inspect(f"{model}:jitted", "--arg", "f32[8]", "--stage", "hlo", "--target", "tpu-v5e")
    assert (code, out) == (1, "")
    assert "pip install 'xtrace[aot]'" in err


def run_module(*arguments, **options):
    """``python -m xtrace`` in a process of its own."""
    command = [sys.executable, "-m", "xtrace", *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=120, cwd=ROOT, **options)


def test_as_a_process(tmp_path):
    path = tmp_path / "user.py"
    path.write_text(
        textwrap.dedent("""
        import xtrace.numpy as jnp
        def f(x):
            return jnp.log(x)
    """)
    )
    done = run_module("inspect", f"{path}:f", "--arg", "f32[3]")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "{ lambda ; a:f32[3]. let b:f32[3] = log a in (b,) }\n"
    done = run_module("inspect", f"{path}:g")
    assert (done.returncode, done.stdout) == (2, "")
    assert "near it: f" in done.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "texts"),
    [
        (["--help"], 0, ["demo", "inspect"]),
        (["inspect", "--help"], 0, ["FILE.py:FUNCTION", "f32[128,128]", "jaxpr,stablehlo,hlo,cost,memory"]),
        (["run", "--help"], 0, ["run FILE.py", "run -m MODULE", "--arg VALUE", "A type stands for ones"]),
        (["completion", "--help"], 0, ["~/.bashrc", "~/.zshrc", "config.fish"]),
        ([], 2, ["demo", "inspect", "name a command"]),
        (["inspect", "a.py:f", "--stag", "hlo", "--nme"], 2, ["usage: python -m xtrace inspect", "--nme"]),
        (["train"], 2, ["'train'", "demo", "inspect"]),
        (["inspect", "a.py:f", "--stage", "assembly"], 2, ["'assembly'", "stablehlo"]),
    ],
)
def test_usage(arguments, code, texts, capsys):
    try:
        found = main(arguments)
    except SystemExit as end:
        found = end.code
    shown = "".join(capsys.readouterr())
    assert found == code
    assert all(text in shown for text in texts), shown


def test_a_reader_that_stops_reading(tmp_path):
    path = tmp_path / "user.py"
    path.write_text("def f(x):\n    for _ in range(3000):\n        x = x + x\n    return x\n")
    command = f"{sys.executable} -m xtrace inspect {path}:f --arg f32[] | head -n 1"
    done = subprocess.run(command, shell=True, cwd=ROOT, capture_output=True, text=True, timeout=120)
    assert (done.stdout, done.stderr) == ("{ lambda ; a:f32[]. let\n", "")
