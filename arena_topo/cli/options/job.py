"""The flags that describe a job: Arena's, and those that its users miss."""

from collections.abc import Callable
from typing import Any, TypeVar

import click

from arena_topo.cli.options.go_flags import GoBool, GoFlags

Command = TypeVar("Command", bound=Callable[..., Any])

GO_FLAGS = (
    "--gang",
    "--gputopology",
    "--rdma",
    "--hostNetwork",
    "--hostIPC",
    "--hostPID",
    "--mounts-on-launcher",
    "--coalesce",
    "--share-gpus",
)


def _text(*names: str, default: str = "", help: str) -> Callable[[Command], Command]:  # noqa: A002  # click's word
    return click.option(*names, default=default, metavar="TEXT", help=help, show_default=bool(default))


def _many(*names: str, metavar: str, help: str) -> Callable[[Command], Command]:  # noqa: A002  # click's word
    return click.option(*names, multiple=True, metavar=metavar, help=help + " May be repeated.")


def _number(*names: str, default: int | None, help: str) -> Callable[[Command], Command]:  # noqa: A002  # click's word
    return click.option(
        *names, type=int, default=default, metavar="N", help=help, show_default=default is not None
    )


def go_flag(*names: str, help: str) -> Callable[[Command], Command]:  # noqa: A002  # click's word
    """Return a flag that takes true or false as Go's flags do."""
    return click.option(*names, type=GoBool(), default=False, metavar="[true|false]", help=help)


OPTIONS = (
    _text("--name", help="Name of the job (required)."),
    _text("--image", help="Image of launcher and workers (required)."),
    _number("--workers", default=1, help="Number of worker pods."),
    _number("--gpus", default=0, help="GPUs of each worker."),
    go_flag("--gang", help="Start all workers or none."),
    go_flag("--gputopology", help="Choose nodes and GPUs by their links."),
    _text("--cpu", help="CPUs of each worker, for example 8 or 500m."),
    _text("--memory", help="Memory of each worker, for example 64Gi."),
    _text("--share-memory", default="2Gi", help="Size of /dev/shm in launcher and workers."),
    _number(
        "--slots-per-worker", default=None, help="Ranks of each worker; as many as it has GPUs by default."
    ),
    _many("--device", metavar="NAME=N", help="Another device of each worker, for example amd.com/gpu=1."),
    go_flag("--rdma", help="Give each worker an RDMA device (rdma/hca) and the right to pin memory."),
    _many("-e", "--env", metavar="NAME=VALUE", help="Environment variable."),
    _many("--env-from", metavar="KIND/NAME", help="Environment from secret/NAME or configmap/NAME."),
    _many("-d", "--data", metavar="PVC:PATH", help="PersistentVolumeClaim to mount."),
    _many("--data-dir", "--dataDir", "data_dir", metavar="DIR[:PATH]", help="Folder of the node to mount."),
    _many("--config-file", metavar="FILE[:PATH]", help="Local file to place in the pods."),
    _text(
        "--working-dir",
        "--workingDir",
        "working_dir",
        default="/root",
        help="Working directory of the command.",
    ),
    _text("--shell", default="sh", help="Shell that runs a command given as one string."),
    _many("-l", "--label", metavar="NAME=VALUE", help="Label of the job and its pods."),
    _many("-a", "--annotation", metavar="NAME=VALUE", help="Annotation of the job and its pods."),
    _many("--selector", metavar="LABEL=VALUE", help="Node label that the pods need."),
    _many("--toleration", metavar="KEY[=VALUE][:EFFECT][,OPERATOR]", help="Taint to tolerate, or all."),
    _text("-p", "--priority", help="PriorityClass of the pods."),
    _text("--scheduler", help="Scheduler of the pods."),
    _text("--image-pull-policy", default="Always", help="Always, IfNotPresent or Never."),
    _many("--image-pull-secret", metavar="NAME", help="Secret to pull the image with."),
    go_flag("--hostNetwork", "host_network", help="Use the node's network."),
    go_flag("--hostIPC", "host_ipc", help="Use the node's IPC namespace."),
    go_flag("--hostPID", "host_pid", help="Use the node's process namespace."),
    _text("--launcher-cpu", help="CPUs of the launcher."),
    _text("--launcher-memory", help="Memory of the launcher."),
    _many("--launcher-selector", metavar="LABEL=VALUE", help="Node label that the launcher needs, instead."),
    go_flag("--mounts-on-launcher", help="Mount the claims of --data on the launcher too."),
    _number("--retry", default=0, help="How often the launcher is tried again."),
    _text("--clean-task-policy", default="All", help="Pods to remove at the end: All, Running or None."),
    _text("--ttl-after-finished", help="Time after which a job that has ended is deleted, for example 1h."),
    _text("--running-timeout", help="Time after which the job is stopped, for example 12h."),
)


def job_options(command: Command) -> Command:
    """Give *command* the flags of a job; it gets them by name, and turns them into a job with ``job_spec``."""
    decorated = command
    for option in reversed(OPTIONS):
        decorated = option(decorated)
    return decorated


class JobCommand(GoFlags):
    """A command that describes a job; what follows ``--`` is the job's own command, word by word.

    The words are kept in ``ctx.meta`` under ``arena_topo.argv``.
    """

    ARGV = "arena_topo.argv"

    def __init__(self, *args: Any, **rest: Any) -> None:
        super().__init__(*args, go_flags=GO_FLAGS, bare={"--dry-run": "bare", "--wait": "true"}, **rest)

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows ``--`` apart before flags are looked for."""
        if "--" in args:
            at = args.index("--")
            ctx.meta[self.ARGV] = tuple(args[at + 1 :])
            args = args[:at]
        return super().parse_args(ctx, args)
