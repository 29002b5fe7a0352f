"""Test cases, counters and decorators of ``jax._src.test_util``, for tests of libraries that use them.

Test cases are those of absl if it is installed, since its parameters need its class, and those of unittest if not.
"""

from __future__ import annotations

import contextlib
import functools
import importlib
import importlib.metadata
import importlib.util
import io
import itertools
import re
import sys
import unittest
import warnings
import zlib
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, ClassVar

import numpy as np

from xtrace._src.alias import random_operands
from xtrace._src.api.devices import default_backend as device_under_test
from xtrace._src.api.devices import devices
from xtrace._src.api.jit.jit import jit
from xtrace._src.api.meshes.meshes import make_mesh, set_mesh
from xtrace._src.core import monitoring
from xtrace._src.core.jaxprs.ir import find_jaxprs
from xtrace._src.core.pytrees.pytree import tree_map
from xtrace._src.core.settings import config
from xtrace._src.core.shardings.mesh import AxisType, Mesh
from xtrace._src.xla.clients import any_started

_HAS_ABSL = importlib.util.find_spec("absl") is not None
absltest = importlib.import_module("absl.testing.absltest") if _HAS_ABSL else unittest
parameterized = importlib.import_module("absl.testing.parameterized") if _HAS_ABSL else None
_TestCase: Any = parameterized.TestCase if parameterized else unittest.TestCase
JaxTestLoader = absltest.TestLoader

# Comparisons


def check_eq(xs: Any, ys: Any, err_msg: str = "") -> None:
    """Check that two trees are equal."""
    tree_map(lambda x, y: np.testing.assert_array_equal(x, y, err_msg), xs, ys)


def check_close(xs: Any, ys: Any, atol: Any = None, rtol: Any = None, err_msg: str = "") -> None:
    """Check that two trees are equal up to tolerances."""
    tree_map(lambda x, y: _compare(x, y, atol, rtol, err_msg), xs, ys)


def check_raises(thunk: Callable[[], object], err_type: type[BaseException], msg: str) -> None:
    """Check that a call raises an error whose message starts with `msg`."""
    check_raises_regexp(thunk, err_type, re.escape(msg))


def check_raises_regexp(thunk: Callable[[], object], err_type: type[BaseException], pattern: str) -> None:
    """Check that a call raises an error whose message matches `pattern`."""
    try:
        thunk()
    except err_type as error:
        assert re.match(pattern, str(error)), f"{error} does not match {pattern}"
    else:
        raise AssertionError(f"no {err_type.__name__} was raised")


def _to_numpy(value: Any) -> np.ndarray:
    result = np.asarray(value)
    return result.astype(np.float32) if result.dtype.kind == "V" else result


def _dtype(value: Any, canonical: bool = True) -> Any:
    dtype = value.dtype if hasattr(value, "dtype") else np.asarray(value).dtype
    return random_operands.canonicalize_dtype(dtype) if canonical else dtype


def _compare(actual: Any, desired: Any, atol: Any, rtol: Any, message: str) -> None:
    kinds = [_dtype(x) for x in (actual, desired)]
    atol, rtol = [max(random_operands.tolerance(kind, given) for kind in kinds) for given in (atol, rtol)]
    np.testing.assert_allclose(_to_numpy(actual), _to_numpy(desired), atol=atol, rtol=rtol, err_msg=message)


# Counts of steps


@contextlib.contextmanager
def _count(step: str) -> Iterator[Callable[[], int]]:
    """Count the records of a step while the block runs; the block gets a function that returns the count."""
    records: list[str] = []

    def listen(event: str, duration: float, **details: Any) -> None:
        if event == step:
            records.append(event)

    monitoring.register_event_duration_secs_listener(listen)
    try:
        yield lambda: len(records)
    finally:
        monitoring.unregister_event_duration_listener(listen)


count_jit_tracing_cache_miss = functools.partial(_count, monitoring.TRACING)
count_jit_and_pmap_lowerings = functools.partial(_count, monitoring.LOWERING)
count_jit_compilation_cache_miss = functools.partial(_count, monitoring.COMPILING)
count_primitive_compiles = functools.partial(_count, monitoring.COMPILING)
# A call that finds no compiled program; xtrace has no other cache in front of it.
count_pjit_cpp_cache_miss = functools.partial(_count, monitoring.COMPILING)


@contextlib.contextmanager
def assert_num_jit_and_pmap_compilations(times: int) -> Iterator[None]:
    """Check how many functions are lowered while the block runs."""
    with count_jit_and_pmap_lowerings() as count:
        yield
    if count() != times:
        raise AssertionError(f"Expected exactly {times} XLA compilations, but executed {count()}")


# Devices


def _tags() -> set[str]:
    platform = device_under_test()
    if platform != "gpu":
        return {platform}
    return {"gpu", "rocm" if "rocm" in devices()[0].client.platform_version else "cuda"}


def test_device_matches(device_types: Iterable[str]) -> bool:
    """Return whether the default device is of one of the types."""
    return not _tags().isdisjoint(device_types)


def is_device_tpu(version: int | None = None, variant: str = "") -> bool:
    """Return whether the default device is a TPU; xtrace does not tell its versions apart."""
    return version is None and not variant and test_device_matches(["tpu"])


def is_device_cuda() -> bool:
    """Return whether the default device is a GPU of CUDA."""
    return test_device_matches(["cuda"])


def is_device_rocm() -> bool:
    """Return whether the default device is a GPU of ROCm."""
    return test_device_matches(["rocm"])


def _skip_unless(condition: Callable[[], bool], reason: str) -> Callable[[Any], Any]:
    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def checked(self: Any, *args: Any, **kwargs: Any) -> Any:
            if not condition():
                self.skipTest(reason)
            return test(self, *args, **kwargs)

        return checked

    return decorate


def skip_on_devices(*disabled_devices: str, skip_reason: str | None = None) -> Callable[[Any], Any]:
    """Decorate a test that does not run on some platforms."""
    reason = skip_reason or f"Skipped on devices with tags: {', '.join(disabled_devices)}"
    return _skip_unless(lambda: not test_device_matches(disabled_devices), reason)


def run_on_devices(*enabled_devices: str, skip_reason: str | None = None) -> Callable[[Any], Any]:
    """Decorate a test that runs on some platforms only."""
    reason = skip_reason or f"Skipped unless running on devices with tags: {', '.join(enabled_devices)}"
    return _skip_unless(lambda: test_device_matches(enabled_devices), reason)


def skip_on_flag(flag_name: str, skip_value: object) -> Callable[[Any], Any]:
    """Decorate a test that does not run under a value of a setting."""
    return _skip_unless(
        lambda: bool(getattr(config, flag_name.removeprefix("jax_")).value != skip_value),
        f"Skipped when {flag_name} is {skip_value}",
    )


def device_supports_buffer_donation() -> Callable[[Any], Any]:
    """Decorate a test that donates arrays; all platforms can."""
    return lambda test: test


def request_cpu_devices(nr_devices: int) -> None:
    """Ask for CPU devices, if no device is in use."""
    if not any_started():
        config.config.update("jax_num_cpu_devices", nr_devices)


def create_mesh(
    mesh_shape: Sequence[int], axis_names: str | Sequence[str], iota_order: bool = False, axis_types: Any = None
) -> Mesh:
    """Return a mesh, or skip the test if there are too few devices."""
    count, present = int(np.prod(mesh_shape)), devices()
    if len(present) < count:
        raise unittest.SkipTest(f"Test requires {count} global devices and found {len(present)}.")
    names = tuple(axis_names) if isinstance(axis_names, str) else axis_names
    if iota_order:
        return Mesh(np.array(present[:count]).reshape(mesh_shape), names, axis_types=axis_types)
    types = (AxisType.Auto,) * len(mesh_shape) if axis_types is None else axis_types
    return make_mesh(tuple(mesh_shape), names, axis_types=types, devices=present[:count])


def with_explicit_mesh(
    sizes: Sequence[int], names: str | Sequence[str], axis_types: Any = None, iota_order: bool = False
) -> Callable[[Any], Any]:
    """Decorate a test that runs in the context of a mesh, its last argument; axes are explicit unless they say else."""

    def decorate(test: Any) -> Any:
        @functools.wraps(test)
        def run(*args: Any, **kwargs: Any) -> Any:
            types = (AxisType.Explicit,) * len(sizes) if axis_types is None else axis_types
            types = (types,) * len(sizes) if isinstance(types, AxisType) else types
            mesh = create_mesh(sizes, names, iota_order, types)
            with set_mesh(mesh):
                return test(*args, **kwargs, mesh=mesh)

        return run

    return decorate


@contextlib.contextmanager
def with_mesh(named_shape: Sequence[tuple[str, int]]) -> Iterator[None]:
    """Run the block in the context of a mesh with named axes."""
    names, sizes = zip(*named_shape, strict=True) if named_shape else ((), ())
    with create_mesh(sizes, names):
        yield


# Parameters of tests


def _thin(cases: Sequence[Any]) -> list[Any]:
    """Return a few of the cases, the same in each run."""
    count = random_operands.count_cases()
    if len(cases) <= count:
        return list(cases)
    return [cases[i] for i in np.random.RandomState(42).choice(len(cases), size=count, replace=False)]


def sample_product_testcases(*args: Iterable[Mapping[str, Any]], **kw: Iterable[Any]) -> list[dict[str, Any]]:
    """Return a few cases of the product of the parameters: lists of dicts, and lists of values by name."""
    groups = [list(group) for group in args] + [[{name: value} for value in values] for name, values in kw.items()]
    return _thin([
        {name: value for part in parts for name, value in part.items()} for parts in itertools.product(*groups)
    ])


def sample_product(*args: Iterable[Mapping[str, Any]], **kw: Iterable[Any]) -> Callable[[Any], Any]:
    """Decorate a test with a few cases of the product of the parameters."""
    cases = sample_product_testcases(*args, **kw)
    if parameterized:
        decorate: Callable[[Any], Any] = parameterized.parameters(*cases)
        return decorate
    return functools.partial(_in_sub_tests, cases)


def parameterized_filterable(
    *, kwargs: Sequence[Mapping[str, Any]], testcase_name: Callable[[Mapping[str, Any]], str] | None = None,
    one_containing: str | None = None,
) -> Callable[[Any], Any]:
    """Decorate a test with cases that have names."""

    def name(case: Mapping[str, Any]) -> str:
        if "testcase_name" in case:
            return str(case["testcase_name"])
        return testcase_name(case) if testcase_name else "_".join(f"{key}={value}" for key, value in case.items())

    cases = [dict(case) | {"testcase_name": sanitize_test_name(name(case))} for case in kwargs]
    if one_containing is not None:
        cases = [case for case in cases if one_containing in case["testcase_name"]][:1]
    if parameterized:
        decorate: Callable[[Any], Any] = parameterized.named_parameters(*cases)
        return decorate
    return functools.partial(_in_sub_tests, [{k: v for k, v in c.items() if k != "testcase_name"} for c in cases])


def _in_sub_tests(cases: Sequence[Mapping[str, Any]], test: Any) -> Any:
    @functools.wraps(test)
    def run(self: Any) -> None:
        for case in cases:
            with self.subTest(**case):
                test(self, **case)

    return run


def sanitize_test_name(s: str) -> str:
    """Return a text with other characters than those of names replaced."""
    return re.sub(r"[^A-Za-z0-9_]+", "_", s)


def with_config(**kwds: Any) -> Callable[[type], type]:
    """Decorate a test case whose tests run under settings."""

    def decorate(cls: Any) -> Any:
        cls._default_thread_local_config = cls._default_thread_local_config | kwds
        return cls

    return decorate


with_global_config = with_config


@contextlib.contextmanager
def thread_local_config_context(**kwds: Any) -> Iterator[None]:
    """Run the block under settings."""
    with contextlib.ExitStack() as stack:
        for name, value in kwds.items():
            stack.enter_context(getattr(config, name.removeprefix("jax_"))(value))
        yield


global_config_context = thread_local_config_context


def thread_unsafe_test(condition: bool = True) -> Callable[[Any], Any]:
    """Decorate a test that must not run beside others; xtrace's stand-in runs no tests in threads."""
    return lambda test: test


def thread_unsafe_test_class(condition: bool = True) -> Callable[[Any], Any]:
    """Decorate a test case whose tests must not run beside others."""
    return lambda cls: cls


@contextlib.contextmanager
def ignore_warning(*, message: str = "", category: type[Warning] = Warning, **options: Any) -> Iterator[None]:
    """Run the block, or the decorated test, without some warnings."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=message, category=category, **options)
        yield


@contextlib.contextmanager
def capture_stdout() -> Iterator[Callable[[], str]]:
    """Capture what is printed while the block runs; the block gets a function that returns it."""
    text = io.StringIO()
    before, sys.stdout = sys.stdout, text
    try:
        yield text.getvalue
    finally:
        sys.stdout = before


def iter_eqns(jaxpr: Any) -> Iterator[Any]:
    """Yield the equations of a jaxpr and of the jaxprs in them."""
    for equation in jaxpr.eqns:
        yield equation
        for inner in find_jaxprs(equation):
            yield from iter_eqns(getattr(inner, "jaxpr", inner))


def parse_version(v: str) -> tuple[int, ...]:
    """Return the numbers of a version."""
    return tuple([int(part) for part in v.split(".")[:3]])


def numpy_version() -> tuple[int, ...]:
    """Return the version of NumPy."""
    return parse_version(np.__version__)


def jaxlib_version() -> tuple[int, ...]:
    """Return the version of jaxlib."""
    return parse_version(importlib.metadata.version("jaxlib"))


class JaxTestCase(_TestCase):  # type: ignore[misc]
    """A test case with a generator of random operands and comparisons of arrays; promotions must be explicit."""

    _default_global_config: ClassVar[dict[str, Any]] = {}
    _default_thread_local_config: ClassVar[dict[str, Any]] = {
        "jax_enable_checks": True, "jax_numpy_dtype_promotion": "strict", "jax_numpy_rank_promotion": "raise",
        "jax_traceback_filtering": "off", "jax_legacy_prng_key": "error",
    }

    def setUp(self) -> None:
        """Enter the settings of the test case."""
        super().setUp()
        self._generator = np.random.RandomState(zlib.crc32(self._testMethodName.encode()))
        settings = thread_local_config_context(**self._default_global_config, **self._default_thread_local_config)
        settings.__enter__()
        self.addCleanup(settings.__exit__, None, None, None)

    def rng(self) -> np.random.RandomState:
        """Return the test's generator."""
        return self._generator

    def assertDtypesMatch(self, actual: Any, desired: Any, *, canonicalize_dtypes: bool = True) -> None:
        """Check that the dtypes are the same."""
        self.assertEqual(_dtype(actual, canonicalize_dtypes), _dtype(desired, canonicalize_dtypes))

    def assertArraysEqual(
        self, actual: Any, desired: Any, *, check_dtypes: bool = True, err_msg: str = "",
        allow_object_dtype: bool = False, verbose: bool = True,
    ) -> None:
        """Check that the arrays are equal."""
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        np.testing.assert_array_equal(_to_numpy(actual), _to_numpy(desired), err_msg=err_msg, verbose=verbose)

    def assertArraysAllClose(
        self, actual: Any, desired: Any, *, check_dtypes: bool = True, atol: Any = None, rtol: Any = None,
        err_msg: str = "",
    ) -> None:
        """Check that the arrays have one shape, and are equal up to tolerances."""
        self.assertEqual(np.shape(actual), np.shape(desired))
        if check_dtypes:
            self.assertDtypesMatch(actual, desired)
        _compare(actual, desired, atol, rtol, err_msg)

    def assertAllClose(
        self, actual: Any, desired: Any, *, check_dtypes: bool = True, atol: Any = None, rtol: Any = None,
        canonicalize_dtypes: bool = True, err_msg: str = "",
    ) -> None:
        """Check that arrays, or the items of lists, tuples and dicts, are equal up to tolerances."""
        options = {"check_dtypes": check_dtypes, "atol": atol, "rtol": rtol, "err_msg": err_msg,
                   "canonicalize_dtypes": canonicalize_dtypes}
        if isinstance(actual, dict):
            self.assertIsInstance(desired, dict)
            self.assertEqual(set(actual), set(desired))
            for key in actual:
                self.assertAllClose(actual[key], desired[key], **options)
        elif isinstance(actual, (list, tuple)) and not hasattr(actual, "__array__"):
            self.assertIsInstance(desired, (list, tuple))
            self.assertEqual(len(actual), len(desired))
            for one, other in zip(actual, desired, strict=True):
                self.assertAllClose(one, other, **options)
        elif actual is None or desired is None:
            self.assertIs(actual, desired)
        else:
            self.assertEqual(np.shape(actual), np.shape(desired))
            if check_dtypes:
                self.assertDtypesMatch(actual, desired, canonicalize_dtypes=canonicalize_dtypes)
            self.assertArraysAllClose(actual, desired, check_dtypes=False, atol=atol, rtol=rtol, err_msg=err_msg)

    def assertMultiLineStrippedEqual(self, expected: str, what: str) -> None:
        """Check that two texts are equal but for spaces around their lines."""
        self.assertMultiLineEqual(*[
            "\n".join([line.strip() for line in text.strip().splitlines()]) for text in (expected, what)
        ])

    @contextlib.contextmanager
    def assertNoWarnings(self) -> Iterator[None]:
        """Check that the block gives no warning."""
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            yield

    def assertDeleted(self, x: Any) -> None:
        """Check that the memory of an array was given back."""
        self.assertTrue(x.is_deleted())

    def assertNotDeleted(self, x: Any) -> None:
        """Check that an array has its memory."""
        self.assertFalse(x.is_deleted())

    def assertCacheMisses(
        self, func: Callable[[], Any], *, cpp: int | None = None, aot_call: int | None = None,
        tracing: int | None = None, lowering: int | None = None,
        compilation_after_persistent_cache_miss: int | None = None,
    ) -> None:
        """Check how often a call traces, lowers and compiles."""
        with (
            count_pjit_cpp_cache_miss() as compiled, count_jit_tracing_cache_miss() as traced,
            count_jit_and_pmap_lowerings() as lowered,
        ):
            func()
        wanted = {compiled: cpp, traced: tracing, lowered: lowering}
        for count, number in wanted.items():
            if number is not None:
                self.assertEqual(count(), number)

    def _CheckAgainstNumpy(
        self, numpy_reference_op: Callable[..., Any], lax_op: Callable[..., Any], args_maker: Callable[[], Any],
        check_dtypes: bool = True, tol: Any = None, atol: Any = None, rtol: Any = None,
        canonicalize_dtypes: bool = True,
    ) -> None:
        """Check that two functions have the same results."""
        args = args_maker()
        self.assertAllClose(
            lax_op(*args), numpy_reference_op(*args), check_dtypes=check_dtypes,
            canonicalize_dtypes=canonicalize_dtypes, atol=tol if atol is None else atol,
            rtol=tol if rtol is None else rtol,
        )

    def _CompileAndCheck(
        self, fun: Callable[..., Any], args_maker: Callable[[], Any], *, check_dtypes: bool = True, tol: Any = None,
        rtol: Any = None, atol: Any = None, check_cache_misses: bool = True,
    ) -> None:
        """Check that a function has the same results when it is jitted, and is traced once."""
        calls = []

        def counted(*args: Any) -> Any:
            calls.append(args)
            return fun(*args)

        args = args_maker()
        expected, jitted = fun(*args), jit(counted)
        options = {"check_dtypes": check_dtypes, "atol": tol if atol is None else atol,
                   "rtol": tol if rtol is None else rtol}
        for _ in range(2):
            self.assertAllClose(jitted(*args), expected, **options)
        if check_cache_misses:
            self.assertEqual(len(calls), 1)


class BufferDonationTestCase(JaxTestCase):
    """A test case for donated arrays."""
