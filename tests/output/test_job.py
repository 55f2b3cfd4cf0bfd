"""A job is printed as the vendor's guides and Arena 0.15.5 print it, to the byte."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.jobs.status import job_view
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB, TrainingOperatorKind
from arena_topo.model.job_view import Instance, JobView
from arena_topo.model.objects import Object
from arena_topo.output.job import job_document, job_table
from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob
from tests.kinds.jobs import pod_of, training_job
from tests.objects import viewed
from tests.output.golden import golden

CREATED = datetime(2026, 11, 21, 1, 23, 45, tzinfo=UTC)


def view(documented: DocumentedJob, *, ended: datetime | None = None) -> JobView:
    """Return the view that should print *documented*'s table."""
    duration = re.search(r"Duration: +(\d+)([sm])", documented.table)
    assert duration is not None
    seconds = int(duration.group(1)) * {"s": 1, "m": 60}[duration.group(2)]
    rows = [line.split() for line in documented.table.splitlines()[10:]]
    instances = tuple(
        Instance(name, status, chief == "true", int(gpus), seconds, CREATED, node)
        for name, status, _, chief, gpus, node in rows
    )
    return viewed(
        name=documented.name,
        namespace="default",
        created=CREATED,
        duration=seconds,
        ended=ended,
        instances=instances,
        requested_gpus=4,
        allocated_gpus=4,
    )


@pytest.mark.parametrize("documented", DOCUMENTED_JOBS, ids=lambda documented: documented.name)
def test_the_table_is_the_documented_one(documented: DocumentedJob) -> None:
    """Every byte of the eight tables in the vendor's guides."""
    assert 5 == len(view(documented).instances)
    assert documented.table == job_table(view(documented))


def ended_pod(
    kind: TrainingOperatorKind, job: str, role: str, index: int, *, node: str, **more: bool
) -> Object:
    """Return a pod that has completed on *node*, with a GPU unless it is a server; or is ``terminating``."""
    pod = pod_of(kind, role, index, chief=more.get("chief", False))
    going = {"deletionTimestamp": "2026-11-21T01:29:45Z"} if more.get("terminating") else {}
    done = {"name": kind.container, "state": {"terminated": {"reason": "Completed", "exitCode": 0}}}
    limits = {} if role == "ps" else {"nvidia.com/gpu": "1"}
    return {
        "metadata": {
            **pod["metadata"],
            "name": f"{job}-{role}-{index}",
            "creationTimestamp": "2026-11-21T01:23:45Z",
            **going,
        },
        "spec": {"nodeName": node, "containers": [{"name": kind.container, "resources": {"limits": limits}}]},
        "status": {
            "phase": "Running" if going else "Succeeded",
            "containerStatuses": [] if going else [done],
        },
    }


@pytest.mark.parametrize(
    ("kind", "name", "roles", "pods"),
    [
        (
            TFJOB,
            "tf-dist-git",
            {"Worker": 2, "PS": 1},
            [
                ("worker", 1, "cn-hongkong.192.168.2.110", {"terminating": True}),
                ("worker", 0, "cn-hongkong.192.168.2.108", {"chief": True}),
                ("ps", 0, "cn-hongkong.192.168.2.109", {"terminating": True}),
            ],
        ),
        (
            PYTORCHJOB,
            "pytorch-dist-git",
            {"Master": 1, "Worker": 1},
            [("worker", 0, "172.16.0.210", {}), ("master", 0, "172.16.0.210", {"chief": True})],
        ),
    ],
    ids=["TFJob", "PyTorchJob"],
)
def test_jobs_of_roles_are_printed_as_arena_prints_them(
    kind: TrainingOperatorKind,
    name: str,
    roles: dict[str, int | None],
    pods: list[tuple[str, int, str, dict[str, bool]]],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """From the objects to the byte: by role and index, whichever of them is the chief.

    The instances are those of Arena's guides, docs/training/*/distributed.md; the head is as 0.15.5 prints it.
    """
    monkeypatch.setattr("arena_topo.output.job.local_time", lambda moment: f"{moment:%Y-%m-%d %H:%M:%S}")
    ended = CREATED + timedelta(minutes=6)
    job = training_job(kind, roles)
    job["metadata"] |= {"name": name, "namespace": "default", "creationTimestamp": CREATED.isoformat()}
    condition = {"type": "Succeeded", "status": "True", "lastTransitionTime": ended.isoformat()}
    job["status"] = {"conditions": [condition], "completionTime": ended.isoformat()}
    found = [ended_pod(kind, name, role, index, node=node, **more) for role, index, node, more in pods]
    seen = job_view(kind, job, found, now=ended)
    text = job_table(seen, wide=True)

    assert golden(f"job/{name}.txt", text) == text


def test_the_wide_table_tells_when_the_job_was_created_and_ended() -> None:
    """Two more lines, in local time, and wider labels; nothing but blanks after an end that has not come."""
    ended = CREATED + timedelta(hours=1)
    created, end = (f"{moment.astimezone():%Y-%m-%d %H:%M:%S}" for moment in (CREATED, ended))
    running, done = (
        job_table(view(DOCUMENTED_JOBS[0], ended=when), wide=True).splitlines() for when in (None, ended)
    )

    assert ["Name:        pytorch-topo-4-vgg16", f"CreateTime:  {created}", "EndTime:     "] == [
        running[line] for line in (0, 6, 7)
    ]
    assert f"EndTime:     {end}" == done[7]


def test_a_pod_without_a_node_shows_so() -> None:
    """N/A where there is none yet."""
    waiting = Instance(name="a", status="Pending", chief=False, gpus=1, age=1, created=CREATED)

    assert "  a     Pending  1s   false     1               N/A\n" in job_table(viewed(instances=(waiting,)))


def test_the_document_has_the_keys_of_arena_in_their_order() -> None:
    """As pkg/apis/types/training.go declares them, and ours behind them."""
    document = job_document(view(DOCUMENTED_JOBS[0]))

    assert [
        "uuid", "name", "namespace", "duration", "status", "trainer", "tensorboard", "chiefName", "instances",
        "priority", "requestGPUs", "allocatedGPUs", "creationTimestamp", "modelName", "modelVersion", "modelSource",
        "apiVersion", "workers", "endTimestamp", "message", "advice", "plan", "queue",
    ] == list(document)  # fmt: skip
    assert [
        "ip", "status", "name", "age", "node", "nodeIP", "chief", "requestGPUs", "gpuMetrics", "creationTimestamp",
        "reason",
    ] == list(document["instances"][0])  # fmt: skip
    assert ("11s", "RUNNING", "mpijob") == (document["duration"], document["status"], document["trainer"])
    assert "pytorch-topo-4-vgg16-launcher-mnjzr" == document["chiefName"]
