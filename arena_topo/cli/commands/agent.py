"""``arena-topo agent``."""

import os
import signal
import threading
from dataclasses import dataclass
from functools import partial

import click

from arena_topo.cli.declare import command, option, switch, text
from arena_topo.cli.groups import CommandGroup
from arena_topo.cli.options.common import KubeFlags, Whole, duration
from arena_topo.cli.terminal import say
from arena_topo.errors import UsageError

agent = CommandGroup(name="agent", help="Publish the GPU topology of nodes that lack it.")


@dataclass(frozen=True, slots=True, kw_only=True)
class RunFlags:
    """What ``agent run`` takes."""

    node: str = text("--node", metavar="NAME", help="This node's name; $NODE_NAME by default.")
    interval: float = option(
        "--interval",
        type=duration(bare_seconds=True, least=1),
        default=30.0,
        metavar="DURATION",
        help="Time between two readings, for example 30s.",
    )
    once: bool = switch("--once", help="Read and publish once, then exit.")
    file: str = text("--from", metavar="FILE", help="A saved matrix instead of NVML.")
    product: str = text("--product", metavar="NAME", help="GPUs of the saved matrix.")
    skip_users: bool = switch("--skip-users", help="Do not ask the kubelet which pods hold which GPUs.")
    kube: KubeFlags


@command("run", RunFlags)
def run(flags: RunFlags) -> None:
    """Publish the topology of this node.

    Reads NVML and the kubelet's pod-resources socket, and writes the node's annotation
    arena-topo.dev/gpu-topology when something has changed, or when somebody else changed the annotation.

    \b
      arena-topo agent run --once --node gpu-node-1 --from topo.txt
    """
    from arena_topo.agent.run import file_agent, node_agent
    from arena_topo.cluster.published import published, publisher
    from arena_topo.kube.session import connect

    name = flags.node or os.environ.get("NODE_NAME", "")
    if not name:
        raise UsageError("the node has no name", hint="give --node NAME, or set NODE_NAME")
    session = connect(flags.kube)
    write, found = publisher(session, name), partial(published, session, name)
    if flags.file:
        from arena_topo.cli.snapshot_source import read_text

        node = file_agent(read_text(flags.file), flags.file, flags.product, write, say, found=found)
    else:
        node = node_agent(write, say, found=found, skip_users=flags.skip_users)
    if flags.once:
        node.publish_if_changed(found())
        return
    ended = threading.Event()
    # The kubelet ends a container by SIGTERM, which the kernel withholds from a process 1 without a handler
    # for it.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    # Waiting for the event instead of sleeping ends the agent in the middle of an interval.
    node.run(found(), lambda: not ended.wait(flags.interval))


@dataclass(frozen=True, slots=True, kw_only=True)
class ManifestFlags:
    """What ``agent manifest`` takes."""

    image: str = text("--image", required=True, help="Image that has arena-topo[agent] installed.")
    namespace: str = text("-n", "--namespace", default="kube-system", help="Namespace of the DaemonSet.")
    interval: int = option(
        "--interval",
        type=Whole(1),
        default=30,
        show_default=True,
        help="Seconds between two readings.",
    )
    runtime_class: str = text(
        "--runtime-class", help="RuntimeClass that makes the GPUs visible, where one is needed."
    )
    skip_users: bool = switch(
        "--skip-users",
        help="Do not ask the kubelet which pods hold which GPUs: the agent then needs neither root nor a path of the host.",
    )


@command("manifest", ManifestFlags)
def manifest(flags: ManifestFlags) -> None:
    """Print the objects that run the agent on every node.

    They are a ServiceAccount, a ClusterRole and its binding, an admission policy and its binding that keep
    each agent to the one annotation of its own node (Kubernetes 1.30 or later), and a DaemonSet, for kubectl
    apply.

    \b
      arena-topo agent manifest --image registry.example.com/arena-topo:1.0 | kubectl apply -f -
    """
    from arena_topo.agent.manifests import agent_objects
    from arena_topo.output.text import objects

    manifests = agent_objects(
        flags.image,
        flags.namespace,
        interval=flags.interval,
        runtime_class=flags.runtime_class,
        skip_users=flags.skip_users,
    )
    click.echo(objects(manifests, "yaml"), nl=False)


agent.add_command(run)
agent.add_command(manifest)
