"""Training over several processes: the weights of one process, and the same again after one was killed."""

import re
import signal
import textwrap

import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from tests.distributed.processes import run

# A classifier of digits: their shapes of 5 x 7 dots, shifted and with noise, in images of 8 x 8.
CLASSIFIER = '''
import numpy as np

SHAPES = """
01110 00100 01110 11111 00010 11111 00110 11111 01110 01110
10001 01100 10001 00010 00110 10000 01000 00001 10001 10001
10011 00100 00001 00100 01010 11110 10000 00010 10001 10001
10101 00100 00010 00010 10010 00001 11110 00100 01110 01111
11001 00100 00100 00001 11111 00001 10001 01000 10001 00001
10001 00100 01000 10001 00010 10001 10001 01000 10001 00010
01110 01110 11111 01110 00010 01110 01110 01000 01110 01100
"""
STEPS, BATCH, RATE = 12, 32, 1.0


def batch(step):
    random = np.random.default_rng(step)
    shapes = np.array([[[int(c) for c in word] for word in line.split()] for line in SHAPES.split("\\n") if line])
    labels = random.integers(0, 10, BATCH)
    images = random.normal(scale=0.1, size=(BATCH, 8, 8))
    for image, label, column in zip(images, labels, random.integers(0, 4, BATCH)):
        image[:7, column : column + 5] += shapes[:, label]
    return images.reshape(BATCH, 64).astype(np.float32), np.eye(10, dtype=np.float32)[labels]


def start():
    random = np.random.default_rng(0)
    return [random.normal(scale=0.1, size=shape).astype(np.float32) for shape in ((64, 16), (16, 10))]


def loss(weights, images, targets):
    logits = jnp.tanh(images @ weights[0]) @ weights[1]
    return -(targets * xtrace.nn.log_softmax(logits)).sum() / BATCH


@xtrace.jit
def train(weights, images, targets):
    slopes = xtrace.grad(loss)(weights, images, targets)
    return [w - RATE * slope for w, slope in zip(weights, slopes)]
'''

TRAINING = CLASSIFIER + """
import os, signal
from xtrace.experimental import multihost_utils as together

first, weights = 0, start()
if os.path.exists(FILE):
    with np.load(FILE) as saved:
        first, weights = int(saved["step"]), [saved["w0"], saved["w1"]]
weights = [together.host_local_array_to_global_array(w, mesh, P()) for w in weights]
own = slice(process * BATCH // count, (process + 1) * BATCH // count)
for step in range(first, STEPS):
    data = [together.host_local_array_to_global_array(part[own], mesh, P("data")) for part in batch(step)]
    if step == KILLED and process == 1:
        os.kill(os.getpid(), signal.SIGKILL)
    weights = train(weights, *data)
    if process == 0:
        np.savez(FILE + ".part.npz", step=step + 1, w0=weights[0], w1=weights[1])
        os.replace(FILE + ".part.npz", FILE)
print("began at", first)
"""


@pytest.fixture(scope="module")
def expected():
    """The weights of one process on one device, and how much of the loss is left."""
    names = {"xtrace": xtrace, "jnp": jnp}
    exec(textwrap.dedent(CLASSIFIER), names)
    weights = names["start"]()
    before = float(names["loss"](weights, *names["batch"](100)))
    for step in range(names["STEPS"]):
        weights = names["train"](weights, *names["batch"](step))
    assert float(names["loss"](weights, *names["batch"](100))) < 0.8 * before
    return [np.asarray(w) for w in weights]


def check_saved(path, expected):
    """Sums of 32 float32 terms in another order, in twelve steps: a few roundings of weights below 2 for each."""
    with np.load(path) as saved:
        assert int(saved["step"]) == 12
        for own, theirs in zip((saved["w0"], saved["w1"]), expected, strict=True):
            np.testing.assert_allclose(own, theirs, rtol=0, atol=12 * 4 * 2 * np.finfo(np.float32).eps)


@pytest.mark.parametrize(("count", "devices"), [(2, 2), (4, 1)])
def test_processes_train_to_the_weights_of_one(count, devices, tmp_path, expected):
    """Data-parallel steps over two and four processes give the weights of one process."""
    path = str(tmp_path / "weights.npz")
    codes, outputs = run(f"FILE, KILLED = {path!r}, None\n" + TRAINING, count, devices=devices)
    assert codes == [0] * count, outputs
    check_saved(path, expected)


def test_training_goes_on_from_what_was_saved(tmp_path, expected):
    """After a process was killed, all are started again, go on from the last file, and end with the same weights."""
    path = str(tmp_path / "weights.npz")
    codes, outputs = run(f"FILE, KILLED = {path!r}, 5\n" + TRAINING, heartbeat=3)
    assert codes == [1, -signal.SIGKILL] and "LostProcessError: process 1" in outputs[0], outputs
    codes, outputs = run(f"FILE, KILLED = {path!r}, None\n" + TRAINING)
    assert codes == [0, 0] and all(re.search("began at [45]", text) for text in outputs), outputs
    check_saved(path, expected)
