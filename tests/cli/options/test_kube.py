"""kubectl's flags name a cluster, and may stand before the command."""

from typing import Any

import pytest

from arena_topo.cli.declare import command
from arena_topo.cli.options.common import KubeFlags, hoist
from arena_topo.kube import ConnectionFlags


def received(*args: str) -> KubeFlags:
    """Return what a command receives for *args*."""
    values: list[Any] = []
    command("test", KubeFlags)(values.append).main(list(args), standalone_mode=False)
    return values[0]  # type: ignore[no-any-return]


def test_flags_are_the_choice_of_a_connection() -> None:
    """In the long and the short spelling, and in Arena's."""
    flags = received(
        "-n", "ml", "--config=/k", "--as=ann", "--as-group=a", "--as-group=b", "--request-timeout=1m"
    )

    assert isinstance(flags, ConnectionFlags)
    assert ("ml", "/k", "ann", ("a", "b"), 60.0) == (
        flags.namespace,
        flags.kubeconfig,
        flags.impersonate,
        flags.impersonate_groups,
        flags.request_timeout,
    )


def test_without_flags_nothing_is_chosen() -> None:
    """The kubeconfig decides."""
    flags = received()

    assert all(getattr(flags, name) == value for name, value in vars_of(ConnectionFlags()).items())


def vars_of(flags: ConnectionFlags) -> dict[str, Any]:
    """Return the fields of *flags*."""
    return {name: getattr(flags, name) for name in ConnectionFlags.__slots__}


def test_a_token_is_not_shown() -> None:
    """Not even in a traceback."""
    assert "secret" not in repr(received("--token=secret"))


@pytest.mark.parametrize(
    ("args", "expected"),
    [
        (["get", "a"], ["get", "a"]),
        (["-n", "x", "get", "a"], ["get", "-n", "x", "a"]),
        (["--namespace=x", "--context", "c", "get", "a"], ["get", "--namespace=x", "--context", "c", "a"]),
        (["--insecure-skip-tls-verify", "get"], ["get", "--insecure-skip-tls-verify"]),
        (["--help"], ["--help"]),
        (["-n"], ["-n"]),
        (["-n", "x"], ["-n", "x"]),
        (["-n", "x", "--help"], ["--help"]),
    ],
)
def test_flags_before_the_command_move_behind_it(args: list[str], expected: list[str]) -> None:
    """Only kubectl's own, and only when a command follows."""
    assert expected == hoist(args)
