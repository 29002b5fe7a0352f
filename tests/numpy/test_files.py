"""Arrays in files, buffers and text, and their printing."""

import io
import pickle

import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.expressions import check_eagerly
from tests.support.operands import ALL, assert_same, ours, random_values, theirs

CASES = [
    "jnp.array_str(x)", "jnp.array_str(x / 3, precision=2)", "jnp.fromstring('1 2 3', sep=' ')",
    "jnp.fromstring('1,2', int, sep=',')", "jnp.fromstring('1 2', jnp.float16, 1, sep=' ')",
    "jnp.frombuffer(b'abcdefgh', dtype=jnp.uint8, count=3, offset=1)",
    "jnp.frombuffer(b'abcdefgh', dtype=jnp.float32)",
]


@pytest.mark.parametrize("text", CASES)
def test_values_are_those_of_jax(text):
    check_eagerly(text, 1)


@pytest.mark.parametrize("dtype", ALL, ids=str)
def test_what_is_saved_is_loaded_by_both(dtype):
    value = random_values(dtype, (2, 3), 1)
    for write, read in ((jnp, jnp), (jnp, jax.numpy), (jax.numpy, jnp)):
        file = io.BytesIO()
        write.save(file, ours(value) if write is jnp else theirs(value))
        file.seek(0)
        assert_same(read.load(file), theirs(value), 1)


def test_several_arrays_in_one_file(tmp_path):
    jnp.savez(tmp_path / "several.npz", jnp.arange(3), weights=jnp.ones(2))
    found = jnp.load(tmp_path / "several.npz")
    assert sorted(found) == ["arr_0", "weights"]
    assert found["arr_0"].tolist() == [0, 1, 2]


def test_printing_options_are_those_of_numpy():
    x = jnp.array([1 / 3, 2.0])
    assert jnp.array_repr(x, precision=3) == "Array([0.333, 2.   ], dtype=float32)"
    with jnp.printoptions(precision=2):
        assert jnp.array_str(x) == "[0.33 2.  ]" and jnp.get_printoptions()["precision"] == 2
    before = jnp.get_printoptions()["precision"]
    jnp.set_printoptions(precision=3)
    try:
        assert np.get_printoptions()["precision"] == 3
    finally:
        jnp.set_printoptions(precision=before)
    assert jnp.ComplexWarning is np.exceptions.ComplexWarning


def test_wrong_arguments_are_named():
    for name in ("fromfile", "fromiter"):
        with pytest.raises(NotImplementedError, match=f"{name} is not supported.*numpy.{name}"):
            getattr(jnp, name)("x")
    with pytest.raises(TypeError, match="bytes-like"):
        jnp.frombuffer(2)
    with pytest.raises(xtrace.errors.TracerArrayConversionError):
        xtrace.jit(jnp.array_str)(jnp.ones(2))


class Pickled:
    """An object that no array holds."""

    def __eq__(self, other):
        return isinstance(other, Pickled)

    __hash__ = None


OBJECTS = [
    "text", b"bytes", None, {"a": 1}, 2**70, Pickled(), [[1], [1, 2]], np.array([1, "a", None], object),
    np.array(["a", "bc"]), np.array(["2020-01-01"], "datetime64[D]"), np.zeros(2, [("a", "f4"), ("b", "i4")]),
    np.ma.array([1.0, 2.0], mask=[False, True]), [1, 2, 3], 2.5, np.ones(2), np.zeros((0, 3), np.float32),
]


@pytest.mark.parametrize("pickled", [False, True])
@pytest.mark.parametrize("number", range(len(OBJECTS)))
def test_objects_are_saved_and_loaded_as_in_jax(number, pickled):
    def outcome(module):
        try:
            file, files = io.BytesIO(), io.BytesIO()
            module.save(file, OBJECTS[number], allow_pickle=pickled)
            file.seek(0)
            found = [module.load(file, allow_pickle=pickled)]
            module.savez(files, OBJECTS[number], named=OBJECTS[number], allow_pickle=pickled)
            files.seek(0)
            contents = module.load(files, allow_pickle=pickled)
            found += [contents["arr_0"], contents["named"]]
        except Exception as error:
            return type(error).__name__
        return [(type(x) is np.ndarray, str(x.dtype), x.shape, np.asarray(x).tolist()) for x in found]

    assert outcome(jnp) == outcome(jax.numpy)


def test_files_are_read_as_numpy_s_settings_say(tmp_path):
    def outcomes(module):
        path = tmp_path / f"{module.__name__}.npy"
        module.save(path, module.ones((2, 3)))
        for settings in ({"mmap_mode": "r"}, {"mmap_mode": "w+"}, {"encoding": "latin1"}, {"encoding": "utf8"},
                         {"max_header_size": 10}, {"stray": 1}):
            try:
                found = module.load(path, **settings)
                yield isinstance(found, np.ndarray), str(found.dtype), np.asarray(found).tolist()
            except Exception as error:
                yield type(error).__name__
        for text in (b"", b"hello world", b"\x93NUMPY\x01\x00", pickle.dumps([1, 2])):
            try:
                yield str(module.load(io.BytesIO(text)))
            except Exception as error:
                yield type(error).__name__

    assert list(outcomes(jnp)) == list(outcomes(jax.numpy))
