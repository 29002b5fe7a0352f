"""Traces on disk: a warm start calls a function without tracing it. The setting is ``xtrace_trace_cache``.

The key of an entry is a digest of all values on which tracing depends. The entry names the compiled program in the
folder, and contains the data for calling it. A function without a certain digest has no entry.
"""

from __future__ import annotations

import functools
import json
import logging
import os
import sys
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from xtrace._late_imports import jax_is_xtrace
from xtrace._src.api.compilation.serialized_programs import RecordReader, record_aval, record_program, record_sharding
from xtrace._src.api.compilation.sharding_assignment import apply_shardings_to_types
from xtrace._src.api.jit.argument_paths import defer_argument_paths
from xtrace._src.api.jit.jit_cache import CompiledCall, Prepared
from xtrace._src.api.jit.static_arguments import Static
from xtrace._src.api.kept_traces.function_fingerprints import Fingerprint, UncertainError
from xtrace._src.api.tracing import abstract_leaves
from xtrace._src.core.avals import ShapedArray, aval_of_value
from xtrace._src.core.callables import function_name
from xtrace._src.core.primitive import with_rules_of_users
from xtrace._src.core.settings import compilation_cache_settings as cache_settings
from xtrace._src.core.settings import config
from xtrace._src.runtime import compilation_cache
from xtrace._src.runtime.arrays import ConcreteArray, get_layout
from xtrace._src.runtime.disk_cache import TRACE, DiskCache
from xtrace._src.runtime.execute import Program, request_partitioning
from xtrace._src.runtime.transfer import committed_sharding, current_device
from xtrace._src.transforms.scopes import current_scopes
from xtrace._src.xla import clients, versions
from xtrace._src.xla.executables import executables
from xtrace._src.xla.pytree_registry import PyTreeDef, make_treedef

if TYPE_CHECKING:
    from xtrace._src.api.jit.jitted import Jitted

_logger = logging.getLogger("xtrace")
# Part of every key; increase it with every change of the format.
_VERSION = 1


class KeptTrace:
    """The place of the trace of a function for a signature in the cache on disk."""

    def __init__(
        self, cache: DiskCache, jitted: Jitted, static: Static, in_tree: PyTreeDef, avals: Sequence[ShapedArray],
        leaves: Sequence[Any],
    ) -> None:
        self._cache, self._jitted, self._static, self._in_tree = cache, jitted, static, in_tree
        self._avals = list(map(record_aval, avals))
        self._places = [committed_sharding(leaf) for leaf in leaves]
        self._layouts = [str(get_layout(leaf)) if type(leaf) is ConcreteArray else None for leaf in leaves]
        self._key = self._make_key()

    def _make_key(self) -> bytes:
        jitted, made = self._jitted, Fingerprint()
        made.add(_environment(), "the environment")
        made.add(tuple(config.changed_settings(config.cache_key()).items()), "the settings")
        made.add(json.dumps([self._avals, [s and record_sharding(s) for s in self._places], self._layouts]))
        made.add(self._in_tree, "the arguments")
        made.add((self._static.positional, self._static.named), "the static arguments")
        made.add(tuple(jitted.options), "the options of jit")
        made.add((jitted.name, jitted.fun))
        return made.digest()

    def load(self) -> CompiledCall | None:
        """Return the compiled function; None if the trace or the program is not in the folder."""
        start = time.perf_counter()
        payload = compilation_cache.read_trace(self._cache, self._key)
        if payload is None:
            return None
        try:
            size = int.from_bytes(payload[:8], "little")
            record = json.loads(payload[8 : 8 + size])
            known = {d.id: d for d in clients.client(record["platform"]).devices()}
            reader = RecordReader(record, [known[number] for number in record["devices"]], False)
            described = reader.program(payload[8 + size :])
            out_tree = _read_tree(record["out tree"], _subtrees(self._in_tree))
            key = bytes.fromhex(record["program"])
            executable, code = compilation_cache.load_at(
                (self._cache, key), "", described.assignment.devices, record["options"], (), described.partitioned
            )
            if executable is None or code is None:
                return None
            program = described.load(executable, code)
            if (self._in_tree.num_leaves, out_tree.num_leaves) != (len(described.in_avals), len(described.out_avals)):
                raise ValueError("its structures have other numbers of leaves")
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError, RuntimeError) as error:
            self._cache.set_aside(self._key, kind=TRACE)
            if cache_settings.raise_errors.value:
                raise
            _logger.warning("a trace of %s in %s cannot be read: %s", self._jitted.name, self._cache.directory, error)
            return None
        paths = defer_argument_paths(self._jitted.fun, self._static, self._in_tree)
        traced = described.trace(self._in_tree, out_tree, paths)
        return CompiledCall(program, program, traced, (0.0, 0.0, time.perf_counter() - start))

    def describe(self, prepared: Prepared, compiled: CompiledCall) -> bytes | None:
        """Return the entry for a function that was traced and compiled; None if its program is not in the folder.

        Raises `UncertainError` if the function has side effects, or if tracing changed a value that it reads.
        """
        made, traced, program = prepared.compilation, prepared.traced, compiled.program
        if prepared.checks or compiled.upgrade is not None or not isinstance(program, Program):
            return None
        if program.callbacks or program.effects or traced.jaxpr.effects:
            raise UncertainError("it has side effects, or calls Python functions")
        if made.module.unusable_donations:
            raise UncertainError("it warns of donations")
        if self._make_key() != self._key:
            raise UncertainError("tracing changed a value that it reads")
        assignment = made.assignment.keep(made.kept)
        partitioned = request_partitioning(assignment, len(program.constants))
        key = compilation_cache.key_in_cache(
            self._cache, made.text, assignment.devices, made.options, (), partitioned
        )
        if key is None:
            return None
        record, constants = record_program(self._jitted.name, program, assignment, traced)
        options = executables.with_safe_fusions(made.text, assignment.device, made.options)
        record |= {
            "platform": assignment.device.platform, "program": key.hex(), "options": options,
            "out tree": _record_tree(traced.out_tree, {tree: i for i, tree in enumerate(_subtrees(self._in_tree))}),
        }
        head = json.dumps(record).encode()
        return len(head).to_bytes(8, "little") + head + constants

    def keep(self, payload: bytes, seconds: float) -> None:
        """Write the result of `describe`; `seconds` is the time of tracing and lowering."""
        compilation_cache.keep_trace(self._cache, self._key, payload, seconds)


def load_or_compile(
    jitted: Jitted, static: Static, in_tree: PyTreeDef, leaves: Sequence[Any], key: tuple[Any, ...]
) -> CompiledCall:
    """Return the compiled function of a signature: from a trace on disk, or traced, compiled and written to disk."""
    avals = abstract_leaves(jitted.fun, static, leaves, in_tree, aval_of_value)
    place = _find(jitted, static, in_tree, avals, leaves)
    compiled = place.load() if place is not None else None
    if compiled is not None:
        compilation_cache.count("trace_hits")
        if config.log_compiles.value:
            _logger.warning("Found the trace of %s on disk: it is neither traced nor lowered", jitted.name)
        # Tracing would have set the last signature.
        given = jitted.list_given_shardings(in_tree, None)[0]
        jitted.cache.find_trace(static, in_tree, apply_shardings_to_types(avals, given, leaves))
        return compiled
    prepared = jitted.prepare(static, in_tree, leaves, key, aval_of_value)
    compiled = jitted.compile(prepared)
    if place is not None:
        compilation_cache.count("trace_misses")
    if place is not None and isinstance(prepared, Prepared):
        try:
            payload = place.describe(prepared, compiled)
        except Exception as error:  # Methods of users' objects may raise any exception.
            _report(jitted, error)
            return compiled
        if payload is not None:
            place.keep(payload, prepared.traced.seconds + prepared.seconds)
    return compiled


def _find(
    jitted: Jitted, static: Static, in_tree: PyTreeDef, avals: Sequence[ShapedArray], leaves: Sequence[Any]
) -> KeptTrace | None:
    """Return the place of a function's trace; None if the settings exclude the cache, or without a certain digest."""
    if cache_settings.directory.value is None or not cache_settings.enabled.value:
        return None
    if cache_settings.include_locations.value or config.checks_numbers() or config.debug_key_reuse.value:
        return None
    if config.dump_ir_to.value or config.no_execution.value or config.check_tracer_leaks.value:
        return None
    cache = compilation_cache.open_cache()
    if cache is None:
        return None
    try:
        return KeptTrace(cache, jitted, static, in_tree, avals, leaves)
    except Exception as error:  # As above.
        _report(jitted, error)
        return None


def _report(jitted: Jitted, error: Exception) -> None:
    compilation_cache.count("trace_uncertain")
    if config.explain_cache_misses.value or config.log_compiles.value:
        _logger.warning("the trace of %s is not kept on disk: %s", function_name(jitted.fun), error)


def _environment() -> tuple[Any, ...]:
    """Return the values on which traces depend, except the function, its arguments and the settings."""
    if current_scopes():
        raise UncertainError("it is called inside of a scope")
    if with_rules_of_users:
        raise UncertainError(f"rules of {', '.join(sorted(with_rules_of_users))} were replaced in this process")
    device = current_device()
    client = device.client
    if len({d.process_index for d in client.devices()}) > 1:
        raise UncertainError("it runs in several processes")
    devices = tuple([(d.platform, d.id, d.device_kind) for d in client.devices()])
    machine = executables.describe_compilation("", [device], None, None)
    releases = versions.JAXLIB_VERSION_TEXT, sys.version, np.__version__, _sources(), __debug__
    return (_VERSION, releases, machine, device.id, devices, jax_is_xtrace())


@functools.cache
def _sources() -> str:
    """Return the names, sizes and modification times of the package's files."""
    files = []
    left = [os.path.dirname(sys.modules["xtrace"].__file__ or "")]
    while left:
        with os.scandir(left.pop()) as entries:
            for entry in entries:
                if entry.is_dir():
                    if entry.name != "__pycache__":
                        left.append(entry.path)
                elif entry.name.endswith(".py"):
                    state = entry.stat()
                    files.append((entry.path, state.st_size, state.st_mtime_ns))
    return repr(sorted(files))


def _subtrees(tree: PyTreeDef) -> list[PyTreeDef]:
    """Return the different subtrees of the arguments' structure, outermost first."""
    subtrees: dict[PyTreeDef, None] = {}

    def collect(each: PyTreeDef) -> None:
        if each not in subtrees:
            subtrees[each] = None
            for child in each.children():
                collect(child)

    collect(tree)
    return list(subtrees)


# Classes of nodes that a record can name; nodes of other classes must be part of the arguments' structure.
_NODES: dict[str, type] = {"tuple": tuple, "list": list, "dict": dict, "NoneType": type(None)}


def _record_tree(tree: PyTreeDef, known: dict[PyTreeDef, int]) -> Any:
    """Return a JSON record of a result's structure: the number of an equal subtree of the arguments, or a node."""
    number = known.get(tree)
    if number is not None:
        return number
    data = tree.node_data()
    if data is None:
        return "leaf"
    kind, metadata = data
    if _NODES.get(kind.__name__) is not kind:
        raise UncertainError(f"its result holds an object of {kind.__qualname__}, which is no part of an argument")
    if kind is dict and not all(type(key) in (str, int) for key in metadata):
        raise UncertainError("its result is a dictionary whose keys are neither texts nor integers")
    keys = list(metadata) if kind is dict else None
    return [kind.__name__, keys, [_record_tree(child, known) for child in tree.children()]]


def _read_tree(record: Any, known: Sequence[PyTreeDef]) -> PyTreeDef:
    if type(record) is int:
        return known[record]
    if record == "leaf":
        return make_treedef(None, [])
    name, keys, children = record
    return make_treedef((_NODES[name], keys), [_read_tree(child, known) for child in children])
