"""Every command that talks to a server, as a user types it."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from arena_topo.cli.app import cli
from tests.paths import DATA

MATRIX = str(DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt")

_JOB = ("--image=i", "--workers=2", "--gpus=2")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "submit mpi": ("submit", "mpi", "--name=NEW", *_JOB, "--gputopology", "--gang", f"--config-file={MATRIX}:/m", "c"),
    "plan mpi": ("plan", "mpi", *_JOB),
    "resume": ("resume", "there"),
    "get": ("get", "there"),
    "logs": ("logs", "there"),
    "delete": ("delete", "OLD", "--timeout=2s"),
    "topology": ("topology",),
    "top node": ("top", "node"),
    "node enable-topology": ("node", "enable-topology", "NODE"),
    "node disable-topology": ("node", "disable-topology", "NODE"),
    "agent run": ("agent", "run", "--once", "--node=NODE", f"--from={MATRIX}"),
    "doctor": ("doctor",),
    "cluster setup": ("cluster", "setup", "--apply", "--users=group:ml", "--agent-image=i"),
    "cluster remove": ("cluster", "remove", "--apply"),
    "sandbox import": ("sandbox", "import", "--output=FILE"),
    "version": ("version",),
}  # fmt: skip
"""By the words of the command. NEW is a name that is free, OLD a job to delete, NODE a node, and FILE a file to write."""

NOT_YET = {
    "list",
    "wait",
    "describe",
    "rerun",
    "top job",
    "events",
    "logviewer",
    "exec",
    "attach",
    "suspend",
    "whoami",
    "diff mpi",
}
"""They were written beside this suite, and have not met it: each moves into the table above with its words."""

ASKS_NOTHING = {"config view"}
"""They take the flags of a connection and send nothing."""


def asking(command: click.Command = cli, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the commands below *command* that take the flags of a connection."""
    if isinstance(command, click.Group):
        context: Any = click.Context(command)
        for name in command.list_commands(context):
            if below := command.get_command(context, name):
                yield from asking(below, (*words, name))
    elif any("--request-timeout" in parameter.opts for parameter in command.params):
        yield " ".join(words)
