"""The documented shape of a job is that of what is printed: a change of either fails here."""

import json
from datetime import UTC, datetime
from typing import Any

import jsonschema
import pytest

from arena_topo.jobs.status.view import job_view
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import Enforcement, PlanRecord, Stage, encode
from arena_topo.output.job import job_document
from tests.objects import condition, mpijob, pod
from tests.paths import ROOT

SCHEMA = json.loads((ROOT / "docs" / "reference" / "schemas" / "job.json").read_text())
NOW = datetime(2026, 11, 21, 1, 5, tzinfo=UTC)
PODS = [pod("job-launcher-x", role="launcher"), pod("job-worker-0", phase="Pending")]


def planned() -> Any:
    """Return a job with a plan."""
    slots = (Slot(0, "n1", (3,)), Slot(1, "n1", None))
    record = PlanRecord(stage=Stage.CONFIRMED, slots=slots, enforcement=Enforcement.GATES)
    job = mpijob("job")
    job["metadata"]["annotations"] = {"arena-topo.dev/plan": encode(record)}
    return job


def document(job: Any, version: ApiVersion = ApiVersion.V2BETA1) -> Any:
    """Return the document of *job* as JSON has it."""
    return json.loads(json.dumps(job_document(job_view(version, job, PODS, now=NOW))))


@pytest.mark.parametrize(
    ("job", "version"),
    [
        (mpijob("job"), ApiVersion.V2BETA1),
        (mpijob("job", status={"conditions": [condition("Failed", message="m")]}), ApiVersion.V1),
        (mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Succeeded"}), ApiVersion.V1ALPHA1),
        (planned(), ApiVersion.V2BETA1),
    ],
    ids=["pending", "failed", "v1alpha1", "planned"],
)
def test_a_job_has_the_documented_shape(job: Any, version: ApiVersion) -> None:
    """In every state and version."""
    jsonschema.Draft202012Validator(SCHEMA).validate(document(job, version))


def test_another_key_or_one_less_is_seen() -> None:
    """The schema is closed."""
    whole = document(mpijob("job"))
    check = jsonschema.Draft202012Validator(SCHEMA)
    for changed in ({**whole, "new": 1}, {key: value for key, value in whole.items() if key != "workers"}):
        assert not check.is_valid(changed)
