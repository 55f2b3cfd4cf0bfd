"""A job is printed as the vendor's guides and Arena 0.15.5 print it, to the byte."""

import re
from datetime import UTC, datetime, timedelta

import pytest

from arena_topo.model.job.job_view import Instance, JobStatus, JobView
from arena_topo.output.job import job_document, job_table
from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob

CREATED = datetime(2026, 11, 21, 1, 23, 45, tzinfo=UTC)


def view(documented: DocumentedJob, *, ended: datetime | None = None) -> JobView:
    """Return the view that should print *documented*'s table."""
    duration = re.search(r"Duration: +(\d+)([sm])", documented.table)
    assert duration is not None
    seconds = int(duration.group(1)) * {"s": 1, "m": 60}[duration.group(2)]
    rows = [line.split() for line in documented.table.splitlines()[10:]]
    instances = tuple(
        Instance(
            name=row[0],
            status=row[1],
            chief=row[3] == "true",
            gpus=int(row[4]),
            age=seconds,
            created=CREATED,
            node=row[5],
        )
        for row in rows
    )
    return JobView(
        name=documented.name,
        namespace="default",
        uid="u",
        version="v2beta1",
        status=JobStatus.RUNNING,
        priority="",
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


def test_the_wide_table_tells_when_the_job_was_created_and_ended() -> None:
    """Two more lines, in local time, and wider labels; nothing but blanks after an end that has not come."""
    lines = job_table(view(DOCUMENTED_JOBS[0]), wide=True).splitlines()

    assert "Name:        pytorch-topo-4-vgg16" == lines[0]
    assert f"CreateTime:  {CREATED.astimezone():%Y-%m-%d %H:%M:%S}" == lines[6]
    assert "EndTime:     " == lines[7]
    ended = CREATED + timedelta(hours=1)
    assert (
        f"EndTime:     {ended.astimezone():%Y-%m-%d %H:%M:%S}"
        == job_table(view(DOCUMENTED_JOBS[0], ended=ended), wide=True).splitlines()[7]
    )


def test_a_pod_without_a_node_shows_so() -> None:
    """N/A where there is none yet."""
    waiting = Instance(name="a", status="Pending", chief=False, gpus=1, age=1, created=CREATED)
    job = view(DOCUMENTED_JOBS[0])
    table = job_table(JobView(**{**{f: getattr(job, f) for f in job.__slots__}, "instances": (waiting,)}))

    assert "  a     Pending  1s   false     1               N/A" == table.splitlines()[-1]


def test_the_document_has_the_keys_of_arena_in_their_order() -> None:
    """As pkg/apis/types/training.go declares them, and ours behind them."""
    document = job_document(view(DOCUMENTED_JOBS[0]))

    assert [
        "uuid", "name", "namespace", "duration", "status", "trainer", "tensorboard", "chiefName", "instances",
        "priority", "requestGPUs", "allocatedGPUs", "creationTimestamp", "modelName", "modelVersion", "modelSource",
        "apiVersion", "workers", "endTimestamp", "message", "advice", "plan",
    ] == list(document)  # fmt: skip
    assert [
        "ip", "status", "name", "age", "node", "nodeIP", "chief", "requestGPUs", "gpuMetrics", "creationTimestamp",
        "reason",
    ] == list(document["instances"][0])  # fmt: skip
    assert ("11s", "RUNNING", "mpijob") == (document["duration"], document["status"], document["trainer"])
    assert "pytorch-topo-4-vgg16-launcher-mnjzr" == document["chiefName"]
