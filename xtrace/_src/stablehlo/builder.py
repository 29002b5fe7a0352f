"""Builders of StableHLO text: a function is a list of lines, each with its source location."""

from __future__ import annotations

import itertools
import math
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from xtrace._src.core import dtypes
from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.diagnostics.positions import Annotation, Position, resolve
from xtrace._src.core.errors import InconclusiveDimensionOperation
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.mesh import BaseMesh, Mesh
from xtrace._src.core.shardings.partition_spec import PartitionSpec
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding, insert_entry, open_dimensions
from xtrace._src.stablehlo import attributes, symbolic_sizes
from xtrace._src.stablehlo.shardy import Meshes
from xtrace._src.xla import versions

_Place = tuple[Position | None, str]

# XLA aborts the process when it concatenates or sorts two-bit elements.
_WIDENED = {dtypes.int2: dtypes.int8, dtypes.uint2: dtypes.uint8}


class Value:
    """An SSA value: its name, such as ``%3``, and its type."""

    __slots__ = ("name", "aval")

    def __init__(self, name: str, aval: ShapedArray) -> None:
        self.name, self.aval = name, aval

    @property
    def type(self) -> str:
        """The StableHLO type."""
        return self.aval.mlir_type

    def to_physical(self) -> Value:
        """This value under its physical type: an element of an extended dtype is an array."""
        return self.bitcast(physical_aval(self.aval))

    def bitcast(self, aval: ShapedArray) -> Value:
        """This value under the type `aval`, which has the same physical type; writes no operation."""
        return self if aval is self.aval else Value(self.name, aval)


class Constant(Value):
    """A scalar constant, written when its name is first read: its use may need it only broadcast to a shape."""

    __slots__ = ("builder", "text")

    def __init__(self, builder: FunctionBuilder, text: str, aval: ShapedArray) -> None:
        self.builder, self.text, self.aval = builder, text, aval

    @property
    def name(self) -> str:  # type: ignore[override]
        """The value's name in the text; asking for it writes the constant."""
        return self.builder.constant_line(self.text, self.aval).name


class Locations:
    """The distinct source locations of one module, numbered; each is written once, as an alias."""

    def __init__(self) -> None:
        self.numbers: dict[_Place, int] = {}

    def alias(self, place: _Place) -> str:
        """The reference to `place`, such as ``loc(#loc3)``."""
        number = self.numbers.setdefault(place, len(self.numbers) + 1)
        return f"loc(#loc{number})"

    def definitions(self) -> list[str]:
        """The lines that define the aliases."""
        return [f"#loc{number} = {location_text(place)}" for place, number in self.numbers.items()]


def location_text(place: _Place, caller: str = "") -> str:
    """Return a place as an MLIR location; `caller` is the location of the call of the user's code, if any."""
    position, name = place
    if position is None:
        return f"loc({attributes.string(name)})"
    at, pattern = resolve(position), config.source_file_regex.value
    columns = f"{at.line}:{at.column + 1}"
    if (at.end_line, at.end_column) > (at.line, at.column):
        end = f"{at.end_line}:{at.end_column + 1}" if at.end_line != at.line else f":{at.end_column + 1}"
        columns += f" to {end}"
    file = re.sub(pattern, "", at.file) if pattern else at.file
    # XLA reads the outer name as the operation's and the inner one as the Python function's.
    text = f"{attributes.string(at.function)}({attributes.string(file)}:{columns})"
    return f"loc({attributes.string(name)}({f'callsite({text} at {caller})' if caller else text}))"


def symbol(text: str) -> str:
    """Return `text` with other characters replaced, as a symbol name that MLIR reads without quotes."""
    name = "".join(c if c.isascii() and (c.isalnum() or c in "_.$") else "_" for c in text) or "function"
    return "_" + name if name[0].isdigit() or name[0] in "$." else name


class ModuleBuilder:
    """A module: the public function ``main`` and its private functions; equal functions are written once."""

    def __init__(self, name: str, platform: str, *, num_partitions: int = 1) -> None:
        self.name, self.platform, self.num_partitions = name, platform, num_partitions
        self.functions: list[FunctionBuilder] = []
        self._by_body: dict[tuple[str, ...], str] = {}
        # Taken names, each with the suffix to try first for the next function of that name.
        self._names: dict[str, int] = {"main": 1}
        self.memo: dict[Any, Any] = {}
        # The program calls Python functions by their index in this list.
        self.callbacks: list[Callable[..., Any]] = []
        self._callback_places: dict[Any, int] = {}
        # The mesh of a partitioned program.
        self.mesh: Mesh | None = None
        # Whether some axis of that mesh is explicit.
        self.is_explicit = False
        # The meshes that the text declares.
        self.meshes = Meshes()
        # The mesh of the enclosing manual computation, whose axes collectives name.
        self.manual_mesh: BaseMesh | None = None
        # The device's indices along axes of that mesh, if it is manual over only some axes.
        self.axis_indices: dict[Any, Value] = {}
        # Numbers of channels between the device and the host; XLA uses the lower ones.
        self.channel = itertools.count(2).__next__
        # The variables of symbolic dimensions; private functions take their values as first arguments.
        self.variables: tuple[str, ...] = ()

    def make_nested(self) -> ModuleBuilder:
        """Return a builder for functions to be merged into this module; it shares the list of callbacks."""
        made = ModuleBuilder("rule", self.platform, num_partitions=self.num_partitions)
        made.mesh, made.manual_mesh, made.is_explicit = self.mesh, self.manual_mesh, self.is_explicit
        made.callbacks, made._callback_places, made.channel = self.callbacks, self._callback_places, self.channel
        return made

    def inlined_text(self) -> str:
        """Return the module's text with meshes written into the shardings instead of declared."""
        bodies = [line for f in self.functions for line in f.text_lines(None)]
        return self.meshes.inline("\n".join([f"module @{self.name} {{", *bodies, "}"]))

    def callback(self, key: Any, make: Callable[[], Callable[..., Any]]) -> int:
        """Return the index of the Python function known by `key`; an unknown key adds ``make()``."""
        place = self._callback_places.get(key)
        if place is None:
            place = self._callback_places[key] = len(self.callbacks)
            self.callbacks.append(make())
        return place

    def unique_name(self, base: str) -> str:
        """Return a function name that starts with `base` and is not taken."""
        base = name = symbol(base)
        while name in self._names:
            name = f"{base}_{self._names[base]}"
            self._names[base] += 1
        return name

    def has_function(self, name: str) -> bool:
        """Return whether a function is called `name`."""
        return name in self._names

    def add_private(self, function: FunctionBuilder, base: str) -> str:
        """Add a finished function under a name made from `base`, or return the name of an equal one."""
        body = (*(f"{v.name}: {v.type}" for v in function.arguments), *function.lines)
        name = self._by_body.get(body)
        if name is None:
            name = self._by_body[body] = function.name = self.unique_name(base)
            self._names[name] = 1
            self.functions.append(function)
        return name

    def device_groups(self, axes: Sequence[Any], groups: Sequence[Sequence[int]] | None = None) -> list[list[int]]:
        """Return the groups of devices that differ only along `axes`, each in row-major order of `axes`.

        groups: a partition of the indices along `axes` into smaller groups; None for one group.
        """
        mesh = self.manual_mesh
        assert mesh is not None
        places = [mesh.axis_names.index(axis) for axis in axes]
        rest = [i for i in range(len(mesh.axis_names)) if i not in places]
        count = math.prod([mesh.axis_sizes[i] for i in places])
        numbers = np.arange(mesh.size).reshape(mesh.axis_sizes).transpose(*rest, *places).reshape(-1, count)
        if groups is None:
            return numbers.tolist()
        return [[row[i] for i in group] for row in numbers.tolist() for group in groups]

    def finish(self) -> None:
        """Break the reference cycles of the finished module, so that it is freed without the garbage collector."""
        self.memo.clear()
        for function in self.functions:
            del function.module

    def text(self, debug_info: bool = False) -> str:
        """Return the module's text, with locations if `debug_info`."""
        return self.text_with(Locations() if debug_info else None)

    def text_with(self, locations: Locations | None) -> str:
        """Return the module's text; with `locations`, lines refer to their aliases, which the text defines last."""
        bodies = [line for f in self.functions for line in f.text_lines(locations)]
        symbolic = "jax.uses_shape_polymorphism = true, " if self.variables else ""
        head = (
            f"module @{self.name} attributes {{{symbolic}mhlo.num_partitions = {self.num_partitions} : i32, "
            "mhlo.num_replicas = 1 : i32} {"
        )
        tail = locations.definitions() if locations is not None else []
        return "\n".join([head, *self.meshes.declarations(), *bodies, "}", *tail, ""])


class FunctionBuilder:
    """One function, or one region, being written. Emission rules call `op`, `line` and `constant`."""

    __slots__ = (
        "module", "name", "arguments", "argument_attributes", "argument_names", "result_names", "result_types",
        "result_attributes", "lines", "places", "place", "result", "results", "public", "number", "_constants",
        "_broadcast_constants", "scope", "tokens", "annotations", "sizes",
    )

    def __init__(self, module: ModuleBuilder, name: str, scope: str, *, public: bool = False) -> None:
        self.module, self.name, self.scope, self.public = module, name, scope, public
        self.arguments: list[Value] = []
        self.argument_attributes: list[str] = []
        # The user's names of the last arguments, evaluated only to write locations.
        self.argument_names: Callable[[], Sequence[str]] = tuple
        # The user's names of the results, evaluated only to write text.
        self.result_names: Callable[[], Sequence[str]] = tuple
        self.result_types: list[str] = []
        self.result_attributes: list[str] = []
        self.lines: list[str] = []
        self.places: list[_Place | None] = []
        self.place: _Place | None = None
        self.results: Sequence[ShapedArray] = ()
        self.number = itertools.count().__next__
        self._constants: dict[tuple[str, str, tuple[int, ...]], Value] = {}
        self._broadcast_constants: dict[tuple[str, ShapedArray, tuple[int, ...]], Value] = {}
        # The token that the next operation of each ordered effect takes.
        self.tokens: dict[Any, Value] = {}
        # Frontend attributes of the operations that are written next.
        self.annotations: tuple[Annotation, ...] = ()
        # The values of symbolic dimensions, of their factors, and of variables by name.
        self.sizes: dict[Any, Value] = {}

    @property
    def platform(self) -> str:
        """The platform the module is for: ``cpu``, ``cuda``, ``tpu``."""
        return self.module.platform

    def path(self, name: str) -> str:
        """Return the name of an operation inside of its scopes, as profiles show it."""
        return f"{self.scope}/{name}" if self.scope else name

    def name_next(self, name: str) -> None:
        """Name the operations that are written next `name`, inside of the scope, if locations are recorded."""
        if self.place is not None:
            self.place = self.place[0], self.path(name) if name else self.scope

    def argument(self, aval: ShapedArray, attribute_text: str = "") -> Value:
        """Add an argument of type `aval`."""
        value = Value(f"%arg{len(self.arguments)}", aval)
        self.arguments.append(value)
        self.argument_attributes.append(attribute_text)
        return value

    def take_sizes(self) -> None:
        """Add an argument for the value of each variable of symbolic dimensions, as private functions take them."""
        kind = symbolic_sizes.size_type()
        for name in self.module.variables:
            self.sizes[name] = self.argument(kind, f"jax.global_constant = {attributes.string(name)}")

    def sizes_known(self) -> dict[Any, Value]:
        """The values of symbolic dimensions that have been written."""
        # This read of the module keeps an `EmissionRecorder` from making a template.
        assert self.module.variables is not None
        return self.sizes

    def outline(self, region: FunctionBuilder, returned: Sequence[Value], base: str) -> str:
        """Turn a region into a private function, for operations that refer to one by name; return the name."""
        function = FunctionBuilder(self.module, base, "")
        function.arguments, function.argument_attributes = region.arguments, [""] * len(region.arguments)
        function.lines, function.places = region.lines, region.places
        function.return_values(returned)
        return self.module.add_private(function, base)

    def sizes_vector(self, sizes: Sequence[Any]) -> Value:
        """Write sizes, some of them symbolic, as a vector of 32-bit integers."""
        return symbolic_sizes.write_vector(self, sizes)

    def line(self, text: str, aval: ShapedArray) -> Value:
        """Write ``%n = text`` and return the value, of type `aval`."""
        name = f"%{self.number()}"
        self.lines.append(f"{name} = {text}")
        self.places.append(self.place)
        return Value(name, aval)

    def line_of_many(self, text: str, avals: Sequence[ShapedArray]) -> list[Value]:
        """Write an operation with any number of results and return their values."""
        if len(avals) == 1:
            return [self.line(text, avals[0])]
        name = f"%{self.number()}"
        self.lines.append(f"{name}:{len(avals)} = {text}" if avals else text)
        self.places.append(self.place)
        return [Value(f"{name}#{i}", aval) for i, aval in enumerate(avals)]

    @staticmethod
    def function_type(operands: Sequence[Value], results: Sequence[ShapedArray]) -> str:
        """Return the type of an operation, ``(tensor<f32>) -> tensor<f32>``; several results are in parentheses."""
        ins, outs = ", ".join([x.aval.mlir_type for x in operands]), ", ".join([a.mlir_type for a in results])
        return f"({ins}) -> {outs}" if len(results) == 1 else f"({ins}) -> ({outs})"

    def op(self, name: str, *operands: Value, result: ShapedArray | None = None, **attribute_texts: str) -> Value:
        """Write operation `name`; its result has type `result`, by default the type of the equation's result."""
        aval = self.results[0] if result is None else result
        return self.line(self._operation(name, operands, (aval,), attribute_texts), aval)

    def _operation(
        self, name: str, operands: Sequence[Value], results: Sequence[ShapedArray], attribute_texts: dict[str, str]
    ) -> str:
        names = ", ".join([x.name for x in operands])
        kind = self.function_type(operands, results)
        if not attribute_texts:
            return f'"{name}"({names}) : {kind}'
        texts = ", ".join(f"{key} = {value}" for key, value in attribute_texts.items())
        return f'"{name}"({names}) <{{{texts}}}> : {kind}'

    def constant(self, value: Any, aval: ShapedArray) -> Value:
        """Return the constant `value` of type `aval`; a scalar fills the shape."""
        stored = dtypes.bool_ if aval.dtype == dtypes.float0 else aval.dtype
        try:
            text = attributes.dense(dtypes.cast(value, stored))
        except InconclusiveDimensionOperation:
            return symbolic_sizes.write_scalar(self, value, aval)
        return self.constant_line(text, aval)

    def literal(self, value: Any, aval: ShapedArray) -> Value:
        """Return the scalar constant `value`, written at its first use; in an extended dtype it fills the element."""
        stored = physical_aval(aval).dtype
        try:
            text = attributes.scalar(False if aval.dtype == dtypes.float0 else value, stored)
        except InconclusiveDimensionOperation:
            return symbolic_sizes.write_scalar(self, value, aval)
        return Constant(self, text, aval)

    def constant_line(self, text: str, aval: ShapedArray) -> Value:
        """Return the constant with the ``dense<…>`` text `text`; equal ones are written once."""
        # The shape is in the key because the text of types is the same for all symbolic sizes.
        key = text, kind, _ = text, aval.mlir_type, aval.shape
        constant = self._constants.get(key)
        if constant is None and "?" in kind:
            # A dense text of a symbolic shape has one element for all positions.
            scalar = self.constant_line(text, aval.update(shape=()))
            constant = self._constants[key] = self.broadcast(scalar, aval.shape)
        elif constant is None:
            constant = self._constants[key] = self.line(f"stablehlo.constant {text} : {kind}", aval)
        return constant

    def find_constant_text(self, value: Value) -> str | None:
        """Return the ``dense<…>`` text of a constant; None for other values."""
        if type(value) is Constant:
            return value.text
        return next((text for (text, *_), result in self._constants.items() if result.name == value.name), None)

    # Operations that the rules of many primitives write.

    def elementwise(self, op: str, *operands: Value) -> Value:
        """Write operation `op` on operands of one type, which is the type of the result."""
        x = operands[0]
        return self.line(f"stablehlo.{op} {', '.join([v.name for v in operands])} : {x.type}", x.aval)

    def cast(self, op: str, x: Value, aval: ShapedArray, details: str = "") -> Value:
        """Write operation `op` of one operand, whose result has the type `aval`; `details` follow the operand."""
        if op == "reshape" and symbolic_sizes.is_dynamic(aval):
            return symbolic_sizes.write_reshape(self, x, aval)
        return self.line(f"stablehlo.{op} {x.name}{details} : ({x.type}) -> {aval.mlir_type}", aval)

    def compare(self, direction: str, x: Value, y: Value, kind: str | None = None) -> Value:
        """Write the comparison of two values of one type; `kind` replaces the dtype's comparison, as by TOTALORDER."""
        dtype = x.aval.dtype
        if kind is None:
            kind = "FLOAT" if dtypes.is_inexact(dtype) else "SIGNED" if dtypes.is_signed(dtype) else "UNSIGNED"
        aval = ShapedArray(x.aval.shape, dtypes.bool_)
        types = f"({x.type}, {x.type}) -> {aval.mlir_type}"
        return self.line(f"stablehlo.compare {direction}, {x.name}, {y.name}, {kind} : {types}", aval)

    def select(self, which: Value, x: Value, y: Value) -> Value:
        """Write `x` where `which` is true and `y` elsewhere."""
        return self.line(f"stablehlo.select {which.name}, {x.name}, {y.name} : {which.type}, {x.type}", x.aval)

    def real_and_imaginary(self, x: Value) -> tuple[Value, Value]:
        """Write the parts of a complex value."""
        part = x.aval.update(dtype=dtypes.real_part_dtype(x.aval.dtype))
        return self.cast("real", x, part), self.cast("imag", x, part)

    def complex(self, real: Value, imaginary: Value, aval: ShapedArray) -> Value:
        """Write the complex value of type `aval` with these parts."""
        return self.line(f"stablehlo.complex {real.name}, {imaginary.name} : {aval.mlir_type}", aval)

    def iota(self, aval: ShapedArray, dimension: int) -> Value:
        """Write the index along an axis at every position of an array."""
        if symbolic_sizes.is_dynamic(aval):
            return symbolic_sizes.write_iota(self, aval, dimension)
        counted = self.line(f"stablehlo.iota dim = {dimension} : {aval.mlir_type}", aval)
        if not versions.DIVIDES_BY_ZERO_FOR_LONG_IOTA or self.platform != "cpu" or aval.size % 2**36 or not aval.size:
            return counted
        # XLA does not know that this is 0, so it treats the sum as any array.
        zero = self.elementwise("optimization_barrier", self.constant(0, aval.update(shape=())))
        return self.elementwise("add", counted, self.broadcast(zero, aval.shape))

    def transpose(self, x: Value, permutation: Sequence[int]) -> Value:
        """Write `x` with its axes permuted."""
        aval = x.aval.update(shape=tuple([x.aval.shape[i] for i in permutation]))
        return self.cast("transpose", x, aval, f", dims = {attributes.list_text(permutation)}")

    def slice(self, x: Value, ranges: Sequence[Sequence[int]]) -> Value:
        """Write the slice of `x` in a range (start, stop) or (start, stop, step) of each axis."""
        try:
            aval = x.aval.update(shape=tuple([len(range(*bounds)) for bounds in ranges]))
        except InconclusiveDimensionOperation:
            return symbolic_sizes.write_slice(self, x, ranges)
        texts = [":".join(map(str, b[:2] if len(b) == 3 and b[2] == 1 else b)) for b in ranges]
        return self.cast("slice", x, aval, f" [{', '.join(texts)}]")

    def concatenate(self, values: Sequence[Value], dimension: int) -> Value:
        """Write the concatenation of values along an axis."""
        values = [self.widen(v) for v in values]
        names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
        first = values[0].aval
        size = sum(v.aval.shape[dimension] for v in values)
        aval = first.update(shape=(*first.shape[:dimension], size, *first.shape[dimension + 1 :]))
        return self.line(f"stablehlo.concatenate {names}, dim = {dimension} : ({types}) -> {aval.mlir_type}", aval)

    def dynamic_slice(self, x: Value, starts: Sequence[Value], sizes: Sequence[int]) -> Value:
        """Write the slice of `x` of the given sizes; the start indices are values."""
        aval = x.aval.update(shape=tuple(sizes))
        if symbolic_sizes.is_dynamic(aval):
            return symbolic_sizes.write_dynamic_slice(self, x, starts, sizes)
        names, types = ", ".join([v.name for v in (x, *starts)]), ", ".join([v.type for v in (x, *starts)])
        text = f"stablehlo.dynamic_slice {names}, sizes = {attributes.list_text(sizes)}"
        return self.line(f"{text} : ({types}) -> {aval.mlir_type}", aval)

    def dynamic_update_slice(self, x: Value, update: Value, starts: Sequence[Value]) -> Value:
        """Write `x` with a slice replaced by `update`; the start indices are values."""
        values = (x, update, *starts)
        names, types = ", ".join([v.name for v in values]), ", ".join([v.type for v in values])
        return self.line(f"stablehlo.dynamic_update_slice {names} : ({types}) -> {x.type}", x.aval)

    def while_loop(
        self, state: Sequence[Value], condition: tuple[FunctionBuilder, Value],
        body: tuple[FunctionBuilder, Sequence[Value]],
    ) -> list[Value]:
        """Write a loop over `state`; `condition` and `body` are regions of the state's types, with their results."""
        regions = [(condition[0], [condition[1]]), body]
        return self.op_with_regions("stablehlo.while", state, regions, [x.aval for x in state])

    def constrain(self, x: Value, sharding: Sharding, free: frozenset[int] = frozenset()) -> Value:
        """Write `x` constrained to `sharding`; the compiler may split the dimensions `free` further."""
        stored = x.to_physical()
        text = self.module.meshes.sharding(sharding, stored.aval.ndim, free)
        return self.line(f"sdy.sharding_constraint {stored.name} {text} : {stored.type}", stored.aval).bitcast(x.aval)

    def keep_terms(self, x: Value, model: ShapedArray | None = None, added: int | None = None) -> Value:
        """Write `x` constrained to be unreduced, if its type is; `model`, the type of its source, replaces its type.

        The partitioner does not propagate unreduced shardings: it takes the result of an operation for whole values
        unless it is constrained. So each operation in a chain needs the constraint, as do arguments of regions and
        functions.

        added: an axis of `x` that `model` lacks.
        """
        sharding = (x.aval if model is None else model).explicit_sharding
        if sharding is None or not sharding.spec.unreduced or not self.module.is_explicit:
            return x
        if added is not None:
            sharding = insert_entry(sharding, x.aval.ndim - 1, added, None)
        return self.constrain(x, sharding, open_dimensions(sharding, x.aval.ndim))

    def gather_along(self, x: Value, axes: Iterable[int], *, partial: bool = False) -> Value:
        """Write `x` replicated along `axes`, in a program on several devices.

        It is for operations that XLA partitions wrongly along these axes. partial: only on a mesh of several axes,
        where an array can be sharded over one and replicated over another.
        """
        mesh = self.module.mesh
        # A manual computation works on shards, which are not partitioned again.
        if mesh is None or self.module.manual_mesh is not None:
            return x
        if len([n for n in mesh.axis_sizes if n > 1]) < (2 if partial else 1):
            return x
        return self.constrain(x, NamedSharding(mesh, PartitionSpec()), frozenset(range(x.aval.ndim)).difference(axes))

    def all_reduce(self, x: Value, op: str, groups: Sequence[Sequence[int]], aval: ShapedArray) -> Value:
        """Write the reduction of `x` by the operation `op` over groups of devices."""
        element = ShapedArray((), x.aval.dtype)
        region = self.region([element, element])
        reduced = region.elementwise(op, *region.arguments)
        details = self._collective(groups) | {"use_global_device_ids": "unit"}
        return self.op_with_regions("stablehlo.all_reduce", [x], [(region, [reduced])], [aval], **details)[0]

    def reduce_scatter(self, x: Value, groups: Sequence[Sequence[int]], aval: ShapedArray, dimension: int) -> Value:
        """Write the sum of `x` over groups of devices; each device keeps its part along an axis."""
        element = ShapedArray((), x.aval.dtype)
        region = self.region([element, element])
        total = region.elementwise("add", *region.arguments)
        details = {"scatter_dimension": f"{dimension} : i64", "use_global_device_ids": "unit"}
        details |= self._collective(groups)
        return self.op_with_regions("stablehlo.reduce_scatter", [x], [(region, [total])], [aval], **details)[0]

    def axis_index(self, axis: Any, aval: ShapedArray) -> Value:
        """Write the index of the device along a manual mesh axis."""
        mesh = self.module.manual_mesh
        if mesh is None:
            raise NotImplementedError(f"axis_index reached the compiler: no vmap or shard_map has the axis {axis}")
        given = self.module.axis_indices.get(axis)
        if given is not None:
            return given.bitcast(aval)
        position = mesh.axis_names.index(axis)
        number = ShapedArray((), dtypes.uint32)
        stride, size = math.prod(mesh.axis_sizes[position + 1 :]), mesh.axis_sizes[position]
        device = self.line("stablehlo.partition_id : tensor<ui32>", number)
        part = self.elementwise("divide", device, self.constant(stride, number))
        index = self.elementwise("remainder", part, self.constant(size, number))
        return self.convert(index, dtypes.int32).bitcast(aval)

    def collective(
        self, name: str, x: Value, groups: Sequence[Sequence[int]], aval: ShapedArray, **attribute_texts: str
    ) -> Value:
        """Write an operation on `x` over groups of devices."""
        return self.op(f"stablehlo.{name}", x, result=aval, **attribute_texts, **self._collective(groups))

    def _collective(self, groups: Sequence[Sequence[int]], name: str = "replica_groups") -> dict[str, str]:
        shape = f"{len(groups)}x{len(groups[0])}" if groups else "0x2"
        return {
            name: f"dense<{[list(g) for g in groups] if groups else ''}> : tensor<{shape}xi64>",
            # One channel for all: XLA merges equal operations, and then numbers the channels of the remaining ones.
            "channel_handle": "#stablehlo.channel_handle<handle = 1, type = 1>",
        }

    def collective_permute(self, x: Value, pairs: Sequence[Sequence[int]], aval: ShapedArray) -> Value:
        """Write the move of `x` from device to device, by pairs of source and target."""
        details = self._collective(pairs, "source_target_pairs")
        return self.op("stablehlo.collective_permute", x, result=aval, **details)

    def manual_computation(
        self, operands: Sequence[Value], results: Sequence[ShapedArray], body: FunctionBuilder,
        returned: Sequence[Value], shardings: tuple[Sequence[str], Sequence[str]], axes: Sequence[Any],
    ) -> list[Value]:
        """Write a computation on shards; `shardings` are the texts of the operands' and of the results' shardings."""
        names, types = ", ".join([x.name for x in operands]), ", ".join([x.type for x in operands])
        arguments = ", ".join([f"{v.name}: {v.type}" for v in body.arguments])
        manual = ", ".join([attributes.axis_name(axis) for axis in axes])
        outputs = ", ".join([a.mlir_type for a in results])
        number = self.number()
        binder = "" if not results else f"%{number} = " if len(results) == 1 else f"%{number}:{len(results)} = "
        ending = f"  sdy.return {', '.join([v.name for v in returned])} : {', '.join([v.type for v in returned])}"
        self.lines += [
            f"{binder}sdy.manual_computation({names}) in_shardings=[{', '.join(shardings[0])}] "
            f"out_shardings=[{', '.join(shardings[1])}] manual_axes={{{manual}}} ({arguments}) {{",
            *[f"  {line}" for line in body.lines], ending if returned else "  sdy.return",
            f"}} : ({types}) -> {outputs if len(results) == 1 else f'({outputs})'}",
        ]
        self.places += [None, *body.places, None, self.place]
        if len(results) == 1:
            return [Value(f"%{number}", results[0])]
        return [Value(f"%{number}#{i}", aval) for i, aval in enumerate(results)]

    def create_token(self, aval: ShapedArray) -> Value:
        """Write a new token of type `aval`."""
        return self.line("stablehlo.create_token : !stablehlo.token", aval)

    def broadcast(self, value: Value, shape: tuple[int, ...], dimensions: Sequence[int] = ()) -> Value:
        """Return `value` broadcast to `shape`, its axis i along axis ``dimensions[i]``."""
        aval = value.aval.update(shape=shape)
        if type(value) is Constant:
            return self.constant_line(value.text, aval)
        if symbolic_sizes.is_dynamic(aval):
            return symbolic_sizes.write_broadcast(self, value, aval, dimensions)
        return self.cast("broadcast_in_dim", value, aval, f", dims = {attributes.list_text(dimensions)}")

    def broadcast_operand(self, value: Value, shape: tuple[int, ...]) -> Value:
        """Return an operand of an elementwise operation with its scalar or size-1 axes broadcast to `shape`."""
        own = value.aval.shape
        if own == shape:
            return value
        if type(value) is Constant:
            key = (value.text, value.aval, shape)
            known = self._broadcast_constants.get(key)
            if known is None:
                known = self._broadcast_constants[key] = self.broadcast(value, shape)
            return known
        axes = range(len(shape)) if own else range(0)
        stored = value.to_physical()
        trailing = stored.aval.shape[len(own) :]
        if not trailing:
            return self.broadcast(value, shape, axes)
        physical_axes = [*axes, *range(len(shape), len(shape) + len(trailing))]
        return self.broadcast(stored, (*shape, *trailing), physical_axes).bitcast(value.aval.update(shape=shape))

    def convert(self, value: Value, dtype: np.dtype[Any]) -> Value:
        """Return `value` converted to `dtype`; a complex value loses its imaginary part if `dtype` is real."""
        if value.aval.dtype == dtype:
            return value
        if dtypes.is_complex(value.aval.dtype) and not dtypes.is_complex(dtype):
            # XLA aborts the process when it folds a conversion of a complex constant.
            real = value.aval.update(dtype=dtypes.real_part_dtype(value.aval.dtype))
            return self.convert(self.cast("real", value, real), dtype)
        return self.cast("convert", value, value.aval.update(dtype=dtype))

    def widen(self, value: Value) -> Value:
        """Return `value`, with two-bit elements converted to eight bits."""
        dtype = value.aval.dtype
        return self.convert(value, _WIDENED[dtype]) if dtype in _WIDENED else value

    def region(self, avals: Sequence[ShapedArray], scope: str = "") -> FunctionBuilder:
        """Return a builder for a region of the operation that `op_with_regions` will write next.

        Its arguments have the types `avals`; its operations are named inside of that operation's name and `scope`. One
        sequence numbers the values inside and outside, so no name repeats.
        """
        around = self.scope if self.place is None else self.place[1]
        inner = FunctionBuilder(self.module, self.name, f"{around}/{scope}" if scope else around)
        inner.place, inner.number = self.place, self.number
        inner.tokens, inner.annotations, inner.sizes = dict(self.tokens), self.annotations, dict(self.sizes)
        inner.arguments = [Value(f"%{self.number()}", aval) for aval in avals]
        return inner

    def op_with_regions(
        self, name: str, operands: Sequence[Value], regions: Sequence[tuple[FunctionBuilder, Sequence[Value]]],
        results: Sequence[ShapedArray], **attribute_texts: str,
    ) -> list[Value]:
        """Write operation `name` with regions; each is a builder made by `region` and the values to return."""
        names = ", ".join([x.name for x in operands])
        kind = self.function_type(operands, results)
        texts = ", ".join(f"{key} = {value}" for key, value in attribute_texts.items())
        head = f'"{name}"({names}){f" <{{{texts}}}>" if texts else ""} ({{'
        lines: list[str] = []
        places: list[_Place | None] = []
        for number, (region, returned) in enumerate(regions):
            arguments = ", ".join(f"{v.name}: {v.aval.mlir_type}" for v in region.arguments)
            kinds = ", ".join(v.aval.mlir_type for v in returned)
            # Reading a name may write a constant, so this precedes the reading of the lines.
            end = f"  stablehlo.return {', '.join(v.name for v in returned)} : {kinds}"
            lines += ["}, {"] * (number > 0) + ([f"^bb0({arguments}):"] if arguments else [])
            places += [None] * (len(lines) - len(places))
            lines += [f"  {line}" for line in region.lines]
            places += region.places
            lines.append(end if returned else "  stablehlo.return")
            places.append(None)
        number = self.number()
        binder = "" if not results else f"%{number} = " if len(results) == 1 else f"%{number}:{len(results)} = "
        self.lines += [binder + head, *lines, f"}}) : {kind}"]
        self.places += [None, *places, self.place]
        if len(results) == 1:
            return [Value(f"%{number}", results[0])]
        return [Value(f"%{number}#{i}", aval) for i, aval in enumerate(results)]

    def return_values(self, values: Sequence[Value], attribute_texts: Sequence[str] = ()) -> None:
        """Write the return statement."""
        self.result_types = [v.aval.mlir_type for v in values]
        self.result_attributes = list(attribute_texts) or [""] * len(values)
        names, types = ", ".join(v.name for v in values), ", ".join(self.result_types)
        self.lines.append(f"return {names} : {types}" if values else "return")
        self.places.append(None)

    def text_lines(self, locations: Locations | None) -> list[str]:
        """The function's text as a list of lines; with `locations`, each refers to its alias."""
        names = self.argument_names() if locations is not None else ()
        places = [f" loc({attributes.string(name)})" for name in names]
        places = [""] * (len(self.arguments) - len(places)) + places
        arguments = ", ".join(
            f"{v.name}: {v.type}{' {' + a + '}' if a else ''}{place}"
            for v, a, place in zip(self.arguments, self.argument_attributes, places, strict=True)
        )
        infos = [f"jax.result_info = {attributes.string(name)}" for name in self.result_names()]
        infos = infos or [""] * len(self.result_types)
        about = [", ".join(filter(None, pair)) for pair in zip(infos, self.result_attributes, strict=True)]
        results = ", ".join(f"{t}{' {' + a + '}' if a else ''}" for t, a in zip(self.result_types, about, strict=True))
        single = len(about) == 1 and not about[0]
        visibility = "public" if self.public else "private"
        head = f"  func.func {visibility} @{self.name}({arguments}) -> {results if single else f'({results})'} {{"
        if locations is None:
            body = [f"    {line}" for line in self.lines]
        else:
            body = [
                f"    {line} {locations.alias(place)}" if place is not None else f"    {line}"
                for line, place in zip(self.lines, self.places, strict=True)
            ]
        return [head, *body, "  }"]
