"""kubectl's flags, on every command: which cluster, which user, which namespace."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from arena_topo.cluster.kubeconfig import Choice
from arena_topo.errors import UsageError
from arena_topo.model.durations import parse_duration
from arena_topo.model.names import check_namespace

Command = TypeVar("Command", bound=Callable[..., Any])

_TEXTS = (
    (("-n", "--namespace"), "namespace", "Namespace of the job."),
    (("--context",), "context", "Context of the kubeconfig to use."),
    (("--kubeconfig", "--config"), "kubeconfig", "Path of the kubeconfig file."),
    (("--cluster",), "cluster", "Cluster of the kubeconfig to use."),
    (("--user",), "user", "User of the kubeconfig to use."),
    (("-s", "--server"), "server", "Address of the API server."),
    (("--token",), "token", "Bearer token for the API server."),
    (("--certificate-authority",), "certificate_authority", "File with the API server's authority."),
    (("--tls-server-name",), "tls_server_name", "Name to check the API server's certificate against."),
    (("--as",), "impersonate", "User to act as."),
    (("--request-timeout",), "request_timeout", "Time for one request, for example 30s; 0 for no limit."),
)
_GROUPS = "--as-group"
_INSECURE = "--insecure-skip-tls-verify"
_WITH_VALUE = {name for names, _, _ in _TEXTS for name in names} | {_GROUPS}


def kube_options(command: Command) -> Command:
    """Give *command* kubectl's flags; it gets them as ``choice``, a ``Choice``."""

    @functools.wraps(command)
    def wrapped(**values: Any) -> Any:
        texts = {key: values.pop(key) or "" for _, key, _ in _TEXTS}
        timeout = _seconds(texts.pop("request_timeout"))
        if texts["namespace"]:
            check_namespace(texts["namespace"])
        choice = Choice(
            **texts,
            timeout=timeout,
            insecure=values.pop("insecure"),
            impersonate_groups=values.pop("impersonate_groups"),
        )
        return command(choice=choice, **values)

    decorated: Any = wrapped
    decorated = click.option(
        _INSECURE, "insecure", is_flag=True, help="Do not check the server's certificate."
    )(decorated)
    decorated = click.option(
        _GROUPS, "impersonate_groups", multiple=True, metavar="TEXT", help="Group to act as; may be repeated."
    )(decorated)
    for names, key, text in reversed(_TEXTS):
        decorated = click.option(*names, key, metavar="TEXT", help=text)(decorated)
    return decorated  # type: ignore[no-any-return]  # click's decorators return what they were given


def _seconds(text: str) -> float:
    try:
        return parse_duration(text or "0")
    except ValueError:
        if text.isdecimal():
            return float(text)
    raise UsageError(
        f"--request-timeout: {text!r} is not a duration", hint="write for example 30s, 2m, or 0 for no limit"
    )


def hoist(args: list[str]) -> list[str]:
    """Return *args* with the kubectl flags that stand before the command moved behind it."""
    flags, rest = [], list(args)
    while rest and _is_ours(rest[0]):
        takes_next = rest[0] in _WITH_VALUE and len(rest) > 1
        count = 2 if takes_next else 1
        flags += rest[:count]
        rest = rest[count:]
    if not rest or rest[0].startswith("-"):
        return list(args)
    return [rest[0], *flags, *rest[1:]]


def _is_ours(argument: str) -> bool:
    name = argument.partition("=")[0]
    return name in _WITH_VALUE or argument == _INSECURE
