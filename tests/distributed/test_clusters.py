"""The addresses and numbers of processes in the environment."""

import pytest

import xtrace
from xtrace._src.api.processes.clusters import Cluster, detect_cluster
from xtrace._src.xla import clients
from xtrace._src.xla.plugins import plugins
from xtrace._src.xla.processes import distributed

SLURM = {
    "SLURM_JOB_ID": "5000", "SLURM_STEP_NODELIST": "gpu[003-005,9]-ib,b7", "SLURM_PROCID": "5", "SLURM_LOCALID": "1",
    "SLURM_STEP_NUM_TASKS": "8",
}
OPEN_MPI = {
    "OMPI_MCA_orte_hnp_uri": "1531576320.0;tcp://10.96.0.1,10.148.0.1:34911", "OMPI_COMM_WORLD_RANK": "2",
    "OMPI_COMM_WORLD_SIZE": "4", "OMPI_COMM_WORLD_LOCAL_RANK": "0",
}


def test_variables_come_before_schedulers():
    """Variables with XTRACE_ come before those with JAX_, and these before Slurm's, each for its own part."""
    own = {"XTRACE_NUM_PROCESSES": "2", "JAX_NUM_PROCESSES": "3", "JAX_COORDINATOR_ADDRESS": "a:1"}
    assert detect_cluster(own | SLURM) == Cluster("a:1", 2, 5, 1)


@pytest.mark.parametrize(
    ("nodes", "first"), [("gpu[003-005,9]-ib,b7", "gpu003-ib"), ("a-1,b", "a-1"), ("n[7]", "n7"), ("host", "host")]
)
def test_slurm_names_the_first_node(nodes, first):
    """The coordinator is on the first node of the step, at a port of the job."""
    assert detect_cluster(SLURM | {"SLURM_STEP_NODELIST": nodes}) == Cluster(f"{first}:{61440 + 904}", 8, 5, 1)


def test_a_shell_of_slurm_is_no_process():
    """An allocation without a step says nothing: nothing was started by srun."""
    assert detect_cluster({"SLURM_JOB_ID": "5000", "SLURM_JOB_NODELIST": "a"}) == Cluster()


def test_open_mpi_names_the_launcher():
    """The coordinator is on the launcher's machine."""
    address, *numbers = detect_cluster(OPEN_MPI)
    assert address.startswith("10.96.0.1:") and numbers == [4, 2, 0]


def test_kubernetes_names_the_first_pod():
    """The coordinator is in the pod of index 0, under the name of the job's service."""
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "JOB_COMPLETION_INDEX": "1", "HOSTNAME": "train-1-x7k2p"}
    assert detect_cluster(pod)[0].startswith("train-0:")
    assert detect_cluster(pod | {"JOBSET_NAME": "net"})[0].startswith("train-0.net:")


def test_one_scheduler_or_none_is_chosen():
    """A method leaves the other schedulers and the variables out; an unknown one is an error."""
    assert detect_cluster(SLURM | OPEN_MPI, "ompi").process == 2
    assert detect_cluster(SLURM, "deactivate") == Cluster()
    with pytest.raises(ValueError, match=r"cluster_detection_method must be one of .*'slurm'.*got 'pbs'"):
        detect_cluster({}, "pbs")
    with pytest.raises(ValueError, match="XTRACE_PROCESS_ID must be an integer, got 'one'"):
        detect_cluster({"XTRACE_PROCESS_ID": "one"})


def test_initialize_checks_its_arguments(monkeypatch):
    """Missing and impossible arguments are named with a correction, and nothing is connected."""
    monkeypatch.setattr("xtrace._src.xla.clients.started_clients", {})
    initialize = xtrace.distributed.initialize
    with pytest.raises(ValueError, match=r"num_processes, process_id must be given.*XTRACE_NUM_PROCESSES"):
        initialize("127.0.0.1:1", cluster_detection_method="deactivate")
    with pytest.raises(ValueError, match=r"coordinator_address must be a host and a port"):
        initialize("127.0.0.1", 2, 0)
    with pytest.raises(ValueError, match=r"process_id must be between 0 and num_processes - 1 = 1, got 2"):
        initialize("127.0.0.1:1", 2, 2)
    assert not xtrace.distributed.is_initialized()


def test_initialize_comes_before_devices():
    """A process that has devices cannot be connected any more, and says so."""
    xtrace.devices()
    with pytest.raises(RuntimeError, match="before the first computation"):
        xtrace.distributed.initialize("127.0.0.1:1", 2, 0)


def test_clients_of_several_processes_are_told_of_the_connection(monkeypatch):
    """A plugin's client gets the coordinator, the number of this process and that of all."""
    held = distributed.Connection("client", None, "127.0.0.1:1", 1, 4, None, 1, 1)
    monkeypatch.setattr(distributed, "connections", [held])
    asked = {}
    monkeypatch.setattr(plugins, "load", lambda name, **options: asked.update({"name": name, **options}))
    clients._make("cuda")
    wanted = {"name": "cuda", "distributed_client": "client", "node_id": 1, "num_nodes": 4}
    assert {key: asked[key] for key in wanted} == wanted


def test_collectives_that_jaxlib_lacks_are_an_error(monkeypatch):
    """The setting names gloo, which jaxlib's wheels have; the others are refused, not ignored."""
    held = distributed.Connection("client", None, "127.0.0.1:1", 1, 4, None, 1, 1)
    monkeypatch.setattr(distributed, "connections", [held])
    with pytest.raises(RuntimeError, match=r"jax_cpu_collectives_implementation is 'mpi', .* set 'gloo'"):
        distributed.cpu_client_options("mpi", (2, 5))
    options = distributed.cpu_client_options(None, (3, 6))
    assert options["collectives"] is None and options["get_local_topology_timeout_minutes"] == 3
