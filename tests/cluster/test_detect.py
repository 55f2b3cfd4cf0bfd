"""What a cluster has is found with few calls, and whatever may not be read is left open."""

from typing import Any

import pytest

from arena_topo.cluster.capabilities import uses_device_plugin
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.keys import POLICY_VERSION
from arena_topo.pin.admission import MPIJOBS_SINCE, VERSION, policy_objects
from tests.cluster.clusters import Cluster, found, mpijob_document, pod_schema
from tests.fakes import session

POLICY, BINDING = policy_objects("v1", gangs=True)
_BASE = "/apis/admissionregistration.k8s.io/v1"
_SERVED = {"resources": [{"name": "mutatingadmissionpolicies"}]}


def test_a_bare_cluster_has_nothing() -> None:
    """And every question is answered."""
    facts, transport = found({})

    assert ("v1.36.3", (), frozenset(), {}) == (
        facts.kubernetes,
        facts.versions,
        facts.worker_fields,
        facts.programs,
    )
    assert (False, False, (), "", "") == (
        facts.ack,
        facts.hami,
        facts.dra_drivers,
        facts.pod_groups,
        facts.policy.api,
    )
    assert len(transport.calls) <= 6


def test_whoever_may_read_nothing_gets_no_answer_and_no_error() -> None:
    """Unknown is not the same as absent."""
    served = {_BASE: _SERVED}
    groups = ("kubeflow.org/v2beta1", "resource.k8s.io/v1", "admissionregistration.k8s.io/v1")
    facts, _ = found(served, *groups, denied=True)

    assert (None, None, None, None, None, None) == (
        facts.worker_fields,
        facts.programs,
        facts.ack,
        facts.hami,
        facts.dra_drivers,
        facts.policy.version,
    )
    assert None is facts.operator_gangs
    assert "v1" == facts.policy.api


def test_hami_is_found_behind_any_number_of_nodes_where_its_scheduler_runs() -> None:
    """Nodes without GPUs, which it does not register, may come first."""
    plain: dict[str, Any] = {"metadata": {}}
    gpu = {"metadata": {"annotations": {"hami.io/node-nvidia-register": "[]"}}}
    scheduler = {"metadata": {"name": "hami-scheduler", "namespace": "kube-system"}}
    pages = {
        "/api/v1/nodes": {"items": [*[plain] * 400, gpu]},
        "/apis/apps/v1/deployments": {"items": [scheduler]},
    }
    facts, transport = found(pages)

    assert facts.hami
    asked = [call.query for call in transport.calls if call.path == "/api/v1/nodes"]
    assert all(int(query.get("limit", "500")) != 50 for query in asked)


def test_the_levels_of_kais_topologies_are_read() -> None:
    """Each with the first Topology by name that has it."""
    topologies = [
        {"metadata": {"name": "b"}, "spec": {"levels": [{"nodeLabel": "x/rack"}, {"nodeLabel": "x/row"}]}},
        {"metadata": {"name": "a"}, "spec": {"levels": [{"nodeLabel": "x/rack"}]}},
    ]
    served = {"/apis/kai.scheduler/v1alpha1/topologies": {"items": topologies}}

    assert {"x/rack": "a", "x/row": "b"} == found(served, "kai.scheduler/v1alpha1")[0].kai_topologies
    assert {} == found(served)[0].kai_topologies
    assert {} == found({}, "kai.scheduler/v1alpha1", denied=True)[0].kai_topologies


def test_nodes_tell_the_vendors_scheduler_and_hami() -> None:
    """By a label, and by an annotation."""
    node = {"metadata": {"name": "n", "annotations": {"hami.io/node-nvidia-register": "[]"}}}
    facts, transport = found({"/api/v1/nodes": {"items": [node]}})

    assert (True, True) == (facts.ack, facts.hami)
    asked = [call.query for call in transport.calls if call.path == "/api/v1/nodes"]
    assert {"labelSelector": "ack.node.gpu.schedule=topology", "limit": "1"} in asked
    assert all(int(query["limit"]) <= 50 for query in asked)


def test_dra_drivers_are_those_that_publish_slices() -> None:
    """Each once."""
    slices = [
        {"metadata": {"name": "s"}, "spec": {"driver": driver}}
        for driver in ("gpu.nvidia.com", "dra.net", "gpu.nvidia.com")
    ]
    facts, _ = found(
        {"/apis/resource.k8s.io/v1beta1/resourceslices": {"items": slices}}, "resource.k8s.io/v1beta1"
    )

    assert ("dra.net", "gpu.nvidia.com") == facts.dra_drivers


@pytest.mark.parametrize(
    ("amounts", "denied", "expected"),
    [
        ([{"cpu": "8"}, {"nvidia.com/gpu": "4"}], False, True),
        ([{"cpu": "8"}, {"nvidia.com/gpu": "0"}, {}], False, False),
        ([], False, False),
        (None, True, None),
    ],
    ids=["some", "none", "no nodes", "may not look"],
)
def test_a_device_plugin_is_there_where_a_node_hands_out_its_resource(
    amounts: list[dict[str, str]] | None, denied: bool, expected: bool | None
) -> None:
    """Nodes alone tell, without the pods on them."""
    nodes = [{"metadata": {"name": "n"}, "status": {"allocatable": each}} for each in amounts or ()]
    served = {} if amounts is None else {"/api/v1/nodes": {"items": nodes}}
    opened, transport = session(Cluster(served, denied=denied))

    assert expected is uses_device_plugin(opened)
    assert ["/api/v1/nodes"] == [call.path for call in transport.calls]


@pytest.mark.parametrize(
    ("versions", "plural", "expected"),
    [
        (("v1", "v1alpha2"), "podgroups", "v1alpha2"),
        (("v1", "v1alpha3", "v1beta1"), "podgroups", "v1beta1"),
        (("v1", "v1beta1"), "priorityclasses", ""),
    ],
)
def test_the_schedulers_own_groups_are_looked_for_by_name(
    versions: tuple[str, ...], plural: str, expected: str
) -> None:
    """The API group has had other things of the same versions."""
    resources = {
        f"/apis/scheduling.k8s.io/{version}": {
            "resources": [{"name": "priorityclasses" if version == "v1" else plural}]
        }
        for version in versions
    }
    facts, _ = found(resources, *(f"scheduling.k8s.io/{version}" for version in versions))

    assert expected == facts.pod_groups


def installed(policy: Any, *, bound: bool = True) -> dict[str, Any]:
    """Return the paths of a cluster that has *policy*."""
    binding = {f"{_BASE}/mutatingadmissionpolicybindings/arena-topo": BINDING} if bound else {}
    return {_BASE: _SERVED, f"{_BASE}/mutatingadmissionpolicies/arena-topo": policy, **binding}


def of_version(version: int) -> Any:
    """Return the policy as another program would have installed it."""
    return {**POLICY, "metadata": {**POLICY["metadata"], "labels": {POLICY_VERSION: str(version)}}}


@pytest.mark.parametrize(
    ("objects", "gangs", "version", "mpijobs", "current"),
    [
        (installed(POLICY), True, VERSION, True, True),
        (installed(of_version(0)), True, 0, False, False),
        (installed(of_version(MPIJOBS_SINCE - 1)), True, MPIJOBS_SINCE - 1, False, False),
        (installed(of_version(MPIJOBS_SINCE)), True, MPIJOBS_SINCE, True, False),
        (installed(of_version(99)), True, 99, True, True),
        (installed(POLICY, bound=False), True, 0, False, False),
        (installed(policy_objects("v1", gangs=False)[0]), False, VERSION, True, True),
        (installed(policy_objects("v1", gangs=False)[0]), True, VERSION, False, False),
        ({_BASE: _SERVED}, False, 0, False, False),
    ],
    ids=[
        "current",
        "without version",
        "too old",
        "old enough for MPIJobs",
        "newer",
        "not bound",
        "no gangs needed",
        "gangs came later",
        "not installed",
    ],
)
def test_the_admission_policy_is_known_by_its_version(
    objects: dict[str, Any], gangs: bool, version: int, mpijobs: bool, current: bool
) -> None:
    """Pins of MPIJobs have not changed for longer than those
    of other kinds, and a newer policy knows them all.
    """
    groups = ["admissionregistration.k8s.io/v1"]
    if gangs:
        groups.append("scheduling.k8s.io/v1alpha2")
        objects = {**objects, "/apis/scheduling.k8s.io/v1alpha2": {"resources": [{"name": "podgroups"}]}}
    policy = found(objects, *groups)[0].policy

    said = (policy.api, policy.version, policy.mpijobs, policy.current)
    assert ("v1", version, mpijobs, current) == said


@pytest.mark.parametrize("version", ApiVersion)
def test_the_served_schema_tells_what_a_worker_keeps(version: ApiVersion) -> None:
    """In every version's own place."""
    path = f"/openapi/v3/apis/kubeflow.org/{version.value}"
    document = mpijob_document(pod_schema("schedulingGates", "hostname"), version)
    facts, _ = found({path: document}, f"kubeflow.org/{version.value}")

    assert ((version,), {"schedulingGates"}) == (facts.versions, facts.worker_fields)
    assert (True, False) == (facts.keeps("schedulingGates"), facts.keeps("resourceClaims"))
