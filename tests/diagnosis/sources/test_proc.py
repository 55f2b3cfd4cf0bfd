"""What /proc says of processes: which are ranks, and what these do."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from arena_topo.diagnosis.sources.proc import FIND, RankProcess, find_ranks, read_look

TAIL = "0 -1 4194304 2982 0 6 0 28 114 0 0 20 0 3 0 3002237 230203392 6275"


def process(pid: int, program: str, parent: int, **variables: object) -> str:
    """Return what ``FIND`` prints of a process."""
    env = "".join(f"env {pid} {name}={value}\n" for name, value in variables.items())
    return f"stat {pid} ({program}) S {parent} {pid} {pid} {TAIL}\n{env}"


MPI = {"OMPI_COMM_WORLD_RANK": 3, "OMPI_COMM_WORLD_SIZE": 8, "OMPI_COMM_WORLD_LOCAL_RANK": 1}
TORCH = {"RANK": 5, "WORLD_SIZE": 8, "LOCAL_RANK": 1}


@pytest.mark.parametrize(
    ("output", "ranks"),
    [
        (process(9, "python", 1, **MPI), [RankProcess(9, 3, 8, 1)]),
        (process(9, "python", 1, PMI_RANK=0, PMI_SIZE=2, MPI_LOCALRANKID=0), [RankProcess(9, 0, 2, 0)]),
        (process(9, "sh", 1, **MPI) + process(10, "a b) (c", 9, **MPI), [RankProcess(10, 3, 8, 1)]),
        (
            process(9, "python", 1, **MPI) + process(10, "sh", 9, **MPI) + process(11, "python", 10, **MPI),
            [RankProcess(9, 3, 8, 1)],
        ),
        (
            process(1, "torchrun", 0, RANK=1, WORLD_SIZE=2)
            + process(9, "python", 1, **TORCH, CUDA_VISIBLE_DEVICES=3),
            [RankProcess(9, 5, 8, 1, "3")],
        ),
        (process(1, "python", 0, RANK=1, WORLD_SIZE=2), [RankProcess(1, 1, 2)]),
        (process(1, "python", 0, RANK="²", WORLD_SIZE=2) + process(2, "python", 0, RANK="9" * 5000), []),
        ("env 7 RANK=1\nstat\nstat 9 (x\nenv\nnonsense\n", []),
    ],
    ids=[
        "Open MPI",
        "MPICH",
        "under a shell",
        "helpers",
        "torchrun",
        "an operator's",
        "no numbers",
        "garbage",
    ],
)
def test_ranks_are_told_from_what_starts_them_and_what_they_start(
    output: str, ranks: list[RankProcess]
) -> None:
    """One process for each rank: its environment goes to all that it starts."""
    assert ranks == find_ranks(output)


def test_a_process_of_this_machine_is_found(tmp_path: Path) -> None:
    """By sh alone, without a variable that may be a secret, and without the shell that asks."""
    env = {
        **os.environ,
        "RANK": "41",
        "LOCAL_RANK": "2",
        "WORLD_SIZE": "42",
        "MY_SECRET_RANK": "7",
        "A": "x\nRANK=9",
    }
    ready = tmp_path / "ready"
    waits = f"import pathlib, time; pathlib.Path({str(ready)!r}).touch(); time.sleep(60)"
    with subprocess.Popen([sys.executable, "-c", waits], env=env) as rank:
        try:
            while not ready.exists():
                os.sched_yield()
            printed = subprocess.run(
                ["sh", "-c", FIND], capture_output=True, text=True, check=False, env=env
            ).stdout
        finally:
            rank.kill()
    found = {one.number: one for one in find_ranks(printed)}
    assert RankProcess(rank.pid, 41, 42, 2) == found[41]
    assert "SECRET" not in printed


def test_a_look_has_what_the_files_say() -> None:
    """In seconds and bytes; a wait that is not told is not called 0."""
    facts = {
        "stat": f"1234.5 9 (python) R 1 9 9 {TAIL}",
        "wchan": "1234.5 0",
        "syscall": "1234.5 running",
        "io": "1234.5 rchar: 100 wchar: 11 syscr: 1 syscw: 1 read_bytes: 0 ",
    }
    look = read_look(facts)
    assert look is not None
    assert (1234.5, "R", "", "running", 1.42, 111) == (
        look.at, look.state, look.wait, look.call, look.cpu, look.moved,
    )  # fmt: skip
    asleep = read_look(
        {**facts, "wchan": "1234.5 futex_wait_queue", "syscall": "1234.5 202 0x7f", "io": "1234.5 "}
    )
    assert asleep is not None
    assert ("futex_wait_queue", "202", None) == (asleep.wait, asleep.call, asleep.moved)
    assert read_look({**facts, "stat": "1234.5 "}) is None
    assert read_look({}) is None
