"""Public functions with arguments of symbolic sizes, exported: their values, and that jax exports no more of them."""

from pathlib import Path
from typing import NamedTuple

import jax
import jax.export
import jax.scipy
import numpy as np
import pytest

import xtrace
from tests.support.exports import assert_equal

pytestmark = pytest.mark.thorough

CONSTRAINTS = ["mod(n, 2) == 0", "n >= 4"]
SIZES = (4, 6, 8)
OTHER_SIZE = 3


class Call(NamedTuple):
    """The text of a call, the shapes of its arguments, and whether it can be exported."""

    text: str
    shapes: tuple[str, ...]
    is_exported: bool

    def __str__(self):
        return f"{self.text} of {' and '.join(self.shapes)}"

    def dtypes_and_shapes(self):
        """Return the dtype and the sizes, as text, of each argument."""
        pairs = [text.rpartition(": ") for text in self.shapes]
        return [(dtype or "float32", shape) for dtype, _, shape in pairs]

    def function(self, P):
        """Return the function of words of a key and of arrays, written with the package P."""
        names = {"P": P, "jnp": P.numpy, "lax": P.lax, "nn": P.nn, "scipy": P.scipy, "random": P.random}

        def called(words, *arrays):
            sizes = {}
            for x, (_, shape) in zip(arrays, self.dtypes_and_shapes(), strict=True):
                sizes |= {name.strip(): n for name, n in zip(shape.split(","), x.shape, strict=True)}
            given = {"key": P.random.wrap_key_data(words), **dict(zip("xy", arrays, strict=False))}
            return eval(self.text, names | given | {name: sizes.get(name) for name in "nm"})

        return called

    def export(self, P):
        """Return the function, exported for symbolic sizes."""
        scope = P.export.SymbolicScope(CONSTRAINTS)
        specs = [
            P.ShapeDtypeStruct(P.export.symbolic_shape(shape, scope=scope), dtype)
            for dtype, shape in self.dtypes_and_shapes()
        ]
        return P.export.export(P.jit(self.function(P)))(P.ShapeDtypeStruct((2,), "uint32"), *specs)

    def arguments(self, size):
        """Return the words of a key, and arrays."""
        random = np.random.default_rng(size)
        arrays = [np.array([1, 2], np.uint32)]
        for dtype, text in self.dtypes_and_shapes():
            shape = [eval(part, {"n": size, "m": OTHER_SIZE}) for part in text.split(",")]
            drawn = random.normal(size=shape) if dtype == "float32" else random.integers(0, 2, shape)
            arrays.append(drawn.astype(dtype))
        return arrays


def calls():
    """Return the calls in the file."""
    found, shapes = [], ()
    for line in (Path(__file__).parent / "symbolic_calls.txt").read_text().splitlines():
        if line.startswith("shapes "):
            shapes = tuple(line.removeprefix("shapes ").split(" | "))
        elif line and not line.startswith("#"):
            found.append(Call(line.removeprefix("not "), shapes, not line.startswith("not ")))
    return found


CALLS = calls()


@pytest.mark.drawn(0.1)
@pytest.mark.parametrize("call", [call for call in CALLS if call.is_exported], ids=str)
def test_a_call_gives_what_it_gives_for_those_sizes(call):
    exported = call.export(xtrace)
    for size in SIZES:
        # One size is compared with jax.
        P = jax if size == SIZES[1] else xtrace
        arguments = call.arguments(size)
        assert_equal(exported.call(*arguments), P.jit(call.function(P))(*arguments), 2048)


@pytest.mark.drawn(0.3)
@pytest.mark.parametrize("call", [call for call in CALLS if not call.is_exported], ids=str)
def test_what_xtrace_does_not_export_jax_does_not_export(call):
    for P in (xtrace, jax):
        # jax's class for what depends on unknown sizes is private.
        with pytest.raises(Exception, match=r"."):
            call.export(P).call(*call.arguments(SIZES[0]))
