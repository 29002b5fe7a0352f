"""Programs that end or hang the process in XLA when they are compiled as they stand, or that come near to it.

Rows run in child processes, several in each, with the code generation that users get. Each states its outcome: the
value of an expression of NumPy, or the error. Issues are those in which the program, or one like it, was reported.
"""

import json
import os
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
from xtrace.xla import versions

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

_TOO_LARGE = "ValueError: pad: an array of type "
EXTREME_SIZES = [
    Row("lax.pad(jnp.ones(3), 0.0, [(-(2**62), 2**62, 0)])", _TOO_LARGE),
    Row("lax.pad(jnp.ones(3), 0.0, [(2**61, -(2**61), 0)])", _TOO_LARGE),
    Row("lax.pad(jnp.ones(3), 0.0, [(-(2**61), 1, 2**60)])", _TOO_LARGE),
    Row("lax.pad(jnp.ones(3), 0.0, [(-(2**40), 2**40, 0)])", "np.zeros(3)"),
    Row("lax.pad(jnp.ones(3), 0.0, [(2**40, -(2**40), 0)])", "np.zeros(3)"),
]

TABLES = {"fused sums": FUSED_SUMS, "two bits": TWO_BITS, "extreme sizes": EXTREME_SIZES}


@pytest.mark.parametrize("table", TABLES)
def test_programs_do_what_is_stated_in_their_rows(table):
    found = outcomes(TABLES[table])
    said = {row.program: found.get(row.program, "not reached") for row in TABLES[table]}
    assert {program: text for program, text in said.items() if text != "as stated"} == {}
