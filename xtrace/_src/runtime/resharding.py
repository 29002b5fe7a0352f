"""Resharding of arrays on the same devices, and changes of their layout, by compiled programs."""

from __future__ import annotations

from collections.abc import Callable

from xtrace._src.core.avals import ShapedArray, physical_aval
from xtrace._src.core.shardings.memory_layout import Layout, layout_mode
from xtrace._src.core.shardings.shardings import Sharding, SingleDeviceSharding
from xtrace._src.core.tables import memoize
from xtrace._src.runtime.arrays import ConcreteArray, device_sharding, get_layout, known_layout, new_array, placement
from xtrace._src.runtime.transfer import signature_on
from xtrace._src.stablehlo.builder import FunctionBuilder, ModuleBuilder
from xtrace._src.xla import buffers, clients
from xtrace._src.xla.buffers import Buffer
from xtrace._src.xla.executables import executables


def reshard(array: ConcreteArray, new: Sharding, layout: Layout | None = None) -> Buffer:
    """Return the buffer of an array in the sharding `new` over the same devices, in a layout; None is the default."""
    stored = physical_aval(array.aval.update(sharding=None))
    run = _resharding_program(stored, array.sharding, new, get_layout(array), layout)
    (buffer,) = run([array._live_buffer()])
    buffers.collect_garbage()
    return buffer


def relayout(array: ConcreteArray, layout: Layout | None) -> ConcreteArray:
    """Return an array in the same place, in another layout; None is the default."""
    aval, sharding = array.aval, array.sharding
    buffer = reshard(array, sharding, layout)
    known = known_layout(buffer._pjrt_layout, aval.shape, aval.dtype, sharding.devices[0])
    if isinstance(sharding, SingleDeviceSharding):
        return new_array(aval, buffer, signature_on(aval, sharding.device, array.committed, known))
    return new_array(aval, buffer, placement(aval, sharding, layout=known))


@memoize(1024)
def _resharding_program(
    aval: ShapedArray, old: Sharding, new: Sharding, old_layout: Layout | None, layout: Layout | None
) -> Callable[[list[Buffer]], list[Buffer]]:
    """Return the program that changes the sharding and the layout of an array of type `aval`."""
    on_one = isinstance(new, SingleDeviceSharding)
    module = ModuleBuilder("reshard", clients.lowering_platform(old.devices[0]), num_partitions=len(old.devices))
    main = FunctionBuilder(module, "main", "reshard", public=True)
    module.functions.append(main)

    def attributes(sharding: Sharding, mode: Layout | None) -> str:
        texts = [f'mhlo.layout_mode = "{layout_mode(mode)}"' if mode is not None else ""]
        texts.append("" if on_one else module.meshes.attribute(sharding, aval.ndim))
        return ", ".join(filter(None, texts))

    x = main.argument(aval, attributes(old, old_layout))
    # Newer partitioners add up unreduced values at a constraint, but not between an argument and a result.
    main.return_values([x if on_one else main.constrain(x, new)], [attributes(new, layout)])
    partitioned = None if on_one else executables.Partitioned([False], [False])
    executable = executables.compile_text(module.text(), old.devices, None, (), partitioned)
    handlers = [buffers.result_handler(aval, old.devices[0] if on_one else device_sharding(new))]
    execute = executables.executor(executable)
    return lambda inputs: execute(inputs).consume_with_handlers(handlers)
