"""A job's plan for one snapshot: the planner's answer, as the record that the job carries."""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from arena_topo.errors import DoesNotFit
from arena_topo.jobs.placement.demand import demand_of
from arena_topo.jobs.placement.exact_gpus import choose_gpu_enforcement
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.jobs.placement.plan import plan_demand
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.objects import Object
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Infeasible, Slot, Verdict
from arena_topo.model.plan.plan_record import Enforcement, Pin, PlanRecord, Stage
from arena_topo.planner.impossible import never_fits


@dataclass(slots=True)
class JobPlanner:
    """Plans one job for each snapshot that it is given, and keeps the planner's last answer in ``verdict``."""

    job: Object
    options: PlanOptions
    enforcement: Enforcement
    companion_paths: tuple[str, ...] = ()
    pin: Pin = Pin.AUTO
    refuses_impossible: bool = False
    verdict: Verdict | None = field(default=None, init=False)

    def __call__(self, snapshot: Snapshot) -> PlanRecord:
        """Return the proposal for *snapshot*, or why the job waits.

        Raises ``UsageError``, and ``DoesNotFit`` for a job that could never fit, where it ``refuses_impossible`` ones.
        """
        # Whatever enforces a plan names nodes by their label: on one without it the workers would wait for ever.
        demand = replace(
            demand_of(self.job, snapshot, self.options),
            needs_hostname=self.enforcement is not Enforcement.NONE,
        )
        is_first, self.verdict = self.verdict is None, plan_demand(demand, snapshot, self.options)
        verdict = self.verdict
        if isinstance(verdict, Infeasible):
            # The first plan is made before anything is created, and only then a refusal leaves nothing behind.
            if is_first and self.refuses_impossible:
                _refuse_impossible(self.job["metadata"]["name"], demand, snapshot, self.options)
            return PlanRecord(
                stage=Stage.WAITING,
                enforcement=self.enforcement,
                waiting_reason=waiting_reason(verdict),
                requested_options=self.options.annotation,
                companion_paths=self.companion_paths,
            )
        return PlanRecord(
            stage=Stage.PROPOSED,
            slots=verdict.slots,
            worker_requests={
                **demand.requests,
                **({demand.gpu_resource: demand.gpus} if demand.gpus else {}),
            },
            enforcement=self.enforcement,
            hostnames=hostnames_of(verdict.slots, snapshot),
            level=verdict.level,
            domain=verdict.domain,
            requested_options=self.options.annotation,
            companion_paths=self.companion_paths,
            gpu_enforcement=choose_gpu_enforcement(
                verdict.slots,
                snapshot,
                demand.gpu_resource,
                enforcement=self.enforcement,
                pin=self.pin,
                share=self.options.share_gpus,
            ),
        )


def _refuse_impossible(name: str, demand: Demand, snapshot: Snapshot, options: PlanOptions) -> None:
    """Raise ``DoesNotFit`` where *demand* would not fit even on the idle cluster, every node of it in service."""
    if (never := never_fits(demand, snapshot, options.model)) is None:
        return
    raise can_never_fit(name, never.summary, never.remedies[:2])


def can_never_fit(name: str, why: str, remedies: Iterable[str] = ()) -> DoesNotFit:
    """Return the error for a job that not even the idle cluster could hold."""
    hint = "; ".join((*remedies, "where the cluster will grow: --expect-nodes"))
    return DoesNotFit(f"the job {name} can never fit: {why}", hint=hint)


def waiting_reason(verdict: Infeasible) -> str:
    """Return on one line why a job waits: the summary and the first two reasons."""
    return "; ".join((verdict.summary, *(reason.text for reason in verdict.reasons[:2])))


def hostnames_of(slots: Iterable[Slot], snapshot: Snapshot) -> dict[str, str]:
    """Return the hostname labels of the nodes of *slots*, where they differ from the nodes' names."""
    planned = {slot.node for slot in slots}
    labels = {node.name: node.hostname or node.name for node in snapshot.nodes if node.name in planned}
    # Most nodes are named like their label, and the annotations of a job may take 256 KiB in all.
    return {name: labels[name] for name in sorted(labels) if labels[name] != name}
