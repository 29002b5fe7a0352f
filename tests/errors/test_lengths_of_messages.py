"""Messages are short and are made, also of arguments that are long or do not show themselves."""

import warnings

import pytest

import xtrace
from tests.differential.test_draws import COSTLY, ROWS, whole
from tests.support.draws import converted_operands, drawn_calls
from tests.support.operands import ours
from tests.support.sampling import number_of_draws

_NAMES = sorted(ROWS | COSTLY)
# The part of the functions that an ordinary run takes.
_PARTS = 40
_LONGEST = 2000


class Unshown:
    """An object whose repr fails."""

    def __repr__(self):
        raise ReprError("of Unshown")


class ReprError(Exception):
    """Nothing but the repr of `Unshown` raises it."""


VALUES = {
    "list": ["a"] * 10**4, "dict": dict.fromkeys(range(10**3)), "text": "t" * 10**5,
    "unshown": Unshown(), "of unshown": [Unshown()],
}


def calls(name, value):
    """The first drawn call with the value in the place of each of its arguments."""
    (call,) = drawn_calls(name, (ROWS | COSTLY)[name], 0, 1)
    for i in range(len(call.arguments)):
        changed = (*call.arguments[:i], value, *call.arguments[i + 1 :])
        yield call._replace(arguments=changed, mode="value")
    for key in call.keywords:
        yield call._replace(keywords={**call.keywords, key: value}, mode="value")


@pytest.mark.parametrize("kind", VALUES)
def test_messages_are_short(kind, pytestconfig):
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    names = _NAMES if whole(pytestconfig) else _NAMES[number % _PARTS :: _PARTS]
    wrong = []
    for name in names:
        for call in calls(name, VALUES[kind]):
            operands = converted_operands(call, ours, False)
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    xtrace.eval_shape(lambda call=call, operands=operands: call.plain(xtrace, operands))
            except ReprError:
                wrong.append(f"{call.function}: the repr of an argument was taken")
            except Exception as error:
                if len(str(error)) > _LONGEST:
                    wrong.append(f"{call.function}: {len(str(error))} characters: {str(error)[:200]}")
    assert wrong == [], "\n".join(wrong)
