"""Gangs of unlike roles against every placement there is, on small clusters."""

from dataclasses import replace
from random import Random

from hypothesis import event, given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import Snapshot
from arena_topo.model.placement_options import Objective
from arena_topo.model.plan import GangDemand, Infeasible, NodePreference, Placement, Role, Slice, Spread, Tie
from arena_topo.model.pods import Requirement, SelectorTerm
from arena_topo.planner.fleet import Fleet, level_names
from arena_topo.planner.plan import plan_on
from arena_topo.planner.roles.gang import make_gang
from tests.examples import examples
from tests.planner.fleets import PAIRS, PCIE, SWITCHED, V100, cluster, fleet_of, node
from tests.planner.roles.oracle import Oracle, counts_of, gpus_of, without_gpus

LABEL = "example.com/kind"


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Draw one to three machines and up to two nodes without GPUs, under racks and blocks, some in none."""
    nodes = []
    for number in range(draw(st.integers(1, 3))):
        links = draw(st.sampled_from([V100, SWITCHED, PCIE, PAIRS]))
        used = draw(st.sets(st.integers(0, links.size - 1), max_size=links.size - 1))
        labels = {LABEL: draw(st.sampled_from(["a", "b"]))}
        cpu = draw(st.sampled_from([0, 2000, 3000]))
        nodes.append(
            node(
                f"g{number}",
                sorted(used),
                links,
                nic=draw(st.sampled_from([0.0, 12.5])),
                cpu=cpu,
                labels=labels,
            )
        )
    nodes += [
        without_gpus(f"c{number}", cpu=draw(st.sampled_from([1000, 2000])), labels={LABEL: "a"})
        for number in range(draw(st.integers(0, 2)))
    ]
    tiers = ("block", "rack")[: draw(st.integers(0, 2))]
    paths = {one.name: tuple(draw(st.sampled_from(["", "a", "b"])) for _ in tiers) for one in nodes}
    return cluster(draw(st.permutations(nodes)), paths, *tiers)


@st.composite
def gangs(draw: st.DrawFn, tiers: tuple[str, ...]) -> GangDemand:
    """Draw two or three unlike roles with ties, slices, spreads and preferences."""
    levels = st.sampled_from(["node", *tiers])
    roles: list[Role] = []
    for number in range(draw(st.integers(2, 3))):
        gpus = draw(st.sampled_from([1, 1, 2, 3, 4, 0]))
        pods = draw(st.integers(1, 4 if gpus < 3 else 2))
        # Requests that differ keep roles apart that would choose as one.
        role = Role(name=f"role-{number}", pods=pods, gpus=gpus, requests={"cpu": 500 + number})
        match draw(
            st.sampled_from(["", "", "tie", "slice", "slices", "apart", "spread", "prefer", "anywhere"])
        ):
            case "tie" if roles and not roles[0].anywhere:
                role = replace(role, tie=Tie(roles[0].name, draw(levels)))
            case "slice" if pods in (2, 4):
                role = replace(role, slices=(Slice(draw(st.sampled_from([2, pods])), draw(levels)),))
            case "slices" if pods == 4 and tiers:
                role = replace(role, slices=(Slice(4, tiers[0]), Slice(2, "node")))
            case "apart":
                role = replace(role, spread=Spread.REQUIRED, spread_level=draw(levels))
            case "spread":
                role = replace(role, spread=Spread.PREFERRED)
            case "prefer":
                term = SelectorTerm((Requirement(LABEL, "In", ("b",)),))
                role = replace(role, preferences=(NodePreference(draw(st.integers(1, 3)), term),))
            case "anywhere":
                role = replace(role, anywhere=True)
            case _:
                pass
        roles.append(role)
    return GangDemand(roles=tuple(roles), objective=draw(st.sampled_from(Objective)))


@st.composite
def cases(draw: st.DrawFn) -> tuple[Snapshot, GangDemand]:
    """Draw a cluster, and a gang for it."""
    snapshot = draw(clusters())
    return snapshot, draw(gangs(snapshot.fabric.tiers))


def in_order(gang: GangDemand, fleet: Fleet) -> list[Role]:
    """Return the roles of *gang*, all unlike, in the order in which they choose."""
    return [pod_set.role for pod_set in make_gang(gang, fleet).pod_sets]


@settings(max_examples=examples(600))
@given(cases())
def test_all_roles_have_a_place_whenever_there_is_one(case: tuple[Snapshot, GangDemand]) -> None:
    """And at the closest level; what is placed keeps within every node, tie, slice and spread, GPU by GPU."""
    snapshot, gang = case
    fleet = fleet_of(snapshot)
    oracle = Oracle(gang, fleet)
    roles = in_order(gang, fleet)
    level = oracle.level(roles)
    answer = plan_on(gang, fleet)
    if isinstance(answer, Infeasible):
        event("infeasible")
        assert level is None
        assert answer.proven
        return
    placed = {role.name: counts_of(answer, role.name, fleet) for role in roles}
    assert oracle.fits(placed)
    assert [] == [role.name for role in roles if not oracle.allowed(role, placed[role.name], placed)]
    for role in roles:
        assert list(range(role.pods)) == [slot.worker for slot in answer.role(role.name).slots]
    given_out = [
        (position, gpu)
        for position, gpus in gpus_of(answer, [role.name for role in roles], fleet).items()
        for gpu in gpus
    ]
    assert len(given_out) == len(set(given_out)) == sum(role.pods * role.gpus for role in roles)
    assert all(gpu not in (fleet.nodes[position].used or ()) for position, gpu in given_out)
    decides = [role for role in roles if not role.anywhere] or roles
    positions = {position for role in decides for position in placed[role.name]}
    event(f"level {level}")
    assert level is not None
    spanned = min(depth for depth, span in oracle.spans() if positions <= set(span))
    assert spanned <= level if oracle.is_spread else spanned == level
    assert level_names(fleet)[spanned] == answer.level


@settings(max_examples=examples(600))
@given(cases())
def test_each_role_in_turn_has_the_best_nodes(case: tuple[Snapshot, GangDemand]) -> None:
    """Given the roles before it, no nodes that leave the rest
    a place are better: of the first role, in any domain.
    """
    snapshot, gang = case
    fleet = fleet_of(snapshot)
    oracle = Oracle(gang, fleet)
    answer = plan_on(gang, fleet)
    if isinstance(answer, Infeasible):
        return
    roles = in_order(gang, fleet)
    level = oracle.level(roles)
    decides = [role for role in roles if not role.anywhere] or roles
    placed = {role.name: counts_of(answer, role.name, fleet) for role in roles}
    positions = {position for role in decides for position in placed[role.name]}
    spans = [span for depth, span in oracle.spans() if depth == level]
    for number, role in enumerate(roles):
        earlier = {other.name: placed[other.name] for other in roles[:number]}
        taken = gpus_of(answer, list(earlier), fleet)
        # Anyone who chooses first decides between the domains; all others keep to the one of the gang.
        ways = [
            counts
            for span in (spans if number == 0 else [span for span in spans if positions <= set(span)])
            for counts in oracle.extensions(roles[number:], span, earlier)
        ]
        best = min(oracle.score(role, counts, taken) for counts in ways)
        assert best == oracle.score(role, placed[role.name], taken), role.name
        assert all(step.proven for step in answer.role(role.name).why)
    event(f"{len(roles)} roles on level {level}")


def test_a_first_role_that_takes_the_room_of_the_next_makes_way() -> None:
    """The workers' two widest nodes have the only cpu for the leader next to them: they leave it some."""
    snapshot = cluster([node("a", cpu=4000), node("b", cpu=4000), node("c", cpu=4000)])
    workers = Role(name="worker", pods=8, gpus=1, requests={"cpu": 1000})
    leader = Role(name="leader", requests={"cpu": 1000}, tie=Tie("worker"))
    answer = plan_on(GangDemand(roles=(leader, workers)), fleet_of(snapshot))

    assert isinstance(answer, Placement)
    assert 3 == len(answer.role("worker").shares)
    assert answer.role("leader").slots[0].node in {slot.node for slot in answer.role("worker").slots}


def test_room_is_kept_on_fleets_too_large_for_every_choice() -> None:
    """The same on a hundred nodes: found, and marked as what may not be the best."""
    snapshot = cluster([node(f"n{number}", cpu=4000) for number in range(100)])
    workers = Role(name="worker", pods=8, gpus=1, requests={"cpu": 1000})
    leader = Role(name="leader", requests={"cpu": 1000}, tie=Tie("worker"))
    answer = plan_on(GangDemand(roles=(leader, workers)), fleet_of(snapshot))

    assert isinstance(answer, Placement)
    assert answer.role("leader").slots[0].node in {slot.node for slot in answer.role("worker").slots}
    assert not any(step.proven for step in answer.role("worker").why)


@st.composite
def large(draw: st.DrawFn) -> Snapshot:
    """Draw 600 nodes of few kinds, a third of them without GPUs, in racks of twenty."""
    # So many draws would be too many for one example.
    rng, nodes = Random(draw(st.integers(0, 1 << 32))), []
    for number in range(600):
        name, labels = f"n{number:03d}", {LABEL: "a"}
        cpu = rng.choice((3000, 9000))
        if rng.random() < 0.33:
            nodes.append(without_gpus(name, cpu=cpu, labels=labels))
        else:
            links = rng.choice((PCIE, PAIRS))
            nodes.append(
                node(name, range(rng.randrange(links.size + 1)), links, nic=12.5, cpu=cpu, labels=labels)
            )
    return cluster(nodes, {one.name: (f"r{number // 20}",) for number, one in enumerate(nodes)}, "rack")


@st.composite
def gangs_for_large(draw: st.DrawFn) -> GangDemand:
    """Draw workers with some of: parameter servers, a tied leader, and pods that go anywhere."""
    workers = Role(
        name="worker",
        pods=draw(st.sampled_from([1, 6, 30])),
        gpus=draw(st.integers(0, 3)),
        requests={"cpu": 2000},
    )
    others = (
        Role(name="ps", pods=draw(st.sampled_from([1, 5])), requests={"cpu": 1000}, serves="worker"),
        Role(name="leader", requests={"cpu": 500}, tie=Tie("worker")),
        Role(
            name="reader",
            pods=draw(st.integers(1, 9)),
            requests={"cpu": 3000},
            anywhere=True,
            spread=draw(st.sampled_from([Spread.NONE, Spread.PREFERRED])),
        ),
    )
    return GangDemand(
        roles=(
            workers,
            *draw(st.lists(st.sampled_from(others), unique_by=lambda role: role.name, min_size=1)),
        ),
        objective=draw(st.sampled_from(Objective)),
    )


@settings(max_examples=examples(50), deadline=None)
@given(large(), gangs_for_large())
def test_groups_of_equal_nodes_change_no_answer(snapshot: Snapshot, gang: GangDemand) -> None:
    """A selector that every node meets has each node looked at by itself, and the answer is the same."""
    fleet = fleet_of(snapshot)
    by_node = replace(gang, roles=tuple(replace(role, node_selector={LABEL: "a"}) for role in gang.roles))
    expected, found = plan_on(by_node, fleet), plan_on(gang, fleet)
    event(type(found).__name__)
    if isinstance(expected, Placement):
        assert expected == found
    else:
        assert isinstance(found, Infeasible)


def test_a_rack_that_the_workers_like_best_is_left_where_the_others_have_no_place() -> None:
    """On a fleet too large to try all choices, too: the next rack holds all roles."""
    fast = [node(f"a{number:02d}", links=SWITCHED, cpu=2000) for number in range(40)]
    slow = [node(f"b{number:02d}", links=PAIRS, cpu=9000) for number in range(40)]
    fleet = fleet_of(cluster([*fast, *slow], {one.name: (one.name[0],) for one in (*fast, *slow)}, "rack"))
    workers = Role(name="worker", pods=40, gpus=2, requests={"cpu": 2000}, one_per_node=True)
    helpers = Role(name="helper", pods=40, requests={"cpu": 1000})
    alone = plan_on(GangDemand(roles=(workers,)), fleet)
    both = plan_on(GangDemand(roles=(workers, helpers)), fleet)
    assert isinstance(alone, Placement)
    assert isinstance(both, Placement)
    assert ["a", "b"] == [alone.domain, both.domain]
