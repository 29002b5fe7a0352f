"""The rules of the architecture hold, and the checks that say so notice when they do not."""

import ast
import importlib
import re

import pytest

from tests.architecture import source_tree as st


@pytest.fixture(scope="module")
def modules():
    return st.read_package()


def test_the_package_is_read(modules):
    assert {"xtrace", "xtrace._src.core.jaxprs.ir", "xtrace.cli.main"} <= set(modules)


@pytest.mark.parametrize(
    "check",
    [
        st.upward_imports,
        st.passed_late_names,
        st.local_imports,
        st.foreign_imports,
        st.private_uses,
        st.import_cycles,
        st.patched_rules,
        st.caches_apart,
        st.undocumented,
    ],
    ids=lambda check: check.__name__,
)
def test_the_package_keeps_the_rule(check, modules):
    assert check(modules) == []


BROKEN = [
    (st.upward_imports, {"xtrace._src.core.a": "def f():\n    import_module('xtrace._src.api.b')"}),
    (st.upward_imports, {"xtrace._src.core.a": "with late_imports(globals()):\n    from xtrace.numpy.b import c"}),
    (st.upward_imports, {"xtrace._src.core.a": "with late_modules(globals()):\n    from xtrace._src.api import b"}),
    (st.upward_imports, {"xtrace._src.core.a": "def f(n):\n    import_module(f'xtrace._src.api.{n}')"}),
    (st.upward_imports, {"xtrace._src.core.a": "from xtrace._src.ops import b", "xtrace._src.ops.b": ""}),
    (st.upward_imports, {"xtrace._src.core.a": "import xtrace._src.ops.b", "xtrace._src.ops.b": ""}),
    (st.upward_imports, {"xtrace._src.core.a": "def f():\n    from xtrace._src.ops import b", "xtrace._src.ops.b": ""}),
    (st.upward_imports, {"xtrace._src.core.a": "import typing\nif typing.TYPE_CHECKING:\n    import xtrace._src.ops"}),
    (st.upward_imports, {"xtrace._src.api.a": "from xtrace import numpy", "xtrace.numpy": ""}),
    (st.upward_imports, {"xtrace.numpy": "import xtrace", "xtrace": ""}),
    (st.upward_imports, {"xtrace.tree": "from xtrace.cli import main"}),
    (st.upward_imports, {"xtrace._src.ops.a": "from . import b"}),
    (st.passed_late_names,
     {"xtrace._src.core.a": "with late_modules(globals()):\n    from xtrace._src.core.b import f\nassert x is f"}),
    (st.passed_late_names, {
        "xtrace._src.core.a": "with late_modules(globals()):\n    from xtrace._src.core.b import f",
        "xtrace._src.core.c": "from xtrace._src.core.a import f",
    }),
    (st.local_imports, {"xtrace._src.core.a": "def f():\n    import os"}),
    (st.local_imports, {"xtrace._src.core.a": "class C:\n    def f(self):\n        if self:\n            import os"}),
    (st.local_imports,
     {"xtrace._src.core.a": "def f():\n    try:\n        pass\n    except OSError:\n        import os"}),
    (st.local_imports, {"xtrace._src.core.a": "def f():\n    from xtrace._src.core import b  # heavy third-party"}),
    (st.local_imports, {"xtrace._src.core.a": "def f():\n    match 1:\n        case 1:\n            import os"}),
    (st.foreign_imports, {"xtrace._src.xla.a": "import jax"}),
    (st.foreign_imports, {"xtrace._src.core.a": "def f():\n    from jax.numpy import sin"}),
    (st.foreign_imports, {"xtrace._src.core.a": "from jaxlib import xla_client"}),
    (st.foreign_imports, {"xtrace._src.core.a": "import importlib\nimportlib.import_module('jaxlib.mlir')"}),
    (st.private_uses, {"xtrace._src.core.a": "", "xtrace._src.ops.b": "from xtrace._src.core.a import _hidden"}),
    (st.private_uses, {"xtrace._src.core._a": "", "xtrace._src.ops.b": "from xtrace._src.core._a import shown"}),
    (st.private_uses, {"xtrace._src.core.a": "", "xtrace._src.ops.b": "from xtrace._src.core import a\na._hidden()"}),
    (st.private_uses,
     {"xtrace._src.core.a": "", "xtrace._src.ops.b": "import xtrace._src.core.a as c\nprint(c._hidden)"}),
    (st.import_cycles,
     {"xtrace._src.core.a": "import xtrace._src.core.b", "xtrace._src.core.b": "from xtrace._src.core.a import x"}),
    (st.import_cycles,
     {"xtrace._src.core.a": "from xtrace._src.core import b", "xtrace._src.core.b": "from xtrace._src.core import a"}),
    (st.patched_rules, {"xtrace._src.ops.a": "found.jvp = found.linearize = rule"}),
    (st.patched_rules, {"xtrace._src.ops.a": "for p in (a, b):\n    p.batch = rule"}),
    (st.caches_apart, {"xtrace._src.core.a": "@functools.cache\ndef f(x): pass"}),
    (st.caches_apart, {"xtrace._src.core.a": "@lru_cache(8)\ndef f(*x): pass"}),
    (st.undocumented, {"xtrace._src.core.a": "'''Doc.'''\ndef f(): pass"}),
    (st.undocumented, {"xtrace._src.core.a": "'''Doc.'''\nclass C:\n    '''Doc.'''\n    def f(self): pass"}),
    (st.undocumented, {"xtrace._src.core.a": "def f():\n    '''Doc.'''"}),
]

KEPT = [
    (st.upward_imports, {"xtrace._src.ops.a": "from xtrace._src.core import b", "xtrace._src.core.b": ""}),
    (st.upward_imports, {"xtrace.cli.a": "import xtrace", "xtrace": "from xtrace import numpy", "xtrace.numpy": ""}),
    (st.upward_imports, {"xtrace.numpy": "from xtrace import lax", "xtrace.lax": ""}),
    (st.passed_late_names, {
        "xtrace._src.core.a": "with late_modules(globals()):\n    from xtrace._src.core.b import C, f\n"
        "def g(x: C): return isinstance(x, C) or f(x) or C.of(x)",
    }),
    (st.local_imports, {"xtrace": "def __getattr__(name):\n    import xtrace.numpy"}),
    (st.local_imports, {"xtrace.cli.a": "def f():\n    import rich  # heavy third-party"}),
    (st.local_imports, {"xtrace.cli.a": "try:\n    import rich\nexcept ImportError:\n    rich = None"}),
    (st.foreign_imports, {"xtrace._src.xla.a": "from jaxlib import xla_client\nimport jax_plugins"}),
    (st.private_uses, {"xtrace._src.core.a": "from xtrace._src.core.b import _hidden", "xtrace._src.core.b": ""}),
    (st.private_uses, {"xtrace._src.ops.a": "from xtrace._src.core.b import C\nC.__slots__", "xtrace._src.core.b": ""}),
    (st.import_cycles, {
        "xtrace._src.core.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import xtrace._src.core.b",
        "xtrace._src.core.b": "import xtrace._src.core.a",
    }),
    (st.import_cycles, {
        "xtrace._src.core.a": "with late_imports(globals()):\n    from xtrace._src.core.b import c",
        "xtrace._src.core.b": "import xtrace._src.core.a",
    }),
    (st.patched_rules, {"xtrace._src.ops.a": "class A:\n    def __init__(self, jvp):\n        self.jvp = jvp"}),
    (st.caches_apart, {"xtrace._src.core.a": "@cache\ndef f(): pass\n@functools.cache  # interned\ndef g(x): pass"}),
    (st.undocumented, {
        "xtrace._src.core.a": "'''Doc.'''\nclass A:\n    '''Doc.'''\n    def f(self):\n        '''Doc.'''",
        "xtrace._src.core.b": "'''Doc.'''\nclass B(a.A):\n    '''Doc.'''\n    def f(self): pass",
    }),
    (st.undocumented, {"xtrace._src.core.a": "'''Doc.'''\ndef _f(): pass\nclass _C:\n    def f(self): pass"}),
]


def _name(value):
    return value.__name__ if callable(value) else None


@pytest.mark.parametrize(("check", "texts"), BROKEN, ids=_name)
def test_a_broken_rule_is_noticed(check, texts):
    assert check(st.package_of(texts))


@pytest.mark.parametrize(("check", "texts"), KEPT, ids=_name)
def test_what_is_allowed_passes(check, texts):
    assert check(st.package_of(texts)) == []


# Modules of the layers that load when they are first needed, and not with `import xtrace`: who needs them, and the
# milliseconds that loading them took. Public modules load their names in this way altogether.
LATE = {
    "xtrace._src.alias.distribution": "a question for the distribution ``jax``, 10",
    "xtrace._src.api.pages.explore": "a page of a program's stages, 20",
    "xtrace._src.api.pages.notebook_views": "a stage shown in a notebook, 3",
    "xtrace._src.core.jaxprs.jaxpr_views": "a jaxpr shown in a notebook, 2",
    "xtrace._src.api.reports.cache_info": "`jitted.cache_info()`, 4",
    "xtrace._src.api.compilation.dump": "the setting that writes programs to files, 4",
    "xtrace._src.api.compilation.serialized_programs": "compiled programs that are pickled, 4",
    "xtrace._src.api.compilation.tiered_compilation": "programs compiled in tiers, together, or in advance, 2",
    "xtrace._src.api.kept_traces.kept_traces": "the setting that keeps traces on disk, 12",
    "xtrace._src.api.compilation.xla_errors": "a program that XLA refuses or that fails while it runs, 4",
    "xtrace._src.api.reports.memory_fits": "whether a program fits a device that is not here, 1",
    "xtrace._src.api.reports.memory_reports": "the memory of a compiled program, 20",
    "xtrace._src.api.reports.partition_reports": "the report of a compiled program, 6",
    "xtrace._src.api.reports.cache_miss_reports": "the setting that explains why a function is compiled again, 3",
    "xtrace._src.core.high_types.high_nodes": "values of types that users define, 2",
    "xtrace._src.ops.references.operations": "programs with references, 10",
    "xtrace._src.ops.references.reference": "programs with references, 10",
    "xtrace._src.core.settings.absl_flags": "settings as flags of absl, 1",
    "xtrace._src.core.diagnostics": "the first error, 14",
    "xtrace._src.core.diagnostics.excerpts": "an error that shows source, 3",
    "xtrace._src.core.shardings.sharding_pictures": "a sharding shown in a notebook, 2",
    "xtrace._src.debug_nans.search": "the settings `debug_nans` and `debug_infs`, 7",
    "xtrace._src.extension.mlir_functions": "a lowering rule that builds MLIR's objects, 35",
    "xtrace._src.host_evaluation.programs": "the first operation outside of programs, 4",
    "xtrace._src.key_reuse.check": "the setting `debug_key_reuse`, 30",
    "xtrace._src.ops.custom_rules.remat_opt": "a custom_vjp with optimize_remat, 1",
    "xtrace._src.runtime.callbacks": "a program that calls Python, 1",
    "xtrace._src.runtime.resharding": "an array in another layout, or split anew on a GPU, 1",
    "xtrace._src.runtime.compilation_cache": "a folder of compiled programs, 4",
    "xtrace._src.transforms.symbolic_arguments": "a program for symbolic shapes, 5",
    "xtrace._src.xla.mlir.artifacts": "the program of an exported function, 30",
    "xtrace._src.xla.mlir.mlir_objects": "a function exported for several platforms, 30",
    "xtrace._src.xla.mlir.modules": "a program with jaxlib's MLIR, 10",
    "xtrace._src.xla.processes.coordinator_relay": "a process of several that is not the first, 3",
    "xtrace._src.xla.processes.peers": "a program of several processes, 2",
    "xtrace._src.xla.plugins.plugins": "a device that is no CPU, 3",
    "xtrace._src.xla.plugins.absent_devices": "compilation for a device that is not here, 16",
    "xtrace._src.algebra.varying": "values that vary along axes of `shard_map`, 1",
    "xtrace._src.api.compilation.mesh_agreement": "arguments or operations with meshes, 2",
    "xtrace._src.api.differentiation.reference_pullback": "the gradient of a function of references, 1",
    "xtrace._src.api.jit.jitted_type": "`stages.Wrapped`, 1",
    "xtrace._src.api.jit.annotated_arguments": "`lower()` without arguments, 1",
    "xtrace._src.api.jit.reference_programs": "a jitted function of references, 1",
    "xtrace._src.api.jit.stages": "`trace` and `lower` of a jitted function, 1",
    "xtrace._src.core.diagnostics.messages": "an error that names the called function, 1",
    "xtrace._src.core.diagnostics.rule_error_notes": "an error in a rule, 1",
    "xtrace._src.core.high_types.high_values": "values of types that users define, 1",
    "xtrace._src.core.jaxprs.check": "the setting `enable_checks`, 1",
    "xtrace._src.core.jaxprs.printer": "a jaxpr that is printed, 1",
    "xtrace._src.core.jaxprs.source_info": "`source_info` of an equation, 2",
    "xtrace._src.core.pytrees.pytree_differences": "an error about trees that differ, 1",
    "xtrace._src.ops.arrays.dynamic_slicing": "slices at positions that arrays give, 1",
    "xtrace._src.ops.arrays.shape": "functions of numpy that add or drop axes, 1",
    "xtrace._src.ops.arrays.slicing": "sums and maxima by halves, 1",
    "xtrace._src.ops.calls.calls": "a jitted function that is called while a program is traced, 1",
    "xtrace._src.ops.control_flow.bodies": "functions with custom derivatives, 1",
    "xtrace._src.ops.custom_rules.custom_jvp": "functions with custom derivatives, 2",
    "xtrace._src.ops.custom_rules.rule": "functions with custom derivatives, 1",
    "xtrace._src.ops.custom_rules.symbolic_zeros": "functions with custom derivatives, 1",
    "xtrace._src.ops.elementwise.complex_numbers": "complex numbers, 1",
    "xtrace._src.ops.random.draw_loops": "programs that draw four times or more, 1",
    "xtrace._src.ops.random.keys": "random keys in a program that is read from a folder, 2",
    "xtrace._src.ops.random.xla_generators": "random keys of XLA's generators, 1",
    "xtrace._src.ops.shardings.device_put": "transfers between memories of a device, 1",
    "xtrace._src.runtime.callback_errors": "a program that calls Python and fails, 1",
    "xtrace._src.stablehlo.cipher_calls": "programs for CPUs that draw random numbers, 1",
    "xtrace._src.stablehlo.frontend_attributes": "`set_xla_metadata`, 1",
    "xtrace._src.transforms.batch": "`vmap`, 1",
    "xtrace._src.transforms.element_functions": "reductions and scatters with functions of users, 1",
    "xtrace._src.transforms.evaluate": "a jaxpr that is evaluated, 1",
    "xtrace._src.transforms.jaxpr_transforms": "a jaxpr that is transformed, 1",
    "xtrace._src.transforms.jvp": "derivatives of operations that are written as functions, 1",
    "xtrace._src.transforms.linearize": "operations with references under `linearize`, 1",
    "xtrace._src.transforms.physical_types": "programs with random keys, 1",
    "xtrace._src.xla.executables.environments": "the key of a program in a folder of compiled programs, 1",
    "xtrace._src.xla.executables.stripped_executables": "programs that are read from a folder, 1",
}


def test_late_imports_of_the_layers_are_listed(modules):
    named = {name for module in modules.values() if st.is_in_layer(module.name) for name, _ in st.late_imports(module)}
    assert {name if name in modules else name.rpartition(".")[0] for name in named} == set(LATE)


def test_modules_that_strings_import_exist(modules):
    # Other processes run such strings.
    imports = re.compile(r"from (xtrace[\w.]*) import (\w+)")
    missing = [
        f"{module.name} imports {package}.{name}"
        for module in modules.values()
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
        for package, name in imports.findall(node.value)
        if f"{package}.{name}" not in modules and not hasattr(importlib.import_module(package), name)
    ]
    assert missing == []
