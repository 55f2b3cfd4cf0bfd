"""The job that the flags of any kind describe, as it is submitted or only planned."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import click

from arena_topo.cli.declare import many, option, text
from arena_topo.cli.options.common import Notation, Whole, go_flag
from arena_topo.cli.options.job import (
    LABEL,
    QUANTITY,
    TEXT,
    CommonJobFlags,
    TrainFlags,
    clean_task_policy,
    job_spec,
)
from arena_topo.errors import UsageError

if TYPE_CHECKING:
    from arena_topo.model.job import JobSpec, RoleSpec


# The flags of the roles of a TensorFlow job, Arena's, and the roles that they describe.
#
# Workers and chief have ``--gpus`` GPUs, and so has the evaluator where ``--evaluator-gpus`` says nothing else, as Arena has
# it. A selector of a role goes in place of ``--selector``, not next to it.

Pairs = tuple[tuple[str, str], ...]

_AFFINITY_POLICIES = ("none", "spread", "binpack")
_AFFINITY_CONSTRAINTS = ("preferred", "required")
_ROLES = {"worker": "Worker", "ps": "PS", "chief": "Chief", "evaluator": "Evaluator"}
_HIGHEST_PORT = 65_535


class RoleSequence(Notation[tuple[str, ...]]):
    """Roles in the order in which their pods are created, by name or first letter: ``Worker,PS`` or ``w,p``."""

    name = "roles"
    empty_is_default = True

    def read(self, text: str, flag: str) -> tuple[str, ...]:
        """Return the names of the roles as the operator spells them."""
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


def _count(name: str, default: int, help: str) -> int:
    return option(name, type=Whole(), default=default, metavar="N", help=help, show_default=True)


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
@dataclass(frozen=True, slots=True, kw_only=True)
class TfRoleFlags:
    """What the user says of each role, next to what is said of all pods."""

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
    ps: int = _count("--ps", 0, "Number of parameter servers.")
    ps_image: str = text("--ps-image", "--psImage", type=TEXT, help="Image of the parameter servers.")
    ps_port: int | None = _port("--ps-port", "--psPort", help="Port of the parameter servers.")
    ps_cpu: str = _quantity("--ps-cpu", "--psCpu", help="CPUs per parameter server.")
    ps_cpu_limit: str = _quantity("--ps-cpu-limit", help="Most CPUs of a parameter server.")
    ps_memory: str = _quantity("--ps-memory", "--psMemory", help="Memory per parameter server.")
    ps_memory_limit: str = _quantity("--ps-memory-limit", help="Most memory of a parameter server.")
    ps_gpus: int = _count("--ps-gpus", 0, "GPUs per parameter server.")
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
        type=RoleSequence(),
        default=(),
        metavar="ROLES",
        help="Order in which Arena's operator creates the roles, such as Worker,PS,Chief,Evaluator or w,p,c,e.",
    )


def tf_roles(flags: TfRoleFlags, pods: "AllPods") -> "tuple[RoleSpec, ...]":
    """Return the roles that *flags* describe, the chief first; raises ``UsageError``."""
    # A chief trains like a worker, and may be the only one.
    for flag, number, least in (
        ("--workers", pods.workers, 0 if flags.chief else 1),
        ("--gpus", pods.gpus, 0),
        ("--ps", flags.ps, 0),
        ("--ps-gpus", flags.ps_gpus, 0),
        ("--evaluator-gpus", flags.evaluator_gpus or 0, 0),
    ):
        if number < least:
            raise UsageError(f"{flag} is invalid: {number} is less than {least}")
    if flags.ps_affinity_policy == "binpack":
        raise UsageError(
            "--ps-affinity-policy=binpack is not supported: servers that share a NIC make every step wait for it",
            hint="leave it out: parameter servers take as few nodes as their NICs allow",
        )
    return tuple(_roles(flags, pods))


@dataclass(frozen=True, slots=True, kw_only=True)
class AllPods:
    """What is said of all that train: the number of workers, and the GPUs, CPUs and memory of each unless its role says it."""

    workers: int
    gpus: int
    cpu: str = ""
    memory: str = ""


def _roles(flags: TfRoleFlags, pods: AllPods) -> Iterator["RoleSpec"]:
    from arena_topo.model.job import Compute, RoleSpec

    def request(cpu: str, memory: str, limits: Compute) -> Compute:
        # A limit alone is the request as well, as the API server has it; before it came what is said of all pods.
        return Compute(
            cpu=cpu or ("" if limits.cpu else pods.cpu),
            memory=memory or ("" if limits.memory else pods.memory),
        )

    if flags.chief:
        limits = Compute(cpu=flags.chief_cpu_limit, memory=flags.chief_memory_limit)
        yield RoleSpec(
            name="chief",
            gpus=pods.gpus,
            image=flags.worker_image,
            port=flags.chief_port,
            compute=request(flags.chief_cpu, flags.chief_memory, limits),
            limits=limits,
            selector=dict(flags.chief_selector),
        )
    if pods.workers:
        limits = Compute(cpu=flags.worker_cpu_limit, memory=flags.worker_memory_limit)
        yield RoleSpec(
            name="worker",
            pods=pods.workers,
            gpus=pods.gpus,
            image=flags.worker_image,
            port=flags.worker_port,
            compute=request(flags.worker_cpu, flags.worker_memory, limits),
            limits=limits,
            selector=dict(flags.worker_selector),
            affinity=_affinity(flags.worker_affinity_policy),
            required=flags.worker_affinity_constraint == "required",
        )
    if flags.ps:
        yield RoleSpec(
            name="ps",
            pods=flags.ps,
            gpus=flags.ps_gpus,
            image=flags.ps_image,
            port=flags.ps_port,
            compute=Compute(cpu=flags.ps_cpu, memory=flags.ps_memory),
            limits=Compute(cpu=flags.ps_cpu_limit, memory=flags.ps_memory_limit),
            selector=dict(flags.ps_selector),
            affinity=_affinity(flags.ps_affinity_policy),
            required=flags.ps_affinity_constraint == "required",
        )
    if flags.evaluator:
        limits = Compute(cpu=flags.evaluator_cpu_limit, memory=flags.evaluator_memory_limit)
        yield RoleSpec(
            name="evaluator",
            gpus=pods.gpus if flags.evaluator_gpus is None else flags.evaluator_gpus,
            image=flags.worker_image,
            compute=request(flags.evaluator_cpu, flags.evaluator_memory, limits),
            limits=limits,
            selector=dict(flags.evaluator_selector),
        )


def _affinity(policy: str) -> str:
    return "" if policy == "none" else policy


# The flags of a TensorFlow job, Arena's, and the job that they describe.

_SEQUENCE = "job-role-sequence"
"""The annotation in which Arena's operator looks for the order of roles."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TfFlags(CommonJobFlags):
    """What the user says of a TensorFlow job."""

    roles: TfRoleFlags
    success_policy: str = option(
        "--success-policy",
        type=click.Choice(["ChiefWorker", "AllWorkers"]),
        default="ChiefWorker",
        show_default=True,
        help="Whose end is the job's: the chief's or, without one, worker 0's; or that of all workers.",
    )
    clean_task_policy: str = clean_task_policy("Running", "--cleanTaskPolicy")


def tf_job(
    flags: TfFlags, *, words: Sequence[str], argv: tuple[str, ...] | None, namespace: str
) -> "JobSpec":
    """Return the job that *flags* describe, as ``job_spec`` does. Raises ``UsageError``."""
    pods = AllPods(workers=flags.fixed_workers, gpus=flags.gpus, cpu=flags.cpu, memory=flags.memory)
    roles = tf_roles(flags.roles, pods)
    # Every role may have an image of its own, and then the job needs none.
    image = flags.image or next((role.image for role in roles if role.image), "")
    job = job_spec(replace(flags, image=image), words=words, argv=argv, namespace=namespace, least_workers=0)
    if unnamed := [role.name for role in roles if not (role.image or flags.image)]:
        raise UsageError(f"--image must be set, or an image for {unnamed[0]}")
    sequence = {_SEQUENCE: ",".join(flags.roles.role_sequence)} if flags.roles.role_sequence else {}
    return replace(
        job,
        kind="TFJob",
        roles=roles,
        pod=replace(job.pod, annotations={**job.pod.annotations, **sequence}),
        run=replace(
            job.run,
            clean_policy=flags.clean_task_policy,
            # The API has no word for the policy that is the default.
            success_policy="" if flags.success_policy == "ChiefWorker" else flags.success_policy,
        ),
    )


KIND_ALIASES = {
    "mpi": ("mpijob", "mj"),
    "pytorch": ("pytorchjob", "py"),
    "tf": ("tfjob",),
    "train": ("trainjob",),
}
"""Other words for the kinds of jobs, Arena's first, by the word that the help shows."""


def described_job(
    flags: CommonJobFlags, *, words: Sequence[str], argv: tuple[str, ...] | None, namespace: str
) -> "JobSpec":
    """Return the job that *flags* describe, as ``job_spec`` does. Raises ``UsageError``."""
    if isinstance(flags, TfFlags):
        return tf_job(flags, words=words, argv=argv, namespace=namespace)
    return job_spec(flags, words=words, argv=argv, namespace=namespace)


def plannable_job(
    flags: CommonJobFlags, *, words: Sequence[str], argv: tuple[str, ...] | None, namespace: str
) -> "JobSpec":
    """Return the job; what a plan does not depend on may be left out, and gets any valid value. Raises ``UsageError``."""
    job = replace(flags, name=flags.name or "job", image=flags.image or "none")
    if isinstance(job, TrainFlags):
        from arena_topo.model.job import RuntimeRef

        job = replace(job, runtime=job.runtime or RuntimeRef("none"))
    argv = ("true",) if argv is None and not words else argv
    return described_job(job, words=words, argv=argv, namespace=namespace or "default")
