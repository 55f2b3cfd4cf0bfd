"""``arena-topo controller``."""

import signal
import threading
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import command, many, option, switch, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import KubeFlags, Whole, duration, namespace_name
from arena_topo.cli.terminal import say, warn
from arena_topo.extras import require

if TYPE_CHECKING:
    from arena_topo.controller.report import Metrics
    from arena_topo.controller.run import LookAtRanks

_WRITERS, _WRITE_TIMEOUT = 4, 8.0
"""Threads that write, and seconds for one write: less than the Lease lasts."""

_LOOKERS = 2
"""Jobs whose ranks are looked at at the same time: each takes a minute, and its answers take memory."""

controller = CommandGroup(name="controller", help="Place waiting jobs from within the cluster.")


def _reserve_after() -> float:
    """Declare ``--reserve-after``."""
    value: float = option(
        "--reserve-after",
        type=duration(bare_seconds=True),
        default=300.0,
        metavar="DURATION",
        help="Time after which a place is kept for the oldest job that does not fit. 5m by default.",
    )
    return value


def _publish() -> str:
    """Declare ``--publish``."""
    value: str = option(
        "--publish",
        type=click.Choice(("none", "usage", "jobs")),
        default="usage",
        show_default=True,
        help="What everybody may read of the use of GPUs: nothing, how many are taken, or also by which jobs.",
    )
    return value


def _metrics_port() -> int:
    """Declare ``--metrics-port``."""
    value: int = option(
        "--metrics-port",
        type=Whole(0, 65535),
        default=0,
        metavar="PORT",
        help="Port at which Prometheus reads the controller's metrics. None by default; it needs arena-topo[controller].",
    )
    return value


def _hangs_in() -> tuple[str, ...]:
    """Declare ``--hangs-in``."""
    value: tuple[str, ...] = many(
        "--hangs-in",
        type=namespace_name(),
        metavar="NAMESPACE",
        help="Namespace in which the controller may look at the ranks of jobs that were submitted with --on-hang: by exec in "
        "their containers, and in their logs.",
    )
    return value


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What ``controller run`` takes."""

    reserve_after: float = _reserve_after()
    publish: str = _publish()
    metrics_port: int = _metrics_port()
    hangs_in: tuple[str, ...] = _hangs_in()
    kube: KubeFlags


@command("run", RunFlags)
def run(flags: RunFlags) -> None:
    """Place the jobs that wait, oldest first.

    Several replicas may run: the one that holds the Lease decides, and the others take over when it ends. A
    job that does not fit waits, and smaller ones start before it where they fit; after --reserve-after a
    place is kept for it, and a job starts before it only where it does not delay it. What is free is
    published, so that users who cannot list nodes and the pods of others can plan too.

    \b
      arena-topo controller run --reserve-after 10m
    """
    from datetime import timedelta

    from arena_topo.cluster.published import Detail
    from arena_topo.controller.reconciler import Rules
    from arena_topo.controller.run import ControllerSessions, run_controller
    from arena_topo.kube.session import connect

    # Nothing else is done if the port cannot be had.
    served, ended = _metrics(flags.metrics_port), threading.Event()
    # The kubelet ends a container by SIGTERM, which the kernel withholds from a process 1 without a handler
    # for it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    quick = replace(
        flags.kube, request_timeout=min(flags.kube.request_timeout or _WRITE_TIMEOUT, _WRITE_TIMEOUT)
    )
    sessions = ControllerSessions(
        watch=connect(flags.kube),
        discovery=connect(quick),
        lease=connect(quick),
        writers=[connect(quick) for _ in range(_WRITERS)],
        publisher=connect(quick),
        lookers=[connect(quick) for _ in range(_LOOKERS)],
    )
    publish = Detail(flags.publish)
    # Where everybody may read which jobs use the GPUs, a job may say which it waits for.
    rules = Rules(timedelta(seconds=flags.reserve_after), names_others=publish is Detail.JOBS)
    with served as metrics:
        run_controller(
            sessions, rules, ended, say, publish=publish, metrics=metrics, hangs=_look_at_ranks(flags)
        )


def _look_at_ranks(flags: RunFlags) -> "LookAtRanks | None":
    """Return where ranks may be looked at, None for nowhere."""
    if not flags.hangs_in:
        return None
    from arena_topo.controller.run import LookAtRanks
    from arena_topo.jobs.why import runner

    return LookAtRanks(frozenset(flags.hangs_in), lambda session, most: runner(flags.kube, session, most))


def _metrics(port: int) -> AbstractContextManager["Metrics | None"]:
    """Return what serves metrics at *port* for as long as it is entered, nothing where it is 0."""
    if not port:
        return nullcontext()
    require("--metrics-port", "prometheus_client", extra="controller")
    from arena_topo.controller.report import serve_metrics

    return serve_metrics(port)


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFlags:
    """What ``controller manifest`` takes."""

    image: str = text("--image", required=True, help="Image that has arena-topo installed.")
    reserve_after: float = _reserve_after()
    publish: str = _publish()
    metrics_port: int = _metrics_port()
    hangs_in: tuple[str, ...] = _hangs_in()
    no_policy: bool = switch(
        "--no-policy",
        help="Leave out the admission policy that limits what the controller may change, for Kubernetes before 1.30.",
    )


@command("manifest", ManifestFlags)
def manifest(flags: ManifestFlags) -> None:
    """Print the objects that run the controller in the namespace arena-topo-system.

    They are the namespace, a ServiceAccount, its roles and their bindings, an admission policy that keeps
    the controller to what it writes (Kubernetes 1.30 or later), a PodDisruptionBudget, and a Deployment of
    two replicas, for kubectl apply.

    \b
      arena-topo controller manifest --image registry.example.com/arena-topo:1.0 | kubectl apply -f -
    """
    from arena_topo.cluster.published import Detail
    from arena_topo.controller.manifests import controller_objects
    from arena_topo.output.text import objects

    manifests = controller_objects(
        flags.image,
        reserve_after=flags.reserve_after,
        publish=Detail(flags.publish),
        metrics_port=flags.metrics_port,
        policy=not flags.no_policy,
        hangs_in=flags.hangs_in,
    )
    if flags.no_policy:
        warn("without the admission policy the controller's token can change every pod and every job")
    click.echo(objects(manifests, "yaml"), nl=False)


controller.add_command(run)
controller.add_command(manifest)
