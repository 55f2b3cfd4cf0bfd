"""The flags that describe a job, Arena's and those that its users miss, and the job that they describe."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from arena_topo.cli.command import FlagCommand, many, option, text
from arena_topo.cli.options.arena_job import ArenaJobFlags, code_sync, tensorboard, trained_model
from arena_topo.cli.options.go_flags import go_flag
from arena_topo.cli.options.job_notations import (
    ABSOLUTE_PATH,
    ANNOTATION,
    CLEAN_POLICY,
    DEVICE,
    ENV,
    LABEL,
    MPI_IMPLEMENTATION,
    PERIOD,
    PULL_POLICY,
    QUANTITY,
    SECONDS,
    TEXT,
    ArenaToleration,
    ClaimMount,
    DirectoryMount,
    EnvSourceName,
    LocalFile,
)
from arena_topo.cli.options.kinds.elastic import (
    ElasticFlags,
    NodeCount,
    elastic_job,
    with_nodes,
    worker_range,
)
from arena_topo.cli.options.notations import Notation, checked_text
from arena_topo.cli.options.numbers import Whole
from arena_topo.errors import UsageError
from arena_topo.model.job import validation

if TYPE_CHECKING:
    from arena_topo.model.cluster.scheduling import Toleration
    from arena_topo.model.job.job_spec import (
        Claim,
        ConfigFile,
        EnvSource,
        HostDirectory,
        JobSpec,
        PodOptions,
        RuntimeRef,
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
        type=CLEAN_POLICY,
        default=default,
        help="Pods to remove at the end: All, Running or None.",
    )


class Processes(Notation[str]):
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


class RuntimeName(Notation["RuntimeRef | None"]):
    """The name of a runtime, behind the word for one of the namespace where it is no runtime of the cluster."""

    name = "text"

    def read(self, text: str, flag: str) -> "RuntimeRef | None":
        """Return the runtime, None for nothing."""
        from arena_topo.model.job.job_spec import RuntimeRef

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
        "--device", type=DEVICE, metavar="NAME=N", help="Other device per worker, for example amd.com/gpu=1."
    )
    rdma: bool = go_flag(
        "--rdma", help="Give each worker an RDMA device (rdma/hca) and the right to pin memory."
    )
    env: Pairs = many("-e", "--env", type=ENV, metavar="NAME=VALUE", help="Environment variable.")
    env_from: "tuple[EnvSource, ...]" = many(
        "--env-from",
        type=EnvSourceName(),
        metavar="KIND/NAME",
        help="Environment from secret/NAME or configmap/NAME.",
    )
    data: "tuple[Claim, ...]" = many(
        "-d", "--data", type=ClaimMount(), metavar="PVC:PATH", help="PersistentVolumeClaim to mount."
    )
    data_dir: "tuple[HostDirectory, ...]" = many(
        "--data-dir",
        "--dataDir",
        type=DirectoryMount(),
        metavar="DIR[:PATH]",
        help="Directory of the node to mount.",
    )
    config_file: "tuple[ConfigFile, ...]" = many(
        "--config-file", type=LocalFile(), metavar="FILE[:PATH]", help="Local file to place in the pods."
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
        type=ANNOTATION,
        metavar="NAME=VALUE",
        help="Annotation of the job and its pods.",
    )
    selector: Pairs = many(
        "--selector", type=LABEL, metavar="LABEL=VALUE", help="Node label that the pods need."
    )
    toleration: "tuple[Toleration, ...]" = many(
        "--toleration",
        type=ArenaToleration(),
        metavar="KEY[=VALUE][:EFFECT][,OPERATOR]",
        help="Taint to tolerate, or all.",
    )
    priority: str = _text("-p", "--priority", help="PriorityClass of the pods.")
    scheduler: str = _text("--scheduler", help="Scheduler of the pods.")
    image_pull_policy: str = _text(
        "--image-pull-policy", type=PULL_POLICY, default="Always", help="Always, IfNotPresent or Never."
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
        type=SECONDS,
        metavar="TEXT",
        help="Time after which a finished job is deleted, for example 1h; mpi-operator 0.8.2 deletes the launcher alone.",
    )
    running_timeout: int | None = option(
        "--running-timeout",
        type=PERIOD,
        metavar="TEXT",
        help="Time after which the job is stopped, for example 12h.",
    )
    beside: ArenaJobFlags

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
        type=MPI_IMPLEMENTATION,
        default="OpenMPI",
        help="MPI of the image: OpenMPI, MPICH or Intel.",
    )
    ssh_auth_mount_path: str = _text(
        "--ssh-auth-mount-path",
        type=ABSOLUTE_PATH,
        help="Folder of the ssh keys, where the image's user is not root; /root/.ssh by default.",
    )
    clean_task_policy: str = clean_task_policy("All")
    elastic: ElasticFlags


@dataclass(frozen=True, slots=True, kw_only=True)
class PyTorchFlags(CommonJobFlags):
    """What the user says of a PyTorch job; one of its workers is the master."""

    nproc_per_node: str = _text(
        "--nproc-per-node",
        type=Processes(),
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
        type=RuntimeName(),
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
    from arena_topo.model.job.job_spec import Compute, JobSpec, RunOptions

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
        tensorboard=tensorboard(flags.beside),
        model=trained_model(flags.beside),
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
    from arena_topo.model.job.job_spec import Compute, LauncherOptions, MpiOptions

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
    from arena_topo.model.job.job_spec import PodOptions

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
        code=code_sync(flags.beside),
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
