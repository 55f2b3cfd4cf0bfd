"""The same number of workers in each domain of a level, in as few of them as hold the gang.

Seven workers over racks: two racks take four and three where a rack has room for four and another one for
three; else three racks take three, two and two. As in Kueue's balanced placement, what does not divide is one
worker more in some. The order of choice is the closest level around all, the fewest domains, the fewest
nodes, the bandwidth and the damage as elsewhere, the tightest level around all, the first by name.

Each domain by itself gives its best nodes for as many workers as it may get: these are compared, so that
the choice among domains is exact for them.
"""

from bisect import bisect_left
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from heapq import nsmallest
from math import inf

from arena_topo.errors import UsageError
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import Demand, Infeasible, Step, Steps, Verdict
from arena_topo.model.text.words import plural
from arena_topo.planner.answer import gang_words, infeasible, placement, rate_words
from arena_topo.planner.choice import (
    EFFORT,
    DomainChoice,
    Effort,
    Pick,
    Problem,
    Score,
    fewest,
    in_order,
    pick,
)
from arena_topo.planner.fleet import (
    Capacity,
    Domain,
    Fleet,
    LevelLimits,
    closest_level,
    domains_at,
    level_names,
    level_of,
    level_words,
    spanned,
)
from arena_topo.planner.offers import stranded_of

_FLAG = "--spread-evenly"
_MOST_STATES = 200_000
"""Combinations of domains with a worker more and without that are compared."""

Cost = tuple[int, int, int]
"""Nodes, damage, and room of the domains taken: what adds up over domains."""


@dataclass(frozen=True, slots=True, eq=False)
class _Part:
    """The nodes that a domain gives some workers."""

    pick: Pick
    room: int

    @property
    def busbw(self) -> float:
        return min(offer.busbw for offer in self.pick.offers)

    @property
    def inside(self) -> float:
        return min(offer.inside for offer in self.pick.offers)

    @property
    def cost(self) -> Cost:
        return len(self.pick.nodes), sum(offer.damage for offer in self.pick.offers), self.room


_Parts = Mapping[int, _Part]
"""What a domain gives, by the number of workers: for as many as each gets, and for one more."""


@dataclass(frozen=True, slots=True)
class _Shares:
    """``domains`` domains take ``each`` workers, and ``more`` of them take one more."""

    domains: int
    each: int
    more: int


def place_evenly(demand: Demand, fleet: Fleet, capacity: Capacity, limits: LevelLimits) -> Verdict:
    """Return places for *demand* with as many workers in each domain of its level, or why there are none.

    Raises ``UsageError`` for a level that the fabric does not have.
    """
    at = level_of(fleet, demand.spread_evenly, _FLAG)
    if at > len(fleet.tiers):
        raise UsageError(
            f"{_FLAG}={demand.spread_evenly}: there is one cluster, so that nothing is spread",
            hint=f"name a closer level: {', '.join(level_names(fleet)[:-1])}",
        )
    if closest_level(fleet, capacity, demand.workers, limits) is None:
        return infeasible(demand, fleet, capacity, limits)
    problem = Problem(
        fleet,
        capacity,
        demand.workers,
        demand.gpus,
        objective=demand.objective,
        closest=limits.closest,
    )
    for level in range(max(limits.closest, min(at, limits.widest)), limits.widest + 1):
        if found := _at_level(problem, at, level):
            answer = placement(demand, fleet, capacity, found[0], explains=False)
            return replace(answer, why=Steps(partial(_steps, *found, fleet, at)))
    return _uneven(demand, fleet, capacity, limits, at)


def _at_level(problem: Problem, at: int, level: int) -> tuple[DomainChoice, _Shares] | None:
    """Return the best choice in one domain of *level*, spread over domains of level *at* in it, if any."""
    inner = domains_at(problem.fleet, at)
    around = [
        (domain, parts, shares)
        for domain, parts in _inside(domains_at(problem.fleet, level), inner)
        if (shares := _shares(list(map(problem.capacity.within, parts)), problem.workers))
    ]
    if not around:
        return None
    least = min(shares.domains for _, _, shares in around)
    best: tuple[tuple[object, ...], DomainChoice, _Shares] | None = None
    for domain, parts, shares in around:
        if shares.domains > least:
            continue
        found, score, exact = _in_domain(problem, domain, parts, shares)
        rank = (score, problem.capacity.within(domain), domain.start)
        exact = exact and (best is None or best[1].exact)
        if best is None or rank < best[0]:
            best = rank, DomainChoice(found, level, len(around), 0, exact=exact), shares
        else:
            best = best[0], replace(best[1], exact=exact), best[2]
    return best and best[1:]


def _inside(around: Sequence[Domain], inner: Sequence[Domain]) -> Iterator[tuple[Domain, Sequence[Domain]]]:
    """Yield each domain with the *inner* ones that are in it."""
    starts = [domain.start for domain in inner]
    for domain in around:
        first = bisect_left(starts, domain.start)
        yield domain, inner[first : bisect_left(starts, domain.end, first)]


def _shares(room: Sequence[int], workers: int) -> _Shares | None:
    """Return over how few domains with so much *room* the workers can be spread evenly, None if over none.

    >>> _shares([5, 3, 3], 7)
    _Shares(domains=2, each=3, more=1)
    >>> _shares([6, 2, 1], 8) is None
    True
    """
    widest = sorted(room, reverse=True)
    for domains in range(1, min(len(widest), workers) + 1):
        each, more = divmod(workers, domains)
        if widest[domains - 1] >= each and (not more or widest[more - 1] > each):
            return _Shares(domains, each, more)
    return None


def _in_domain(
    problem: Problem, domain: Domain, inner: Sequence[Domain], shares: _Shares
) -> tuple[Pick, Score, bool]:
    """Return the best choice in *domain*, spread over domains *inner* by *shares*; whether it is exact."""
    several, known = shares.domains > 1, dict[tuple[object, ...], _Part]()
    effort = Effort(EFFORT)
    options: list[_Parts] = []
    for part in inner:
        amounts = [shares.each + 1] * bool(shares.more) + [shares.each]
        given = {
            workers: _part(problem, part, workers, effort, known, several=several)
            for workers in amounts
            if workers <= problem.capacity.within(part)
        }
        if given:
            options.append(given)
    taken, exact = _taken(options, shares, problem.objective)
    nodes, offers = in_order(
        [entry for part in taken for entry in zip(part.pick.nodes, part.pick.offers, strict=True)]
    )
    score = problem.goal(len(nodes), domain).score_with(offers, (len(nodes),))
    exact = exact and all(part.pick.complete and part.pick.sets_exact for part in taken)
    return Pick(nodes, offers, score, domain), score, exact


def _part(
    problem: Problem,
    domain: Domain,
    workers: int,
    effort: Effort,
    known: dict[tuple[object, ...], _Part],
    *,
    several: bool,
) -> _Part:
    """Return what *domain* gives so many *workers*; equal single nodes are looked at once."""
    capacity = problem.capacity
    own = replace(problem, workers=workers, several=several)
    room = capacity.within(domain)
    if domain.end - domain.start > 1:
        return _Part(pick(own, domain, fewest(capacity, domain, workers), effort), room)
    key = problem.fleet.state_ids[domain.start], room, workers
    if key not in known:
        known[key] = _Part(pick(own, domain, 1, effort), room)
    part = known[key]
    return replace(part, pick=replace(part.pick, nodes=(domain.start,), domain=domain))


_Chosen = tuple[Cost, Sequence[_Part], bool]
"""What is taken of the domains, what it costs, and whether nothing costs less."""


def _taken(options: Sequence[_Parts], shares: _Shares, objective: Objective) -> tuple[Sequence[_Part], bool]:
    """Return what is taken of each domain, in the order of choice, and whether nothing is better."""

    def before_rates(cost: Cost) -> tuple[int, ...]:
        nodes, damage, _ = cost
        return (nodes,) if objective is Objective.BANDWIDTH else (nodes, stranded_of(damage))

    busbw = inside = -inf
    best = _cheapest(options, shares, busbw, inside)
    if best is None:
        raise ValueError("the domains have no room for their shares")
    least = before_rates(best[0])

    def highest(rates: Sequence[float], busbw_of: Callable[[float], tuple[float, float]]) -> float:
        """Return the highest of *rates* that leaves a choice in which what goes before them is no worse."""

        def leaves_none(rate: float) -> bool:
            found = _cheapest(options, shares, *busbw_of(rate))
            return found is None or before_rates(found[0]) != least

        # At the lowest rate everything is left.
        return rates[max(bisect_left(rates, True, key=leaves_none) - 1, 0)]

    parts = [part for parts in options for part in parts.values()]
    busbw = highest(sorted({part.busbw for part in parts}), lambda rate: (rate, -inf))
    inside = highest(sorted({part.inside for part in parts}), lambda rate: (busbw, rate))
    raised = _cheapest(options, shares, busbw, inside)
    return (raised or best)[1:]


def _cheapest(options: Sequence[_Parts], shares: _Shares, busbw: float, inside: float) -> _Chosen | None:
    """Return the parts of least cost with at least such rates, and whether none cost less."""

    def costs(workers: int) -> dict[int, Cost]:
        """Return the costs of the cheapest domains: of those that are not among so many none is taken."""
        able = [
            (part.cost, number)
            for number, parts in enumerate(options)
            if (part := parts.get(workers)) and part.busbw >= busbw and part.inside >= inside
        ]
        return {number: cost for cost, number in nsmallest(shares.domains, able)}

    each = costs(shares.each)
    larger = costs(shares.each + 1) if shares.more else {}
    if len(each.keys() | larger.keys()) * shares.domains * (shares.more + 1) <= _MOST_STATES:
        taken, exact = _by_states(each, larger, shares), True
    else:
        # Those that take one more go first: a choice, if not always the cheapest.
        first = dict(list(larger.items())[: shares.more])
        others = [(number, shares.each) for number in each if number not in first]
        taken = [(number, shares.each + 1) for number in first] + others[: shares.domains - shares.more]
        taken, exact = (sorted(taken) if len(taken) == shares.domains else None), False
    if taken is None:
        return None
    parts = [options[number][workers] for number, workers in taken]
    nodes, damages, rooms = zip(*(part.cost for part in parts), strict=True)
    return (sum(nodes), sum(damages), sum(rooms)), parts, exact


def _by_states(
    each: Mapping[int, Cost], larger: Mapping[int, Cost], shares: _Shares
) -> list[tuple[int, int]] | None:
    """Return the cheapest domains, by number, and how many workers each takes; None if there are none.

    Dynamic programming over the domains: by how many are taken, and how many of them with one worker more.
    """
    states: dict[tuple[int, int], tuple[Cost, list[tuple[int, int]]]] = {(0, 0): ((0, 0, 0), [])}
    for number in sorted(each.keys() | larger.keys()):
        after = dict(states)
        for (taken, more), (cost, parts) in states.items():
            for workers, costs, added in ((shares.each, each, 0), (shares.each + 1, larger, 1)):
                state = taken + 1, more + added
                if number in costs and taken < shares.domains and state[1] <= shares.more:
                    own = costs[number]
                    total = cost[0] + own[0], cost[1] + own[1], cost[2] + own[2]
                    if state not in after or total < after[state][0]:
                        after[state] = total, [*parts, (number, workers)]
        states = after
    found = states.get((shares.domains, shares.more))
    return found and found[1]


def _steps(chosen: DomainChoice, shares: _Shares, fleet: Fleet, at: int) -> Iterator[Step]:
    """Yield why it is this choice."""
    picked, words = chosen.pick, level_words(fleet)
    level, domain = spanned(fleet, picked.nodes[0], picked.nodes[-1])
    where = "the whole cluster" if level > len(fleet.tiers) else f"one {words[level]}: {domain.name}"
    others = chosen.rivals - 1
    yield Step(
        "level",
        where,
        f"{plural(others, 'other ' + words[chosen.level])} may do" if others else "",
        "no closer level holds all, spread evenly",
    )
    number = f"{shares.each} or {shares.each + 1}" if shares.more else plural(shares.each, "worker")
    yield Step(
        "spread",
        f"{number} in each of {plural(shares.domains, words[at])}",
        bound=f"over fewer {words[at]}s they do not spread evenly"
        if shares.domains > 1
        else "one is the least",
    )
    yield Step("nodes", plural(len(picked.nodes), "node"), proven=chosen.exact)
    yield Step("busbw", rate_words(picked.busbw), proven=chosen.exact)
    yield Step("left over", f"{plural(picked.stranded, 'GPU')} free on these nodes", proven=chosen.exact)


def _uneven(demand: Demand, fleet: Fleet, capacity: Capacity, limits: LevelLimits, at: int) -> Infeasible:
    """Return why *demand*, which has room within *limits*, does not spread evenly, and what would."""
    word = level_words(fleet)[at]
    widest = domains_at(fleet, limits.widest)
    rooms = [[capacity.within(part) for part in parts] for _, parts in _inside(widest, domains_at(fleet, at))]
    most = max(rooms, key=sum)
    free = ", ".join(str(room) for room in sorted(most, reverse=True)[:_MOST_NAMED] if room)
    fewer = next(
        (workers for workers in range(demand.workers - 1, 0, -1) if any(_shares(r, workers) for r in rooms)),
        0,
    )
    return Infeasible(
        summary=f"{gang_words(demand)} do not spread evenly over {word}s, which have room for {free or 'none'}",
        remedies=(
            *((f"--workers={fewer} spreads evenly",) if fewer else ()),
            f"without {_FLAG} all {demand.workers} workers fit",
        ),
    )


_MOST_NAMED = 8
