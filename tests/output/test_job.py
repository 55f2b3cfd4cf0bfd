"""A job is printed as the vendor's guides and Arena 0.15.5 print it, to the byte."""

import re
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.jobs.status import job_view
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB, TrainingOperatorKind
from arena_topo.model.job_view import (
    Instance,
    JobEvent,
    JobStatus,
    JobView,
    MoveView,
    PlannedWorker,
    PlanView,
)
from arena_topo.model.objects import Object
from arena_topo.output.job import (
    events_text,
    fitted_events,
    fitted_jobs,
    gpus_text,
    job_document,
    job_page,
    job_table,
    node_gpus_text,
)
from arena_topo.output.text import tabulate
from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob
from tests.kinds.jobs import pod_of, training_job
from tests.objects import viewed
from tests.output.golden import golden, too_wide

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

    The instances are those of Arena's guides, docs/training/*/distributed.md; the head is as 0.15.5 prints
    it.
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
    """N/A if there is none yet."""
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


# Events and GPUs below a job's table, as Arena lays them out.

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
CHIEF = Instance("job-launcher", "Running", True, 0, 0.0, NOW, node_ip="10.0.0.1")
WORKER = Instance("job-worker-0", "Running", False, 2, 0.0, NOW, node_ip="10.0.0.2")
JOB = viewed(instances=(CHIEF, WORKER), requested_gpus=2, allocated_gpus=2)
PLANNED = viewed(
    instances=(CHIEF, WORKER), plan=PlanView("", workers=(PlannedWorker("job-worker-0", "n", (4, 7)),))
)
MIB, GIB = 1024.0**2, 1024.0**3
USES = {"job-worker-0": {"0": (99.5, 100 * MIB, 200 * MIB), "3": (0.0, 0.0, 200 * MIB)}}
NODES = {"b": {"0": (12.0, GIB, 16 * GIB)}}
EVENTS = [
    ("pod/job-worker-0", "Warning", datetime(2026, 1, 1, tzinfo=UTC), "[FailedScheduling] 0/3 nodes \x1b[2J"),
    ("mpijob/job", "Normal", datetime(2026, 1, 1, 0, 59, tzinfo=UTC), "[Created] made"),
]
VIEWS: dict[str, Callable[[], str]] = {
    "events": lambda: events_text(EVENTS, now=NOW),
    "events-50": lambda: events_text(EVENTS, now=NOW, width=50),
    "events-none": lambda: events_text([], now=NOW),
    "gpus": lambda: gpus_text(JOB, USES),
    "gpus-70": lambda: gpus_text(JOB, {}, width=70),
    "gpus-planned": lambda: gpus_text(PLANNED, {}),
    "node-gpus": lambda: node_gpus_text(["a", "b"], NODES),
    "node-gpus-45": lambda: node_gpus_text(["b"], NODES, width=45),
}


@pytest.mark.parametrize("name", VIEWS)
def test_details_are_laid_out_as_arenas(name: str) -> None:
    """What was not measured is planned or N/A, nobody's text
    moves the cursor, and narrow terminals lose columns.
    """
    text = VIEWS[name]()

    assert golden(f"job/{name}.txt", text) == text


def test_nothing_is_said_of_nodes_that_nobody_measured() -> None:
    """Arena has no such table."""
    assert "" == node_gpus_text(["a"], {})


# All about a job on one page, and its events as a table.

LATER = datetime(2026, 11, 21, 1, 5, tzinfo=UTC)
EVENT = JobEvent(
    "pod/job-worker-0", "Warning", "FailedScheduling", "0/2 nodes\x1b[31m", LATER - timedelta(minutes=3)
)
LONG = replace(EVENT, message="0/2 nodes are available: the gang has no place on any of the racks")
PENDING_WORKER = Instance("job-worker-0", "Pending", False, 1, 60, LATER, reason="Unschedulable: 0/2 nodes")
PLAN = PlanView("0 of 1 worker where planned (gates)", workers=(PlannedWorker("job-worker-0", "n1", (0, 3)),))
WAITS = viewed(
    status=JobStatus.PENDING,
    instances=(PENDING_WORKER,),
    allocated_gpus=0,
    message="too full",
    advice="arena-topo resume job",
    plan=PLAN,
)
PAGES: dict[str, Callable[[], str]] = {
    "story": lambda: job_page(WAITS, [EVENT], LATER),
    "story-50": lambda: job_page(replace(WAITS, advice=""), [LONG], LATER, width=50),
    "story-nothing": lambda: job_page(viewed(status=JobStatus.PENDING), [], LATER),
    "story-forbidden": lambda: job_page(WAITS, None, LATER),
    "story-events": lambda: tabulate(fitted_events([EVENT], LATER).rows),
}


def happened(reason: str, pod: int, seconds: int, kind: str = "Normal") -> JobEvent:
    """Return an event of the pod *pod*, which was seen *seconds* ago."""
    return JobEvent(f"pod/job-worker-{pod}", kind, reason, f"of {pod}", LATER - timedelta(seconds=seconds))


def test_alike_events_are_one_with_their_number() -> None:
    """The last of each type and reason, in the order of time,
    and how to see each; a plan says what enforces it.
    """
    events = [happened("Started", 0, 5), happened("Scheduled", 0, 9), happened("Scheduled", 1, 7)]
    events += [happened("Failed", 0, 8), happened("Failed", 1, 1, "Warning")]
    job = replace(WAITS, plan=replace(PLAN, enforced="each on its node, by gates; a recreated worker waits"))
    short, whole = (
        job_page(job, events, LATER, all_events=every).split("\nEvents:\n") for every in (False, True)
    )
    rows = [line.split()[2:4] for line in short[1].splitlines()[1:-1]]

    assert [
        ["Failed", "pod/job-worker-0"],
        ["Scheduled", "x2"],
        ["Started", "pod/job-worker-0"],
        ["Failed", "pod/job-worker-1"],
    ] == rows
    assert "  (5 in all: --events)" == short[1].splitlines()[-1]
    assert ["9s", "8s", "7s", "5s", "1s"] == [line.split()[0] for line in whole[1].splitlines()[1:]]
    assert "\n  enforced:  each on its node, by gates\n             a recreated worker waits\n" in short[0]


@pytest.mark.parametrize("name", PAGES)
def test_a_page_answers_each_question(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """What it is, why it waits, what to do, where it should
    be, where it is, and what happened, in what room there is.
    """
    monkeypatch.setattr("arena_topo.output.job.local_time", lambda moment: str(moment or "-"))
    text = PAGES[name]()

    assert golden(f"job/{name}.txt", text) == text
    assert "-50" not in name or [] == too_wide(text, 50)


RUNS = viewed(
    name="vgg16",
    status=JobStatus.RUNNING,
    workers=2,
    requested_gpus=4,
    duration=65,
    instances=(
        Instance("vgg16-launcher", "Running", True, 0, 0.0, NOW, node="cpu"),
        *(Instance(f"vgg16-worker-{n}", "Running", False, 2, 0.0, NOW, node=f"n{n}") for n in range(2)),
    ),
)
LATE = viewed(
    name="late",
    status=JobStatus.PENDING,
    workers=2,
    requested_gpus=16,
    duration=5,
    message="waits for a placement: 2 workers of 8 GPUs do not fit; retry with: arena-topo resume late",
)
TORCH = replace(
    RUNS,
    name="bert",
    kind="PyTorchJob",
    instances=(Instance("bert-master-0", "Running", True, 8, 0.0, NOW, node="n9"),),
)


@pytest.mark.parametrize(
    ("jobs", "width", "lines"),
    [
        (
            [RUNS],
            80,
            [
                "NAME   STATUS   READY  GPUS  DURATION  WHERE",
                "vgg16  RUNNING  2/2    4     1m        2 nodes",
            ],
        ),
        (
            [TORCH, RUNS],
            80,
            [
                "NAME   KIND        STATUS   READY  GPUS  DURATION  WHERE",
                "bert   PyTorchJob  RUNNING  1/2    4     1m        n9",
                "vgg16  MPIJob      RUNNING  2/2    4     1m        2 nodes",
            ],
        ),
        (
            [RUNS, LATE],
            80,
            [
                "NAME   STATUS   READY  GPUS  DURATION  WHERE    REASON",
                "vgg16  RUNNING  2/2    4     1m        2 nodes  ",
                "late   PENDING  0/2    16    5s                 2 workers of 8 GPUs do not fit;…",
            ],
        ),
        (
            [RUNS, LATE],
            50,
            [
                "NAME   STATUS   READY  GPUS  REASON",
                "vgg16  RUNNING  2/2    4     ",
                "late   PENDING  0/2    16    2 workers of 8 GPUs…",
            ],
        ),
    ],
    ids=["one kind, no reason", "two kinds", "a reason", "a narrow terminal"],
)
def test_a_list_for_people_has_the_columns_that_they_need(
    jobs: list[JobView], width: int, lines: list[str]
) -> None:
    """A launcher is no worker, and a master is one; a reason is cut off where the terminal ends."""
    assert lines == tabulate(fitted_jobs(jobs, width).rows).splitlines()


def test_a_list_that_is_watched_has_room_for_jobs_to_come() -> None:
    """Of another kind, or with a reason."""
    table = fitted_jobs([RUNS], 100, namespaces=True, all_columns=True)

    headings = ["NAMESPACE", "NAME", "KIND", "STATUS", "READY", "GPUS", "DURATION", "WHERE", "REASON"]
    assert headings == list(table.rows[0])
    assert list(range(9)) == list(table.kept)


def test_workers_that_moved_are_told_from_where_to_where() -> None:
    """On the page with the time, and as a document; jobs that lost nothing say nothing of it."""
    at = datetime(2026, 11, 23, 15, 4, 5, tzinfo=UTC)
    job = viewed(
        workers=4,
        moved="1 of 4 workers moved: b is gone; 1 of 4 workers lost their nodes and wait: d is gone; no room",
        moves=(
            MoveView(at, "b is gone", (("job-worker-1", "b", "c"),)),
            MoveView(at, "d is gone", (("job-worker-2", "d", ""),), "no room"),
        ),
    )
    (section,) = [part for part in job_page(job, [], at).split("\n\n") if part.startswith("Moved:")]
    rows = [line.split()[2:] for line in section.splitlines()[3:]]
    assert [
        ["job-worker-1", "b", "c", "b", "is", "gone"],
        ["job-worker-2", "d", "waits", "d", "is", "gone;", "no", "room"],
    ] == rows
    assert [
        ("b is gone", [{"name": "job-worker-1", "from": "b", "to": "c"}], ""),
        ("d is gone", [{"name": "job-worker-2", "from": "d", "to": ""}], "no room"),
    ] == [(each["reason"], each["workers"], each["waitsFor"]) for each in job_document(job)["moves"]]
    assert "Moved:" not in job_page(viewed(), [], at)
    assert "moves" not in job_document(viewed())


def waiting(number: int, status: str, reason: str) -> Instance:
    """Return a worker that waits."""
    return Instance(f"job-worker-{number}", status, False, 1, 60, LATER, reason=reason)


@pytest.mark.parametrize(
    ("instances", "ends"),
    [
        (
            [waiting(n, "SchedulingGated", "SchedulingGated: waits at a gate") for n in range(2)],
            [
                "  job-worker-0  SchedulingGated  1m   false     1               N/A",
                "  job-worker-1  SchedulingGated  1m   false     1               N/A",
                "  (each of them: waits at a gate)",
            ],
        ),
        (
            [
                waiting(0, "Pending", "Unschedulable: no room"),
                waiting(1, "ImagePullBackOff", "ImagePullBackOff"),
            ],
            [
                "  job-worker-0  Pending           1m   false     1               N/A   Unschedulable: no room",
                "  job-worker-1  ImagePullBackOff  1m   false     1               N/A",
            ],
        ),
    ],
    ids=["one reason of all", "reasons of their own"],
)
def test_a_reason_is_said_once(instances: list[Instance], ends: list[str]) -> None:
    """Not again for each pod of a gang, and not where its status says as much."""
    page = job_page(viewed(instances=tuple(instances)), (), LATER, width=120)
    _, _, section = page.partition("Instances:\n")

    assert ends == section.partition("\n\n")[0].splitlines()[1:]
