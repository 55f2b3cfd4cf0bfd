"""What would have been chosen by another order of choice: the price of what decided.

A worker of four GPUs takes the empty box at 19 GB/s. With ``pack`` it takes the half-used one at 13 GB/s, and leaves none over.
Two workers on one node at 8 GB/s take no second node, even where that gives 45 GB/s: the number of nodes goes first.
"""

from collections.abc import Iterator
from dataclasses import dataclass, replace
from math import isinf

from arena_topo.model.plan.demand import Objective
from arena_topo.planner.nodes.domain_choice import DomainChoice, choose_domain
from arena_topo.planner.nodes.fleet import Domain
from arena_topo.planner.nodes.node_choice import Pick, Problem, pick
from arena_topo.planner.nodes.search import Effort

# What is weighed lies between the two extremes, so that an extreme is compared with the other one.
OTHERS = {
    Objective.BANDWIDTH: (Objective.PACK,),
    Objective.PACK: (Objective.BANDWIDTH,),
    Objective.BALANCED: (Objective.BANDWIDTH, Objective.PACK),
}

# A remark is not worth the effort of a decision.
_EFFORT = 1_000
_MOST_NODES = 4
"""A node more seldom makes a gang on many nodes faster, and looking for one takes longer than to place it."""


@dataclass(frozen=True, slots=True)
class Alternative:
    """What another objective would have picked."""

    objective: Objective
    pick: Pick


def alternatives(problem: Problem, chosen: DomainChoice) -> Iterator[Alternative]:
    """Yield what other objectives than that of *problem* pick, where it has more busbw or leaves fewer GPUs over."""
    if isinf(chosen.pick.busbw):
        # Single GPUs, and pods without any, have no bandwidth to give up.
        return
    for objective in OTHERS[problem.objective]:
        # Nothing left over is the least, and of such choices the fastest was taken in any case.
        if objective is Objective.PACK and chosen.pick.stranded == 0:
            continue
        other = choose_domain(replace(problem, objective=objective), chosen.level).pick
        # A search that did not end may miss what another order of choice meets: what wins or loses in both is no price.
        if (other.busbw > chosen.pick.busbw) != (other.stranded < chosen.pick.stranded):
            yield Alternative(objective, other)


def faster_on_more(problem: Problem, domain: Domain, nodes: int, busbw: float) -> Pick | None:
    """Return a pick in *domain* on one node more than *nodes* that has more than *busbw*; None where none was found."""
    count = nodes + 1
    if count > min(problem.workers, _MOST_NODES) or isinf(busbw):
        return None
    fleet = problem.fleet
    taking = sum(places > 0 for places in problem.capacity.places[domain.start : domain.end])
    if taking < count:
        return None
    other = pick(problem, domain, count, Effort(_EFFORT))
    # Where a NIC's rate is not known, more nodes may be slower for all that is known inside them.
    is_known = all(fleet.state(position).rate for position in other.nodes)
    # Neither is a search that did not end worth a remark.
    return other if is_known and other.complete and other.busbw > busbw else None
