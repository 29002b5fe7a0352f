"""`import jax` as xtrace: each case runs in a process of its own, where xtrace stands before jax."""

import subprocess
import sys
import textwrap

import pytest

import xtrace

pytestmark = pytest.mark.thorough


def run(code, *arguments, check=True):
    """Return the lines that a program prints; its arguments are those of Python."""
    command = [sys.executable, *arguments] if arguments else [sys.executable, "-c", textwrap.dedent(code)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0 or not check, done.stderr
    return done.stdout.splitlines() if check else done


def test_modules_are_one_object_under_both_names():
    assert run("""
        import xtrace
        xtrace.as_jax()
        xtrace.as_jax()
        import jax, jax.numpy as jnp, jax.scipy.stats, jax.extend.core, jax.interpreters.ad, xtrace.numpy, sys
        from jax import lax, tree_util
        from jax.sharding import PartitionSpec
        print(jax is xtrace, jnp is xtrace.numpy, jax.scipy.stats.norm is xtrace.scipy.stats.norm, lax is xtrace.lax)
        print(isinstance(jnp.ones(2), jax.Array), PartitionSpec is xtrace.P, jnp.__spec__.name)
        import importlib, pickle
        print(importlib.reload(jax.ops) is xtrace.ops, pickle.loads(pickle.dumps(jnp.sum)) is jnp.sum)
        print("jax._src.numpy" in sys.modules, [n for n in sys.modules if "site-packages/jax/" in str(
            getattr(sys.modules[n], "__file__", ""))])
    """) == ["True True True True", "True True xtrace.numpy", "True True", "False []"]


def test_arrays_on_several_devices_have_their_pieces():
    assert run("""
        import os
        os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
        import xtrace
        xtrace.as_jax()
        import jax, sys
        import jax._src.sharding_impls
        import numpy as np
        x = jax.device_put(np.arange(4), jax.NamedSharding(jax.make_mesh((2,), ("i",)), jax.P("i")))
        print([(s.device.id, s.data.tolist()) for s in x.addressable_shards], x[2:].tolist(), np.asarray(x).tolist())
        print(jax._src.sharding_impls is sys.modules["jax._src.sharding_impls"])
    """) == ["[(0, [0, 1]), (1, [2, 3])] [2, 3] [0, 1, 2, 3]", "True"]


def test_classes_of_arrays_have_the_names_of_jax():
    """autoray finds the package of an array by the module of its class; programs find arrays by the class's name."""
    program = """
        {before}
        xtrace.as_jax()
        import jax, jax.numpy as jnp, pickle
        found, x = set(), jnp.ones(2)
        note = lambda x: found.add(type(x).__module__.partition(".")[0]) or x.sum()
        print(type(x), type(x).__name__, jax.jit(lambda x: [print(type(x).__name__), x][1])(x))
        note(x), jax.jit(note)(x), jax.grad(note)(x), jax.vmap(note)(x[None]), jax.jvp(note, (x,), (x,))
        print(sorted(found), jax.Array, jax.core.Tracer, pickle.loads(pickle.dumps(x)))
    """
    expected = [
        "DynamicJaxprTracer", "<class 'jaxlib._jax.ArrayImpl'> ArrayImpl [1. 1.]",
        "['jax', 'jaxlib'] <class 'xtrace.Array'> <class 'xtrace.core.Tracer'> [1. 1.]",
    ]
    assert run(program.format(before="import xtrace")) == expected
    assert run(program.format(before="import xtrace; xtrace.grad(xtrace.numpy.sin)(1.0)")) == expected


def test_modules_that_attributes_load_are_in_sys_modules():
    assert run("""
        import xtrace
        xtrace.as_jax()
        import jax, sys
        print("jax.tree_util" in sys.modules)
        print(jax.numpy is sys.modules["jax.numpy"], jax.scipy.stats is sys.modules["jax.scipy.stats"])
    """) == ["True", "True True"]


def test_the_namespace_of_a_module_has_names_that_were_not_loaded():
    assert run("""
        import xtrace
        xtrace.as_jax()
        import inspect, sys
        import jax.numpy
        dir(jax.numpy)
        print("xtrace.numpy.elementwise.ufuncs" in sys.modules)
        namespace = vars(jax.numpy)
        print(set(dir(jax.numpy)) <= namespace.keys(), namespace["sin"] is jax.numpy.sin, namespace is vars(jax.numpy))
        print(set(dir(jax.lax)) == dict(inspect.getmembers(jax.lax)).keys() <= jax.lax.__dict__.keys())
    """) == ["False", "True True True", "True"]


def test_versions_are_those_of_the_release_whose_behaviour_it_is():
    assert run("""
        import xtrace
        print(xtrace.__version__ == "0.10.2")
        xtrace.config.update("xtrace_jax_version", "0.10.2")
        xtrace.as_jax()
        import importlib.metadata, jax, jax.version
        print(jax.__version__, jax.__version_info__, jax.version.__version__, importlib.metadata.version("jax"))
        print(jax.__version_info__ >= (0, 4, 30), importlib.metadata.version("numpy") is not None)
    """) == ["False", "0.10.2 (0, 10, 2) 0.10.2 0.10.2", "True True"]


@pytest.mark.parametrize(("statement", "texts"), [
    ("import jax.experimental.pallas", ["Pallas is outside", "xtrace.ffi", "<string>:4"]),
    ("import jax._src.mosaic", ["private to jax", "xtrace.alias_names()"]),
    ("import jax.nothing", ["No module named 'jax.nothing'", "xtrace does not have it"]),
    ("from jax import nothing", ["cannot import name 'nothing' from 'jax'", "docs/compatibility.md", "<string>:4"]),
    ("from jax.numpy import nothing", ["cannot import name 'nothing' from 'jax.numpy'", "docs/compatibility.md"]),
    ("from jax.experimental import pallas", ["'pallas' from 'jax.experimental'", "Pallas is outside", "xtrace.ffi"]),
    ("from jax._src.core import nothing", ["cannot import name 'nothing' from 'jax._src.core'", "alias_names()"]),
    ("import jax; jax.nothing", ["has no attribute 'nothing'", "docs/compatibility.md"]),
])
def test_names_that_are_not_there(statement, texts):
    lines = run(f"""
        import xtrace
        xtrace.as_jax()
        {statement}
    """, check=False).stderr
    for text in texts:
        assert text in lines, lines


def test_what_is_logged_comes_from_the_logger_of_jax():
    assert run("""
        import logging, sys, xtrace
        logging.getLogger("jax").setLevel(logging.ERROR)
        logging.basicConfig(stream=sys.stdout, format="%(name)s")
        xtrace.as_jax()
        import jax
        with jax.log_compiles():
            jax.jit(lambda x: x + 1)(1.0)
            logging.getLogger("jax").setLevel(logging.NOTSET)
            print("shown:")
            jax.jit(lambda x: x + 2)(1.0)
    """)[:2] == ["shown:", "jax"]


def test_it_is_too_late_once_jax_is_there():
    lines = run("""
        import jax, xtrace
        try:
            xtrace.as_jax()
        except RuntimeError as error:
            print(error)
        print(jax is xtrace)
    """)
    assert "jax 0.1" in lines[0] and "before the first import of jax" in lines[0] and lines[1] == "False"


def test_processes_that_do_not_ask_are_left_alone():
    assert run("""
        import sys, xtrace
        print("jax" in sys.modules, any("Jax" in str(finder) for finder in sys.meta_path))
    """) == ["False False"]


def test_the_command_line(tmp_path):
    program = tmp_path / "program.py"
    program.write_text("import sys, jax, helper\nprint(jax.__name__, sys.argv[1:], __name__, helper.value)\n")
    (tmp_path / "helper.py").write_text("import jax.numpy as jnp\nvalue = float(jnp.ones(3).sum())\n")
    assert run("", "-m", "xtrace", "run", str(program), "a", "--help") == ["xtrace ['a', '--help'] __main__ 3.0"]
    assert run("", "-m", "xtrace", "run", "-m", "json.tool", "--help")[0].startswith("usage: python -m json.tool")


def test_the_plugin_of_pytest(tmp_path):
    (tmp_path / "test_it.py").write_text("import jax\ndef test_name(): assert jax.__name__ == 'xtrace'\n")
    base = ("-m", "pytest", "-q", "-p", "no:cacheprovider", "--rootdir", str(tmp_path), str(tmp_path))
    assert "1 passed" in run("", *base, "-p", "xtrace.pytest_plugin", "-n", "1")[-1]
    assert "1 passed" in run("", "-m", "xtrace", "run", *base, "-n", "1")[-1]
    assert "1 failed" in run("", *base, check=False).stdout


def test_a_program_is_started_with_little_more_than_it_imports(tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "import gc, sys\n"
        "print(sorted(m for m in sys.modules if m in ('argparse', 'json') or m.startswith('xtrace.cli.')))\n"
        "print('xtrace' in sys.modules, 'xtrace.numpy' in sys.modules, gc.isenabled(), gc.get_freeze_count() > 10000)\n"
        "import jax, jax.numpy as jnp\n"
        "x = jnp.arange(3.0)\n"
        "print(len(jax.live_arrays()))\n"
    )
    assert run("", "-m", "xtrace", "run", str(program)) == [
        "['xtrace.cli.errors', 'xtrace.cli.main', 'xtrace.cli.programs']", "True False True True", "1",
    ]


def test_collections_leave_out_what_is_there_until_a_function_is_traced():
    assert run("""
        import gc, xtrace
        xtrace.as_jax()
        print(gc.get_freeze_count() > 10000, gc.isenabled())
        xtrace.make_jaxpr(lambda x: x + 1)(1.0)
        print(gc.get_freeze_count())
    """) == ["True True", "0"]


def test_private_names_that_libraries_use():
    assert set(run("""
        import xtrace
        xtrace.as_jax()
        from jax._src import core, dtypes, traceback_util
        from jax._src.ad_util import stop_gradient_p
        from jax._src.dispatch import wait_for_tokens
        from jax._src.dtypes import TypePromotionError
        from jax._src.flatten_util import ravel_pytree
        from jax._src.tree_util import tree_flatten
        from jax._src import xla_bridge
        assert not xla_bridge.backends_are_initialized()
        wait_for_tokens()
        xtrace.numpy.ones(2) + 1
        assert xla_bridge.backends_are_initialized()
        traceback_util.register_exclusion("/somewhere")
        seen = []
        xtrace.jit(lambda x: seen.append(core.trace_state_clean()) or x)(1.0)
        assert core.trace_state_clean() and seen == [False] and issubclass(TypePromotionError, ValueError)
        import jax
        for name in xtrace.alias_names():
            __import__(name)
        print("ok")
    """)) == {"ok"}


@pytest.mark.parametrize("statement", [
    "from jax._src.basearray import Array, ArrayLike; assert Array is xtrace.Array",
    "from jax._src.array import ArrayImpl; assert isinstance(jnp.ones(1), ArrayImpl)",
    "from jax._src.mesh import AxisType, Mesh; assert Mesh is xtrace.sharding.Mesh",
    "from jax._src.mesh import thread_resources as t; m = xtrace.make_mesh((1,), 'x')\n"
    "        with m: assert t.env.physical_mesh is m\n        assert t.env.physical_mesh.empty",
    "from jax._src.pjit import pjit; assert pjit is xtrace.experimental.pjit.pjit",
    "from jax._src.sharding_impls import NamedSharding; assert NamedSharding is xtrace.NamedSharding",
    "from jax._src.numpy.lax_numpy import asarray; assert asarray is jnp.asarray",
    "from jax._src.lax import lax as lax_internal; assert lax_internal.add is xtrace.lax.add",
    "from jax._src.lax.control_flow.loops import scan; assert scan is xtrace.lax.scan",
    "from jax._src.nn.functions import relu; assert relu is xtrace.nn.relu",
    "from jax._src.nn.initializers import he_normal; assert he_normal is xtrace.nn.initializers.he_normal",
    "import jax._src.scipy.special as special; assert special.gammaln is xtrace.scipy.special.gammaln",
    "from jax._src.interpreters import ad; import jax._src.interpreters.ad as same; assert ad.Zero is same.Zero",
    "from jax._src import config; assert config.enable_x64.value is False; config.update('jax_enable_x64', True)",
    "from jax._src.public_test_util import check_grads; assert check_grads is xtrace.test_util.check_grads",
    "from jax._src.prng import PRNGKeyArray as K; assert isinstance(xtrace.random.key(0), K) and not isinstance(1, K)",
    "from jax._src.util import split_list, unzip2; assert split_list([1, 2, 3], [1]) == [[1], [2, 3]] and unzip2([])",
    "import jax.core as c, jax.extend.core as e; assert (c.DropVar, c.gensym) == (e.DropVar, e.gensym)",
    "from jax.interpreters.pxla import thread_resources; assert thread_resources.env.physical_mesh.empty",
    "from jax._src.util import unzip2; assert unzip2([(1, 2), (3, 4)]) == ((1, 3), (2, 4))",
    "import jax; assert jax._src.pjit.jit_p is jax.extend.core.primitives.jit_p and jax._src.core.ShapedArray",
    "from jax._src.util import HashablePartial as P; f = P(max, 1); assert f == P(max, 1) != P(max, 2) and f(3) == 3\n"
    "        assert hash(f) == hash(P(max, 1))",
    "from jax._src.lib import jaxlib_extension_version as v, ifrt_version as i; assert isinstance(v + i, int)",
    "from jax._src import distributed as d; assert (d.global_state.client, d.global_state.process_id) == (None, 0)",
    "from jax._src import dtypes as d; assert [d.to_complex_dtype(x).name for x in ('int64', 'bfloat16')] == "
    "['complex128', 'complex64'] and d.dtype(1.0).name == 'float32'",
    "from jax._src.core import full_lower, get_referent; assert full_lower(2) == get_referent(2) == 2",
    "from jax._src.interpreters.ad import CustomVJPException as E; assert issubclass(E, Exception)",
    "from jax._src.core import trace_ctx; assert trace_ctx.is_top_level() and trace_ctx.trace is trace_ctx.trace",
    "from jax._src.random import threefry2x32 as t; k = t.threefry_seed(jnp.asarray(3)); assert k.tolist() == [0, 3]; "
    "assert (t.threefry_split(k, (2,)) == xtrace.random.key_data(xtrace.random.split(xtrace.random.key(3)))).all(); "
    "assert t.threefry_random_bits(k, 32, (2,)).tolist() == [318053758, 4029299397]",
    "import numpy, pickle; from jax._src.literals import TypedFloat as F, TypedInt as I; n = I(5, numpy.dtype('u2')); "
    "assert n == 5 and repr(n) == 'TypedInt(5, dtype=uint16)' and pickle.loads(pickle.dumps(n)).dtype == 'u2'; "
    "assert [xtrace.typeof(x).dtype.name for x in (n, F(2.5, numpy.dtype('f2')))] == ['uint16', 'float16']",
    "import jax; assert jax.core.is_concrete(1) and not jax.jit(jax.core.is_concrete)(1.0)\n"
    "        assert jax.grad(lambda x: x * jax.core.is_concrete(x))(1.0) == 1.0",
    "import jax, jaxlib; assert jax.lib.__version__ == jaxlib.__version__",
    "from jax._src.core import DimSize, Shape, canonicalize_shape, safe_map\n"
    "        assert safe_map(max, [1, 5], [3, 2]) == [3, 5]\n"
    "        from jax._src.util import canonicalize_axis; assert canonicalize_axis(-1, 3) == 2\n"
    "        assert canonicalize_shape([2, 3]) == (2, 3)",
    "from jax._src.sharding_impls import UNSPECIFIED as u, UnspecifiedValue; assert isinstance(u, UnspecifiedValue)",
    "import jax; b = jax.export.symbolic_shape('b, 3'); assert not jax.core.is_constant_shape(b)\n"
    "        assert [jax.core.is_constant_dim(n) for n in b] == [False, True]",
    "import jax.extend.ifrt_programs as i, jaxlib._jax; assert i.ifrt_programs is jaxlib._jax.ifrt_programs",
])
def test_names_that_libraries_import_from_private_files(statement):
    assert run(f"""
        import xtrace, xtrace.numpy as jnp
        xtrace.as_jax()
        {statement}
    """) == []


# Programs that print the same with jax, each a few private functions of it.
CONVERSIONS = """
    import numpy as np
    import jax, jax.numpy as jnp
    from jax._src.numpy import util

    def show(f, *arguments):
        try:
            result = f(*arguments)
        except TypeError:
            result = "TypeError"
        print(f.__name__, repr(result))

    operands = [[jnp.ones(2), 1], [1], [True], [1, True], [jnp.ones(2), 2j], [np.arange(2), np.float16(2)], [[1, 2], 3]]
    for name in ("promote_dtypes", "promote_dtypes_inexact", "promote_dtypes_numeric", "promote_dtypes_complex"):
        for case in operands:
            show(getattr(util, name), *case)
    for name in ("promote_args", "promote_args_inexact", "promote_args_numeric", "promote_args_complex"):
        for case in [*operands, [jnp.ones((2, 2)), jnp.ones(2), 1]]:
            show(getattr(util, name), "function", *case)
    for name in ("check_arraylike", "check_arraylike_or_none", "ensure_arraylike", "promote_shapes"):
        for case in ([jnp.ones(2), 1], [1], [None, 1.0], [[1, 2]], [jnp.ones((2, 2)), jnp.ones(2)], []):
            show(getattr(util, name), "function", *case)
"""
ARGUMENTS = """
    import inspect, jax
    from jax._src.api_util import infer_argnums_and_argnames

    def f(a, b, *c, d=1, **k): pass
    def g(a, /, b, *, d=1): pass

    for function in (f, g):
        signature = inspect.signature(function)
        for numbers in (None, 0, (0, 1), (), 5, -1):
            print(infer_argnums_and_argnames(signature, numbers, None))
        for names in ("b", ("b", "d"), ["a"], "absent", ()):
            for numbers in (None, (1,)):
                print(infer_argnums_and_argnames(signature, numbers, names))
"""
OUT_SHARDINGS = """
    import jax, jax.numpy as jnp
    from jax._src.sharding_impls import canonicalize_sharding

    mesh = jax.make_mesh((1,), ("x",))
    auto = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
    for given in (None, jax.P("x"), jax.NamedSharding(mesh, jax.P("x")), jax.NamedSharding(auto, jax.P("x")),
                  jax.typeof(jnp.ones(2)).sharding, jax.sharding.SingleDeviceSharding(jax.devices()[0])):
        for enters in (False, True):
            try:
                with jax.set_mesh(mesh) if enters else jax.enable_checks(True):
                    result = canonicalize_sharding(given, "function")
                print(result and (type(result.mesh).__name__, result.spec, result.mesh.explicit_axes))
            except (TypeError, ValueError) as error:
                print(isinstance(error, TypeError))
"""


@pytest.mark.parametrize("program", [CONVERSIONS, ARGUMENTS, OUT_SHARDINGS])
def test_private_functions_do_what_those_of_jax_do(program):
    assert run("    import xtrace\n    xtrace.as_jax()\n" + program) == run(program)


def test_modules_that_can_be_imported_but_not_used():
    assert run("""
        import xtrace
        xtrace.as_jax()
        import jax.experimental.colocated_python as cp
        from jax.experimental.colocated_python import func, serialization
        print(serialization.__name__, getattr(func, "_private", None), cp.func is func)
        def annotated(devices: serialization.DeviceList): pass
        try:
            cp.colocated_python(annotated)
        except NotImplementedError as error:
            print(error)
    """) == [
        "jax.experimental.colocated_python.serialization None True",
        "colocated_python: Colocated Python is outside of what xtrace does; call a Python function with "
        "xtrace.pure_callback or xtrace.experimental.io_callback",
    ]


def test_kernels_of_pallas_can_be_imported_but_not_used():
    assert run("""
        import xtrace
        xtrace.as_jax()
        from jax.experimental.pallas.ops.tpu.splash_attention import splash_attention_kernel, splash_attention_mask
        from jax.experimental.pallas.ops.tpu import flash_attention
        from jax.experimental.pallas.ops.gpu.attention import mha
        from jax.experimental.pallas.ops.tpu.flash_attention import BlockSizes
        print(splash_attention_mask.__name__, flash_attention.BlockSizes.__name__, mha.__name__)
        for call in (mha, splash_attention_mask.CausalMask, flash_attention.flash_attention):
            try:
                call((4, 4))
            except NotImplementedError as error:
                print(str(error)[:40])
        try:
            import jax.experimental.pallas
        except ImportError as error:
            print("Pallas is outside" in str(error))
    """) == [
        "jax.experimental.pallas.ops.tpu.splash_attention.splash_attention_mask BlockSizes mha",
        "mha: kernels of Pallas are outside of wh", "CausalMask: kernels of Pallas are outsid",
        "flash_attention: kernels of Pallas are o", "True",
    ]


# A test module of a library; without absl its cases are those of unittest.
LIBRARY_TESTS = r"""
    import jax, jax.numpy as jnp, numpy as np
    from jax._src import test_util as jtu
    jtu.request_cpu_devices(2)

    @jtu.with_config(jax_numpy_rank_promotion="allow")
    class Tests(jtu.JaxTestCase):
        @jtu.sample_product([dict(shape=(3,)), dict(shape=(2, 3))], dtype=jtu.dtypes.floating + jtu.dtypes.complex)
        def test_values(self, shape, dtype):
            draw = jtu.rand_default(self.rng())
            args = lambda: [draw(shape, dtype), draw((3,), dtype)]
            self._CheckAgainstNumpy(np.add, jnp.add, args)
            self._CompileAndCheck(jnp.add, args)

        def test_comparisons(self):
            self.assertAllClose({"a": (1.0, np.ones(2))}, {"a": [1.0000001, jnp.ones(2)]})
            for wrong in (np.ones(3, np.float32), jnp.ones(2, int), jnp.ones(2) * 1.1):
                with self.assertRaises(AssertionError):
                    self.assertAllClose(jnp.ones(2), wrong)
            with self.assertRaisesRegex(ValueError, "promotion"):
                jnp.ones(2) + jnp.ones(2, int)

        def test_counts(self):
            f = jax.jit(lambda x: x * 2)
            with jtu.count_jit_tracing_cache_miss() as traced, jtu.count_pjit_cpp_cache_miss() as compiled:
                f(1.0), f(2.0), f(1)
            self.assertEqual((traced(), compiled()), (2, 2))
            self.assertCacheMisses(lambda: f(3.0), cpp=0, tracing=0, lowering=0)
            with self.assertRaises(AssertionError), jtu.assert_num_jit_and_pmap_compilations(1):
                f(1.0)

        @jtu.with_explicit_mesh((2,), "x")
        def test_meshes(self, mesh):
            x = jax.device_put(np.arange(4.0), jax.P("x"))
            assert x.sharding == jax.NamedSharding(mesh, jax.P("x")) and mesh.explicit_axes == ("x",)

        @jtu.run_on_devices("gpu")
        def test_elsewhere(self):
            raise RuntimeError

        @jtu.ignore_warning(category=UserWarning)
        def test_output(self):
            with jtu.capture_stdout() as text, self.assertNoWarnings():
                print("hi")
            self.assertEqual(text(), "hi\n")

    jtu.absltest.main(testLoader=jtu.JaxTestLoader())
"""


@pytest.mark.parametrize("has_absl", [False, True])
def test_the_test_cases_of_jax(tmp_path, has_absl):
    (tmp_path / "tests.py").write_text(textwrap.dedent(LIBRARY_TESTS))
    if has_absl:
        (tmp_path / "absl" / "testing").mkdir(parents=True)
        (tmp_path / "absl" / "testing" / "absltest.py").write_text("from unittest import *\n")
        (tmp_path / "absl" / "testing" / "parameterized.py").write_text(textwrap.dedent("""
            import functools, unittest

            class TestCase(unittest.TestCase):
                pass

            def parameters(*cases):
                def decorate(test):
                    @functools.wraps(test)
                    def run(self):
                        print(len(cases), "cases of absl")
                        for case in cases:
                            test(self, **case)
                    return run
                return decorate
        """))
    done = run("", "-m", "xtrace", "run", str(tmp_path / "tests.py"), check=False)
    assert "Ran 6 tests" in done.stderr and "OK (skipped=1)" in done.stderr, done.stderr
    assert ("4 cases of absl" in done.stdout) == has_absl


def test_prefix_errors_name_the_places():
    assert run("""
        import xtrace
        xtrace.as_jax()
        from jax._src.tree_util import prefix_errors
        for error in prefix_errors({"y": 1.0, "z": [2, [3]]}, {"y": [1.0], "z": (2,)}):
            print(type(error("in_axes")).__name__, error("in_axes"))
        print(prefix_errors([1.0], [[2.0]]), len(prefix_errors([[1.0]], [[2.0, 3.0]], lambda x: x == [1.0])))
    """) == [
        "ValueError not a prefix: at key path in_axes['z']: list of length 2 against tuple of length 1",
        "[] 0",
    ]


def test_the_registry_of_pytree_classes_takes_nodes_apart_and_makes_them():
    assert run("""
        import xtrace
        xtrace.as_jax()
        import collections, dataclasses, jax
        from jax._src.tree_util import _registry
        Point = jax.tree_util.register_dataclass(dataclasses.make_dataclass("Point", ["x", "y"]), ["x"], ["y"])
        for tree in ((1, [2]), [3], {"b": 1, "a": 2}, None, collections.OrderedDict(b=1, a=2), Point(1, "m")):
            children, metadata = _registry[type(tree)].to_iter(tree)
            print(list(children), metadata, _registry[type(tree)].from_iter(metadata, children) == tree)
        print(Point in _registry, int in _registry)
    """) == [
        "[1, [2]] None True", "[3] None True", "[2, 1] ('a', 'b') True", "[] None True", "[1, 2] ('b', 'a') True",
        "[1] ('m',) True", "True False",
    ]


def test_alias_names_lists_modules():
    assert {"jax.version", "jax._src.core", "jax._src.traceback_util"} <= set(xtrace.alias_names())


def test_names_that_programs_with_primitives_of_their_own_import():
    assert run("""
        import xtrace
        xtrace.as_jax()
        from jax._src.core import call_p, closed_call_p, ConcretizationTypeError
        from jax._src.lib.mlir import ir
        from jax._src.lib.mlir.dialects import func, hlo
        import jax.extend.core.primitives as primitives
        print(closed_call_p is primitives.closed_call_p, ir.Type.__name__, hlo.AddOp.__name__)
    """) == ["True Type AddOp"]
