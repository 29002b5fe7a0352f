"""Callbacks of compiled programs: what is called, how often, in which order and with which values, as in jax."""

import contextlib
import gc
import io
import re
import traceback
import types
import weakref
from functools import partial

import jax
import jax.experimental
import numpy as np
import pytest

import xtrace
import xtrace.debug
import xtrace.errors
import xtrace.experimental
import xtrace.numpy
import xtrace.random
from xtrace import lax
from xtrace._src.xla.mlir import modules

OURS = types.SimpleNamespace(root=xtrace, np=xtrace.numpy, lax=lax, io_callback=xtrace.experimental.io_callback)
THEIRS = types.SimpleNamespace(root=jax, np=jax.numpy, lax=jax.lax, io_callback=jax.experimental.io_callback)


class Calls:
    """What callbacks were called with, by two libraries in turn."""

    def __init__(self, library):
        self.library, self.seen = library, []
        self.debug = library.root.debug

    def show(self, tag, x, **options):
        """Call back for the effect; returns the double."""
        self.debug.callback(partial(self._note, tag), x, **options)
        return x * 2

    def print(self, tag, x, **options):
        """Print; returns the double."""
        self.debug.print(tag + " {}", x, **options)
        return x * 2

    def read(self, tag, x, **options):
        """Call back for a result, with effects."""
        return self.library.io_callback(partial(self._sine, tag), self._like(x), x, **options)

    def pure(self, tag, x, **options):
        """Call back for a result, without effects."""
        return self.library.root.pure_callback(partial(self._sine, tag), self._like(x), x, **options)

    def _like(self, x):
        return self.library.root.ShapeDtypeStruct(np.shape(x), np.float32)

    def _note(self, tag, x):
        self.seen.append((tag, np.shape(x), np.asarray(x).tolist()))

    def _sine(self, tag, x):
        self._note(tag, x)
        return np.sin(np.asarray(x))


def run(library, program, *arguments):
    """Return what the program gives, what its callbacks saw and what it printed."""
    calls, printed = Calls(library), io.StringIO()
    with contextlib.redirect_stdout(printed):
        result = program(library, calls, *[library.np.asarray(x) for x in arguments])
        leaves = [np.asarray(x) for x in library.root.tree.leaves(result)]
        library.root.effects_barrier()
    return leaves, calls.seen, printed.getvalue().splitlines()


X, XS = np.float32(1.5), np.arange(3, dtype=np.float32)


def in_scan(m, c, use, x):
    def step(carry, y):
        return use(carry) * 0.5 + y, carry

    return m.lax.scan(step, x, m.np.arange(3.0, dtype="float32"))


def in_while(m, c, use, x):
    return m.lax.while_loop(lambda v: v < 3, lambda v: use(v) * 0 + v + 1, x)


def in_predicate(m, c, use, x):
    return m.lax.while_loop(lambda v: use(v) * 0 + v < 3, lambda v: v + 1, x)


def in_fori(m, c, use, x):
    return m.lax.fori_loop(0, 3, lambda i, v: use(v) * 0 + v + 1, x)


def in_branch(m, c, use, x):
    taken = m.lax.cond(x > 0, use, lambda v: v, x)
    return taken + m.lax.switch(m.np.int32(2), [use, lambda v: v, lambda v: use(v + 1)], x)


def in_calls(m, c, use, x):
    inner = m.root.jit(lambda v: use(v) + 1)
    return inner(x) + inner(x) + m.root.jit(inner)(x)


def twice(m, c, use, x):
    return use(x) + use(x) + use(x + 1)


def unused(m, c, use, x):
    use(x)
    return x


PLACES = [in_scan, in_while, in_predicate, in_fori, in_branch, in_calls, twice, unused]
KINDS = {
    "print": lambda c, x: c.print("p", x),
    "print ordered": lambda c, x: c.print("p", x, ordered=True),
    "callback": lambda c, x: c.show("c", x),
    "callback ordered": lambda c, x: c.show("c", x, ordered=True),
    "io": lambda c, x: c.read("io", x),
    "io ordered": lambda c, x: c.read("io", x, ordered=True),
}


def check(program, *arguments, in_order=True):
    """Compare a program of both libraries; calls that are not ordered may come in any order."""
    (ours, seen, printed), (theirs, seen_there, printed_there) = (run(m, program, *arguments) for m in (OURS, THEIRS))
    for one, other in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-6)
    order = list if in_order else sorted
    assert order(seen) == order(seen_there)
    assert order(printed) == order(printed_there)
    assert seen or printed


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize(
    ("how", "kind"),
    [*[("jit", k) for k in KINDS], ("eager", "print"), ("eager", "io ordered"), ("disable_jit", "callback"),
     ("disable_jit", "io")],
)
def test_calls_are_those_of_jax(how, kind):
    def program(m, c, x):
        use = partial(KINDS[kind], c)

        def all_places(x):
            return [place(m, c, use, x) for place in PLACES]

        if how == "disable_jit":
            with m.root.disable_jit():
                return all_places(x)
        return m.root.jit(all_places)(x) if how == "jit" else all_places(x)

    check(program, X, in_order="ordered" in kind or how != "jit")


def _of_lanes(m, c, use, x):
    return m.root.vmap(use)(x), m.root.vmap(m.root.vmap(use))(m.np.stack([x, x + 3])), m.root.vmap(use, 1)(x[None])


def _in_lanes_of_loops(m, c, use, x):
    return (
        m.root.vmap(lambda v: m.lax.scan(lambda k, y: (use(k) * 0 + y, k), v, m.np.arange(2.0, dtype="float32")))(x),
        m.root.vmap(lambda v: v + use(m.np.float32(7)))(x),
        m.root.vmap(lambda v: use(m.lax.psum(v, "i")), axis_name="i")(x),
        m.root.vmap(lambda v: m.lax.while_loop(lambda k: k < 2, lambda k: use(k) * 0 + k + 1, v))(x),
        m.root.vmap(lambda v: m.lax.cond(v > 0, use, lambda v: v, v))(x),
        m.root.vmap(lambda v, p: m.lax.cond(p > 0, use, lambda v: v, v), (0, None))(x, x[1]),
    )


def _derivatives(m, c, use, x):
    grad, jvp = m.root.grad, m.root.jvp
    checkpointed = m.root.checkpoint(lambda v: use(m.np.sin(v)) * m.np.sin(v))
    return (
        grad(use)(x[1]), jvp(use, (x[1],), (x[2],)), m.root.linearize(use, x[1])[1](x[2]), grad(grad(use))(x[2]),
        grad(lambda v: m.lax.scan(lambda k, y: (use(k) + y, None), v, x)[0])(x[1]), grad(checkpointed)(x[1]),
        grad(lambda v: m.lax.cond(v > 0, use, lambda v: v, v))(x[1]),
        m.root.vmap(grad(use))(x), grad(lambda v: m.root.vmap(use)(v).sum())(x),
    )


def _forward_in_while(m, c, use, x):
    def loop(v):
        return m.lax.while_loop(lambda k: k[0] < 2, lambda k: (use(k[0]) * 0 + k[0] + 1, k[1] * 2), (x[0], v))[1]

    return m.root.jvp(loop, (x[1],), (x[1],)), m.root.linearize(loop, x[1])[1](x[1])


def _custom(m, c, use, x):
    one, two = m.root.custom_jvp(use), m.root.custom_vjp(use)
    one.defjvp(lambda primals, tangents: (one(*primals), tangents[0] * 3))
    two.defvjp(lambda v: (two(v), v), lambda kept, cotangent: (use(cotangent + 4) + kept,))
    return m.root.grad(one)(x[1]), m.root.grad(two)(x[1]), one(x[2]), two(x[2]), m.root.vmap(m.root.grad(one))(x)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("kind", ["print", "callback ordered"])
@pytest.mark.parametrize("program", [_of_lanes, _in_lanes_of_loops, _derivatives, _forward_in_while, _custom])
def test_transformed_calls_are_those_of_jax(kind, program):
    def all_of_it(m, c, x):
        return m.root.jit(lambda x: program(m, c, partial(KINDS[kind], c), x))(x)

    check(all_of_it, XS, in_order="ordered" in kind)


@pytest.mark.parametrize("program", [_derivatives, _of_lanes])
def test_eager_transformed_calls_are_those_of_jax(program):
    check(lambda m, c, x: program(m, c, partial(KINDS["callback"], c), x), XS)


def test_io_under_vmap_is_called_in_turn():
    check(lambda m, c, x: m.root.jit(m.root.vmap(partial(c.read, "io")))(x), XS, in_order=False)
    check(lambda m, c, x: m.root.vmap(partial(c.read, "io"), in_axes=1)(x[None]), XS)


METHODS = ["sequential", "sequential_unrolled", "expand_dims", "broadcast_all", "legacy_vectorized"]


@pytest.mark.parametrize("method", METHODS)
def test_pure_callbacks_are_mapped_as_vmap_method_says(method):
    def program(m, c, x, y):
        def add(one, other):
            c.seen.append((one.shape, other.shape))
            return np.asarray(one + other, np.float32)

        kind = m.root.ShapeDtypeStruct((2,), np.float32)

        def use(one, other):
            return m.root.pure_callback(add, kind, one, other, vmap_method=method)

        once = m.root.vmap(use, in_axes=(1, None), out_axes=1)(x, y)
        if method == "legacy_vectorized":
            return once
        return once, m.root.jit(m.root.vmap(m.root.vmap(use, (0, None)), (None, 0)))(x.T, m.np.stack([y] * 4))

    check(program, np.arange(6, dtype=np.float32).reshape(2, 3), np.ones(2, np.float32), in_order=False)


def test_pure_callbacks_that_nothing_reads_are_not_called():
    calls = Calls(OURS)
    assert xtrace.jit(lambda x: (calls.pure("unused", x), x)[1])(1.0) == 1
    assert calls.seen == []


def test_custom_derivatives_of_pure_callbacks():
    def program(m, c, x):
        sine = m.root.custom_jvp(partial(c.pure, "sine", vmap_method="expand_dims"))
        sine.defjvp(lambda primals, tangents: (sine(*primals), m.np.cos(primals[0]) * tangents[0]))
        return m.root.jit(m.root.vmap(m.root.value_and_grad(sine)))(x), m.root.grad(m.root.grad(sine))(x[1])

    check(program, XS, in_order=False)


def test_ordered_calls_in_a_scan_of_a_jitted_function_under_grad():
    def program(m, c, x):
        def step(carry, y):
            factor = c.read("io", m.lax.stop_gradient(carry) + y, ordered=True)
            return carry * factor, carry

        scanned = m.root.jit(lambda v: m.lax.scan(step, v, m.np.arange(3.0, dtype="float32"))[0])
        return m.root.jit(m.root.grad(scanned))(x), m.root.grad(scanned)(x)

    # jax does not take stop_gradient for a value without a derivative.
    def expected(m, c, x):
        def step(carry, y):
            carry, moved = carry
            factor = c.read("io", carry + y, ordered=True)
            return (carry * factor, moved * factor), None

        run = m.root.jit(lambda v: m.lax.scan(step, (v, m.np.ones_like(v)), m.np.arange(3.0, dtype="float32"))[0][1])
        return run(x), run(x)

    (ours, seen, _), (theirs, seen_there, _) = run(OURS, program, X), run(THEIRS, expected, X)
    np.testing.assert_allclose(ours, theirs, rtol=1e-6)
    np.testing.assert_allclose([x for _, _, x in seen], [x for _, _, x in seen_there], rtol=1e-6)
    assert len(seen) == 6


def test_results_of_calls_with_effects_are_kept_by_checkpoint():
    calls = Calls(OURS)

    @xtrace.checkpoint
    def f(x):
        return calls.read("once", lax.stop_gradient(x)) * xtrace.numpy.sin(x)

    np.testing.assert_allclose(xtrace.grad(f)(1.0), np.sin(1.0) * np.cos(1.0), rtol=1e-6)
    assert [tag for tag, *_ in calls.seen] == ["once"]


STRUCT = xtrace.ShapeDtypeStruct
SCALAR = STRUCT((), np.float32)
_read = xtrace.experimental.io_callback


@pytest.mark.parametrize(
    "dtype", ["bool", "int8", "uint32", "float16", "bfloat16", "complex64", "float8_e4m3fn", "int4"]
)
def test_values_of_every_type_arrive_and_return(dtype):
    values = [xtrace.numpy.ones(shape, dtype) for shape in ((), (3,), (0,), (2, 3))]
    kinds = [STRUCT(x.shape, x.dtype) for x in values]

    def give_back(*xs):
        assert [(x.shape, x.dtype) for x in xs] == [(k.shape, k.dtype) for k in kinds]
        assert all(isinstance(x, xtrace.Array) for x in xs)
        return list(xs)

    for call in (lambda f: f, xtrace.jit):
        for one, other in zip(values, call(partial(_read, give_back, kinds))(*values), strict=True):
            assert one.dtype == other.dtype
            np.testing.assert_array_equal(np.asarray(one), np.asarray(other))


def test_arguments_keep_their_trees_layouts_and_keys():
    seen = []
    key = xtrace.random.key(3)

    @xtrace.jit
    def f(x, key):
        xtrace.debug.callback(lambda *a, **k: seen.append((a, k)), {"w": [x.T, "text"]}, None, key=key)

    f(np.arange(6.0).reshape(2, 3), key)
    xtrace.effects_barrier()
    (((tree, nothing), named),) = seen
    np.testing.assert_array_equal(tree["w"][0], np.arange(6.0).reshape(2, 3).T)
    assert tree["w"][1] == "text" and nothing is None
    assert named["key"].dtype == key.dtype
    assert (xtrace.random.key_data(named["key"]) == xtrace.random.key_data(key)).all()


def _late(x):
    """A value that is still being computed when the program that takes it is called."""
    return _slow(np.full((600, 600), x, np.float32))[0, 0]


_slow = xtrace.jit(lambda a: (a @ a @ a @ a @ a) * 0 + a)


def test_programs_with_ordered_calls_run_in_the_order_of_their_calls():
    seen = []
    note = xtrace.jit(lambda tag, x: _read(lambda t, v: seen.append((int(t), float(v))), None, tag, x, ordered=True))
    for tag in range(4):
        note(tag, _late(tag) if tag % 2 == 0 else float(tag))
    xtrace.debug.print("{}", 1, ordered=True)
    xtrace.effects_barrier()
    assert seen == [(tag, float(tag)) for tag in range(4)]


def test_callbacks_may_call_compiled_functions():
    @xtrace.jit
    def inner(x):
        xtrace.debug.callback(lambda v: seen.append(float(v)), x, ordered=True)
        return xtrace.numpy.sin(x) * 2

    def outer(x):
        result = np.asarray(xtrace.vmap(inner)(x))
        xtrace.effects_barrier()
        return result

    seen = []
    f = xtrace.jit(lambda x: _read(outer, STRUCT((3,), np.float32), x, ordered=True))
    for x in (XS, xtrace.numpy.full(3, _late(1.0))):
        np.testing.assert_allclose(f(x), np.sin(np.asarray(x)) * 2, rtol=1e-6)
    # Also where the enclosing trace is none of the callback's business.
    xtrace.grad(lambda x: x * xtrace.pure_callback(lambda v: xtrace.grad(xtrace.numpy.sin)(v), SCALAR, 0.5))(1.0)
    assert seen == [0, 1, 2, 1, 1, 1]


class Boom(Exception):
    """What no library raises."""


def _boom(x):
    raise Boom("the reason")


RAISING = {
    "pure_callback": lambda x: xtrace.pure_callback(_boom, SCALAR, x),
    "io_callback": lambda x: _read(_boom, SCALAR, x, ordered=True),
    "debug.callback": lambda x: xtrace.debug.callback(_boom, x),
}


@pytest.mark.parametrize("kind", RAISING)
@pytest.mark.parametrize("late", [False, True])
def test_errors_reach_the_caller_with_their_cause(kind, late):
    f = xtrace.jit(RAISING[kind])
    with pytest.raises(xtrace.errors.JaxRuntimeError) as caught:
        result = f(_late(1.0) if late else 1.0)
        if result is not None:
            xtrace.jit(lambda x: x + 1)(result).block_until_ready()
        xtrace.effects_barrier()
    message = str(caught.value)
    for part in (f"the callback _boom of {kind}", "test_callbacks.py", "raised Boom: the reason"):
        assert part in message
    cause = caught.value.__cause__
    assert type(cause) is Boom
    assert traceback.extract_tb(cause.__traceback__)[-1].name == "_boom"
    with contextlib.suppress(xtrace.errors.JaxRuntimeError):
        xtrace.effects_barrier()
    xtrace.effects_barrier()
    assert xtrace.jit(lambda x: _read(np.sin, SCALAR, x, ordered=True))(0.0) == 0


def test_errors_of_eager_calls():
    with pytest.raises(xtrace.errors.JaxRuntimeError, match="raised Boom: the reason"):
        RAISING["io_callback"](1.0)
    with pytest.raises(Boom):
        RAISING["debug.callback"](1.0)


@pytest.mark.parametrize("call", [lambda f: f, xtrace.jit])
def test_interrupts_stay_what_they_are(call):
    def interrupt(x):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        call(lambda x: _read(interrupt, SCALAR, x))(1.0)


WRONG = {
    "shape": (lambda x: np.ones(3, np.float32), "result of <lambda> .* expected float32.., got float32.3."),
    "dtype": (lambda x: np.int32(3), "expected float32.., got int32.*Convert it to the dtype"),
    "number": (lambda x: 3, "expected float32.., got int32"),
    "tree": (lambda x: (x, x), "returned a tree that differs .* a leaf against tuple of length 2"),
    "nothing": (lambda x: None, "returned a tree that differs .* a leaf against None"),
    "text": (lambda x: "a", "is no array: expected float32.., got 'a'"),
}


@pytest.mark.parametrize("case", WRONG)
def test_results_that_are_not_what_was_said(case):
    function, words = WRONG[case]
    for call in (lambda f: f, xtrace.jit):
        with pytest.raises(xtrace.errors.JaxRuntimeError, match=words):
            call(lambda x: xtrace.pure_callback(function, SCALAR, x))(1.0)


def test_the_leaf_of_a_wrong_result_is_named():
    kinds = {"a": (SCALAR, SCALAR)}
    with pytest.raises(xtrace.errors.JaxRuntimeError, match=r"result\['a'\]\[1\] of <lambda> has the wrong type"):
        xtrace.pure_callback(lambda x: {"a": (x, np.ones(2))}, kinds, 1.0)


def _vmap_in(loop):
    return lambda: xtrace.vmap(loop)(XS)


REFUSED = {
    "grad of pure_callback": (
        lambda: xtrace.grad(RAISING["pure_callback"])(1.0), ValueError, "Pure callbacks do not support JVP.*custom_jvp"
    ),
    "jvp of io_callback": (
        lambda: xtrace.jvp(RAISING["io_callback"], (1.0,), (1.0,)), ValueError, "IO callbacks do not support JVP"
    ),
    "vmap of an ordered io_callback": (_vmap_in(RAISING["io_callback"]), ValueError, "Cannot `vmap` ordered IO"),
    "vmap of pure_callback": (_vmap_in(RAISING["pure_callback"]), NotImplementedError, "one of 'sequential'"),
    "vmap of cond": (
        _vmap_in(lambda x: lax.cond(x > 0, lambda v: _read(_boom, SCALAR, v), lambda v: v, x)), NotImplementedError,
        "IO effect not supported in vmap-of-cond",
    ),
    "vmap of while_loop": (
        _vmap_in(lambda x: lax.while_loop(lambda v: v < 2, lambda v: v + _read(_boom, SCALAR, v), x)),
        NotImplementedError, "IO effects not supported in while_loop with batched predicate",
    ),
    "reduce": (
        lambda: lax.reduce(XS, np.float32(0), lambda a, b: a + xtrace.pure_callback(_boom, SCALAR, b), (0,)),
        NotImplementedError, "Cannot lower effectful `reduce`.*pure_callback, at .*test_callbacks.py",
    ),
    "composite": (
        lambda: xtrace.jit(lax.composite(lambda x: _read(_boom, SCALAR, x, ordered=True), name="my.own"))(1.0),
        NotImplementedError, "composite my.own: a composite cannot contain ordered callbacks",
    ),
    "other platforms": (
        lambda: xtrace.jit(RAISING["io_callback"]).trace(1.0).lower(lowering_platforms=("rocm",)), NotImplementedError,
        "programs for rocm cannot call Python functions",
    ),
    "not callable": (lambda: xtrace.pure_callback(3, SCALAR, 1.0), TypeError, "callback must be callable, got int 3"),
    "debug.callback": (lambda: xtrace.debug.callback(3, 1.0), TypeError, "must be callable, but got an object of type"),
    "no array": (
        lambda: _read(_boom, SCALAR, 1.0, {"a": "text"}), TypeError,
        r"io_callback: args\[1\]\['a'\], an argument of _boom",
    ),
    "no shape": (lambda: xtrace.pure_callback(_boom, [3], 1.0), AttributeError, r"dtypes\[0\] must have a shape"),
    "64 bits": (
        lambda: xtrace.pure_callback(_boom, np.float64(1), 1.0), ValueError, "cannot specify 64-bit types when"
    ),
    "keys": (
        lambda: xtrace.pure_callback(_boom, STRUCT((), xtrace.random.key(0).dtype), 1.0), TypeError, "random.key_data"
    ),
    "method": (
        lambda: xtrace.pure_callback(_boom, SCALAR, 1.0, vmap_method="all"), ValueError, "must be one of 'sequential'"
    ),
}


@pytest.mark.parametrize("case", REFUSED)
def test_what_is_refused(case):
    call, kind, words = REFUSED[case]
    with pytest.raises(kind, match=words):
        call()


class Unhashable:
    """A callable that cannot be the key of a table."""

    __hash__ = None

    def __call__(self, x):
        return np.sin(x)

    def method(self, x):
        return np.cos(x)


def test_showing_a_key_does_not_use_it_up():
    with xtrace.debug_key_reuse(True):

        @xtrace.jit
        def f(key):
            xtrace.debug.print("", ordered=True)
            xtrace.debug.callback(lambda k: None, key)
            return xtrace.random.normal(key)

        f(xtrace.random.key(0))


def test_functions_that_do_not_hash():
    one = Unhashable()
    loop = partial(lax.scan, lambda c, _: (_read(one, SCALAR, c), None), 1.0, None, 2)
    for call in (lambda f: f, xtrace.jit):
        np.testing.assert_allclose(call(loop)()[0], np.sin(np.sin(1.0)), rtol=1e-6)
    assert xtrace.jit(lambda x: xtrace.pure_callback(one.method, SCALAR, x))(0.0) == 1


def test_functions_live_as_long_as_their_programs():
    owner = Unhashable()
    gone = weakref.ref(owner)
    f = xtrace.jit(lambda x, method=owner.method: xtrace.pure_callback(method, SCALAR, x))
    assert f(0.0) == 1
    del owner
    gc.collect()
    assert f(0.0) == 1
    del f
    gc.collect()
    # The runtime lets go of Python objects when it is next called.
    xtrace.jit(lambda x: x - 1)(1.0)
    assert gone() is None


def _effects(m, x):
    m.root.debug.print("x {}", x)
    m.root.debug.print("x {y}", y=x, ordered=True)
    m.io_callback(_boom, None, x, ordered=True)
    return m.io_callback(_boom, m.root.ShapeDtypeStruct((), np.float32), x) + m.root.pure_callback(
        _boom, m.root.ShapeDtypeStruct((), np.float32), x, vmap_method="sequential"
    )


def test_jaxprs_show_effects_as_those_of_jax():
    ours, theirs = (str(m.root.make_jaxpr(partial(_effects, m))(X)) for m in (OURS, THEIRS))
    assert ours == theirs
    effects = xtrace.make_jaxpr(partial(_effects, OURS))(X).effects
    assert {str(e) for e in effects} == {"Debug", "OrderedDebug", "IO", "OrderedIO"}
    assert xtrace.eval_shape(partial(_effects, OURS), X).shape == ()


def test_programs_with_callbacks_are_not_compiled_again_nor_called_past_their_checks():
    seen = []
    f = xtrace.jit(lambda x: (xtrace.debug.callback(lambda v: seen.append(float(v)), x), x + 1)[1])
    for i in range(8):
        assert f(float(i)) == i + 1
    xtrace.effects_barrier()
    assert seen == list(range(8))
    assert f._cache_size() == 1


def test_programs_for_tpus_transfer_operands_and_results():
    def f(x):
        xtrace.debug.callback(lambda: None, ordered=True)
        return lax.cond(x > 0, lambda v: v, lambda v: _read(np.sin, SCALAR, v, ordered=True), x)

    text = xtrace.jit(f).trace(1.0).lower(lowering_platforms=("tpu",)).as_text()
    modules.verify(text)
    channels = re.findall(r"handle = (\d+), type = (\d)", text)
    assert channels == [("2", "2"), ("3", "3"), ("4", "2"), ("5", "3")]
