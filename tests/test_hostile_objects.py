"""Whatever others write into any object that is read: everything else is read, planned with and shown, in
bounded time.

``HOSTILE_EXAMPLES`` sets how many examples each property tries; the full profile tries two thousand in all.
"""

import os
import resource
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import UTC, datetime
from types import FrameType

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from arena_topo.cluster.capabilities import detect_with_access
from arena_topo.cluster.doctor import diagnose, verdict
from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import ArenaTopoError
from arena_topo.jobs.lookup import fetch_job_view
from arena_topo.jobs.options import PlanOptions
from arena_topo.jobs.other_plans import reservations, unreserved_snapshot
from arena_topo.jobs.plan import plan_demand
from arena_topo.model.cluster import Snapshot
from arena_topo.model.keys import NVIDIA_GPU
from arena_topo.model.plan import Demand, Placement
from arena_topo.output.job import job_document, job_table
from arena_topo.output.plan import render_plan, reservation_lines, reservations_finding
from arena_topo.output.render import FORMS, render_topology
from arena_topo.output.reports import findings_document, findings_text
from arena_topo.output.text import document
from arena_topo.output.top_node import node_details, top_nodes, top_nodes_document
from tests.fakes import session
from tests.hostile_objects import OBJECTS, Server, Spoiled, spoiled

# Thousands of examples take minutes, and on a loaded machine many.
pytestmark = [pytest.mark.first, pytest.mark.timeout(1800)]

CPU_SECONDS = 5
MOST_GROWTH = 300 * 2**10
"""KiB by which the process may grow at its peak."""
TOPOLOGY = (
    "nodes", "pods", "configmaps", "devices", "resourceslices", "resourceclaims", "noderesourcetopologies", "topologies",
    "clusternetworktopologies", "hypernodes",
)  # fmt: skip
JOBS = ("mpijobs", "mpijobs", "jobpods", "resourcequotas")

_PROFILE = settings.default or settings()
# Twenty examples of the quick profile are a hundred here, and a hundred of the full one two thousand.
_EXAMPLES = int(os.environ.get("HOSTILE_EXAMPLES", "0")) or (
    20 * _PROFILE.max_examples if _PROFILE.max_examples >= 100 else 100
)


def examples(share: float) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Return how many examples a property tries: a *share* of all of them."""
    return settings(
        parent=_PROFILE,
        max_examples=max(int(_EXAMPLES * share), 1),
        suppress_health_check=[*HealthCheck],
        # A failure names what was spoiled: to shrink it would take as long as a thousand further examples.
        phases=[Phase.explicit, Phase.reuse, Phase.generate],
    )


@pytest.fixture(scope="module", autouse=True)
def bounded_memory() -> Iterator[None]:
    """Check that the examples of this module together never needed more memory than a command may."""
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    yield
    assert resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before < MOST_GROWTH


@contextmanager
def bounded_time() -> Iterator[None]:
    """Fail after five seconds of this process' own time, however loaded the machine is."""

    def fail(_: int, frame: FrameType | None) -> None:
        raise TimeoutError(f"still busy after {CPU_SECONDS} s of CPU time, in {frame}")

    previous = signal.signal(signal.SIGVTALRM, fail)
    signal.setitimer(signal.ITIMER_VIRTUAL, CPU_SECONDS)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, previous)


def attempt(cluster: Spoiled, run: Callable[[], None]) -> None:
    """Run something; only for objects that no API server serves may it end in a clear error."""
    with bounded_time():
        try:
            run()
        except ArenaTopoError as error:
            if not cluster.broken or len(error.message) >= 1000:
                raise


def seen(text: str) -> str:
    """Return *text*, every character of which can be seen."""
    assert text.replace("\n", "").isprintable()
    return text


def show(snapshot: Snapshot, form: str) -> None:
    """Plan on *snapshot*, and show plan and cluster in every form, one of them per example."""
    demand = Demand(workers=2, gpus=2, gpu_resource=NVIDIA_GPU)
    verdict = plan_demand(demand, snapshot, PlanOptions())
    seen(render_plan("job", verdict, snapshot, "text"))
    if isinstance(verdict, Placement) or form not in {"svg", "html"}:
        seen(
            render_plan("job", verdict, snapshot, form if form in {"json", "yaml", "svg", "html"} else "json")
        )
    seen(render_topology(snapshot, (), form))
    if snapshot.nodes:
        seen(render_topology(snapshot, (snapshot.nodes[0].name,), form))
    seen(top_nodes(snapshot.nodes))
    seen(node_details(snapshot.nodes))
    seen(document(top_nodes_document(snapshot.nodes), "json"))
    assert all(len(warning) < 1000 for warning in snapshot.warnings)


@examples(0.6)
@given(cluster=spoiled(*TOPOLOGY), form=st.sampled_from(FORMS))
def test_a_cluster_is_planned_on_and_shown(cluster: Spoiled, form: str) -> None:
    """With one to three spoiled values: wrong types, numbers
    beyond all bounds, depth, sizes, half characters.
    """
    opened, _ = session(Server(cluster))
    attempt(cluster, lambda: show(take_snapshot(opened), form))


@examples(0.3)
@given(cluster=spoiled(*JOBS))
def test_the_jobs_of_others_are_read_and_shown(cluster: Spoiled) -> None:
    """Their plans, specs, pods and quotas, by plan, get, top and doctor."""

    def run() -> None:
        snapshot = unreserved_snapshot(opened)
        show(snapshot, "text")
        plans = reservations(opened, snapshot)
        seen("".join(reservation_lines(plans or (), {"gpu-1"})))
        seen(findings_text([reservations_finding(plans)], ()))

    def show_the_job() -> None:
        view = fetch_job_view(opened, "train")
        seen(job_table(view))
        seen(job_table(view, wide=True))
        seen(document(job_document(view), "json"))

    opened, _ = session(Server(cluster))
    attempt(cluster, run)
    # Anyone who asks for a job that is no job at all gets a clear error, and nobody else does.
    attempt(Spoiled({}, frozenset({"mpijobs"})), show_the_job)


@examples(0.1)
@given(cluster=spoiled("deployments", "nodes", "resourceslices"))
def test_a_cluster_is_examined(cluster: Spoiled) -> None:
    """What doctor reports of it."""

    def run() -> None:
        findings = diagnose(detect_with_access(opened), namespace="default")
        seen(findings_text(findings, verdict(findings), verbose=True))
        seen(document(findings_document(findings), "yaml"))

    opened, _ = session(Server(cluster))
    attempt(cluster, run)


def test_the_objects_are_good_to_begin_with() -> None:
    """Unspoiled, the cluster is planned on, its job reserves
    what it asks for, and nothing is skipped but by design.
    """
    opened, _ = session(Server(Spoiled(OBJECTS, frozenset())))
    snapshot = unreserved_snapshot(opened)
    assert isinstance(plan_demand(Demand(2, 2, gpu_resource=NVIDIA_GPU), snapshot, PlanOptions()), Placement)
    assert [("train", 1)] == [(plan.name, len(plan.reserved)) for plan in reservations(opened) or ()]
    assert "train" == fetch_job_view(opened, "train").name
    assert datetime.now(UTC) > fetch_job_view(opened, "train").created
    assert not [warning for warning in snapshot.warnings if warning.endswith("skipped")]
