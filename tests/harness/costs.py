"""What a run costs: time, CPU and processes of each case, of each folder, and of the control planes that it
started.

``--costs FILE`` prints them at the end and keeps them in FILE as JSON, for the next who keeps the suite in
its budget.

A case costs what its worker used from its first fixture to the end of its last: the wall clock, the CPU
seconds of the worker with the processes that it waited for, and how many processes it started. A fixture of
many cases is paid for by the one that asks first. Control planes are counted apart: nobody waits for their
processes. Where there is no ``/proc``, their CPU and the peak are missing.
"""

import json
import os
import sys
import tempfile
import threading
import time
from collections import Counter, defaultdict
from collections.abc import Generator, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.harness import guardian

_PLANES = "planes"
"""Folder, in that of the run, in which its control planes
live and leave what they cost: it is their processes' HOME.
"""

_SLOWEST = 30
_SAMPLE_SECONDS = 2.0


@dataclass(frozen=True, slots=True)
class Cost:
    """Wall-clock and CPU seconds, and the number of processes started."""

    wall: float = 0.0
    cpu: float = 0.0
    processes: int = 0

    def __add__(self, other: "Cost") -> "Cost":
        """Return both together."""
        return Cost(self.wall + other.wall, self.cpu + other.cpu, self.processes + other.processes)


@dataclass(frozen=True, slots=True)
class PlaneCost:
    """What one control plane used: CPU seconds by component, in ``seconds`` of running."""

    name: str
    seconds: float
    cpu: Mapping[str, float]


@dataclass(slots=True)
class Peak:
    """The most processes of a run at once, by program, and the most memory that they held, in MiB."""

    processes: int = 0
    memory: float = 0.0
    by_name: Mapping[str, int] = field(default_factory=dict)

    def see(self, found: list[tuple[str, float]]) -> None:
        """Take one look into account: the name and the memory of each process."""
        self.memory = max(self.memory, sum(memory for _, memory in found))
        if len(found) > self.processes:
            self.processes = len(found)
            self.by_name = dict(Counter(name for name, _ in found).most_common())


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add ``--costs``."""
    parser.addoption("--costs", metavar="FILE", help="print what the run cost, and keep it in FILE as JSON")


def pytest_configure(config: pytest.Config) -> None:
    """Measure in each process that runs tests; sum up in the one that leads."""
    if not config.option.costs:
        return
    is_worker = hasattr(config, "workerinput")
    if not is_worker:
        config.pluginmanager.register(_Summary(Path(config.option.costs)))
    if is_worker or not getattr(config.option, "numprocesses", None):
        config.pluginmanager.register(_Meter())


def record_plane(name: str, began: float, pids: Mapping[str, int]) -> None:
    """Keep what a control plane of a run used so far; *began* is of the monotonic clock."""
    folder = planes_folder()
    if folder is None:
        return
    cpu = {component: _cpu_of(pid) for component, pid in pids.items()}
    cost = PlaneCost(name, time.monotonic() - began, cpu)
    handle, _ = tempfile.mkstemp(dir=folder, suffix=".cost")
    with os.fdopen(handle, "w", encoding="utf-8") as stream:
        json.dump(asdict(cost), stream)


def planes_folder() -> Path | None:
    """Return the folder of this run's control planes, None outside of a run."""
    run = os.environ.get(guardian.FOLDER)
    if run is None:
        return None
    folder = Path(run) / _PLANES
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _folder() -> Path:
    folder = planes_folder()
    assert folder is not None, "there is a run"
    return folder


class _Meter:
    """Measures the cases of this process."""

    def __init__(self) -> None:
        self._started = 0
        self._at: Cost = Cost()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: Any) -> None:
        if event in {"subprocess.Popen", "os.fork", "os.posix_spawn"}:
            self._started += 1

    def _now(self) -> Cost:
        times = os.times()
        cpu = times.user + times.system + times.children_user + times.children_system
        return Cost(time.perf_counter(), cpu, self._started)

    @pytest.hookimpl(tryfirst=True)
    def pytest_runtest_logstart(self) -> None:
        """Begin with a case."""
        self._at = self._now()

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(
        self, call: pytest.CallInfo[None]
    ) -> Generator[None, pytest.TestReport, pytest.TestReport]:
        """Write a case's cost into its last report, which reaches the leading process."""
        report = yield
        if call.when == "teardown":
            now, at = self._now(), self._at
            cost = (now.wall - at.wall, now.cpu - at.cpu, now.processes - at.processes)
            report.user_properties.append(("cost", cost))
        return report

    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        """Tell the leading process what this one used in all."""
        if hasattr(session.config, "workeroutput"):
            session.config.workeroutput["cpu"] = self._now().cpu


class _Summary:
    """Sums up and prints."""

    def __init__(self, file: Path) -> None:
        self._file = file
        self._began = time.monotonic()
        self._cases: dict[str, Cost] = {}
        self._workers: list[float] = []
        self._peak = Peak()
        self._over = threading.Event()
        threading.Thread(target=self._watch, daemon=True).start()

    def _watch(self) -> None:
        while not self._over.wait(_SAMPLE_SECONDS):
            self._peak.see(list(_processes_of_run(os.environ.get(guardian.MARK, ""), _folder())))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        """Take a case's cost from its last report."""
        for key, value in report.user_properties:
            if key == "cost" and report.when == "teardown":
                self._cases[report.nodeid] = Cost(*value)  # type: ignore[misc]  # a list of three, on its way through JSON

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        """Hear what a worker used in all."""
        self._workers.append(getattr(node, "workeroutput", {}).get("cpu", 0.0))

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        """Print the figures, and keep them."""
        self._over.set()
        planes = [PlaneCost(**json.loads(path.read_text("utf-8"))) for path in _folder().glob("*.cost")]
        wall = time.monotonic() - self._began
        terminalreporter.section("costs")
        for line in _lines(self._cases, planes, self._peak, self._workers, wall):
            terminalreporter.write_line(line)
        self._file.parent.mkdir(parents=True, exist_ok=True)
        kept = {
            "seconds": wall,
            "workers": self._workers,
            "cases": {name: asdict(cost) for name, cost in sorted(self._cases.items())},
            "planes": [asdict(plane) for plane in planes],
            "peak": asdict(self._peak),
        }
        self._file.write_text(json.dumps(kept, indent=1) + "\n", "utf-8")
        terminalreporter.write_line(f"kept in {self._file}")


def _lines(
    cases: Mapping[str, Cost], planes: list[PlaneCost], peak: Peak, workers: list[float], wall: float
) -> Iterator[str]:
    """Write the slowest cases, each folder's sum, the planes and the whole."""
    yield f"the {min(_SLOWEST, len(cases))} slowest cases:"
    yield f"{'wall s':>8} {'CPU s':>8} {'started':>8}  case"
    for name, cost in sorted(cases.items(), key=lambda item: -item[1].wall)[:_SLOWEST]:
        yield f"{cost.wall:8.1f} {cost.cpu:8.1f} {cost.processes:8d}  {name}"
    yield "folders:"
    yield f"{'cases':>8} {'wall s':>8} {'CPU s':>8} {'started':>8}  folder"
    for folder, (count, cost) in sorted(_by_folder(cases).items(), key=lambda item: -item[1][1].cpu):
        yield f"{count:8d} {cost.wall:8.1f} {cost.cpu:8.1f} {cost.processes:8d}  {folder}"
    yield "control planes:"
    for plane in sorted(planes, key=lambda each: -sum(each.cpu.values())):
        parts = ", ".join(f"{name} {cpu:.0f}" for name, cpu in sorted(plane.cpu.items(), key=lambda i: -i[1]))
        yield f"{sum(plane.cpu.values()):8.1f} CPU s in {plane.seconds:.0f} s  {plane.name}: {parts}"
    total = sum(cases.values(), Cost())
    of_planes = sum(sum(plane.cpu.values()) for plane in planes)
    yield (
        f"in all: {len(cases)} cases in {wall:.0f} s; CPU s: {total.cpu:.0f} of the cases, {sum(workers):.0f} of the "
        f"{len(workers)} workers with collecting, {of_planes:.0f} of {len(planes)} control planes "
        f"({sum(len(plane.cpu) for plane in planes)} processes); {total.processes} processes started by cases"
    )
    programs = ", ".join(f"{count} {name}" for name, count in peak.by_name.items())
    yield f"at the peak {peak.processes} processes ({programs}); at most {peak.memory / 1024:.1f} GiB"


def _by_folder(cases: Mapping[str, Cost]) -> dict[str, tuple[int, Cost]]:
    """Sum by the first two levels: ``tests/e2e/gangs/test_gangs.py::test`` counts for ``e2e/gangs``."""
    found: dict[str, tuple[int, Cost]] = defaultdict(lambda: (0, Cost()))
    for name, cost in cases.items():
        folders = name.partition("::")[0].split("/")[1:-1][:2]
        count, so_far = found["/".join(folders) or "tests"]
        found["/".join(folders) or "tests"] = (count + 1, so_far + cost)
    return found


def _processes_of_run(run: str, folder: Path) -> Iterable[tuple[str, float]]:
    """Yield the name and the memory, in MiB, of each process
    of *run*, and of its control planes in *folder*.
    """
    mark, home = f"{guardian.MARK}={run}".encode(), b"HOME="
    planes = str(folder).encode()
    for pid in guardian.pids():
        environment = guardian.read_proc(pid, "environ").split(b"\0")
        if mark in environment or any(each.startswith(home) and planes in each for each in environment):
            pages = guardian.read_proc(pid, "statm").split()
            name = guardian.read_proc(pid, "comm").decode(errors="replace").strip()
            if len(pages) > 1:
                yield name, int(pages[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _cpu_of(pid: int) -> float:
    """Return the CPU seconds of a process that runs; 0 where nobody tells."""
    # Field 2, the command in brackets, may hold spaces: utime and stime are the 12th and 13th after it
    # (proc(5)).
    fields = guardian.read_proc(pid, "stat").rpartition(b")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK") if len(fields) > 12 else 0.0
