"""``arena-topo mcp``."""

from dataclasses import dataclass

from arena_topo.cli.declare import command, switch
from arena_topo.cli.options.common import KubeFlags
from arena_topo.extras import require


@dataclass(frozen=True, slots=True, kw_only=True)
class McpFlags:
    """What ``mcp`` takes."""

    allow_changes: bool = switch(
        "--allow-changes", help="Let the agent submit and delete jobs too, after it has shown them."
    )
    kube: KubeFlags


@command("mcp", McpFlags)
def mcp(flags: McpFlags) -> None:
    """Let an agent ask about plans, jobs and the cluster.

    Serves the Model Context Protocol on stdin and stdout: a client starts it. Its tools are plan, topology,
    list, get, describe, logs, why and doctor, which change nothing. It acts with your rights, and needs the
    extra mcp.

    \b
      arena-topo mcp -n research
      arena-topo mcp --allow-changes
    """
    require("the server for agents", "mcp", extra="mcp")
    from arena_topo.api import Cluster
    from arena_topo.mcp_server import serve

    # These flags are a connection.
    serve(Cluster(flags.kube), changes=flags.allow_changes)
