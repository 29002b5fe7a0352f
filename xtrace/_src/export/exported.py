"""`Exported`: a program with its types, its shardings and its derivative."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from xtrace._late_imports import late_modules
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.tracebacks import boundary
from xtrace._src.core.jaxprs.effects import Effect
from xtrace._src.core.shardings.mesh import AbstractMesh, BaseMesh, Mesh
from xtrace._src.core.shardings.shardings import NamedSharding, Sharding, sharding_with_tiles
from xtrace._src.core.tables import memoize
from xtrace._src.core.value_objects import Immutable
from xtrace._src.export import serialization
from xtrace._src.export.calls import call_exported
from xtrace._src.export.checks import check_signature
from xtrace._src.export.disabled_checks import DisabledSafetyCheck
from xtrace._src.xla import shardings
from xtrace._src.xla.pytree_registry import PyTreeDef

with late_modules(globals()):
    # The import of jaxlib's MLIR bindings takes 30 ms; only the use of a program needs them, not the reading of a file.
    from xtrace._src.xla.mlir import artifacts, modules

_Positions = tuple[int, ...]


@dataclass(frozen=True, repr=False)
class Exported(Immutable):
    """A function lowered for files and other processes, the result of `export` or `deserialize`.

    Args:
        fun_name: the function's name.
        in_tree: the structure of ``(args, kwargs)``.
        in_avals: the types of the arguments' leaves.
        out_tree: the structure of the result.
        out_avals: the types of the result's leaves.
        _has_named_shardings: whether all shardings are named; False only for files of older releases of jax.
        _in_named_shardings, _out_named_shardings: the shardings of the leaves, on a mesh without devices, or None.
        in_shardings_hlo, out_shardings_hlo: the shardings in XLA's form that a file of such a release has, or None.
        nr_devices: the number of devices of the program.
        platforms: the platforms of the program.
        ordered_effects, unordered_effects: the side effects of the program.
        disabled_safety_checks: the skipped checks.
        mlir_module_serialized: the program, a portable artifact of StableHLO.
        calling_convention_version: the version of the rules for the program's arguments.
        module_kept_var_idx: the positions of the leaves that the program reads.
        uses_global_constants: whether the first argument is the platform's number, or sizes are symbolic.
        _get_vjp: returns the derivative; None without a derivative.
        _is_intact: whether the program's bytes have a correct checksum; a checksum is no signature of their author.

    Example:
        >>> exported = xtrace.export.export(xtrace.jit(jnp.sin))(0.0)
        >>> exported.platforms, exported.call(0.0)
        (('cpu',), Array(0., dtype=float32, weak_type=True))
    """

    fun_name: str
    in_tree: PyTreeDef
    in_avals: tuple[ShapedArray, ...]
    out_tree: PyTreeDef
    out_avals: tuple[ShapedArray, ...]
    _has_named_shardings: bool
    _in_named_shardings: tuple[NamedSharding | None, ...]
    _out_named_shardings: tuple[NamedSharding | None, ...]
    in_shardings_hlo: tuple[Any, ...]
    out_shardings_hlo: tuple[Any, ...]
    nr_devices: int
    platforms: tuple[str, ...]
    ordered_effects: tuple[Effect, ...]
    unordered_effects: tuple[Effect, ...]
    disabled_safety_checks: tuple[DisabledSafetyCheck, ...]
    mlir_module_serialized: bytes
    calling_convention_version: int
    module_kept_var_idx: _Positions
    uses_global_constants: bool
    _get_vjp: Callable[[Exported], Exported] | None
    _is_intact: bool = field(default=True, compare=False)

    def __repr__(self) -> str:
        return f"Exported(fun_name={self.fun_name}, ...)"

    def __reduce__(self) -> Any:
        raise TypeError(
            f"{self.fun_name}, an Exported, cannot be pickled, since that does not say how many derivatives to keep: "
            "pickle exported.serialize(vjp_order=...), and read it with xtrace.export.deserialize"
        )

    @boundary
    def mlir_module(self, serialized: bool = True) -> Any:
        """Return the text of the program; an MLIR module if `serialized` is false.

        Raises:
            ValueError: the program's bytes are damaged.
        """
        module = self._read_module()
        return modules.write_text(module, debug_info=True) if serialized else module

    def _read_module(self) -> Any:
        try:
            artifact = self.mlir_module_serialized
            module = artifacts.read_artifact(artifact if self._is_intact else _rewrite(artifact))
            check_signature(self, *artifacts.read_signature(module))
        except (RuntimeError, ValueError) as error:  # A name in the program may not be UTF-8.
            raise ValueError(f"{self.fun_name}, an Exported, cannot be used: {error}") from None
        return module

    def functions(self) -> Any:
        """Return the functions of the program as text, ``main`` last."""
        return artifacts.read_functions(self._read_module())

    @boundary
    def in_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[Sharding | None]:
        """Return the shardings of the arguments' leaves on a mesh, None for a leaf without a sharding.

        Raises:
            TypeError: `mesh` is no mesh.
            ValueError: the names, sizes or types of axes of `mesh` differ from those of the export.
        """
        return self._shardings_on("in_shardings_jax", mesh, "in")

    @boundary
    def out_shardings_jax(self, mesh: Mesh | AbstractMesh) -> Sequence[Sharding | None]:
        """Return the shardings of the result's leaves on a mesh, None for a leaf without a sharding.

        Raises:
            TypeError: `mesh` is no mesh.
            ValueError: the names, sizes or types of axes of `mesh` differ from those of the export.
        """
        return self._shardings_on("out_shardings_jax", mesh, "out")

    def _shardings_on(self, method: str, mesh: Any, side: str) -> tuple[Sharding | None, ...]:
        if not isinstance(mesh, BaseMesh):
            raise TypeError(f"{method}: mesh must be a Mesh, such as make_mesh returns; got {abbreviate(mesh)}")
        for sharding in getattr(self, f"_{side}_named_shardings"):
            own = None if sharding is None else sharding.mesh
            if own is not None and (own.shape_tuple, own.axis_types) != (mesh.shape_tuple, mesh.axis_types):
                raise ValueError(
                    f"{method}: {mesh} does not match the mesh used for export, {own}; make one with the same names, "
                    "sizes and types of axes"
                )
        if not self._has_named_shardings and mesh.size != self.nr_devices:
            raise ValueError(
                f"{method}: {mesh} does not match the export, which is for {self.nr_devices} devices; make a mesh of "
                "that size"
            )
        return tuple([
            NamedSharding(mesh, s.spec, s.memory_kind) if isinstance(s, NamedSharding) else s
            for s in self.placements(side, mesh)
        ])

    def placements(self, side: str, mesh: Any) -> list[Sharding | None]:
        """Return the shardings of the arguments ("in") or results ("out"); those in XLA's form on a mesh."""
        named, tiles = getattr(self, f"_{side}_named_shardings"), getattr(self, f"{side}_shardings_hlo")
        kinds = [aval.memory_space.kind for aval in getattr(self, f"{side}_avals")]
        return [
            given if given is not None or hlo is None
            else sharding_with_tiles(mesh, *shardings.read_tiles(hlo, self.nr_devices)).with_memory_kind(kind)
            for given, hlo, kind in zip(named, tiles, kinds, strict=True)
        ]

    def has_vjp(self) -> bool:
        """Return whether the function can be differentiated."""
        return self._get_vjp is not None

    @boundary
    def vjp(self) -> Exported:
        """Return the exported function from the arguments' leaves and the result's cotangents to the cotangents.

        Raises:
            ValueError: the function's file has no derivative.
        """
        if self._get_vjp is None:
            raise ValueError(
                f"No VJP is available: {self.fun_name} was saved without derivatives. Save it with "
                "serialize(vjp_order=1), or 2 for second derivatives"
            )
        return self._get_vjp(self)

    @boundary
    def serialize(self, vjp_order: int = 0) -> bytearray:
        """Return the function as the bytes of a file for `deserialize`, of xtrace or of jax.export.

        Args:
            vjp_order: the highest order of derivatives in the file.

        Raises:
            TypeError: `vjp_order` is no integer, or a dict among the arguments has other keys than strings.
            ValueError: `vjp_order` is negative or above the order of this function, or a class of an argument or result
                is not registered for files.
        """
        return serialization.serialize(self, vjp_order)

    @boundary
    def call(self, *args: Any, **kwargs: Any) -> Any:
        """Run the program, or make it part of a traced program; its reverse-mode derivatives are the saved ones.

        `vmap` calls it in a loop, once for each element; ``export(jit(vmap(f)))`` is a program for all elements.

        Raises:
            ValueError: the structure, shapes or dtypes of the arguments, the platform or the number of devices differ
                from those of the export.
        """
        return call_exported(self, args, kwargs)


@memoize(64)
def _rewrite(artifact: bytes) -> bytes:
    return artifacts.rewrite_in_process(artifact)
