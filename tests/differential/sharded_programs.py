"""Random programs on meshes: the programs of `programs`, with a mesh and with places drawn for their values.

Where each value is placed is drawn as a seed, and follows from it and from the value's shape. A step that is refused
on explicit axes runs again on operands that are whole, so that a program goes on after it.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any

import numpy as np
from hypothesis import strategies as st

import xtrace
from tests.differential import programs

# Small sizes, which divide the sizes of the axes of drawn arrays.
MESHES = [
    ((("x", 2),), 0), ((("x", 3),), 2), ((("x", 2), ("y", 3)), 1), ((("x", 3), ("y", 2)), 0), ((("x", 2), ("y", 2)), 3),
    ((("x", 4), ("y", 2)), 0), ((("x", 2), ("y", 2), ("z", 2)), 0), ((("x", 8),), 0),
]
HOW = ["leave"] * 5 + ["place", "place", "map", "map whole", "loop", "branch"]


_REFUSALS = (xtrace.errors.ShardingTypeError, ValueError, TypeError, NotImplementedError)


@dataclass(frozen=True)
class Sharded:
    """A program; for each of its values what is done with it and a seed of places; whether it is differentiated."""

    program: programs.Program
    actions: tuple[tuple[str, int], ...]
    differentiated: bool
    place_results: bool


@dataclass(frozen=True)
class Group:
    """Programs that are compiled as one, which needs one mesh: its axes, its first device, and the axes' type."""

    mesh: tuple[tuple[tuple[str, int], ...], int]
    kind: str
    together: tuple[Sharded, ...]


@st.composite
def sharded(draw: Any) -> Sharded:
    """A program, places for its arguments and steps, and whether its gradient is taken."""
    program = draw(programs.programs(max_steps=5))
    count = len(program.inputs) + len(program.steps)
    actions = draw(st.lists(st.tuples(st.sampled_from(HOW), st.integers(0, 2**16)), min_size=count, max_size=count))
    return Sharded(program, tuple(actions), draw(st.integers(0, 3)) == 0, draw(st.integers(0, 3)) == 0)


def groups(count: int) -> st.SearchStrategy[Group]:
    """Groups of `count` programs."""
    kinds = st.sampled_from(["Auto", "Explicit"])
    return st.builds(Group, st.sampled_from(MESHES), kinds, st.tuples(*[sharded()] * count))


def library(module: Any) -> SimpleNamespace:
    """The parts of xtrace or jax that sharded programs use."""
    found = programs.library(module)
    found.module, found.sharding = module, module.sharding
    return found


def make_mesh(lib: Any, group: Group) -> Any:
    """Return the mesh of a group, on devices from the drawn one on."""
    names, sizes = zip(*group.mesh[0], strict=True)
    devices = np.roll(np.array(lib.module.devices()), -group.mesh[1])[: int(np.prod(sizes))]
    kind = getattr(lib.sharding.AxisType, group.kind)
    return lib.sharding.Mesh(devices.reshape(sizes), names, axis_types=(kind,) * len(names))


def spec_of(shape: tuple[int, ...], axes: tuple[tuple[str, int], ...], seed: int) -> list[Any]:
    """Return entries of a specification that divides `shape`, the same ones for a seed."""
    generator = np.random.default_rng(seed)
    free, entries = list(axes), []
    for size in shape:
        chosen: list[str] = []
        for axis in [free[i] for i in generator.permutation(len(free))]:
            left = size // int(np.prod([dict(axes)[name] for name in chosen]))
            if left % axis[1] == 0 and generator.random() < 0.5:
                chosen.append(axis[0])
                free.remove(axis)
        entries.append(None if not chosen else chosen[0] if len(chosen) == 1 else tuple(chosen))
    return entries


class Run:
    """A group's programs as one function of a library, and what is seen while it is traced."""

    def __init__(self, lib: Any, group: Group, refused: Collection[tuple[int, int]] = ()) -> None:
        """refused: the positions of attempts that the other library refused; operands are whole in these."""
        self.lib, self.group, self.mesh = lib, group, make_mesh(lib, group)
        self.refused = {*refused}
        self.seen: list[list[str]] = []

    def place(self, shape: tuple[int, ...], seed: int | None) -> Any:
        """Return the sharding that a seed gives an array of a shape; without a seed it is whole."""
        entries = [] if seed is None else spec_of(shape, self.group.mesh[0], seed)
        return self.lib.sharding.NamedSharding(self.mesh, self.lib.sharding.PartitionSpec(*entries))

    def arguments(self) -> list[Any]:
        """Return the arguments of all programs, placed."""
        return [
            [self.lib.module.device_put(np.asarray(x) if np.ndim(x) else x, self.place(np.shape(x), seed))
             for x, (_, seed) in zip(s.program.inputs, s.actions, strict=False)]
            for s in self.group.together
        ]

    def __call__(self) -> Any:
        """Return the results of the programs, compiled as one function."""
        results = self.lib.module.jit(
            lambda given: [self._evaluate(s, x) for s, x in zip(self.group.together, given, strict=True)]
        )
        if self.group.kind == "Auto":
            return results(self.arguments())
        with self.lib.module.set_mesh(self.mesh):
            return results(self.arguments())

    def _evaluate(self, sharded: Sharded, given: list[Any]) -> Any:
        self.seen.append(seen := [])

        def results(*values: Any) -> Any:
            return self._run(sharded, values, seen)

        smooth = [i for i, x in enumerate(given) if self.lib.np.issubdtype(x.dtype, np.floating)]
        if not sharded.differentiated or not smooth:
            return results(*given)

        def loss(*moving: Any) -> Any:
            full = list(given)
            for i, x in zip(smooth, moving, strict=True):
                full[i] = x
            seen.clear()
            leaves = self.lib.module.tree.leaves(results(*full))
            return sum([x.astype("float32").sum() for x in leaves if self.lib.np.issubdtype(x.dtype, np.floating)],
                       start=self.lib.np.float32(0))

        gradients = self.lib.module.grad(loss, argnums=tuple(range(len(smooth))))(*[given[i] for i in smooth])
        # Which of jax's rules keep the weak types of arrays is no contract.
        return [x.astype(x.dtype) for x in gradients]

    def _run(self, sharded: Sharded, given: Any, seen: list[str]) -> Any:
        values = list(given)
        for step, (how, seed) in zip(sharded.program.steps, sharded.actions[len(given) :], strict=True):
            function = programs.OPERATIONS[step.operation][1]
            operands = [values[i] for i in step.operands]
            value = self._attempt(step.operation, lambda *xs, f=function, s=step: f(self.lib, s.details, *xs), operands,
                                  seen)
            value = self._attempt(how, lambda x, how=how, seed=seed: self._act(how, seed, x), [value], seen)
            values.append(value)
        if sharded.place_results:
            values = [self._put(x, self.place(x.shape, seed))
                      for x, (_, seed) in zip(values, sharded.actions, strict=True)]
        return self.lib.map(lambda i: values[i], sharded.program.outputs)

    def _attempt(self, name: str, function: Any, operands: list[Any], seen: list[str]) -> Any:
        """Return the function's result; where explicit axes make it refuse its operands, the result of whole ones."""
        shown = [str(self.lib.module.typeof(x)) for x in operands]
        at = len(self.seen) - 1, len(seen)
        whole = at in self.refused
        try:
            value = function(*operands)
        except Exception as error:
            # An error of ours is one that users get; jax has others too.
            if self.group.kind == "Auto" or (self.lib.module is xtrace and not isinstance(error, _REFUSALS)):
                raise
            whole = True
        if whole:
            # Where jax refuses a step, ours need not: it may know the sharding of the result.
            self.refused.add(at)
            value = function(*[self._put(x, self.place(x.shape, None)) for x in operands])
        seen.append(f"{name} {shown} -> {self.lib.module.typeof(value)}")
        return value

    def _put(self, x: Any, place: Any) -> Any:
        if self.group.kind == "Explicit":
            return self.lib.sharding.reshard(x, place)
        return self.lib.lax.with_sharding_constraint(x, place)

    def _act(self, how: str, seed: int, x: Any) -> Any:
        place = self.place(x.shape, seed)
        if how == "place":
            return self._put(x, place)
        if how in ("map", "map whole"):
            x = self._put(x, place)
            axis = self.group.mesh[0][0][0]

            def mapped(x: Any) -> Any:
                y = x if how == "map" or x.dtype == bool else self.lib.lax.psum(x, axis)
                return ~y if y.dtype == bool else y + y

            entries = [None if how != "map" and axis in (e if isinstance(e, tuple) else (e,)) else e
                       for e in place.spec]
            if x.dtype == bool and list(place.spec) != entries:
                return x
            spec = self.lib.sharding.PartitionSpec(*entries)
            x = self._put(x, self.lib.sharding.NamedSharding(self.mesh, spec))
            return self.lib.module.shard_map(mapped, mesh=self.mesh, in_specs=spec, out_specs=spec)(x)
        if how == "loop":
            return self.lib.lax.scan(lambda c, _: (c + c, None) if c.dtype != bool else (~c, None), x, None, 2)[0]
        if how == "branch":
            return self.lib.lax.cond((x == x).sum() > 3, lambda x: x + x if x.dtype != bool else ~x, lambda x: x, x)
        return x
