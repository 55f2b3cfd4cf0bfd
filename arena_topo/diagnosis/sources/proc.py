"""What Linux says of each process under /proc, to processes of the same user, with nothing installed.

It tells stopped ranks, sleeping ones and those whose bytes flow. It cannot tell a collective from another,
nor polling from computing; a process of another user keeps all but its state to itself, and says 0 for
where it sleeps. Source: proc(5).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field

from arena_topo.diagnosis.verdict import Look

RANK_VARIABLES = (
    "OMPI_COMM_WORLD_RANK",
    "PMI_RANK",
    "RANK",
    "OMPI_COMM_WORLD_SIZE",
    "PMI_SIZE",
    "WORLD_SIZE",
    "OMPI_COMM_WORLD_LOCAL_RANK",
    "MPI_LOCALRANKID",
    "LOCAL_RANK",
    "CUDA_VISIBLE_DEVICES",
)
"""The only variables that leave a container: others may be secrets."""

FIND = f"""set -f; export LC_ALL=C
me=$$
set +f
for file in $(grep -lsE 'RANK=[0-9]' /proc/[0-9]*/environ); do
  set -f
  pid=${{file#/proc/}}; pid=${{pid%/environ}}
  [ "$pid" = "$me" ] && continue
  printf 'stat %s\\n' "$(cat /proc/$pid/stat)"
  tr '\\n\\0' ' \\n' < "$file" | grep -aE '^({"|".join(RANK_VARIABLES)})=[0-9A-Za-z,-]*$' | sed "s/^/env $pid /"
done 2>/dev/null
"""
"""Prints which processes have the variables of a rank."""

LOOK = """facts() {
  read up rest < /proc/uptime
  for pid; do
    for name in stat wchan syscall io; do
      printf '%s\\n' "$n $pid $name $up $(tr '\\n' ' ' < /proc/$pid/$name)"
    done
  done 2>/dev/null
}
"""
"""A function of the shell that prints what /proc says of some processes."""

_SHELLS = frozenset(
    (
        "sh",
        "bash",
        "dash",
        "ash",
        "zsh",
        "busybox",
        "tini",
        "dumb-init",
        "timeout",
        "numactl",
        "env",
        "nice",
        "nsys",
    )
)
"""What starts a rank and waits for it, in the same environment."""
_TICKS = 100.0
"""Clock ticks a second, which is 100 on every Linux that containers run on (USER_HZ)."""
_STATE, _PARENT, _USER, _SYSTEM = 0, 1, 11, 12
"""Positions in /proc/PID/stat behind the name of the program, which may hold blanks and parentheses."""


@dataclass(frozen=True, slots=True)
class RankProcess:
    """The process of a rank in its container; ``size`` is the number of ranks, 0 where it is not known."""

    pid: int
    number: int
    size: int = 0
    local: int | None = None
    devices: str = ""


@dataclass(slots=True)
class _Process:
    parent: int
    program: str
    variables: dict[str, str] = field(default_factory=dict)


def find_ranks(output: str) -> list[RankProcess]:
    """Return the ranks among the processes that ``FIND`` printed, without the processes that they started.

    For example, of a shell that waits for Python, whose data is loaded by two further processes, it is the
    Python that the shell has started.
    """
    processes = dict(_processes(output.splitlines()))
    # An operator may give a pod's number the name that torchrun gives to ranks; only those have a local one,
    # too.
    if any(_number(one.variables, "LOCAL_RANK") is not None for one in processes.values()):
        processes = {
            pid: one
            for pid, one in processes.items()
            if "LOCAL_RANK" in one.variables or "OMPI_COMM_WORLD_RANK" in one.variables
        }
    found: dict[int, RankProcess] = {}
    for pid, one in sorted(processes.items()):
        number = _first(one.variables, "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")
        if number is None or one.program in _SHELLS or _is_helper(pid, number, processes):
            continue
        found.setdefault(
            number,
            RankProcess(
                pid,
                number,
                _first(one.variables, "OMPI_COMM_WORLD_SIZE", "PMI_SIZE", "WORLD_SIZE") or 0,
                _first(one.variables, "OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "LOCAL_RANK"),
                one.variables.get("CUDA_VISIBLE_DEVICES", ""),
            ),
        )
    return [found[number] for number in sorted(found)]


def _is_helper(pid: int, number: int, processes: dict[int, _Process]) -> bool:
    """Whether a process was started by its own rank: its parent, or that one's, is the rank and no shell."""
    seen = {pid}
    parent = processes[pid].parent
    while parent in processes and parent not in seen:
        seen.add(parent)
        one = processes[parent]
        its = _first(one.variables, "OMPI_COMM_WORLD_RANK", "PMI_RANK", "RANK")
        if its == number and one.program not in _SHELLS:
            return True
        parent = one.parent
    return False


def _processes(lines: Iterable[str]) -> Iterable[tuple[int, _Process]]:
    known: dict[int, _Process] = {}
    for line in lines:
        word, _, rest = line.partition(" ")
        if word == "stat" and (parts := _stat(rest)):
            pid, program, fields = parts
            known[pid] = _Process(_whole(fields[_PARENT]) or 0, program)
        elif word == "env":
            pid_text, _, pair = rest.partition(" ")
            name, _, value = pair.partition("=")
            if (one := known.get(_whole(pid_text) or 0)) and name in RANK_VARIABLES:
                one.variables[name] = value
    return known.items()


def _stat(text: str) -> tuple[int, str, list[str]] | None:
    """Return the PID, the program and what follows it in /proc/PID/stat, None for less than that."""
    head, _, tail = text.rpartition(")")
    number, _, program = head.partition(" (")
    pid, fields = _whole(number), tail.split()
    return (pid, program, fields) if pid is not None and len(fields) > _SYSTEM else None


def _first(variables: dict[str, str], *names: str) -> int | None:
    return next((number for name in names if (number := _number(variables, name)) is not None), None)


def _number(variables: dict[str, str], name: str) -> int | None:
    return _whole(variables.get(name, ""))


def _whole(text: str) -> int | None:
    # Python's digits are more than ASCII's, and it refuses numbers of thousands of digits.
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 10 else None


def read_look(facts: dict[str, str]) -> Look | None:
    """Return what the files of one process said, by their names, each behind the time; None if it is gone."""
    uptime, _, stat = facts.get("stat", "").partition(" ")
    parts, at = _stat(stat), _seconds(uptime)
    if parts is None or at is None:
        return None
    _, _, fields = parts
    wait = _after_time(facts, "wchan").strip()
    ticks = [_whole(fields[place]) or 0 for place in (_USER, _SYSTEM)]
    return Look(
        at=at,
        state=fields[_STATE][:1],
        # 0 is said to users who cannot know it, too.
        wait="" if wait == "0" else wait[:64],
        call=(_after_time(facts, "syscall").split() or [""])[0][:16],
        cpu=sum(ticks) / _TICKS,
        moved=_moved(_after_time(facts, "io").split()),
    )


def _after_time(facts: dict[str, str], name: str) -> str:
    return facts.get(name, "").partition(" ")[2]


def _moved(words: list[str]) -> int | None:
    """Return the bytes of system calls on anything but sockets: ``rchar: 1 wchar: 2 ...``."""
    counts = {
        name: int(value)
        for name, value in zip(words[::2], words[1::2], strict=False)
        if value.isascii() and value.isdecimal() and len(value) < 20
    }
    if "rchar:" not in counts or "wchar:" not in counts:
        return None
    return counts["rchar:"] + counts["wchar:"]


def _seconds(text: str) -> float | None:
    whole, _, part = text.partition(".")
    seconds = _whole(whole)
    return None if seconds is None else seconds + (_whole(part[:2].ljust(2, "0")) or 0) / 100
