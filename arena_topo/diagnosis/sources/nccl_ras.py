"""What NCCL itself says of a job: which ranks have launched fewer operations, and which it cannot reach.

Since 2.24 every process of NCCL answers for the whole job on a port of its own host. The text is read: JSON
is served since 2.28.7 only, and is broken there when ranks are missing. Launched is not completed, and the
numbers differ for a moment in healthy jobs: only what two answers say alike counts.
Source: https://docs.nvidia.com/deeplearning/nccl/user-guide/docs/troubleshooting/ras.html
"""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from itertools import islice

from arena_topo.diagnosis.verdict import Finding
from arena_topo.model.text.words import plural

ASK = r"""nccl() {
  grep -qsE '^ *[0-9]+: [0-9A-F]+:6D7C [0-9A-F:]+ 0A ' /proc/net/tcp /proc/net/tcp6 || return
  timeout 2 bash -c 'exec 3<>/dev/tcp/localhost/28028 || exit
    printf "CLIENT PROTOCOL 2\nTIMEOUT 1\nVERBOSE STATUS\n" >&3; cat <&3' 2>/dev/null | head -n 4000 |
    while IFS= read -r line; do printf '%s\n' "$1 0 nccl $line"; done
}
"""
"""A function of the shell that prints NCCL's answer, behind its number, where port 28028 (6D7C) listens."""

_TOTALS = re.compile(r"[ \d]+ (\d{1,9}) +(\d{1,9}) *")
_GROUP = re.compile(r" *(\d{1,9}) +\d+ +\S+ +\S+ +(\d{1,9}) +\d+ +[A-Z]+ +[A-Z,]+ *")
_COMMUNICATOR = re.compile(r"#(\d{1,9})-\d+ \([0-9a-f]+\) [A-Z]+ *")
_DIFFERENT = re.compile(r" *Communicator ranks have different (\w{1,40}) operation counts *")
_MISSING = re.compile(r" *Missing communicator data from \d+ ranks? *")
_LAUNCHED = (
    r"ha(?:ve|s) (?:launched up to operation (?P<launched>\d{1,18})|(?P<none>not launched any operations))"
)
_MANY = re.compile(rf" *(?P<count>\d{{1,9}}) ranks (?:{_LAUNCHED}|reported (?P<error>[\w ]{{1,60}}?)) *")
_RANK = re.compile(
    rf" *Rank (?P<rank>\d{{1,9}})(?: {_LAUNCHED}| reported (?P<error>[\w ]{{1,60}}?))? -- "
    r"(?:GPU .* managed by process (?P<pid>\d{1,9}) on node (?P<host>\S{1,100})|\[.*\]) *"
)
_ONE_MISSING = re.compile(r" *The missing rank: (?P<rank>\d{1,9}) *")


@dataclass(slots=True)
class _Section:
    """A problem of a communicator: how many ranks have launched so many, and the ranks that are listed."""

    size: int
    operation: str = ""
    counts: dict[int, int] = field(default_factory=dict)
    listed: "list[_Listed]" = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class _Listed:
    rank: int
    process: tuple[str, int]
    launched: int | None = None
    what: str = ""


@dataclass(frozen=True, slots=True)
class Answer:
    """One answer: the processes and GPUs of the job that it is about, and the ranks that it lists."""

    processes: int
    gpus: int
    sections: tuple[_Section, ...]


def read_answer(lines: Iterable[str]) -> Answer | None:
    """Return what an answer says; None for one that does not name its job."""
    reader = _Reader()
    for line in islice(lines, 4000):
        text = line[:300]
        if not reader.read_table(text) and reader.sections:
            reader.read_section(text)
    return Answer(*reader.totals, tuple(reader.sections)) if reader.totals else None


@dataclass(slots=True)
class _Reader:
    totals: tuple[int, int] | None = None
    has_totals: bool = False
    sizes: dict[int, int] = field(default_factory=dict)
    """Ranks of a communicator of each group."""
    sections: list[_Section] = field(default_factory=list)
    launched: int | None = None
    what: str = ""
    """What the ranks that follow have in common."""

    def read_table(self, text: str) -> bool:
        """Read a line that is of the job's tables, or begins what is said of a communicator."""
        if not self.has_totals and (found := _TOTALS.fullmatch(text)):
            self.totals = int(found[1]), int(found[2])
        elif text.startswith("Communicators"):
            self.has_totals = True
        elif found := _GROUP.fullmatch(text):
            self.sizes[int(found[1])] = int(found[2])
        elif found := _COMMUNICATOR.fullmatch(text):
            self._begin(self.sizes.get(int(found[1]), 0))
        elif self.sections and (found := _DIFFERENT.fullmatch(text)):
            self._begin(self.sections[-1].size, found[1])
        else:
            return False
        return True

    def _begin(self, size: int, operation: str = "") -> None:
        self.sections.append(_Section(size, operation))
        self.launched, self.what = None, ""

    def read_section(self, text: str) -> None:
        """Read a line about ranks of a communicator."""
        if _MISSING.fullmatch(text):
            self.what = "is not reached by NCCL"
        elif found := _MANY.fullmatch(text):
            self.launched, self.what = _value(found), _error(found)
            if self.launched is not None:
                self.sections[-1].counts[self.launched] = int(found["count"])
        elif found := _RANK.fullmatch(text):
            own = _value(found)
            if own is not None:
                self.sections[-1].counts.setdefault(own, 1)
            process = (found["host"] or "", int(found["pid"] or 0))
            launched = self.launched if own is None else own
            what = _error(found) or self.what
            self.sections[-1].listed.append(_Listed(int(found["rank"]), process, launched, what))
        elif found := _ONE_MISSING.fullmatch(text):
            self.sections[-1].listed.append(_Listed(int(found["rank"]), ("", 0), what=self.what))


def _value(found: re.Match[str]) -> int | None:
    return int(found["launched"]) if found["launched"] else 0 if found["none"] else None


def _error(found: re.Match[str]) -> str:
    return f"reports {found['error'].lower()} to NCCL" if found["error"] else ""


def find_behind(answer: Answer, size: int, numbers: Mapping[tuple[str, int], int]) -> tuple[Finding, ...]:
    """Return the ranks, of *size*, that are behind, that failed, or that NCCL does not reach.

    *numbers* has the rank of each process by its address and PID: another address is that of a second
    network, and then only a communicator of all ranks numbers them as the job does.
    """
    # On a host's network two jobs share the port, and the other one may have answered.
    if size not in (answer.processes, answer.gpus):
        return ()
    found = []
    for section in answer.sections:
        most = max(section.counts, key=lambda value: section.counts[value], default=0)
        majority = section.counts.get(most, 0)
        for one in section.listed:
            rank = numbers.get(one.process, one.rank if section.size == size else None)
            if rank is None or rank >= size:
                continue
            if not section.operation:
                if one.what:
                    found.append(Finding(rank, one.what))
            elif one.launched is not None and one.launched < most and majority * 2 > section.size:
                begun = f"launched {section.operation} {one.launched:,}" if one.launched else "launched none"
                others = f"{plural(majority, 'rank')} have launched {most:,}"
                found.append(Finding(rank, f"has {begun} and not the next", others))
    return tuple(found)
