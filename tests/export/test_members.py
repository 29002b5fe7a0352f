"""The members of `Exported` are those of jax's, for programs with unused arguments, shardings, platforms and sizes."""

from __future__ import annotations

import functools
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import xtrace
from tests.support.reference import jax

X, V, N = np.ones((8, 4), np.float32), np.ones(4, np.float32), np.arange(4)


def _split(P: Any, *spec: Any) -> Any:
    return P.NamedSharding(P.make_mesh((4,), ("x",), axis_types=(P.sharding.AxisType.Auto,)), P.P(*spec))


def _type(P: Any, sizes: str, *constraints: str) -> Any:
    return P.ShapeDtypeStruct(P.export.symbolic_shape(sizes, constraints=constraints), "float32")


def _export(P: Any, f: Callable[..., Any], *args: Any, options: Any = None, **settings: Any) -> Any:
    return P.export.export(P.jit(f, **(options or {})), **settings)(*args)


def _read(P: Any, exported: Any, order: int = 0) -> Any:
    return P.export.deserialize(exported.serialize(vjp_order=order))


# Derivatives of split functions are left out: jax forgets how the arguments are split.
PROGRAMS: dict[str, Callable[[Any], Any]] = {
    "one argument": lambda P: _export(P, P.numpy.sin, V),
    "unused arguments": lambda P: _export(P, lambda x, y, z: x + z, V, X, V),
    "unused arguments that are kept": lambda P: _export(P, lambda x, y: x, V, X, options={"keep_unused": True}),
    "trees and keywords": lambda P: P.export.export(
        P.jit(lambda a, *, b: {"s": a["x"] + b[0], "t": (b[1], None)}))({"x": V}, b=[V, N]),
    "no arguments": lambda P: _export(P, lambda: P.numpy.arange(3)),
    "no results": lambda P: _export(P, lambda x: None, V),
    "weak types": lambda P: _export(P, lambda x, y: x * y, 2.0, 3),
    "a static argument": lambda P: _export(P, lambda x, n: x * n, V, 3, options={"static_argnums": 1}),
    "a donated argument": lambda P: _export(P, lambda x, y: x * y, V, V, options={"donate_argnums": 0}),
    "a partial": lambda P: _export(P, functools.partial(lambda a, x: a * x, 2), V),
    "a constant": lambda P: _export(P, lambda x: x + P.numpy.asarray(V), V),
    "keys": lambda P: _export(P, P.random.split, P.random.key(0)),
    "bfloat16": lambda P: _export(P, lambda x: x * 2, P.ShapeDtypeStruct((3,), "bfloat16")),
    "linear algebra": lambda P: _export(P, P.numpy.linalg.cholesky, np.eye(3, dtype=np.float32)),
    "a loop": lambda P: _export(P, lambda x: P.lax.scan(lambda c, y: (c + y, c), 0.0, x), V),
    "split arguments": lambda P: _export(P, lambda x: x * 2, X, options={"in_shardings": _split(P, "x")}),
    "split arguments and results": lambda P: _export(
        P, lambda x, y: (x @ x.T, y), X, V,
        options={"in_shardings": (_split(P, "x"), _split(P)), "out_shardings": (_split(P, None, "x"), _split(P))},
    ),
    "a split array": lambda P: _export(P, lambda x: x * 2, P.device_put(X, _split(P, "x"))),
    "a constraint": lambda P: _export(P, lambda x: P.lax.with_sharding_constraint(x * 2, _split(P, "x")), X),
    "an explicit axis": lambda P: _export(
        P, lambda x: x * 2, P.device_put(X, P.NamedSharding(P.make_mesh((4,), ("x",)), P.P("x")))),
    "three platforms": lambda P: _export(P, P.numpy.cumsum, V, platforms=["cpu", "cuda", "tpu"]),
    "another platform": lambda P: _export(P, P.numpy.sin, V, platforms=["cuda"]),
    "operations by platform": lambda P: _export(
        P, lambda x: P.lax.platform_dependent(x, cpu=lambda x: x + 1, default=lambda x: x + 2), V,
        platforms=["tpu", "cpu"]),
    "a symbolic size": lambda P: _export(P, lambda x: P.numpy.concatenate([x, x]), _type(P, "n, 4")),
    "constraints": lambda P: _export(P, lambda x: x.reshape(-1), _type(P, "2*n, m", "n>=2", "m<=7")),
    "a symbolic size on two platforms": lambda P: _export(
        P, lambda x, y: (x.sum(), y), _type(P, "a"), N, platforms=("cpu", "cuda")),
    "disabled checks": lambda P: _export(P, lambda x: x, V, disabled_checks=[
        P.export.DisabledSafetyCheck.platform(), P.export.DisabledSafetyCheck.custom_call("target")]),
    "a derivative": lambda P: _export(P, lambda x: P.numpy.sin(x).sum(), X).vjp(),
    "a second derivative": lambda P: _export(P, lambda x: P.numpy.sin(x).sum(), X).vjp().vjp(),
    "a derivative of integers": lambda P: _export(P, lambda x, n: (x * n).sum(), V, N).vjp(),
    "a derivative with an unused argument": lambda P: _export(P, lambda x, y: {"a": P.numpy.sin(x)}, V, X).vjp(),
    "a derivative of a symbolic size": lambda P: _export(P, P.numpy.sin, _type(P, "n")).vjp(),
    "a file": lambda P: _read(P, _export(P, lambda x, y: x * 2, X, V), order=1),
    "the derivative in a file": lambda P: _read(P, _export(P, lambda x: x * 2, X, platforms=["cpu", "tpu"]), 1).vjp(),
    "a file of a split function": lambda P: _read(P, _export(
        P, lambda x, y: x * 2, X, X, options={"in_shardings": _split(P, "x")})),
    "a file with a symbolic size": lambda P: _read(P, _export(P, lambda x: x * 2, _type(P, "2*n, m", "n>=2"))),
}


def members(P: Any, exported: Any) -> dict[str, Any]:
    """The members as values that can be compared between packages; derivatives have names of their own."""
    text = exported.mlir_module()
    found = {
        "trees": (str(exported.in_tree), str(exported.out_tree)),
        "name": exported.fun_name if not re.search("vjp", exported.fun_name) else "a derivative",
        "avals": [
            [(str(a.shape), str(a.dtype), a.weak_type, a.str_short(False).rpartition("[")[2]) for a in avals]
            for avals in (exported.in_avals, exported.out_avals)
        ],
        "shardings": [
            [s and (s.spec, s.memory_kind, s.mesh.axis_names, s.mesh.axis_sizes) for s in shardings]
            for shardings in (exported._in_named_shardings, exported._out_named_shardings)
        ],
        "checks": list(map(str, exported.disabled_safety_checks)),
        "effects": (list(exported.ordered_effects), list(exported.unordered_effects)),
        "derivative": exported.has_vjp(), "code": type(exported.mlir_module_serialized), "text": type(text),
        "arguments of main": len(re.findall(r"%arg\d+:", text[text.index("@main(") :].partition("\n")[0])),
        "size of the file": len(exported.serialize()) > 100,
        "types": [type(getattr(exported, name)) for name in ("in_avals", "out_avals", "disabled_safety_checks")],
    }
    for name in (
        "nr_devices", "platforms", "calling_convention_version", "module_kept_var_idx", "uses_global_constants",
        "_has_named_shardings",
    ):
        found[name] = getattr(exported, name)
    for name in ("in_shardings_jax", "out_shardings_jax"):
        for axis_type in ("Auto", "Explicit"):
            mesh = P.make_mesh((4,), ("x",), axis_types=(P.sharding.AxisType[axis_type],))
            try:
                found[name, axis_type] = [s and (s.spec, s.memory_kind) for s in getattr(exported, name)(mesh)]
            except ValueError as error:
                found[name, axis_type] = "does not match the mesh used for export" in str(error)
    return found


def _neutral(value: Any) -> Any:
    """Specifications of both packages as tuples."""
    if isinstance(value, (xtrace.P, jax.P)):
        return "P", tuple(value)
    if isinstance(value, (list, tuple)):
        return [_neutral(each) for each in value]
    return value


@pytest.mark.parametrize("name", PROGRAMS)
def test_members_are_those_of_jax(name):
    theirs, ours = [members(P, PROGRAMS[name](P)) for P in (jax, xtrace)]
    assert {key: _neutral(value) for key, value in ours.items()} == {
        key: _neutral(value) for key, value in theirs.items()
    }
