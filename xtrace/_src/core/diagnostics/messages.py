"""Messages as they reach the user: they name the public function that was called, and have no endless lines."""

from __future__ import annotations

import re
import sys
from types import CodeType, FrameType, TracebackType

from xtrace._src.core.source import is_internal

# How messages of operations, and Python's about arguments, begin; the name may be a private one.
_HEAD = re.compile(r"(?:lax\.)?(_?[a-z][\w.]*(?:<locals>\.\w+)*)(?=: | requires ndarray| does not accept dtype|\(\) )")
_PRIVATE = re.compile(r"<locals>|(?:^|\.)_(?!_)|__call__")
# An argument of an inner function, from the second on, has another number than in the function that the user called.
_LATER = re.compile(r"(?:argument|position) [1-9]")
_OPERATORS = "xtrace._src.api.operators"
_ELEMENTWISE = "xtrace._src.api.elementwise_functions"
_CALLS_OF_PRIMITIVES = ("Primitive.__call__", "operation", "reduction")
# The modules whose functions name themselves in the messages of functions that they call.
_MODULES = ("xtrace.numpy", "xtrace.nn", "xtrace.scipy", "xtrace.random", "xtrace.image", _OPERATORS, _ELEMENTWISE)

# The names of public functions and classes, by the module and the name that they are defined with.
public_names: dict[tuple[str, str], str] = {}

# A message begins with the event and ends with the correction.
_LONGEST, _BEGINNING, _END = 1000, 700, 250


def name_public_function(error: BaseException, entry: TracebackType | None) -> None:
    """Let the message of `error`, which leaves a public function by the frames of `entry`, name that function.

    Errors that come out of a function of the user's are left as they are, like those that begin otherwise.
    """
    if len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    message = error.args[0]
    beginning = _HEAD.match(message)
    if beginning is None:
        return
    public = ""
    while entry is not None:
        code = entry.tb_frame.f_code
        if not is_internal(code.co_filename):
            if public:
                return
        elif not public and str(entry.tb_frame.f_globals.get("__name__")).startswith(_MODULES):
            public = _public_name(entry.tb_frame, code)
        entry = entry.tb_next
    head = beginning[1]
    last = public.rpartition(".")[2]
    if not public or f".{last}." in f".{head}.":
        return
    rest = message[beginning.end() :]
    if _LATER.search(rest) and not _PRIVATE.search(head):
        error.args = (f"{public}: {message}",)
    else:
        error.args = (public + rest,)


def cut_long_lines(error: BaseException, entry: TracebackType | None) -> None:
    """Cut lines of the message of an error that xtrace raised, or NumPy for it: they hold a whole value."""
    if len(error.args) != 1 or not isinstance(error.args[0], str) or len(error.args[0]) <= _LONGEST:
        return
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None or not is_internal(entry.tb_frame.f_code.co_filename):
        return
    lines = error.args[0].split("\n")
    error.args = ("\n".join([x if len(x) <= _LONGEST else f"{x[:_BEGINNING]} ... {x[-_END:]}" for x in lines]),)


def called_function() -> str:
    """Return the name of the public function that is being called, the innermost one, for the head of a message."""
    frame: FrameType | None = sys._getframe(1)
    # The outermost function of xtrace's, for calls in which no function is public.
    otherwise = ""
    while frame is not None:
        code = frame.f_code
        if is_internal(code.co_filename):
            name = _public_name(frame, code)
            if name:
                return name
            if not code.co_name.startswith(("_", "<")):
                otherwise = code.co_name
        elif otherwise:
            break
        frame = frame.f_back
    return otherwise


def _public_name(frame: FrameType, code: CodeType) -> str:
    """Return the name of the public function whose frame this is, or nothing."""
    name, module = code.co_qualname, str(frame.f_globals.get("__name__"))
    if name == f"ufunc.{code.co_name}" and "self" in frame.f_locals:
        return f"{frame.f_locals['self'].__name__}.{code.co_name}"
    if name in _CALLS_OF_PRIMITIVES:
        return str(frame.f_locals["self"].__name__)
    if module in (_OPERATORS, _ELEMENTWISE) and name == code.co_name and not name.startswith(("_", "<")):
        # Functions that these modules make have the names of public functions; their own functions are helpers.
        own = getattr(sys.modules[_OPERATORS], name, None)
        return "" if getattr(own, "__code__", None) is code else name
    root, _, rest = name.partition(".")
    public = public_names.get((module, root), "")
    return f"{public}.{rest}" if public and rest and not rest.startswith(("_", "<")) else public
