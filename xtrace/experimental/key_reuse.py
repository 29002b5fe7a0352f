"""The checker for reuse of random keys (``jax.experimental.key_reuse``).

The setting ``jax_debug_key_reuse``, or ``with xtrace.debug_key_reuse(True)``, turns it on. `reuse_key` is
`xtrace.random.clone`: a copy of a key that may be used again. `unconsumed_copy` is its older name.
"""

from xtrace._src.core.public_modules import make_public as _make_public
from xtrace.errors import KeyReuseError
from xtrace.random import clone

reuse_key = unconsumed_copy = clone

_make_public(globals(), ["KeyReuseError"])
__all__ = ["KeyReuseError", "reuse_key", "unconsumed_copy"]
