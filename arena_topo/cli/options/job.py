"""The flags that describe a job, Arena's and those that its users miss, and the job that they describe."""

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import FlagCommand, many, option, text
from arena_topo.cli.options.common import MOST, Duration, Notation, Whole, checked_text, go_flag
from arena_topo.errors import UsageError
from arena_topo.model import validation
from arena_topo.model.keys import NVIDIA_GPU
from arena_topo.model.text.quantity import checked_quantity

if TYPE_CHECKING:
    from arena_topo.jobs.options import PlanOptions
    from arena_topo.model.job import (
        Claim,
        CodeSync,
        ConfigFile,
        EnvSource,
        HostDirectory,
        JobSpec,
        PodOptions,
        RuntimeRef,
        TensorBoard,
        TrainedModel,
        WorkerRange,
    )
    from arena_topo.model.scheduling import Toleration


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


class _Text(Notation[str]):
    """A text that is sent as it is."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        del flag
        return text


class _OneOf(Notation[str]):
    """One of a few words."""

    name = "text"

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        if text not in self._allowed:
            raise UsageError(f"unsupported {flag} {text!r}", hint=f"use one of {', '.join(self._allowed)}")
        return text


class _Quantity(Notation[str]):
    """A Kubernetes quantity such as ``500m`` or ``64Gi``, or nothing."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*, which is a quantity."""
        return checked_quantity(flag, text) if text else ""


class _WholeSeconds(Notation[int]):
    """A duration in whole seconds, as the API counts them."""

    name = "duration"
    empty_is_default = True

    def __init__(self, *, least: int = 0) -> None:
        self._duration = Duration(bare_seconds=True, least=least)

    def read(self, text: str, flag: str) -> int:
        """Return the seconds."""
        seconds = self._duration.read(text, flag)
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


class _Pair(Notation[tuple[str, str]]):
    """``NAME=VALUE``; *check* takes the flag, the name and the value."""

    name = "name=value"

    def __init__(self, check: Callable[[str, str, str], None]) -> None:
        self._check = check

    def read(self, text: str, flag: str) -> tuple[str, str]:
        """Return the name and the value."""
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag}: {text!r} is not NAME=VALUE", hint=f"for example {flag}=name=value")
        self._check(flag, name, value)
        return name, value


class _ArenaToleration(Notation["Toleration"]):
    """Arena's ``key=value:effect,operator``, its parts, or ``all``.

    Without a value the operator is ``Exists``, without an effect every effect is tolerated.
    """

    name = "toleration"

    def read(self, text: str, flag: str) -> "Toleration":
        """Return the toleration: ``gpu=a100:NoSchedule,Equal`` or ``gpu`` (whatever its value and effect)."""
        from arena_topo.model.scheduling import Toleration

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


class _EnvSourceName(Notation["EnvSource"]):
    """``secret/NAME`` or ``configmap/NAME``."""

    name = "kind/name"

    def read(self, text: str, flag: str) -> "EnvSource":
        """Return the source."""
        from arena_topo.model.job import EnvSource

        kind, slash, name = text.partition("/")
        if not slash or kind.lower() not in _ENV_KINDS:
            raise UsageError(f"{flag}: {text!r} is not KIND/NAME", hint="use secret/NAME or configmap/NAME")
        validation.check_object_name(flag, name)
        return EnvSource(_ENV_KINDS[kind.lower()], name)


class _ClaimMount(Notation["Claim"]):
    """``PVC:PATH``."""

    name = "pvc:path"

    def read(self, text: str, flag: str) -> "Claim":
        """Return the claim."""
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


class _DirectoryMount(Notation["HostDirectory"]):
    """``DIR`` or ``DIR:PATH``."""

    name = "dir[:path]"

    def read(self, text: str, flag: str) -> "HostDirectory":
        """Return the directory; without a PATH it is mounted at the same path."""
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


class _LocalFile(Notation["ConfigFile"]):
    """``FILE`` or ``FILE:PATH``; the file is read at once."""

    name = "file[:path]"

    def read(self, text: str, flag: str) -> "ConfigFile":
        """Return the file with its content."""
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


class _AbsolutePath(Notation[str]):
    """An absolute path in the container; empty stays empty."""

    name = "path"

    def read(self, text: str, flag: str) -> str:
        """Return *text*, which is an absolute path."""
        if text and not text.startswith("/"):
            raise UsageError(f"{flag}: {text!r} is not an absolute path")
        return text


def _check_mount(flag: str, path: str) -> None:
    # There it would hide every file of the image, the job's program among them. POSIX keeps two slashes as they are.
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


LABEL = _Pair(lambda flag, name, value: validation.check_labels(flag, {name: value}))
_ANNOTATION = _Pair(lambda flag, name, _: validation.check_key(flag, name))
_ENV = _Pair(lambda _flag, name, _value: validation.check_env_name(name))
_DEVICE = _Pair(_check_device)
TEXT = _Text()
QUANTITY = _Quantity()
_PULL_POLICY = _OneOf("Always", "IfNotPresent", "Never")
_CLEAN_POLICY = _OneOf("All", "Running", "None")
_ABSOLUTE_PATH = _AbsolutePath()
_MPI_IMPLEMENTATION = _OneOf("OpenMPI", "MPICH", "Intel")
_SECONDS = _WholeSeconds()
_PERIOD = _WholeSeconds(least=1)


# The flags of Arena's that bring something next to a job: its code, TensorBoard, and a name for what it trains.

# The images that kubernetes/git-sync and TensorFlow publish themselves; the latter has TensorBoard in it.
_GIT_SYNC = "registry.k8s.io/git-sync/git-sync:v4.4.0"
_TENSORBOARD = "tensorflow/tensorflow:2.17.0"


@dataclass(frozen=True, slots=True, kw_only=True)
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
            hint="nobody publishes an image of rsync that could be the default: name one that has it",
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


# The flags of a job that may have fewer workers than it could use, and the range that they give.


def _bound(name: str, help: str) -> int | None:
    return option(name, type=Whole(least=1), metavar="N", help=help)


@dataclass(frozen=True, slots=True, kw_only=True)
class ElasticFlags:
    """How few and how many workers an elastic job may have."""

    min_workers: int | None = _bound(
        "--min-workers", help="Fewest workers with which it starts: it is elastic, and has as many as fit."
    )
    max_workers: int | None = _bound(
        "--max-workers", help="Most workers that it may ever have; arena-topo scale changes their number."
    )
    grow: bool = go_flag(
        "--grow",
        help="Let the controller give it more workers, up to the most, when there is room and no job waits.",
    )


class NodeCount(Notation["tuple[int, int] | None"]):
    """torchrun's ``--nnodes``: a number, or ``MIN:MAX``."""

    name = "nodes"
    empty_is_default = True

    def read(self, text: str, flag: str) -> "tuple[int, int] | None":
        """Return the fewest and the most."""
        least, _, most = text.partition(":")
        numbers = [
            int(word) if word.isascii() and word.isdecimal() and len(word) < 8 else 0
            for word in (least, most or least)
        ]
        if not 0 < numbers[0] <= numbers[1] <= MOST or text.endswith(":"):
            raise UsageError(
                f"{flag}: {text!r} is no number of nodes",
                hint="use a number such as 4, or a range such as 2:8",
            )
        return numbers[0], numbers[1]


def worker_range(flags: ElasticFlags) -> "WorkerRange | None":
    """Return the range that *flags* give, None for a job of a fixed size. Raises ``UsageError``."""
    from arena_topo.model.job import WorkerRange

    if flags.min_workers is None and flags.max_workers is None:
        return None
    if flags.max_workers is None:
        raise UsageError(
            "--min-workers needs --max-workers", hint="the most workers that the job may ever have"
        )
    # A single worker is the fewest that anything has.
    least = flags.min_workers or 1
    if least > flags.max_workers:
        raise UsageError(f"--min-workers={least} is more than --max-workers={flags.max_workers}")
    return WorkerRange(least, flags.max_workers)


def with_nodes(
    elastic: "WorkerRange | None", nodes: tuple[int, int] | None, workers: int | None
) -> "tuple[WorkerRange | None, int | None]":
    """Return the range and the number of workers that torchrun's ``--nnodes`` gives next to the others' flags, None for no number.

    ``--nnodes=4`` is ``--workers=4``, and ``--nnodes=2:8`` is ``--min-workers=2 --max-workers=8``.
    """
    from arena_topo.model.job import WorkerRange

    if nodes is None:
        return elastic, workers
    least, most = nodes
    said: Sequence[str] = [
        flag
        for flag, is_given in (
            ("--min-workers and --max-workers", elastic is not None),
            ("--workers", least == most and workers not in (None, most)),
        )
        if is_given
    ]
    if said:
        raise UsageError(f"--nnodes says the same as {said[0]}", hint="leave one of them out")
    return (None, most) if least == most else (WorkerRange(least, most), workers)


def elastic_job(
    job: "JobSpec", elastic: "WorkerRange | None", workers: int | None, *, grow: bool
) -> "JobSpec":
    """Return *job* as an elastic one, which starts with at most *workers*, or with as many as fit where none are given.

    *grow*: the controller may give it more later. Raises ``UsageError``.
    """
    from dataclasses import replace

    if elastic is None:
        if grow:
            raise UsageError(
                "--grow is for elastic jobs",
                hint="say how many workers it may have: --min-workers and --max-workers",
            )
        return job
    start = elastic.most if workers is None else workers
    if not elastic.least <= start <= elastic.most:
        raise UsageError(
            f"--workers={start} is not between --min-workers={elastic.least} and --max-workers={elastic.most}",
            hint="--workers is the most to start with; without it the job starts with as many as fit",
        )
    return replace(job, workers=start, elastic=replace(elastic, grows=grow))


def check_elastic(job: "JobSpec", options: "PlanOptions") -> None:
    """Raise ``UsageError`` for an elastic job with an option that needs its number of ranks."""
    fixed = {"--parallel": bool(options.parallel), "--coalesce": options.coalesce}
    for flag, is_given in fixed.items():
        if job.elastic and is_given:
            raise UsageError(
                f"{flag} lays a job out for its number of ranks, and an elastic one has no fixed number",
                hint="leave out --min-workers and --max-workers, or this flag",
            )


Pairs = tuple[tuple[str, str], ...]


def _text(*names: str, help: str, default: str = "", type: Notation[str] = TEXT) -> str:
    return text(*names, help=help, default=default, type=type)


def _number(*names: str, default: int, help: str) -> int:
    return option(*names, type=Whole(), default=default, metavar="N", help=help, show_default=True)


def clean_task_policy(default: str, *spellings: str) -> str:
    """Return the flag ``--clean-task-policy``, and *spellings* as other names of it."""
    return _text(
        "--clean-task-policy",
        *spellings,
        type=_CLEAN_POLICY,
        default=default,
        help="Pods to remove at the end: All, Running or None.",
    )


class _Processes(Notation[str]):
    """How many processes torchrun starts in a pod, in its own words."""

    name = "text"
    empty_is_default = True

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        # Without it torchrun gets nothing.
        is_count = text.isascii() and text.isdecimal() and int(text) > 0
        if text and not is_count and text not in ("auto", "gpu", "cpu"):
            raise UsageError(
                f"{flag}: {text!r} is no number of processes", hint="use a number, auto, gpu or cpu"
            )
        return text


class _RuntimeName(Notation["RuntimeRef | None"]):
    """The name of a runtime, behind the word for one of the namespace where it is no runtime of the cluster."""

    name = "text"

    def read(self, text: str, flag: str) -> "RuntimeRef | None":
        """Return the runtime, None for nothing."""
        from arena_topo.model.job import RuntimeRef

        if not text:
            return None
        word, slash, name = text.rpartition("/")
        validation.check_object_name(flag, name)
        if slash and word.lower() not in _RUNTIMES:
            raise UsageError(
                f"{flag}: {text!r} is no runtime",
                hint="give the name of a ClusterTrainingRuntime, or trainingruntime/NAME",
            )
        return RuntimeRef(name, _RUNTIMES[word.lower()]) if slash else RuntimeRef(name)


_RUNTIMES = {"trainingruntime": "TrainingRuntime", "clustertrainingruntime": "ClusterTrainingRuntime"}


@dataclass(frozen=True, slots=True, kw_only=True)
class CommonJobFlags:
    """What the user says of a job of any kind."""

    name: str = _text("--name", help="Name of the job (required).")
    image: str = _text("--image", help="Image of the job's pods (required).")
    # Where it is not given a job has one worker, and an elastic job as many as fit, which --workers=1 does not mean.
    workers: int | None = option(
        "--workers", type=Whole(), metavar="N", help="Number of worker pods; 1 by default."
    )
    gpus: int = _number("--gpus", default=0, help="GPUs per worker.")
    gang: bool = go_flag("--gang", help="Start all workers or none.")
    gputopology: bool = go_flag("--gputopology", help="Choose nodes and GPUs by their links.")
    cpu: str = _text("--cpu", type=QUANTITY, help="CPUs per worker, for example 8 or 500m.")
    memory: str = _text("--memory", type=QUANTITY, help="Memory per worker, for example 64Gi.")
    # The defaults of shared memory, working directory, shell, pull policy and clean-up are Arena's, and so is the camel
    # case of some flags.
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
        type=_EnvSourceName(),
        metavar="KIND/NAME",
        help="Environment from secret/NAME or configmap/NAME.",
    )
    data: "tuple[Claim, ...]" = many(
        "-d", "--data", type=_ClaimMount(), metavar="PVC:PATH", help="PersistentVolumeClaim to mount."
    )
    data_dir: "tuple[HostDirectory, ...]" = many(
        "--data-dir",
        "--dataDir",
        type=_DirectoryMount(),
        metavar="DIR[:PATH]",
        help="Directory of the node to mount.",
    )
    config_file: "tuple[ConfigFile, ...]" = many(
        "--config-file", type=_LocalFile(), metavar="FILE[:PATH]", help="Local file to place in the pods."
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
        type=_ArenaToleration(),
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
        help="Time after which a finished job is deleted, for example 1h; mpi-operator 0.8.2 deletes the launcher alone.",
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


@dataclass(frozen=True, slots=True, kw_only=True)
class JobFlags(CommonJobFlags):
    """What the user says of an MPI job."""

    slots_per_worker: int | None = option(
        "--slots-per-worker", type=Whole(), metavar="N", help="Ranks per worker; one per GPU by default."
    )
    launcher_cpu: str = _text("--launcher-cpu", type=QUANTITY, help="CPUs of the launcher.")
    launcher_memory: str = _text("--launcher-memory", type=QUANTITY, help="Memory of the launcher.")
    launcher_selector: Pairs = many(
        "--launcher-selector",
        type=LABEL,
        metavar="LABEL=VALUE",
        help="Node label that the launcher needs, in place of --selector.",
    )
    mounts_on_launcher: bool = go_flag(
        "--mounts-on-launcher", help="Mount the claims of --data on the launcher too."
    )
    mpi_implementation: str = _text(
        "--mpi-implementation",
        type=_MPI_IMPLEMENTATION,
        default="OpenMPI",
        help="MPI of the image: OpenMPI, MPICH or Intel.",
    )
    ssh_auth_mount_path: str = _text(
        "--ssh-auth-mount-path",
        type=_ABSOLUTE_PATH,
        help="Folder of the ssh keys, where the image's user is not root; /root/.ssh by default.",
    )
    clean_task_policy: str = clean_task_policy("All")
    elastic: ElasticFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class PyTorchFlags(CommonJobFlags):
    """What the user says of a PyTorch job; one of its workers is the master."""

    nproc_per_node: str = _text(
        "--nproc-per-node",
        type=_Processes(),
        help="Processes that torchrun starts in each pod: a number, auto, gpu or cpu.",
    )
    clean_task_policy: str = clean_task_policy("Running")
    nnodes: tuple[int, int] | None = option(
        "--nnodes",
        type=NodeCount(),
        metavar="N|MIN:MAX",
        help="Number of pods in torchrun's words, or their range.",
    )
    elastic: ElasticFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class JobSetFlags(CommonJobFlags):
    """What the user says of a JobSet: one Job whose pods are all alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class IndexedJobFlags(CommonJobFlags):
    """What the user says of an indexed Job, whose pods are all alike."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TrainFlags(CommonJobFlags):
    """What the user says of a TrainJob; its runtime says the rest."""

    runtime: "RuntimeRef | None" = option(
        "--runtime",
        type=_RuntimeName(),
        metavar="NAME",
        help="Runtime that has the pods: a ClusterTrainingRuntime, or trainingruntime/NAME of the namespace (required).",
    )
    nproc_per_node: int | None = option(
        "--nproc-per-node",
        type=Whole(),
        metavar="N",
        help="Processes that each pod starts; the runtime's by default.",
    )


class JobCommand(FlagCommand):
    """A command that describes a job; what follows ``--`` is the job's own command, word by word.

    The words become the value ``argv``, None without ``--``.
    """

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        """Keep what follows ``--`` apart before flags are looked for."""
        argv = None
        # click drops the -- itself, after which its words look like those before it. The first one counts: any further
        # one belongs to the job's command.
        if "--" in args:
            start = args.index("--")
            argv = tuple(checked_text(word, "the command") for word in args[start + 1 :])
            args = args[:start]
        ctx.params["argv"] = argv
        return super().parse_args(ctx, args)


def job_spec(
    flags: CommonJobFlags,
    *,
    words: Sequence[str],
    argv: tuple[str, ...] | None,
    namespace: str,
    least_workers: int = 1,
) -> "JobSpec":
    """Return the job that *flags* describe, of *least_workers* at least.

    *words* are the arguments outside of flags, joined as Arena joins them and run by a shell; *argv* is what
    followed ``--``, run as it is. Raises ``UsageError``.
    """
    from arena_topo.model.job import Compute, JobSpec, RunOptions

    validation.check_job_name(flags.name)
    # A runtime has an image, and its command.
    is_train = isinstance(flags, TrainFlags)
    if not flags.image and not is_train:
        raise UsageError("--image must be set", hint="for example --image=registry.example.com/train:1.0")
    gpus, workers = (
        _at_least("--gpus", flags.gpus, 0),
        _at_least("--workers", flags.fixed_workers, least_workers),
    )
    common = JobSpec(
        name=flags.name,
        namespace=namespace,
        image=flags.image,
        command=() if is_train and not (argv or any(words)) else _command(flags.shell, words, argv),
        workers=workers,
        gpus=gpus,
        compute=Compute(cpu=flags.cpu, memory=flags.memory),
        slots=max(gpus, 1),
        gang=flags.gang,
        topology=flags.gputopology,
        pod=_pod(flags),
        run=RunOptions(
            retry=_at_least("--retry", flags.retry, 0),
            ttl=flags.ttl_after_finished,
            timeout=flags.running_timeout,
        ),
        tensorboard=_tensorboard(flags.tie),
        model=_trained_model(flags.tie),
    )
    if isinstance(flags, PyTorchFlags):
        run = replace(common.run, clean_policy=flags.clean_task_policy)
        elastic, count = with_nodes(worker_range(flags.elastic), flags.nnodes, flags.workers)
        job = replace(
            common,
            run=run,
            kind="PyTorchJob",
            processes=flags.nproc_per_node,
            workers=common.workers if count is None else count,
        )
        return elastic_job(job, elastic, count, grow=flags.elastic.grow)
    if isinstance(flags, JobSetFlags):
        return replace(common, kind="JobSet")
    if isinstance(flags, IndexedJobFlags):
        return replace(common, kind="Job")
    if isinstance(flags, TrainFlags):
        return _train_job(common, flags)
    return _mpi_job(common, flags) if isinstance(flags, JobFlags) else common


def _train_job(job: "JobSpec", flags: TrainFlags) -> "JobSpec":
    if flags.runtime is None:
        raise UsageError(
            "--runtime must be set",
            hint="for example --runtime=torch-distributed; kubectl get clustertrainingruntimes lists those of the cluster",
        )
    processes = flags.nproc_per_node
    return replace(
        job,
        kind="TrainJob",
        runtime=flags.runtime,
        processes="" if processes is None else str(_at_least("--nproc-per-node", processes, 1)),
    )


def _mpi_job(job: "JobSpec", flags: JobFlags) -> "JobSpec":
    from arena_topo.model.job import Compute, LauncherOptions, MpiOptions

    slots = flags.slots_per_worker
    return replace(
        elastic_job(job, worker_range(flags.elastic), flags.workers, grow=flags.elastic.grow),
        # A job without GPUs runs one rank per worker.
        slots=job.slots if slots is None else _at_least("--slots-per-worker", slots, 1),
        launcher=LauncherOptions(
            compute=Compute(cpu=flags.launcher_cpu, memory=flags.launcher_memory),
            selector=dict(flags.launcher_selector),
            mounts=flags.mounts_on_launcher,
        ),
        run=replace(job.run, clean_policy=flags.clean_task_policy),
        mpi=MpiOptions(implementation=flags.mpi_implementation, ssh_auth_path=flags.ssh_auth_mount_path),
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


def _command(shell: str, words: Sequence[str], argv: tuple[str, ...] | None) -> tuple[str, ...]:
    if words and argv:
        raise UsageError(
            "the job's command was given twice: before and after --",
            hint="give one quoted string, or everything after --",
        )
    # A lone -- at the end has no words behind it, and counts as not given.
    if argv:
        return argv
    if not any(words):
        raise UsageError(
            "the job has no command",
            hint='give it at the end, for example "mpirun -np 4 python train.py", or after --',
        )
    return (shell, "-c", " ".join(words))


def _at_least(flag: str, number: int, least: int) -> int:
    if number < least:
        raise UsageError(f"{flag} is invalid: {number} is less than {least}")
    return number


def _distinct(claims: "tuple[Claim, ...]") -> "tuple[Claim, ...]":
    names = [claim.name for claim in claims]
    for index, name in enumerate(names):
        # A claim is a volume of the pod, and the names of volumes are unique.
        if name in names[:index]:
            raise UsageError(f"--data: the claim {name} is given twice")
    return claims
