"""Stages and caches as HTML for notebooks."""

from __future__ import annotations

import html
from collections.abc import Sequence

from xtrace._src.api.jit import stages
from xtrace._src.core.jaxprs.jaxpr_views import write_jaxpr_html

_MAX_CHARACTERS = 20_000


def write_stage_html(stage: stages.Stage) -> str:
    """Return a stage as HTML: its name, the types of arguments and results, and its text, folded."""
    paths, avals = stage._traced.debug_info.argument_paths(), stage._traced.jaxpr.in_avals
    rows = [(path, aval.str_short(short_dtypes=False)) for path, aval in zip(paths, avals, strict=False)]
    rows += [("result", v.str_short(short_dtypes=False)) for v in stage._traced.out_avals]
    kind = type(stage).__name__
    if isinstance(stage, stages.Traced):
        title, text = "jaxpr", write_jaxpr_html(stage.jaxpr.jaxpr)
    elif isinstance(stage, stages.Lowered):
        title, text = "StableHLO", _pre(stage.as_text())
    else:
        assert isinstance(stage, stages.Compiled)
        title, text = "optimised HLO", _pre(stage.as_text())
    return (
        f"<b>{kind} {html.escape(stage.fun_name)}</b>{table(('argument', 'type'), rows)}"
        f"<details><summary>{title}</summary>{text}</details>"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return an HTML table."""
    made = [
        "".join([f'<td style="text-align:left;padding:0.1em 1em 0.1em 0">{html.escape(str(x))}</td>' for x in row])
        for row in rows
    ]
    titles = "".join([f'<th style="text-align:left;padding:0.1em 1em 0.1em 0">{html.escape(x)}</th>' for x in head])
    return f"<table><tr>{titles}</tr>{''.join([f'<tr>{row}</tr>' for row in made])}</table>"


def write_cache_html(title: str, head: Sequence[str], rows: Sequence[Sequence[object]]) -> str:
    """Return the entries of a cache as an HTML table."""
    return f"<b>{html.escape(title)}</b>{table(head, rows) if rows else ''}"


def _pre(text: str) -> str:
    rest = f"\n… {len(text) - _MAX_CHARACTERS} more characters" if len(text) > _MAX_CHARACTERS else ""
    return f'<pre style="max-height:32em;overflow:auto">{html.escape(text[:_MAX_CHARACTERS])}{rest}</pre>'
