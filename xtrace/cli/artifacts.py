"""``python -m xtrace export`` and ``run ARTIFACT``: write a function to a file, and run a function from a file."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

import xtrace
from xtrace.cli.argument_grammar import parse_argument
from xtrace.cli.errors import WRONG_COMMAND, CommandError
from xtrace.cli.inspection import PLATFORMS, Request, attempt, load_call
from xtrace.cli.programs import TEXT_ENDINGS
from xtrace.cli.results import Result


def export_function(request: Request, out: str, platforms: str | None, vjp_order: int) -> Result:
    """Write the requested function to the file `out`, and return a summary. Raises `CommandError`."""
    if request.device is not None and request.mesh is None:
        raise CommandError(
            "--target goes with --mesh, whose devices it names; a file is compiled where it is called, and --platforms "
            "says for which platforms it is written", WRONG_COMMAND,
        )
    name, function, positional, keywords = load_call(request)
    names = None if platforms is None else [each.strip() for each in platforms.split(",") if each.strip()]
    unknown = sorted({*(names or ())} - {*PLATFORMS})
    if unknown:
        raise CommandError(f"--platforms: {unknown[0]} is no platform; they are {', '.join(PLATFORMS)}", WRONG_COMMAND)
    export = xtrace.export.export
    exported = attempt(
        f"exporting {name} failed", lambda: export(function, platforms=names)(*positional, **keywords)
    )
    data = attempt(f"writing {name} as a file failed", lambda: exported.serialize(vjp_order=vjp_order))
    try:
        Path(out).write_bytes(data)
    except OSError as error:
        raise CommandError(f"--out {out}: {error.strerror}") from None
    takes = ", ".join([aval.str_short() for aval in exported.in_avals])
    derivatives = f", vjp order {vjp_order}" if vjp_order else ""
    text = f"{out}: {name}({takes}) for {', '.join(exported.platforms)}{derivatives}, {len(data)} bytes"
    return Result(text, {
        "file": out, "function": name, "platforms": exported.platforms, "vjp_order": vjp_order, "bytes": len(data),
    })


class _Artifact(NamedTuple):
    """A function from a file; `in_avals` has the types of its leaves, None if sizes are unknown."""

    name: str
    call: Callable[..., Any]
    in_tree: Any
    in_avals: Sequence[Any] | None


def run_artifact(path: str, arguments: Sequence[str]) -> Result:
    """Return the results of the function in a file, with their shapes and dtypes."""
    artifact = _load(Path(path))
    try:
        args, kwargs = _make_arguments(artifact, arguments)
    except MemoryError as error:
        raise CommandError(f"the arguments do not fit into memory: {error}") from None
    results = attempt(f"running {artifact.name} failed", lambda: artifact.call(*args, **kwargs))
    leaves = xtrace.tree_util.tree_leaves_with_path(results)
    rows = [(f"result{xtrace.tree_util.keystr(where)}", value) for where, value in leaves]
    listed = [
        {"name": name, "shape": value.shape, "dtype": str(value.dtype), "data": _to_json_values(_to_numpy(value))}
        for name, value in rows
    ]
    lines = [f"{name}: {xtrace.typeof(value).str_short()}\n{_to_numpy(value)}" for name, value in rows]
    return Result("\n".join(lines) or "no results", {"function": artifact.name, "results": listed})


def _load(path: Path) -> _Artifact:
    try:
        data = path.read_bytes()
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}", WRONG_COMMAND) from None
    try:
        if data.startswith(b"ML\xefR") or path.name.endswith(TEXT_ENDINGS):
            call: Any = xtrace.from_stablehlo(data)
            in_tree = None if call.in_avals is None else xtrace.tree.structure(((0,) * len(call.in_avals), {}))
            return _Artifact(call.__name__, call, in_tree, call.in_avals)
        exported = xtrace.export.deserialize(data)
    except ValueError as error:
        raise CommandError(f"{path}: {error}") from None
    return _Artifact(exported.fun_name, exported.call, exported.in_tree, exported.in_avals)


def _make_arguments(artifact: _Artifact, texts: Sequence[str]) -> tuple[list[Any], dict[str, Any]]:
    """Return the arguments of a call: the user's, or without texts arrays of ones."""
    if artifact.in_avals is None or texts:
        given = [text if text.endswith(".npy") else parse_argument(text) for text in texts]
        if artifact.in_avals is None or len(given) != len(artifact.in_tree.children()[0].children()):
            return [_fill_values(each, None) for each in given], {}
        # The numbers of each argument take the dtypes in the file.
        trees, rest = artifact.in_tree.children()[0].children(), list(artifact.in_avals)
        args = []
        for value, tree in zip(given, trees, strict=True):
            own, rest = rest[: tree.num_leaves], rest[tree.num_leaves :]
            args.append(_fill_values(value, own))
        return args, {}
    args, kwargs = xtrace.tree.unflatten(artifact.in_tree, [_make_ones(aval) for aval in artifact.in_avals])
    return args, kwargs


def _fill_values(value: Any, avals: Sequence[Any] | None) -> Any:
    """Return an argument with types, files and numbers replaced by arrays."""
    if avals is not None and len(avals) == 1 and isinstance(value, (list, tuple)) and not _has_types(value):
        # The function takes an array, and the user has written it as nested lists.
        return attempt("an argument is no array", lambda: np.asarray(value, avals[0].dtype))
    leaves, tree = xtrace.tree.flatten(value, is_leaf=lambda x: isinstance(x, xtrace.ShapeDtypeStruct))
    known = avals if avals is not None and len(avals) == len(leaves) else [None] * len(leaves)
    return xtrace.tree.unflatten(tree, [_fill_value(x, aval) for x, aval in zip(leaves, known, strict=True)])


def _has_types(value: Any) -> bool:
    return any(isinstance(x, (xtrace.ShapeDtypeStruct, str, dict)) for x in xtrace.tree.leaves(value))


def _fill_value(value: Any, aval: Any) -> Any:
    if isinstance(value, xtrace.ShapeDtypeStruct):
        return _make_ones(value)
    if isinstance(value, str):
        return _read_file(value)
    if aval is None or aval.shape != () or not isinstance(aval.dtype, np.dtype):
        return value
    return np.asarray(value, aval.dtype)


def _read_file(path: str) -> Any:
    try:
        return np.load(path, allow_pickle=False)
    except (OSError, ValueError) as error:
        raise CommandError(f'--arg "{path}": it is no file of an array: {error}', WRONG_COMMAND) from None


def _make_ones(described: Any) -> Any:
    if any(not isinstance(n, int) for n in described.shape):
        raise CommandError(
            f"the function takes arrays of any size ({described.str_short()}); give --arg, such as "
            "--arg f32[3]", WRONG_COMMAND,
        )
    if xtrace.dtypes.issubdtype(described.dtype, xtrace.dtypes.prng_key):
        return xtrace.numpy.broadcast_to(xtrace.random.key(0), described.shape)
    return np.ones(described.shape, described.dtype)


def _to_numpy(value: Any) -> Any:
    is_key = xtrace.dtypes.issubdtype(value.dtype, xtrace.dtypes.prng_key)
    return np.asarray(xtrace.random.key_data(value) if is_key else value)


def _to_json_values(data: np.ndarray[Any, Any]) -> Any:
    """Return an array as lists for JSON: complex numbers as pairs, numbers of NumPy's foreign dtypes as floats."""
    if data.dtype.kind == "c":
        return np.stack([data.real, data.imag], -1).tolist()
    return (data if data.dtype.isbuiltin == 1 else data.astype(np.float32)).tolist()
