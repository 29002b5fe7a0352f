"""Leaked tracers: what the error says when one is used, and what the check at the end of a trace says holds it."""

import sys

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax
from xtrace._src.core.errors import UnexpectedTracerError

pytestmark = pytest.mark.thorough

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


# The calls of a function of a number in which the check looks for leaks.
CALLS = {
    "jit": lambda f: xtrace.jit(lambda x: f(x))(1.0),
    "grad": lambda f: xtrace.grad(f)(1.0),
    "grad of jit": lambda f: xtrace.grad(xtrace.jit(f))(1.0),
    "jit of grad": lambda f: xtrace.jit(xtrace.grad(f))(1.0),
    "jvp": lambda f: xtrace.jvp(f, (1.0,), (1.0,)),
    "linearize": lambda f: xtrace.linearize(f, 1.0),
    "vmap": lambda f: xtrace.vmap(f)(VECTOR),
    "vmap of grad": lambda f: xtrace.vmap(xtrace.grad(f))(VECTOR),
    "scan": lambda f: lax.scan(lambda c, x: (f(c), x), 1.0, VECTOR),
    "cond": lambda f: lax.cond(True, f, f, 1.0),
}


def is_leak_found(call, function):
    KEPT.clear()
    with xtrace.checking_leaks():
        try:
            CALLS[call](function)
        except UnexpectedTracerError as error:
            assert f"the global KEPT of the module {__name__}" in str(error)
            return True
    return False


@pytest.mark.parametrize("call", CALLS)
def test_every_transformation_is_checked(call):
    assert is_leak_found(call, into_a_list)


@pytest.mark.parametrize("call", [call for call in CALLS if call != "jvp"])
def test_reverse_rules_of_the_user_are_checked(call):
    def backward(x, g):
        KEPT.append(g * 2)
        return (g * jnp.cos(x),)

    function = xtrace.custom_vjp(jnp.sin)
    function.defvjp(lambda x: (jnp.sin(x), x), backward)
    # Outside of jit the rule runs on arrays, which are no tracers.
    assert is_leak_found(call, function) == (call in ("grad of jit", "jit of grad"))


@pytest.mark.parametrize("call", CALLS)
def test_forward_rules_of_the_user_are_checked(call):
    def forward(primals, tangents):
        KEPT.append(tangents[0] * 2)
        return jnp.sin(primals[0]), tangents[0] * jnp.cos(primals[0])

    function = xtrace.custom_jvp(jnp.sin)
    function.defjvp(forward)
    finds = ("grad", "grad of jit", "jit of grad", "linearize", "vmap of grad")
    assert is_leak_found(call, function) == (call in finds)


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
