"""Asking all ranks of a job at once, by ``exec`` in their containers, each pod within the same time.

Each pod is asked twice: which of its processes are ranks, and then, in one process, for all looks at them.
A pod that does not answer delays no other, and what one prints is read up to a bound.
"""

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from queue import Empty, Queue
from typing import TYPE_CHECKING

from arena_topo.diagnosis.sources import flight_recorder, nccl_ras, proc, py_spy, tcp
from arena_topo.diagnosis.verdict import Absent, Backlog, Finding, Look, Rank
from arena_topo.errors import ArenaTopoError
from arena_topo.model.text.words import plural

if TYPE_CHECKING:
    from arena_topo.diagnosis.sources.proc import RankProcess

_AT_ONCE = 128
"""Pods that are asked at the same time, each over a connection of its own: 1,000 take eight rounds."""
_FIND_SECONDS = 4.0
_LOOK_SECONDS = 5
"""Whole seconds after which a pod begins no further look: on a busy machine one may take long."""
_MARGIN = 4.0
"""Seconds that a pod has beyond these to send what it saw."""

_LIBRARIES_ASKED = 2
"""Pods in which the libraries are asked, each of which answers for all ranks; one of them may hang."""

LARGEST_OUTPUT = 4 << 20
"""Bytes that are read of one pod: a rank's stack has a few thousand."""


@dataclass(frozen=True, slots=True)
class PodAt:
    """A pod that is asked: its name and node, the container of its ranks, its planned GPUs and its IP."""

    name: str
    node: str
    container: str
    gpus: tuple[int, ...] = ()
    address: str = ""


Run = Callable[[PodAt, Sequence[str]], bytes]
"""Runs a command in a pod and returns up to ``LARGEST_OUTPUT`` of its output. Raises ``ArenaTopoError``."""


@dataclass(frozen=True, slots=True)
class Found:
    """The processes of the ranks of each pod, and the pods that did not say."""

    by_pod: tuple[tuple[PodAt, "tuple[RankProcess, ...]"], ...]
    silent: tuple[tuple[PodAt, str], ...] = ()


@dataclass(frozen=True, slots=True)
class Evidence:
    """Looks at ranks, who was not seen, and what each pod printed, for those who keep it.

    ``answers`` are those of the libraries of the collectives, in order of time; ``backlogs`` are what waited
    in connections between pods.
    """

    ranks: tuple[Rank, ...]
    absent: tuple[Absent, ...] = ()
    printed: tuple[tuple[str, bytes], ...] = ()
    has_stacks: bool = False
    answers: tuple[frozenset[Finding], ...] = ()
    backlogs: tuple[Backlog, ...] = ()


def find(pods: Sequence[PodAt], run: Run) -> Found:
    """Return the processes of all ranks in *pods*."""
    answers = _ask([(pod, ("sh", "-c", proc.FIND)) for pod in pods], run, _FIND_SECONDS)
    by_pod, silent = [], []
    for pod in pods:
        answer = answers[pod.name]
        if isinstance(answer, bytes):
            by_pod.append((pod, tuple(proc.find_ranks(answer.decode(errors="replace")))))
        else:
            silent.append((pod, answer))
    return Found(tuple(by_pod), tuple(silent))


def look(found: Found, run: Run, *, looks: int = 10, pause: float = 0.5) -> Evidence:
    """Look at all ranks *looks* times, at least twice, *pause* seconds apart, all pods at the same time."""
    of_first = sorted(found.by_pod, key=lambda pair: min((one.number for one in pair[1]), default=1 << 30))
    libraries = {pod.name for pod, _ in of_first[:_LIBRARIES_ASKED]}
    words = {
        pod.name: (
            "sh",
            "-c",
            _LOOK_WITH_LIBRARIES if pod.name in libraries else _LOOK,
            "sh",
            str(looks),
            f"{pause:g}",
            str(_LOOK_SECONDS),
            *(str(one.pid) for one in ranks),
        )
        for pod, ranks in found.by_pod
        if ranks
    }
    asked = [(pod, words[pod.name]) for pod, _ in found.by_pod if pod.name in words]
    answers = _ask(asked, run, _LOOK_SECONDS + _MARGIN)
    ranks: list[Rank] = []
    absent = []
    for pod, processes in found.by_pod:
        answer = answers.get(pod.name, b"")
        if isinstance(answer, str):
            absent.append(unanswered(pod.name, pod.node, answer, tuple(one.number for one in processes)))
            continue
        seen = read_looks(answer)
        most = max(map(len, seen.values()), default=0)
        for one in processes:
            of_rank = seen.get(one.pid, ())
            if of_rank and len(of_rank) == most:
                ranks.append(
                    Rank(
                        number=one.number,
                        pod=pod.name,
                        node=pod.node,
                        gpu=_gpu(pod, one, processes),
                        looks=of_rank,
                    )
                )
            else:
                absent.append(
                    Absent(why="its process has ended", pod=pod.name, node=pod.node, ranks=(one.number,))
                )
    absent += _missing(found)
    printed = tuple((name, answer) for name, answer in answers.items() if isinstance(answer, bytes))
    has_stacks = any(rank.looks[0].stack for rank in ranks)
    return Evidence(
        tuple(ranks), tuple(absent), printed, has_stacks, _findings(found, printed), _backlogs(found, printed)
    )


_ASK_LIBRARIES = """( for number in 0 1; do
    [ $number -gt 0 ] && sleep 2
    nccl $number & torch $number & wait
  done ) &
"""
"""Twice, next to the looks, which do not wait for it; six seconds at most."""

_LOOP = """looks=$1 pause=$2 limit=$3; shift 3
export LC_ALL=C; set -f
read up rest < /proc/uptime
end=$((${up%.*} + limit))
n=0
while [ $n -lt $looks ]; do
  [ $n -gt 0 ] && sleep $pause
  read up rest < /proc/uptime
  [ $n -gt 1 ] && [ ${up%.*} -ge $end ] && break
  facts "$@"; sockets; stacks "$@"
  n=$((n + 1))
done
"""

_LOOK = f"{proc.LOOK}{tcp.LOOK}{py_spy.LOOK}{_LOOP}"
_LOOK_WITH_LIBRARIES = f"{nccl_ras.ASK}{flight_recorder.ASK}{_ASK_LIBRARIES}{_LOOK}wait\n"

SCRIPTS = (proc.FIND, _LOOK, _LOOK_WITH_LIBRARIES)
"""All that is run in containers, with numbers as arguments."""


def read_looks(output: bytes) -> dict[int, tuple[Look, ...]]:
    """Return the looks at each process, of what the script printed: ``LOOK PID FILE TEXT``."""
    facts: dict[tuple[int, int], dict[str, str]] = {}
    stacks: dict[tuple[int, int], list[str]] = {}
    for line in output.decode(errors="replace").splitlines():
        number, _, rest = line.partition(" ")
        pid, _, rest = rest.partition(" ")
        name, _, text = rest.partition(" ")
        if not (number.isascii() and number.isdecimal() and pid.isascii() and pid.isdecimal()):
            continue
        if max(len(number), len(pid)) > 9:
            continue
        key = int(pid), int(number)
        if name == "stack":
            stacks.setdefault(key, []).append(text)
        elif name in ("stat", "wchan", "syscall", "io"):
            facts.setdefault(key, {}).setdefault(name, text)
    found: dict[int, tuple[Look, ...]] = {}
    for process, look_number in sorted(facts):
        if one := proc.read_look(facts[process, look_number]):
            stack = py_spy.read_stack(stacks.get((process, look_number), ()), process)
            found[process] = (*found.get(process, ()), replace(one, stack=stack))
    return found


def _findings(found: Found, printed: Sequence[tuple[str, bytes]]) -> tuple[frozenset[Finding], ...]:
    """Return what the libraries said, first and then; nothing where none did both times."""
    numbers = {
        (pod.address, one.pid): one.number for pod, ranks in found.by_pod for one in ranks if pod.address
    }
    processes = [one for _, ranks in found.by_pod for one in ranks]
    size = max((one.size for one in processes), default=0) or len(processes)
    answers: dict[str, set[Finding]] = {}
    for _, output in printed:
        lines: dict[tuple[str, str], list[str]] = {}
        for line in output.decode(errors="replace").splitlines():
            number, _, rest = line.partition(" 0 ")
            source, _, text = rest.partition(" ")
            if number in ("0", "1") and source in ("nccl", *flight_recorder.PATHS):
                lines.setdefault((number, source), []).append(text)
        for (number, source), texts in lines.items():
            said = answers.setdefault(number, set())
            if source != "nccl":
                said |= set(flight_recorder.find_behind(flight_recorder.read_begun(texts), size))
            elif answer := nccl_ras.read_answer(texts):
                said |= set(nccl_ras.find_behind(answer, size, numbers))
    return tuple(frozenset(answers[number]) for number in "01") if len(answers) == 2 else ()


def _backlogs(found: Found, printed: Sequence[tuple[str, bytes]]) -> tuple[Backlog, ...]:
    """Return what waited in connections between pods; nothing between pods that share an address."""
    pods = [pod for pod, _ in found.by_pod] + [pod for pod, _ in found.silent]
    by_address = {pod.address: (pod.name, pod.node) for pod in pods if pod.address}
    if len(by_address) < len(pods):
        # In the network of their nodes the sockets of one are those of all.
        return ()
    return tcp.read_backlogs(printed, by_address, {pod.name: pod.node for pod in pods})


def merged(first: Evidence, second: Evidence) -> Evidence:
    """Return the looks of two rounds at the same processes as those of one."""
    before = {(rank.number, rank.pod): rank.looks for rank in first.ranks}
    ranks = tuple(
        replace(rank, looks=(*before.get((rank.number, rank.pod), ()), *rank.looks)) for rank in second.ranks
    )
    # Answers of one round only are not compared over the time between the two.
    answers = (*first.answers, *second.answers) if first.answers and second.answers else ()
    return replace(second, ranks=ranks, answers=answers)


def unanswered(pod: str, node: str, why: str, ranks: tuple[int, ...] = ()) -> Absent:
    """Return the ranks of *pod*, which was asked and did not answer, and *why* in a clause."""
    return Absent(why=f"it does not answer: {why}", pod=pod, node=node, ranks=ranks, is_silent=True)


def _missing(found: Found) -> list[Absent]:
    """Return the ranks that have no process in the pods that answered, and the pods that did not."""
    processes = [one for _, ranks in found.by_pod for one in ranks]
    size = max((one.size for one in processes), default=0)
    known = {one.number for one in processes}
    # A wrong size in the environment of a process must not make ranks up.
    gone = tuple(number for number in range(min(size, 100_000)) if number not in known)
    # The missing ranks are those of the one silent pod; of several pods it is not known which has which.
    whose = gone if len(found.silent) == 1 else ()
    if found.silent:
        return [unanswered(pod.name, pod.node, why, whose) for pod, why in found.silent]
    if not gone:
        return []
    have = "has no process any more" if len(gone) == 1 else "have no process any more"
    return [Absent(why=f"{have}, of {plural(size, 'rank')}", ranks=gone)]


def _gpu(pod: PodAt, one: "RankProcess", processes: "Sequence[RankProcess]") -> int | None:
    """Return the GPU of a rank where it is known: the only one that it sees, or its own of the plan's."""
    devices = one.devices.split(",")
    if len(devices) == 1 and devices[0].isascii() and devices[0].isdecimal() and len(devices[0]) < 4:
        return int(devices[0])
    # One rank for each GPU, in their order, is what all launchers do.
    if one.local is not None and len(pod.gpus) == len(processes) and one.local < len(pod.gpus):
        return pod.gpus[one.local]
    return None


# All pods at once.


@dataclass(slots=True)
class _Asked:
    pod: PodAt
    words: Sequence[str]
    begun: float = field(default=0.0)


def _ask(asked: Sequence[tuple[PodAt, Sequence[str]]], run: Run, seconds: float) -> dict[str, bytes | str]:
    """Return what each pod printed, or why it did not within so many *seconds* of its own."""
    waiting = [_Asked(pod, words) for pod, words in reversed(asked)]
    running: dict[str, _Asked] = {}
    answers: dict[str, bytes | str] = {}
    done: Queue[tuple[str, bytes | str]] = Queue()

    def one(asked: _Asked) -> None:
        try:
            answer: bytes | str = run(asked.pod, asked.words)
        except ArenaTopoError as error:
            answer = error.message
        done.put((asked.pod.name, answer))

    while waiting or running:
        while waiting and len(running) < _AT_ONCE:
            next_one = waiting.pop()
            next_one.begun = time.monotonic()
            running[next_one.pod.name] = next_one
            # A thread whose pod never answers ends with the process.
            threading.Thread(target=one, args=(next_one,), daemon=True).start()
        first = min(entry.begun for entry in running.values())
        try:
            name, answer = done.get(timeout=max(0.0, first + seconds - time.monotonic()))
        except Empty:
            for late in [entry for entry in running.values() if time.monotonic() - entry.begun >= seconds]:
                del running[late.pod.name]
                answers[late.pod.name] = f"nothing came within {seconds:g} s"
            continue
        # One that answers after its time was given up.
        if running.pop(name, None):
            answers[name] = answer
    return answers
