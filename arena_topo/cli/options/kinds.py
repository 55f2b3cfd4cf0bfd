"""The kinds of jobs as they are typed: ``JOB_KINDS`` has the flags of each, and what job they describe."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import click

from arena_topo.cli.declare import many, option, text
from arena_topo.cli.options.common import MOST, Notation, Whole, go_flag
from arena_topo.cli.options.job import (
    LABEL,
    QUANTITY,
    TEXT,
    CommonJobFlags,
    Pairs,
    at_least,
    common_job,
    one_of,
)
from arena_topo.errors import UsageError
from arena_topo.model import validation

if TYPE_CHECKING:
    from arena_topo.model.job import JobSpec, RoleSpec, RuntimeRef, WorkerRange


def _number(name: str, default: int, help: str) -> int:
    return option(name, type=Whole(), default=default, metavar="N", help=help, show_default=True)


def _clean_task_policy(default: str, *spellings: str) -> str:
    return text(
        "--clean-task-policy",
        *spellings,
        type=one_of("All", "Running", "None"),
        default=default,
        help="Pods to remove at the end: All, Running or None.",
    )


# The flags of a job that may have fewer workers than it could use, and the range that they give.


def _bound(name: str, help: str) -> int | None:
    return option(name, type=Whole(least=1), metavar="N", help=help)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
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


def node_count(text: str, flag: str) -> "tuple[int, int] | None":
    """Read torchrun's ``--nnodes``: a number, or ``MIN:MAX``."""
    least, _, most = text.partition(":")
    numbers = [
        int(word) if word.isascii() and word.isdecimal() and len(word) < 8 else 0
        for word in (least, most or least)
    ]
    if not 0 < numbers[0] <= numbers[1] <= MOST or text.endswith(":"):
        raise UsageError(
            f"{flag}: {text!r} is not a number of nodes",
            hint="use a number such as 4, or a range such as 2:8",
        )
    return numbers[0], numbers[1]


def with_nodes(
    elastic: "WorkerRange | None", nodes: tuple[int, int] | None, workers: int | None
) -> "tuple[WorkerRange | None, int | None]":
    """Return the range and the number of workers with torchrun's ``--nnodes``; None for no number.

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


# MPI jobs.


def _absolute_path(text: str, flag: str) -> str:
    """Return *text*, an absolute path in the container, or nothing."""
    if text and not text.startswith("/"):
        raise UsageError(f"{flag}: {text!r} is not an absolute path")
    return text


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class MpiFlags(CommonJobFlags):
    """The flags of an MPI job."""

    slots_per_worker: int | None = option(
        "--slots-per-worker", type=Whole(), metavar="N", help="Ranks per worker; one per GPU by default."
    )
    launcher_cpu: str = text("--launcher-cpu", type=QUANTITY, help="CPUs of the launcher.")
    launcher_memory: str = text("--launcher-memory", type=QUANTITY, help="Memory of the launcher.")
    launcher_selector: Pairs = many(
        "--launcher-selector",
        type=LABEL,
        metavar="LABEL=VALUE",
        help="Node label that the launcher needs, in place of --selector.",
    )
    mounts_on_launcher: bool = go_flag(
        "--mounts-on-launcher", help="Mount the claims of --data on the launcher too."
    )
    mpi_implementation: str = text(
        "--mpi-implementation",
        type=one_of("OpenMPI", "MPICH", "Intel"),
        default="OpenMPI",
        help="MPI of the image: OpenMPI, MPICH or Intel.",
    )
    ssh_auth_mount_path: str = text(
        "--ssh-auth-mount-path",
        type=Notation(_absolute_path),
        help="Folder of the ssh keys, where the image's user is not root; /root/.ssh by default.",
    )
    clean_task_policy: str = _clean_task_policy("All")
    elastic: ElasticFlags


def _mpi_job(job: "JobSpec", flags: MpiFlags) -> "JobSpec":
    from arena_topo.jobs.options import elastic_job, worker_range
    from arena_topo.model.job import Compute, LauncherOptions, MpiOptions

    slots = flags.slots_per_worker
    return replace(
        elastic_job(
            job,
            worker_range(flags.elastic.min_workers, flags.elastic.max_workers),
            flags.workers,
            grow=flags.elastic.grow,
        ),
        # A job without GPUs runs one rank per worker.
        slots=job.slots if slots is None else at_least("--slots-per-worker", slots, 1),
        launcher=LauncherOptions(
            compute=Compute(cpu=flags.launcher_cpu, memory=flags.launcher_memory),
            selector=dict(flags.launcher_selector),
            mounts=flags.mounts_on_launcher,
        ),
        run=replace(job.run, clean_policy=flags.clean_task_policy),
        mpi=MpiOptions(implementation=flags.mpi_implementation, ssh_auth_path=flags.ssh_auth_mount_path),
    )


# PyTorch jobs.


def _processes(text: str, flag: str) -> str:
    """How many processes torchrun starts in a pod, in its own words."""
    # Without it torchrun gets nothing.
    is_count = text.isascii() and text.isdecimal() and int(text) > 0
    if text and not is_count and text not in ("auto", "gpu", "cpu"):
        raise UsageError(
            f"{flag}: {text!r} is not a number of processes", hint="use a number, auto, gpu or cpu"
        )
    return text


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class PyTorchFlags(CommonJobFlags):
    """The flags of a PyTorch job; one of its workers is the master."""

    nproc_per_node: str = text(
        "--nproc-per-node",
        type=Notation(_processes, empty_is_default=True),
        help="Processes that torchrun starts in each pod: a number, auto, gpu or cpu.",
    )
    clean_task_policy: str = _clean_task_policy("Running")
    nnodes: tuple[int, int] | None = option(
        "--nnodes",
        type=Notation(node_count, empty_is_default=True),
        metavar="N|MIN:MAX",
        help="Number of pods in torchrun's words, or their range.",
    )
    elastic: ElasticFlags


def _pytorch_job(job: "JobSpec", flags: PyTorchFlags) -> "JobSpec":
    from arena_topo.jobs.options import elastic_job, worker_range

    elastic, count = with_nodes(
        worker_range(flags.elastic.min_workers, flags.elastic.max_workers), flags.nnodes, flags.workers
    )
    job = replace(
        job,
        run=replace(job.run, clean_policy=flags.clean_task_policy),
        processes=flags.nproc_per_node,
        workers=job.workers if count is None else count,
    )
    return elastic_job(job, elastic, count, grow=flags.elastic.grow)


# TrainJobs.


def _runtime(text: str, flag: str) -> "RuntimeRef | None":
    """Read the name of a runtime of the cluster, or ``trainingruntime/NAME`` of the namespace."""
    from arena_topo.model.job import RuntimeRef

    if not text:
        return None
    word, slash, name = text.rpartition("/")
    validation.check_object_name(flag, name)
    if slash and word.lower() not in _RUNTIMES:
        raise UsageError(
            f"{flag}: {text!r} is not a runtime",
            hint="give the name of a ClusterTrainingRuntime, or trainingruntime/NAME",
        )
    return RuntimeRef(name, _RUNTIMES[word.lower()]) if slash else RuntimeRef(name)


_RUNTIMES = {"trainingruntime": "TrainingRuntime", "clustertrainingruntime": "ClusterTrainingRuntime"}


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TrainFlags(CommonJobFlags):
    """The flags of a TrainJob; its runtime has the rest."""

    runtime: "RuntimeRef | None" = option(
        "--runtime",
        type=Notation(_runtime),
        metavar="NAME",
        help="Runtime that has the pods: a ClusterTrainingRuntime, or trainingruntime/NAME of the namespace (required).",
    )
    nproc_per_node: int | None = option(
        "--nproc-per-node",
        type=Whole(),
        metavar="N",
        help="Processes that each pod starts; the runtime's by default.",
    )


def _train_job(job: "JobSpec", flags: TrainFlags) -> "JobSpec":
    processes = flags.nproc_per_node
    return replace(
        job,
        runtime=flags.runtime,
        processes="" if processes is None else str(at_least("--nproc-per-node", processes, 1)),
    )


# TensorFlow jobs, whose roles have flags of their own.
#
# Workers and chief have ``--gpus`` GPUs, and so has the evaluator where ``--evaluator-gpus`` says nothing
# else, as Arena has it. A selector of a role goes in place of ``--selector``, not next to it.

_AFFINITY_POLICIES = ("none", "spread", "binpack")
_AFFINITY_CONSTRAINTS = ("preferred", "required")
_ROLES = {"worker": "Worker", "ps": "PS", "chief": "Chief", "evaluator": "Evaluator"}
_HIGHEST_PORT = 65_535


_SEQUENCE = "job-role-sequence"
"""The annotation in which Arena's operator looks for the order of roles."""


def role_sequence(text: str, flag: str) -> tuple[str, ...]:
    """Roles in the order in which their pods are created, by name or initial: ``Worker,PS`` or ``w,p``."""
    named = []
    for word in text.split(","):
        key = word.strip().lower()
        role = next((role for name, role in _ROLES.items() if key in (name, name[0])), None)
        if role is None:
            raise UsageError(
                f"{flag}: unknown role {word.strip()!r}",
                hint="use Worker (w), PS (p), Chief (c) and Evaluator (e), with commas between them",
            )
        if role in named:
            raise UsageError(f"{flag}: the role {role} is given twice")
        named.append(role)
    return tuple(named)


def _port(*names: str, help: str) -> int | None:
    return option(*names, type=Whole(1, _HIGHEST_PORT), metavar="N", help=help)


def _quantity(*names: str, help: str) -> str:
    return text(*names, type=QUANTITY, help=help)


def _labels(name: str, help: str) -> Pairs:
    return many(name, type=LABEL, metavar="LABEL=VALUE", help=f"{help}, in place of --selector.")


def _policy(name: str, help: str) -> str:
    return option(name, type=click.Choice(_AFFINITY_POLICIES), default="none", show_default=True, help=help)


def _constraint(name: str, help: str) -> str:
    return option(
        name, type=click.Choice(_AFFINITY_CONSTRAINTS), default="preferred", show_default=True, help=help
    )


# The camel case of some flags is Arena's older spelling.
@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TfRoleFlags:
    """The flags of each role, next to those of all pods."""

    worker_image: str = text("--worker-image", "--workerImage", type=TEXT, help="Image of the workers.")
    worker_port: int | None = _port("--worker-port", "--workerPort", help="Port of the workers.")
    worker_cpu: str = _quantity("--worker-cpu", "--workerCpu", help="CPUs per worker, for example 8 or 500m.")
    worker_cpu_limit: str = _quantity("--worker-cpu-limit", help="Most CPUs of a worker.")
    worker_memory: str = _quantity(
        "--worker-memory", "--workerMemory", help="Memory per worker, for example 64Gi."
    )
    worker_memory_limit: str = _quantity("--worker-memory-limit", help="Most memory of a worker.")
    worker_selector: Pairs = _labels("--worker-selector", "Node label that workers need")
    worker_affinity_policy: str = _policy(
        "--worker-affinity-policy",
        "How workers share nodes; spread: few on each; binpack: few nodes, which is the choice without it as well.",
    )
    worker_affinity_constraint: str = _constraint(
        "--worker-affinity-constraint",
        "required: spread puts one worker on a node, and binpack all on one node.",
    )
    ps: int = _number("--ps", 0, "Number of parameter servers.")
    ps_image: str = text("--ps-image", "--psImage", type=TEXT, help="Image of the parameter servers.")
    ps_port: int | None = _port("--ps-port", "--psPort", help="Port of the parameter servers.")
    ps_cpu: str = _quantity("--ps-cpu", "--psCpu", help="CPUs per parameter server.")
    ps_cpu_limit: str = _quantity("--ps-cpu-limit", help="Most CPUs of a parameter server.")
    ps_memory: str = _quantity("--ps-memory", "--psMemory", help="Memory per parameter server.")
    ps_memory_limit: str = _quantity("--ps-memory-limit", help="Most memory of a parameter server.")
    ps_gpus: int = _number("--ps-gpus", 0, "GPUs per parameter server.")
    ps_selector: Pairs = _labels("--ps-selector", "Node label that parameter servers need")
    ps_affinity_policy: str = _policy(
        "--ps-affinity-policy",
        "How parameter servers share nodes; none: as many on a node as its NIC serves; spread: few on each.",
    )
    ps_affinity_constraint: str = _constraint(
        "--ps-affinity-constraint", "required: spread puts one parameter server on a node."
    )
    chief: bool = go_flag("--chief", help="Run a chief next to the workers.")
    chief_port: int | None = _port("--chief-port", "--chiefPort", help="Port of the chief.")
    chief_cpu: str = _quantity("--chief-cpu", "--ChiefCpu", help="CPUs of the chief.")
    chief_cpu_limit: str = _quantity("--chief-cpu-limit", help="Most CPUs of the chief.")
    chief_memory: str = _quantity("--chief-memory", "--ChiefMemory", help="Memory of the chief.")
    chief_memory_limit: str = _quantity("--chief-memory-limit", help="Most memory of the chief.")
    chief_selector: Pairs = _labels("--chief-selector", "Node label that the chief needs")
    evaluator: bool = go_flag("--evaluator", help="Run an evaluator, on any node.")
    evaluator_cpu: str = _quantity("--evaluator-cpu", "--evaluatorCpu", help="CPUs of the evaluator.")
    evaluator_cpu_limit: str = _quantity("--evaluator-cpu-limit", help="Most CPUs of the evaluator.")
    evaluator_memory: str = _quantity(
        "--evaluator-memory", "--evaluatorMemory", help="Memory of the evaluator."
    )
    evaluator_memory_limit: str = _quantity("--evaluator-memory-limit", help="Most memory of the evaluator.")
    evaluator_gpus: int | None = option(
        "--evaluator-gpus", type=Whole(), metavar="N", help="GPUs of the evaluator; --gpus by default."
    )
    evaluator_selector: Pairs = _labels("--evaluator-selector", "Node label that the evaluator needs")
    role_sequence: tuple[str, ...] = option(
        "--role-sequence",
        type=Notation(role_sequence, empty_is_default=True),
        default=(),
        metavar="ROLES",
        help="Order in which Arena's operator creates the roles, such as Worker,PS,Chief,Evaluator or w,p,c,e.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class TfFlags(CommonJobFlags):
    """The flags of a TensorFlow job."""

    roles: TfRoleFlags
    success_policy: str = option(
        "--success-policy",
        type=click.Choice(["ChiefWorker", "AllWorkers"]),
        default="ChiefWorker",
        show_default=True,
        help="Whose end is the job's: the chief's or, without one, worker 0's; or that of all workers.",
    )
    clean_task_policy: str = _clean_task_policy("Running", "--cleanTaskPolicy")


def tf_roles(flags: TfFlags) -> "tuple[RoleSpec, ...]":
    """Return the roles that *flags* describe, the chief first; raises ``UsageError``."""
    roles = flags.roles
    # A chief trains like a worker, and may be the only one.
    at_least("--workers", flags.fixed_workers, 0 if roles.chief else 1)
    for flag, number in (
        ("--gpus", flags.gpus),
        ("--ps", roles.ps),
        ("--ps-gpus", roles.ps_gpus),
        ("--evaluator-gpus", roles.evaluator_gpus or 0),
    ):
        at_least(flag, number, 0)
    if roles.ps_affinity_policy == "binpack":
        raise UsageError(
            "--ps-affinity-policy=binpack is not supported: servers that share a NIC make every step wait for it",
            hint="leave it out: parameter servers take as few nodes as their NICs allow",
        )
    own_gpus = flags.gpus if roles.evaluator_gpus is None else roles.evaluator_gpus
    counts = (
        ("chief", int(roles.chief), flags.gpus),
        ("worker", flags.fixed_workers, flags.gpus),
        ("ps", roles.ps, roles.ps_gpus),
        ("evaluator", int(roles.evaluator), own_gpus),
    )
    return tuple(_role(flags, name, pods, gpus) for name, pods, gpus in counts if pods)


def _role(flags: TfFlags, name: str, pods: int, gpus: int) -> "RoleSpec":
    from arena_topo.model.job import Compute, RoleSpec

    def said(what: str, default: Any) -> Any:
        return getattr(flags.roles, f"{name}_{what}", default)

    # Parameter servers do not train: what is said of all pods is said of the others.
    is_server = name == "ps"
    limits = Compute(cpu=said("cpu_limit", ""), memory=said("memory_limit", ""))
    # A limit without a request is the request as well, as the API server has it; so it comes before what is
    # said of all.
    cpu = "" if is_server or limits.cpu else flags.cpu
    memory = "" if is_server or limits.memory else flags.memory
    policy = said("affinity_policy", "none")
    return RoleSpec(
        name=name,
        pods=pods,
        gpus=gpus,
        image=flags.roles.ps_image if is_server else flags.roles.worker_image,
        port=said("port", None),
        compute=Compute(cpu=said("cpu", "") or cpu, memory=said("memory", "") or memory),
        limits=limits,
        selector=dict(said("selector", ())),
        affinity="" if policy == "none" else policy,
        required=said("affinity_constraint", "preferred") == "required",
    )


def _tf_job(job: "JobSpec", flags: TfFlags) -> "JobSpec":
    roles = tf_roles(flags)
    if unnamed := [role.name for role in roles if not (role.image or flags.image)]:
        raise UsageError(f"--image must be set, or an image for {unnamed[0]}", hint=_NEEDED["image"])
    sequence = {_SEQUENCE: ",".join(flags.roles.role_sequence)} if flags.roles.role_sequence else {}
    return replace(
        job,
        image=flags.image or flags.roles.worker_image,
        roles=roles,
        pod=replace(job.pod, annotations={**job.pod.annotations, **sequence}),
        run=replace(
            job.run,
            clean_policy=flags.clean_task_policy,
            # The API has no word for the policy that is the default.
            success_policy="" if flags.success_policy == "ChiefWorker" else flags.success_policy,
        ),
    )


# The table of the kinds, and the job that the flags of any of them describe.


@dataclass(frozen=True, slots=True, kw_only=True, repr=False, eq=False)
class JobKind:
    """A kind of job as it is typed: ``submit WORD`` with *flags*; *described* adds what only this kind has.

    *needed* is the flag that it cannot do without, next to its name; a runtime has an image, and a command as
    well.
    """

    word: str
    aliases: tuple[str, ...] = ()
    """Other words for it, Arena's."""
    kind: str
    flags: type[CommonJobFlags] = CommonJobFlags
    described: "Callable[[JobSpec, Any], JobSpec]" = lambda job, _: job
    needed: str = "image"
    least_workers: int = 1


JOB_KINDS: Mapping[str, JobKind] = {
    kind.word: kind
    for kind in (
        JobKind(word="mpi", aliases=("mpijob", "mj"), kind="MPIJob", flags=MpiFlags, described=_mpi_job),
        JobKind(
            word="pytorch",
            aliases=("pytorchjob", "py"),
            kind="PyTorchJob",
            flags=PyTorchFlags,
            described=_pytorch_job,
        ),
        # Each role may have an image of its own, and a chief may be the only one that trains.
        JobKind(
            word="tf",
            aliases=("tfjob",),
            kind="TFJob",
            flags=TfFlags,
            described=_tf_job,
            needed="",
            least_workers=0,
        ),
        JobKind(
            word="train",
            aliases=("trainjob",),
            kind="TrainJob",
            flags=TrainFlags,
            described=_train_job,
            needed="runtime",
        ),
        JobKind(word="jobset", kind="JobSet"),
        JobKind(word="job", kind="Job"),
    )
}
KIND_ALIASES = {kind.word: kind.aliases for kind in JOB_KINDS.values() if kind.aliases}

_NEEDED = {
    "image": "for example --image=registry.example.com/train:1.0",
    "runtime": "for example --runtime=torch-distributed; kubectl get clustertrainingruntimes lists those of the cluster",
}


def described_job(
    kind: JobKind,
    flags: CommonJobFlags,
    *,
    words: Sequence[str],
    argv: tuple[str, ...] | None,
    namespace: str,
) -> "JobSpec":
    """Return the job of *kind* that *flags* describe.

    *words* are the arguments outside of flags, joined as Arena joins them and run by a shell; *argv* is what
    followed ``--``, run as it is. Raises ``UsageError``.
    """
    if kind.needed and not getattr(flags, kind.needed):
        raise UsageError(f"--{kind.needed} must be set", hint=_NEEDED[kind.needed])
    has_own_command = kind.needed == "runtime"
    command = () if has_own_command and not (argv or any(words)) else _command(flags.shell, words, argv)
    job = common_job(flags, command=command, namespace=namespace, least_workers=kind.least_workers)
    return kind.described(replace(job, kind=kind.kind), flags)


def plannable_job(
    kind: JobKind,
    flags: CommonJobFlags,
    *,
    words: Sequence[str],
    argv: tuple[str, ...] | None,
    namespace: str,
) -> "JobSpec":
    """Return the job; what a plan ignores may be missing, and gets any valid value. Raises ``UsageError``."""
    from arena_topo.model.job import RuntimeRef

    given: dict[str, Any] = {"name": flags.name or "job", "image": flags.image or "none"}
    if kind.needed == "runtime":
        given["runtime"] = getattr(flags, "runtime", None) or RuntimeRef("none")
    argv = ("true",) if argv is None and not words else argv
    job = replace(flags, **given)
    return described_job(kind, job, words=words, argv=argv, namespace=namespace or "default")


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
