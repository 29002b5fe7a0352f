"""Every test here compiles dozens of programs for each line it checks: all are slow ones."""

import pytest


def pytest_collection_modifyitems(items):
    for item in items:
        if "tests/rules/" in item.path.as_posix():
            item.add_marker(pytest.mark.slow)
