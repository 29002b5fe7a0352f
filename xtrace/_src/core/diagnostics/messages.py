"""Final changes to messages: they name the called public function, and long lines are cut."""

from __future__ import annotations

import re
import sys
from types import CodeType, FrameType, TracebackType

from xtrace._late_imports import public_names
from xtrace._src.core.diagnostics.positions import calling_frames, is_internal

# The start of messages of operations, and of Python's messages about arguments; the name may be private.
_HEAD = r"(?:lax\.)?(_?[a-z][\w.]*(?:<locals>\.\w+)*)(?=: | requires ndarray| does not accept dtype|\(\) )"
_PRIVATE = r"<locals>|(?:^|\.)_(?!_)|__call__"
# Arguments of an inner function may have other numbers than the arguments of the called function.
_LATER = r"(?:argument|position) [1-9]"
_OPERATORS = "xtrace._src.api.operators.operators"
_ELEMENTWISE = "xtrace._src.api.operators.elementwise_functions"
_CALLS_OF_PRIMITIVES = ("Primitive.__call__", "operation", "reduction")
# The modules whose functions put their own names in front of messages of other functions.
_MODULES = ("xtrace.numpy", "xtrace.nn", "xtrace.scipy", "xtrace.random", "xtrace.image", _OPERATORS, _ELEMENTWISE)

# A message begins with the event and ends with the correction.
_LONGEST, _BEGINNING, _END = 1000, 700, 250


def name_public_function(error: BaseException, entry: TracebackType | None) -> None:
    """Put the name of the called public function into the message of `error`; `entry` is the traceback at its boundary.

    Errors from functions of users, and messages that begin differently, are not changed.
    """
    if len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    message = error.args[0]
    beginning = re.match(_HEAD, message)
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
    if re.search(_LATER, rest) and not re.search(_PRIVATE, head):
        error.args = (f"{public}: {message}",)
    else:
        error.args = (public + rest,)


def cut_long_lines(error: BaseException, entry: TracebackType | None) -> None:
    """Cut long lines, which contain a whole value, in a message of xtrace, or of NumPy called by xtrace."""
    if len(error.args) != 1 or not isinstance(error.args[0], str) or len(error.args[0]) <= _LONGEST:
        return
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None or not is_internal(entry.tb_frame.f_code.co_filename):
        return
    lines = error.args[0].split("\n")
    error.args = ("\n".join([x if len(x) <= _LONGEST else f"{x[:_BEGINNING]} ... {x[-_END:]}" for x in lines]),)


def called_function() -> str:
    """Return the name of the innermost public function being called, for the head of a message."""
    # The outermost function of xtrace, if no function of the call is public.
    otherwise = ""
    for frame in calling_frames():
        code = frame.f_code
        if is_internal(code.co_filename):
            name = _public_name(frame, code)
            if name:
                return name
            if not code.co_name.startswith(("_", "<")):
                otherwise = code.co_name
        elif otherwise:
            break
    return otherwise


def _public_name(frame: FrameType, code: CodeType) -> str:
    """Return the name of a frame's public function, or nothing."""
    name, module = code.co_qualname, str(frame.f_globals.get("__name__"))
    if name == f"ufunc.{code.co_name}" and "self" in frame.f_locals:
        return f"{frame.f_locals['self'].__name__}.{code.co_name}"
    if name in _CALLS_OF_PRIMITIVES:
        return str(frame.f_locals["self"].__name__)
    if module in (_OPERATORS, _ELEMENTWISE) and name == code.co_name and not name.startswith(("_", "<")):
        # These modules generate public functions, which have public names; of their own, most are helpers.
        own = getattr(sys.modules[_OPERATORS], name, None)
        if getattr(own, "__code__", None) is not code:
            return name
    root, _, rest = name.partition(".")
    public = public_names.get((module, root), "")
    return f"{public}.{rest}" if public and rest and not rest.startswith(("_", "<")) else public
