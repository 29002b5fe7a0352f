"""Bad input that jax refuses is refused, with an error of jax's class and in words of the function that was called."""

import operator

import jax
import jax.ffi
import jax.numpy
import numpy as np
import pytest

import xtrace
import xtrace.ffi
import xtrace.numpy
from xtrace._src.core.diagnostics.abbreviation import abbreviate
from xtrace._src.core.pytrees import pytree

# Expressions in the package P, its numpy and lax, and parts of our message.
REFUSED = [
    ("P.debug.print(x=1)", "without a format.*got x"),
    ("P.debug.print(ordered=True, end='')", "without a format.*got end"),
    ("call(legacy_backend_config='a')(v)", "legacy_backend_config needs a custom_call_api_version below 4"),
    ("call(custom_call_api_version=2, legacy_backend_config=1)(v)", "must be a string, got 1"),
    ("call(custom_call_api_version=2)(v, a=1)", "attributes need custom_call_api_version=4"),
    ("call(output_layouts=[(0,)])(v)", "output_layouts must be permutations"),
    ("P.ffi.ffi_call('f', None)", "result 0 is None"),
    ("P.jit(max, donate_argnames='x')", "max cannot be read.*donate_argnums"),
    ("P.jit(max, donate_argnames=('x', 'y'))", "max cannot be read"),
    ("jnp.vectorize(lambda a, b: a, signature='(n),(n)->(n)')(v, None)", "argument 1 .* is None.*excluded"),
    ("jnp.vectorize(lambda a, b: a, signature='(n),(n)->(n)', excluded={1})(v, v)", "expected 2, got 1"),
    ("lax.linalg.qdwh(v[:, None], dynamic_shape=(1,))", "qdwh: dynamic_shape must be a pair of integers"),
    ("lax.linalg.qdwh(v[:, None], dynamic_shape=3)", "qdwh: dynamic_shape must be a pair of integers"),
    ("P.vmap(lambda a: lax.psum(a, 'i', axis_index_groups=3), axis_name='i')(v)", "psum: axis_index_groups must hold"),
    ("P.vmap(lambda a: lax.all_gather(a, 'i', axis_index_groups=3), axis_name='i')(v)", "all_gather: axis_index"),
    ("P.vmap(lambda a: lax.ppermute(a, 'i', [3]), axis_name='i')(v)", "ppermute: perm must hold pairs"),
    ("lax.sort((v, v), num_keys='a')", "sort: num_keys must be an integer, got 'a'"),
    ("lax.reduce_precision(1.0, 1.5, 2)", "reduce_precision: exponent_bits must be an integer, got 1.5"),
    ("lax.reduce_precision(1.0, 2, 1.5)", "reduce_precision: mantissa_bits must be an integer, got 1.5"),
    ("lax.top_k(v, 1.5)", "top_k: k must be an integer, got 1.5"),
    ("lax.reduce(v, 0.0, None, (0,))", "reduce: Expected a callable value, got None"),
    ("lax.reduce(v, 0.0, lax.add, ('a',))", "reduce: dimensions must be a sequence of integers"),
    ("lax.reduce(v, 0.0, lax.add, (3,))", r"reduce: dimensions \(3,\) contains out-of-bounds"),
    ("lax.reduce(v, 0.0, lambda a, b: 'x', (0,))", "reduce: the result of computation: 'x'"),
    ("lax.reduce_window(v, 0.0, None, (2,), (1,), 'VALID')", "reduce_window: Expected a callable"),
    ("P.jit(operator.index)(1.5)", r"a scalar of an integer type.*float32\[\]"),
    ("P.jit(lambda n: [1, 2][n])(jnp.zeros(2, int))", r"int32\[2\].*one element"),
    ("P.vmap(operator.index)(v)", r"a scalar of an integer type"),
    ("P.vmap(lambda x: x, in_axes=np.arange(5000))(v)", "in_axes must be an int.*got ndarray of type int64.5000.[.]$"),
    ("P.vjp(lambda x: 2 * x, v)[1](v, v)", "of <lambda> takes one argument .*; got 2 by position"),
    ("P.vjp(lambda x: 2 * x, v)[1]()", "got 0 by position"),
    ("P.vjp(lambda x: 2 * x, v)[1](v, name=1)", "got 1 by position and name by name"),
    ("P.linear_transpose(lambda x: 2 * x, v)(v, v)", "linear_transpose.*got 2 by position"),
    ("P.vjp(lambda x: 2 * x, 3)[1](v)", r"must have the type of the result of <lambda>, float0\[\]; got f32\[3\]"),
]
# Several differences are listed, each with its path.
LISTED = [
    ("P.tree.map(lambda a, b: a, {'a': 1, 'b': [1], 'c': (1,)}, {'a': 1, 'b': (1,), 'c': (1, 2)})",
     ["at 2 places", "['b']: list of length 1 against tuple", "['c']: tuple of length 1 against tuple of length 2"]),
    ("P.device_put([1, [2, 3], (4, 5)], [None, [None], (None,)])", ["device_put", "[1]: list", "[2]: tuple"]),
    ("P.vmap(lambda x: x, in_axes=({'a': (0, 0), 'b': [0]},))({'a': v, 'b': [v, v]})",
     ["in_axes", "[0]['a']: tuple", "[0]['b']: list"]),
    ("P.vmap(lambda x: {'a': x, 'b': [x]}, out_axes={'a': (0,), 'b': (0,)})(v)",
     ["out_axes", "['a']: tuple", "['b']: tuple"]),
    ("P.jvp(lambda x: x, ({'a': v, 'b': [v]},), ({'a': [v], 'b': v},))", ["[0]['a']: a leaf", "[0]['b']: list"]),
    ("P.jvp(lambda x: x, ({'a': v, 'b': v, 'c': v},), ({'a': v, 'b': v[:2], 'c': v[1:2]},))",
     ["jvp: 2 arguments are wrong", "x['b'] of", "x['c'] of"]),
    ("P.vjp(lambda x: x, {'a': v, 'b': v})[1]({'a': v[:2], 'b': v[:1]})", ["at ['a'] must", "at ['b'] must"]),
    ("lax.cond(True, lambda: [1, (2,)], lambda: [(1,), 2])", ["[0]: a leaf against tuple", "[1]: tuple"]),
    ("lax.scan(lambda c, _: ({'a': [1], 'b': (1,)}, None), {'a': 1, 'b': 1}, None, 3)", ["['a']: a leaf", "['b']:"]),
    ("lax.while_loop(lambda c: False, lambda c: [v, c[1][:1]], [v[:1], v])", ["c[0]", "c[1]"]),
    ("P.vmap(lambda x: x, in_axes=3)((v, v))", ["vmap", "[0]", "[1]"]),
]


def outcome(package, text):
    """The error of an expression in one of the packages."""
    numpy = package.numpy
    described = package.ShapeDtypeStruct((3,), np.float32)
    names = {
        "P": package, "jnp": numpy, "lax": package.lax, "np": np, "operator": operator, "v": numpy.ones(3),
        "call": lambda **options: package.ffi.ffi_call("f", described, **options),
    }
    with pytest.raises(Exception) as caught:
        eval(text, names)
    return caught.value


def check_class(mine, theirs):
    """Assert that a handler for the built-in class of jax's error takes ours."""
    assert isinstance(mine, next(kind for kind in type(theirs).__mro__ if kind.__module__ == "builtins"))


@pytest.mark.parametrize(("text", "words"), REFUSED, ids=lambda value: value)
def test_refused_as_in_jax(text, words):
    mine = outcome(xtrace, text)
    assert "<locals>" not in str(mine)
    with pytest.raises(type(mine), match=f"(?s){words}"):
        raise mine
    if "layouts" not in text:  # XLA would tell, when the program is compiled
        check_class(mine, outcome(jax, text))


@pytest.mark.parametrize(("text", "parts"), LISTED, ids=lambda value: value if isinstance(value, str) else "")
def test_all_differences_are_listed(text, parts):
    mine = outcome(xtrace, text)
    for part in parts:
        assert part in str(mine)
    check_class(mine, outcome(jax, text))


def test_long_lists_of_differences_are_cut():
    with pytest.raises(ValueError, match=r"(?s)at 30 places.*and 20 more\n$") as caught:
        pytree.tree_map(lambda a, b: a, [(1,)] * 30, [[1]] * 30)
    assert str(caught.value).count("\n") == 12


def test_values_in_messages_are_short():
    with pytest.raises(TypeError, match="cannot become part of another program") as caught:
        compiled = xtrace.jit(lambda x: x + 1).lower(xtrace.numpy.ones((40, 40))).compile()
        xtrace.vmap(compiled)(xtrace.numpy.ones((2, 40, 40)))
    assert "f32[40,40]" in str(caught.value) and "\n" not in str(caught.value)
    assert abbreviate(np.ones((30, 40))) == "ndarray of type float64[30,40]"
    assert abbreviate({"a": [np.ones(900), 1]}) == "{'a': [ndarray of type float64[900], 1]}"
    assert abbreviate(np.arange(3)) == "array([0, 1, 2])"
    assert len(abbreviate(list(range(9999)))) < 200 and len(abbreviate("a" * 9999)) <= 200
    assert abbreviate(np.ndarray) == "<class 'numpy.ndarray'>"


def test_functions_made_by_functions_are_named_plainly():
    linear = xtrace.linearize(lambda x: 2 * x, 1.0)[1]
    with pytest.raises(TypeError, match=r"^linear_function\(\) got an unexpected keyword"):
        linear(1.0, name=1)


@pytest.mark.parametrize("mode", ["auto", "quiet_remove_frames", "remove_frames", "off"])
def test_modes_of_traceback_filtering_add_what_they_add_in_jax(mode):
    added = []
    for package in (xtrace, jax):
        before = package.config.values["jax_traceback_filtering"]
        package.config.update("jax_traceback_filtering", mode)
        try:
            error = outcome(package, "P.jit(lambda x: jnp.reshape(x, 7))(v)")
        finally:
            package.config.update("jax_traceback_filtering", before)
        added.append((len(getattr(error, "__notes__", ())), type(error.__cause__).__name__))
    assert added[0] == added[1]


# Flags that do not hash, Python integers that the integer type does not hold, and arguments in the place of dtypes
# and axes; and good calls among them.
ARGUMENTS = [
    *(f"jnp.{call}" for call in (
        "sum(x, keepdims=[1])", "sum(x, keepdims={})", "nansum(x, keepdims=[])", "var(x, keepdims=np.ones(2))",
        "angle(v, deg={})", "angle(v, [1])", "isclose(v, v, equal_nan=np.ones(2))", "linspace(0, 1, endpoint=[])",
        "vander(v, increasing=[1])", "cov(v, rowvar={})", "union1d(v, v, size=3, fill_value={1})",
        "polyfit(v, v, 1, full=[])", "setxor1d(v, v, size=2, assume_unique=[])", "mean(x, keepdims='yes')",
        "add(v, 2**70)", "add(-2**70, v)", "exp(2**70)", "full(3, 2**70, np.float32)",
        "sum(v, axis=2**70)", "mean(v, axis=np.int32(7))",
        "sum(v, dtype=np.float32(1))", "zeros(2, np.int8(1))", "zeros(2, 1)",
        "sum(v, dtype=v)", "zeros(2, v)", "sum(v, dtype={})",
        "sum(v, axis=np.ones(2))", "cumsum(v, axis=[[1], [1, 2]])",
    )),
    *(f"lax.{call}" for call in (
        "sort(x, is_stable=[1])", "linalg.qr(x, full_matrices=[1])",
        "broadcast_shapes({1}, (4,))", "shape_as_value({1})",
    )),
    "P.custom_jvp(abs, nondiff_argnums=7)", "P.custom_vjp(abs, nondiff_argnums=True)", "P.named_scope(True)",
    "P.numpy_rank_promotion(7)", "P.default_matmul_precision(7)",
    "P.random.key(2**70)", "P.random.key(-9)", "P.random.fold_in(P.random.key(0), -9)", "jnp.empty({1})",
    "P.random.fold_in(P.random.key(0), 2**70)", "P.random.fold_in(P.random.key(0), 1.5)", "jnp.full(3, 2**70)",
    "jnp.zeros((n for n in (2,)))", "jnp.broadcast_shapes((2, 3), {1})", "jnp.sort(x, axis=True)",
    "v * 2**40", "2**40 - v", "P.jit(lambda x: x + 2**31)(v)", "lax.add(v, 2**70)",
]


@pytest.mark.parametrize("text", ARGUMENTS)
def test_arguments_are_judged_as_in_jax(text):
    """Eagerly and traced: taken by both, or refused by both with an error of jax's class."""
    for traced in (False, True):
        found = []
        for package in (xtrace, jax):
            names = {"P": package, "jnp": package.numpy, "lax": package.lax, "np": np}
            x = np.ones((2, 3), np.float32)

            def call(x, names=names):
                return eval(text, {**names, "x": x, "v": x[0]})

            try:
                found.append(package.eval_shape(call, x) if traced else call(package.numpy.asarray(x)))
            except Exception as error:
                found.append(error)
        mine, theirs = found
        assert isinstance(mine, Exception) == isinstance(theirs, Exception), (mine, theirs)
        if isinstance(theirs, Exception):
            check_class(mine, theirs)
