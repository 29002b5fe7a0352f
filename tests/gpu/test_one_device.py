"""Programs with meshes and shardings on the first device of any platform: the values of the same without them."""

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import lax
from xtrace.sharding import AxisType, Mesh, NamedSharding, PartitionSpec

P = PartitionSpec
X = np.linspace(-1, 1, 64, dtype=np.float32).reshape(8, 8)
W = np.cos(X)


def mesh_of_first_device(kind=AxisType.Auto):
    return Mesh(np.array(xtrace.devices()[:1]).reshape(1, 1), ("data", "model"), axis_types=(kind,) * 2)


def loss(w, x):
    return jnp.mean(jnp.tanh(x @ w) ** 2)


def automatic(w, x):
    mesh = mesh_of_first_device()
    split = NamedSharding(mesh, P("data", "model"))

    def step(w, x):
        return xtrace.value_and_grad(loss)(lax.with_sharding_constraint(w, NamedSharding(mesh, P(None, "model"))), x)

    return xtrace.jit(step, in_shardings=split, out_shardings=NamedSharding(mesh, P()))(w, x)


def explicit(w, x):
    mesh = mesh_of_first_device(AxisType.Explicit)
    put = [xtrace.device_put(a, NamedSharding(mesh, spec)) for a, spec in ((w, P(None, "model")), (x, P("data", None)))]
    return xtrace.jit(xtrace.value_and_grad(loss))(*put)


def manual(w, x):
    mesh = mesh_of_first_device()

    def step(w, x):
        value, slope = xtrace.value_and_grad(lambda w: loss(w, lax.all_gather(x, "data", tiled=True)))(w)
        return lax.pmean(value, ("data", "model")), lax.psum(lax.ppermute(slope, "data", [(0, 0)]), "data")

    mapped = xtrace.shard_map(
        step, mesh=mesh, in_specs=(P(None, None), P("data", None)), out_specs=(P(), P()), check_vma=False
    )
    return xtrace.jit(mapped)(w, x)


@pytest.mark.parametrize("program", [automatic, explicit, manual], ids=lambda program: program.__name__)
def test_a_training_step_on_a_mesh_of_one_device(program):
    """A step with automatic, explicit and manual axes gives the loss and the gradient of the step without a mesh."""
    value, slope = xtrace.jit(xtrace.value_and_grad(loss))(W, X)
    mapped_value, mapped_slope = program(W, X)
    assert mapped_value.devices() == {xtrace.devices()[0]}
    # The same sums, perhaps in another order.
    bound = 8 * np.finfo(np.float32).eps
    np.testing.assert_allclose(mapped_value, value, rtol=bound)
    np.testing.assert_allclose(mapped_slope, slope, rtol=0, atol=bound * float(abs(slope).max()))
