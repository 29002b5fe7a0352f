"""Breakpoints in compiled programs: a command line that shows the variables of the traced Python code."""

from __future__ import annotations

import cmd
import contextlib
import itertools
import linecache
import operator
import pprint
import traceback
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapeDtypeStruct, aval_of
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.positions import calling_frames, is_internal
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.trace import Trace, Tracer, current_trace
from xtrace._src.ops.elementwise.stop_gradient import stop_gradient
from xtrace._src.ops.host.callbacks import debug_callback, pure_callback
from xtrace._src.xla import pytree_registry

_LINES_AROUND = 2
# The depth of the search for traced values in lists, tuples and dicts.
_MAX_DEPTH = 8


class _Frame(NamedTuple):
    """A Python frame at tracing time: its position and its variables, with slots in place of traced values."""

    file: str
    line: int
    function: str
    variables: dict[str, Any]
    module: dict[str, Any]

    def listing(self) -> str:
        """Return the source lines around the current line, with a mark at that line."""
        first = max(self.line - _LINES_AROUND - 1, 1)
        shown = [f"> {self.file}({self.line}) {self.function}"]
        for number in range(first, self.line + _LINES_AROUND + 1):
            text = linecache.getline(self.file, number).rstrip("\n")
            if text or number <= self.line:
                shown.append(f"{'->' if number == self.line else '  '} {text}")
        return "\n".join(shown)


def _capture_frames(filtered: bool, most: int | None) -> list[_Frame]:
    """Return up to `most` frames around the breakpoint, innermost first, without xtrace's own if `filtered`."""
    frames: list[_Frame] = []
    for frame in itertools.dropwhile(lambda frame: is_internal(frame.f_code.co_filename), calling_frames()):
        if most is not None and len(frames) >= most:
            break
        code = frame.f_code
        if not filtered or not is_internal(code.co_filename):
            # A module's local variables are its globals, which hold no traced values.
            variables = dict(frame.f_locals) if frame.f_locals is not frame.f_globals else {}
            frames.append(_Frame(code.co_filename, frame.f_lineno, code.co_name, variables, frame.f_globals))
    return frames


class _Unavailable:
    """A placeholder for a value of a trace that has ended or does not enclose the breakpoint."""

    def __init__(self, tracer: Tracer) -> None:
        self.text = f"<{tracer.aval.str_short()} of another trace>"

    def __repr__(self) -> str:
        return self.text


class _Slot:
    """A placeholder for a value that the program computes, by its index among these values."""

    def __init__(self, number: int) -> None:
        self.number = number


def _extract_values(frames: Sequence[_Frame]) -> tuple[list[_Frame], list[Any]]:
    """Return the frames with slots in place of traced values, and the values."""
    around: set[Trace] = set(current_trace.get().enclosing())
    slots: dict[int, _Slot] = {}
    values: list[Any] = []

    def find_slot(leaf: Tracer) -> Any:
        if leaf.owner.ended or leaf.owner not in around:
            return _Unavailable(leaf)
        if id(leaf) not in slots:
            slots[id(leaf)] = _Slot(len(values))
            values.append(leaf)
        return slots[id(leaf)]

    return _map_frames(find_slot, Tracer, frames), values


def _fill_slots(frames: Sequence[_Frame], values: Sequence[Any]) -> list[_Frame]:
    def get_slot_value(slot: _Slot) -> Any:
        return values[slot.number]

    return _map_frames(get_slot_value, _Slot, frames)


def _map_frames(function: Callable[[Any], Any], kind: type, frames: Sequence[_Frame]) -> list[_Frame]:
    """Return the frames with `function` applied to the leaves of type `kind` among their variables."""
    mapping = _LeafMapping(function, kind)
    return [
        f._replace(variables={name: mapping.apply(x, _MAX_DEPTH) for name, x in f.variables.items()}) for f in frames
    ]


class _LeafMapping:
    """A map of `function` over the leaves of type `kind` of variables.

    Variables need not be pytrees, and each failure of jaxlib's flatten permanently reduces the thread's recursion
    limit. So lists, tuples and dicts are traversed here, each once.
    """

    def __init__(self, function: Callable[[Any], Any], kind: type) -> None:
        self.function, self.kind = function, kind
        # For the id of a container: the container, kept alive so that the id stays unique, and its result.
        self.known: dict[int, tuple[Any, Any]] = {}

    def apply(self, value: Any, depth: int) -> Any:
        """Return `value` with its leaves mapped down to `depth`."""
        if isinstance(value, self.kind):
            return self.function(value)
        if type(value) not in (list, tuple, dict):
            return self._map_tree(value)
        if not depth:
            return value
        if id(value) not in self.known:
            self.known[id(value)] = value, value  # the result for a cycle that reaches it again
            before = list(value.values()) if type(value) is dict else list(value)
            after = [self.apply(x, depth - 1) for x in before]
            if any(map(operator.is_not, before, after)):
                made = dict(zip(value, after, strict=True)) if type(value) is dict else type(value)(after)
                self.known[id(value)] = value, made
        return self.known[id(value)][1]

    def _map_tree(self, value: Any) -> Any:
        """Return a registered pytree with its leaves mapped; another object unchanged."""
        with contextlib.suppress(Exception):
            if pytree_registry.flatten_one_level_with_keys(value) is not None:
                leaves, tree = pytree.tree_flatten(value)
                if any(isinstance(x, self.kind) for x in leaves):
                    mapped = [self.function(x) if isinstance(x, self.kind) else x for x in leaves]
                    return pytree.tree_unflatten(tree, mapped)
        return value


class _Debugger(cmd.Cmd):
    """The commands of Python's debugger, except the ones that step through lines."""

    prompt = "(xdb) "

    def __init__(self, frames: Sequence[_Frame], stdin: Any = None, stdout: Any = None) -> None:
        super().__init__(stdin=stdin, stdout=stdout)
        self.use_rawinput = stdin is None
        self.frames, self.at = frames, 0

    def say(self, text: str) -> None:
        """Write a line."""
        self.stdout.write(text + "\n")

    def emptyline(self) -> bool:
        """Ignore an empty line; cmd.Cmd would repeat the last command."""
        return False

    def _evaluate(self, expression: str, show: Callable[[Any], str]) -> None:
        frame = self.frames[self.at]
        try:
            self.say(show(eval(expression, frame.module, dict(frame.variables))))
        except Exception as error:
            self.say(f"*** {traceback.format_exception_only(error)[-1].strip()}")

    def default(self, line: str) -> None:
        """Evaluate a line that is no command."""
        if line == "EOF":
            raise EOFError("debug.breakpoint: there are no more commands to read; 'continue' resumes the program")
        self._evaluate(line, repr)

    def do_p(self, expression: str) -> None:
        """p EXPRESSION: print its value, computed with the variables of this frame."""
        self._evaluate(expression, repr)

    def do_pp(self, expression: str) -> None:
        """pp EXPRESSION: print its value over several lines."""
        self._evaluate(expression, pprint.pformat)

    def do_list(self, _: str) -> None:
        """list (l): show the source lines around the current line of this frame."""
        self.say(self.frames[self.at].listing())

    def _move(self, step: int, end: str) -> None:
        if 0 <= self.at + step < len(self.frames):
            self.at += step
            self.do_list("")
        else:
            self.say(f"At {end} frame.")

    def do_up(self, _: str) -> None:
        """up (u): go to the frame of the caller."""
        self._move(1, "topmost")

    def do_down(self, _: str) -> None:
        """down (d): go to the frame of the callee."""
        self._move(-1, "bottommost")

    def do_bt(self, _: str) -> None:
        """bt (w, where): show all frames, with a mark at this one."""
        self.say("Traceback:")
        for number in reversed(range(len(self.frames))):
            frame = self.frames[number]
            mark = "->" if number == self.at else "  "
            self.say(f'{mark}File "{frame.file}", line {frame.line}, in {frame.function}')
            self.say(f"    {linecache.getline(frame.file, frame.line).strip()}")

    def do_locals(self, _: str) -> None:
        """locals: show the variables of this frame."""
        for name, value in sorted(self.frames[self.at].variables.items()):
            self.say(f"{name} = {value!r}")

    def do_continue(self, _: str) -> bool:
        """continue (c, cont): resume the program."""
        return True

    def do_quit(self, _: str) -> None:
        """quit (q, exit): end the process."""
        raise SystemExit(0)

    do_l, do_u, do_d, do_w, do_where = do_list, do_up, do_down, do_bt, do_bt
    do_c = do_cont = do_continue
    do_q = do_exit = do_quit


def breakpoint(
    *, backend: str | None = None, filter_frames: bool = True, num_frames: int | None = None, ordered: bool = False,
    token: object = None, **kwargs: object,
) -> Any:
    """Stop the program each time it reaches this point, and read commands; ``help`` lists them.

    Commands show the variables of the calling function and its callers, with their values at that time. ``quit`` ends
    the process.

    Args:
        backend: ``"cli"`` or None, the only kind.
        filter_frames: whether to leave out xtrace's own functions.
        num_frames: the number of functions to show; None for all.
        ordered: whether to keep the order among ordered prints and breakpoints.
        token: an array or a tree of arrays to return unchanged, after the breakpoint.
        kwargs: ``stdin`` and ``stdout``, files to read commands from and to write to.

    Returns:
        `token`.

    Raises:
        TypeError: there is no such argument.
        ValueError: `backend` is another one.

    Example:
        >>> import io
        >>> xtrace.debug.breakpoint(stdin=io.StringIO("continue\\n"), stdout=io.StringIO())
        >>> xtrace.effects_barrier()
    """
    if backend not in (None, "cli"):
        raise ValueError(f"debug.breakpoint: the backend is 'cli', got {abbreviate(backend)}")
    unknown = set(kwargs) - {"stdin", "stdout"}
    if unknown:
        raise TypeError(
            f"debug.breakpoint takes no argument {abbreviate(sorted(unknown)[0])}; the keywords besides its own are "
            "stdin and stdout"
        )
    frames, values = _extract_values(_capture_frames(filter_frames, num_frames))

    def stop(*arrays: Array) -> None:
        debugger = _Debugger(_fill_slots(frames, arrays), **kwargs)
        debugger.cmdloop("Entering xdb; help lists the commands:")

    if token is None:
        debug_callback(stop, *values, ordered=ordered)
        return None

    def pass_on(token: object, *arrays: Array) -> Any:
        stop(*arrays)
        return token

    avals = pytree.tree_map(lambda x: ShapeDtypeStruct(aval_of(x).shape, aval_of(x).dtype), token)
    return pure_callback(pass_on, avals, pytree.tree_map(stop_gradient, token), *map(stop_gradient, values))
