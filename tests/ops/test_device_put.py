"""`device_put` as an operation, and memories: what is recorded, differentiated, batched and written."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

import xtrace
import xtrace.numpy as xnp
from tests.support.operands import assert_same
from xtrace.lax import cond, device_put_p, scan
from xtrace.memory import Space

HOST, DEVICE = (Space.Host, jax.memory.Space.Host), (Space.Device, jax.memory.Space.Device)
X = np.linspace(-1, 1, 4, dtype=np.float32)


def shown(avals):
    """Return the types in jaxprs' words."""
    return [a.str_short(short_dtypes=True) for a in avals]


def equations(jaxpr, name="device_put"):
    """Return what the equations of that name say, in order, devices by their text; inner jaxprs included."""
    found = []
    for e in jaxpr.eqns:
        if e.primitive.name == name:
            types = shown([v.aval for v in e.outvars])
            found.append((types, *[str(e.params[k]) for k in ("devices", "srcs", "copy_semantics")]))
        for inner in [e.params[k] for k in ("jaxpr", "call_jaxpr") if k in e.params]:
            found += equations(getattr(inner, "jaxpr", inner), name)
    return found


RECORDED = {
    "nowhere": lambda lib, np_, host, device: lambda x: lib.device_put(np_.sin(x)),
    "a device": lambda lib, np_, host, device: lambda x: lib.device_put(np_.sin(x), lib.devices()[0]),
    "memories": lambda lib, np_, host, device: lambda x: lib.device_put([x, 2 * x], [host, device]),
    "a scalar": lambda lib, np_, host, device: lambda x: lib.device_put((3.0, x[0]), host),
    "source": lambda lib, np_, host, device: lambda x: lib.device_put(x, device, src=host),
    "copy": lambda lib, np_, host, device: lambda x: lib.device_put(x, host, may_alias=False),
    "donated": lambda lib, np_, host, device: lambda x: lib.device_put({"a": x}, host, donate=True),
    "computed with": lambda lib, np_, host, device: lambda x: np_.sin(2 * lib.device_put(x, host)).sum()[None] ** 2,
    "gradient": lambda lib, np_, host, device: lib.grad(
        lambda x: np_.sin(lib.device_put(np_.sin(x), lib.devices()[0])).sum()
    ),
    "tangent": lambda lib, np_, host, device: lambda x: lib.jvp(lambda x: lib.device_put(x, host), (x,), (x,)),
    "mapped": lambda lib, np_, host, device: lib.vmap(lambda x: lib.device_put([np_.sin(x), x], host)),
}


@pytest.mark.parametrize("name", RECORDED)
def test_equations_are_those_of_jax(name):
    ours, theirs = (
        RECORDED[name](lib, np_, *[space[i] for space in (HOST, DEVICE)])
        for i, (lib, np_) in enumerate(((xtrace, xnp), (jax, jnp)))
    )
    found, expected = xtrace.make_jaxpr(ours)(X), jax.make_jaxpr(theirs)(X)
    assert equations(found) == equations(expected) and equations(found)
    assert shown(found.out_avals) == shown(expected.out_avals)
    assert_same(xtrace.jit(ours)(X), jax.jit(theirs)(X), 8)
    assert_same(ours(xnp.asarray(X)), theirs(jnp.asarray(X)), 8)


def test_gradients_come_back_where_the_values_were():
    def f(x):
        on_host = xtrace.device_put(xnp.sin(x), Space.Host)
        return xnp.sin(xtrace.device_put(on_host, Space.Device)).sum()

    gradient = xtrace.grad(f)
    assert_same(gradient(X), np.cos(np.sin(X)) * np.cos(X), 8)
    second = xtrace.jit(xtrace.jacfwd(xtrace.grad(f)))(X)
    expected = jax.jacfwd(jax.grad(lambda x: jnp.sin(jnp.sin(x)).sum()))(X)
    assert_same(second, expected, 32)
    spaces = [e.params["devices"] for e in xtrace.make_jaxpr(gradient)(X).eqns if e.primitive is device_put_p]
    assert spaces == [(Space.Host,), (Space.Device,), (Space.Host,), (Space.Device,)]


def test_arrays_in_the_memory_of_the_host():
    moved = xtrace.device_put(X, Space.Host)
    assert moved.aval.str_short(short_dtypes=True) == "f32<host>[4]" and moved.sharding.memory_kind == "pinned_host"
    made = xtrace.jit(lambda x: (xtrace.device_put(x, Space.Host), 2 * x))(X)
    assert made[0].sharding.memory_kind == "pinned_host" and made[1].sharding.memory_kind != "pinned_host"
    assert (moved + 1).sharding.memory_kind == "pinned_host"
    there = xtrace.device_put(moved, xtrace.devices()[0])
    np.testing.assert_array_equal(there, X)
    assert there.aval.memory_space is Space.Device
    for x in (moved, made[0]):
        np.testing.assert_array_equal(x, X)
        back = xtrace.device_put(x, Space.Device)
        assert back.aval == xnp.asarray(X).aval and xtrace.jit(lambda y: y + 1)(x).aval.memory_space is Space.Host
        np.testing.assert_array_equal(back, X)
    key = xtrace.random.key(0)
    there = xtrace.device_put(key, Space.Host)
    np.testing.assert_array_equal(xtrace.random.key_data(there), xtrace.random.key_data(key))
    with pytest.warns(UserWarning, match="donated buffers were not usable: x"):
        text = xtrace.jit(lambda x: xtrace.device_put(x, Space.Device), donate_argnums=0).lower(moved).as_text()
    assert '%arg0: tensor<4xf32> {mhlo.memory_kind = "pinned_host"}) -> (tensor<4xf32>' in text


def test_text():
    def f(x):
        return xnp.sin(xtrace.device_put(xtrace.device_put(x, Space.Host), Space.Device))

    def annotations(f, x, platform):
        text = f.trace(x).lower(lowering_platforms=(platform,)).as_text()
        return [line.split("(")[0].split("@")[1] + line.split("{")[1] + line.split("{")[-1].split("}")[0]
                for line in text.splitlines() if "custom_call" in line]

    theirs = jax.jit(lambda x: jnp.sin(jax.device_put(jax.device_put(x, HOST[1]), DEVICE[1])))
    for platform in ("tpu", "cuda"):
        found = annotations(xtrace.jit(f), X, platform)
        assert found == annotations(theirs, X, platform) and len(found) == 2
    assert "custom_call" not in xtrace.jit(f).lower(X).as_text()


def test_operands_in_different_memories():
    moved = xtrace.device_put(X, Space.Host)
    for f in (lambda: moved + X, lambda: xtrace.jit(lambda x: xnp.concatenate([moved, x]))(X)):
        with pytest.raises(ValueError, match=r"all operands must be in one memory, got f32<host>\[4\], f32\[4\]"):
            f()
    with pytest.raises(TypeError, match=r"float32\[4\] .* float32<host>\[4\], so the memories do not match"):
        cond(X[0] > 0, lambda x: x, lambda x: xtrace.device_put(x, Space.Host), X)
    with pytest.raises(TypeError, match="the memories do not match"):
        scan(lambda c, _: (xtrace.device_put(c, Space.Host), None), X, length=2)
    with pytest.raises(ValueError, match=r"a memory such as xtrace\.memory\.Space\.Host, .* invalid value: 'host'"):
        xtrace.device_put(X, "host")
