"""The range of jaxlib releases, and the differences between them that the constants state."""

import re

import jaxlib
import pytest
from jaxlib import _jax

from xtrace._src.xla import versions


def test_version_is_that_of_jaxlib():
    assert jaxlib.__version__ == versions.JAXLIB_VERSION_TEXT


@pytest.mark.parametrize("version", [(0, 10, 2), (0, 11, 0), (0, 12, 0, 1), (0, 12, 99)])
def test_supported(version):
    versions.require_supported(version)


@pytest.mark.parametrize("version", [(0, 4, 38), (0, 10, 1), (0, 13, 0), (1, 0)])
def test_unsupported_names_the_range_the_release_and_the_command(version):
    text = ".".join(map(str, version))
    with pytest.raises(ImportError, match=re.escape(f"jaxlib {text} is installed")) as caught:
        versions.require_supported(version)
    assert "xtrace runs on jaxlib 0.10.2 to 0.12.x" in str(caught.value)
    assert "pip install 'jaxlib>=0.10.2,<0.13'" in str(caught.value)


def test_constants_agree_with_this_jaxlib():
    assert ("_skip_checks" in _jax.array_result_handler.__doc__) is versions.RESULT_HANDLER_SKIPS_CHECKS
