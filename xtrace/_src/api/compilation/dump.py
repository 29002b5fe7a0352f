"""The files of the setting ``jax_dump_ir_to``: the inputs and outputs of each compilation."""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable

from xtrace._src.api.pages.jaxpr_page import make_page
from xtrace._src.api.reports.equation_profile import write_profile
from xtrace._src.core.diagnostics.warn import warn_user
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.core.settings import config
from xtrace._src.transforms.lower import LoweredModule
from xtrace._src.xla.executables import executables

_numbers = itertools.count()


class Files:
    """The files of one compilation: ``xtrace_irNNNN_MODULE`` with an ending for each kind of content.

    A missing directory is made. A file that cannot be written is left out, with a warning.
    """

    def __init__(self, directory: str, module: str) -> None:
        self.directory, self.name = directory, f"xtrace_ir{next(_numbers):04d}_{module[:100]}"
        self.modes = config.dump_ir_modes.value.split(",")

    def write_source(self, closed: ClosedJaxpr, module: LoweredModule) -> None:
        """Write the jaxpr, as a text, a page and a profile of the user's lines, and the StableHLO, with locations."""
        lines = config.include_debug_info_in_dumps.value
        self._write("jaxpr", ".jaxpr.txt", lambda: closed.pretty_print(source_info=lines, name_stack=True))
        self._write("stablehlo", ".mlir", lambda: module.text(debug_info=lines))
        address = config.source_url_schema.value
        self._write("jaxpr_html", ".jaxpr.html", lambda: make_page(closed, module.builder.name, address, lines))
        self._write("eqn_count_pprof", ".eqn_count_pprof", lambda: write_profile(closed.jaxpr, module.builder.name))

    def write_program(self, executable: executables.LoadedExecutable) -> None:
        """Write XLA's optimised program."""
        self._write("hlo", ".hlo.txt", lambda: executables.hlo_text(executable))

    def _write(self, mode: str, ending: str, content: Callable[[], str | bytes]) -> None:
        if mode not in self.modes:
            return
        path = os.path.join(self.directory, self.name + ending)
        try:
            os.makedirs(self.directory, exist_ok=True)
            data = content()
            with open(path, "wb") as file:
                file.write(data if isinstance(data, bytes) else f"{data.rstrip()}\n".encode())
        except OSError as error:
            warn_user(
                f"jax_dump_ir_to (XTRACE_DUMP_IR_TO): {path} cannot be written: {error}. The computation goes on "
                "without it; name a directory that can be written to."
            )
