"""Programs that end or hang the process in XLA when they are compiled as they stand, or that come near to it.

Rows run in child processes, several in each, with the code generation that users get. Each states its outcome: the
value of an expression of NumPy, or the error. Issues are those in which the program, or one like it, was reported.
"""

import json
import os
import signal
import subprocess
import sys
from typing import NamedTuple

import pytest


class Row(NamedTuple):
    """A program, the NumPy expression that its value equals or the beginning of its error, and issues."""

    program: str
    outcome: str
    issues: str = ""


_CHILD = """
import json, sys
import numpy as np
import xtrace, xtrace.numpy as jnp
from xtrace import lax
from xtrace._src.xla import versions

generator = np.random.default_rng(0)
S = (3, 1, 2, 2, 8, 8, 8)
a, b = [generator.random(S).astype("float32") for _ in range(2)]

def flat(tree):
    return [np.asarray(x) for x in xtrace.tree.leaves(tree)]

def outcome(program, expected):
    try:
        found = eval(program)
    except Exception as error:
        text = f"{type(error).__name__}: {error}"
        return "as stated" if text.startswith(expected) else text
    try:
        stated = eval(expected)
    except SyntaxError:
        return repr(found)
    for x, y in zip(flat(found), flat(stated), strict=True):
        tolerance = 2e-2 if x.dtype == "bfloat16" else 1e-4
        np.testing.assert_allclose(x.astype("float64"), y.astype("float64"), rtol=tolerance)
    return "as stated"

for program, expected in json.load(sys.stdin):
    print(json.dumps([program, None]), flush=True)
    try:
        said = outcome(program, expected)
    except BaseException as error:
        said = f"{type(error).__name__}: {error}"
    print(json.dumps([program, said]), flush=True)
"""


def outcomes(rows: list[Row]) -> dict[str, str]:
    """Return what each row did in one child process; rows behind one that ended the process are missing."""
    given = json.dumps([[row.program, row.outcome] for row in rows])
    environment = {**os.environ, "XLA_FLAGS": "", "XTRACE_ENABLE_CHECKS": "0"}
    child = subprocess.Popen(
        [sys.executable, "-c", _CHILD], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=environment
    )
    try:
        output, _ = child.communicate(given, timeout=300)
        ending = f"the process ended with {child.returncode}"
    except subprocess.TimeoutExpired:
        child.kill()
        output, _ = child.communicate()
        ending = "the process hung"
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("[")]
    return {program: said or ending for program, said in lines}


# XLA offloads float32 and bfloat16 sums of products to YNNPACK: with more than six axes, jaxlib 0.10.2 and 0.11.0 end
# the process, hang, or give wrong values.
_FUSED = "jax-ml/jax#40412, #39257; openxla/xla#47374"
FUSED_SUMS = [
    Row("xtrace.jit(lambda a, b: jnp.sum(a * b, axis=3))(a, b)", "(a * b).sum(3)", _FUSED),
    Row("xtrace.jit(lambda a, b: jnp.sum(a * b, axis=3)).lower(a, b).compile()(a, b)", "(a * b).sum(3)", _FUSED),
    Row("jnp.linalg.vecdot(a, b, axis=3)", "(a * b).sum(3)", _FUSED),
    Row("xtrace.jit(lambda a, b: jnp.mean(a * b, axis=2))(a, b)", "(a * b).mean(2)", _FUSED),
    Row("xtrace.jit(lambda a, b: jnp.sum(a.astype('bfloat16') * b.astype('bfloat16'), 3))(a, b)", "(a * b).sum(3)"),
    Row("xtrace.jit(lambda a, b: lax.reduce(a * b, 0.0, lambda x, y: x + y, (3,)))(a, b)", "(a * b).sum(3)"),
    Row(
        "xtrace.jit(lambda a, b: lax.reduce_window(a * b, 0.0, lax.add, (1, 1, 1, 2, 1, 1, 1), (1,) * 7, 'VALID'))"
        "(a, b)",
        "(a * b).sum(3, keepdims=True)",
    ),
    # XLA moves reshapes away: these have no reduction of more than six axes.
    Row(
        "xtrace.jit(lambda a, b: jnp.sum((a * b).reshape(3, 2, 2, 512), 2))(a, b)",
        "(a * b).sum(3).reshape(3, 2, 512)",
    ),
    Row(
        "xtrace.jit(lambda a, b: jnp.sum(a.reshape(3, 2, 2, 512) * b.reshape(3, 2, 2, 512), 2))(a, b)",
        "(a * b).sum(3).reshape(3, 2, 512)",
    ),
    Row(
        "xtrace.jit(lambda a, b: jnp.sum((a * b[:, :, :, :, :1]).reshape(3, 2, 2, 512), 2))(a, b)",
        "(a * b[:, :, :, :, :1]).sum(3).reshape(3, 2, 512)",
    ),
    Row("xtrace.jit(xtrace.vmap(lambda x, y: jnp.sum(x * y, axis=2)))(a, b)", "(a * b).sum(3)", _FUSED),
    Row(
        "xtrace.jit(xtrace.grad(lambda y: jnp.sum((a * y) ** 2)))(b[:, :, :, :1])",
        "(2 * a * a * b[:, :, :, :1]).sum(3, keepdims=True)",
    ),
    Row(
        "xtrace.jit(lambda a, b: lax.while_loop(lambda c: c[0] < 1, "
        "lambda c: (c[0] + 1, jnp.sum(c[1] * b, 3, keepdims=True) * jnp.ones_like(a)), (0, a))[1])(a, b)",
        "(a * b).sum(3, keepdims=True) * np.ones_like(a)",
    ),
    Row(
        "xtrace.jit(lambda a, b: xtrace.checkpoint(xtrace.jit(lambda a, b: jnp.sum(a * b, axis=3)))(a, b))(a, b)",
        "(a * b).sum(3)",
    ),
    Row(
        "xtrace.jit(lambda a, b: xtrace.pure_callback(lambda x: x, xtrace.ShapeDtypeStruct((3, 1, 2, 8, 8, 8), "
        "'float32'), jnp.sum(a * b, axis=3)))(a, b)",
        "(a * b).sum(3)",
    ),
    Row(
        "xtrace.jit(lambda x, y: jnp.sum(x[..., None, None, None, None, None] * y, axis=2))"
        "(a.ravel()[:240].reshape(10, 4, 6), np.resize(a, (10, 4, 6, 9, 9, 9, 1, 9)))",
        "(a.ravel()[:240].reshape(10, 4, 6)[..., None, None, None, None, None] * "
        "np.resize(a, (10, 4, 6, 9, 9, 9, 1, 9))).sum(2)",
        "jax-ml/jax#39257",
    ),
    # Programs with fewer axes keep the library, and the user's own choice stays.
    Row(
        "'__ynn_fusion' in xtrace.jit(lambda a, b: jnp.sum(a * b, axis=2)).lower(a[:, 0], b[:, 0]).compile().as_text()",
        "True",
    ),
    Row(
        "'__ynn_fusion' in xtrace.jit(lambda a, b: jnp.sum(a * b, axis=3)).lower(a, b).compile().as_text()",
        "not versions.HAS_UNSAFE_YNN_FUSIONS",
    ),
    Row(
        "'__ynn_fusion' in xtrace.jit(lambda a, b: jnp.sum(a * b, axis=3)).lower(a, b)"
        ".compile({'xla_cpu_experimental_ynn_fusion_type': 'LIBRARY_FUSION_TYPE_REDUCE'}).as_text()",
        "True",
    ),
]

_BITS = "np.array([[1, 0, -1, -2], [0, 1, 1, -1]], 'int8')"
_TWO_BITS = f"jnp.asarray({_BITS}).astype('int2')"
TWO_BITS = [
    Row(f"jnp.concatenate([{_TWO_BITS}] * 2)", f"np.concatenate([{_BITS}] * 2)"),
    Row(f"xtrace.jit(lambda x: jnp.concatenate([x, x], axis=1))({_TWO_BITS})", f"np.concatenate([{_BITS}] * 2, 1)"),
    Row(f"jnp.stack([{_TWO_BITS}] * 2)", f"np.stack([{_BITS}] * 2)"),
    Row(f"jnp.sort({_TWO_BITS}, axis=1)", f"np.sort({_BITS}, axis=1)"),
    Row(f"xtrace.jit(lambda x: jnp.sort(x, axis=0))({_TWO_BITS})", f"np.sort({_BITS}, axis=0)"),
    Row(f"jnp.argsort({_TWO_BITS}, axis=1)", f"np.argsort({_BITS}, axis=1, kind='stable')"),
    Row(f"jnp.argmax({_TWO_BITS}, axis=1)", f"np.argmax({_BITS}, axis=1)"),
    Row(f"jnp.unique({_TWO_BITS})", f"np.unique({_BITS})"),
    Row(f"jnp.sort(jnp.asarray({_BITS} + 2).astype('uint2'), axis=1)", f"np.sort({_BITS} + 2, axis=1)"),
]

# XLA joins negative padding to windows: the programs read memory that is not theirs, or end the process.
_CROPPED = "openxla/xla#48713, #48715"
_IMAGE = "np.arange(6 * 15 * 17, dtype='float32').reshape(1, 15, 6, 17)"
_CONVOLVED = (
    "xtrace.jit(lambda x, k: lax.conv_general_dilated(x, k, (1, 1), {padding}, "
    "dimension_numbers=('NHWC', 'HWIO', 'NHWC')))"
    f"({_IMAGE}, np.eye(17, dtype='float32')[None, None])"
)
NEGATIVE_PADDING = [
    Row(_CONVOLVED.format(padding="[(-15, 1), (0, 0)]"), "np.zeros((1, 1, 6, 17))", _CROPPED),
    Row(_CONVOLVED.format(padding="[(1, -16), (-3, 4)]"), "np.zeros((1, 0, 7, 17))", _CROPPED),
    Row(_CONVOLVED.format(padding="[(-17, 3), (0, -5)]"), "np.zeros((1, 1, 1, 17))", _CROPPED),
    Row(
        _CONVOLVED.format(padding="[(-2, 1), (-1, 0)]"),
        f"np.pad({_IMAGE}[:, 2:, 1:], ((0, 0), (0, 1), (0, 0), (0, 0)))",
        _CROPPED,
    ),
    Row(
        "xtrace.jit(lambda x: lax.conv_general_dilated(x, np.ones((1, 1, 1), 'float32'), (1,), [(-3, -1)], (2,)))"
        "(np.arange(1, 6, dtype='float32')[None, None])",
        "np.array([[[0, 3, 0, 4, 0]]])",
    ),
    Row(
        "lax.conv_general_dilated(np.ones((1, 2, 3, 4)), np.ones((1, 2, 1, 1)), (1, 1), [(-5, 0), (-16, -2)])",
        "np.zeros((1, 1, 0, 0))",
        "jax-ml/jax#11517",
    ),
    Row(
        "xtrace.jit(lambda x: lax.reduce_window(lax.pad(x, np.int32(0), [(0, 0, 1), (-1, 0, 0)]), np.int32(0), "
        "lax.add, (1, 2), (1, 1), ((0, 0), (1, 0))))(np.array([[669, -763]], 'int32'))",
        "np.array([[-763]])",
        "openxla/xla#48715",
    ),
    Row(
        "xtrace.jit(lambda x: lax.reduce_window(x, 0.0, lax.add, (1, 1), (1, 1), ((-1, 0), (0, 0))))"
        "(np.arange(32, dtype='float32').reshape(8, 4))",
        "np.arange(32).reshape(8, 4)[1:]",
        "openxla/xla#48719",
    ),
    Row("lax.pad(jnp.arange(3.0), 5.0, [(-(2**62), 2**62, 0)])", "np.full(3, 5)"),
    Row("lax.pad(jnp.arange(3.0), 5.0, [(2**61, -(2**61), 0)])", "np.full(3, 5)"),
    Row("lax.pad(jnp.arange(3.0), 5.0, [(-(2**61), 1, 2**60)])", "np.array([5, 5, 2, 5])"),
    Row("lax.pad(jnp.arange(4.0), 5.0, [(-2, -4, 2)])", "np.array([5, 1, 5, 5])"),
    Row("lax.pad(jnp.arange(4.0), 5.0, [(-3, -1, 2)])", "np.array([1, 5, 5, 2, 5, 5])"),
    Row("xtrace.grad(lambda x: lax.pad(x, 5.0, [(-3, -1, 2)]).sum())(jnp.arange(4.0))", "np.array([0, 1, 1, 0])"),
    Row("lax.pad(jnp.ones(3), 0.0, [(2**61, 0, 0)])", "ValueError: pad: an array of type "),
]

# XLA ends the process for functions of elements that need these operations.
_NESTED = "openxla/xla#47366, #47370, #47373, #47374"
_REDUCED = "xtrace.jit(lambda x: lax.reduce(x, np.float32(0), lambda a, b: {}, (0,)))(np.ones((4, 5), 'float32'))"
_REFUSED = "NotImplementedError: reduce: the function it applies to elements needs "
FUNCTIONS_OF_ELEMENTS = [
    *[
        Row(_REDUCED.format(function), _REFUSED + operation, _NESTED)
        for function, operation in {
            "jnp.sort(jnp.stack([a, b]))[1]": "stablehlo.sort",
            "lax.while_loop(lambda c: c < a + b, lambda c: c + 1, a * 0)": "stablehlo.while",
            "lax.scan(lambda c, x: (c + x, x), a * 0, jnp.stack([a, b]))[0]": "stablehlo.while",
            "xtrace.jit(lambda a, b: lax.fori_loop(0, 3, lambda i, c: c + b, a))(a, b)": "stablehlo.while",
            "lax.igamma(a + 1, b + 1)": "stablehlo.while",
            "jnp.stack([a, b]).at[(a > 0).astype(int)].add(b).sum()": "stablehlo.scatter",
            "lax.dynamic_update_slice(jnp.stack([a, b]), a[None], ((a > 0).astype(int),)).sum()":
                "stablehlo.dynamic_update_slice",
            "jnp.linalg.cholesky(a * jnp.ones((2, 2)) + jnp.eye(2)).sum()": "stablehlo.custom_call",
            "jnp.fft.fft(jnp.stack([a, b])).real[0]": "stablehlo.fft",
            "(jnp.stack([a, b])[:, None] @ jnp.stack([a, b])[None])[0, 1]": "stablehlo.dot_general",
            "lax.switch((a > b).astype(int), [lambda: a, lambda: b, lambda: a + b])": "a choice between more than two",
        }.items()
    ],
    Row(
        "lax.reduce_window(jnp.ones(4), 0.0, lambda a, b: jnp.sort(jnp.stack([a, b]))[1], (2,), (1,), 'VALID')",
        "NotImplementedError: reduce_window: the function it applies to elements needs stablehlo.sort",
        _NESTED,
    ),
    Row(
        "jnp.ones(5).at[jnp.array([1])].apply(lambda a: lax.fori_loop(0, 3, lambda i, c: c + 1.0, a))",
        "NotImplementedError: scatter_apply: the function it applies to elements needs stablehlo.while",
        _NESTED,
    ),
    Row(_REDUCED.format("lax.cond(a > b, lambda: a, lambda: b)"), "np.ones(5)"),
    Row(_REDUCED.format("jnp.sum(jnp.stack([a, b]))"), "np.full(5, 4)"),
    Row(_REDUCED.format("jnp.dot(jnp.stack([a, b]), jnp.stack([b, a])) - 2 * a * b + a"), "np.zeros(5)"),
]

_NESTED_TREE = "RecursionError: the pytree is nested too deeply, or contains itself"
_CYCLE = "(lambda x: x.append(x) or x)([1.0])"
_LISTS = "__import__('functools').reduce(lambda x, _: [x], range(100_000), 1.0)"
_ADDED = "__import__('functools').reduce(lambda f, _: xtrace.jit(lambda x, f=f: f(x) + 1), range({}), lambda x: x)"
_CALLED = "xtrace.jit(lambda x: xtrace.pure_callback({}, x, x))(jnp.ones(3))"
_FAILED = "JaxRuntimeError: INTERNAL: the callback <lambda> of pure_callback, called at"
MISUSE = [
    Row(f"xtrace.tree.leaves({_CYCLE})", _NESTED_TREE),
    Row(f"xtrace.jit(lambda x: 1.0)({_CYCLE})", _NESTED_TREE),
    Row(f"xtrace.jit(lambda y: {_CYCLE})(1.0)", _NESTED_TREE),
    Row(f"xtrace.vmap(lambda x: x)({_CYCLE})", _NESTED_TREE),
    Row(f"xtrace.device_put({_CYCLE})", _NESTED_TREE),
    Row(f"jnp.array({_CYCLE})", "RecursionError: "),
    Row(f"jnp.stack({_LISTS})", "RecursionError: "),
    Row(f"xtrace.tree.structure({_LISTS})", _NESTED_TREE),
    Row(f"{_ADDED.format(50)}(1.0)", "51.0"),
    Row(f"{_ADDED.format(10_000)}(1.0)", "RecursionError: "),
    Row(_CALLED.format("lambda y: 1 / 0"), _FAILED),
    Row(_CALLED.format("lambda y: y[:2]"), _FAILED),
    Row(_CALLED.format("lambda y: 'text'"), _FAILED),
    Row(_CALLED.format("lambda y: jnp.sin(y)"), "np.sin(np.ones(3))", "jax-ml/jax#24255"),
    Row(
        "(lambda x: xtrace.jit(lambda a, b: (a + 1, b + 1), donate_argnums=(0, 1))(x, x))(jnp.ones(3))",
        "JaxRuntimeError: jit: the same array is passed to <lambda> as a and b, and donated",
    ),
    Row("jnp.zeros((2**40,))", "JaxRuntimeError: RESOURCE_EXHAUSTED"),
    Row("np.asarray(xtrace.random.permutation(xtrace.random.key(0), 2**40))", "JaxRuntimeError: RESOURCE_EXHAUSTED"),
    Row("jnp.zeros((2**62,))", "ValueError: "),
    Row("lax.while_loop(lambda c: False, lambda c: (), ())", "()"),
    Row("lax.fft(jnp.ones((2, 0), 'complex64'), 'FFT', (0,))", "np.zeros((2, 0))"),
    Row("jnp.linalg.eigvals(jnp.full((3, 3), np.nan))", "np.full(3, np.nan)"),
]

# XLA's passes descend as far as programs are long: ends of the process, or minutes. A program has a roll an axis.
_SHIFTS = "np.arange(2900, dtype='int32')"
_ROLLED = f"np.roll({_SHIFTS}, {_SHIFTS})"
LONG_CHAINS = [
    Row(f"xtrace.jit(jnp.roll).lower({_SHIFTS}, {_SHIFTS}).compile()({_SHIFTS}, {_SHIFTS})", _ROLLED),
    Row(f"jnp.roll({_SHIFTS}, jnp.asarray({_SHIFTS}))", _ROLLED),
]

TABLES = {
    "long chains": LONG_CHAINS,
    "misuse": MISUSE,
    "fused sums": FUSED_SUMS,
    "two bits": TWO_BITS,
    "negative padding": NEGATIVE_PADDING,
    "functions of elements": FUNCTIONS_OF_ELEMENTS,
}


@pytest.mark.drawn(0.15)
@pytest.mark.parametrize("table", TABLES)
def test_programs_do_what_is_stated_in_their_rows(table):
    found = outcomes(TABLES[table])
    said = {row.program: found.get(row.program, "not reached") for row in TABLES[table]}
    assert {program: text for program, text in said.items() if text != "as stated"} == {}


_FORK = """
import os, xtrace.numpy as jnp
jnp.ones(3)
child = os.fork()
if not child:
    os._exit(0)
os.waitpid(child, 0)
"""


def test_forks_are_warned_of():
    done = subprocess.run([sys.executable, "-W", "always", "-c", _FORK], capture_output=True, text=True, check=True)
    assert "RuntimeWarning: os.fork() in a process with XLA's threads" in done.stderr
    assert "child = os.fork()" in done.stderr or "<string>:4" in done.stderr


_INTERRUPTED = """
import faulthandler, os, signal, threading, time
import xtrace, xtrace.numpy as jnp

def sorted_often(x):
    for k in range(200):
        x = jnp.sort(x) * k
    return x

faulthandler.enable()
lowered = xtrace.jit(sorted_often).lower(jnp.ones(50))
interrupt = threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT))
try:
    interrupt.start()
    lowered.compile()
    print("compiled")
except KeyboardInterrupt:
    print("interrupted", [t.name for t in threading.enumerate() if t.name == "xtrace compilation"])
while len(threading.enumerate()) > 1:
    time.sleep(0.01)
print(jnp.arange(3) + 1)
"""


def test_ctrl_c_while_xla_compiles_leaves_the_compiler_its_module():
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == "interrupted ['xtrace compilation']\n[1 2 3]\n"


_INTERRUPTED_TWICE = """
import faulthandler, os, signal, threading
import xtrace, xtrace.numpy as jnp

def sorted_often(x):
    for k in range(400):
        x = jnp.sort(x) * k
    return x

faulthandler.enable()
lowered = xtrace.jit(sorted_often).lower(jnp.ones(50))
try:
    threading.Timer(0.1, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
    lowered.compile()
except KeyboardInterrupt:
    print("interrupted")
process = os.getpid()
again = threading.Timer(0.3, lambda: os.kill(process, signal.SIGINT))
again.daemon = True
again.start()
"""


def test_a_second_ctrl_c_ends_the_process_at_once_and_without_a_crash():
    done = subprocess.run([sys.executable, "-c", _INTERRUPTED_TWICE], capture_output=True, text=True, timeout=120)
    assert (done.returncode, done.stdout, done.stderr) == (-signal.SIGINT, "interrupted\n", "")
