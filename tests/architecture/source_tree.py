"""The package's modules as syntax trees, and the rules about them that a syntax tree can show broken."""

from __future__ import annotations

import ast
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

PACKAGE = "xtrace"
ROOT = Path(__file__).parents[2]
PRIVATE, LATE = "_src", "_late_imports"
LAYERS = (
    LATE,
    *(f"{PRIVATE}.{name}" for name in (
        "xla", "core", "stablehlo", "runtime", "algebra", "transforms", "ops",
        "key_reuse", "debug_nans", "checkify", "host_evaluation", "explorer", "api", "sparse", "extension", "jet",
        "roofline", "serialization", "export", "alias",
    )),
)
TOP = ("cli", "__main__", "pytest_plugin")
EXEMPT = "# heavy third-party"

FunctionNode = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda)


@dataclass(frozen=True)
class Module:
    """One module: its dotted name, its source, and whether it is a package's ``__init__``."""

    name: str
    text: str
    is_package: bool = False

    @cached_property
    def tree(self) -> ast.Module:
        """The syntax tree."""
        return ast.parse(self.text, self.name)

    @property
    def lines(self) -> list[str]:
        """The source lines."""
        return self.text.splitlines()


@dataclass(frozen=True)
class Import:
    """One imported module or name, where it stands, the name it binds, and whether it waits for that name's use."""

    target: str
    name: str | None
    bound: str
    line: int
    in_function: str | None
    late: bool

    @property
    def full(self) -> str:
        """Module and name together."""
        return f"{self.target}.{self.name}" if self.name else self.target


def read_package(root: Path = ROOT) -> dict[str, Module]:
    """Every module of the package below `root`, by dotted name."""
    modules = {}
    for path in sorted((root / PACKAGE).rglob("*.py")):
        parts = path.relative_to(root).with_suffix("").parts
        is_package = parts[-1] == "__init__"
        name = ".".join(parts[:-1] if is_package else parts)
        modules[name] = Module(name, path.read_text(encoding="utf-8"), is_package)
    return modules


def package_of(texts: Mapping[str, str]) -> dict[str, Module]:
    """A package made up for a test: source text by dotted name."""
    names = {name.rpartition(".")[0] for name in texts}
    return {name: Module(name, text, name in names) for name, text in texts.items()}


def unit(module: str) -> str:
    """The part of a module's name that says its layer or its public module; empty for the package itself."""
    return ".".join(module.split(".")[1 : 3 if is_in_layer(module) else 2])


def is_in_layer(module: str) -> bool:
    """Whether a module is one of the private layers, which stand in a folder of their own."""
    return module.startswith(f"{PACKAGE}.{PRIVATE}.")


def rank(module: str) -> int:
    """The height of a module: layers in order, then public mirrors, the package itself, the command line."""
    name = unit(module)
    if name in LAYERS:
        return LAYERS.index(name)
    if name in TOP:
        return len(LAYERS) + 2
    return len(LAYERS) + (name == "")


def imports(module: Module) -> Iterator[Import]:
    """Every import statement of a module, one item for each name it binds."""
    yield from _imports(module.tree.body, None, False)


def late_imports(module: Module) -> Iterator[tuple[str, int]]:
    """The modules of the package that `module` loads by name or at their first use, and the line of each.

    Of a name that is put together the known beginning counts.
    """
    for block in module.tree.body:
        if isinstance(block, ast.With) and ast.unparse(block.items[0]).startswith("late_modules("):
            for item in _imports(block.body, None, True):
                if of_package(item):
                    yield item.full, item.line
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Call) and _called_name(node) == "import_module":
            names = [n for n in ast.walk(node) if isinstance(n, ast.Constant) and isinstance(n.value, str)]
            for name in names:
                if name.value.startswith(f"{PACKAGE}.") and name.value != module.name:
                    yield name.value.rstrip("."), name.lineno


def _imports(body: list[ast.stmt], function: str | None, late: bool) -> Iterator[Import]:
    for node in body:
        if isinstance(node, ast.Import):
            for alias in node.names:
                bound = alias.asname or alias.name.partition(".")[0]
                yield Import(alias.name, None, bound, node.lineno, function, late)
        elif isinstance(node, ast.ImportFrom):
            target = "." * node.level + (node.module or "")
            for alias in node.names:
                bound = alias.asname or alias.name
                yield Import(target, alias.name, bound, node.lineno, function, late)
        else:
            inner = function or (node.name if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef) else None)
            for field in ("body", "orelse", "finalbody"):
                nested = [s for s in getattr(node, field, ()) if isinstance(s, ast.stmt)]
                yield from _imports(nested, inner, late or (field == "body" and _is_late(node)))
            for block in (*getattr(node, "handlers", ()), *getattr(node, "cases", ())):
                yield from _imports(block.body, inner, late)


def _is_late(node: ast.stmt) -> bool:
    """Whether the imports of a block are for type checkers, or load at the first use of each name."""
    if isinstance(node, ast.If):
        return getattr(node.test, "id", getattr(node.test, "attr", None)) == "TYPE_CHECKING"
    late = ("late_imports(", "_late_imports(", "late_modules(")
    return isinstance(node, ast.With) and ast.unparse(node.items[0]).startswith(late)


def resolve(item: Import, modules: Mapping[str, Module]) -> str:
    """The module of the package that an import reaches."""
    return item.full if item.full in modules else item.target


def of_package(item: Import) -> bool:
    """Whether an import is of the package itself."""
    return item.target.partition(".")[0] == PACKAGE


def upward_imports(modules: Mapping[str, Module]) -> list[str]:
    """Imports of a higher layer, and relative ones, whose layer cannot be read off."""
    found = []
    for module in modules.values():
        for item in imports(module):
            if item.target.startswith("."):
                found.append(f"{module.name}:{item.line} is a relative import")
            elif of_package(item) and rank(resolve(item, modules)) > rank(module.name):
                found.append(f"{module.name}:{item.line} imports {item.full}, a higher layer")
        for name, line in late_imports(module):
            if rank(name) > rank(module.name):
                found.append(f"{module.name}:{line} loads {name}, a higher layer")
    return found


def passed_late_names(modules: Mapping[str, Module]) -> list[str]:
    """Late names of functions and classes in places that see their placeholder.

    They may be called, have attributes read, and stand in annotations and as the second argument of `isinstance`.
    """
    late = {
        (module.name, item.bound): item
        for module in modules.values() for block in module.tree.body
        if isinstance(block, ast.With) and ast.unparse(block.items[0]).startswith("late_modules(")
        for item in _imports(block.body, None, True) if of_package(item) and item.full not in modules
    }
    found = []
    for module in modules.values():
        found += [
            f"{module.name}:{item.line} imports {item.full}, which {item.target} loads late"
            for item in imports(module) if (item.target, item.name) in late
        ]
        allowed: set[ast.AST] = set()
        for node in ast.walk(module.tree):
            for annotation in (getattr(node, "annotation", None), getattr(node, "returns", None)):
                allowed.update(ast.walk(annotation) if isinstance(annotation, ast.AST) else ())
            if isinstance(node, ast.Attribute):
                allowed.add(node.value)
            elif isinstance(node, ast.Call):
                allowed.update((node.func, *(node.args[1:2] if _called_name(node) == "isinstance" else ())))
        names = [node for node in ast.walk(module.tree) if isinstance(node, ast.Name) and node not in allowed]
        found += [
            f"{module.name}:{node.lineno} passes {node.id} on, which loads late"
            for node in names if (module.name, node.id) in late
        ]
    return found


def local_imports(modules: Mapping[str, Module]) -> list[str]:
    """Imports inside functions, but for marked third-party ones and a module-level ``__getattr__``."""
    found = []
    for module in modules.values():
        for item in imports(module):
            if item.in_function in (None, "__getattr__"):
                continue
            if of_package(item) or EXEMPT not in module.lines[item.line - 1]:
                found.append(f"{module.name}:{item.line} imports {item.full} inside {item.in_function}")
    return found


def foreign_imports(modules: Mapping[str, Module]) -> list[str]:
    """Any import of jax, and imports of jaxlib outside the layer xla, also those by ``import_module``."""
    found = []
    for module in modules.values():
        targets = [(item.target, item.line) for item in imports(module)]
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Call) and _called_name(node) in ("import_module", "__import__", "find_spec"):
                texts = [a.value for a in node.args if isinstance(a, ast.Constant) and isinstance(a.value, str)]
                targets += [(text, node.lineno) for text in texts]
        for target, line in targets:
            top = target.partition(".")[0]
            if top == "jax" or (top == "jaxlib" and unit(module.name) != f"{PRIVATE}.xla"):
                found.append(f"{module.name}:{line} imports {target}")
    return found


def _called_name(node: ast.Call) -> str:
    function = node.func
    return getattr(function, "id", getattr(function, "attr", ""))


def is_private(name: str) -> bool:
    """Whether a name begins with an underscore and is not a special one."""
    return name.startswith("_") and not (name.startswith("__") and name.endswith("__"))


def private_uses(modules: Mapping[str, Module]) -> list[str]:
    """Private names of another layer, imported or reached as attributes of an imported module."""
    found = []
    for module in modules.values():
        reached: dict[str, str] = {}
        for item in imports(module):
            if not of_package(item):
                continue
            target = resolve(item, modules)
            foreign = unit(target) != unit(module.name)
            if foreign and any(is_private(part) and part not in (PRIVATE, LATE) for part in item.full.split(".")):
                found.append(f"{module.name}:{item.line} imports {item.full}, private to {unit(target)}")
            if foreign and target == item.full:
                reached[item.bound] = target
        for node in ast.walk(module.tree):
            if isinstance(node, ast.Attribute) and is_private(node.attr):
                owner = node.value
                if isinstance(owner, ast.Name) and owner.id in reached:
                    found.append(f"{module.name}:{node.lineno} uses {reached[owner.id]}.{node.attr}")
    return found


def import_cycles(modules: Mapping[str, Module]) -> list[list[str]]:
    """Groups of modules that import each other when they load, without late imports."""
    edges: dict[str, set[str]] = {}
    for module in modules.values():
        loaded = [i for i in imports(module) if of_package(i) and i.in_function is None and not i.late]
        edges[module.name] = {resolve(i, modules) for i in loaded} & set(modules)
    return _strongly_connected(edges)


def _strongly_connected(edges: Mapping[str, set[str]]) -> list[list[str]]:
    """The strongly connected components of more than one node, or with a loop (Kosaraju's two passes)."""
    order: list[str] = []
    seen: set[str] = set()
    backward: dict[str, set[str]] = {name: set() for name in edges}
    for name, targets in edges.items():
        for target in targets:
            backward[target].add(name)

    def visit(name: str, graph: Mapping[str, set[str]], done: list[str]) -> None:
        seen.add(name)
        for target in sorted(graph[name] - seen):
            if target not in seen:
                visit(target, graph, done)
        done.append(name)

    for name in edges:
        if name not in seen:
            visit(name, edges, order)
    seen.clear()
    groups = []
    for name in reversed(order):
        if name not in seen:
            group: list[str] = []
            visit(name, backward, group)
            if len(group) > 1 or name in edges[name]:
                groups.append(sorted(group))
    return groups


RULES = ("abstract", "emit", "effects", "jvp", "linearize", "partial_evaluate", "transpose", "batch", "evaluate")


def patched_rules(modules: Mapping[str, Module]) -> list[str]:
    """Rules assigned to a primitive after its definition: they are arguments of it."""
    found = []
    for module in modules.values():
        for node in ast.walk(module.tree):
            targets = node.targets if isinstance(node, ast.Assign) else []
            rules = [t for t in targets if isinstance(t, ast.Attribute) and t.attr in RULES]
            patched = [ast.unparse(t) for t in rules if ast.unparse(t.value) != "self"]
            found += [f"{module.name}:{node.lineno} assigns {text}" for text in patched]
    return found


def caches_apart(modules: Mapping[str, Module]) -> list[str]:
    """Caches of functions with parameters that `clear_caches` does not reach: they are to use `core/tables.py`.

    A comment ``# interned`` marks a cache whose results must stay the same objects.
    """
    found = []
    for module in modules.values():
        for node in ast.walk(module.tree):
            if not isinstance(node, ast.FunctionDef) or not (node.args.args or node.args.vararg or node.args.kwarg):
                continue
            for decorator in node.decorator_list:
                name = ast.unparse(decorator).partition("(")[0].rpartition(".")[2]
                if name in ("cache", "lru_cache") and "# interned" not in module.lines[decorator.lineno - 1]:
                    found.append(f"{module.name}:{node.lineno} {node.name}")
    return found


def undocumented(modules: Mapping[str, Module]) -> list[str]:
    """Public modules, classes, functions and methods of public classes without a docstring.

    A method that overrides a documented one of a class in the package keeps that one's contract.
    """
    trees = {module.name: module.tree for module in modules.values()}
    classes = {n.name: n for tree in trees.values() for n in ast.walk(tree) if isinstance(n, ast.ClassDef)}
    found = []
    for name, tree in trees.items():
        if any(is_private(part) and part not in (PRIVATE, LATE) for part in name.split(".")):
            continue
        if tree.body and not ast.get_docstring(tree):
            found.append(f"{name} (the module)")
        found += [f"{name}:{node.lineno} {label}" for node, label in _undocumented(tree.body, None, classes)]
    return found


def _undocumented(
    body: list[ast.stmt], owner: ast.ClassDef | None, classes: Mapping[str, ast.ClassDef]
) -> Iterator[tuple[ast.stmt, str]]:
    for node in body:
        if not isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef) or node.name.startswith("_"):
            continue
        decorators = {ast.unparse(d).rpartition(".")[2] for d in node.decorator_list}
        if not ast.get_docstring(node) and not decorators & {"overload", "setter"}:
            if owner is None:
                yield node, node.name
            elif not _inherits_contract(owner, node.name, classes):
                yield node, f"{owner.name}.{node.name}"
        if isinstance(node, ast.ClassDef):
            yield from _undocumented(node.body, node, classes)


def _inherits_contract(owner: ast.ClassDef, method: str, classes: Mapping[str, ast.ClassDef]) -> bool:
    """Whether a base class, by its name, documents the method."""
    for base in owner.bases:
        name = ast.unparse(base).partition("[")[0].rpartition(".")[2]
        if name not in classes or classes[name] is owner:
            continue
        own = [n for n in classes[name].body if isinstance(n, ast.FunctionDef) and n.name == method]
        if any(map(ast.get_docstring, own)) or _inherits_contract(classes[name], method, classes):
            return True
    return False
