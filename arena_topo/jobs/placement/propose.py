"""A job's plan for one snapshot: the planner's answer, as the record that the job carries."""

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from arena_topo.errors import ArenaTopoError, DoesNotFit
from arena_topo.jobs.placement.demand import Question, asked_roles, question_of
from arena_topo.jobs.placement.exact_gpus import choose_gpu_enforcement
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.jobs.placement.plan import plan_question
from arena_topo.kinds.elastic import worker_range
from arena_topo.kinds.table import kind_of
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.objects import Object
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Infeasible, Placement, Slot, Verdict
from arena_topo.model.plan.plan_record import Enforcement, Pin, PlannedRole, PlanRecord, Stage
from arena_topo.model.plan.roles import GangInfeasible, GangPlacement, GangVerdict
from arena_topo.planner.impossible import never_fits
from arena_topo.topology.raw_objects import Malformed

UNREADABLE = (ArenaTopoError, ValueError, Malformed)
"""What planning a job may raise that others wrote: it is the job's own matter, and must not stop the others."""


@dataclass(slots=True)
class JobPlanner:
    """Plans one job for each snapshot that it is given, and keeps the planner's last answer in ``verdict``.

    ``plan`` is the planner; whoever plans many jobs has one that remembers the cluster, and may know the ``question`` already.
    """

    job: Object
    options: PlanOptions
    enforcement: Enforcement
    companion_paths: tuple[str, ...] = ()
    pin: Pin = Pin.AUTO
    refuses_impossible: bool = False
    plan: Callable[[Question, Snapshot, PlanOptions], Verdict | GangVerdict] = plan_question
    question: Question | None = None
    verdict: Verdict | GangVerdict | None = field(default=None, init=False)

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the proposal for *snapshot*, or why the job waits.

        Raises ``UsageError``, and ``DoesNotFit`` for a job that could never fit, where it ``refuses_impossible`` ones.
        """
        # Whatever enforces a plan names nodes by their label: on one without it the workers would wait for ever.
        question = _pinned_by_hostname(
            self.question or question_of(self.job, snapshot, self.options),
            needed=self.enforcement is not Enforcement.NONE,
        )
        limits = worker_range(kind_of(self.job), self.job)
        least = limits.least if limits else 0
        is_first, verdict = (
            self.verdict is None,
            plan_question(question, snapshot, self.options, least=least)
            if least
            else self.plan(question, snapshot, self.options),
        )
        self.verdict = verdict
        if isinstance(verdict, Infeasible | GangInfeasible):
            # The first plan is made before anything is created, and only then a refusal leaves nothing behind.
            if is_first and self.refuses_impossible:
                fewest = _fewest(question, least)
                _refuse_impossible(self.job["metadata"]["name"], fewest, snapshot, self.options)
            return PlanRecord(
                stage=Stage.WAITING,
                enforcement=self.enforcement,
                waiting_reason=waiting_reason(verdict),
                requested_options=self.options.annotation,
                companion_paths=self.companion_paths,
            )
        slots, roles = numbered_slots(verdict), planned_roles(question)
        return PlanRecord(
            stage=Stage.PROPOSED,
            slots=slots,
            worker_requests=roles[0].requests,
            # Pods that are all alike need no roles to be told apart.
            roles=roles if len(roles) > 1 else (),
            enforcement=self.enforcement,
            hostnames=hostnames_of(slots, snapshot),
            level=verdict.level,
            domain=verdict.domain,
            requested_options=self.options.annotation,
            companion_paths=self.companion_paths,
            gpu_enforcement=choose_gpu_enforcement(
                slots,
                snapshot,
                _gpu_resource(question),
                enforcement=self.enforcement,
                pin=self.pin,
                share=self.options.share_gpus,
            ),
        )


def _pinned_by_hostname(question: Question, *, needed: bool) -> Question:
    """Return *question* for nodes that have their hostname label, where that is *needed*."""
    if isinstance(question, Demand):
        return replace(question, needs_hostname=needed)
    return replace(question, roles=tuple(replace(role, needs_hostname=needed) for role in question.roles))


def _fewest(question: Question, least: int) -> Question:
    """Return *question* for the fewest pods that will do; *least* is 0 for a job of a fixed size."""
    if not least or not isinstance(question, Demand):
        return question
    return replace(question, workers=min(least, question.workers))


def numbered_slots(verdict: Placement | GangPlacement) -> tuple[Slot, ...]:
    """Return the place of every pod by its number, those of the first role first.

    For example, with one chief and two servers, server 1 is number 2.
    """
    if isinstance(verdict, Placement):
        return verdict.slots
    # Of a node that does not say which of its GPUs are free, a pod without GPUs takes none all the same.
    slots = (slot if role.gpus else slot._replace(gpus=()) for role in verdict.roles for slot in role.slots)
    return tuple(slot._replace(worker=number) for number, slot in enumerate(slots))


def planned_roles(question: Question) -> tuple[PlannedRole, ...]:
    """Return the roles of *question*, with what a pod of each requests."""
    return tuple(
        PlannedRole(
            name,
            demand.workers,
            {**demand.requests, **({demand.gpu_resource: demand.gpus} if demand.gpus else {})},
        )
        for name, demand in asked_roles(question)
    )


def _gpu_resource(question: Question) -> str:
    """Return the resource by which the pods request their GPUs, empty where none has any."""
    return next((demand.gpu_resource for _, demand in asked_roles(question) if demand.gpus), "")


def _refuse_impossible(name: str, question: Question, snapshot: Snapshot, options: PlanOptions) -> None:
    """Raise ``DoesNotFit`` where the gang would not fit even on the idle cluster, every node of it in service."""
    if (never := never_fits(question, snapshot, options.model)) is None:
        return
    raise can_never_fit(name, never.summary, never.remedies[:2])


def can_never_fit(name: str, why: str, remedies: Iterable[str] = ()) -> DoesNotFit:
    """Return the error for a job that not even the idle cluster could hold."""
    hint = "; ".join((*remedies, "where the cluster will grow: --expect-nodes"))
    return DoesNotFit(f"the job {name} can never fit: {why}", hint=hint)


def waiting_reason(verdict: Infeasible | GangInfeasible) -> str:
    """Return on one line why a job waits: the summary and the first two reasons."""
    if isinstance(verdict, GangInfeasible):
        # A role that fits by itself gives no reason.
        reasons = [reason for role in verdict.roles if role.answer for reason in role.answer.reasons]
    else:
        reasons = list(verdict.reasons)
    return "; ".join((verdict.summary, *(reason.text for reason in reasons[:2])))


def hostnames_of(slots: Iterable[Slot], snapshot: Snapshot) -> dict[str, str]:
    """Return the hostname labels of the nodes of *slots*, where they differ from the nodes' names."""
    planned = {slot.node for slot in slots}
    labels = {node.name: node.hostname or node.name for node in snapshot.nodes if node.name in planned}
    # Most nodes are named like their label, and the annotations of a job may take 256 KiB in all.
    return {name: labels[name] for name in sorted(labels) if labels[name] != name}
