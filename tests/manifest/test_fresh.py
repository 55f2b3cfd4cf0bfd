"""A job that was submitted is as it was before, whatever kept its gang together and its workers in place."""

from dataclasses import replace
from typing import Any

import pytest

from arena_topo.gang.backends import BACKENDS, decorate
from arena_topo.jobs.enforce import rewritten, suspended_with_plan
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.fresh import as_submitted, fresh
from arena_topo.manifest.gang import decorated, gang_of
from arena_topo.manifest.plan_on_job import Pins, with_pins
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model import keys
from arena_topo.model.job import ConfigFile, JobSpec, PodOptions
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage

SPEC = JobSpec(
    name="job",
    namespace="ml",
    image="i",
    command=("mpirun",),
    workers=2,
    gpus=1,
    gang=True,
    topology=True,
    pod=PodOptions(files=(ConfigFile("/a", b"a"),), labels={"team": "job"}),
)
RECORD = PlanRecord(stage=Stage.CONFIRMED, slots=(Slot(0, "n1", (0,)), Slot(1, "n2", (0,))))
UUIDS = {0: ("u0",), 1: ("u1",)}
V2 = ApiVersion.V2BETA1
KNOWN: dict[str, Any] = {
    "queue": "q",
    "level": "rack",
    "required": True,
    "kai_topologies": {"rack": "t"},
    "operator_gangs": None,
    "api": "v1beta1",
    "admission": True,
}
SERVERS: Object = {
    "uid": "u",
    "resourceVersion": "7",
    "generation": 2,
    "creationTimestamp": "2026-11-21T01:00:00Z",
    "managedFields": [{}],
    "ownerReferences": [{}],
    "finalizers": ["foregroundDeletion"],
    "deletionTimestamp": "2026-11-21T01:00:00Z",
}


def rendered(name: str, *, gang: bool = True) -> Object:
    """Return the job as a submit renders it."""
    return render(replace(SPEC, name=name, gang=gang), RenderContext(V2)).job


def on_server(job: Object) -> Object:
    """Return *job* as the API server has it once it has ended."""
    return {**job, "metadata": {**job["metadata"], **SERVERS}, "status": {"conditions": []}}


def bare(job: Any) -> Any:
    """Return *job* without keys that are empty, which mean nothing."""
    if isinstance(job, dict):
        return {key: bare(value) for key, value in job.items() if value not in ({}, [], None)}
    return job


@pytest.mark.parametrize("name", ["job", "other"])
@pytest.mark.parametrize("backend", sorted(BACKENDS))
@pytest.mark.parametrize("enforcement", list(Enforcement), ids=lambda enforcement: enforcement.name)
def test_gangs_and_plans_leave_nothing_behind(enforcement: Enforcement, backend: str, name: str) -> None:
    """Under its own name, and under another one."""
    gang = replace(gang_of(rendered("job")), **KNOWN)
    record = replace(RECORD, enforcement=enforcement)
    waiting = with_pins(decorated(rendered("job"), decorate(backend, gang)), suspended_with_plan(record))
    pins = rewritten(waiting, record, UUIDS)
    again = fresh(on_server(with_pins(waiting, pins)), name, pins)

    expected = rendered(name)
    # A user's own label that happens to have the job's name as its value is the user's.
    assert bare(expected) == bare({**again.job, "metadata": {**again.job["metadata"], "namespace": "ml"}})
    assert (True, True, "job-files") == (again.gang, again.topology, again.files)


@pytest.mark.parametrize("backend", ["kueue", "kai", "volcano", "yunikorn"])
def test_the_queue_of_a_gang_is_kept(backend: str) -> None:
    """The user named it."""
    gang = replace(
        gang_of(rendered("job")), **{**KNOWN, "operator_gangs": "volcano" if backend == "volcano" else ""}
    )
    again = fresh(decorated(rendered("job"), decorate(backend, gang)), "job", None)

    assert "q" == again.queue


@pytest.mark.parametrize(
    ("key", "levels"),
    [(keys.REQUIRED_LEVEL, ("rack", "")), (keys.PREFERRED_LEVEL, ("", "rack"))],
    ids=["required", "preferred"],
)
def test_the_level_of_a_gang_is_kept(key: str, levels: tuple[str, str]) -> None:
    """Its scheduler had it in a form of its own; the next one may have another."""
    job = rendered("job")
    job["metadata"].setdefault("annotations", {})[key] = "rack"
    again = fresh(job, "job", None)

    assert levels == (again.required_level, again.preferred_level)
    assert key not in again.job["metadata"]["annotations"]


def test_a_job_that_is_no_gang_keeps_the_users_scheduler() -> None:
    """Only what a gang put there is taken away."""
    job = render(
        replace(SPEC, gang=False, topology=False, pod=PodOptions(scheduler="volcano")), RenderContext(V2)
    ).job
    again = fresh(job, "job", None)

    assert (job, False, False, "") == (again.job, again.gang, again.topology, again.files)


def test_claimed_gpus_are_requested_again() -> None:
    """The number in the annotation is what the plan reads a request from."""
    job = render(SPEC, RenderContext(V2, "gpu.nvidia.com")).job
    again = fresh(with_pins(job, Pins(plan="p", new=True)), "job", None)
    (container,) = again.job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"]

    assert "1" == container["resources"]["limits"]["gpu.nvidia.com"]


def test_what_the_server_wrote_is_dropped() -> None:
    """And nothing else: its plan says what is to be taken off."""
    job = with_pins(rendered("job"), Pins(plan="p", new=True))

    assert job == as_submitted(on_server(job))
