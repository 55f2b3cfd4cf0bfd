"""Events and GPUs below a job's table, as Arena lays them out."""

from collections.abc import Callable
from datetime import UTC, datetime

import pytest

from arena_topo.model.job_view import Instance, PlannedWorker, PlanView
from arena_topo.output.job import events_text, gpus_text, node_gpus_text
from tests.objects import viewed
from tests.output.golden import golden

NOW = datetime(2026, 1, 1, 1, tzinfo=UTC)
CHIEF = Instance("job-launcher", "Running", True, 0, 0.0, NOW, node_ip="10.0.0.1")
WORKER = Instance("job-worker-0", "Running", False, 2, 0.0, NOW, node_ip="10.0.0.2")
JOB = viewed(instances=(CHIEF, WORKER), requested_gpus=2, allocated_gpus=2)
PLANNED = viewed(
    instances=(CHIEF, WORKER), plan=PlanView("", workers=(PlannedWorker("job-worker-0", "n", (4, 7)),))
)
MIB, GIB = 1024.0**2, 1024.0**3
USES = {"job-worker-0": {"0": (99.5, 100 * MIB, 200 * MIB), "3": (0.0, 0.0, 200 * MIB)}}
NODES = {"b": {"0": (12.0, GIB, 16 * GIB)}}
EVENTS = [
    ("pod/job-worker-0", "Warning", datetime(2026, 1, 1, tzinfo=UTC), "[FailedScheduling] 0/3 nodes \x1b[2J"),
    ("mpijob/job", "Normal", datetime(2026, 1, 1, 0, 59, tzinfo=UTC), "[Created] made"),
]
VIEWS: dict[str, Callable[[], str]] = {
    "events": lambda: events_text(EVENTS, now=NOW),
    "events-50": lambda: events_text(EVENTS, now=NOW, width=50),
    "events-none": lambda: events_text([], now=NOW),
    "gpus": lambda: gpus_text(JOB, USES),
    "gpus-70": lambda: gpus_text(JOB, {}, width=70),
    "gpus-planned": lambda: gpus_text(PLANNED, {}),
    "node-gpus": lambda: node_gpus_text(["a", "b"], NODES),
    "node-gpus-45": lambda: node_gpus_text(["b"], NODES, width=45),
}


@pytest.mark.parametrize("name", VIEWS)
def test_details_are_laid_out_as_arenas(name: str) -> None:
    """What was not measured is planned or N/A, nobody's text moves the cursor, and narrow terminals lose columns."""
    text = VIEWS[name]()

    assert golden(f"job/{name}.txt", text) == text


def test_nothing_is_said_of_nodes_that_nobody_measured() -> None:
    """Arena has no such table."""
    assert "" == node_gpus_text(["a"], {})
