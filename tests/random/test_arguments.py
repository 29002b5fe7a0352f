"""Arguments of random's functions that are of a wrong kind."""

import pytest

from xtrace import random


@pytest.mark.parametrize("d", ["x", None, 2.5])
def test_the_dimensions_of_a_ball_are_an_integer(d):
    with pytest.raises(TypeError, match=r"ball: d must be an integer, got"):
        random.ball(random.key(0), d)
