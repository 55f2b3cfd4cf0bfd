"""``arena-topo cluster``."""

from collections.abc import Sequence
from typing import Any

import click

from arena_topo.cli.lazy import Entry, LazyGroup
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.terminal import say, warn
from arena_topo.errors import ConnectionFailed, DocumentError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.kube.session import Session

cluster = LazyGroup(
    name="cluster",
    entries={
        "setup": Entry(
            "arena_topo.cli.commands.cluster.cluster:setup", "Install what makes plans hold.", "What to do"
        ),
        "remove": Entry(
            "arena_topo.cli.commands.cluster.cluster:remove", "Take away what setup installed.", "What to do"
        ),
    },
    help="Set a cluster up for plans that hold.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@click.command("setup")
@click.option("--apply", "wanted", is_flag=True, help="Apply it instead of printing it.")
@click.option(
    "--users",
    multiple=True,
    metavar="WHO",
    help="user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME who may submit; may be repeated.",
)
@click.option(
    "--agent-image", default="", metavar="IMAGE", help="Image of the agent; none is run without it."
)
@click.option(
    "--agent-namespace",
    default="kube-system",
    show_default=True,
    metavar="NAME",
    help="Where the agent runs.",
)
@click.option("-o", "--output", type=click.Choice(["yaml", "json", "name"]), default="yaml", help="Form.")
@kube_options
def setup(
    wanted: bool,
    users: tuple[str, ...],
    agent_image: str,
    agent_namespace: str,
    output: str,
    connection: ConnectionFlags,
) -> None:
    """Install what makes plans hold.

    Prints the admission policy that gives each worker its place, the roles of users, and with --agent-image the
    agent that publishes the topology; --apply applies them. It takes an admin, once; applying it again brings an
    old one up to date.

    \b
      arena-topo cluster setup
      arena-topo cluster setup --apply --users group:research -n research
    """
    from arena_topo.agent.manifests import agent_objects
    from arena_topo.cluster.setup.setup import Served, apply, served, setup_objects

    session = _session(connection, needed=wanted)
    by = served(session) if session else Served()
    namespace = session.namespace if session else connection.namespace or "default"
    objects, notes = setup_objects(by, users, namespace)
    if agent_image:
        objects += agent_objects(agent_image, agent_namespace)
    for note in notes:
        warn(note)
    if not wanted or session is None:
        _print(objects, output)
        return
    say(f"applying to {session.server or 'the cluster'}: {_names(objects)}")
    for item in apply(session, objects):
        click.echo(f"{_names([item])} applied")


@click.command("remove")
@click.option("--apply", "wanted", is_flag=True, help="Delete it instead of naming it.")
@kube_options
def remove(wanted: bool, connection: ConnectionFlags) -> None:
    """Take away what setup installed.

    Names the admission policy, the roles and their bindings in every namespace, and the agent, as far as they are
    there; --apply deletes them. Jobs that run are not touched; their workers are not pinned again when they are
    made again.

    \b
      arena-topo cluster remove
      arena-topo cluster remove --apply
    """
    from arena_topo.cluster.setup.setup import installed
    from arena_topo.cluster.setup.setup import remove as delete
    from arena_topo.kube.session import connect

    session = connect(connection)
    objects = installed(session)
    if not objects:
        say("nothing of arena-topo's setup is there")
        return
    if not wanted:
        for item in objects:
            click.echo(_names([item]))
        say("nothing was deleted: --apply does it")
        return
    say(f"deleting from {session.server or 'the cluster'}: {_names(objects)}")
    for item in delete(session, objects):
        click.echo(f"{_names([item])} deleted")


def _session(connection: ConnectionFlags, *, needed: bool) -> Session | None:
    """Return a session with a cluster that answers, or None where printing can do without one."""
    from arena_topo.kube.session import connect

    try:
        session = connect(connection)
        session.get("/version")
    except (ConnectionFailed, DocumentError) as error:
        if needed or connection.kubeconfig or connection.context:
            raise
        say(f"no cluster was asked: {error.message}; this is for one that serves MutatingAdmissionPolicy v1")
        return None
    return session


def _print(objects: Sequence[dict[str, Any]], output: str) -> None:
    from arena_topo.output.documents import objects as documents

    click.echo(documents(objects, output), nl=False)


def _names(objects: Sequence[dict[str, Any]]) -> str:
    from arena_topo.output.documents import object_name

    return ", ".join(object_name(item) for item in objects)
