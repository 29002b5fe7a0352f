"""Replacements of Python's control flow on traced values, made from the user's syntax tree."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any, NamedTuple

from xtrace._src.core.diagnostics.sites import Site

_AUGMENTED = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}
# The methods of x.at[i] for `x[i] += y` and the others.
_AT_METHODS = {ast.Add: "add", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}
_LONGEST = 100


class Outcome(NamedTuple):
    """The effect of a branch: it assigns a value to `name`, or returns it; the value is an array or something else."""

    name: str
    value: str
    is_array: bool


class Rewriter:
    """A writer of code for a site, with the names of modules there."""

    def __init__(self, site: Site) -> None:
        assert site.expression is not None
        self.site, self.expression = site, site.expression
        self.jnp, self.lax = site.alias("xtrace.numpy"), site.alias("xtrace.lax")

    def text(self, node: ast.AST) -> str:
        """Return the source of a node; a placeholder for a long one."""
        text = self.expression.text(node)
        return text if len(text) <= _LONGEST else "..."

    def operand(self, node: Any) -> str:
        """Return the source of a node, in parentheses if a method call on it needs them."""
        text = self.text(node)
        bare = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant))
        return text if bare or text == "..." else f"({text})"

    def condition(self, node: ast.expr) -> str:
        """Return a condition with NumPy's functions in place of ``and``, ``or``, ``not`` and chained comparisons."""
        text = ast.unparse(ast.fix_missing_locations(_Logical(self.jnp).visit(_copy(node))))
        return self.text(node) if text == ast.unparse(node) else text

    def whole_condition(self) -> tuple[Any, Sequence[Any]]:
        """Return the whole condition that contains the expression, and the nodes around it."""
        node, around = self.expression.node, list(self.expression.around)
        while around and (isinstance(around[0], ast.BoolOp) or is_not(around[0])):
            node = around.pop(0)
        return node, around

    def choices(self, test: str, statement: ast.If, around: Sequence[Any]) -> list[str]:
        """Return `statement` with ``where``, if its values are arrays, and with ``cond``.

        Returns nothing unless both branches assign the same names.
        """
        first = self.outcome(statement.body)
        after = list(statement.orelse) or _statements_after(statement, around)
        second = self.outcome(after if statement.orelse else after[:1])
        if first is None:
            return []
        if first.name != "return" and not statement.orelse:
            second = first._replace(value=first.name)
        if second is None or first.name != second.name:
            return []
        begin = "return " if first.name == "return" else f"{first.name} = "
        corrections = [f"{begin}{self.lax}.cond({test}, lambda: {first.value}, lambda: {second.value})"]
        if first.is_array and second.is_array:
            return [
                begin + self.where(test, first.value, second.value), f"{corrections[0]}, which computes one side only"
            ]
        return corrections

    def outcome(self, statements: Sequence[Any]) -> Outcome | None:
        """Return the assignment, if statements consist of one, otherwise None."""
        if len(statements) != 1:
            return None
        (statement,) = statements
        if isinstance(statement, ast.If) and statement.orelse:
            first, second = self.outcome(statement.body), self.outcome(statement.orelse)
            if first is None or second is None or first.name != second.name or not (first.is_array and second.is_array):
                return None
            return first._replace(value=self.where(self.condition(statement.test), first.value, second.value))
        return _outcome(statement)

    def where(self, test: str, first: str, second: str) -> str:
        """Return a call of ``where``."""
        return f"{self.jnp}.where({test}, {first}, {second})"

    def while_loop(self, test: str, statement: ast.While) -> str:
        """Return a loop as a call of ``while_loop``."""
        names = self.carried_names(statement)
        step = self.outcome(statement.body)
        if len(names) == 1:
            (name,) = names
            body = f"lambda {name}: {step.value}" if step is not None and step.name == name else "body"
            return f"{name} = {self.lax}.while_loop(lambda {name}: {test}, {body}, {name})"
        state = ", ".join(names) or "state"
        return (
            f"{state} = {self.lax}.while_loop(condition, body, {_parenthesize(state)}), where condition and body "
            f"take that tuple, condition returns {test}, and body the new {state}"
        )

    def fori_loop(self, call: ast.Call, statement: ast.For) -> str:
        """Return a loop over ``range(...)`` as a call of ``fori_loop``."""
        arguments = [self.text(x) for x in call.args]
        low, high = ("0", arguments[0]) if len(arguments) == 1 else (arguments[0], arguments[1])
        index = self.text(statement.target)
        names = [n for n in self.carried_names(statement) if n != index]
        step = self.outcome(statement.body)
        if len(names) == 1 and step is not None and step.name == names[0] and len(arguments) < 3:
            (name,) = names
            return f"{name} = {self.lax}.fori_loop({low}, {high}, lambda {index}, {name}: {step.value}, {name})"
        state = ", ".join(names) or "state"
        text = f"{state} = {self.lax}.fori_loop({low}, {high}, body, {_parenthesize(state)})"
        return f"{text}, where body({index}, {_parenthesize(state)}) returns the new {state}"

    def carried_names(self, loop: Any) -> list[str]:
        """Return the state of a loop: the names that its body assigns, and that the body or later code reads."""
        functions = [n for n in self.expression.around if isinstance(n, ast.FunctionDef)]
        after = [n for f in functions[:1] for n in ast.walk(f) if getattr(n, "lineno", 0) > loop.end_lineno]
        needed = _read(after)
        stored: list[str] = []
        for statement in loop.body:
            nodes = list(ast.walk(statement))
            # A name that is read before its assignment has its value from the last step.
            needed |= {name for name in _read(nodes) if name not in stored}
            written = [n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)]
            stored += [name for name in written if name not in stored]
        return [name for name in stored if name in needed] or stored

    def item_assignment(self) -> str | None:
        """Return ``x = x.at[i].set(y)`` for the statement around the expression, None if it is no such assignment."""
        target, around = self.expression.node, self.expression.around
        if not isinstance(target, ast.Subscript) or not around:
            return None
        place = f"{self.text(target.value)}.at[{self.text(target.slice)}]"
        array, statement = self.text(target.value), around[0]
        if isinstance(statement, ast.AugAssign):
            value, kind = self.text(statement.value), type(statement.op)
            if kind is ast.Sub:
                return f"{array} = {place}.add(-{self.operand(statement.value)})"
            if kind in _AT_METHODS:
                return f"{array} = {place}.{_AT_METHODS[kind]}({value})"
            sign = _AUGMENTED[kind]
            return f"{array} = {place}.set({self.text(target)} {sign} {self.operand(statement.value)})"
        if isinstance(statement, ast.Assign):
            return f"{array} = {place}.set({self.text(statement.value)})"
        return f"{array} = {place}.set(...)"

    def with_keyword(self, keyword: str) -> str | None:
        """Return the expression, a call, with one more keyword argument."""
        call = self.expression.node
        if not isinstance(call, ast.Call):
            return None
        text = self.text(call)
        return f"{text[:-1]}, {keyword})" if text.endswith(")") and (call.args or call.keywords) else None


def is_not(node: ast.AST) -> bool:
    """Whether the node is ``not x``."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


class _Logical(ast.NodeTransformer):
    """A transformer that replaces Python's logical operators by operations on arrays."""

    def __init__(self, numpy: str) -> None:
        self.numpy = numpy

    def _call(self, name: str, *operands: Any) -> Any:
        return ast.Call(ast.Attribute(ast.Name(self.numpy, ast.Load()), name, ast.Load()), list(operands), [])

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return self._fold(name, [self.visit(v) for v in node.values])

    def _fold(self, name: str, parts: Sequence[Any]) -> Any:
        folded = parts[0]
        for part in parts[1:]:
            folded = self._call(name, folded, part)
        return folded

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self._call("logical_not", node.operand) if is_not(node) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            (items,) = node.comparators
            membership = self._call("isin", node.left, self._call("array", items))
            return membership if isinstance(node.ops[0], ast.In) else self._call("logical_not", membership)
        sides = [node.left, *node.comparators]
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        return self._fold("logical_and", pairs)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node


def _copy(node: ast.AST) -> Any:
    return ast.parse(ast.unparse(node), mode="eval").body


def _outcome(statement: ast.stmt) -> Outcome | None:
    if isinstance(statement, ast.Return) and statement.value is not None:
        name, value = "return", statement.value
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        name, value = ast.unparse(statement.targets[0]), statement.value
        stored = [n for n in ast.walk(statement.targets[0]) if hasattr(n, "ctx")]
        if not all(isinstance(n, (ast.Name, ast.Tuple)) for n in stored):
            return None
        name = name.removeprefix("(").removesuffix(")") if isinstance(statement.targets[0], ast.Tuple) else name
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name = statement.target.id
        value = ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value)
    else:
        return None
    others = (ast.Tuple, ast.List, ast.Dict, ast.Lambda, ast.JoinedStr)
    number = not isinstance(value, ast.Constant) or isinstance(value.value, (int, float, complex))
    text = ast.unparse(value)
    if len(text) > _LONGEST or not number:
        return None
    return Outcome(name, text, not isinstance(value, others))


def _statements_after(statement: ast.stmt, around: Sequence[Any]) -> list[Any]:
    """Return the statements after a statement in its block."""
    for block in ("body", "orelse", "finalbody"):
        statements = getattr(around[0], block, None) if around else None
        if isinstance(statements, list) and statement in statements:
            return statements[statements.index(statement) + 1 :]
    return []


def _read(nodes: Sequence[Any]) -> set[str]:
    """Return the names that are read, including ``x`` in ``x += 1``."""
    read = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return read | {n.target.id for n in nodes if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name)}


def _parenthesize(text: str) -> str:
    return f"({text})" if ", " in text else text
