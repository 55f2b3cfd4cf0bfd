"""``why`` asks the containers of a job through the API server, and its exit code is the answer."""

import json
from collections.abc import Awaitable, Callable
from itertools import count
from pathlib import Path

import pytest

from tests.cli.commands.test_exec import environment
from tests.e2e.arena import Outcome, inside
from tests.kube.exec_server import ExecServer, Remote, serving
from tests.objects import pod

STAT = "S 1 9 9 0 -1 4194304 2982 0 6 0 28 114 0 0 20 0 3 0 3002237 230203392 6275"
FIRST = 100


def gang() -> list[object]:
    """Return a launcher and three workers that run, each with a rank."""
    workers = [pod(f"job-worker-{number}", node=f"n{number}") for number in range(3)]
    return [pod("job-launcher-x", role="launcher"), *workers]


def ranks(*, late: int | None = None) -> Callable[[Remote], Awaitable[None]]:
    """Return a process that answers as the next rank, and then as the one that it said to be."""
    numbers = count()

    async def answer(remote: Remote) -> None:
        words = remote.query.getall("command")
        if len(words) == 3:
            number = next(numbers)
            await remote.send(1, f"stat {FIRST + number} (python) {STAT}\n".encode())
            await remote.send(
                1, f"env {FIRST + number} RANK={number}\nenv {FIRST + number} WORLD_SIZE=4\n".encode()
            )
        for pid in words[7:]:
            place = "load (t.py:4)" if int(pid) - FIRST == late else "PMPI_Allreduce (libmpi.so)"
            for at in range(10):
                lines = [f"stat {at}.00 {pid} (python) {STAT}", f"io {at}.00 rchar: 1 wchar: 1 "]
                lines += [f'stack Thread {pid} (idle): "MainThread"', f"stack     {place}"]
                await remote.send(1, "".join(f"{at} {pid} {line}\n" for line in lines).encode())
        await remote.end()

    return answer


def why(server: ExecServer, folder: Path, *args: str) -> Outcome:
    """Run ``why`` against *server*."""
    with serving(server, folder):
        return inside(("why", "job", *server.flags, *args), environment(folder))


def test_the_rank_that_the_others_wait_for_is_named(tmp_path: Path) -> None:
    """On a screen, with what to do next, and the exit code of one that waits."""
    outcome = why(ExecServer(ranks(late=2), pods=gang()), tmp_path)
    assert 6 == outcome.code, outcome.err
    assert outcome.out.startswith("job is waiting: 3 ranks wait in MPI_Allreduce for rank 2 (job-")
    assert "hint: --for 60s tells whether it is stuck\n" == outcome.err


@pytest.mark.parametrize(
    ("server", "code", "state"),
    [
        (ExecServer(ranks(late=2)), 6, "waiting"),
        (ExecServer(ranks(), pods=gang()), 9, "undecided"),
        (ExecServer(ranks(), refusal=403, pods=gang()), 9, "undecided"),
    ],
    ids=["a pod waits", "all alike", "refused"],
)
def test_the_exit_code_is_the_answer(tmp_path: Path, server: ExecServer, code: int, state: str) -> None:
    """And programs read the rest as JSON."""
    outcome = why(server, tmp_path, "-o", "json")
    assert (code, state) == (outcome.code, json.loads(outcome.out)["state"]), outcome.err


def test_users_without_the_right_are_told(tmp_path: Path) -> None:
    """Of every pod, in the server's words."""
    outcome = why(ExecServer(ranks(), refusal=403, pods=gang()), tmp_path)
    assert 4 == outcome.out.count("  it does not answer: no exec\n")


def test_a_container_that_prints_without_end_is_cut_off(tmp_path: Path) -> None:
    """Nobody is named by what it prints, and nothing waits for its end."""

    async def flood(remote: Remote) -> None:
        piece = b"stat 9 " * 10_000
        for _ in range(100):
            await remote.send(1, piece)
        await remote.read()

    outcome = why(ExecServer(flood, pods=gang()), tmp_path, "-o", "json")
    assert 9 == outcome.code, outcome.err
    assert [] == json.loads(outcome.out)["suspects"]


def test_the_evidence_is_kept_in_a_new_folder(tmp_path: Path) -> None:
    """What each pod printed, the answer, the plan; a folder
    that is there is left as it is, and no rank is asked.
    """
    server, folder = ExecServer(ranks(late=2), pods=gang()), tmp_path / "evidence"
    outcome = why(server, tmp_path, "--save", str(folder))
    assert 6 == outcome.code, outcome.err
    assert {f"job-worker-{number}.looks" for number in range(3)} | {"verdict.json", "plan.json"} <= {
        path.name for path in folder.iterdir()
    }
    (event,) = json.loads((folder / "events.json").read_text("utf-8"))
    assert ("pod/job-worker-0", "2026-11-21T01:00:00+00:00") == (event["source"], event["last_seen"])
    assert "waiting" == json.loads((folder / "verdict.json").read_text("utf-8"))["state"]

    before = len(server.seen)
    again = inside(("why", "job", *server.flags, "--save", str(folder)), environment(tmp_path))
    assert (2, True) == (again.code, "it exists, and holds other evidence" in again.err)
    assert before == len(server.seen)
