"""Jobs of the tests as their users see them, and what their ranks said of themselves."""

import json
import re
import subprocess
from dataclasses import dataclass

from arena_topo.model.plan_record import PlanRecord, decode, plan_text
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines.pods import MPIJOB, running
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Outcome
from tests.ranks.images import RANKS

PYTORCHJOB = ("kubeflow.org/v1", "PyTorchJob")
_LOG_SECONDS = 60.0
_MPIRUN = "mpirun --allow-run-as-root --bind-to none --map-by slot"


def mpirun(ranks: int, *arguments: str) -> str:
    """Return the command of *ranks* ranks of the small program."""
    return " ".join([_MPIRUN, f"-np {ranks}", RANKS, *arguments])


@dataclass(frozen=True, slots=True)
class Rank:
    """What one rank printed: where it is, what it sees;
    ``env``: the variables it was asked for, and its options.
    """

    number: int
    size: int
    host: str
    node: str
    local: str
    gpus: str
    env: dict[str, str]


def places_of(ranks: list[Rank]) -> list[tuple[str, str]]:
    """Return the (pod, node) where each rank says it is."""
    return [(rank.host, rank.node) for rank in ranks]


def ranks_in(log: str) -> list[Rank]:
    """Return the ranks that printed a line in *log*, in their order."""
    # Some mpirun lose the line break between two ranks that print at once.
    lines = re.findall(r"rank=\d+ size=.*?(?=rank=\d+ size=|\n|$)", log)
    return sorted(map(_rank, lines), key=lambda rank: rank.number)


def _rank(line: str) -> Rank:
    words = dict(word.split("=", 1) for word in line.split())
    number, size = int(words.pop("rank")), int(words.pop("size"))
    host, node, local, gpus = (words.pop(name) for name in ("host", "node", "local", "gpus"))
    return Rank(number, size, host, node, local, gpus, words)


@dataclass(frozen=True, slots=True)
class Jobs:
    """Jobs in one namespace; ``word`` submits those of ``kind``, an ``apiVersion`` and a ``kind``."""

    arena: Arena
    kube: Kube
    namespace: str
    word: str = "mpi"
    kind: tuple[str, str] = MPIJOB

    def submit(
        self,
        name: str,
        *flags: str,
        command: str,
        workers: int = 4,
        gpus: int = 1,
        image: str = "ranks",
        code: int = 0,
    ) -> Outcome:
        """Submit a job of the small program and return what
        the user was told; *code* is the exit code of submit.
        """
        shape = (f"--name={name}", f"--workers={workers}", f"--gpus={gpus}", f"--image={image}")
        outcome = self.arena("submit", self.word, *shape, *flags, command)
        assert code == outcome.code, outcome.err
        return outcome

    def log(self, name: str) -> str:
        """Follow the log of a job to its end, and return it."""
        try:
            # As a process, which can be ended: a log that never ends is a finding, and its picture tells
            # which.
            outcome = self.arena.process("logs", "-f", name, timeout=_LOG_SECONDS)
        except subprocess.TimeoutExpired as late:
            raise AssertionError(
                f"the log of {name} does not end: {late.output!r}\n{self.picture(name)}"
            ) from late
        assert 0 == outcome.code, outcome.err
        return outcome.out

    def until_logged(self, name: str, words: str) -> None:
        """Return once the log of a job has *words*."""
        try:
            eventually(lambda: words in self.arena("logs", name).out, f"{words!r} in the log of {name}")
        except ControlPlaneError as late:
            raise AssertionError(f"{late}\n{self.arena('logs', name)}\n{self.picture(name)}") from late

    def picture(self, name: str) -> str:
        """Return what a failed test shows of a job: its table, and the status of each pod."""
        pods = (f"{pod['metadata']['name']}: {json.dumps(pod['status'])}" for pod in self.pods(name))
        return "\n".join([self.get(name), *pods])

    def ranks(self, name: str) -> list[Rank]:
        """Follow the log of a job to its end, and return the ranks that printed a line."""
        return ranks_in(self.log(name))

    def get(self, name: str) -> str:
        """Return what ``get`` shows of a job, notices included."""
        outcome = self.arena("get", name)
        return outcome.out + outcome.err

    def wait(self, name: str, status: str) -> str:
        """Return what ``get`` shows once the job has *status*."""

        def seen() -> str | None:
            text = self.get(name)
            return text if re.search(rf"^Status: +{status}$", text, re.MULTILINE) else None

        return eventually(seen, f"{name} to be {status}")

    def plan(self, name: str) -> PlanRecord:
        """Return the plan that the job carries."""
        text = plan_text(self.kube.get(*self.kind, name, self.namespace))
        assert text is not None
        return decode(text)

    def places(self, name: str, slots: int = 1) -> list[tuple[str, str]]:
        """Return the (pod, node) of each rank by the plan of a job with so many *slots* a worker."""
        record = sorted(self.plan(name).slots, key=lambda slot: slot.worker)
        return [(f"{name}-worker-{slot.worker}", slot.node) for slot in record for _ in range(slots)]

    def remove_all(self) -> None:
        """Delete all jobs, and return when their pods have left
        the nodes: a plan counts as long as its job exists.
        """
        for job in self.kube.list(*self.kind, self.namespace):
            self.kube.delete(
                *self.kind, job["metadata"]["name"], self.namespace, propagationPolicy="Background"
            )
        eventually(lambda: not self.kube.list(*self.kind, self.namespace), "the end of the jobs")
        # Ranks end by themselves, which takes long where other tests have the processors.
        eventually(
            lambda: not self.kube.list("v1", "Pod", self.namespace), "the end of the pods", timeout=400
        )

    def pods(self, name: str, role: str = "") -> list[Object]:
        """Return the pods of a job, of one role if given."""
        selector = f"training.kubeflow.org/job-name={name}"
        selector += f",training.kubeflow.org/job-role={role}" if role else ""
        found = self.kube.list("v1", "Pod", self.namespace, labelSelector=selector)
        return sorted(found, key=lambda pod: str(pod["metadata"]["name"]))


def running_ranks(jobs: Jobs, name: str, count: int) -> str:
    """Return the launcher's name once *count* ranks have printed where they are."""

    def all_print() -> str | None:
        for pod in jobs.pods(name, "launcher"):
            launcher = str(pod["metadata"]["name"])
            path = jobs.kube.path("v1", "Pod", jobs.namespace, launcher)
            if running(pod) and len(ranks_in(jobs.kube.request("GET", f"{path}/log"))) == count:
                return launcher
        return None

    return eventually(all_print, f"{count} ranks that run")
