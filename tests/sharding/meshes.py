"""Meshes and specifications over the eight CPU devices of a test process, of xtrace and of jax."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import jax
import jax.experimental.layout
import numpy as np

import xtrace

SHAPES = {"x8": ((8,), ("x",)), "x4y2": ((4, 2), ("x", "y")), "x2y2z2": ((2, 2, 2), ("x", "y", "z"))}


def library(module: Any) -> SimpleNamespace:
    """The parts of xtrace or jax that tests on meshes use."""
    sharding = module.sharding
    devices = np.array(module.devices())

    def mesh(name: str, kind: str = "Auto", reverse: bool = False) -> Any:
        sizes, names = SHAPES[name]
        types = (getattr(sharding.AxisType, kind),) * len(names)
        order = devices[::-1] if reverse else devices
        return sharding.Mesh(order.reshape(sizes), names, axis_types=types)

    def named(name: str, *entries: Any, **options: Any) -> Any:
        return sharding.NamedSharding(mesh(name, **options), sharding.PartitionSpec(*entries))

    return SimpleNamespace(
        module=module, np=module.numpy, lax=module.lax, jit=module.jit, put=module.device_put, mesh=mesh, named=named,
        P=sharding.PartitionSpec, sharding=sharding, devices=devices,
    )


OURS, THEIRS = library(xtrace), library(jax)


def describe(sharding: Any) -> str:
    """The text of a sharding, equal for equal ones of either library."""
    return repr(sharding)
