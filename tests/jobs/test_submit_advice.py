"""What the API server accepts and what then does not work is said before the job is created."""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from arena_topo.jobs.prepare import GpuOffer, advice_on_gpus, gpu_offer, never_fits
from arena_topo.jobs.sources import advice_on_command
from arena_topo.model.job import JobSpec, PodOptions
from arena_topo.model.objects import Object
from tests.documented_jobs import DOCUMENTED_JOBS
from tests.fakes import Answer, Call, refusal, session
from tests.jobs.servers import JOB


@pytest.mark.parametrize(
    ("command", "options"),
    [
        ("mpirun -np 4 -bind-to none -map-by slot python t.py", "-bind-to and -map-by"),
        ("mpirun -np 4 -map-by slot t", "-map-by"),
        (DOCUMENTED_JOBS[0].argv[-1], "-bind-to and -map-by"),
    ],
)
def test_options_that_only_an_old_mpirun_takes_are_named(command: str, options: str) -> None:
    """With the spelling that both versions take."""
    (advice,) = advice_on_command(replace(JOB, command=("sh", "-c", command)))

    assert f"ends with an error at {options}: write -{options.replace(' -', ' --')}" in advice


@pytest.mark.parametrize(
    "command", ["mpirun --bind-to none -x A=-bind-to-x t", "python -bind-to none", "mpirun --map-by=slot t"]
)
def test_any_other_command_is_left_alone(command: str) -> None:
    """Two dashes work everywhere, and other programs have options of their own."""
    assert [] == list(advice_on_command(replace(JOB, command=("sh", "-c", command))))


def node(resource: str = "nvidia.com/gpu", gpus: int = 8, labels: Mapping[str, str] | None = None) -> Object:
    """Return a node that offers GPUs by the name *resource*."""
    return {"metadata": {"name": "n", "labels": labels or {}}, "status": {"capacity": {resource: str(gpus)}}}


def offer(
    job: JobSpec, *nodes: Object, resource: str = "nvidia.com/gpu", may: bool = True
) -> GpuOffer | None:
    """Return what is counted on a cluster of *nodes*, whose list has a page for each."""

    def answer(call: Call) -> Answer:
        if not may:
            return refusal(403, "Forbidden")
        page = int(call.query.get("continue") or 0)
        more = {"continue": str(page + 1)} if page + 1 < len(nodes) else {}
        return Answer(body={"metadata": more, "items": nodes[page : page + 1]})

    return gpu_offer(session(answer)[0], job, resource)


def advice(job: JobSpec, *nodes: Object) -> str:
    """Return what is said on a cluster of *nodes*."""
    found = offer(job, *nodes)
    return " ".join(advice_on_gpus(job, found)) if found else ""


VENDORS = node("aliyun.com/gpu")


def test_gpus_of_the_vendors_name_need_the_flag_that_requests_them() -> None:
    """Pods that request them by another name would stay pending."""
    assert "aliyun.com/gpu, which --gputopology requests" in advice(JOB, VENDORS)


def test_nothing_is_said_where_the_gpus_are_requested_by_their_name() -> None:
    """Or where there are none of the vendor's."""
    assert "" == advice(JOB, node())
    assert "" == advice(JOB)
    assert "" == advice(replace(JOB, topology=True), VENDORS)
    assert "" == advice(replace(JOB, gpus=0), VENDORS)
    assert "" == advice(replace(JOB, pod=PodOptions(devices={"aliyun.com/gpu": "1"})), VENDORS)


@pytest.mark.parametrize(
    ("workers", "gpus", "nodes", "why"),
    [
        (
            20,
            1,
            [node(), node()],
            "the cluster has 16 GPUs, which hold 16 of 20 workers with 1 GPU even when it is idle",
        ),
        (
            2,
            16,
            [node()] * 4,
            "the cluster has 32 GPUs, which hold 0 of 2 workers with 16 GPUs even when it is idle",
        ),
        (16, 1, [node(), node()], ""),
        (2, 1, [], ""),
        (
            2,
            16,
            [node(), VENDORS],
            "the cluster has 8 GPUs, which hold 0 of 2 workers with 16 GPUs even when it is idle",
        ),
        (2, 16, [node(), node(labels={"karpenter.sh/nodepool": "gpus"})], ""),
        (2, 16, [node(), node(labels={"type": "virtual-kubelet"})], ""),
    ],
    ids=["too many", "too large", "all", "no GPUs yet", "another name", "made on demand", "serverless"],
)
def test_more_gpus_than_all_nodes_have_can_never_be_had(
    workers: int, gpus: int, nodes: list[Object], why: str
) -> None:
    """Where nodes are counted, and do not come with the pods that need them."""
    job = replace(JOB, workers=workers, gpus=gpus)
    found = offer(job, *nodes)

    assert found is not None
    assert why == never_fits(job, found)


def test_nodes_are_counted_only_as_far_as_it_takes() -> None:
    """A list of ten thousand nodes is not read for a job
    of two workers, and nobody needs the right to read it.
    """
    assert 1 == (offer(replace(JOB, workers=1), *[node(gpus=1)] * 5) or GpuOffer()).gpus
    assert None is offer(JOB, may=False)
    assert None is offer(JOB, node(), resource="gpu.nvidia.com")
