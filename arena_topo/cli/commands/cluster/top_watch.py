"""``arena-topo top --watch``, also ``top watch``, ``top node --watch`` and ``top job --watch``."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from arena_topo.cli.command import command, switch
from arena_topo.cli.options.kube import KubeFlags
from arena_topo.cli.terminal import wants_colour
from arena_topo.errors import NotFound, UsageError
from arena_topo.extras import require

if TYPE_CHECKING:
    from arena_topo.jobs.overview import ClusterWatch
    from arena_topo.kube.session import Session
    from arena_topo.model.plan.overview import JobKey, Overview

_INSTEAD = "arena-topo list --watch prints jobs that change, arena-topo top node --refresh the nodes"
_TAIL = 200
"""Lines of a log that are shown from before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopWatchFlags:
    """What ``top watch`` takes."""

    kube: KubeFlags


def watch_switch() -> bool:
    """Return ``--watch`` of the commands whose tables the live view has too."""
    return switch("-w", "--watch", help="Follow the whole cluster on a screen of its own; see top watch.")


@command("watch", TopWatchFlags)
def watch(flags: TopWatchFlags) -> int:
    """Follow the cluster on a screen: racks, jobs, the queue and the links in use.

    It begins with the jobs of all namespaces, or with those of one where others may not be listed. The keys are those of
    k9s, and ? shows them. It needs the extra arena-topo[live].

    \b
      arena-topo top --watch
      arena-topo top job --watch
    """
    return watch_cluster(flags.kube)


def watch_cluster(kube: KubeFlags, first: str = "cluster") -> int:
    """Show the live view, with the table *first* at hand, until its user leaves it; return the exit code."""
    _check_terminal()
    from arena_topo.jobs.overview import ClusterWatch
    from arena_topo.kube.session import connect

    session = connect(kube)
    source = LiveCluster(session, ClusterWatch(session))
    # What is wrong from the beginning is an error like any other, and a login may ask its questions on the terminal.
    overview = source.look()
    from arena_topo.output.live.app import run_view

    return run_view(source, first=first, cluster=overview.snapshot.cluster)


def check_shown_alone(output: str, names: Sequence[str], *, refresh: bool) -> None:
    """Raise ``UsageError`` for what the live view does not go with: it shows the whole cluster, and no document."""
    if refresh:
        raise UsageError("--watch and --refresh exclude each other", hint="--watch follows every change")
    if output != "wide":
        raise UsageError("--watch draws a screen", hint=f"leave out -o {output}, or --watch")
    if names:
        raise UsageError(
            "--watch follows the whole cluster",
            hint=f"leave out {names[0]}, and look for it with /{names[0]}",
        )


def _check_terminal() -> None:
    require("the live view", "textual", extra="live", instead=_INSTEAD)
    streams = {"stdin": sys.stdin, "stdout": sys.stdout, "stderr": sys.stderr}
    if other := [name for name, stream in streams.items() if not stream.isatty()]:
        raise UsageError(f"--watch draws on a terminal, and {other[0]} is none", hint=_INSTEAD)
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("--watch draws on a terminal, and TERM says that this one cannot", hint=_INSTEAD)


@dataclass(slots=True)
class LiveCluster:
    """What the live view shows, from one API server."""

    session: "Session"
    cluster: "ClusterWatch"
    _overview: "Overview | None" = None

    def look(self) -> "Overview":
        """Return everything as it is now."""
        self._overview = self.cluster.look()
        return self._overview

    def wait(self) -> None:
        """Return when it is worth looking again."""
        self.cluster.wait()

    def describe(self, job: "JobKey") -> str:
        """Return the page of ``describe``."""
        from arena_topo.cli.commands.job.describe import page_of

        return page_of(self.session.within(job[0]), job[1])

    def node(self, name: str) -> str:
        """Return what ``topology NODE`` prints."""
        from arena_topo.output.topology.node import node_view

        nodes = self._overview.snapshot.nodes if self._overview else ()
        node = next((node for node in nodes if node.name == name), None)
        if node is None:
            raise NotFound(f"node {name} is gone", status=404)
        return node_view(node, colour=wants_colour(sys.__stdout__ or sys.stdout))

    def log(self, job: "JobKey", notify: Callable[[str], None]) -> Iterator[bytes]:
        """Yield what ``logs -f`` prints."""
        from arena_topo.jobs.logs.follow import LogOptions, follow
        from arena_topo.jobs.logs.wait import LogTarget, Waiter

        session = self.session.within(job[0])
        for line in follow(session, job[1], LogTarget(), LogOptions(tail=_TAIL), Waiter(notify)):
            yield line.text
