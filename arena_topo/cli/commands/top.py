"""``arena-topo top``."""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import argument, command, option, output_format, switch, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import KubeFlags, check_refreshed, job_names, job_type, refresh_switch
from arena_topo.cli.snapshot_source import print_warnings
from arena_topo.cli.terminal import (
    columns,
    print_page,
    print_table,
    say,
    shown_again,
    status_paint,
    wants_colour,
)
from arena_topo.errors import NotFound, UsageError
from arena_topo.extras import require

if TYPE_CHECKING:
    from arena_topo.jobs.overview import ClusterWatch
    from arena_topo.kube.session import Session
    from arena_topo.model.reports import JobKey, Overview


# ``arena-topo top --watch``, also ``top watch``, ``top node --watch`` and ``top job --watch``.

_INSTEAD = "arena-topo list --watch prints jobs that change, arena-topo top node --refresh the nodes"
_TAIL = 200
"""Lines of a log that are shown from before."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopWatchFlags:
    """What ``top watch`` takes."""

    kube: KubeFlags


def _watch_switch() -> bool:
    """Return ``--watch`` of the commands whose tables the live view has too."""
    return switch("-w", "--watch", help="Follow the whole cluster full-screen; see top watch.")


@command("watch", TopWatchFlags)
def watch(flags: TopWatchFlags) -> int:
    """Follow the cluster on a screen: racks, jobs, the queue and the links in use.

    It begins with the jobs of all namespaces, or with those of one where others may not be listed. The keys
    are those of k9s, and ? shows them. It needs the extra live, which sandbox contains.

    \b
      arena-topo top --watch
      arena-topo top job --watch
    """
    return _watch_cluster(flags.kube)


def _watch_cluster(kube: KubeFlags, first: str = "cluster") -> int:
    """Show the live view, with the table *first* at hand, until its user leaves it; return the exit code."""
    _check_terminal()
    from arena_topo.jobs.overview import ClusterWatch
    from arena_topo.kube.session import connect

    session = connect(kube)
    source = LiveCluster(session, ClusterWatch(session))
    # What is wrong from the beginning is an error like any other, and a login may ask its questions on the
    # terminal.
    overview = source.look()
    from arena_topo.live.app import run_view

    return run_view(source, first=first, cluster=overview.snapshot.cluster)


def _check_shown_alone(output: str, names: Sequence[str], *, refresh: bool) -> None:
    """Raise ``UsageError`` for names and output forms: the live view shows the whole cluster on a screen."""
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
        raise UsageError(f"--watch needs a terminal, and {other[0]} is not one", hint=_INSTEAD)
    if os.environ.get("TERM", "dumb") == "dumb":
        raise UsageError("--watch needs a terminal that can be drawn on, and TERM names none", hint=_INSTEAD)


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
        from arena_topo.cli.commands.get import page_of

        return page_of(self.session.within(job[0]), job[1])

    def node(self, name: str) -> str:
        """Return what ``topology NODE`` prints."""
        from arena_topo.output.topology import node_view

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


# ``arena-topo top job``.


@dataclass(frozen=True, slots=True, kw_only=True)
class TopJobFlags:
    """What ``top job`` takes."""

    names: tuple[str, ...] = job_names(required=False)
    all_namespaces: bool = switch(
        "-A", "--all-namespaces", "--allNamespaces", help="Show the jobs of all namespaces."
    )
    instance: str = text("-i", "--instance", metavar="TEXT", help="Only this instance of the job.")
    type: str = job_type()
    output: str = output_format("wide", "json", "yaml")
    refresh: bool = refresh_switch()
    watch: bool = _watch_switch()
    kube: KubeFlags


@command("job", TopJobFlags)
def job(flags: TopJobFlags) -> int | None:
    """Show the GPUs of jobs, or of the instances of one job.

    Those that request most GPUs stand first.

    \b
      arena-topo top job -A
      arena-topo top job vgg16
    """
    if len(flags.names) > 1:
        raise UsageError("top job shows one job, or all of them", hint="arena-topo top job lists all jobs")
    if flags.instance and not flags.names:
        raise UsageError(
            "--instance is one of a job: name the job too", hint="arena-topo top job JOB -i INSTANCE"
        )
    if flags.watch:
        _check_shown_alone(flags.output, flags.names, refresh=flags.refresh)
        return _watch_cluster(flags.kube, "jobs")
    _show(flags, lambda session: _show_jobs(session, flags))
    return None


def _show_jobs(session: "Session", flags: TopJobFlags) -> None:
    from arena_topo.jobs.lists import list_jobs
    from arena_topo.jobs.lookup import fetch_job_view, of_type
    from arena_topo.output.job import SPARE, by_gpus, top_job_table, top_jobs_rows, top_jobs_total
    from arena_topo.output.text import WIDER, fitted

    session, table = of_type(session, flags.type), flags.output == "wide"
    jobs = (
        [fetch_job_view(session, flags.names[0])]
        if flags.names
        else list_jobs(session, all_namespaces=flags.all_namespaces, whole=not table)
    )
    if not table:
        from arena_topo.output.job import job_document
        from arena_topo.output.text import document

        click.echo(document([job_document(one) for one in by_gpus(jobs)], flags.output), nl=False)
    elif flags.names:
        print_page(top_job_table(jobs[0], instance=flags.instance, paint=status_paint(), width=columns()))
    else:
        rows = top_jobs_rows(jobs, namespaces=flags.all_namespaces)
        print_table(fitted(rows, columns(), spare=SPARE), more=WIDER)
        print_page(top_jobs_total(jobs))


def _show(flags: "TopJobFlags | TopNodeFlags", show: Callable[["Session"], None]) -> None:
    """Call *show* with a session: once, or again and again where the user refreshes."""
    if flags.refresh:
        check_refreshed(flags.output)
    from arena_topo.kube.session import connect

    session = connect(flags.kube)
    if flags.refresh:
        session = session.patient()
        shown_again(lambda: show(session))
    show(session)


_MODES = ("none", "exclusive", "topology", "share")

top = CommandGroup(
    name="top",
    help="""Show how GPUs are used.

    \b
      arena-topo top node
      arena-topo top job
      arena-topo top --watch
    """,
    aliases={"watch": ("--watch", "-w")},
)


@dataclass(frozen=True, slots=True, kw_only=True)
class TopNodeFlags:
    """What ``top node`` takes."""

    nodes: tuple[str, ...] = argument(nargs=-1, metavar="[NODE...]")
    details: bool = switch("-d", "--details", help="Show pods, links and GPUs of each node.")
    mode: str = text(
        "-m",
        "--gpu-mode",
        metavar="MODE",
        help="Only nodes of a mode: n(one), e(xclusive), t(opology) or s(hare).",
    )
    sort_by: str | None = option(
        "--sort-by",
        type=click.Choice(["name", "total", "allocated", "free"]),
        help="Sort the nodes by name, or those first that have most GPUs in all, allocated or free.",
    )
    output: str = output_format("wide", "json", "yaml")
    metric: bool = switch("--metric", help="Show how busy the GPUs are, as Prometheus has measured it.")
    refresh: bool = refresh_switch()
    watch: bool = _watch_switch()
    kube: KubeFlags


@command("node", TopNodeFlags)
def node(flags: TopNodeFlags) -> int | None:
    """Show the GPUs of the nodes.

    The modes are Arena's: none, exclusive, topology and share. What is reserved for jobs whose pods do not
    run yet follows the table, on stderr.

    \b
      arena-topo top node
      arena-topo top node -d gpu-node-1
      arena-topo top node --sort-by=free
    """
    if flags.watch:
        _check_shown_alone(flags.output, flags.nodes, refresh=flags.refresh)
        return _watch_cluster(flags.kube)
    if flags.sort_by and flags.output != "wide":
        raise UsageError("--sort-by sorts a table", hint=f"leave out -o {flags.output}, or --sort-by")
    mode = _mode(flags.mode)
    _show(flags, lambda session: _show_nodes(session, flags, mode))
    return None


top.add_command(node)
top.add_command(job)
top.add_command(watch)


def _mode(text: str) -> str:
    """Return the whole word of Arena's mode, of which users may type only the first letter."""
    modes = {name: mode for mode in _MODES for name in (mode, mode[0])}
    if text and text not in modes:
        raise UsageError(
            f"--gpu-mode: {text!r} is not a mode", hint="use n(none), e(exclusive), t(topology) or s(share)"
        )
    return modes.get(text, "")


def _show_nodes(session: "Session", flags: TopNodeFlags, mode: str) -> None:
    from arena_topo.cluster.published import visible_snapshot
    from arena_topo.jobs.other_plans import reservations
    from arena_topo.output.plan import reservation_lines
    from arena_topo.output.top_node import (
        chosen_nodes,
        fitted_nodes,
        node_details,
        top_nodes,
        top_nodes_document,
    )

    snapshot = visible_snapshot(session)
    print_warnings(snapshot)
    chosen = chosen_nodes(snapshot, flags.nodes, mode)
    if flags.output != "wide":
        from arena_topo.output.text import document

        click.echo(document(top_nodes_document(chosen), flags.output), nl=False)
        return
    if flags.details:
        print_page(node_details(chosen, by=flags.sort_by or ""))
    else:
        width = columns()
        table = fitted_nodes(chosen, width, by=flags.sort_by or "")
        shown = top_nodes(chosen, chosen=bool(flags.nodes), paint=status_paint(), table=table, width=width)
        print_page(shown)
        if note := table.note():
            say(note)
    # Scripts read the tables, which are Arena's: what Arena does not know goes to stderr.
    for line in reservation_lines(
        reservations(session, snapshot) or (), {gpu_node.name for gpu_node in chosen}
    ):
        say(line)
    if flags.metric:
        from arena_topo.cli.commands.get import print_node_gpus

        print_node_gpus(session, [gpu_node.name for gpu_node in chosen])
