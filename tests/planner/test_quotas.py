"""Reservations stay within the quotas of their namespace, those with scopes included."""

from functools import partial

import pytest

from arena_topo.model.plan_record import PlanRecord
from arena_topo.planner.reservations import OtherPlan, Quota, Scope, WorkerTraits, quota_of, within_quotas
from tests.objects import plan_record
from tests.planner.fleets import NVIDIA

plan = partial(plan_record, gpus=2, requests={"cpu": 1000})


def other(
    name: str, order: str, record: PlanRecord, *bound: int, traits: WorkerTraits | None = None
) -> OtherPlan:
    """Return the plan of a job in namespace ``team``."""
    return OtherPlan(
        order=(order, name),
        record=record,
        bound=frozenset(bound),
        namespace="team",
        name=name,
        traits=traits or WorkerTraits(),
    )


def test_the_quota_of_a_namespace_bounds_what_its_jobs_reserve() -> None:
    """Older jobs first; running pods are in it already, and workers with a node reserve nothing more."""
    young = other("young", "2", plan("a2", "a2"))
    old = other("old", "1", plan("a1", "a1"), 0)
    left = list(
        within_quotas([young, old], {"team": [Quota({NVIDIA: 6, "services": 0})]}, {"team": {NVIDIA: 2}})
    )
    assert [("old", 2), ("young", 1)] == [(plan.name, len(plan.record.slots)) for plan in left]
    assert [young] == list(within_quotas([young], {"others": [Quota({NVIDIA: 0})]}, {}))


def test_a_quota_limits_the_resources_of_pods() -> None:
    """By either of its names; what it says of limits, counts and storage is not reserved."""
    hard = {
        "requests.nvidia.com/gpu": 8,
        "cpu": 4000,
        "requests.cpu": 2000,
        "pods": 10,
        "limits.memory": 1,
        "count/jobs.batch": 1,
        "gpu.nvidia.com.deviceclass.resource.k8s.io/devices": 3,
    }
    assert {NVIDIA: 8, "cpu": 2000, "pods": 10, "gpu.nvidia.com": 3} == quota_of(hard)


HIGH = WorkerTraits(priority_class="high")


@pytest.mark.parametrize(
    ("scope", "inside", "outside"),
    [
        (Scope("Terminating"), WorkerTraits(has_deadline=True), WorkerTraits()),
        (Scope("NotTerminating"), WorkerTraits(), WorkerTraits(has_deadline=True)),
        (Scope("BestEffort"), WorkerTraits(is_best_effort=True), WorkerTraits()),
        (Scope("NotBestEffort"), WorkerTraits(), WorkerTraits(is_best_effort=True)),
        (Scope("CrossNamespacePodAffinity"), WorkerTraits(is_near_other_namespaces=True), WorkerTraits()),
        (Scope("PriorityClass"), HIGH, WorkerTraits()),
        (Scope("PriorityClass", "In", frozenset({"high"})), HIGH, WorkerTraits("low")),
        (Scope("PriorityClass", "NotIn", frozenset({"low"})), HIGH, WorkerTraits("low")),
    ],
)
def test_a_quota_with_a_scope_bounds_the_workers_in_it(
    scope: Scope, inside: WorkerTraits, outside: WorkerTraits
) -> None:
    """Others reserve next to it."""
    quotas = {"team": [Quota({NVIDIA: 2}, (scope,))]}

    def reserved(traits: WorkerTraits) -> int:
        (left,) = within_quotas([other("job", "1", plan("a", "a"), traits=traits)], quotas, {})
        return len(left.record.slots)

    assert (1, 2) == (reserved(inside), reserved(outside))


@pytest.mark.parametrize(
    "scopes",
    [
        (Scope("PriorityClass"), Scope("Terminating")),
        (Scope("VolumeAttributesClass", "In", frozenset({"high"})),),
        (Scope("PriorityClass", "DoesNotExist"),),
        (Scope("PriorityClass", "Like", frozenset({"high"})),),
    ],
)
def test_a_quota_whose_scopes_do_not_all_match_bounds_nothing(scopes: tuple[Scope, ...]) -> None:
    """What is not known of a scope takes nobody's reservation away."""
    job = other("job", "1", plan("a", "a"), traits=HIGH)

    assert [job] == list(within_quotas([job], {"team": [Quota({NVIDIA: 0}, scopes)]}, {}))


def test_of_several_quotas_each_bounds() -> None:
    """Running pods count for those of all pods; which of them are in a scope is not known."""
    quotas = {"team": [Quota({NVIDIA: 6}), Quota({NVIDIA: 4}, (Scope("PriorityClass"),))]}
    high, low = other("high", "1", plan("a", "a", "a"), traits=HIGH), other("low", "2", plan("b", "b"))
    left = within_quotas([high, low], quotas, {"team": {NVIDIA: 2}})

    assert [("high", 2), ("low", 0)] == [(job.name, len(job.record.slots)) for job in left]
