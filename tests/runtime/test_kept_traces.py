"""Traces that are kept on disk: found again for the same function, never for another one."""

from __future__ import annotations

import contextlib
import functools
import importlib
import json
import logging
import math
import os
import subprocess
import sys
import textwrap
import types

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xtrace
import xtrace.experimental.layout
import xtrace.numpy as jnp
from xtrace._src.core import primitive
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.runtime.checked_bytes import Format
from xtrace._src.runtime.disk_cache import DiskCache
from xtrace.cli.main import main
from xtrace.experimental.compilation_cache.compilation_cache import reset_cache


@contextlib.contextmanager
def cache_in(folder):
    reset_cache()
    with (
        cache_settings.directory(str(folder)), cache_settings.min_compile_seconds(0.0),
        cache_settings.trace_cache(True),
    ):
        yield folder
    reset_cache()


@pytest.fixture
def cache(tmp_path):
    with cache_in(tmp_path / "programs") as folder:
        yield folder


def find_module(source, name="module_of_user"):
    """Return a new module of this source, as after a start of the process."""
    module = types.ModuleType(name)
    sys.modules[name] = module
    text = "import enum, functools, math, dataclasses\nimport numpy as np\nimport xtrace\nimport xtrace.numpy as jnp\n"
    exec(compile(text + textwrap.dedent(source), f"{name}.py", "exec", dont_inherit=True), module.__dict__)
    return module


def run(source, argument=None, **options):
    """Return the result of the function `f` of a source, and whether its trace was hit, missed or uncertain."""
    xtrace.clear_caches()
    before = xtrace.cache_info()
    function = find_module(source).f
    given = (jnp.float32(3),) if argument is None else argument
    result = np.asarray(xtrace.jit(function, **options)(*given))
    after = xtrace.cache_info()
    counts = {name: getattr(after, name) - getattr(before, name) for name in after._fields if name.startswith("trace_")}
    (outcome,) = [name for name, count in counts.items() if count]
    return result, outcome


# A source, and the part of it that changes. Every change gives another result.
CHANGES = {
    "body": ("def f(x): return x + 1", "x + 1", "x + 2"),
    "operation": ("def f(x): return jnp.sin(x)", "jnp.sin", "jnp.cos"),
    "helper at depth 3": (
        """
        def h3(x): return x * 2
        def h2(x): return h3(x)
        def h1(x): return h2(x)
        def f(x): return h1(x)
        """,
        "x * 2", "x * 3",
    ),
    "helper that is called by its caller": (
        """
        def f(x): return x if x.ndim else g(x) * 2
        def g(x): return x + 7 if x.ndim else x + 1
        """,
        "x + 1", "x + 5",
    ),
    "recursion": (
        """
        def f(x, n=3): return x if n == 0 else g(x, n - 1)
        def g(x, n): return f(x + 1, n)
        """,
        "x + 1", "x + 2",
    ),
    "closure": ("def make(c):\n    return lambda x: x * c\nf = make(2.0)", "make(2.0)", "make(3.0)"),
    "closure of a closure": (
        "def make(c):\n    def outer(x):\n        def inner(y): return y * c\n        return inner(x)\n"
        "    return outer\nf = make(2.0)",
        "make(2.0)", "make(3.0)",
    ),
    "type of a constant": ("c = 1\ndef f(x): return x / 2 if isinstance(c, int) else x", "c = 1", "c = 1.0"),
    "sign of zero": ("c = 0.0\ndef f(x): return x * 0 + 1 / math.copysign(1, c)", "c = 0.0", "c = -0.0"),
    "global": ("c = 2\ndef f(x): return x * c", "c = 2", "c = 3"),
    "global of a comprehension": ("c = 2\ndef f(x): return sum([x * c for _ in range(2)])", "c = 2", "c = 3"),
    "default": ("def f(x, c=2): return x * c", "c=2", "c=3"),
    "keyword default": ("def f(x, *, c=2): return x * c", "c=2", "c=3"),
    "default of an inner function": (
        "def f(x):\n    def g(y, c=2): return y * c\n    return g(x)", "c=2", "c=3",
    ),
    "list": ("c = [1, [2]]\ndef f(x): return x * c[1][0]", "[2]", "[3]"),
    "dictionary": ("c = {'a': 2}\ndef f(x): return x * c['a']", "2", "3"),
    "order of a dictionary": (
        "c = {'a': 2, 'b': 3}\ndef f(x): return x * list(c.values())[0]", "{'a': 2, 'b': 3}", "{'b': 3, 'a': 2}",
    ),
    "function in a dictionary": ("c = {'a': lambda x: x + 1}\ndef f(x): return c['a'](x)", "x + 1", "x + 2"),
    "function in a list": ("c = [jnp.sin]\ndef f(x): return c[0](x)", "jnp.sin", "jnp.cos"),
    "set": ("c = {'a', 'b'}\ndef f(x): return x * ('c' in c)", "'b'", "'c'"),
    "text": ("c = 'a'\ndef f(x): return x + len(c)", "'a'", "'ab'"),
    "NumPy array": ("c = np.array([1., 2.])\ndef f(x): return (x * c).sum()", "2.]", "3.]"),
    "dtype of a NumPy array": (
        "c = np.ones(2, 'f4')\ndef f(x): return (x * c.itemsize).sum()", "'f4'", "'f2'",
    ),
    "NumPy scalar": ("c = np.float32(2)\ndef f(x): return x * c", "(2)", "(3)"),
    "array": ("c = jnp.array([1., 2.])\ndef f(x): return (x * c).sum()", "2.]", "3.]"),
    "weak type of an array": (
        "c = jnp.asarray(2.0)\ndef f(x): return x * c.weak_type", "jnp.asarray(2.0)", "jnp.float32(2.0)",
    ),
    "large array": (
        "c = np.full((300,), 2., 'f')\nd = jnp.asarray(c)\ndef f(x): return (x * d).sum()", "2.", "3.",
    ),
    "partial": (
        "def g(c, x): return x * c\nf = functools.partial(g, 2)", "g, 2", "g, 3",
    ),
    "keyword of a partial": ("def g(x, c): return x * c\nf = functools.partial(g, c=2)", "c=2", "c=3"),
    "method": (
        "class A:\n    def g(self, x): return x + 1\n    def f(self, x): return self.g(x)\nf = A().f", "x + 1", "x + 2",
    ),
    "method of a base": (
        "class B:\n    def g(self, x): return x + 1\nclass A(B):\n    def f(self, x): return super().g(x)\nf = A().f",
        "x + 1", "x + 2",
    ),
    "state": (
        "class A:\n    def __init__(self, c): self.c = c\n    def f(self, x): return x * self.c\nf = A(2).f",
        "A(2)", "A(3)",
    ),
    "state in slots": (
        "class A:\n    __slots__ = ('c',)\n    def __init__(self, c): self.c = c\n    def __call__(self, x): "
        "return x * self.c\na = A(2)\ndef f(x): return a(x)",
        "A(2)", "A(3)",
    ),
    "attribute of a class": ("class A:\n    c = 2\ndef f(x): return x * A.c", "c = 2", "c = 3"),
    "property": (
        "class A:\n    @property\n    def c(self): return 2\na = A()\ndef f(x): return x * a.c", "return 2", "return 3",
    ),
    "static method": (
        "class A:\n    @staticmethod\n    def c(): return 2\ndef f(x): return x * A.c()", "return 2", "return 3",
    ),
    "dataclass": (
        "@dataclasses.dataclass(frozen=True)\nclass A:\n    c: int = 1\n    d: int = 5\n"
        "a = A(2)\ndef f(x): return x * a.c",
        "A(2)", "A(3)",
    ),
    "default of a dataclass": (
        "@dataclasses.dataclass\nclass A:\n    c: int = 2\ndef f(x): return x * A().c", "= 2", "= 3",
    ),
    "named tuple": (
        "import collections\nA = collections.namedtuple('A', 'c d')\na = A(2, 3)\ndef f(x): return x * a.c",
        "'c d'", "'d c'",
    ),
    "member of an enumeration": (
        "class A(enum.Enum):\n    ONE = 1\n    TWO = 2\na = A.ONE\ndef f(x): return x * (1 if a is A.ONE else 2)",
        "a = A.ONE", "a = A.TWO",
    ),
    "value of a member": (
        "class A(enum.Enum):\n    ONE = 1\ndef f(x): return x + A.ONE.value", "ONE = 1", "ONE = 4",
    ),
    "jitted function": (
        "@xtrace.jit\ndef g(x): return x + 1\ndef f(x): return g(x)", "x + 1", "x + 2",
    ),
    "static argument of an inner jit": (
        "@functools.partial(xtrace.jit, static_argnums=1)\ndef g(x, c): return x + c\ndef f(x): return g(x, 1)",
        "g(x, 1)", "g(x, 2)",
    ),
    "gradient": (
        "def g(x): return x * x\ndg = xtrace.grad(g)\ndef f(x): return dg(x)", "x * x", "x * x * x",
    ),
    "argument of a gradient": (
        "def g(x, y): return x * y * 2 + x\ndg = xtrace.grad(g, 0)\ndef f(x): return dg(x, x)", "g, 0", "g, 1",
    ),
    "vmap": (
        "def g(x): return x + 1\ndef f(x): return xtrace.vmap(g)(x[None])", "x + 1", "x + 2",
    ),
    "custom jvp": (
        "@xtrace.custom_jvp\ndef g(x): return x\n@g.defjvp\ndef rule(p, t): return g(p[0]), t[0] * 2\n"
        "def f(x): return xtrace.grad(g)(x)",
        "* 2", "* 3",
    ),
    "custom vjp": (
        "@xtrace.custom_vjp\ndef g(x): return x\ng.defvjp(lambda x: (x, None), lambda r, t: (t * 2,))\n"
        "def f(x): return xtrace.grad(g)(x)",
        "* 2", "* 3",
    ),
    "decorated function": (
        "def twice(g):\n    @functools.wraps(g)\n    def h(x): return g(g(x))\n    return h\n"
        "@twice\ndef f(x): return x + 1",
        "x + 1", "x + 2",
    ),
    "memoized function": (
        "@functools.lru_cache\ndef c(n): return n * 2\ndef f(x): return x * c(3)", "n * 2", "n * 4",
    ),
    "function of the library in the user's place": ("g = jnp.sin\ndef f(x): return g(x)", "jnp.sin", "jnp.cos"),
    "attribute of a function": ("def f(x): return x\nf.c = 2\ndef g(x): return x * f.c\nf, h = g, f\n"
        "def g(x): return x * h.c\nf = g", "f.c = 2", "f.c = 3"),
    "pytree class": (
        "@xtrace.tree_util.register_pytree_node_class\nclass A:\n    def __init__(self, c): self.c = c\n"
        "    def tree_flatten(self): return (self.c,), None\n    @classmethod\n"
        "    def tree_unflatten(cls, _, children): return cls(children[0] + 1)\n"
        "def f(x): return xtrace.tree.map(lambda y: y, A(x)).c",
        "+ 1", "+ 2",
    ),
    "function that flattens a class": (
        "class A:\n    def __init__(self, c): self.c = c\n"
        "xtrace.tree_util.register_pytree_node(A, lambda a: ((a.c,), None), lambda _, c: A(c[0] + 1))\n"
        "def f(x): return xtrace.tree.map(lambda y: y, A(x)).c",
        "+ 1", "+ 2",
    ),
    "name that is there or not": (
        "c = 2\ndef f(x):\n    try: return x * c\n    except NameError: return x", "c = 2", "d = 2",
    ),
    "builtin replaced": ("def f(x): return x * abs(-2)", "def f", "def abs(x): return 3\ndef f"),
    "NumPy's function": ("def f(x): return x * np.sum([1, 2])", "np.sum", "np.prod"),
    "function of math": ("def f(x): return x * math.sin(1)", "math.sin", "math.cos"),
    "type of a field": (
        "@dataclasses.dataclass\nclass A:\n    c: int = 2\n"
        "def f(x): return x + len(dataclasses.fields(A)[0].type.__name__)",
        "int", "float",
    ),
    "name of a helper": (
        "def g(x): return x\ng.__name__ = 'a'\ndef f(x): return g(x) + len(g.__name__)", "'a'", "'ab'",
    ),
    "policy of a checkpoint": (
        "@functools.partial(xtrace.checkpoint, policy=xtrace.checkpoint_policies.dots_saveable)\n"
        "def g(x): return x + 1\ndef f(x): return g(x)",
        "x + 1", "x + 2",
    ),
    "subclass of a dictionary": (
        "class D(dict):\n    pass\nd = D(c=2)\ndef f(x): return x * d['c']", "c=2", "c=3",
    ),
    "attribute by name": (
        "class A:\n    c = 2\ndef f(x): return x * getattr(A, 'c', len([1])) if hasattr(x + 1, 'T') else x",
        "c = 2", "c = 3",
    ),
    "own function with a builtin's name": (
        "def getattr(x, name): return x + 1\ndef f(x): return getattr(x, 'T')", "x + 1", "x + 2",
    ),
    "copy of a class": (
        "import copy, copyreg\nclass A:\n    def __init__(self, c): self.c = c\na = A(2)\n"
        "copyreg.pickle(A, lambda a: (A, (2,)))\ndef f(x): return x * copy.copy(a).c",
        "(A, (2,))", "(A, (7,))",
    ),
    "keyword names": ("def g(a, b): return a - 2 * b\ndef f(x): return g(a=x, b=1)", "g(a=x, b=1)", "g(b=x, a=1)"),
}


@pytest.mark.parametrize("name", CHANGES)
def test_a_change_of_what_is_read_is_traced_again(cache, name):
    source, old, new = CHANGES[name]
    source = textwrap.dedent(source)
    assert old in source
    first, outcome = run(source)
    assert outcome == "trace_misses"
    again, outcome = run(source)
    assert outcome == "trace_hits"
    np.testing.assert_array_equal(again, first)
    changed = source.replace(old, new)
    other, outcome = run(changed)
    assert outcome != "trace_hits"
    with cache_settings.trace_cache(False):
        xtrace.clear_caches()
        expected = np.asarray(xtrace.jit(find_module(changed).f)(jnp.float32(3)))
    np.testing.assert_array_equal(other, expected)
    assert other.shape != first.shape or (other != first).any(), "the change changes nothing"


# A source that asks for a class, and a registration after which the answer is another one.
REGISTRATIONS = {
    "own abstract class": (
        "import abc\nclass B(abc.ABC): pass\nclass A: pass\na = A()\ndef f(x): return x * (1 + isinstance(a, B))",
        "B.register(A)",
    ),
    "class alone": (
        "import abc\nclass B(abc.ABC): pass\nclass A: pass\ndef f(x): return x * (1 + issubclass(A, B))",
        "B.register(A)",
    ),
    "subclass of the abstract class": (
        "import abc\nclass B(abc.ABC): pass\nclass C(B): pass\nclass A: pass\na = A()\n"
        "def f(x): return x * (1 + isinstance(a, B))",
        "C.register(A)",
    ),
    "class that is registered itself": (
        "import abc\nclass B(abc.ABC): pass\nclass C(abc.ABC): pass\nB.register(C)\nclass A: pass\na = A()\n"
        "def f(x): return x * (1 + isinstance(a, B))",
        "C.register(A)",
    ),
    "base": (
        "import abc\nclass B(abc.ABC): pass\nclass C: pass\nclass A(C): pass\na = A()\n"
        "def f(x): return x * (1 + isinstance(a, B))",
        "B.register(C)",
    ),
    "standard abstract class": (
        "from collections.abc import Sequence\nclass A: pass\na = A()\n"
        "def f(x): return x * (1 + isinstance(a, Sequence))",
        "Sequence.register(A)",
    ),
    "attribute of a standard module": (
        "import numbers\nclass A: pass\na = A()\ndef f(x): return x * (1 + isinstance(a, numbers.Number))",
        "numbers.Number.register(A)",
    ),
    "class of NumPy": (
        "import numbers\nc = np.float32(2)\ndef f(x): return x * (1 + isinstance(c, numbers.Integral))",
        "numbers.Integral.register(np.float32)",
    ),
    "protocol": (
        "import typing\n@typing.runtime_checkable\nclass B(typing.Protocol):\n    def area(self): ...\n"
        "class A: pass\na = A()\ndef f(x): return x * (1 + isinstance(a, B))",
        "B.register(A)",
    ),
    "pattern": (
        "import abc\nclass B(abc.ABC): pass\nclass A: pass\na = A()\ndef f(x):\n    match a:\n"
        "        case B(): return x * 2\n        case _: return x",
        "B.register(A)",
    ),
    "single dispatch": (
        "@functools.singledispatch\ndef g(a, x): return x\nclass A: pass\na = A()\ndef f(x): return g(a, x)",
        "g.register(A, lambda a, x: x * 2)",
    ),
    "single dispatch of a method": (
        "class B:\n    @functools.singledispatchmethod\n    def g(self, a, x): return x\nclass A: pass\na = A()\n"
        "b = B()\ndef f(x): return b.g(a, x)",
        "B.g.register(A, lambda self, a, x: x * 2)",
    ),
}


@pytest.mark.parametrize("name", REGISTRATIONS)
def test_registrations_after_a_trace_are_seen(cache, name):
    source, registration = REGISTRATIONS[name]
    before, after = source, f"{source}\n{registration}\n"
    outcomes = [run(each) for each in (before, before, after, after)]
    assert [float(result) for result, _ in outcomes] == [3, 3, 6, 6]
    assert outcomes[2][1] != "trace_hits"
    if "dispatch" not in name:
        assert outcomes[1][1] == "trace_hits"


def test_a_class_that_is_not_found_by_its_name_is_no_certain_registration(cache):
    source = (
        "import abc\nclass B(abc.ABC): pass\ndef make():\n    class A: pass\n    return A\nA, C = make(), make()\n"
        "a = A()\nB.register(C)\ndef f(x): return x * (1 + isinstance(a, B))"
    )
    assert run(source) == (3, "trace_uncertain")
    assert run(source.replace("(C)", "(A)")) == (6, "trace_uncertain")


PLAIN = "def f(x): return (x @ x if x.ndim == 2 else x) * 2"


def test_arguments_options_and_settings_are_part_of_the_key(cache):
    x = np.ones((4, 4), np.float32)
    variants = {
        "array": (x,), "shape": (x[:2, :2],), "dtype": (x.astype(np.int32),), "tree": ([x],),
        "weak type": (2.0,), "strong type": (np.float32(2),),
    }
    sources = dict.fromkeys(variants, PLAIN) | {"tree": "def f(x): return x[0] * 2"}
    for _ in range(2):
        outcomes = {name: run(sources[name], given)[1] for name, given in variants.items()}
    assert set(outcomes.values()) == {"trace_hits"}
    for setting in (
        xtrace.enable_x64(True), xtrace.default_matmul_precision("float32"), xtrace.numpy_dtype_promotion("strict"),
    ):
        with setting:
            assert run(PLAIN, (x,))[1] == "trace_misses"
    assert run(PLAIN, (x,), keep_unused=True)[1] == "trace_misses"
    assert run(PLAIN, (x,), compiler_options={"xla_cpu_enable_fast_math": True})[1] == "trace_misses"
    assert run(PLAIN, (jnp.asarray(x),), donate_argnums=0)[1] == "trace_misses"
    assert run(PLAIN, (x,))[1] == "trace_hits"


def test_static_arguments_are_part_of_the_key(cache):
    source = "def f(x, n, name='a'): return x * n + len(name)"

    def outcome(*args, **kwargs):
        return run(source, (np.float32(2), *args), static_argnums=(1, 2))

    calls = {(2,): 5, (3,): 7, (2, "ab"): 6}
    equal = [((2.0,), 5), ((True,), 3), ((1,), 3)]
    for expected in ("trace_misses", "trace_hits"):
        for call, value in [*calls.items(), *equal]:
            assert outcome(*call) == (value, expected)


def test_checks_and_traces_of_traces_do_not_look(cache):
    f = find_module("def f(x): return jnp.log(x)").f
    with xtrace.debug_nans(True), pytest.raises(FloatingPointError):
        xtrace.jit(f)(-1.0)
    info = xtrace.cache_info()
    xtrace.jit(f).lower(1.0).compile()
    xtrace.make_jaxpr(xtrace.jit(f))(1.0)
    xtrace.jit(f).trace(1.0)
    xtrace.eval_shape(xtrace.jit(f), 1.0)
    after = xtrace.cache_info()
    assert (after.trace_hits, after.trace_misses) == (info.trace_hits, info.trace_misses)


def test_a_function_from_the_cache_has_all_its_stages(cache):
    source = "def f(x, y): return {'a': (x + y, [x]), 'b': None, 3 and 'c': y}"
    x = jnp.arange(3.0)
    xtrace.jit(find_module(source).f)(x, x)
    xtrace.clear_caches()
    f = xtrace.jit(find_module(source).f)
    for _ in range(6):
        result = f(x, x + 1)
    assert xtrace.cache_info().trace_hits == 1
    np.testing.assert_array_equal(result["a"][0], [1, 3, 5])
    assert result["b"] is None and set(result) == {"a", "b", "c"}
    assert "add" in str(f.trace(x, x).jaxpr) and "stablehlo.add" in f.lower(x, x).as_text()
    assert xtrace.lower(f).as_text() == f.lower(x, x).as_text()
    assert "add" in str(xtrace.make_jaxpr(f)(x, x))
    assert f.cache_info().entries
    with pytest.raises(TypeError):
        f(x)


def test_arguments_may_be_named_tuples_and_classes_of_users(cache):
    source = """
    import typing
    class State(typing.NamedTuple):
        count: object
        moments: object
    @functools.partial(xtrace.tree_util.register_dataclass, data_fields=["w"], meta_fields=["name"])
    @dataclasses.dataclass
    class Layer:
        w: object
        name: str
    def f(state, layer):
        state = State(state.count + 1, {"m": layer.w * len(layer.name)})
        return state, layer
    """
    for expected in ("trace_misses", "trace_hits"):
        xtrace.clear_caches()
        before = xtrace.cache_info()
        module = find_module(source)
        x = jnp.ones(2)
        state, layer = xtrace.jit(module.f)(module.State(0, {"m": x}), module.Layer(x, "ab"))
        assert getattr(xtrace.cache_info(), expected) == getattr(before, expected) + 1
        assert type(state) is module.State and type(layer) is module.Layer and layer.name == "ab"
        np.testing.assert_array_equal(state.moments["m"], [2, 2])


def test_donated_unused_and_hidden_arrays(cache):
    source = "c = jnp.arange(4000.)\ndef f(x, unused, y): return x + c, y"
    for _ in range(2):
        xtrace.clear_caches()
        f = xtrace.jit(find_module(source).f, donate_argnums=0)
        x = jnp.zeros(4000)
        result, y = f(x, 1.0, 2.0)
        assert x.is_deleted() and result[3] == 3 and float(y) == 2 and y.weak_type
    assert xtrace.cache_info().trace_hits == 1


def test_programs_on_meshes_are_found_again(cache):
    mesh = xtrace.make_mesh((2, 2), ("a", "b"), devices=xtrace.devices()[:4])
    spec = xtrace.P("a", "b")
    outcomes = []
    for place in (spec, spec, xtrace.P("b", "a"), spec):
        xtrace.clear_caches()
        before = xtrace.cache_info().trace_hits
        x = xtrace.device_put(np.arange(16.0, dtype=np.float32).reshape(4, 4), xtrace.NamedSharding(mesh, place))
        result = xtrace.jit(find_module("def f(x): return x * 2 + x.sum()").f)(x)
        np.testing.assert_array_equal(result, np.asarray(x) * 2 + 120)
        assert result.sharding.is_equivalent_to(x.sharding, 2)
        outcomes.append(xtrace.cache_info().trace_hits - before)
    assert outcomes == [0, 1, 0, 1]


KINDS = {
    "keys": ("def f(key): return xtrace.random.split(key)", lambda: xtrace.random.key(3)),
    "old keys": ("def f(key): return xtrace.random.normal(key, (3,))", lambda: xtrace.random.PRNGKey(3)),
    "bfloat16": ("def f(x): return x * 2", lambda: jnp.ones(3, jnp.bfloat16)),
    "int4": ("def f(x): return x.astype('int8'), x", lambda: jnp.ones(3, jnp.int4)),
    "complex": ("def f(x): return x * 1j", lambda: np.ones(3, np.complex64)),
    "empty": ("def f(x): return x, ()", lambda: np.ones((0, 3))),
    "float0": ("def f(x): return xtrace.grad(lambda y: 1.0 * y, allow_int=True)(x)", lambda: np.int32(3)),
    "no result": ("def f(x): return None", lambda: 1),
    "result that is an argument": ("def f(x): return x, x", lambda: jnp.ones(3)),
    "constants": ("c = np.arange(3)\nd = xtrace.random.key(0)\ndef f(x): return c, d, 2.0", lambda: 1),
    "scan": ("def f(x): return xtrace.lax.scan(lambda c, y: (c + y, c), x, jnp.arange(3.0))", lambda: 1.0),
    "linear algebra": ("def f(x): return jnp.linalg.eigvalsh(x)", lambda: np.eye(3, dtype=np.float32)),
}


@pytest.mark.parametrize("name", KINDS)
def test_results_of_all_kinds_are_found_again(cache, name):
    source, argument = KINDS[name]
    results = []
    for hits in (0, 1):
        xtrace.clear_caches()
        before = xtrace.cache_info().trace_hits
        function = xtrace.jit(find_module(source).f)
        results.append([function(argument()) for _ in range(6)])
        assert xtrace.cache_info().trace_hits - before == hits
    first, *others = [value for each in results for value in each]
    for other in others:
        assert xtrace.tree.structure(other) == xtrace.tree.structure(first)
        for one, two in zip(xtrace.tree.leaves(other), xtrace.tree.leaves(first), strict=True):
            assert xtrace.typeof(one) == xtrace.typeof(two) and type(one) is type(two)
            if xtrace.dtypes.issubdtype(one.dtype, xtrace.dtypes.prng_key):
                one, two = xtrace.random.key_data(one), xtrace.random.key_data(two)
            np.testing.assert_array_equal(np.asarray(one), np.asarray(two))


def test_layouts_of_arguments_are_part_of_the_key(cache):
    source = "def f(x): return x * 2"
    default = jnp.arange(6.0).reshape(2, 3)
    layout = xtrace.experimental.layout.Layout(major_to_minor=(1, 0))
    turned = xtrace.device_put(default, xtrace.experimental.layout.Format(layout, default.sharding))
    outcomes = [run(source, (x,)) for x in (default, turned, default, turned)]
    assert [outcome for _, outcome in outcomes] == ["trace_misses"] * 2 + ["trace_hits"] * 2
    for result, _ in outcomes:
        np.testing.assert_array_equal(result, np.arange(6.0).reshape(2, 3) * 2)


# A source whose trace is never kept, and a part of the reason.
UNCERTAIN = {
    "time": ("import time\ndef f(x): return x * (time.time() > 0)", "time.time"),
    "random numbers": ("import random\ndef f(x): return x * random.random()", "random"),
    "random numbers of NumPy": ("def f(x): return x * np.random.rand()", "np.random"),
    "environment": ("import os\ndef f(x): return x * len(os.environ)", "os"),
    "file": ("def f(x):\n    open('/dev/null').close()\n    return x", "open"),
    "file of an array": ("def f(x): return x * len(jnp.load.__name__)", "load"),
    "mesh that is set": ("def f(x):\n    xtrace.set_mesh\n    return x", "set_mesh"),
    "print": ("def f(x):\n    print(end='')\n    return x", "print"),
    "annotations of a class": (
        "import typing\nclass A:\n    c: int = 1\ndef f(x): return x * len(typing.get_type_hints(A))", "get_type_hints",
    ),
    "evaluation": ("def f(x): return eval('x * 2')", "eval"),
    "import": ("def f(x):\n    import math\n    return x * math.pi", "imports math"),
    "attribute of a module": ("def f(x): return getattr(jnp, 'sin')(x)", "jnp"),
    "name of an attribute that is computed": ("c = 'T'\ndef f(x): return getattr(x, c)", "getattr"),
    "name of an attribute that a call returns": (
        "def f(x): return getattr(x, max('T', 'S'), 'T')", "getattr",
    ),
    "variables of a function by name": ("def f(x): return x * len(getattr(f, '__globals__'))", "getattr"),
    "function that reads attributes, passed on": ("def f(x): return list(map(getattr, [x], ['T']))[0]", "getattr"),
    "attribute that is set": ("class A: pass\ndef f(x):\n    setattr(A, 'c', 2)\n    return x * A.c", "setattr"),
    "module passed on": ("def g(m, x): return m.sin(x)\ndef f(x): return g(jnp, x)", "passed on"),
    "module in a list": ("ms = [jnp]\ndef f(x): return ms[0].sin(x)", "passed on"),
    "variables of a function": ("def f(x): return x * len(f.__globals__ or ())", "__globals__"),
    "changed global": ("c = 1\ndef f(x):\n    global c\n    c += 1\n    return x * c", "changes the global c"),
    "counter": ("calls = []\ndef f(x):\n    calls.append(1)\n    return x * len(calls)", "tracing changed"),
    "changed state": (
        "class A:\n    n = 0\n    def f(self, x):\n        self.n += 1\n        return x * self.n\nf = A().f",
        "tracing changed",
    ),
    "changed variable of a closure": (
        "def make():\n    n = 0\n    def f(x):\n        nonlocal n\n        n += 1\n        return x * n\n"
        "    return f\nf = make()",
        "tracing changed",
    ),
    "generator": ("numbers = iter(range(9))\ndef f(x): return x * next(numbers)", "numbers"),
    "state of an iterator": (
        "import itertools\nc = itertools.count(2)\ndef f(x): return x * next(c)", "itertools.count",
    ),
    "state of an object in C": (
        "import operator\nc = operator.itemgetter(1)\ndef f(x): return x * c([1, 2])", "itemgetter",
    ),
    "annotations": ("def g(y: int): return y\ndef f(x): return x * len(g.__annotations__)", "__annotations__"),
    "lock": ("import threading\nlock = threading.Lock()\ndef f(x):\n    with lock: return x", "lock"),
    "context variable": (
        "import contextvars\nc = contextvars.ContextVar('c', default=2)\ndef f(x): return x * c.get()", "c",
    ),
    "generator of random numbers": (
        "rng = np.random.default_rng(0)\ndef f(x): return x * rng.random()", "rng",
    ),
    "array of objects": ("c = np.array([object()], object)\ndef f(x): return x * len(c)", "Python objects"),
    "metaclass": (
        "class Meta(type):\n    def __getattr__(cls, name): return 2\nclass A(metaclass=Meta): pass\n"
        "def f(x): return x * A.c",
        "metaclass",
    ),
    "module that makes its attributes": (
        "import types\nm = types.ModuleType('m')\nm.__getattr__ = lambda name: 2\ndef f(x): return x * m.c", "m.c",
    ),
    "setting": ("def f(x): return x * bool(xtrace.config.jax_enable_x64)", "config"),
    "callback": (
        "def f(x): return xtrace.pure_callback(lambda y: y, xtrace.ShapeDtypeStruct((), 'float32'), x)",
        "pure_callback",
    ),
    "debug print": ("def f(x):\n    xtrace.debug.print('{}', x)\n    return x", "debug"),
}


@pytest.mark.parametrize("name", UNCERTAIN)
def test_what_is_uncertain_is_traced(cache, name, caplog):
    source, reason = UNCERTAIN[name]
    with caplog.at_level(logging.WARNING, "xtrace"), xtrace.explain_cache_misses(True):
        for _ in range(2):
            reset_cache()
            xtrace.clear_caches()
            module = find_module(source)
            xtrace.block_until_ready(xtrace.jit(module.f)(jnp.float32(3)))
            info = xtrace.cache_info()
            assert (info.trace_hits, info.trace_uncertain, info.traces) == (0, 1, 0)
    (message, *_) = [r.getMessage() for r in caplog.records if "is not kept on disk" in r.getMessage()]
    assert reason in message


def test_nothing_is_kept_unless_asked_for(cache):
    with cache_settings.trace_cache(False):
        xtrace.jit(find_module(PLAIN).f)(1.0)
    info = xtrace.cache_info()
    assert (info.traces, info.trace_hits, info.trace_misses, info.trace_uncertain) == (0, 0, 0, 0)


def traces_in(folder):
    return sorted(folder.glob("*.trace"))


def test_a_trace_without_its_program_is_traced_again(cache):
    run(PLAIN)
    for program in cache.glob("*.program"):
        program.unlink()
    assert run(PLAIN)[1] == "trace_misses"
    assert run(PLAIN)[1] == "trace_hits"


@settings(max_examples=60, deadline=None)
@given(st.data())
def test_a_damaged_trace_is_traced_again(tmp_path_factory, data):
    with cache_in(tmp_path_factory.mktemp("programs")) as folder:
        first, _ = run(PLAIN)
        (path,) = traces_in(folder)
        content = bytearray(path.read_bytes())
        position = data.draw(st.integers(0, len(content) - 1))
        content[position] ^= data.draw(st.integers(1, 255))
        path.write_bytes(content[: data.draw(st.sampled_from([len(content), position]))])
        with cache_settings.raise_errors(False), pytest.warns(UserWarning, match="wrong"):
            result, outcome = run(PLAIN)
        assert outcome == "trace_misses" and result == first
        assert run(PLAIN) == (first, "trace_hits")


RECORDS = {
    "no record": lambda record: [],
    "unknown device": lambda record: record | {"devices": [99]},
    "unknown platform": lambda record: record | {"platform": "abacus"},
    "unknown structure": lambda record: record | {"out tree": 7},
    "unknown node": lambda record: record | {"out tree": ["deque", None, []]},
    "unknown dtype": lambda record: record | {"out_avals": [[[], "f33", False, 1, None]]},
    "no key": lambda record: record | {"program": "xyz"},
    "other options": lambda record: record | {"options": "xyz"},
    "another number of results": lambda record: record | {"out_avals": record["out_avals"] * 2},
    "another structure": lambda record: record | {"out tree": ["tuple", None, [0, 0]]},
    "a kept input that is not there": lambda record: record | {"kept": [7], "layouts": None},
    "a deep structure": lambda record: record | {"out tree": functools.reduce(lambda x, _: [x], range(900), 0)},
}


@pytest.mark.parametrize("name", RECORDS)
def test_a_record_that_this_release_does_not_write_is_traced_again(cache, name):
    first, _ = run(PLAIN)
    (path,) = traces_in(cache)
    form = Format(b"xtrace\x00t", 1, "trace of a program")
    head, payload = form.decode(path.read_bytes())
    size = int.from_bytes(payload[:8], "little")
    record = json.dumps(RECORDS[name](json.loads(payload[8 : 8 + size]))).encode()
    path.write_bytes(form.encode(head, len(record).to_bytes(8, "little") + record + payload[8 + size :]))
    assert run(PLAIN) == (first, "trace_misses")
    assert (cache / "quarantine" / path.name).exists()


def test_traces_that_others_can_write_are_refused(cache):
    first, _ = run(PLAIN)
    (path,) = traces_in(cache)
    path.chmod(0o666)
    with pytest.warns(UserWarning, match="written by others"):
        assert run(PLAIN) == (first, "trace_misses")


def test_errors_of_the_folder_are_warnings_or_raised(cache, monkeypatch):
    write = DiskCache.write

    def fail(self, key, entry, max_size=-1, kind=".program"):
        if kind == ".trace":
            raise OSError("the disk is full")
        return write(self, key, entry, max_size, kind)

    monkeypatch.setattr(DiskCache, "write", fail)
    with pytest.warns(UserWarning, match="disk is full"):
        assert run(PLAIN)[1] == "trace_misses"
    with cache_settings.raise_errors(True), pytest.raises(OSError, match="disk is full"):
        xtrace.jit(find_module(PLAIN).f)(jnp.float32(3))


def test_large_arrays_are_not_read(cache):
    fingerprints = importlib.import_module("xtrace._src.api.kept_traces.function_fingerprints")
    for make in ("np.zeros(2**25, 'f')", "jnp.zeros(2**25)"):
        with pytest.raises(fingerprints.UncertainError, match="more than 64 MiB"):
            fingerprints.Fingerprint().add(find_module(f"c = {make}\ndef f(x): return x * c[0]").f)


def test_commands_count_and_verify_traces(cache, capsys):
    run(PLAIN)
    assert xtrace.cache_info().traces == 1
    assert main(["cache", "--directory", str(cache), "--verify"]) == 0
    assert " 1 trace," in capsys.readouterr().out
    (path,) = traces_in(cache)
    path.write_bytes(path.read_bytes()[:-1])
    assert main(["cache", "--directory", str(cache), "--verify"]) != 0
    assert path.name in capsys.readouterr().err
    assert main(["cache", "--directory", str(cache), "--clear"]) == 0
    assert not traces_in(cache) and not list(cache.glob("*.program"))


CHILD = """
import sys
import xtrace, xtrace.numpy as jnp
import helper
@xtrace.jit
def step(params, x):
    loss = lambda p: jnp.mean((jnp.tanh(x @ p["w"]) @ p["v"] - helper.target(x)) ** 2)
    value, gradient = xtrace.value_and_grad(loss)(params)
    return value, xtrace.tree.map(lambda p, g: p - helper.RATE * g, params, gradient)
params = {"w": jnp.ones((4, 8)), "v": jnp.ones((8,))}
value, params = step(params, jnp.ones((2, 4)))
info = xtrace.cache_info()
print(float(value), float(params["w"][0, 0]), info.trace_hits, info.trace_misses, info.trace_uncertain)
"""


def test_another_process_neither_traces_nor_lowers(tmp_path):
    script, helper = tmp_path / "script.py", tmp_path / "helper.py"
    script.write_text(CHILD)
    names = {
        "XTRACE_TRACE_CACHE": "1", "XTRACE_COMPILATION_CACHE_DIR": str(tmp_path / "programs"),
        "XTRACE_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0", "PYTHONPATH": f"{os.getcwd()}:{tmp_path}",
    }
    helper.write_text("RATE = 0.5\ndef target(x): return x.sum(1)\n")

    def outcome(seed):
        environment = os.environ | names | {"PYTHONHASHSEED": seed}
        done = subprocess.run(
            [sys.executable, script], env=environment, capture_output=True, text=True, check=True, cwd=tmp_path
        )
        return [float(word) for word in done.stdout.split()]

    first, second = outcome("1"), outcome("2")
    assert first[2:] == [0, 1, 0] and second[2:] == [1, 0, 0]
    assert first[:2] == second[:2]
    helper.write_text("RATE = 0.25\ndef target(x): return x.sum(1)\n")
    third = outcome("3")
    assert third[2:] == [0, 1, 0] and third[1] != first[1]


def test_replaced_functions_and_rules_are_seen(cache, monkeypatch):
    """Names of the library and of Python are known only while they are the originals."""
    sources = {"sin": "def f(x): return jnp.sin(x)", "abs": "def f(x): return x * np.sum([1, 2]) * math.floor(1.5)"}
    first = {name: float(run(source)[0]) for name, source in sources.items()}
    assert {run(source)[1] for source in sources.values()} == {"trace_hits"}
    with monkeypatch.context() as patch:
        patch.setattr(jnp, "sin", lambda x: x + 1)
        assert run(sources["sin"]) == (4, "trace_misses")
    with monkeypatch.context() as patch:
        patch.setattr(np, "sum", lambda x: 7)
        assert run(sources["abs"]) == (21, "trace_misses")
    with monkeypatch.context() as patch:
        patch.setattr(math, "floor", lambda x: 2)
        assert run(sources["abs"]) == (18, "trace_misses")
    for name, source in sources.items():
        assert run(source) == (np.float32(first[name]), "trace_hits")
    with monkeypatch.context() as patch:
        patch.setattr(primitive, "with_rules_of_users", {"sin"})
        patch.setattr("xtrace._src.api.kept_traces.kept_traces.with_rules_of_users", {"sin"})
        assert run(sources["sin"])[1] == "trace_uncertain"


def test_a_module_with_the_name_of_a_standard_one_is_read(cache, monkeypatch):
    def outcome(body):
        module = types.ModuleType("numbers")
        module.__file__ = "/home/user/numbers.py"
        monkeypatch.setitem(sys.modules, "numbers", module)
        exec(compile(f"def g(x): return {body}", module.__file__, "exec"), module.__dict__)
        return run("from numbers import g\nimport numbers\ndef f(x): return g(x) + numbers.g(x)")

    assert [outcome(body) for body in ("x + 1", "x + 2", "x + 1")] == [
        (8, "trace_misses"), (10, "trace_misses"), (8, "trace_hits"),
    ]


def test_reasons_name_the_value(cache):
    fingerprints = importlib.import_module("xtrace._src.api.kept_traces.function_fingerprints")
    module = find_module("import threading\ntable = {'a': threading.Lock()}\ndef f(x): return table['a'] and x")
    with pytest.raises(fingerprints.UncertainError, match="item 'a' of the global table of f") as caught:
        fingerprints.Fingerprint().add(module.f)
    assert "lock" in str(caught.value)
