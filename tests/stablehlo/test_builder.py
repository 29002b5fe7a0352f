"""The text builder: values, constants, regions and private functions, each module read by MLIR."""

import numpy as np
import pytest

from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.positions import user_position
from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder, symbol
from xtrace._src.xla.mlir import modules

F32 = ShapedArray((), "float32")
I32 = ShapedArray((), "int32")
BOOL = ShapedArray((), "bool")
V32 = ShapedArray((3,), "float32")
M32 = ShapedArray((2, 3), "float32")


@pytest.fixture
def module():
    return ModuleBuilder("m", "cpu")


@pytest.fixture
def main(module):
    function = FunctionBuilder(module, "main", "m", public=True)
    module.functions.append(function)
    return function


def finished(function, *values, attributes=()):
    """The lines of a function that returns `values`, its module verified with and without places."""
    function.return_values(values, attributes)
    for debug_info in (False, True):
        modules.verify(function.module.text(debug_info))
    return function.text_lines(None)


def body(function, *values):
    return [line.strip() for line in finished(function, *values)[1:-2]]


# Operations


def test_lines_are_numbered_values_of_their_type(main):
    x = main.argument(V32)
    y = main.line(f"stablehlo.sine {x.name} : {x.type}", V32)
    z = main.line(f"stablehlo.cosine {y.name} : {y.type}", V32)
    assert (x.name, y.name, z.name) == ("%arg0", "%0", "%1") and z.aval is V32 and z.type == "tensor<3xf32>"
    assert body(main, z) == ["%0 = stablehlo.sine %arg0 : tensor<3xf32>", "%1 = stablehlo.cosine %0 : tensor<3xf32>"]


def test_generic_operations_take_the_type_of_the_equation_or_their_own(main):
    x = main.argument(M32)
    main.results = [ShapedArray((3, 2), "float32")]
    y = main.op("stablehlo.transpose", x, permutation="array<i64: 1, 0>")
    z = main.op("stablehlo.sine", y, result=y.aval)
    assert body(main, z) == [
        '%0 = "stablehlo.transpose"(%arg0) <{permutation = array<i64: 1, 0>}> : (tensor<2x3xf32>) -> tensor<3x2xf32>',
        '%1 = "stablehlo.sine"(%0) : (tensor<3x2xf32>) -> tensor<3x2xf32>',
    ]


@pytest.mark.parametrize("count", [0, 1, 2])
def test_operations_of_several_results(main, module, count):
    inner = FunctionBuilder(module, "inner", "m/inner")
    x = inner.argument(F32)
    inner.return_values([x] * count)
    name = module.add_private(inner, "inner")
    argument = main.argument(F32)
    types = ", ".join(["tensor<f32>"] * count)
    signature = f"(tensor<f32>) -> {types if count == 1 else f'({types})'}"
    found = main.line_of_many(f"call @{name}({argument.name}) : {signature}", [F32] * count)
    assert [v.name for v in found] == [[], ["%0"], ["%0#0", "%0#1"]][count]
    assert body(main, *found)[0].startswith(["call @inner", "%0 = call", "%0:2 = call"][count])


def test_argument_and_result_attributes(main):
    x = main.argument(F32, "tf.aliasing_output = 0 : i32")
    lines = finished(main, x, x, attributes=['jax.result_info = "a"', ""])
    assert lines[0].strip() == (
        "func.func public @main(%arg0: tensor<f32> {tf.aliasing_output = 0 : i32}) -> "
        '(tensor<f32> {jax.result_info = "a"}, tensor<f32>) {'
    )


# Constants


def test_a_constant_is_written_once_for_each_text_and_type(main):
    one, again = main.constant(1, F32), main.constant(np.float32(1), F32)
    vector, filled, other = main.constant(np.ones(3), V32), main.constant(1.0, V32), main.constant(1, I32)
    assert one is again and vector is filled and len({one.name, vector.name, other.name}) == 3
    assert len(body(main, one, vector, other)) == 3


def test_literals_are_written_when_their_name_is_asked_for(main):
    unused, used = main.literal(1.0, F32), main.literal(2.0, F32)
    assert main.lines == []
    assert used.name == used.name == "%0" and len(main.lines) == 1
    assert "2.0" in main.lines[0] and unused.type == "tensor<f32>"


def test_zeros_of_both_signs_and_nan_are_different_literals(main):
    values = [main.literal(v, F32).name for v in (0.0, -0.0, float("nan"), 0.0, -0.0, float("nan"))]
    assert len(set(values)) == 3 and values[:3] == values[3:]


def test_broadcasts(main):
    x, s = main.argument(V32), main.argument(F32)
    assert main.broadcast_operand(x, (3,)) is x
    spread = [
        main.broadcast_operand(s, (2, 3)), main.broadcast_operand(main.literal(2.0, F32), (2, 3)),
        main.broadcast(x, (2, 3), (1,)),
    ]
    again = main.broadcast_operand(main.literal(2.0, F32), (2, 3))
    assert again is spread[1] and all(v.aval is M32 for v in spread)
    assert body(main, *spread) == [
        "%0 = stablehlo.broadcast_in_dim %arg1, dims = [] : (tensor<f32>) -> tensor<2x3xf32>",
        "%1 = stablehlo.constant dense<2.000000e+00> : tensor<2x3xf32>",
        "%2 = stablehlo.broadcast_in_dim %arg0, dims = [1] : (tensor<3xf32>) -> tensor<2x3xf32>",
    ]


def test_axes_of_size_one_are_spread(main):
    x = main.argument(ShapedArray((1, 3), "float32"))
    assert body(main, main.broadcast_operand(x, (2, 3))) == [
        "%0 = stablehlo.broadcast_in_dim %arg0, dims = [0, 1] : (tensor<1x3xf32>) -> tensor<2x3xf32>"
    ]


def test_conversions(main):
    x = main.argument(V32)
    assert main.convert(x, np.dtype(np.float32)) is x
    assert body(main, main.convert(x, np.dtype(np.int32))) == [
        "%0 = stablehlo.convert %arg0 : (tensor<3xf32>) -> tensor<3xi32>"
    ]


# Regions


def test_regions_share_the_numbers_of_the_function_around_them(main):
    x = main.argument(I32)
    condition, loop = main.region([I32]), main.region([I32])
    (c,), (b,) = condition.arguments, loop.arguments
    limit = condition.literal(10, I32)
    small = condition.line(
        f"stablehlo.compare LT, {c.name}, {limit.name}, SIGNED : ({c.type}, {c.type}) -> {BOOL.mlir_type}", BOOL
    )
    grown = loop.line(f"stablehlo.add {b.name}, {loop.literal(1, I32).name} : {b.type}", I32)
    (found,) = main.op_with_regions("stablehlo.while", [x], [(condition, [small]), (loop, [grown])], [I32])
    after = main.line(f"stablehlo.add {found.name}, {found.name} : {found.type}", I32)
    lines = body(main, after)
    assert lines[0].endswith('"stablehlo.while"(%arg0) ({') and "}, {" in lines
    names = [line.partition(" = ")[0] for line in lines if " = " in line]
    assert len(set(names)) == len(names)


def test_a_region_without_arguments_returns_a_constant_made_at_its_end(main):
    chosen, x = main.argument(BOOL), main.argument(F32)
    yes, no = main.region([]), main.region([])
    found = main.op_with_regions("stablehlo.if", [chosen], [(yes, [x]), (no, [no.literal(1.0, F32)])], [F32])
    text = "\n".join(body(main, *found))
    assert "^bb0" not in text and "stablehlo.constant dense<1.000000e+00>" in text


def test_places_stay_beside_their_lines(main):
    main.place = (user_position(), "m/if")
    chosen, x = main.argument(BOOL), main.argument(F32)
    yes, no = main.region([]), main.region([])
    inner = yes.line(f"stablehlo.sine {x.name} : {x.type}", F32)
    main.op_with_regions("stablehlo.if", [chosen], [(yes, [inner]), (no, [x])], [F32])
    assert len(main.lines) == len(main.places)
    located = [line for line, place in zip(main.lines, main.places, strict=True) if place is not None]
    assert [line.split()[-1] for line in located] == ["tensor<f32>", "tensor<f32>"] and "sine" in located[0]
    finished(main, x)


# Modules


def test_equal_private_functions_are_written_once(module):
    def private(operation, scope):
        function = FunctionBuilder(module, "f", scope)
        x = function.argument(F32)
        function.return_values([function.line(f"stablehlo.{operation} {x.name} : {x.type}", F32)])
        return module.add_private(function, "f")

    assert [private("sine", "a"), private("cosine", "a"), private("sine", "b")] == ["f", "f_1", "f"]
    assert [f.name for f in module.functions] == ["f", "f_1"]
    modules.verify(module.text(True))


def test_names_that_numbering_would_make_are_not_reused(module):
    def add(name, value):
        function = FunctionBuilder(module, name, "m")
        function.return_values([function.constant(value, F32)])
        return module.add_private(function, name)

    assert [add(n, i) for i, n in enumerate(["f_1", "f", "f", "f", "main", "f_1"])] == [
        "f_1", "f", "f_2", "f_3", "main_1", "f_1_1",
    ]


@pytest.mark.parametrize(
    "text, name",
    [("f", "f"), ("<lambda>", "_lambda_"), ("ñ", "_"), ("1a", "_1a"), (".a", "_.a"), ("", "function"), ("a-b", "a_b")],
)
def test_symbols(text, name):
    assert symbol(text) == name
    modules.verify(f"module @{symbol(text)} {{}}\n")


def test_places_are_written_once_each(main):
    x = main.argument(F32)
    for i in range(6):
        main.place = (user_position(), "m/sin" if i % 2 else "m/cos")
        x = main.line(f"stablehlo.sine {x.name} : {x.type}", F32)
    main.place = (None, "m/nowhere")
    x = main.line(f"stablehlo.sine {x.name} : {x.type}", F32)
    finished(main, x)
    text = main.module.text(True)
    assert [line.split(" = ")[0] for line in text.split("\n") if line.startswith("#")] == ["#loc1", "#loc2", "#loc3"]
    assert '#loc3 = loc("m/nowhere")' in text and f'"{__file__}":' in text
