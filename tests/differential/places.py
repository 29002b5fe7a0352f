"""Where results are, compared with jax, in a process with four CPU devices: ``python -m tests.differential.places``.

Prints a line for each call whose results are on other devices than jax's, or committed where jax's are not. There are
two kinds: `cases`, which are written here, and the drawn calls of public functions with operands placed by `PLACINGS`.
"""

from __future__ import annotations

import copy
import os
import pickle
import sys
import warnings
import zlib
from collections.abc import Callable, Sequence
from typing import Any

os.environ["XTRACE_NUM_CPU_DEVICES"] = os.environ["JAX_NUM_CPU_DEVICES"] = "4"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import jax.experimental
import jax.flatten_util
import jax.numpy
import numpy as np

import xtrace
import xtrace.experimental
import xtrace.flatten_util
from tests.differential.test_draws import COSTLY, ROWS
from tests.support.draws import Call, drawn_calls

# How operands are placed, by their number: on a device (None: NumPy's arrays), and whether committed to it.
PLACINGS: dict[str, Callable[[int], tuple[int | None, bool]]] = {
    "all on 1": lambda i: (1, True),
    "the first on 1": lambda i: (1, True) if i == 0 else (0, False),
    "the last on 2": lambda i: (0, False) if i == 0 else (2, True),
    "on 3 by default": lambda i: (3, False),
    "all on 0": lambda i: (0, True),
    "on 1 and 2": lambda i: (1 + i % 2, True),
    "one on 1, others NumPy's": lambda i: (1, True) if i == 0 else (None, False),
    "NumPy's": lambda i: (None, False),
}
# Where results of drawn calls are elsewhere than jax's.
ELSEWHERE = {
    "numpy.choose": "the indices into a single choice are not read",
    "numpy.histogram": "counts and edges are one program",
    "numpy.extract": "no element of the array is read where none is asked for",
    **dict.fromkeys((f"scipy.signal.{n}" for n in ("welch", "csd", "istft")), "times and frequencies are one program"),
}
# The same for cases.
OTHER_CASES = {
    "unread by an inner function": "an inner jit is not looked into for what it reads",
    "gradient of a linear function": "the cotangent is made of numbers; in jax one of them was moved",
    "deepcopy of what is on 3": "jax moves the copy",
    "array on 2 of one on 1": "jax refuses to move it",
    "asarray on 3 of what is there": "jax does not commit it",
    "broadcast_arrays": "an array that has the shape is returned as it is",
}


def cases(lib: Any) -> dict[str, Callable[[], Any]]:
    """Return calls by name, with arrays of a package: a on 1, b on 2, u on 3 uncommitted, z on 0 uncommitted."""
    jnp, random, lax = lib.numpy, lib.random, lib.lax
    devices = lib.devices()
    host = np.ones(3, np.float32)
    a, b = (lib.device_put(host, devices[i]) for i in (1, 2))
    with lib.default_device(devices[3]):
        u = jnp.asarray(host)
    with lib.default_device(devices[0]):
        z = jnp.asarray(host)
    big, small = lib.device_put(np.ones(1000, np.float32), devices[1]), lib.device_put(np.float32(2), devices[1])
    key, raw = (lib.device_put(make(0), devices[1]) for make in (random.key, random.PRNGKey))
    matrix = lib.device_put(np.eye(2, dtype=np.float32), devices[1])
    jit = lib.jit

    def put(x: Any) -> Any:
        return lib.device_put(x, devices[2])

    def custom_vjp(backward: Callable[..., Any]) -> Any:
        f = lib.custom_vjp(lambda x: x * 2)
        f.defvjp(lambda x: (x * 2, x), backward)
        return lib.grad(lambda x: f(x).sum())(a)

    def custom_jvp() -> Any:
        f = lib.custom_jvp(lambda x: x * 2)
        f.defjvp(lambda p, t: (f(*p), t[0]))
        return lib.grad(lambda x: f(x).sum())(a)

    def raveled() -> Any:
        flat, back = lib.flatten_util.ravel_pytree({"a": a, "z": z})
        return flat, back(flat)

    found: dict[str, Callable[[], Any]] = {
        # Creation
        "zeros_like": lambda: [
            getattr(jnp, f"{n}_like")(x) for n in ("zeros", "ones", "empty") for x in (a, u, z, host)
        ],
        "zeros_like on 3": lambda: jnp.zeros_like(a, device=devices[3]),
        "zeros_like of another type": lambda: jnp.zeros_like(a, dtype="int32", shape=(2,)),
        "full_like": lambda: [jnp.full_like(x, y) for x in (a, u, z) for y in (1.0, small, b[0])],
        "zeros_like of a description": lambda: [
            jnp.zeros_like(lib.ShapeDtypeStruct((3,), np.float32, sharding=s)) for s in (b.sharding, None)
        ],
        "lax.full_like": lambda: [lax.full_like(x, 1.0) for x in (a, u)],
        "zeros_like under jit": lambda: [jit(jnp.zeros_like)(a), lib.vmap(jnp.zeros_like)(a)],
        "created on 2": lambda: [
            jnp.zeros(3, device=devices[2]), jnp.ones(3, device=b.sharding), jnp.full((3,), small, device=devices[2]),
            jnp.eye(3, device=devices[2]), jnp.arange(3, device=devices[2]), jnp.linspace(0, 1, 3, device=devices[2]),
            jnp.array([1.0, 2.0], device=devices[2]), jnp.asarray(host, device=devices[2]),
            jnp.empty(3, device=devices[2]),
        ],
        "created": lambda: [
            jnp.zeros(3), jnp.eye(3), jnp.arange(3), jnp.linspace(0, 1, 3), jnp.tri(3), jnp.array([1.0]), random.key(0),
        ],
        "created of a scalar on 1": lambda: [
            jnp.linspace(small, 2.0, 3), jnp.logspace(0, small, 3), jnp.geomspace(1.0, small, 3), jnp.full((3,), small),
        ],
        "arange of a scalar on 1": lambda: jnp.arange(small),
        "array of a list": lambda: [jnp.array(x) for x in ([a, a], [a, z], [small, 1.0])],
        "array of a list on 1 and 2": lambda: jnp.array([a, b]),
        "array on 2 of one on 1": lambda: jnp.array(a, device=devices[2]),
        "asarray on 3 of what is there": lambda: jnp.asarray(u, device=devices[3]),
        "from_dlpack": lambda: [jnp.from_dlpack(host), jnp.from_dlpack(z)],
        # Copies and moves
        "copies": lambda: [a.copy(), u.copy(), copy.copy(a), copy.deepcopy(a), jnp.copy(a), jnp.array(a), jnp.array(u)],
        "deepcopy of what is on 3": lambda: copy.deepcopy(u),
        "pickle": lambda: [pickle.loads(pickle.dumps(x)) for x in (a, u)],
        "asarray": lambda: [jnp.asarray(a), jnp.asarray(u), jnp.asarray(a, "int32")],
        "conversions": lambda: [a.astype("int32"), a.astype("float32"), u.astype("int32"), a.view("int32")],
        "shapes": lambda: [
            a.reshape(3), u.reshape(3), a.reshape(3, 1), a.flatten(), a.T, jnp.squeeze(a), jnp.tile(a, 1),
        ],
        "to_device": lambda: [a.to_device(devices[2]), u.to_device(devices[3])],
        "device_put": lambda: [
            lib.device_put(a), lib.device_put(u), lib.device_put(u, None), lib.device_put(u, devices[3]),
            lib.device_put(a, b.sharding), lib.device_put(host), lib.device_put(u, may_alias=False),
        ],
        "device_put of trees": lambda: [
            put({"a": a, "b": [u, host, 1.0]}), lib.device_put([a, u], [None, devices[0]]),
            lib.device_put(lib.device_get(a)),
        ],
        # Operations
        "operators": lambda: [
            a + 1, u + 1, u + z, a + host, host + a, a @ z, -a, a < z, a**2, a // 2, abs(u), round(a),
        ],
        "operators on 1 and 2": lambda: a + b,
        "indices": lambda: [
            a[1], a[np.array([1])], a[1:], *a, a[:], a[np.array([True, False, True])], a[None], a[3:], u[1], *u,
            z[lib.device_put(np.array([1]), devices[1])],
        ],
        "indices on 2": lambda: a[lib.device_put(np.array([1]), devices[2])],
        "updates": lambda: [a.at[0].set(1.0), z.at[0].set(small), a.at[z.astype(int)].add(2.0)],
        "updates on 2": lambda: a.at[0].set(b[0]),
        "reductions": lambda: [a.sum(), u.mean(), a.argmax(), jnp.sort(a), a.real, a.conj()],
        "parts": lambda: [a.imag, jnp.iscomplex(a), jnp.isreal(a)],
        "several operands": lambda: [
            jnp.stack([a, z]), jnp.concatenate([a, u]), jnp.where(a > 0, z, u), jnp.block([a, z]), jnp.meshgrid(a, z),
            jnp.atleast_1d(a, z), jnp.searchsorted(z, a), jnp.interp(a, z, z), jnp.einsum("i,i->", a, z),
        ],
        "several operands on 1 and 2": lambda: jnp.stack([a, b]),
        "broadcast_arrays": lambda: jnp.broadcast_arrays(a, z),
        "sizes by values": lambda: [
            jnp.unique(a), jnp.nonzero(a), jnp.unique(a, return_inverse=True, return_counts=True), jnp.flatnonzero(u),
            jnp.union1d(a, z), jnp.setdiff1d(a, z), jnp.argwhere(a), jnp.histogram(a), jnp.delete(a, 0), a[a > 0],
        ],
        "linear algebra": lambda: [
            jnp.linalg.cholesky(matrix), *jnp.linalg.eigh(matrix), jnp.linalg.solve(matrix, jnp.ones(2)),
            *jnp.linalg.svd(matrix), jnp.linalg.det(matrix), jnp.fft.fft(a),
        ],
        "eig": lambda: [*jnp.linalg.eig(matrix)],
        "linear algebra on 1 and 2": lambda: jnp.linalg.solve(matrix, put(np.ones(2, np.float32))),
        "networks": lambda: [
            lib.nn.softmax(a), lib.nn.relu(a), lib.nn.one_hot(small.astype(int), 3), lib.nn.logsumexp(u),
        ],
        "lax": lambda: [
            lax.add(a, z), lax.convert_element_type(a, "int32"), lax.convert_element_type(u, "float32"),
            lax.top_k(a, 2),
            lax.reshape(a, (3,)), lax.pad(z, small, ((1, 1, 0),)), lax.sort((a, z), num_keys=1), lax.stop_gradient(a),
            lax.dynamic_slice(z, (lib.device_put(0, devices[1]),), (2,)), lax.concatenate([a], 0), lax.iota("int32", 3),
        ],
        "keys": lambda: [
            random.key(lib.device_put(1, devices[1])), random.split(key), *random.split(key), random.clone(key),
            random.fold_in(random.key(0), lib.device_put(1, devices[1])), random.key_data(key),
            random.wrap_key_data(raw), random.fold_in(key, 1),
        ],
        "draws": lambda: [
            random.uniform(key), random.normal(raw, (2,)), random.gamma(random.key(0), small),
            random.categorical(key, z),
            random.permutation(key, z),
        ],
        "draws on 1 and 2": lambda: random.choice(key, b),
        # jit
        "jit": lambda: [jit(lambda x: (x + 1, 3.0, np.ones(2)))(x) for x in (a, u, z, host, 1.0)],
        "unread arguments": lambda: [jit(lambda x, y: y + 1)(a, x) for x in (a, b, z)],
        "unread trees": lambda: jit(lambda p, q: q + 1)({"w": [a]}, b),
        "returned arguments": lambda: [
            jit(lambda x, y: x)(a, b), jit(lambda x: x)(u), jit(lambda x, y: (x, y + 1))(a, z),
        ],
        "returned arguments on 1 and 2": lambda: jit(lambda x, y: (x, y))(a, b),
        "nothing read": lambda: [jit(lambda x: jnp.zeros(3))(a), jit(lambda x: (jnp.sin(x), jnp.zeros(3))[1])(a)],
        "nothing read and kept": lambda: jit(lambda x: jnp.zeros(3), keep_unused=True)(a),
        "unread by an inner function": lambda: jit(lambda x: jit(lambda x: jnp.zeros(3))(x))(a),
        "closed over": lambda: [jit(lambda x, c=c: x + c)(x) for x in (1.0, b) for c in (big[:3], small, u)],
        "only closed over": lambda: [jit(lambda: big)(), jit(lambda: big + 1)(), jit(lambda: u + 1)()],
        "jit on 2": lambda: [
            jit(lambda x: x + 1, device=devices[2])(x) for x in (a, z)
        ] + [jit(lambda x: x + 1, out_shardings=b.sharding)(z), jit(lambda x: x + 1, in_shardings=b.sharding)(z)],
        "jit on a platform": lambda: [jit(lambda x: x + 1, backend="cpu")(x) for x in (a, z)],
        "compiled": lambda: [jit(lambda x: x + 1).lower(x).compile()(y) for x, y in ((a, a), (a, z), (z, z))],
        "compiled for 0, called with 1": lambda: jit(lambda x: x + 1).lower(z).compile()(a),
        "donated": lambda: jit(lambda x: x + 1, donate_argnums=0)(lib.device_put(host, devices[1])),
        # Control flow
        "scan": lambda: [
            lax.scan(lambda c, x: (c + x, x), 0.0, a), lax.scan(lambda c, x: (c + x, x), small, z),
            lax.scan(lambda c, _: (c + 1, c), small, None, length=3), lax.scan(lambda c, x: (c + big[0], x), 0.0, a),
        ],
        "scan on 1 and 2": lambda: lax.scan(lambda c, x: (c + x, x), small, b),
        "scan closes over a scalar": lambda: lax.scan(lambda c, x: (c + small, x), 0.0, z),
        "scan closes over": lambda: lax.scan(lambda c, x: (c + big.sum(), x), 0.0, z)[0],
        "loops": lambda: [
            lax.while_loop(lambda c: c[0].sum() < 9, lambda c: (c[0] + 1, c[1]), (a, z)),
            lax.fori_loop(0, 3, lambda i, c: c + i, a), lax.map(lambda x: x * 2, a), lax.associative_scan(jnp.add, a),
        ],
        "cond": lambda: [
            lax.cond(True, lambda x: x + 1, lambda x: x, a), lax.cond(small > 1, lambda x: x + 1, lambda x: x, z),
            lax.cond(True, lambda: a + 1, lambda: a), lax.switch(1, [lambda x: x, lambda x: x * 2], a),
        ],
        "cond of the identity on 3": lambda: lax.cond(True, lambda x: x, lambda x: x, u),
        # Transformations
        "gradients": lambda: [
            lib.grad(lambda x: (x * x).sum())(a), lib.grad(lambda x, y: (x * y).sum(), (0, 1))(a, z),
            lib.grad(lambda x: 1.0)(a), lib.grad(lambda x, y: (y * y).sum(), (0, 1))(a, z),
            lib.grad(lambda x: x.sum())(a),
            lib.value_and_grad(lambda x: (x * x).sum())(a), jit(lib.grad(lambda x: (x * x).sum()))(a),
            lib.grad(lambda x: x[0])(a), lib.grad(lambda x: lib.checkpoint(jnp.sin)(x).sum())(a),
        ],
        "gradient of a linear function": lambda: lib.grad(lambda x: (3 * x).sum())(a),
        "pullbacks": lambda: [
            lib.vjp(jnp.sin, a)[1](z), lib.vjp(jnp.sin, z)[1](b), lib.linear_transpose(lambda x: 2 * x, a)(z),
            lib.linearize(jnp.sin, a)[1](z),
        ],
        "pullbacks on 1 and 2": lambda: lib.vjp(jnp.sin, a)[1](b),
        "tangents": lambda: [lib.jvp(jnp.sin, (a,), (z,)), lib.jacfwd(jnp.sin)(a), lib.jacrev(jnp.sin)(a)],
        "tangent on 2": lambda: lib.jvp(jnp.sin, (z,), (b,)),
        "hessian": lambda: lib.hessian(lambda x: (x**3).sum())(a),
        "gradients of device_put": lambda: [
            [lib.grad(lambda x: (put(x) ** 2).sum())(x) for x in (a, z, u)],
            lib.grad(lambda x, y: (put(x) * y).sum(), (0, 1))(a, b), lib.grad(lambda x: put(x).sum())(a),
            lib.vjp(put, a)[1](b), lib.vjp(put, a)[1](z), lib.vjp(lib.device_put, a)[1](b),
        ],
        "other derivatives of device_put": lambda: [
            lib.jvp(put, (a,), (a,)), lib.linearize(put, a)[1](a), lib.hessian(lambda x: (put(x) ** 3).sum())(a),
            jit(lib.grad(lambda x: (put(x) ** 2).sum()))(a), lib.vmap(put)(a), jit(put)(a),
        ],
        "vmap": lambda: [
            lib.vmap(lambda x: x + 1)(a), lib.vmap(lambda x: 1.0)(a), lib.vmap(lambda x, y: y, (0, None))(a, z),
            lib.vmap(lambda x: x)(u), jnp.vectorize(lambda x: x + 1)(a),
        ],
        "custom rules": lambda: [custom_jvp(), custom_vjp(lambda r, g: (g * r,)), custom_vjp(lambda r, g: (None,))],
        "checkpoint": lambda: lib.checkpoint(jnp.sin)(a),
        "callbacks": lambda: [
            lib.pure_callback(lambda x: x, z, a), jit(lambda x: lib.pure_callback(lambda x: x, z, x))(a),
            lib.experimental.io_callback(lambda x: x, z, a), lib.pure_callback(lambda x: x, z, u),
        ],
        "ravel_pytree": raveled,
    }
    return found


def placed(package: Any, value: Any, device: int | None, committed: bool) -> Any:
    """Return the value as an array of the package on a device."""
    if device is None:
        return value
    if committed:
        return package.device_put(value, package.devices()[device])
    with package.default_device(package.devices()[device]):
        return package.numpy.asarray(value)


def outcome(function: Callable[[], Any], package: Any) -> Any:
    """Return where the arrays of the result are, and whether committed; or the class of the error."""
    try:
        leaves = package.tree.leaves(function())
    except Exception as error:
        return ValueError if isinstance(error, ValueError) and "ncompatible devices" in str(error) else Exception
    return [
        (sorted(d.id for d in x.devices()), x.committed) if isinstance(x, package.Array) else "no array" for x in leaves
    ]


def compare_case(name: str, default: int | None) -> str | None:
    """Return what is different about a case, under a default device or without; None if nothing is."""
    found = []
    for package in (xtrace, jax):
        function = cases(package)[name]
        with package.default_device(None if default is None else package.devices()[default]):
            found.append(outcome(function, package))
    if (found[0] == found[1]) is (name not in OTHER_CASES):
        return None
    return f"{name}, default {default}:\n    {found[0]}\n    jax {found[1]}"


def compare_call(call: Call, placing: str) -> str | None:
    """Return what is different about a drawn call; None if nothing is."""
    if not all(x.value.size for x in call.operands()):
        # Arrays without elements are read by some programs of jax and not by others.
        return None
    found = []
    for package in (xtrace, jax):
        operands = [placed(package, x.value, *PLACINGS[placing](i)) for i, x in enumerate(call.operands())]
        where = outcome(lambda p=package, o=operands: call.evaluate(p, o), package)  # type: ignore[misc]
        # An operand that is returned as it is stays uncommitted where it was; which are returned so is no contract.
        found.append([([0], False) if x == ([3], False) else x for x in where] if isinstance(where, list) else where)
    if call.mode == "vjp" and all(isinstance(where, list) for where in found):
        # Of linear functions the cotangents are where the given ones are; jax moves some of them.
        found[0] = [y if x == ([0], False) else x for x, y in zip(*found, strict=True)]
    if found[0] == found[1] or found[1] is Exception:
        return None
    return f"{placing}: {call}\n    {found[0]}\n    jax {found[1]}"


def main(number: int, parts: int, names: Sequence[str]) -> None:
    """Compare the part of that number, of so many, of the cases and calls, or those with the given names."""

    def draws(name: str) -> bool:
        return name in names if names else (zlib.crc32(name.encode()) + number) % parts == 0

    rows = ROWS | COSTLY
    choices = list(PLACINGS)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        lines = [compare_case(name, device) for name in cases(xtrace) if draws(name) for device in (None, 2)]
        for name in filter(draws, rows):
            # Of no indices, reduceat reads nothing.
            if name not in ELSEWHERE and not name.endswith(".reduceat"):
                (call,) = drawn_calls(name, rows[name], 0, 1)
                placing = choices[zlib.crc32(name.encode()) % len(choices)]
                lines.append(compare_call(call, placing))
    print("\n".join(filter(None, lines)), end="")


if __name__ == "__main__":
    main(int(sys.argv[1]), int(sys.argv[2]), sys.argv[3:])
