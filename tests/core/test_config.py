"""Settings: global values, overrides of one thread, the environment, and the key that caches use."""

import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import xtrace
from xtrace.core import config
from xtrace.core.config import cache_key

ENVIRONMENT = "import xtrace; print(xtrace.config.read({name!r}))"


@pytest.fixture(autouse=True)
def restored():
    """Global values as they were, after each test."""
    before = dict(config._store.values)
    yield
    for name, value in before.items():
        config._store.set(name, value)


def in_another_thread(function):
    found = []
    worker = threading.Thread(target=lambda: found.append(function()))
    worker.start()
    worker.join()
    return found[0]


# Reading and changing


def test_update_changes_the_value_everywhere():
    xtrace.config.update("jax_enable_x64", True)
    assert xtrace.config.jax_enable_x64 is True and xtrace.config.read("jax_enable_x64") is True
    assert xtrace.enable_x64.value is True and xtrace.config.values["jax_enable_x64"] is True
    assert in_another_thread(lambda: xtrace.enable_x64.value) is True
    assert xtrace.jit(lambda: np.float64(1))().dtype == np.float64


def test_an_override_holds_inside_the_block_and_this_thread_only():
    with xtrace.enable_x64(True):
        assert xtrace.enable_x64.value is True
        assert in_another_thread(lambda: xtrace.enable_x64.value) is False
    assert xtrace.enable_x64.value is False


def test_overrides_nest_and_combine():
    with xtrace.enable_x64(True), xtrace.numpy_rank_promotion("raise"):
        with xtrace.enable_x64(False):
            assert (xtrace.enable_x64.value, xtrace.numpy_rank_promotion.value) == (False, "raise")
        assert (xtrace.enable_x64.value, xtrace.numpy_rank_promotion.value) == (True, "raise")
    assert (xtrace.enable_x64.value, xtrace.numpy_rank_promotion.value) == (False, "allow")


def test_an_override_ends_with_an_exception():
    with pytest.raises(KeyboardInterrupt), xtrace.enable_x64(True):
        raise KeyboardInterrupt
    assert xtrace.enable_x64.value is False
    assert cache_key() is config.store().key_everywhere


def test_an_override_outlives_a_global_change_made_inside_it():
    with xtrace.enable_x64(True):
        xtrace.config.update("jax_enable_x64", False)
        xtrace.config.update("jax_numpy_rank_promotion", "warn")
        assert xtrace.enable_x64.value is True and xtrace.numpy_rank_promotion.value == "warn"
    assert xtrace.enable_x64.value is False


def test_an_option_without_a_value_turns_the_setting_on():
    with xtrace.disable_jit():
        assert config.disable_jit.value is True


def test_an_override_decorates_a_function():
    @xtrace.enable_x64(True)
    def reads():
        return xtrace.enable_x64.value

    assert reads() is True and xtrace.enable_x64.value is False


# The key that caches use


def test_equal_values_give_one_key():
    outside = cache_key()
    with xtrace.enable_x64(True):
        inside = cache_key()
        with xtrace.enable_x64(False):
            assert cache_key() is outside
        assert cache_key() is inside is not outside
    xtrace.config.update("jax_enable_x64", True)
    assert cache_key() is inside
    xtrace.config.update("jax_enable_x64", False)
    assert cache_key() is outside


def test_settings_that_change_no_program_are_not_in_the_key():
    before = cache_key()
    with xtrace.log_compiles(True), xtrace.check_tracer_leaks(True):
        assert cache_key() is before


def test_the_key_of_another_thread_is_not_touched():
    before = cache_key()
    with xtrace.enable_x64(True):
        assert in_another_thread(cache_key) is before


def test_a_global_change_reaches_the_key_of_a_thread_with_overrides():
    with xtrace.numpy_rank_promotion("raise"):
        before = cache_key()
        in_another_thread(lambda: xtrace.config.update("jax_enable_x64", True))
        after = cache_key()
        assert after is not before and xtrace.enable_x64.value is True
        in_another_thread(lambda: xtrace.config.update("jax_enable_x64", False))
        assert cache_key() is before


def test_the_key_everywhere_is_known_only_while_nothing_is_overridden():
    store = config.store()
    assert store.key_everywhere is cache_key()
    with xtrace.enable_x64(True):
        assert store.key_everywhere is None
        with xtrace.enable_x64(True):
            xtrace.config.update("jax_log_compiles", False)
            assert store.key_everywhere is None
        assert store.key_everywhere is None
    assert store.key_everywhere is cache_key()


def test_threads_overriding_at_once_see_their_own_values():
    threads, rounds = 6, 200
    wrong = []
    start = threading.Barrier(threads)

    def work(mine):
        start.wait()
        for i in range(rounds):
            value = (i + mine) % 2 == 0
            with xtrace.enable_x64(value):
                if xtrace.enable_x64.value is not value or cache_key().values[0] is not value:
                    wrong.append((mine, i))

    workers = [threading.Thread(target=work, args=(n,)) for n in range(threads)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong and config.store().overriding == 0 and config.store().key_everywhere is cache_key()


# Wrong names and values


@pytest.mark.parametrize(
    "use", [lambda n: xtrace.config.update(n, 1), xtrace.config.read, lambda n: getattr(xtrace.config, n)]
)
def test_an_unknown_name_suggests_a_known_one(use):
    with pytest.raises(AttributeError, match="no setting 'jax_enable_x46'; did you mean 'jax_enable_x64'"):
        use("jax_enable_x46")
    with pytest.raises(AttributeError, match=r"no setting 'zzz'; the settings are jax_.*, jax_"):
        use("zzz")


def test_a_wrong_value_names_the_setting_and_changes_nothing():
    before = cache_key()
    with pytest.raises(ValueError, match="jax_enable_x64: a boolean setting was given 'maybe'; write true or false"):
        xtrace.config.update("jax_enable_x64", "maybe")
    with pytest.raises(
        ValueError, match="jax_numpy_rank_promotion: the setting accepts 'allow', 'warn', 'raise'; got 1"
    ):
        xtrace.config.update("jax_numpy_rank_promotion", 1)
    with pytest.raises(TypeError, match="jax_default_device: unhashable type: 'list'"):
        xtrace.config.update("jax_default_device", [])
    with pytest.raises(ValueError, match="jax_enable_x64"), xtrace.enable_x64("maybe"):
        raise AssertionError("the block ran")
    assert cache_key() is before is config.store().key_everywhere


def test_assigning_says_how_to_change_a_setting():
    with pytest.raises(AttributeError, match=r"config\.update\('jax_enable_x64', True\)"):
        xtrace.config.jax_enable_x64 = True


@pytest.mark.parametrize(
    "text, value", [("1", True), ("On", True), ("yes", True), ("false", False), ("", False), ("0", False)]
)
def test_booleans_may_be_words(text, value):
    xtrace.config.update("jax_enable_x64", text)
    assert xtrace.enable_x64.value is value


# The environment


def run(name, **variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("XTRACE_", "JAX_"))}
    command = [sys.executable, "-c", ENVIRONMENT.format(name=name)]
    root = os.path.dirname(os.path.dirname(xtrace.__file__))
    return subprocess.run(command, env=clean | variables, cwd=root, capture_output=True, text=True, timeout=60)


@pytest.mark.parametrize(
    "name, variables, expected",
    [
        ("jax_enable_x64", {}, "False"),
        ("jax_enable_x64", {"XTRACE_ENABLE_X64": "1"}, "True"),
        ("jax_enable_x64", {"JAX_ENABLE_X64": "true"}, "True"),
        ("jax_enable_x64", {"JAX_ENABLE_X64": "true", "XTRACE_ENABLE_X64": "0"}, "False"),
        ("jax_numpy_rank_promotion", {"XTRACE_NUMPY_RANK_PROMOTION": "raise"}, "raise"),
        ("jax_num_cpu_devices", {"XTRACE_NUM_CPU_DEVICES": "4"}, "4"),
        ("jax_platforms", {"JAX_PLATFORMS": "cpu"}, "cpu"),
    ],
)
def test_the_environment_gives_the_first_value(name, variables, expected):
    done = run(name, **variables)
    assert done.returncode == 0, done.stderr
    assert done.stdout.strip() == expected


def test_a_wrong_environment_variable_is_named():
    done = run("jax_enable_x64", XTRACE_ENABLE_X64="maybe")
    assert done.returncode != 0
    assert (
        "environment variable XTRACE_ENABLE_X64 (or JAX_ENABLE_X64): a boolean setting was given 'maybe'" in done.stderr
    )
