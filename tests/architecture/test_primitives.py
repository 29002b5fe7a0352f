"""No primitive lacks a rule silently: each is a function, or a `no_rule` that says why there is none."""

import importlib
import pkgutil

import pytest

import xtrace
from xtrace._src.checkify import rules as checkify
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
CALLS = {
    "call", "closed_call", "composite", "custom_jvp_call", "custom_partitioning", "custom_vjp_call", "custom_vmap_call",
    "jit", "linear_call", "remat2", "remat_opt",
}
# They hold functions of elements, which are open jaxprs or functions of Python.
OF_ELEMENTS = {
    "lowered_loop", "reduce", "reduce_window", "scatter", "scatter-add", "scatter-max", "scatter-min", "scatter-mul",
    "scatter-sub", "select_and_scatter",
}


def test_operations_that_hold_jaxprs_are_gone_into_for_bad_numbers():
    assert CALLS | OF_ELEMENTS | {p.name for p in debug_nans.RULES} == HOLDING


def test_operations_that_hold_jaxprs_are_followed_for_keys():
    assert HOLDING & {p.name for p in key_reuse.RULES} == HOLDING - CALLS - OF_ELEMENTS | {"remat2"}


def test_operations_that_hold_jaxprs_hand_errors_on():
    rules = {p.name for p in checkify.CALLS}
    assert rules - HOLDING == {"check"}
    assert {p.name for p in checkify.OPAQUE} == HOLDING - OF_ELEMENTS - rules


def test_no_operation_is_asked_in_vain_whether_it_made_a_nan():
    assert not {p.name for p in checkify.NEVER_MAKES_NAN if p.moves_elements}
    assert not checkify.NEVER_MAKES_NAN & (checkify.CALLS.keys() | checkify.OPAQUE)
