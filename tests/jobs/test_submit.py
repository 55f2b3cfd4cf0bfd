"""The line of a submit: each step once, reads first, writes last."""

from dataclasses import dataclass, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest

from arena_topo.errors import ArenaTopoError, DoesNotFit
from arena_topo.jobs.enforce import suspended_with_plan
from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.options import PlaceOptions, PlanOptions
from arena_topo.jobs.prepare import (
    HandedOver,
    NeverFits,
    PreparedJob,
    Reserved,
    Start,
    StartsAtOnce,
    StartsPlanned,
    WaitsInQueue,
    prepare,
)
from arena_topo.jobs.sources import FromEarlierJob, FromFlags, FromManifest, JobSource
from arena_topo.jobs.submit import submit_prepared
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.job import JobSpec
from arena_topo.model.keys import CHECK_CONTROLLER, HANGS_IN, NVIDIA_GPU
from arena_topo.model.placement_options import GangRequest, HangRule, Pin
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.fakes import Answer, Call, missing, session
from tests.jobs.servers import JOB, Server


def test_without_a_cluster_the_job_is_as_arena_renders_it() -> None:
    """In the newest version, with the vendor's resource."""
    job = FromFlags(job=replace(JOB, topology=True)).offline().job
    container = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]

    assert ("kubeflow.org/v2beta1", {"aliyun.com/gpu": "1"}) == (
        job["apiVersion"],
        container["resources"]["limits"],
    )


def test_the_user_may_choose_the_version() -> None:
    """Over today's."""
    manifest = FromFlags(job=JOB, version=ApiVersion.V1).offline()

    assert ApiVersion.V1 is manifest.kind
    assert "kubeflow.org/v1" == manifest.job["apiVersion"]


def test_a_template_must_render_an_mpijob(tmp_path: Path) -> None:
    """Nothing else is created in its name."""
    file = tmp_path / "t.j2"
    file.write_text('apiVersion: "v1"\nkind: "Secret"\nmetadata: {name: "x", namespace: "default"}\n')
    opened, transport = session(Server())
    with pytest.raises(ArenaTopoError, match="the template renders a Secret of v1, not an MPIJob"):
        prepare(opened, FromFlags(job=JOB, template=str(file)).request(opened, PlaceOptions()))
    assert {"GET"} == {call.method for call in transport.calls}


def test_coalesce_shapes_the_job_as_it_is_requested() -> None:
    """For the cluster as it is: all eight ranks fit into one pod there. Without the flag nothing is read."""
    status = {
        "allocatable": {NVIDIA_GPU: "8", "cpu": "64", "pods": "9"},
        "conditions": [{"type": "Ready", "status": "True"}],
    }
    node = {"metadata": {"name": "n"}, "status": status}
    opened, transport = session(
        lambda call: Answer(body={"items": [node] if call.path.endswith("/nodes") else []})
    )
    source, options = FromFlags(job=replace(JOB, workers=8)), PlanOptions(coalesce=True)

    assert 8 == source.request(opened, PlaceOptions()).job.workers
    assert [] == transport.calls
    job = source.request(opened, PlaceOptions(plan=options, requested=True)).job
    assert (1, 8, 8) == (job.workers, job.gpus, job.slots)


def test_a_gang_that_nothing_keeps_is_told() -> None:
    """The job is submitted anyway, as Arena would."""
    opened, _ = session(Server())
    ready = prepare(opened, FromFlags(job=replace(JOB, gang=True)).request(opened, PlaceOptions()))

    assert StartsAtOnce() == ready.start
    assert ready.warnings[0].startswith("no gang scheduler on this cluster can honour --gang")


@pytest.mark.parametrize(("said", "warned"), [("default", 0), ("other", 1)])
def test_submit_warns_where_no_controller_looks_at_ranks(said: str, warned: int) -> None:
    """The controller says on its Lease in which namespaces it does."""
    lease = {
        "metadata": {"annotations": {HANGS_IN: said}},
        "spec": {"holderIdentity": "a", "renewTime": datetime.now(UTC).isoformat()},
    }
    opened, _ = session(
        lambda call: Answer(body=lease) if "/leases/" in call.path else Cluster(controller=True)(call)
    )
    place = PlaceOptions(plan=PlanOptions(on_hang=HangRule(1800)), requested=True)
    ready = prepare(opened, FromFlags(job=JOB).request(opened, place))
    assert warned == sum(each.startswith("--on-hang: no controller looks") for each in ready.warnings)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """A cluster, with or without a controller, whose user ``may_plan`` or not.

    Its one node has ``gpus``, or nothing that is known. ``queues``: Kueue's queue asks our planner.
    """

    version: ApiVersion = ApiVersion.V2BETA1
    controller: bool = False
    may_plan: bool = True
    queues: bool = False
    gpus: int = 0

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        kueue = {"versions": [{"groupVersion": "kueue.x-k8s.io/v1beta2"}]}
        check = {"metadata": {"name": "place"}, "spec": {"controllerName": CHECK_CONTROLLER}}
        bodies: dict[str, Any] = {
            "selfsubjectaccessreviews": {"status": {"allowed": self.may_plan}},
            "leases": {"spec": {"holderIdentity": "a", "renewTime": datetime.now(UTC).isoformat()}},
            "apis": {"groups": [kueue] if self.queues else []},
            "localqueues": {"spec": {"clusterQueue": "all"}},
            "clusterqueues": {"spec": {"admissionChecksStrategy": {"admissionChecks": [{"name": "place"}]}}},
            "admissionchecks": {"items": [check]},
            "nodes": {"items": [{"status": {"capacity": {NVIDIA_GPU: str(self.gpus)}}}] if self.gpus else []},
        }
        if "leases" in call.path and not self.controller:
            return missing("arena-topo-controller")
        *_, plural, name = f"x/{call.path}".rsplit("/", 2)
        body = bodies.get(name) or bodies.get(plural)
        return Answer(body=body) if body else Server(self.version)(call)


def ready(source: JobSource, place: PlaceOptions, cluster: Cluster) -> PreparedJob:
    """Return the job that is prepared on *cluster*."""
    opened, _ = session(cluster)
    return prepare(opened, source.request(opened, place))


HERE, MANAGED = Cluster(), Cluster(controller=True)
FLAGS, REQUESTED = FromFlags(job=JOB), PlaceOptions(requested=True)
QUEUED = PlaceOptions(gang=GangRequest(scheduler="kueue", queue="team"))
WRITTEN = FromManifest(render(JOB, RenderContext()).job)
EARLIER = FromEarlierJob(job=WRITTEN.job, name="next")
RECORD = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "n"), Slot(1, "n")),
    requested_options={"policy": "best-effort", "required": "rack"},
)
PLANNED = replace(EARLIER, job=with_pins(EARLIER.job, suspended_with_plan(RECORD)))
FULL = "the cluster has 1 GPU, which hold 1 of 2 workers with 1 GPU even when it is idle"
GATED = Reserved(Enforcement.GATES, gang_waits=False)
LEFT = HandedOver(Enforcement.GATES, sees_cluster=True)


@pytest.mark.parametrize(
    ("source", "place", "cluster", "start"),
    [
        (FLAGS, PlaceOptions(), HERE, StartsAtOnce()),
        (FLAGS, PlaceOptions(), Cluster(gpus=1), NeverFits(FULL)),
        (FLAGS, PlaceOptions(expects_nodes=True), Cluster(gpus=1), StartsAtOnce()),
        (FLAGS, REQUESTED, HERE, GATED),
        (FLAGS, REQUESTED, Cluster(version=ApiVersion.V1ALPHA1), StartsPlanned(Enforcement.AFFINITY)),
        (FLAGS, REQUESTED, MANAGED, LEFT),
        (FLAGS, REQUESTED, replace(MANAGED, may_plan=False), replace(LEFT, sees_cluster=False)),
        (replace(FLAGS, job=replace(JOB, gang=True)), QUEUED, Cluster(queues=True), WaitsInQueue("v1beta2", None)),
        (replace(FLAGS, job=replace(JOB, gang=True)), replace(QUEUED, timeout=9.0), Cluster(queues=True), WaitsInQueue("v1beta2", 9.0)),
        (WRITTEN, PlaceOptions(), HERE, GATED),
        (WRITTEN, PlaceOptions(), MANAGED, LEFT),
        (WRITTEN, PlaceOptions(pin=Pin.NONE), MANAGED, StartsAtOnce()),
        (EARLIER, PlaceOptions(), HERE, StartsAtOnce()),
        (PLANNED, PlaceOptions(), HERE, GATED),
        (PLANNED, PlaceOptions(), MANAGED, LEFT),
    ],
)  # fmt: skip
def test_how_a_job_starts_is_decided_alike_for_every_source(
    source: JobSource, place: PlaceOptions, cluster: Cluster, start: Start
) -> None:
    """By what the user asks for, and by what the cluster has."""
    assert start == ready(source, place, cluster).start


def test_a_job_that_was_planned_is_planned_again_with_its_own_options() -> None:
    """Those of the new submit are not in their place."""
    place = ready(PLANNED, PlaceOptions(timeout=9.0), HERE).place

    assert (PlanOptions(required_level="rack"), 9.0) == (place.plan, place.timeout)


def test_a_job_that_never_fits_is_not_created() -> None:
    """Its submit ends before the first write."""
    opened, transport = session(Cluster(gpus=1))
    with pytest.raises(DoesNotFit, match="the cluster has 1 GPU"):
        submit_prepared(
            opened, prepare(opened, FLAGS.request(opened, PlaceOptions())), Waiter(print), lambda _: None
        )
    assert {"GET"} == {call.method for call in transport.calls}


@pytest.mark.parametrize("may_plan", [True, False])
def test_pods_are_only_rendered_for_gates_that_they_get(
    monkeypatch: pytest.MonkeyPatch, *, may_plan: bool
) -> None:
    """A user without the rights of a plan gets a job without one, and so without its gates."""
    seen: list[bool] = []

    def rendered(job: JobSpec, context: RenderContext, *, template: str = "") -> Manifest:
        seen.append(context.gated)
        return render(job, context, template=template)

    monkeypatch.setattr("arena_topo.jobs.prepare.render", rendered)
    opened, _ = session(Cluster(may_plan=may_plan))
    source = FromFlags(job=replace(JOB, topology=True))
    ready = prepare(opened, source.request(opened, PlaceOptions()))
    assert (may_plan, [may_plan]) == (ready.is_planned, seen)
