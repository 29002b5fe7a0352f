"""How large a compiled program is, read from what XLA says of it."""

import re
from typing import Any

_INSTRUCTION = re.compile(r"^\s+(?:ROOT )?%?[\w.-]+ = ", re.MULTILINE)


def instructions(compiled: Any) -> int:
    """How many instructions the optimised program has, those inside fusions and loops included."""
    return len(_INSTRUCTION.findall(compiled.as_text()))


def temporary_bytes(compiled: Any) -> int:
    """How much memory the program needs beside its arguments and results."""
    return int(compiled.memory_analysis().temp_size_in_bytes)
