"""`shard_map`: collectives, derivatives, mapping, loops and partial meshes, compared with jax."""

import contextlib
import functools

import jax.experimental.shard_map as theirs
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.sharding.meshes import OURS, THEIRS
from tests.support.operands import assert_same_type
from xtrace import lax
from xtrace.sharding import PartitionSpec as P

X = np.linspace(-2, 2, 64, dtype=np.float32).reshape(8, 8)

# name: (function of (lib, piece), specification of the argument, of the result)
FUNCTIONS = {
    "elementwise": (lambda lib, a: a * 2 + 1, ("x", "y"), ("x", "y")),
    "psum": (lambda lib, a: lib.lax.psum(a, "x"), ("x", "y"), (None, "y")),
    "psum_both": (lambda lib, a: lib.lax.psum(a, ("x", "y")), ("x", "y"), ()),
    "psum_of_whole": (lambda lib, a: lib.lax.psum(a, "x"), (), ()),
    "psum_tree": (lambda lib, a: lib.lax.psum({"a": a, "b": a.sum()}, "x"), ("x",), ()),
    "pmean": (lambda lib, a: lib.lax.pmean(lib.np.sin(a), "y"), ("x", "y"), ("x",)),
    "pmax": (lambda lib, a: lib.lax.pmax(a, "x"), ("x",), ()),
    "pmin": (lambda lib, a: lib.lax.pmin(a * a, ("x", "y")), ("x", "y"), ()),
    "all_gather": (lambda lib, a: lib.lax.all_gather(a, "x"), ("x", "y"), ("x", "y")),
    "all_gather_tiled": (lambda lib, a: lib.lax.all_gather(a, "x", axis=1, tiled=True), ("x", "y"), ("x", "y")),
    "all_gather_two": (lambda lib, a: lib.lax.all_gather(a, ("x", "y"), tiled=True), ("x", "y"), ("x", "y")),
    "all_gather_invarying": (lambda lib, a: lib.lax.all_gather(a, "x", to="invarying"), ("x", "y"), (None, None, "y")),
    "all_gather_invarying_tiled": (
        lambda lib, a: lib.lax.all_gather(a, ("x", "y"), axis=1, tiled=True, to="invarying"), ("x", "y"), ()),
    "psum_scatter": (lambda lib, a: lib.lax.psum_scatter(a, "x", scatter_dimension=1, tiled=True), ("x",), ("x", "y")),
    "psum_scatter_untiled": (lambda lib, a: lib.lax.psum_scatter(a[:, :4], "x", scatter_dimension=1), ("x",), ("x",)),
    "all_to_all": (lambda lib, a: lib.lax.all_to_all(a, "x", 1, 0, tiled=True), ("x", "y"), ("x", "y")),
    "all_to_all_untiled": (lambda lib, a: lib.lax.all_to_all(a[:, :4], "x", 1, 0), ("x",), ("x",)),
    "all_to_all_far": (lambda lib, a: lib.lax.all_to_all(a.reshape(2, 4, 2), "x", 1, 2), ("x",), ("x",)),
    "ppermute": (lambda lib, a: lib.lax.ppermute(a, "x", [(0, 1), (1, 2), (2, 3), (3, 0)]), ("x", "y"), ("x", "y")),
    "ppermute_part": (lambda lib, a: lib.lax.ppermute(a, "x", [(0, 1), (2, 0)]), ("x",), ("x",)),
    "ppermute_two": (lambda lib, a: lib.lax.ppermute(a, ("x", "y"), [(i, 7 - i) for i in range(8)]), (("x", "y"),),
                     (("x", "y"),)),
    "axis_index": (lambda lib, a: a + lib.lax.axis_index("x") * 10 + lib.lax.axis_index("y"), ("x", "y"), ("x", "y")),
    "axis_indices": (lambda lib, a: a * lib.lax.axis_index(("y", "x")), ("x", "y"), ("x", "y")),
    "axis_size": (lambda lib, a: a * lib.lax.axis_size("x"), ("x", "y"), ("x", "y")),
    "mixed": (lambda lib, a: a + lib.np.ones((2, 4), "float32"), ("x", "y"), ("x", "y")),
    "loop": (lambda lib, a: lib.lax.fori_loop(0, 3, lambda i, c: c * 0.5 + a, a), ("x", "y"), ("x", "y")),
    "ring": (lambda lib, a: lib.lax.scan(
        lambda c, _: (lib.lax.ppermute(c, "x", [(i, (i + 1) % 4) for i in range(4)]), c.sum()), a, None, 4),
        ("x", "y"), (("x", "y"), ("x", "y"))),
    "branch": (lambda lib, a: lib.lax.cond(True, lambda b: b * 2, lambda b: b, a), ("x", "y"), ("x", "y")),
    "inner_jit": (lambda lib, a: lib.jit(lambda b: lib.lax.psum(lib.np.tanh(b), "x"))(a), ("x", "y"), (None, "y")),
    "softmax": (lambda lib, a: lib.module.nn.softmax(a, axis=1), ("x",), ("x",)),
    "matmul": (lambda lib, a: lib.lax.psum(a.T @ a, "x"), ("x",), ()),
}


def mapped(lib, name, **options):
    function, given, wanted = FUNCTIONS[name]
    out_specs = lib.P(*wanted)
    if name == "ring":
        out_specs = (lib.P("x", "y"), lib.P(None))
        function_ = function

        def function(lib, a):
            last, sums = function_(lib, a)
            return last, lib.lax.psum(sums, ("x", "y"))

    return lib.module.shard_map(
        functools.partial(function, lib), mesh=lib.mesh("x4y2"), in_specs=lib.P(*given), out_specs=out_specs, **options
    )


def compare(ours, theirs, exact=True):
    left, right = xtrace.tree.leaves(ours), THEIRS.module.tree.leaves(theirs)
    assert len(left) == len(right)
    for x, y in zip(left, right, strict=True):
        assert_same_type(x, y)
        np.testing.assert_allclose(np.asarray(x), np.asarray(y), rtol=1e-5, atol=1e-5)
        if exact:
            assert repr(x.sharding) == repr(y.sharding)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions(name, check):
    compare(*[lib.jit(mapped(lib, name, check_vma=check))(X) for lib in (OURS, THEIRS)])


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", FUNCTIONS)
def test_outside_of_jit(name):
    compare(*[mapped(lib, name)(X) for lib in (OURS, THEIRS)])


@pytest.mark.parametrize("given", [True, False])
@pytest.mark.parametrize("kind", ["Auto", "Explicit"])
@pytest.mark.parametrize("wanted", [(), (None,), (None, None), ("x",), ("x", None), (("x", "y"), None), (None, "y")])
def test_results_outside_of_jit_keep_the_specification_as_given(wanted, kind, given):
    def run(lib):
        mesh = lib.mesh("x4y2", kind=kind)
        out_specs = {"a": lib.P(), "b": lib.P(*wanted)}
        options = {"mesh": mesh} if given else {}
        f = lib.module.shard_map(lambda x: {"a": x, "b": x}, in_specs=lib.P(), out_specs=out_specs, **options)
        with contextlib.nullcontext() if given else lib.module.set_mesh(mesh):
            return f(X)

    compare(run(OURS), run(THEIRS))


# jax transposes an all_to_all that is not tiled to one of another shape, and raises; ours has its adjoint.
UNTILED = ("all_to_all_untiled", "all_to_all_far")
DERIVATIVES = [n for n in FUNCTIONS if n not in ("pmax", "pmin", "branch", *UNTILED)]


@pytest.mark.parametrize("name", UNTILED)
def test_adjoints(name):
    f = mapped(OURS, name)
    result, pull = xtrace.vjp(f, X)
    cotangent = np.cos(np.arange(result.size, dtype=np.float32)).reshape(result.shape)
    moved = xtrace.jvp(f, (X,), (np.sin(X),))[1]
    np.testing.assert_allclose((moved * cotangent).sum(), (pull(cotangent)[0] * np.sin(X)).sum(), rtol=1e-5)


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("check", [True, False])
@pytest.mark.parametrize("name", DERIVATIVES)
def test_gradients(name, check):
    def gradient(lib):
        # Without types jax's gradient of a result that does not vary is too small by the number of devices.
        typed = check or (lib is THEIRS and "invarying" in name)
        f = mapped(lib, name, check_vma=typed)

        def loss(x):
            return sum((lib.np.cos(r) * lib.np.arange(r.size).reshape(r.shape)).sum()
                       for r in lib.module.tree.leaves(f(x)))

        return lib.jit(lib.module.grad(loss))(X)

    compare(gradient(OURS), gradient(THEIRS), exact=False)


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", [*DERIVATIVES, *UNTILED])
def test_forward_derivatives_and_mapping(name):
    def both(lib):
        f = mapped(lib, name)
        moved = lib.jit(lambda x: lib.module.jvp(f, (x,), (x * 2,))[1])(X)
        several = lib.jit(lib.module.vmap(f))(np.stack([X, X + 1]))
        return moved, several

    compare(both(OURS), both(THEIRS), exact=False)


@pytest.mark.parametrize("transform", ["remat", "vmap_grad", "jacfwd", "hvp", "custom_vjp", "scan_outside"])
def test_transformations(transform):
    def run(lib):
        m = lib.module
        f = m.shard_map(lambda a, w: lib.lax.psum(lib.np.tanh(a * w).sum(), ("x", "y")), mesh=lib.mesh("x4y2"),
                        in_specs=(lib.P("x", "y"), lib.P()), out_specs=lib.P())
        w = np.float32(0.7)
        if transform == "remat":
            return lib.jit(m.grad(m.checkpoint(f), argnums=(0, 1)))(X, w)
        if transform == "vmap_grad":
            return lib.jit(m.vmap(m.grad(f, argnums=1), in_axes=(None, 0)))(X, np.linspace(0, 1, 3, dtype="f"))
        if transform == "jacfwd":
            return lib.jit(m.jacfwd(f, argnums=1))(X, w)
        if transform == "hvp":
            return lib.jit(m.grad(m.grad(f, argnums=1), argnums=1))(X, w)
        if transform == "scan_outside":
            return lib.jit(lambda w: lib.lax.scan(lambda c, _: (c - 0.1 * m.grad(f, argnums=1)(X, c), f(X, c)), w,
                                                  None, 3))(w)

        @m.custom_vjp
        def g(a):
            return a * 2

        g.defvjp(lambda a: (a * 2, a), lambda a, t: (t * a,))
        h = m.shard_map(lambda a: lib.lax.psum(g(a).sum(), ("x", "y")), mesh=lib.mesh("x4y2"),
                        in_specs=lib.P("x", "y"), out_specs=lib.P())
        return lib.jit(m.grad(h))(X)

    compare(run(OURS), run(THEIRS), exact=False)


@pytest.mark.parametrize("body", ["psum", "index", "grad", "jit"])
def test_axes_that_the_compiler_splits(body):
    def run(lib):
        bodies = {
            "psum": lambda a: lib.lax.psum(a, "x"),
            "index": lambda a: lib.lax.psum(a * lib.lax.axis_index("x"), "x"),
            "grad": lambda a: lib.lax.psum(lib.module.grad(lambda b: lib.np.sin(b).sum())(a), "x"),
            "jit": lambda a: lib.jit(lambda b: lib.lax.psum(b * lib.lax.axis_index("x"), "x"))(a),
        }
        f = lib.module.shard_map(bodies[body], mesh=lib.mesh("x4y2"), in_specs=lib.P("x"), out_specs=lib.P(),
                                 axis_names={"x"})
        return lib.jit(f)(lib.put(X, lib.named("x4y2", "x", "y")))

    compare(run(OURS), run(THEIRS), exact=False)


# Of pieces that another axis splits; jax's rules for psum_scatter and for results with a new axis fail.
SPLIT_PIECES = [
    "l.psum(a, 'x')", "l.pmax(a, 'x')", "l.pmin(a, 'x')", "l.ppermute(a, 'x', [(0, 1), (1, 0)])",
    "l.all_gather(a, 'x', tiled=True)", "l.all_gather(a, 'x', axis=1, tiled=True)",
    "l.all_to_all(a, 'x', 0, 1, tiled=True)", "l.all_to_all(a, 'x', 1, 0, tiled=True)",
    "l.all_to_all(a[:4], 'x', 0, 0)",
]
SPLIT_PIECES_OF_OURS = [
    "l.all_gather(a, 'x')", "l.all_gather(a, 'x', axis=1)", "l.all_gather(a, 'x', axis=2)",
    "l.pcast(l.all_gather(a, 'x', axis=1, to='invarying'), 'x', to='varying')",
    "l.psum_scatter(a, 'x', tiled=True)", "l.psum_scatter(a, 'x', scatter_dimension=1, tiled=True)",
]


@pytest.mark.parametrize("entries", [(None, "y"), ("y", None)])
@pytest.mark.parametrize("expression", [*SPLIT_PIECES, *SPLIT_PIECES_OF_OURS])
def test_collectives_of_pieces_that_an_explicit_axis_splits(expression, entries):
    def run(lib, kind):
        def f(a):
            result = eval(expression, {"l": lib.lax, "a": lib.lax.pcast(a, "x", to="varying")})
            reduces = expression.startswith(("l.psum(", "l.pmax", "l.pmin"))
            return lib.lax.pcast(result, "x", to="varying") if reduces else result

        mesh = lib.mesh("x4y2", kind=kind)
        mapped = lib.module.shard_map(f, mesh=mesh, in_specs=lib.P(), out_specs=lib.P("x"), axis_names={"x"})
        return lib.jit(mapped)(lib.put(X, lib.named("x4y2", *entries, kind=kind)))

    result = run(OURS, "Explicit")
    np.testing.assert_allclose(result, run(OURS, "Auto"), rtol=1e-6)
    if expression in SPLIT_PIECES:
        compare(result, run(THEIRS, "Explicit"))


def test_collectives_that_would_remove_a_split_axis_are_refused():
    mesh = OURS.mesh("x4y2", kind="Explicit")
    x = xtrace.device_put(X[:4], xtrace.NamedSharding(mesh, P("y")))
    for function in (lambda a: lax.psum_scatter(a, "x"), lambda a: lax.all_to_all(a, "x", 0, 1)):
        mapped = xtrace.shard_map(function, mesh=mesh, in_specs=P(), out_specs=P("x"), axis_names={"x"})
        with pytest.raises(xtrace.errors.ShardingTypeError, match="should be unsharded along axis 0"):
            mapped(x)


def test_jaxprs_name_the_axes_of_types():
    text = str(xtrace.make_jaxpr(mapped(OURS, "psum"))(X))
    assert "c:f32[2,4]{V:y} = psum_invariant[axes=('x',)]" in text or "psum_invariant[axes=('x',)]" in text
    assert "f32[2,4]{V:(x,y)}" in text
    types = []
    f = xtrace.shard_map(lambda a, b: types.append((str(a.aval), str((a * b).aval))) or a * b, mesh=OURS.mesh("x4y2"),
                         in_specs=(P("x"), P("y")), out_specs=P(("x", "y")))
    xtrace.eval_shape(f, np.ones(8, "f"), np.ones(4, "f"))
    assert types == [("float32[2]{V:x}", "float32[2]{V:(x,y)}")]


def test_the_mesh_in_force_and_cached_calls():
    traced = []
    f = xtrace.shard_map(lambda a: traced.append(1) or a + 1, in_specs=P("x"), out_specs=P("x"))
    with xtrace.set_mesh(OURS.mesh("x8")):
        for _ in range(5):
            np.testing.assert_array_equal(f(X), X + 1)
    assert len(traced) == 1


def pieces(function, given=("x",), wanted=("x",), **options):
    return xtrace.shard_map(function, mesh=OURS.mesh("x4y2"), in_specs=P(*given), out_specs=P(*wanted), **options)


BAD = [
    (lambda: pieces(lambda a: a, ("x",), ())(X), ValueError, "may vary along the mesh axes 'x'.*lax.psum"),
    (lambda: pieces(lambda a: a, ("x",), ("z",))(X), ValueError,
     "out_specs argument must refer to an axis marked as manual.*out_specs refers to 'z'"),
    (lambda: pieces(lambda a: a, ("z",))(X), ValueError, "in_specs refers to 'z'"),
    (lambda: pieces(lambda a: a, (("x", "y"),))(np.ones((7, 2))), ValueError,
     r"not evenly divisible by .* argument a of <lambda>, of shape \(7, 2\).*axis 0 \(of size 7\).*Pad it to 8"),
    (lambda: pieces(lambda a: a.sum())(X), ValueError,
     r"an out_specs entry which is too long to be compatible with result: P\('x',\)"),
    (lambda: pieces(lambda a: a, ("x", "y", None))(X), ValueError,
     r"in_specs entry which is too long .*has length 3, .* has the shape \(8, 8\), .* rank 2\. Write P\('x', 'y'\)"),
    (lambda: pieces(lambda a: (a, a), wanted=("x",), axis_names={"q"})(X), ValueError,
     "to be a subset of mesh.axis_names"),
    (lambda: xtrace.shard_map(lambda a: a, in_specs=P("x"), out_specs=P("x"))(X), ValueError, "context mesh cannot be"),
    (lambda: pieces(lambda a: lax.psum(a, "q"))(X), NameError, "unbound axis name: q"),
    (lambda: xtrace.shard_map(lambda a: a, mesh=3, in_specs=P("x"), out_specs=P("x")), TypeError,
     "shard_map requires a .*Mesh"),
    (lambda: xtrace.shard_map(lambda a: a, mesh=OURS.mesh("x8"), in_specs="x", out_specs=P("x")), TypeError,
     "in_specs argument must be a pytree of .*PartitionSpec. instances"),
    (lambda: xtrace.shard_map(lambda a: (a, a), mesh=OURS.mesh("x8"), in_specs=P("x"), out_specs=(P("x"),))(X),
     ValueError, "out_specs, pytree structure error: a PartitionSpec, or a tree prefix of the result"),
    (lambda: pieces(lambda a: a)(a=X), TypeError, "takes its arguments by position, got a by name"),
    (lambda: xtrace.shard_map(3, mesh=OURS.mesh("x8"), in_specs=P("x"), out_specs=P("x")), TypeError, "callable"),
]


@pytest.mark.parametrize(("call", "error", "text"), BAD)
def test_bad_input(call, error, text):
    with pytest.raises(error, match=text):
        call()


def test_a_pipeline():
    """Four stages of a pipeline on four devices: each step every device works and hands its result on."""
    weights = np.linspace(0.5, 1.5, 4, dtype=np.float32)
    batches = np.arange(12, dtype=np.float32).reshape(6, 2)
    mesh = xtrace.make_mesh((4,), ("stage",), axis_types=xtrace.sharding.AxisType.Auto)

    @functools.partial(xtrace.shard_map, mesh=mesh, in_specs=(P("stage"), P()), out_specs=P(), check_vma=False)
    def run(w, batches):
        stage = lax.axis_index("stage")

        def step(held, t):
            given = jnp.where(stage == 0, batches[jnp.minimum(t, 5)], held)
            made = jnp.tanh(given * w[0])
            done = jnp.where(stage == 3, made, 0)
            return lax.ppermute(made, "stage", [(i, (i + 1) % 4) for i in range(4)]), done

        _, outputs = lax.scan(step, jnp.zeros(2), jnp.arange(9))
        return lax.psum(outputs[3:], "stage")

    expected = batches
    for w in weights:
        expected = np.tanh(expected * w)
    np.testing.assert_allclose(xtrace.jit(run)(weights, batches), expected, rtol=1e-5)


@pytest.mark.parametrize("names", ["all_gather", "psum", "psum_scatter"])
def test_equal_collectives_are_carried_out_once(names):
    counts = []
    for lib in (OURS, THEIRS):
        collective = getattr(lib.lax, names)
        options = {} if names == "psum" else {"tiled": True}

        def both(x, lib=lib, collective=collective, options=options):
            first, second = collective(x, "x", **options), collective(x, "x", **options)
            return (first * lib.np.sin(second)).sum()[None]

        mapped = lib.module.shard_map(both, mesh=lib.mesh("x8"), in_specs=lib.P("x"), out_specs=lib.P("x"))
        text = lib.jit(mapped).lower(X.ravel()).compile().as_text()
        counts.append(sum(text.count(f" {op}(") for op in ("all-gather", "all-reduce", "reduce-scatter")))
    assert counts[0] == counts[1] == 1


def test_the_abstract_mesh_says_which_axes_are_manual():
    ours, theirs = [], []
    for lib, meshes in ((OURS, ours), (THEIRS, theirs)):
        def note(x, lib=lib, meshes=meshes):
            meshes.append(str(lib.sharding.get_abstract_mesh()))
            return x

        mesh, spec = lib.mesh("x4y2"), lib.P("x")
        lib.module.shard_map(note, mesh=mesh, in_specs=spec, out_specs=spec)(np.ones(8))
        lib.jit(lib.module.shard_map(note, mesh=mesh, in_specs=spec, out_specs=spec, axis_names={"x"}))(np.ones(8))
        lib.jit(note)(np.ones(8))
    assert ours == theirs


def test_a_shard_map_in_another_takes_the_mesh_from_it():
    def run(lib):
        shard_map = lib.module.shard_map
        inner = shard_map(
            lambda x: lib.lax.psum(x, "y"), in_specs=lib.P(None, "y"), out_specs=lib.P(), axis_names={"y"}
        )
        outer = shard_map(
            lambda x: inner(x) + 1, mesh=lib.mesh("x4y2"), in_specs=lib.P("x"), out_specs=lib.P("x"), axis_names={"x"}
        )
        return lib.jit(outer)(np.ones((16, 8), "f"))

    compare(run(OURS), run(THEIRS))


def test_manual_axes_are_not_mapped_again():
    mesh, spec = OURS.mesh("x4y2"), P("x")
    inner = xtrace.shard_map(lambda x: x, mesh=mesh, in_specs=spec, out_specs=spec)
    with pytest.raises(ValueError, match=r"the mesh axes \['x', 'y'\] of .* are manual already"):
        xtrace.shard_map(inner, mesh=mesh, in_specs=spec, out_specs=spec)(np.ones(16))
    assert xtrace.sharding.get_abstract_mesh().empty


def test_in_specs_of_none_are_whole_arrays():
    def run(lib):
        return lib.module.shard_map(
            lambda x, y: x + y, mesh=lib.mesh("x4y2"), in_specs=None, out_specs=lib.P("x")
        )(np.ones((2, 2), "f"), np.ones(2, "f"))

    compare(run(OURS), run(THEIRS))


@pytest.mark.parametrize("in_axes", [0, 1])
def test_mapped_axes_along_a_mesh_axis(in_axes):
    def run(lib):
        specs = (lib.P("x", "y"), lib.P(None, "y"))
        function = lib.module.shard_map(
            lambda a, b: lib.lax.psum(a + b, "x"), mesh=lib.mesh("x2y2z2"), in_specs=specs, out_specs=lib.P(None, "y")
        )
        cube = np.arange(128, dtype="f").reshape(2, 8, 8) if in_axes == 0 else np.ones((8, 2, 8), "f")
        return lib.module.vmap(function, (in_axes, None), spmd_axis_name="z")(cube, np.ones((4, 8), "f"))

    compare(run(OURS), run(THEIRS))


@pytest.mark.parametrize("check_vma", [True, False])
@pytest.mark.parametrize("name", ["max", "min", "mean", "var"])
def test_derivatives_of_reductions_over_a_mesh_axis(name, check_vma):
    reduce = getattr(jnp, name)

    def along_mesh(x):
        reduced = xtrace.shard_map(
            lambda a: reduce(a, axis=("x", 0)), mesh=OURS.mesh("x4y2"), in_specs=P("x"), out_specs=P(),
            check_vma=check_vma,
        )
        return reduced(x).sum()

    np.testing.assert_allclose(
        xtrace.grad(along_mesh)(X), xtrace.grad(lambda x: reduce(x, axis=0).sum())(X), rtol=1e-6
    )


def test_mapped_axes_along_wrong_mesh_axes():
    function = xtrace.shard_map(lambda a: a, mesh=OURS.mesh("x4y2"), in_specs=P("x"), out_specs=P("x"))
    with pytest.raises(ValueError, match=r"spmd_axis_name names 'q', which is no manual axis"):
        xtrace.vmap(function, spmd_axis_name="q")(np.ones((2, 8)))
    with pytest.raises(ValueError, match=r"spmd_axis_name names 'x', which the shard_map .* uses for another"):
        xtrace.vmap(function, spmd_axis_name="x")(np.ones((4, 8)))
    with pytest.raises(ValueError, match=r"the mapped axis has the size 3, no multiple of 2"):
        xtrace.vmap(function, spmd_axis_name="y")(np.ones((3, 8)))


@pytest.mark.parametrize("expression", [
    "np.zeros_like(x)", "np.ones_like(x, shape=(3,))", "np.full_like(x, 2.0)", "np.empty_like(x, dtype=int)",
    "lax.full_like(x, 2)", "np.zeros_like(1.0)", "np.full_like(np.ones(2), x[0])",
])
def test_arrays_like_another_vary_as_it_does(expression):
    types = []
    for lib in (OURS, THEIRS):

        def record(x, lib=lib):
            like = eval(expression, {"np": lib.np, "lax": lib.lax, "x": x})
            types.append(lib.module.typeof(like).str_short(True))
            return x

        lib.module.shard_map(record, mesh=lib.mesh("x4y2"), in_specs=lib.P("x"), out_specs=lib.P("x"))(np.ones(8, "f"))
    assert types[0] == types[-1]


@pytest.mark.filterwarnings("ignore:jax.experimental.shard_map is deprecated")
def test_the_experimental_name():
    def run(lib, shard_map):
        return lib.jit(shard_map(lambda x: lib.lax.psum(x, "x"), lib.mesh("x4y2"), lib.P("x"), lib.P(), True))(X)

    compare(run(OURS, xtrace.experimental.shard_map.shard_map), run(THEIRS, theirs.shard_map))


@pytest.mark.parametrize("spec", [(), ("y",), (None, "x"), ("x", "y")])
def test_specifications_that_contradict_a_type_are_refused(spec):
    for lib in (OURS, THEIRS):
        x = lib.put(np.ones((16, 8), np.float32), lib.named("x4y2", "x", kind="Explicit"))
        mapped = lib.module.shard_map(
            lambda x: x, mesh=lib.mesh("x4y2", "Explicit"), in_specs=lib.P(*spec), out_specs=lib.P(*spec)
        )
        with pytest.raises(ValueError, match="does not match the specs of the input"):
            mapped(x)
