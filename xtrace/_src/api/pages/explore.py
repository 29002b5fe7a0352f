"""`explore`: a page that shows a function's source, jaxpr, StableHLO and optimised HLO, linked line by line."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Sequence
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.api.jit import jit, stages
from xtrace._src.api.reports.memory_reports import MemoryReport
from xtrace._src.core.callables import check_callable, innermost_function
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.garbage_collection import collection_paused
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.explorer import page, program
from xtrace._src.explorer.data import combine
from xtrace._src.explorer.origins import NumberedModule
from xtrace._src.transforms import dead_code
from xtrace._src.xla.source_locations import name_file

with late_modules(globals()):
    from xtrace._src.xla.plugins import absent_devices


class Explored:
    """One or several programs, each with its source, jaxpr, StableHLO and optimised HLO, linked line by line.

    A notebook shows it as a page. `explore` returns it; users do not call the class.

    Args:
        descriptions: the programs.

    Example:
        >>> explored = xtrace.explore(jnp.sin, 1.0)
        >>> explored.to_json()["programs"][0]["jaxpr"]["lines"]
        ['{ lambda ; a:f32[]. let', '    b:f32[] = sin a', '  in (b,) }']
    """

    def __init__(self, descriptions: Sequence[program.Description]) -> None:
        self._descriptions = tuple(descriptions)
        self._data: dict[str, Any] | None = None

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the programs, in the page's order."""
        return tuple([p["name"] for p in self.to_json()["programs"]])

    def beside(self, *others: Explored) -> Explored:
        """Return these programs and the programs of `others`; the page switches between them and compares them.

        Args:
            others: results of `xtrace.explore`.

        Returns:
            An `Explored` of all programs.

        Raises:
            TypeError: one of `others` is no `Explored`.

        Example:
            >>> xtrace.explore(jnp.sin, 1.0).beside(xtrace.explore(jnp.cos, 1.0)).names
            ('sin', 'cos')
        """
        for other in others:
            if not isinstance(other, Explored):
                raise TypeError(f"beside: takes what xtrace.explore returns, got {type(other)}")
        return Explored([d for each in (self, *others) for d in each._descriptions])

    def to_json(self) -> dict[str, Any]:
        """Return the programs as data for ``json.dumps``.

        Returns:
            A dictionary; docs/explorer_data.md describes its entries.

        Example:
            >>> xtrace.explore(jnp.sin, 1.0).to_json()["programs"][0]["name"]
            'sin'
        """
        if self._data is None:
            self._data = combine(self._descriptions)
        return self._data

    def html(self) -> str:
        """Return the page as HTML that loads no other file.

        Returns:
            The text of the page.

        Example:
            >>> xtrace.explore(jnp.sin, 1.0).html()[:15]
            '<!DOCTYPE html>'
        """
        return page.make_page(self.to_json())

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the page to a file, or the data if the file's name ends in ``.json``.

        Args:
            path: the file's name.

        Returns:
            None.

        Raises:
            OSError: the file cannot be written.

        Example:
            >>> import os
            >>> xtrace.explore(jnp.sin, 1.0).save(os.devnull)
        """
        name = os.fspath(path)
        text = json.dumps(self.to_json()) if name.endswith(".json") else self.html()
        with open(name, "w", encoding="utf-8") as file:
            file.write(text)

    def _repr_html_(self) -> str:
        """Return the page for a cell of a notebook."""
        return page.make_frame(self.html())

    def __repr__(self) -> str:
        return f"<Explored {', '.join(self.names)}: write save('page.html') and open it>"


@boundary
def explore(fun: Callable[..., Any], /, *args: object, **kwargs: object) -> Explored:
    """Return a page with a function's source, jaxpr, StableHLO and optimised HLO, linked line by line.

    The function is traced, lowered and compiled for its arguments' devices, but not run. The method ``explore`` of
    ``jit(fun).lower(...)`` and of the other stages does the same, and takes a target.

    Args:
        fun: a function of pytrees of arrays, jitted or not.
        args: its arguments; ShapeDtypeStructs may stand for arrays.
        kwargs: its keyword arguments, likewise.

    Returns:
        An `Explored`: ``save("page.html")`` writes the page, ``to_json()`` is its data, and
        ``a.beside(b)`` a page of several programs and their differences.

    Raises:
        TypeError: `fun` is not callable, or an argument is no array.

    Example:
        >>> explored = xtrace.explore(lambda x: jnp.tanh(x) * 2, jnp.ones(3))
        >>> explored.to_json()["programs"][0]["cost"]["bytes"]
        24.0
    """
    check_callable(fun)
    return explore_stage(jit.lower(fun, *args, **kwargs))


def explore_stage(
    stage: stages.Traced | stages.Lowered | stages.Compiled, *, target: str | None = None, name: str | None = None
) -> Explored:
    """Return the page of a stage, compiled for `target` if given; the page calls the program `name`."""
    if name is not None and not isinstance(name, str):
        raise TypeError(f"explore: name is what the page calls the program, a string; got {abbreviate(name)}")
    compiled = stage if isinstance(stage, stages.Compiled) else None
    if compiled is not None and stage._jitted.is_loaded:
        raise ValueError(
            f"explore: {stage.fun_name} is a program that was loaded, without the function's source and jaxpr. Explore "
            "it where the function is: xtrace.explore(f, *args); as_text() is its optimised HLO"
        )
    lowered = _lower(stage, target)
    lowered._module = module = NumberedModule(lowered._module)
    lowered._shares_program = False
    why = ""
    if compiled is None:
        try:
            compiled = lowered.compile(target=target)
        except Exception as error:
            if target is not None:
                raise
            why = f"XLA did not compile the program: {type(error).__name__}: {error}"
    with collection_paused():
        return Explored([program.describe_program(_parts(lowered, module, compiled, name, target, why))])


def _parts(
    lowered: stages.Lowered, module: NumberedModule, compiled: stages.Compiled | None, name: str | None,
    target: str | None, why: str,
) -> program.Parts:
    assignment = compiled._partition.assignment if compiled is not None else lowered._assignment
    traced = lowered._traced
    return program.Parts(
        name=name or lowered.fun_name,
        closed=ClosedJaxpr(dead_code.name_dropped(traced.jaxpr), traced.consts),
        module=module,
        optimised=compiled.as_text() if compiled is not None else None,
        why=why,
        paths=traced.debug_info.argument_paths(),
        device_kind=getattr(assignment.device, "device_kind", assignment.platform),
        target=target or assignment.platform,
        definition=getattr(innermost_function(lowered._jitted.fun), "__code__", None),
        devices=assignment.mesh.size if assignment.mesh is not None else 1,
        memory=_describe_memory(compiled.memory_analysis()) if compiled is not None else None,
    )


# The number of arrays on a page.
_MAX_BUFFERS = 300


def _describe_memory(report: MemoryReport) -> dict[str, Any]:
    """Return the memory use of each step of a program, and the arrays in memory at the peak."""
    places = report.places
    numbers = {place: i for i, place in enumerate(dict.fromkeys(places))}
    buffers = [buffer for buffer in report.buffers if buffer.at_peak]
    return {
        "peak": report.peak, "capacity": report.capacity, **report.memory._asdict(),
        "fullest": max(range(len(report.timeline)), key=report.timeline.__getitem__, default=0),
        "timeline": report.timeline,
        "places": [[name_file(place.file), place.line] if place is not None else None for place in numbers],
        "steps": [numbers[place] for place in places],
        "buffers": [
            {
                "kind": b.kind, "name": b.name, "type": b.type, "bytes": b.size, "first": b.first, "last": b.last,
                "file": name_file(b.place.file) if b.place is not None else None,
                "line": b.place.line if b.place is not None else None,
            }
            for b in buffers[:_MAX_BUFFERS]
        ],
        "left": max(0, len(buffers) - _MAX_BUFFERS),
    }


def _lower(stage: stages.Traced | stages.Lowered | stages.Compiled, target: str | None) -> stages.Lowered:
    """Return a new lowering of the stage, for the target's platform; the caller may change it."""
    platforms = (absent_devices.get_platform(target),) if target is not None else None
    if isinstance(stage, stages.Lowered) and (platforms is None or platforms == (stage._platform,)):
        # `copy.copy` returns the stage itself: it treats stages as immutable.
        lowered = object.__new__(stages.Lowered)
        vars(lowered).update(vars(stage))
        return lowered
    if isinstance(stage, stages.Traced):
        return stage.lower(lowering_platforms=platforms)
    assignment = stage._partition.assignment if isinstance(stage, stages.Compiled) else stage._assignment
    traced = stages.Traced(stage._jitted, stage._static, stage._traced, assignment)
    return traced.lower(lowering_platforms=platforms)
