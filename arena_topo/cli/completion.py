"""Completion of values in a shell: jobs, instances, nodes and the like, in bounded time and without a word.

A TAB must never hang a shell: a server that does not answer in a second and a half has nothing to offer. The
question is asked in a thread of its own, since neither the resolution of a name nor a credential plugin can
be interrupted.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import fields
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.shell_completion import CompletionItem

if TYPE_CHECKING:
    from arena_topo.kube import ConnectionFlags
    from arena_topo.kube.session import Session
    from arena_topo.model.kind import Kind

_LONGEST = 1.5
"""Seconds for all that a completion asks."""

_MOST = 500
"""Values that are offered; a shell does not show more than it can page."""

_Find = Callable[["ConnectionFlags", click.Context], Iterable[str]]


def values(param: click.Parameter, ctx: click.Context, incomplete: str) -> list[CompletionItem] | None:
    """Return what may be typed for *param*, None for a parameter whose values this module does not know."""
    names = [*param.opts, str(param.metavar or "").strip("[].").split("...")[0]]
    if any(name in _FILES for name in param.opts):
        return [CompletionItem(incomplete, type="file")]
    find = next((_FINDERS[name] for name in names if name in _FINDERS), None)
    if find is None:
        return None
    # Of several values, none is offered twice.
    begun = set(ctx.params.get(param.name or "") or ()) if param.nargs == -1 else set()
    found = _bounded(lambda: [name for name in find(_connection(ctx), ctx) if name not in begun])
    # A shell shows what it is offered as it is.
    shown = (name for name in sorted(found) if name.startswith(incomplete) and name.isprintable())
    return [CompletionItem(name) for name in islice(shown, _MOST)]


def _bounded(find: Callable[[], list[str]]) -> list[str]:
    """Return what *find* returns; nothing where it fails or takes too long."""
    found: list[str] = []

    def run() -> None:
        # Whatever goes wrong, a user who types a command wants to read nothing of it.
        with suppress(Exception):
            found.extend(find())

    # A credential plugin writes on the terminal by itself.
    with open(os.devnull, "w") as nothing:  # noqa: PTH123  # a device
        before = os.dup(sys.stderr.fileno())
        os.dup2(nothing.fileno(), sys.stderr.fileno())
        try:
            thread = threading.Thread(target=run, daemon=True)
            thread.start()
            thread.join(_LONGEST)
            return list(found)
        finally:
            os.dup2(before, sys.stderr.fileno())
            os.close(before)


def _connection(ctx: click.Context) -> "ConnectionFlags":
    """Return what the line says so far of the cluster."""
    from arena_topo.kube import ConnectionFlags

    given = {flag.name: ctx.params.get(flag.name) for flag in fields(ConnectionFlags)}
    return ConnectionFlags(
        **{**{key: value for key, value in given.items() if value}, "request_timeout": _LONGEST}
    )


def _session(connection: "ConnectionFlags") -> "Session":
    from arena_topo.kube.session import connect

    return connect(connection)


def _items(session: "Session", path: str) -> list[Any]:
    items: list[Any] = session.get(path, limit=_MOST).get("items") or []
    return items


def _names(items: Iterable[Any]) -> list[str]:
    return [item["metadata"]["name"] for item in items]


def _jobs(connection: "ConnectionFlags", ctx: click.Context) -> list[str]:
    from arena_topo.errors import ArenaTopoError
    from arena_topo.jobs.lookup import of_type
    from arena_topo.kube.resources import jobs_of
    from arena_topo.kube.served import ServedApis

    session = of_type(_session(connection), str(ctx.params.get("type") or ""))
    apis = ServedApis(session)

    def names(kind: "Kind") -> list[str]:
        # Of the Jobs of a cluster, a launcher is one, only those count that are training jobs.
        items = _items(session, jobs_of(kind).path(session.namespace))
        return _names(item for item in items if kind.counts(item))

    found: list[str] = []
    # Users who cannot list one kind are offered the others.
    with suppress(ArenaTopoError):
        if apis.means_mpijobs:
            found += apis.read_mpijobs(names)[1]
    with suppress(ArenaTopoError):
        for kind in apis.other_kinds():
            with suppress(ArenaTopoError):
                found += names(kind)
    return found


def _job_of(ctx: click.Context) -> str:
    """Return the name of the job that the line says."""
    from arena_topo.kinds.names import named_job

    # click leaves the arguments of a line that ends in a flag without its value where they are.
    return named_job(str(ctx.params.get("name") or ctx.args[0]))


def _instances(connection: "ConnectionFlags", ctx: click.Context) -> list[str]:
    from arena_topo.jobs.lookup import find_job, pods_of

    session = _session(connection)
    return _names(pods_of(session, find_job(session, _job_of(ctx))))


def _roles(connection: "ConnectionFlags", ctx: click.Context) -> list[str]:
    from arena_topo.jobs.logs.follow import roles_of
    from arena_topo.jobs.lookup import find_job

    return roles_of(find_job(_session(connection), _job_of(ctx)))


def _namespaces(connection: "ConnectionFlags", _: click.Context) -> list[str]:
    return _names(_items(_session(connection), "/api/v1/namespaces"))


def _nodes(connection: "ConnectionFlags", _: click.Context) -> list[str]:
    from arena_topo.kube.resources import NODES

    return _names(_items(_session(connection), NODES.path()))


def _nodes_and_domains(connection: "ConnectionFlags", _: click.Context) -> list[str]:
    from arena_topo.kube.resources import NODES
    from arena_topo.topology.fabric import is_level

    items = _items(_session(connection), NODES.path())
    labels = [item["metadata"].get("labels") or {} for item in items]
    return [*_names(items), *{each[key] for each in labels for key in each if is_level(key)}]


def _level_keys(connection: "ConnectionFlags", _: click.Context) -> set[str]:
    from arena_topo.kube.resources import NODES
    from arena_topo.topology.fabric import is_level

    items = _items(_session(connection), NODES.path())
    return {key for item in items for key in item["metadata"].get("labels") or () if is_level(key)}


def _levels(connection: "ConnectionFlags", ctx: click.Context) -> set[str]:
    from arena_topo.model.text.words import last_part

    return {last_part(key) for key in _level_keys(connection, ctx)} | {"node"}


def _queues(connection: "ConnectionFlags", _: click.Context) -> list[str]:
    from arena_topo.errors import NotFound

    session = _session(connection)
    found: list[str] = []
    # Kueue's queues are of a namespace, Volcano's and KAI's of the cluster.
    for path in (
        f"/apis/kueue.x-k8s.io/v1beta1/namespaces/{session.namespace}/localqueues",
        "/apis/scheduling.volcano.sh/v1beta1/queues",
        "/apis/scheduling.run.ai/v2/queues",
    ):
        try:
            found += _names(_items(session, path))
        except NotFound:
            continue
    return found


def _kubeconfig(plural: str) -> _Find:
    def find(connection: "ConnectionFlags", _: click.Context) -> list[str]:
        from arena_topo.kube.kubeconfig import names_of

        return names_of(plural, connection)

    return find


def _layouts(_: "ConnectionFlags", __: click.Context) -> list[str]:
    from arena_topo.sandbox.layouts import names

    return names()


_FINDERS: dict[str, _Find] = {
    "JOB": _jobs,
    "NODE": _nodes,
    "NODE|DOMAIN": _nodes_and_domains,
    "--instance": _instances,
    "--role": _roles,
    "--namespace": _namespaces,
    "--context": _kubeconfig("contexts"),
    "--cluster": _kubeconfig("clusters"),
    "--user": _kubeconfig("users"),
    "--node": _nodes,
    "--require-topology": _levels,
    "--prefer-topology": _levels,
    "--spread-evenly": _levels,
    "--topology-levels": _level_keys,
    "--queue": _queues,
    "--layout": _layouts,
}
"""How the values of a flag, or of an argument by its metavar, are found."""

_FILES = frozenset(
    {
        "--kubeconfig",
        "--from",
        "--calibration",
        "--template",
        "--file",
        "--save",
        "--config-file",
        "--certificate-authority",
        "--network",
        "--placement",
    }
)
"""Flags that name a file, for which every shell has its own completion."""
