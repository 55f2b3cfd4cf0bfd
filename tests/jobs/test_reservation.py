"""A plan that cannot be written says why, and a proposal that
others may ignore by now is written again, not confirmed.
"""

from typing import Any

import pytest

from arena_topo.errors import Conflict, Invalid
from arena_topo.jobs.reserve import Reservation
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.session import Session
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import PLAN
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage, decode
from tests.fakes import Answer, Call, refusal, session
from tests.objects import mpijob, ready_node, with_plan

WAITING = PlanRecord(stage=Stage.WAITING, waiting_reason="full")


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

    Reservation(opened(on_server), ApiVersion.V2BETA1, job=with_plan(mpijob("job"), "first")).acquire(plan)


def test_a_plan_that_somebody_else_wrote_meanwhile_is_left_alone() -> None:
    """The server refuses the patch, since the plan is not the one that was read."""
    with pytest.raises(Conflict, match="somebody else is placing the job job"):
        acquire(with_plan(mpijob("job"), WAITING))


def test_what_the_server_does_not_accept_is_told_in_its_words() -> None:
    """Nobody else is to blame for a webhook."""
    with pytest.raises(Invalid, match="does not accept the plan of the job job: the webhook says no"):
        acquire(with_plan(mpijob("job"), "first"))


PROPOSAL = PlanRecord(stage=Stage.PROPOSED, slots=(Slot(0, "n", (0,)),), enforcement=Enforcement.NONE)
NODE = ready_node("n", {"nvidia.com/gpu": "1", "cpu": "9", "pods": "9"})


class Server:
    """Keeps the plan of one job, and remembers the stages in which it was written."""

    def __init__(self) -> None:
        self.job = with_plan(mpijob("job", workers=1), PROPOSAL)
        self.stages: list[Stage] = []

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        if call.method == "PATCH":
            # Written again within a millisecond a proposal is the same text, which is then only tested.
            plan = next(each["value"] for each in reversed(call.body) if each["path"].endswith("plan"))
            self.job["metadata"]["annotations"][PLAN] = plan
            self.stages.append(decode(plan).stage)
            return Answer(body=self.job)
        if call.path == "/apis":
            return Answer(body={"groups": []})
        items: list[Object] = [NODE] if call.path.endswith("/nodes") else []
        return Answer(body={"items": items})


def stages(*seconds: tuple[float, float]) -> list[Stage]:
    """Return the stages that are written where the clocks show *seconds* in turn."""
    server, times = Server(), iter(seconds)
    opened, _ = session(server)
    reservation = Reservation(opened, ApiVersion.V2BETA1, job=server.job, clocks=lambda: next(times))

    def plan(snapshot: Snapshot) -> PlanRecord:
        del snapshot
        return PROPOSAL

    assert Stage.CONFIRMED is reservation.acquire(plan).stage
    return server.stages


def test_a_fresh_proposal_is_confirmed() -> None:
    """A few seconds after it was written."""
    assert [Stage.PROPOSED, Stage.CONFIRMED] == stages((0, 0), (5, 5), (5, 5))


def test_a_proposal_that_is_too_old_is_written_anew() -> None:
    """Also where the machine slept in between, which one of the clocks does not notice."""
    expected = [Stage.PROPOSED, Stage.PROPOSED, Stage.CONFIRMED]
    assert expected == stages((0, 0), (40, 40), (40, 40), (41, 41), (41, 41))
    assert expected == stages((0, 0), (1, 4000), (1, 4000), (2, 4001), (2, 4001))
