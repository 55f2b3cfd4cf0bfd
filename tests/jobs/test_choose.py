"""Which jobs get a plan of ours, and which are left to the schedulers that have their own."""

from dataclasses import replace

import pytest

from arena_topo.errors import Forbidden, UsageError
from arena_topo.jobs.options import PlaceOptions, PlanOptions
from arena_topo.jobs.prepare import SubmitChoice, TargetCluster, choose, without_plan
from arena_topo.jobs.sources import JobRequest
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.render import RenderContext
from arena_topo.model.gang import ClusterFacts, Policy
from arena_topo.model.job import JobSpec
from arena_topo.model.placement_options import GangRequest, Pin
from arena_topo.model.plan_record import Enforcement

JOB = JobSpec(name="job", namespace="default", image="i", command=("aliyun.com/gpu",), workers=2, gpus=1)
TOPOLOGY = replace(JOB, topology=True)
VENDOR, STOCK = "aliyun.com/gpu", "nvidia.com/gpu"
GROUPS = frozenset({"scheduling.volcano.sh/v1beta1", "kueue.x-k8s.io/v1beta2"})
FACTS = ClusterFacts(worker_fields=frozenset({"schedulingGates"}), groups=GROUPS, programs={})


def chosen(
    job: JobSpec, resource: str, backend: str, place: PlaceOptions, facts: ClusterFacts = FACTS
) -> SubmitChoice:
    """Return what is chosen for *job* with the gang's *backend*, empty for no gang."""
    cluster = TargetCluster(context=RenderContext(ApiVersion.V2BETA1, resource), facts=facts)
    gang = GangRequest(scheduler=backend or "auto")
    request = JobRequest(job=replace(job, gang=bool(backend)), place=replace(place, gang=gang))
    return choose(request, cluster)


@pytest.mark.parametrize(
    ("job", "resource", "backend", "requested", "expected"),
    [
        (JOB, STOCK, "", False, False),
        (JOB, STOCK, "", True, True),
        (JOB, STOCK, "gates", False, True),
        (JOB, STOCK, "volcano", False, False),
        (TOPOLOGY, STOCK, "", False, True),
        (TOPOLOGY, STOCK, "volcano", False, True),
        (TOPOLOGY, STOCK, "kueue", True, False),
        (TOPOLOGY, VENDOR, "ack", False, False),
        (TOPOLOGY, VENDOR, "ack", True, True),
    ],
)
def test_jobs_are_planned_where_that_means_something(
    job: JobSpec, resource: str, backend: str, *, requested: bool, expected: bool
) -> None:
    """Asked for by a flag, or by --gputopology off the vendor's cluster, or because gates are the gang."""
    choice = chosen(job, resource, backend, PlaceOptions(requested=requested))

    assert (backend, expected) == (choice.backend, choice.enforcement is not None)


def test_kueue_chooses_places_itself() -> None:
    """A pin next to it would be a promise that nobody keeps."""
    with pytest.raises(UsageError, match="--pin=workers cannot be enforced under Kueue"):
        chosen(TOPOLOGY, STOCK, "kueue", PlaceOptions(pin=Pin.WORKERS))


def test_a_gang_scheduler_that_does_not_exist_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(UsageError, match="'slurm' is not a gang scheduler"):
        chosen(JOB, STOCK, "slurm", PlaceOptions())


def test_a_gang_scheduler_that_is_not_installed_is_refused() -> None:
    """Before anything of it is created."""
    with pytest.raises(UsageError, match="koordinator is not installed on this cluster"):
        chosen(JOB, STOCK, "koordinator", PlaceOptions())


@pytest.mark.parametrize(
    ("scheduler", "policy", "expected"),
    [
        ("auto", Policy(), Enforcement.GATES),
        ("auto", Policy(mpijobs=True), Enforcement.ADMISSION),
        ("gates", Policy(mpijobs=True), Enforcement.GATES),
    ],
)
def test_the_policy_takes_the_place_of_gates_that_nobody_named(
    scheduler: str, policy: Policy, expected: Enforcement
) -> None:
    """A suspended job that the policy pins starts together
    as well, and a recreated worker needs no resume.
    """
    choice = chosen(JOB, STOCK, scheduler, PlaceOptions(), replace(FACTS, policy=policy))

    assert ("gates", expected) == (choice.backend, choice.enforcement)


def test_without_the_rights_a_plan_that_was_asked_for_is_refused() -> None:
    """One that was not is left out, and that is told."""
    choice = SubmitChoice(backend="volcano", enforcement=Enforcement.ADMISSION)
    left = without_plan(choice, ("list nodes -A",), PlaceOptions())

    assert ("volcano", None) == (left.backend, left.enforcement)
    assert "not planned" in left.warnings[0]
    for place in (PlaceOptions(requested=True), PlaceOptions(gang=GangRequest(scheduler="gates"))):
        with pytest.raises(Forbidden, match="you cannot list nodes -A") as refused:
            without_plan(choice, ("list nodes -A",), place)
        assert "cluster setup" in refused.value.hint


def test_gates_without_a_plan_are_no_gang() -> None:
    """Nobody would open them."""
    choice = SubmitChoice(backend="gates", enforcement=Enforcement.GATES)

    assert "" == without_plan(choice, ("patch pods",), PlaceOptions()).backend


def test_spare_nodes_are_held_only_where_a_lost_worker_could_get_one() -> None:
    """Kueue's quota knows nothing of them, and by an affinity no worker is given a node of its own."""
    spares = PlaceOptions.of(PlanOptions(spares=1))
    with pytest.raises(UsageError, match="--spares cannot be held in a queue of Kueue"):
        chosen(JOB, STOCK, "kueue", spares)
    with pytest.raises(UsageError, match="--spares is of no use"):
        chosen(JOB, STOCK, "", replace(spares, pin=Pin.NODES))
    assert Enforcement.GATES is chosen(JOB, STOCK, "", spares).enforcement
