"""kubectl's flags, on every command: which cluster, which user, which namespace."""

import functools
from collections.abc import Callable
from typing import Any, TypeVar

import click

from arena_topo.cli.options.kube_hoisting import GROUPS, INSECURE, TEXTS
from arena_topo.errors import UsageError
from arena_topo.kube.connection_flags import ConnectionFlags
from arena_topo.model.job.validation import check_namespace
from arena_topo.model.notation.durations import parse_duration

Command = TypeVar("Command", bound=Callable[..., Any])


def kube_options(command: Command) -> Command:
    """Give *command* kubectl's flags; it gets them as ``connection``, a ``ConnectionFlags``."""

    @functools.wraps(command)
    def wrapped(**values: Any) -> Any:
        texts = {key: values.pop(key) or "" for _, key, _ in TEXTS}
        timeout = _seconds(texts.pop("request_timeout"))
        if texts["namespace"]:
            check_namespace(texts["namespace"])
        connection = ConnectionFlags(
            **texts,
            timeout=timeout,
            insecure=values.pop("insecure"),
            impersonate_groups=values.pop("impersonate_groups"),
        )
        return command(connection=connection, **values)

    decorated: Any = wrapped
    decorated = click.option(
        INSECURE, "insecure", is_flag=True, help="Do not check the server's certificate."
    )(decorated)
    decorated = click.option(
        GROUPS, "impersonate_groups", multiple=True, metavar="TEXT", help="Group to act as; may be repeated."
    )(decorated)
    for names, key, text in reversed(TEXTS):
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
