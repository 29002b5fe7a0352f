"""Messages as users read them: they name the public function that was called, and their lines are cut."""

from __future__ import annotations

import re
import sys
from types import CodeType, FrameType, TracebackType

from xtrace.core.source import is_internal

# How messages of operations, and Python's about arguments, begin; the name may be a private one. The patterns are
# compiled by the first error, not by `import xtrace`.
_HEAD = r"(?:lax\.)?(_?[a-z][\w.]*(?:<locals>\.\w+)*)(?=: | requires ndarray| does not accept dtype|\(\) )"
_PRIVATE = r"<locals>|(?:^|\.)_(?!_)|__call__"
# The inner function numbers later arguments otherwise than the public one: then the message keeps its name, too.
_LATER = r"(?:argument|position) [1-9]"
_MODULES = ("xtrace.numpy", "xtrace.nn", "xtrace.scipy", "xtrace.random", "xtrace.image", "xtrace.api.operators")

# The beginning says what happened, the end what to write.
_LONGEST, _BEGINNING, _END = 1000, 700, 250


def name_public_function(error: BaseException, entry: TracebackType | None) -> None:
    """Write the name of the called public function at the start of the message of `error`.

    entry: its traceback; the outermost public function there is the called one. Errors that a function of the user's
    raises, and messages that do not begin with the name of a function, stay as they are.
    """
    if len(error.args) != 1 or not isinstance(error.args[0], str):
        return
    message = error.args[0]
    found = re.match(_HEAD, message)
    if found is None:
        return
    public = ""
    while entry is not None:
        code = entry.tb_frame.f_code
        if not is_internal(code.co_filename):
            if public:
                return
        elif not public:
            public = _public_name(entry.tb_frame, code)
        entry = entry.tb_next
    head = found[1]
    last = public.rpartition(".")[2]
    if not public or head == public or head.rpartition(".")[2] == last or f".{last}." in f".{head}.":
        return
    rest = message[found.end() :]
    if re.search(_LATER, rest) and not re.search(_PRIVATE, head):
        error.args = (f"{public}: {message}",)
    else:
        error.args = (public + rest,)


def cut_long_lines(error: BaseException, entry: TracebackType | None) -> None:
    """Cut long lines of the message of an error that xtrace raised; NumPy's messages, for one, hold whole values."""
    if len(error.args) != 1 or not isinstance(error.args[0], str) or len(error.args[0]) <= _LONGEST:
        return
    while entry is not None and entry.tb_next is not None:
        entry = entry.tb_next
    if entry is None or not is_internal(entry.tb_frame.f_code.co_filename):
        return
    lines = error.args[0].split("\n")
    error.args = ("\n".join([x if len(x) <= _LONGEST else f"{x[:_BEGINNING]} ... {x[-_END:]}" for x in lines]),)


def _public_name(frame: FrameType, code: CodeType) -> str:
    """Return the name of the public function whose frame this is, as in ``norm.pdf`` with a distribution's; else ""."""
    name, module = code.co_name, str(frame.f_globals.get("__name__"))
    if name.startswith(("_", "<")) or not module.startswith(_MODULES):
        return ""
    if code.co_qualname == f"ufunc.{name}":
        return f"{frame.f_locals['self'].__name__}.{name}"
    if code.co_qualname != name:
        return ""
    if module == "xtrace.api.operators":
        # The module also makes the functions of `xtrace.numpy`; its own functions, of the same names, are private.
        own = getattr(sys.modules[module], name, None)
        return "" if getattr(own, "__code__", None) is code else name
    while module != "xtrace":
        if name in getattr(sys.modules.get(module), "__all__", ()):
            above, _, own = module.rpartition(".")
            return f"{own}.{name}" if above == "xtrace.scipy.stats" else name
        module = module.rpartition(".")[0]
    return ""
