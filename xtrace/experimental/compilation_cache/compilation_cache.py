"""The folder of compiled programs (``jax.experimental.compilation_cache.compilation_cache``)."""

import os

from xtrace._src.core.diagnostics.abbreviation import abbreviate as _abbreviate
from xtrace._src.core.public_modules import make_public as _make_public
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.runtime.compilation_cache import reset_cache

__all__ = ["reset_cache", "set_cache_dir"]


def set_cache_dir(path: str | os.PathLike[str]) -> None:
    """Set the folder of compiled programs, for this process and later ones: ``jax_compilation_cache_dir``.

    Args:
        path: the folder, created at the first compilation. Nobody else may have write access, since compiled
            programs run with your rights.

    Raises:
        TypeError: `path` is not a path.

    Example:
        >>> from xtrace.experimental.compilation_cache.compilation_cache import set_cache_dir
        >>> set_cache_dir("/tmp/programs")
        >>> xtrace.config.jax_compilation_cache_dir
        '/tmp/programs'
        >>> xtrace.config.update("jax_compilation_cache_dir", None)
    """
    if not isinstance(path, (str, os.PathLike)):
        raise TypeError(f"set_cache_dir: path must be the path of a folder, got {_abbreviate(path)}")
    cache_settings.directory.set(os.fspath(path))


_make_public(globals(), __all__)
