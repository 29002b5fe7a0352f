"""Arrays in folders: what is written is read again, in the format that TensorStore has; errors say what is wrong."""

import asyncio
import json
import os
import tracemalloc
import zlib

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace._src.serialization import manager as managers
from xtrace._src.serialization import zarr
from xtrace.experimental.array_serialization import serialization
from xtrace.experimental.layout import Format

DTYPES = [
    "float32", "bfloat16", "float16", "complex64", "int8", "uint8", "int32", "bool", "float8_e4m3fn", "float8_e5m2",
    "int4",
]


def spec_of(path, **metadata):
    made = serialization.get_tensorstore_spec(path)
    return {**made, "metadata": metadata} if metadata else made


def read_again(x, spec, **options):
    serialization.run_serialization([x], [spec])
    (found,) = serialization.run_deserialization([x.sharding], [spec], **options)
    return found


@pytest.mark.parametrize("shape", [(), (3,), (4, 6), (2, 0)])
@pytest.mark.parametrize("dtype", DTYPES)
def test_what_is_written_is_read(dtype, shape, tmp_path):
    x = jnp.arange(int(np.prod(shape))).reshape(shape).astype(dtype)
    found = read_again(x, spec_of(tmp_path / "x"))
    assert found.dtype == x.dtype and found.sharding == x.sharding
    np.testing.assert_array_equal(np.asarray(found), np.asarray(x))


def test_dtypes_have_the_names_of_zarr(tmp_path):
    names = {}
    for dtype in DTYPES:
        serialization.run_serialization([jnp.ones(2, dtype)], [spec_of(tmp_path / dtype)])
        names[dtype] = json.loads((tmp_path / dtype / ".zarray").read_text())["dtype"]
    own = {"float32": "<f4", "float16": "<f2", "complex64": "<c8", "int8": "|i1", "uint8": "|u1", "int32": "<i4"}
    assert names == {**{d: d for d in DTYPES}, **own, "bool": "|b1"}


@pytest.mark.parametrize("compressor", [None, {"id": "zlib", "level": 3}, {"id": "gzip", "level": 5}, {"id": "bz2"}])
def test_compressors(compressor, tmp_path):
    x = jnp.arange(1000.0)
    np.testing.assert_array_equal(read_again(x, spec_of(tmp_path / "x", compressor=compressor)), x)
    written = json.loads((tmp_path / "x" / ".zarray").read_text())["compressor"]
    assert written == (None if compressor is None else {"level": 1, **compressor})
    assert ((tmp_path / "x" / "0").stat().st_size < 4000) == (compressor is not None)


def test_the_format_is_that_of_zarr(tmp_path):
    mesh = xtrace.make_mesh((1,), ("x",))
    x = xtrace.device_put(jnp.arange(6.0).reshape(2, 3), xtrace.NamedSharding(mesh, xtrace.P("x")))
    serialization.run_serialization([x], [spec_of(tmp_path)])
    # As TensorStore writes it, apart from the compressor.
    assert json.loads((tmp_path / ".zarray").read_text()) == {
        "chunks": [2, 3], "compressor": {"id": "zlib", "level": 1}, "dimension_separator": ".", "dtype": "<f4",
        "fill_value": None, "filters": None, "order": "C", "shape": [2, 3], "zarr_format": 2,
    }
    assert sorted(os.listdir(tmp_path)) == [".zarray", "0.0"]
    np.testing.assert_array_equal(np.frombuffer(zlib.decompress((tmp_path / "0.0").read_bytes()), "<f4"), np.arange(6))


def _by_hand(folder, chunks, separator=".", order="C", **changes):
    """Write an array of 5 by 4 numbers, in chunks of 2 by 3, all but the last one."""
    values = np.arange(20, dtype="<i4").reshape(5, 4)
    stated = {
        "chunks": [2, 3], "compressor": None, "dtype": "<i4", "fill_value": 7, "filters": None, "order": order,
        "shape": [5, 4], "zarr_format": 2, "dimension_separator": separator, **changes,
    }
    (folder / ".zarray").write_text(json.dumps(stated))
    padded = np.zeros((6, 6), "<i4")
    padded[:5, :4] = values
    for i, j in chunks:
        path = folder / f"{i}{separator}{j}"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(padded[2 * i : 2 * i + 2, 3 * j : 3 * j + 3].tobytes(order))
    return values


@pytest.mark.parametrize(("separator", "order"), [(".", "C"), ("/", "F")])
def test_chunks_of_other_writers(separator, order, tmp_path):
    every = [(i, j) for i in range(3) for j in range(2)]
    values = _by_hand(tmp_path, every[:-1], separator, order)
    values[4, 3] = 7  # the fill value, in the place of the chunk that is not there
    sharding = jnp.ones(1).sharding
    read = lambda **options: serialization.run_deserialization([sharding], [spec_of(tmp_path)], **options)[0]  # noqa: E731
    np.testing.assert_array_equal(read(), values)
    # Of another shape: cut, or continued by zeros.
    np.testing.assert_array_equal(read(global_shapes=[(3, 6)]), np.pad(values[:3], ((0, 0), (0, 2))))
    converted = read(dtypes=[jnp.bfloat16])
    assert converted.dtype == jnp.bfloat16
    np.testing.assert_array_equal(np.asarray(converted), values)


def test_types_state_what_is_read(tmp_path):
    x, spec = jnp.arange(6.0), spec_of(tmp_path)
    serialization.run_serialization([x], [spec])
    for in_type, shape, dtype in [
        (Format(None, x.sharding), (6,), "float32"),
        (xtrace.ShapeDtypeStruct((4,), jnp.int32, sharding=x.sharding), (4,), "int32"),
    ]:
        found = asyncio.run(serialization.async_deserialize(in_type, spec))
        assert (found.shape, found.dtype) == (shape, dtype)
    # The last one that is written stays.
    np.testing.assert_array_equal(read_again(jnp.ones((2, 2)), spec), np.ones((2, 2)))


# Specifications


def test_specifications():
    made = serialization.get_tensorstore_spec
    assert made("/a/b") == {"driver": "zarr", "kvstore": {"driver": "file", "path": "/a/b"}}
    assert made("gs://b/c/d")["kvstore"] == {"driver": "gcs", "bucket": "b", "path": "c/d"}
    assert made("s3://b/c", driver="zarr3") == {
        "driver": "zarr3", "kvstore": {"driver": "s3", "bucket": "b", "path": "c"},
    }
    base = {"driver": "file", "path": "/a"}
    assert made("/a/b", ocdbt=True)["kvstore"] == {"driver": "ocdbt", "base": base, "path": "b"}
    assert made("/a/b", ocdbt=True, process_idx=3)["kvstore"]["base"]["path"] == "/a/process_3"
    assert made("/a", arr=jnp.ones((2, 3)))["metadata"] == {"shape": (2, 3), "chunks": [2, 3]}
    with pytest.raises(ValueError, match="must be a bucket and a path"):
        made("gs://bucket")
    remote = serialization.is_remote_storage
    given = [
        "gs://a", "/tmp/a", "s3://x/y", made("/a"), made("gs://b/a"), {"driver": "zarr", "kvstore": "gs://b/a"},
        {"kvstore": {"driver": "gcs", "path": "a"}}, made("s3://b/a/c", ocdbt=True),
    ]
    assert list(map(remote, given)) == [True, False, True, False, True, True, True, True]
    with pytest.raises(TypeError, match="is_remote_storage: tspec must be"):
        remote(3)


def _write(spec):
    serialization.run_serialization([jnp.ones(2)], [spec])


def _read(spec, sharding=None, **options):
    serialization.run_deserialization([sharding or jnp.ones(2).sharding], [spec], **options)


REFUSED = [
    (lambda p: _write({"driver": "n5", "kvstore": {"driver": "file", "path": p}}), NotImplementedError, "'n5'.*needs"),
    (lambda p: _write(serialization.get_tensorstore_spec("gs://b/a")), NotImplementedError, "'gcs' needs TensorStore"),
    (lambda p: _write({"driver": "zarr", "kvstore": "s3://b/a"}), NotImplementedError, "TensorStore, which xtrace"),
    (lambda p: _read(serialization.get_tensorstore_spec(p, ocdbt=True)), NotImplementedError, "'ocdbt' needs"),
    (lambda p: _write(p), TypeError, "a specification is a dictionary"),
    (lambda p: _write(spec_of(p, compressor={"id": "blosc"})), NotImplementedError, "has the compressor 'blosc'"),
    (lambda p: _write(spec_of(p, compressor={"id": "zstd"})), NotImplementedError, "Install the package zstandard"),
    (lambda p: _read(spec_of(p)), FileNotFoundError, "there is no array at"),
    (lambda p: _read(spec_of(p), sharding=3), TypeError, "in_type must be a sharding"),
    (lambda p: serialization.run_serialization([jnp.ones(2)], []), ValueError, "got 1 arrays, 0 tensorstore_specs"),
    (lambda p: serialization.run_serialization([np.ones(2)], [spec_of(p)]), TypeError, "must be an array with data"),
    (lambda p: serialization.AsyncManager(0), ValueError, "timeout_secs must be a positive number"),
    (lambda p: serialization.GlobalAsyncCheckpointManager().serialize([], [p]), ValueError, "0 arrays and 1 spec"),
    (
        lambda p: asyncio.run(serialization.async_serialize(jnp.ones(2), spec_of(p), transaction=3)),
        NotImplementedError, "transaction needs TensorStore",
    ),
]


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_is_refused(call, kind, message, tmp_path):
    with pytest.raises(kind, match=message):
        call(str(tmp_path / "x"))


def test_damaged_arrays(tmp_path):
    _by_hand(tmp_path, [(0, 0)], filters=[{"id": "delta"}])
    with pytest.raises(NotImplementedError, match="has filters"):
        _read(spec_of(tmp_path))
    _by_hand(tmp_path, [(0, 0)])
    (tmp_path / "0.1").write_bytes(b"123")
    with pytest.raises(ValueError, match=r"0.1 has 3 bytes; chunks of shape \(2, 3\) and dtype int32 have 24"):
        _read(spec_of(tmp_path))
    with pytest.raises(ValueError, match=r"global_shape \(3,\) has 1 axes"):
        _read(spec_of(tmp_path), global_shapes=[(3,)])


# Checkpoints that are written while the program goes on


@pytest.mark.parametrize("compressor", ["zlib", "gzip", "bz2"])
def test_chunks_that_expand_beyond_their_size_are_refused(compressor, tmp_path):
    folder = str(tmp_path)
    array = zarr.ZarrArray(folder, (4,), np.dtype("f4"), (4,), (compressor, 1))
    array.write_metadata()
    (tmp_path / "0").write_bytes(array._encode(bytes(1 << 24)))
    tracemalloc.start()
    with pytest.raises(ValueError, match=r"the chunk .* has more than 16 bytes.*It is damaged"):
        zarr.open_array(folder).read((0,), (4,))
    assert tracemalloc.get_traced_memory()[1] < 1 << 21
    tracemalloc.stop()
    (tmp_path / "0").write_bytes(b"no data")
    with pytest.raises(ValueError, match=r"the chunk .* cannot be decompressed"):
        zarr.open_array(folder).read((0,), (4,))


WRONG_METADATA = {
    "no JSON": "{", "a list": "[]", "nested": "[" * 100_000, "no shape": {"shape": None},
    "a size below 0": {"shape": [-4]},
    "a chunk of no elements": {"chunks": [0]}, "another number of axes": {"chunks": [4, 4]}, "objects": {"dtype": "|O"},
    "no order": {"order": "K"}, "a path": {"dimension_separator": "/../"}, "a fill that is none": {"fill_value": "x"},
    "no dtype": {"dtype": "<f99"}, "no level": {"compressor": {"id": "zlib", "level": "x"}},
}


@pytest.mark.parametrize("name", WRONG_METADATA)
def test_metadata_that_describe_no_array(name, tmp_path):
    zarr.ZarrArray(str(tmp_path), (4,), np.dtype("f4"), (4,), None).write_metadata()
    path, wrong = tmp_path / ".zarray", WRONG_METADATA[name]
    path.write_text(wrong if isinstance(wrong, str) else json.dumps(json.loads(path.read_text()) | wrong))
    with pytest.raises(ValueError, match=r"array_serialization: .*\.zarray does not describe an array: "):
        zarr.open_array(str(tmp_path))


def test_checkpoints(tmp_path):
    manager, committed = serialization.GlobalAsyncCheckpointManager(), []
    arrays, paths = [jnp.arange(5.0), jnp.float32(3)], [str(tmp_path / "a"), str(tmp_path / "b")]
    for step in range(2):
        manager.serialize_with_paths(arrays, paths, on_commit_callback=lambda step=step: committed.append(step))
    found = manager.deserialize_with_paths([x.sharding for x in arrays], paths)
    assert committed == [0, 1]
    for x, y in zip(arrays, found, strict=True):
        np.testing.assert_array_equal(x, y)
    manager.check_for_errors()


def test_functions_that_wait_work_where_an_event_loop_runs(tmp_path):
    x, spec = jnp.arange(3.0), serialization.get_tensorstore_spec(str(tmp_path / "x"))
    manager = serialization.GlobalAsyncCheckpointManager()

    async def cell():
        serialization.run_serialization([x], [spec])
        manager.serialize([x * 2], [serialization.get_tensorstore_spec(str(tmp_path / "y"))])
        manager.wait_until_finished()
        return serialization.run_deserialization([x.sharding], [spec])

    with xtrace.enable_x64(True):
        (again,) = asyncio.run(cell())
    np.testing.assert_array_equal(again, x)
    assert (tmp_path / "y").exists()


def test_errors_of_checkpoints_show_later(tmp_path):
    (tmp_path / "file").write_text("no folder")
    manager = serialization.GlobalAsyncCheckpointManager()

    def fail():
        raise ValueError("the callback failed")

    manager.serialize([jnp.ones(2)], [spec_of(tmp_path / "x")], on_commit_callback=fail)
    with pytest.raises(ValueError, match="the callback failed"):
        manager.wait_until_finished()
    manager.check_for_errors()


class _Client:
    """The coordinator, as a process sees it in which others come, or do not."""

    def __init__(self, error=None):
        self.error, self.places = error, []

    def wait_at_barrier(self, place, milliseconds):
        self.places.append((place, milliseconds))
        if self.error is not None:
            raise managers.distributed.DistributedError(self.error)


@pytest.mark.parametrize(("process", "error"), [(0, None), (1, None), (1, "DEADLINE_EXCEEDED: 3 s"), (0, "lost")])
def test_processes_wait_for_each_other(process, error, monkeypatch, tmp_path):
    client, committed = _Client(error), []
    connection = managers.distributed.Connection(client, None, "", process, 2, None, 1, 1)
    monkeypatch.setattr(managers.distributed, "connection", lambda: connection)
    manager = serialization.GlobalAsyncCheckpointManager(timeout_secs=3)
    manager.serialize([jnp.ones(2)], [spec_of(tmp_path)], on_commit_callback=lambda: committed.append(1))
    if error is None:
        manager.wait_until_finished()
    else:
        late = serialization.BarrierTimeoutError if "DEADLINE" in error else managers.distributed.DistributedError
        with pytest.raises(late, match="in 3 seconds" if "DEADLINE" in error else "lost"):
            manager.wait_until_finished()
    assert len(client.places) == 1 and client.places[0][1] == 3000
    assert committed == [1] * (process == 0 and error is None)
