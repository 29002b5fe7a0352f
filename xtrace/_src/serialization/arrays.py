"""Reading and writing of arrays: each process writes and reads the shards of its devices."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Coroutine, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, TypeVar

import numpy as np

from xtrace._src.api.devices import process_index
from xtrace._src.api.meshes.array_assembly import make_array_from_callback
from xtrace._src.core.arrays import Array
from xtrace._src.core.avals import ShapeDtypeStruct
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.diagnostics.messages import called_function
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.memory_layout import Format
from xtrace._src.core.shardings.shardings import Sharding
from xtrace._src.core.trace import Tracer
from xtrace._src.serialization.zarr import ZarrArray, open_array, parse_compressor

Spec = Mapping[str, Any]
_Result = TypeVar("_Result")

_REMOTE = ("gs://", "s3://")
_REMOTE_DRIVERS = frozenset(("gcs", "gcs_grpc", "s3"))
_writers = ThreadPoolExecutor(8, "xtrace_serialization")


def run_coroutine(coroutine: Coroutine[Any, Any, _Result]) -> _Result:
    """Return the result of a coroutine, which another thread runs where an event loop runs, as in notebooks."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(coroutine)
    with ThreadPoolExecutor(1) as pool:
        made: _Result = pool.submit(config.carry_settings(lambda: asyncio.run(coroutine))).result()
    return made


def is_remote_storage(tspec: Spec | str) -> bool:
    """Return whether a specification is of cloud storage.

    Args:
        tspec: a TensorStore specification, or a path.

    Returns:
        True for Google's and Amazon's storage.

    Raises:
        TypeError: `tspec` is no specification and no path.

    Example:
        >>> from xtrace.experimental.array_serialization.serialization import is_remote_storage
        >>> is_remote_storage("gs://bucket/checkpoint"), is_remote_storage("/tmp/checkpoint")
        (True, False)
    """
    if isinstance(tspec, str):
        return tspec.startswith(_REMOTE)
    if not isinstance(tspec, Mapping):
        raise TypeError(f"is_remote_storage: tspec must be a specification or a path, got {abbreviate(tspec)}")
    inner = [tspec[key] for key in ("base", "kvstore") if key in tspec]
    return tspec.get("driver") in _REMOTE_DRIVERS or any(map(is_remote_storage, inner))


def get_tensorstore_spec(
    ckpt_path: str | os.PathLike[str], *, ocdbt: bool = False, process_idx: int | None = None, arr: Any = None,
    driver: str = "zarr",
) -> dict[str, Any]:
    """Return the TensorStore specification of a path.

    Args:
        ckpt_path: a path in a file system, or a path with gs:// or s3://.
        ocdbt: whether the array is in a database of several arrays; only TensorStore reads and writes databases.
        process_idx: the number of a process, for its part of a database.
        arr: an array; its shape and the shape of its shards become metadata.
        driver: the format.

    Returns:
        A dictionary.

    Raises:
        ValueError: a path in a cloud has no bucket.

    Example:
        >>> from xtrace.experimental.array_serialization import serialization
        >>> serialization.get_tensorstore_spec("/tmp/weights")["kvstore"]
        {'driver': 'file', 'path': '/tmp/weights'}
    """
    folder, name = os.path.split(os.fspath(ckpt_path).rstrip("/"))
    if not ocdbt:
        store = _make_store(os.fspath(ckpt_path))
    else:
        part = "" if process_idx is None else f"process_{process_idx}"
        store = {"driver": "ocdbt", "base": _make_store(os.path.join(folder, part) if part else folder), "path": name}
    spec: dict[str, Any] = {"driver": driver, "kvstore": store}
    if arr is not None:
        spec["metadata"] = {"shape": tuple(arr.shape), "chunks": list(arr.sharding.shard_shape(arr.shape))}
    return spec


def _make_store(path: str) -> dict[str, Any]:
    if not path.startswith(_REMOTE):
        return {"driver": "file", "path": path}
    parts = re.fullmatch(r"(gs|s3)://([^/]+)/(.+)", path)
    if parts is None:
        raise ValueError(f"get_tensorstore_spec: {abbreviate(path)} must be a bucket and a path, as gs://bucket/path")
    return {"driver": "gcs" if parts[1] == "gs" else "s3", "bucket": parts[2], "path": parts[3]}


def _find_folder(function: str, spec: Any) -> str:
    """Return the folder of a specification; NotImplementedError if it needs TensorStore."""
    if not isinstance(spec, Mapping) or "driver" not in spec or "kvstore" not in spec:
        raise TypeError(
            f"{function}: a specification is a dictionary {{'driver': 'zarr', 'kvstore': {{'driver': 'file', 'path': "
            f"...}}}}, as get_tensorstore_spec(path) returns; got {abbreviate(spec)}"
        )
    store = spec["kvstore"]
    if isinstance(store, str):
        local = "://" not in store or store.startswith("file://")
        store = {"driver": "file", "path": store.removeprefix("file://")} if local else {"driver": store}
    if spec["driver"] != "zarr" or store.get("driver") != "file":
        raise NotImplementedError(
            f"{function}: the driver {abbreviate(spec['driver'])} on {abbreviate(store.get('driver'))} needs "
            "TensorStore, which xtrace does not use. Arrays are written and read as "
            "{'driver': 'zarr', 'kvstore': {'driver': 'file', 'path': ...}}; copy the folder to cloud storage yourself"
        )
    return os.path.abspath(str(store["path"]))


def _reject_options(function: str, **options: Any) -> None:
    """Raise NotImplementedError for options other than None: objects of TensorStore."""
    given = [name for name, value in options.items() if value is not None]
    if given:
        raise NotImplementedError(f"{function}: {', '.join(given)} needs TensorStore; leave it out")


async def async_serialize(
    arr_inp: Array, tensorstore_spec: Spec, commit_future: list[Any] | None = None, context: Any = None,
    chunk_layout: Any = None, primary_host: int | None = None, replica_id: int = 0, transaction: Any = None,
) -> list[Any]:
    """Write an array to a folder; each process writes the shards of its devices, one file for each shard.

    Args:
        arr_inp: the array.
        tensorstore_spec: the specification of the folder, see `get_tensorstore_spec`; its metadata may have a
            compressor, by default zlib.
        commit_future: a list that receives a future for each shard; None to wait for the files.
        context, chunk_layout: None; they belong to TensorStore.
        primary_host: the process that writes the metadata; None for every process.
        replica_id: the number of the replica to write.
        transaction: None; it belongs to TensorStore.

    Returns:
        A list of None, one for each shard.

    Raises:
        TypeError: `arr_inp` is no array with data, or `tensorstore_spec` is no specification.
        NotImplementedError: the specification is not of Zarr in a file system.

    Example:
        >>> import asyncio, tempfile
        >>> from xtrace.experimental.array_serialization import serialization
        >>> spec = serialization.get_tensorstore_spec(tempfile.mkdtemp() + "/x")
        >>> asyncio.run(serialization.async_serialize(jnp.arange(3), spec))
        [None]
    """
    name = "async_serialize"
    _reject_options(name, context=context, chunk_layout=chunk_layout, transaction=transaction)
    if not isinstance(arr_inp, Array) or isinstance(arr_inp, Tracer):
        raise TypeError(
            f"{name}: arr_inp must be an array with data, got {abbreviate(arr_inp)}; convert it with "
            "xtrace.numpy.asarray"
        )
    folder = _find_folder(name, tensorstore_spec)
    stated = tensorstore_spec.get("metadata", {})
    compressor = parse_compressor(stated.get("compressor", {"id": "zlib", "level": 1}))
    chunks = [max(n, 1) for n in arr_inp.sharding.shard_shape(arr_inp.shape)]
    target = ZarrArray(folder, arr_inp.shape, np.dtype(arr_inp.dtype), chunks, compressor)
    if primary_host is None or process_index() == primary_host:
        target.write_metadata()
    futures: list[Future[None]] = []
    for shard in arr_inp.addressable_shards:
        if shard.replica_id == replica_id:
            start = [s.indices(n)[0] for s, n in zip(shard.index, arr_inp.shape, strict=True)]
            # A copy, because the array may be donated before it is written.
            futures.append(_writers.submit(target.write, start, np.array(shard.data)))
    if commit_future is not None:
        commit_future.extend(futures)
        return [None] * len(futures)
    return list(await asyncio.gather(*map(asyncio.wrap_future, futures)))


async def async_deserialize(
    in_type: Any, tensorstore_spec: Spec, global_shape: Sequence[int] | None = None, dtype: Any = None,
    byte_limiter: Any = None, context: Any = None, chunk_layout: Any = None, assume_metadata: bool = False,
) -> Any:
    """Read an array from a folder; each process reads the shards of its devices.

    Args:
        in_type: the sharding of the array, a `Format` with a sharding, or a `ShapeDtypeStruct` with sharding, shape and
            dtype.
        tensorstore_spec: the specification of the folder, see `get_tensorstore_spec`.
        global_shape: the shape of the result, padded with zeros or truncated at the end of each axis; None for the
            stored shape.
        dtype: the dtype of the result; None for the stored dtype.
        byte_limiter: not used.
        context, chunk_layout: None; they belong to TensorStore.
        assume_metadata: False.

    Returns:
        The array.

    Raises:
        FileNotFoundError: there is no array.
        TypeError: `in_type` has no sharding, or `tensorstore_spec` is no specification.
        ValueError: `global_shape` has another number of axes.
        NotImplementedError: the specification is not of Zarr in a file system.

    Example:
        >>> import asyncio, tempfile
        >>> from xtrace.experimental.array_serialization import serialization
        >>> x, spec = jnp.arange(3), serialization.get_tensorstore_spec(tempfile.mkdtemp() + "/x")
        >>> serialization.run_serialization([x], [spec])
        >>> asyncio.run(serialization.async_deserialize(x.sharding, spec))
        Array([0, 1, 2], dtype=int32)
    """
    name = "async_deserialize"
    _reject_options(name, context=context, chunk_layout=chunk_layout, assume_metadata=assume_metadata or None)
    if isinstance(in_type, ShapeDtypeStruct):
        global_shape = in_type.shape if global_shape is None else global_shape
        dtype = in_type.dtype if dtype is None else dtype
    sharding = in_type.sharding if isinstance(in_type, (Format, ShapeDtypeStruct)) else in_type
    if not isinstance(sharding, Sharding):
        raise TypeError(
            f"{name}: in_type must be a sharding, such as x.sharding of an array, or a Format or ShapeDtypeStruct with "
            f"one; got {abbreviate(in_type)}"
        )
    source = open_array(_find_folder(name, tensorstore_spec))
    shape = source.shape if global_shape is None else tuple(global_shape)
    if len(shape) != len(source.shape):
        raise ValueError(
            f"{name}: global_shape {shape} has {len(shape)} axes, the array at {source.folder} has the shape "
            f"{source.shape}"
        )

    def read_shard(index: tuple[slice, ...]) -> np.ndarray[Any, Any]:
        bounds = [s.indices(n)[:2] for s, n in zip(index, shape, strict=True)]
        values = source.read([a for a, _ in bounds], [b for _, b in bounds])
        return values if dtype is None else values.astype(dtype)

    return await asyncio.to_thread(
        make_array_from_callback, shape, sharding, read_shard, source.dtype if dtype is None else dtype
    )


def _check_lengths(**lists: Any) -> None:
    lengths = {name: len(values) for name, values in lists.items() if values is not None}
    if len(set(lengths.values())) > 1:
        counted = ", ".join([f"{n} {name}" for name, n in lengths.items()])
        raise ValueError(f"{called_function()}: there must be one of each for every array, got {counted}")


def run_serialization(arrays: Sequence[Array], tensorstore_specs: Sequence[Spec]) -> None:
    """Write arrays to folders, and wait until all are written.

    Args:
        arrays: the arrays.
        tensorstore_specs: the specification of each folder, see `get_tensorstore_spec`.

    Raises:
        TypeError: an item is no array, or no specification.
        ValueError: the numbers of arrays and of specifications differ.
        NotImplementedError: a specification is not of Zarr in a file system.

    Example:
        >>> import tempfile
        >>> from xtrace.experimental.array_serialization import serialization
        >>> x, spec = jnp.ones(2), serialization.get_tensorstore_spec(tempfile.mkdtemp() + "/x")
        >>> serialization.run_serialization([x], [spec])
        >>> serialization.run_deserialization([x.sharding], [spec])
        [Array([1., 1.], dtype=float32)]
    """
    _check_lengths(arrays=arrays, tensorstore_specs=tensorstore_specs)

    async def write() -> None:
        await asyncio.gather(*map(async_serialize, arrays, tensorstore_specs))

    run_coroutine(write())


def run_deserialization(
    shardings: Sequence[Any], tensorstore_specs: Sequence[Spec], global_shapes: Sequence[Any] | None = None,
    dtypes: Sequence[Any] | None = None, concurrent_gb: int = 32,
) -> list[Any]:
    """Read arrays from folders.

    Args:
        shardings: the sharding, or the `Format`, of each array.
        tensorstore_specs: the specification of each folder, see `get_tensorstore_spec`.
        global_shapes: the shape of each array; None for the stored shapes.
        dtypes: the dtype of each array; None for the stored dtypes.
        concurrent_gb: not used: besides the arrays, one shard at a time is in memory.

    Returns:
        The arrays.

    Raises:
        FileNotFoundError: there is no array.
        TypeError: an item is no sharding, or no specification.
        ValueError: the numbers of items differ, or a shape has another number of axes.
        NotImplementedError: a specification is not of Zarr in a file system.

    Example:
        >>> import tempfile
        >>> from xtrace.experimental.array_serialization import serialization
        >>> x, spec = jnp.ones(2), serialization.get_tensorstore_spec(tempfile.mkdtemp() + "/x")
        >>> serialization.run_serialization([x], [spec])
        >>> serialization.run_deserialization([x.sharding], [spec], dtypes=[jnp.bfloat16])
        [Array([1, 1], dtype=bfloat16)]
    """
    _check_lengths(
        shardings=shardings, tensorstore_specs=tensorstore_specs, global_shapes=global_shapes,
        dtypes=dtypes,
    )
    count = len(shardings)

    async def read() -> list[Any]:
        return [
            await async_deserialize(*each) for each in zip(
                shardings, tensorstore_specs, global_shapes or [None] * count, dtypes or [None] * count, strict=True
            )
        ]

    return run_coroutine(read())
