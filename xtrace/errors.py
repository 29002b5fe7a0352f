"""The classes of errors (``jax.errors``)."""

from xtrace._src.core.errors import *
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.xla.executables.executables import CompileError as _CompileError

JaxRuntimeError = _CompileError

_make_public(globals())
