"""Each annotation of jaxtyping, on arrays, tracers, types of shapes, keys and trees, with its errors."""

# ruff: noqa: F821

import dataclasses
import functools
import inspect
import io
import sys
import tempfile
import typing
from contextlib import redirect_stdout
from pathlib import Path

import jax
import jax.numpy as jnp
import jaxtyping as jt
import numpy as np
from surface import Surface

jax.config.update("jax_enable_x64", True)
surface = Surface(1e-9)


def fits(value, hint):
    return hint in (inspect.Parameter.empty, typing.Any) or isinstance(value, hint)


def check(function):
    """Check annotations by isinstance, as a run-time type checker does."""
    signature = inspect.signature(function)

    @functools.wraps(function)
    def checked(*arguments, **keywords):
        bound = signature.bind(*arguments, **keywords)
        for name, value in bound.arguments.items():
            if not fits(value, signature.parameters[name].annotation):
                raise TypeError(f"argument {name} is wrong")
        result = function(*arguments, **keywords)
        if not fits(result, signature.return_annotation):
            raise TypeError("result is wrong")
        return result

    return checked


# Kinds and types of numbers.
kinds = (
    jt.Shaped, jt.Bool, jt.Key, jt.Num, jt.Inexact, jt.Float, jt.Complex, jt.Integer, jt.UInt, jt.Int, jt.Real,
    jt.BFloat16, jt.Float16, jt.Float32, jt.Float64, jt.Complex64, jt.Complex128, jt.Int2, jt.Int4, jt.Int8, jt.Int16,
    jt.Int32, jt.Int64, jt.UInt2, jt.UInt4, jt.UInt8, jt.UInt16, jt.UInt32, jt.UInt64, jt.Float8e4m3b11fnuz,
    jt.Float8e4m3fn, jt.Float8e4m3fnuz, jt.Float8e5m2, jt.Float8e5m2fnuz,
)
types = (
    "bool", "bfloat16", "float16", "float32", "float64", "complex64", "complex128", "int2", "int4", "int8", "int16",
    "int32", "int64", "uint2", "uint4", "uint8", "uint16", "uint32", "uint64", "float8_e4m3b11fnuz", "float8_e4m3fn",
    "float8_e4m3fnuz", "float8_e5m2", "float8_e5m2fnuz",
)
values = [*[jnp.zeros((2, 3), name) for name in types], jax.random.split(jax.random.key(0), (2, 3))]
for kind in kinds:
    annotation = kind[jt.Array, "2 3"]
    found = [isinstance(value, annotation) for value in values]
    surface.record(f"{kind.__name__} arrays", found)
    struct = kind[jax.ShapeDtypeStruct, "2 3"]
    structs = [jax.ShapeDtypeStruct(value.shape, value.dtype) for value in values]
    surface.record(f"{kind.__name__} structures", [isinstance(x, struct) for x in structs])
    surface.record(f"{kind.__name__} numpy", isinstance(np.zeros((2, 3)), kind[np.ndarray, "2 3"]))
    surface.record(f"{kind.__name__} text", annotation.__name__.replace("jaxlib._jax.", ""))
    assert issubclass(kind, jt.AbstractDtype) and issubclass(annotation, jt.AbstractArray)


@jax.jit
def check_tracers(values):
    for kind in kinds:
        surface.record(f"{kind.__name__} tracers", [isinstance(x, kind[jt.Array, "2 3"]) for x in values])


check_tracers(values)

# Shapes.
shapes = ("2 3", "a b", "a a", "...", "*b 3", "#a b", "_ b", "2 rows=3", "a a+1", "2", "", "*#b 3", "... 2 3", "_x _y")
for shape in shapes:
    annotation = jt.Float[jt.Array, shape]
    surface.record(f"shape {shape!r}", [isinstance(jnp.zeros(s), annotation) for s in ((2, 3), (3, 3), (), (1, 2, 3))])
surface.record("scalars", [
    [isinstance(x, kind) for kind in (jt.Scalar, jt.ScalarLike, jt.ArrayLike, jt.PRNGKeyArray)]
    for x in (jnp.array(1.0), 1.0, np.float32(1), jnp.ones(2), jax.random.key(0), jax.random.PRNGKey(0), "x")
])
surface.record_error("wrong shape", "more than once", lambda: jt.Float[jt.Array, "a b c d ... ..."])
surface.record_error("annotation of nothing", "jaxtyping", lambda: jt.Float["a"])
surface.record_error("an instance of an annotation", "annotation", lambda: jt.Float[jt.Array, "a"](1))


class Own(jt.AbstractDtype):
    dtypes: typing.ClassVar = ["float32", "int8"]


surface.record("own kind", [isinstance(jnp.zeros(2, d), Own[jt.Array, "a"]) for d in ("float32", "int8", "int16")])
pairs = np.dtype([("first", np.int32), ("second", np.float32)])
structured = jt.make_numpy_struct_dtype(pairs, "Pairs")
surface.record("structured kind", [isinstance(np.zeros(2, d), structured[np.ndarray, "a"]) for d in (pairs, "int32")])

# Trees.
tree = {"a": jnp.ones(2), "b": (jnp.zeros(2), 1)}
hints = (jt.PyTree, jt.PyTree[jt.Float[jt.Array, "2"]], jt.PyTree[jt.Float[jt.Array, "2"] | int], jt.PyTree[int])
surface.record("trees", [isinstance(tree, hint) for hint in hints])
surface.record("structures of trees", [isinstance(jax.tree.structure(tree), jt.PyTreeDef)])


@jt.jaxtyped(typechecker=check)
def add_trees(x: jt.PyTree[jt.Float[jt.Array, "?n"], "T"], y: jt.PyTree[jt.Float[jt.Array, "?n"], "T"]):
    return jax.tree.map(jnp.add, x, y)


surface.record("trees of one structure", add_trees([jnp.ones(2), jnp.ones(3)], [jnp.ones(2), jnp.ones(3)]))
surface.record_error("trees of other structures", "add_trees", add_trees, [jnp.ones(2)], (jnp.ones(2),))
surface.record_error("trees of other shapes", "add_trees", add_trees, [jnp.ones(2)], [jnp.ones(3)])

# Checked functions under transformations.


@jt.jaxtyped(typechecker=check)
def multiply(x: jt.Float[jt.Array, "a b"], y: jt.Float[jt.Array, "b c"]) -> jt.Float[jt.Array, "a c"]:
    with redirect_stdout(io.StringIO()) as stream:
        jt.print_bindings()
    printed.append(" ".join(stream.getvalue().split()))
    return x @ y


printed: list[str] = []
x, y = jnp.arange(6.0).reshape(2, 3), jnp.arange(12.0).reshape(3, 4)
surface.record("checked", multiply(x, y))
surface.record("checked in jit", jax.jit(multiply)(x, y))
surface.record("checked in vmap", jax.vmap(multiply, (0, None))(jnp.stack([x, x + 1]), y))
surface.record("checked in grad", jax.grad(lambda x: jnp.sum(multiply(x, y)))(x))
surface.record("checked in scan", jax.lax.scan(lambda c, _: (multiply(c, jnp.eye(3)), None), x, length=2)[0])
surface.record("print_bindings", printed[0])
for name, call in {
    "outside jit": multiply, "in jit": jax.jit(multiply), "in vmap": jax.vmap(multiply), "in grad": jax.grad(multiply),
}.items():
    surface.record_error(f"wrong argument {name}", "multiply", call, x, x)
surface.record_error("wrong type of numbers", "i64", multiply, x.astype(int), y)
surface.record("errors", [issubclass(jt.TypeCheckError, TypeError), issubclass(jt.AnnotationError, Exception)])


@jt.jaxtyped(typechecker=check)
def transposes(x: jt.Float[jt.Array, "a b"]) -> jt.Float[jt.Array, "a b"]:
    return x.T


surface.record_error("wrong result", "transposes", transposes, x)


@jt.jaxtyped(typechecker=check)
@dataclasses.dataclass
class Point:
    x: jt.Float[jt.Array, " n"]
    y: jt.Float[jt.Array, " n"]


surface.record("dataclass", Point(jnp.ones(2), jnp.zeros(2)).x)
def name_twice():
    with jt.jaxtyped("context"):
        assert isinstance(x, jt.Float[jt.Array, "a b"])
        assert isinstance(y, jt.Float[jt.Array, "b c"])
        assert isinstance(y, jt.Float[jt.Array, "a c"]), "names are kept"


surface.record_error("context of names", "names are kept", name_twice)

# Settings.
jt.config.update("jaxtyping_disable", True)


@jt.jaxtyped(typechecker=check)
def keep(x: jt.Float[jt.Array, "a"]):
    return x


surface.record("disabled", keep(1))
jt.config.update("jaxtyping_disable", False)
before = jt.get_array_name_format()
jt.set_array_name_format("array")
named = jt.Float[jt.Array, "a b"].__name__.replace("jaxlib._jax.", "")
surface.record("names of arrays", f"{before} {jt.get_array_name_format()} {named}")
jt.set_array_name_format(before)
with tempfile.TemporaryDirectory() as folder:
    (Path(folder) / "hooked_module.py").write_text(
        "import jaxtyping as jt\ndef first(x: jt.Float[jt.Array, 'a b']) -> jt.Float[jt.Array, 'b']:\n    return x[0]\n"
    )
    sys.path.insert(0, folder)
    with jt.install_import_hook("hooked_module", "surface_checker.check"):
        sys.modules["surface_checker"] = type(sys)("surface_checker")
        sys.modules["surface_checker"].check = check
        import hooked_module
    surface.record("import hook", hooked_module.first(x))
    surface.record_error("import hook fails", "first", hooked_module.first, x[0])
hints = typing.get_type_hints(multiply)
surface.record("hints", " ".join(f"{name}:{hint.dim_str}" for name, hint in hints.items()))

reasons = dict.fromkeys(("jt.TypeAlias", "jt.Union"), "typing's")
reasons["jt.load_ipython_extension"] = "IPython is not in the environments"
surface.finish(__file__, {"jt": jt}, reasons)
