"""Compiled programs on concrete arrays."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.effects import NO_EFFECTS, Effects, has_consequences
from xtrace._src.runtime.arrays import ConcreteArray, deleted_message, describe_types, explain_failure, new_array
from xtrace._src.runtime.transfer import put_on, signature_on, to_input
from xtrace._src.xla import buffers, executables
from xtrace._src.xla.clients import Device


class Program:
    """An executable with the data for calling it.

    `kept` are the positions of the inputs the program reads; `hidden` are constants passed before them. `run` takes the
    kept inputs' arrays and returns a list of results. `callbacks` are Python functions it calls, and `effects` their
    side effects.
    """

    __slots__ = (
        "executable", "device", "out_avals", "hidden", "kept", "committed", "callbacks", "effects", "run", "handlers",
    )

    def __init__(
        self, executable: Any, device: Device, out_avals: Sequence[ShapedArray], *, hidden: Sequence[Any] = (),
        kept: Sequence[int] | None = None, committed: bool = False, callbacks: Sequence[Callable[..., Any]] = (),
        effects: Effects = NO_EFFECTS,
    ) -> None:
        self.callbacks, self.effects = callbacks, effects
        self.executable, self.device, self.out_avals = executable, device, list(out_avals)
        self.hidden = [put_on(x, device).buffer for x in hidden]
        self.kept, self.committed = kept, committed
        self.handlers = [buffers.result_handler(physical_aval(aval), device) for aval in self.out_avals]
        self.run = self._runner()

    def signatures_of_results(self) -> list[Any]:
        """What each result's `signature` is: committed to the device if an input was."""
        return [signature_on(aval, self.device, self.committed) for aval in self.out_avals]

    def _runner(self) -> Callable[[Sequence[ConcreteArray]], list[ConcreteArray]]:
        execute = self.executable.execute_sharded
        if self.callbacks and has_consequences(self.effects):
            ordered = any(e.ordered for e in self.effects)
            execute = importlib.import_module("xtrace._src.runtime.callbacks").executing(execute, ordered)
        handlers, collect_garbage = self.handlers, buffers.collect_garbage
        results = list(zip(self.out_avals, self.signatures_of_results(), strict=True))
        hidden = self.hidden
        float0 = [aval for aval in self.out_avals if aval.dtype == dtypes.float0]
        if len(results) == 1 and not hidden and not float0:
            ((only_aval, only_signature),) = results

            def run_one(arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
                (buffer,) = execute([x.buffer for x in arrays]).consume_with_handlers(handlers)
                collect_garbage()
                array = ConcreteArray()
                array.aval, array.buffer, array.signature = only_aval, buffer, only_signature
                return [array]

            return run_one

        def run(arrays: Sequence[ConcreteArray]) -> list[ConcreteArray]:
            out = execute([*hidden, *[x.buffer for x in arrays]]).consume_with_handlers(handlers)
            collect_garbage()
            return [new_array(aval, b, signature) for (aval, signature), b in zip(results, out, strict=True)]

        def run_with_float0(arrays: Sequence[ConcreteArray]) -> list[Any]:
            return [x if x.aval not in float0 else np.zeros(x.shape, dtypes.float0) for x in run(arrays)]

        return run_with_float0 if float0 else run

    def __call__(self, values: Sequence[Any], names: Callable[[], Sequence[str]] | None = None) -> list[ConcreteArray]:
        """Call with all inputs, of any kind that `to_concrete` takes; `names` gives their names for errors."""
        if self.kept is not None:
            values = [values[i] for i in self.kept]
        device = self.device
        for position, value in enumerate(values):
            if type(value) is ConcreteArray and value.is_deleted():
                raise RuntimeError(f"argument {self._name(position, names)}: {deleted_message(value.aval)}")
        if any(buffer.is_deleted() for buffer in self.hidden):
            raise RuntimeError(
                "an array that the function closes over has been deleted, by delete() or by a donation "
                "(donate_argnums). Pass it as an argument, or keep it"
            )
        arrays = []
        for position, value in enumerate(values):
            try:
                arrays.append(to_input(value, device))
            except OverflowError as error:
                raise OverflowError(f"argument {self._name(position, names)}: {error}") from None
        arrays = [x if x.device is device else put_on(x, device) for x in arrays]
        try:
            return self.run(arrays)
        except Exception as error:
            name = self.executable.hlo_modules()[0].name
            explain_failure(
                error, f"the program {name} on {device}, whose results are {describe_types(self.out_avals)}"
            )
            raise

    def _name(self, position: int, names: Callable[[], Sequence[str]] | None) -> str:
        index = self.kept[position] if self.kept is not None else position
        return names()[index] if names is not None else str(index)


def compile_program(
    text: str, device: Device, out_avals: Sequence[ShapedArray], compiler_options: Mapping[str, Any] | None = None, *,
    callbacks: Sequence[Callable[..., Any]] = (), **details: Any,
) -> Program:
    """Compile StableHLO text for `device`, which calls `callbacks` by their places."""
    executable = executables.compile_text(text, device, compiler_options, callbacks)
    return Program(executable, device, out_avals, callbacks=callbacks, **details)
