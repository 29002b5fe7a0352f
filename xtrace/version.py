"""The version of this package (``jax.version``)."""

__all__: list[str] = []

__version__ = "0.1.0"
__version_info__ = (0, 1, 0)


def __dir__() -> list[str]:
    return []
