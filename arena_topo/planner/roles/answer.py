"""From the nodes that the roles chose to a place for every pod, and why they are where they are."""

from collections.abc import Iterator
from dataclasses import replace
from itertools import repeat
from math import isinf

from arena_topo.model.notation.words import plural
from arena_topo.model.plan.demand import Objective
from arena_topo.model.plan.placement import NodeShare, Slot, Step
from arena_topo.model.plan.roles import GangDemand, GangPlacement, RolePlacement, Spread, StepTraffic
from arena_topo.planner.assign import NodeParts
from arena_topo.planner.explain.alternatives import OTHERS, faster_on_more
from arena_topo.planner.explain.steps import MEANING, nodes_words, rate_words
from arena_topo.planner.nodes.levels import domain_at, level_names, level_words, spanned
from arena_topo.planner.nodes.node_choice import Problem
from arena_topo.planner.nodes.search import Effort
from arena_topo.planner.roles.board import Board, Seat
from arena_topo.planner.roles.gang_choice import GangChoice, Unplaced, choose_gang
from arena_topo.planner.roles.role_choice import choose_nodes
from arena_topo.planner.roles.servers import step_traffic
from arena_topo.planner.roles.taken import Taken
from arena_topo.planner.roles.turn import RoleChoice, Turn
from arena_topo.planner.worker_places import node_alignment

_EFFORT = 1_000
"""Steps of search for an alternative: a remark is not worth the effort of a decision."""


def gang_placement(gang: GangDemand, board: Board, found: GangChoice) -> GangPlacement:
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
    return GangPlacement(
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
        workers = f"the least beside the nodes of {seat.role.serves}"
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
    if seat.beside:
        return "beside the pods that it is tied to"
    return "in whole slices" if seat.slices or seat.whole > 1 else ""


def _notes(board: Board) -> Iterator[str]:
    if any(seat.beside or seat.slices or seat.whole > 1 for seat in board.seats):
        yield "ties and slices hold where every pod is pinned to its node"
    if board.objective is not Objective.BANDWIDTH and any(seat.penalties for seat in board.seats):
        yield f"preferred node affinity does not count with --objective={board.objective.value}"
