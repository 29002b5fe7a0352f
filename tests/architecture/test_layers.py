"""The rules of the architecture hold, and the checks that say so notice when they do not."""

import pytest

from tests.architecture import source_tree as st


@pytest.fixture(scope="module")
def modules():
    return st.read_package()


def test_the_package_is_read(modules):
    assert {"xtrace", "xtrace._src.core.ir", "xtrace.cli.main"} <= set(modules)


@pytest.mark.parametrize(
    "check",
    [
        st.upward_imports,
        st.local_imports,
        st.foreign_imports,
        st.private_uses,
        st.import_cycles,
        st.caches_apart,
        st.undocumented,
    ],
    ids=lambda check: check.__name__,
)
def test_the_package_keeps_the_rule(check, modules):
    assert check(modules) == []


BROKEN = [
    (st.upward_imports, {"xtrace.core.a": "from xtrace.ops import b", "xtrace.ops.b": ""}),
    (st.upward_imports, {"xtrace.core.a": "import xtrace.ops.b", "xtrace.ops.b": ""}),
    (st.upward_imports, {"xtrace.core.a": "def f():\n    from xtrace.ops import b", "xtrace.ops.b": ""}),
    (st.upward_imports, {"xtrace.core.a": "import typing\nif typing.TYPE_CHECKING:\n    import xtrace.ops"}),
    (st.upward_imports, {"xtrace.api.a": "from xtrace import numpy", "xtrace.numpy": ""}),
    (st.upward_imports, {"xtrace.numpy": "import xtrace", "xtrace": ""}),
    (st.upward_imports, {"xtrace.tree": "from xtrace.cli import main"}),
    (st.upward_imports, {"xtrace.ops.a": "from . import b"}),
    (st.local_imports, {"xtrace.core.a": "def f():\n    import os"}),
    (st.local_imports, {"xtrace.core.a": "class C:\n    def f(self):\n        if self:\n            import os"}),
    (st.local_imports, {"xtrace.core.a": "def f():\n    try:\n        pass\n    except OSError:\n        import os"}),
    (st.local_imports, {"xtrace.core.a": "def f():\n    from xtrace.core import b  # heavy third-party"}),
    (st.local_imports, {"xtrace.core.a": "def f():\n    match 1:\n        case 1:\n            import os"}),
    (st.foreign_imports, {"xtrace.xla.a": "import jax"}),
    (st.foreign_imports, {"xtrace.core.a": "def f():\n    from jax.numpy import sin"}),
    (st.foreign_imports, {"xtrace.core.a": "from jaxlib import xla_client"}),
    (st.foreign_imports, {"xtrace.core.a": "import importlib\nimportlib.import_module('jaxlib.mlir')"}),
    (st.private_uses, {"xtrace.core.a": "", "xtrace.ops.b": "from xtrace.core.a import _hidden"}),
    (st.private_uses, {"xtrace.core._a": "", "xtrace.ops.b": "from xtrace.core._a import shown"}),
    (st.private_uses, {"xtrace.core.a": "", "xtrace.ops.b": "from xtrace.core import a\na._hidden()"}),
    (st.private_uses, {"xtrace.core.a": "", "xtrace.ops.b": "import xtrace.core.a as c\nprint(c._hidden)"}),
    (st.import_cycles, {"xtrace.core.a": "import xtrace.core.b", "xtrace.core.b": "from xtrace.core.a import x"}),
    (st.import_cycles, {"xtrace.core.a": "from xtrace.core import b", "xtrace.core.b": "from xtrace.core import a"}),
    (st.caches_apart, {"xtrace.core.a": "@functools.cache\ndef f(x): pass"}),
    (st.caches_apart, {"xtrace.core.a": "@lru_cache(8)\ndef f(*x): pass"}),
    (st.undocumented, {"xtrace.core.a": "'''Doc.'''\ndef f(): pass"}),
    (st.undocumented, {"xtrace.core.a": "'''Doc.'''\nclass C:\n    '''Doc.'''\n    def f(self): pass"}),
    (st.undocumented, {"xtrace.core.a": "def f():\n    '''Doc.'''"}),
]

KEPT = [
    (st.upward_imports, {"xtrace.ops.a": "from xtrace.core import b", "xtrace.core.b": ""}),
    (st.upward_imports, {"xtrace.cli.a": "import xtrace", "xtrace": "from xtrace import numpy", "xtrace.numpy": ""}),
    (st.upward_imports, {"xtrace.numpy": "from xtrace import lax", "xtrace.lax": ""}),
    (st.local_imports, {"xtrace": "def __getattr__(name):\n    import xtrace.numpy"}),
    (st.local_imports, {"xtrace.cli.a": "def f():\n    import rich  # heavy third-party"}),
    (st.local_imports, {"xtrace.cli.a": "try:\n    import rich\nexcept ImportError:\n    rich = None"}),
    (st.foreign_imports, {"xtrace.xla.a": "from jaxlib import xla_client\nimport jax_plugins"}),
    (st.private_uses, {"xtrace.core.a": "from xtrace.core.b import _hidden", "xtrace.core.b": ""}),
    (st.private_uses, {"xtrace.ops.a": "from xtrace.core.b import C\nC.__slots__", "xtrace.core.b": ""}),
    (st.import_cycles, {
        "xtrace.core.a": "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import xtrace.core.b",
        "xtrace.core.b": "import xtrace.core.a",
    }),
    (st.caches_apart, {"xtrace.core.a": "@cache\ndef f(): pass\n@functools.cache  # interned\ndef g(x): pass"}),
    (st.undocumented, {
        "xtrace.core.a": "'''Doc.'''\nclass A:\n    '''Doc.'''\n    def f(self):\n        '''Doc.'''",
        "xtrace.core.b": "'''Doc.'''\nclass B(a.A):\n    '''Doc.'''\n    def f(self): pass",
    }),
    (st.undocumented, {"xtrace.core.a": "'''Doc.'''\ndef _f(): pass\nclass _C:\n    def f(self): pass"}),
]


def _name(value):
    return value.__name__ if callable(value) else None


@pytest.mark.parametrize(("check", "texts"), BROKEN, ids=_name)
def test_a_broken_rule_is_noticed(check, texts):
    assert check(st.package_of(texts))


@pytest.mark.parametrize(("check", "texts"), KEPT, ids=_name)
def test_what_is_allowed_passes(check, texts):
    assert check(st.package_of(texts)) == []
