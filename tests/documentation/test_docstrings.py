"""The template of public docstrings: a contract, Args, Returns, Raises, Example, Reference, and examples that run."""

from __future__ import annotations

import builtins
import collections
import doctest
import enum
import functools
import importlib
import inspect
import re
import types

import numpy as np
import pytest

import xtrace
from xtrace import stages
from xtrace._src.api.pages.explore import Explored
from xtrace._src.api.reports.compile_time_reports import CompileTimeReport
from xtrace._src.api.reports.memory_reports import MemoryReport
from xtrace._src.core.primitive import Primitive
from xtrace.numpy.indexing.indexed_updates import IndexedArray

# Functions that accept every argument, so that there is no error to name.
RAISE_NOTHING = frozenset(f"xtrace.{name}" for name in (
    "experimental.compilation_cache.compilation_cache.reset_cache",
    "block_until_ready", "clear_caches", "copy_to_host_async", "default_backend", "device_get", "disable_jit",
    "get_abstract_mesh", "interpreters.batching.unregister_vmappable",
    "distributed.is_initialized", "ensure_compile_time_eval", "numpy.__array_namespace_info__", "numpy.isscalar",
    "numpy.iterable",
    "print_environment_info", "targets", "tree_util.is_tree_node", "core.eval_context",
    "monitoring.clear_event_listeners",
    "monitoring.register_event_duration_secs_listener", "monitoring.register_event_listener",
    "monitoring.register_event_time_span_listener", "monitoring.register_scalar_listener", "extend.core.gensym",
    "extend.core.nonempty_axis_env_DO_NOT_USE", "extend.core.unsafe_am_i_under_a_jit_DO_NOT_USE",
    "extend.core.unsafe_am_i_under_a_vmap_DO_NOT_USE", "extend.core.unsafe_get_axis_names_DO_NOT_USE",
    "extend.core.valid_jaxtype", "export.is_symbolic_dim",
    "extend.core.find_top_trace", "extend.core.get_opaque_trace_state",
    "extend.backend.clear_in_memory_compilation_cache", "extend.backend.get_default_device",
    "extend.core.take_current_trace", "extend.source_info_util.current",
    "extend.source_info_util.current_name_stack", "extend.source_info_util.new_source_info",
    "extend.source_info_util.reset_name_stack", "experimental.hijax.is_undefined_primal",
    "experimental.cur_qdd", "lax.create_token", "alias_names",
    "interpreters.batching.unregister_vmappable",
))

# Functions whose examples need several processes: tests/distributed runs them.
OF_PROCESSES = frozenset(f"xtrace.{name}" for name in (
    "distributed.initialize", "experimental.multihost_utils.live_devices",
    "experimental.multihost_utils.reached_preemption_sync_point",
))

# The public modules whose functions are numerical methods, and their functions that are none.
NUMERICAL = frozenset((
    "xtrace.experimental.ode", "xtrace.lax.linalg", "xtrace.numpy.fft", "xtrace.numpy.linalg", "xtrace.random",
    "xtrace.scipy.cluster.vq", "xtrace.scipy.fft", "xtrace.scipy.linalg", "xtrace.scipy.ndimage",
    "xtrace.scipy.optimize", "xtrace.scipy.signal", "xtrace.scipy.sparse.linalg", "xtrace.scipy.special",
))
WITHOUT_REFERENCE = frozenset(
    f"xtrace.numpy.linalg.{name}" for name in (
        "cross", "diagonal", "matmul", "matrix_transpose", "outer", "tensordot", "trace", "vecdot",
    )
) | {"xtrace.lax.linalg.symmetric_product"} | frozenset(
    f"xtrace.numpy.fft.{name}" for name in ("fftfreq", "fftshift", "ifftshift", "rfftfreq")
)
# Numerical methods in other modules.
ALSO_NUMERICAL = frozenset(f"xtrace.numpy.{name}" for name in (
    "bartlett", "blackman", "hamming", "hanning", "i0", "interp", "kaiser", "polyfit", "quantile", "roots",
))

SECTIONS = ("Args", "Attributes", "Returns", "Yields", "Raises", "Example", "Reference")
VERBS = frozenset(re.findall(r"\w+", """
    Add Allocate Append Apply Approximate Broadcast Build Call Cast Change Check Choose Clip Combine Compile Compute
    Concatenate Connect Convert Convolve Copy Count Create Cut Declare Decompose Decorate Define Delete Describe
    Differentiate Divide Draw Eliminate Encrypt End Evaluate Exchange Expand Extract Factor Fill Find Fit Flatten Flip
    Forget Format Gather Give Hash Insert Integrate Interpolate Invert Iterate Join Leave List Load Lower Make Map Mark
    Minimize Move Multiply Negate Normalize Override Pack Pad Parse Partition Permute Place Print Put Raise Read Record
    Reduce Register Reinterpret Remove Repeat Replace Report Reshape Resize Return Reverse Roll Rotate Round Run Save
    Scale Scatter Search Select Send Serialize Set Shift Shuffle Solve Sort Split Stack Start Stop Subtract Sum Swap
    Take Test Tile Trace Transform Transpose Traverse Unpack Unwrap Update Wait Wrap Write
"""))


def modules_below(name):
    """Return the names of the public modules from `name` on."""
    module = importlib.import_module(name)
    below = [f"{name}.{n}" for n in dir(module) if isinstance(getattr(module, n), types.ModuleType)]
    return [name, *[each for module_name in below for each in modules_below(module_name)]]


def source_of(value, module):
    """Return the module that defines a function; of objects the public `module`, and of operations also the class."""
    if isinstance(value, Primitive):
        return f"{module}.{type(value).__name__}"
    namespace = getattr(inspect.unwrap(value), "__globals__", None) if isinstance(value, types.FunctionType) else None
    source = module if namespace is None else namespace["__name__"]
    shared = ("xtrace._src.api.operators.operators", "xtrace._src.api.operators.elementwise_functions")
    return module if source in shared or not source.startswith("xtrace") else source


def is_documented_here(value):
    """Whether `value` is a function, a class or a callable object that xtrace defines."""
    if isinstance(value, types.FunctionType):
        return inspect.unwrap(value).__module__.startswith("xtrace")
    if isinstance(value, type):
        return value.__module__.startswith("xtrace") and type(value).__module__ != "typing"
    # A module may be called as its function of another name.
    return callable(value) and type(value).__module__.startswith("xtrace") and not isinstance(value, types.ModuleType)


@functools.cache
def public_objects():
    """Return the public functions and classes by the module that defines them: full names and values, once each."""
    seen, by_source = set(), collections.defaultdict(dict)
    for module in modules_below("xtrace"):
        namespace = importlib.import_module(module)
        for name in dir(namespace):
            value = getattr(namespace, name)
            # A name that ends in _p is another name of an operation, or of a primitive that only jaxprs show.
            if name.endswith("_p") or id(value) in seen or not is_documented_here(value):
                continue
            seen.add(id(value))
            by_source[source_of(value, module)][f"{module}.{name}"] = value
    return dict(by_source)


def sections_of(docstring):
    """Return the first line of a docstring, and its sections by name, dedented; ValueError for unknown sections."""
    lines = inspect.cleandoc(docstring).splitlines()
    sections, current = collections.OrderedDict(), None
    for line in lines[1:]:
        heading = re.fullmatch(r"([A-Z][a-z]+):", line)
        if heading:
            current = heading[1]
            if current not in SECTIONS:
                raise ValueError(f"the section {current} is none of {', '.join(SECTIONS)}")
            if current in sections:
                raise ValueError(f"there are two sections {current}")
            sections[current] = []
        elif current is not None:
            if line and not line.startswith("    "):
                raise ValueError(f"the text {line!r} after a section belongs above the sections, or is to be indented")
            sections[current].append(line[4:])
    return lines[0], {name: "\n".join(body).strip("\n") for name, body in sections.items()}


def entries_of(section):
    """Return the names before the colons of a section's entries, in order, and whether each has a text."""
    names = []
    for line in section.splitlines():
        if line and not line.startswith(" "):
            entry = re.fullmatch(r"([\w., *]+): (.+)", line)
            if entry is None:
                raise ValueError(f"the entry {line!r} is to begin with a name, a colon and a text")
            names += entry[1].split(", ")
    return names


def parameters_of(value):
    """Return the names of the parameters of a function or of a constructor, or None where Python knows none."""
    try:
        return list(inspect.signature(value).parameters)
    except (TypeError, ValueError):
        return None


def defaults_of(value):
    """Return the parameters of a function or of a constructor that have defaults, with these as texts."""
    if parameters_of(value) is None:
        return []
    parameters = inspect.signature(value).parameters.values()
    return [(p.name, repr(p.default)) for p in parameters if p.default is not p.empty]


def faults_of(name, value, module):
    """Return in words where the docstring of a public function or class departs from the template."""
    docstring = getattr(value, "__doc__", None)
    if not docstring or not docstring.strip():
        return ["there is no docstring"]
    try:
        first, sections = sections_of(docstring)
        documented = entries_of(sections["Args"]) if "Args" in sections else []
        errors = entries_of(sections["Raises"]) if "Raises" in sections else []
    except ValueError as error:
        return [str(error)]
    is_class = isinstance(value, type)
    faults = []
    if not first.endswith(".") or len(first) > 120:
        faults.append("the first line is to be one sentence of at most 120 columns that ends in a period")
    if not is_class and first.split()[0] not in VERBS:
        faults.append(f"the first line begins with {first.split()[0]!r}, which is not in VERBS")
    if any(len(line) > 120 for line in docstring.splitlines()):
        faults.append("a line is longer than 120 columns")
    if list(sections) != [each for each in SECTIONS if each in sections]:
        faults.append(f"the order of the sections is {', '.join(SECTIONS)}")
    parameters = parameters_of(value)
    if is_class and issubclass(value, BaseException):
        return faults
    if is_class and issubclass(value, enum.Enum):
        parameters = []
    if parameters is not None and documented != parameters and not (is_class and "Attributes" in sections):
        faults.append(f"Args has {documented}, and the signature {parameters}")
    faults += [
        f"the default of {each} is shown as {shown}, which is new in each process"
        for each, shown in defaults_of(value) if " object at 0x" in shown
    ]
    if not is_class and name not in RAISE_NOTHING | METHODS_RAISE_NOTHING and not errors:
        faults.append("Raises is missing; list the function in RAISE_NOTHING if it accepts everything")
    places = (
        builtins, xtrace.errors, xtrace.dtypes, xtrace.experimental.multihost_utils, xtrace.experimental.sparse,
        xtrace.extend.linear_util,
    )
    unknown = [each for each in errors if not any(hasattr(place, each) for place in places)]
    if unknown:
        faults.append(f"{', '.join(unknown)} in Raises is no class of errors")
    if ">>> " not in sections.get("Example", ""):
        faults.append("Example is missing")
    numerical = (module in NUMERICAL and name not in WITHOUT_REFERENCE) or name in ALSO_NUMERICAL
    if numerical and not is_class and not sections.get("Reference"):
        faults.append("Reference is missing: the paper, book or standard that gives the method")
    return faults


def faults_of_source(source):
    found = {}
    for name, value in public_objects()[source].items():
        faults = faults_of(name, value, name.rpartition(".")[0])
        if faults:
            found[name] = faults
    return found


SOURCES = sorted(public_objects())


@pytest.mark.parametrize("source", SOURCES)
def test_docstrings_follow_the_template(source):
    report = [f"{name}: {'; '.join(faults)}" for name, faults in faults_of_source(source).items()]
    assert not report, "\n".join(report)


_NUMBER = re.compile(r"-?\d+\.\d*(?:e[+-]?\d+)?")


class _CloseNumbers(doctest.OutputChecker):
    """Accepts floats that differ in their last digits, which depend on the compiler and its flags."""

    def check_output(self, want, got, optionflags):
        if super().check_output(want, got, optionflags):
            return True
        texts = ["".join(_NUMBER.sub("#", text).split()) for text in (want, got)]
        numbers = [[float(x) for x in _NUMBER.findall(text)] for text in (want, got)]
        return texts[0] == texts[1] and bool(np.allclose(*numbers, rtol=2e-6, atol=0))


def test_examples_may_differ_in_last_digits():
    check = _CloseNumbers().check_output
    assert check("Array([0.1 , 1.5], dtype=float32)", "Array([0.10000001, 1.5], dtype=float32)", 0)
    assert not check("Array(0.5, dtype=float32)", "Array(0.50001, dtype=float32)", 0)
    assert not check("Array(0.5, dtype=float32)", "Array(0.5, dtype=float16)", 0)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("source", SOURCES)
def test_examples_print_their_results(source):
    names = {
        "jnp": xtrace.numpy, "lax": xtrace.lax, "random": xtrace.random, "nn": xtrace.nn, "np": np, "xtrace": xtrace,
        "scipy": xtrace.scipy,
    }
    parser, report = doctest.DocTestParser(), []
    texts = {value.__doc__: name for name, value in reversed(public_objects()[source].items())}
    for docstring, name in texts.items():
        if name in OF_PROCESSES:
            continue
        runner = doctest.DocTestRunner(checker=_CloseNumbers(), verbose=False)
        runner.run(parser.get_doctest(docstring, dict(names), name, None, None), out=report.append)
    assert not report, "".join(report)


# Classes whose instances users hold, and whose methods follow the template, too.
METHODS = {
    f"{cls.__name__}.{name}": getattr(cls, name)
    for cls, names in (
        (xtrace.numpy.ufunc, ("reduce", "accumulate", "at", "reduceat", "outer")),
        (IndexedArray, ("set", "add", "subtract", "multiply", "mul", "divide", "power", "min", "max", "get", "apply")),
        (MemoryReport, ("by_line", "fits", "to_json")), (CompileTimeReport, ("to_json",)),
        (Explored, ("beside", "to_json", "html", "save")),
        (stages.Traced, ("lower", "explore")), (stages.Lowered, ("as_text", "compiler_ir", "cost_analysis", "compile")),
        (stages.Compiled, ("as_text", "cost_analysis", "memory_analysis", "report", "fits", "runtime_executable")),
    )
    for name in names
}
# Methods that accept every argument, so that there is no error to name.
METHODS_RAISE_NOTHING = frozenset(("MemoryReport.by_line", "MemoryReport.to_json", "CompileTimeReport.to_json",
                                   "Explored.to_json", "Explored.html", "Lowered.cost_analysis", "Compiled.as_text",
                                   "Compiled.cost_analysis", "Compiled.memory_analysis", "Compiled.report",
                                   "Compiled.runtime_executable"))


@pytest.mark.parametrize("name", METHODS)
def test_methods_follow_the_template(name):
    method = METHODS[name]
    function = lambda: None  # noqa: E731
    function.__doc__ = method.__doc__
    function.__signature__ = inspect.signature(functools.partial(method, None))
    assert not faults_of(name, function, "xtrace.numpy")
    runner, report = doctest.DocTestRunner(checker=_CloseNumbers(), verbose=False), []
    names = {"jnp": xtrace.numpy, "xtrace": xtrace}
    runner.run(doctest.DocTestParser().get_doctest(method.__doc__, names, name, None, None), out=report.append)
    assert not report, "".join(report)


@pytest.mark.parametrize(
    "cls", [MemoryReport, CompileTimeReport, Explored, stages.Traced, stages.Lowered, stages.Compiled]
)
def test_all_members_of_reports_are_described(cls):
    members = {name: member for name, member in vars(cls).items() if not name.startswith("_") and name != "call"}
    methods = {name for name, member in members.items() if isinstance(member, types.FunctionType)}
    assert {f"{cls.__name__}.{name}" for name in methods} <= METHODS.keys()
    for name in members.keys() - methods:
        first = (inspect.getdoc(members[name]) or "").split("\n")[0]
        assert first.endswith(".") and len(first) <= 120, f"{name}: {first}"


def test_exceptions_from_the_template_are_public_functions():
    known = {name for objects in public_objects().values() for name in objects}
    assert not (RAISE_NOTHING | WITHOUT_REFERENCE | ALSO_NUMERICAL | OF_PROCESSES) - known


def example_function(first, second=1):
    """Return `first`.

    Args:
        first: an array.
        second: a number.

    Returns:
        The array.

    Raises:
        TypeError: `first` is no array.

    Example:
        >>> 1 + 1
        2
    """


def test_a_docstring_that_follows_the_template_has_no_faults():
    assert faults_of("name", example_function, "xtrace.numpy") == []


@pytest.mark.parametrize(
    "old, new, fault",
    [
        ("Return `first`.", "The first.", "begins with 'The'"),
        ("Return `first`.", "Return `first`", "ends in a period"),
        ("second: a number", "third: a number", "the signature"),
        ("second: a number", "second a number", "is to begin with a name"),
        ("Returns:", "Result:", "section Result"),
        ("Returns:", "Args:", "two sections"),
        ("Raises:\n    TypeError", "Returns:\n    TypeError", "two sections"),
        ("TypeError", "Mistake", "no class of errors"),
        (">>> 1 + 1", "1 + 1", "Example is missing"),
        ("Raises:\n    TypeError: `first` is no array.\n", "", "Raises is missing"),
    ],
)
def test_departures_from_the_template_are_found(old, new, fault):
    # Python 3.13 takes the indentation away, earlier ones leave it.
    docstring = inspect.cleandoc(example_function.__doc__)
    assert old in docstring
    departed = types.FunctionType(example_function.__code__, {}, argdefs=(1,))
    departed.__doc__ = docstring.replace(old, new, 1)
    assert any(fault in text for text in faults_of("name", departed, "xtrace.numpy"))
    if new == "1 + 1":
        assert any("Reference" in text for text in faults_of("name", departed, "xtrace.random"))
