"""`pjit`, the name of `jit` in older programs on meshes."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.api.jit.jit import jit
from xtrace._src.core.settings.compiler_choices import Inline
from xtrace._src.xla.clients import Device


def pjit(
    fun: Callable[..., Any], in_shardings: object = None, out_shardings: object = None,
    static_argnums: int | Sequence[int] | None = None, static_argnames: str | Sequence[str] | None = None,
    donate_argnums: int | Sequence[int] | None = None, donate_argnames: str | Sequence[str] | None = None,
    keep_unused: bool = False, device: Device | None = None, backend: str | None = None,
    inline: bool | Inline = False,
    compiler_options: dict[str, Any] | None = None,
) -> Any:
    """Return ``jit(fun, ...)`` with the same options; here they may be positional.

    Args:
        fun, in_shardings, out_shardings, static_argnums, static_argnames, donate_argnums, donate_argnames: as in `jit`.
        keep_unused, device, backend, inline, compiler_options: as in `jit`.

    Returns:
        A function with the arguments and results of `fun`.

    Raises:
        TypeError: as `jit` does.
        ValueError: as `jit` does.

    Example:
        >>> xtrace.experimental.pjit.pjit(lambda x: x * 2, None, None)(3)
        Array(6, dtype=int32, weak_type=True)
    """
    return jit(
        fun, in_shardings=in_shardings, out_shardings=out_shardings, static_argnums=static_argnums,
        static_argnames=static_argnames, donate_argnums=donate_argnums, donate_argnames=donate_argnames,
        keep_unused=keep_unused, device=device, backend=backend, inline=inline, compiler_options=compiler_options,
    )
