"""Operations built with jaxlib's MLIR objects as text, and text as operations."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir
from jaxlib.mlir.dialects import func, stablehlo

from xtrace._src.xla import modules


class RuleFunction(NamedTuple):
    """The lines of a function's body, and the names of the values that it returns."""

    lines: list[str]
    returned: list[str]


_numbers = itertools.count()


def function_of_rule(
    name: str, build: Callable[[Sequence[Any]], Any], in_types: Sequence[str], out_types: Sequence[str]
) -> RuleFunction:
    """Return the body of a function whose operations ``build(arguments)`` makes; its arguments are %arg0, %arg1, …

    TypeError if the rule returns other types.
    """
    with modules.context(), ir.Location.unknown():
        module = ir.Module.create()
        types = [ir.Type.parse(t) for t in in_types]
        wanted = [ir.Type.parse(t) for t in out_types]
        with ir.InsertionPoint(module.body):
            function = func.FuncOp("rule", (types, wanted))
            block = function.add_entry_block()
        with ir.InsertionPoint(block):
            results = flatten(build(list(block.arguments)))
            made = [r.type for r in results]
            if made != wanted:
                raise TypeError(
                    f"the lowering rule of {name} returned values of types ({', '.join(map(str, made))}), and the "
                    f"primitive's results have the types ({', '.join(map(str, wanted))})"
                )
            func.ReturnOp(results)
        module.operation.verify()
        lines = str(function.operation.get_asm(assume_verified=True)).splitlines()
    body = [line.strip() for line in lines[1:-1] if line.strip()]
    last = body.pop()
    names = re.findall(r"%[\w#]+", last.partition(":")[0])
    return RuleFunction(body, names)


def flatten(results: Any) -> list[Any]:
    """Return the values that a rule returns: one, an operation's, or a sequence of these."""
    if isinstance(results, ir.Value):
        return [results]
    if isinstance(results, (ir.Operation, ir.OpView)):
        return list(results.results)
    return [value for each in results for value in flatten(each)]


def inline_text(text: str, name: str, operands: Sequence[Any]) -> list[Any]:
    """Add a module's functions to the module that is being built, and call the one called `name`."""
    parsed = ir.Module.parse(text)
    block = ir.InsertionPoint.current.block
    body = block.owner
    while body.parent is not None and body.name != "builtin.module":
        body = body.parent
    number = next(_numbers)
    symbols = ir.SymbolTable(parsed.operation)
    renamed = {}
    for function in list(parsed.body.operations):
        old = ir.StringAttr(function.attributes["sym_name"]).value
        renamed[old] = f"{old}_{number}"
    for old, new in renamed.items():
        ir.SymbolTable.replace_all_symbol_uses(old, new, parsed.operation)
        ir.SymbolTable.set_symbol_name(symbols[old], new)
        ir.SymbolTable.set_visibility(symbols[new] if new in symbols else symbols[old], "private")
    target = body.regions[0].blocks[0]
    called = None
    for function in list(parsed.body.operations):
        clone = function.operation.clone(ir.InsertionPoint.at_block_begin(target))
        if ir.StringAttr(clone.attributes["sym_name"]).value == renamed[name]:
            called = clone
    assert called is not None
    types = ir.FunctionType(ir.TypeAttr(called.attributes["function_type"]).value).results
    call = func.CallOp(types, ir.FlatSymbolRefAttr.get(renamed[name]), list(operands))
    return list(call.results)


def constant(attribute: str) -> Any:
    """Build the constant that the text of an attribute writes, at the insertion point in force."""
    return stablehlo.constant(ir.Attribute.parse(attribute))


def parse_type(text: str) -> Any:
    """Return the MLIR type that a text writes."""
    with modules.context():
        return ir.Type.parse(text)


def element_type(text: str) -> Any:
    """Return the type of the elements of a tensor type."""
    return ir.RankedTensorType(parse_type(text)).element_type


def integer_attribute(width: int, value: int) -> Any:
    """Return the attribute of an integer of so many bits."""
    with modules.context():
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(width), value)


def dense_elements(values: Sequence[int]) -> Any:
    """Return the attribute of a vector of integers."""
    with modules.context():
        return ir.DenseIntElementsAttr.get(np.asarray(values, np.int64))


def dense_array(values: Sequence[int]) -> Any:
    """Return the attribute of an array of integers."""
    with modules.context():
        return ir.DenseI64ArrayAttr.get(np.asarray(values, np.int64))


def bytecode(module: Any) -> bytes:
    """Return a module as MLIR's bytecode."""
    output = io.BytesIO()
    module.operation.write_bytecode(file=output)
    return output.getvalue()
