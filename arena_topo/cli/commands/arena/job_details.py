"""What ``get -e`` and ``get -g`` print below a job's table, and ``top node --metric`` below the nodes'."""

import os
from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from arena_topo.cli.terminal import columns, print_page, say, warn
from arena_topo.errors import ApiError, DocumentError
from arena_topo.model.job.job_view import JobStatus, JobView

if TYPE_CHECKING:
    from arena_topo.cluster.gpu_metrics import Prometheus, Uses
    from arena_topo.kube.session import Session


def print_gpus(session: "Session", job: JobView) -> None:
    """Print how busy the GPUs of *job* are; like Arena nothing for a job without any, or one that has succeeded."""
    from arena_topo.cluster.gpu_metrics import uses_of_pods
    from arena_topo.output.job_details import gpus_text

    if not job.requested_gpus or job.status is JobStatus.SUCCEEDED:
        return
    pods = [instance.name for instance in job.instances if instance.gpus]
    print_page(gpus_text(job, _measured(session, uses_of_pods, pods), width=columns()))


def print_node_gpus(session: "Session", nodes: Sequence[str]) -> None:
    """Print how busy the GPUs of *nodes* are."""
    from arena_topo.cluster.gpu_metrics import uses_of_nodes
    from arena_topo.output.job_details import node_gpus_text

    print_page(node_gpus_text(nodes, _measured(session, uses_of_nodes, nodes), width=columns()))


def _measured(
    session: "Session", ask: "Callable[[Prometheus, Sequence[str]], Uses]", names: Sequence[str]
) -> Mapping[str, Mapping[str, tuple[float, float, float]]]:
    """Return what Prometheus says of *names*, nothing where it says nothing: the rest is shown all the same."""
    server = prometheus(session)
    if server is None:
        return {}
    try:
        found = ask(server, names)
    except DocumentError as error:
        warn(error.message)
        return {}
    return {
        name: {index: (use.duty, use.used, use.total) for index, use in by_index.items()}
        for name, by_index in found.items()
    }


def print_events(session: "Session", job: JobView) -> None:
    """Print what happened to *job* and its pods."""
    from arena_topo.jobs.status.events import job_events
    from arena_topo.output.job_details import events_text

    try:
        events = job_events(session, job)
    except ApiError as error:
        # The sentence is Arena's.
        print_page(f"\nEvents:\n  Get job events failed, due to: {error.message}\n")
        return
    rows = [
        (event.source, event.kind, event.last_seen, f"[{event.reason}] {event.message}") for event in events
    ]
    print_page(events_text(rows, now=datetime.now(UTC), width=columns()))


def prometheus(session: "Session") -> "Prometheus | None":
    """Return the Prometheus that Arena would ask: the one that is named, else one in the cluster."""
    from arena_topo.cli.defaults.arena_config import read_arena_config
    from arena_topo.cluster.gpu_metrics import find_prometheus, named_prometheus

    config = {key: setting.values[0] for key, setting in read_arena_config().items()}
    address = os.environ.get("PROMETHEUS_ADDRESS") or config.get("prometheus_address", "")
    token = os.environ.get("PROMETHEUS_TOKEN") or config.get("prometheus_token", "")
    if address:
        return named_prometheus(address, token)
    found = find_prometheus(session)
    if found is None:
        say("no GPU is measured: no Prometheus is found, and PROMETHEUS_ADDRESS names none")
    return found
