"""A cluster with jobs, for the tests of the live view."""

from dataclasses import replace
from datetime import UTC, datetime

from arena_topo.model.job_view import Instance, JobStatus, JobView, PlanView
from arena_topo.model.plan import Prediction, Range, Transport
from arena_topo.model.reports import LinkUse, Overview
from tests.objects import viewed
from tests.output.clusters import machine, small_cluster

BEGAN = datetime(2026, 11, 21, 1, tzinfo=UTC)


def job_of_two_workers(
    name: str, status: JobStatus = JobStatus.RUNNING, *, namespace: str = "ml", gpus: int = 8
) -> JobView:
    """Return a job of two workers that was created an hour ago, and has a pod on v100-0 where it runs."""
    running = (Instance(f"{name}-worker-0", "Running", False, gpus // 2, 3600.0, BEGAN, "v100-0"),)
    return viewed(
        name=name,
        namespace=namespace,
        uid=f"uid-{namespace}-{name}",
        status=status,
        created=BEGAN,
        duration=3600.0 + gpus,
        instances=running if status is JobStatus.RUNNING else (),
        requested_gpus=gpus,
        allocated_gpus=gpus,
        workers=2,
    )


def use(name: str, namespace: str = "ml", **workers: int) -> LinkUse:
    """Return the links of a job with *workers* on nodes, whose names have ``_`` for ``-``."""
    prediction = Prediction(
        Range(80.0, 90.0, 95.0),
        Transport.NVLINK,
        Transport.RDMA if len(workers) > 1 else None,
        inside_busbw=Range(200.0, 220.0, 230.0),
        across_busbw=Range(80.0, 90.0, 95.0) if len(workers) > 1 else None,
    )
    return LinkUse(
        (namespace, name),
        {node.replace("_", "-"): count for node, count in workers.items()},
        True,
        prediction,
    )


WAITS = replace(
    job_of_two_workers("gpt", JobStatus.PENDING, gpus=128),
    plan=PlanView(
        "waits for a placement: no 16 nodes have 8 free GPUs; retry with: arena-topo resume gpt",
        stage="waiting",
    ),
)

OVERVIEW = Overview(
    snapshot=small_cluster(),
    jobs=(
        job_of_two_workers("vgg16"),
        WAITS,
        job_of_two_workers("resnet50", JobStatus.FAILED, gpus=2),
        job_of_two_workers("bert", namespace="nlp", gpus=4),
    ),
    uses=(use("vgg16", v100_0=1, h200_0=1), use("bert", "nlp", v100_0=1)),
)


def large(count: int) -> Overview:
    """Return *count* machines in racks of 16, of which every third is full."""
    free, full = machine("n", "dgxa100"), machine("n", "dgxa100", big=tuple(range(8)))
    nodes = tuple(replace(free if index % 3 else full, name=f"node-{index}") for index in range(count))
    paths = {node.name: ("a", f"r{index // 16}") for index, node in enumerate(nodes)}
    fabric = replace(OVERVIEW.snapshot.fabric, paths=paths)
    return replace(OVERVIEW, snapshot=replace(OVERVIEW.snapshot, nodes=nodes, fabric=fabric), uses=())
