"""From the nodes that the roles chose to a place for every pod, and why they are where they are."""

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial as bound
from itertools import repeat
from math import isinf

from arena_topo.model.placement_options import Objective, TopologyPolicy
from arena_topo.model.plan import (
    GangDemand,
    Infeasible,
    NodeShare,
    Placement,
    Role,
    RolePlacement,
    Spread,
    Step,
    Steps,
    StepTraffic,
    UnplacedRole,
    Verdict,
)
from arena_topo.model.plan_record import Slot
from arena_topo.model.text.words import plural
from arena_topo.planner.answer import (
    MEANING,
    OTHER,
    NodeParts,
    faster_on_more,
    figures_words,
    infeasible,
    node_alignment,
    nodes_words,
    rate_words,
    too_wide,
    within_words,
)
from arena_topo.planner.choice import Effort
from arena_topo.planner.fleet import (
    Fleet,
    LevelLimits,
    changed,
    closest_level,
    domain_at,
    emptied,
    holders_by_job,
    level_names,
    level_words,
    policy_limits,
    spanned,
    without_holders,
)
from arena_topo.planner.roles.choice import GangChoice, Unplaced, choose_gang, choose_nodes
from arena_topo.planner.roles.gang import Gang, PartialPlacement, PodSet, RoleChoice, Taken, make_gang
from arena_topo.planner.roles.servers import step_traffic

_EFFORT = 1_000
"""Steps of search for an alternative: a remark is not worth the effort of a decision."""


def place_roles(demand: GangDemand, fleet: Fleet) -> Verdict:
    """Return what ``plan`` does for roles of which some are unlike, or one asks for more than room."""
    gang = make_gang(demand, fleet)
    limits = policy_limits(demand, fleet)
    found = choose_gang(gang, limits.closest, limits.widest)
    if isinstance(found, Unplaced):
        return _refusal(demand, gang, limits, proven=found.proven)
    if demand.policy is TopologyPolicy.RESTRICTED and (
        wider := _too_wide(demand, fleet, found.level, limits)
    ):
        return wider
    return _gang_placement(demand, gang, found)


def _gang_placement(demand: GangDemand, gang: Gang, found: GangChoice) -> Placement:
    """Return the placement of *demand* that *found* is."""
    placed: dict[str, RolePlacement] = {}
    traffic: StepTraffic | None = None
    partial = PartialPlacement(gang, 0, {}, Taken())
    while partial.number < len(gang.pod_sets):
        choice = found.choices[partial.number]
        served = None if partial.pod_set.serves is None else step_traffic(partial, choice.counts)
        steps = Steps(bound(_steps, partial, choice, served, found))
        placed |= _of_pod_set(partial, choice, steps)
        # A gang has one set of parameter servers, and where it has several the first of them is compared.
        traffic = traffic or served
        partial = partial.after(choice)
    deciding = [number for number, pod_set in enumerate(gang.pod_sets) if pod_set in gang.deciding]
    positions = [position for number in deciding for position in found.choices[number].nodes]
    level, domain = spanned(gang.fleet, min(positions), max(positions))
    return Placement(
        roles=tuple(placed[role.name] for role in demand.roles),
        level=level_names(gang.fleet)[level],
        domain=domain.name,
        why=(_level_step(gang, found, level, domain.name),),
        notes=tuple(_notes(gang)),
        traffic=traffic,
    )


def _of_pod_set(
    partial: PartialPlacement, choice: RoleChoice, steps: Sequence[Step]
) -> dict[str, RolePlacement]:
    """Return the placements of the roles of the next pod set, by name, for *steps*: in rank order."""
    pod_set, fleet = partial.pod_set, partial.gang.fleet
    demand = pod_set.role.demand
    slots, part_of = list[tuple[int, tuple[int, ...] | None]](), {}
    parts = NodeParts(demand, lambda position: partial.taken.state(pod_set.fleet, position))
    for position, offer in zip(choice.nodes, choice.offers, strict=True):
        known = parts.of(fleet.nodes[position], position, offer)
        slots += zip(repeat(position), known[0].by_worker, strict=False)
        part_of[position] = known
    placed, first = {}, 0
    for name, pods in pod_set.roles:
        own = slots[first : first + pods]
        first += pods
        by_node: dict[int, list[int]] = {}
        for pod, (at, _) in enumerate(own):
            by_node.setdefault(at, []).append(pod)
        shares = []
        for position, indices in by_node.items():
            node = fleet.nodes[position]
            part, alignment = part_of[position]
            gpus = part.gpus
            if len(pod_set.roles) > 1:
                # The node's GPUs are one communicator of all roles that choose as one; each shows its own.
                by_pod = [own[pod][1] for pod in indices]
                gpus = None if gpus is None else tuple(gpu for own_gpus in by_pod for gpu in own_gpus or ())
                alignment = node_alignment(node, demand, by_pod)
            shares.append(
                NodeShare(
                    node.name,
                    tuple(indices),
                    gpus,
                    part.busbw,
                    part.best,
                    fleet.paths[position],
                    alignment,
                )
            )
        level, domain = spanned(fleet, own[0][0], own[-1][0])
        placed[name] = RolePlacement(
            role=name,
            gpus=pod_set.role.gpus,
            slots=tuple(Slot(pod, fleet.nodes[at].name, gpus) for pod, (at, gpus) in enumerate(own)),
            shares=tuple(shares),
            level=level_names(fleet)[level],
            domain=domain.name,
            why=steps,
        )
    return placed


def _level_step(gang: Gang, found: GangChoice, level: int, name: str) -> Step:
    words = level_words(gang.fleet)
    others = found.rivals - 1
    bound = f"no {words[found.level - 1]} holds all roles" if found.level else "no level is closer"
    if gang.is_spread and found.level == 1:
        bound = "a role is spread over nodes"
    return Step(
        criterion="level",
        chosen="the whole cluster" if level > len(gang.fleet.tiers) else f"one {words[level]}: {name}",
        runner_up=f"{plural(others, 'other ' + words[found.level])} may do" if others > 0 else "",
        bound=bound,
        proven=found.level_exact,
    )


def _steps(
    partial: PartialPlacement, choice: RoleChoice, served: StepTraffic | None, found: GangChoice
) -> Iterator[Step]:
    gang, pod_set, nodes = partial.gang, partial.pod_set, len(choice.nodes)
    proven = choice.exact and (found.exact or pod_set not in gang.deciding)
    spread = pod_set.role.spread is not Spread.NONE
    if served is not None:
        workers = f"the least next to the nodes of {pod_set.role.serves}"
        yield Step(
            "step time", f"{served.servers:.3g} s for each GB of parameters", bound=workers, proven=proven
        )
    more = _faster_on_more(partial, choice, found)
    yield Step("nodes", plural(nodes, "node"), more, _together(pod_set, spread=spread), proven=proven)
    # Where parameter servers go is not decided by links.
    if served is not None:
        return
    span = found.spans[partial.number]
    if touched := within_words(gang.problem(pod_set), span, choice.nodes):
        yield Step("within", touched, bound="no nodes that hold all touch fewer" * proven, proven=proven)
    other = _in_rival(partial, found)
    steps = []
    if pod_set.role.gpus and not isinf(choice.busbw):
        runner_up = f"{rate_words(other.busbw)} on {nodes_words(gang.fleet, other.nodes)}" if other else ""
        steps.append(Step("busbw", rate_words(choice.busbw), runner_up, proven=proven))
    if any(state.total for state in gang.fleet.states):
        runner_up = (
            f"{plural(other.stranded, 'GPU')} on {nodes_words(gang.fleet, other.nodes)}" if other else ""
        )
        left = f"{plural(choice.stranded, 'GPU')} free on {'this node' if nodes == 1 else 'these nodes'}"
        steps.append(Step("left over", left, runner_up, proven=proven))
    yield from steps[::-1] if gang.objective is Objective.PACK else steps
    if pod_set.role.gpus and not isinf(choice.busbw):
        yield _objective(partial, choice, found, proven=proven)


def _in_rival(partial: PartialPlacement, found: GangChoice) -> RoleChoice | None:
    """Return what the first pod set would get in the next-best domain, None for other pod sets."""
    if partial.number or found.rival is None:
        return None
    return choose_nodes(partial, found.rival, Effort(_EFFORT))


def _faster_on_more(partial: PartialPlacement, choice: RoleChoice, found: GangChoice) -> str:
    """Return what one node more would give the first pod set; empty if it is no faster or not plain."""
    pod_set, fleet = partial.pod_set, partial.pod_set.fleet
    if (
        partial.number
        or pod_set.slices
        or pod_set.whole > 1
        or pod_set.apart
        or pod_set.role.spread is not Spread.NONE
    ):
        return ""
    problem = partial.gang.problem(pod_set)
    around = found.domain
    if found.level == 0:
        around = (domain_at(fleet.domains[-1], around.start) if fleet.tiers else fleet.cluster) or around
    faster = faster_on_more(problem, around, len(choice.nodes), choice.busbw)
    if faster is None:
        return ""
    return figures_words(fleet, faster)


def _objective(partial: PartialPlacement, choice: RoleChoice, found: GangChoice, *, proven: bool) -> Step:
    """Return what went first, bandwidth or GPUs left over, and what the other order would have given."""
    objective, other, figures = partial.gang.objective, OTHER[partial.gang.objective], ""
    # Nothing left over is the least, and of such choices the fastest was taken in any case.
    if other is Objective.BANDWIDTH or choice.stranded:
        with_other = _with_objective(partial, other, found)
        if with_other and (with_other.busbw, with_other.stranded) != (choice.busbw, choice.stranded):
            figures = f"{figures_words(partial.gang.fleet, with_other)}, with --objective={other.value}"
    return Step(
        criterion="objective",
        chosen=f"{objective.value}: {MEANING[objective]}",
        runner_up=figures,
        bound=""
        if figures
        else "no other objective gives this role faster links or leaves fewer GPUs over here",
        proven=proven,
    )


def _with_objective(partial: PartialPlacement, objective: Objective, found: GangChoice) -> RoleChoice | None:
    """Return what *objective* would choose: in the gang's domain, or on any node if the gang is on one."""
    gang = replace(partial.gang, objective=objective)
    if found.level == 0 and partial.pod_set in partial.gang.deciding:
        other = choose_gang(gang, 0, 0)
        return None if isinstance(other, Unplaced) else other.choices[partial.number]
    return choose_nodes(replace(partial, gang=gang), found.spans[partial.number], Effort(_EFFORT))


def _together(pod_set: PodSet, *, spread: bool) -> str:
    if len(pod_set.roles) > 1:
        return f"{' and '.join(name for name, _ in pod_set.roles)} are alike, and chosen for together"
    if spread:
        return "spread as far as there are nodes"
    if pod_set.tie:
        return "next to the pods that it is tied to"
    return "in whole slices" if pod_set.slices or pod_set.whole > 1 else ""


def _notes(gang: Gang) -> Iterator[str]:
    if any(pod_set.tie or pod_set.slices or pod_set.whole > 1 for pod_set in gang.pod_sets):
        yield "ties and slices hold where every pod is pinned to its node"
    if gang.objective is not Objective.BANDWIDTH and any(pod_set.penalties for pod_set in gang.pod_sets):
        yield f"preferred node affinity does not count with --objective={gang.objective.value}"


# The answer for a gang that has no place: role by role why, and what would help.

_MOST_TRIALS = 60
"""Gangs and fleets that are tried for advice; on ten thousand nodes that is about a second."""


def _refusal(demand: GangDemand, gang: Gang, limits: LevelLimits, *, proven: bool) -> Infeasible:
    """Return why *demand* has no place within *limits*, role by role, and what would help."""
    answers = {name: _alone(gang, pod_set, limits) for pod_set in gang.pod_sets for name, _ in pod_set.roles}
    unplaced = tuple(UnplacedRole(role.name, answers[role.name]) for role in demand.roles)
    alone = [role.answer.summary for role in unplaced if role.answer]
    if alone:
        summary = "; ".join(dict.fromkeys(alone))
    else:
        where = (
            ""
            if limits.widest > len(gang.fleet.tiers)
            else f" in one {level_words(gang.fleet)[limits.widest]}"
        )
        summary = f"each role fits by itself, but {_names(demand)} do not fit together{where}"
    return Infeasible(summary, remedies=tuple(_remedies(demand, gang, limits)), roles=unplaced, proven=proven)


def _alone(gang: Gang, pod_set: PodSet, limits: LevelLimits) -> Infeasible | None:
    """Return why the pods of *pod_set* have no place by themselves, None where they have one."""
    fleet = gang.fleet
    # What goes anywhere is not bound to a level.
    within = limits if pod_set.decides_domain else LevelLimits(len(fleet.tiers) + 1, len(fleet.tiers) + 1)
    if closest_level(fleet, pod_set.capacity, pod_set.role.pods, within) is not None:
        return None
    answer = infeasible(pod_set.demand, fleet, pod_set.capacity, within)
    names = " and ".join(name for name, _ in pod_set.roles)
    summary = f"{names}: {answer.summary.replace('worker', 'pod')}"
    # The flags of remedies are those of a gang of workers, which this role may have others for.
    remedies = tuple(remedy for remedy in answer.remedies if not remedy.startswith("--"))
    return Infeasible(summary, answer.reasons, answer.levels, remedies)


def _remedies(demand: GangDemand, gang: Gang, limits: LevelLimits) -> Iterator[str]:
    """Yield what would give *demand* a place, the least change first; each was tried on the fleet."""
    fleet = gang.fleet
    words = level_words(fleet)
    if limits.widest <= len(fleet.tiers):
        wider = choose_gang(gang, limits.widest + 1, len(fleet.tiers) + 1)
        if not isinstance(wider, Unplaced):
            where = "the cluster" if wider.level > len(fleet.tiers) else f"one {words[wider.level]}"
            yield f"without --require-topology={words[limits.widest]} all roles fit in {where}"
    trials = _Trials(limits, Effort(_MOST_TRIALS))
    for role in demand.roles:
        if not role.slices and (most := _most_pods(demand, role, fleet, trials)):
            yield f"{plural(most, 'pod')} of {role.name} fit{'s' * (most == 1)} next to the other roles"
    for role in demand.roles:
        others = tuple(other for other in demand.roles if other is not role)
        is_free = not any(role.name in (other.serves, other.tie and other.tie.role) for other in others)
        if others and is_free and trials.fits(replace(demand, roles=others), fleet):
            yield f"without {role.name} all other roles fit"
    if ended := next((name for name, after in _endings(fleet) if trials.fits(demand, after)), ""):
        yield f"it fits when {ended} ends"


def _too_wide(demand: GangDemand, fleet: Fleet, level: int, limits: LevelLimits) -> Infeasible | None:
    """Return the refusal of a gang that would get a closer level on the empty cluster, else None."""
    empty = emptied(fleet)
    ideal = choose_gang(make_gang(demand, empty), limits.closest, limits.widest)
    if isinstance(ideal, Unplaced) or ideal.level >= level:
        return None
    answer = too_wide(_names(demand), fleet, level, ideal.level)
    return replace(answer, roles=tuple(UnplacedRole(role.name) for role in demand.roles))


@dataclass(frozen=True, slots=True)
class _Trials:
    """Gangs and fleets that are tried until one fits, up to a number of them."""

    limits: LevelLimits
    effort: Effort

    def fits(self, demand: GangDemand, fleet: Fleet) -> bool:
        """Whether *demand* has a place on *fleet*; False where no more trials are left."""
        if not self.effort.spend(1):
            return False
        found = choose_gang(make_gang(demand, fleet), self.limits.closest, self.limits.widest)
        return not isinstance(found, Unplaced)


def _most_pods(demand: GangDemand, role: Role, fleet: Fleet, trials: _Trials) -> int:
    """Return the most pods of *role*, fewer than it has, with which all roles fit; 0 if one is too many."""

    def fits(pods: int) -> bool:
        fewer = replace(role, pods=pods)
        roles = tuple(fewer if other is role else other for other in demand.roles)
        return trials.fits(replace(demand, roles=roles), fleet)

    # What holds so many pods holds fewer as well.
    return bisect_left(range(1, role.pods), 1, key=lambda pods: int(not fits(pods)))


def _endings(fleet: Fleet) -> Iterator[tuple[str, Fleet]]:
    """Yield the jobs that hold GPUs, the smallest first, each with the fleet once it has ended."""
    jobs = {name: by_node for name, by_node in holders_by_job(fleet).items() if name.startswith("job ")}
    sizes = {name: sum(holder.gpus for held in jobs[name].values() for holder in held) for name in jobs}
    for name in sorted(jobs, key=lambda name: (sizes[name], name)):
        freed = {
            position: without_holders(fleet.nodes[position], held) for position, held in jobs[name].items()
        }
        yield name, changed(fleet, freed)


def _names(demand: GangDemand) -> str:
    *others, last = [f"{role.name} ({plural(role.pods, 'pod')})" for role in demand.roles]
    return f"{', '.join(others)} and {last}" if others else last
