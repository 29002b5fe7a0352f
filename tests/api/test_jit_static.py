"""Static arguments: which parameters are, by number and name, and when two values are one signature."""

import dataclasses
import enum
import functools
import itertools
import math

import jax
import numpy as np
import pytest

import xtrace
from tests.support.names import stable_name
from xtrace import jit
from xtrace._src.api.jit.static_arguments import Selection, Static, same_static


def two(a, b):
    return a, b


def defaulted(a, b=2, c=3):
    return a, b, c


def variadic(a, *rest):
    return (a, *rest)


def named(a, **rest):
    return (a, *[rest[k] for k in sorted(rest)])


def only(a, /, b, *, c):
    return a, b, c


def everything(a, /, b, *rest, c=5, **more):
    return (a, b, *rest, c, *[more[k] for k in sorted(more)])


CALLS = {
    two: [((1, 2), {}), ((1,), {"b": 2}), ((), {"a": 1, "b": 2})],
    defaulted: [((1,), {}), ((1, 2), {}), ((1, 2, 3), {}), ((1,), {"c": 3}), ((), {"a": 1, "c": 2})],
    variadic: [((1,), {}), ((1, 2), {}), ((1, 2, 3), {})],
    named: [((1,), {}), ((1,), {"x": 2, "y": 3}), ((), {"a": 1, "x": 2})],
    only: [((1, 2), {"c": 3}), ((1,), {"b": 2, "c": 3})],
    everything: [((1, 2), {}), ((1, 2, 3, 4), {"c": 5, "z": 6})],
}

SELECTIONS = [
    {}, *({"static_argnums": n} for n in (0, 1, 2, 3, -4, (0, 1), (1, 0), (0, 0), (), [1], (5,))),
    *({"static_argnums": np.array(n)} for n in (1, [0, 1])),
    *({"static_argnames": n} for n in ("a", "b", "c", "rest", "x", "z", ("a", "b"), ["c"], (), ("a", "a"))),
    *({"static_argnums": n, "static_argnames": m} for n in (0, 1, (0, 1), ()) for m in ("a", "b", "c", ())),
]


def outcome(package_jit, function, selection, args, kwargs):
    """Which arguments the function saw as Python values, or the class of the error."""
    seen = []

    @functools.wraps(function)
    def body(*args, **kwargs):
        values = function(*args, **kwargs)
        seen.append([isinstance(v, int) for v in values])
        return 0

    try:
        package_jit(body, **selection).trace(*args, **kwargs)
    except (TypeError, ValueError) as error:
        return type(error)
    return seen[0]


@pytest.mark.parametrize("function", CALLS, ids=lambda f: f.__name__)
def test_selections_infer_names_and_numbers_as_jax_does(function):
    for selection, (args, kwargs) in itertools.product(SELECTIONS, CALLS[function]):
        ours, theirs = (outcome(package, function, selection, args, kwargs) for package in (jit, jax.jit))
        assert ours == theirs, f"{selection} on {args} {kwargs}: {ours}, jax has {theirs}"


def test_negative_numbers_count_from_the_end_of_the_parameters():
    """As in jax 0.12; jax 0.10 counts from the end of the call's arguments."""
    for function, count in ((two, 2), (defaulted, 3), (only, 2)):
        for number, (args, kwargs) in itertools.product(range(count), CALLS[function]):
            for made in (lambda n: n, lambda n: (n,), lambda n: [n, n]):
                negative, positive = ({"static_argnums": made(n)} for n in (number - count, number))
                assert outcome(jit, function, negative, args, kwargs) == outcome(jit, function, positive, args, kwargs)


def test_negative_numbers_with_any_number_of_arguments_count_from_the_end_of_the_call():
    for number, args in itertools.product((-1, -2, -3), ((1,), (1, 2), (1, 2, 3))):
        expected = [i == len(args) + number for i in range(len(args))] if -number <= len(args) else ValueError
        assert outcome(jit, variadic, {"static_argnums": number}, args, {}) == expected


@pytest.mark.parametrize("method", [False, True])
def test_numbers_of_a_bound_method_do_not_count_self(method):
    class Model:
        def apply(self, x, n):
            assert isinstance(n, int)
            return x * n

    function = Model().apply if method else functools.partial(Model.apply, None)
    for selection in ({"static_argnums": 1}, {"static_argnames": "n"}):
        f = jit(function, **selection)
        for _ in range(6):
            assert float(f(2.0, 3)) == float(f(2.0, n=3)) == 6
    assert float(jit(function, static_argnums=-1)(2.0, n=3)) == 6


def test_a_builtin_without_a_signature():
    f = jit(math.gcd, static_argnums=(0, 1))
    for _ in range(6):
        assert int(f(12, 18)) == 6
    assert int(jit(max, static_argnums=(0, 1, 2))(3, 2)) == 3


# When two values are one


class Colour(enum.Enum):
    """An enumeration."""

    RED = 1
    BLUE = 2


class Number(enum.IntEnum):
    """An enumeration whose members equal integers."""

    ONE = 1


@dataclasses.dataclass(frozen=True)
class Config:
    """A frozen dataclass, equal by value."""

    width: int
    name: str = "net"


class ByIdentity:
    """An object equal to itself only."""


DIFFERENT = [
    [1, 1.0, True, Number.ONE, 1 + 0j, np.int32(1), np.float32(1), np.bool_(True)],
    [0.0, -0.0, 0, False, complex(0, 0.0), complex(0, -0.0), complex(-0.0, 0.0), np.float64(0.0), np.float64(-0.0)],
    [(1, 2), (1.0, 2), (True, 2), (1, (2,)), ((1, 2),)],
    [((0.0,), 1), ((-0.0,), 1), ((0,), 1)],
    [frozenset({1, 2}), frozenset({1.0, 2}), frozenset({True, 2})],
    ["1", b"1", 1, None, Ellipsis, ()],
    [Colour.RED, Colour.BLUE, 1],
    [Config(1), Config(2), Config(1, "other")],
    [ByIdentity(), ByIdentity()],
    [np.float32, np.dtype(np.float32), "float32"],
    [len, sum, abs],
    [slice, range(3), range(4)],
]


@pytest.mark.parametrize("values", DIFFERENT, ids=stable_name)
def test_values_that_python_may_call_equal_but_are_not_one(values):
    seen = []

    @functools.partial(jit, static_argnums=0)
    def f(value, x):
        seen.append(value)
        return x

    for _ in range(7):
        for value in values:
            f(value, 1.0)
    assert len(seen) == len(values) and all(a is b for a, b in zip(seen, values, strict=True))
    for one, other in itertools.combinations(values, 2):
        assert not same_static(one, other)
        assert Static(((0, one),), ()) != Static(((0, other),), ())


@pytest.mark.parametrize("make", [
    lambda: 10**20, lambda: 1.5e300, lambda: "some text"[:], lambda: (1, ("x", 2.5)), lambda: Config(10**10),
    lambda: frozenset({1, "a"}), lambda: Colour.RED, lambda: float("inf"), lambda: np.float32(2.5),
])
def test_equal_values_of_one_type_are_one(make):
    traces = []

    @functools.partial(jit, static_argnames="value")
    def f(x, value):
        traces.append(value)
        return x

    for _ in range(7):
        f(1.0, make())
        f(1.0, value=make())
    assert len(traces) == 2
    assert same_static(make(), make())


def test_the_value_reaches_the_function():
    f = jit(lambda x, n: x * n if n > 0 else x, static_argnums=1)
    for _ in range(6):
        for n in (2, -0.0, 0.0, 3.0, True):
            result = f(2, n)
            expected = 2 * n if n > 0 else 2
            assert result == expected and result.dtype == (np.float32 if n == 3.0 else np.int32)


def test_the_sign_of_a_static_zero():
    f = jit(lambda n: math.copysign(1, n), static_argnums=0)
    for _ in range(6):
        assert float(f(0.0)) == 1 and float(f(-0.0)) == -1


def test_static_not_a_number():
    f = jit(lambda n: n, static_argnums=0)
    for _ in range(6):
        assert math.isnan(float(f(float("nan"))))


# Comparisons of users' classes


class Loud:
    """A static value that counts, or refuses, its comparisons."""

    def __init__(self, key, refuse=False):
        self.key, self.refuse = key, refuse

    def __hash__(self):
        return hash(self.key)

    def __eq__(self, other):
        if self.refuse:
            raise ZeroDivisionError("no comparison")
        return isinstance(other, Loud) and self.key == other.key


def test_an_error_from_a_comparison_is_the_users():
    f = jit(lambda x, value: x, static_argnums=1)
    for _ in range(6):
        f(1.0, Loud(1))
    with pytest.raises(ZeroDivisionError):
        f(1.0, Loud(1, refuse=True))
    assert float(f(1.0, Loud(1))) == 1 and f._cache_size() == 1


def test_a_comparison_may_call_the_function_itself():
    class Odd:
        def __hash__(self):
            return 7

        def __eq__(self, other):
            f(1.0, 3)
            return isinstance(other, Odd)

    f = jit(lambda x, value: x * 2, static_argnums=1)
    for _ in range(6):
        assert float(f(1.0, Odd())) == 2
    assert f._cache_size() == 2


def test_a_static_argument_may_be_a_function():
    f = jit(lambda x, g: g(x), static_argnames="g")
    double, square = (lambda x: x * 2), (lambda x: x * x)
    for _ in range(6):
        assert (float(f(3.0, double)), float(f(3.0, g=square))) == (6, 9)


def test_static_and_donated_together():
    f = jit(lambda n, state, x: [s * n + x for s in state], static_argnums=0, donate_argnums=1)
    for _ in range(8):
        state = [xtrace.device_put(np.ones(3, np.float32))]
        np.testing.assert_array_equal(f(3, state, 1.0)[0], [4, 4, 4])
        assert state[0].is_deleted()


def test_selection_positions():
    assert Selection("static", variadic, (-1, 0), None).positions(3) == [0, 2]
    assert Selection("static", variadic, (5,), None).positions(3) == []
    assert Selection("static", two, None, ("b", "b")).numbers == (1,)
