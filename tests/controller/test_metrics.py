"""What Prometheus reads of a controller."""

import subprocess
import sys
import urllib.error
import urllib.request

import pytest

from arena_topo.controller.objects import (
    Action,
    DeletePod,
    Notice,
    PatchStatus,
    ReleaseWorker,
    WritePlan,
)
from arena_topo.controller.report import serve_metrics
from arena_topo.errors import UsageError
from arena_topo.model.plan_record import PlanRecord, Stage
from tests.controlplane.components.ports import free_ports
from tests.objects import mpijob, pod


def read(port: int) -> dict[str, float]:
    """Return the figures that are served at *port*, by name and labels."""
    with urllib.request.urlopen(f"http://127.0.0.1:{port}/metrics", timeout=60) as answer:
        lines = answer.read().decode().splitlines()
    return {name: float(value) for name, value in (line.split() for line in lines if line[0] != "#")}


def test_a_controller_without_metrics_needs_no_prometheus_client() -> None:
    """It comes with an extra, which only those have to install who serve metrics."""
    program = "import sys; sys.modules['prometheus_client'] = None; import arena_topo.controller.run"
    done = subprocess.run([sys.executable, "-c", program], check=False, capture_output=True, text=True)
    assert (0, "") == (done.returncode, done.stderr)


def test_decisions_are_counted_with_what_was_decided() -> None:
    """An event is none: it says what another action does."""
    job = mpijob("job")
    done: list[Action] = [
        WritePlan(job, PlanRecord(stage=Stage.WAITING)),
        WritePlan(job, PlanRecord(stage=Stage.CONFIRMED)),
        ReleaseWorker(pod("job-worker-0"), "a"),
        DeletePod(pod("job-worker-1")),
        PatchStatus("/apis/x", "uid", {}),
        Notice(job, "Placed", "4 workers on 3 nodes"),
    ]
    port = next(free_ports())
    with serve_metrics(port) as metrics:
        metrics.note_leading(leading=True)
        metrics.note_decision(0.004, done, own=2, kueue=3)
        metrics.note_decision(9.0, (), own=1, kueue=0)
        metrics.note_failures(2)
        metrics.note_faults(3)
        found = read(port)

    words = ("plan_waiting", "plan_confirmed", "worker_released", "worker_deleted", "check_answered")
    assert dict.fromkeys(words, 1.0) == {
        word: found[f'arena_topo_actions_total{{action="{word}"}}'] for word in words
    }
    assert 5 == sum(value for name, value in found.items() if name.startswith("arena_topo_actions_total"))
    assert (1.0, 0.0) == tuple(
        found[f'arena_topo_waiting_jobs{{queue="{name}"}}'] for name in ("own", "kueue")
    )
    assert (1.0, 2.0) == tuple(
        found[f'arena_topo_decision_seconds_bucket{{le="{bound}"}}'] for bound in ("0.005", "+Inf")
    )
    assert (1.0, 2.0) == (found["arena_topo_leading"], found["arena_topo_failed_actions_total"])
    assert 3.0 == found["arena_topo_faults_total"]


def test_they_end_with_the_controller() -> None:
    """The port is free then, and while it is not, that is said."""
    port = next(free_ports())
    with serve_metrics(port):
        with pytest.raises(UsageError, match=f"cannot listen at port {port}"), serve_metrics(port):
            pass
        assert 0.0 == read(port)["arena_topo_leading"]
    with pytest.raises(urllib.error.URLError):
        read(port)
    with serve_metrics(port):
        assert 0.0 == read(port)["arena_topo_leading"]
