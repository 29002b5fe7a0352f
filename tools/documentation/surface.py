"""Compares xtrace's public names with those of jax 0.10.2, which `jax_names.json` lists by module."""

from __future__ import annotations

import importlib
import json
import pathlib

from tools.documentation.reference import public_modules

_NAMES = pathlib.Path(__file__).with_name("jax_names.json")


def table() -> str:
    """Return how many of jax's names there are, module by module, which are missing, and which jax has not."""
    rows, have, total = [], 0, 0
    for name, names in json.loads(_NAMES.read_text(encoding="utf-8")).items():
        own = name.replace("jax", "xtrace", 1)
        try:
            module = importlib.import_module(own)
        except ImportError:
            missing, link = list(names), f"`{own}`, which is not there"
        else:
            missing = [n for n in names if not hasattr(module, n)]
            link = f"[`{own}`](reference/{own}.md)" if own in public_modules() else f"`{own}`"
        members = public_modules()[own].members if own in public_modules() else {}
        besides = [n for n in members if n not in names]
        have, total = have + len(names) - len(missing), total + len(names)
        rows.append(f"| {link} | {len(names) - len(missing)} of {len(names)} | {_list(missing)} | {_list(besides)} |")
    head = "| module | names of JAX's | missing | besides |\n|---|---|---|---|"
    return "\n".join([f"Of {total} names, {have} are there.", "", head, *rows])


def _list(names: list[str]) -> str:
    return ", ".join(f"`{name}`" for name in names)
