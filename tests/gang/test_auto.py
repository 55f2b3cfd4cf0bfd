"""A cluster's own means decide the back-end, with reasons, and nothing is guessed that can be seen."""

from dataclasses import replace
from typing import Any

import pytest

from arena_topo.errors import UsageError
from arena_topo.gang.auto import backend_for, choose_backend, with_cluster_facts
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.gang import ClusterFacts, Policy, Program
from tests.gang.jobs import ALPHA, V1, V2, gang

GATES = frozenset({"schedulingGates"})
STOCK = ClusterFacts(versions=(V2,), worker_fields=GATES, programs={})
POLICY = Policy(api="v1", version=1, gangs=True, mpijobs=True, current=True)


def runs(*kinds: str, ready: bool = True, gangs: str = "") -> dict[str, Program]:
    """Return the programs of *kinds*."""
    return {kind: Program(kind, "system", ready, gangs) for kind in kinds}


@pytest.mark.parametrize(
    ("known_facts", "version", "queue", "expected"),
    [
        ({}, V2, "", "gates"),
        ({}, ALPHA, "", ""),
        ({"worker_fields": None}, V2, "", ""),
        ({"worker_fields": frozenset()}, V1, "", ""),
        ({"pod_groups": "v1alpha2", "policy": POLICY}, V2, "", "native"),
        ({"pod_groups": "v1alpha2"}, V2, "", "gates"),
        ({"policy": POLICY}, V2, "", "gates"),
        ({"ack": True}, V1, "", "ack"),
        ({"programs": runs("volcano")}, ALPHA, "", "volcano"),
        ({"programs": runs("volcano", ready=False)}, V2, "", "gates"),
        ({"programs": runs("coscheduling", "kueue")}, V2, "q", "coscheduling"),
        ({"programs": runs("kueue")}, V2, "q", "kueue"),
        ({"programs": runs("kueue")}, V2, "", "gates"),
        ({"programs": runs("kueue")}, V1, "q", "gates"),
        ({"programs": runs("kai")}, V1, "q", "kai"),
        ({"programs": runs("kai")}, ALPHA, "q", ""),
        ({"programs": runs("koordinator", "yunikorn")}, V2, "", "koordinator"),
        ({"programs": runs("yunikorn")}, V2, "", "yunikorn"),
        ({"programs": runs("volcano", "mpi-operator", gangs="my-scheduler")}, V2, "", "coscheduling"),
        ({"programs": runs("coscheduling", "mpi-operator", gangs="volcano")}, V2, "", "volcano"),
        ({"programs": runs("coscheduling", "mpi-operator", gangs="volcano")}, ALPHA, "", "coscheduling"),
        ({"groups": frozenset({"scheduling.volcano.sh/v1beta1"})}, V2, "", "gates"),
        ({"groups": frozenset({"scheduling.volcano.sh/v1beta1"}), "programs": None}, V2, "", "volcano"),
        ({"programs": None}, V2, "", "gates"),
    ],
)
def test_the_choice(known_facts: dict[str, Any], version: ApiVersion, queue: str, expected: str) -> None:
    """In order: what the operator does itself, the vendor's,
    an installed gang scheduler, the stock one's means.
    """
    facts = replace(STOCK, **known_facts)

    assert expected == choose_backend(facts, kind=version, queue=queue).backend


@pytest.mark.parametrize(
    ("known_facts", "words"),
    [
        ({"programs": runs("kueue")}, "kueue runs (Deployment system/kueue), but it needs a queue"),
        ({"programs": runs("volcano", ready=False)}, "volcano is not ready (Deployment system/volcano)"),
        (
            {"groups": frozenset({"scheduling.volcano.sh/v1beta1"})},
            "scheduling.volcano.sh is served, but no Deployment of volcano was found",
        ),
        (
            {"pod_groups": "v1beta1"},
            "PodGroup of scheduling.k8s.io/v1beta1 is served, and needs the admission policy",
        ),
    ],
)
def test_what_was_passed_over_is_told(known_facts: dict[str, Any], words: str) -> None:
    """Before the reason for what was chosen."""
    chosen = choose_backend(replace(STOCK, **known_facts), kind=V2)

    assert chosen.reasons[0].startswith(words)
    assert "MPIJob v2beta1 keeps scheduling gates" == chosen.reasons[-1]


@pytest.mark.parametrize("backend", ["gates", "native", "coscheduling", "koordinator", "ack"])
def test_a_queue_where_there_are_none_is_refused(backend: str) -> None:
    """Its name would be dropped without a word; without one, and where there are queues, nothing is said."""
    groups = ("scheduling.volcano.sh", "scheduling.x-k8s.io", "scheduling.koordinator.sh")
    facts = replace(STOCK, groups=frozenset(f"{group}/v1alpha1" for group in groups))
    with pytest.raises(
        UsageError, match=f"--queue=q: the gang scheduler here is {backend}, which has no queues"
    ):
        backend_for(facts, backend, kind=V2, queue="q")
    assert backend == backend_for(facts, backend, kind=V2)
    assert "volcano" == backend_for(facts, "volcano", kind=V2, queue="q")


def test_what_is_known_of_the_cluster_reaches_the_gang() -> None:
    """So that the back-end can refuse what cannot work."""
    facts = replace(
        STOCK, programs=runs("mpi-operator", gangs="volcano"), pod_groups="v1beta1", policy=POLICY
    )
    completed = with_cluster_facts(gang(), facts)

    assert ("volcano", "v1beta1", True, True) == (
        completed.operator_gangs,
        completed.api,
        completed.admission,
        completed.keeps_gates,
    )
    assert None is with_cluster_facts(gang(), STOCK).operator_gangs
    assert not with_cluster_facts(gang(), replace(STOCK, policy=replace(POLICY, gangs=False))).admission
    assert not with_cluster_facts(gang(), replace(STOCK, worker_fields=frozenset())).keeps_gates


@pytest.mark.parametrize("backend", ["volcano", "koordinator", "kai", "coscheduling", "kueue"])
def test_a_scheduler_that_is_not_installed_is_named(backend: str) -> None:
    """With what the cluster has in its place, and where to
    get it: the server would answer with a bare 404.
    """
    with pytest.raises(UsageError, match=f"{backend} is not installed on this cluster") as caught:
        backend_for(STOCK, backend, kind=V2)
    assert caught.value.hint.startswith("leave out --gang-scheduler, which takes gates here; or ask")
    assert "https://" in caught.value.hint


@pytest.mark.parametrize("backend", ["volcano", "gates", "native", "ack", "yunikorn"])
def test_a_scheduler_that_is_served_or_serves_nothing_is_taken(backend: str) -> None:
    """What else it lacks, its own module says."""
    facts = replace(STOCK, groups=frozenset({"scheduling.volcano.sh/v1beta1"}))
    assert backend == backend_for(facts, backend, kind=V2)
