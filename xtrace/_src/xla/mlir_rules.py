"""Operations built with jaxlib's MLIR objects as text, and text as operations."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib.mlir import ir as ir
from jaxlib.mlir.dialects import func, sdy, stablehlo

from xtrace._src.xla import modules


class RuleFunction(NamedTuple):
    """A function as text: its name, the types of its arguments and results, its body, and the values it returns."""

    name: str
    argument_types: list[str]
    result_types: list[str]
    lines: list[str]
    returned: list[str]


_numbers = itertools.count()


def functions_of_rule(
    name: str, build: Callable[[Sequence[Any]], Any], in_types: Sequence[str], out_types: Sequence[str]
) -> list[RuleFunction]:
    """Return a function whose operations ``build(arguments)`` makes, the last one, after those that it calls.

    The arguments of each are %arg0, %arg1, …

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
        called = [each for each in module.body.operations if each.operation != function.operation]
        return [_text_of(each) for each in (*called, function)]


def _text_of(function: Any) -> RuleFunction:
    lines = str(function.operation.get_asm(assume_verified=True)).splitlines()
    body = [line.strip() for line in lines[1:-1] if line.strip()]
    names = re.findall(r"%[\w#]+", body.pop().partition(":")[0])
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    name = ir.StringAttr(function.attributes["sym_name"]).value
    return RuleFunction(name, list(map(str, kind.inputs)), list(map(str, kind.results)), body, names)


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
    functions = list(parsed.body.operations)
    for function in functions:
        old = ir.StringAttr(function.attributes["sym_name"]).value
        ir.SymbolTable.replace_all_symbol_uses(old, f"{old}_{number}", parsed.operation)
        function.attributes["sym_name"] = ir.StringAttr.get(f"{old}_{number}")
        function.attributes["sym_visibility"] = ir.StringAttr.get("private")
    target, wanted, called = body.regions[0].blocks[0], f"{name}_{number}", None
    for function in functions:
        clone = function.operation.clone(ir.InsertionPoint.at_block_begin(target))
        if ir.StringAttr(clone.attributes["sym_name"]).value == wanted:
            called = clone
    assert called is not None
    types = ir.FunctionType(ir.TypeAttr(called.attributes["function_type"]).value).results
    call = func.CallOp(types, ir.FlatSymbolRefAttr.get(wanted), list(operands))
    return list(call.results)


def constant(attribute: str) -> Any:
    """Build the constant that the text of an attribute writes, at the insertion point in force."""
    return stablehlo.constant(ir.Attribute.parse(attribute))


def constrain(value: Any, sharding: str) -> Any:
    """Build the value split as the text of a sharding says, with its mesh in it."""
    return sdy.sharding_constraint(value, ir.Attribute.parse(f"#sdy.sharding{sharding}"))


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
