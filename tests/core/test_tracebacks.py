"""xtrace's frames are left out of tracebacks, the user's stay, and a note says so."""

import importlib
import os
import pickle
import pkgutil
import subprocess
import sys
import traceback
import warnings
from types import FunctionType

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.architecture.source_tree import ROOT
from xtrace import lax, random
from xtrace._src.core.diagnostics.positions import is_internal
from xtrace._src.core.settings import config
from xtrace._src.ops.elementwise import trigonometry

PACKAGE = os.path.dirname(xtrace.__file__)


@pytest.fixture
def filtering():
    """The setting, at its default in place of the one that tests run under."""
    before = config.traceback_filtering.value
    config.config.update("jax_traceback_filtering", "auto")
    yield lambda mode: config.config.update("jax_traceback_filtering", mode)
    config.config.update("jax_traceback_filtering", before)


def error_of(function):
    """The exception that `function` raises, as a program that calls it gets it."""
    try:
        function()
    except BaseException as error:
        return error
    raise AssertionError("nothing was raised")


def frames(error):
    """The functions on the way to the error, xtrace's written as such."""
    found = traceback.extract_tb(error.__traceback__)
    return ["<xtrace>" if f.filename.startswith((PACKAGE, "<xtrace")) else f.name for f in found]


def branch(x):
    if x > 0:
        return x
    return -x


def raises(x):
    raise OSError("the user's")


def assign(x):
    x[0] = 1


def wrong_carry():
    return lax.scan(lambda c, x: ((c, c), x), 0, jnp.arange(3))


three = np.ones(3, np.float32)

FAILING = {
    "jit": lambda: xtrace.jit(branch)(1.0),
    "operator": lambda: jnp.asarray(three) + jnp.ones(4),
    "operator with a number first": lambda: [1] + jnp.asarray(three),
    "comparison": lambda: jnp.asarray(three) < jnp.ones(4),
    "unary": lambda: ~jnp.asarray(three),
    "matrix product": lambda: jnp.asarray(three) @ jnp.ones(4),
    "assignment": lambda: assign(jnp.asarray(three)),
    "index": lambda: jnp.asarray(three)["a"],
    "update": lambda: jnp.asarray(three).at[0].set("a"),
    "method": lambda: jnp.asarray(three).reshape(4),
    "jitted method": lambda: jnp.asarray(three).sum(axis=4),
    "conversion": lambda: float(jnp.asarray(three)),
    "condition": lambda: bool(jnp.asarray(three)),
    "numpy elementwise": lambda: jnp.sin("a"),
    "numpy plain": lambda: jnp.reshape(three, 4),
    "numpy unit": lambda: jnp.divmod(1, "a"),
    "numpy late": lambda: jnp.einsum("ij", three),
    "numpy.linalg": lambda: jnp.linalg.inv(three),
    "numpy.fft": lambda: jnp.fft.fft(three, axis=3),
    "random": lambda: random.normal(three, (3,)),
    "primitive": lambda: lax.add(1, 1.0),
    "unary primitive": lambda: lax.exp("a"),
    "operation of lax": lambda: lax.dot_general(three, three, (((1,), (0,)), ((), ()))),
    "reduction of lax": lambda: lax.reduce_sum(three, "a"),
    "scan": wrong_carry,
    "grad": lambda: xtrace.grad(lambda x: x)(three),
    "value_and_grad": lambda: xtrace.value_and_grad(lambda x: x)(1),
    "vmap": lambda: xtrace.vmap(lambda x, y: x)(three, np.ones(4)),
    "pullback": lambda: xtrace.vjp(lambda x: x, 1.0)[1]("a"),
    "jvp": lambda: xtrace.jvp(lambda x: x, (1.0,), ("a",)),
    "jacobian": lambda: xtrace.jacfwd(lambda x: x)("a"),
    "make_jaxpr": lambda: xtrace.make_jaxpr(lambda x: x)("a"),
    "lower": lambda: xtrace.jit(branch).lower("a"),
    "compiled": lambda: xtrace.jit(lambda x: x).lower(1.0).compile()(three),
    "foreign function": lambda: xtrace.ffi.ffi_call("unregistered", three)(three),
    "custom_jvp": lambda: xtrace.custom_jvp(lambda x: x)(1.0),
    "device_put": lambda: xtrace.device_put("a"),
    "tree.map": lambda: xtrace.tree.map(lambda x, y: x, [1], [1, 2]),
    "jit itself": lambda: xtrace.jit(3),
}


@pytest.mark.parametrize("name", FAILING)
def test_only_the_users_frames_are_left(name, filtering):
    error = error_of(FAILING[name])
    assert "<xtrace>" not in frames(error)
    notes = [n for n in error.__notes__ if "frames are left out" in n]
    assert len(notes) == 1 and "XTRACE_TRACEBACK_FILTERING=off" in notes[0]


def test_user_frames_between_xtrace_frames_stay(filtering):
    def inner(x):
        return branch(x)

    def outer(x):
        return xtrace.vmap(inner)(x)

    error = error_of(lambda: xtrace.grad(xtrace.jit(outer))(three))
    assert frames(error) == ["error_of", "<lambda>", "outer", "inner", "branch"]
    assert sum("left out" in note for note in error.__notes__) == 1


def test_users_errors_and_interrupts(filtering):
    def interrupted(x):
        raise KeyboardInterrupt

    assert frames(error_of(lambda: xtrace.jit(raises)(1.0))) == ["error_of", "<lambda>", "raises"]
    assert frames(error_of(lambda: xtrace.jit(interrupted)(1.0))) == ["error_of", "<lambda>", "interrupted"]
    assert frames(error_of(lambda: xtrace.tree.map(raises, [1]))) == ["error_of", "<lambda>", "raises"]
    assert frames(error_of(lambda: xtrace.named_call(raises)(1.0))) == ["error_of", "<lambda>", "raises"]


def test_attributes_of_users_errors_are_their_own(filtering):
    class Several(Exception):
        exceptions = ("these", "are", "words")

    def several(x):
        raise Several("of them")

    error = error_of(lambda: xtrace.jit(several)(1.0))
    assert type(error) is Several and frames(error) == ["error_of", "<lambda>", "several"]


def test_causes_contexts_and_groups(filtering):
    def chained(x):
        try:
            branch(x)
        except TypeError as error:
            raise RuntimeError("no branch") from error

    def handled(x):
        try:
            branch(x)
        except TypeError:
            raises(x)

    def grouped(x):
        raise ExceptionGroup("both", [error_of(lambda: branch(x)), error_of(lambda: lax.add(1, 1.0))])

    found = error_of(lambda: xtrace.jit(chained)(1.0))
    assert "<xtrace>" not in frames(found) + frames(found.__cause__)
    assert frames(found.__cause__)[-1] == "branch"
    found = error_of(lambda: xtrace.jit(handled)(1.0))
    assert "<xtrace>" not in frames(found) + frames(found.__context__)
    found = error_of(lambda: xtrace.jit(grouped)(1.0))
    assert all("<xtrace>" not in frames(e) for e in (found, *found.exceptions))
    assert frames(found.exceptions[0])[-1] == "branch"


@pytest.mark.parametrize("failure", [AssertionError, KeyError])
def test_frames_stay_where_xtrace_itself_fails(failure, filtering, monkeypatch):
    # As a rule of xtrace's own would fail: a statement of its code, other than `raise`, raises.
    source = "def rule(*_, **__): " + ("assert False" if failure is AssertionError else "{}[0]")
    made = {}
    exec(compile(source, os.path.join(PACKAGE, "rules.py"), "exec"), made)
    monkeypatch.setattr(trigonometry.tan, "abstract", made["rule"])
    error = error_of(lambda: xtrace.jit(lambda x: lax.tan(x))(np.float16(1)))
    assert type(error) is failure and frames(error)[-1] == "<xtrace>"
    assert any("it is a bug" in note for note in error.__notes__)
    assert not any("left out" in note for note in error.__notes__)


def test_frames_are_hidden_outside_of_the_boundary_that_hid_the_error(filtering):
    """What raises at the outer boundary is a call, and the class is one that Python raises for faults in code."""

    @xtrace.custom_vjp
    def without_rule(x):
        return x

    error = error_of(lambda: xtrace.grad(without_rule)(1.0))
    assert type(error) is AttributeError and "<xtrace>" not in frames(error)

    # The first mask of a process goes through a method that loads the real one.
    program = "import xtrace, xtrace.numpy as jnp\nxtrace.jit(lambda x: x[x > 0].sum())(jnp.arange(3.0))"
    settings = os.environ | {"XTRACE_TRACEBACK_FILTERING": "auto", "PYTHONPATH": str(ROOT)}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, env=settings)
    assert "NonConcreteBooleanIndexError" in done.stderr and "_src" not in done.stderr.partition("Error: ")[0]


@pytest.mark.parametrize("call", [
    lambda: xtrace.NamedSharding(xtrace.make_mesh((1,), ("x",)), xtrace.P("y")),
    lambda: xtrace.ShapeDtypeStruct("two", "float32"), lambda: xtrace.custom_jvp(1), lambda: xtrace.custom_vjp(1),
    lambda: xtrace.custom_batching.custom_vmap(1), lambda: xtrace.set_mesh(1),
    lambda: xtrace.sharding.use_abstract_mesh(1),
    lambda: xtrace.shard_map(abs, mesh=xtrace.make_mesh((1,), ("x",)), in_specs=xtrace.P("y"), out_specs=xtrace.P())(1),
])
def test_public_classes_and_mapped_functions_are_boundaries(call, filtering):
    assert frames(error_of(call)) == ["error_of", "<lambda>"]


@pytest.mark.parametrize("module", [xtrace, jnp, lax], ids=lambda module: module.__name__)
def test_a_misspelt_name_shows_the_line_of_the_user(module):
    error = error_of(lambda: module.misspelt)
    assert type(error) is AttributeError and frames(error) == ["error_of", "<lambda>"]


def test_modes(filtering):
    filtering("off")
    error = error_of(lambda: xtrace.jit(branch)(1.0))
    assert "<xtrace>" in frames(error) and not hasattr(error, "__notes__")
    filtering("quiet_remove_frames")
    error = error_of(lambda: xtrace.jit(branch)(1.0))
    assert "<xtrace>" not in frames(error) and "XTRACE_TRACEBACK_FILTERING=off" in error.__notes__[0]
    filtering("remove_frames")
    error = error_of(lambda: xtrace.jit(branch)(1.0))
    assert "<xtrace>" not in frames(error) and not hasattr(error, "__notes__")
    assert type(error.__cause__).__name__ == "UnfilteredStackTrace" and PACKAGE in str(error.__cause__)
    filtering("tracebackhide")
    error = error_of(lambda: xtrace.jit(branch)(1.0))
    marked = ["__tracebackhide__" in frame.f_locals for frame, _ in traceback.walk_tb(error.__traceback__)]
    assert marked == [name == "<xtrace>" for name in frames(error)] and True in marked
    with config.traceback_filtering("off"):
        assert "<xtrace>" in frames(error_of(lambda: xtrace.jit(branch)(1.0)))
    with pytest.raises(ValueError, match="'quiet_remove_frames'"):
        filtering("none")


PROGRAM = """
import threading, xtrace
def f(x):
    return bool(x)
thread = threading.Thread(target=lambda: xtrace.jit(f)(1.0))
thread.start(); thread.join()
xtrace.jit(f)(1.0)
"""


@pytest.mark.parametrize("variable", ["XTRACE_TRACEBACK_FILTERING", "JAX_TRACEBACK_FILTERING"])
def test_a_script_prints_no_frames_of_xtrace_unless_the_environment_says_so(variable):
    def printed(mode):
        environment = {k: v for k, v in os.environ.items() if "TRACEBACK_FILTERING" not in k} | mode
        return subprocess.run(
            [sys.executable, "-c", PROGRAM], cwd=ROOT, env=environment, capture_output=True, text=True, timeout=60
        ).stderr

    shown = printed({variable: "off"})
    assert shown.count("TracerBoolConversionError") == 2 and "api/jit/jitted.py" in shown and "left out" not in shown
    if variable.startswith("XTRACE"):
        shown = printed({})
        assert shown.count("TracerBoolConversionError") == 2 and shown.count("left out") == 2
        assert f"{os.sep}xtrace{os.sep}" not in shown and "<xtrace" not in shown


# They take less time than the boundary would, and fail for few arguments.
WITHOUT_BOUNDARY = {"flatten", "leaves", "structure", "unflatten"}


def test_every_public_function_is_a_boundary():
    names = [m.name for m in pkgutil.walk_packages(xtrace.__path__, "xtrace.")]
    modules = [name for name in names if name.split(".")[1] not in ("_src", "cli", "__main__")]
    missing = [
        f"{name}.{public}"
        for name in ["xtrace", *modules]
        for module in [importlib.import_module(name)]
        # Other modules beside the public ones are files that these take their names from.
        if "__dir__" in vars(module)
        for public in module.__all__
        for found in [getattr(module, public)]
        if isinstance(found, FunctionType) and is_internal(found.__code__.co_filename)
        and "hide_frames" not in found.__code__.co_names and public.removeprefix("tree_") not in WITHOUT_BOUNDARY
    ]
    assert missing == []


def test_public_functions_keep_their_identity():
    assert jnp.reshape is jnp.reshape and jnp.abs is jnp.abs
    for function in (jnp.reshape, jnp.einsum, lax.scan, random.normal, xtrace.nn.softmax, jnp.linalg.norm):
        assert pickle.loads(pickle.dumps(function)) is function


def test_warnings_point_at_the_users_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        jnp.zeros(3, "float64")
        jnp.sum(three, dtype="float64")
        jnp.divide(three, 2).astype("int64")
    assert len(caught) == 3 and {w.filename for w in caught} == {__file__}
