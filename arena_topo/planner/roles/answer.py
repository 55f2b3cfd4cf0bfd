"""From the nodes that the roles chose to a place for every pod, and why they are where they are."""

from bisect import bisect_left
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import repeat
from math import isinf

from arena_topo.model.cluster import GpuNode, Holder, Snapshot
from arena_topo.model.plan import (
    Demand,
    GangDemand,
    Infeasible,
    NodeShare,
    Objective,
    Placement,
    Role,
    RolePlacement,
    Slot,
    Spread,
    Step,
    StepTraffic,
    TopologyPolicy,
    UnplacedRole,
    Verdict,
)
from arena_topo.model.text.words import plural
from arena_topo.planner.assign import NodeParts, node_alignment
from arena_topo.planner.choice import Effort, Problem
from arena_topo.planner.explain import (
    MEANING,
    OTHERS,
    faster_on_more,
    infeasible,
    nodes_words,
    rate_words,
    too_wide,
)
from arena_topo.planner.fleet import (
    Fleet,
    LevelLimits,
    changed,
    closest_level,
    domain_at,
    emptied,
    level_names,
    level_words,
    make_fleet,
    spanned,
    without_holders,
)
from arena_topo.planner.gpus.bandwidth import DEFAULT_MODEL, BandwidthModel
from arena_topo.planner.plan import plan_on, plan_shape, policy_limits
from arena_topo.planner.roles.board import Board, RoleChoice, Seat, Taken, Turn, make_board
from arena_topo.planner.roles.choice import GangChoice, Unplaced, choose_gang, choose_nodes
from arena_topo.planner.roles.servers import step_traffic

_EFFORT = 1_000
"""Steps of search for an alternative: a remark is not worth the effort of a decision."""


def _gang_placement(gang: GangDemand, board: Board, found: GangChoice) -> Placement:
    """Return the placement of *gang* that *found* is."""
    placed: dict[str, RolePlacement] = {}
    traffic: StepTraffic | None = None
    turn = Turn(board, 0, {}, Taken())
    while turn.number < len(board.seats):
        choice = found.choices[turn.number]
        served = None if turn.seat.serves is None else step_traffic(turn, choice.counts)
        placed |= _of_seat(turn, choice, tuple(_steps(turn, choice, served, found)))
        # A gang has one set of parameter servers, and where it has several the first of them is compared.
        traffic = traffic or served
        turn = turn.after(choice)
    deciding = [number for number, seat in enumerate(board.seats) if seat in board.deciding]
    positions = [position for number in deciding for position, _ in found.choices[number].chosen]
    level, domain = spanned(board.fleet, min(positions), max(positions))
    return Placement(
        roles=tuple(placed[role.name] for role in gang.roles),
        level=level_names(board.fleet)[level],
        domain=domain.name,
        why=(_level_step(board, found, level, domain.name),),
        notes=tuple(_notes(board)),
        traffic=traffic,
    )


def _of_seat(turn: Turn, choice: RoleChoice, steps: tuple[Step, ...]) -> dict[str, RolePlacement]:
    """Return the placements of the roles whose *turn* it is, by name: they get its places in rank order, for *steps*."""
    seat, fleet = turn.seat, turn.board.fleet
    demand = seat.role.demand
    slots, part_of, parts = list[tuple[int, tuple[int, ...] | None]](), {}, NodeParts(demand)
    for position, offer in choice.chosen:
        known = parts.of(fleet.nodes[position], turn.taken.state(seat.fleet, position), offer)
        slots += zip(repeat(position), known[0].by_worker, strict=False)
        part_of[position] = known
    placed, first = {}, 0
    for name, pods in seat.roles:
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
            if len(seat.roles) > 1:
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
            gpus=seat.role.gpus,
            slots=tuple(Slot(pod, fleet.nodes[at].name, gpus) for pod, (at, gpus) in enumerate(own)),
            shares=tuple(shares),
            level=level_names(fleet)[level],
            domain=domain.name,
            why=steps,
        )
    return placed


def _level_step(board: Board, found: GangChoice, level: int, name: str) -> Step:
    words = level_words(board.fleet)
    others = found.rivals - 1
    bound = f"no {words[found.level - 1]} holds all roles" if found.level else "no level is closer"
    if board.is_spread and found.level == 1:
        bound = "a role is spread over nodes"
    return Step(
        criterion="level",
        chosen="the whole cluster" if level > len(board.fleet.tiers) else f"one {words[level]}: {name}",
        runner_up=f"{plural(others, 'other ' + words[found.level])} may do" if others > 0 else "",
        bound=bound,
        proven=found.level_exact,
    )


def _steps(turn: Turn, choice: RoleChoice, served: StepTraffic | None, found: GangChoice) -> Iterator[Step]:
    board, seat, nodes = turn.board, turn.seat, len(choice.chosen)
    proven = choice.exact and (found.exact or seat not in board.deciding)
    spread = seat.role.spread is not Spread.NONE
    if served is not None:
        workers = f"the least next to the nodes of {seat.role.serves}"
        yield Step(
            "step time", f"{served.servers:.3g} s for each GB of parameters", bound=workers, proven=proven
        )
    more = _faster_on_more(turn, choice, found)
    yield Step("nodes", plural(nodes, "node"), more, _together(seat, spread=spread), proven=proven)
    # Where parameter servers go is not decided by links.
    if served is not None:
        return
    other = _in_rival(turn, found)
    steps = []
    if seat.role.gpus and not isinf(choice.busbw):
        beside = f"{rate_words(other.busbw)} on {_where(turn, other)}" if other else ""
        steps.append(Step("busbw", rate_words(choice.busbw), beside, proven=proven))
    if any(state.total for state in board.fleet.states):
        beside = f"{plural(other.stranded, 'GPU')} on {_where(turn, other)}" if other else ""
        left = f"{plural(choice.stranded, 'GPU')} free on {'this node' if nodes == 1 else 'these nodes'}"
        steps.append(Step("left over", left, beside, proven=proven))
    yield from steps[::-1] if board.objective is Objective.PACK else steps
    if seat.role.gpus and not isinf(choice.busbw):
        yield _objective(turn, choice, found, proven=proven)


def _in_rival(turn: Turn, found: GangChoice) -> RoleChoice | None:
    """Return what the first seat would get in the domain that was to be tried next, None for other seats."""
    if turn.number or found.rival is None:
        return None
    return choose_nodes(turn, found.rival, Effort(_EFFORT))


def _faster_on_more(turn: Turn, choice: RoleChoice, found: GangChoice) -> str:
    """Return what one node more would give the first seat in the gang's domain; empty where it is no faster or not plain."""
    seat, fleet = turn.seat, turn.seat.fleet
    if turn.number or seat.slices or seat.whole > 1 or seat.apart or seat.role.spread is not Spread.NONE:
        return ""
    problem = Problem(fleet, seat.capacity, seat.role.pods, seat.role.gpus, objective=turn.board.objective)
    around = found.domain
    if found.level == 0:
        around = (domain_at(fleet.domains[-1], around.start) if fleet.tiers else fleet.cluster) or around
    faster = faster_on_more(problem, around, len(choice.chosen), choice.busbw)
    if faster is None:
        return ""
    nodes = nodes_words(fleet, faster.nodes)
    return f"{rate_words(faster.busbw)} on {nodes}, {plural(faster.stranded, 'GPU')} left over"


def _objective(turn: Turn, choice: RoleChoice, found: GangChoice, *, proven: bool) -> Step:
    """Return what went first, bandwidth or GPUs left over, and what the other order would have given."""
    objective, figures = turn.board.objective, []
    for other in OTHERS[objective]:
        # Nothing left over is the least, and of such choices the fastest was taken in any case.
        if other is Objective.PACK and not choice.stranded:
            continue
        with_other = _with_objective(turn, other, found)
        if with_other and (with_other.busbw, with_other.stranded) != (choice.busbw, choice.stranded):
            figures.append(
                f"{rate_words(with_other.busbw)} on {_where(turn, with_other)}, "
                f"{plural(with_other.stranded, 'GPU')} left over, with --objective={other.value}"
            )
    return Step(
        criterion="objective",
        chosen=f"{objective.value}: {MEANING[objective]}",
        runner_up="; ".join(figures),
        bound=""
        if figures
        else "no other objective gives this role more busbw or leaves fewer GPUs over here",
        proven=proven,
    )


def _with_objective(turn: Turn, objective: Objective, found: GangChoice) -> RoleChoice | None:
    """Return what *objective* would choose in this turn: in the gang's domain, or on any node where it has one node."""
    board = replace(turn.board, objective=objective)
    if found.level == 0 and turn.seat in turn.board.deciding:
        other = choose_gang(board, 0, 0)
        return None if isinstance(other, Unplaced) else other.choices[turn.number]
    return choose_nodes(replace(turn, board=board), found.spans[turn.number], Effort(_EFFORT))


def _where(turn: Turn, choice: RoleChoice) -> str:
    return nodes_words(turn.board.fleet, [position for position, _ in choice.chosen])


def _together(seat: Seat, *, spread: bool) -> str:
    if len(seat.roles) > 1:
        return f"{' and '.join(name for name, _ in seat.roles)} are alike, and chosen for together"
    if spread:
        return "spread as far as there are nodes"
    if seat.tie:
        return "next to the pods that it is tied to"
    return "in whole slices" if seat.slices or seat.whole > 1 else ""


def _notes(board: Board) -> Iterator[str]:
    if any(seat.tie or seat.slices or seat.whole > 1 for seat in board.seats):
        yield "ties and slices hold where every pod is pinned to its node"
    if board.objective is not Objective.BANDWIDTH and any(seat.penalties for seat in board.seats):
        yield f"preferred node affinity does not count with --objective={board.objective.value}"


# The answer for a gang that has no place: role by role why, and what would help.

_MOST_TRIALS = 60
"""Gangs and fleets that are tried for advice; on ten thousand nodes that is about a second."""


def _refusal(gang: GangDemand, board: Board, limits: LevelLimits, *, proven: bool) -> Infeasible:
    """Return why *gang* has no place within *limits*, role by role, and what would help."""
    answers = {name: _alone(board, seat, limits) for seat in board.seats for name, _ in seat.roles}
    unplaced = tuple(UnplacedRole(role.name, answers[role.name]) for role in gang.roles)
    alone = [role.answer.summary for role in unplaced if role.answer]
    if alone:
        summary = "; ".join(dict.fromkeys(alone))
    else:
        where = (
            ""
            if limits.widest > len(board.fleet.tiers)
            else f" in one {level_words(board.fleet)[limits.widest]}"
        )
        summary = f"each role fits by itself, but {_names(gang)} do not fit together{where}"
    return Infeasible(summary, remedies=tuple(_remedies(gang, board, limits)), roles=unplaced, proven=proven)


def _alone(board: Board, seat: Seat, limits: LevelLimits) -> Infeasible | None:
    """Return why the pods of *seat* have no place by themselves, None where they have one."""
    fleet = board.fleet
    # What goes anywhere is not bound to a level.
    within = limits if seat.decides_domain else LevelLimits(len(fleet.tiers) + 1, len(fleet.tiers) + 1)
    if closest_level(fleet, seat.capacity, seat.role.pods, within) is not None:
        return None
    answer = infeasible(seat.demand, fleet, seat.capacity, within)
    names = " and ".join(name for name, _ in seat.roles)
    summary = f"{names}: {answer.summary.replace('worker', 'pod')}"
    # The flags of remedies are those of a gang of workers, which this role may have others for.
    remedies = tuple(remedy for remedy in answer.remedies if not remedy.startswith("--"))
    return Infeasible(summary, answer.reasons, answer.levels, remedies)


def _remedies(gang: GangDemand, board: Board, limits: LevelLimits) -> Iterator[str]:
    """Yield what would give *gang* a place, the least change first; each was tried on the fleet."""
    fleet = board.fleet
    words = level_words(fleet)
    if limits.widest <= len(fleet.tiers):
        wider = choose_gang(board, limits.widest + 1, len(fleet.tiers) + 1)
        if not isinstance(wider, Unplaced):
            where = "the cluster" if wider.level > len(fleet.tiers) else f"one {words[wider.level]}"
            yield f"without --require-topology={words[limits.widest]} all roles fit in {where}"
    trials = _Trials(limits, Effort(_MOST_TRIALS))
    for role in gang.roles:
        if not role.slices and (most := _most_pods(gang, role, fleet, trials)):
            yield f"{plural(most, 'pod')} of {role.name} fit{'s' * (most == 1)} next to the other roles"
    for role in gang.roles:
        others = tuple(other for other in gang.roles if other is not role)
        is_free = not any(role.name in (other.serves, other.tie and other.tie.role) for other in others)
        if others and is_free and trials.fits(replace(gang, roles=others), fleet):
            yield f"without {role.name} all other roles fit"
    if ended := next((name for name, after in _endings(fleet) if trials.fits(gang, after)), ""):
        yield f"it fits when {ended} ends"


@dataclass(frozen=True, slots=True)
class _Trials:
    """Gangs and fleets that are tried until one fits, up to a number of them."""

    limits: LevelLimits
    effort: Effort

    def fits(self, gang: GangDemand, fleet: Fleet) -> bool:
        """Whether *gang* has a place on *fleet*; False where no more trials are left."""
        if not self.effort.spend(1):
            return False
        found = choose_gang(make_board(gang, fleet), self.limits.closest, self.limits.widest)
        return not isinstance(found, Unplaced)


def _most_pods(gang: GangDemand, role: Role, fleet: Fleet, trials: _Trials) -> int:
    """Return the most pods of *role*, fewer than it has, with which all roles fit; 0 where one is too many."""

    def fits(pods: int) -> bool:
        fewer = replace(role, pods=pods)
        roles = tuple(fewer if other is role else other for other in gang.roles)
        return trials.fits(replace(gang, roles=roles), fleet)

    # What holds so many pods holds fewer as well.
    return bisect_left(range(1, role.pods), 1, key=lambda pods: int(not fits(pods)))


def _endings(fleet: Fleet) -> Iterator[tuple[str, Fleet]]:
    """Yield the jobs that hold GPUs, the smallest first, each with the fleet once it has ended."""
    by_job: dict[str, list[tuple[int, Holder]]] = {}
    for position, node in enumerate(fleet.nodes):
        for holder in node.holders:
            if holder.job:
                by_job.setdefault(f"job {holder.namespace}/{holder.job}", []).append((position, holder))
    sizes = {name: sum(holder.gpus for _, holder in pods) for name, pods in by_job.items()}
    for name in sorted(by_job, key=lambda name: (sizes[name], name)):
        at: dict[int, list[Holder]] = {}
        for position, holder in by_job[name]:
            at.setdefault(position, []).append(holder)
        freed = {
            position: without_holders(fleet.nodes[position], holders) for position, holders in at.items()
        }
        yield name, changed(fleet, freed)


def _names(gang: GangDemand) -> str:
    *others, last = [f"{role.name} ({plural(role.pods, 'pod')})" for role in gang.roles]
    return f"{', '.join(others)} and {last}" if others else last


# A gang of unlike roles onto a cluster: ``plan_gang`` answers with a place for every pod of every role, or why not.
#
# A gang of one plain role is planned as ``planner.plan`` plans it, by the same code and with the same answer.


def plan_gang(gang: GangDemand, snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL) -> Verdict:
    """Return the place of every pod of *gang* on the cluster in *snapshot*, or why the gang has none.

    Chosen in this order: all roles fit; the closest level that holds the roles that exchange data; then the best nodes
    for each role in turn, those with most GPUs first, of the choices that leave the rest a place. Raises ``UsageError``
    for roles that contradict each other and for levels that the fabric does not have.
    """
    return plan_gang_on(gang, make_fleet(snapshot, model))


def plan_gang_on(gang: GangDemand, fleet: Fleet) -> Verdict:
    """Return what ``plan_gang`` does, on a fleet that is laid out already."""
    if alone := _planned_alone(gang, fleet):
        return alone
    board = make_board(gang, fleet)
    limits = policy_limits(gang, fleet)
    found = choose_gang(board, limits.closest, limits.widest)
    if isinstance(found, Unplaced):
        return _refusal(gang, board, limits, proven=found.proven)
    if gang.policy is TopologyPolicy.RESTRICTED and (wider := _too_wide(gang, fleet, found.level, limits)):
        return wider
    return _gang_placement(gang, board, found)


def _too_wide(gang: GangDemand, fleet: Fleet, level: int, limits: LevelLimits) -> Infeasible | None:
    """Return the answer for a gang that would get a closer level on the empty cluster, None where it would not."""
    empty = emptied(fleet)
    ideal = choose_gang(make_board(gang, empty), limits.closest, limits.widest)
    if isinstance(ideal, Unplaced) or ideal.level >= level:
        return None
    answer = too_wide(_names(gang), fleet, level, ideal.level)
    return replace(answer, roles=tuple(UnplacedRole(role.name) for role in gang.roles))


def _planned_alone(gang: GangDemand, fleet: Fleet) -> Verdict | None:
    """Return the plan of a gang of one role that asks for nothing but places; None for any other gang."""
    if len(gang.roles) != 1 or not _is_plain(gang.roles[0]) or gang.roles[0].pods < 1:
        return None
    role = gang.roles[0]
    demand = replace(
        role.demand,
        policy=gang.policy,
        required_level=gang.required_level,
        preferred_level=gang.preferred_level,
        objective=gang.objective,
    )
    answer = plan_shape(demand, fleet)
    if isinstance(answer, Infeasible):
        return Infeasible(answer.summary, remedies=answer.remedies, roles=(UnplacedRole(role.name, answer),))
    placed = replace(answer.roles[0], role=role.name, why=answer.why)
    # Of the steps, that of the level is about the gang.
    return replace(answer, roles=(placed,), why=answer.why[1:2])


def _is_plain(role: Role) -> bool:
    return not (
        role.slices
        or role.tie
        or role.serves
        or role.preferences
        or role.anywhere
        or (role.spread is not Spread.NONE and not role.demand.one_per_node)
    )


# Gangs that could never fit, however long they wait: those that the idle cluster could not hold either.

_OF_KUBERNETES = "node.kubernetes.io/"
"""The prefix of the taints that come and go with a node's state: not ready, cordoned, under pressure."""


def never_fits(
    demand: Demand | GangDemand, snapshot: Snapshot, model: BandwidthModel = DEFAULT_MODEL
) -> Infeasible | None:
    """Return why *demand* could never fit on the nodes of *snapshot*, None where it could once they are free.

    All nodes count as idle and in service: a drained one comes back, a broken GPU is replaced, and other pods end.
    For example, 20 workers of 1 GPU could never fit on two nodes of 8, but 16 could.
    """
    nodes = tuple(map(_in_service, snapshot.nodes))
    fleet = emptied(make_fleet(replace(snapshot, nodes=nodes), model))
    answer = (
        plan_gang_on(demand, fleet)
        if isinstance(demand, GangDemand)
        # Groups of ranks decide where workers go, and never whether they fit.
        else plan_on(replace(demand, parallel=None), fleet)
    )
    # A search that was cut short proves nothing.
    if isinstance(answer, Placement) or not answer.proven:
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
