"""Names of jaxlib that jax hands on to other libraries: the versions of its parts, and its programs of IFRT."""

from typing import Any, cast

from jaxlib import _jax, xla_client

from xtrace._src.xla.versions import JAXLIB_VERSION, JAXLIB_VERSION_TEXT

# Stubs of jaxlib lack these names.
_JAX, _CLIENT = cast(Any, _jax), cast(Any, xla_client)

version_str = JAXLIB_VERSION_TEXT
version = JAXLIB_VERSION[:3]
jaxlib_extension_version: int = _CLIENT._version
ifrt_version: int = _JAX.ifrt_version_number
ifrt_programs = _JAX.ifrt_programs
