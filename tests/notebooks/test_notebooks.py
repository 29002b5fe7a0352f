"""The notebook runs from top to bottom, and its cells print what the specification says."""

import pathlib

import nbformat
import pytest
from nbclient import NotebookClient

REPOSITORY = pathlib.Path(__file__).parents[2]
PATH = REPOSITORY / "notebooks" / "01_trace_lower_run.ipynb"

pytestmark = pytest.mark.slow

# Cell id: what its printed output is, or (in a list) what it contains.
EXACT = {
    "jaxpr-log2": """\
{ lambda ; a:f32[]. let
    b:f32[] = log a
    c:f32[] = log 2.0
    d:f32[] = div b c
  in (d,) }
""",
    "history": """\
1 entry: JitTracer(~float32[])
""",
    "print-while-tracing": """\
first call:
traced with JitTracer(~float32[])
second call:
done
""",
    "jaxpr-dot": """\
{ lambda ; a:f32[3,4] b:f32[4]. let
    c:f32[3,4] = add a 1.0
    d:f32[4] = add b 1.0
    e:f32[3] = dot_general[
      dimension_numbers=(([1], [0]), ([], []))
      preferred_element_type=float32
    ] c d
  in (e,) }
""",
    "weak-types": "Array(2., dtype=float32, weak_type=True)\nfloat16 float32\n",
    "jaxpr-rank": "{ lambda ; a:i32[3]. let  in (a,) }\n",
    "specialisation": "other values: True\nother shape:  False\nother dtype:  False\n",
    "cache": """\
three floats             traced
other three floats       from the cache
four floats              traced
four integers            traced
a pair                   traced
a list of two            traced
three floats again       from the cache
""",
    "static": "10\n30\n30\nArray(-1, dtype=int32, weak_type=True)\n",
    "inner-jit": "Array(30, dtype=int32, weak_type=True)\n",
    "norm": "agree: True\n",
}
CONTAINED = {
    "stablehlo": ["func.func public @main", "stablehlo.exponential", "tensor<5xf32>"],
    "cache-owner": ["jit(increment) in a loop:          0\n"],
    "error-if": [
        "TracerBoolConversionError: Attempted boolean conversion of traced array with shape bool[].",
        "The error occurred while tracing the function f at ",
        " for jit.",
        "This concrete value was not available in Python because it depends on the value of the argument x.",
    ],
    "error-while": ["TracerBoolConversionError", "depends on the value of the argument n."],
    "error-mask": [
        "[-5 -4 -3 -2 -1]\n",
        "NonConcreteBooleanIndexError: Array boolean indices must be concrete; got ShapedArray(bool[10])",
        "[-5 -4 -3 -2 -1  0  0  0  0  0]\n",
    ],
    "error-reshape": [
        "TypeError: Shapes must be 1D sequences of concrete values of integer type, got [JitTracer(int32[])",
        "If using `jit`, try using `static_argnums` or applying `jit` to smaller subfunctions.",
        "This value became a tracer due to xtrace operations on these lines:",
        "[1. 1. 1. 1. 1. 1.]\n",
    ],
    "static-unhashable": ["ValueError: ", "4.0\n"],
}
PLOTS = ["selu-plot", "timing", "norm-timing"]


@pytest.fixture(scope="module")
def cells() -> dict[str, nbformat.NotebookNode]:
    """The executed code cells by id; an error in one of them fails every test here."""
    notebook = nbformat.read(PATH, as_version=4)
    # The kernel starts in the repository's root, so that a clone without an installation finds the package.
    resources = {"metadata": {"path": str(REPOSITORY)}}
    with pytest.MonkeyPatch.context() as patch:
        # The kernel inherits the environment, and the tests' own backend would draw into nothing.
        patch.setenv("MPLBACKEND", "module://matplotlib_inline.backend_inline")
        NotebookClient(notebook, timeout=120, kernel_name="python3", resources=resources).execute()
    return {cell.id: cell for cell in notebook.cells if cell.cell_type == "code"}


def printed(cell: nbformat.NotebookNode) -> str:
    return "".join(output.text for output in cell.outputs if output.output_type == "stream" and output.name == "stdout")


def test_notebook_is_stored_without_outputs() -> None:
    notebook = nbformat.read(PATH, as_version=4)
    assert not any(cell.outputs or cell.execution_count for cell in notebook.cells if cell.cell_type == "code")


@pytest.mark.parametrize("cell", EXACT)
def test_cell_prints_what_the_specification_says(cells: dict[str, nbformat.NotebookNode], cell: str) -> None:
    assert printed(cells[cell]) == EXACT[cell]


@pytest.mark.parametrize("cell", CONTAINED)
def test_cell_prints_the_parts_that_matter(cells: dict[str, nbformat.NotebookNode], cell: str) -> None:
    output = printed(cells[cell])
    for part in CONTAINED[cell]:
        assert part in output


@pytest.mark.parametrize("cell", PLOTS)
def test_cell_draws_a_plot(cells: dict[str, nbformat.NotebookNode], cell: str) -> None:
    assert any("image/png" in output.get("data", {}) for output in cells[cell].outputs)


def test_nothing_is_written_to_the_error_stream(cells: dict[str, nbformat.NotebookNode]) -> None:
    outputs = [output for cell in cells.values() for output in cell.outputs]
    assert [output.text for output in outputs if output.get("name") == "stderr"] == []
