"""Jitted functions on meshes: shardings given and chosen, constraints, donation, caching, what is shown."""

import itertools
import os
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.sharding.meshes import OURS, THEIRS
from tests.sharding.test_arrays import MATRIX, compare
from xtrace.sharding import PartitionSpec as P

SPECS = [None, (), ("x",), (None, "y"), (("x", "y"),)]


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize(("given", "wanted"), list(itertools.product(SPECS, SPECS)))
def test_in_and_out_shardings(given, wanted):
    def run(lib):
        places = [None if s is None else lib.named("x4y2", *s) for s in (given, wanted)]
        if given is None and wanted is not None:
            places[0] = lib.named("x4y2")
        function = lib.jit(lambda x, n: {"r": x * n, "s": x.sum()}, in_shardings=(places[0], None),
                           out_shardings={"r": places[1], "s": None})
        return function(MATRIX, 3)

    compare(run)


@pytest.mark.parametrize("spec", [("x",), (None, "y"), ("x", "y")])
def test_constraints(spec):
    def run(lib):
        def function(x):
            y = lib.lax.with_sharding_constraint(x * 2, lib.named("x4y2", *spec))
            return y, {"t": y.T @ y}

        return lib.jit(function)(lib.put(MATRIX, lib.named("x4y2", "y")))

    compare(run)


def test_a_constraint_under_each_transformation():
    def run(lib):
        place = lib.named("x4y2", "x")

        def f(x):
            return lib.np.sin(lib.lax.with_sharding_constraint(x, place)).sum()

        def step(carry, _):
            return lib.lax.with_sharding_constraint(carry * 2, place), carry.sum()

        x = lib.put(MATRIX, lib.named("x4y2"))
        looped = lib.jit(lambda x: lib.lax.scan(step, x, None, 3))(x)
        gradient = lib.jit(lib.module.grad(f))(x)
        mapped = lib.jit(lib.module.vmap(f))(lib.np.stack([x, x]))
        spread = lib.jit(lib.module.vmap(lambda x: lib.lax.with_sharding_constraint(x, place), spmd_axis_name="y"))
        ours = spread(lib.np.stack([x, x]))
        remade = lib.jit(lib.module.checkpoint(lib.module.grad(f)))(x)
        return [ours, looped[0]], [np.asarray(v) * 1 for v in (gradient, mapped, remade)]

    (placed, rest), (their_placed, their_rest) = run(OURS), run(THEIRS)
    for x, y in zip(placed, their_placed, strict=True):
        np.testing.assert_array_equal(x, y)
        assert repr(x.sharding) == repr(y.sharding)
    for x, y in zip(rest, their_rest, strict=True):
        np.testing.assert_allclose(x, y, rtol=1e-5)


@pytest.mark.parametrize("donated", [False, True])
def test_donation(donated):
    x = OURS.put(MATRIX, OURS.named("x4y2", "x"))
    place = OURS.named("x4y2", "x")
    function = xtrace.jit(lambda x: x + 1, donate_argnums=0 if donated else (), out_shardings=place)
    for _ in range(6):
        kept, x = x, function(x)
        assert kept.is_deleted() == donated
    np.testing.assert_array_equal(x, MATRIX + 6)


def test_text_names_the_mesh_and_the_shardings():
    x = OURS.put(MATRIX, OURS.named("x4y2", "x"))
    text = xtrace.jit(lambda x: x * 2, out_shardings=OURS.named("x4y2", None, ("x", "y"))).lower(x).as_text()
    assert '  sdy.mesh @mesh = <["x"=4, "y"=2]>\n' in text
    assert '%arg0: tensor<16x8xf32> {sdy.sharding = #sdy.sharding<@mesh, [{"x"}, {}]>}' in text
    assert 'sdy.sharding = #sdy.sharding<@mesh, [{}, {"x", "y"}]>}' in text
    assert "mhlo.num_partitions = 8" in text


def test_ahead_of_time():
    described = xtrace.ShapeDtypeStruct((16, 8), "float32", sharding=OURS.named("x4y2", "x"))
    compiled = xtrace.jit(lambda x, y: (x + y, x.sum())).lower(described, described).compile()
    place = OURS.named("x4y2", "x")
    assert compiled.input_shardings == ((place, place), {})
    assert compiled.output_shardings == (place, OURS.named("x4y2"))
    x = OURS.put(MATRIX, place)
    np.testing.assert_array_equal(compiled(x, x)[0], MATRIX * 2)


def test_calls_use_written_code_and_leave_nothing():
    """The fifth call of a signature runs code of its own; arrays, NumPy arrays and numbers may be arguments."""
    x = OURS.put(MATRIX, OURS.named("x4y2", "x"))
    function = xtrace.jit(lambda x, y, n: x * n + y)
    for i in range(8):
        np.testing.assert_array_equal(function(x, MATRIX, i), MATRIX * i + MATRIX)
    assert len(function._xtrace_jitted.cache.call_shapes) == 1
    assert function._cache_size() == 1
    function = xtrace.jit(lambda x: x + 1)
    for _ in range(200):
        function(x)
    before = sys.getallocatedblocks()
    for _ in range(1000):
        function(x)
    assert abs(sys.getallocatedblocks() - before) < 20


def test_shardings_are_part_of_the_key_and_of_the_reason():
    function = xtrace.jit(lambda x: x + 1)
    function(OURS.put(MATRIX, OURS.named("x4y2", "x")))
    function(OURS.put(MATRIX, OURS.named("x4y2")))
    assert function._cache_size() == 2
    assert "P('x',)" in repr(function.cache_info())


def test_the_mesh_in_force():
    def run(lib):
        with lib.module.set_mesh(lib.mesh("x4y2")):
            place = lib.put(MATRIX, lib.P("x"))
            constrained = lib.jit(lambda x: lib.lax.with_sharding_constraint(x, lib.P(None, "y")))(MATRIX)
            outside = lib.lax.with_sharding_constraint(MATRIX, lib.P("x"))
            given = lib.jit(lambda x: x + 1, in_shardings=lib.P("x"), out_shardings=lib.P("y"))(MATRIX)
            return place, constrained, outside, given, lib.np.ones(3) + 1

    compare(run)


def test_random_numbers_do_not_depend_on_the_sharding():
    wanted = xtrace.random.normal(xtrace.random.key(3), (16, 8))
    for spec in ((), ("x",), ("x", "y")):
        drawn = xtrace.jit(lambda k: xtrace.random.normal(k, (16, 8)), out_shardings=OURS.named("x4y2", *spec))
        got = drawn(xtrace.random.key(3))
        np.testing.assert_array_equal(got, wanted)
        assert got.sharding == OURS.named("x4y2", *spec)
    keys = xtrace.device_put(xtrace.random.split(xtrace.random.key(0), 8), OURS.named("x8", "x"))
    assert xtrace.vmap(xtrace.random.normal)(keys).sharding == OURS.named("x8", "x")


def test_closed_over_arrays_and_large_constants():
    big = jnp.arange(2048.0).reshape(16, 128)
    x = OURS.put(np.ones((16, 128), np.float32), OURS.named("x8", "x"))
    np.testing.assert_array_equal(xtrace.jit(lambda x: x + big)(x), np.asarray(big) + 1)
    np.testing.assert_array_equal(xtrace.jit(lambda y: y + x)(np.float32(1)), np.full((16, 128), 2))


def test_nested_jits_with_shardings():
    given, wanted = OURS.named("x4y2", "y"), OURS.named("x4y2", None, "y")
    inner = xtrace.jit(lambda y: y * 2, in_shardings=given, out_shardings=wanted)
    got = xtrace.jit(lambda x: inner(x + 1))(MATRIX)
    np.testing.assert_array_equal(got, (MATRIX + 1) * 2)
    assert got.sharding == wanted


BAD = [
    (lambda: xtrace.jit(lambda x: x, in_shardings=P("x"))(np.ones(8)), "non-empty mesh in context.*in_shardings"),
    (lambda: xtrace.jit(lambda x: x, in_shardings=(OURS.named("x8"),) * 2)(np.ones(8)),
     "in_shardings specification must be a tree prefix of the positional arguments tuple"),
    (lambda: xtrace.jit(lambda x: x, in_shardings=OURS.named("x8", "x"))(np.ones(7)),
     "pjit arguments with pytree key path x .* axis 0 is partitioned 8 times.*'x' of size 8.*Pad it to 8"),
    (lambda: xtrace.jit(lambda x: {"r": x}, out_shardings=OURS.named("x8", "x"))(np.ones(7)),
     r"pjit outputs with pytree key path result\['r'\] .* axis 0 is partitioned 8 times"),
    (lambda: xtrace.jit(lambda x: x, out_shardings=OURS.named("x4y2", "x", "y"))(np.ones(8)), "rank at least 2"),
    (lambda: xtrace.jit(lambda x: x, in_shardings=OURS.named("x8", "x"))(OURS.put(np.ones(8), OURS.named("x8"))),
     "does not match the sharding on the respective arg.*argument x has the sharding"),
    (lambda: xtrace.jit(lambda x, y: x + y)(OURS.put(np.ones(8), OURS.named("x8")), OURS.put(1.0, OURS.devices[2])),
     "Received incompatible devices.*argument y of <lambda>"),
    (lambda: xtrace.jit(lambda x: xtrace.lax.with_sharding_constraint(x, OURS.named("x4y2", "x", "y")))(np.ones(7)),
     "with_sharding_constraint arguments.*rank at least 2"),
    (lambda: xtrace.lax.with_sharding_constraint(np.ones(8), P("x")), "non-empty mesh in context"),
    (lambda: xtrace.jit(lambda *, x: x, in_shardings=OURS.named("x8"))(x=np.ones(8)), "keyword arguments x"),
    (lambda: xtrace.jit(lambda x: x, in_shardings=OURS.named("x8"), backend="cpu"), "leave out device and backend"),
]


@pytest.mark.parametrize(("call", "text"), BAD)
def test_bad_input(call, text):
    with pytest.raises(ValueError, match=text):
        call()


@pytest.mark.parametrize("argument", ["in_shardings", "out_shardings"])
def test_an_object_that_is_no_sharding(argument):
    with pytest.raises(TypeError, match=f"jit: {argument} leaf specifications are expected to be shardings"):
        xtrace.jit(lambda x: x, **{argument: 3})
    with pytest.raises(TypeError, match="with_sharding_constraint: shardings leaf specifications"):
        xtrace.lax.with_sharding_constraint(np.ones(8), 3)


def test_a_newcomers_program():
    """Data-parallel training of a regression on eight devices gives the weights of one device."""
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(64, 4)).astype("f"), rng.normal(size=64).astype("f")

    def loss(w, x, y):
        return ((x @ w - y) ** 2).mean()

    @xtrace.jit
    def step(w, x, y):
        return w - 0.1 * xtrace.grad(loss)(w, x, y)

    alone = jnp.zeros(4)
    w = xtrace.device_put(alone, OURS.named("x8"))
    sharded = [xtrace.device_put(v, OURS.named("x8", "x")) for v in (x, y)]
    for _ in range(5):
        w, alone = step(w, *sharded), step(alone, x, y)
    np.testing.assert_allclose(w, alone, rtol=1e-5, atol=1e-7)
    assert w.sharding == OURS.named("x8")


def test_a_mesh_of_one_device():
    mesh = xtrace.sharding.Mesh(OURS.devices[:1], ("x",))
    place = xtrace.NamedSharding(mesh, P("x"))
    x = xtrace.device_put(MATRIX, place)
    results = xtrace.jit(lambda x, y: (x + y, y * 2, x.sum()))(x, MATRIX)
    assert all(r.sharding.mesh is mesh for r in results)
    np.testing.assert_array_equal(results[0], MATRIX * 2)
    compare(lambda lib: lib.jit(lambda x: x + 1)(
        lib.put(MATRIX, lib.sharding.NamedSharding(lib.sharding.Mesh(lib.devices[:1], ("x",)), lib.P("x")))))


def test_calls_without_a_wait_end():
    """Programs on several CPU devices that run at once share threads, and their collectives wait for one another."""
    source = """
        import numpy as np, threading, xtrace
        from xtrace.sharding import Mesh, NamedSharding, PartitionSpec as P
        mesh = Mesh(np.array(xtrace.devices()).reshape(4, 2), ("x", "y"))
        rows, columns = NamedSharding(mesh, P("x", "y")), NamedSharding(mesh, P("y"))
        x = xtrace.device_put(np.ones((8, 8), "f"), rows)
        total = xtrace.jit(lambda x: x - x.sum() / 64, out_shardings=columns)
        seen = []

        def work():
            for i in range(1000):
                y = total(x)
                z = xtrace.device_put(y, rows)
            seen.append(float(abs(z).sum()))

        def tell(x):
            seen.append(float(x))

        xtrace.jit(lambda x: xtrace.debug.callback(tell, x.sum()))(x)
        threads = [threading.Thread(target=work) for _ in range(2)]
        for thread in threads: thread.start()
        for thread in threads: thread.join()
        xtrace.effects_barrier()
        print(sorted(seen))
    """
    environment = {**os.environ, "JAX_NUM_CPU_DEVICES": "8"}
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(source)], env=environment, capture_output=True,
                          text=True, timeout=60, check=False)
    assert (done.returncode, done.stdout) == (0, "[0.0, 0.0, 64.0]\n"), done.stderr


@pytest.mark.parametrize("shape", [(10, 3), (7,), (3, 8)])
def test_constraints_on_dimensions_that_do_not_divide(shape):
    def run(lib):
        def function(x):
            y = lib.lax.with_sharding_constraint(x * 2, lib.named("x4y2", *["x", "y"][: len(shape)]))
            return y, y.sum(0)

        return lib.jit(function)(np.arange(np.prod(shape), dtype="f").reshape(shape))

    compare(run)


def test_unconstrained_dimensions_of_a_batched_constraint():
    def run(lib):
        return lib.module.vmap(lambda x: lib.lax.with_sharding_constraint(x, lib.named("x4y2", "x")))(MATRIX)

    compare(run)


@pytest.mark.parametrize("place", ["another sharding", "one device", "uncommitted", "the same"])
def test_arguments_of_compiled_functions_are_where_they_were_compiled_for(place):
    def run(lib):
        compiled = lib.jit(lambda x: x * 2, in_shardings=lib.named("x4y2", "x")).lower(MATRIX).compile()
        argument = {
            "another sharding": lambda: lib.put(MATRIX, lib.named("x4y2", "y")),
            "one device": lambda: lib.put(MATRIX, lib.devices[0]),
            "uncommitted": lambda: lib.np.asarray(MATRIX),
            "the same": lambda: lib.put(MATRIX, lib.named("x4y2", "x")),
        }[place]()
        try:
            return compiled(argument)
        except ValueError:
            return "ValueError"

    if place in ("another sharding", "one device"):
        assert run(OURS) == run(THEIRS) == "ValueError"
    else:
        compare(run)


def test_arguments_of_compiled_functions_on_one_device():
    compiled = xtrace.jit(lambda x: x * 2).lower(xtrace.device_put(MATRIX, OURS.devices[1])).compile()
    with pytest.raises(ValueError, match=r"argument x is on .*id=0.*, and the program takes it from .*id=1"):
        compiled(xtrace.device_put(MATRIX, OURS.devices[0]))
    np.testing.assert_array_equal(compiled(MATRIX), MATRIX * 2)


@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_the_first_input_alone_lends_its_sharding_to_results(order):
    """A specification says in several ways that a dimension is whole; results have that of the first input."""
    def run(lib):
        operands = [np.ones((8, 4), "f"), lib.put(np.ones((8, 4), "f"), lib.named("x8", "x", None))]
        return lib.jit(lambda a, b: (a + b, b * 2))(*[operands[i] for i in order])

    compare(run)


def test_descriptions_of_results_say_the_shardings_that_were_asked_for():
    rows = []
    for lib in (OURS, THEIRS):
        wanted = {"a": lib.named("x4y2", "x"), "b": None}
        function = lib.jit(lambda x: {"a": x, "b": x.sum()}, out_shardings=wanted)
        given = lib.module.ShapeDtypeStruct((8, 4), "float32")
        infos = [function.eval_shape(given), lib.module.eval_shape(function, given), function.trace(given).out_info,
                 function.lower(given).out_info]
        rows.append([(str(info["a"].sharding.spec), info["b"].sharding) for info in infos])
    assert rows[0] == rows[1] == [("P('x',)", None)] * 4


def test_programs_for_meshes_without_devices():
    mesh = xtrace.sharding.AbstractMesh((4, 2), ("x", "y"))
    place = xtrace.NamedSharding(mesh, xtrace.P("x", "y"))
    lowered = xtrace.jit(lambda x: x * 2).lower(xtrace.ShapeDtypeStruct((8, 8), "float32", sharding=place))
    assert '["x"=4, "y"=2]' in lowered.as_text() and '[{"x"}, {"y"}]' in lowered.as_text()
    for attempt in (lowered.compile, lambda: xtrace.jit(lambda x: x, in_shardings=place)(np.ones((8, 8)))):
        with pytest.raises(ValueError, match=r"AbstractMesh, which has no devices to compile for.*set_mesh"):
            attempt()
