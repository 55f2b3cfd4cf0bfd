"""All ranks are asked at once, and none holds up another."""

import shutil
import subprocess
import threading
from collections.abc import Sequence
from dataclasses import replace

import pytest

from arena_topo.diagnosis import look as asking
from arena_topo.diagnosis.look import Evidence, PodAt, find, look, merged, read_looks
from arena_topo.diagnosis.verdict import Finding, State, judge
from arena_topo.errors import ArenaTopoError
from tests.diagnosis.sources.test_nccl_ras import STRAGGLER

STAT = "(python) S 1 9 9 0 -1 4194304 2982 0 6 0 28 114 0 0 20 0 3 0 3002237 230203392 6275"


def pods(count: int) -> list[PodAt]:
    """Return so many pods of two GPUs each."""
    return [PodAt(f"w{number}", f"n{number}", "mpi", (4, 6)) for number in range(count)]


def printed_by(pod: PodAt, words: Sequence[str], size: int = 8) -> bytes:
    """Return what two ranks of a pod would print: a call with the script alone asks which there are."""
    first = 2 * int(pod.name[1:])
    if len(words) == 3:
        return "".join(
            f"stat {pid} {STAT}\nenv {pid} RANK={first + local}\nenv {pid} LOCAL_RANK={local}\n"
            f"env {pid} WORLD_SIZE={size}\n"
            for local, pid in enumerate((9, 10))
        ).encode()
    lines = []
    for number in range(int(words[4])):
        for pid in words[7:]:
            lines += [
                f"{number} {pid} stat {100 + number}.00 {pid} {STAT}",
                f"{number} {pid} wchan {100 + number}.00 pipe_read",
                f"{number} {pid} io {100 + number}.00 rchar: 1 wchar: 2 ",
                f'{number} {pid} stack Thread {pid} (idle): "MainThread"',
                f"{number} {pid} stack     wait (t.py:{pid})",
            ]
    return "\n".join(lines).encode()


def test_every_rank_is_seen_where_it_is() -> None:
    """With its pod, its node, its GPU by the plan, and all looks."""
    found = find(pods(4), printed_by)
    evidence = look(found, printed_by, looks=3)
    assert () == evidence.absent
    assert list(range(8)) == [rank.number for rank in evidence.ranks]
    rank = evidence.ranks[5]
    assert ("w2", "n2", 6, 3) == (rank.pod, rank.node, rank.gpu, len(rank.looks))
    assert ("pipe_read", 3, "wait (t.py:10)") == (
        rank.looks[0].wait, rank.looks[0].moved, str(rank.looks[0].stack[0]),
    )  # fmt: skip
    assert evidence.has_stacks
    assert [6] * 8 == [len(one.looks) for one in merged(evidence, evidence).ranks]


def test_libraries_are_asked_in_two_pods_and_compared() -> None:
    """Each answers for all ranks; what a further round says is compared with it, too."""
    asked = set()

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        output = printed_by(pod, words)
        if len(words) == 3 or "nccl 1" not in words[2].replace("$number", "1"):
            return output
        asked.add(pod.name)
        lines = [
            f"{number} 0 nccl {line}\n"
            for number in range(2)
            for line in STRAGGLER.replace("1650386 on node node1", "10 on node 10.0.0.3").splitlines()
        ]
        return output + b"\n" + "".join(lines).encode()

    found = find([replace(pod, address=f"10.0.0.{pod.name[1:]}") for pod in pods(4)], run)
    evidence = look(found, run)
    assert {"w0", "w1"} == asked
    behind = frozenset({Finding(7, "has launched AllReduce 60 and not the next")})
    assert (behind, behind) == evidence.answers
    assert (behind,) * 4 == merged(evidence, evidence).answers
    assert () == merged(replace(evidence, answers=()), evidence).answers
    assert () == look(find(pods(4), printed_by), printed_by).answers


def test_a_pod_that_does_not_answer_delays_nobody(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its ranks are the ones that are missing, and the verdict names them."""
    monkeypatch.setattr(asking, "_FIND_SECONDS", 0.3)
    never = threading.Event()

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        if pod.name == "w1":
            never.wait(60)
        return printed_by(pod, words)

    try:
        evidence = look(find(pods(4), run), run)
    finally:
        never.set()
    (absent,) = evidence.absent
    assert ("w1", "n1", (2, 3), "it does not answer: nothing came within 0.3 s") == (
        absent.pod, absent.node, absent.ranks, absent.why,
    )  # fmt: skip
    assert [0, 1, 4, 5, 6, 7] == [rank.number for rank in evidence.ranks]


def test_a_pod_that_refuses_is_named_with_the_reason() -> None:
    """An image without a shell, a user without the right."""

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        if pod.name == "w3":
            raise ArenaTopoError("no sh here")
        return printed_by(pod, words)

    (absent,) = look(find(pods(4), run), run).absent
    assert ("w3", (6, 7), "it does not answer: no sh here") == (absent.pod, absent.ranks, absent.why)


def test_a_rank_without_a_process_is_missed() -> None:
    """One that has left the loop is known by the number of ranks that the others were told."""

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        return printed_by(pod, words, size=9)

    (absent,) = look(find(pods(4), run), run).absent
    assert ((8,), "has no process any more, of 9 ranks") == (absent.ranks, absent.why)


def test_more_pods_than_connections_are_asked_in_turn(monkeypatch: pytest.MonkeyPatch) -> None:
    """No more than so many at the same time."""
    monkeypatch.setattr(asking, "_AT_ONCE", 3)
    guard, running, most = threading.Lock(), 0, 0

    def run(pod: PodAt, words: Sequence[str]) -> bytes:
        nonlocal running, most
        with guard:
            running += 1
            most = max(most, running)
        try:
            return printed_by(pod, words, size=40)
        finally:
            with guard:
                running -= 1

    assert 40 == len(look(find(pods(20), run), run).ranks)
    assert most <= 3


@pytest.mark.parametrize(
    "output",
    [b"", b"\xff\x00", b"0 1 stat", b"0 1 stat 1.0 1 (x\n", b"a b stat c\n", b"9999999999 1 stat 1 2\n"],
)
def test_what_is_not_understood_is_no_look(output: bytes) -> None:
    """A container may print anything."""
    assert {} == read_looks(output)


@pytest.mark.skipif(not shutil.which("sh"), reason="needs a shell")
def test_the_script_looks_at_a_process_of_this_machine() -> None:
    """It sleeps in the same call both times, and neither computes nor reads."""

    def run(_: PodAt, words: Sequence[str]) -> bytes:
        return subprocess.run(words, capture_output=True, check=False).stdout

    with subprocess.Popen(
        ["sleep", "60"], env={"PATH": "/usr/bin:/bin", "RANK": "77777", "LOCAL_RANK": "0"}
    ) as rank:
        try:
            found = find(pods(1), run)
            mine = [one for _, ranks in found.by_pod for one in ranks if one.number == 77777]
            assert [rank.pid] == [one.pid for one in mine]
            evidence = look(asking.Found(((pods(1)[0], tuple(mine)),)), run, looks=2, pause=0.1)
        finally:
            rank.kill()
    (seen,) = evidence.ranks
    assert ["S", "S"] == [look.state for look in seen.looks]
    assert seen.looks[0].at < seen.looks[1].at
    assert State.UNDECIDED is judge(Evidence((seen,)).ranks).state
