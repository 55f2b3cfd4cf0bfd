"""Which queues ask our planner, and what ``doctor`` learns about jobs that wait."""

from datetime import UTC, datetime

import pytest

from arena_topo.cluster.capabilities import detect_with_access, queue_api, waiting_room
from arena_topo.cluster.doctor import diagnose
from arena_topo.model.gang import ClusterFacts, WaitingRoom
from arena_topo.model.keys import CHECK_CONTROLLER
from arena_topo.model.objects import Object
from arena_topo.model.reports import State
from tests.fakes import Answer, Call, missing, refusal, session, unserved

BASE = "/apis/kueue.x-k8s.io/v1beta2"
APIS = {"groups": [{"name": "kueue.x-k8s.io", "versions": [{"groupVersion": "kueue.x-k8s.io/v1beta2"}]}]}


def named(name: str, **spec: object) -> Object:
    """Return an object of Kueue."""
    return {"metadata": {"name": name}, "spec": spec}


def cluster_queue(*checks: str) -> Object:
    """Return a ClusterQueue with quota for 16 GPUs."""
    resources = [{"name": "nvidia.com/gpu", "nominalQuota": "16"}, {"name": "cpu", "nominalQuota": 3}]
    return named(
        "research",
        resourceGroups=[{"flavors": [{"resources": resources}]}],
        admissionChecksStrategy={"admissionChecks": [{"name": check} for check in checks]},
    )


def served(*checks: str) -> dict[str, Object]:
    """Return what a cluster answers that has a queue with *checks*, of which ``ours`` is our own."""
    queue = cluster_queue(*checks)
    others = [named("ours", controllerName=CHECK_CONTROLLER), named("other", controllerName="somebody")]
    return {
        "/apis": APIS,
        f"{BASE}/namespaces/ml/localqueues/team": named("team", clusterQueue="research"),
        f"{BASE}/clusterqueues/research": queue,
        f"{BASE}/clusterqueues": {"items": [queue]},
        f"{BASE}/admissionchecks": {"items": others},
        "/api/v1/nodes": {
            "items": [{"metadata": {"name": "a"}, "status": {"allocatable": {"nvidia.com/gpu": "8"}}}]
        },
    }


@pytest.mark.parametrize(("checks", "version"), [((), ""), (("other",), ""), (("other", "ours"), "v1beta2")])
def test_a_queue_asks_by_a_check_of_ours(checks: tuple[str, ...], version: str) -> None:
    """By its controller, whatever its name."""
    paths = served(*checks)
    opened, _ = session(lambda call: Answer(body=paths[call.path]))
    assert version == queue_api(opened, "ml", "team")


@pytest.mark.parametrize("answer", [refusal(403, "Forbidden"), missing("localqueue")])
def test_what_may_not_be_seen_and_what_is_not_there_asks_nobody(answer: Answer) -> None:
    """Submit continues in both cases."""
    opened, _ = session(lambda call: Answer(body=APIS) if call.path == "/apis" else answer)
    assert not queue_api(opened, "ml", "team")


def test_without_kueue_no_queue_asks() -> None:
    """One call says so."""
    opened, transport = session(lambda _: Answer(body={"groups": []}))
    assert not queue_api(opened, "ml", "team")
    assert ["/apis"] == [call.path for call in transport.calls]


def test_quota_and_gpus_are_counted() -> None:
    """Those of the queues that ask; the Lease cannot be seen, so that no controller is known."""
    paths = served("ours")

    def answer(call: Call) -> Answer:
        return Answer(body=paths[call.path]) if call.path in paths else missing("lease")

    found = waiting_room(session(answer)[0])
    assert WaitingRoom(kueue=True, queues=("research",), quota=16, gpus=8) == found


@pytest.mark.parametrize(
    ("room", "state", "told"),
    [
        (WaitingRoom(controller=True), State.OK, "Kueue is the better choice"),
        (WaitingRoom(kueue=True), State.ABSENT, "no queue asks our planner"),
        (WaitingRoom(kueue=True, queues=("q",), quota=8, gpus=8), State.PROBLEM, "no controller answers"),
        (
            WaitingRoom(controller=True, kueue=True, queues=("q",), quota=16, gpus=8),
            State.PROBLEM,
            "quota for 16 GPUs, and the nodes have 8",
        ),
        (WaitingRoom(controller=True, kueue=True, queues=("q",), quota=8, gpus=8), State.OK, "answers"),
    ],
)
def test_doctor_says_who_decides_on_jobs_that_wait(room: WaitingRoom, state: State, told: str) -> None:
    """And what is wrong with it."""
    (finding,) = [
        each for each in diagnose(ClusterFacts(waiting=room), namespace="ml") if each.topic == "Waiting jobs"
    ]
    assert state is finding.state
    assert told in f"{finding.found} {finding.follows}"


def test_without_both_doctor_says_nothing_of_it() -> None:
    """Neither Kueue nor a controller is what most clusters have."""
    findings = diagnose(ClusterFacts(waiting=WaitingRoom()), namespace="ml")
    assert "Waiting jobs" not in {finding.topic for finding in findings}


LEASE = "/apis/coordination.k8s.io/v1/namespaces/arena-topo-system/leases/arena-topo-controller"
POLICY = "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies/arena-topo-controller"
BINDING = POLICY.replace("policies", "policybindings")


@pytest.mark.parametrize(
    ("policy", "binding", "runs", "limited"),
    [
        ({}, {"spec": {"validationActions": ["Deny"]}}, True, True),
        ({}, {"spec": {"validationActions": ["Audit"]}}, True, False),
        ({}, {"spec": {"validationActions": 5}}, True, False),
        ({}, missing("binding"), True, False),
        (missing("policy"), {}, True, False),
        (refusal(403, "Forbidden"), {}, True, None),
        (unserved(), {}, True, None),
        (missing("policy"), {}, False, None),
    ],
)  # fmt: skip
def test_doctor_tells_of_a_controller_whose_token_nothing_limits(
    policy: Object | Answer, binding: Object | Answer, runs: bool, limited: bool | None
) -> None:
    """Only where there is a controller, a server that has such policies, and a user who may look."""
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    lease: Object | Answer = {"spec": {"holderIdentity": "a", "renewTime": now}} if runs else missing("lease")
    paths: dict[str, Object | Answer] = {
        "/apis": {"groups": []},
        LEASE: lease,
        POLICY: policy,
        BINDING: binding,
    }

    def answer(call: Call) -> Answer:
        others: Object = {"items": []} if call.method == "GET" else {"status": {"allowed": True}}
        found = paths.get(call.path, others)
        return found if isinstance(found, Answer) else Answer(body={"metadata": {"name": "x"}, **found})

    facts = detect_with_access(session(answer)[0])
    told = [each for each in diagnose(facts, namespace="ml") if each.topic == "Controller's token"]
    assert limited is facts.controller_limited
    assert [State.ABSENT] * (limited is False) == [each.state for each in told]
    assert all("controller manifest" in each.command for each in told)
