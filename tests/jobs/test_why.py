"""Why a job does not get on, as far as its pods tell, and who of its ranks is asked."""

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from arena_topo.diagnosis.look import PodAt, Run
from arena_topo.diagnosis.verdict import State
from arena_topo.errors import ArenaTopoError
from arena_topo.jobs.why import Answer, why
from tests.fakes import Answer as Reply
from tests.fakes import Call, refusal, session, unserved
from tests.objects import condition, mpijob, pod

STAT = "S 1 9 9 0 -1 4194304 2982 0 6 0 28 114 0 0 20 0 3 0 3002237 230203392 6275"
REDUCES, SLEEPS = "    PMPI_Allreduce (libmpi.so)", "    load (t.py:4)"
PULLS = {
    "name": "mpi",
    "ready": False,
    "state": {"waiting": {"reason": "ContainerCreating"}},
    "restartCount": 0,
}


def gang(**others: Any) -> list[Any]:
    """Return a launcher and four workers on nodes of their own, some of them as given."""
    workers = {f"job-worker-{number}": pod(f"job-worker-{number}", node=f"n{number}") for number in range(4)}
    return [pod("job-launcher-x", role="launcher"), *{**workers, **others}.values()]


def asked(
    pods: list[Any],
    *,
    late: str = "",
    dead: str = "",
    job: Any = None,
    nodes: bool = True,
    log: Sequence[str] = (),
    **options: Any,
) -> tuple[Answer, list[str]]:
    """Ask why; all ranks reduce but those of the pods in
    *late*, and *dead* does not answer. Also return who was asked.
    """
    ready = [{"type": "Ready", "status": "True"}]
    gone = [{"type": "Ready", "status": "Unknown"}]
    answers = {
        "/apis": Reply(body={"groups": []}),
        "/pods": Reply(body={"items": pods}),
        "/nodes": Reply(body={"items": RACKS}),
        "/n1": Reply(body={"metadata": {"name": "n1"}, "status": {"conditions": gone}}),
        "/log": Reply(lines=[f"{line}\n".encode() for line in log]),
        "/events": Reply(body={"items": [WARNING]}),
    }

    def script(call: Call) -> Reply:
        last = f"/{call.path.rpartition('/')[2]}"
        if "/nodes" in call.path:
            other = Reply(body={"metadata": {"name": last}, "status": {"conditions": ready}})
            return answers.get(last, other) if nodes else refusal(403, "Forbidden")
        if "/v2beta1/" in call.path:
            return Reply(body=job or mpijob("job"))
        return answers.get(last, unserved())

    names: list[str] = []
    opened, _ = session(script)
    run = answering(names, late, dead)
    return why(opened, "job", run, **{"notify": lambda _: None, "sleep": lambda _: None, **options}), names


def answering(names: list[str], late: str, dead: str) -> Run:
    """Return what runs commands in the pods, and adds the names of these to *names*."""

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        names.append(pod.name)
        if pod.name == dead:
            raise ArenaTopoError("no route to host")
        if not pod.name.startswith("job-worker-"):
            return b""
        number = int(pod.name[-1])
        if len(words) == 3:
            env = f"env 9 OMPI_COMM_WORLD_RANK={number}\nenv 9 OMPI_COMM_WORLD_SIZE=4\n"
            return f"stat 9 (python) {STAT}\n{env}".encode()
        lines = (
            f"stat {{at}}.00 9 (python) {STAT}",
            "io {at}.00 rchar: 1 wchar: 1 ",
            'stack Thread 9 (idle): "MainThread"',
            f"stack {SLEEPS if pod.name in late.split() else REDUCES}",
        )
        return "".join(f"{at} 9 {line.format(at=at)}\n" for at in range(10) for line in lines).encode()

    return run


RACKS = [
    {
        "metadata": {
            "name": f"n{number}",
            "labels": {"topology.kubernetes.io/zone": "z", "topology.kubernetes.io/rack": f"r{number // 2}"},
        },
        "status": {"allocatable": {"nvidia.com/gpu": "8"}},
    }
    for number in range(8)
]
WARNING = {
    "involvedObject": {"kind": "Pod", "name": "job-worker-1"},
    "type": "Warning",
    "reason": "FailedMount",
    "message": "no such claim",
    "lastTimestamp": "2026-11-21T01:00:00Z",
    "metadata": {"creationTimestamp": "2026-11-21T01:00:00Z"},
}


def test_a_rank_is_named_with_its_pod_and_its_node() -> None:
    """All running pods are asked, the launcher too, which may have ranks."""
    answer, names = asked(gang(), late="job-worker-2")
    assert State.WAITING is answer.verdict.state
    (suspect,) = answer.verdict.suspects
    assert (2, "job-worker-2", "n2") == (suspect.rank, suspect.pod, suspect.node)
    assert 6 + 4 - 1 == len(names)
    assert "job-launcher-x" in names


def test_a_rack_of_which_all_ranks_are_late_is_named() -> None:
    """Its switch is likelier than two ranks that fail alike; users who cannot see nodes get the ranks."""
    workers = {f"job-worker-{number}": pod(f"job-worker-{number}", node=f"n{number}") for number in range(8)}
    answer, _ = asked(gang(**workers), late="job-worker-2 job-worker-3")
    assert "rack r1" == answer.verdict.shared
    assert answer.verdict.message.endswith("; they are all that the job has in rack r1")
    answer, _ = asked(gang(**workers), late="job-worker-2 job-worker-3", nodes=False)
    assert ("", [2, 3]) == (answer.verdict.shared, [suspect.rank for suspect in answer.verdict.suspects])


def test_a_pod_whose_node_is_gone_is_named_with_it() -> None:
    """Where the nodes may be read; elsewhere only that it does not answer."""
    answer, _ = asked(gang(), dead="job-worker-1")
    message = "3 ranks wait in MPI_Allreduce for rank 1 (job-worker-1): it does not answer: "
    assert f"{message}its node n1 is NotReady" == answer.verdict.message
    answer, _ = asked(gang(), dead="job-worker-1", nodes=False)
    assert f"{message}no route to host" == answer.verdict.message


def test_a_worker_that_has_ended_is_named_with_its_end() -> None:
    """It is not asked: its exit code tells more."""
    killed = pod("job-worker-3", phase="Failed", node="n3")
    ended = {"terminated": {"exitCode": 137, "reason": "OOMKilled", "finishedAt": "2026-11-21T01:00:00Z"}}
    killed["status"]["containerStatuses"] = [
        {"name": "mpi", "ready": False, "state": ended, "restartCount": 0}
    ]
    answer, names = asked(gang(**{"job-worker-3": killed}))
    assert (
        "3 ranks wait in MPI_Allreduce for rank 3 (job-worker-3): it exited with code 137 (OOMKilled, SIGKILL)"
        == answer.verdict.message
    )
    assert "job-worker-3" not in names


def test_a_job_that_waits_for_room_or_a_volume_asks_no_rank() -> None:
    """What its pods say is said, and of one that is being created its newest warning."""
    creating = pod("job-worker-1", phase="Pending", node="n1", containerStatuses=[PULLS])
    answer, names = asked(gang(**{"job-worker-1": creating}))
    assert (State.WAITING, []) == (answer.verdict.state, names)
    assert "ContainerCreating; pod/job-worker-1: FailedMount: no such claim" in answer.verdict.message
    assert ["job-worker-1"] == [suspect.pod for suspect in answer.verdict.suspects]


@pytest.mark.parametrize(("kind", "word"), [("Failed", "failed"), ("Succeeded", "succeeded")])
def test_a_job_that_has_ended_is_told(kind: str, word: str) -> None:
    """No rank is left."""
    answer, names = asked([], job=mpijob("job", status={"conditions": [condition(kind, message="m")]}))
    assert (State.ENDED, []) == (answer.verdict.state, names)
    assert answer.verdict.message.startswith(f"the job has {word}")


def test_the_second_look_comes_after_the_patience_of_the_user() -> None:
    """What the first one saw is told meanwhile."""
    told: list[str] = []
    slept: list[float] = []
    answer, names = asked(gang(), late="job-worker-2", patience=60.0, notify=told.append, sleep=slept.append)
    assert [60.0] == slept
    assert told[0].startswith("3 ranks wait in MPI_Allreduce for rank 2")
    assert 9 + 4 == len(names)
    # The clock of these nodes stands at the same seconds in both: only nodes tell how long it was.
    assert State.WAITING is answer.verdict.state


def steps(*, ago: float) -> list[str]:
    """Return a log with a step every eight seconds, the last of them so many seconds ago."""
    last = datetime.now(UTC) - timedelta(seconds=ago)
    times = [last - timedelta(seconds=8 * place) for place in (3, 2, 1, 0)]
    return [f"{time.strftime('%Y-%m-%dT%H:%M:%S.%fZ')} step {number}" for number, time in enumerate(times)]


def test_steps_in_the_log_decide_what_the_ranks_do_not() -> None:
    """All are in one collective: a long one, where the log continues at its usual pace."""
    answer, _ = asked(gang(), log=steps(ago=9))
    assert State.HEALTHY is answer.verdict.state
    assert answer.verdict.message.startswith("its log reached step 3 ")
    answer, _ = asked(gang(), log=steps(ago=720))
    assert State.UNDECIDED is answer.verdict.state
    assert answer.verdict.message.endswith("its log reached step 3 12m ago, with a line every 8s before")


def test_a_log_clears_nobody_whom_the_others_wait_for() -> None:
    """It only adds for how long: the last step may have been printed just before."""
    answer, _ = asked(gang(), late="job-worker-2", log=steps(ago=9))
    assert (State.WAITING, [2]) == (
        answer.verdict.state,
        [suspect.rank for suspect in answer.verdict.suspects],
    )
    assert "; its log reached step 3 " in answer.verdict.message
