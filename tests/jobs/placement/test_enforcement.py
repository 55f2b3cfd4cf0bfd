"""The means that a cluster allows, and what each puts onto the job."""

import pytest

from arena_topo.errors import UsageError
from arena_topo.jobs.placement.enforcement import Ground, at_once, choose_means, held, let_go
from arena_topo.manifest.plan_on_job import changes
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.keys import PIN_NODES, PLAN, PLANNED
from arena_topo.model.objects import Object
from arena_topo.model.plan.placement import Slot
from arena_topo.model.plan.plan_record import Enforcement, Pin, PlanRecord, Stage, decode
from arena_topo.pin.affinity import spread
from tests.objects import mpijob

V2, ALPHA = ApiVersion.V2BETA1, ApiVersion.V1ALPHA1
POLICY = Ground(version=V2, admission=True)
GATES = Ground(version=V2)
NEITHER = Ground(version=V2, keeps_gates=False)
OLD = Ground(version=ALPHA)
HOSTNAME = "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("pin", "ground", "gang", "expected"),
    [
        (Pin.AUTO, POLICY, False, Enforcement.ADMISSION),
        (Pin.AUTO, GATES, False, Enforcement.GATES),
        (Pin.AUTO, NEITHER, False, Enforcement.AFFINITY),
        (Pin.AUTO, OLD, False, Enforcement.AFFINITY),
        (Pin.NODES, POLICY, False, Enforcement.AFFINITY),
        (Pin.WORKERS, GATES, False, Enforcement.GATES),
        (Pin.GPUS, GATES, False, Enforcement.GATES),
        (Pin.NONE, POLICY, False, Enforcement.NONE),
        (Pin.NONE, GATES, True, Enforcement.GATES),
        (Pin.AUTO, POLICY, True, Enforcement.GATES),
    ],
)
def test_the_most_exact_means_is_taken(
    pin: Pin, ground: Ground, *, gang: bool, expected: Enforcement
) -> None:
    """The policy before gates before affinity, and gates wherever they are the gang."""
    assert expected is choose_means(pin, ground, gates_are_the_gang=gang)


@pytest.mark.parametrize(("pin", "ground"), [(Pin.WORKERS, NEITHER), (Pin.WORKERS, OLD), (Pin.GPUS, NEITHER)])
def test_a_pin_that_cannot_be_kept_is_refused(pin: Pin, ground: Ground) -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match=f"--pin={pin.value} cannot be kept") as refused:
        choose_means(pin, ground)
    assert "--pin=auto" in refused.value.hint


def record(means: Enforcement, stage: Stage = Stage.CONFIRMED) -> PlanRecord:
    """Return a plan of four workers on two nodes."""
    slots = tuple(Slot(at, f"n{at // 2}", (at,)) for at in range(4))
    return PlanRecord(stage=stage, slots=slots, enforcement=means, hostnames={"n1": "host-1"})


def worker(job: Object) -> Object:
    """Return the worker template of a v2beta1 job."""
    return job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]  # type: ignore[no-any-return]  # an object of the API


def test_a_held_job_makes_no_pods_or_gated_ones() -> None:
    """And bears its plan, and labels by which it is found."""
    proposed = record(Enforcement.ADMISSION, Stage.PROPOSED)
    suspended, gated = (
        held(mpijob("job"), proposed, Enforcement.ADMISSION),
        held(mpijob("job"), proposed, Enforcement.GATES),
    )
    assert suspended["spec"]["runPolicy"]["suspend"] is True
    assert [{"name": "arena-topo.dev/gang"}] == worker(gated)["spec"]["schedulingGates"]
    assert "runPolicy" not in gated["spec"]
    for job in (suspended, gated):
        assert proposed == decode(job["metadata"]["annotations"][PLAN])
        assert "true" == job["metadata"]["labels"][PLANNED]
        assert "true" == worker(job)["metadata"]["labels"][PLANNED]


def test_the_policy_gets_a_list_of_hosts() -> None:
    """By the hostname label, which may differ from the node's name."""
    confirmed = record(Enforcement.ADMISSION)
    job = let_go(
        held(mpijob("job"), record(Enforcement.ADMISSION, Stage.PROPOSED), Enforcement.ADMISSION), confirmed
    )
    assert "0:n0,2:host-1,4:" == worker(job)["metadata"]["annotations"][PIN_NODES]
    assert job["spec"]["runPolicy"]["suspend"] is False


def test_affinity_names_the_nodes_and_spreads_evenly() -> None:
    """Beside what the user's template required."""
    made = held(mpijob("job"), record(Enforcement.AFFINITY, Stage.PROPOSED), Enforcement.AFFINITY)
    own = {"key": "zone", "operator": "Exists"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    worker(made)["spec"]["affinity"] = {
        "nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [own]}]}}
    }
    spec = worker(let_go(made, record(Enforcement.AFFINITY)))["spec"]
    term = {"key": HOSTNAME, "operator": "In", "values": ["n0", "host-1"]}
    assert [{"matchExpressions": [own, term]}] == spec["affinity"]["nodeAffinity"][required][
        "nodeSelectorTerms"
    ]
    assert [HOSTNAME] == [each["topologyKey"] for each in spec["topologySpreadConstraints"]]


def test_uneven_shares_are_not_spread() -> None:
    """A spread constraint would forbid them."""
    assert None is spread("job", ["a", "a", "b"])
    assert None is spread("job", ["a", "a"])


def test_an_unconfirmed_plan_lets_nothing_go() -> None:
    """Only the plan on the job changes."""
    before = held(mpijob("job"), record(Enforcement.ADMISSION, Stage.PROPOSED), Enforcement.ADMISSION)
    waiting = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION, waiting_reason="full")
    operations = changes(before, let_go(before, waiting))
    assert ["test", "replace"] == [each["op"] for each in operations]
    assert {"/metadata/annotations/arena-topo.dev~1plan"} == {each["path"] for each in operations}


def test_a_confirmed_plan_is_one_patch() -> None:
    """Plan, template and suspension change together, and only if the plan is the one that was read."""
    before = held(mpijob("job"), record(Enforcement.ADMISSION, Stage.PROPOSED), Enforcement.ADMISSION)
    operations = changes(before, let_go(before, record(Enforcement.ADMISSION)))
    assert [
        ("test", "/metadata/annotations/arena-topo.dev~1plan"),
        ("replace", "/metadata/annotations/arena-topo.dev~1plan"),
        ("replace", "/spec/mpiReplicaSpecs/Worker/template"),
        ("add", "/spec/runPolicy/suspend"),
    ] == [(each["op"], each["path"]) for each in operations]


def test_v1alpha1_is_pinned_as_it_is_created() -> None:
    """Its operator cannot be made to wait."""
    job = at_once(mpijob("job", ALPHA), record(Enforcement.AFFINITY, Stage.PROPOSED))
    assert Stage.CONFIRMED is decode(job["metadata"]["annotations"][PLAN]).stage
    assert "affinity" in job["spec"]["template"]["spec"]
    with pytest.raises(UsageError, match="v1alpha1 cannot be held back"):
        held(mpijob("job", ALPHA), record(Enforcement.AFFINITY), Enforcement.AFFINITY)
