"""The libraries, with their versions, their published tests and the few of them that CI runs."""

from __future__ import annotations

from typing import NamedTuple


class Library(NamedTuple):
    """A library whose tests or programs are run under jax and under xtrace.

    imports: the module that its users import. tests: the folder of its tests in the source distribution, None where
    that holds none. pattern: the names of files with tests. sample: files of tests and names of programs that a short
    run takes. variables: of the tests' environment. one_of: where all tests would take hours, of how many one is run.
    """

    name: str
    version: str
    imports: str
    tests: str | None = None
    pattern: str = "test_*.py"
    sample: tuple[str, ...] = ()
    variables: tuple[tuple[str, str], ...] = ()
    one_of: int = 1


_BESIDE = "*_test.py"

LIBRARIES = {
    library.name: library
    for library in (
        Library("blackjax", "1.7.1", "blackjax", "tests", sample=("tests/mcmc/test_proposal.py",), one_of=8),
        Library("chex", "0.1.92", "chex", "chex", _BESIDE, ("chex/_src/asserts_test.py",)),
        Library("diffrax", "0.7.2", "diffrax"),
        Library("distrax", "0.1.9", "distrax", "distrax", _BESIDE, ("distrax/_src/bijectors/tanh_test.py",), one_of=60),
        Library("dm-haiku", "0.0.17", "haiku", "haiku", _BESIDE, ("haiku/_src/basic_test.py",), one_of=16),
        Library(
            "einops", "0.8.2", "einops", "einops/tests", sample=("einops/tests/test_ops.py",),
            variables=(("EINOPS_TEST_BACKENDS", "numpy,jax"),),
        ),
        Library("equinox", "0.13.8", "equinox", sample=("equinox_cnn",)),
        Library(
            "flax", "0.12.8", "flax.linen, flax.nnx", "tests", _BESIDE, ("tests/core/core_lift_test.py",), one_of=8,
        ),
        Library("jaxtyping", "0.3.11", "jaxtyping"),
        Library("lineax", "0.1.1", "lineax"),
        Library("numpyro", "0.22.0", "numpyro", "test", sample=("test/test_constraints.py",), one_of=40),
        Library(
            "optax", "0.2.8", "optax", "optax", _BESIDE, ("optax/transforms/_clipping_test.py", "optax_digits"),
            one_of=4,
        ),
        Library("optimistix", "0.1.0", "optimistix"),
        Library("quax", "0.4.6", "quax", "tests", sample=("tests/unit/test_core.py",)),
    )
}

# The rest that the libraries and their tests import; jax is not among them.
REQUIREMENTS = (
    "absl-py", "aiofiles", "beartype", "cloudpickle", "decorator", "dill", "dm-tree", "etils", "fastprogress", "gast",
    "humanize", "hypothesis", "jaxlib==0.10.2", "jaxopt", "jmp", "ml_collections", "mock", "msgpack",
    "multipledispatch", "nest_asyncio", "numpy", "opt_einsum", "orbax-checkpoint", "orbax-export", "parameterized",
    "plum-dispatch", "protobuf", "psutil", "pytest", "pytest-xdist", "pyyaml", "rich", "scikit-learn", "scipy",
    "simplejson", "six", "tabulate", "tensorstore", "tfp-nightly", "toolz", "tqdm", "treescope", "typing_extensions",
    "uvloop", "wadler_lindig", "zstandard",
)

JAX = "jax==0.10.2"
