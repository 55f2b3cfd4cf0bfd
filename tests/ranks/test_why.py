"""Ranks of a real ``mpirun``, one of which does not come any more, and what is seen of them from outside."""

import json
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from arena_topo.diagnosis.look import Evidence, Found, PodAt, find, look
from arena_topo.diagnosis.verdict import State, judge, judge_links, judge_speed
from arena_topo.model.keys import CONTROLLER_NAMESPACE
from tests.controlplane.components import install
from tests.controlplane.kube import Kube
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.controller.replicas import LEASE, replica
from tests.ranks import faulty_nodes, images
from tests.ranks.jobs import Jobs

pytestmark = pytest.mark.usefixtures("rank_images")

FAULTY = Path(__file__).parent / "programs/faulty.py"
PROGRAMS = Path(sys.executable).parent
PATH = f"{PROGRAMS}:/usr/bin:/bin"
CULPRIT, RANKS = 2, 4
HERE = PodAt("here", "this-machine", "mpi")


def run(_: PodAt, words: Sequence[str]) -> bytes:
    """Run a command on this machine, as exec would in a container."""
    return subprocess.run(words, capture_output=True, check=False, env={"PATH": PATH}).stdout


@dataclass(frozen=True, slots=True)
class Group:
    """The ranks of one ``mpirun`` on this machine; ``mark`` is among their arguments."""

    mark: str

    def processes(self) -> Found:
        """Return those of all ranks of this machine that are the group's."""
        found = [one for _, ranks in find([HERE], run).by_pod for one in ranks]
        return Found(((HERE, tuple(one for one in found if self.mark in arguments(one.pid))),))

    def seen(self) -> Evidence:
        """Return looks at them."""
        return look(self.processes(), run)


def arguments(pid: int) -> str:
    """Return the command line of a process, empty once it has gone."""
    with suppress(OSError):
        return Path(f"/proc/{pid}/cmdline").read_text("utf-8")
    return ""


@contextmanager
def ranks(fault: str, mark: Path, *, culprit: int = CULPRIT, count: int = RANKS) -> Iterator[Group]:
    """Let so many ranks run that talk by TCP, as between pods, until the test ends."""
    env = {**os.environ, "PATH": PATH, "OMPI_MCA_mpi_yield_when_idle": "1", "OMPI_MCA_btl": "tcp,self"}
    command = ["mpirun", "--allow-run-as-root", "--map-by", ":OVERSUBSCRIBE", "--bind-to", "none"]
    command += ["-np", str(count), sys.executable, str(FAULTY), fault, str(culprit), str(mark)]
    group = Group(str(mark))
    with subprocess.Popen(
        command, env=env, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        assert process.stdout
        try:
            assert "running\n" == process.stdout.readline()
            yield group
        finally:
            pids = [one.pid for _, found in group.processes().by_pod for one in found]
            process.kill()
            # Open MPI 5 starts them in sessions of their own.
            for pid in pids:
                os.kill(pid, signal.SIGKILL)
            eventually(lambda: not any(map(arguments, pids)), "the end of the ranks")


@pytest.mark.parametrize(
    ("fault", "state", "words"),
    [
        (
            "sleep",
            State.WAITING,
            "3 ranks wait in allreduce for rank 2 (here, this-machine), which has been at load",
        ),
        (
            "lock",
            State.WAITING,
            "3 ranks wait in allreduce for rank 2 (here, this-machine), which has been at take_lock",
        ),
        (
            "busy",
            State.WAITING,
            "3 ranks wait in allreduce for rank 2 (here, this-machine), which works at compute",
        ),
        (
            "barrier",
            State.WAITING,
            "collectives do not match: 3 ranks in allreduce, rank 2 (here, this-machine)",
        ),
        (
            "left",
            State.WAITING,
            "3 ranks wait in allreduce for rank 2 (here, this-machine), which ",
        ),
        ("stop", State.STUCK, "rank 2 (here, this-machine) is stopped by a signal"),
    ],
)
def test_the_rank_that_does_not_come_is_named(tmp_path: Path, fault: str, state: State, words: str) -> None:
    """By two looks: what it does, if it works, and that nobody is called stuck by them but who is stopped."""
    with ranks(fault, tmp_path) as group:
        evidence = group.seen()
    verdict = judge(evidence.ranks, evidence.absent)
    assert (state, [CULPRIT]) == (verdict.state, [suspect.rank for suspect in verdict.suspects]), verdict
    assert verdict.message.startswith(words)


@pytest.mark.parametrize(
    ("fault", "states"), [("none", {State.HEALTHY}), ("compute", {State.HEALTHY, State.UNDECIDED})]
)
def test_nobody_is_named_of_ranks_that_run(tmp_path: Path, fault: str, states: set[State]) -> None:
    """Neither of fast ones nor of those whose steps are
    longer than the looks, which may show no progress then.
    """
    with ranks(fault, tmp_path) as group:
        evidence = group.seen()
    verdict = judge(evidence.ranks, evidence.absent)
    assert () == verdict.suspects, verdict
    assert verdict.state in states
    assert judge_speed(evidence.ranks) is None


def test_a_rank_that_comes_late_to_each_step_is_slow(tmp_path: Path) -> None:
    """The others mostly wait for it, and the job continues; on
    a busy machine one observation may be too short.
    """

    def slow() -> list[int | None] | None:
        evidence = group.seen()
        named = judge(evidence.ranks, evidence.absent).suspects
        assert {CULPRIT} >= {suspect.rank for suspect in named}
        verdict = judge_speed(evidence.ranks)
        return [suspect.rank for suspect in verdict.suspects] if verdict else None

    with ranks("late", tmp_path) as group:
        assert [CULPRIT] == eventually(slow, "the late rank to be called slow")


def test_of_a_node_whose_link_is_dead_it_is_said_that_nothing_passes(tmp_path: Path) -> None:
    """All ranks wait alike. It is named where two others send to it, else with the one that does."""
    node = f"n{CULPRIT}"
    with faulty_nodes.ranks("dead-link", tmp_path, culprit=CULPRIT, count=4, on=4) as group:

        def is_told() -> bool:
            evidence = group.seen()
            verdict = judge(evidence.ranks, evidence.absent)
            if verdict.suspects:
                # A busy machine may answer late.
                return False
            verdict = judge_links(verdict, evidence.ranks, evidence.backlogs)
            assert {suspect.node for suspect in verdict.suspects} <= {node}
            return bool(re.search(rf"data between .*\b{node}\b.* is not acknowledged", verdict.message))

        eventually(is_told, "the node to be shown")


@pytest.mark.usefixtures("nodes")
def test_why_names_the_rank_of_a_job_its_pod_and_its_node(jobs: Jobs, tmp_path: Path) -> None:
    """Through the API server; a further look calls it
    stuck, and the evidence is kept without command lines.
    """
    command = (
        f"mpirun --allow-run-as-root --bind-to none -np 4 {sys.executable} {images.FAULTY} sleep {CULPRIT}"
    )
    jobs.submit("hangs", workers=2, gpus=2, image="openmpi5", command=command)
    jobs.until_logged("hangs", "running")
    folder = tmp_path / "evidence"
    done = jobs.arena("why", "hangs", "--for", "2s", "--save", str(folder), "-o", "json")

    assert 8 == done.code, done.out + done.err
    answer = json.loads(done.out)
    assert "stuck" == answer["state"]
    (suspect,) = answer["suspects"]
    (node,) = {
        pod["spec"]["nodeName"] for pod in jobs.pods("hangs") if pod["metadata"]["name"] == "hangs-worker-1"
    }
    assert (CULPRIT, "hangs-worker-1", node) == (suspect["rank"], suspect["instance"], suspect["node"])
    assert "load (faults.py:" in suspect["doing"]
    looks = (folder / "hangs-worker-1.looks").read_text("utf-8")
    assert "load (" in looks
    assert "mpirun" not in looks
    assert answer == json.loads((folder / "verdict.json").read_text("utf-8"))


@pytest.fixture
def lease(plane: ControlPlane) -> Iterator[None]:
    """Make the namespace of the controller's Lease; no Lease is left there."""
    if plane.kube.find("v1", "Namespace", CONTROLLER_NAMESPACE) is None:
        plane.kube.create(install.namespace(CONTROLLER_NAMESPACE))
    yield
    plane.kube.delete(*LEASE, CONTROLLER_NAMESPACE)


@pytest.mark.usefixtures("nodes", "lease")
def test_the_controller_keeps_what_it_saw_of_a_job_that_hangs_and_stops_it(
    jobs: Jobs, kube: Kube, tmp_path: Path
) -> None:
    """With --on-hang: the job's log is silent, one rank is stuck, its evidence outlasts the ranks."""
    command = (
        f"mpirun --allow-run-as-root --bind-to none -np 4 {sys.executable} {images.FAULTY} sleep {CULPRIT}"
    )
    flags = ("--on-hang=30s:save-and-fail", "--pin=workers")
    with replica(jobs.arena, "--hangs-in", jobs.namespace):
        told = jobs.submit("hangs", *flags, workers=2, gpus=2, image="openmpi5", command=command)
        assert "--on-hang" not in told.err

        def is_stopped() -> bool:
            return bool(kube.get(*MPIJOB, "hangs", jobs.namespace)["spec"]["runPolicy"]["suspend"])

        eventually(is_stopped, "its end")
    shown = jobs.arena("describe", "hangs").out
    assert "hung since " in shown
    assert f"for rank {CULPRIT} (hangs-worker-1, " in shown
    folder = tmp_path / "evidence"
    done = jobs.arena("why", "hangs", "--saved", "--save", str(folder), "-o", "json")

    assert 8 == done.code, done.out + done.err
    assert [CULPRIT] == [each["rank"] for each in json.loads(done.out)["suspects"]]
    assert "load (" in (folder / "hangs-worker-1.looks").read_text("utf-8")
    assert [] == [path.name for path in folder.iterdir() if "mpirun" in path.read_text("utf-8")]
