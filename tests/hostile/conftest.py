"""A simulated cluster, a server before it, and commands that are run against both."""

import gc
import itertools
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from arena_topo.cli.errors import run
from tests.controlplane.polling import eventually
from tests.e2e.arena import Outcome, let_rest_what_lives
from tests.hostile.commands import COMMANDS, LASTING
from tests.hostile.front import Front, front
from tests.sandbox.served import served

NODE = "cn-shanghai.192.168.16.172"
JOBS = "/apis/kubeflow.org/v2beta1/namespaces/default/mpijobs"
_NUMBERS = itertools.count()


@dataclass(frozen=True, slots=True)
class Typed:
    """A command with its words, and the job that it is about."""

    args: tuple[str, ...]
    job: str = ""


Perform = Callable[..., Outcome]

ON_CTRL_C = 130
LOOK = 0.5
"""Seconds for which a command that lasts continues after it met a hostile answer; how many requests it sends
in them depends
on the machine, and nothing else does."""
LONGEST = 20.0
"""Seconds after which a command hangs that neither asks nor ends."""


def typed(
    command: str, cluster: Front, folder: Path, commands: Mapping[str, tuple[str, ...]] | None = None
) -> Typed:
    """Return *command*, of *commands* or of all, as it is typed, with what it needs in the cluster."""
    number = next(_NUMBERS)
    names = {
        "NEW": f"new-{number}",
        "OLD": f"old-{number}",
        "SUSPENDED": f"suspended-{number}",
        "ELASTIC": f"elastic-{number}",
        "NODE": NODE,
        "FILE": str(folder / f"{number}.yaml"),
    }
    args = (commands or {**COMMANDS, **LASTING})[command]
    for kind in {"OLD", "SUSPENDED", "ELASTIC"} & {*args}:
        create(cluster, names[kind], suspended=kind == "SUSPENDED")
    words = tuple(_filled(word, names) for word in args)
    return Typed(words, names["NEW"] if "--name=NEW" in args else "")


def _filled(word: str, names: dict[str, str]) -> str:
    flag, equals, value = word.rpartition("=")
    return f"{flag}{equals}{names.get(value, value)}"


def create(cluster: Front, name: str, *, suspended: bool) -> None:
    """Create a job of one worker without GPUs, which may have two."""
    template = {"spec": {"containers": [{"name": "mpi", "image": "i"}]}}
    replicas = {role: {"replicas": 1, "template": template} for role in ("Launcher", "Worker")}
    body: Any = {
        "apiVersion": "kubeflow.org/v2beta1",
        "kind": "MPIJob",
        "metadata": {"name": name, "annotations": {"arena-topo.dev/elastic": "1:2"}},
        "spec": {"mpiReplicaSpecs": replicas, "runPolicy": {"suspend": suspended}},
    }
    assert cluster.client.send("POST", JOBS, body).code == 201


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Front]:
    """Run a front of a simulated cluster with a job ``there`` that has a log."""
    with served(tmp_path_factory.mktemp("behind") / "home", "two-dgx1") as home:
        config = f"--kubeconfig={home.kubeconfig}"
        assert 0 == run(["submit", "mpi", "--name=there", "--image=i", "--workers=1", config, "c"])
        eventually(lambda: run(["logs", "there", config]) == 0, "the log of the job")
        with front(tmp_path_factory.mktemp("front"), home.kubeconfig) as running:
            yield running


@pytest.fixture(autouse=True)
def _connections_end_with_their_test() -> Iterator[None]:
    """Collect what a command leaves to the end of its process:
    here that would be another test, which warns of it.
    """
    let_rest_what_lives()
    yield
    gc.collect()


@pytest.fixture
def perform(cluster: Front, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Perform:  # fmt: skip
    """Return a function that runs a command with its flags against the front."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("KUBECONFIG", str(cluster.kubeconfig))
    for variable in ("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_STATE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path / variable))
    monkeypatch.setattr("sys.argv", ["arena-topo"])

    def performed(words: Typed, *flags: str) -> Outcome:
        code = run([words.args[0], *flags, *words.args[1:]])
        printed = capfd.readouterr()
        return Outcome(int(code), printed.out, printed.err)

    return performed


@pytest.fixture
def perform_lasting(cluster: Front, tmp_path: Path) -> Perform:
    """Return a function that runs a command as a process,
    and interrupts it after its request number *reached*.
    """
    environment = {**os.environ, "HOME": str(tmp_path), "KUBECONFIG": str(cluster.kubeconfig)}
    environment |= {f"XDG_{kind}_HOME": str(tmp_path / kind) for kind in ("CONFIG", "CACHE", "STATE")}
    # A signal that comes while the process writes down which lines ran would be reported by the measurement
    # itself.
    environment.pop("COVERAGE_PROCESS_CONFIG", None)

    def performed(words: Typed, *flags: str, reached: int) -> Outcome:
        command = [sys.executable, "-m", "arena_topo", words.args[0], *flags, *words.args[1:]]
        out, err = tmp_path / "out", tmp_path / "err"
        with out.open("w") as stdout, err.open("w") as stderr:
            process = subprocess.Popen(
                command, stdin=subprocess.DEVNULL, stdout=stdout, stderr=stderr, env=environment
            )
            try:
                eventually(lambda: len(cluster.paths) >= reached or process.poll() is not None, "the request")
                with suppress(subprocess.TimeoutExpired):
                    process.wait(LOOK)
                process.send_signal(signal.SIGINT)
                process.wait(LONGEST)
            finally:
                process.kill()
                process.wait()
        # What comes without an end is printed without one.
        printed = (out.read_text("utf-8", "replace"), err.read_text("utf-8", "replace"))
        # A process that is about to leave dies of the signal, which shells report by the same code.
        is_killed = process.returncode == -signal.SIGINT
        return Outcome(ON_CTRL_C if is_killed else process.returncode, *printed)

    return performed
