"""Private modules of jax, mostly ``jax._src``, for libraries that import them, and for what editors import.

xtrace's own code uses none of them.
"""

from __future__ import annotations

import importlib
from types import ModuleType
from typing import Any

# Editors import public names from the private files that define them. For each folder below ``jax._src``, its files,
# and the modules with their public names.
_FILES: dict[str, tuple[str, tuple[str, ...]]] = {
    "": (
        "api array basearray pjit pmap shard_map sharding sharding_impls named_sharding partition_spec mesh",
        ("xtrace", "xtrace.sharding", "xtrace.stages", "xtrace.typing", "xtrace._src.alias.private_names",
         "xtrace.interpreters.pxla", "xtrace.experimental.pjit", "xtrace.extend.core.primitives"),
    ),
    "lax": (
        "ann convolution fft lax linalg other parallel slicing special windowed_reductions control_flow "
        "control_flow.conditionals control_flow.loops control_flow.solves",
        ("xtrace.lax", "xtrace.lax.linalg"),
    ),
    "numpy": (
        "array_constructors array_creation einsum fft index_tricks indexing lax_numpy linalg polynomial reductions "
        "scalar_types setops sorting tensor_contractions ufunc_api ufuncs util vectorize window_functions",
        ("xtrace.numpy", "xtrace.numpy.linalg", "xtrace.numpy.fft", "xtrace._src.alias.operand_conversions"),
    ),
    "nn": ("functions initializers", ("xtrace.nn", "xtrace.nn.initializers")),
    "image": ("scale", ("xtrace.image",)),
    "ops": ("scatter special", ("xtrace.ops", "xtrace.scipy.special")),
    "random": ("core prng", ("xtrace.random", "xtrace.extend.random")),
}

# Private modules that have a public module's names.
_PUBLIC = (
    "ad_checkpoint api_util custom_batching custom_derivatives dlpack export ffi flatten_util image interpreters "
    "interpreters.ad interpreters.batching interpreters.mlir interpreters.partial_eval interpreters.pxla lax "
    "monitoring nn numpy ops profiler random scipy scipy.linalg scipy.signal scipy.special scipy.stats stages tree"
)

# For each private module, the modules with its names, in the order of the search.
PRIVATE_MODULES: dict[str, tuple[str, ...]] = {
    **{
        f"jax._src.{folder}.{file}".replace("..", "."): modules
        for folder, (files, modules) in _FILES.items() for file in files.split()
    },
    **{
        f"jax._src.{name}": (f"xtrace.{name}", "xtrace", "xtrace._src.alias.private_names")
        for name in _PUBLIC.split()
    },
    "jax.version": (),
    "jax._src": (),
    "jax._src.ad_util": ("xtrace.lax", "xtrace.interpreters.ad"),
    "jax._src.checkify": ("xtrace.experimental.checkify",),
    "jax._src.core": (
        "xtrace.extend.core", "xtrace.core", "xtrace._src.alias.private_names", "xtrace.errors",
        "xtrace.extend.core.primitives",
    ),
    "jax._src.dispatch": ("xtrace._src.alias.private_names",),
    "jax._src.distributed": ("xtrace.distributed", "xtrace._src.alias.private_names"),
    "jax._src.dtypes": ("xtrace.dtypes", "xtrace._src.core.dtypes", "xtrace._src.alias.private_names"),
    "jax._src.earray": ("xtrace.experimental",),
    "jax._src.errors": ("xtrace.errors",),
    "jax._src.hijax": ("xtrace.experimental.hijax",),
    "jax._src.layout": ("xtrace.experimental.layout",),
    "jax._src.linear_util": ("xtrace.extend.linear_util",),
    "jax._src.prng": ("xtrace.extend.random", "xtrace.random", "xtrace._src.alias.private_names"),
    "jax._src.random.threefry2x32": ("xtrace._src.alias.threefry_names", "xtrace.extend.random"),
    "jax._src.public_test_util": ("xtrace.test_util", "xtrace._src.alias.test_cases"),
    "jax._src.source_info_util": ("xtrace.extend.source_info_util",),
    "jax._src.traceback_util": ("xtrace.extend.source_info_util", "xtrace._src.alias.private_names"),
    "jax._src.tree_util": ("xtrace.tree_util", "xtrace._src.alias.private_names"),
    "jax._src.test_util": ("xtrace._src.alias.random_operands", "xtrace._src.alias.test_cases", "xtrace.test_util"),
    "jax._src.typing": ("xtrace.typing", "xtrace._src.core.annotations"),
    "jax._src.config": ("xtrace._src.core.settings.config", "xtrace._src.alias.private_names"),
    "jax._src.util": ("xtrace.api_util", "xtrace._src.alias.private_names"),
    "jax._src.xla_bridge": ("xtrace.extend.backend", "xtrace._src.alias.private_names"),
    "jax._src.compiler": ("xtrace._src.alias.private_names",),
    "jax._src.state": ("xtrace.ref",),
    "jax._src.state.types": ("xtrace.ref",),
    "jax._src.callback": ("xtrace._src.alias.private_names",),
    "jax._src.literals": ("xtrace._src.alias.private_names",),
    "jax._src.lib.mlir": ("xtrace.extend.mlir",),
    "jax._src.lib.mlir.dialects": ("xtrace.extend.mlir.dialects",),
    "jax._src.lib": ("xtrace._src.xla.jax_lib_names", "jaxlib"),
}


# Private names of public functions and modules.
_PUBLIC_FORMS = {
    "_broadcast_arrays": "broadcast_arrays", "_broadcast_to": "broadcast_to", "_where": "where", "hlo": "stablehlo",
}


def make_private_module(name: str, version: str, version_info: tuple[int, ...]) -> ModuleType:
    """Return a new module for the private module `name` of jax."""
    module = ModuleType(name, f"Names of {name}, a private module of jax, for libraries that use them.")
    sources = PRIVATE_MODULES[name]

    def getattribute(attribute: str) -> Any:
        for source in sources:
            value = getattr(importlib.import_module(source), _PUBLIC_FORMS.get(attribute, attribute), module)
            if value is not module:
                setattr(module, attribute, value)
                return value
        if f"{name}.{attribute}" in PRIVATE_MODULES:
            return importlib.import_module(f"{name}.{attribute}")
        raise AttributeError(
            f"module {name!r} has no attribute {attribute!r}: jax is xtrace in this process, and of jax's "
            "private modules it has only the names that well-known libraries use"
        )

    module.__getattr__ = getattribute  # type: ignore[method-assign]
    module.__path__ = []
    if name == "jax.version":
        vars(module).update(__version__=version, _version=version, __version_info__=version_info)
    return module
