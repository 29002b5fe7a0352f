"""Processes that are killed, paused, late or different: the others get an error that names them, and none hangs."""

import re
import signal
import time

import pytest

from tests.distributed.processes import run

pytestmark = pytest.mark.thorough

# Each process counts its own seconds, since starting takes longer on a busy machine.
TOTAL = """
import os, signal, time
x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))
total = xtrace.jit(lambda x: (x * 2).sum())
assert float(total(x)) == 56.0
begin = time.monotonic()

def measured():
    try:
        print("total", float(total(x)))
    except RuntimeError as error:
        print(f"after {time.monotonic() - begin:.1f} seconds: {error}")
        raise
"""


def seconds(text):
    """The seconds that a process has counted."""
    return float(re.search(r"after ([\d.]+) seconds", text)[1])


@pytest.mark.parametrize("devices", [1, 2])
@pytest.mark.parametrize("name", ["SIGKILL", "SIGSTOP"])
def test_a_killed_or_paused_process_is_named_within_the_heartbeat(name, devices):
    """A process that waits for a killed or paused one gets an error with its number, host and time."""
    program = TOTAL + f"os.kill(os.getpid(), signal.{name}) if process == 1 else None\nmeasured()"
    codes, outputs = run(program, devices=devices, heartbeat=3, awaited=[0])
    assert codes == [1, -signal.SIGKILL], outputs
    assert re.search(r"LostProcessError: process 1 on \S+ \(pid \d+\) has been silent since \d\d:\d\d:\d\d", outputs[0])
    assert "start all processes again from what was saved" in outputs[0]
    assert seconds(outputs[0]) < 3 + 2  # a busy machine


def test_an_error_ends_the_others_at_once():
    """A process that waits for one that has ended with an error gets this error, before the heartbeat."""
    program = TOTAL + "if process == 1: raise KeyError('weights')\nmeasured()"
    codes, outputs = run(program)
    assert codes == [1, 1], outputs
    assert re.search(r"LostProcessError: process 1 on .* has ended with KeyError: 'weights'", outputs[0])
    assert seconds(outputs[0]) < 8


def test_an_error_in_the_process_with_the_coordinator():
    """The coordinator stays until the others know that its process has ended with an error."""
    codes, outputs = run(TOTAL + "if process == 0: raise KeyError('weights')\nmeasured()")
    assert codes == [1, 1], outputs
    assert re.search(r"LostProcessError: process 0 on .* has ended with KeyError: 'weights'", outputs[1])


def test_a_paused_coordinator_is_named():
    """The process of the coordinator is named if it does not answer."""
    program = TOTAL + "os.kill(os.getpid(), signal.SIGSTOP) if process == 0 else None\nmeasured()"
    codes, outputs = run(program, heartbeat=3, awaited=[1])
    assert codes == [-signal.SIGKILL, 1], outputs
    assert re.search(r"the coordinator in process 0 on \S+ \(pid \d+\) has not answered", outputs[1])
    assert seconds(outputs[1]) < 3 + 2


def test_a_killed_coordinator_is_named():
    """The others outlive the process of the coordinator, are told of its end at once, and can save their own data."""
    program = TOTAL + """
os.kill(os.getpid(), signal.SIGKILL) if process == 0 else None
try:
    measured()
except RuntimeError:
    print("saved", np.asarray(x.addressable_data(0)))
    time.sleep(2)
    raise
"""
    codes, outputs = run(program, devices=1, heartbeat=10)
    assert codes == [-signal.SIGKILL, 1], outputs
    assert re.search(r"the coordinator in process 0 on \S+ \(pid \d+\) has ended without a word", outputs[1])
    assert "saved [4. 5. 6. 7.]" in outputs[1] and seconds(outputs[1]) < 10


def test_a_process_may_come_late():
    """Processes wait for one that starts later, up to the time that they are given."""
    codes, outputs = run(TOTAL + "measured()", late=(1, 2))
    assert codes == [0, 0] and all("total 56.0" in text for text in outputs), outputs


def test_a_process_that_never_comes_is_named():
    """Process 0 says for how long it has waited; jaxlib names those that it has waited for, and ends it."""
    begin = time.monotonic()
    codes, outputs = run("", timeout=2, started=[0])
    assert codes == [-signal.SIGABRT] and time.monotonic() - begin < 15
    assert "process 0 has waited 2 seconds for the other processes, 1 of them" in outputs[0]
    assert re.search(r"timed out task names:\n1", outputs[0])


def test_a_program_that_ends_without_shutdown_ends_in_order():
    """Processes that do not call shutdown wait for each other at their ends, so that none ends with an error."""
    codes, outputs = run(TOTAL + "measured()\ntime.sleep(2 * (1 - process))")
    assert codes == [0, 0] and not any("rror" in text for text in outputs), outputs


def test_programs_in_another_order_are_named():
    """Processes that call compiled programs in different orders get the call and the lines at which they part."""
    program = """
    x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))

    def total(x):
        return x.sum()

    def ordered(x):
        return jnp.sort(x)

    first, second = xtrace.jit(total), xtrace.jit(ordered)
    first(x).block_until_ready(), second(x).block_until_ready()
    if process == 1:
        first, second = second, first
    float(first(x).sum()), second(x).block_until_ready()
    """
    codes, outputs = run(program, devices=1)
    assert codes == [1, 1], outputs
    assert any(
        re.search(r"part at call 3 of programs over processes 0, 1: process \d calls jit_\w+ at <string>:\d+, "
                  r"process \d calls jit_\w+ at <string>:\d+", text)
        for text in outputs
    ), outputs


def test_calls_are_compared_before_a_program_is_compiled():
    """A call that only one process has made is named when both compile the next program."""
    program = """
    y = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))
    doubled = xtrace.jit(lambda y: y * 2)
    y = doubled(y)
    y = doubled(y) if process == 0 else y
    y = xtrace.jit(lambda y: y + 1)(doubled(y))
    y = xtrace.jit(lambda y: y + 2)(y)
    """
    codes, outputs = run(program)
    assert codes == [1, 1], outputs
    assert all("numbers of programs over processes 0, 1: 3, 2, before the compilation" in t for t in outputs), outputs


def test_other_versions_are_named():
    """Processes with different versions of jaxlib get an error that names both versions."""
    before = "from xtrace._src.xla import versions; versions.JAXLIB_VERSION_TEXT = f'0.11.{process}'"
    codes, outputs = run("", before=before)
    assert codes == [1, 1], outputs
    assert "process 1 on" in outputs[0] and "has jaxlib 0.11.1, process 0 has jaxlib 0.11.0" in outputs[0]
    assert "has jaxlib 0.11.0, process 1 has jaxlib 0.11.1" in outputs[1]


def test_survivors_go_on_where_that_is_wanted():
    """With jax_enable_recoverability a process uses its own devices after another one was killed, and ends well."""
    program = TOTAL + """
if process == 1:
    os.kill(os.getpid(), signal.SIGKILL)
try:
    total(x).block_until_ready()
except RuntimeError as error:
    print("lost:", error)
print("own", float(jnp.arange(4.0).sum()))
with xtrace.experimental.multihost_utils.live_devices(xtrace.devices()) as left:
    print("left", len(left))
"""
    before = "xtrace.config.update('jax_enable_recoverability', True)"
    codes, outputs = run(program, heartbeat=3, before=before)
    assert codes == [0, -signal.SIGKILL], outputs
    assert "lost: process 1" in outputs[0] and "own 6.0" in outputs[0] and "left 2" in outputs[0]


def test_programs_in_another_order_are_named_at_the_end():
    """Collectives of one shape that only meet in another order give wrong values: the end of the program says so."""
    program = """
    x = xtrace.device_put(np.arange(8.0, dtype=np.float32), NamedSharding(mesh, P("data")))
    first, second = xtrace.jit(lambda x: x.sum()), xtrace.jit(lambda x: (2 * x).sum())
    first(x).block_until_ready(), second(x).block_until_ready()
    if process == 1:
        first, second = second, first
    first(x).block_until_ready(), second(x).block_until_ready()
    """
    codes, outputs = run(program, devices=1)
    assert codes == [1, 1], outputs
    assert all("the processes part at call 3 of programs over processes 0, 1" in text for text in outputs), outputs


def test_a_process_may_work_alone_after_the_others_have_finished():
    """Waits for own work, such as a callback's, end with no error, although the other process has finished long ago."""
    program = TOTAL + """
def sleep(x):
    time.sleep(6 if process == 0 else 0)
    return x

here = NamedSharding(Mesh(np.array(xtrace.local_devices()), ("data",)), P())
own = xtrace.jit(lambda x: xtrace.pure_callback(sleep, x, x))(xtrace.device_put(np.float32(3), here))
print("own", float(own))
"""
    codes, outputs = run(program, heartbeat=3)
    assert codes == [0, 0] and all("own 3.0" in text for text in outputs), outputs


def test_a_finished_process_learns_of_an_error():
    """A process that waits at its end for the one with the coordinator is told of the error that this one ends with."""
    codes, outputs = run(TOTAL + "if process == 0: time.sleep(1); raise KeyError('weights')")
    assert codes == [1, 1], outputs
    assert re.search(r"at the end of process 1: process 0 on .* has ended with KeyError: 'weights'", outputs[1])
