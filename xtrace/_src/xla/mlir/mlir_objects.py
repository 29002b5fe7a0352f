"""Conversions between operations as jaxlib's MLIR objects, which users' rules build, and operations as text."""

from __future__ import annotations

import io
import itertools
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from jaxlib import _jax
from jaxlib.mlir import ir as ir
from jaxlib.mlir.dialects import func, sdy, stablehlo

from xtrace._src.xla.mlir import modules

Token = Value = ir.Value


class RuleFunction(NamedTuple):
    """A function as text: its name, the types of its arguments and results, its body, and the values it returns."""

    name: str
    argument_types: list[str]
    result_types: list[str]
    lines: list[str]
    returned: list[str]


class Surroundings(NamedTuple):
    """The objects for building MLIR: the context, the module, the insertion point of functions, and their names."""

    context: Any
    module: Any
    ip: Any
    symbol_table: Any


def new_surroundings(module: Any = None) -> Surroundings:
    """Return the surroundings for building functions in a module; None for a new module."""
    with modules.context() if module is None else module.context as context, ir.Location.unknown():
        module = ir.Module.create() if module is None else module
        return Surroundings(context, module, ir.InsertionPoint(module.body), ir.SymbolTable(module.operation))


def write_rule_functions(
    name: str, build: Callable[[Surroundings, Sequence[Any]], Any], in_types: Sequence[str], out_types: Sequence[str]
) -> list[RuleFunction]:
    """Return the function with the operations of ``build(surroundings, arguments)``, preceded by those that it calls.

    The arguments of each are %arg0, %arg1, … Raises TypeError if the rule returns no values, or values of other types,
    and NotImplementedError if it adds other operations than functions to the module.
    """
    within = new_surroundings()
    with within.context, ir.Location.unknown():
        types = [ir.Type.parse(t) for t in in_types]
        wanted = [ir.Type.parse(t) for t in out_types]
        with within.ip:
            function = func.FuncOp("rule", (types, wanted))
            block = function.add_entry_block()
        within = within._replace(symbol_table=ir.SymbolTable(within.module.operation))
        with ir.InsertionPoint(block):
            returned = build(within, list(block.arguments))
            try:
                results = flatten(returned)
            except TypeError:
                raise TypeError(
                    f"the lowering rule of {name} must return an MLIR value, or a sequence of MLIR values, for the "
                    f"primitive's results of types ({', '.join(map(str, wanted))}); got {returned!r}"
                ) from None
            made = [r.type for r in results]
            if made != wanted:
                raise TypeError(
                    f"the lowering rule of {name} returned values of types ({', '.join(map(str, made))}), and the "
                    f"primitive's results have the types ({', '.join(map(str, wanted))})"
                )
            func.ReturnOp(results)
        within.module.operation.verify()
        return [_write_as_text(each) for each in _sort_by_calls(name, within.module, function)]


def write_module_functions(module: Any, last: Any) -> list[RuleFunction]:
    """Return the functions of a module as text, each after those that it calls, and `last` at the end."""
    return [_write_as_text(each) for each in _sort_by_calls("main", module, last)]


# A name of a function in the text of an operation, but not that of a custom call's handler.
SYMBOL = re.compile(r"""(?<!custom_call )@"?((?<=")[^"]+|[\w.$-]+)"?""")


def rename_symbols(line: str, names: Mapping[str, str]) -> str:
    """Return the text of an operation with other names for the functions in `names`."""
    return SYMBOL.sub(lambda match: f"@{names[match[1]]}" if match[1] in names else match[0], line)


def _sort_by_calls(name: str, module: Any, last: Any) -> list[Any]:
    """Return the functions of a module, each after those that it names."""
    functions = {}
    for each in module.body.operations:
        if not isinstance(each, func.FuncOp):
            raise NotImplementedError(
                f"the lowering rule of {name} added the operation {each.operation.name} to the module; only functions "
                "can be added"
            )
        functions[ir.StringAttr(each.attributes["sym_name"]).value] = each
    ordered: dict[str, Any] = {}
    entered: set[str] = set()

    def visit(symbol: str) -> None:
        if symbol in ordered or symbol not in functions:
            return
        if symbol in entered:
            # Recursion aborts XLA.
            raise ValueError(f"the function {symbol} of the module calls itself, which no program on a device can do")
        entered.add(symbol)
        # The first line names the function itself.
        text = str(functions[symbol].operation.get_asm(assume_verified=True))
        for called in SYMBOL.findall(text.partition("\n")[2]):
            visit(called)
        ordered[symbol] = functions[symbol]

    for symbol in functions:
        if symbol != ir.StringAttr(last.attributes["sym_name"]).value:
            visit(symbol)
    visit(ir.StringAttr(last.attributes["sym_name"]).value)
    return list(ordered.values())


def _write_as_text(function: Any) -> RuleFunction:
    lines = str(function.operation.get_asm(assume_verified=True)).splitlines()
    body = [line.strip() for line in lines[1:-1] if line.strip()]
    names = re.findall(r"%[\w#]+", body.pop().partition(":")[0])
    kind = ir.FunctionType(ir.TypeAttr(function.attributes["function_type"]).value)
    name = ir.StringAttr(function.attributes["sym_name"]).value
    return RuleFunction(name, list(map(str, kind.inputs)), list(map(str, kind.results)), body, names)


def flatten(results: Any) -> list[Any]:
    """Return the values in a rule's results: a value, an operation, or a sequence of these; TypeError for others."""
    if isinstance(results, ir.Value):
        return [results]
    if isinstance(results, (ir.Operation, ir.OpView)):
        return list(results.results)
    if isinstance(results, (str, bytes)):
        raise TypeError(f"{results!r} is no MLIR value")
    return [value for each in results for value in flatten(each)]


def add_functions(
    parsed: Any, module: Any, table: Any, names: Mapping[str, str], left: str | None = None
) -> dict[str, Any]:
    """Copy the functions of the module `parsed` to another one, as private functions; return them by old names.

    names: new names of some; a number is appended to a name that is taken. left: the function that is not copied; it
    calls the copies.
    """
    functions = {ir.StringAttr(f.attributes["sym_name"]).value: f for f in parsed.body.operations}
    taken = set(functions)
    for old, function in functions.items():
        wanted = new = names.get(old, old)
        numbers = itertools.count()
        while old != left and (new in table or (new in taken and new != old)):
            new = f"{wanted}_{next(numbers)}"
        taken.add(new)
        if new != old:
            ir.SymbolTable.replace_all_symbol_uses(old, new, parsed.operation)
            function.attributes["sym_name"] = ir.StringAttr.get(new, context=parsed.context)
        function.attributes["sym_visibility"] = ir.StringAttr.get("private", context=parsed.context)
    copies = {}
    place = ir.InsertionPoint(module.body)
    for old, function in functions.items():
        if old == left:
            copies[old] = function
        else:
            copies[old] = function.operation.clone(place).opview
            table.insert(copies[old].operation)
    return copies


def call_function(function: Any, operands: Sequence[Any]) -> list[Any]:
    """Build the call of a function, and return its results."""
    return list(func.CallOp(function, list(operands)).results)


def inline_function(function: Any, operands: Sequence[Any]) -> list[Any]:
    """Move the operations of a function to the current insertion point, and return its results."""
    block = function.entry_block
    for argument, operand in zip(block.arguments, operands, strict=True):
        argument.replace_all_uses_with(operand)
    *body, last = list(block.operations)
    place: Any = ir.InsertionPoint.current
    for each in body:
        each.operation.detach_from_parent()
        place.insert(each.operation)
    return list(last.operands)


def merge_modules(target: Any, table: Any, source: Any, name: str) -> str:
    """Copy the functions of a module to another one; return the new name of its ``main``, which begins with `name`."""
    given = source if source.context == target.context else ir.Module.parse(str(source), context=target.context)
    with target.context, ir.Location.unknown():
        moved = add_functions(given, target, table or ir.SymbolTable(target.operation), {"main": name})
    return str(ir.StringAttr(moved["main"].attributes["sym_name"]).value)


def create_token() -> Any:
    """Build a token."""
    return stablehlo.create_token()


def concatenate_scalars(values: Sequence[Any]) -> Any:
    """Build the vector of 32-bit integers from scalars: Python integers, and values of rank 0."""
    kind = ir.IntegerType.get_signless(32)
    one = ir.RankedTensorType.get([1], kind)
    if not values:
        return stablehlo.constant(ir.DenseElementsAttr.get(np.zeros(0, np.int32).data, type=kind))
    if all(isinstance(x, int) for x in values):
        return stablehlo.constant(ir.DenseElementsAttr.get(np.array(values, np.int32).data))
    parts = []
    for value in values:
        if isinstance(value, int):
            parts.append(stablehlo.constant(ir.DenseElementsAttr.get(np.array([value], np.int32).data)))
        else:
            scalar = stablehlo.convert(ir.RankedTensorType.get([], kind), value)
            parts.append(stablehlo.reshape(one, scalar))
    return stablehlo.concatenate(parts, ir.IntegerAttr.get(ir.IntegerType.get_signless(64), 0))


def get_token_type(context: Any) -> Any:
    """Return the type of tokens in a context; None is the context of all parsed modules."""
    return stablehlo.TokenType.get(modules.context() if context is None else context)


def parse_attribute(text: str) -> Any:
    """Return the MLIR attribute of a text."""
    with modules.context():
        return ir.Attribute.parse(text)


def list_function_names(module: Any) -> list[str]:
    """Return the names of the functions of a module."""
    return [ir.StringAttr(f.attributes["sym_name"]).value for f in module.body.operations if isinstance(f, func.FuncOp)]


def describe_module(module: Any, name: str, num_partitions: int) -> None:
    """Set the name of a module, and the number of devices over which its program is partitioned."""
    with module.context:
        number = ir.IntegerType.get_signless(32)
        attributes = module.operation.attributes
        attributes["sym_name"] = ir.StringAttr.get(name)
        attributes["mhlo.num_partitions"] = ir.IntegerAttr.get(number, num_partitions)
        attributes["mhlo.num_replicas"] = ir.IntegerAttr.get(number, 1)


def make_public(function: Any) -> None:
    """Make a function public, so that it can be the entry of a program."""
    function.attributes["sym_visibility"] = ir.StringAttr.get("public", context=function.context)


def custom_call(operands: Sequence[Any], result_types: Sequence[str], attributes: Mapping[str, Any]) -> Any:
    """Build a call of a handler; an attribute is MLIR's or its text."""
    parsed = {key: ir.Attribute.parse(x) if isinstance(x, str) else x for key, x in attributes.items()}
    types = [ir.Type.parse(t) for t in result_types]
    made = ir.Operation.create("stablehlo.custom_call", results=types, operands=list(operands), attributes=parsed)
    return made.opview


# The registry for trees of MLIR values and types, which are tuples and lists.
ir_tree_registry: Any = _jax.pytree.PyTreeRegistry(
    enable_none=False, enable_tuple=True, enable_namedtuple=False, enable_list=True, enable_dict=False
)


def constant(attribute: str) -> Any:
    """Build a constant from the text of its attribute, at the current insertion point."""
    return stablehlo.constant(ir.Attribute.parse(attribute))


def constrain(value: Any, sharding: str) -> Any:
    """Build the sharding constraint of a value; the text of the sharding includes its mesh."""
    return sdy.sharding_constraint(value, ir.Attribute.parse(f"#sdy.sharding{sharding}"))


def parse_type(text: str) -> Any:
    """Return the MLIR type of a text."""
    with modules.context():
        return ir.Type.parse(text)


def element_type(text: str) -> Any:
    """Return the type of the elements of a tensor type."""
    return ir.RankedTensorType(parse_type(text)).element_type


def integer_attribute(width: int, value: int) -> Any:
    """Return the attribute of an integer of `width` bits."""
    with modules.context():
        return ir.IntegerAttr.get(ir.IntegerType.get_signless(width), value)


def dense_elements(values: Sequence[int]) -> Any:
    """Return the attribute of a vector of integers."""
    with modules.context():
        return ir.DenseIntElementsAttr.get(np.asarray(values, np.int64).data)


def dense_array(values: Sequence[int]) -> Any:
    """Return the attribute of an array of integers."""
    with modules.context():
        return ir.DenseI64ArrayAttr.get(list(values))


def bytecode(module: Any) -> bytes:
    """Return a module as MLIR's bytecode."""
    output = io.BytesIO()
    module.operation.write_bytecode(file=output)
    return output.getvalue()
