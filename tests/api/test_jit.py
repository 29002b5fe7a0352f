"""jit: its forms, arguments and results, donation, nesting, and how often it traces and compiles."""

import collections
import dataclasses
import functools
import inspect
import pickle
import typing
import unittest.mock

import jax
import jax.numpy
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.names import stable_name
from tests.support.operands import assert_same
from xtrace import jit
from xtrace._src.core.pytrees import pytree
from xtrace._src.runtime import execute


@pytest.fixture
def compilations(monkeypatch):
    """The modules compiled so far, as a list that grows."""
    texts = []
    compile_text = execute.executables.compile_text

    def counting(text, *args, **kwargs):
        texts.append(text)
        return compile_text(text, *args, **kwargs)

    monkeypatch.setattr(execute.executables, "compile_text", counting)
    return texts


def floats(*values):
    return jnp.asarray(np.array(values, np.float32))


# Forms


class Scaler:
    """A class whose methods are jitted in every way."""

    factor = 10

    def __init__(self, by=3):
        self.by = by

    def scale(self, x):
        return x * self.by

    def __call__(self, x):
        return x * self.by + 1

    @functools.partial(jit, static_argnums=0)
    def with_self_static(self, x, n=1):
        return x * self.by + n

    @classmethod
    @functools.partial(jit, static_argnums=0)
    def of_class(cls, x):
        return x * cls.factor

    @staticmethod
    @jit
    def of_nobody(x):
        return x + 100

    @property
    @functools.partial(jit, static_argnums=0)
    def tenfold(self):
        return jnp.add(self.by * 10, 0)


def plus(x, y):
    return x + y


@pytest.mark.parametrize(
    ("function", "expected"),
    [
        (jit(lambda x: x + 1), 3),
        (jit()(lambda x: x + 1), 3),
        (jit(static_argnames="y")(plus), None),
        (jit(functools.partial(plus, 5)), 7),
        (jit(functools.partial(plus, y=6)), 8),
        (functools.partial(jit(plus), 5), 7),
        (jit(jit(lambda x: x + 1)), 3),
        (jit(Scaler()), 7),
        (jit(Scaler().scale), 6),
        (Scaler().with_self_static, 7),
        (Scaler.of_class, 20),
        (Scaler().of_class, 20),
        (Scaler.of_nobody, 102),
        (jit(abs), 2),
        (jit(jnp.square), 4),
        (jit(xtrace.lax.neg), -2),
        (jit(type("Named", (), {"__call__": lambda self, x: x * 2})()), 4),
    ],
)
def test_everything_callable_can_be_jitted(function, expected):
    arguments = (2,) if expected is not None else (2, 3)
    expected = 5 if expected is None else expected
    for _ in range(6):
        result = function(*arguments)
        assert isinstance(result, xtrace.Array) and int(result) == expected


def test_a_property_over_a_jitted_method():
    assert int(Scaler(4).tenfold) == 40


def test_the_jitted_function_looks_like_the_function():
    def documented(x: int, *, flag: bool = True) -> int:
        """Says what it does."""
        return x

    documented.extra = "kept"
    jitted = jit(documented)
    assert jitted.__name__ == "documented" and jitted.__doc__ == "Says what it does."
    assert jitted.__module__ == __name__ and jitted.__qualname__ == documented.__qualname__
    assert jitted.__wrapped__ is documented and jitted.extra == "kept"
    assert inspect.signature(jitted) == inspect.signature(documented)
    assert jit(functools.partial(documented)).__name__ == "documented"
    assert jit(Scaler()).__name__ == "Scaler"


@pytest.mark.parametrize("name", ['a"b', "a\nb", "ü", "", "a b", "@x", "main", "1a", "\0", "x" * 3000], ids=range(10))
def test_any_name_will_do(name):
    def f(x):
        return x + 1

    f.__name__ = name
    assert float(jit(f)(1.0)) == 2 and float(jit(lambda x: jit(f)(x) * jit(f)(x + 1))(1.0)) == 6
    assert jit(f).lower(1.0).compiler_ir().operation.verify()


def test_functions_that_inspect_cannot_follow():
    def of_itself(x):
        return x + 1

    of_itself.__wrapped__ = of_itself
    made = {}
    exec("def without_source(x):\n return x + 1", made)
    mock = unittest.mock.Mock(side_effect=lambda x: x + 1)
    for function in (of_itself, made["without_source"], mock, functools.partial(mock)):
        f = jit(function)
        for _ in range(6):
            assert float(f(1.0)) == 2
        with pytest.raises(TypeError, match="Error interpreting argument"):
            f("text")


def test_a_bound_method_in_a_loop_hits_its_cache():
    traces = []

    class Counter:
        def step(self, x):
            traces.append(self)
            return x + 1

    one, other = Counter(), Counter()
    for _ in range(5):
        jit(one.step)(1)
        jit(other.step)(1)
    assert traces == [one, other]


def test_a_method_with_a_static_self_is_traced_once_for_each_object():
    traces = []

    class Model:
        def __init__(self, by):
            self.by = by

        @functools.partial(jit, static_argnums=0)
        def apply(self, x):
            traces.append(self.by)
            return x * self.by

    models = [Model(2), Model(3)]
    for _ in range(6):
        assert [int(m.apply(5)) for m in models] == [10, 15]
    assert traces == [2, 3]


def test_the_same_function_jitted_again_shares_its_traces_under_the_same_options():
    traces = []

    def body(x):
        traces.append(1)
        return x + 1

    for _ in range(3):
        jit(body)(1)
        jit(body, inline=True)(1)
    assert len(traces) == 2
    jit(body, keep_unused=True)(1)
    assert len(traces) == 3


# Arguments


def with_defaults(a, b=10, /, c=100, *rest, d=1000, **named):
    return a, b, c, rest, d, named


@pytest.mark.parametrize(
    ("args", "kwargs"),
    [
        ((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((1, 2, 3, 4, 5), {}), ((1,), {"c": 3}), ((1,), {"d": 3}),
        ((1, 2), {"d": 4, "c": 3}), ((1, 2, 3, 4), {"z": 5, "y": 6, "d": 7}), ((1,), {"args": 2, "kwargs": 3}),
        ((1,), {"self": 1, "fun": 2, "jitted": 3, "objects": 4, "slow": 5}),
    ],
)
def test_positional_named_and_default_arguments(args, kwargs):
    jitted, theirs = jit(with_defaults), jax.jit(with_defaults)
    for _ in range(6):
        assert_same(jitted(*args, **kwargs), theirs(*args, **kwargs))


def test_names_of_positional_only_parameters_are_free():
    f = jit(with_defaults)
    for _ in range(6):
        a, b, *_, named = f(1, a=5, b=6)
        assert (int(a), int(b), int(named["a"]), int(named["b"])) == (1, 10, 5, 6)


def test_the_order_of_named_arguments_is_no_part_of_the_signature():
    traces = []

    @jit
    def f(**named):
        traces.append(1)
        return named["a"] - named["b"]

    for _ in range(6):
        assert int(f(a=5, b=3)) == int(f(b=3, a=5)) == 2
    assert len(traces) == 1


def test_a_parameter_given_by_name_or_position_gives_the_same_result():
    f = jit(lambda x, y=2.0: x - y)
    results = [f(1.0), f(1.0, 2.0), f(1.0, y=2.0), f(y=2.0, x=1.0)]
    assert [float(r) for r in results] == [-1.0] * 4


# Pytrees


@xtrace.tree_util.register_pytree_node_class
class Pair:
    """A custom node with a label as metadata."""

    def __init__(self, left, right, label="pair"):
        self.left, self.right, self.label = left, right, label

    def tree_flatten(self):
        return (self.left, self.right), self.label

    @classmethod
    def tree_unflatten(cls, label, children):
        return cls(*children, label)


class Point(typing.NamedTuple):
    """A namedtuple of two leaves."""

    x: object
    y: object


@xtrace.tree_util.register_dataclass
@dataclasses.dataclass
class Parameters:
    """A dataclass with a static field."""

    weights: object
    bias: object
    name: str = dataclasses.field(default="dense", metadata={"static": True})


TREES = [
    (), [], {}, None, 1.0, (1.0,), [1.0, [2, (3,)]], {"b": 1, "a": [2.0, None]}, {3: 1.0, 1: 2}, {(1, "x"): 1.0},
    Point(1.0, (2, None)), collections.OrderedDict(b=1, a=2.0), collections.defaultdict(list, b=1, a=2.0),
    {"a b": 1, "it's": 2, "new\nline": 3, "{brace}": 4, "<miss>": 5}, {True: 1.0}, [[[[[[1.0]]]]]],
    {"deep": {"er": [{"still": (1, 2.5)}]}, "flat": True},
]


@pytest.mark.parametrize("tree", TREES, ids=stable_name)
def test_trees_go_in_and_come_out_as_jax_has_them(tree):
    ours, theirs = jit(lambda t: t), jax.jit(lambda t: t)(tree)
    for _ in range(6):
        result = ours(tree)
        leaves, structure = pytree.tree_flatten(result)
        assert structure == pytree.tree_structure(tree)
        # Types and the order of keys, which structures do not show.
        assert repr(result) == repr(theirs)
        assert_same(leaves, jax.tree.leaves(theirs))


def test_custom_nodes_keep_class_and_metadata():
    f = jit(lambda pair: Pair(pair.right, pair.left + 1, pair.label + "!"))
    g = jit(lambda p: dataclasses.replace(p, weights=p.weights * 2))
    for _ in range(6):
        pair, parameters = f(Pair(1.0, 2, "label")), g(Parameters(1.0, 2.0, "named"))
        assert (type(pair), float(pair.left), float(pair.right), pair.label) == (Pair, 2.0, 2.0, "label!")
        assert (float(parameters.weights), float(parameters.bias), parameters.name) == (2.0, 2.0, "named")


def test_metadata_of_a_node_is_part_of_the_signature():
    traces = []

    @jit
    def f(pair):
        traces.append(pair.label)
        return pair.left if pair.label == "left" else pair.right

    for _ in range(6):
        assert (float(f(Pair(1.0, 2.0, "left"))), float(f(Pair(1.0, 2.0, "right")))) == (1.0, 2.0)
    assert traces == ["left", "right"]


def test_none_is_no_leaf():
    f = jit(lambda x, y: x if y is None else x + y)
    for _ in range(6):
        assert (float(f(1.0, None)), float(f(1.0, 2.0))) == (1.0, 3.0)
    assert jit(lambda: None)() is None


def test_a_very_deep_tree():
    deep = floats(1)
    for _ in range(200):
        deep = [deep]
    f = jit(lambda t: t)
    for _ in range(6):
        result = f(deep)
    for _ in range(200):
        (result,) = result
    assert float(result[0]) == 1


def test_a_very_wide_tree():
    wide = {f"k{i}": float(i) for i in range(2500)}
    f = jit(lambda t: t["k7"] + t["k2499"])
    for _ in range(6):
        assert float(f(wide)) == 2506


def test_one_array_may_come_out_twice_and_inputs_may_come_out():
    x = floats(1, 2)
    f = jit(lambda a: (a, a, a + 0, 3, a))
    for _ in range(6):
        results = f(x)
        for i in (0, 1, 2, 4):
            np.testing.assert_array_equal(results[i], [1, 2])
    results[0].delete()
    assert not x.is_deleted() and not results[1].is_deleted()


# Results


@pytest.mark.parametrize(
    "value", [True, 3, 2.5, 1j, np.float32(2), np.float64(2), np.arange(3), np.int8(1), np.array(2.0)]
)
def test_a_constant_result_has_the_type_jax_gives_it(value):
    assert_same(jit(lambda: value)(), jax.jit(lambda: value)())
    assert_same(jit(lambda x: value, keep_unused=True)(1.0), jax.jit(lambda x: value)(1.0))


@pytest.mark.parametrize("value", [True, 3, 2.5, 1j, np.float32(2), np.float64(2), np.int64(3), np.bool_(True)])
def test_weak_types_pass_through(value):
    for function in (lambda x: x, lambda x: x + 1, lambda x: x * 2.0, lambda x: (x, x > 1) if value != 1j else x):
        assert_same(jit(function)(value), jax.jit(function)(value))


def test_the_seeds_weak_type():
    f = jit(lambda x, neg: -x if neg else x, static_argnums=1)
    assert repr(f(1, True)) == "Array(-1, dtype=int32, weak_type=True)"


def test_results_are_fed_back():
    step = jit(lambda x: x + 1)
    x = 0
    for _ in range(20):
        x = step(x)
    assert repr(x) == "Array(20, dtype=int32, weak_type=True)"
    assert step._cache_size() == 1


# Signatures, counted


def test_what_is_a_new_signature(compilations):
    traces = []

    @jit
    def f(x):
        traces.append(1)
        return x

    strong, weak = np.float32(1), 1.0
    same = [strong, np.array(1, np.float32), jnp.asarray(strong), jnp.asarray(np.float32(7)), np.float64(3)]
    for _ in range(3):
        for value in same:
            f(value)
    assert len(traces) == len(compilations) == 1
    others = [weak, 1, True, np.ones(1, np.float32), np.ones((1, 1), np.float32), [1.0], (1.0,)]
    for count, value in enumerate(others, 2):
        for _ in range(6):
            f(value)
        assert len(traces) == len(compilations) == count


def test_a_second_call_runs_neither_python_nor_the_compiler(compilations):
    traces, x = [], floats(1, 2)

    @jit
    def f(a, scale):
        traces.append(1)
        return a * scale

    for _ in range(10):
        f(x, 2.0)
        f(x, scale=2.0)
    assert len(traces) == len(compilations) == 2


def test_traces_and_programs_do_not_know_who_chose_the_device(compilations):
    traces = []

    def body(x):
        traces.append(1)
        return x + 1

    f = jit(body)
    f(floats(1))
    f(xtrace.device_put(floats(1), xtrace.devices()[0]))
    assert len(traces) == 1 and len(compilations) == 1


@pytest.mark.parametrize("setting", [xtrace.enable_x64, xtrace.numpy_dtype_promotion, xtrace.default_matmul_precision])
def test_a_setting_that_changes_the_program_is_part_of_the_key(setting):
    traces = []
    value = {"jax_numpy_dtype_promotion": "strict", "jax_default_matmul_precision": "highest"}.get(setting.name, True)

    @jit
    def f(x):
        traces.append(1)
        return x + x

    for _ in range(6):
        f(np.float64(1))
    for _ in range(6):
        with setting(value):
            inside = f(np.float64(1))
        outside = f(np.float64(1))
    assert len(traces) == 2
    assert outside.dtype == np.float32
    assert inside.dtype == (np.float64 if setting is xtrace.enable_x64 else np.float32)


def test_disable_jit_runs_python():
    runs = []

    @jit
    def f(x):
        runs.append(x)
        return x + 1

    for _ in range(6):
        f(1.0)
        with xtrace.disable_jit():
            assert float(f(2.0)) == 3
    assert runs[1:] == [2.0] * 6


# Unused arguments


@pytest.mark.parametrize("keep", [False, True])
def test_arguments_the_program_does_not_read(keep):
    f = jit(lambda a, b, c: b * 2, keep_unused=keep)
    text = f.lower(1.0, 2.0, 3.0).as_text()
    assert text.count("%arg") >= (3 if keep else 1) and ("%arg2" in text) == keep
    for _ in range(6):
        assert float(f(floats(1), 2.0, np.ones(5))) == 4
        assert float(f(1.0, 2.0, {"deep": [floats(1), None]})) == 4


# Donation


def test_donation_deletes_the_argument_and_only_it():
    f = jit(lambda a, b: (a + b, b * 2), donate_argnums=0)
    for _ in range(8):
        a, b = floats(1, 2, 3), floats(4, 5, 6)
        np.testing.assert_array_equal(f(a, b)[0], [5, 7, 9])
        assert a.is_deleted() and not b.is_deleted()
        with pytest.raises(RuntimeError, match=r"Array has been deleted with shape=float32\[3\]"):
            a + 1
        with pytest.raises(RuntimeError, match="argument a of <lambda>: Array has been deleted"):
            f(a, b)


@pytest.mark.parametrize(
    "options", [{"donate_argnames": "state"}, {"donate_argnums": 1}, {"donate_argnames": ("state",)}]
)
@pytest.mark.parametrize("by_name", [False, True])
def test_a_donated_tree(options, by_name):
    def update(x, state):
        return {k: v + x for k, v in state.items()}

    f = jit(update, **options)
    for _ in range(8):
        state = {"w": floats(1, 2), "b": floats(3)}
        new = f(1.0, state=state) if by_name else f(1.0, state)
        assert state["w"].is_deleted() and state["b"].is_deleted()
        np.testing.assert_array_equal(new["w"], [2, 3])


def test_a_training_loop_that_donates():
    f = jit(lambda s: {k: v * 2 for k, v in s.items()}, donate_argnums=0)
    state = {"a": floats(1), "b": floats(2)}
    for _ in range(20):
        state = f(state)
    assert float(state["a"][0]) == 2**20


def test_scalars_and_numpy_arrays_can_be_donated_and_stay_what_they_are():
    f = jit(lambda a: a + 1, donate_argnums=0)
    source = np.arange(3, dtype=np.float32)
    for _ in range(8):
        assert float(f(7.5)) == 8.5
        np.testing.assert_array_equal(f(source), [1, 2, 3])
    assert float(jnp.add(7.5, 0)) == 7.5 and source.tolist() == [0, 1, 2]
    kept = xtrace.device_put(8.5)
    xtrace.device_put(8.5).delete()
    assert float(kept) == 8.5 and float(xtrace.device_put(8.5)) == 8.5


def test_a_view_keeps_its_data_through_a_donation():
    f = jit(lambda a: a + 1, donate_argnums=0)
    for _ in range(8):
        a = jnp.asarray(np.arange(1000, dtype=np.float32))
        view = np.asarray(a)
        f(a)
        np.testing.assert_array_equal(view, np.arange(1000))


def test_what_a_derivative_needs_is_not_donated():
    square = jit(lambda x: x * x, donate_argnums=0)
    x = jnp.arange(4.0)
    # jax deletes x, and then the gradient has no value of it.
    np.testing.assert_array_equal(xtrace.grad(lambda x: square(x).sum())(x), [0, 2, 4, 6])
    assert not x.is_deleted()


@pytest.mark.parametrize("flags", [(0,), (1,), (0, 1)])
def test_donating_an_array_that_is_given_twice_is_an_error(flags):
    f = jit(lambda a, b: (a + b, a - b), donate_argnums=flags)
    for _ in range(8):
        a = floats(1, 2)
        with pytest.raises(xtrace.errors.JaxRuntimeError, match="same array is passed to <lambda> as a and b, and"):
            f(a, a)
        assert not a.is_deleted()
        f(floats(1, 2), floats(3, 4))


def test_a_donation_that_no_result_can_use_is_warned_of_once():
    f = jit(lambda a: a["x"][:2], donate_argnums=0)
    with pytest.warns(UserWarning, match=r"buffers were not usable: a\['x'\]\. No result of <lambda>") as caught:
        f({"x": floats(1, 2, 3)})
    # It points here, not into the package.
    assert caught[0].filename == __file__
    # Warnings are errors here: from the second call on, and for an argument that is not read, there is none.
    a = floats(1, 2, 3)
    f({"x": a})
    jit(lambda a: 1, donate_argnums=0)(a)
    assert not a.is_deleted()


def test_donation_is_marked_in_the_module():
    assert "tf.aliasing_output = 0" in jit(lambda a: a + 1, donate_argnums=0).lower(floats(1)).as_text()


# Nesting


def test_a_nested_jit_is_traced_once_for_each_signature():
    traces = []

    @jit
    def inner(x):
        traces.append(x.shape)
        return x * 2

    @jit
    def outer(x, y):
        return inner(x) + inner(x + 1) + inner(inner(x)), inner(y)

    outer(1.0, floats(1, 2))
    assert traces == [(), (2,)]
    text = outer.lower(1.0, floats(1, 2)).as_text()
    assert text.count("func.func private @inner") == 2
    inner(1.0)
    assert traces == [(), (2,)]


def test_calls_print_as_equations_named_after_the_function():
    @jit
    def inner(x):
        return x * 2

    text = str(xtrace.make_jaxpr(lambda x: inner(x) + inner(x))(1.0))
    assert text.count("jit[") == text.count("name=inner") == 2


def test_an_inlined_jit_leaves_no_call():
    inner = jit(lambda x: x * 2, inline=True)
    assert "jit" not in str(xtrace.make_jaxpr(lambda x: inner(x) + 1)(1.0))
    assert float(inner(3.0)) == 6


def test_recursion_over_a_static_argument():
    @functools.partial(jit, static_argnums=1)
    def power(x, n):
        return x * power(x, n - 1) if n else x * 0 + 1

    for _ in range(6):
        assert float(power(2.0, 10)) == 1024


def test_a_jitted_function_may_call_itself_at_another_shape():
    @jit
    def total(x):
        half = x.shape[0] // 2
        return x[0] if x.shape[0] == 1 else total(x[:half]) + total(x[half:])

    for _ in range(6):
        assert float(total(jnp.asarray(np.arange(16, dtype=np.float32)))) == 120


def test_closing_over_a_tracer_of_an_outer_function():
    @jit
    def outer(x, y):
        @jit
        def inner(z):
            return z * x

        return inner(y) + inner(y + 1) + jit(lambda: x * y)()

    for values in ((2.0, 3.0), (4.0, 5.0), (2, 3)):
        x, y = values
        assert float(outer(x, y)) == y * x + (y + 1) * x + x * y


def test_a_function_that_closes_over_tracers_in_one_trace_and_another():
    """The tracers of an ended trace must not come back out of the cache."""
    held = []

    @jit
    def inner(z):
        return z + held[-1]

    def outer(x):
        held.append(x)
        result = inner(x * 2)
        held.pop()
        return result

    for x in (1.0, 2.0):
        assert float(jit(lambda x: outer(x))(x)) == 3 * x
    assert float(jit(lambda x: jit(lambda y: outer(y))(x) * 2)(5.0)) == 30


@pytest.mark.parametrize("size", [1, 3, 1000])
def test_closing_over_arrays(size):
    """Small ones are constants of the module, those above 1 KiB hidden arguments."""
    ours, host = jnp.asarray(np.arange(size, dtype=np.float32)), np.arange(size, dtype=np.float32)
    f = jit(lambda x: x + ours + host)
    for _ in range(6):
        np.testing.assert_array_equal(f(1.0), 2 * host + 1)
    text = f.lower(1.0).as_text()
    assert len(text) < 5000
    host += 1000
    np.testing.assert_array_equal(f(1.0), 2 * np.arange(size) + 1)
    jitted = jit(lambda x: f(x) * 2)
    for _ in range(6):
        np.testing.assert_array_equal(jitted(1.0), 4 * np.arange(size, dtype=np.float32) + 2)


def test_an_array_closed_over_and_deleted():
    big = jnp.asarray(np.arange(1000, dtype=np.float32))
    f = jit(lambda x: x + big)
    f(1.0)
    big.delete()
    for _ in range(3):
        with pytest.raises(RuntimeError, match="an array that the function closes over has been deleted"):
            f(1.0)
    with pytest.raises(RuntimeError, match="has been deleted"):
        jit(lambda x: x - big)(1.0)


def test_calls_on_tracers_of_several_levels():
    f = jit(lambda x, y: jit(lambda z: jit(lambda w: w + x)(z) * y)(x + y))
    for _ in range(6):
        assert float(f(2.0, 3.0)) == (2 + 3 + 2) * 3


# Options


def test_a_device_may_be_given():
    device = xtrace.devices()[0]
    for options in ({"device": device}, {"backend": "cpu"}):
        with pytest.warns(DeprecationWarning, match="backend and device argument on jit is deprecated"):
            f = jit(lambda x: x + 1, **options)
        for x in (1.0, floats(1), np.ones(2)):
            for _ in range(6):
                result = f(x)
            assert result.devices() == {device} and result.committed


def test_compiler_options_reach_xla():
    f = jit(lambda x: x + 1, compiler_options={"xla_cpu_enable_fast_math": True, "xla_cpu_prefer_vector_width": "128"})
    for _ in range(6):
        assert float(f(1.0)) == 2


def test_results_agree_with_the_function_without_jit():
    def f(x, s):
        return {"a": (x * s - x / 3.0).sum(), "b": [x.max(), -x, x > s]}

    jitted, of_jax = jit(f), jax.jit(f)

    @given(st.lists(st.floats(-100, 100, width=32), min_size=1, max_size=3), st.floats(-3, 3, width=32))
    def check(values, scale):
        x = np.array(values, np.float32)
        ours, theirs = jitted(x, scale), of_jax(x, scale)
        # The sum has a rounding for each element, and cancels.
        limit = 16 * np.finfo(np.float32).eps * (np.abs(x).sum() * 4 + 1)
        np.testing.assert_allclose(ours["a"], theirs["a"], atol=limit)
        assert_same(ours["b"], theirs["b"])

    check()


def test_jits_nest_as_deep_as_those_of_jax():
    def nested(package, depth):
        function = package.lax.sin
        for _ in range(depth):
            function = package.jit(lambda x, inner=function: inner(x) + 1)
        return function

    # Modules that load late do so here, and not at the depth below.
    assert xtrace.vmap(xtrace.grad(nested(xtrace, 2)))(np.zeros(2, np.float32)).shape == (2,)
    # jax reaches Python's recursion limit between 120 and 125 of them.
    with xtrace.enable_checks():
        assert nested(xtrace, 105)(0.0) == 105
        assert len(xtrace.make_jaxpr(nested(xtrace, 105))(0.0).eqns) == 1
        assert xtrace.grad(nested(xtrace, 75))(0.0) == 1
        assert xtrace.vmap(nested(xtrace, 75))(np.zeros(2, np.float32)).shape == (2,)


def scale(x, factor: float = 2.0) -> object:
    return x * factor


def test_signature_without_following_wrapped_functions():
    own = inspect.signature(xtrace.jit(scale, static_argnames="factor"), follow_wrapped=False)
    assert own == inspect.signature(scale) and str(own) == str(inspect.signature(scale))
    assert pickle.loads(pickle.dumps(own)) == own
    assert own.bind(1.0).arguments == {"x": 1.0} and own.replace(parameters=[]).return_annotation is object


# One program for calls and for the stages


def test_stages_and_calls_share_one_program(compilations):
    jitted, x = jit(lambda x: jnp.sin(x) * 2), floats(1, 2)
    lowered = jitted.lower(x)
    compiled = lowered.compile()
    lowered.compile(), jitted.lower(x).compile(), jitted.lower(xtrace.ShapeDtypeStruct((2,), np.float32)).compile()
    assert_same(jitted(x), compiled(x))
    jitted.warm_up(x)
    assert len(compilations) == 1
    assert len(jitted.cache_info().entries) == 1


def test_stages_use_the_program_of_a_call(compilations):
    jitted, x = jit(lambda x, n: x * n, static_argnums=1, donate_argnums=0), floats(1, 2)
    jitted(jnp.copy(x), 3)
    before = len(compilations)
    compiled = jitted.lower(x, 3).compile()
    assert len(compilations) == before
    assert np.asarray(compiled(jnp.copy(x))).tolist() == [3, 6]
    jitted.lower(x, 4).compile()
    assert len(compilations) == before + 1


def test_other_options_settings_and_types_make_other_programs(compilations):
    jitted, x = jit(lambda x: jnp.cos(x) + 1), np.ones(3, np.float32)

    def count(compile):
        before = len(compilations)
        compile()
        return len(compilations) - before

    assert count(jitted.lower(x).compile) == 1
    assert count(lambda: jitted.lower(x).compile({"xla_cpu_enable_fast_min_max": True})) == 1
    assert count(lambda: jitted.lower(x).compile({"xla_cpu_enable_fast_min_max": True})) == 0
    with xtrace.enable_x64(True):
        assert count(lambda: jitted.lower(x).compile()) == 1
    assert count(lambda: jitted.lower(np.ones(4, np.float32)).compile()) == 1
    assert count(lambda: jitted(x)) == 0
    jitted.clear_cache()
    assert count(lambda: jitted(x)) == 1


def test_checks_are_not_lost_with_a_program_of_a_stage():
    jitted, x = jit(lambda x: jnp.log(x)), floats(-1)
    with xtrace.debug_nans(True):
        jitted.lower(x).compile()
        with pytest.raises(FloatingPointError):
            jitted(x)


def test_a_dump_has_every_compilation(tmp_path, compilations):
    jitted, x = jit(lambda x: jnp.tan(x)), floats(1)
    with xtrace._src.core.settings.config.dump_ir_to(str(tmp_path)):
        jitted.lower(x).compile(), jitted.lower(x).compile()
    assert len(compilations) == 2


def test_the_number_of_kept_programs_is_bounded():
    jitted = jit(lambda x: x + 1)
    jitted._xtrace_jitted.cache.programs.limit = 2
    for n in range(4):
        jitted.lower(np.ones(n + 1, np.float32)).compile()
    assert len(jitted._xtrace_jitted.cache.programs) == 2


def test_arrays_that_were_put_on_their_device_need_no_other_program(compilations):
    jitted, x = jit(lambda x: (jnp.sin(x), x)), floats(1, 2)
    put = xtrace.device_put(x, xtrace.devices()[0])
    loose, fixed = jitted(x), jitted(put)
    assert len(compilations) == 1
    assert [y.committed for y in loose] == [False, False] and [y.committed for y in fixed] == [True, True]
    for _ in range(8):  # and so with specialised code
        assert jitted(x)[0].committed is False and jitted(put)[0].committed is True
    assert_same(loose, jitted(put))
    assert len(compilations) == 1 and len(jitted.cache_info().entries) == 2


def test_a_function_that_was_evaluated_first_shares_its_program(compilations):
    jitted = jit(lambda: jnp.arange(3) + 1)
    for _ in range(6):
        jitted()
    assert len(compilations) == 1
    assert_same(jitted.lower().compile()(), jitted())
    assert len(compilations) == 1
