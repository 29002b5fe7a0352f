"""Functions that an operation applies to single elements, such as those of a reduction or a scatter."""

from __future__ import annotations

import re

from xtrace._src.core.diagnostics.positions import describe
from xtrace._src.core.jaxprs.ir import Jaxpr, find_jaxprs
from xtrace._src.core.primitive import Primitive
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.lower import emit_jaxpr

# The operations that call Python.
CALLING_PYTHON: set[Primitive] = set()


def emit_element_function(inner: FunctionBuilder, jaxpr: Jaxpr, name: str) -> list[Value]:
    """Write the function that the operation `name` applies to elements into the region `inner`; return its results.

    Raises NotImplementedError if the function calls Python, or needs operations that abort XLA in such a region
    (openxla/xla#47366, #47370, #47373).
    """
    _check_element_function(jaxpr, name)
    returned = emit_jaxpr(inner, jaxpr, inner.arguments[: len(jaxpr.invars)])
    unsupported = _find_uncompilable(inner)
    if unsupported is not None:
        raise NotImplementedError(
            f"{name}: the function it applies to elements needs {unsupported}, which XLA only does with whole arrays. "
            "Write the function with elementwise operations, or the whole as a scan or an associative_scan"
        )
    return returned


_WHOLE_ARRAYS = re.compile(
    r"stablehlo\.(while|sort|custom_call|fft|scatter|dynamic_update_slice|rng_bit_generator)\b"
    r"|stablehlo\.(dot_general).* -> tensor<[0-9?]"
)


def _find_uncompilable(builder: FunctionBuilder) -> str | None:
    """Return the first operation of a function or region that XLA cannot compile inside a function of elements."""
    depths: list[int] = []
    for line in builder.lines:
        match = _WHOLE_ARRAYS.search(line)
        if match is not None:
            return f"stablehlo.{match[1] or match[2]}"
        if '"stablehlo.case"' in line:
            depths.append(0)
        elif depths and line.lstrip().startswith("}, {"):
            depths[-1] += 1
            if depths[-1] > 1:
                return "a choice between more than two branches"
        elif depths and line.lstrip().startswith("})"):
            depths.pop()
        called = _CALLED.search(line)
        if called is not None:
            functions = builder.module.functions
            inside = next((_find_uncompilable(f) for f in functions if f.name == called[1]), None)
            if inside is not None:
                return inside
    return None


_CALLED = re.compile(r"call @([^(]+)\(")


def _check_element_function(jaxpr: Jaxpr, name: str) -> None:
    """Raise NotImplementedError if a function that the operation `name` applies to elements calls Python.

    XLA may call the function in any order and any number of times, and aborts the process for calls of Python there.
    """
    for equation in jaxpr.eqns:
        if equation.primitive in CALLING_PYTHON:
            raise NotImplementedError(
                f"Cannot lower effectful `{name}`: the function it applies to elements calls Python ("
                f"{equation.primitive.name}, at {describe(equation.source)}), which it may do in no order and any "
                "number of times. Print what goes in or comes out, or write it as a scan"
            )
        for inner in find_jaxprs(equation.parameters):
            _check_element_function(inner, name)
