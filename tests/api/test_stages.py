"""The stages of compiling ahead of time: traced, lowered, compiled; what each knows, and calling the last."""

import functools
import itertools
import subprocess
import sys
import textwrap
import weakref

import jax
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.operands import assert_same
from xtrace import jit
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.pytrees import pytree


def f(x, n, *, k=None):
    return {"a": x * n + k["w"][0], "b": (x, None)}


def stages(package, numpy):
    jitted = package.jit(f, static_argnums=1, donate_argnums=0)
    traced = jitted.trace(numpy.ones((3,), np.float32), 2, k={"w": [1.0]})
    lowered = traced.lower()
    with_same = jitted.lower(numpy.ones((3,), np.float32), 2, k={"w": [1.0]})
    return traced, lowered, lowered.compile(), with_same, with_same.compile()


OURS, THEIRS = stages(xtrace, jnp), stages(jax, jax.numpy)


def leaves(tree):
    return pytree.tree_leaves(tree)


@pytest.mark.parametrize("which", range(5))
def test_what_every_stage_knows(which):
    ours, theirs = OURS[which], THEIRS[which]
    assert str(ours.in_tree) == str(theirs.in_tree) and str(ours.out_tree) == str(theirs.out_tree)
    assert repr(ours.in_avals) == repr(theirs.in_avals)
    assert ours.donate_argnums == theirs.donate_argnums == (0,)
    assert ours.fun_name == "f"
    assert str(pytree.tree_structure(ours.args_info)) == str(jax.tree.structure(theirs.args_info))
    for info, expected in zip(leaves(ours.args_info), jax.tree.leaves(theirs.args_info), strict=True):
        assert (info.shape, info.dtype, info.donated) == (expected.shape, expected.dtype, expected.donated)
        assert info == type(info)(info.aval, info.donated) and hash(info) == hash(type(info)(info.aval, info.donated))
    for out, expected in zip(leaves(ours.out_info), jax.tree.leaves(theirs.out_info), strict=True):
        assert (out.shape, out.dtype) == (expected.shape, expected.dtype)
    assert "f" in repr(ours)


def test_the_jaxpr_of_a_trace():
    traced = jit(lambda x: x * 2 + 1).trace(1.0)
    assert str(traced.jaxpr) == str(xtrace.make_jaxpr(lambda x: x * 2 + 1)(1.0))
    assert repr(traced.out_avals) == "ShapedArray(float32[], weak_type=True)"


def test_tracing_accepts_descriptions_of_arrays():
    class Described:
        shape, dtype = (2, 3), "int32"

    struct = xtrace.ShapeDtypeStruct((2, 3), np.int32)
    for value in (struct, Described(), np.ones((2, 3), np.int32), jnp.ones((2, 3), np.int32)):
        lowered = jit(lambda x: x + 1).lower(value)
        assert lowered.in_avals == ((ShapedArray((2, 3), np.int32),), {})
    weak = xtrace.ShapeDtypeStruct((), np.float32, weak_type=True)
    assert jit(lambda x: x).eval_shape(weak) == weak
    with pytest.raises(TypeError, match="Error interpreting argument x"):
        jit(lambda x: x)(struct)


def test_eval_shape_computes_nothing():
    huge = xtrace.ShapeDtypeStruct((10**7, 10**7), np.float32)
    out = jit(lambda x, n: {"r": [x + n, x[0]]}, static_argnums=1).eval_shape(huge, 2)
    assert [o.shape for o in leaves(out)] == [(10**7, 10**7), (10**7,)]


# Text


def test_the_texts_of_a_lowered_function():
    lowered = jit(lambda x: x * 2.0).lower(jnp.ones(3))
    text = lowered.as_text()
    assert text == lowered.as_text("stablehlo") == lowered.as_text(dialect="stablehlo")
    assert "stablehlo.multiply" in text and "loc(" not in text
    with_lines = lowered.as_text(debug_info=True)
    assert "test_stages.py" in with_lines and "jit(<lambda>)/mul" in with_lines
    hlo = lowered.as_text("hlo")
    assert hlo.startswith("HloModule") and "multiply" in hlo
    assert str(lowered.compiler_ir().operation.name) == "builtin.module"
    assert "multiply" in lowered.compiler_ir("hlo").as_hlo_text() and "metadata" not in hlo
    assert 'metadata={op_name="jit(<lambda>)/mul"' in lowered.as_text("hlo", debug_info=True)
    for method, dialect in itertools.product((lowered.as_text, lowered.compiler_ir), ("mhlo", "", 3)):
        with pytest.raises(ValueError, match=r"unknown dialect .*; the dialects are 'stablehlo' and 'hlo'"):
            method(dialect)


def names_of_arguments(compiled):
    """What the compiled program's text calls its arguments."""
    parameters = [line for line in compiled.as_text().splitlines() if "parameter(" in line and "op_name=" in line]
    return sorted(line.strip().split("=")[0] + line.split("op_name=")[1] for line in parameters)


def test_compiled_programs_name_their_arguments_as_jax_does():
    large = np.zeros(2000, np.float32)  # an argument of the program that no user knows of

    def named(package, numpy):
        constant = numpy.asarray(large)

        def function(state, unused, *rest, odd, n):
            return state['w\n"é'] * state["b"] * constant[0] + rest[1][0] + odd, n

        jitted = package.jit(function, static_argnames="n")
        return jitted.lower({'w\n"é': large, "b": 1.0}, 2.0, 3.0, (large,), odd=4.0, n=5).compile()

    mine = names_of_arguments(named(xtrace, jnp))
    assert mine == names_of_arguments(named(jax, jax.numpy)) and len(mine) == 4


def test_lowering_for_another_platform():
    traced = jit(lambda x: x * 2.0).trace(1.0)
    assert traced.lower(lowering_platforms=("cuda",)).as_text() == traced.lower().as_text()
    with pytest.raises(ValueError, match="one platform at a time; got \\('cpu', 'cuda'\\)"):
        traced.lower(lowering_platforms=("cpu", "cuda"))


def test_every_module_parses_and_verifies():
    for stage in (OURS[1], OURS[3]):
        assert stage.compiler_ir().operation.verify()


# Analyses


def test_analyses_agree_with_jax():
    function = lambda x: (x * x).sum() + 1.0  # noqa: E731
    ours = jit(function).lower(np.ones(1000, np.float32))
    theirs = jax.jit(function).lower(np.ones(1000, np.float32))
    assert ours.cost_analysis()["flops"] == theirs.cost_analysis()["flops"]
    compiled, expected = ours.compile(), theirs.compile()
    for name in ("flops", "bytes accessed"):
        assert compiled.cost_analysis()[name] == expected.cost_analysis()[name]
    found, wanted = compiled.memory_analysis(), expected.memory_analysis()
    for name in ("argument_size_in_bytes", "output_size_in_bytes", "temp_size_in_bytes"):
        assert getattr(found, name) == getattr(wanted, name)
    assert compiled.as_text().startswith("HloModule") and "fusion" in compiled.as_text()
    assert type(compiled.runtime_executable()).__name__ == "LoadedExecutable"


MATRIX = np.ones((2, 3), np.float32)
FORMATS = {
    "an argument that is not read": lambda p: (lambda x, y, z: (x, {"a": z}), (1.0, MATRIX, MATRIX[:1])),
    "a key": lambda p: (lambda key: (key, 3), (p.random.key(0),)),
    "nothing": lambda p: (lambda x: (), (1.0,)),
    "a hidden constant": lambda p: (lambda t: t["a"] + p.numpy.arange(2000.0), ({"a": np.float32(1), "b": 2},)),
    "packed integers": lambda p: (lambda x: (x, x), (p.numpy.ones(3, p.numpy.int4),)),
}


@pytest.mark.parametrize("name", FORMATS)
def test_how_arguments_and_results_lie_in_memory(name):
    found = []
    for package in (xtrace, jax):
        function, args = FORMATS[name](package)
        compiled = package.jit(function).lower(*args).compile()
        found.append([str(getattr(compiled, f"{which}_{what}")) for which in ("input", "output")
                      for what in ("formats", "shardings")])
    assert found[0] == found[1]


def test_formats_do_not_show_tokens():
    def function(x, y):
        xtrace.debug.print("{}", x, ordered=True)
        return y

    compiled = jit(function).lower(1.0, MATRIX).compile()
    assert compiled.input_formats == ((jnp.float32(1).format, jnp.asarray(MATRIX).format), {})
    assert compiled.output_formats == jnp.asarray(MATRIX).format


def test_where_a_compiled_function_runs():
    device = xtrace.devices()[0]
    compiled = jit(lambda x, t: (x, t["a"])).lower(1.0, {"a": 2.0}).compile()
    assert pytree.tree_map(lambda s: s.device_set, compiled.input_shardings) == (({device}, {"a": {device}}), {})
    assert pytree.tree_map(lambda s: s.device_set, compiled.output_shardings) == ({device}, {device})


# Calling


def test_calling_a_compiled_function():
    compiled = jit(f, static_argnums=1).lower(np.ones(3, np.float32), 2, k={"w": [1.0]}).compile()
    expected = jax.jit(f, static_argnums=1)(np.ones(3, np.float32), 2, k={"w": [1.0]})
    arrays, scalars = (np.ones(3, np.float32), jnp.ones(3), np.ones(3)), (1.0, np.float32(1), jnp.float32(1))
    for x, w in itertools.product(arrays, scalars):
        for result in (compiled(x, k={"w": [w]}), compiled.call(x, k={"w": [w]}), compiled(x, 2, k={"w": [w]})):
            assert_same(result["a"], expected["a"])
            assert result["b"][1] is None


def test_static_arguments_given_again_must_be_those_compiled_for():
    compiled = jit(f, static_argnums=1).lower(1.0, 2, k={"w": [1.0]}).compile()
    assert float(compiled(1.0, 2, k={"w": [1.0]})["a"]) == 3
    for other in (3, 2.0, [2]):
        with pytest.raises(TypeError, match="static arguments"):
            compiled(1.0, other, k={"w": [1.0]})


@pytest.mark.parametrize(
    ("args", "kwargs", "words"),
    [
        ((np.ones(4, np.float32),), {"k": {"w": [1.0]}}, r"argument x of f was compiled with float32\[3\] and"),
        ((np.ones(3, np.int32),), {"k": {"w": [1.0]}}, r"argument x of f was compiled with float32\[3\] .* int32\[3\]"),
        ((np.ones(3, np.float32),), {"k": {"w": [1]}}, r"argument k\['w'\]\[0\] of f .* float32\[\] .* int32\[\]"),
        ((np.ones(3, np.float32),), {"k": {"w": [True]}}, r"argument k\['w'\]\[0\] of f .* bool\[\]"),
        ((np.ones(3, np.float32),), {"k": {"w": ["x"]}}, r"Error interpreting argument k\['w'\]\[0\] of f"),
        ((np.ones(3, np.float32),), {"k": {"v": [1.0]}}, "was compiled for arguments .* of structure .* called with"),
        ((np.ones(3, np.float32),), {"k": {"w": (1.0,)}}, "was compiled for arguments .* of structure"),
        ((np.ones(3, np.float32),), {}, "was compiled for arguments .* of structure"),
        ((), {"k": {"w": [1.0]}}, "was compiled for arguments .* of structure"),
        ((1.0, 2.0, 3.0), {"k": {"w": [1.0]}}, "was compiled for arguments .* of structure"),
    ],
)
def test_calling_with_other_types_or_trees(args, kwargs, words):
    compiled = jit(f, static_argnums=1).lower(np.ones(3, np.float32), 2, k={"w": [1.0]}).compile()
    with pytest.raises(TypeError, match=words):
        compiled(*args, **kwargs)


def test_a_compiled_function_cannot_become_part_of_another():
    compiled = jit(lambda x: x + 1).lower(1.0).compile()
    with pytest.raises(TypeError, match=r"argument x is a traced f32\[\]\. Call the jitted function instead"):
        jit(lambda y: compiled(y))(1.0)


def test_donation_of_a_compiled_function():
    compiled = jit(lambda x, y: x + y, donate_argnums=0).lower(jnp.ones(3), jnp.ones(3)).compile()
    for _ in range(3):
        x, y = jnp.ones(3), jnp.ones(3)
        compiled(x, y)
        assert x.is_deleted() and not y.is_deleted()
        with pytest.raises(RuntimeError, match=r"argument x.*has been deleted"):
            compiled(x, y)
        with pytest.raises(xtrace.errors.JaxRuntimeError, match="same array is passed to <lambda> as x and y, and"):
            compiled(y, y)


def test_compiled_functions_with_hidden_constants_and_unused_arguments():
    big = jnp.asarray(np.arange(1000, dtype=np.float32))
    for keep in (False, True):
        compiled = jit(lambda x, unused: (x + big)[-1], keep_unused=keep).lower(1.0, jnp.ones(3)).compile()
        assert float(compiled(2.0, jnp.ones(3))) == 1001


def test_a_compiled_function_is_no_part_of_the_cache():
    traces = []

    @jit
    def g(x):
        traces.append(1)
        return x + 1

    compiled = g.lower(1.0).compile()
    assert traces == [1] and g._cache_size() == 0
    g.clear_cache()
    assert float(compiled(1.0)) == 2 and traces == [1]
    g(1.0)
    g.lower(1.0)
    g.eval_shape(1.0)
    assert traces == [1, 1]


def test_compiler_options_of_compile():
    lowered = jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True}).lower(1.0)
    assert float(lowered.compile({"xla_cpu_enable_fast_math": False})(1.0)) == 2
    with pytest.raises(xtrace.errors.JaxRuntimeError, match="no_such_option"):
        lowered.compile({"no_such_option": 1})
    for wrong, words in [("fast", "must be a dict"), ({1: 2}, r"compiler_options\[1\]"), ({"a": None}, "expected an")]:
        with pytest.raises(TypeError, match=f"compile: .*{words}"):
            lowered.compile(wrong)


def test_x64_when_lowering():
    with xtrace.enable_x64():
        lowered = jit(lambda x: x * 2).lower(np.ones(3))
        assert "f64" in lowered.as_text()
        compiled = lowered.compile()
        assert compiled(np.ones(3)).dtype == np.float64
    with pytest.raises(TypeError, match=r"compiled with float64\[3\] and called with float32\[3\]"):
        compiled(np.ones(3))


def test_stages_of_methods():
    class Model:
        @jit
        def plain(self):
            return 1

        def apply(self, x):
            return x * 2

    assert float(jit(Model().apply).lower(1.0).compile()(3.0)) == 6
    with pytest.raises(TypeError, match="Error interpreting argument self of plain"):
        Model().plain()


@pytest.mark.parametrize(("name", "args"), [
    ("sin", 1), ("arctan2", 2), ("dot", 2), ("less", 2), ("cumsum", 1), ("linalg.norm", 1), ("nan_to_num", 1),
])
def test_functions_of_the_library_have_stages(name, args):
    operands = np.float32([[1, 2], [3, 5]])[:args]
    results = []
    for package, numpy in ((xtrace, jnp), (jax, jax.numpy)):
        function = functools.reduce(getattr, name.split("."), numpy)
        function.clear_cache()
        lowered, struct = function.lower(*operands), function.eval_shape(*operands)
        assert function.trace(*operands).out_info == struct and isinstance(struct, package.ShapeDtypeStruct)
        results.append((lowered.as_text().split()[1], np.asarray(lowered.compile()(*operands))))
    assert results[0][0] == results[1][0]
    assert_same(results[0][1], results[1][1], 2, name)


def test_names_of_the_public_module():
    import xtrace.stages as module

    assert {type(s) for s in OURS} == {module.Traced, module.Lowered, module.Compiled}
    assert type(leaves(OURS[0].args_info)[0]) is module.ArgInfo


def test_nothing_of_this_writes_to_stderr_or_imports_jax():
    code = """
        import sys, numpy as np, xtrace
        lowered = xtrace.jit(lambda x: {"a": x * 2}).lower(np.ones(3))
        lowered.as_text(), lowered.as_text(debug_info=True), lowered.as_text("hlo"), lowered.cost_analysis()
        lowered.compiler_ir(), lowered.compiler_ir("hlo")
        compiled = lowered.compile()
        compiled.as_text(), compiled.cost_analysis(), compiled.memory_analysis(), compiled(np.ones(3))
        compiled.input_shardings, compiled.runtime_executable()
        try:
            xtrace.jit(lambda x: x, compiler_options={"no": 1})(1.0)
        except xtrace.errors.JaxRuntimeError:
            pass
        assert not [m for m in sys.modules if m == "jax" or m.startswith("jax.")]
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(code)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr, done.stdout) == (0, "", "")


def test_compiled_functions_that_are_called_often_check_as_before():
    """The code that is written for frequent calls leaves other types, settings and traced values to the slow way."""
    compiled = xtrace.jit(lambda x, y: x / y).lower(jnp.ones(3), jnp.ones(3)).compile()
    ones = jnp.ones(3)
    for _ in range(6):
        np.testing.assert_array_equal(compiled(ones, ones), np.ones(3))
    np.testing.assert_array_equal(compiled(np.ones(3, np.float32), ones), np.ones(3))
    with pytest.raises(TypeError, match="compiled with float32\\[3\\] and called with float32\\[4\\]"):
        compiled(jnp.ones(4), ones)
    with pytest.raises(TypeError, match="cannot become part of another program"):
        xtrace.grad(lambda x: compiled(x, ones).sum())(ones)
    with pytest.raises(FloatingPointError), xtrace.debug_nans(True):
        compiled(jnp.zeros(3), jnp.zeros(3))
    with pytest.raises(RuntimeError, match="jax_no_execution"), xtrace.no_execution(True):
        compiled(ones, ones)
    gone = jnp.ones(3)
    gone.delete()
    with pytest.raises(RuntimeError, match="deleted"):
        compiled(gone, ones)
    alive = weakref.ref(compiled)
    compiled = None
    assert alive() is None


def test_compiled_functions_that_are_called_often_take_donated_arguments():
    compiled = xtrace.jit(lambda x: x + 1, donate_argnums=0).lower(jnp.ones(3)).compile()
    x = jnp.zeros(3)
    for number in range(8):
        before, x = x, compiled(x)
        assert before.is_deleted() and float(x[0]) == number + 1
