"""Why a placement won: step by step what was compared, the runner-up, and the bound that proves it."""

from collections.abc import Sequence
from math import isinf

from arena_topo.model.notation.words import plural
from arena_topo.model.plan.demand import Demand, Objective, TopologyPolicy
from arena_topo.model.plan.placement import Step
from arena_topo.planner.explain.alternatives import alternatives, faster_on_more
from arena_topo.planner.explain.remedies import best_of_level
from arena_topo.planner.nodes.domain_choice import DomainChoice
from arena_topo.planner.nodes.fleet import Fleet
from arena_topo.planner.nodes.levels import Capacity, level_words, spanned
from arena_topo.planner.nodes.node_choice import Pick, Problem


def why(demand: Demand, fleet: Fleet, capacity: Capacity, chosen: DomainChoice) -> tuple[Step, ...]:
    """Return the steps by which *chosen* won among all placements of *demand*."""
    problem = Problem(fleet, capacity, demand.workers, demand.gpus, objective=demand.objective)
    steps = (_fits(demand, fleet, capacity), _level(demand, fleet, capacity, chosen), _count(problem, chosen))
    if demand.gpus:
        ordered = (_bandwidth(chosen, fleet), _damage(chosen, fleet))
        if demand.objective is Objective.PACK:
            ordered = ordered[::-1]
        return (*steps, *ordered, _objective(problem, chosen))
    # On a cluster without GPUs there are none to keep usable.
    return (*steps, _damage(chosen, fleet)) if any(state.total for state in fleet.states) else steps


def _fits(demand: Demand, fleet: Fleet, capacity: Capacity) -> Step:
    taking = len(capacity.places) - capacity.places.count(0)
    return Step(
        criterion="fits",
        chosen=f"{taking} of {plural(len(fleet.nodes), 'node')} {'takes' if taking == 1 else 'take'} workers",
        bound=f"{plural(capacity.total, 'place')} for {plural(demand.workers, 'worker')}",
    )


def _level(demand: Demand, fleet: Fleet, capacity: Capacity, chosen: DomainChoice) -> Step:
    words = level_words(fleet)
    level, domain = spanned(fleet, chosen.pick.nodes[0], chosen.pick.nodes[-1])
    runner_up = ""
    if chosen.rivals > 1:
        runner_up = f"{plural(chosen.rivals - 1, 'other ' + words[chosen.level])} would do"
    bound = "no level is closer"
    if level > 0:
        most, name = best_of_level(fleet, capacity, level - 1)
        fits = min(most, demand.workers)
        bound = f"no {words[level - 1]} holds all: the best fits {fits} of {demand.workers}" + (
            f" ({name})" if name else ""
        )
        # A closer level holds the gang too, but the demand counts all levels up to this one as equally close.
        if fits == demand.workers:
            is_unaware = demand.policy is TopologyPolicy.NONE
            flag = "--topology-policy=none" if is_unaware else f"--prefer-topology={demand.preferred_level}"
            bound = f"{flag}: nodes of one {words[chosen.level]} count as equally close"
    chose = "the whole cluster" if level > len(fleet.tiers) else f"one {words[level]}: {domain.name}"
    return Step("level", chose, runner_up, bound)


def _count(problem: Problem, chosen: DomainChoice) -> Step:
    fleet, count = problem.fleet, len(chosen.pick.nodes)
    word = level_words(fleet)[chosen.level]
    fewer = (
        f"no {count - 1} nodes of a {word} hold all" if count > 2 else f"no single node of a {word} holds all"
    )
    more = f"{plural(chosen.next_count, 'node')} in another {word}" if chosen.next_count else ""
    pick = chosen.pick
    # The domain of a gang on one node is the finest around it; without tiers that is the node itself.
    around = pick.domain if fleet.tiers else fleet.cluster
    if faster := faster_on_more(problem, around, count, pick.busbw):
        more = f"{rate_words(faster.busbw)} on {_places(faster, fleet)}, {plural(faster.stranded, 'GPU')} left over"
    return Step(
        criterion="nodes",
        chosen=plural(count, "node"),
        runner_up=more,
        bound=fewer if count > 1 else "one is the least",
    )


def _bandwidth(chosen: DomainChoice, fleet: Fleet) -> Step:
    pick = chosen.pick
    second = _second_set(pick) if len(pick.nodes) == 1 else ""
    other = chosen.runner_up
    if not second and other:
        second = f"{rate_words(other.busbw)} on {_places(other, fleet)}"
    return Step(
        criterion="busbw",
        chosen=rate_words(pick.busbw),
        runner_up=second,
        bound="every set of free GPUs was compared" if chosen.exact else "",
        proven=chosen.exact,
    )


def _damage(chosen: DomainChoice, fleet: Fleet) -> Step:
    stranded = sum(offer.stranded for offer in chosen.pick.offers)
    other = chosen.runner_up
    left = sum(offer.stranded for offer in other.offers) if other else 0
    return Step(
        criterion="left over",
        chosen=f"{plural(stranded, 'GPU')} free on {'this node' if len(chosen.pick.nodes) == 1 else 'these nodes'}",
        runner_up=f"{plural(left, 'GPU')} on {_places(other, fleet)}" if other else "",
        bound="" if stranded else "none left is the least",
        proven=chosen.exact,
    )


def _objective(problem: Problem, chosen: DomainChoice) -> Step:
    """Return what went first of the two steps before, and what another order would have given."""
    fleet, others = problem.fleet, tuple(alternatives(problem, chosen))
    figures = (
        f"{rate_words(other.pick.busbw)} on {_places(other.pick, fleet)}, {plural(other.pick.stranded, 'GPU')} left over, "
        f"with --objective={other.objective.value}"
        for other in others
    )
    return Step(
        criterion="objective",
        chosen=f"{problem.objective.value}: {MEANING[problem.objective]}",
        runner_up="; ".join(figures),
        bound="" if others else "no other objective gives more busbw or leaves fewer GPUs over",
    )


MEANING = {
    Objective.BANDWIDTH: "busbw before GPUs left over",
    Objective.PACK: "GPUs left over before busbw",
    Objective.BALANCED: "twice the busbw is worth twice the GPUs, those left over counted",
}


def _second_set(pick: Pick) -> str:
    choice = pick.offers[0].choice
    if choice is None or choice.runner_up is None:
        return ""
    return f"{choice.runner_up[1]:.3g} GB/s with the next best set of GPUs there"


def rate_words(rate: float) -> str:
    """Return a busbw of *rate* GB/s as people read it."""
    if isinf(rate):
        return "one GPU per node: no links are used"
    return f"{rate:.3g} GB/s" if rate else "unknown links"


def _places(pick: Pick, fleet: Fleet) -> str:
    return nodes_words(fleet, pick.nodes)


def nodes_words(fleet: Fleet, positions: Sequence[int]) -> str:
    """Return the first of the nodes at *positions*, and how many others there are.

    Three nodes are ``a and 2 others``.
    """
    first = fleet.nodes[positions[0]].name
    return first if len(positions) == 1 else f"{first} and {plural(len(positions) - 1, 'other')}"
