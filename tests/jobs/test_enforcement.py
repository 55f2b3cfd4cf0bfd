"""How a cluster can enforce a plan, and what that puts onto the job."""

from dataclasses import replace

import pytest

from arena_topo.errors import UsageError
from arena_topo.jobs.enforce import (
    PinSupport,
    choose_enforcement,
    claimant_by_worker,
    pinned_immediately,
    rewritten,
    suspended_with_plan,
)
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.training_operator import TFJOB
from arena_topo.manifest.plan_on_job import changes, with_pins
from arena_topo.model.keys import PIN_NODES, PLAN, PLANNED
from arena_topo.model.objects import Object
from arena_topo.model.placement_options import Pin
from arena_topo.model.plan_record import (
    Enforcement,
    GpuEnforcement,
    PlannedRole,
    PlanRecord,
    Slot,
    Stage,
    decode,
)
from arena_topo.pin.affinity import spread_constraint
from tests.kinds.jobs import training_job
from tests.objects import mpijob

V2, ALPHA = ApiVersion.V2BETA1, ApiVersion.V1ALPHA1
POLICY = PinSupport(kind=V2, admission=True)
GATES = PinSupport(kind=V2)
NEITHER = PinSupport(kind=V2, keeps_gates=False)
OLD = PinSupport(kind=ALPHA)
HOSTNAME = "kubernetes.io/hostname"


@pytest.mark.parametrize(
    ("pin", "support", "gang", "expected"),
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
def test_the_most_exact_enforcement_is_taken(
    pin: Pin, support: PinSupport, *, gang: bool, expected: Enforcement
) -> None:
    """The policy before gates before affinity, and gates wherever they are the gang."""
    assert expected is choose_enforcement(pin, support, gates_are_the_gang=gang)


@pytest.mark.parametrize(
    ("pin", "support"), [(Pin.WORKERS, NEITHER), (Pin.WORKERS, OLD), (Pin.GPUS, NEITHER)]
)
def test_a_pin_that_cannot_be_kept_is_refused(pin: Pin, support: PinSupport) -> None:
    """With what to do instead."""
    with pytest.raises(UsageError, match=f"--pin={pin.value} cannot be enforced") as refused:
        choose_enforcement(pin, support)
    assert "--pin=auto" in refused.value.hint


def record(enforcement: Enforcement, stage: Stage = Stage.CONFIRMED) -> PlanRecord:
    """Return a plan of four workers on two nodes."""
    slots = tuple(Slot(at, f"n{at // 2}", (at,)) for at in range(4))
    return PlanRecord(stage=stage, slots=slots, enforcement=enforcement, hostnames={"n1": "host-1"})


def worker(job: Object) -> Object:
    """Return the worker template of a v2beta1 job."""
    return job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]  # type: ignore[no-any-return]  # an object of the API


def suspended_job(plan: PlanRecord) -> Object:
    """Return a job as it is created with its first plan."""
    return with_pins(mpijob("job"), suspended_with_plan(plan))


def with_plan(job: Object, plan: PlanRecord) -> Object:
    """Return *job* with another plan."""
    return with_pins(job, rewritten(job, plan))


def test_a_job_that_waits_for_its_plan_has_no_pods_or_gated_ones() -> None:
    """And bears its plan, and labels by which it is found."""
    proposed = record(Enforcement.ADMISSION, Stage.PROPOSED)
    gates = record(Enforcement.GATES, Stage.PROPOSED)
    suspended, gated = suspended_job(proposed), suspended_job(gates)
    assert suspended["spec"]["runPolicy"]["suspend"] is True
    assert [{"name": "arena-topo.dev/gang"}] == worker(gated)["spec"]["schedulingGates"]
    assert "runPolicy" not in gated["spec"]
    for plan, job in ((proposed, suspended), (gates, gated)):
        assert plan == decode(job["metadata"]["annotations"][PLAN])
        assert "true" == job["metadata"]["labels"][PLANNED]
        assert "true" == worker(job)["metadata"]["labels"][PLANNED]


def test_the_policy_gets_a_list_of_hosts() -> None:
    """By the hostname label, which may differ from the node's name."""
    confirmed = record(Enforcement.ADMISSION)
    job = with_plan(suspended_job(record(Enforcement.ADMISSION, Stage.PROPOSED)), confirmed)
    assert "0:n0,2:host-1,4:" == worker(job)["metadata"]["annotations"][PIN_NODES]
    assert job["spec"]["runPolicy"]["suspend"] is False


def test_affinity_names_the_nodes_and_spreads_evenly() -> None:
    """Next to what the user's template required."""
    made = suspended_job(record(Enforcement.AFFINITY, Stage.PROPOSED))
    own = {"key": "zone", "operator": "Exists"}
    required = "requiredDuringSchedulingIgnoredDuringExecution"
    worker(made)["spec"]["affinity"] = {
        "nodeAffinity": {required: {"nodeSelectorTerms": [{"matchExpressions": [own]}]}}
    }
    spec = worker(with_plan(made, record(Enforcement.AFFINITY)))["spec"]
    term = {"key": HOSTNAME, "operator": "In", "values": ["n0", "host-1"]}
    assert [{"matchExpressions": [own, term]}] == spec["affinity"]["nodeAffinity"][required][
        "nodeSelectorTerms"
    ]
    assert [HOSTNAME] == [each["topologyKey"] for each in spec["topologySpreadConstraints"]]


def test_uneven_shares_are_not_spread() -> None:
    """A spread constraint would forbid them."""
    assert None is spread_constraint("job", ["a", "a", "b"])
    assert None is spread_constraint("job", ["a", "a"])


def test_an_unconfirmed_plan_lets_nothing_go() -> None:
    """Only the plan on the job changes."""
    before = suspended_job(record(Enforcement.ADMISSION, Stage.PROPOSED))
    waiting = PlanRecord(stage=Stage.WAITING, enforcement=Enforcement.ADMISSION, waiting_reason="full")
    operations = changes(before, with_plan(before, waiting))
    assert ["test", "replace"] == [each["op"] for each in operations]
    assert {"/metadata/annotations/arena-topo.dev~1plan"} == {each["path"] for each in operations}


def test_a_confirmed_plan_is_one_patch() -> None:
    """Plan, template and suspension change together, and only if the plan is the one that was read."""
    before = suspended_job(record(Enforcement.ADMISSION, Stage.PROPOSED))
    operations = changes(before, with_plan(before, record(Enforcement.ADMISSION)))
    assert [
        ("test", "/metadata/annotations/arena-topo.dev~1plan"),
        ("replace", "/metadata/annotations/arena-topo.dev~1plan"),
        ("replace", "/spec/mpiReplicaSpecs/Worker/template"),
        ("add", "/spec/runPolicy/suspend"),
    ] == [(each["op"], each["path"]) for each in operations]


def test_v1alpha1_is_pinned_as_it_is_created() -> None:
    """Its operator cannot be made to wait."""
    pins = pinned_immediately(mpijob("job", ALPHA), record(Enforcement.AFFINITY, Stage.PROPOSED))
    job = with_pins(mpijob("job", ALPHA), pins)
    assert Stage.CONFIRMED is decode(job["metadata"]["annotations"][PLAN]).stage
    assert "true" == job["metadata"]["labels"][PLANNED]
    assert "affinity" in job["spec"]["template"]["spec"]


def test_pods_without_gpus_claim_none() -> None:
    """A worker gets its claim, and the parameter server after it none."""
    job = training_job(TFJOB, {"Worker": 1, "PS": 1})
    plan = replace(
        record(Enforcement.ADMISSION),
        slots=(Slot(0, "a", (0, 1)), Slot(1, "b", ())),
        roles=(PlannedRole("worker", 1, {"gpu.nvidia.com": 2}), PlannedRole("ps", 1)),
        gpu_enforcement=GpuEnforcement.CLAIMS,
    )

    assert {0: 0} == claimant_by_worker(plan)
    lists = rewritten(job, plan, {0: ("GPU-1", "GPU-2"), 1: ()}).annotations
    assert "0:job-worker-0-gpus,1:,2:" == lists["arena-topo.dev/pin-claims"]
