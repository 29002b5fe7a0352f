"""The examples in jax's own documentation mean the same here: each is run in both packages, and what they print agrees.

A run takes a part of them, drawn by the commit; ``--whole-tables`` takes all.
"""

import contextlib
import doctest
import importlib
import io
import re
import warnings

import jax
import numpy as np
import pytest

import xtrace
from tests.support.reference import IS_REFERENCE

# Newer releases explain what this one does not have.
pytestmark = [
    pytest.mark.thorough,
    pytest.mark.skipif(not IS_REFERENCE, reason="the documentation is that of the reference"),
]

MODULES = [
    "custom_batching", "custom_derivatives", "dtypes", "errors", "flatten_util", "image", "lax", "lax.linalg", "nn",
    "nn.initializers", "numpy", "numpy.fft", "numpy.linalg", "ops", "random", "scipy.cluster.vq", "scipy.fft",
    "scipy.integrate", "scipy.linalg", "scipy.ndimage", "scipy.optimize", "scipy.signal", "scipy.sparse.linalg",
    "scipy.special", "scipy.stats", "tree", "tree_util",
]

# Examples about several devices, or about what jax does not publish, are not for here.
ELSEWHERE = re.compile(r"pmap|make_mesh|shard_map|\bsharding\b|_src|device_count")

# What prints something else, and why.
DIFFERENT = {"numpy.add.reduceat": "an array as the axis of add.reduce is of the wrong type here, as in jax.numpy.sum"}


def _objects():
    """Yield the names and documentation of what the modules have, once each."""
    seen = set()
    for module in MODULES:
        package = importlib.import_module(f"jax.{module}")
        for name in sorted(n for n in dir(package) if not n.startswith("_")):
            found = getattr(package, name)
            parts = vars(found) if isinstance(found, type) else ()
            methods = ("accumulate", "at", "outer", "reduce", "reduceat") if isinstance(found, jax.numpy.ufunc) else ()
            for label in (name, *[f"{name}.{part}" for part in (*parts, *methods) if not part.startswith("_")]):
                value = found if label == name else getattr(found, label.rpartition(".")[2])
                text = getattr(value, "__doc__", None)
                if isinstance(text, str) and ">>>" in text and text not in seen and not ELSEWHERE.search(text):
                    seen.add(text)
                    yield f"{module}.{label}", text


EXAMPLES = dict(_objects()) if IS_REFERENCE else {}


def _printed(examples, package):
    """Return what each example prints, or the names of its error's classes."""
    name, printed = package.__name__, []
    names = {"jax": package, name: package, "jnp": package.numpy, "lax": package.lax, "np": np}
    for example in examples:
        source = example.source
        if package is xtrace:
            source = re.sub(r"\bjax\b", "xtrace", source).replace("import xtrace\n", "import xtrace; jax = xtrace\n")
        output = io.StringIO()
        try:
            with contextlib.redirect_stdout(output):
                exec(compile(source, "<documentation>", "single"), names)
            printed.append(output.getvalue().replace("xtrace", "jax"))
        except Exception as error:
            printed.append([kind.__name__ for kind in type(error).__mro__])
    return printed


_NUMBER = re.compile(r"[-+]?(?:\d+\.?\d*(?:e[-+]?\d+)?|\binf\b|\bnan\b)")


def _same(first, second):
    """Whether texts agree, numbers up to a few digits of single precision beside the largest of them.

    An error is to be one of the class that jax raises.
    """
    if isinstance(first, list) or isinstance(second, list):
        return isinstance(first, list) and isinstance(second, list) and second[0] in first
    words = [" ".join(_NUMBER.sub(" # ", text).split()) for text in (first, second)]
    numbers = [np.array([float(n) for n in _NUMBER.findall(text)]) for text in (first, second)]
    if words[0] != words[1] or numbers[0].shape != numbers[1].shape:
        return False
    largest = max([1.0, *abs(numbers[0][np.isfinite(numbers[0])])])
    return np.allclose(*numbers, rtol=1e-5, atol=1e-6 * largest, equal_nan=True)


@pytest.mark.slow
@pytest.mark.drawn(0.1)
@pytest.mark.parametrize("name", [n for n in EXAMPLES if n not in DIFFERENT])
def test_examples_print_what_they_do_in_jax(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)  # some write files
    examples = doctest.DocTestParser().get_examples(EXAMPLES[name])
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        ours, theirs = _printed(examples, xtrace), _printed(examples, jax)
    # What is not run as a test there may depend on the machine.
    tested = [doctest.SKIP not in example.options for example in examples]
    for example, mine, other, compared in zip(examples, ours, theirs, tested, strict=True):
        assert not compared or _same(mine, other), f"{example.source}prints here\n{mine}\nand in jax\n{other}"


def test_there_are_examples():
    assert len(EXAMPLES) > 400 and set(DIFFERENT) <= set(EXAMPLES)
