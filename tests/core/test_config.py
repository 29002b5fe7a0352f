"""Settings: global values, overrides of one thread, the environment, and the key that caches use."""

import ast
import contextlib
import json
import os
import subprocess
import sys
import threading
import types

import jax
import numpy as np
import pytest

import xtrace
from xtrace._src.core.settings import absl_flags, config
from xtrace._src.core.settings.config import cache_key
from xtrace._src.core.settings.inert_settings import INERT

ENVIRONMENT = "import xtrace; print(xtrace.config.read({name!r}))"


@pytest.fixture(autouse=True)
def restored():
    """Global values as they were, after each test."""
    before = dict(config.store.values)
    yield
    for name, value in before.items():
        config.store.set(name, value)


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
    assert cache_key() is config.store.key_everywhere


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
    store = config.store
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
    assert not wrong and config.store.overriding == 0 and config.store.key_everywhere is cache_key()


# Wrong names and values


@pytest.mark.parametrize(
    "use", [lambda n: xtrace.config.update(n, 1), xtrace.config.read, lambda n: getattr(xtrace.config, n)]
)
def test_an_unknown_name_suggests_a_known_one(use):
    with pytest.raises(AttributeError, match="no setting 'jax_enable_x46'; did you mean 'jax_enable_x64'"):
        use("jax_enable_x46")
    with pytest.raises(AttributeError, match=r"no setting 'zzz'; xtrace.config.values has all of them$"):
        use("zzz")


def test_a_wrong_value_names_the_setting_and_changes_nothing():
    before = cache_key()
    with pytest.raises(ValueError, match="jax_enable_x64: a boolean setting was given 'maybe'; write true or false"):
        xtrace.config.update("jax_enable_x64", "maybe")
    with pytest.raises(
        ValueError, match="jax_numpy_rank_promotion: the setting accepts 'allow', 'warn', 'raise'; got 1"
    ):
        xtrace.config.update("jax_numpy_rank_promotion", 1)
    with pytest.raises(ValueError, match="jax_default_device: the setting accepts a device, one of"):
        xtrace.config.update("jax_default_device", [])
    with pytest.raises(ValueError, match="jax_enable_x64"), xtrace.enable_x64("maybe"):
        raise AssertionError("the block ran")
    assert cache_key() is before is config.store.key_everywhere


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


def run(name, code=ENVIRONMENT, **variables):
    clean = {k: v for k, v in os.environ.items() if not k.startswith(("XTRACE_", "JAX_"))}
    command = [sys.executable, "-c", code.format(name=name) if code is ENVIRONMENT else code]
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


# All settings of jax


ELSEWHERE = {
    # More is written than in jax.
    "jax_dump_ir_modes": "jaxpr,stablehlo,hlo"
}
SETTINGS = sorted(jax.config.values)


def test_every_setting_of_jax_is_there_with_its_default():
    done = run("values", code="import json, xtrace; print(json.dumps(xtrace.config.values))")
    found, variables = json.loads(done.stdout), "import jax; print({k: getattr(v, 'value', v) for k, v in "
    theirs = run("values", code=f"{variables}jax.config.values.items()}})").stdout
    expected = ast.literal_eval(theirs) | ELSEWHERE | {"jax_explicit_x64_dtypes": "warn"}
    assert {name: found[name] for name in expected} == expected


@pytest.mark.parametrize("name", SETTINGS)
def test_every_setting_can_be_changed_and_read(name):
    setting = config.find_setting(name)
    other = other_value(setting)
    before = setting.value
    with setting(other):
        assert xtrace.config.read(name) == getattr(xtrace.config, name) == xtrace.config.values[name] == other
        assert in_another_thread(lambda: setting.value) == before
    assert setting.value == before
    for value in (object(), 1.5j, "no such value" if setting.kind.flag != "string" else [1]):
        with pytest.raises((ValueError, TypeError), match=f"^{name}: .*(accepts|write)"):
            xtrace.config.update(name, value)
    assert setting.value == before


def other_value(setting):
    """A value that the setting takes and does not have by default."""
    for value in (True, False, 7, "text", "cpu", "hlo", *setting.kind.choices):
        with contextlib.suppress(ValueError):
            if setting.kind.parse(value) != setting.default:
                return value
    raise AssertionError(setting.name)


@pytest.mark.parametrize("name", [s.name for s in INERT])
def test_settings_without_effect_say_so_once(name, caplog, monkeypatch):
    setting = config.find_setting(name)
    monkeypatch.setattr("xtrace._src.core.settings.setting._noted", set())
    xtrace.config.update(name, setting.default)
    assert caplog.records == []
    other = other_value(setting)
    key = cache_key()
    for _ in range(2):
        xtrace.config.update(name, other)
        assert xtrace.config.read(name) == other and cache_key() is key
    (record,) = caplog.records
    assert record.levelname == "WARNING"
    assert record.getMessage() == f"the setting {name} changes nothing: {setting.note}"


def test_jax_has_context_managers_for_the_settings_that_are_public():
    state = type(jax.enable_x64)
    names = [name for name in dir(jax) if isinstance(getattr(jax, name), state)]
    assert len(names) > 20
    for name in names:
        assert isinstance(getattr(xtrace, name), config.Setting) and name in xtrace.__all__


def test_a_setting_with_several_values_needs_one():
    for setting in (xtrace.numpy_rank_promotion, xtrace.default_device):
        with pytest.raises(TypeError, match=r"has no value to turn on; write with .*\(value\)"), setting():
            raise AssertionError("the block ran")
    with pytest.raises(TypeError, match=r"no truth value; its value is in enable_x64.value"):
        bool(xtrace.enable_x64)


@pytest.mark.parametrize(
    "name, variables, expected",
    [
        ("eager_constant_folding", {"EAGER_CONSTANT_FOLDING": "1"}, "True"),
        ("eager_constant_folding", {"XTRACE_EAGER_CONSTANT_FOLDING": "1"}, "True"),
        ("jax_random_seed_offset", {"JAX_RANDOM_SEED_OFFSET": "3"}, "3"),
        ("jax_persistent_cache_min_compile_time_secs", {"XTRACE_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "2"}, "2.0"),
        ("jax_legacy_prng_key", {"JAX_LEGACY_PRNG_KEY": "error"}, "error"),
    ],
)
def test_every_setting_has_environment_variables(name, variables, expected):
    done = run(name, **variables)
    assert done.stdout.strip() == expected, done.stderr


@pytest.mark.parametrize(
    "variables, words",
    [
        ({"XTRACE_RANDOM_SEED_OFFSET": "abc"}, "an integer setting was given 'abc'; write an integer or None"),
        ({"JAX_LEGACY_PRNG_KEY": "abc"}, "the setting accepts 'allow', 'warn', 'error'; got 'abc'"),
        ({"JAX_PGLE_PROFILING_RUNS": "1.5"}, "an integer setting was given '1.5'"),
    ],
)
def test_wrong_environment_variables_are_named(variables, words):
    done = run("jax_enable_x64", **variables)
    (name,) = variables
    assert done.returncode != 0 and words in done.stderr and name in done.stderr


# Flags of absl


class FakeFlag:
    def __init__(self, value):
        self.value, self.present = value, 0


class FakeFlags(dict):
    """The flags as absl has them: called with the command line it parses, and keeps the rest if told so."""

    def __call__(self, argv, known_only=False):
        for word in argv[1:]:
            name, _, value = word.removeprefix("--").partition("=")
            if name in self:
                self[name].value, self[name].present = value or True, 1
            else:
                assert known_only, f"unknown flag {name}"
        return argv[:1]


@pytest.fixture
def absl(monkeypatch):
    flags, app, package = (types.ModuleType(f"absl{suffix}") for suffix in (".flags", ".app", ""))
    flags.FLAGS, flags.made, app.later = FakeFlags(), [], []

    def definer(kind):
        def define(name, default, help, **others):
            assert help and set(others) == ({"enum_values"} if kind == "enum" else set())
            flags.made.append((kind, name))
            flags.FLAGS[name] = FakeFlag(default)

        return define

    for kind in ("bool", "integer", "float", "string", "enum"):
        setattr(flags, f"DEFINE_{kind}", definer(kind))
    app.call_after_init = app.later.append
    package.flags, package.app = flags, app
    for module in (package, flags, app):
        monkeypatch.setitem(sys.modules, module.__name__, module)
    monkeypatch.setattr(absl_flags, "_state", {})
    return package


def test_settings_become_flags_of_absl(absl):
    xtrace.config.config_with_absl()
    xtrace.config.config_with_absl()
    kinds = {name: kind for kind, name in absl.flags.made}
    assert len(kinds) == len(absl.flags.made) and kinds.keys() >= set(SETTINGS)
    assert kinds["jax_enable_x64"] == "bool" and kinds["jax_legacy_prng_key"] == "enum"
    assert kinds["jax_platforms"] == "string" and kinds["jax_random_seed_offset"] == "integer"
    absl.flags.FLAGS(["program", "--jax_random_seed_offset=3", "--jax_enable_x64"])
    assert xtrace.config.jax_random_seed_offset == 0, "the flags were not read yet"
    (later,) = absl.app.later
    later()
    assert xtrace.config.jax_random_seed_offset == 3 and xtrace.config.jax_enable_x64 is True
    assert xtrace.config.jax_legacy_prng_key == "allow"


def test_programs_without_absls_main_may_take_settings_from_the_command_line(absl, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["program", "--jax_legacy_prng_key=warn", "--other=1", "file"])
    xtrace.config.parse_flags_with_absl()
    assert xtrace.config.jax_legacy_prng_key == "warn"
    monkeypatch.setattr(sys, "argv", ["program", "--jax_legacy_prng_key=error"])
    xtrace.config.parse_flags_with_absl()
    assert xtrace.config.jax_legacy_prng_key == "warn", "it is done once"


def test_a_wrong_flag_names_the_setting(absl, monkeypatch):
    monkeypatch.setattr(sys, "argv", ["program", "--jax_legacy_prng_key=perhaps"])
    with pytest.raises(ValueError, match="jax_legacy_prng_key: the setting accepts 'allow', 'warn', 'error'"):
        xtrace.config.parse_flags_with_absl()


@pytest.mark.parametrize("name", ["config_with_absl", "parse_flags_with_absl"])
def test_without_absl_the_package_is_named(name, monkeypatch):
    monkeypatch.setitem(sys.modules, "absl", None)
    monkeypatch.setattr(absl_flags, "_state", {})
    with pytest.raises(ModuleNotFoundError, match="not installed; pip install absl-py, or set the environment"):
        getattr(xtrace.config, name)()
