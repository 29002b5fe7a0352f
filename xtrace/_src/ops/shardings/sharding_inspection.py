"""Inspection and pictures of shardings, of arrays and of values inside of compiled programs."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapedArray
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.jaxprs.effects import debug_effect
from xtrace._src.core.primitive import Primitive, no_rule
from xtrace._src.core.pytrees import pytree
from xtrace._src.core.shardings.mesh import Mesh
from xtrace._src.core.shardings.sharding_pictures import choose_colors, draw_lines, make_grid
from xtrace._src.core.shardings.shardings import Sharding, sharding_with_tiles
from xtrace._src.core.trace import Tracer
from xtrace._src.runtime.arrays import ConcreteArray, single_device_sharding
from xtrace._src.runtime.transfer import current_device
from xtrace._src.stablehlo import attributes
from xtrace._src.stablehlo.builder import FunctionBuilder, Value
from xtrace._src.transforms.batch import MappedAxis
from xtrace._src.transforms.element_functions import CALLING_PYTHON
from xtrace._src.xla import shardings


class Inspector:
    """A user's function of shardings, and the callbacks through which XLA calls it; equations keep them alive."""

    __slots__ = ("callback", "_handlers")

    def __init__(self, callback: Callable[[Sharding], Any]) -> None:
        self.callback = callback
        self._handlers: dict[Mesh, shardings.InspectionHandler] = {}

    def handler(self, mesh: Mesh, ndim: int) -> bytes:
        """Return the address of the callback as bytes."""

        def call(parts: tuple[int, ...], numbers: tuple[int, ...]) -> None:
            self.callback(sharding_with_tiles(mesh, (*parts, *(1,) * (ndim - len(parts))), numbers))

        handler = self._handlers[mesh] = shardings.InspectionHandler(call, mesh.size, self._handlers.get(mesh))
        return handler.address

    def __repr__(self) -> str:
        return repr(self.callback)


def _abstract(aval: ShapedArray, *, callback: Inspector) -> list[ShapedArray]:
    """Give the sharding of the operand to a Python function when the program is compiled."""
    return []


def _emit(builder: FunctionBuilder, x: Value, *, callback: Inspector) -> list[Value]:
    mesh = builder.module.mesh
    if mesh is None:
        callback.callback(single_device_sharding(current_device()))
        return []
    address = attributes.string_of_bytes(callback.handler(mesh, x.aval.ndim))
    builder.line(
        f"stablehlo.custom_call @InspectSharding({x.name}) {{backend_config = {address}, has_side_effect = true}} : "
        f"({x.type}) -> {x.type}",
        x.aval,
    )
    return []


def _evaluate(array: ConcreteArray, *, callback: Inspector) -> list[Any]:
    callback.callback(array.sharding)
    return []


def _jvp(primals: Sequence[Any], tangents: Sequence[Any], *, callback: Inspector) -> tuple[list[Any], list[Any]]:
    inspect_sharding_p.bind(*primals, callback=callback)
    return [], []


def _batch(mapped: MappedAxis, operands: Any, axes: Any, *, callback: Inspector) -> tuple[list[Any], list[Any]]:
    """Bind on the whole array: the mapped axis is one of its axes."""
    inspect_sharding_p.bind(*operands, callback=callback)
    return [], []


inspect_sharding_p = Primitive(
    "inspect_sharding", ("callback",), abstract=_abstract, emit=_emit, evaluate=_evaluate, jvp=_jvp, linearize=_jvp,
    transpose=no_rule("it has no result"), batch=_batch, multiple_results=True, memoised=False,
    effects=lambda **_: frozenset((debug_effect,)),
)
CALLING_PYTHON.add(inspect_sharding_p)


def inspect_array_sharding(value: Any, *, callback: Callable[[Sharding], Any]) -> None:
    """Call a function with the sharding of each array of a tree; for traced values, with the compiler's choice.

    Args:
        value: a pytree of arrays.
        callback: a function of a sharding. For a traced value it is called when the program is compiled, not when it
            runs; for a program on one device, when it is lowered.

    Raises:
        TypeError: a leaf of `value` is no array, or `callback` is no function.

    Example:
        >>> xtrace.debug.inspect_array_sharding(jnp.ones(2), callback=lambda sharding: print(sharding.num_devices))
        1
    """
    if not callable(callback):
        raise TypeError(f"inspect_array_sharding: callback must be a function, got {abbreviate(callback)}")
    inspector = Inspector(callback)
    for leaf in pytree.tree_leaves(value):
        if isinstance(leaf, Tracer):
            inspect_sharding_p.bind(leaf, callback=inspector)
        elif isinstance(leaf, ConcreteArray):
            callback(leaf.sharding)
        else:
            raise TypeError(
                f"inspect_array_sharding: value must be arrays on devices, got {abbreviate(leaf)}; put it there with "
                "xtrace.device_put"
            )


def visualize_sharding(
    shape: Sequence[int], sharding: Sharding, *, use_color: bool = True, scale: float = 1.0, min_width: int = 9,
    max_width: int = 80, color_map: Callable[[float], Any] | None = None,
) -> None:
    """Print a picture of the shards of an array, each with its devices.

    Args:
        shape: the shape of the array, of one or two axes.
        sharding: its sharding.
        use_color: whether to colour shards, if the output can show it and the package rich is installed.
        scale: a factor of the size.
        min_width: the least width of a shard in characters, with its borders.
        max_width: the greatest width of the picture; device numbers that need more room exceed it.
        color_map: a function from numbers between 0 and 1 to red, green, blue and alpha; None for default colours.

    Raises:
        ValueError: `shape` has no axis or more than two, or the sharding does not divide it.

    Example:
        >>> xtrace.debug.visualize_sharding((2,), jnp.ones(2).sharding)
        ┌──────────┐
        │  CPU 0   │
        └──────────┘
    """
    whole = tuple(shape)
    if len(whole) not in (1, 2):
        raise ValueError(
            f"visualize_sharding: pictures are of arrays of one or two axes, the shape is {whole}; reshape the array, "
            "or print its sharding"
        )
    grid = make_grid(sharding, whole)
    lines = draw_lines(grid, whole, scale, min_width, max_width)
    colors = choose_colors(grid, color_map) if use_color else {}
    if not (colors and _print_in_color(lines, colors)):
        print("\n".join(["".join([text for text, _ in line]) for line in lines]))


def _print_in_color(lines: list[list[tuple[str, Any]]], colors: dict[Any, str]) -> bool:
    """Print the lines of a picture in colour and return True; return False if rich is not installed."""
    try:
        import rich.console  # heavy third-party
        import rich.text  # heavy third-party
    except ImportError:
        return False
    text = rich.text.Text(no_wrap=True)
    for line in lines:
        for part, devices in line:
            text.append(part, f"black on {colors[devices]}" if devices is not None else None)
        text.append("\n")
    console = rich.console.Console(width=max(len("".join([part for part, _ in line])) for line in lines))
    console.print(text, end="", highlight=False)
    return True


def visualize_array_sharding(arr: Array, **kwargs: Any) -> None:
    """Print a picture of the shards of `arr`, as `visualize_sharding` does.

    Args:
        arr: an array of one or two axes; for a traced one the picture is printed when the program is compiled.
        kwargs: the options of `visualize_sharding`.

    Raises:
        TypeError: `arr` is no array, or there is no such option.
        ValueError: `arr` has no axis or more than two.

    Example:
        >>> xtrace.debug.visualize_array_sharding(jnp.ones(2))
        ┌──────────┐
        │  CPU 0   │
        └──────────┘
    """
    inspect_array_sharding(arr, callback=lambda sharding: visualize_sharding(arr.shape, sharding, **kwargs))
