"""Platforms and their clients, the versions, the contexts of users: what programs around the core ask for."""

import functools
import importlib
import os
import subprocess
import sys
import textwrap

import jax
import jax.extend.backend
import numpy as np
import pytest

import xtrace
import xtrace.extend.backend
from tests.distributed.processes import run as run_processes

PACKAGES = (xtrace, jax)
backend = xtrace.extend.backend


def run(package, program):
    """The lines that a program prints in a process of its own, where `package` is jax or xtrace."""
    start = f"import {package} as jax, functools\nimport {package}.extend.backend as backend\njnp = jax.numpy\n"
    source = start + textwrap.dedent(program)
    # The suite's own setting would keep all but CPUs away.
    environment = {name: value for name, value in os.environ.items() if name not in ("JAX_PLATFORMS", "XLA_FLAGS")}
    done = subprocess.run(
        [sys.executable, "-c", source], capture_output=True, text=True, timeout=100, env=environment
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()


def test_clients():
    for package in PACKAGES:
        found = importlib.import_module(f"{package.__name__}.extend.backend")
        assert "cpu" in found.backends() and found.backends()["cpu"] is found.get_backend("cpu")
        assert found.get_backend(found.get_backend()) is found.get_backend() is package.devices()[0].client
        assert found.get_backend.cache_clear() is None and found.get_backend() is package.devices()[0].client
        assert found.get_default_device() == package.devices()[0]
        with package.default_device(package.devices("cpu")[-1]):
            assert found.get_default_device() == package.devices("cpu")[-1]
        assert found.backend_xla_version() is None is found.backend_xla_version("cpu")
        with pytest.raises(RuntimeError, match="nowhere"):
            found.get_backend("nowhere")


def test_compile_options():
    fields = ("num_replicas", "num_partitions", "use_spmd_partitioning", "use_shardy_partitioner", "fdo_profile",
              "memory_fitting_level", "optimization_level")
    grid = np.array(jax.devices("cpu")[:1])
    for arguments in [(1, 1), (2, 3), (1, 1, grid, {"xla_cpu_enable_fast_math": "True"}, b"profile", False)]:
        given = [p.extend.backend.get_compile_options(*arguments) for p in PACKAGES]
        for mine, other in [given, [g.executable_build_options for g in given]]:
            for field in fields:
                assert getattr(mine, field, None) == getattr(other, field, None), field
        mine, other = given
        assert mine.env_option_overrides == other.env_option_overrides
        assert str(mine.device_assignment) == str(other.device_assignment)
        logging = [g.executable_build_options.debug_options.xla_detailed_logging for g in given]
        assert logging[0] == logging[1]
    for shape in [(1, 2), (2, 2)]:
        for package in PACKAGES:
            with pytest.raises(ValueError, match="device_assignment"):
                package.extend.backend.get_compile_options(2, 1, np.zeros(shape, int))
    with pytest.raises(TypeError, match="num_partitions must be an integer, got 'a'"):
        backend.get_compile_options(1, "a")


CLEARED = """
    cached = functools.lru_cache(lambda n: n)
    backend.register_backend_cache(cached, "numbers")
    double = jax.jit(lambda x: x * 2)
    x, first = jnp.arange(3.0), jax.devices()[0]
    cached(1), double(x)
    jax.clear_caches()
    print(cached.cache_info().currsize, cached(2))
    backend.clear_in_memory_compilation_cache()
    print(cached.cache_info().currsize)
    backend.clear_backends()
    print(cached.cache_info().currsize)
    print(x.device is first, jax.devices()[0] is first, double(x), x + 1, double(jnp.arange(3.0)))
    print([str(d) for d in double(jnp.ones(2)).devices()], x.sum(), jax.grad(lambda x: (x * x).sum())(x))
"""


def test_clients_are_made_anew():
    assert run("xtrace", CLEARED) == run("jax", CLEARED)


REGISTERED = """
    import logging
    from jaxlib import xla_client
    backend.register_backend_factory("mine", lambda: xla_client.make_cpu_client(num_devices=3), priority=500)
    def broken():
        raise ValueError("no such machine")
    backend.register_backend_factory("broken", broken, priority=600)
    print(sorted(backend.backends()), len(jax.devices()), len(jax.devices("cpu")), jax.default_backend())
    print(jax.jit(lambda x: x + 1)(1.0), jax.devices("mine") == jax.devices())
    try:
        jax.devices("broken")
    except RuntimeError as error:
        print("no such machine" in str(error))
    backend.register_backend_factory("loud", broken, fail_quietly=False, priority=700)
    backend.clear_backends()
    try:
        jax.devices()
    except RuntimeError as error:
        print("loud" in str(error), "no such machine" in str(error))
"""


def test_platforms_of_users():
    assert run("xtrace", REGISTERED) == run("jax", REGISTERED)


def test_wrong_registrations_say_so():
    with pytest.raises(TypeError, match="register_backend_factory: name must be a string, got 3"):
        backend.register_backend_factory(3, lambda: None)
    with pytest.raises(TypeError, match="register_backend_factory: factory must be a function, got 3"):
        backend.register_backend_factory("three", 3)
    backend.register_backend_factory("empty", lambda: None)
    with pytest.raises(TypeError, match="factory of the platform 'empty' must return jaxlib's Client, got None"):
        xtrace.devices("empty")
    with pytest.raises(TypeError, match=r"the cache for numbers must have a method cache_clear\(\)"):
        backend.register_backend_cache({}, "numbers")


def test_forgotten_programs_are_compiled_again():
    sin = xtrace.lax.sin
    sin(np.float32(1))
    assert sin.programs
    backend.clear_in_memory_compilation_cache()
    assert not sin.programs and sin(np.float32(0)) == 0


# Contexts of users


def test_functions_are_traced_for_each_value_of_a_context():
    found = []
    for package in PACKAGES:
        context, values = package.make_user_context(5), []
        function = package.jit(functools.partial(lambda v, c, x: v.append(c.value) or x, values, context))
        function(1.0), function(1.0)
        for value in (1, 2, None, 1, (1, 2)):
            with context(value):
                function(1.0)
                with context("inner"):
                    function(1.0)
        function(1.0)
        found.append((values, context.value))
        with pytest.raises(TypeError, match="unhashable type: 'list'"), context([1]):
            function(1.0)
        with pytest.raises(TypeError, match="new_value"):
            context()
    assert found[0] == found[1] == ([5, 1, "inner", 2, None, (1, 2)], 5)


def test_a_new_context_leaves_older_caches_comparable(caplog):
    function = xtrace.jit(lambda x: x)
    function(1.0)
    context = xtrace.make_user_context("plain")
    function(1.0)
    with xtrace.explain_cache_misses(True), context("other"):
        function(1.0)
    assert any("user_context" in record.getMessage() for record in caplog.records)
    with pytest.raises(TypeError, match="unhashable"):
        xtrace.make_user_context([])


def test_one_thread_may_be_the_only_one_that_calls_programs_of_several_processes():
    codes, outputs = run_processes(
        """
        import threading
        x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))
        total = xtrace.jit(lambda x: x.sum())
        def elsewhere():
            try:
                print("elsewhere", float(total(x)))
            except RuntimeError as error:
                print("refused", error)
        def call():
            thread = threading.Thread(target=elsewhere)
            thread.start()
            thread.join()
        total(x)
        call()
        with xtrace.thread_guard(True):
            print("here", float(total(x)), xtrace.jit(lambda x: x + 1)(1.0))
            call()
        call()
        xtrace.config.update("jax_thread_guard", True)
        call()
        xtrace.distributed.shutdown()
        """
    )
    assert codes == [0, 0], outputs
    for text in outputs:
        assert text.count("elsewhere 28.0") == 2 and "here 28.0 2.0" in text
        assert text.count("runs over several processes, and the setting jax_thread_guard") == 2


# Small modules and members


def test_versions():
    assert xtrace.version.__version__ == xtrace.__version__ == ".".join(map(str, xtrace.version.__version_info__))
    assert type(jax.version.__version_info__) is type(xtrace.version.__version_info__)
    assert [n for n in dir(jax.lib) if not n.startswith("_")] == list(dir(xtrace.lib)) == []


def test_memories_that_are_not_known_are_in_types_alone():
    for package in PACKAGES:
        spaces = package.memory.Space
        assert [s.name for s in spaces] == ["Device", "Host", "Any"] and str(spaces.Any) == "MemorySpace.Any"
        aval = package.typeof(package.numpy.ones(3)).update(memory_space=spaces.Any)
        assert aval.str_short(short_dtypes=True) == "f32<any>[3]"
        traced = package.make_jaxpr(lambda x, p=package: p.device_put(x, p.memory.Space.Any))(1.0)
        assert "f32<any>[]" in str(traced)
    for call in (lambda x: x, xtrace.jit):
        with pytest.raises(ValueError, match=r"Space\.Any stands for an unknown memory"):
            call(lambda x: xtrace.device_put(x, xtrace.memory.Space.Any))(1.0)


def test_functions_show_their_rule():
    for package in PACKAGES:
        assert package.custom_jvp.jvp is None and package.custom_jvp.symbolic_zeros is False
        function = package.custom_jvp(lambda x: x)
        assert function.jvp is None

        def rule(primals, tangents):
            return primals[0], tangents[0]

        function.defjvp(rule, symbolic_zeros=True)
        assert function.jvp is rule and function.symbolic_zeros is True
