"""Modules, filtered transformations, trees, serialisation, errors and debugging of equinox."""

import abc
import collections
import contextlib
import dataclasses
import functools
import io
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import equinox as eqx
import jax
import jax.numpy as jnp
import numpy as np
from jaxtyping import Array
from surface import Surface

jax.config.update("jax_enable_x64", True)
surface = Surface(1e-9)


def draw(seed, *shape):
    return jax.random.normal(jax.random.key(seed), shape)


def capture(function, *arguments):
    """Return what a call prints."""
    with contextlib.redirect_stdout(io.StringIO()) as stream:
        jax.block_until_ready(function(*arguments))
        jax.effects_barrier()
    return stream.getvalue()


# Modules: fields, methods, abstract members, conversion, checks.
class AbstractLayer(eqx.Module):
    size: eqx.AbstractVar[int]
    kind: eqx.AbstractClassVar[str]

    @abc.abstractmethod
    def __call__(self, x):
        raise NotImplementedError


class Affine(AbstractLayer):
    weight: Array = eqx.field(converter=jnp.asarray)
    bias: Array
    size: int = eqx.field(static=True)
    activation: Callable = jnp.tanh
    kind = "affine"

    def __check_init__(self):
        if self.weight.shape != (self.size, self.size):
            raise ValueError(f"weight of shape {self.weight.shape}")

    def __call__(self, x):
        return self.activation(self.weight @ x + self.bias)

    @eqx.filter_jit
    def norm(self):
        return jnp.sum(self.weight**2) + jnp.sum(self.bias**2)


model = Affine(np.arange(9.0).reshape(3, 3) / 10, draw(1, 3), 3)
xs = draw(2, 4, 3)
surface.record("module call", jax.vmap(model)(xs))
surface.record("module method", [model.norm(), model.kind == "affine"])
surface.record("bound method", eqx.filter_jit(model.__call__)(xs[0]))
surface.record("module repr", repr(model).replace(repr(jnp.tanh), "tanh"))
surface.record("module structure", str(jax.tree.structure(model)).replace(repr(jnp.tanh), "tanh"))
surface.record("module paths", " ".join(jax.tree_util.keystr(k) for k, _ in jax.tree_util.tree_leaves_with_path(model)))
surface.record("module hash", hash(eqx.nn.Dropout(0.5)) == hash(eqx.nn.Dropout(0.5)))
surface.record_error("abstract module", "abstract", AbstractLayer)
surface.record_error("check of a module", "weight of shape", Affine, jnp.zeros((2, 2)), jnp.zeros(2), 3)
surface.record_error("assignment to a module", "cannot assign", setattr, model, "bias", 1)


class Stack(eqx.Module):
    layers: tuple
    scale: Array = dataclasses.field(default_factory=lambda: jnp.array(2.0))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        name: str = eqx.static_field(default="stack")

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return self.scale * x


class Strict(eqx.Module, strict=eqx.StrictConfig()):
    x: Array

    def double(self):
        return 2 * self.x


class Derived(Strict, strict=True):
    def triple(self):
        return 3 * self.x


surface.record("strict module", [Strict(jnp.ones(2)).double(), Derived(jnp.ones(2)).triple()])
stack = Stack((model, Affine(jnp.eye(3), jnp.zeros(3), 3, jax.nn.relu)))
surface.record("module of modules", [stack(xs[0]), stack.name == "stack"])
partial = eqx.Partial(jnp.dot, draw(3, 3))
surface.record("Partial", eqx.filter_jit(lambda p, x: p(x))(partial, xs[0]))


class Wrapper(eqx.Module):
    function: Callable
    factor: Array

    def __call__(self, *arguments):
        return self.factor * self.function(*arguments)

    @property
    def __wrapped__(self):
        return self.function


def documented(x):
    """Sines."""
    return jnp.sin(x)


wrapped = eqx.module_update_wrapper(Wrapper(documented, jnp.array(3.0)))
surface.record("module_update_wrapper", f"{wrapped.__name__} {wrapped.__doc__} {float(wrapped(0.5)):.12f}")
surface.record("module_update_wrapper leaves", eqx.filter(wrapped, eqx.is_array))

# Enumerations.


class Outcome(eqx.Enumeration):
    fine = "All is well"
    bad = "All is lost"


class More(Outcome):
    worse = "All is worse"


def judge(x):
    return Outcome.where(x > 0, Outcome.fine, Outcome.bad)


surface.record("Enumeration", [bool(judge(1.0) == Outcome.fine), len(Outcome), len(More), Outcome[Outcome.bad]])
surface.record("Enumeration in jit", jax.jit(lambda x: judge(x) == Outcome.bad)(-1.0))
surface.record("Enumeration in vmap", jax.vmap(lambda x: judge(x) != Outcome.bad)(jnp.array([1.0, -1.0])))
surface.record("Enumeration batch", Outcome[jax.vmap(judge)(jnp.array([1.0, -1.0]))])
surface.record("Enumeration promotion", [More[More.promote(jax.jit(judge)(-2.0))], isinstance(More.worse, More)])
surface.record("Enumeration traced", capture(jax.jit(lambda x: print(judge(x))), 1.0).split(".")[-1])
surface.record_error("Enumeration against a number", "same type", lambda: Outcome.fine == 0)
surface.record_error(
    "Enumeration error", "All is lost", eqx.filter_jit(lambda x: judge(x).error_if(x, x < 0)), jnp.array(-1.0)
)

# Filters, partitions and combinations.
tree = {"a": jnp.arange(3.0), "b": [np.ones(2, np.int32), "text", 1.5, None, True], "c": (jnp.arange(2), 2 + 1j, model)}
for predicate in (eqx.is_array, eqx.is_array_like, eqx.is_inexact_array, eqx.is_inexact_array_like):
    surface.record(f"{predicate.__name__}", [predicate(leaf) for leaf in jax.tree.leaves(tree)])
surface.record("filter", eqx.filter(tree, eqx.is_inexact_array))
surface.record("filter by tree", eqx.filter(tree["b"][:2], [True, False], replace=-1))
surface.record("filter inverse", len(jax.tree.leaves(eqx.filter(tree, eqx.is_array, inverse=True))))
dynamic, static = eqx.partition(tree, eqx.is_array)
surface.record("partition", [dynamic, len(jax.tree.leaves(static))])
surface.record("combine", eqx.tree_equal(eqx.combine(dynamic, static), tree))
surface.record("if_array", [eqx.if_array(1)(jnp.ones(2)), eqx.if_array(1)("x") is None])

# jit.
traces = []


@eqx.filter_jit
def mixed(x, function, *, times, flag=True):
    traces.append(times)
    return function(x) * times, "text", flag


surface.record("filter_jit", mixed(xs, jnp.sin, times=2)[0])
surface.record("filter_jit statics", mixed(xs + 1, jnp.sin, times=2)[1:])
surface.record("filter_jit again", [mixed(xs, jnp.cos, times=2.0)[0], mixed(xs, jnp.cos, times=3)[0], len(traces)])
surface.record("filter_jit of a numpy array", eqx.filter_jit(lambda x: x + 1)(np.ones(3, np.float32)))
surface.record("filter_jit method", eqx.filter_jit(stack)(xs[0]))
lowered = mixed.lower(xs, jnp.sin, times=2)
surface.record("filter_jit lower", "stablehlo.sine" in lowered.as_text())
surface.record("filter_jit compile", lowered.compile()(xs, jnp.sin, times=2)[0])


@functools.partial(eqx.filter_jit, donate="all")
def donating(x, y):
    return x + y


given = jnp.ones(3) * 2
surface.record("filter_jit donate", [donating(given, jnp.ones(3)), given.is_deleted()])
kept = jnp.ones(3) * 2
only = eqx.filter_jit(lambda kept, given: kept + given, donate="all-except-first")
surface.record("filter_jit donate others", [only(kept, jnp.ones(3) * 3), kept.is_deleted()])
surface.record_error("filter_jit without concrete values", "boolean", eqx.filter_jit(lambda x: 1 if x else 2), xs[0, 0])
surface.record("filter_eval_shape", str(jax.tree.leaves(eqx.filter_eval_shape(stack, xs[0]))))
surface.record("filter_eval_shape statics", repr(eqx.filter_eval_shape(mixed, xs, jnp.sin, times=2)[1:]))
jaxpr, out_struct, out_static = eqx.filter_make_jaxpr(lambda x, n: (x**n, n))(xs[0], 3)
surface.record("filter_make_jaxpr", f"{jaxpr} {out_struct} {out_static}")
jaxpr, _, _ = eqx.filter_make_jaxpr(lambda m, x: jnp.sum(m(x)))(stack, jax.ShapeDtypeStruct((3,), jnp.float64))
surface.record("filter_make_jaxpr primitives", " ".join(str(e.primitive) for e in jaxpr.eqns))

# Derivatives.


def loss(m, x, power=2):
    return jnp.mean(jax.vmap(m)(x) ** power)


surface.record("filter_grad", eqx.filter_jit(eqx.filter_grad(loss))(stack, xs))
surface.record("filter_grad keywords", eqx.filter_grad(loss)(stack, xs, power=3))
surface.record("filter_grad aux", eqx.filter_grad(lambda m: (m.norm(), "aux"), has_aux=True)(model))
surface.record("filter_value_and_grad", eqx.filter_value_and_grad(loss)(model, xs))
surface.record("filter_grad of grad", eqx.filter_grad(lambda m: eqx.filter_grad(loss)(m, xs).norm())(model))
primals, tangents = (model, xs[0]), (eqx.filter(model, eqx.is_inexact_array), None)
surface.record("filter_jvp", eqx.filter_jvp(lambda m, x: m(x), primals, tangents))
out, pull = eqx.filter_vjp(lambda m, x: (m(x), "static"), model, xs[0])
surface.record("filter_vjp", [out, pull((jnp.ones(3), None))])
out, pull, aux = eqx.filter_vjp(lambda x: (x**2, "aux"), xs[0], has_aux=True)
surface.record("filter_vjp aux", [pull(out), aux])
surface.record("filter_jacfwd", eqx.filter_jacfwd(lambda x: model(x))(xs[0]))
surface.record("filter_jacrev", eqx.filter_jacrev(lambda m: m(xs[0]))(model))
surface.record("filter_jacrev aux", eqx.filter_jacrev(lambda x: (x**2, {"s": jnp.sum(x)}), has_aux=True)(xs[0]))
surface.record("filter_hessian", eqx.filter_jit(eqx.filter_hessian(lambda x: jnp.sum(model(x))))(xs[0]))
surface.record_error("filter_grad of a vector", "scalar", eqx.filter_grad(lambda x: x), xs[0])
surface.record_error("filter_grad of an integer", "real-valued", eqx.filter_grad(lambda x: 1), xs)
convert = eqx.filter_grad(lambda z, y: jnp.sum(eqx.filter_closure_convert(lambda a: jnp.sin(z) * a, y)(y)))
surface.record("filter_closure_convert", convert(xs[0], 2 * xs[1]))
closed = eqx.filter_closure_convert(lambda a, n: (a * xs[0], n), xs[1], 3)
surface.record("filter_closure_convert constants", [closed(xs[2], 3), len(jax.tree.leaves(closed))])
surface.record_error("filter_closure_convert of another shape", "different dynamic arguments", closed, xs, 3)
deep = eqx.filter_checkpoint(lambda m, x: jnp.sum(jnp.sin(m(jnp.sin(m(x))))))
surface.record("filter_checkpoint", eqx.filter_jit(eqx.filter_grad(deep))(model, xs[0]))
policy = eqx.filter_checkpoint(policy=jax.checkpoint_policies.dots_saveable)(lambda m, x: jnp.sum(m(m(x))))
surface.record("filter_checkpoint policy", eqx.filter_grad(policy)(model, xs[0]))
gradient_jaxpr = str(jax.make_jaxpr(jax.grad(lambda x: deep(model, x)))(xs[0]))
surface.record("filter_checkpoint jaxpr", [gradient_jaxpr.count("checkpoint"), gradient_jaxpr.count("tanh")])


@eqx.filter_custom_jvp
def scaled(x, y, *, function):
    return function(x) * y


@scaled.def_jvp
def scaled_jvp(primals, tangents, *, function):
    (x, y), (tx, ty) = primals, tangents
    out = scaled(x, y, function=function)
    return out, (0.0 if tx is None else 5 * tx) + (0.0 if ty is None else 7 * ty)


surface.record("filter_custom_jvp", jax.jit(jax.grad(lambda x: jnp.sum(scaled(x, 2.0, function=jnp.sin))))(xs[0]))
surface.record("filter_custom_jvp both", jax.jvp(lambda x, y: scaled(x, y, function=jnp.cos), (1.0, 2.0), (0.1, 0.2)))
surface.record("filter_custom_jvp vmap", jax.vmap(jax.grad(lambda x: scaled(x, 2.0, function=jnp.sin)))(xs[0]))
seen = []


@eqx.filter_custom_vjp
def clipped(tree, bound):
    return tree["x"] * bound + tree["y"]


@clipped.def_fwd
def clipped_fwd(perturbed, tree, bound):
    seen.append(perturbed["x"] and not perturbed["y"])
    return clipped(tree, bound), tree["x"]


@clipped.def_bwd
def clipped_bwd(residuals, ct, perturbed, tree, bound):
    return {"x": jnp.clip(ct, -bound, bound) + residuals, "y": None, "name": None}


def clipped_loss(x, y):
    return jnp.sum(3 * clipped({"x": x, "y": y, "name": "text"}, 0.5))


surface.record("filter_custom_vjp", [jax.grad(clipped_loss)(xs[0], 2.0), seen])
surface.record("filter_custom_vjp jit vmap", jax.jit(jax.vmap(jax.grad(clipped_loss), (0, None)))(xs, 2.0))
surface.record_error(
    "filter_custom_vjp forwards", "forward-mode", jax.jvp, lambda x: clipped_loss(x, 1.0), (xs[0],), (xs[0],)
)

# vmap, pmap, callbacks, shardings.
keys = jax.random.split(jax.random.key(5), 3)
ensemble = eqx.filter_vmap(lambda key: eqx.nn.Linear(3, 2, key=key))(keys)
surface.record("filter_vmap", eqx.filter_vmap(lambda m, x: m(x))(ensemble, xs[:3]))
surface.record(
    "filter_vmap shared", eqx.filter_vmap(lambda m, x: m(x), in_axes=(eqx.if_array(0), None))(ensemble, xs[0])
)
out_axis = eqx.filter_vmap(lambda x, y: x + y, in_axes={"y": None}, out_axes=1)
surface.record("filter_vmap out axis", out_axis(xs, xs[0]))
named = eqx.filter_vmap(lambda x: jax.lax.psum(x, "rows"), axis_name="rows")
surface.record("filter_vmap name", named(xs))
surface.record("filter_vmap size", eqx.filter_vmap(lambda: jnp.ones(2), axis_size=3, in_axes=())())
surface.record(
    "filter_vmap ensemble gradient", eqx.filter_vmap(eqx.filter_grad(lambda m, x: jnp.sum(m(x))))(ensemble, xs[:3])
)
surface.record_error("filter_vmap of other sizes", "inconsistent sizes", eqx.filter_vmap(lambda x, y: x), xs, xs[:2])
surface.record("filter_pmap", eqx.filter_pmap(lambda x, n: jax.lax.pmean(x, "d") * n, axis_name="d")(xs[:1], 2))


def call_numpy(x, name, scale):
    return (np.asarray(x) * scale, name)


callback = jax.jit(
    lambda x: eqx.filter_pure_callback(
        call_numpy, x, "name", scale=2, result_shape_dtypes=(jax.ShapeDtypeStruct(x.shape, x.dtype), "name"),
        vmap_method="sequential",
    )[0]
)
surface.record("filter_pure_callback", callback(xs[0]))
surface.record("filter_pure_callback vmap", jax.vmap(callback)(xs))
device = jax.devices()[0]
surface.record("filter_shard", eqx.filter_shard((xs, "text"), device))
mesh = jax.make_mesh((1,), ("x",), axis_types=(jax.sharding.AxisType.Auto,))
sharding = jax.sharding.NamedSharding(mesh, jax.sharding.PartitionSpec("x"))
surface.record("filter_shard in jit", eqx.filter_jit(lambda x: eqx.filter_shard(x, sharding) + 1)(xs))

# Trees.
surface.record("tree_at", eqx.tree_at(lambda m: m.bias, model, jnp.zeros(3)))
surface.record(
    "tree_at several", eqx.tree_at(lambda s: [layer.bias for layer in s.layers], stack, replace_fn=lambda b: b + 1)
)
surface.record("tree_at None", eqx.tree_at(lambda t: t[1], (1, None), 5, is_leaf=lambda x: x is None))
surface.record("tree_at in jit", jax.jit(lambda b: eqx.tree_at(lambda m: m.bias, model, b).norm())(jnp.ones(3)))
surface.record_error(
    "tree_at nothing", "unsupported operand", lambda: eqx.tree_at(lambda t: t["a"] + 1, {"a": jnp.ones(2)}, 1)
)
surface.record_error("tree_at without a value", "replace", lambda: eqx.tree_at(lambda t: t["a"], {"a": 1}))
surface.record("apply_updates", eqx.apply_updates(eqx.filter(stack, eqx.is_array), eqx.filter_grad(loss)(stack, xs)))
equal = [eqx.tree_equal(model, model), eqx.tree_equal(model, stack), eqx.tree_equal(xs, xs + 1e-9)]
surface.record("tree_equal", [bool(value) for value in equal])
surface.record("tree_equal close", eqx.tree_equal(xs, xs + 1e-9, rtol=1e-6, atol=1e-6))
surface.record("tree_equal types", eqx.tree_equal(jnp.ones(2), np.ones(2)))
surface.record("tree_equal in jit", jax.jit(eqx.tree_equal)(xs, xs))
children, structure = eqx.tree_flatten_one_level({"a": [1, 2], "b": (3,)})
surface.record("tree_flatten_one_level", repr((children, str(structure))))
eqx.tree_check({"a": [1, 1], "b": model})
surface.record_error("tree_check", "multiple times", eqx.tree_check, [model, model])
with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    surface.record("tree_inference", eqx.tree_inference(eqx.nn.Dropout(0.5), True)(xs))
surface.record(
    "tree_pformat", eqx.tree_pformat(tree["b"] + [xs, jax.ShapeDtypeStruct((2,), jnp.int8)], struct_as_array=True)
)
surface.record(
    "tree_pformat long", eqx.tree_pformat([jnp.arange(3), xs[0] > 9, jax.random.key(0)], short_arrays=False, width=20)
)
surface.record("tree_pformat cut", eqx.tree_pformat(stack, truncate_leaf=lambda x: isinstance(x, Affine)))
surface.record("tree_pprint", capture(lambda: eqx.tree_pprint(eqx.nn.Linear(2, 3, key=jax.random.key(0)))))
surface.record("tree_pformat traced", capture(jax.jit(lambda x: print(eqx.tree_pformat(x))), xs))

# Serialisation.
everything = (stack, jax.random.PRNGKey(1), np.arange(3), True, 5, 2.5, 1j, jnp.bfloat16(1.5), np.float32(2.5))
with tempfile.TemporaryDirectory() as folder:
    path = Path(folder) / "model.eqx"
    eqx.tree_serialise_leaves(path, everything)
    like = jax.tree.map(lambda x: x * 0 if eqx.is_array(x) else x, everything)
    like = (*like[:3], False, 0, 0.0, 0j, like[7], np.float32(0))
    loaded = eqx.tree_deserialise_leaves(path, like)
    surface.record("serialisation", eqx.filter(loaded, eqx.is_array_like))
    surface.record("serialisation types", [type(x) is type(y) for x, y in zip(loaded[2:], everything[2:], strict=True)])
    struct = eqx.filter_eval_shape(lambda: everything[1:3])
    eqx.tree_serialise_leaves(path, everything[1:3])
    surface.record("serialisation of shapes", eqx.tree_deserialise_leaves(path, struct))
    surface.record_error(
        "serialisation of another shape", "shape", eqx.tree_deserialise_leaves, path,
        (jnp.zeros(2, jnp.uint32), np.zeros(4, int)),
    )
    surface.record_error(
        "serialisation of another type", "dtype", eqx.tree_deserialise_leaves, path,
        (jnp.zeros(2, jnp.float32), np.zeros(3, int)),
    )
    surface.record("serialised bytes", list(path.read_bytes()[:8]))


def save(file, x):
    if eqx.is_array(x):
        np.save(file, np.asarray(x) * 2)
    else:
        eqx.default_serialise_filter_spec(file, x)


def load(file, x):
    return jnp.asarray(np.load(file)) / 2 if eqx.is_array(x) else eqx.default_deserialise_filter_spec(file, x)


buffer = io.BytesIO()
eqx.tree_serialise_leaves(buffer, (xs, 3), filter_spec=save)
buffer.seek(0)
surface.record("serialisation by functions", eqx.tree_deserialise_leaves(buffer, (xs, 0), filter_spec=load))

# Errors at run time.


@eqx.filter_jit
def checked(x):
    return eqx.error_if(x, jnp.any(x < 0), "x is negative")


surface.record("error_if", checked(jnp.ones(2)))
surface.record_error("error_if fails", "x is negative", checked, -jnp.ones(2))
surface.record_error(
    "error_if fails in vmap", "x is negative", eqx.filter_jit(eqx.filter_vmap(checked)), -jnp.ones((2, 2))
)
surface.record_error("error_if fails outside jit", "too big", lambda: eqx.error_if(xs, xs[0, 0] < 9, "too big"))
surface.record_error(
    "error_if fails in grad", "x is negative", eqx.filter_jit(jax.value_and_grad(lambda x: jnp.sum(checked(x)))),
    -jnp.abs(xs[0]),
)
surface.record_error("error_if fails in scan", "x is negative", eqx.filter_jit(
    lambda x: jax.lax.scan(lambda c, _: (checked(c - 1), None), x, length=3)), jnp.array(2.0))
surface.record("error_if gradient", jax.grad(lambda x: jnp.sum(eqx.error_if(x, x[0] > 99, "x") ** 2))(xs[0]))
surface.record("error_if off", eqx.error_if(xs[0], True, "ignored", on_error="off"))
surface.record("error_if nan", eqx.filter_jit(lambda x: eqx.error_if(x, jnp.any(x < 9), "seen", on_error="nan"))(xs[0]))
surface.record_error("error_if for certain", "certain", lambda: eqx.error_if(1.0, True, "certain"))
surface.record_error("error_if at trace time", "certain", jax.jit(lambda x: eqx.error_if(x, True, "certain")), 1.0)
branched = eqx.filter_jit(lambda x, i: eqx.branched_error_if(x, x > 0, i, ["zeroth", "first", "second"]))
surface.record("branched_error_if", branched(-1.0, 1))
surface.record_error("branched_error_if fails", "first", branched, jnp.array(1.0), jnp.array(1))
surface.record_error(
    "branched_error_if fails in vmap", "second", eqx.filter_jit(jax.vmap(branched)), jnp.ones(2), jnp.array([0, 2])
)
surface.record(
    "errors are RuntimeErrors",
    [issubclass(e, RuntimeError) for e in (eqx.EquinoxRuntimeError, eqx.EquinoxTracetimeError)],
)
try:
    checked(-jnp.ones(2))
except eqx.EquinoxRuntimeError as error:
    surface.record("error_if says where", [str(error).strip().splitlines()[0], "checked" in str(error)])

# Debugging.
lines = []
announced = functools.partial(eqx.debug.announce_transform, name="x", announce=lines.append)
jax.jit(jax.vmap(jax.grad(lambda x: jnp.sum(announced(x) ** 2))))(xs)
surface.record("announce_transform", " ".join(map(str, lines)))
lines.clear()
jax.grad(lambda x: jnp.sum(eqx.debug.announce_transform(x, intermediates=True, announce=lines.append)))(xs)
surface.record("announce_transform of grad", " ".join(map(str, lines)))


@eqx.filter_jit
@eqx.debug.assert_max_traces(max_traces=1)
def traced_once(x):
    return x + 1


traced_once(jnp.ones(2)), traced_once(jnp.zeros(2))
surface.record("get_num_traces", eqx.debug.get_num_traces(traced_once))
surface.record_error("assert_max_traces", "can only be traced 1 times", traced_once, jnp.ones(3))


@jax.jit
def partly_dead(x):
    used, _ = eqx.debug.store_dce((x**2, x + 1), name="dead")
    return used


partly_dead(xs[0])
surface.record("inspect_dce", capture(eqx.debug.inspect_dce, "dead"))
surface.record("breakpoint_if", jax.jit(lambda x: eqx.debug.breakpoint_if(x > 9, token=x))(1.0))


def troubled(x, terminate):
    return jnp.sqrt(eqx.debug.backward_nan(x * 2, name="root", terminate=terminate))


with contextlib.redirect_stdout(io.StringIO()) as stream:
    surface.record("backward_nan", jax.grad(troubled)(jnp.array(1.0), True))
    surface.record("backward_nan in jit", eqx.filter_jit(jax.grad(lambda x: troubled(x, False)))(jnp.array(4.0)))
    jax.effects_barrier()
surface.record("backward_nan at the root", " ".join(stream.getvalue().split()))
printed = capture(
    lambda: eqx.filter_jit(jax.grad(lambda x: eqx.debug.backward_nan(x, terminate=False) * jnp.nan))(jnp.array(1.0))
)
surface.record("backward_nan prints", " ".join(printed.split()))
surface.record_error(
    "backward_nan stops", "Encountered NaN",
    lambda x: capture(eqx.filter_jit(jax.grad(lambda x: eqx.debug.backward_nan(x) * jnp.nan)), x), jnp.array(1.0),
)

# A training loop of all these.
data = collections.namedtuple("Data", "x y")(draw(7, 16, 3), draw(8, 16, 3))


@eqx.filter_jit(donate="none")
def train(model: Any, steps: int):
    def step(dynamic, _):
        model = eqx.combine(dynamic, static)
        value, gradient = eqx.filter_value_and_grad(lambda m: jnp.mean((jax.vmap(m)(data.x) - data.y) ** 2))(model)
        model = eqx.apply_updates(model, jax.tree.map(lambda g: -0.1 * g, gradient))
        return eqx.filter(model, eqx.is_inexact_array), value

    dynamic, static = eqx.partition(model, eqx.is_inexact_array)
    dynamic, values = jax.lax.scan(step, dynamic, length=steps)
    return eqx.combine(dynamic, static), values


surface.record("training", train(stack, 20))
eqx.clear_caches()
jax.clear_caches()
surface.record("after clear_caches", checked(jnp.ones(2)))

surface.finish(__file__, {"eqx": eqx, "eqx.debug": eqx.debug}, {})
