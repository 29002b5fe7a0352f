"""Leaked tracers: what the error says when one is used, and what the check at the end of a trace says holds it."""

import sys

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax
from xtrace._src.core.errors import UnexpectedTracerError

VECTOR = np.ones(3, np.float32)
KEPT = []
TABLE = {}


class Model:
    """Keeps its state in an attribute."""

    state = None

    def step(self, x):
        self.state = x * 2
        return x


class Slotted:
    """Has no dictionary."""

    __slots__ = ("held",)


MODEL, SLOTTED = Model(), Slotted()


@pytest.fixture(autouse=True)
def clean():
    yield
    KEPT.clear()
    TABLE.clear()
    MODEL.state = SLOTTED.held = Model.last = None


def into_a_list(x):
    KEPT.append(jnp.sin(x))
    return x


def into_a_dict(x):
    TABLE["seen"] = [x + 1]
    return x


def into_a_global(x):
    global LEAKED
    LEAKED = x * 3
    return x


def into_a_default(x, cache=[]):  # noqa: B006
    cache.append(x * 2)
    return x


def into_a_slot(x):
    SLOTTED.held = x * 2
    return x


def into_a_class(x):
    Model.last = x * 2
    return x


def closing():
    cache = set()

    def into_a_closure(x):
        cache.add(Box(x * 2))
        return x

    return into_a_closure


class Box:
    """Holds a value."""

    def __init__(self, value):
        self.value = value


into_a_closure = closing()


# Each looks at all objects of the process, which are millions after other tests.
@pytest.mark.drawn(0.35)
@pytest.mark.parametrize(
    ("function", "holder"),
    [
        (into_a_list, f"item 0 of a list, the global KEPT of the module {__name__}"),
        (
            into_a_dict,
            f"item 0 of a list, the value of the key 'seen' of a dict, the global TABLE of the module {__name__}",
        ),
        (into_a_global, f"the global LEAKED of the module {__name__}"),
        (into_a_default, "item 0 of a list, a default argument of the function into_a_default"),
        (MODEL.step, f"the attribute state of an instance of Model, the global MODEL of the module {__name__}"),
        (into_a_slot, f"the attribute held of an instance of Slotted, the global SLOTTED of the module {__name__}"),
        (into_a_class, "the attribute last of the class Model"),
        (
            into_a_closure,
            "the attribute value of an instance of Box, an element of a set, the variable cache that the function "
            "closing.<locals>.into_a_closure closes over",
        ),
    ],
)
def test_the_check_says_what_holds_the_value(function, holder):
    with xtrace.checking_leaks(), pytest.raises(UnexpectedTracerError) as caught:
        xtrace.jit(function)(1.0)
    name = function.__name__
    assert f"\n{name} leaked it: it is {holder}.\n" in str(caught.value)
    assert str(caught.value).endswith(f"\nTo fix it: return the value from {name} instead of storing it")


def test_a_variable_of_a_running_function():
    seen = []
    with xtrace.checking_leaks(), pytest.raises(UnexpectedTracerError) as caught:
        xtrace.jit(lambda x: seen.append(x) or x)(1.0)
    assert "it is item 0 of a list, the variable seen of test_a_variable_of_a_running_function at" in str(caught.value)
    assert "f32[], the argument x, is still held after the trace of" in str(caught.value)


def leaks_of(function):
    """The transformations under which the check finds a leak of `function`, a function of a number."""
    calls = {
        "jit": lambda: xtrace.jit(lambda x: function(x))(1.0),
        "grad": lambda: xtrace.grad(function)(1.0),
        "grad of jit": lambda: xtrace.grad(xtrace.jit(function))(1.0),
        "jit of grad": lambda: xtrace.jit(xtrace.grad(function))(1.0),
        **({} if isinstance(function, xtrace.custom_vjp) else {"jvp": lambda: xtrace.jvp(function, (1.0,), (1.0,))}),
        "linearize": lambda: xtrace.linearize(function, 1.0),
        "vmap": lambda: xtrace.vmap(function)(VECTOR),
        "vmap of grad": lambda: xtrace.vmap(xtrace.grad(function))(VECTOR),
        "scan": lambda: lax.scan(lambda c, x: (function(c), x), 1.0, VECTOR),
        "cond": lambda: lax.cond(True, function, function, 1.0),
    }
    found = []
    for name, call in calls.items():
        KEPT.clear()
        with xtrace.checking_leaks():
            try:
                call()
            except UnexpectedTracerError as error:
                assert f"the global KEPT of the module {__name__}" in str(error)
                found.append(name)
    return found


def test_every_transformation_is_checked():
    assert leaks_of(into_a_list) == [
        "jit", "grad", "grad of jit", "jit of grad", "jvp", "linearize", "vmap", "vmap of grad", "scan", "cond",
    ]


def test_rules_of_the_user_are_checked():
    def keep(x):
        KEPT.append(x * 2)
        return x

    backward = xtrace.custom_vjp(jnp.sin)
    backward.defvjp(lambda x: (jnp.sin(x), x), lambda x, g: (keep(g) * jnp.cos(x),))
    forward = xtrace.custom_jvp(jnp.sin)
    forward.defjvp(lambda p, t: (jnp.sin(p[0]), keep(t[0]) * jnp.cos(p[0])))
    assert leaks_of(backward) == ["grad of jit", "jit of grad"]
    assert leaks_of(forward) == ["grad", "grad of jit", "jit of grad", "linearize", "vmap of grad"]


def test_what_does_not_leak_passes():
    def loss(parameters, x):
        step = xtrace.checkpoint(lambda c, e: (c * jnp.sin(parameters["w"] * e), c))
        total, _ = lax.scan(step, x, VECTOR)
        return lax.cond(total > 0, lambda t: t * x, jnp.cos, total)

    def raising(x):
        held = jnp.sin(x)
        return 1 if held > 0 else 2

    def looping(x):
        cycle = [x]
        cycle.append(cycle)
        yield from (x * i for i in range(3))

    parameters = {"w": jnp.float32(2)}
    with xtrace.checking_leaks():
        for function in (xtrace.grad(loss), xtrace.value_and_grad(xtrace.jit(loss)), xtrace.jit(xtrace.grad(loss))):
            function(parameters, 1.0)
        xtrace.jit(xtrace.vmap(xtrace.grad(loss), (None, 0)))(parameters, VECTOR)
        with pytest.raises(xtrace.errors.TracerBoolConversionError):
            xtrace.jit(raising)(1.0)
        xtrace.jit(lambda x: sum(looping(x)))(1.0)
        xtrace.vjp(loss, parameters, 1.0)[1](jnp.float32(1))


def test_a_use_shows_where_the_value_was_made_and_where_it_is_used():
    xtrace.make_jaxpr(into_a_list)(1.0)
    with pytest.raises(UnexpectedTracerError) as caught:
        KEPT[0] + 1
    made, used = into_a_list.__code__.co_firstlineno + 1, sys._getframe().f_lineno - 1
    assert str(caught.value) == (
        "Encountered an unexpected tracer. A traced value of type f32[], made on line "
        f"{__file__}:{made} (into_a_list), was "
        f"used after the trace of the function into_a_list at {__file__}:{made - 1} for make_jaxpr had ended.\n"
        f"  {__file__}:{made} (into_a_list)\n"
        "    KEPT.append(jnp.sin(x))\n"
        "                ^^^^^^^^^^\n"
        "It was used here:\n"
        f"  {__file__}:{used} (test_a_use_shows_where_the_value_was_made_and_where_it_is_used)\n"
        "    KEPT[0] + 1\n"
        "    ^^^^^^^^^^^\n"
        "into_a_list leaked it by a side effect, such as a global, an attribute or a list outside of it.\n"
        "To fix it: return the value from into_a_list instead of storing it\n"
        "  or `with xtrace.checking_leaks():` around the call says what holds it"
    )


def test_a_mapped_value_names_its_function():
    xtrace.vmap(into_a_list)(VECTOR)
    with pytest.raises(UnexpectedTracerError, match=r"the function into_a_list at .* for vmap had ended"):
        jnp.sin(KEPT[0])
