"""Names of jaxlib that jax hands on to other libraries: the versions of its parts, and its programs of IFRT."""

from typing import Any, cast

import jaxlib
from jaxlib import _jax, xla_client

# Stubs of jaxlib lack these names.
_JAX, _CLIENT = cast(Any, _jax), cast(Any, xla_client)

version_str: str = cast(Any, jaxlib).__version__
version = tuple(map(int, version_str.split(".")[:3]))
jaxlib_extension_version: int = _CLIENT._version
ifrt_version: int = _JAX.ifrt_version_number
ifrt_programs = _JAX.ifrt_programs
