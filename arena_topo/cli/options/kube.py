"""kubectl's flags, which every command that talks to a cluster has: which cluster, which user, which namespace."""

from dataclasses import dataclass
from typing import ClassVar

import click

from arena_topo.cli.command import many, option, parameters, switch, text
from arena_topo.cli.options.arena import ArenaFlags
from arena_topo.cli.options.notations import Duration, Namespace
from arena_topo.kube.connection_flags import REQUEST_TIMEOUT, ConnectionFlags


# The base's repr hides the token.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class KubeFlags(ConnectionFlags):
    """What the user chose with kubectl's flags; a ``ConnectionFlags`` whose fields declare the flags."""

    of_connection: ClassVar[bool] = True

    namespace: str = text("-n", "--namespace", type=Namespace(), help="Namespace to use.")
    context: str = text("--context", help="Context of the kubeconfig to use.")
    kubeconfig: str = text("--kubeconfig", "--config", help="Path of the kubeconfig file.")
    cluster: str = text("--cluster", help="Cluster of the kubeconfig to use.")
    user: str = text("--user", help="User of the kubeconfig to use.")
    server: str = text("-s", "--server", help="Address of the API server.")
    token: str = text("--token", help="Bearer token for the API server.")
    certificate_authority: str = text(
        "--certificate-authority", help="File with the certificates of the authority that the server uses."
    )
    tls_server_name: str = text(
        "--tls-server-name", help="Name to check the API server's certificate against."
    )
    impersonate: str = text("--as", help="User to act as.")
    request_timeout: float = option(
        "--request-timeout",
        type=Duration(bare_seconds=True),
        default=REQUEST_TIMEOUT,
        metavar="TEXT",
        help="Limit for one request, for example 30s; a command has ten times that for all of them. 2m by default, 0 for no limit.",
    )
    impersonate_groups: tuple[str, ...] = many(
        "--as-group", type=click.STRING, metavar="TEXT", help="Group to act as."
    )
    insecure: bool = switch("--insecure-skip-tls-verify", help="Do not check the server's certificate.")
    arena: ArenaFlags


def connection_options() -> list[click.Option]:
    """Return the flags of the connection as click has them."""
    return [param for param in parameters(KubeFlags) if isinstance(param, click.Option)]


def hoist(args: list[str]) -> list[str]:
    """Return *args* with the kubectl flags that stand before the command moved behind it.

    ``-n ml --user=ann get vgg16`` becomes ``get -n ml --user=ann vgg16``.
    """
    options = connection_options()
    # Flags that may stand alone have no value in the next word.
    alone = [option for option in options if option.is_flag or hasattr(option.type, "bare")]
    switches = {name for option in alone for name in option.opts}
    with_value = {name for option in options for name in option.opts} - switches
    flags, rest = [], list(args)
    while rest and (rest[0] in switches or rest[0].partition("=")[0] in switches | with_value):
        # Only --flag alone has its value in the next word; --flag=value is one word.
        takes_next = rest[0] in with_value and len(rest) > 1
        count = 2 if takes_next else 1
        flags += rest[:count]
        rest = rest[count:]
    # Without a command to move them behind, click explains what is wrong with the flags as they were typed.
    if not rest or rest[0].startswith("-"):
        return list(args)
    return [rest[0], *flags, *rest[1:]]
