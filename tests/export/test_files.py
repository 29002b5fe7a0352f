"""The files: trees with classes of users, files that jax wrote, and files that are damaged or of other versions."""

import hashlib
import struct
from collections import namedtuple

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import xtrace
import xtrace.numpy as jnp
from tests.support.exports import GOLDEN
from tests.support.exports import read_golden as read
from xtrace import export
from xtrace._src.export import flatbuffers, schema
from xtrace._src.export.flatbuffers import DamagedFileError
from xtrace._src.export.serialization import DIGEST_MARK, DIGEST_SIZE

pytestmark = pytest.mark.thorough

X = np.ones(3, np.float32)
Pair = namedtuple("Pair", ["first", "second"])
export.register_namedtuple_serialization(Pair, serialized_name="golden.Pair")


def without_digest(data):
    """Return the file as another writer of the format would have it."""
    return bytes(data[:4] + bytes(4) + data[8 : -DIGEST_SIZE - len(DIGEST_MARK)])


SAVED = export.export(xtrace.jit(lambda t: (jnp.sin(t["x"]), [t["y"]])))({"x": X, "y": 1.0}).serialize(vjp_order=1)


# Files that jax 0.10.2 wrote


def test_trees_and_second_derivatives():
    exported, y = export.deserialize(read("trees")), {"a": 2.0, "b": np.ones(2, np.int32)}
    sines, nothing, (ones,) = exported.call(X, y)
    np.testing.assert_allclose(np.asarray(sines), 2 * np.sin(X), 1e-6)
    assert nothing is None and ones.dtype == np.int32

    def first(x):
        return xtrace.grad(lambda x: exported.call(x, y)[0].sum())(x)

    np.testing.assert_allclose(np.asarray(first(X)), 2 * np.cos(X), 1e-6)
    np.testing.assert_allclose(np.asarray(xtrace.grad(lambda x: first(x).sum())(X)), -2 * np.sin(X), 1e-6)


def test_classes_platforms_and_keys():
    assert export.deserialize(read("pair")).call(Pair(1.0, 2.0)) == Pair(2.0, 2.0)
    exported = export.deserialize(read("platforms"))
    assert exported.platforms == ("tpu", "cpu")
    np.testing.assert_allclose(np.asarray(exported.call(4 * np.eye(3, dtype=np.float32))), 2 * np.eye(3), 1e-6)
    key = xtrace.random.key(0)
    drawn = export.deserialize(read("keys")).call(key)
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(xtrace.random.uniform(key, (2,))))


def test_every_version_and_every_file_is_read():
    files = {path.stem: export.deserialize(path.read_bytes()) for path in GOLDEN.glob("*.bin")}
    versions = range(
        export.minimum_supported_calling_convention_version, export.maximum_supported_calling_convention_version + 1
    )
    assert {exported.calling_convention_version for exported in files.values()} == set(versions)
    oldest = files["convention_9"]
    np.testing.assert_allclose(oldest.call(X), 3 * np.sin(X), 1e-6)
    np.testing.assert_allclose(xtrace.grad(lambda x: oldest.call(x).sum())(X), 3 * np.cos(X), 1e-6)


# Classes of users


@xtrace.tree_util.register_pytree_node_class
class Scale:
    def __init__(self, factor, unit):
        self.factor, self.unit = factor, unit

    def tree_flatten(self):
        return (self.factor,), self.unit

    @classmethod
    def tree_unflatten(cls, unit, children):
        return cls(*children, unit)


def test_classes_are_registered_once_by_name():
    saved = export.export(xtrace.jit(lambda s: Scale(s.factor * 2, s.unit)))(Scale(1.0, "m"))
    with pytest.raises(ValueError, match=r"Scale, an unregistered type; register it with export.register_pytree"):
        saved.serialize()
    options = {"serialize_auxdata": str.encode, "deserialize_auxdata": lambda data: bytes(data).decode()}
    assert export.register_pytree_node_serialization(Scale, serialized_name="test.Scale", **options) is Scale
    doubled = export.deserialize(saved.serialize()).call(Scale(3.0, "m"))
    assert (float(doubled.factor), doubled.unit) == (6.0, "m")
    with pytest.raises(ValueError, match=r"metadata 'm' against 's'"):
        export.deserialize(saved.serialize()).call(Scale(3.0, "s"))
    with pytest.raises(ValueError, match=r"Scale is registered already, by the serialized_name 'test.Scale'"):
        export.register_pytree_node_serialization(Scale, serialized_name="test.Other", **options)
    Other = namedtuple("Other", ["a"])
    with pytest.raises(ValueError, match=r"'test.Scale' belongs to Scale already"):
        export.register_namedtuple_serialization(Other, serialized_name="test.Scale")


def test_objects_are_made_from_children():
    class Sides:
        def __init__(self, left, right):
            self.left, self.right = left, right

    xtrace.tree_util.register_pytree_node(Sides, lambda s: ((s.left, s.right), None), lambda _, c: Sides(*c))
    made = []
    export.register_pytree_node_serialization(
        Sides, serialized_name="test.Sides", serialize_auxdata=lambda _: b"", deserialize_auxdata=lambda _: None,
        from_children=lambda _, children: made.append(1) or Sides(*children),
    )
    saved = export.export(xtrace.jit(lambda s: s.left - s.right["a"]))(Sides(1.0, {"a": X})).serialize()
    np.testing.assert_array_equal(np.asarray(export.deserialize(saved).call(Sides(3.0, {"a": X}))), [2.0] * 3)
    assert made


class Unknown:
    pass


REGISTRATIONS = [
    (lambda: export.register_namedtuple_serialization(3, serialized_name="a"), TypeError, "nodetype must be a class"),
    (lambda: export.register_namedtuple_serialization(int, serialized_name="a"), ValueError, "int is no class of coll"),
    (lambda: export.register_namedtuple_serialization(Unknown, serialized_name=3), TypeError, "be a string, got 3"),
    (lambda: export.register_pytree_node_serialization(
        Unknown, serialized_name="a", serialize_auxdata=3, deserialize_auxdata=bytes
    ), TypeError, "serialize_auxdata must be a function, got 3"),
    (lambda: export.register_pytree_node_serialization(
        Unknown, serialized_name="a", serialize_auxdata=bytes, deserialize_auxdata=bytes
    ), ValueError, "Unknown is no pytree; register it first"),
    (lambda: export.export(xtrace.jit(lambda t: t[1]))({1: X}).serialize(), TypeError, "must be strings.*1"),
    (lambda: export.export(xtrace.jit(lambda t: t))(jnp.ones(2, "int2")).serialize(), ValueError, "int2.*no number"),
]


@pytest.mark.parametrize(("call", "error", "words"), REGISTRATIONS)
def test_what_files_cannot_hold_is_refused(call, error, words):
    with pytest.raises(error, match=words):
        call()


def changed(**fields):
    """The file of SAVED, without a digest, with fields of its record changed."""
    record = flatbuffers.decode(schema.EXPORTED, without_digest(SAVED))
    return bytes(flatbuffers.encode(schema.EXPORTED, record | fields))


def test_a_class_that_is_not_registered_here():
    tree = {"kind": schema.CUSTOM, "custom_name": "elsewhere.Model", "auxdata": b"", "children": []}
    with pytest.raises(ValueError, match=r"'elsewhere.Model', which is not registered in this process"):
        export.deserialize(changed(in_tree=tree))
    pair = {"kind": schema.CUSTOM, "custom_name": "golden.Pair", "auxdata": b'["a"]', "children": []}
    with pytest.raises(ValueError, match=r"metadata of a 'golden.Pair' cannot be read.*\['first', 'second'\]"):
        export.deserialize(changed(in_tree=pair))


# Bad files


@pytest.mark.parametrize("blob", [3, "text", None, np.ones(3)])
def test_files_are_bytes(blob):
    with pytest.raises(TypeError, match="blob must be bytes"):
        export.deserialize(blob)


CHANGES = [
    ({"serialization_version": 99}, "version 99 of the format, and this release reads 1 to 12"),
    ({"calling_convention_version": 8}, "calling convention 8, and this release supports 9 to 10"),
    ({"calling_convention_version": 11}, "calling convention 11"),
    ({"ordered_effects": [{"type_name": "Log"}]}, "has the effects Log, unknown here"),
    ({"platforms": []}, "its platforms are"),
    ({"nr_devices": 0}, "it is for 0 devices"),
    ({"kept": [0, 7]}, r"takes the arguments \(0, 7\) of 2"),
    ({"kept": [1, 0]}, "takes the arguments"),
    ({"in_aval_numbers": [0]}, "2 leaves with 1 types"),
    ({"in_aval_numbers": [0, 9]}, "in_avals have the numbers"),
    ({"out_tree": None}, "no structure"),
    ({"out_tree": {"kind": 9}}, "unknown kind 9"),
    ({"out_tree": {"kind": 4, "children": [{}], "children_names": ["b", "a"]}}, "keys of a dict"),
    ({"unique_avals": [{"dtype": 100}]}, "unknown dtype 100"),
    ({"unique_avals": [{"dtype": 10, "shape": ["-1"]}]}, "has the size '-1'"),
    ({"unique_avals": [{"dtype": 10, "shape": ["- b"]}]}, "has the size '- b'"),
    ({"unique_avals": [{"dtype": 10, "shape": ["b+"]}]}, r"has the size 'b\+'"),
    ({"unique_avals": [{"dtype": 10, "shape": ["mod(" * 200 + "b"]}]}, "has the size 'mod"),
    ({"unique_avals": [{"dtype": 10, "shape": ["b^99*" * 199 + "b"]}]}, "has the size|of 1"),
    ({"unique_avals": [{"dtype": 10, "shape": ["max(a, " * 90 + "b" + ")" * 90]}]}, "has the size|of 1"),
    ({"unique_avals": [{"dtype": 10, "shape": ["\n!"]}]}, "has the size"),
    ({"unique_avals": [{"kind": 1}]}, "is a token"),
    ({"unique_meshes": [{"axis_sizes": [2], "axis_names": [], "axis_types": []}]}, "sizes, names and types"),
    ({"unique_shardings": [{}]}, "has no mesh"),
    ({"disabled_checks": [{"kind": 7}]}, "unknown kind 7"),
    ({"in_shardings": [{"kind": 1, "hlo_sharding": b"x"}, {}]}, "no sharding over 1 devices"),
    ({"vjp": {"serialization_version": 3, "calling_convention_version": 10}}, "no structure"),
]


@pytest.mark.parametrize(("fields", "words"), CHANGES)
def test_files_with_wrong_fields_are_refused(fields, words):
    with pytest.raises(ValueError, match=f"deserialize: .*{words}"):
        export.deserialize(changed(**fields))


def test_programs_of_other_types_are_not_called():
    for fields in ({"out_aval_numbers": [1, 1], "vjp": None}, {"kept": [0], "vjp": None}):
        exported = export.deserialize(changed(**fields))
        with pytest.raises(ValueError, match=r"an Exported, cannot be used: its program (takes|returns)"):
            exported.call({"x": X, "y": 1.0})


@given(st.data())
def test_any_change_of_a_file_is_seen(data):
    blob = bytearray(SAVED)
    if data.draw(st.booleans()):
        del blob[data.draw(st.integers(0, len(blob) - 1)) :]
    else:
        blob[data.draw(st.integers(0, len(blob) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    with pytest.raises(ValueError, match=r"deserialize: blob, of \d+ bytes, is no exported function, or is damaged"):
        export.deserialize(blob)


@given(st.data())
def test_files_without_a_digest_are_read_or_refused_in_words(data):
    blob = bytearray(data.draw(st.sampled_from([changed(module=b"ML"), read("shardings"), read("pair")])))
    for _ in range(data.draw(st.integers(1, 3))):
        blob[data.draw(st.integers(0, len(blob) - 1))] ^= 1 << data.draw(st.integers(0, 7))
    del blob[data.draw(st.integers(0, 2 * len(blob))) :]
    try:
        exported = export.deserialize(blob)
    except ValueError as error:
        assert str(error).startswith("deserialize: ")
    else:
        hash(exported), str(exported.in_tree), exported.in_avals


@given(st.binary(max_size=200))
def test_any_bytes_are_no_file(blob):
    with pytest.raises(ValueError, match="deserialize: blob"):
        export.deserialize(blob)


def test_a_name_that_is_no_text_is_an_error_in_words():
    content = bytes(SAVED[:-DIGEST_SIZE])
    assert content.count(b"main\0") == 2
    changed = content.replace(b"main\0", b"ma\xff\xfe\0")
    exported = export.deserialize(changed + hashlib.sha256(changed).digest())
    for one in (exported, exported.vjp()):
        with pytest.raises(ValueError, match=", an Exported, cannot be used: "):
            one.mlir_module()


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_damaged_programs_do_not_end_the_process(seed):
    blob, generator = bytearray(read("platforms")), np.random.default_rng(seed)
    module = export.deserialize(blob).mlir_module_serialized
    place = blob.index(module) + int(generator.integers(len(module) // 2))
    blob[place : place + 4] = generator.bytes(4)
    exported = export.deserialize(blob)
    try:
        exported.mlir_module()
    except ValueError as error:
        assert str(error).startswith("cholesky, an Exported, cannot be used: its program")


# Flatbuffers


@given(st.recursive(st.just({"kind": 0}), lambda children: st.builds(
    lambda kind, names, c: {"kind": kind, "children_names": names, "children": c}, st.integers(1, 5),
    st.lists(st.text(max_size=5)), st.lists(children),
), max_leaves=20))
def test_records_come_back(record):
    def filled(tree):
        return {"children_names": None, "custom_name": None, "auxdata": None, "children": None} | tree | (
            {"children": [filled(child) for child in tree["children"]]} if "children" in tree else {}
        )

    assert flatbuffers.decode(schema.TREE, bytes(flatbuffers.encode(schema.TREE, record))) == filled(record)


def test_records_that_expand_beyond_the_file_are_refused():
    # 30 tables, each with a vector whose two entries are both the next table.
    data = bytearray(struct.pack("<I", 12))
    for level in range(30):
        data += struct.pack("<4H", 8, 8, 0, 4) + struct.pack("<iI", 8, 4)
        data += struct.pack("<III", 2, 16, 12) if level < 29 else struct.pack("<III", 0, 0, 0)
    with pytest.raises(DamagedFileError, match="its texts and vectors are larger than the file"):
        flatbuffers.decode(schema.TREE, bytes(data))


def test_deep_trees_are_refused():
    deep = 1.0
    for _ in range(400):
        deep = [deep]
    with pytest.raises(ValueError, match="nested too deep"):
        export.export(xtrace.jit(lambda t: 0.0))(deep).serialize()


def test_texts_that_expand_beyond_the_file_are_refused():
    # All texts of the vector are one.
    count, length = 2000, 4000
    text = struct.pack("<I", length) + b"a" * length + b"\0"
    vector = struct.pack("<I", count) + b"".join([struct.pack("<I", 4 * (count - i)) for i in range(count)])
    vtable = struct.pack("<HHH", 6, 8, 4) + bytes(2)
    buffer = struct.pack("<I", 12) + vtable + struct.pack("<iI", 8, 4) + vector + text
    table = flatbuffers.Table({"texts": (0, flatbuffers.Vector(flatbuffers.Text()))})
    with pytest.raises(flatbuffers.DamagedFileError, match="its texts and vectors are larger than the file"):
        flatbuffers.decode(table, buffer)
