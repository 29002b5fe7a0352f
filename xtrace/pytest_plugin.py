"""A plugin of pytest that lets ``import jax`` mean xtrace in its processes: ``pytest -p xtrace.pytest_plugin``."""

import xtrace


def pytest_addoption(parser: object) -> None:
    """Call `xtrace.as_jax`: pytest calls this when it registers the plugin, before it loads tests and other plugins."""
    xtrace.as_jax()
