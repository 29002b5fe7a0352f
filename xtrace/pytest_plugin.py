"""A plugin of pytest: ``pytest -p xtrace.pytest_plugin`` makes ``import jax`` import xtrace."""

import xtrace


def pytest_addoption(parser: object) -> None:
    """Call `xtrace.as_jax`: pytest calls this when it registers the plugin, before it loads tests and other plugins."""
    xtrace.as_jax()
