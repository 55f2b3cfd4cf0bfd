"""A plan that cannot be written says why: somebody else wrote one, or the server does not accept it."""

from typing import Any

import pytest

from arena_topo.errors import Conflict, Invalid
from arena_topo.jobs.placement.reservation import Reservation
from arena_topo.kube.session import Session
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.keys import PLAN
from arena_topo.model.objects import Object
from arena_topo.model.plan.plan_record import PlanRecord, Stage, encode
from tests.fakes import Answer, Call, refusal, session
from tests.objects import mpijob

WAITING = PlanRecord(stage=Stage.WAITING, waiting_reason="full")


def job(plan: str) -> Object:
    """Return the job with a plan."""
    planned = mpijob("job")
    planned["metadata"]["annotations"] = {PLAN: plan}
    return planned


def opened(on_server: Object) -> Session:
    """Return a session with a server that refuses every patch, and has the job as it is there."""

    def answer(call: Call) -> Answer:
        if call.method == "PATCH":
            return refusal(422, "Invalid", message="the webhook says no")
        is_job = call.path.endswith("/mpijobs/job")
        return Answer(body=on_server if is_job else {"items": []})

    return session(answer)[0]


def acquire(on_server: Any) -> None:
    """Write a plan onto the job, which was read with an empty one."""

    def plan(_: Snapshot) -> PlanRecord:
        return WAITING

    Reservation(opened(on_server), ApiVersion.V2BETA1, job=job("first")).acquire(plan)


def test_a_plan_that_somebody_else_wrote_meanwhile_is_left_alone() -> None:
    """The server refuses the patch, since the plan is not the one that was read."""
    with pytest.raises(Conflict, match="somebody else is placing the job job"):
        acquire(job(encode(WAITING)))


def test_what_the_server_does_not_accept_is_told_in_its_words() -> None:
    """Nobody else is to blame for a webhook."""
    with pytest.raises(Invalid, match="does not accept the plan of the job job: the webhook says no"):
        acquire(job("first"))
