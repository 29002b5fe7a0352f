"""The addresses and numbers of processes, from job schedulers and environment variables."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import NamedTuple

from xtrace._src.core.diagnostics.abbreviation import abbreviate


class Cluster(NamedTuple):
    """The coordinator's address, the number of processes, and the numbers of this process in the program and locally.

    A part is None if the environment does not define it.
    """

    address: str | None = None
    processes: int | None = None
    process: int | None = None
    local: int | None = None


def detect_cluster(environment: Mapping[str, str], method: str | None = None) -> Cluster:
    """Return the cluster in the environment: from xtrace's own variables, else from those of schedulers.

    method: "slurm", "ompi" or "k8s" for one scheduler only, "deactivate" for none; ValueError for others.
    """
    if method is not None and method != "deactivate" and method not in SCHEDULERS:
        raise ValueError(
            f"initialize: cluster_detection_method must be one of {[*SCHEDULERS, 'deactivate']} or None, got "
            f"{abbreviate(method)}"
        )
    if method == "deactivate":
        return Cluster()
    readers = [_read_variables, *SCHEDULERS.values()] if method is None else [SCHEDULERS[method]]
    clusters = [reader(environment) for reader in readers]
    # Each part is taken from the first that has it.
    return Cluster(*[next((part for part in parts if part is not None), None) for parts in zip(*clusters, strict=True)])


def _integer(environment: Mapping[str, str], *names: str) -> int | None:
    for name in names:
        if value := environment.get(name):
            if not value.strip().isdecimal():
                raise ValueError(
                    f"initialize: the environment variable {name} must be an integer, got {abbreviate(value)}"
                )
            return int(value)
    return None


def _read_variables(environment: Mapping[str, str]) -> Cluster:
    address = environment.get("XTRACE_COORDINATOR_ADDRESS") or environment.get("JAX_COORDINATOR_ADDRESS")
    return Cluster(
        address or None, _integer(environment, "XTRACE_NUM_PROCESSES", "JAX_NUM_PROCESSES"),
        _integer(environment, "XTRACE_PROCESS_ID", "JAX_PROCESS_ID"),
    )


def _read_slurm(environment: Mapping[str, str]) -> Cluster:
    # A shell in an allocation has only the job's number; a step started by srun has a task's number, too.
    nodes = environment.get("SLURM_STEP_NODELIST")
    job = _integer(environment, "SLURM_JOB_ID")
    process = _integer(environment, "SLURM_PROCID")
    if not nodes or job is None or process is None:
        return Cluster()
    count = _integer(environment, "SLURM_STEP_NUM_TASKS", "SLURM_NTASKS")
    return Cluster(f"{_first_node(nodes)}:{_port(job)}", count, process, _integer(environment, "SLURM_LOCALID"))


def _first_node(nodes: str) -> str:
    """Return the first name of a list of nodes such as ``a[003-005,9]-x,b``."""
    match = re.match(r"([^\[,]*)(?:\[(\w+)[^\]]*\])?([^\[,]*)", nodes)
    assert match is not None
    return "".join([part or "" for part in match.groups()])


def _port(job: int) -> int:
    """Return a port above those of services, from the job's number, so that jobs on one machine rarely collide."""
    return 61_440 + job % 4_096


def _read_open_mpi(environment: Mapping[str, str]) -> Cluster:
    process = _integer(environment, "OMPI_COMM_WORLD_RANK")
    if process is None:
        return Cluster()
    # The launcher's machine, as in 1531576320.0;tcp://10.0.0.1,192.168.0.1:34911 or tcp4://, tcp6://[...].
    match = re.search(r"^(\d+)\.\d+;tcp\d?://([^,;:\[]+|\[[^\],]+)", environment.get("OMPI_MCA_orte_hnp_uri", ""))
    address = None
    if match is not None:
        host = match[2] + "]" if match[2].startswith("[") else match[2]
        address = f"{host}:{_port(int(match[1]) // 4_096)}"
    count = _integer(environment, "OMPI_COMM_WORLD_SIZE")
    return Cluster(address, count, process, _integer(environment, "OMPI_COMM_WORLD_LOCAL_RANK"))


def _read_kubernetes(environment: Mapping[str, str]) -> Cluster:
    # An indexed job, or a job set, with a headless service: the name of a pod is job-index.
    process = _integer(environment, "JOB_COMPLETION_INDEX")
    if "KUBERNETES_SERVICE_HOST" not in environment or process is None:
        return Cluster()
    host = re.fullmatch(rf"(.+)-{process}(?:-\w{{5}})?", environment.get("HOSTNAME", ""))
    domain = environment.get("JOBSET_NAME")
    address = f"{host[1]}-0{'.' + domain if domain else ''}:{_port(0)}" if host is not None else None
    return Cluster(address, None, process)


SCHEDULERS: dict[str, Callable[[Mapping[str, str]], Cluster]] = {
    "slurm": _read_slurm, "ompi": _read_open_mpi, "k8s": _read_kubernetes,
}
