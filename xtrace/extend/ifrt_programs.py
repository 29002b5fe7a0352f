"""jaxlib's programs of IFRT, the interface below PJRT, for libraries that run them (``jax.extend.ifrt_programs``)."""

from typing import Any

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.xla import jax_lib_names as _jax_lib_names


def __getattr__(name: str) -> Any:
    # As a name of this module, jaxlib's module would count as a public module of xtrace.
    if name == "ifrt_programs":
        return _jax_lib_names.ifrt_programs
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_make_public(globals(), [])
