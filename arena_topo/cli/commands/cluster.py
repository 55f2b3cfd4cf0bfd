"""``arena-topo cluster``, ``doctor`` and ``node``: what a cluster supports, and how that is set up."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import argument, command, many, option, output_format, switch, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import DRY_RUN, DryRun, KubeFlags
from arena_topo.cli.terminal import columns, print_page, say, status_paint, warn
from arena_topo.errors import ConnectionFailed, DocumentError, ExitCode, UsageError
from arena_topo.kube import ConnectionFlags
from arena_topo.model.keys import ACK_SCHEDULE
from arena_topo.model.objects import Object

if TYPE_CHECKING:
    from arena_topo.kube.session import Session

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

    Prints the admission policy that pins each worker to its node, the roles of users, with --agent-image the
    agent that publishes the topology, and with --kueue the admission check of queues whose jobs the
    controller places; --apply applies them. An admin does this once; applying it again updates an older
    installation.

    \b
      arena-topo cluster setup
      arena-topo cluster setup --apply --users group:research -n research
      arena-topo cluster setup --apply --kueue
    """
    from arena_topo.agent.manifests import agent_objects
    from arena_topo.cluster.setup import SetupFacts, apply, setup_facts, setup_objects, wait_until_applied

    session = _session(flags.kube, needed=flags.apply)
    apis = setup_facts(session) if session else SetupFacts()
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
    # A job that is submitted before the API server has learnt of the policy would be reported as pinned, and
    # is not.
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

    Lists the admission policy, the roles and their bindings in every namespace, and the agent, as far as they
    exist; --apply deletes them. Running jobs are not touched, but their workers are no longer pinned when
    they are recreated.

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


def _session(connection: ConnectionFlags, *, needed: bool) -> "Session | None":
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


# ``arena-topo doctor``.


@dataclass(frozen=True, slots=True, kw_only=True)
class DoctorFlags:
    """What ``doctor`` takes."""

    output: str = output_format("wide", "json", "yaml")
    verbose: bool = switch("-v", "--verbose", help="Print evidence too, and what follows from each finding.")
    queue: str = text("--queue", metavar="NAME", help="Queue that jobs would be submitted to.")
    strict: bool = switch("--strict", help="Exit with 1 if there is a problem.")
    kube: KubeFlags


@command("doctor", DoctorFlags)
def doctor(flags: DoctorFlags) -> ExitCode:
    """Report what this cluster supports for gangs and pinning.

    First what jobs get here, and what to do; -v adds the evidence of each finding and what it means for jobs.
    The last finding names the jobs that have reserved GPUs which they do not use yet. Nothing is changed, and
    whatever you are not allowed to read is reported as unknown.

    \b
      arena-topo doctor
      arena-topo doctor -v
      arena-topo doctor -n research -o json
    """
    from arena_topo.cluster.capabilities import detect_with_access
    from arena_topo.cluster.doctor import diagnose, verdict
    from arena_topo.jobs.other_plans import reservations
    from arena_topo.kube.session import connect
    from arena_topo.model.reports import State
    from arena_topo.output.plan import reservations_finding
    from arena_topo.output.reports import findings_document, findings_text

    session = connect(flags.kube)
    facts = detect_with_access(session)
    findings = (
        *diagnose(facts, namespace=session.namespace, queue=flags.queue),
        reservations_finding(reservations(session)),
    )
    if flags.output == "wide":
        print_page(
            findings_text(
                findings, verdict(findings), verbose=flags.verbose, paint=status_paint(), width=columns()
            )
        )
    else:
        from arena_topo.output.text import document

        click.echo(document(findings_document(findings), flags.output), nl=False)
    has_problem = any(finding.state is State.PROBLEM for finding in findings)
    return ExitCode.ERROR if flags.strict and has_problem else ExitCode.OK


# ``arena-topo node``.

node = CommandGroup(name="node", help="Switch the vendor's topology scheduling of nodes.")


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeFlags:
    """What ``node enable-topology`` and ``node disable-topology`` take."""

    nodes: tuple[str, ...] = argument(nargs=-1, metavar="[NODE...]")
    all_nodes: bool = switch("--all", help="All nodes with GPUs.")
    selector: str = text("-l", "--selector", metavar="LABELS", help="The nodes with these labels.")
    dry_run: DryRun = option(
        "--dry-run",
        type=DRY_RUN,
        default=DryRun.NONE,
        metavar="MODE",
        help="none, client or server: show what would be changed.",
    )
    kube: KubeFlags


@command("enable-topology", NodeFlags)
def enable(flags: NodeFlags) -> ExitCode:
    """Turn on the vendor's topology scheduling of nodes.

    Sets the label ack.node.gpu.schedule=topology. On the vendor's clusters such a node then offers
    aliyun.com/gpu instead of nvidia.com/gpu.

    \b
      arena-topo node enable-topology gpu-node-1 gpu-node-2
      arena-topo node enable-topology --all --dry-run=server
    """
    return _label("topology", flags)


@command("disable-topology", NodeFlags)
def disable(flags: NodeFlags) -> ExitCode:
    """Turn off the vendor's topology scheduling of nodes.

    Sets the label ack.node.gpu.schedule=default.
    """
    return _label("default", flags)


node.add_command(enable)
node.add_command(disable)


def _label(value: str, flags: NodeFlags) -> ExitCode:
    from arena_topo.cli.errors import report
    from arena_topo.cluster.published import apply, changes_by_name, changes_by_selector
    from arena_topo.kube.session import connect

    if sum((bool(flags.nodes), flags.all_nodes, bool(flags.selector))) != 1:
        raise UsageError(
            "name nodes, or give --all, or give -l", hint="exactly one of the three selects the nodes"
        )
    session = connect(flags.kube)
    changes, missing = changes_by_name(session, flags.nodes, value)
    if flags.all_nodes or flags.selector:
        changes = changes_by_selector(session, flags.selector, value)
    needed = [change for change in changes if change.is_needed]
    for change in changes:
        old = change.old or "not set"
        say(
            f"node {change.node}: {ACK_SCHEDULE} {old} -> {value}"
            if change.is_needed
            else f"node {change.node}: {ACK_SCHEDULE} is already {value}"
        )
    server_dry_run = flags.dry_run is DryRun.SERVER
    if flags.dry_run is not DryRun.CLIENT:
        for name in apply(session, needed, dry_run=server_dry_run):
            click.echo(f"node/{name} labeled" + (" (server dry run)" if server_dry_run else ""))
    # The nodes that exist were changed anyway, so their errors come last.
    for error in missing:
        report(error)
    return ExitCode.ERROR if missing else ExitCode.OK
