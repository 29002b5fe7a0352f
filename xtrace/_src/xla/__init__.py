"""The interface to jaxlib: the only package that imports it. It does not depend on tracing."""

import os

# The C++ runtime logs each client it makes; the level must be set before the library loads.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# Checks jaxlib's release first: with an unsupported one, other imports would fail with obscure errors.
from xtrace._src.xla import versions as _versions
