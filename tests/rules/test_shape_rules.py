"""The rules of operations that join, split, repeat and reverse."""

import numpy as np
import pytest

from tests.support.rules import check_rules

X = np.arange(1, 7, dtype=np.float32).reshape(2, 3) / 4
Y = np.linspace(-1, 2, 6, dtype=np.float32).reshape(2, 3)
COMPLEX = (X + 1j * Y).astype(np.complex64)
COUNT = np.arange(6, dtype=np.int32).reshape(2, 3)
CASES = {
    "squeeze": (lambda lax, x: lax.squeeze(x, (0, 2)), X.reshape(1, 2, 1, 3)),
    "squeeze the last": (lambda lax, x: lax.squeeze(x, (-1,)), X[..., None]),
    "squeeze nothing": (lambda lax, x: lax.squeeze(x, ()), X),
    "expand_dims": (lambda lax, x: lax.expand_dims(x, (0, 2)), X),
    "broadcast": (lambda lax, x: lax.broadcast(x, (2,)), X),
    "collapse": (lambda lax, x: lax.collapse(x, 0, 2), X.reshape(3, 2, 1)),
    "concatenate": (lambda lax, x, y: lax.concatenate([x, y, x], 0), X, Y[:1]),
    "concatenate columns": (lambda lax, x, y: lax.concatenate([x, y], 1), X, Y[:, :2]),
    "concatenate with a constant": (lambda lax, x: lax.concatenate([x, Y.astype(x.dtype)], 1), X),
    "concatenate of complex": (lambda lax, x, y: lax.concatenate([x, y], 0), COMPLEX, COMPLEX[:1]),
    "concatenate of integers": (lambda lax, x, y: lax.concatenate([x, y], 0), COUNT, COUNT[:1]),
    "stack": (lambda lax, x, y: lax.stack([x, y], 0), X, Y),
    "stack in the middle": (lambda lax, x, y: lax.stack([x, y, x], 1), X, Y),
    "stack behind": (lambda lax, x: lax.stack([x, Y.astype(x.dtype)], -1), X),
    "unstack": (lambda lax, x: lax.unstack(x, 0), X),
    "unstack columns": (lambda lax, x: lax.unstack(x, 1), X),
    "unstack and use one": (lambda lax, x: lax.unstack(x, 1)[1], X),
    "split": (lambda lax, x: lax.split(x, (1, 0, 2), 1), X),
    "split and use one": (lambda lax, x: lax.sin(lax.split(x, (1, 1), 0)[1]), X),
    "tile": (lambda lax, x: lax.tile(x, (2, 3)), X),
    "tile no times": (lambda lax, x: lax.tile(x, (1, 0)), X),
    "rev": (lambda lax, x: lax.rev(x, (0, 1)), X),
    "rev rows": (lambda lax, x: lax.rev(x, (0,)), X),
    "full of an operand": (lambda lax, x: lax.full((2, 3), x), X[0, 0]),
    "full_like": (lambda lax, x, y: lax.full_like(x, y), X, Y[0, 0]),
    "iota": (lambda lax, x: lax.mul(x, lax.broadcasted_iota(x.dtype, (2, 3), 1)), X),
    "copy": (lambda lax, x: lax.copy_p.bind(x), X),
    "optimization_barrier": (lambda lax, x, y: lax.optimization_barrier((x, y)), X, Y),
    "composed": (lambda lax, x: lax.rev(lax.concatenate([lax.sin(x), lax.tile(x, (1, 2))], 1), (1,)), X),
}


@pytest.mark.drawn(0.2)
@pytest.mark.parametrize("name", CASES)
def test_rules_agree(name):
    function, *operands = CASES[name]
    check_rules(function, *operands)
