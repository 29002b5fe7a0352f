"""What editors find without running xtrace: completion, hover and definitions, of names that load late, too."""

import gc
import importlib

import jedi
import pytest

from tests.architecture.source_tree import ROOT
from tools.documentation.reference import public_modules

PROJECT = jedi.Project(ROOT)


@pytest.fixture(autouse=True)
def uncollected():
    """Let jedi make its trees without garbage collections, which look at all that other tests made."""
    gc.disable()
    yield
    gc.enable()


IMPORTS = "import xtrace\nimport xtrace.numpy as jnp\nfrom xtrace import lax, nn, random\n"


def script(line):
    """An editor's file whose last line is `line`, and the place of its end."""
    return jedi.Script(IMPORTS + line, project=PROJECT), (IMPORTS.count("\n") + 1, len(line))


# What is written, the module of its definition, and whether its documentation is shown.
DEFINED = [
    ("xtrace.jit", "xtrace._src.api.jit.jit", True),
    ("xtrace.grad", "xtrace._src.api.differentiation.grad", True),
    ("xtrace.vmap", "xtrace._src.api.mapping.vmap", True),
    ("xtrace.lower", "xtrace._src.api.jit.jit", True),
    ("xtrace.NamedSharding", "xtrace._src.core.shardings.shardings", True),
    ("jnp.dot", "xtrace.numpy.products.contraction", True),
    ("jnp.linalg.solve", "xtrace.numpy.linalg.solutions", True),
    ("jnp.fft.fft", "xtrace.numpy.fft", True),
    ("jnp.sin", "xtrace.numpy.elementwise.ufuncs", True),
    ("jnp.logical_and", "xtrace.numpy.elementwise.logic", True),
    ("jnp.true_divide", "xtrace._src.api.operators.operators", True),
    ("jnp.bfloat16", "xtrace.numpy.arrays.scalar_types", True),
    ("xtrace.enable_x64", "xtrace._src.core.settings.config", True),
    ("jnp.zeros(3).sum", "xtrace._src.core.arrays", False),
    ("lax.scan", "xtrace._src.ops.control_flow.scan", True),
    ("lax.tanh", "xtrace._src.ops.elementwise.trigonometry", True),
    ("lax.reduce_max", "xtrace._src.ops.reductions.reductions", True),
    ("lax.psum", "xtrace._src.ops.collectives.collectives", True),
    ("lax.scatter_add", "xtrace._src.ops.arrays.gather_scatter", True),
    ("random.normal", "xtrace.random.continuous", True),
    ("nn.softmax", "xtrace.nn.normalization", True),
    ("xtrace.export.export", "xtrace._src.export.export", True),
    ("xtrace.experimental.checkify.checkify", "xtrace._src.checkify.transformation", True),
    ("xtrace.scipy.special.erf", "xtrace.scipy.special.primitive", True),
    ("xtrace.jit(lambda x: x).lower", "xtrace._src.api.jit.jitted_type", True),
]


@pytest.mark.parametrize(("line", "module", "documented"), DEFINED, ids=[row[0] for row in DEFINED])
def test_definitions_are_found(line, module, documented):
    editor, place = script(line)
    (found,) = editor.goto(*place, follow_imports=True)
    assert found.module_name == module and found.line > 1
    if documented:
        (shown,) = editor.help(*place)
        _, blank, text = shown.docstring().partition("\n\n")
        assert blank and len(text) > 40


@pytest.mark.parametrize(
    ("line", "parameters"),
    [
        ("jnp.sin(", ["x"]), ("jnp.remainder(", ["x1", "x2"]), ("lax.tanh(", ["x", "accuracy"]),
        ("jnp.matmul(", ["a", "b"]), ("random.split(", ["key", "num"]),
        ("lax.cond(", ["pred", "true_fun", "false_fun"]),
    ],
)
def test_signatures_are_shown(line, parameters):
    editor, place = script(line)
    signatures = [[p.name for p in s.params] for s in editor.get_signatures(*place)]
    assert any(names[: len(parameters)] == parameters for names in signatures), signatures


@pytest.mark.parametrize(
    ("line", "names"),
    [
        ("xtrace.", {"grad", "vmap", "jit", "numpy", "random", "make_mesh", "shard_map"}),
        ("jnp.", {"sin", "einsum", "linalg", "fft", "float32", "where"}),
        ("lax.", {"scan", "cond", "psum", "dot_general", "linalg"}),
        ("jnp.zeros(3).", {"sum", "at", "reshape", "sharding", "block_until_ready"}),
        ("xtrace.jit(lambda x: x).", {"lower", "trace", "cache_info", "clear_cache"}),
        ("xtrace.lower(lambda x: x).", {"as_text", "compile", "cost_analysis"}),
        ("xtrace.lower(lambda x: x).compile().", {"as_text", "report", "memory_analysis", "fits"}),
    ],
)
def test_names_are_completed(line, names):
    editor, place = script(line)
    assert names <= {completion.name for completion in editor.complete(*place)}


# The primitives that only jaxprs show, whose names a loop makes.
INVISIBLE = {"xtrace.extend.core.primitives"}


@pytest.mark.slow
def test_every_public_name_is_seen_without_running():
    unseen = {}
    for name in public_modules():
        editor = jedi.Script(f"import {name}\n{name}.", project=PROJECT)
        found = {each.name for each in editor.complete(2, len(name) + 1)}
        if missing := set(dir(importlib.import_module(name))) - found:
            unseen[name] = sorted(missing)
    assert set(unseen) <= INVISIBLE, unseen
