"""What the API server accepts and what then does not work is said before the job is created."""

from dataclasses import replace

import pytest

from arena_topo.jobs.submit.advice import advice_on_command, advice_on_gpus
from arena_topo.model.job.job_spec import JobSpec, PodOptions
from tests.documented_jobs import DOCUMENTED_JOBS
from tests.fakes import Answer, Call, refusal, session
from tests.jobs.submit.servers import JOB


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


def advice(job: JobSpec, *, vendor: bool = True, resource: str = "aliyun.com/gpu", may: bool = True) -> str:
    """Return what is said on a cluster whose nodes offer *resource*."""

    def answer(call: Call) -> Answer:
        if not may:
            return refusal(403, "Forbidden")
        labelled = not call.query.get("labelSelector") or vendor
        offers = {"metadata": {"name": "n"}, "status": {"allocatable": {resource: "8"}}}
        return Answer(body={"items": [offers] if labelled else []})

    return " ".join(advice_on_gpus(session(answer)[0], job))


def test_gpus_of_the_vendors_name_need_the_flag_that_requests_them() -> None:
    """Pods that request them by another name would stay pending."""
    assert "aliyun.com/gpu, which --gputopology requests" in advice(JOB)


def test_nothing_is_said_where_the_gpus_are_requested_by_their_name() -> None:
    """Or where nobody may look."""
    assert "" == advice(JOB, resource="nvidia.com/gpu")
    assert "" == advice(JOB, vendor=False)
    assert "" == advice(replace(JOB, topology=True))
    assert "" == advice(replace(JOB, gpus=0))
    assert "" == advice(replace(JOB, pod=PodOptions(devices={"aliyun.com/gpu": "1"})))
    assert "" == advice(JOB, may=False)
