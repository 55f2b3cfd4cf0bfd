"""The controller's course, against the sandbox's API server in the test's own process."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from threading import Event, Thread
from typing import Any

import pytest

from arena_topo.controller.reconciler import Rules
from arena_topo.controller.report import Metrics
from arena_topo.controller.run import ControllerSessions, run_controller
from arena_topo.jobs.enforce import suspended_with_plan
from arena_topo.jobs.plan import Question, question_of
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.session import connect
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.model.keys import CONTROLLER_NAMESPACE, PLAN, PLANNED
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Stage, decode
from arena_topo.sandbox.lifecycle import Home
from tests.contract.bodies import mpijob
from tests.contract.client import Client
from tests.contract.cluster import eventually
from tests.e2e.definitions import definition
from tests.sandbox.served import served

DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
WATCHED = "/apis/jobset.x-k8s.io/v1alpha2/jobsets"
JOBSETS = "/apis/jobset.x-k8s.io/v1alpha2/namespaces/default/jobsets"
MPIJOBS = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"


@pytest.fixture
def home(tmp_path: Path) -> Iterator[Home]:
    """Serve a sandbox of one node without GPUs, with the namespace of the controller's Lease."""
    layout = tmp_path / "layout.yaml"
    layout.write_text("nodes: [{name: base, publish: []}]", "utf-8")
    with served(tmp_path / "sandbox", str(layout)) as running:
        yield running


@pytest.fixture
def admin(home: Home) -> Iterator[Client]:
    """Connect to it."""
    client = Client(home.kubeconfig)
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": CONTROLLER_NAMESPACE}}
    assert 201 == client.send("POST", "/api/v1/namespaces", body).code
    yield client
    client.close()


@contextmanager
def controller(home: Home, metrics: Metrics | None = None) -> Iterator[list[str]]:
    """Run a controller that looks for what is served newly all the time; what it says."""
    with ExitStack() as stack:
        flags = ConnectionFlags(kubeconfig=str(home.kubeconfig))
        watch, discovery, lease, writer, publisher = (
            stack.enter_context(closing(connect(flags))) for _ in range(5)
        )
        sessions = ControllerSessions(watch, discovery, lease, [writer], publisher)
        ended, said = Event(), list[str]()
        running = Thread(
            target=run_controller,
            args=(sessions, Rules(), ended, said.append),
            kwargs={"discover_every": 0.05, "metrics": metrics},
        )
        running.start()
        try:
            eventually(lambda: any("leading" in line for line in said), "the controller to lead")
            yield said
        finally:
            ended.set()
            running.join()


def as_waiting(job: Object) -> Object:
    """Return *job* as submit creates one that waits for a place."""
    record = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION)
    return with_pins(job, suspended_with_plan(record))


def jobset() -> Object:
    """Return a JobSet of two pods that ask for GPUs, which there are none of."""
    container = {"name": "main", "image": "i", "resources": {"limits": {"nvidia.com/gpu": "8"}}}
    template = {"spec": {"containers": [container], "restartPolicy": "Never"}}
    job = {"completionMode": "Indexed", "parallelism": 2, "completions": 2, "template": template}
    replicated = [{"name": "worker", "replicas": 1, "template": {"spec": job}}]
    return {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "late"},
        "spec": {"replicatedJobs": replicated},
    }


def queued(admin: Client, path: str) -> None:
    """Return once the job at *path* has a number in the queue."""

    def position() -> int:
        return decode(admin.get(path).body["metadata"]["annotations"][PLAN]).position

    eventually(position, f"{path} to be in the queue")


def test_a_kind_that_is_installed_later_is_watched_from_then_on(home: Home, admin: Client) -> None:
    """Its jobs are in the queue, and the controller has not restarted: it leads all the time."""
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    jobsets = definition("JobSet", "jobsets", "jobset.x-k8s.io/v1alpha2", schema)
    # The sandbox has them from the beginning.
    assert 200 == admin.send("DELETE", f"{DEFINITIONS}/jobsets.jobset.x-k8s.io").code
    with controller(home) as said:
        assert 201 == admin.send("POST", MPIJOBS, as_waiting(mpijob("first", ["base"], gpus=8))).code
        # It has seen what is served by then.
        queued(admin, f"{MPIJOBS}/first")
        assert 201 == admin.send("POST", DEFINITIONS, jobsets).code
        eventually(
            lambda: 201 == admin.send("POST", JOBSETS, as_waiting(jobset())).code, "JobSets to be served"
        )
        queued(admin, f"{JOBSETS}/late")
        assert 1 == sum("leading" in line for line in said)
        assert [f"newly served, and watched from now on: {WATCHED}"] == [
            line for line in said if "newly served" in line
        ]


def test_what_it_does_is_in_its_metrics(home: Home, admin: Client) -> None:
    """Whether it leads, who waits, and what it decided; once it has ended it leads no more."""
    metrics = Metrics()

    def value(name: str, **labels: str) -> float:
        return metrics.registry.get_sample_value(name, labels) or 0.0

    with controller(home, metrics):
        assert 1 == value("arena_topo_leading")
        assert 201 == admin.send("POST", MPIJOBS, as_waiting(mpijob("first", ["base"], gpus=8))).code
        queued(admin, f"{MPIJOBS}/first")
        eventually(lambda: 1 == value("arena_topo_waiting_jobs", queue="own"), "the job to be counted")
        assert 1 <= value("arena_topo_actions_total", action="plan_waiting")
        assert 1 <= value("arena_topo_decision_seconds_count")
        assert 0 == value("arena_topo_failed_actions_total")
    assert 0 == value("arena_topo_leading")


def test_a_job_that_this_program_fails_at_is_told_so_and_keeps_nobody_from_the_queue(
    home: Home, admin: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its event, the log with the trace, and the metric, each once; a
    job without workers cannot be written, and is told so too.
    """

    def spoiled(job: Object, *args: Any) -> Question:
        if job["metadata"]["name"] == "odd":
            raise AttributeError("nobody thought of this")
        return question_of(job, *args)

    monkeypatch.setattr("arena_topo.controller.reconciler.question_of", spoiled)
    metrics, events = Metrics(), "/api/v1/namespaces/default/events"
    bare = mpijob("bare", ["base"])
    bare["metadata"] |= {
        "labels": {PLANNED: "true"},
        "annotations": {PLAN: '{"v":1,"stage":"waiting","means":"gates"}'},
    }
    del bare["spec"]["mpiReplicaSpecs"]["Worker"]

    def told() -> list[str]:
        found = admin.get(events).body["items"]
        return [
            f"{each['involvedObject']['name']}: {each['message']}"
            for each in found
            if each["reason"] in {"InternalError", "NotPlanned"}
        ]

    with controller(home, metrics) as said:
        assert 201 == admin.send("POST", MPIJOBS, bare).code
        for name in ("odd", "honest"):
            assert 201 == admin.send("POST", MPIJOBS, as_waiting(mpijob(name, ["base"], gpus=8))).code
        for name in ("odd", "honest"):
            queued(admin, f"{MPIJOBS}/{name}")
        eventually(lambda: 2 == len(told()), "the events")
        message = "internal error: AttributeError: nobody thought of this"
        refused = "the template renders an MPIJob without a pod template for launcher and workers"
        assert {
            f"odd: {message}; everything else continues, and this will be retried",
            f"bare: {refused}; everything else continues, and this will be retried",
        } == set(told())
        (line,) = [line for line in said if "internal error" in line]
        assert line.startswith(f"MPIJob default/odd: {message}\n  File ")
        assert line.endswith("\nAttributeError: nobody thought of this")
        assert 2 == metrics.registry.get_sample_value("arena_topo_faults_total")
        plan = decode(admin.get(f"{MPIJOBS}/odd").body["metadata"]["annotations"][PLAN])
        assert message == plan.waiting_reason
