"""Lowering: the text of modules, constants exact to the bit, shared functions, donation, places in the user's code."""

import re
import textwrap

import numpy as np
import pytest

import xtrace
from tests.support import programs
from tests.support.cost import calls_while
from tests.support.operands import ours
from tests.support.programs import MATRIX, SCALAR, VECTOR
from xtrace import lax
from xtrace._src.core import dtypes
from xtrace._src.core.jaxprs.ir import ClosedJaxpr
from xtrace._src.transforms.hidden_constants import HIDDEN_ARGUMENT_BYTES
from xtrace._src.transforms.lower import lower
from xtrace._src.xla.mlir import modules


def lowered(function, *args, donated=(), name="f", platform="cpu"):
    """The lowered module of a function, both of its texts verified by MLIR."""
    closed = function if isinstance(function, ClosedJaxpr) else xtrace.make_jaxpr(function)(*args)
    module = lower(closed, name, platform, donated=donated)
    for debug_info in (False, True):
        modules.verify(module.text(debug_info))
    return module


def assert_text(function, args, expected, **options):
    assert lowered(function, *args, **options).text() == textwrap.dedent(expected).lstrip("\n")


HEAD = "attributes {mhlo.num_partitions = 1 : i32, mhlo.num_replicas = 1 : i32}"


# Text


def test_one_operation_a_line():
    assert_text(
        lambda x, y: (lax.add(lax.sin(x), y), x),
        (VECTOR, VECTOR),
        f"""
        module @jit_f {HEAD} {{
          func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> (tensor<3xf32>, tensor<3xf32>) {{
            %0 = stablehlo.sine %arg0 : tensor<3xf32>
            %1 = stablehlo.add %0, %arg1 : tensor<3xf32>
            return %1, %arg0 : tensor<3xf32>, tensor<3xf32>
          }}
        }}
        """,
    )


def test_neither_arguments_nor_results():
    assert_text(
        lambda: (),
        (),
        f"""
        module @jit_f {HEAD} {{
          func.func public @main() -> () {{
            return
          }}
        }}
        """,
    )


def test_literals_are_written_where_they_are_used_and_once():
    results = "tensor<3xf32>, tensor<f32>, tensor<f32>, tensor<i32>"
    assert_text(
        lambda x, s: (lax.add(lax.mul(lax.add(x, 2.0), 2.0), 1.0), lax.add(s, 2.0), 2.0, 3),
        (VECTOR, SCALAR),
        f"""
        module @jit_f {HEAD} {{
          func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<f32>) -> ({results}) {{
            %0 = stablehlo.constant dense<2.000000e+00> : tensor<3xf32>
            %1 = stablehlo.add %arg0, %0 : tensor<3xf32>
            %2 = stablehlo.multiply %1, %0 : tensor<3xf32>
            %3 = stablehlo.constant dense<1.000000e+00> : tensor<3xf32>
            %4 = stablehlo.add %2, %3 : tensor<3xf32>
            %5 = stablehlo.constant dense<2.000000e+00> : tensor<f32>
            %6 = stablehlo.add %arg1, %5 : tensor<f32>
            %7 = stablehlo.constant dense<3> : tensor<i32>
            return %4, %6, %5, %7 : {results}
          }}
        }}
        """,
    )


def test_calls_are_private_functions():
    assert_text(
        programs.nested(lax, xtrace.jit),
        (VECTOR, VECTOR),
        f"""
        module @jit_f {HEAD} {{
          func.func public @main(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {{
            %0 = call @outer(%arg0, %arg1) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
            %1 = stablehlo.sine %0 : tensor<3xf32>
            return %1 : tensor<3xf32>
          }}
          func.func private @inner(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {{
            %0 = stablehlo.add %arg0, %arg1 : tensor<3xf32>
            %1 = stablehlo.sine %0 : tensor<3xf32>
            return %1 : tensor<3xf32>
          }}
          func.func private @outer(%arg0: tensor<3xf32>, %arg1: tensor<3xf32>) -> tensor<3xf32> {{
            %0 = call @inner(%arg1, %arg0) : (tensor<3xf32>, tensor<3xf32>) -> tensor<3xf32>
            %1 = stablehlo.cosine %0 : tensor<3xf32>
            return %1 : tensor<3xf32>
          }}
        }}
        """,
    )


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", programs.ALIKE)
def test_every_program_is_valid_and_computes_what_it_does_op_by_op(name):
    program, args = programs.ALIKE[name]
    function = program(lax, xtrace.jit)
    lowered(function, *args)
    found, expected = xtrace.jit(function)(*args), function(*map(ours, args))
    for one, other in zip(xtrace.tree.leaves(found), xtrace.tree.leaves(expected), strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)


@pytest.mark.parametrize(
    "name, symbol",
    [("f", "f"), ("<lambda>", "_lambda_"), ("größe", "gr__e"), ("f.<locals>.g", "f._locals_.g"), ("2fold", "_2fold"),
     ("main", "main"), ("a b\"c\n", "a_b_c_"), ("关", "_"), ("", "function"), ("a-b", "a_b"), ("$x", "_$x")],
)
def test_any_name_makes_a_valid_symbol(name, symbol):
    inner = lambda x: lax.sin(x)  # noqa: E731
    inner.__name__ = name
    text = lowered(lambda x: xtrace.jit(inner)(x), VECTOR, name=name).text()
    assert text.startswith(f"module @jit_{symbol} ")
    assert f"func.func private @{symbol if symbol != 'main' else 'main_1'}(" in text


def test_the_text_is_the_same_each_time():
    closed = xtrace.make_jaxpr(programs.same_name(lax, xtrace.jit))(VECTOR)
    texts = {lower(closed, "f", "cpu").text(True) for _ in range(3)}
    module = lower(closed, "f", "cpu")
    assert texts == {module.text(True), module.text(True)} and module.text() == module.text()


# Private functions


def functions_of(text):
    return re.findall(r"func\.func private @(\w+)\(", text)


def test_a_function_called_often_is_written_once():
    text = lowered(programs.shared(lax, xtrace.jit), VECTOR).text()
    assert sorted(functions_of(text)) == ["a", "b"] and text.count("call @a") == 3 and text.count("call @b") == 2


def test_equal_functions_are_one_also_when_they_are_different_objects():
    def function(x):
        for _ in range(3):
            x = xtrace.jit(lambda y: xtrace.jit(lambda z: lax.sin(z))(lax.cos(y)))(x)
        return x

    text = lowered(function, VECTOR).text()
    assert functions_of(text) == ["_lambda_", "_lambda__1"] and text.count("call @") == 4


def test_functions_that_differ_get_names_of_their_own():
    def function(x):
        for i in range(4):
            x = xtrace.jit(lambda y, i=i: lax.add(y, float(i)))(x)
        return xtrace.jit(lambda y: lax.sin(y))(x)

    text = lowered(function, VECTOR).text()
    assert functions_of(text) == ["_lambda_", *[f"_lambda__{i}" for i in range(1, 5)]]


def test_functions_of_other_types_or_with_swapped_arguments_differ():
    inner = xtrace.jit(lambda x, y: lax.sub(x, y))
    swapped = xtrace.jit(lambda x, y: lax.sub(y, x))
    text = lowered(lambda x, y: (inner(x, x), inner(y, y), swapped(x, x)), VECTOR, MATRIX).text()
    assert len(functions_of(text)) == 3


# Constants


LARGE = np.arange(HIDDEN_ARGUMENT_BYTES // 4 + 1, dtype=np.float32)
SMALL = LARGE[:-1]


def test_large_constants_are_hidden_arguments_and_small_ones_text():
    module = lowered(lambda x, y: (lax.add(x, SMALL), lax.add(y, LARGE)), SMALL, LARGE)
    assert len(module.hidden) == 1 and np.array_equal(module.hidden[0], LARGE)
    head = module.text().split("\n")[1]
    assert "%arg0: tensor<257xf32>, %arg1: tensor<256xf32>, %arg2: tensor<257xf32>" in head
    assert "dense<[0.000000e+00, 1.000000e+00" in module.text() and len(module.text()) < 8000


@pytest.mark.parametrize("kept", [False, True])
def test_programs_with_hidden_arguments_run(kept):
    device_array = xtrace.device_put(2 * LARGE)
    inner = xtrace.jit(lambda x: lax.mul(x, LARGE))

    def function(unused, x):
        return lax.add(inner(x), lax.mul(device_array, inner(LARGE))), SMALL

    found = xtrace.jit(function, keep_unused=kept)(SMALL, np.ones_like(LARGE))
    np.testing.assert_allclose(found[0], LARGE + 2 * LARGE**3, rtol=1e-6)
    np.testing.assert_array_equal(found[1], SMALL)


def test_constants_that_nothing_reads_are_not_passed():
    def function(x):
        lax.add(LARGE, 1.0)
        lax.add(SMALL, 1.0)
        return x

    jitted = xtrace.jit(function)
    text = jitted.lower(VECTOR).as_text()
    assert "constant" not in text and "%arg1" not in text
    np.testing.assert_array_equal(jitted(VECTOR), VECTOR)


SPECIAL = [0.0, -0.0, 1.0, -1.5, 0.1, np.inf, -np.inf, np.nan, 1e-45, 1e-40, -1e-40, 6e-8, 3.4e38, 1e-3]


def values_of(dtype):
    """Values of a dtype that are easily lost: specials, denormals, the largest and the smallest."""
    if dtypes.is_complex(dtype):
        parts = values_of(dtypes.real_part_dtype(dtype))
        return np.stack([parts, parts[::-1]], -1).reshape(-1).view(dtype)
    if dtypes.is_floating(dtype):
        info = dtypes.finfo(dtype)
        bounds = [float(info.max), float(info.tiny), float(info.smallest_subnormal), float(info.eps)]
        with np.errstate(all="ignore"):
            return np.array([*SPECIAL, *bounds, *(-b for b in bounds)]).astype(dtype)
    if dtype == np.bool_:
        return np.array([True, False, True])
    bounds = dtypes.iinfo(dtype)
    return np.array([bounds.min, bounds.min + 1, 0, 1, bounds.max - 1, bounds.max], object).astype(dtype)


def bits(array):
    return np.asarray(array).tobytes()


DTYPES = [d for d in dtypes.all_dtypes.values() if dtypes.bit_width(d) > 1 or d == np.bool_]


@pytest.mark.parametrize("dtype", DTYPES, ids=str)
def test_constants_of_every_dtype_reach_the_program_exactly(dtype):
    values = values_of(dtype)
    with xtrace.enable_x64(True):
        text = lowered(lambda: (values, values[2])).text()
        assert f"tensor<{len(values)}x{dtypes.mlir_name(dtype)}>" in text
        if dtypes.bit_width(dtype) >= 8 or dtype == np.bool_:
            whole, one = xtrace.jit(lambda: (values, values[2]))()
            assert bits(whole) == bits(values) and bits(one) == bits(values[2])


@pytest.mark.parametrize("value", [0.0, -0.0, float("inf"), float("-inf"), float("nan"), 1e-45, 1e-40, 0.1])
def test_literals_reach_the_program_exactly(value):
    found = xtrace.jit(lambda x: (value, lax.add(x, value)))(np.float32(-0.0))
    with np.errstate(all="ignore"):
        expected = np.float32(value)
    assert bits(found[0]) == bits(expected)
    if expected == 0 or not 0 < abs(expected) < 1e-38:
        np.testing.assert_array_equal(found[1], np.float32(-0.0) + expected)


@pytest.mark.parametrize("dtype", [np.float32, np.float16, dtypes.bfloat16, np.complex64])
def test_numbers_beyond_the_range_are_infinite(dtype):
    ones = np.ones(3, dtype)
    closed = xtrace.make_jaxpr(lambda x: x + 1e300)(ones)
    assert "inf" in str(closed) and "inf" in str(xtrace.make_jaxpr(lambda: np.float64(1e300))())
    for found in (xtrace.jit(lambda x: x + 1e300)(ones), xtrace.jit(lambda x: x * -1e300)(ones)):
        assert np.isinf(np.asarray(found).astype(np.complex64)).all()


def test_complex_literals_keep_the_signs_of_their_zeros():
    for value in (complex(1, 0.0), complex(1, -0.0), complex(-0.0, 0.0)):
        assert bits(xtrace.jit(lambda value=value: value)()) == bits(np.complex64(value))


# Donation


def test_donated_inputs_take_over_results_of_their_type():
    module = lowered(
        lambda x, y, m: (lax.add(x, y), lax.mul(x, y), lax.sin(m)), VECTOR, VECTOR, MATRIX, donated=(True, True, False)
    )
    head = module.text().split("\n")[1]
    assert "%arg0: tensor<3xf32> {tf.aliasing_output = 0 : i32}" in head
    assert "%arg1: tensor<3xf32> {tf.aliasing_output = 1 : i32}" in head
    assert "%arg2: tensor<3x4xf32>)" in head and module.unusable_donations == []


def test_each_result_is_taken_over_once_and_the_rest_is_reported():
    module = lowered(lambda x, y, m: (lax.add(x, y), m), VECTOR, VECTOR, MATRIX, donated=(True, True, True))
    head = module.text().split("\n")[1]
    assert head.count("tf.aliasing_output") == 2 and "%arg2: tensor<3x4xf32> {tf.aliasing_output = 1 : i32}" in head
    assert module.unusable_donations == [1]


def test_donation_counts_results_not_hidden_arguments():
    module = lowered(lambda x: lax.add(x, LARGE), LARGE, donated=(True,))
    head = module.text().split("\n")[1]
    assert "%arg0: tensor<257xf32>, %arg1: tensor<257xf32> {tf.aliasing_output = 0 : i32}" in head
    jitted = xtrace.jit(lambda x: lax.add(x, LARGE), donate_argnums=0)
    x = xtrace.device_put(np.ones_like(LARGE))
    np.testing.assert_array_equal(jitted(x), 1 + LARGE)
    assert x.is_deleted()


def test_donation_in_proportion_to_the_number_of_arrays():
    count = 3000
    closed = xtrace.make_jaxpr(lambda *xs: xs)(*[np.float32(0)] * count)
    assert lower(closed, "f", "cpu", donated=[True] * count).unusable_donations == []


# Places


def places(text):
    """For each operation of a module's text, its line and where it says it comes from."""
    defined = {}
    definition = r'^#loc(\d+) = loc\("([^"]*)"\("([^"]*)"\("([^"]*)":(\d+):'
    for number, name, function, file, line in re.findall(definition, text, re.MULTILINE):
        defined[number] = (name, f"{file}:{line} ({function})")
    return [
        (operation.split(" = ", 1)[-1].split(" ")[0], *defined[number])
        for operation, number in re.findall(r"^    (.*) loc\(#loc(\d+)\)$", text, re.MULTILINE)
    ]


PLACED = """\
import xtrace
from xtrace import lax

@xtrace.jit
def inner(y):
    return lax.cos(
        lax.exp(y)
    )

def function(x):
    y = lax.sin(x)
    return inner(
        lax.add(y, 1.0))
"""


def placed():
    namespace = {}
    exec(compile(PLACED, "placed.py", "exec"), namespace)
    return namespace["function"]


def test_every_operation_has_the_place_it_comes_from():
    assert places(lowered(placed(), VECTOR, name="function").text(debug_info=True)) == [
        ("stablehlo.sine", "jit(function)/sin", "placed.py:11 (function)"),
        ("stablehlo.constant", "jit(function)/add", "placed.py:13 (function)"),
        ("stablehlo.add", "jit(function)/add", "placed.py:13 (function)"),
        ("call", "jit(function)/jit(inner)", "placed.py:12 (function)"),
        ("stablehlo.exponential", "exp", "placed.py:7 (inner)"),
        ("stablehlo.cosine", "cos", "placed.py:6 (inner)"),
    ]


def test_the_same_places_reach_xla():
    hlo = xtrace.lower(placed(), VECTOR).compile().as_text()
    assert re.search(r'op_name="jit\(function\)/jit\(inner\)/cos"', hlo)
    assert '"placed.py"' in hlo and re.search(r"line=6\b", hlo) and not re.search(r"line=5\b", hlo)
    assert re.findall(r'^\d+ "(function|inner)"$', hlo, re.MULTILINE)


def test_columns_and_odd_file_names_are_valid():
    names = ['a "quoted" name', "größe\\n.py", "tab\there", "<string>", "关.py"]
    for name in names:
        namespace = {"lax": lax}
        exec(compile("def function(x):\n  return lax.sin(\n    x)", name, "exec"), namespace)
        text = lowered(namespace["function"], VECTOR).text(debug_info=True)
        assert re.search(r":2:10 to 3:7\)\)\)", text)


def test_an_operation_without_a_place():
    closed = xtrace.make_jaxpr(lambda x: lax.sin(x))(VECTOR)
    nowhere = closed.jaxpr.replace(eqns=[closed.eqns[0].replace(source=None)])
    text = lowered(ClosedJaxpr(nowhere, [])).text(debug_info=True)
    assert '#loc1 = loc("jit(f)/sin")\n' in text


def test_text_without_places_has_none():
    text = lowered(programs.nested(lax, xtrace.jit), VECTOR, VECTOR).text()
    assert "loc" not in text and __file__ not in text


# Other platforms


@pytest.mark.parametrize("platform", ["cpu", "cuda", "rocm", "tpu"])
def test_rules_are_told_the_platform(platform, new_primitive):
    seen = []
    primitive = new_primitive("p", abstract=lambda x: x, emit=lambda b, x: seen.append(b.platform) or x)
    lower(xtrace.make_jaxpr(lambda x: primitive.bind(x))(VECTOR), "f", platform)
    assert set(seen) == {platform}


# Cost


@pytest.mark.parametrize("debug_info", [False, True])
def test_lowering_takes_time_in_proportion_to_the_number_of_operations(debug_info):
    def cost(length):
        closed = xtrace.make_jaxpr(programs.chain(length)(lax, xtrace.jit))(VECTOR)
        return calls_while(lambda: lower(closed, "f", "cpu").text(debug_info))

    with xtrace.enable_checks(False):
        cost(10)
        small, large = cost(1_000), cost(10_000)
    assert large < 15 * small  # ten times the size; a quadratic cost would be a hundred times
    assert large / 10_000 < 20


def test_many_functions_of_one_name_take_time_in_proportion():
    def cost(count):
        def function(x):
            for i in range(count):
                x = xtrace.jit(lambda y, i=i: lax.add(y, float(i)))(x)
            return x

        closed = xtrace.make_jaxpr(function)(VECTOR)
        return calls_while(lambda: lower(closed, "f", "cpu").text())

    with xtrace.enable_checks(False):
        cost(2)
        small, large = cost(100), cost(1000)
    assert large < 15 * small  # ten times the size; a quadratic cost would be a hundred times


@pytest.mark.parametrize("call, name", [
    (lambda: lax.broadcast(np.float32(1), (10**6,) * 4), "broadcast_in_dim"),
    (lambda: xtrace.numpy.eye(10**12), "eye"),
    (lambda: xtrace.jit(lambda x: xtrace.numpy.zeros((2**61,)).sum() + x)(1.0), "broadcast_in_dim"),
    (lambda: xtrace.random.split(xtrace.random.key(0), 2**60), "split"),
    # Each array of it would fit into 2**63 bytes, all together would not.
    (lambda: xtrace.random.poisson(xtrace.random.key(0), 1.0, (10**6,) * 3), "poisson"),
    (lambda: xtrace.lower(lambda x: x + 1, xtrace.ShapeDtypeStruct((10**6,) * 4, np.float32)), "add"),
])
def test_shapes_too_large_for_xla_are_refused_by_the_called_function_s_name(call, name):
    # XLA would end the process. Again, as nothing of the failure may be kept.
    for _ in range(2):
        with pytest.raises(ValueError, match=rf"^{name}: an array of type .* would have 2\*\*57 bytes or more"):
            call()


def test_the_body_of_several_loops_is_written_once():
    def body(carry, x):
        return lax.sin(carry) * x, lax.cos(carry)

    def f(x):
        once, first = lax.scan(body, np.float32(0.5), x)
        return lax.scan(body, once + 1, x)[1] + first

    x = np.arange(3, dtype=np.float32)
    text = xtrace.lower(f, x).as_text()
    assert text.count("stablehlo.sine") == 1 and text.count("func.call @scan_body") == 2
    alone = xtrace.lower(lambda x: lax.scan(body, np.float32(0.5), x), x).as_text()
    assert "func.call" not in alone
    carry, first = np.float32(0.5), []
    for a in x:
        first.append(np.cos(carry))
        carry = np.sin(carry) * a
    carry, again = carry + 1, []
    for a in x:
        again.append(np.cos(carry))
        carry = np.sin(carry) * a
    np.testing.assert_allclose(xtrace.jit(f)(x), np.add(first, again), rtol=8 * np.finfo(np.float32).eps)
