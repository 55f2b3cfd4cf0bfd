"""What would help a job, or where to look, as ``get`` and ``describe`` say it: the next command to type."""

from collections.abc import Sequence

from arena_topo.jobs.status.failure import first_failed_worker
from arena_topo.model.job.job_view import JobStatus
from arena_topo.model.job.kind import Kind, chief_title, planned_noun
from arena_topo.model.keys import GANG_GATE
from arena_topo.model.objects import Object

STARTS_BY_ITSELF = "it starts by itself; who holds the GPUs: arena-topo top node"
"""What is left to do about a job that waits for its turn."""


def advice(kind: Kind, job: Object, pods: Sequence[Object], status: JobStatus, chief: Object | None) -> str:
    """Return what to do next about *job*, empty where nothing needs to be done."""
    name = job["metadata"]["name"]
    if status is JobStatus.FAILED:
        return _where_to_look(name, pods, chief, chief_title(kind, job))
    gated = [pod["metadata"]["name"] for pod in pods if _waits_at_our_gate(pod)]
    # Only a recreated worker waits while others run: submit releases a gang as a whole.
    if gated and len(gated) < sum(kind.member(pod) is not None for pod in pods):
        return f"{gated[0]} was recreated and waits for its place; release it with: arena-topo resume {name}"
    if gated:
        return (
            f"the {planned_noun(kind)}s wait for their places; "
            f"if no submit is running any more: arena-topo resume {name}"
        )
    if status is JobStatus.SUSPENDED:
        return f"the job is suspended; continue with: arena-topo resume {name}"
    if status is JobStatus.PENDING and (worker := first_failed_worker(pods)):
        return f"see arena-topo logs {name} -i {worker.pod}"
    return ""


def _where_to_look(name: str, pods: Sequence[Object], chief: Object | None, title: str) -> str:
    if worker := first_failed_worker(pods):
        return f"see arena-topo logs {name} -i {worker.pod}, and arena-topo logs {name} for {title}'s side"
    if chief is not None:
        return f"see arena-topo logs {name}"
    return f"its pods are gone; arena-topo events {name} shows what is left"


def _waits_at_our_gate(pod: Object) -> bool:
    gates = (pod.get("spec") or {}).get("schedulingGates") or ()
    return any(gate.get("name") == GANG_GATE for gate in gates)
