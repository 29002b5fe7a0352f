"""The installed jaxlib: the check that xtrace supports it, and the differences between its releases."""

from __future__ import annotations

from collections.abc import Sequence

try:
    import jaxlib.version
except ModuleNotFoundError as missing:
    raise ImportError("xtrace needs jaxlib: pip install 'jaxlib>=0.10.2,<0.13'", name="jaxlib") from missing

OLDEST = (0, 10, 2)
NEWEST_SERIES = (0, 12)


def require_supported(version: Sequence[int]) -> None:
    """Raise ImportError unless `version` is between `OLDEST` and the last release of `NEWEST_SERIES`."""
    if tuple(version) >= OLDEST and tuple(version[: len(NEWEST_SERIES)]) <= NEWEST_SERIES:
        return
    installed = ".".join(map(str, version))
    raise ImportError(
        f"xtrace runs on jaxlib 0.10.2 to 0.12.x, and jaxlib {installed} is installed: "
        "pip install 'jaxlib>=0.10.2,<0.13'",
        name="jaxlib",
    )


JAXLIB_VERSION: tuple[int, ...] = tuple(jaxlib.version.__version_info__)
JAXLIB_VERSION_TEXT = ".".join(map(str, JAXLIB_VERSION))
require_supported(JAXLIB_VERSION)

# `_jax.array_result_handler` lost its fourth argument, `_skip_checks`.
RESULT_HANDLER_SKIPS_CHECKS = JAXLIB_VERSION < (0, 11, 2)

# XLA's CPU library for fused reductions, YNNPACK, fails for arrays of more than six axes: a sum of products of float32
# or bfloat16 aborts the process or gives wrong values (jax-ml/jax#40412, #39257).
HAS_UNSAFE_YNN_FUSIONS = JAXLIB_VERSION < (0, 11, 1)

# LLVM's vectorizer (vputils::onlyFirstLaneUsed) takes time that grows exponentially with the depth of the operations
# in a loop that fits into one vector register. jax writes its cipher as a loop, so it meets this in other programs.
VECTORIZES_IN_EXPONENTIAL_TIME = JAXLIB_VERSION >= (0, 11, 0)

# The CPU compiler ends the process for an iota whose number of elements is a multiple of 2**36.
DIVIDES_BY_ZERO_FOR_LONG_IOTA = JAXLIB_VERSION >= (0, 12, 0)
