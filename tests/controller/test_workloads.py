"""What is read of a Workload: its job as it will run, in every kind that is planned."""

import pytest

from arena_topo.controller.workloads import CheckState, read_workload
from arena_topo.model.keys import PODS_PER_JOB
from tests.controller.workload_objects import CHECK, entry, flavor, template, workload

GROUPS = {"PyTorchJob": "kubeflow.org/v1", "TFJob": "kubeflow.org/v1", "JobSet": "jobset.x-k8s.io/v1alpha2"}


@pytest.mark.parametrize(
    ("kind", "pod_sets", "expected"),
    [
        ("PyTorchJob", {"master": 1, "worker": 3}, {"master": (0, 1), "worker": (1, 3)}),
        ("TFJob", {"ps": 2, "worker": 4}, {"worker": (0, 4), "ps": (4, 2)}),
        ("JobSet", {"driver": 1, "workers": 2}, {"driver": (0, 1), "workers": (1, 2)}),
    ],
)
def test_pod_sets_are_the_roles_of_the_job(
    kind: str, pod_sets: dict[str, int], expected: dict[str, tuple[int, int]]
) -> None:
    """In the order of ranks, whatever the order of the pod sets: where each begins, and its pods."""
    item = workload(
        owner={"apiVersion": GROUPS[kind], "kind": kind},
        podSets=[{"name": name, "count": count, "template": template(8)} for name, count in pod_sets.items()],
        admission={},
    )
    found = read_workload(item, [CHECK], {})
    assert found
    assert found.planned
    first = found.planned.first
    assert expected == {each.role: (first[each.role], each.count) for each in found.planned.roles}


def test_an_annotation_says_how_many_pods_a_job_of_a_jobset_has() -> None:
    """Kueue tells how many pods a role has in all: six in Jobs of two are three Jobs."""
    pods = template(8, annotations={PODS_PER_JOB: "2"})
    item = workload(
        owner={"apiVersion": GROUPS["JobSet"], "kind": "JobSet"},
        podSets=[{"name": "workers", "count": 6, "template": pods}],
    )
    found = read_workload(item, [CHECK], {})
    assert found
    assert found.planned
    (role,) = found.planned.job["spec"]["replicatedJobs"]
    assert (3, 2) == (role["replicas"], role["template"]["spec"]["parallelism"])


def test_the_flavor_adds_its_labels_and_tolerations() -> None:
    """What the user wrote himself stays."""
    toleration = {"key": "gpu", "operator": "Exists"}
    flavors = {"gpus": flavor(nodeLabels={"pool": "a"}, tolerations=[toleration])}
    found = read_workload(workload(), [CHECK], flavors)
    assert found
    assert found.planned
    spec = found.planned.roles[0].template["spec"]
    assert ({"pool": "a"}, [toleration]) == (spec["nodeSelector"], spec["tolerations"])


def test_fewer_pods_may_be_admitted_than_were_asked_for() -> None:
    """Kueue's partial admission."""
    item = workload(workers=4, admission={"podSetAssignments": [{"name": "worker", "count": 2}]})
    found = read_workload(item, [CHECK], {})
    assert found
    assert found.planned
    assert [2] == [role.count for role in found.planned.roles]


def test_a_workload_without_a_check_of_ours_is_not_ours() -> None:
    """Checks are told by their names, which are those of our AdmissionChecks."""
    assert None is read_workload(workload(admissionChecks=[entry(name="provisioning")]), [CHECK], {})


def test_an_entry_keeps_its_index_among_those_of_others() -> None:
    """By it the answer is written."""
    item = workload(admissionChecks=[entry(name="provisioning"), entry("Ready", nodes="0:a,2:")])
    found = read_workload(item, [CHECK], {})
    assert found
    assert (1, CheckState.READY) == (found.entry.index, found.entry.state)
    assert {"worker": {"arena-topo.dev/pin-nodes": "0:a,2:"}} == found.entry.annotations
