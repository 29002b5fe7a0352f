"""The door to jaxlib: the only package that imports it. It knows nothing of tracing."""

import os

# The C++ runtime logs each client it makes; the level must be set before the library loads.
os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "1")

# Says which releases are supported before another import fails on a wrong one.
from xtrace._src.xla import versions as _versions
