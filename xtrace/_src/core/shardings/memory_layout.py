"""The layout of an array's elements in memory and their devices: the value of ``x.format``."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

from xtrace._late_imports import late_modules
from xtrace._src.core.annotations import Shape
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.sentinels import Sentinel
from xtrace._src.core.shardings.shardings import Sharding
from xtrace._src.xla import buffers

with late_modules(globals()):
    from xtrace._src.core.diagnostics.messages import called_function


class _Auto(Sentinel):
    """The class of `Layout.AUTO`, which leaves the layout to the compiler."""

    __slots__ = ()

    def __repr__(self) -> str:
        return "AUTO"


_AUTO = _Auto("_AUTO")


class Layout:
    """The order of an array's axes in memory, and its tiles.

    Args:
        major_to_minor: the axes, the slowest first; ``(0, 1)`` is the order of C.
        tiling: the shapes of the tiles of elements; None for the platform's choice.
        sub_byte_element_size_in_bits: the bits of a packed element; 0 if elements are not packed.

    Attributes:
        AUTO: the layout that leaves the choice to the compiler.

    Raises:
        TypeError: `major_to_minor` is no sequence.

    Example:
        >>> xtrace.experimental.layout.Layout((1, 0)).update(major_to_minor=(0, 1)).major_to_minor
        (0, 1)
    """

    __slots__ = ("major_to_minor", "tiling", "sub_byte_element_size_in_bits")

    AUTO = _AUTO

    def __init__(
        self, major_to_minor: tuple[int, ...], tiling: tuple[tuple[int, ...], ...] | None = None,
        sub_byte_element_size_in_bits: int = 0,
    ) -> None:
        if not hasattr(major_to_minor, "__iter__"):
            raise TypeError(f"Layout: major_to_minor must be a tuple of axes, got {abbreviate(major_to_minor)}")
        self.major_to_minor = tuple(major_to_minor)
        self.tiling = None if tiling is None else tuple([tuple(tile) for tile in tiling])
        self.sub_byte_element_size_in_bits = sub_byte_element_size_in_bits

    @staticmethod
    def from_pjrt_layout(pjrt_layout: Any) -> Layout:
        """Return the layout of jaxlib's layout object."""
        return Layout(*buffers.read_layout(pjrt_layout))

    def update(self, **changes: Any) -> Layout:
        """Return the layout with `major_to_minor`, `tiling` or `sub_byte_element_size_in_bits` changed."""
        return Layout(**({name: getattr(self, name) for name in self.__slots__} | changes))

    def check_compatible_aval(self, aval_shape: Shape) -> None:
        """Raise ValueError if `major_to_minor` does not order the axes of an array of shape `aval_shape`."""
        if sorted(self.major_to_minor) != list(range(len(aval_shape))):
            raise ValueError(
                f"major_to_minor of {self} must have each axis of the array once, 0 to {len(aval_shape) - 1}: the "
                f"shape is {tuple(aval_shape)}, of rank {len(aval_shape)}"
            )

    def _key(self) -> tuple[Any, ...]:
        return self.major_to_minor, self.tiling, self.sub_byte_element_size_in_bits

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Layout) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return (
            f"Layout(major_to_minor={self.major_to_minor}, tiling={self.tiling}, "
            f"sub_byte_element_size_in_bits={self.sub_byte_element_size_in_bits})"
        )


class Format:
    """A layout and a sharding; None for either leaves the choice to the compiler.

    Args:
        layout: a `Layout`, `Layout.AUTO` or None.
        sharding: a sharding; a `Layout` needs one.

    Raises:
        TypeError: `layout` or `sharding` is another object.
        ValueError: a `Layout` is given without a sharding.

    Example:
        >>> xtrace.experimental.layout.Format(None, jnp.ones(2).sharding).layout
    """

    __slots__ = ("layout", "sharding")

    def __init__(self, layout: Layout | _Auto | None = None, sharding: Sharding | None = None) -> None:
        if not (layout is None or isinstance(layout, (Layout, _Auto))):
            raise TypeError(f"Format: layout must be a Layout, Layout.AUTO or None, got {abbreviate(layout)}")
        if not (sharding is None or isinstance(sharding, Sharding)):
            raise TypeError(
                "Format: sharding must be a sharding such as xtrace.NamedSharding(mesh, spec), or None, got "
                f"{abbreviate(sharding)}"
            )
        if isinstance(layout, Layout) and sharding is None:
            raise ValueError(f"Format: {layout} is for known devices; give a sharding, too")
        self.layout, self.sharding = layout, sharding

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Format) and (self.layout, self.sharding) == (other.layout, other.sharding)

    def __hash__(self) -> int:
        return hash((self.layout, self.sharding))

    def __repr__(self) -> str:
        return f"Format(layout={self.layout}, sharding={self.sharding})"


class Layouts(NamedTuple):
    """The layouts of a program's inputs and results, and the types of its inputs.

    None is the default layout; `Layout.AUTO` lets XLA choose.
    """

    inputs: tuple[Any, ...]
    results: tuple[Any, ...]
    types: tuple[Any, ...]

    def keep(self, kept: Sequence[int] | None) -> Layouts:
        """Return the layouts of a program with only the inputs at the positions `kept`; None keeps all."""
        if kept is None:
            return self
        inputs, types = [tuple([row[i] for i in kept]) for row in (self.inputs, self.types)]
        return self._replace(inputs=inputs, types=types)


def layout_mode(layout: Layout | _Auto) -> str:
    """Return a layout's text in modules: the axes, the fastest first, then the tiles and the bits of an element."""
    if isinstance(layout, _Auto):
        return "auto"
    tiles = "".join([f"({','.join(map(str, tile))})" for tile in layout.tiling or ()])
    bits = layout.sub_byte_element_size_in_bits
    suffix = (f"T{tiles}" if tiles else "") + (f"E({bits})" if bits else "")
    order = ",".join(map(str, reversed(layout.major_to_minor)))
    return f"{{{order}:{suffix}}}" if suffix else f"{{{order}}}"


def is_default(layout: Layout) -> bool:
    """Return whether `layout` is the default of arrays: axes in order, without tiles."""
    return not layout.tiling and list(layout.major_to_minor) == sorted(layout.major_to_minor)


def is_met(wanted: Layout, actual: Layout) -> bool:
    """Return whether the layout `actual` is as `wanted`; without tiles, `wanted` accepts any tiles."""
    return wanted.major_to_minor == actual.major_to_minor and wanted.tiling in (None, actual.tiling)


def refuse_layout(argument: str, given: object, *, function: str = "") -> None:
    """Raise ValueError for a `Format` with another layout than the default, given in the place of a sharding."""
    layout = given.layout if isinstance(given, Format) else None
    if layout is not None and not (isinstance(layout, Layout) and is_default(layout)):
        raise ValueError(
            f"{function or called_function()}: {argument} takes a sharding, and {abbreviate(given)} says a layout. Put "
            "the result there with xtrace.device_put(x, format), or give it to jit as out_shardings"
        )
