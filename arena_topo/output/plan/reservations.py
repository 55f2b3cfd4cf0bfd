"""Who has reserved what, and since when: for ``top node`` and ``doctor``."""

from collections.abc import Collection, Iterator, Sequence

from arena_topo.model.cluster.finding import Finding, State
from arena_topo.model.notation.printable import printable
from arena_topo.model.notation.words import plural, written_amount
from arena_topo.planner.reservations.conflicts import OtherPlan, requested

_MOST_PLANS = 20
_MOST_NODES = 4


def reservation_lines(plans: Sequence[OtherPlan], nodes: Collection[str]) -> Iterator[str]:
    """Yield a line for each of *plans* that reserves something on *nodes*."""
    concerned = [plan for plan in plans if any(slot.node in nodes for slot in plan.reserved)]
    for plan in concerned[:_MOST_PLANS]:
        yield f"reserved for {_words(plan)}"
    if len(concerned) > _MOST_PLANS:
        yield f"and {len(concerned) - _MOST_PLANS} more jobs have reservations; arena-topo doctor sums them up"


def reservations_finding(plans: Sequence[OtherPlan] | None) -> Finding:
    """Return what *plans* reserve, as ``doctor`` reports it; None are plans that the user may not see."""
    looked_at = "the annotation arena-topo.dev/plan of jobs, their specs and their namespaces' quotas"
    if plans is None:
        return Finding(
            topic="Reservations",
            state=State.UNKNOWN,
            found="you may not list MPIJobs, pods and nodes of all namespaces",
            evidence=looked_at,
            follows="plans may take what is reserved for others",
        )
    if not plans:
        return Finding(
            topic="Reservations",
            state=State.OK,
            found="none",
            evidence=looked_at,
            follows="every GPU that no pod requests can be planned with",
        )
    workers = sum(len(plan.reserved) for plan in plans)
    shown = "; ".join(map(_words, plans[:_MOST_PLANS]))
    more = f"; and {len(plans) - _MOST_PLANS} more" if len(plans) > _MOST_PLANS else ""
    oldest = plans[0]
    return Finding(
        topic="Reservations",
        state=State.OK,
        found=f"{plural(len(plans), 'job')} reserve{'s' if len(plans) == 1 else ''} places for "
        f"{plural(workers, 'worker')} without a node",
        evidence=f"{shown}{more}",
        follows="plans leave these places out until the pods run or the jobs end",
        command=printable(f"arena-topo get -n {oldest.namespace} {oldest.name}"),
    )


def _words(plan: OtherPlan) -> str:
    """Return ``team/train: 8 nvidia.com/gpu on gpu-1, gpu-2, confirmed, since 2026-11-21T08:00:00Z``."""
    reserved = plan.reserved
    nodes = list(dict.fromkeys(slot.node for slot in reserved))
    where = ", ".join(nodes[:_MOST_NODES]) + (
        f" and {len(nodes) - _MOST_NODES} more" * (len(nodes) > _MOST_NODES)
    )
    total = requested(plan.record, reserved)
    gpus = {name: amount for name, amount in total.items() if "gpu" in name and amount}
    amounts = [written_amount(name, amount) for name, amount in sorted(gpus.items())]
    what = ", ".join(amounts) or plural(len(reserved), "worker")
    # Names are whatever somebody else's objects say.
    return printable(
        f"{plan.namespace}/{plan.name}: {what} on {where}, {plan.record.stage.value}, since {plan.since}"
    )
