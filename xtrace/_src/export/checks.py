"""Checks that exported programs run elsewhere and later."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.export.disabled_checks import DisabledSafetyCheck

# The supported versions of the rules for a program's arguments; files are written with the newest. The arguments are
# the platform's number, if there are several platforms, and the leaves that the program reads.
minimum_supported_calling_convention_version = 9
maximum_supported_calling_convention_version = 10

_LAPACK = """
    cgees cgeev cgehrd cgeqrf cgesdd cgetrf cgtsv cheevd chetrd cpotrf ctrsm cungqr
    dgees dgeev dgehrd dgeqrf dgesdd dgetrf dgtsv dorgqr dpotrf dsyevd dsytrd dtrsm
    sgees sgeev sgehrd sgeqrf sgesdd sgetrf sgtsv sorgqr spotrf ssyevd ssytrd strsm
    zgees zgeev zgehrd zgeqrf zgesdd zgetrf zgtsv zheevd zhetrd zpotrf ztrsm zungqr
"""
_SOLVER_ROUTINES = "geqrf gesvd gesvdj getrf orgqr potrf syevd sytrd"
# The stable targets: their calls have one meaning in all releases that read the file. They are those of jax.export.
GUARANTEED_TARGETS = frozenset([
    *[f"lapack_{name}_ffi" for name in _LAPACK.split()],
    *[f"{library}_{name}_ffi" for library in ("cusolver", "hipsolver") for name in _SOLVER_ROUTINES.split()],
    "AllocateBuffer", "ApproxTopK", "Eigh", "LuDecomposition", "ProductOfElementaryHouseholderReflectors", "Qr",
    "SPMDFullToShardShape", "SPMDShardToFullShape", "Sharding", "annotate_device_placement",
    "cu_lu_pivots_to_permutation", "cu_threefry2x32_ffi", "cusparse_gtsv2_ffi", "hip_lu_pivots_to_permutation",
    "hip_threefry2x32_ffi", "shape_assertion", "stablehlo.dynamic_approx_top_k", "stablehlo.dynamic_reduce_window",
    "stablehlo.dynamic_rng_bit_generator", "stablehlo.dynamic_top_k", "tpu_custom_call",
])


def check_custom_calls(name: str, calls: Mapping[str, str], disabled: Sequence[DisabledSafetyCheck]) -> None:
    """Raise ValueError if a program calls targets without a guarantee or a disabled check.

    calls: for each target a call, as text.
    """
    allowed = GUARANTEED_TARGETS | {check.is_custom_call() for check in disabled}
    refused = sorted([target for target in calls if target not in allowed])
    if refused:
        checks = ", ".join([f"export.DisabledSafetyCheck.custom_call({abbreviate(target)})" for target in refused])
        raise ValueError(
            "Cannot serialize code with custom calls whose targets have no compatibility guarantees: "
            f"{name} calls {', '.join(refused)}, which another process or release may not have. Where they will be "
            f"there, write export(f, disabled_checks=[{checks}]). The first call is\n  {calls[refused[0]]}"
        )


def check_signature(exported: Any, arguments: Sequence[str], results: Sequence[str]) -> None:
    """Raise ValueError unless the types of the program of an `Exported` agree with its other fields."""
    kept = [exported.in_avals[i].mlir_type for i in exported.module_kept_var_idx]
    index = [PLATFORM_INDEX.mlir_type] if has_platform_index(exported) else []
    wanted = [*index, *kept], [aval.mlir_type for aval in exported.out_avals]
    for word, expected, actual in zip(("takes", "returns"), wanted, (list(arguments), list(results)), strict=True):
        if expected != actual:
            raise ValueError(f"its program {word} ({', '.join(actual)}) instead of ({', '.join(expected)})")


# The type of the platform's number.
PLATFORM_INDEX = ShapedArray((), dtypes.int32)


def has_platform_index(exported: Any) -> bool:
    """Return whether the program's first argument is the number of its platform."""
    return len(exported.platforms) > 1
