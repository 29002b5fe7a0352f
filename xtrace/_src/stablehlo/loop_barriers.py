"""Barriers behind short ciphers: XLA's CPU compiler does not end for two of them in one loop.

XLA fuses the cipher that makes a key and the one that makes its numbers. LLVM's vectorizer visits all paths through
the operations of a loop that fits into one vector register: 2**20 for a cipher, 2**40 for two. A barrier ends the loop
after each cipher, which takes half a microsecond. The bits are the same.
"""

from __future__ import annotations

import re

from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder
from xtrace._src.stablehlo.repeated_calls import count_elements, count_executions
from xtrace._src.xla import versions

# A loop over fewer elements is written out. No register has more lanes for words.
_FEWEST_ELEMENTS, _MOST_LANES = 3, 16

_RETURN = re.compile("return (.*) : (.*)")


def add_barriers(module: ModuleBuilder, name: str, *, is_portable: bool) -> None:
    """End the loops of the functions `name`, ``name_1`` and so on, if several calls may be in one.

    is_portable: whether other releases of jaxlib may compile the module, and change its functions before.
    """
    if not (is_portable or versions.VECTORIZES_IN_EXPONENTIAL_TIME):
        return
    # Functions of the user's, which may have that name, are called by ``call``.
    called = re.compile(rf"func\.call @({name}(?:_\d+)?)\(")
    names = {callee for f in module.functions for line in f.lines for callee in called.findall(line)}
    times = count_executions(module)
    if sum([times[callee] for callee in names]) < 2:
        return
    for function in module.functions:
        if function.name in names and any(_may_fit_into_vector(module, kind) for kind in function.result_types):
            _add_barrier(function)


def _may_fit_into_vector(module: ModuleBuilder, kind: str) -> bool:
    """Return whether an array of the type `kind`, or each device's part of it, may fit into one vector register."""
    if "?" in kind:
        return True
    return _FEWEST_ELEMENTS <= count_elements(kind) <= _MOST_LANES * module.num_partitions


def _add_barrier(function: FunctionBuilder) -> None:
    returned = _RETURN.fullmatch(function.lines[-1])
    assert returned is not None, function.lines[-1]
    values, kinds = returned.groups()
    names = ", ".join([f"%last#{i}" for i in range(len(function.result_types))])
    function.lines[-1:] = [
        f"%last:{len(function.result_types)} = stablehlo.optimization_barrier {values} : {kinds}",
        f"return {names} : {kinds}",
    ]
    function.places.append(None)
