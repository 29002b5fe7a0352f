"""Corrections for errors about traced values, derived from the user's expression that needs the value."""

from __future__ import annotations

import ast
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xtrace._src.core.diagnostics.provenance import Provenance
from xtrace._src.core.diagnostics.rewrites import Rewriter
from xtrace._src.core.diagnostics.sites import Site

if TYPE_CHECKING:
    from xtrace._src.core.trace import Tracer


class Case:
    """One error: its place, its tracer, and the tracer's origin."""

    def __init__(self, site: Site, tracer: Tracer | None, provenance: Provenance | None) -> None:
        self.site, self.tracer, self.provenance = site, tracer, provenance
        self.writer = Rewriter(site) if site.expression is not None else None
        self.jnp, self.lax = site.alias("xtrace.numpy"), site.alias("xtrace.lax")

    @property
    def node(self) -> Any:
        """The syntax tree of the expression, or None."""
        return self.site.expression.node if self.site.expression is not None else None

    @property
    def parent(self) -> Any:
        """The node around the expression."""
        around = self.site.expression.around if self.site.expression is not None else ()
        return around[0] if around else None

    def static(self) -> list[str]:
        """The correction that makes the value concrete, if it depends on no argument or on one that can be static."""
        if self.provenance is not None and self.provenance.is_constant():
            return ["compute it with numpy, whose values are known while tracing"]
        candidate = self.provenance.static_candidate() if self.provenance is not None else None
        if candidate is None:
            return []
        name, info = candidate
        function = info.function if info.function.isidentifier() else "..."
        text = f'{self.site.find_function_name("jit")}({function}, static_argnames=["{name}"])'
        return [f"make {name} static with {text}, if it takes few values: each one is compiled anew"]

    def callee(self) -> str:
        """The name of the function in a call, empty for other expressions."""
        return ast.unparse(self.node.func) if isinstance(self.node, ast.Call) else ""

    def find_module(self, node: Any) -> tuple[str, str]:
        """The module and the name in it of an expression such as ``np.linalg.norm``; empty if unknown."""
        parts: list[str] = []
        while isinstance(node, ast.Attribute):
            parts.insert(0, node.attr)
            node = node.value
        value = self.site.lookup(node.id) if isinstance(node, ast.Name) else None
        if value is None:
            return "", ""
        module = getattr(value, "__name__", "") if type(value) is type(np) else _find_home(value)
        if type(value) is not type(np):
            parts.insert(0, getattr(value, "__name__", node.id))
        return module, ".".join(parts)


def _find_home(function: object) -> str:
    if isinstance(function, np.ufunc):
        return "numpy"
    home = getattr(function, "__module__", None)
    return home if isinstance(home, str) else ""


def text(fixes: Sequence[str]) -> str:
    """Return the corrections as the last lines of a message, or nothing."""
    return "\n  or ".join([f"To fix it: {fixes[0]}", *fixes[1:]]) if fixes else ""


# Conditions


_TRUTH_FUNCTIONS = ("any", "all")
_CHOOSING = {"max": "maximum", "min": "minimum"}


def for_condition(case: Case) -> list[str]:
    """Return the corrections of a traced condition."""
    writer, node = case.writer, case.node
    if writer is None:
        return _any_condition(case)
    if case.callee() in (*_TRUTH_FUNCTIONS, *_CHOOSING, "bool", "sorted", "filter"):
        corrections = _condition_of_builtin(case, writer)
        if corrections:
            return corrections + case.static()
    whole, around = writer.whole_condition()
    test, parent = writer.condition(whole), around[0] if around else None
    if isinstance(parent, ast.If) and whole is parent.test:
        return _branch(case, writer, test, parent, around[1:]) + case.static()
    if isinstance(parent, ast.While) and whole is parent.test:
        return [f"{writer.while_loop(test, parent)}", *case.static()]
    if isinstance(parent, ast.IfExp) and whole is parent.test:
        first, second = writer.text(parent.body), writer.text(parent.orelse)
        cond = f"{case.lax}.cond({test}, lambda: {first}, lambda: {second})"
        return [writer.where(test, first, second), f"{cond}, which computes one side only", *case.static()]
    if isinstance(parent, ast.Assert) and whole is parent.test:
        check = case.site.alias("xtrace") + ".experimental.checkify.check"
        message = writer.text(parent.msg) if parent.msg is not None else '"..."'
        return [f"{check}({test}, {message}) inside a function given to checkify", *case.static()]
    if isinstance(parent, ast.comprehension) and whole in parent.ifs:
        return [f"keep every item, and {case.jnp}.where({test}, item, 0): how many are kept would depend on values"]
    if (isinstance(whole, ast.Compare) or whole is not node) and test != writer.text(whole):
        return [test, *case.static()]
    return _any_condition(case)


def for_several_truths(case: Case) -> list[str]:
    """Return the corrections of a traced condition of several elements: a choice for each element, or one for all."""
    chosen = [fix for fix in for_condition(case) if ".cond(" not in fix and "static" not in fix]
    return [*chosen, "x.any() or x.all(), to ask about all elements at once"]


def _any_condition(case: Case) -> list[str]:
    return [
        f"choose with {case.jnp}.where(condition, x, y) or {case.lax}.cond, loop with {case.lax}.while_loop",
        *case.static(),
    ]


def _condition_of_builtin(case: Case, writer: Rewriter) -> list[str]:
    call, name = case.node, case.callee()
    arguments = [writer.text(x) for x in call.args]
    if name in _CHOOSING and len(arguments) > 1 and not call.keywords:
        result = arguments[0]
        for other in arguments[1:]:
            result = f"{case.jnp}.{_CHOOSING[name]}({result}, {other})"
        return [result]
    if len(arguments) != 1:
        return []
    (argument,) = arguments
    array = argument if isinstance(call.args[0], ast.Name) else f"{case.jnp}.array({argument})"
    if isinstance(call.args[0], (ast.GeneratorExp, ast.ListComp)):
        items = argument if argument == "..." else f"[{argument[1:-1]}]"
        array = f"{case.jnp}.array({items})"
    if name in _CHOOSING or name in _TRUTH_FUNCTIONS:
        return [f"{case.jnp}.{name}({array})"]
    if name == "sorted":
        return [f"{case.jnp}.sort({array})"]
    if name == "bool":
        array = f"{writer.operand(call.args[0])}.astype(bool), which stays an array"
        return [array, f"choose with {case.jnp}.where({argument}, x, y) or {case.lax}.cond"]
    return []


def _branch(case: Case, writer: Rewriter, test: str, statement: ast.If, around: Sequence[Any]) -> list[str]:
    first = statement.body[0]
    if isinstance(first, ast.Raise):
        check = case.site.alias("xtrace") + ".experimental.checkify.check"
        error: Any = first.exc
        message = writer.text(error.args[0]) if isinstance(error, ast.Call) and error.args else '"..."'
        return [f"{check}({case.jnp}.logical_not({test}), {message}) inside a function given to checkify"]
    loop = next((x for x in around if isinstance(x, (ast.For, ast.While, ast.FunctionDef))), None)
    if isinstance(statement.body[-1], ast.Break) and isinstance(loop, (ast.For, ast.While)):
        return [f"write the loop with {case.lax}.while_loop, whose condition is {case.jnp}.logical_not({test})"]
    return writer.choices(test, statement, around) or [
        f"{case.lax}.cond({test}, if_true, if_false, *operands), where if_true and if_false are functions of the "
        "operands that return the same types"
    ]


# Numbers


_METHODS = {"int": "int", "float": "float", "complex": "complex"}
# Functions of `math` with another name in NumPy.
_MATH_NAMES = {"pow": "power", "fabs": "abs", "fsum": "sum", "dist": "linalg.norm"}
_NOT_IN_NUMPY = {"factorial": "factorial", "gamma": "gamma", "lgamma": "gammaln", "erf": "erf", "erfc": "erfc"}


def for_value(case: Case, asked_by: str) -> list[str]:
    """Return the corrections if `asked_by` needs the value of a tracer."""
    missing = re.search(r"without (\w+)", asked_by)
    if missing is not None:
        return _with_size(case, missing[1])
    if asked_by.startswith(("numpy.", "random.", "nn.")) or re.fullmatch(r"[\w.]+ argument \w+", asked_by):
        return _known_size(case, asked_by)
    writer, node = case.writer, case.node
    if writer is not None and isinstance(node, ast.Call):
        module, name = case.find_module(node.func)
        if module == "math" and name:
            return [_of_math(case, writer, node, name)]
        if module.split(".")[0] == "numpy":
            return for_array(case)
        called = case.callee()
        if called in _METHODS and len(node.args) == 1:
            converted = f"{writer.operand(node.args[0])}.astype({called})"
            return [f"{converted}, which stays an array", *_static_or_outside(case)]
        if called in ("round", "divmod", "pow", "abs") and node.args:
            return [f"{case.jnp}.{called}({', '.join(map(writer.text, node.args))})"]
        if isinstance(node.func, ast.Attribute) and node.func.attr in ("item", "tolist"):
            return [f"leave out .{node.func.attr}(): {writer.text(node.func.value)} can be used as it is",
                    *_static_or_outside(case)]
    if writer is not None and _is_formatting(node):
        return for_format(case)
    if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Store):  # an item of a NumPy array
        return for_array(case)
    if asked_by in _METHODS:
        return [f"x.astype({asked_by}), which stays an array", *_static_or_outside(case)]
    return ["use the array as it is", *_static_or_outside(case)]


def _of_math(case: Case, writer: Rewriter, call: ast.Call, name: str) -> str:
    arguments = ", ".join(map(writer.text, call.args))
    if name in _NOT_IN_NUMPY:
        return f"{case.site.alias('xtrace')}.scipy.special.{_NOT_IN_NUMPY[name]}({arguments})"
    return f"{case.jnp}.{_MATH_NAMES.get(name, name)}({arguments})"


def _static_or_outside(case: Case) -> list[str]:
    return case.static() or ["convert the result, outside the traced function"]


def _is_formatting(node: ast.AST) -> bool:
    return isinstance(node, ast.JoinedStr) or (
        isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mod) and isinstance(node.left, ast.Constant)
    )


def _with_size(case: Case, keyword: str) -> list[str]:
    called = case.writer.with_keyword(f"{keyword}=N") if case.writer is not None else None
    text = f"{called}" if called is not None else f"give {keyword}=N"
    return [f"{text} with a fixed number N of results, which fills or cuts", *_masked(case), *case.static()]


def _masked(case: Case) -> list[str]:
    """Return the correction for positions that are used as an index only."""
    if case.callee().endswith((".nonzero", ".where", ".flatnonzero", ".argwhere")):
        return [f"{case.jnp}.where(condition, x, fill), which keeps the shape"]
    return []


def _known_size(case: Case, asked_by: str) -> list[str]:
    what = asked_by.partition(" argument ")[2] or "value"
    fixed = [f"compute the {what} with numpy, from shapes or Python numbers"]
    if case.provenance is not None and case.provenance.is_constant():
        return _with_numpy(case) or fixed
    static = case.static()
    function = asked_by.removeprefix("numpy.").partition(" ")[0]
    if function in ("arange", "zeros", "ones", "full", "empty", "eye", "linspace", "tri", "identity"):
        static.append(f"give it a fixed size, and mask what lies behind with {case.jnp}.where")
    return static or [f"pass the {what} as a Python number, or an argument that is static"]


# Integers


def for_integer(case: Case) -> list[str]:
    """Return the corrections if Python needs an integer."""
    writer, node, parent = case.writer, case.node, case.parent
    if writer is None:
        return [*case.static(), f"loop with {case.lax}.fori_loop, or index an xtrace array instead of a list"]
    called = case.callee()
    if called == "range":
        loop = isinstance(parent, ast.For) and parent.iter is node and not _appends(parent.body)
        return [*case.static(), *([writer.fori_loop(node, parent)] if loop else []),
                *([] if loop else [f"count with {case.lax}.fori_loop, whose bounds may be traced"])]
    if isinstance(node, ast.Subscript):
        return _indexing_of_a_list(case, writer, node) + case.static()
    if isinstance(node, ast.Call):
        module, _ = case.find_module(node.func)
        if module.split(".")[0] in ("numpy", "scipy"):
            return case.static() + for_array(case)
        if module == "math":
            return for_value(case, "int")
    if isinstance(node, ast.BinOp):
        mask = f"{case.jnp}.arange(N) < {writer.text(node.right)}"
        return [*case.static(), f"{case.jnp}.where({mask}, ...) of a fixed size N"]
    return case.static() or [f"loop with {case.lax}.fori_loop, or index an xtrace array instead of a list"]


def for_no_integer(case: Case) -> list[str]:
    """Return the corrections if Python needs an integer, and the array has another dtype or several elements."""
    tracer = case.tracer
    if tracer is not None and tracer.aval.shape:
        return ["give it one element of an integer array"]
    return [f"call the function with an integer; a float becomes one by {case.jnp}.floor(x).astype(int), and then an "
            f"array is indexed with it, or a loop counted by {case.lax}.fori_loop"]


def _appends(statements: Sequence[Any]) -> bool:
    nodes = [node for statement in statements for node in ast.walk(statement)]
    return any(isinstance(x, ast.Attribute) and x.attr in ("append", "extend") for x in nodes)


def _indexing_of_a_list(case: Case, writer: Rewriter, node: ast.Subscript) -> list[str]:
    holder = writer.text(node.value)
    if isinstance(node.slice, ast.Slice):
        array = f"{case.jnp}.array({holder})"
        lower, size = _start_and_size(writer, node.slice)
        return [f"{case.lax}.dynamic_slice_in_dim({array}, {lower}, {size})"]
    items = case.site.lookup(node.value.id) if isinstance(node.value, ast.Name) else None
    if isinstance(items, (list, tuple)) and items and all(callable(x) for x in items):
        return [f"{case.lax}.switch({writer.text(node.slice)}, {holder}, *operands)"]
    make = f"{case.jnp}.asarray" if isinstance(items, np.ndarray) else f"{case.jnp}.array"
    return [f"{make}({holder})[{writer.text(node.slice)}]"]


def _start_and_size(writer: Rewriter, bounds: ast.Slice) -> tuple[str, str]:
    """Return the start of a slice, and its length if it is in the source, otherwise ``size``."""
    lower, upper = bounds.lower, bounds.upper
    start = writer.text(lower) if lower is not None else "0"
    if isinstance(upper, ast.BinOp) and isinstance(upper.op, ast.Add) and lower is not None:
        for one, other in ((upper.left, upper.right), (upper.right, upper.left)):
            if ast.dump(one) == ast.dump(lower):
                return start, writer.text(other)
    if isinstance(lower, ast.BinOp) and isinstance(lower.op, ast.Sub) and upper is not None:
        return start, writer.text(lower.right) if ast.dump(lower.left) == ast.dump(upper) else "size"
    return start, "size"


# NumPy's functions


_OWN_MODULES = {"scipy": "xtrace.scipy", "numpy": "xtrace.numpy"}
_CONVERTERS = ("asarray", "array", "asanyarray", "ascontiguousarray", "copy")


def for_array(case: Case) -> list[str]:
    """Return the corrections if NumPy or another library received a tracer."""
    writer, node = case.writer, case.node
    generic = [f"the function of the same name in {case.jnp}, which can be traced"]
    if writer is None:
        return generic
    if isinstance(node, ast.Subscript):
        holder = writer.text(node.value)
        if isinstance(node.ctx, ast.Store):
            return [str(writer.item_assignment()).replace(f"= {holder}.at", f"= {case.jnp}.asarray({holder}).at", 1)]
        return [f"{case.jnp}.asarray({holder})[{writer.text(node.slice)}]"]
    if not isinstance(node, ast.Call):
        return generic
    arguments = writer.text(node)[len(writer.text(node.func)) :] if writer.text(node) != "..." else "(...)"
    module, name = case.find_module(node.func)
    root = module.split(".")[0]
    if root == "numpy" and (name.startswith("random.") or module.startswith("numpy.random")):
        return [f"{case.site.alias('xtrace')}.random, whose functions take a key"]
    if root == "numpy" and name.split(".")[0] in ("testing", "save", "savez", "savetxt", "set_printoptions"):
        return _outside(case)
    if root == "numpy" and hasattr(np, name) and isinstance(getattr(np, name), type) and node.args:
        return [f"{writer.operand(node.args[0])}.astype({case.jnp}.{name})"]
    if root == "numpy" and name in _CONVERTERS and node.args:
        return [f"{case.jnp}.{name.replace('asanyarray', 'asarray')}{arguments}", *_static_or_outside(case)]
    if root in _OWN_MODULES and name:
        below = module.partition(".")[2]
        prefix = case.site.alias(_OWN_MODULES[root]) + (f".{below}" if below and not below.startswith("_") else "")
        return [f"{prefix}.{name}{arguments}, which can be traced"]
    if isinstance(node.func, ast.Attribute):
        owner: Any = node.func.value
        if isinstance(owner, ast.Name) and isinstance(case.site.lookup(owner.id), np.ndarray):
            return [f"{case.jnp}.asarray({writer.text(node.func.value)}).{node.func.attr}{arguments}"]
    if root in ("matplotlib", "seaborn", "pandas", "sklearn", "PIL"):
        return _outside(case)
    return [*generic, *_outside(case)]


def _outside(case: Case) -> list[str]:
    xtrace = case.site.alias("xtrace")
    return [f"call it outside the traced function, or through {xtrace}.debug.callback or {xtrace}.pure_callback"]


# Indices


def for_mask(case: Case) -> list[str]:
    """Return the corrections of an index by a traced mask."""
    writer, node = case.writer, case.node
    if writer is None or not isinstance(node, ast.Subscript):
        return [f"{case.jnp}.where(mask, x, fill), which keeps the shape",
                f"{case.jnp}.nonzero(mask, size=N) with a fixed number N of results"]
    array = writer.text(node.value)
    if isinstance(node.slice, ast.Tuple):
        names = (ast.Name, ast.Compare, ast.BinOp, ast.UnaryOp, ast.Call, ast.Attribute, ast.Subscript)
        masking = next((x for x in node.slice.elts if isinstance(x, names)), node.slice.elts[0])
        chosen = f"{case.jnp}.nonzero({writer.text(masking)}, size=N)[0]"
        entries = ", ".join(chosen if x is masking else writer.text(x) for x in node.slice.elts)
        return [f"{array}[{entries}] with a fixed number N of results"]
    mask, method = writer.condition(node.slice), _reduction(case)
    if method in ("size", "shape"):
        return [f"{case.jnp}.sum({mask})"]
    if method:
        extra = ", initial=..." if method in ("min", "max") else ""
        return [f"{case.jnp}.{method}({array}, where={mask}{extra})", f"{case.jnp}.where({mask}, {array}, fill)"]
    return [f"{case.jnp}.where({mask}, {array}, fill), which keeps the shape",
            f"{array}[{case.jnp}.nonzero({mask}, size=N)] with a fixed number N of results"]


def _reduction(case: Case) -> str:
    """Return the name of the reduction or attribute applied to the expression; empty for other uses."""
    around = case.site.expression.around if case.site.expression is not None else ()
    if around and isinstance(around[0], ast.Attribute):
        name = around[0].attr
    elif around and isinstance(around[0], ast.Call) and around[0].args[:1] == [case.node]:
        name = ast.unparse(around[0].func).removeprefix(f"{case.jnp}.")
    else:
        return ""
    return name if name in ("sum", "mean", "prod", "min", "max", "any", "all", "std", "var", "size", "shape") else ""


def for_slice(case: Case) -> list[str]:
    """Return the corrections of a slice with traced bounds."""
    writer, node = case.writer, case.node
    generic = [f"{case.lax}.dynamic_slice_in_dim(x, start, size) with a fixed size", *case.static()]
    # x.at[i:j].set(y) needs the bounds when it is called.
    method = node.func if isinstance(node, ast.Call) else None
    updated: Any = method.value if isinstance(method, ast.Attribute) else None
    if isinstance(updated, ast.Subscript) and isinstance(updated.value, ast.Attribute) and updated.value.attr == "at":
        node = updated
    if writer is None or not isinstance(node, ast.Subscript):
        return generic
    items = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
    slices = [(axis, x) for axis, x in enumerate(items) if isinstance(x, ast.Slice)]
    traced = [(axis, x) for axis, x in slices if _may_be_traced(x)] or slices
    if not traced:
        return generic
    axis, bounds = traced[0]
    array = writer.text(node.value)
    where = f", axis={axis}" if axis else ""
    start, size = _start_and_size(writer, bounds)
    if updated is node:
        base = array.removesuffix(".at")
        update = f"{case.lax}.dynamic_update_slice_in_dim({base}, values, {start}, axis={axis})"
        return [f"{update}, with values of a fixed size", *case.static()]
    first = f"{case.lax}.dynamic_slice_in_dim({array}, {start}, {size}{where})"
    if size == "size":
        first += ", with a size known while tracing"
    masked = []
    if bounds.lower is None and bounds.upper is not None and len(items) == 1:
        first = ""
        masked = [f"{case.jnp}.where({case.jnp}.arange(len({array})) < {writer.text(bounds.upper)}, {array}, 0), "
                  "which keeps the shape"]
    return [x for x in (first, *masked, *case.static()) if x]


def _may_be_traced(bounds: ast.Slice) -> bool:
    """Whether a bound of a slice contains more than numbers."""
    return any(x is not None and not isinstance(x, ast.Constant) for x in (bounds.lower, bounds.upper, bounds.step))


# Shapes


def for_shape(case: Case) -> list[str]:
    """Return the corrections of a shape with a tracer in it."""
    if case.provenance is not None and case.provenance.is_constant():
        corrections = _with_numpy(case)
        if corrections:
            return corrections
    fixes = case.static()
    if isinstance(case.node, ast.Call) and case.callee().split(".")[-1] in ("zeros", "ones", "full", "empty", "arange"):
        fixes.append(f"give it a fixed size, and mask what lies behind with {case.jnp}.where")
    return fixes or ["x.shape is known while tracing, and so is numpy's np.prod(x.shape)"]


def _with_numpy(case: Case) -> list[str]:
    """Return the correction with NumPy's functions in place of xtrace.numpy's: NumPy's values are concrete."""
    if case.writer is None:
        return []
    numpy, jnp = case.site.alias("numpy"), case.jnp
    numpy = "np" if numpy == "numpy" and case.site.lookup("numpy") is None else numpy
    whole = ast.parse(ast.unparse(case.node), mode="eval").body
    changed = ast.unparse(_Concrete(jnp, numpy, case.node).visit(whole))
    if changed == ast.unparse(case.node):
        return [f"compute it with numpy: {numpy}.prod(x.shape) and x.size are known while tracing"]
    return [f"{changed}: shapes are known while tracing, and what numpy computes of them stays so"]


class _Concrete(ast.NodeTransformer):
    """A transformer that replaces calls of xtrace.numpy on shapes by calls of NumPy, inside the outermost call."""

    def __init__(self, jnp: str, numpy: str, outermost: Any) -> None:
        self.jnp, self.numpy = jnp, numpy
        self.outermost = ast.unparse(outermost.func) if isinstance(outermost, ast.Call) else ""

    def visit_Call(self, node: Any) -> Any:
        called = ast.unparse(node.func)
        self.generic_visit(node)
        if called == self.outermost:
            return node
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if self._is_made_by_numpy(owner):  # jnp.array(x.shape).prod() becomes np.prod(x.shape)
            node.args.insert(0, owner)
            node.func = self._function(node.func.attr)
        elif called.startswith(f"{self.jnp}."):
            node.func = self._function(called.removeprefix(f"{self.jnp}."))
        if node.args and self._is_made_by_numpy(node.args[0]) and not self._is_made_by_numpy(node):
            node.args[0] = node.args[0].args[0]
        return node

    def _function(self, name: str) -> Any:
        return ast.parse(f"{self.numpy}.{name}", mode="eval").body

    def _is_made_by_numpy(self, node: Any) -> bool:
        made = [f"{self.numpy}.{name}" for name in _CONVERTERS]
        return isinstance(node, ast.Call) and len(node.args) == 1 and ast.unparse(node.func) in made


# Keys, formats, attributes and items


def for_key(case: Case) -> list[str]:
    """Return the corrections of a traced key."""
    writer, node = case.writer, case.node
    if writer is not None and isinstance(node, ast.Subscript):
        holder, key = writer.text(node.value), writer.text(node.slice)
        functions = case.site.lookup(node.value.id) if isinstance(node.value, ast.Name) else None
        if isinstance(functions, dict) and functions and all(callable(x) for x in functions.values()):
            return [f"{case.lax}.switch({key}, list({holder}.values()), *operands)", *case.static()]
        return [f"{case.jnp}.array(list({holder}.values()))[{key}], with keys 0, 1, 2 ...", *case.static()]
    return ["use its shape or dtype, or an index, as the key", *case.static()]


def for_format(case: Case) -> list[str]:
    """Return the corrections of a formatted tracer."""
    show = f"{case.site.alias('xtrace')}.debug.print"
    pieces, values = _format(case)
    quoted = pieces.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return [f'{show}("{quoted}", {", ".join(values)})', "format the result, outside the traced function"]


def _format(case: Case) -> tuple[str, list[str]]:
    """Return the format and the values of a formatted string, for each of Python's notations."""
    node: Any = case.node
    if isinstance(node, ast.JoinedStr):
        pieces, values = "", []
        parts: list[Any] = node.values
        for part in parts:
            if isinstance(part, ast.FormattedValue):
                specification = ast.unparse(part.format_spec)[2:-1] if part.format_spec is not None else ""
                pieces += f"{{:{specification}}}" if specification else "{}"
                values.append(ast.unparse(part.value))
            else:
                pieces += str(part.value).replace("{", "{{").replace("}", "}}")
        return pieces, values
    if isinstance(node, ast.BinOp) and isinstance(node.left, ast.Constant):
        operands = node.right.elts if isinstance(node.right, ast.Tuple) else [node.right]
        return re.sub(r"%([-+ 0#]*[\d.]*[a-zA-Z])", r"{:\1}", str(node.left.value)), [ast.unparse(x) for x in operands]
    if isinstance(node, ast.Call):
        arguments = [ast.unparse(x) for x in node.args]
        owner = node.func.value if isinstance(node.func, ast.Attribute) else None
        if isinstance(owner, ast.Constant) and isinstance(owner.value, str) and arguments:
            return owner.value, arguments
        if case.callee() == "format" and len(arguments) == 2 and isinstance(node.args[1], ast.Constant):
            return "{:" + str(node.args[1].value) + "}", arguments[:1]
    return "{}", ["x"]


def for_data(case: Case) -> list[str]:
    """Return the corrections if the data of a tracer is needed."""
    return ["use it outside the traced function, on its arguments and results"]


def for_item_assignment(case: Case) -> list[str]:
    """Return the corrections of an assignment to an item."""
    correction = case.writer.item_assignment() if case.writer is not None else None
    return [correction] if correction is not None else []


def for_iteration_of_no_count(case: Case) -> list[str]:
    """Return the corrections of an iteration over a scalar that cannot be a number of steps."""
    return [f"make it an array of one element with {case.jnp}.atleast_1d"]


def for_iteration(case: Case) -> list[str]:
    """Return the corrections of an iteration over an integer."""
    writer, node, parent = case.writer, case.node, case.parent
    if writer is not None and isinstance(parent, ast.For) and parent.iter is node:
        counted = ast.Call(ast.Name("range", ast.Load()), [node], [])
        return [writer.fori_loop(counted, parent), *case.static()]
    return [f"count with {case.lax}.fori_loop, or make it an array of one element with {case.jnp}.atleast_1d"]
