"""Drawn bad calls end in errors for users, and leave nothing behind: no trace, no tracer, no cache entry."""

import ast
import gc
import random
import zlib

import numpy as np

import xtrace
import xtrace.numpy as jnp
from tests.support.sampling import number_of_draws
from xtrace import lax
from xtrace._src.core import monitoring
from xtrace._src.core.trace import Tracer, base_trace, current_trace

GOOD = [
    "jnp.sum(x, axis=0)", "jnp.reshape(x, (4, 3))", "jnp.concatenate([x, x], axis=0)", "jnp.take(x, n, axis=0)",
    "jnp.where(x > 0, x, 0)", "jnp.transpose(x, (1, 0))", "jnp.einsum('ij,j->i', x, v)", "jnp.pad(x, 1)",
    "jnp.clip(x, 0, 1)", "jnp.sort(x, axis=0)", "jnp.linspace(0, 1, 5)", "jnp.zeros((2, 3), np.float32)", "x + v",
    "x.at[n].set(v)", "x[n]", "lax.slice(x, (0, 0), (2, 2))", "lax.dot_general(x, v, (((1,), (0,)), ((), ())))",
    "lax.reduce_max(x, (0,))", "lax.pad(x, s, ((0, 0, 0), (1, 1, 0)))", "lax.scan(lambda c, a: (c + a, a), s, v)",
    "lax.cond(s > 0, lambda a: a, lambda a: -a, x)", "lax.fori_loop(0, 3, lambda i, a: a + i, v)",
    "lax.while_loop(lambda a: a < 3, lambda a: a + 1, s)", "lax.dynamic_slice(x, (0, 0), (2, 2))",
    "lax.gather(x, n[:, None], lax.GatherDimensionNumbers((1,), (0,), (0,)), (1, 4))",
    "xtrace.jit(f)(x)", "xtrace.jit(f, static_argnums=())(v)", "xtrace.vmap(f, in_axes=0, out_axes=0)(x)",
    "xtrace.grad(g, argnums=0)(x)", "xtrace.jvp(f, (x,), (x,))", "xtrace.vjp(f, x)[1](x)",
    "xtrace.linearize(f, x)[1](x)", "xtrace.jacfwd(f)(v)", "xtrace.random.normal(key, (3,))",
    "xtrace.random.choice(key, v, (2,))", "xtrace.tree.map(lambda a, b: a, [x, v], [x, v])",
]
BAD = [
    "None", "'bad'", "{}", "{1}", "object()", "(lambda: 0)", "int", "(i for i in ())", "np.array([None])",
    "np.array(['a'])", "np.array(['2020'], 'datetime64[Y]')", "np.zeros((0, 3, 2, 5, 1), np.float32)", "7", "-9", "1.5",
    "True", "float('nan')", "(0, 0)", "('a', 'b')", "[]", "np.float32", "'int33'", "x", "1j", "[[1], [1, 2]]", "2**70",
]
CALLS = 300


def f(x):
    return x * 2


def g(x):
    return (x * x).sum()


def bad_call(text, generator):
    """The call with an argument replaced by a bad value, left out or added."""
    tree = ast.parse(text, mode="eval")
    calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)] or [tree.body]
    call = generator.choice(calls)
    value = ast.parse(generator.choice(BAD), mode="eval").body
    if not isinstance(call, ast.Call):
        for name in ("right", "slice"):
            if hasattr(call, name):
                setattr(call, name, value)
        return ast.unparse(tree)
    kind = generator.randrange(10)
    if kind == 0:
        call.keywords.append(ast.keyword("nonsense", value))
    elif kind == 1:
        call.args.append(value)
    elif kind == 2 and call.args:
        call.args.pop()
    elif kind < 6 and call.keywords:
        generator.choice(call.keywords).value = value
    elif call.args:
        call.args[generator.randrange(len(call.args))] = value
    return ast.unparse(tree)


def test_bad_calls_leave_nothing_behind(pytestconfig):
    number = number_of_draws(pytestconfig.getoption("sample_seed"))
    generator = random.Random(zlib.crc32(f"bad calls {number}".encode()))
    names = {
        "xtrace": xtrace, "jnp": jnp, "lax": lax, "np": np, "f": f, "g": g, "key": xtrace.random.key(0),
        "x": jnp.arange(12, dtype=np.float32).reshape(3, 4), "v": jnp.ones(4), "s": jnp.float32(2),
        "n": jnp.array([2, 0, 1]),
    }

    def good():
        return [xtrace.tree.leaves(eval(text, names)) for text in GOOD]

    # Small programs are compiled when they are called for the fourth time.
    before = good()
    for _ in range(3):
        good()
    for _ in range(CALLS):
        text = bad_call(generator.choice(GOOD), generator)
        try:
            eval(text, names)
        except Exception as error:
            shown = f"XTRACE_DRAWS_SEED={number}: {text}: {type(error).__name__}: {error}"
            assert "failure is in xtrace itself" not in "".join(getattr(error, "__notes__", ())), shown
            assert len(str(error)) < 3000, shown
        assert current_trace.get() is base_trace, text
    del text
    compiled = []
    listen = lambda event, *_, **__: compiled.append(event) if "backend_compile" in event else None  # noqa: E731
    monitoring.register_event_duration_secs_listener(listen)
    try:
        after = good()
    finally:
        monitoring.unregister_event_duration_listener(listen)
    assert compiled == []
    for one, two in zip(before, after, strict=True):
        for a, b in zip(one, two, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
    gc.collect()
    assert [x for x in gc.get_objects() if isinstance(x, Tracer)] == []
