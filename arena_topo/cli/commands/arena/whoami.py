"""``arena-topo whoami``."""

import json
from dataclasses import dataclass

import click

from arena_topo.cli.command import command
from arena_topo.cli.options.kube import KubeFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class WhoamiFlags:
    """What ``whoami`` takes."""

    kube: KubeFlags


@command("whoami", WhoamiFlags)
def whoami(flags: WhoamiFlags) -> None:
    """Show who you are on the cluster.

    The name is the one that the API server knows, the Id the hash of it that Arena puts on jobs, and IsAdminUser what
    Arena's configuration says.
    """
    from arena_topo.cluster.identity import whoami as identify
    from arena_topo.kube.session import connect

    user = identify(connect(flags.kube), arena_namespace=flags.kube.arena.arena_namespace)
    # Arena's document, to the byte.
    document = {"Name": user.name, "Id": user.id, "IsAdminUser": user.is_admin}
    click.echo(json.dumps(document, separators=(",", ":"), ensure_ascii=False))
