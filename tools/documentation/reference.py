"""Writes the pages of the reference from the public modules as they are when loaded."""

from __future__ import annotations

import builtins
import collections.abc
import functools
import html
import importlib
import inspect
import re
import types
import typing
from collections.abc import Iterator
from typing import Any

# Names that this project neither defines nor describes: dialects of MLIR, which jaxlib brings.
_LEFT_OUT = ("xtrace.extend.mlir", "xtrace.lib", "xtrace.version")
_TITLES = {
    "Args": "Arguments", "Attributes": "Attributes", "Returns": "Returns", "Yields": "Yields", "Raises": "Raises",
    "Example": "Example", "Reference": "Source of the method",
}
_PYTHON = "https://docs.python.org/3/library/"
_NUMPY = "https://numpy.org/doc/stable/reference/"
_BUILT_IN = (bool, int, float, complex, str, bytes, tuple, list, dict, set, frozenset)
# How annotations call what is public under another name.
_OTHER_NAMES = {
    "ArrayLike": "xtrace.typing.ArrayLike", "DTypeLike": "xtrace.typing.DTypeLike", "Array": "xtrace.Array",
    "Device": "xtrace.Device", "Sharding": "xtrace.sharding.Sharding", "PartitionSpec": "xtrace.P",
    "ShapeDtypeStruct": "xtrace.ShapeDtypeStruct", "Mesh": "xtrace.sharding.Mesh",
}


class Module(typing.NamedTuple):
    """A public module: its name, its text, and its public names with their values, in order."""

    name: str
    text: str
    members: dict[str, Any]


@functools.cache
def public_modules() -> dict[str, Module]:
    """Return the public modules by name, each before those inside it."""
    return {module.name: module for module in _modules_below("xtrace")}


def _modules_below(name: str) -> Iterator[Module]:
    if name.startswith(_LEFT_OUT):
        return
    module = importlib.import_module(name)
    values = {n: getattr(module, n) for n in dir(module)}
    members = {n: v for n, v in values.items() if not isinstance(v, types.ModuleType)}
    yield Module(name, (module.__doc__ or "").strip(), members)
    for inner in [n for n, v in values.items() if isinstance(v, types.ModuleType)]:
        yield from _modules_below(f"{name}.{inner}")


@functools.cache
def homes() -> dict[int, str]:
    """Return the full name under which each function and class is described, by its identity.

    That is in the outermost module that has it, by its own name if there is a choice.
    """
    found: dict[int, tuple[int, bool, str]] = {}
    for module in public_modules().values():
        for name, value in module.members.items():
            if _is_described(name, value):
                candidate = module.name.count("."), name != getattr(value, "__name__", name), f"{module.name}.{name}"
                found[id(value)] = min(candidate, found.get(id(value), candidate))
    return {identity: name for identity, (*_, name) in found.items()}


def _is_described(name: str, value: object) -> bool:
    # A name that ends in _p is another name of an operation.
    named = not name.endswith("_p") and not name.startswith("_")
    documented = named and callable(value) and bool(getattr(value, "__doc__", None))
    defined_here = (inspect.getmodule(value) or inspect.getmodule(type(value))) is not None
    return documented and defined_here and "xtrace" in (getattr(value, "__module__", "") or type(value).__module__)


@functools.cache
def _addresses() -> dict[str, str]:
    """Return where the names of annotations are described: a page of the reference, or another project's."""
    full_names = {name: name for name in homes().values()}
    last = {name.rpartition(".")[2]: name for name in reversed(full_names) if inspect.isclass(_value_of(name))}
    found = {short: _address(name) for short, name in last.items()}
    found |= {kind.__name__: f"{_PYTHON}stdtypes.html#{kind.__name__}" for kind in _BUILT_IN}
    found["object"] = f"{_PYTHON}functions.html#object"
    found |= {name: f"{_PYTHON}collections.abc.html#collections.abc.{name}" for name in collections.abc.__all__}
    found |= {name: f"{_PYTHON}typing.html#typing.{name}" for name in ("Any", "Literal")}
    found |= {"ndarray": f"{_NUMPY}generated/numpy.ndarray.html", "None": f"{_PYTHON}constants.html#None"}
    errors = [n for n, v in vars(builtins).items() if isinstance(v, type) and issubclass(v, BaseException)]
    found |= {name: _address(full) for name, full in _OTHER_NAMES.items()}
    return found | {name: f"{_PYTHON}exceptions.html#{name}" for name in errors}


def _value_of(name: str) -> Any:
    module, _, last = name.rpartition(".")
    return public_modules()[module].members[last]


def _address(name: str) -> str:
    return f"{name.rpartition('.')[0]}.md#{name}"


def page(module: Module) -> str:
    """Return the page of a module in Markdown."""
    parts = [f"# `{module.name}`", module.text]
    inner = [n for n in public_modules() if n.rpartition(".")[0] == module.name]
    if inner:
        parts.append("Modules: " + ", ".join(f"[{n.rpartition('.')[2]}]({n}.md)" for n in inner))
    described, elsewhere, constants = [], [], []
    for name, value in module.members.items():
        home = homes().get(id(value)) if not name.endswith("_p") else None
        if home == f"{module.name}.{name}":
            described.append(_entry(module.name, name, value))
        elif home:
            elsewhere.append(f"[{name}]({_address(home)})")
        elif not name.endswith("_p"):
            constants.append(f'<a id="{module.name}.{name}"></a>`{name}`')
    parts += described
    if elsewhere:
        parts += ["## Described elsewhere", ", ".join(elsewhere)]
    if constants:
        parts += ["## Constants, types and settings", ", ".join(constants)]
    return "\n\n".join(filter(None, parts)) + "\n"


def _entry(module: str, name: str, value: Any) -> str:
    heading = f"## {name} {{ #{module}.{name} }}"
    return "\n\n".join(filter(None, (heading, _signature(module, name, value), _docstring(module, value))))


def _signature(module: str, name: str, value: Any) -> str:
    try:
        signature = inspect.signature(value)
    except (TypeError, ValueError):
        return ""
    parameters = []
    plain = [p.replace(annotation=inspect.Parameter.empty) for p in signature.parameters.values()]
    shown = str(signature.replace(parameters=plain, return_annotation=inspect.Signature.empty))[1:-1]
    for text in _split(shown):
        parameter = signature.parameters.get(text.lstrip("*").partition("=")[0].strip())
        before, equals, default = html.escape(text).partition("=")
        annotated = f": {_linked(parameter.annotation)}" if parameter and _is_annotated(parameter.annotation) else ""
        equals = f" = {default}" if equals and annotated else equals + default
        parameters.append(f"{before}{annotated}{equals}")
    result = f" → {_linked(signature.return_annotation)}" if _is_annotated(signature.return_annotation) else ""
    separator = ", " if len(re.sub("<.*?>", "", "".join(parameters))) < 80 else ",\n    "
    inside = separator.join(parameters)
    inside = f"\n    {inside}\n" if "\n" in separator else inside
    return f'<pre class="signature"><code>{module}.<b>{name}</b>({inside}){result}</code></pre>'


def _split(text: str) -> list[str]:
    """Split parameters at the commas that are not inside brackets or strings."""
    parts, depth, start, quote = [], 0, 0, ""
    for position, character in enumerate(text):
        if quote:
            quote = "" if character == quote else quote
        elif character in "'\"":
            quote = character
        elif character in "([{<":
            depth += 1
        elif character in ")]}>":
            depth -= 1
        elif character == "," and not depth:
            parts.append(text[start:position].strip())
            start = position + 1
    return [*parts, text[start:].strip()] if text.strip() else []


def _is_annotated(annotation: object) -> bool:
    return annotation is not inspect.Parameter.empty


def _linked(annotation: object) -> str:
    """Return an annotation as HTML, its names linked."""
    text = annotation if isinstance(annotation, str) else inspect.formatannotation(annotation)
    text = re.sub(r"\b(?:[a-z_]\w*\.)+(?=\w)", "", text)

    def link(match: re.Match[str]) -> str:
        address = _addresses().get(match[0])
        # Markdown's links are checked, those in HTML are not rewritten; so the pages lie in one folder.
        return f'<a href="{address.replace(".md#", ".html#")}">{match[0]}</a>' if address else match[0]

    return re.sub(r"\b[A-Za-z_]\w*\b(?![^<]*>)", link, html.escape(text))


def _docstring(module: str, value: Any) -> str:
    lines = inspect.cleandoc(value.__doc__ or "").splitlines()
    parts, section, body = [], "", list[str]()

    def close() -> None:
        text = inspect.cleandoc("\n".join(body))
        if text:
            parts.append(_section(section, text, module))
        body.clear()

    for line in lines:
        heading = re.fullmatch(r"([A-Z][a-z]+):", line)
        if heading and heading[1] in _TITLES:
            close()
            section = heading[1]
        else:
            body.append(line)
    close()
    return "\n\n".join(parts)


def _section(name: str, text: str, module: str) -> str:
    title = f"**{_TITLES[name]}**\n\n" if name else ""
    if name == "Example":
        return f"{title}```pycon\n{text}\n```"
    if name not in ("Args", "Attributes", "Raises"):
        return title + _markdown(text, module)
    entries = re.split(r"\n(?=\S)", text)
    items = []
    for entry in entries:
        words, _, rest = " ".join(entry.split()).partition(": ")
        items.append(f"- `{words}`: {_markdown(rest, module)}" if rest else f"- {_markdown(words, module)}")
    return title + "\n".join(items)


def _markdown(text: str, module: str) -> str:
    """Return the text of a docstring, in which names of the same module, or full ones, become links."""
    text = re.sub(r"``(.+?)``", r"`\1`", text, flags=re.DOTALL)
    code = re.split(r"(`[^`]+`)", text)
    return "".join(_reference(part, module) if part.startswith("`") else _escape(part) for part in code)


def _escape(text: str) -> str:
    return re.sub(r"([*_\[\]<>])", r"\\\1", text)


def _reference(code: str, module: str) -> str:
    name = code.strip("`")
    for full in (name, f"{module}.{name}", f"xtrace.{name}"):
        if full in _full_names():
            return f"[{code}]({_address(full)})"
    return code


@functools.cache
def _full_names() -> frozenset[str]:
    return frozenset(homes().values())
