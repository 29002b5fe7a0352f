"""`xtrace.profiler`: files that TensorBoard and Perfetto read, annotations in them, memory profiles, the server."""

import gzip
import inspect
import json
import socket

import jax
import numpy as np
import pytest

import xtrace
import xtrace.numpy as jnp
from xtrace import profiler

X = np.ones((30, 30), np.float32)


@profiler.annotate_function
def annotated(x):
    """What it does."""
    return jnp.dot(x, x)


@pytest.fixture(scope="module")
def recorded(tmp_path_factory):
    """The files of one trace, by ending."""
    folder = tmp_path_factory.mktemp("profiles") / "deeper"
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    with profiler.trace(folder, create_perfetto_trace=True, profiler_options=options):
        for step in range(2):
            with profiler.StepTraceAnnotation("training", step_num=step):
                xtrace.jit(jnp.sin)(X).block_until_ready()
        with profiler.TraceAnnotation("a block of mine", size=7):
            annotated(X).block_until_ready()
        profiler.annotate_function(lambda x: x, name="renamed")(X)
    (run,) = (folder / "plugins" / "profile").iterdir()
    return {"perfetto" if "perfetto" in path.name else path.name.split(".", 1)[1]: path for path in run.iterdir()}


# jaxlib's iterators have types without a module, of which Python 3.13 warns; as an error that ends the process.
@pytest.mark.filterwarnings("ignore:builtin type")
def test_tensorboards_file_has_what_ran(recorded):
    data = profiler.ProfileData.from_file(str(recorded["xplane.pb"]))
    events = {event.name: dict(event.stats) for plane in data.planes for line in plane.lines for event in line.events}
    assert {"annotated", "renamed"} <= events.keys()
    assert events["a block of mine"] == {"size": 7} and events["training"] == {"_r": 1, "step_num": 1}
    assert any(stats.get("hlo_module") == "jit_sin" for stats in events.values())


def test_perfettos_file_has_what_ran(recorded):
    with gzip.open(recorded["perfetto"], "rt") as file:
        trace = json.load(file)
    names = {event.get("name") for event in trace["traceEvents"]}
    assert {"training", "a block of mine", "annotated", "renamed"} <= names and "metadata" not in trace
    assert recorded["trace.json.gz"].exists()


def test_one_trace_at_a_time(tmp_path, capsys):
    with pytest.raises(RuntimeError, match="No profile started; call start_trace"):
        profiler.stop_trace()
    options = profiler.ProfileOptions()
    options.python_tracer_level = 0
    profiler.start_trace(tmp_path, create_perfetto_link=True, profiler_options=options)
    with pytest.raises(RuntimeError, match=r"Only one profile may be run at a time: call stop_trace\(\) first"):
        profiler.start_trace(tmp_path / "other")
    profiler.stop_trace()
    shown = capsys.readouterr().out
    assert "https://ui.perfetto.dev" in shown and shown.rstrip().endswith("perfetto_trace.json.gz")
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"), profiler.trace(tmp_path / "file" / "below"):
        pass
    with pytest.raises(RuntimeError, match="No profile started"):
        profiler.stop_trace()


def test_annotations_keep_the_function_and_its_errors():
    assert annotated.__name__ == "annotated" and annotated.__doc__ == "What it does."
    assert np.array_equal(annotated(X), X @ X)
    with pytest.raises(ZeroDivisionError):
        profiler.annotate_function(lambda: 1 // 0)()
    with pytest.raises(TypeError):
        profiler.TraceAnnotation(3)


def test_memory_profiles(tmp_path):
    kept = xtrace.device_put(np.ones(1 << 20, np.float32))
    profiler.save_device_memory_profile(tmp_path / "memory.prof")
    profile = gzip.decompress((tmp_path / "memory.prof").read_bytes())
    assert b"buffer" in profile and len(gzip.decompress(profiler.device_memory_profile("cpu"))) > 50
    assert kept.shape == (1 << 20,)
    with pytest.raises(RuntimeError, match="there is no platform 'abacus'"):
        profiler.device_memory_profile("abacus")


def test_one_server_at_a_time():
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    with pytest.raises(ValueError, match="No active profiler server"):
        profiler.stop_server()
    assert profiler.start_server(port) is not None
    with pytest.raises(ValueError, match="Only one profiler server can be active"):
        profiler.start_server(port)
    profiler.stop_server()


def test_names_and_parameters_are_those_of_jax():
    for name in (
        "StepTraceAnnotation", "annotate_function", "device_memory_profile", "register_subprocess",
        "save_device_memory_profile", "start_server", "start_trace", "stop_server", "stop_trace", "trace",
    ):
        mine, theirs = (inspect.signature(getattr(m.profiler, name)) for m in (xtrace, jax))
        assert [(p.name, p.default) for p in mine.parameters.values()] == [
            (p.name, p.default) for p in theirs.parameters.values()
        ]
    assert {"ProfileData", "ProfileEvent", "ProfilePlane", "TraceAnnotation"} <= set(profiler.__all__)
