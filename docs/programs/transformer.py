"""A small transformer's loss, with the types of its arguments as defaults: the explorer needs no others."""

import xtrace
import xtrace.numpy as jnp
from xtrace import nn

WIDTH, HEADS, WORDS, LENGTH, EXAMPLES = 64, 4, 256, 32, 8


def f32(*shape):
    return xtrace.ShapeDtypeStruct(shape, "float32")


BLOCK = {
    "qkv": f32(WIDTH, 3 * WIDTH), "out": f32(WIDTH, WIDTH), "up": f32(WIDTH, 4 * WIDTH), "down": f32(4 * WIDTH, WIDTH),
}
PARAMETERS = {"words": f32(WORDS, WIDTH), "blocks": [BLOCK, BLOCK]}
TOKENS = xtrace.ShapeDtypeStruct((EXAMPLES, LENGTH), "int32")


def attend(block, x):
    heads = (x @ block["qkv"]).reshape(len(x), 3, HEADS, WIDTH // HEADS)
    q, k, v = heads[:, 0], heads[:, 1], heads[:, 2]
    scores = jnp.einsum("qhd,khd->hqk", q, k) / jnp.sqrt(WIDTH // HEADS)
    weights = nn.softmax(jnp.where(jnp.tri(len(x), dtype=bool), scores, -1e9))
    return jnp.einsum("hqk,khd->qhd", weights, v).reshape(x.shape) @ block["out"]


def transformer(parameters, tokens):
    x = parameters["words"][tokens]
    for block in parameters["blocks"]:
        x = x + attend(block, nn.standardize(x))
        x = x + nn.gelu(nn.standardize(x) @ block["up"]) @ block["down"]
    return nn.standardize(x) @ parameters["words"].T


def loss(parameters=PARAMETERS, tokens=TOKENS):
    logits = xtrace.vmap(lambda t: transformer(parameters, t))(tokens[:, :-1])
    next_words = nn.one_hot(tokens[:, 1:], WORDS)
    return -jnp.mean(jnp.sum(nn.log_softmax(logits) * next_words, axis=-1))
