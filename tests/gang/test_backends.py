"""Each gang back-end adds what its scheduler reads, and refuses what cannot work."""

import json
from typing import Any

import pytest

from arena_topo.errors import UsageError
from arena_topo.gang.backends import BACKENDS, decorate
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.gang import decorated
from arena_topo.model.gang import Decoration
from arena_topo.model.text.yaml import dump
from tests import paths
from tests.gang.jobs import ALPHA, V1, V2, gang, job_of_four_workers

GOLDEN = paths.GOLDEN / "gang"

KNOWN: dict[str, dict[str, Any]] = {
    "ack": {"level": "alibabacloud.com/asw-id", "required": True},
    "coscheduling": {},
    "volcano": {"level": "2", "required": True, "queue": "research", "priority": "high"},
    "kueue": {"level": "example.com/rack", "required": True, "queue": "team"},
    "koordinator": {"level": "rack", "required": False},
    "kai": {
        "level": "example.com/rack",
        "required": False,
        "kai_topologies": {"example.com/rack": "default"},
        "queue": "team",
    },
    "yunikorn": {"queue": "root.team", "placement": {"nodeSelector": {"pool": "a100"}}},
    "native": {"level": "example.com/rack", "required": True, "api": "v1alpha2", "admission": True},
    "gates": {},
}
UNFIT = {("kueue", V1), ("kueue", ALPHA), ("kai", ALPHA), ("gates", ALPHA)}
LEGAL = [(name, version) for name in BACKENDS for version in ApiVersion if (name, version) not in UNFIT]


def ids(value: object) -> str:
    """Return what names a parameter."""
    return value.value if isinstance(value, ApiVersion) else str(value)


@pytest.mark.parametrize(("backend", "version"), LEGAL, ids=ids)
def test_the_objects_are_the_golden_ones(backend: str, version: ApiVersion) -> None:
    """Job and companions, to the byte, in every version that the back-end can take."""
    added = decorate(backend, gang(version, **KNOWN[backend]))
    objects = [decorated(job_of_four_workers(version), added), *added.companions]

    expected = (GOLDEN / f"{backend}.{version.value}.yaml").read_text()
    assert expected == "---\n".join(dump(item) for item in objects)


@pytest.mark.parametrize(("backend", "version"), sorted(UNFIT, key=str), ids=ids)
def test_a_version_that_cannot_work_is_refused(backend: str, version: ApiVersion) -> None:
    """With the reason, and what else there is."""
    with pytest.raises(UsageError, match=f"cannot be used with MPIJob {version.value}: ") as caught:
        decorate(backend, gang(version, **KNOWN[backend]))
    assert "arena-topo doctor" in caught.value.hint


def test_an_unknown_back_end_is_refused() -> None:
    """With those that there are."""
    with pytest.raises(UsageError, match="'slurm' is not a gang scheduler") as caught:
        decorate("slurm", gang())
    assert "volcano" in caught.value.hint


def counted(added: Decoration) -> int:
    """Return how many pods the back-end's scheduler is told to start together, where it reads that."""
    (*_, group) = ({}, *added.companions)
    spec = group.get("spec") or {}
    native = (spec.get("schedulingPolicy") or {}).get("gang") or {}
    label = added.worker_labels.get("pod-group.scheduling.sigs.k8s.io/min-available", 0)
    return int(spec.get("minMember") or native.get("minCount") or label)


@pytest.mark.parametrize(
    ("backend", "version", "waits", "size"),
    [
        ("coscheduling", V2, True, 4),
        ("coscheduling", V2, False, 5),
        ("coscheduling", V1, True, 5),
        ("coscheduling", ALPHA, True, 4),
        ("volcano", V2, True, 4),
        ("volcano", V2, False, 5),
        ("volcano", V1, True, 5),
        ("ack", V2, False, 4),
        ("koordinator", V2, False, 4),
        ("native", V2, False, 4),
    ],
)
def test_a_launcher_that_waits_is_never_counted(
    backend: str, version: ApiVersion, waits: bool, size: int
) -> None:
    """Its pod is created after the workers are ready: a gang that counted it would never start."""
    assert size == counted(decorate(backend, gang(version, waits=waits, **KNOWN[backend])))


@pytest.mark.parametrize("level", ["example.com/rack", "rack"])
def test_a_level_of_kai_is_its_label(level: str) -> None:
    """The whole key, or the word that people say; the Topology is the one that has it."""
    known = {**KNOWN["kai"], "level": level, "required": True}
    added = decorate("kai", gang(V2, **known)).job_annotations

    assert {
        "kai.scheduler/topology": "default",
        "kai.scheduler/topology-required-placement": "example.com/rack",
    } == added


@pytest.mark.parametrize(("version", "size"), [(V2, 4), (V1, 5)])
def test_kai_counts_the_pods_itself(version: ApiVersion, size: int) -> None:
    """Nothing on the job tells it a number; the user is told the one that it will find."""
    added = decorate("kai", gang(version, **KNOWN["kai"]))

    assert ({}, ()) == (added.scheduling_policy, added.companions)
    assert added.notes[0].startswith(f"KAI starts {size} pods together")


@pytest.mark.parametrize("backend", ["coscheduling", "volcano", "native"])
def test_the_own_pod_group_never_has_the_jobs_name(backend: str) -> None:
    """That name is the operator's, which overwrites what it finds there."""
    (group,) = decorate(backend, gang(**KNOWN[backend])).companions

    assert ("PodGroup", "job-gang") == (group["kind"], group["metadata"]["name"])


def test_pods_are_in_the_group_that_is_made() -> None:
    """Under the key that each scheduler reads; the launcher where it starts with the workers."""
    together = decorate("coscheduling", gang(waits=False))
    waiting = decorate("coscheduling", gang())

    assert {"scheduling.x-k8s.io/pod-group": "job-gang"} == together.worker_labels
    assert together.worker_labels == together.launcher_labels
    assert {} == waiting.launcher_labels
    assert {"scheduling.k8s.io/group-name": "job-gang"} == decorate("volcano", gang()).pod_annotations


@pytest.mark.parametrize(
    ("backend", "operator", "scheduler"),
    [
        ("coscheduling", "scheduler-plugins-scheduler", "scheduler-plugins-scheduler"),
        ("coscheduling", "my-scheduler", "my-scheduler"),
        ("volcano", "volcano", "volcano"),
    ],
)
@pytest.mark.parametrize(("version", "size"), [(V2, 4), (V1, 5)], ids=ids)
def test_an_operator_that_makes_the_group_is_told_its_size_alone(
    backend: str, operator: str, scheduler: str, version: ApiVersion, size: int
) -> None:
    """No group of our own, and no labels that it would overwrite."""
    added = decorate(backend, gang(version, operator_gangs=operator))

    assert (scheduler, {"minAvailable": size}) == (added.scheduler_name, added.scheduling_policy)
    assert ((), {}, {}) == (added.companions, added.worker_labels, added.pod_annotations)


@pytest.mark.parametrize(
    ("backend", "operator", "policy"),
    [
        ("coscheduling", None, {"minAvailable": 4}),
        ("volcano", None, {"minAvailable": 4}),
        ("volcano", "", {}),
        ("gates", "", {}),
        ("kai", None, {}),
    ],
)
def test_an_operator_that_may_gang_is_told_the_size_too(
    backend: str, operator: str | None, policy: dict[str, int]
) -> None:
    """Where its flags cannot be seen: one that makes no gangs ignores it, and KAI would count from it."""
    added = decorate(backend, gang(queue="q", operator_gangs=operator))

    assert policy == added.scheduling_policy


@pytest.mark.parametrize("backend", ["kueue", "gates"])
def test_an_operator_that_gangs_never_counts_a_launcher_that_waits(backend: str) -> None:
    """Anyone who else holds the job back: its own default would."""
    added = decorate(backend, gang(queue="q", operator_gangs="volcano"))

    assert {"minAvailable": 4} == added.scheduling_policy


@pytest.mark.parametrize("backend", ["ack", "coscheduling", "koordinator", "kai", "yunikorn", "native"])
def test_an_operator_with_another_scheduler_is_told(backend: str) -> None:
    """It would put the pods under its own."""
    known: dict[str, Any] = {
        "queue": "q",
        "api": "v1alpha2",
        "admission": True,
        "operator_gangs": "volcano",
    }
    with pytest.raises(UsageError, match="MPI operator puts every job under volcano") as caught:
        decorate(backend, gang(**known))
    assert "--gang-scheduler volcano" in caught.value.hint


def test_volcano_under_an_operator_with_another_scheduler_is_told() -> None:
    """With the back-end that fits it."""
    with pytest.raises(UsageError, match="puts every job under my-scheduler") as caught:
        decorate("volcano", gang(operator_gangs="my-scheduler"))
    assert "--gang-scheduler coscheduling" in caught.value.hint


def test_the_oldest_operator_knows_no_scheduling_policy() -> None:
    """MPIJob v1alpha1 has no run policy, whatever flags are seen."""
    added = decorate("volcano", gang(ALPHA, operator_gangs="volcano"))

    assert {} == added.scheduling_policy
    assert "job-gang" == added.companions[0]["metadata"]["name"]


@pytest.mark.parametrize(
    ("backend", "known", "words"),
    [
        ("kueue", {}, "kueue needs a queue"),
        ("kai", {}, "kai needs a queue"),
        ("kai", {"queue": "q", "level": "rack"}, "no Topology of kai.scheduler has it"),
        (
            "kai",
            {"queue": "q", "level": "rack", "kai_topologies": {"a/rack": "x", "b/rack": "y"}},
            "several levels called rack: a/rack, b/rack",
        ),
        ("native", {"admission": True}, "serves no PodGroup of scheduling.k8s.io"),
        ("native", {"api": "v1beta1"}, "the admission policy that sets it is not installed"),
        ("gates", {"keeps_gates": False}, "drops the pods' scheduling gates"),
    ],
)
def test_what_is_missing_is_told(backend: str, known: dict[str, Any], words: str) -> None:
    """Before anything is made that would wait forever."""
    with pytest.raises(UsageError, match=words) as caught:
        decorate(backend, gang(**known))
    assert caught.value.hint


@pytest.mark.parametrize(
    ("level", "required", "topology"),
    [
        ("2", True, {"mode": "hard", "highestTierAllowed": 2}),
        ("rack", False, {"mode": "soft", "highestTierName": "rack"}),
    ],
)
def test_volcano_takes_a_tier_by_number_or_name(level: str, required: bool, topology: object) -> None:
    """As HyperNodes have both."""
    (group,) = decorate("volcano", gang(level=level, required=required)).companions

    assert topology == group["spec"]["networkTopology"]


def test_volcano_counts_what_the_workers_ask() -> None:
    """In base units, for the queue's quota."""
    asked = {"cpu": "500m", "memory": "1.5Gi", "nvidia.com/gpu": "2"}
    (group,) = decorate("volcano", gang(requests=asked)).companions

    expected = {"cpu": "2", "memory": str(6 * 2**30), "nvidia.com/gpu": "8"}
    assert expected == group["spec"]["minResources"]


@pytest.mark.parametrize(
    ("backend", "required", "kept"),
    [
        ("ack", True, True),
        ("ack", False, False),
        ("coscheduling", True, False),
        ("volcano", False, True),
        ("kueue", True, True),
        ("koordinator", True, True),
        ("kai", True, True),
        ("yunikorn", True, False),
        ("native", True, True),
        ("native", False, False),
    ],
)
def test_who_keeps_the_level_is_told(backend: str, required: bool, kept: bool) -> None:
    """A back-end that does not says that the pins do."""
    asked = {**KNOWN[backend], "level": "rack", "required": required}
    added = decorate(backend, gang(**asked))

    assert kept is not any("pins" in note for note in added.notes)


def test_volcanos_operator_loses_the_level_and_says_so() -> None:
    """It writes the whole PodGroup itself."""
    added = decorate("volcano", gang(level="rack", operator_gangs="volcano"))

    assert "drops the level: rack is enforced by the pins only" in added.notes[1]


def test_kueue_gets_no_topology_that_nobody_asked_for() -> None:
    """Where no flavor has a topology, it would never admit the job."""
    added = decorate("kueue", gang(queue="team"))

    assert {} == added.worker_annotations
    assert any("counts quota, not nodes" in note for note in added.notes)


def test_yunikorns_placeholders_go_where_their_pods_go() -> None:
    """What steers a worker stands in its task group again; a launcher that waits has none."""
    placement = {"nodeSelector": {"pool": "a"}, "tolerations": [{"operator": "Exists"}]}
    waiting = decorate("yunikorn", gang(placement=placement)).pod_annotations
    together = decorate("yunikorn", gang(waits=False, placement=placement)).pod_annotations
    groups = json.loads(waiting["yunikorn.apache.org/task-groups"])

    expected = {"name": "worker", "minMember": 4, "minResource": {"nvidia.com/gpu": "1"}, **placement}
    assert [expected] == groups
    both = json.loads(together["yunikorn.apache.org/task-groups"])
    assert ["worker", "launcher"] == [group["name"] for group in both]


def test_yunikorns_application_is_a_label_of_its_own() -> None:
    """63 characters at most, and two jobs of the same name in two namespaces are two."""
    names = [
        decorate("yunikorn", gang(job="j" * 49, namespace=space)).pod_labels["yunikorn.apache.org/app-id"]
        for space in ("team-a-of-many", "team-b-of-many")
    ]

    assert 2 == len(set(names))
    assert [63, 63] == [len(name) for name in names]
