"""Topologies: the devices that are here, and errors for those that are nowhere; tests/aot has those of compilers."""

import pytest

import xtrace
from xtrace.experimental import topologies


def test_the_devices_that_are_here():
    attached = topologies.get_attached_topology("cpu")
    assert attached.devices == xtrace.devices("cpu")
    mesh = topologies.make_mesh(attached, (2, len(attached.devices) // 2), ("data", "model"))
    assert mesh.devices.ravel().tolist() == attached.devices and mesh.axis_names == ("data", "model")


@pytest.mark.parametrize(("call", "error", "words"), [
    (lambda: topologies.get_topology_desc("abacus:2x2"), ValueError, "unknown target 'abacus:2x2'"),
    (lambda: topologies.get_topology_desc("v5e:2x2", platform="cuda"), ValueError, "platform tpu, not 'cuda'"),
    (lambda: topologies.get_topology_desc(platform="cpu"), NotImplementedError, "other CPUs cannot be described"),
    (lambda: topologies.get_topology_desc("v5e:2x2", chips=3), TypeError, r"\['chips'\] are not supported"),
    (lambda: topologies.make_mesh(topologies.get_attached_topology(), (3, 5), ("x", "y")), ValueError, "3, 5"),
])
def test_wrong_topologies(call, error, words):
    with pytest.raises(error, match=words):
        call()
