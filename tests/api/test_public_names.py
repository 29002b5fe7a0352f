"""The names of public modules and objects: what `dir` lists, and what completion in notebooks finds."""

from __future__ import annotations

import functools
import importlib
import inspect
import pickle
import subprocess
import sys
import types
import typing

import jax
import numpy as np
import pytest

import xtrace
from tests.support.elementwise_operations import OWN_OPERATIONS
from tests.support.jax_modules import import_jax_module
from tests.support.reference import DROPPED, IS_REFERENCE, NEWER, NEWER_PARAMETERS
from tools.public_names import MARK, write_lists, written_modules

# What jax has no counterpart of, or has in another module.
OWN = {
    "xtrace": {
        "alias_names", "as_jax", "cache_info", "compilation", "compile_all", "explain_compile_time", "explore",
        "from_stablehlo", "jax_version",
        "load_ipython_extension", "lower", "targets",
    },
    "xtrace.ad_checkpoint": {"checkpoint", "remat"},
    "xtrace.errors": {
        "BroadcastError", "DuplicateSpecError", "IndivisibleError", "MatrixShapeError", "NoMeshError",
        "RecompilationWarning", "ShardingTypeError", "StaticArgumentError",
    },
    # Older versions of jax have them.
    "xtrace.experimental.key_reuse": {"KeyReuseError", "reuse_key", "unconsumed_copy"},
    "xtrace.lax": {"platform_index_p", "reduce_scatter_p"},
    "xtrace.lax.linalg": {"geqp3_p", "geqrf_p"},
    "xtrace.memory": {"MemoryReport", "report"},
    "xtrace.tree_util": {"build_tree"},
}
# Names that modules of jax import for their own use.
IMPORTED = {"Callable", "annotations", "Sequence", "config", "ravel_pytree"}


def missing_in_jax(name):
    """Return the names of a module that the installed jax has not."""
    newer = NEWER.get(name, set())
    own = OWN.get(name, set()) | OWN_OPERATIONS.get(name, set())
    return own | (newer if IS_REFERENCE else DROPPED.get(name, set()))


def modules_below(name):
    """Return the public modules: `name` and the modules that `dir` lists, and so on."""
    module = importlib.import_module(name)
    below = [f"{name}.{n}" for n in dir(module) if isinstance(getattr(module, n), types.ModuleType)]
    return [name, *[found for each in below for found in modules_below(each)]]


pytestmark = [
    pytest.mark.filterwarnings("ignore:jax.experimental.shard_map is deprecated"),
    pytest.mark.filterwarnings("ignore:jax.experimental.pjit.pjit has been deprecated"),
    pytest.mark.filterwarnings("ignore:jax.lax.* is deprecated"),
]
MODULES = modules_below("xtrace")
# A module of jax is an attribute once it is imported.
for _name in set(MODULES) - {"xtrace.memory"}:
    import_jax_module(_name.replace("xtrace", "jax"))


def test_all_modules_are_found():
    assert len(MODULES) > 60 and {"xtrace.numpy.fft", "xtrace.scipy.stats.norm", "xtrace.lax.linalg"} <= set(MODULES)


@pytest.mark.parametrize("name", MODULES)
def test_dir_lists_the_public_names(name):
    module, other = (functools.reduce(getattr, name.split(".")[1:], package) for package in (xtrace, jax))
    listed = dir(module)
    assert listed == sorted(set(listed)) and set(module.__all__) <= set(listed)
    for found in listed:
        assert hasattr(module, found), found
    unknown = {n for n in listed if not hasattr(other, n)}
    assert unknown == missing_in_jax(name) & set(listed)
    public = {n for n in vars(other) if not n.startswith("_") and n not in IMPORTED}
    public -= {n for n in public if isinstance(getattr(other, n), types.ModuleType)}
    assert {n for n in public if hasattr(module, n)} <= set(listed)


# Functions of jax whose name is not the one they are found by.
NAMED_OTHERWISE = {
    **{f"xtrace.example_libraries.stax.{name}Pool": "jax's has the name of an inner function"
       for name in ("Avg", "Max", "Sum")},
    "xtrace.extend.backend.register_backend_cache": "jax's is register_cache",
    "xtrace.extend.core.gensym": "jax's is a lambda",
    **{f"xtrace.experimental.array_serialization.serialization.run_{name}": "jax's has the name of a private function"
       for name in ("serialization", "deserialization")},
    "xtrace.extend.core.nonempty_axis_env_DO_NOT_USE": "jax's has the name without the warning",
    "xtrace.extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE": "jax's has the name without the warning",
    "xtrace.extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE": "jax's has the name without the warning",
    "xtrace.extend.core.unsafe_get_axis_names_DO_NOT_USE": "jax's has the name without the warning",
    "xtrace.lax.random_gamma_grad": "jax's has the name of an inner function",
    "xtrace.ds": "jax's has the name dslice",
    "xtrace.ref.addupdate": "jax's is ref_addupdate",
    "xtrace.ref.get": "jax's is ref_get",
    "xtrace.ref.set": "jax's is ref_set",
    "xtrace.ref.swap": "jax's is ref_swap",
}


def _is_compiled(function):
    """Whether a function is written in C++, whose parameters nobody knows."""
    return type(getattr(function, "__func__", function)).__name__ in ("nb_func", "builtin_function_or_method")


def functions_of(name):
    """Return (full name, function, jax's function) for the public functions of the module called `name`."""
    module, other = (functools.reduce(getattr, name.split(".")[1:], package) for package in (xtrace, jax))
    found = [(f"{name}.{n}", getattr(module, n), getattr(other, n)) for n in dir(module) if hasattr(other, n)]
    return [
        (full, mine, theirs)
        for full, mine, theirs in found
        if mine is not theirs and not full.endswith("_p") and callable(theirs) and not _is_compiled(theirs)
        and all(isinstance(getattr(f, "__name__", None), str) for f in (mine, theirs)) and not isinstance(mine, type)
        and not isinstance(theirs, type) and typing.get_origin(mine) is None and typing.get_origin(theirs) is None
    ]


def parameters_of(function):
    return [(p.name, p.kind, p.default is p.empty) for p in inspect.signature(function).parameters.values()]


# Keyword parameters that functions have besides those of jax, after them.
OWN_PARAMETERS = {"xtrace.jit": ["compilation"], "xtrace.make_mesh": ["target"]}


@pytest.mark.parametrize("name", MODULES)
def test_functions_have_the_names_and_parameters_of_jax(name):
    for full, mine, theirs in functions_of(name):
        assert (mine.__name__ == theirs.__name__) == (full not in NAMED_OTHERWISE), full
        own = [(parameter, inspect.Parameter.KEYWORD_ONLY, False) for parameter in OWN_PARAMETERS.get(full, ())]
        # Parameters by keyword have no order.
        expected = sorted(parameters_of(theirs) + own, key=_order)
        newer = NEWER_PARAMETERS.get(full, set()) - {p[0] for p in expected}
        found = parameters_of(mine)
        assert newer <= {name for name, _, required in found if not required}, full
        assert sorted([p for p in found if p[0] not in newer], key=_order) == expected, full


def _order(parameter):
    return parameter[0] if parameter[1] == inspect.Parameter.KEYWORD_ONLY else ""


@pytest.mark.parametrize("name", MODULES)
def test_docstrings_begin_with_a_sentence(name):
    for full, mine, _ in functions_of(name):
        assert (mine.__doc__ or "").strip().split("\n")[0].endswith((".", ":", ")")), full


@pytest.mark.parametrize("name", MODULES)
def test_functions_and_classes_are_pickled_by_a_public_name(name):
    module = importlib.import_module(name)
    for listed in dir(module):
        found = getattr(module, listed)
        if isinstance(found, (types.FunctionType, type)) and found.__module__.startswith("xtrace"):
            assert found.__module__ in MODULES, (listed, found.__module__)
            assert pickle.loads(pickle.dumps(found)) is found, listed


def test_errors_name_their_public_module_without_having_loaded_it():
    code = """
import sys, xtrace, xtrace.extend.core
try:
    xtrace.jit(bool)(1)
except TypeError as error:
    kinds = type(error).__mro__
print("xtrace.errors" in sys.modules, *[kind.__module__ for kind in kinds[:3]])
"""
    assert in_a_new_process(code) == ["False", "xtrace.errors", "xtrace.errors", "xtrace.errors"]


def test_versions():
    assert xtrace.numpy.__array_api_version__ == jax.numpy.__array_api_version__
    assert ".".join(map(str, xtrace.__version_info__)) == xtrace.__version__


def in_a_new_process(code):
    return subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()


def test_dir_loads_nothing():
    code = """
import sys, xtrace
import xtrace.numpy, xtrace.nn, xtrace.random, xtrace.scipy, xtrace.scipy.stats, xtrace.core, xtrace.experimental
before = set(sys.modules)
for module in (xtrace, xtrace.numpy, xtrace.nn, xtrace.random, xtrace.scipy, xtrace.scipy.stats, xtrace.core):
    assert len(dir(module)) > 5, module
print(*(set(sys.modules) - before))
"""
    assert in_a_new_process(code) == []


def test_notebooks_complete_names():
    code = """
from IPython.core.completer import provisionalcompleter
from IPython.core.interactiveshell import InteractiveShell
shell = InteractiveShell.instance()
shell.Completer.use_jedi = True
shell.run_cell("import xtrace, xtrace.numpy as jnp; x = jnp.ones(3); f = xtrace.jit(abs)")
for text in ("jnp.arr", "jnp.linalg.ma", "xtrace.val", "xtrace.nn.r", "x.arg", "x.at[0].s", "f.l", "jnp.add.a"):
    with provisionalcompleter():
        print(text, *sorted({c.text for c in shell.Completer.completions(text, len(text))}), sep=",")
"""
    found = dict(line.split(",", 1) for line in in_a_new_process(code))
    found = {text: names.split(",") for text, names in found.items()}
    assert found["jnp.arr"] == ["array", "array_equal", "array_equiv", "array_repr", "array_split", "array_str"]
    assert found["jnp.linalg.ma"] == ["matmul", "matrix_norm", "matrix_power", "matrix_rank", "matrix_transpose"]
    assert found["xtrace.val"] == ["value_and_grad"]
    assert found["xtrace.nn.r"] == ["relu", "relu6"]
    assert found["x.arg"] == ["argmax", "argmin", "argpartition", "argsort"]
    assert {"set", "subtract"} <= set(found["x.at[0].s"])
    assert "lower" in found["f.l"] and {"accumulate", "at"} <= set(found["jnp.add.a"])


@functools.cache
def objects(package):
    """Return what users hold, by name."""
    x = package.numpy.ones(3)
    jitted = package.jit(lambda x: 2 * x)
    traced = jitted.trace(x)
    lowered = traced.lower()
    return {
        "array": x, "ufunc": package.numpy.add, "x.at": x.at, "x.at[0]": x.at[0], "jitted": jitted, "traced": traced,
        "lowered": lowered, "compiled": lowered.compile(), "custom_jvp": package.custom_jvp(abs),
        "device": package.devices()[0], "key": package.random.key(0), "Array": package.Array,
    }


# Public names here that jax's objects have not.
OWN_NAMES = {
    "jitted": {"cache_info", "wait_for_compilation", "warm_up", "warm_up_all"}, "traced": {"explore"},
    "lowered": {"explore", "fun_name", "out_avals"},
    "compiled": {"explore", "fits", "fun_name", "out_avals", "report"},
    "ufunc": {"args", "func", "keywords"},  # it is a functools.partial
    "custom_jvp": {"arity", "kind", "name", "signature"}, "Array": {"devices", "format", "traceback", "weak_type"},
    "key": {"clone", "format", "is_ready", "platform", "tobytes", "tolist", "traceback", "weak_type"},
}


@pytest.mark.parametrize("name", objects(xtrace))
def test_dir_lists_the_names_of_objects(name):
    mine, other = objects(xtrace)[name], objects(jax)[name]
    listed = {n for n in dir(mine) if not n.startswith("_")}
    assert listed - set(dir(other)) == OWN_NAMES.get(name, set())
    assert {n for n in dir(other) if not n.startswith("_") and hasattr(type(mine), n)} <= listed


def test_dir_of_tracers_lists_no_internals():
    listed = []
    for package in (xtrace, jax):
        package.jit(lambda x: listed.append(dir(x)) or x).lower(np.ones(3))
    package_names = {n for n in listed[0] if not n.startswith("_")}
    assert package_names - set(listed[1]) == {
        "block_until_ready", "copy_to_host_async", "format", "is_ready", "weak_type"
    }
    assert {"sum", "at", "T", "shape"} <= package_names


def test_a_class_with_an_abbreviation_is_pickled_by_its_name_once_its_module_is_loaded():
    program = """
import pickle, xtrace
assert pickle.loads(pickle.dumps(xtrace.P)) is xtrace.P
import xtrace.sharding
assert pickle.loads(pickle.dumps(xtrace.P)) is xtrace.P is xtrace.sharding.PartitionSpec
"""
    subprocess.run([sys.executable, "-c", program], check=True, capture_output=True, text=True)


@pytest.mark.parametrize(("path", "text"), written_modules().items(), ids=("lax", "numpy"))
def test_marked_lists_have_every_name(path, text):
    assert MARK in text and path.read_text() == text, "write the lists: python -m tools.public_names"


def test_list_of_every_name_is_written_from_its_module():
    module = "xtrace._src.ops.elementwise.selection"
    listed = f"    from {module} import (  {MARK}\n        outdated as outdated,\n    )\n"
    names = ["clamp as clamp", "select as select", "select_n as select_n"]
    assert write_lists(listed, False) == listed.replace("outdated as outdated", ", ".join(names))
    with_alias = [names[0], "clamp as clamp_p", *names[1:], "select_n as select_n_p"]
    assert write_lists(listed, True) == listed.replace("outdated as outdated", ", ".join(with_alias))
    by_hand = listed.replace(f"  {MARK}", "")
    assert write_lists(by_hand, True) == by_hand
