"""Gangs that could never fit, however long they wait: those that the idle cluster could not hold either."""

from dataclasses import replace

from arena_topo.model.cluster.snapshot import GpuNode, Snapshot
from arena_topo.model.notation.words import plural
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.placement import Infeasible, Verdict
from arena_topo.model.plan.roles import GangDemand, GangInfeasible, GangVerdict
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.nodes.fleet import emptied, make_fleet
from arena_topo.planner.plan import plan_on
from arena_topo.planner.roles.plan_gang import plan_gang_on

_OF_KUBERNETES = "node.kubernetes.io/"
"""The prefix of the taints that come and go with a node's state: not ready, cordoned, under pressure."""


def never_fits(
    demand: Demand | GangDemand, snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL
) -> Infeasible | GangInfeasible | None:
    """Return why *demand* could never fit on the nodes of *snapshot*, None where it could once they are free.

    All nodes count as idle and in service: a drained one comes back, a broken GPU is replaced, and other pods end.
    For example, 20 workers of 1 GPU could never fit on two nodes of 8, but 16 could.
    """
    nodes = tuple(map(_in_service, snapshot.nodes))
    fleet = emptied(make_fleet(replace(snapshot, nodes=nodes), model))
    answer: Verdict | GangVerdict
    if isinstance(demand, GangDemand):
        answer = plan_gang_on(demand, fleet)
    else:
        # Groups of ranks decide where workers go, and never whether they fit.
        answer = plan_on(replace(demand, parallel=None), fleet)
    if not isinstance(answer, Infeasible | GangInfeasible):
        return None
    # A search that was cut short proves nothing.
    if isinstance(answer, GangInfeasible) and not answer.proven:
        return None
    return replace(answer, summary=f"{_size(demand, nodes)}; {answer.summary}, even when it is idle")


def _in_service(node: GpuNode) -> GpuNode:
    resource = node.gpu_resource
    return replace(
        node,
        ready=True,
        unschedulable=False,
        taints=tuple(taint for taint in node.taints if not taint.key.startswith(_OF_KUBERNETES)),
        allocatable={**node.allocatable, resource: node.gpu_total + node.unhealthy},
        unhealthy=0,
    )


def _size(demand: Demand | GangDemand, nodes: tuple[GpuNode, ...]) -> str:
    has_gpus = any(role.gpus for role in demand.roles) if isinstance(demand, GangDemand) else demand.gpus > 0
    if not has_gpus:
        return f"the cluster has {plural(len(nodes), 'node')}"
    return f"the cluster has {plural(sum(node.gpu_total for node in nodes), 'GPU')}"
