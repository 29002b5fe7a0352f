"""No primitive lacks a rule silently: each is a function, or a `no_rule` that says why there is none."""

import importlib
import pkgutil

import pytest

import xtrace
from xtrace.core.primitive import Primitive, all_primitives

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
