"""``arena-topo agent``."""

import os
import signal
import threading

import click

from arena_topo.cli.lazy import Entry, LazyGroup
from arena_topo.cli.options.kube import kube_options
from arena_topo.cli.terminal import say
from arena_topo.errors import UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model.notation.durations import parse_duration

agent = LazyGroup(
    name="agent",
    entries={
        "run": Entry(
            "arena_topo.cli.commands.tool.agent:run", "Publish the topology of this node.", "What to do"
        ),
        "manifest": Entry(
            "arena_topo.cli.commands.tool.agent:manifest",
            "Print what runs the agent on every node.",
            "What to do",
        ),
    },
    help="Publish the topology of nodes whose cluster says nothing of it.",
    context_settings={"help_option_names": ["-h", "--help"]},
)


@click.command("run")
@click.option("--node", default="", metavar="NAME", help="This node's name; $NODE_NAME by default.")
@click.option("--interval", default="30", metavar="DURATION", help="How often to look, for example 30s.")
@click.option("--once", is_flag=True, help="Look once.")
@click.option("--from", "file", default="", metavar="FILE", help="A saved matrix instead of NVML.")
@click.option("--product", default="", metavar="NAME", help="GPUs of the saved matrix.")
@kube_options
def run(node: str, interval: str, once: bool, file: str, product: str, connection: ConnectionFlags) -> None:
    """Publish the topology of this node.

    Reads NVML and the kubelet's pod-resources socket, and writes the annotation arena-topo.dev/gpu-topology of the
    node when something has changed.

    \b
      arena-topo agent run --once --node gpu-node-1 --from topo.txt
    """
    from arena_topo.agent.start import file_agent, node_agent
    from arena_topo.cluster.node_annotation import publish, published
    from arena_topo.kube.session import connect

    name = node or os.environ.get("NODE_NAME", "")
    if not name:
        raise UsageError("the node has no name", hint="give --node NAME, or set NODE_NAME")
    seconds = _seconds(interval)
    session = connect(connection)
    write = publish(session, name)
    if file:
        from arena_topo.cli.snapshot_source import text_of

        made = file_agent(text_of(file), file, product, write, say)
    else:
        made = node_agent(write, say)
    if once:
        made.once(published(session, name))
        return
    ended = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: ended.set())
    made.run(published(session, name), lambda: not ended.wait(seconds))


def _seconds(text: str) -> float:
    try:
        seconds = float(text) if text.isdecimal() else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"--interval: {error}") from error
    if seconds < 1:
        raise UsageError(f"--interval: {text} is less than a second")
    return seconds


@click.command("manifest")
@click.option("--image", required=True, help="Image that has arena-topo[agent] installed.")
@click.option(
    "-n", "--namespace", default="kube-system", show_default=True, help="Namespace of the DaemonSet."
)
@click.option(
    "--interval", type=click.IntRange(1), default=30, show_default=True, help="Seconds between two looks."
)
@click.option("--runtime-class", default="", help="RuntimeClass that shows the GPUs, where one is needed.")
def manifest(image: str, namespace: str, interval: int, runtime_class: str) -> None:
    """Print what runs the agent on every node.

    ServiceAccount, ClusterRole, ClusterRoleBinding and DaemonSet, for kubectl apply.

    \b
      arena-topo agent manifest --image registry.example.com/arena-topo:1.0 | kubectl apply -f -
    """
    from arena_topo.agent.manifests import agent_objects
    from arena_topo.output.documents import objects

    click.echo(
        objects(agent_objects(image, namespace, interval=interval, runtime_class=runtime_class), "yaml"),
        nl=False,
    )
