"""``arena-topo cluster``."""

from collections.abc import Sequence
from dataclasses import dataclass

import click

from arena_topo.cli.declare import command, many, output_format, switch, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import KubeFlags
from arena_topo.cli.terminal import say, warn
from arena_topo.errors import ConnectionFailed, DocumentError, UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.kube.session import Session
from arena_topo.model.objects import Object

cluster = CommandGroup(name="cluster", help="Set up a cluster so that plans are enforced.")


@dataclass(frozen=True, slots=True, kw_only=True)
class SetupFlags:
    """What ``cluster setup`` takes."""

    apply: bool = switch("--apply", help="Apply the objects instead of printing them.")
    users: tuple[str, ...] = many(
        "--users",
        type=click.STRING,
        metavar="WHO",
        help="user:NAME, group:NAME or serviceaccount:NAMESPACE/NAME who may submit.",
    )
    agent_image: str = text(
        "--agent-image", metavar="IMAGE", help="Image of the agent; without it the agent is not installed."
    )
    agent_namespace: str = text(
        "--agent-namespace",
        default="kube-system",
        metavar="NAME",
        help="Where the agent runs.",
    )
    kueue: bool = switch(
        "--kueue", help="Install the admission check by which Kueue asks the controller for places."
    )
    output: str = output_format("yaml", "json", "name")
    kube: KubeFlags


@command("setup", SetupFlags)
def setup(flags: SetupFlags) -> None:
    """Install what enforces plans.

    Prints the admission policy that pins each worker to its node, the roles of users, with --agent-image the agent
    that publishes the topology, and with --kueue the admission check of queues whose jobs the controller places;
    --apply applies them. An admin does this once; applying it again updates an older installation.

    \b
      arena-topo cluster setup
      arena-topo cluster setup --apply --users group:research -n research
      arena-topo cluster setup --apply --kueue
    """
    from arena_topo.agent.manifests import agent_objects
    from arena_topo.cluster.setup import ServedApis, apply, served_apis, setup_objects, wait_until_applied

    session = _session(flags.kube, needed=flags.apply)
    apis = served_apis(session) if session else ServedApis()
    namespace = session.namespace if session else flags.kube.namespace or "default"
    objects, notes = setup_objects(apis, flags.users, namespace)
    if flags.agent_image:
        objects += agent_objects(flags.agent_image, flags.agent_namespace, policy=apis.validates)
        if not apis.validates:
            without = "this cluster does not serve ValidatingAdmissionPolicy (Kubernetes 1.30 does)"
            notes = (*notes, f"{without}: the agent's token can change every node")
    if flags.kueue:
        from arena_topo.cluster.setup import kueue_objects, queue_line

        if not apis.kueue:
            raise UsageError(
                "--kueue needs Kueue 0.15 or later: this cluster does not serve kueue.x-k8s.io/v1beta2",
                hint="install Kueue first: https://kueue.sigs.k8s.io/docs/installation",
            )
        objects += kueue_objects(apis.kueue)
        notes = (*notes, queue_line())
    for note in notes:
        warn(note)
    # With --apply there is always a session; the second half tells the type checker so.
    if not flags.apply or session is None:
        from arena_topo.output.text import objects as documents

        click.echo(documents(objects, flags.output), nl=False)
        return
    say(f"applying to {session.server or 'the cluster'}: {_names(objects)}")
    for item in apply(session, objects):
        click.echo(f"{_names([item])} applied")
    # A job that is submitted before the API server has learnt of the policy would be reported as pinned, and is not.
    if apis.policy_api and not wait_until_applied(session, namespace):
        warn("whether the API server applies the admission policy already cannot be tried out here")


@dataclass(frozen=True, slots=True, kw_only=True)
class RemoveFlags:
    """What ``cluster remove`` takes."""

    apply: bool = switch("--apply", help="Delete the objects instead of listing them.")
    kube: KubeFlags


@command("remove", RemoveFlags)
def remove(flags: RemoveFlags) -> None:
    """Remove what setup installed.

    Lists the admission policy, the roles and their bindings in every namespace, and the agent, as far as they exist;
    --apply deletes them. Running jobs are not touched, but their workers are no longer pinned when they are
    recreated.

    \b
      arena-topo cluster remove
      arena-topo cluster remove --apply
    """
    from arena_topo.cluster.setup import installed_objects
    from arena_topo.cluster.setup import remove as delete
    from arena_topo.kube.session import connect

    session = connect(flags.kube)
    objects = installed_objects(session)
    if not objects:
        say("arena-topo is not set up on this cluster: there is nothing to remove")
        return
    if not flags.apply:
        for item in objects:
            click.echo(_names([item]))
        say("nothing was deleted; --apply deletes these objects")
        return
    say(f"deleting from {session.server or 'the cluster'}: {_names(objects)}")
    for item in delete(session, objects):
        click.echo(f"{_names([item])} deleted")


cluster.add_command(setup)
cluster.add_command(remove)


def _session(connection: ConnectionFlags, *, needed: bool) -> Session | None:
    """Return a session with a cluster that answers, or None where printing can do without one."""
    from arena_topo.kube.session import connect

    try:
        session = connect(connection)
        # Connecting sends nothing: only a request shows whether a server answers.
        session.get("/version")
    except (ConnectionFailed, DocumentError) as error:
        # Anyone who names a cluster must not get the objects for another one.
        if needed or connection.kubeconfig or connection.context:
            raise
        say(
            f"no cluster reachable ({error.message}); "
            "printing for a cluster that serves MutatingAdmissionPolicy v1"
        )
        return None
    return session


def _names(objects: Sequence[Object]) -> str:
    from arena_topo.output.text import object_name

    return ", ".join(object_name(item) for item in objects)
