"""Parameter servers against every way to place them, and the rule by example."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from arena_topo.model.cluster import GpuNode, Snapshot
from arena_topo.model.plan import GangDemand, Placement, Role, Spread, StepTraffic
from arena_topo.planner.fleet import Fleet
from arena_topo.planner.plan import plan_on
from tests.examples import examples
from tests.planner.fleets import PCIE, SWITCHED, cluster, fleet_of, node
from tests.planner.roles.oracle import counts_of, without_gpus

WORKERS = Role(name="worker", pods=8, gpus=4, requests={"cpu": 1000})
EFFICIENCY = 0.92


def placed_roles(roles: Sequence[Role], fleet: Fleet) -> Placement:
    """Return the placement of a gang of *roles*, which fits."""
    answer = plan_on(GangDemand(roles=tuple(roles)), fleet)
    assert isinstance(answer, Placement)
    return answer


def traffic_of(answer: Placement) -> StepTraffic:
    """Return what *answer* says of its parameter servers."""
    assert answer.traffic is not None
    return answer.traffic


def servers(pods: int, cpu: int = 1000) -> Role:
    """Return so many parameter servers of WORKERS, of so many millicores each."""
    return Role(name="ps", pods=pods, requests={"cpu": cpu}, serves="worker")


@st.composite
def clusters(draw: st.DrawFn) -> Snapshot:
    """Draw machines and nodes without GPUs in racks, with NICs of several rates or of none that is told."""
    nodes: list[GpuNode] = []
    rates = st.sampled_from([0.0, 12.5, 25.0, 25.0])
    for number in range(draw(st.integers(1, 3))):
        links = draw(st.sampled_from([SWITCHED, PCIE]))
        used = draw(st.sets(st.integers(0, links.size - 1), max_size=links.size - 1))
        cpu = draw(st.sampled_from([3000, 5000]))
        nodes.append(node(f"g{number}", sorted(used), links, nic=draw(rates), cpu=cpu))
    nodes += [
        without_gpus(f"c{number}", cpu=draw(st.sampled_from([1000, 3000])), rate=draw(rates))
        for number in range(draw(st.integers(0, 3)))
    ]
    tiers = ("block", "rack")[: draw(st.integers(0, 2))]
    paths = {one.name: tuple(draw(st.sampled_from(["", "a", "b"])) for _ in tiers) for one in nodes}
    return cluster(nodes, paths, *tiers)


def ways(pods: int, places: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield every way to put *pods* onto nodes that have *places*."""
    if not places:
        if not pods:
            yield ()
        return
    for count in range(min(pods, places[0]) + 1):
        for rest in ways(pods - count, places[1:]):
            yield (count, *rest)


def score(
    counts: Sequence[int], workers: Mapping[int, int], snapshot: Snapshot, fleet: Fleet
) -> tuple[float, int, int, int]:
    """Return what the rule compares servers by: slowest NIC, distance, servers next to GPUs, nodes."""
    pods = sum(counts)
    known = [nic.rate for one in snapshot.nodes for nic in one.nics if nic.rate]
    slowest = 0.0
    for position, own in enumerate(counts):
        node = fleet.nodes[position]
        rate = (sum(nic.rate for nic in node.nics) or min(known, default=1.0)) * EFFICIENCY
        if node.gpu_total:
            rate *= max(fleet.state(position).free, 0.5) / node.gpu_total
        beside = workers.get(position, 0)
        # A worker sends a part to every server elsewhere, a server one to every worker elsewhere.
        sent = sum(
            1 / pods for _ in range(beside) for at, n in enumerate(counts) for _ in range(n) if at != position
        )
        sent += sum(
            1 / pods for _ in range(own) for at, n in workers.items() for _ in range(n) if at != position
        )
        slowest = max(slowest, sent / rate)
    return (
        round(slowest, 9),
        sum(count * distance(position, workers, fleet) for position, count in enumerate(counts)),
        sum(count for position, count in enumerate(counts) if fleet.nodes[position].gpu_total),
        sum(count > 0 for count in counts),
    )


def distance(position: int, workers: Mapping[int, int], fleet: Fleet) -> int:
    """Return how many tiers up the domain with most workers holds the node: 0 is the finest."""
    for up, tier in enumerate(reversed(fleet.domains)):
        held = {
            domain.start: sum(count for at, count in workers.items() if domain.start <= at < domain.end)
            for domain in tier
        }
        home = max(held, key=lambda start: (held[start], -start), default=None)
        for domain in tier:
            if domain.start == home and held[home] and domain.start <= position < domain.end:
                return up
    return len(fleet.tiers)


@settings(max_examples=examples(800))
@given(clusters(), st.integers(1, 4), st.sampled_from([1, 2]), st.integers(1, 4))
def test_no_other_nodes_are_better_for_the_servers(
    snapshot: Snapshot, workers: int, gpus: int, pods: int
) -> None:
    """By the time of the slowest NIC, then near most
    workers, then on nodes without GPUs, then on few nodes.
    """
    fleet = fleet_of(snapshot)
    roles = (Role(name="worker", pods=workers, gpus=gpus, requests={"cpu": 1000}), servers(pods))
    answer = plan_on(GangDemand(roles=roles), fleet)
    if not isinstance(answer, Placement):
        return
    of_workers = counts_of(answer, "worker", fleet)
    places = [
        (one.allocatable["cpu"] - 1000 * of_workers.get(position, 0)) // 1000
        for position, one in enumerate(fleet.nodes)
    ]
    found = counts_of(answer, "ps", fleet)
    best = min(score(counts, of_workers, snapshot, fleet) for counts in ways(pods, places))
    assert best == score(
        [found.get(position, 0) for position in range(len(fleet.nodes))], of_workers, snapshot, fleet
    )
    assert traffic_of(answer).servers == pytest.approx(best[0], abs=1e-8)


def racks(rate: float = 25.0, cpu_nodes: int = 6) -> Snapshot:
    """Return a rack of four machines and one of nodes without GPUs, all with NICs of *rate*."""
    nodes = [node(f"g{number}", links=SWITCHED, nic=25.0) for number in range(4)]
    nodes += [without_gpus(f"c{number}", cpu=64_000, rate=rate) for number in range(cpu_nodes)]
    paths = {one.name: ("gpus" if one.gpu_total else "cpus",) for one in nodes}
    return cluster(nodes, paths, "rack")


def test_servers_spread_until_they_are_no_longer_the_bottleneck() -> None:
    """Eight workers, two on a node: four servers keep up with
    them on four nodes, and eight on four nodes as well.
    """
    fleet = fleet_of(racks())
    four, eight = placed_roles([WORKERS, servers(4)], fleet), placed_roles([WORKERS, servers(8)], fleet)

    assert {1} == set(counts_of(four, "ps", fleet).values())
    assert 4 == len(four.role("ps").shares)
    assert 4 == len(eight.role("ps").shares)
    assert traffic_of(four).servers == traffic_of(eight).servers == pytest.approx(2 / 25 / EFFICIENCY)


def test_slow_nodes_without_gpus_are_no_place_for_servers() -> None:
    """NIC rate goes before all else: at a tenth of the rate the machines themselves are faster."""
    fleet = fleet_of(racks(rate=2.5))
    answer = placed_roles([WORKERS, servers(4)], fleet)

    assert {"gpus"} == {share.domain[0] for share in answer.role("ps").shares}


def test_servers_keep_to_a_level_that_is_required() -> None:
    """They exchange data with the workers, as a launcher does not."""
    fleet = fleet_of(racks())
    launcher = Role(name="launcher", requests={"cpu": 1000}, anywhere=True)
    gang = GangDemand(roles=(WORKERS, servers(4), launcher), required_level="rack")
    answer = plan_on(gang, fleet)

    assert isinstance(answer, Placement)
    assert {"gpus"} == {share.domain[0] for share in answer.role("ps").shares}
    assert "cpus" == answer.role("launcher").shares[0].domain[0]


def test_all_reduce_and_nodes_that_sum_stand_beside_the_servers() -> None:
    """A ring over eight workers moves 2 * 7 / 8 of each GB, one
    over their four nodes 2 * 3 / 4; with four more it is 1.
    """
    traffic = traffic_of(placed_roles([WORKERS, servers(4)], fleet_of(racks())))

    assert traffic.all_reduce == pytest.approx(2 * 7 / 8 / 25 / EFFICIENCY)
    assert [0, 1, 2, 4] == [count for count, _ in traffic.with_cpu_nodes]
    assert traffic.with_cpu_nodes[0][1] == pytest.approx(2 * 3 / 4 / 25 / EFFICIENCY)
    assert traffic.with_cpu_nodes[-1][1] == pytest.approx(1 / 25 / EFFICIENCY)
    assert 6 == traffic.available
    assert not traffic.assumed


def test_rates_that_are_not_known_are_said_to_be_assumed() -> None:
    """They count as the lowest that is."""
    assert traffic_of(placed_roles([WORKERS, servers(4)], fleet_of(racks(rate=0.0)))).assumed


def test_servers_that_are_to_be_spread_take_as_few_of_a_node_as_they_can() -> None:
    """Whatever the rule would take: six servers on ten nodes
    stand on six, and of twelve no three share a node.
    """
    six, twelve = (
        placed_roles([WORKERS, replace(servers(pods), spread=Spread.PREFERRED)], fleet_of(racks()))
        for pods in (6, 12)
    )

    assert [1] * 6 == list(counts_of(six, "ps", fleet_of(racks())).values())
    assert 2 == max(counts_of(twelve, "ps", fleet_of(racks())).values())
