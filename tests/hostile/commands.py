"""Every command that talks to a server, as a user types it."""

from collections.abc import Iterator, Mapping
from typing import Any

import click

from arena_topo.cli.app import cli
from tests.paths import DATA

MANIFEST = str(DATA / "manifests" / "pytorchjob.yaml")
MATRIX = str(DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt")

_JOB = ("--image=i", "--workers=2", "--gpus=2")
COMMANDS: Mapping[str, tuple[str, ...]] = {
    "submit mpi": ("submit", "mpi", "--name=NEW", *_JOB, "--gputopology", "--gang", f"--config-file={MATRIX}:/m", "c"),
    "submit pytorch": ("submit", "pytorch", "--name=NEW", *_JOB, "--gputopology", "c"),
    "submit tf": ("submit", "tf", "--name=NEW", *_JOB, "--ps=1", "--gputopology", "c"),
    "submit jobset": ("submit", "jobset", "--name=NEW", *_JOB, "--gputopology", "c"),
    "submit train": ("submit", "train", "--name=NEW", "--workers=2", "--gpus=2", "--runtime=r", "--gputopology", "c"),
    "submit job": ("submit", "job", "--name=NEW", *_JOB, "--gputopology", "c"),
    "submit manifest": ("submit", "-f", MANIFEST),
    "plan train": ("plan", "train", *_JOB),
    "plan job": ("plan", "job", *_JOB),
    "plan manifest": ("plan", "-f", MANIFEST),
    "plan mpi": ("plan", "mpi", *_JOB, "--when"),
    "plan pytorch": ("plan", "pytorch", *_JOB),
    "plan jobset": ("plan", "jobset", *_JOB),
    "plan tf": ("plan", "tf", "--workers=2", "--gpus=2", "--ps=1"),
    "diff mpi": ("diff", "mpi", "--name=there", *_JOB, "c"),
    "rerun": ("rerun", "there", "--name=NEW"),
    "suspend": ("suspend", "OLD", "--timeout=2s"),
    "resume": ("resume", "SUSPENDED"),
    "scale": ("scale", "ELASTIC", "--grow"),
    "list": ("list",),
    "get": ("get", "there"),
    "describe": ("describe", "there"),
    "events": ("events", "there"),
    "logs": ("logs", "there"),
    "why": ("why", "there"),
    "exec": ("exec", "there", "--", "true"),
    "attach": ("attach", "there"),
    "delete": ("delete", "OLD", "--timeout=2s"),
    "prune": ("prune", "--since=1000h"),
    "topology": ("topology",),
    "top node": ("top", "node"),
    "top job": ("top", "job"),
    "node enable-topology": ("node", "enable-topology", "NODE"),
    "node disable-topology": ("node", "disable-topology", "NODE"),
    "agent run": ("agent", "run", "--once", "--node=NODE", f"--from={MATRIX}"),
    "doctor": ("doctor",),
    "cluster setup": ("cluster", "setup", "--apply", "--users=group:ml", "--agent-image=i", "--kueue"),
    "cluster remove": ("cluster", "remove", "--apply"),
    "sandbox import": ("sandbox", "import", "--output=FILE"),
    "whoami": ("whoami",),
    "version": ("version",),
}  # fmt: skip
"""By the words of the command. NEW is a name that is free, OLD a job to delete, SUSPENDED one to resume,
ELASTIC one to scale, NODE a node, and
FILE a file to write."""

LASTING: Mapping[str, tuple[str, ...]] = {
    "wait": ("wait", "there", "--for=deleted", "--timeout=2s"),
    "logs -f": ("logs", "there", "-f"),
    "get -w": ("get", "there", "-w"),
    "list -w": ("list", "-w"),
    "events -w": ("events", "there", "-w"),
    "top job -r": ("top", "job", "-r"),
    "controller run": ("controller", "run"),
    "submit mpi --follow": ("submit", "mpi", "--name=NEW", "--image=i", "--follow", "c"),
}
"""Commands that continue until somebody ends them; they have threads, which end with their process."""

ASKS_NOTHING = {"config view", "mcp", "top watch"}
"""They take the flags of a connection and send nothing; `top watch`
where there is no terminal, else what `list -w` and `topology` do, and
`mcp` until its client asks for what other commands do.
"""


def asking(command: click.Command = cli, words: tuple[str, ...] = ()) -> Iterator[str]:
    """Yield the commands below *command* that take the flags of a connection."""
    if isinstance(command, click.Group):
        context: Any = click.Context(command)
        for name in command.list_commands(context):
            if below := command.get_command(context, name):
                yield from asking(below, (*words, name))
    elif any("--request-timeout" in parameter.opts for parameter in command.params):
        yield " ".join(words)
