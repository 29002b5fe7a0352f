"""Functions exported for symbolic shapes: values and gradients of many programs, files from and for jax, and errors."""

import functools
import gc
import re

import jax
import jax.export
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.support.exports import assert_equal, read_golden
from tests.support.symbolic_programs import programs
from xtrace import export, lax
from xtrace._src.core import tables

pytestmark = pytest.mark.thorough

PACKAGES = {"xtrace": xtrace, "jax": jax}
NAMES = [program.name for program in programs(xtrace)]

# What jax cannot export for symbolic shapes, and xtrace can.
NOT_IN_JAX = {"scan unroll", "scan length", "dim float", "searchsorted", "associative scan", "median"}
# Programs whose files the other package reads: one of each kind of operation.
IN_FILES = [
    "network", "mean by shape", "arange", "reshape dims", "concatenate", "pad", "slice all but last", "slice step",
    "reverse", "var std", "einsum", "attention", "conv stride", "conv same unknown", "maxpool", "take", "at add",
    "dynamic slice", "dynamic update", "scan", "cond", "while", "fori", "sort", "cumsum", "random normal",
    "grad inside", "vmap nested", "jit of jit", "mod constraint", "cross entropy", "top k", "cholesky", "solve", "sdpa",
    "floordiv dim", "sub dims", "meshgrid",
]


def struct(*shape, dtype="float32"):
    return xtrace.ShapeDtypeStruct(shape, dtype)


def ones(*shape):
    return np.ones(shape, np.float32)


@functools.cache
def program(package, name):
    return next(p for p in programs(PACKAGES[package]) if p.name == name)


def exported_by(package, name):
    made = program(package, name)
    return PACKAGES[package].export.export(PACKAGES[package].jit(made.function))(*made.specs(PACKAGES[package]))


# Programs


@pytest.mark.parametrize("name", NAMES)
def test_a_call_gives_what_the_function_gives_for_those_sizes(name):
    mine, exported = program("xtrace", name), exported_by("xtrace", name)
    for sizes in mine.sizes:
        args = mine.arguments(sizes)
        assert_equal(exported.call(*args), xtrace.jit(mine.function)(*args), 256)
    if mine.has_gradient:
        assert_equal(mine.gradient(xtrace, exported.call, args), mine.gradient(xtrace, mine.function, args), 256)


@pytest.mark.parametrize("writer", PACKAGES)
@pytest.mark.parametrize("name", IN_FILES)
def test_the_other_package_reads_and_runs_the_file(name, writer):
    reader = "jax" if writer == "xtrace" else "xtrace"
    write, read = PACKAGES[writer], PACKAGES[reader]
    mine, exported = program(reader, name), exported_by(writer, name)
    order = int(mine.has_gradient)
    data = exported.serialize(vjp_order=order)
    restored = read.export.deserialize(bytearray(data))
    assert str(restored.in_avals) == str(exported.in_avals)
    assert restored.uses_global_constants and exported.uses_global_constants
    args = mine.arguments(mine.sizes[0])
    assert_equal(restored.call(*args), read.jit(mine.function)(*args), 256)
    if mine.has_gradient:
        assert_equal(mine.gradient(read, restored.call, args), mine.gradient(read, mine.function, args), 256)
    again = write.export.deserialize(bytearray(restored.serialize(order)))
    assert str(again.in_avals) == str(exported.in_avals) and str(again.out_avals) == str(restored.out_avals)


@pytest.mark.parametrize("name", sorted(NOT_IN_JAX))
def test_jax_reads_programs_that_it_cannot_write(name):
    mine = program("xtrace", name)
    restored = jax.export.deserialize(bytearray(exported_by("xtrace", name).serialize()))
    args = mine.arguments(mine.sizes[1])
    assert_equal(restored.call(*args), xtrace.jit(mine.function)(*args), 256)


@pytest.mark.parametrize("name", ["unknown_sizes", "symbolic_sizes"])
def test_golden_files_are_read(name):
    exported = export.deserialize(read_golden(name))
    x, y = np.arange(20, dtype=np.float32).reshape(4, 5), np.arange(3, dtype=np.float32)
    if name == "unknown_sizes":
        assert str(exported.in_avals[0].shape) == "(b,)"
        np.testing.assert_array_equal(exported.call(y), y * 2)
        return
    assert [str(aval.shape) for aval in exported.in_avals] == ["(b, 2*n + 1)", "(max(b, n) - 1,)"]
    first, second = exported.call(x, y)
    np.testing.assert_allclose(first, np.cumsum(x.reshape(2, 2, 5), 0) / 5, 1e-6)
    np.testing.assert_allclose(second, y * np.arange(3), 1e-6)
    gradient = xtrace.grad(lambda x: exported.call(x, y)[0].sum())(x)
    np.testing.assert_allclose(gradient, np.repeat([[2 / 5] * 5, [1 / 5] * 5], 2, axis=0), 1e-6)
    with pytest.raises(ValueError, match=r"cannot be called with .*constraint n <= 8"):
        exported.call(ones(2, 19), ones(8))


def test_the_types_are_those_of_jax():
    for enabled, dtype in ((False, "int32"), (True, "int64")):
        with xtrace.enable_x64(enabled):
            (n,) = export.symbolic_shape("n")
            exported = export.export(xtrace.jit(lambda x: x.shape[0] + jnp.arange(x.shape[0] // 2)))(struct(n))
            assert str(exported.out_avals) == f"(ShapedArray({dtype}[floordiv(n, 2)]),)"
            np.testing.assert_array_equal(exported.call(ones(5)), [5, 6])


def test_jaxprs_show_sizes():
    (n,) = export.symbolic_shape("n")
    text = str(xtrace.make_jaxpr(lambda x: x * x.shape[0])(struct(n, 3)))
    assert "f32[n,3]" in text and "dim(n)" in text
    assert str(xtrace.eval_shape(lambda x: x @ x.T, struct(n, 3)).shape) == "(n, n)"


# Calls

N, B = export.symbolic_shape("n, b")
SUMS = export.export(xtrace.jit(lambda x: x.sum(0) * x.shape[0]))(struct(N, B))


def test_calls_under_jit_and_transformations():
    x = np.arange(6, dtype=np.float32).reshape(2, 3)
    both = xtrace.jit(lambda x, y: SUMS.call(x).sum() + SUMS.call(y).sum())
    assert both(x, x[:1]) == x.sum() * 2 + x[0].sum()
    np.testing.assert_array_equal(xtrace.grad(lambda x: SUMS.call(x).sum())(x), np.full((2, 3), 2.0))
    value, back = xtrace.vjp(SUMS.call, x)
    np.testing.assert_array_equal(back(value)[0], np.tile(np.asarray(value) * 2, (2, 1)))
    np.testing.assert_array_equal(xtrace.vmap(SUMS.call)(np.stack([x, 2 * x]))[1], SUMS.call(2 * x))


def test_second_derivatives_come_from_the_file():
    (n,) = export.symbolic_shape("n")
    exported = export.export(xtrace.jit(lambda x: (x**3).sum() / x.shape[0]))(struct(n))
    restored = export.deserialize(exported.serialize(vjp_order=2))
    x = np.array([1.0, 2.0], np.float32)
    second = xtrace.grad(lambda x: xtrace.grad(restored.call)(x).sum())(x)
    np.testing.assert_allclose(second, 6 * x / 2, 1e-6)


def test_an_exported_function_calls_another_one():
    for inner in (SUMS, export.deserialize(SUMS.serialize(vjp_order=1))):
        b, n = export.symbolic_shape("b, n")
        outer = export.export(xtrace.jit(
            lambda x, y, inner=inner: inner.call(x)[None] + inner.call(jnp.concatenate([x, y])) * 2
        ))(struct(b, 3), struct(n, 3))
        assert str(outer.out_avals[0].shape) == "(1, 3)"
        x = np.arange(6, dtype=np.float32).reshape(2, 3)
        for y in (x, x[:1]):
            expected = x.sum(0) * 2 + np.concatenate([x, y]).sum(0) * (2 + len(y)) * 2
            for read in (outer, jax.export.deserialize(bytearray(outer.serialize()))):
                np.testing.assert_allclose(read.call(x, y), expected[None], 1e-6)
        gradient = xtrace.grad(lambda x, outer=outer: outer.call(x, x).sum())(x)
        np.testing.assert_allclose(gradient, np.full((2, 3), 18.0), 1e-6)


def test_a_function_for_several_platforms():
    exported = export.export(xtrace.jit(lambda x: jnp.linalg.cholesky(x) * x.shape[0]), platforms=["tpu", "cpu"])(
        struct(N, 2, 2)
    )
    squares = np.array([np.eye(2)] * 3, np.float32)
    for read in (exported, jax.export.deserialize(bytearray(exported.serialize()))):
        np.testing.assert_allclose(read.call(squares), squares * 3, 1e-6)


def test_loops_do_not_round_down_to_none():
    # The carry of a loop over no elements is returned.
    (n,) = export.symbolic_shape("n")
    exported = export.export(xtrace.jit(lambda x: lax.scan(lambda c, y: (c + y, c), 1.0, x[1:])))(struct(n))
    for size in (1, 2, 4):
        carry, rows = exported.call(ones(size))
        assert carry == size and rows.shape == (size - 1,)


def _living_scopes():
    gc.collect()
    return sum(type(x) is export.SymbolicScope for x in gc.get_objects())


@pytest.mark.parametrize("constraint", ["n >= 2", "n >= {}"], ids=["equal", "different"])
def test_what_exports_leave_is_in_bounded_tables(constraint, monkeypatch):
    def export_many():
        for i in range(20):
            (n,) = export.symbolic_shape("n", constraints=[constraint.format(i + 2)])
            export.export(xtrace.jit(lambda x: x.sum() + x.shape[0]))(struct(n))

    xtrace.clear_caches()
    others = _living_scopes()
    export_many()
    for reference in list(tables._tables.values()):
        table = reference()
        if table is not None:
            monkeypatch.setattr(table, "limit", min(table.limit, 4))
    export_many()
    assert _living_scopes() - others <= 5
    xtrace.clear_caches()
    assert _living_scopes() == others


# Errors of calls

SCOPE = export.SymbolicScope(["b <= 4", "mod(c, 2) == 0"])
CHECKED = export.export(xtrace.jit(lambda x, y: x.sum() + y["w"].sum()))(
    struct(*export.symbolic_shape("2*b + 1, b", scope=SCOPE)),
    {"w": struct(*export.symbolic_shape("b, c", scope=SCOPE))},
)


@pytest.mark.parametrize(("first", "second", "message"), [
    ((5,), (2, 4), r"args[0] of <lambda>: it was exported for float32[2*b + 1,b] and is called with float32[5]"),
    ((4, 2), (2, 4), r"args[0].shape[0] of <lambda>: no integer b makes 2*b + 1 the size 4"),
    ((1, 0), (0, 4), r"args[0].shape[0] of <lambda>: the size 1 means b = 0, and dimension variables are 1 or more"),
    ((5, 3), (2, 4), r"args[0].shape[1] of <lambda>: the size is 3, and b is 2"),
    ((5, 2), (3, 4), r"args[1]['w'].shape[0] of <lambda>: the size is 3, and b is 2"),
    ((11, 5), (5, 4), r"the constraint b <= 4 does not hold for b = 5, c = 4"),
    ((5, 2), (2, 3), r"the constraint mod(c, 2) == 0 does not hold for b = 2, c = 3"),
])
def test_sizes_that_do_not_fit_are_named(first, second, message):
    assert CHECKED.call(ones(5, 2), {"w": ones(2, 4)}) == 18
    for call in (CHECKED.call, xtrace.jit(CHECKED.call), xtrace.grad(CHECKED.call)):
        with pytest.raises(ValueError, match=re.escape(message)):
            call(ones(*first), {"w": ones(*second)})
    # The program checks what files do not say.
    restored = export.deserialize(CHECKED.serialize())
    theirs = jax.export.deserialize(bytearray(CHECKED.serialize()))
    for read in (restored, theirs):
        with pytest.raises(ValueError):
            read.call(ones(*first), {"w": ones(*second)})


def test_the_constraint_is_named_by_a_file_as_well():
    restored = export.deserialize(CHECKED.serialize())
    with pytest.raises(ValueError, match=(
        r"cannot be called with \(float32\[11,5\], float32\[5,4\]\): Input shapes do not match .*"
        r"constraint b <= 4 does not hold: found 5 and 4"
    )):
        restored.call(ones(11, 5), {"w": ones(5, 4)})


def test_variables_must_follow_from_the_shapes():
    with pytest.raises(ValueError, match=r"Cannot solve for values of dimension variables b, n: x.shape\[0\] = b\*n"):
        export.export(xtrace.jit(lambda x: x))(struct(B * N))
    (other,) = export.symbolic_shape("m")
    with pytest.raises(ValueError, match="dimension variable 'm', which is not appearing"):
        export.export(xtrace.jit(lambda x: jnp.zeros(other)))(struct(N))


def test_the_shapes_of_all_arguments_have_one_scope():
    for package, exporter in ((xtrace, export), (jax, jax.export)):
        x, y = [package.ShapeDtypeStruct(exporter.symbolic_shape(f"n, {size}"), np.float32) for size in "ab"]
        message = r"Expected current \(from args\[0\]\) scope .*for 'n' \(kwargs\['y'\]\) scope"
        with pytest.raises(ValueError, match=f"(?s)Invalid mixing of symbolic scopes when exporting .*{message}"):
            exporter.export(package.jit(lambda x, y: x))(x, y=y)


def test_sizes_only_in_arguments_that_are_not_read():
    exported = export.export(xtrace.jit(lambda x, y: y.shape[0] * 1.0))(struct(3), struct(N))
    assert exported.module_kept_var_idx == (0, 1) and exported.call(ones(3), ones(7)) == 7


def test_programs_for_symbolic_shapes_do_not_run_themselves():
    lowered = xtrace.jit(lambda x: x + 1).lower(struct(N))
    assert "tensor<?xf32>" in lowered.as_text()
    with pytest.raises(ValueError, match=r"arguments have the symbolic sizes n.*export"):
        lowered.compile()


@pytest.mark.parametrize(("function", "error", "message"), [
    (lambda x: x + jnp.ones(x.shape[0]), ValueError, "Incompatible shapes"),
    (lambda x: x.reshape(3, -1), TypeError, "does not divide"),
    (lambda x: [0 for _ in range(x.shape[0])], xtrace.errors.InconclusiveDimensionOperation, "'n' used in a context"),
    (lambda x: jnp.linspace(0, 1, x.shape[0]), xtrace.errors.InconclusiveDimensionOperation, r"constraints=\[\"n "),
    (lambda x: xtrace.random.permutation(xtrace.random.key(0), x), NotImplementedError, "the symbolic dimension"),
    (lambda x: xtrace.grad(lambda y: jnp.prod(y))(x), NotImplementedError, "symbolic size"),
])
def test_what_cannot_be_exported_says_why(function, error, message):
    with pytest.raises(error, match=message):
        export.export(xtrace.jit(function))(struct(N, B))
