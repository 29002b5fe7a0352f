"""`from_stablehlo`: modules as text and as bytes, of several functions and of open sizes; wrong ones are refused."""

import random
import re

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import export
from xtrace._src.xla.mlir import artifacts, mlir_objects, modules

pytestmark = pytest.mark.thorough

X = np.array([[4, 1, 0], [1, 3, 1], [0, 1, 2]], np.float32)

SIZES = """
module @sizes {
  func.func public @main(%x: tensor<?x3xf32>, %y: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %0 = stablehlo.add %x, %y : tensor<?x3xf32>
    %1 = call @double(%0) : (tensor<?x3xf32>) -> tensor<?x3xf32>
    return %1 : tensor<?x3xf32>
  }
  func.func private @double(%x: tensor<?x3xf32>) -> tensor<?x3xf32> {
    %0 = stablehlo.add %x, %x : tensor<?x3xf32>
    return %0 : tensor<?x3xf32>
  }
}"""


def factorize(x, y):
    return jnp.linalg.cholesky(x), jnp.sin(y)


def text_of(f, *args):
    return xtrace.jit(f).lower(*args).as_text()


def in_portable_form(text):
    """The module in VHLO; without a version of StableHLO, as the first artifacts were."""
    module = modules.parse(text)
    modules.run_passes(module, "builtin.module(stablehlo-legalize-to-vhlo{allow-other-dialects=true})")
    return module


@pytest.mark.parametrize("write", [
    str, str.encode, lambda text: mlir_objects.bytecode(modules.parse(text)), artifacts.write_artifact,
    lambda text: str(in_portable_form(text)), lambda text: mlir_objects.bytecode(in_portable_form(text)),
], ids=["text", "bytes", "bytecode", "artifact", "portable text", "portable bytecode"])
def test_all_forms(write):
    f = xtrace.from_stablehlo(write(text_of(factorize, X, 1.0)))
    assert f.__name__ == "jit_factorize" and "(tensor<3x3xf32>, tensor<f32>) -> " in f.__doc__
    for run in (f, xtrace.jit(f)):
        lower, sine = run(X, 1.0)
        np.testing.assert_array_equal(lower, jnp.linalg.cholesky(X))
        assert sine == jnp.sin(1.0)


SCALE = text_of(lambda x: x * 2 + jnp.arange(3), X)


def test_it_is_part_of_other_programs():
    f = xtrace.from_stablehlo(SCALE)
    assert xtrace.jit(lambda x: f(f(x)) + 1).lower(X).as_text().count("@call_exported_jit__lambda_") == 3
    assert xtrace.make_jaxpr(f)(X).eqns[0].primitive.name == "custom_vjp_call"
    np.testing.assert_array_equal(xtrace.lax.scan(lambda c, x: (c, f(x)), 0, np.stack([X, X]))[1][1], f(X))
    assert xtrace.eval_shape(f, X).shape == (3, 3)


def test_arguments_are_checked():
    f = xtrace.from_stablehlo(SCALE)
    with pytest.raises(TypeError, match=r"jit__lambda_ takes 1 arrays, as its module says, and got 2"):
        f(X, X)
    with pytest.raises(ValueError, match=r"argument 0 of jit__lambda_: its module takes float32\[3,3\]"):
        f(X[0])
    with pytest.raises(ValueError, match=r"Dtype mismatch .* called with int32\[3,3\]. Convert it with x.astype"):
        f(X.astype(int))
    with pytest.raises(TypeError, match="unexpected keyword argument"):
        f(x=X)


def test_derivatives_and_maps():
    f = xtrace.from_stablehlo(SCALE)
    with pytest.raises(ValueError, match=r"module, which has no derivative. Give it one with xtrace.custom_vjp"):
        xtrace.grad(lambda x: f(x).sum())(X)
    np.testing.assert_array_equal(xtrace.vmap(f)(np.stack([X, 2 * X]))[1], f(2 * X))


def test_a_file_is_called_as_it_was_exported():
    data = export.export(xtrace.jit(lambda x: {"y": jnp.sin(x["x"]) * 2}))({"x": X}).serialize(vjp_order=1)
    f = xtrace.from_stablehlo(data)
    np.testing.assert_allclose(xtrace.grad(lambda x: f({"x": x})["y"].sum())(X), 2 * np.cos(X), 1e-6)


def test_open_sizes_are_those_of_the_call():
    f = xtrace.from_stablehlo(SIZES)
    for rows in (2, 4):
        x = np.ones((rows, 3), np.float32)
        np.testing.assert_array_equal(f(x, x), 4 * x)
    with pytest.raises(ValueError, match=r"argument 1 of sizes: its module takes float32\[\?,3\], and it is called"):
        f(X, X[:, :2])
    with pytest.raises(ValueError, match=r"sizes: the sizes of its module cannot be found for \(tensor<3x3xf32>, "):
        f(X, X[:2])


IDENTITY = "{ return %x : tensor<2xf32> }"


def test_the_entry():
    f = xtrace.from_stablehlo(f"func.func private @only(%x: tensor<2xf32>) -> tensor<2xf32> {IDENTITY}")
    np.testing.assert_array_equal(f(np.ones(2, np.float32)), [1, 1])


@pytest.mark.parametrize(("program", "words"), [
    ("module {\n  func.func @main() -> tensor<f32> {\n    return %x : tensor<f32>\n  }\n}",
     r"use of undeclared SSA value name\s+line 3: return %x : tensor<f32>\s+\^"),
    ("what", "custom op 'what' is unknown"),
    (b"\xff\xfe", "the text is not UTF-8"),
    (b"ML\xefR\0\1\2", "no StableHLO that can be read here"),
    (artifacts.write_artifact("module @name { func.func @f() { return } }").replace(b"name", b"\xff\xfe\xff\xfe"),
     "a name in it is no UTF-8"),
    ("func.func @f(%x: tensor<i32>) -> tensor<i1> { %0 = stablehlo.compare LT, %x, %x, TOTALORDER : (tensor<i32>, "
     "tensor<i32>) -> tensor<i1> return %0 : tensor<i1> }", "a comparison of i32 has the order TOTALORDER instead of"),
    ("", "no function main, nor a single one that could be meant"),
    (f"func.func @f(%x: tensor<2xf32>) -> tensor<2xf32> {IDENTITY}\nfunc.func @g() {{ return }}", "functions are f, g"),
    (f"func.func @f(%x: tensor<2xf32>, %t: !stablehlo.token) -> tensor<2xf32> {IDENTITY}",
     "argument 1 of the module is !stablehlo.token.* A token orders side effects"),
    ("func.func @f(%x: tensor<2xf32>) -> tensor<?xf32> { %0 = stablehlo.custom_call @g(%x) : (tensor<2xf32>) -> "
     "tensor<?xf32> return %0 : tensor<?xf32> }", "whose size depends on values"),
    ("module attributes {mhlo.num_replicas = 2 : i32} { func.func @f() { return } }",
     "the module is for 2 replicas"),
    (b"\0nothing", "is no exported function, or is damaged"),
])
def test_what_is_no_module_is_refused(program, words):
    with pytest.raises(ValueError, match=re.compile(words, re.DOTALL)):
        xtrace.from_stablehlo(program)


def test_a_function_that_calls_itself_is_refused():
    f = xtrace.from_stablehlo(
        "func.func @main(%x: tensor<2xf32>) -> tensor<2xf32> { %0 = call @f(%x) : (tensor<2xf32>) -> tensor<2xf32> "
        "return %0 : tensor<2xf32> } func.func private @f(%x: tensor<2xf32>) -> tensor<2xf32> { %0 = call @main(%x) : "
        "(tensor<2xf32>) -> tensor<2xf32> return %0 : tensor<2xf32> }"
    )
    with pytest.raises(ValueError, match="of the module calls itself, which no program on a device can do"):
        f(np.ones(2, np.float32))


def test_other_refusals():
    with pytest.raises(ValueError, match="the module calls Python, by xla_ffi_python_cpu_callback"):
        xtrace.from_stablehlo(text_of(lambda x: xtrace.pure_callback(np.sin, x, x), jnp.float32(1)))
    with pytest.raises(TypeError, match=r"program must be the text or the bytes of a module, such as lowered.as_"):
        xtrace.from_stablehlo(3)
    wide = xtrace.from_stablehlo("func.func @f(%x: tensor<2xf64>) -> tensor<2xf64> { return %x : tensor<2xf64> }")
    with pytest.raises(ValueError, match="Types of 64 bits are off"):
        wide(X[0, :2])


def test_damaged_bytecode_ends_no_process():
    draws, artifact = random.Random(1), artifacts.write_artifact(SCALE)
    for _ in range(3):
        changed = bytearray(artifact)
        for _ in range(4):
            changed[draws.randrange(30, len(changed))] ^= 1 << draws.randrange(8)
        try:
            xtrace.from_stablehlo(bytes(changed))
        except ValueError as error:
            assert str(error).startswith("from_stablehlo: ")
