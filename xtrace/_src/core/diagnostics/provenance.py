"""The origin of a traced value: the traced function, the arguments that it depends on, the operations between."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

from xtrace._src.core.diagnostics.excerpts import Expression, expression_text
from xtrace._src.core.diagnostics.sites import Site
from xtrace._src.core.diagnostics.source import Position, calling_frames, describe, is_internal, resolve
from xtrace._src.core.dtypes import is_inexact
from xtrace._src.core.jaxprs.ir import Atom, DebugInfo, JaxprEqn, Literal, Var
from xtrace._src.core.jaxprs.printer import format_equations
from xtrace._src.core.pytrees import key_paths, pytree

if TYPE_CHECKING:
    from xtrace._src.core.trace import Trace, Tracer

_SHOWN_OPERATIONS = 5


class Provenance:
    """The origin of a traced value.

    debug_info: describes the traced function. arguments: the paths of the inputs that the value depends on.
    operations: the operations that computed it. names: the names of variables. outer: the origins of the values that
    the function closes over. note: a further sentence. steps: source statements, if no operations are recorded.
    """

    __slots__ = ("debug_info", "arguments", "countable", "operations", "names", "outer", "note", "steps")

    def __init__(
        self, debug_info: DebugInfo, arguments: Sequence[str], operations: Sequence[JaxprEqn],
        names: dict[Var, str] | None = None, outer: Sequence[Provenance] = (), note: str = "",
        steps: Sequence[str] = (),
    ) -> None:
        self.debug_info, self.arguments, self.operations = debug_info, arguments, operations
        self.names, self.outer, self.note, self.steps = names or {}, outer, note, steps
        # Inputs that could be static: scalars, except numbers used in computations.
        floats = len(operations) < 2
        self.countable = {
            path for v, path in self.names.items() if not v.aval.shape and (floats or not is_inexact(v.aval.dtype))
        }

    @classmethod
    def of(
        cls, variable: Atom, inputs: Sequence[Var], equations: Sequence[JaxprEqn], debug_info: DebugInfo,
        constants: Sequence[tuple[Var, Any]] = (),
    ) -> Provenance:
        """Return the origin of `variable`, found backwards through equations; `constants` are closure values."""
        needed: set[Atom] = {variable}
        operations = []
        for equation in reversed(equations):
            if any(v in needed for v in equation.outvars):
                operations.append(equation)
                needed.update(v for v in equation.invars if isinstance(v, Var))
        paths = debug_info.argument_paths() or [f"argument {i}" for i in range(len(inputs))]
        names = dict(zip(inputs, paths, strict=False))
        arguments = [path for v, path in names.items() if v in needed]
        outer = []
        for v, value in constants:
            inner = find_provenance(value) if v in needed and hasattr(value, "owner") else None
            if inner is not None:
                outer.append(inner)
                names.update(inner.names)
                path = inner.names.get(getattr(value, "variable", None))  # type: ignore[arg-type]
                if path is not None:
                    names[v] = path
        return cls(debug_info, arguments, operations[::-1], names, outer)

    def static_candidate(self) -> tuple[str, DebugInfo] | None:
        """Return the only parameter that the value depends on, and its function; None if it cannot be static."""
        if len(self.outer) == 1 and not self.arguments:
            return self.outer[0].static_candidate()
        if self.debug_info.transformation != "jit" or self.outer or len(self.arguments) != 1:
            return None
        (path,) = self.arguments
        return (path, self.debug_info) if path.isidentifier() and path in self.countable else None

    def is_constant(self) -> bool:
        """Whether the value depends on constants of the function only."""
        return not self.arguments and not self.outer and not self.note

    def __str__(self) -> str:
        return self.text(None)

    def text(self, site: Site | None) -> str:
        """Return a description, without the operations that the excerpt at `site` shows."""
        lines = [f"The error occurred while tracing the function {self.debug_info}. {self._reason()}".rstrip()]
        shown = self.all_operations()
        if self.is_constant():
            if shown:
                lines.append("This value became a tracer due to xtrace operations on these lines:")
        else:
            shown = [e for e in shown if site is None or not site.contains(e.source)]
            if shown:
                lines.append("It was computed by these operations:")
        if self.steps and not shown:
            lines.append("It was computed on these lines:")
        return "\n".join([*lines, *self._operations(shown), *self.steps])

    def all_operations(self) -> list[JaxprEqn]:
        """Return the operations of the enclosing functions, then the operations of this one."""
        return [e for p in self.outer for e in p.all_operations()] + list(self.operations)

    def _reason(self) -> str:
        reasons = []
        if self.arguments:
            reasons.append(_because(self.arguments))
        for p in self.outer:
            whose = f" of the enclosing function {p.debug_info}"
            reasons.append(_because(p.arguments, whose) if p.arguments else f"It depends on a value{whose}.")
        if not reasons and not self.operations and not self.note:
            reasons.append("It is a constant made while tracing, by xtrace.numpy; the values of numpy stay concrete.")
        return " ".join(dict.fromkeys([*reasons, self.note] if self.note else reasons))

    def _operations(self, equations: Sequence[JaxprEqn]) -> list[str]:
        grouped: list[tuple[str, Position | None, int]] = []
        for equation, text in zip(equations, format_equations(equations, self.names), strict=True):
            # To the user, a function of several operations is one step.
            if grouped and grouped[-1][1] is not None and grouped[-1][1] == equation.source:
                grouped[-1] = text, equation.source, grouped[-1][2] + 1
            else:
                grouped.append((text, equation.source, 1))
        left_out = len(grouped) - _SHOWN_OPERATIONS
        lines = [f"  ({left_out} earlier one{'s' if left_out > 1 else ''}, and then)"] if left_out > 0 else []
        for text, position, count in grouped[-_SHOWN_OPERATIONS:]:
            expression = expression_text(position)
            shown = f": {expression}" if expression is not None and len(expression) <= 120 else ""
            steps = f" (the last of {count})" if count > 1 else ""
            lines.append(f"  operation {_on_one_line(text)}{steps}\n    from line {describe(position)}{shown}")
        return lines


def _because(arguments: Sequence[str], whose: str = "") -> str:
    plural = "s" if len(arguments) > 1 else ""
    return (
        "This concrete value was not available in Python because it depends on the "
        f"value{plural} of the argument{plural} {_list_names(arguments)}{whose}."
    )


def _on_one_line(text: str) -> str:
    return text.rstrip() if "\n" not in text else " ".join(text.split())


def _list_names(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{', '.join(names[:-1])} and {names[-1]}"


def find_provenance(tracer: Tracer) -> Provenance | None:
    """Return the origin of `tracer`, None if its trace has no record."""
    method = getattr(tracer.owner, "find_provenance", None)
    return method(tracer) if method is not None and not isinstance(tracer, Literal) else None


def provenance_under(trace: Trace, transformation: str, values: Sequence[Any], note: str) -> Provenance:
    """Return the origin of a tracer of `trace`, which records nothing; `values` are the values inside the tracer.

    If none of them is recorded, the function comes from the running frames, and the steps from its source.
    """
    inner = [p for p in [find_provenance(value) for value in values if hasattr(value, "owner")] if p is not None]
    for provenance in inner[:1]:
        note = provenance.note if note in provenance.note else f"{note} {provenance.note}".rstrip()
    for provenance in inner:
        if provenance.names:
            provenance.note = note
            return provenance
    described = getattr(trace, "described", None)
    info = described() if described is not None else DebugInfo(transformation, "a function", None, None)
    frame = _function_under(trace)
    if frame is None:
        return Provenance(info, (), (), note=note)
    code = frame.f_code
    if described is None:
        info = DebugInfo(transformation, code.co_name, code.co_filename, code.co_firstlineno)
    parameters = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    traced = {n: paths for n in parameters if (paths := _find_leaves(trace, n, frame.f_locals.get(n)))}
    site = Site.here()
    if site.frame is not frame or site.expression is None:
        return Provenance(info, [path for paths in traced.values() for path in paths], (), note=note)
    used, steps = _source_slice(site.expression)
    names = {node.id for node in used if isinstance(node, ast.Name)}
    written = {ast.unparse(node) for node in used}
    arguments = [p for n, paths in traced.items() if n in names for p in [p for p in paths if p in written] or paths]
    return Provenance(info, arguments, (), note=note, steps=[_step(site, s) for s in steps[-_SHOWN_OPERATIONS:]])


def _function_under(trace: Trace) -> FrameType | None:
    """Return the frame of the outermost user's function that `trace` called."""
    outermost: FrameType | None = None
    for frame in calling_frames():
        if not is_internal(frame.f_code.co_filename):
            outermost = frame
        elif outermost is not None and frame.f_locals.get("trace") is trace:
            return outermost
    return None


def _find_leaves(trace: Trace, name: str, value: object) -> list[str]:
    """Return the users' expressions for the leaves of an argument that are tracers of `trace`."""
    try:
        leaves, _ = pytree.tree_flatten_with_path(value)
    except (TypeError, ValueError):
        return []
    return [name + key_paths.keystr(path) for path, leaf in leaves if _involves(trace, leaf)]


def _involves(trace: Trace, value: object) -> bool:
    """Whether a value is a tracer of `trace`, or a tracer around one."""
    owner = getattr(value, "owner", None)
    inside = (getattr(value, "primal", None), getattr(value, "value", None))
    return owner is not None and (owner is trace or any(_involves(trace, x) for x in inside))


def _source_slice(expression: Expression) -> tuple[list[ast.expr], list[Any]]:
    """Return the expressions on which one depends, and the assignments before it to their names, in order.

    It follows the order of lines, as if the function had no loops, which suffices for a message.
    """
    own = next((n for n in expression.around if isinstance(n, (ast.FunctionDef, ast.Lambda))), None)
    assignments = (ast.Assign, ast.AugAssign, ast.AnnAssign)
    before = [] if own is None else [n for n in ast.walk(own) if isinstance(n, assignments)]
    used = _find_loads(expression.node)
    steps: list[Any] = []
    for statement in sorted(before, key=lambda n: n.lineno, reverse=True):
        stored = {n.id for n in ast.walk(statement) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        needed = {n.id for n in used if isinstance(n, ast.Name)}
        if statement.lineno < expression.node.lineno and statement.value is not None and stored & needed:
            used += _find_loads(statement.value)
            steps.insert(0, statement)
    return used, steps


def _find_loads(node: ast.AST) -> list[ast.expr]:
    return [n for n in ast.walk(node) if isinstance(n, ast.expr) and not isinstance(getattr(n, "ctx", None), ast.Store)]


def _step(site: Site, statement: ast.stmt) -> str:
    assert site.expression is not None and site.position is not None
    place = resolve(site.position)._replace(line=statement.lineno)
    return f"  {site.expression.text(statement)}\n    from line {place}"
