"""What the plans of other jobs reserve, as an API server lists them."""

from collections.abc import Callable
from typing import Any

import pytest

from arena_topo.jobs.other_plans import other_plans, reserving_plan
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.keys import PLAN
from arena_topo.model.kind import Kind
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import PlanRecord, Slot, Stage, encode
from arena_topo.planner.reservations import OtherPlan
from tests.fakes import Answer, Call, refusal, session
from tests.objects import CREATED, condition, mpijob
from tests.planner.fleets import NVIDIA, PAIRS, cluster, node

CLUSTER = cluster([node("a", links=PAIRS), node("b", links=PAIRS)])
NOW = "2026-11-21T02:00:00Z"
DATE = "Sat, 21 Nov 2026 02:00:00 GMT"


class Dated(Answer):
    """An answer with the server's time."""

    def header(self, name: str) -> str:
        """Return the time."""
        return DATE if name == "Date" else ""


def job_with_plan_of(
    name: str = "other", stage: Stage = Stage.CONFIRMED, *, written: str = NOW, text: str = "", **spec: Any
) -> Object:
    """Return a job of four workers of one GPU whose plan was *written* at a time of the server's clock."""
    slots = tuple(Slot(worker, "a", (worker,)) for worker in range(4))
    record = PlanRecord(
        stage=stage, slots=slots, worker_requests={NVIDIA: 1}, written="9999-12-31T23:59:59-23:59"
    )
    job = mpijob(name)
    job["metadata"]["annotations"] = {PLAN: text or encode(record)}
    job["metadata"]["managedFields"] = [
        {"time": written, "fieldsV1": {"f:metadata": {"f:annotations": {f"f:{PLAN}": {}}}}},
        {"time": "2027-01-01T00:00:00Z", "fieldsV1": {"f:status": {}}},
    ]
    job["spec"].update(spec)
    return job


def found(
    *jobs: Object, quotas: Callable[[], Answer] = lambda: Dated(body={}), warnings: list[str] | None = None
) -> list[OtherPlan]:
    """Return what *jobs* reserve."""

    def script(call: Call) -> Answer:
        return quotas() if "resourcequotas" in call.path else Dated(body={"items": list(jobs)})

    opened, _ = session(script)
    return other_plans(opened, [ApiVersion.V2BETA1], {}, CLUSTER, warnings)


def reserved(*jobs: Object, **more: Any) -> dict[str, int]:
    """Return how many places each of *jobs* reserves."""
    return {plan.name: len(plan.reserved) for plan in found(*jobs, **more) if plan.reserved}


def test_a_confirmed_plan_reserves_what_its_job_asks_for() -> None:
    """Whatever the plan itself says of its time; anyone who asks learns since when."""
    (plan,) = found(job_with_plan_of())
    assert (4, "default", "other", NOW) == (len(plan.reserved), plan.namespace, plan.name, plan.since)


@pytest.mark.parametrize(
    "job",
    [
        job_with_plan_of(runPolicy={"suspend": True}),
        job_with_plan_of(
            text='{"v":1,"stage":"confirmed","nodes":[["a",1000000000]],"gpus":[["0",1000000000]]}'
        ),
        job_with_plan_of(text="[" * 100_000),
        job_with_plan_of(text='{"v":1,"stage":"confirmed","nodes":[["a",1e999]]}'),
        job_with_plan_of(text='{"v":1,"stage":"confirmed","nodes":[["a",1]],"gpus":[["0,1,2,3",1]]}'),
        job_with_plan_of(
            mpiReplicaSpecs={"Worker": {"replicas": 4, "template": {"spec": {"containers": []}}}}
        ),
        job_with_plan_of(mpiReplicaSpecs=[]),
        job_with_plan_of(mpiReplicaSpecs={"Worker": 1}),
    ],
    ids=["suspended", "1e9 workers", "deep", "1e999", "more GPUs", "no GPUs", "no replicas", "no worker"],
)
def test_a_plan_that_its_job_does_not_bear_out_reserves_nothing(job: Object) -> None:
    """It is named once, on a line of some length, and the others count."""
    warnings: list[str] = []
    assert {"honest": 4} == reserved(job, job_with_plan_of("honest"), warnings=warnings)
    (warning,) = warnings
    assert warning.startswith("MPIJob default/other: ")
    assert len(warning) < 400


def test_a_job_at_which_anything_fails_reserves_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nobody else's command ends of it."""

    def spoiled(kind: Kind, job: Object, *args: Any) -> OtherPlan | None:
        if job["metadata"]["name"] == "other":
            raise IndexError("list index out of range")
        return reserving_plan(kind, job, *args)

    monkeypatch.setattr("arena_topo.jobs.other_plans.reserving_plan", spoiled)
    warnings: list[str] = []
    assert {"honest": 4} == reserved(job_with_plan_of(), job_with_plan_of("honest"), warnings=warnings)
    assert ["MPIJob default/other: list index out of range; skipped"] == warnings


@pytest.mark.parametrize(
    ("written", "expected", "stale"),
    [
        ("2026-11-21T01:59:50Z", 4, False),
        ("2026-11-21T02:00:05Z", 4, False),
        ("2026-11-21T01:59:40Z", 4, True),
        ("2026-11-21T01:57:30Z", 4, True),
        ("2026-11-21T01:56:50Z", 0, True),
        ("2026-11-21T02:00:30Z", 0, True),
        ("9999-12-31T23:59:59Z", 0, True),
        ("9999-12-31T23:59:59-23:59", 0, True),
        ("yesterday", 0, True),
    ],
)
def test_a_proposal_expires_by_the_servers_clock(written: str, expected: int, stale: bool) -> None:
    """A time of the future is none; without one the job's
    creation counts, which nobody but the server sets.
    """
    plans = found(job_with_plan_of(stage=Stage.PROPOSED, written=written))
    assert expected == sum(len(plan.reserved) for plan in plans)
    assert {stale} >= {plan.stale for plan in plans}


def test_a_confirmed_plan_does_not_expire() -> None:
    """It is a reservation until its job ends."""
    assert {"other": 4} == reserved(job_with_plan_of(written=CREATED))
    ended = {**job_with_plan_of("ended"), "status": {"conditions": [condition("Succeeded")]}}
    assert {} == reserved(ended)


@pytest.mark.parametrize(
    ("stage", "written", "elastic", "expected"),
    [
        (Stage.PROPOSED, NOW, "1:4", 4),
        (Stage.PROPOSED, NOW, "1:3", 3),
        (Stage.PROPOSED, NOW, "", 2),
        (Stage.PROPOSED, "2026-11-21T01:00:00Z", "1:4", 2),
        (Stage.CONFIRMED, NOW, "1:4", 2),
    ],
    ids=["grows", "bounded", "not elastic", "given up", "confirmed"],
)
def test_a_growth_reserves_what_the_job_may_have(
    stage: Stage, written: str, elastic: str, expected: int
) -> None:
    """While it is proposed; one that nobody finished leaves the job the places that it had."""
    job = job_with_plan_of(stage=stage, written=written)
    job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"] = 2
    job["metadata"]["annotations"] |= {"arena-topo.dev/elastic": elastic} if elastic else {}
    assert {"other": expected} == reserved(job)


def test_quotas_bound_reservations_where_they_may_be_read() -> None:
    """Those that cannot be read, and those whose scope does not hold the workers, bound nothing."""
    quota = {"metadata": {"namespace": "default"}, "spec": {"hard": {"requests.nvidia.com/gpu": "3"}}}
    scoped = {
        "metadata": {"namespace": "default"},
        "spec": {"hard": {"pods": "0"}, "scopes": ["Terminating"]},
    }
    broken = {"metadata": {"namespace": "default"}, "spec": {"hard": {"pods": "x"}}}
    body = {"items": [quota, scoped, broken]}
    assert {"other": 3} == reserved(job_with_plan_of(), quotas=lambda: Dated(body=body))
    assert {"other": 4} == reserved(job_with_plan_of(), quotas=lambda: refusal(403, "Forbidden"))


def selected(*terms: Object) -> Callable[[], Answer]:
    """Return an answer with a quota of one GPU for the pods that *terms* select."""
    spec = {"hard": {"requests.nvidia.com/gpu": "1"}, "scopeSelector": {"matchExpressions": [*terms]}}
    return lambda: Dated(body={"items": [{"metadata": {"namespace": "default"}, "spec": spec}]})


def test_a_quota_with_a_scope_bounds_the_jobs_whose_workers_are_in_it() -> None:
    """By what their template says of priority, deadline, resources and affinity."""
    job = job_with_plan_of()
    term = {"topologyKey": "zone", "namespaces": ["others"]}
    job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"] |= {
        "priorityClassName": "high",
        "activeDeadlineSeconds": 60,
        "affinity": {"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [term]}},
    }
    high = {"scopeName": "PriorityClass", "operator": "In", "values": ["high"]}
    exist = [
        {"scopeName": name, "operator": "Exists"} for name in ("Terminating", "CrossNamespacePodAffinity")
    ]

    assert {"other": 1} == reserved(job, quotas=selected(high, *exist))
    assert {"other": 4} == reserved(job, quotas=selected({**high, "values": ["low"]}))
    assert {"other": 4} == reserved(
        job, quotas=selected({"scopeName": "NotTerminating", "operator": "Exists"})
    )
    assert {"other": 4} == reserved(job_with_plan_of(), quotas=selected(high))
    assert {"other": 4} == reserved(job, quotas=selected({"scopeName": ["x"], "values": 5}))


def test_no_quota_is_asked_for_where_nothing_is_reserved() -> None:
    """A cluster whose planned jobs all run costs no further call."""
    opened, transport = session(lambda _: Dated(body={"items": []}))
    assert [] == other_plans(opened, [ApiVersion.V2BETA1], {}, CLUSTER)
    assert 1 == len(transport.calls)
