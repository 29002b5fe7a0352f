"""Errors of compiled functions as values (``jax.experimental.checkify``)."""
# ruff: noqa: I001

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.checkify.transformation import (
        ErrorCategory as ErrorCategory, all_checks as all_checks, automatic_checks as automatic_checks, check as check,
        checkify as checkify, debug_check as debug_check, div_checks as div_checks, float_checks as float_checks,
        index_checks as index_checks, nan_checks as nan_checks, user_checks as user_checks,
    )
    from xtrace._src.checkify.errors import JaxRuntimeError as JaxRuntimeError
    from xtrace._src.checkify.checks import Error as Error, check_error as check_error, init_error as init_error
