"""What a user changed is the difference; what the server and a plan did to the job is none."""

from dataclasses import replace
from typing import Any

import pytest

from arena_topo.jobs.enforce import rewritten, suspended_with_plan
from arena_topo.jobs.sources import difference
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.plan_on_job import with_pins
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.job import JobSpec, PodOptions
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.fakes import Answer, Call, missing, refusal, session, unserved
from tests.jobs.servers import JOB

TOKEN = replace(JOB, pod=PodOptions(env={"API_TOKEN": "first", "LR": "1"}))


def manifest(job: JobSpec) -> Object:
    """Return the job as a submit renders it."""
    return render(job, RenderContext()).job


def compared(live: Object | None, wanted: JobSpec, *, may_create: bool = True) -> tuple[str, tuple[str, ...]]:
    """Return the difference on a cluster that has *live*, whose server sets one default."""

    def answer(call: Call) -> Answer:
        if "/v2beta1/" not in call.path:
            return unserved()
        if call.method == "GET":
            return Answer(body=live) if live else missing("job")
        assert "All" == call.query["dryRun"]
        if not may_create:
            return refusal(403, "Forbidden")
        body: Any = call.body
        return Answer(
            body={
                **body,
                "spec": {**body["spec"], "default": 1},
                "metadata": {**body["metadata"], "name": "x"},
            }
        )

    return difference(session(answer)[0], Manifest(job=manifest(wanted), kind=ApiVersion.V2BETA1))


def running_job(job: JobSpec, enforcement: Enforcement = Enforcement.AFFINITY) -> Object:
    """Return *job* as the server has it: with defaults, a uid, and a plan in force."""
    record = PlanRecord(
        stage=Stage.CONFIRMED, slots=(Slot(0, "a", (0,)), Slot(1, "b", (0,))), enforcement=enforcement
    )
    placed = with_pins(
        with_pins(manifest(job), suspended_with_plan(record)), rewritten(manifest(job), record)
    )
    return {
        **placed,
        "spec": {**placed["spec"], "default": 1},
        "metadata": {**placed["metadata"], "uid": "u", "generation": 3},
        "status": {"conditions": []},
    }


@pytest.mark.parametrize("enforcement", list(Enforcement), ids=lambda enforcement: enforcement.name)
def test_a_job_that_runs_as_it_was_submitted_has_no_difference(enforcement: Enforcement) -> None:
    """Plans, defaults and the status are not the user's."""
    assert ("", ()) == compared(running_job(JOB, enforcement), JOB)


def test_what_the_user_changed_is_shown() -> None:
    """As kubectl shows it."""
    text, _ = compared(running_job(JOB), replace(JOB, workers=3))

    assert text.startswith("--- live/job\n+++ submit/job\n@@")
    assert "-      replicas: 2\n" in text
    assert "+      replicas: 3\n" in text


def test_values_that_may_be_secret_are_masked() -> None:
    """That they differ is told, and no more."""
    changed = replace(TOKEN, pod=PodOptions(env={"API_TOKEN": "second", "LR": "2"}))
    text, _ = compared(running_job(TOKEN), changed)

    assert 'value: "*** (before)"' in text
    assert 'value: "*** (after)"' in text
    assert '+          - name: "LR"' not in text
    assert "first" not in text
    assert "second" not in text
    assert "***" not in compared(running_job(TOKEN), TOKEN)[0]


def test_a_job_that_is_not_there_is_all_new() -> None:
    """As kubectl shows an object that it would create."""
    text, _ = compared(None, JOB)

    assert '+kind: "MPIJob"\n' in text
    assert "\n-" not in text.partition("@@")[2]


def test_who_may_not_create_compares_without_the_servers_defaults() -> None:
    """And is told so."""
    text, notes = compared(running_job(JOB), JOB, may_create=False)

    assert "-  default: 1\n" in text
    assert ("you cannot create jobs here: the job is compared without the server's defaults",) == notes
