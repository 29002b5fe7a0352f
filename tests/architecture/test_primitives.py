"""No primitive lacks a rule silently: each is a function, or a `no_rule` that says why there is none."""

import importlib
import pkgutil

import pytest

import xtrace
from xtrace._src.core.primitive import Primitive, all_primitives
from xtrace._src.debug_nans import rules as debug_nans
from xtrace._src.key_reuse import rules as key_reuse

# transpose only linear operations have.
RULES = ("abstract", "emit", "jvp", "batch")


def _every_primitive() -> list[Primitive]:
    for found in pkgutil.walk_packages(xtrace.__path__, "xtrace."):
        if not found.name.startswith(("xtrace.cli", "xtrace.__main__")):
            importlib.import_module(found.name)
    return sorted(all_primitives(), key=lambda p: p.name)


PRIMITIVES = _every_primitive()


def test_the_registry_is_found():
    assert {"add", "dot_general", "jit"} <= {p.name for p in PRIMITIVES}


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_every_rule_is_stated(primitive):
    for rule in RULES:
        assert callable(getattr(primitive, rule)), f"{primitive.name}: {rule}"


@pytest.mark.parametrize("primitive", PRIMITIVES, ids=lambda p: p.name)
def test_every_primitive_is_documented(primitive):
    assert (primitive.__doc__ or "").strip()


# Parameters that are jaxprs, or tuples of them.
HOLDING = {
    p.name for p in PRIMITIVES
    if any(n in ("branches", "call", "callee", "condition") or "jaxpr" in n for n in p.parameters)
}
# They call their only closed jaxpr on their operands; `called_jaxpr` finds it, and features follow it without a rule.
CALLS = {"composite", "custom_jvp_call", "custom_vjp_call", "custom_vmap_call", "jit", "linear_call", "remat2"}
# They hold functions of elements, which are open jaxprs or functions of Python.
OF_ELEMENTS = {
    "lowered_loop", "reduce", "reduce_window", "scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul",
    "scatter-sub", "select_and_scatter",
}


def test_operations_that_hold_jaxprs_are_gone_into_for_bad_numbers():
    assert CALLS | OF_ELEMENTS | {p.name for p in debug_nans.RULES} == HOLDING


def test_operations_that_hold_jaxprs_are_followed_for_keys():
    assert HOLDING & {p.name for p in key_reuse.RULES} == HOLDING - CALLS - OF_ELEMENTS | {"remat2"}


# Their functions are not looked into: what the operation gives is checked, not what goes on inside of it.
CHECKED_AS_ONE = {
    "composite", "custom_linear_solve", "lowered_loop", "linear_call", "reduce", "reduce_window", "scatter",
    "scatter-add", "scatter-max", "scatter-min", "scatter-mul", "scatter-sub", "select_and_scatter",
}


def test_operations_that_hold_functions_hand_errors_on():
    # Of all others that have no rule of their own, `checkify` looks for NaN among the results.
    assert {p.name for p in PRIMITIVES if p.checked is not None} == (HOLDING - CHECKED_AS_ONE) | {"check"}
    assert HOLDING >= CHECKED_AS_ONE


def test_what_is_not_checked_says_why():
    rules = {p.checks for p in PRIMITIVES if p.checks is not None and not p.moves_elements}
    assert len(rules) > 3
    for rule in rules:
        assert rule.__doc__ or rule.__name__.endswith("_checks")
