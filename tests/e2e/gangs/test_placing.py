"""Planned is what runs: gangs on the stock scheduler, held by gates, on a real API server."""

import json
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime

import pytest

from arena_topo.model.text.quantity import parse_instant
from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.machines.nodes import NodeSpec
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang


@pytest.fixture
def four_nodes(
    plane: ControlPlane, namespace: str, keep_nodes: Callable[[Sequence[NodeSpec]], list[str]]
) -> Iterator[list[str]]:
    """Names of four servers of eight GPUs, two in a rack;
    what was reserved on them is released in the end.
    """
    rack = "topology.kubernetes.io/rack"
    yield keep_nodes([NodeSpec(f"place-{at}", labels={rack: f"r{at // 2}"}) for at in range(4)])
    for job in plane.kube.list(*MPIJOB, namespace):
        plane.kube.delete(*MPIJOB, job["metadata"]["name"], namespace)
    eventually(lambda: not plane.kube.list(*MPIJOB, namespace), "the jobs to go")


def worker_nodes(kube: Kube, namespace: str, name: str) -> dict[str, str]:
    """Return the node of each worker that has one."""
    found = pods.of_job(kube, namespace, name, "worker")
    return {
        pod["metadata"]["name"].removeprefix(f"{name}-"): pod["spec"]["nodeName"]
        for pod in found
        if pod["spec"].get("nodeName")
    }


def gates(kube: Kube, namespace: str, name: str) -> list[bool]:
    """Return for every worker whether it is held back."""
    return [bool(pod["spec"].get("schedulingGates")) for pod in pods.of_job(kube, namespace, name, "worker")]


def workers_with_nodes(kube: Kube, namespace: str, name: str, workers: int) -> dict[str, str]:
    """Return the nodes of the workers once all of them have one."""

    def all_placed() -> dict[str, str] | None:
        found = worker_nodes(kube, namespace, name)
        return found if len(found) == workers else None

    return eventually(all_placed, f"{workers} workers of {name} to have a node")


@pytest.mark.usefixtures("four_nodes")
def test_a_gang_runs_where_it_was_planned(arena: Arena, kube: Kube, namespace: str) -> None:
    """Two nodes of one rack, workers in order, and get says that all are where they were planned."""
    outcome = submit_gang(arena, "gang", 4, 4)
    assert 0 == outcome.code, outcome.err
    assert "on 2 nodes in rack r0" in outcome.err
    assert {
        "worker-0": "place-0",
        "worker-1": "place-0",
        "worker-2": "place-1",
        "worker-3": "place-1",
    } == workers_with_nodes(kube, namespace, "gang", 4)
    assert "4 of 4 workers where planned (gates)" in arena("get", "gang").err


@pytest.mark.usefixtures("four_nodes")
def test_a_gang_that_spreads_evenly_runs_so(arena: Arena, kube: Kube, namespace: str) -> None:
    """Six workers, of which a rack has room for four: three in each of two, and their pods stay there."""
    refused = submit_gang(arena, "even", 6, 4, "--spread-evenly=row")
    assert 2 == refused.code
    assert "--spread-evenly: the fabric has no level 'row'" in refused.err
    outcome = submit_gang(arena, "even", 6, 4, "--spread-evenly=rack")
    assert 0 == outcome.code, outcome.err
    nodes = workers_with_nodes(kube, namespace, "even", 6)
    racks = {"place-0": "r0", "place-1": "r0", "place-2": "r1", "place-3": "r1"}
    assert {"r0": 3, "r1": 3} == Counter(map(racks.__getitem__, nodes.values()))


@pytest.mark.usefixtures("four_nodes")
def test_a_gang_that_does_not_fit_stays_gated_until_it_is_resumed(
    arena: Arena, kube: Kube, namespace: str
) -> None:
    """It says so in get, resume tells that nothing has changed, and places it once something has."""
    assert 0 == submit_gang(arena, "first", 3, 8).code
    late = submit_gang(arena, "late", 2, 8)
    assert 0 == late.code
    assert "late waits for a placement" in late.err
    assert "nothing of it runs. Retry: arena-topo resume late; give up: arena-topo delete late" in late.err
    eventually(lambda: [True, True] == gates(kube, namespace, "late"), "two gated workers")
    assert "waits for a placement: 2 workers of 8 GPUs do not fit" in arena("get", "late").err
    assert 3 == arena("resume", "late").code
    assert 0 == arena("delete", "first").code

    outcome = arena("resume", "late")
    assert (0, "The job late is placed; 2 workers released\n") == (outcome.code, outcome.out)
    assert 2 == len(workers_with_nodes(kube, namespace, "late", 2))


@pytest.mark.usefixtures("four_nodes")
def test_a_plan_tells_when_a_job_would_start(arena: Arena) -> None:
    """Now; at the deadline of the job in its way; or never
    known, with the name of the job that nobody limits.
    """
    flags = ("plan", "mpi", "--gpus=8", "-o", "json", "--when", "--workers")
    first = json.loads(arena(*flags, "4").out)
    assert (True, []) == (first["fits"], first["when"]["after"])
    assert 0 == submit_gang(arena, "limited", 2, 8, "--running-timeout=2h").code
    assert 0 == submit_gang(arena, "endless", 2, 8).code
    limited, endless = (json.loads(arena(*flags, workers).out)["when"] for workers in ("2", "4"))
    assert ("limited", ["its deadline"]) == (limited["after"][0].rpartition("/")[2], limited["basis"])
    hours = (parse_instant(limited["latest"]) - datetime.now(UTC)).total_seconds() / 3600
    assert 2 == round(hours)
    assert endless["likely"] is None
    assert "endless will end, and this job needs what it holds" in endless["unknown"]


@pytest.mark.usefixtures("four_nodes")
def test_a_job_that_waits_starts_when_another_ends(arena: Arena, kube: Kube, namespace: str) -> None:
    """With --wait the submitter keeps trying, and says what for."""
    assert 0 == submit_gang(arena, "first", 4, 8).code
    arguments = (
        "--gang",
        "--gputopology",
        "--name=late",
        "--workers=4",
        "--gpus=8",
        "--image=train",
        "--wait",
    )
    with arena.running("submit", "mpi", *arguments, "--", "mpirun") as running:
        eventually(lambda: any("waiting for room" in line for line in running.err), "it to wait")
        assert 0 == arena("delete", "first").code
        assert 4 == len(workers_with_nodes(kube, namespace, "late", 4))
        assert 0 == running.process.wait(timeout=120)


@pytest.mark.usefixtures("four_nodes")
def test_a_worker_whose_place_is_gone_gets_another(arena: Arena, kube: Kube, namespace: str) -> None:
    """Its node was cordoned meanwhile; the others stay where they are, and the plan says so."""
    assert 0 == submit_gang(arena, "gang", 4, 4).code
    before = workers_with_nodes(kube, namespace, "gang", 4)
    kube.patch("v1", "Node", "place-1", {"spec": {"unschedulable": True}})
    kube.delete("v1", "Pod", "gang-worker-3", namespace, gracePeriodSeconds="0")
    eventually(lambda: gates(kube, namespace, "gang")[3:] == [True], "the worker to be recreated")
    assert 0 == arena("resume", "gang").code
    after = workers_with_nodes(kube, namespace, "gang", 4)
    assert {**before, "worker-3": after["worker-3"]} == after
    assert after["worker-3"] in {"place-2", "place-3"}
    assert "4 of 4 workers where planned" in arena("get", "gang").err


@pytest.mark.usefixtures("four_nodes", "policy")
def test_with_the_policy_a_worker_comes_back_by_itself(arena: Arena, kube: Kube, namespace: str) -> None:
    """A gang without a place makes no pods at all; resumed,
    each worker is on its node, and again when it is lost.
    """
    assert 0 == submit_gang(arena, "first", 3, 8).code
    assert "late waits for a placement" in submit_gang(arena, "late", 2, 8).err
    assert "Status:    PENDING" in arena("get", "late").out
    assert [] == pods.of_job(kube, namespace, "late")
    assert 0 == arena("delete", "first").code
    assert 0 == arena("resume", "late").code
    before = workers_with_nodes(kube, namespace, "late", 2)
    kube.delete("v1", "Pod", "late-worker-1", namespace, gracePeriodSeconds="0")
    assert before == workers_with_nodes(kube, namespace, "late", 2)
    assert "2 of 2 workers where planned (admission)" in arena("get", "late").err


@pytest.mark.usefixtures("four_nodes")
def test_coalesced_ranks_of_a_node_are_one_pod(arena: Arena, kube: Kube, namespace: str) -> None:
    """Eight workers of two GPUs become two of eight, with as many slots in all and the cpu of four each."""
    outcome = submit_gang(arena, "gang", 8, 2, "--coalesce", "--cpu=2")
    assert 0 == outcome.code, outcome.err
    assert {"worker-0": "place-0", "worker-1": "place-1"} == workers_with_nodes(kube, namespace, "gang", 2)
    job = kube.get(*MPIJOB, "gang", namespace)
    worker = pods.of_job(kube, namespace, "gang", "worker")[0]["spec"]["containers"][0]
    assert 8 == job["spec"]["slotsPerWorker"]
    assert {"nvidia.com/gpu": "8", "cpu": "8"} == worker["resources"]["limits"]


@pytest.mark.usefixtures("four_nodes")
def test_two_gangs_that_half_fit_never_deadlock(arena: Arena, kube: Kube, namespace: str) -> None:
    """Of two gangs of three nodes each on four nodes, submitted at
    once, one runs whole and the other waits whole.
    """
    with ThreadPoolExecutor(2) as pool:
        outcomes = list(pool.map(lambda name: submit_gang(arena, name, 3, 8), ["a", "b"]))
    assert [0, 0] == [outcome.code for outcome in outcomes], outcomes
    winner, loser = ("b", "a") if "a waits for a placement" in outcomes[0].err else ("a", "b")
    assert 3 == len(workers_with_nodes(kube, namespace, winner, 3))
    assert {} == worker_nodes(kube, namespace, loser)


@pytest.mark.usefixtures("four_nodes")
def test_a_worker_that_is_made_again_goes_back_to_its_place(arena: Arena, kube: Kube, namespace: str) -> None:
    """The operator makes it gated; resume releases it to the node that it was planned for."""
    assert 0 == submit_gang(arena, "gang", 4, 4).code
    before = workers_with_nodes(kube, namespace, "gang", 4)
    gated = pods.replaced(kube, namespace, "gang-worker-2")
    assert [{"name": "arena-topo.dev/gang"}] == gated["spec"]["schedulingGates"]
    assert 0 == arena("resume", "gang").code
    assert before == workers_with_nodes(kube, namespace, "gang", 4)


@pytest.mark.timeout(900)
@pytest.mark.parametrize(
    ("submitters", "gpus"),
    [
        (12, 2),
        pytest.param(50, 1, marks=pytest.mark.full("fifty submitters at once take two minutes of CPU")),
    ],
)
def test_submitters_at_once_are_never_given_the_same_gpus(
    arena: Arena, kube: Kube, namespace: str, four_nodes: list[str], submitters: int, gpus: int
) -> None:
    """Processes that submit gangs of two workers over 32 GPUs: none is
    placed over another, the rest wait, and all run as others end.
    """
    names = [f"job-{at}" for at in range(submitters)]
    with ThreadPoolExecutor(submitters) as pool:
        outcomes = list(pool.map(lambda name: submit_gang(arena, name, 2, gpus), names))
    assert [0] * submitters == [each.code for each in outcomes], [each.err for each in outcomes if each.code]
    waiting = [
        name for name, each in zip(names, outcomes, strict=True) if "waits for a placement" in each.err
    ]
    running = [name for name in names if name not in waiting]
    for name in running:
        workers_with_nodes(kube, namespace, name, 2)
    held = Counter(node for name in running for node in worker_nodes(kube, namespace, name).values())
    assert set(held) <= set(four_nodes)
    assert max(held.values()) * gpus <= 8
    assert 2 * len(running) == sum(held.values())
    assert len(running) >= 8 // gpus, "hardly anybody was placed"

    while waiting:
        for name in running:
            kube.delete(*MPIJOB, name, namespace, propagationPolicy="Foreground")
        for name in running:
            kube.wait_gone(*MPIJOB, name, namespace)
        with ThreadPoolExecutor(8) as pool:
            codes = list(pool.map(lambda name: arena("resume", name, timeout=250).code, waiting))
        assert set(codes) <= {0, 3}
        running = [name for name, code in zip(waiting, codes, strict=True) if code == 0]
        assert running, "nobody got the freed GPUs"
        for name in running:
            workers_with_nodes(kube, namespace, name, 2)
        waiting = [name for name in waiting if name not in running]
