"""Checkpoints of arrays as Zarr folders, without the TensorStore that ``jax.experimental`` uses.

TensorStore can read them. Arrays that TensorStore wrote can be read here if Python has their compressor. OCDBT
databases and cloud storage are refused.
"""

from xtrace._late_names import late_imports as _late_imports

# These load at their first use.
with _late_imports(globals()):
    from xtrace._src.core.shardings.memory_layout import Format as Format
    from xtrace._src.serialization.arrays import async_deserialize as async_deserialize
    from xtrace._src.serialization.arrays import async_serialize as async_serialize
    from xtrace._src.serialization.arrays import get_tensorstore_spec as get_tensorstore_spec
    from xtrace._src.serialization.arrays import is_remote_storage as is_remote_storage
    from xtrace._src.serialization.arrays import run_deserialization as run_deserialization
    from xtrace._src.serialization.arrays import run_serialization as run_serialization
    from xtrace._src.serialization.manager import AsyncManager as AsyncManager
    from xtrace._src.serialization.manager import BarrierTimeoutError as BarrierTimeoutError
    from xtrace._src.serialization.manager import GlobalAsyncCheckpointManager as GlobalAsyncCheckpointManager
    from xtrace._src.serialization.manager import GlobalAsyncCheckpointManagerBase as GlobalAsyncCheckpointManagerBase
