"""What to write in place of Python's control flow on traced values, from the user's syntax tree and in its words."""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

from xtrace.core.sites import Site

_AUGMENTED = {
    ast.Add: "+", ast.Sub: "-", ast.Mult: "*", ast.Div: "/", ast.FloorDiv: "//", ast.Mod: "%", ast.Pow: "**",
    ast.MatMult: "@", ast.BitAnd: "&", ast.BitOr: "|", ast.BitXor: "^", ast.LShift: "<<", ast.RShift: ">>",
}  # fmt: skip
# The methods of x.at[i] for `x[i] += y` and the others.
_AT_METHODS = {ast.Add: "add", ast.Mult: "multiply", ast.Div: "divide", ast.Pow: "power"}
_LONGEST = 100


class Rewriter:
    """Writes code like that at a site, with the names that modules have there."""

    def __init__(self, site: Site) -> None:
        assert site.expression is not None
        self.site, self.expression = site, site.expression
        self.jnp, self.lax = site.alias("xtrace.numpy"), site.alias("xtrace.lax")

    def text(self, node: Any) -> str:
        """Return the source of a node; a placeholder for a long one."""
        text = self.expression.text(node)
        return text if len(text) <= _LONGEST else "..."

    def operand(self, node: Any) -> str:
        """Return the source of a node with parentheses where a method call behind it needs them."""
        text = self.text(node)
        bare = isinstance(node, (ast.Name, ast.Attribute, ast.Subscript, ast.Call, ast.Constant))
        return text if bare or text == "..." else f"({text})"

    def condition(self, node: Any) -> str:
        """Return a condition with NumPy's functions in place of ``and``, ``or``, ``not`` and chained comparisons."""
        text = ast.unparse(ast.fix_missing_locations(_Logical(self.jnp).visit(_copy(node))))
        return self.text(node) if text == ast.unparse(node) else text

    def whole_condition(self) -> tuple[Any, Sequence[Any]]:
        """Return the condition that the expression is part of through ``and``, ``or``, ``not``, and what is around."""
        node, around = self.expression.node, list(self.expression.around)
        while around and (isinstance(around[0], ast.BoolOp) or is_not(around[0])):
            node = around.pop(0)
        return node, around

    def choice(self, test: str, statement: ast.If, around: Sequence[Any]) -> str | None:
        """Return `statement` as a choice with ``where``, None unless both sides give one value to the same name."""
        first = _outcome(statement.body)
        after = list(statement.orelse) or _following(statement, around)
        second = _outcome(after[:1] if not statement.orelse else after)
        if first is None:
            return None
        name, value = first
        if name == "return":
            return f"return {self.where(test, value, second[1])}" if second and second[0] == "return" else None
        if statement.orelse:
            return f"{name} = {self.where(test, value, second[1])}" if second and second[0] == name else None
        return f"{name} = {self.where(test, value, name)}"

    def where(self, test: str, first: str, second: str) -> str:
        """Return a call of ``where``."""
        return f"{self.jnp}.where({test}, {first}, {second})"

    def while_loop(self, test: str, statement: ast.While) -> str:
        """Return how a loop is written with ``while_loop``."""
        names = _carried(statement.body)
        state = _tuple(names) if names else "state"
        if len(names) == 1:
            (name,) = names
            step = _outcome(statement.body)
            body = f"lambda {name}: {step[1]}" if step is not None and step[0] == name else "body"
            return f"{name} = {self.lax}.while_loop(lambda {name}: {test}, {body}, {name})"
        return (
            f"{state} = {self.lax}.while_loop(condition, body, {_in_parentheses(state)}), where condition and body "
            f"take that tuple, condition returns {test}, and body the new {state}"
        )

    def fori_loop(self, call: ast.Call, statement: ast.For) -> str:
        """Return how a loop over ``range(...)`` is written with ``fori_loop``."""
        arguments = [self.text(x) for x in call.args]
        low, high = ("0", arguments[0]) if len(arguments) == 1 else (arguments[0], arguments[1])
        index = self.text(statement.target)
        names = [n for n in _carried(statement.body) if n != index]
        state = _tuple(names) if names else "state"
        step = _outcome(statement.body)
        if len(names) == 1 and step is not None and step[0] == names[0] and len(arguments) < 3:
            body = f"lambda {index}, {state}: {step[1]}"
            return f"{state} = {self.lax}.fori_loop({low}, {high}, {body}, {state})"
        text = f"{state} = {self.lax}.fori_loop({low}, {high}, body, {_in_parentheses(state)})"
        return f"{text}, where body({index}, {_in_parentheses(state)}) returns the new {state}"

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
        """Return the call that is the expression with one more keyword argument."""
        call = self.expression.node
        if not isinstance(call, ast.Call):
            return None
        text = self.text(call)
        return f"{text[:-1]}, {keyword})" if text.endswith(")") and (call.args or call.keywords) else None


def is_not(node: Any) -> bool:
    """Whether the node is ``not x``."""
    return isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not)


class _Logical(ast.NodeTransformer):
    """Replaces what Python decides by operations on arrays."""

    def __init__(self, numpy: str) -> None:
        self.numpy = numpy

    def _call(self, name: str, *operands: Any) -> Any:
        return ast.Call(ast.Attribute(ast.Name(self.numpy, ast.Load()), name, ast.Load()), list(operands), [])

    def visit_BoolOp(self, node: ast.BoolOp) -> Any:
        name = "logical_and" if isinstance(node.op, ast.And) else "logical_or"
        return self._folded(name, [self.visit(v) for v in node.values])

    def _folded(self, name: str, parts: Sequence[Any]) -> Any:
        found = parts[0]
        for part in parts[1:]:
            found = self._call(name, found, part)
        return found

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        self.generic_visit(node)
        return self._call("logical_not", node.operand) if is_not(node) else node

    def visit_Compare(self, node: ast.Compare) -> Any:
        self.generic_visit(node)
        if len(node.ops) == 1 and isinstance(node.ops[0], (ast.In, ast.NotIn)):
            (items,) = node.comparators
            found = self._call("isin", node.left, self._call("array", items))
            return found if isinstance(node.ops[0], ast.In) else self._call("logical_not", found)
        sides = [node.left, *node.comparators]
        pairs = [ast.Compare(a, [op], [b]) for a, op, b in zip(sides, node.ops, sides[1:], strict=False)]
        return self._folded("logical_and", pairs)

    def visit_Lambda(self, node: ast.Lambda) -> Any:
        return node


def _copy(node: Any) -> Any:
    return ast.parse(ast.unparse(node), mode="eval").body


def _outcome(statements: Sequence[Any]) -> tuple[str, str] | None:
    """Return the name that statements give a value, ``return`` for a result, and the value; None if they do more."""
    if len(statements) != 1:
        return None
    (statement,) = statements
    if isinstance(statement, ast.Return) and statement.value is not None:
        name, value = "return", statement.value
    elif isinstance(statement, ast.Assign) and len(statement.targets) == 1:
        name, value = ast.unparse(statement.targets[0]), statement.value
        if not isinstance(statement.targets[0], ast.Name):
            return None
    elif isinstance(statement, ast.AugAssign) and isinstance(statement.target, ast.Name):
        name = statement.target.id
        value = ast.BinOp(ast.Name(name, ast.Load()), statement.op, statement.value)
    else:
        return None
    if isinstance(value, (ast.Tuple, ast.List, ast.Dict, ast.Lambda, ast.JoinedStr)) or (
        isinstance(value, ast.Constant) and not isinstance(value.value, (int, float, complex))
    ):
        return None
    text = ast.unparse(value)
    return (name, text) if len(text) <= _LONGEST else None


def _following(statement: Any, around: Sequence[Any]) -> list[Any]:
    """Return the statements behind one in the block that holds it."""
    for block in ("body", "orelse", "finalbody"):
        statements = getattr(around[0], block, None) if around else None
        if isinstance(statements, list) and statement in statements:
            return statements[statements.index(statement) + 1 :]
    return []


def _carried(statements: Sequence[Any]) -> list[str]:
    """Return the names that a loop's body gives values and that it, or what comes after it, needs: its state."""
    stored: dict[str, bool] = {}
    read_first: set[str] = set()
    for statement in statements:
        nodes = list(ast.walk(statement))
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load) and node.id not in stored:
                read_first.add(node.id)
        for node in nodes:
            if isinstance(node, ast.AugAssign) and isinstance(node.target, ast.Name):
                read_first.add(node.target.id)
        for node in nodes:
            if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store):
                stored.setdefault(node.id, True)
    carried = [name for name in stored if name in read_first]
    return carried or list(stored)


def _tuple(names: Sequence[str]) -> str:
    return ", ".join(names)


def _in_parentheses(text: str) -> str:
    return f"({text})" if ", " in text else text
