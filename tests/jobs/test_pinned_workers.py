"""What the admission policy did to the workers of a job is seen, not assumed."""

import pytest

from arena_topo.jobs.logs.wait import Waiter
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.reserve import unpinned_workers
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.keys import HOSTNAME
from arena_topo.model.objects import Object
from arena_topo.model.plan_record import Enforcement, PlanRecord, Slot, Stage
from tests.fakes import Answer, Call, refusal, session
from tests.objects import mpijob, pod

RECORD = PlanRecord(
    stage=Stage.CONFIRMED,
    slots=(Slot(0, "n0"), Slot(1, "n1")),
    enforcement=Enforcement.ADMISSION,
    hostnames={"n1": "host-1"},
)
SERVED = ServedJob(ApiVersion.V2BETA1, mpijob("job"))


def worker(index: int, hostname: str) -> Object:
    """Return a worker whose selector names *hostname*, or has none."""
    made = pod(f"job-worker-{index}", phase="Pending")
    made["spec"]["nodeSelector"] = {HOSTNAME: hostname} if hostname else {}
    return made


def unpinned(*looks: list[Object]) -> tuple[str, ...]:
    """Return the workers without their place, where each look at the pods finds the next of *looks*."""
    left = list(looks)

    def answer(call: Call) -> Answer:
        del call
        return Answer(body={"items": left.pop(0) if left else []})

    return unpinned_workers(session(answer)[0], SERVED, RECORD, Waiter(lambda _: None, lambda _: None))


@pytest.mark.parametrize(
    ("pods", "names"),
    [
        ([worker(0, "n0"), worker(1, "host-1")], ()),
        ([worker(0, ""), worker(1, "")], ("job-worker-0", "job-worker-1")),
        ([worker(0, "n0"), worker(1, "n0")], ("job-worker-1",)),
        ([pod("job-launcher-x")], ()),
    ],
    ids=["all pinned", "none", "one elsewhere", "no workers"],
)
def test_workers_without_their_place_are_named(pods: list[Object], names: tuple[str, ...]) -> None:
    """The label of a node may differ from its name."""
    assert names == unpinned(pods)


def test_workers_are_waited_for() -> None:
    """The operator creates them a moment after the job."""
    assert ("job-worker-0",) == unpinned([], [], [worker(0, "")])


def test_nothing_is_said_without_a_right_to_look() -> None:
    """Submitting a job does not take it."""
    refused, _ = session(lambda _: refusal(403, "Forbidden"))
    assert () == unpinned_workers(refused, SERVED, RECORD, Waiter(lambda _: None, lambda _: None))
