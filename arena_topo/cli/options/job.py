"""The flags of jobs of every kind, Arena's and additional ones, and the job that they describe."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import FlagCommand, many, option, text, value_alone
from arena_topo.cli.options.common import Notation, Whole, checked_text, duration, go_flag
from arena_topo.cli.terminal import say
from arena_topo.errors import UsageError
from arena_topo.model import validation
from arena_topo.model.keys import NVIDIA_GPU
from arena_topo.model.text.quantity import checked_quantity

if TYPE_CHECKING:
    from arena_topo.model.job import (
        Claim,
        CodeSync,
        ConfigFile,
        EnvSource,
        HostDirectory,
        JobSpec,
        PodOptions,
        TensorBoard,
        TrainedModel,
    )
    from arena_topo.model.pods import Toleration


# The notations of the flags that describe a job, as click types.

# The API keeps such times in 32 bits.
_MOST_SECONDS = 2**31 - 1
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# The names of the two kinds that kubectl takes: singular, plural, and the short one.
_ENV_KINDS = {
    "secret": "secret",
    "secrets": "secret",
    "configmap": "configmap",
    "configmaps": "configmap",
    "cm": "configmap",
}


def one_of(*allowed: str) -> Notation[str]:
    """Return the notation of a flag that takes one of a few words."""

    def read(text: str, flag: str) -> str:
        if text not in allowed:
            raise UsageError(f"unsupported {flag} {text!r}", hint=f"use one of {', '.join(allowed)}")
        return text

    return Notation(read)


def _quantity(text: str, flag: str) -> str:
    return checked_quantity(flag, text) if text else ""


def _whole_seconds(*, least: int = 0) -> Notation[int]:
    """Return the notation of a duration in whole seconds, as the API counts them."""

    def read(text: str, flag: str) -> int:
        seconds = duration(least=least).read(text, flag)
        # Half a second rounded down to 0 would stop the job at once, or delete it as soon as it has ended.
        if seconds != int(seconds):
            raise UsageError(
                f"{flag}: {text} is not a whole number of seconds", hint="write for example 1s or 90s"
            )
        if seconds > _MOST_SECONDS:
            raise UsageError(
                f"{flag}: {text} is more than {_MOST_SECONDS} s, the longest time that the API takes"
            )
        return int(seconds)

    return Notation(read, empty_is_default=True)


def _pair(check: Callable[[str, str, str], None]) -> Notation[tuple[str, str]]:
    """Return the notation ``NAME=VALUE``; *check* takes the flag, the name and the value."""

    def read(text: str, flag: str) -> tuple[str, str]:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag}: {text!r} is not NAME=VALUE", hint=f"for example {flag}=name=value")
        check(flag, name, value)
        return name, value

    return Notation(read)


def _toleration(text: str, flag: str) -> "Toleration":
    """Read Arena's ``key=value:effect,operator``, its parts, or ``all``.

    Without a value the operator is ``Exists``, without an effect every effect is tolerated.
    """
    from arena_topo.model.pods import Toleration

    # A toleration that names no key and needs no value matches every taint.
    if text == "all":
        return Toleration(operator="Exists")
    rest, _, operator = text.partition(",")
    pair, _, effect = rest.partition(":")
    key, equals, value = pair.partition("=")
    operator = operator or ("Equal" if equals else "Exists")
    wrong = (
        not key
        or operator not in ("Equal", "Exists")
        or (effect and effect not in _EFFECTS)
        # The API server refuses a value next to Exists.
        or (operator == "Exists" and value)
    )
    if wrong:
        raise UsageError(
            f"{flag}: {text!r} is not KEY[=VALUE][:EFFECT][,OPERATOR]",
            hint=f"effects are {', '.join(_EFFECTS)}; operators are Equal and Exists, the latter without a value",
        )
    return Toleration(key=key, operator=operator, value=value, effect=effect)


def _env_source(text: str, flag: str) -> "EnvSource":
    """Read ``secret/NAME`` or ``configmap/NAME``."""
    from arena_topo.model.job import EnvSource

    kind, slash, name = text.partition("/")
    if not slash or kind.lower() not in _ENV_KINDS:
        raise UsageError(f"{flag}: {text!r} is not KIND/NAME", hint="use secret/NAME or configmap/NAME")
    validation.check_object_name(flag, name)
    return EnvSource(_ENV_KINDS[kind.lower()], name)


def _claim(text: str, flag: str) -> "Claim":
    """Read ``PVC:PATH``."""
    from arena_topo.model.job import Claim

    name, colon, path = text.partition(":")
    if not colon or not path.startswith("/"):
        raise UsageError(
            f"{flag}: {text!r} is not PVC:PATH with an absolute PATH",
            hint=f"for example {flag}=dataset:/data",
        )
    validation.check_object_name(flag, name)
    _check_mount(flag, path)
    return Claim(name, path)


def _directory(text: str, flag: str) -> "HostDirectory":
    """Read ``DIR:PATH``; a ``DIR`` by itself is mounted at the same path."""
    from arena_topo.model.job import HostDirectory

    source, colon, path = text.partition(":")
    target = path if colon else source
    if not (source.startswith("/") and target.startswith("/")):
        raise UsageError(
            f"{flag}: {text!r} is not DIR or DIR:PATH with absolute paths",
            hint=f"for example {flag}=/mnt/data:/data",
        )
    _check_mount(flag, target)
    return HostDirectory(source, target)


def _config_file(text: str, flag: str) -> "ConfigFile":
    """Read ``FILE`` or ``FILE:PATH``; the file is read at once."""
    from arena_topo.files import LARGEST_SETTING, read_bytes
    from arena_topo.model.job import ConfigFile

    source, colon, path = text.partition(":")
    target = path if colon else str(Path(source).absolute())
    if not source or not target.startswith("/"):
        raise UsageError(
            f"{flag}: {text!r} is not FILE or FILE:PATH with an absolute PATH in the container",
            hint=f"for example {flag}=./train.yaml:/etc/train/train.yaml",
        )
    # At once, so that a wrong path is reported before anything is created.
    try:
        return ConfigFile(target, read_bytes(source, LARGEST_SETTING))
    except OSError as error:
        raise UsageError(f"{flag}: {source} cannot be read: {error.strerror}") from error


def _check_mount(flag: str, path: str) -> None:
    # There it would hide every file of the image, the job's program among them. POSIX keeps two slashes as
    # they are.
    if os.path.normpath(path).strip("/") == "":
        raise UsageError(f"{flag}: a directory cannot be mounted at /", hint=f"for example {flag}=NAME:/data")
    if ":" in path:
        raise UsageError(f"{flag}: {path!r} has a colon, which the path of a mount must not have")


def _check_device(flag: str, name: str, count: str) -> None:
    validation.check_key(flag, name)
    # Slots, plans and requested GPUs are counted by --gpus, and two flags for one resource could disagree.
    if name == NVIDIA_GPU:
        raise UsageError(f"use '--gpus {count}' instead of '{flag} {name}={count}'")
    checked_quantity(f"{flag} {name}", count)


LABEL = _pair(lambda flag, name, value: validation.check_labels(flag, {name: value}))
_ANNOTATION = _pair(lambda flag, name, _: validation.check_key(flag, name))
_ENV = _pair(lambda _flag, name, _value: validation.check_env_name(name))
_DEVICE = _pair(_check_device)
TEXT = Notation(lambda text, _: text)
QUANTITY = Notation(_quantity)
_PULL_POLICY = one_of("Always", "IfNotPresent", "Never")
_SECONDS = _whole_seconds()
_PERIOD = _whole_seconds(least=1)


# The flags of Arena's that bring something next to a job: its code, TensorBoard, and a name for what it
# trains.

# The images that kubernetes/git-sync and TensorFlow publish themselves; the latter has TensorBoard in it.
_GIT_SYNC = "registry.k8s.io/git-sync/git-sync:v4.4.0"
_TENSORBOARD = "tensorflow/tensorflow:2.17.0"


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class ArenaJobFlags:
    """What comes next to a job; the spellings in camel case are Arena's older ones."""

    sync_mode: str = text(
        "--sync-mode", "--syncMode", type=TEXT, help="Fetch code before the job starts: git or rsync."
    )
    sync_source: str = text(
        "--sync-source",
        "--syncSource",
        type=TEXT,
        help="Where the code is: a URL of git, or a source of rsync. It is found in WORKING-DIR/code.",
    )
    sync_image: str = text(
        "--sync-image",
        "--syncImage",
        type=TEXT,
        help=f"Image that fetches the code; {_GIT_SYNC} for git, and none for rsync.",
    )
    tensorboard: bool = go_flag("--tensorboard", help="Run TensorBoard next to the job, behind a Service.")
    tensorboard_image: str = text(
        "--tensorboard-image",
        "--tensorboardImage",
        type=TEXT,
        default=_TENSORBOARD,
        help="Image of TensorBoard.",
    )
    logdir: str = text(
        "--logdir",
        type=TEXT,
        default="/training_logs",
        help="Folder that TensorBoard reads; outside of --data one of the node's is mounted there.",
    )
    model_name: str = text("--model-name", type=TEXT, help="Name of the model, kept as a label of the job.")
    model_source: str = text(
        "--model-source", type=TEXT, help="Where the model will be, kept as an annotation of the job."
    )


def _code_sync(flags: ArenaJobFlags) -> "CodeSync | None":
    """Return how the job's code is fetched, None where it is in the image. Raises ``UsageError``."""
    from arena_topo.model.job import CodeSync

    mode = flags.sync_mode
    if not mode:
        if flags.sync_source or flags.sync_image:
            raise UsageError("--sync-source and --sync-image need --sync-mode", hint="use git or rsync")
        return None
    if mode not in ("git", "rsync"):
        known = "Arena's help names it, and Arena cannot do it either; " if mode == "hdfs" else ""
        raise UsageError(f"unsupported --sync-mode {mode!r}", hint=f"{known}use git or rsync")
    if not flags.sync_source:
        raise UsageError(
            f"--sync-source must be set for --sync-mode={mode}", hint="it says where the code is"
        )
    image = flags.sync_image or {"git": _GIT_SYNC}.get(mode, "")
    if not image:
        raise UsageError(
            "--sync-mode=rsync needs --sync-image",
            hint="there is no official rsync image to use by default: name one that has it",
        )
    return CodeSync(mode, flags.sync_source, image)


def _tensorboard(flags: ArenaJobFlags) -> "TensorBoard | None":
    """Return the TensorBoard next to the job, None without one."""
    from arena_topo.model.job import TensorBoard

    return TensorBoard(flags.tensorboard_image, flags.logdir) if flags.tensorboard else None


def _trained_model(flags: ArenaJobFlags) -> "TrainedModel | None":
    """Return the model that the job trains, None where it has no name. Raises ``UsageError``."""
    from arena_topo.model.job import TrainedModel

    if not flags.model_name:
        if flags.model_source:
            raise UsageError("--model-source needs --model-name", hint="the source is that of a named model")
        return None
    validation.check_labels("--model-name", {"modelName": flags.model_name})
    if not flags.model_source:
        raise UsageError(
            "--model-source must be set with --model-name", hint="for example pvc://ml/models/vgg16"
        )
    return TrainedModel(flags.model_name, flags.model_source)


Pairs = tuple[tuple[str, str], ...]


def _text(*names: str, help: str, default: str = "", type: Notation[str] = TEXT) -> str:
    return text(*names, help=help, default=default, type=type)


def _number(*names: str, default: int, help: str) -> int:
    return option(*names, type=Whole(), default=default, metavar="N", help=help, show_default=True)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class CommonJobFlags:
    """The flags of a job of any kind."""

    name: str = _text("--name", help="Name of the job (required).")
    image: str = _text("--image", help="Image of the job's pods (required).")
    # Where it is not given a job has one worker, and an elastic job as many as fit, which --workers=1 does
    # not mean.
    workers: int | None = option(
        "--workers", type=Whole(), metavar="N", help="Number of worker pods; 1 by default."
    )
    gpus: int = _number("--gpus", default=0, help="GPUs per worker.")
    gang: bool = go_flag("--gang", help="Start all workers or none.")
    gputopology: bool = go_flag("--gputopology", help="Choose nodes and GPUs by their links.")
    cpu: str = _text("--cpu", type=QUANTITY, help="CPUs per worker, for example 8 or 500m.")
    memory: str = _text("--memory", type=QUANTITY, help="Memory per worker, for example 64Gi.")
    # The defaults of shared memory, working directory, shell, pull policy and clean-up are Arena's, and so is
    # the camel case of some flags.
    share_memory: str = _text(
        "--share-memory", type=QUANTITY, default="2Gi", help="Size of /dev/shm in the job's pods."
    )
    device: Pairs = many(
        "--device", type=_DEVICE, metavar="NAME=N", help="Other device per worker, for example amd.com/gpu=1."
    )
    rdma: bool = go_flag(
        "--rdma", help="Give each worker an RDMA device (rdma/hca) and the right to pin memory."
    )
    env: Pairs = many("-e", "--env", type=_ENV, metavar="NAME=VALUE", help="Environment variable.")
    env_from: "tuple[EnvSource, ...]" = many(
        "--env-from",
        type=Notation(_env_source),
        metavar="KIND/NAME",
        help="Environment from secret/NAME or configmap/NAME.",
    )
    data: "tuple[Claim, ...]" = many(
        "-d", "--data", type=Notation(_claim), metavar="PVC:PATH", help="PersistentVolumeClaim to mount."
    )
    data_dir: "tuple[HostDirectory, ...]" = many(
        "--data-dir",
        "--dataDir",
        type=Notation(_directory),
        metavar="DIR[:PATH]",
        help="Directory of the node to mount.",
    )
    config_file: "tuple[ConfigFile, ...]" = many(
        "--config-file",
        type=Notation(_config_file),
        metavar="FILE[:PATH]",
        help="Local file to place in the pods.",
    )
    working_dir: str = _text(
        "--working-dir", "--workingDir", default="/root", help="Working directory of the command."
    )
    shell: str = _text("--shell", default="sh", help="Shell that runs a command given as one string.")
    label: Pairs = many(
        "-l", "--label", type=LABEL, metavar="NAME=VALUE", help="Label of the job and its pods."
    )
    annotation: Pairs = many(
        "-a",
        "--annotation",
        type=_ANNOTATION,
        metavar="NAME=VALUE",
        help="Annotation of the job and its pods.",
    )
    selector: Pairs = many(
        "--selector", type=LABEL, metavar="LABEL=VALUE", help="Node label that the pods need."
    )
    toleration: "tuple[Toleration, ...]" = many(
        "--toleration",
        type=Notation(_toleration),
        metavar="KEY[=VALUE][:EFFECT][,OPERATOR]",
        help="Taint to tolerate, or all.",
    )
    priority: str = _text("-p", "--priority", help="PriorityClass of the pods.")
    scheduler: str = _text("--scheduler", help="Scheduler of the pods.")
    image_pull_policy: str = _text(
        "--image-pull-policy", type=_PULL_POLICY, default="Always", help="Always, IfNotPresent or Never."
    )
    image_pull_secret: tuple[str, ...] = many(
        "--image-pull-secret", type=TEXT, metavar="NAME", help="Secret to pull the image with."
    )
    host_network: bool = go_flag("--hostNetwork", help="Use the node's network.")
    host_ipc: bool = go_flag("--hostIPC", help="Use the node's IPC namespace.")
    host_pid: bool = go_flag("--hostPID", help="Use the node's process namespace.")
    retry: int = _number(
        "--retry",
        default=0,
        help="Number of times to retry once the launcher, or a pod of a job without one, has failed.",
    )
    ttl_after_finished: int | None = option(
        "--ttl-after-finished",
        type=_SECONDS,
        metavar="TEXT",
        help="Time after which a finished job is deleted, for example 1h; mpi-operator 0.8.2 deletes only the launcher.",
    )
    running_timeout: int | None = option(
        "--running-timeout",
        type=_PERIOD,
        metavar="TEXT",
        help="Time after which the job is stopped, for example 12h.",
    )
    tie: ArenaJobFlags

    @property
    def fixed_workers(self) -> int:
        """The number of workers of a job that is not elastic."""
        return 1 if self.workers is None else self.workers


class JobCommand(FlagCommand):
    """A command that describes a job; what follows ``--`` is the job's own command, word by word.

    The words become the value ``argv``, None without ``--``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows ``--`` apart before flags are looked for."""
        argv = None
        if not ctx.resilient_parsing:
            self._warn_of_own_flags(args)
        # click drops the -- itself, after which its words look like those before it. The first one counts:
        # any further one belongs to the job's command.
        if "--" in args:
            start = args.index("--")
            argv = tuple(checked_text(word, "the command") for word in args[start + 1 :])
            args = args[:start]
        ctx.params["argv"] = argv
        return super().parse_args(ctx, args)

    def _warn_of_own_flags(self, args: list[str]) -> None:
        """Say that flags behind a command which is not quoted are read as this program's: sleep -n 600."""
        options = [param for param in self.params if isinstance(param, click.Option)]
        with_value = {
            name for one in options if not one.is_flag and not value_alone(one) for name in one.opts
        }
        program = ""
        for before, word in zip(["", *args], args, strict=False):
            if word == "--":
                return
            if program and re.fullmatch("-[a-zA-Z]", word):
                say(
                    f"note: {word} is read as a flag of arena-topo: put the job's command in quotes, or after --, "
                    f"if it is {program}'s"
                )
                return
            if not word.startswith("-") and before not in with_value:
                program = program or ("" if " " in word else word)


def common_job(
    flags: CommonJobFlags, *, command: tuple[str, ...], namespace: str, least_workers: int
) -> "JobSpec":
    """Return the job that the flags of every kind describe, with *least_workers*. Raises ``UsageError``."""
    from arena_topo.model.job import Compute, JobSpec, RunOptions

    validation.check_job_name(flags.name)
    gpus = at_least("--gpus", flags.gpus, 0)
    return JobSpec(
        name=flags.name,
        namespace=namespace,
        image=flags.image,
        command=command,
        workers=at_least("--workers", flags.fixed_workers, least_workers),
        gpus=gpus,
        compute=Compute(cpu=flags.cpu, memory=flags.memory),
        slots=max(gpus, 1),
        gang=flags.gang,
        topology=flags.gputopology,
        pod=_pod(flags),
        run=RunOptions(
            retry=at_least("--retry", flags.retry, 0),
            ttl=flags.ttl_after_finished,
            timeout=flags.running_timeout,
        ),
        tensorboard=_tensorboard(flags.tie),
        model=_trained_model(flags.tie),
    )


def _pod(flags: CommonJobFlags) -> "PodOptions":
    from arena_topo.model.job import PodOptions

    return PodOptions(
        env=dict(flags.env),
        env_from=flags.env_from,
        labels=dict(flags.label),
        annotations=dict(flags.annotation),
        selector=dict(flags.selector),
        tolerations=flags.toleration,
        devices=dict(flags.device),
        claims=_distinct(flags.data),
        directories=flags.data_dir,
        files=flags.config_file,
        working_dir=flags.working_dir,
        priority=flags.priority,
        scheduler=flags.scheduler,
        pull_policy=flags.image_pull_policy,
        pull_secrets=flags.image_pull_secret,
        shared_memory=flags.share_memory,
        host_network=flags.host_network,
        host_ipc=flags.host_ipc,
        host_pid=flags.host_pid,
        rdma=flags.rdma,
        code=_code_sync(flags.tie),
    )


def at_least(flag: str, number: int, least: int) -> int:
    """Return *number*. Raises ``UsageError`` where it is less than *least*."""
    if number < least:
        raise UsageError(f"{flag}: {number} is less than {least}")
    return number


def _distinct(claims: "tuple[Claim, ...]") -> "tuple[Claim, ...]":
    names = [claim.name for claim in claims]
    for index, name in enumerate(names):
        # A claim is a volume of the pod, and the names of volumes are unique.
        if name in names[:index]:
            raise UsageError(f"--data: the claim {name} is given twice")
    return claims
