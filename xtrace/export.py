"""Exported functions: programs for files and other processes, in the format of ``jax.export``.

`export` lowers a jitted function for one platform or several. `Exported.serialize` returns the bytes of a file, with
derivatives on request. `deserialize` reads such files, and the files of jax.export. `Exported.call` calls the program,
also under `jit` and `grad`.
"""

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.export.checks import (
        maximum_supported_calling_convention_version as maximum_supported_calling_convention_version,
    )
    from xtrace._src.export.checks import (
        minimum_supported_calling_convention_version as minimum_supported_calling_convention_version,
    )
    from xtrace._src.export.deserialization import deserialize as deserialize
    from xtrace._src.export.disabled_checks import DisabledSafetyCheck as DisabledSafetyCheck
    from xtrace._src.export.export import default_export_platform as default_export_platform
    from xtrace._src.export.export import export as export
    from xtrace._src.export.exported import Exported as Exported
    from xtrace._src.export.symbolic_shapes import SymbolicScope as SymbolicScope
    from xtrace._src.export.symbolic_shapes import is_symbolic_dim as is_symbolic_dim
    from xtrace._src.export.symbolic_shapes import symbolic_args_specs as symbolic_args_specs
    from xtrace._src.export.symbolic_shapes import symbolic_shape as symbolic_shape
    from xtrace._src.export.trees import (
        register_namedtuple_serialization as register_namedtuple_serialization,
    )
    from xtrace._src.export.trees import (
        register_pytree_node_serialization as register_pytree_node_serialization,
    )
