"""The convolutions and pools of equinox.nn, each with its gradient, under jit and vmap."""

import equinox as eqx
import jax
import jax.numpy as jnp
from surface import Surface

jax.config.update("jax_enable_x64", True)
surface = Surface(1e-8)
keys = iter(jax.random.split(jax.random.key(0), 200))


def draw(*shape):
    return jax.random.normal(next(keys), shape, jnp.float64)


def use(name, layer, *inputs, **options):
    """Record a layer's value, its gradients by parameters and inputs, and its value on a batch."""
    layer = jax.tree.map(lambda x: x.astype(jnp.float64) if eqx.is_inexact_array(x) else x, layer)

    def total(parts):
        model, arguments = parts
        return sum(jnp.sum(jnp.sin(x)) for x in jax.tree.leaves(model(*arguments, **options)))

    @eqx.filter_jit
    def run(model, arguments, batch):
        rows = jax.vmap(lambda *xs: model(*xs, **options))(*batch)
        return model(*arguments, **options), eqx.filter_grad(total)((model, arguments)), rows

    batch = jax.tree.map(lambda x: jnp.stack([x, 2 * x]) if jnp.issubdtype(x.dtype, jnp.inexact) else x[None], inputs)
    value, gradient, rows = run(layer, inputs, batch)
    surface.record(f"{name} value", value)
    surface.record(f"{name} gradient", gradient)
    surface.record(f"{name} batch", rows)


# Convolutions.
for dilation, padding, groups in [(1, 0, 1), (2, 1, 2), (1, "SAME", 1), (1, ((1, 0),), 2)]:
    conv = eqx.nn.Conv1d(2, 4, 3, dilation=dilation, padding=padding, groups=groups, key=next(keys))
    use(f"Conv1d {dilation} {padding} {groups}", conv, draw(2, 9))
use("Conv2d", eqx.nn.Conv2d(2, 3, (3, 2), stride=(2, 1), use_bias=False, key=next(keys)), draw(2, 7, 6))
use("Conv2d circular", eqx.nn.Conv2d(1, 2, 3, padding=1, padding_mode="CIRCULAR", key=next(keys)), draw(1, 5, 5))
use("Conv2d reflect", eqx.nn.Conv2d(1, 2, 3, padding=1, padding_mode="REFLECT", key=next(keys)), draw(1, 5, 5))
use("Conv2d replicate", eqx.nn.Conv2d(1, 2, 3, padding=1, padding_mode="REPLICATE", key=next(keys)), draw(1, 5, 5))
use("Conv3d", eqx.nn.Conv3d(1, 2, 2, padding="VALID", key=next(keys)), draw(1, 3, 4, 3))
use("Conv", eqx.nn.Conv(2, 3, 1, kernel_size=(2, 2), key=next(keys)), draw(3, 4, 4))
use("ConvTranspose1d", eqx.nn.ConvTranspose1d(2, 3, 3, stride=2, output_padding=1, key=next(keys)), draw(2, 5))
use("ConvTranspose2d", eqx.nn.ConvTranspose2d(2, 4, 3, groups=2, padding="SAME", key=next(keys)), draw(2, 4, 4))
transposed = eqx.nn.ConvTranspose2d(1, 2, 3, padding="SAME", padding_mode="CIRCULAR", key=next(keys))
use("ConvTranspose2d circular", transposed, draw(1, 4, 4))
use("ConvTranspose3d", eqx.nn.ConvTranspose3d(1, 2, 2, dilation=2, key=next(keys)), draw(1, 3, 3, 3))
use("ConvTranspose", eqx.nn.ConvTranspose(1, 2, 2, 4, stride=2, padding=1, key=next(keys)), draw(2, 5))
surface.record_error(
    "Conv of wrong groups", "divisible", lambda: eqx.nn.Conv1d(3, 4, 2, groups=2, key=next(keys))
)
surface.record_error("Conv of a wrong rank", "rank", eqx.nn.Conv1d(1, 1, 2, key=next(keys)), draw(1, 4, 4))

# Pooling.
use("Pool", eqx.nn.Pool(0.0, jax.lax.add, 1, kernel_size=2, stride=2), draw(2, 6))
use("AvgPool1d", eqx.nn.AvgPool1d(3, stride=2, padding=1), draw(2, 7))
use("AvgPool2d", eqx.nn.AvgPool2d((2, 3), use_ceil=True, stride=2), draw(1, 5, 6))
use("AvgPool3d", eqx.nn.AvgPool3d(2), draw(1, 3, 3, 3))
use("MaxPool1d", eqx.nn.MaxPool1d(3, stride=2, padding=1), draw(2, 7))
use("MaxPool2d", eqx.nn.MaxPool2d(2, stride=2, use_ceil=True), draw(1, 5, 5))
use("MaxPool3d", eqx.nn.MaxPool3d(2, padding=((1, 0), (0, 1), (1, 1))), draw(1, 3, 3, 3))
use("AdaptivePool", eqx.nn.AdaptivePool(3, num_spatial_dims=1, operation=jnp.mean), draw(2, 8))
use("AdaptiveAvgPool1d", eqx.nn.AdaptiveAvgPool1d(3), draw(2, 7))
use("AdaptiveAvgPool2d", eqx.nn.AdaptiveAvgPool2d((2, 3)), draw(1, 5, 6))
use("AdaptiveAvgPool3d", eqx.nn.AdaptiveAvgPool3d(2), draw(1, 3, 4, 5))
use("AdaptiveMaxPool1d", eqx.nn.AdaptiveMaxPool1d(3), draw(2, 7))
use("AdaptiveMaxPool2d", eqx.nn.AdaptiveMaxPool2d(2), draw(1, 5, 5))
use("AdaptiveMaxPool3d", eqx.nn.AdaptiveMaxPool3d((2, 1, 2)), draw(1, 3, 4, 5))
surface.record_error(
    "Pool of too much padding", "Paddings should be", lambda: eqx.nn.MaxPool1d(2, padding=3)(draw(1, 5))
)

surface.finish(__file__, {"eqx.nn": eqx.nn}, {})
