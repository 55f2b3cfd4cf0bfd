"""Choosing how a job is kept together and in place: the gang's back-end, and how its plan is enforced."""

from dataclasses import dataclass, replace

from arena_topo.errors import Forbidden, UsageError
from arena_topo.gang.auto import check_installed, choose_backend
from arena_topo.gang.backends import check_backend
from arena_topo.jobs.placement.enforcement import PinSupport, choose_enforcement
from arena_topo.jobs.submit.look import TargetCluster
from arena_topo.jobs.submit.options import GangRequest, PlaceOptions
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.kind import Kind
from arena_topo.model.keys import ACK_GPU
from arena_topo.model.plan.capabilities import ClusterFacts
from arena_topo.model.plan.plan_record import Enforcement, Pin

GATES, KUEUE = "gates", "kueue"

NO_GANG = (
    "no gang scheduler on this cluster can honour --gang: the workers only get Arena's labels and may start one by one; "
    "arena-topo doctor lists what is missing"
)


@dataclass(frozen=True, slots=True, kw_only=True)
class SubmitChoice:
    """How a job is kept together and in place.

    ``backend`` is the gang's, empty for none; ``enforcement`` is the plan's, None for a job that gets no plan of ours.
    ``warnings`` are what may surprise the user.
    """

    backend: str = ""
    enforcement: Enforcement | None = None
    warnings: tuple[str, ...] = ()


def choose(job: JobSpec, cluster: TargetCluster, place: PlaceOptions) -> SubmitChoice:
    """Return how *job* is kept together and in place on *cluster*.

    Raises ``UsageError`` for a gang scheduler that does not exist, and for a pin that nothing here can enforce.
    """
    facts, kind = cluster.facts, cluster.context.kind
    # A job that needs neither a gang nor a place: nothing was read that could be chosen by.
    if facts is None:
        return SubmitChoice()
    backend = _backend(facts, kind, place.gang) if job.gang else ""
    if not _is_planned(job, cluster, backend, place):
        return SubmitChoice(backend=backend)
    support = PinSupport(
        kind=kind,
        # An older policy pins MPIJobs as well as this program's own does.
        admission=facts.policy.mpijobs if "mpi" in kind.words else facts.policy.current,
        # A schema that the user may not read is taken to be a current one, which keeps gates.
        keeps_gates=facts.may_keep("schedulingGates"),
    )
    # Where the policy is installed, a suspended job that the policy pins starts together as well as gated workers do,
    # and a recreated worker then needs no arena-topo resume. A user who names the gates gets them.
    gates_are_the_gang = backend == GATES and (place.gang.scheduler == GATES or not support.admission)
    enforcement = choose_enforcement(place.pin, support, gates_are_the_gang=gates_are_the_gang)
    return SubmitChoice(backend=backend, enforcement=enforcement)


def without_plan(choice: SubmitChoice, missing: tuple[str, ...], place: PlaceOptions) -> SubmitChoice:
    """Return *choice* for a user who lacks *missing*, rights that a plan needs.

    Raises ``Forbidden`` where a plan was asked for.
    """
    reason = f"you may not {', '.join(missing)}"
    # Whoever asked for a place, or for gates, must not get a job without them. A plan that merely comes with
    # --gputopology can be left out, as the job runs without it too.
    if place.requested or place.gang.scheduler == GATES:
        raise Forbidden(
            f"the job cannot be planned: {reason}",
            hint="ask the cluster's admin for: arena-topo cluster setup --apply --users=user:YOU; "
            "or leave out the flags of the placement",
            status=403,
        )
    warning = f"the job is not planned, and it will not be pinned: {reason}"
    # Gates are opened by whoever planned the job: without a plan nothing would keep the gang together.
    backend = "" if choice.backend == GATES else choice.backend
    return replace(choice, backend=backend, enforcement=None, warnings=(*choice.warnings, warning))


def _backend(facts: ClusterFacts, kind: Kind, request: GangRequest) -> str:
    if request.scheduler != "auto":
        check_backend(request.scheduler)
        check_installed(facts, request.scheduler, kind=kind, queue=request.queue)
        return request.scheduler
    return choose_backend(facts, kind=kind, queue=request.queue).backend


def _is_planned(job: JobSpec, cluster: TargetCluster, backend: str, place: PlaceOptions) -> bool:
    """Whether *job* gets a plan of ours. Raises ``UsageError`` where pins are asked of a scheduler that has its own."""
    # Kueue assigns the topology itself, at admission, or asks our controller then: a plan of now would contradict it.
    if backend == KUEUE and not cluster.planned_queue and place.pin not in (Pin.AUTO, Pin.NONE):
        raise UsageError(
            f"--pin={place.pin.value} cannot be enforced under Kueue, which chooses the places of a job's workers itself",
            hint="use --require-topology or --prefer-topology, which are passed to Kueue",
        )
    # Gates, on the other hand, are nothing without a plan: it says when all workers fit.
    if backend in (GATES, KUEUE):
        return backend == GATES
    return place.requested or (job.topology and not _requests_ack_gpus(job, cluster))


def _requests_ack_gpus(job: JobSpec, cluster: TargetCluster) -> bool:
    """Whether ACK's scheduler will place the workers by GPU topology, which it does for its own resource alone."""
    return ACK_GPU in job.pod.devices or (job.gpus > 0 and cluster.context.gpu_resource == ACK_GPU)
