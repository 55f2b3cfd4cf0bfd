"""What a cluster has is found with few calls, and whatever may not be read is left open."""

from collections.abc import Mapping
from typing import Any

import pytest

from arena_topo.cluster.capabilities.detect import detect, uses_device_plugin
from arena_topo.cluster.capabilities.programs import find_programs
from arena_topo.cluster.capabilities.worker_schema import kept_fields
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.pin.admission import VERSION, policy_objects
from tests.fakes import Answer, Call, FakeTransport, refusal, session, unserved

POLICY, BINDING = policy_objects("v1", gangs=True)
_BASE = "/apis/admissionregistration.k8s.io/v1"
_SERVED = {"resources": [{"name": "mutatingadmissionpolicies"}]}


class Cluster:
    """Serves objects by path, and ``groups``; everything else is not served, or *denied*."""

    def __init__(
        self, objects: Mapping[str, Any], *groups: str, denied: bool = False, allowed: bool = True
    ) -> None:
        versions = [{"versions": [{"groupVersion": each}]} for each in groups]
        self.objects = {"/version": {"gitVersion": "v1.36.3"}, "/apis": {"groups": versions}, **objects}
        self.denied, self.allowed = denied, allowed

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        if call.path.endswith("selfsubjectaccessreviews"):
            return Answer(body={"status": {"allowed": self.allowed}})
        if call.path in self.objects:
            return Answer(body=self.objects[call.path])
        return refusal(403, "Forbidden", "no") if self.denied else unserved()


def found(*args: Any, access: bool = False, **options: Any) -> tuple[Any, FakeTransport]:
    """Return the facts of a cluster, and what was asked."""
    opened, transport = session(Cluster(*args, **options))
    return detect(opened, access=access), transport


def pod_schema(*fields: str, preserve: bool = False) -> dict[str, Any]:
    """Return the schema of a pod specification with *fields*."""
    schema: dict[str, Any] = {"properties": {"containers": {}, **{field: {} for field in fields}}}
    return {**schema, "x-kubernetes-preserve-unknown-fields": True} if preserve else schema


def mpijob_document(pod: dict[str, Any], version: ApiVersion = ApiVersion.V2BETA1) -> dict[str, Any]:
    """Return an OpenAPI document in which a worker's pod has the schema *pod*."""
    template = {"properties": {"spec": pod}}
    replicas = {"additionalProperties": {"properties": {"template": template}}}
    spec = {"template": template} if version is ApiVersion.V1ALPHA1 else {"mpiReplicaSpecs": replicas}
    schema = {"properties": {"spec": {"properties": spec}}}
    return {"components": {"schemas": {f"org.kubeflow.{version.value}.MPIJob": schema}}}


def deployment(
    name: str, image: str, *args: str, ready: int = 1, namespace: str = "system"
) -> dict[str, Any]:
    """Return a Deployment of one container."""
    container = {"name": "main", "image": image, "args": list(args)}
    return {
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"template": {"spec": {"containers": [container]}}},
        "status": {"readyReplicas": ready},
    }


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


def test_nodes_tell_the_vendors_scheduler_and_hami() -> None:
    """By a label, and by an annotation."""
    node = {"metadata": {"annotations": {"hami.io/node-nvidia-register": "[]"}}}
    facts, transport = found({"/api/v1/nodes": {"items": [node]}})

    assert (True, True) == (facts.ack, facts.hami)
    asked = [call.query for call in transport.calls if call.path == "/api/v1/nodes"]
    assert {"labelSelector": "ack.node.gpu.schedule=topology", "limit": "1"} in asked
    assert all(int(query["limit"]) <= 50 for query in asked)


def test_dra_drivers_are_those_that_publish_slices() -> None:
    """Each once."""
    slices = [{"spec": {"driver": driver}} for driver in ("gpu.nvidia.com", "dra.net", "gpu.nvidia.com")]
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


OLD = {**POLICY, "metadata": {**POLICY["metadata"], "labels": {"arena-topo.dev/policy-version": "0"}}}


@pytest.mark.parametrize(
    ("objects", "gangs", "version", "current"),
    [
        (installed(POLICY), True, VERSION, True),
        (installed(OLD), True, 0, False),
        (installed(POLICY, bound=False), True, 0, False),
        (installed(policy_objects("v1", gangs=False)[0]), False, VERSION, True),
        (installed(policy_objects("v1", gangs=False)[0]), True, VERSION, False),
        ({_BASE: _SERVED}, False, 0, False),
    ],
    ids=["current", "old", "not bound", "no gangs needed", "gangs came later", "not installed"],
)
def test_the_admission_policy_is_known_by_its_version(
    objects: dict[str, Any], gangs: bool, version: int, current: bool
) -> None:
    """Current is what this program would install here today."""
    groups = ["admissionregistration.k8s.io/v1"]
    if gangs:
        groups.append("scheduling.k8s.io/v1alpha2")
        objects = {**objects, "/apis/scheduling.k8s.io/v1alpha2": {"resources": [{"name": "podgroups"}]}}
    policy = found(objects, *groups)[0].policy

    assert ("v1", version, current) == (policy.api, policy.version, policy.current)


@pytest.mark.parametrize("version", ApiVersion)
def test_the_served_schema_tells_what_a_worker_keeps(version: ApiVersion) -> None:
    """In every version's own place."""
    path = f"/openapi/v3/apis/kubeflow.org/{version.value}"
    document = mpijob_document(pod_schema("schedulingGates", "hostname"), version)
    facts, _ = found({path: document}, f"kubeflow.org/{version.value}")

    assert ((version,), {"schedulingGates"}) == (facts.versions, facts.worker_fields)
    assert (True, False) == (facts.keeps("schedulingGates"), facts.keeps("resourceClaims"))


ALL = {"schedulingGates", "resourceClaims", "schedulingGroup"}
OPEN = {"x-kubernetes-preserve-unknown-fields": True}
JOB = "org.kubeflow.v2beta1.MPIJob"


@pytest.mark.parametrize(
    ("document", "expected"),
    [
        (mpijob_document(pod_schema()), set()),
        (mpijob_document(pod_schema(preserve=True)), ALL),
        ({"components": {"schemas": {JOB: OPEN}}}, ALL),
        ({"components": {"schemas": {JOB: {"properties": {"spec": {"properties": {}}}}}}}, set()),
        ({"components": {"schemas": {"org.kubeflow.v2beta1.MPIJobList": {}}}}, None),
        ({}, None),
    ],
    ids=["names none", "keeps all", "open from above", "closed above", "no MPIJob", "empty"],
)
def test_what_a_schema_does_not_name_is_dropped(document: dict[str, Any], expected: set[str] | None) -> None:
    """Unless it keeps what it does not know."""
    assert expected == kept_fields(document, ApiVersion.V2BETA1)


@pytest.mark.parametrize(
    ("name", "image", "kind"),
    [
        ("mpi-operator", "mpioperator/mpi-operator:0.8.2", "mpi-operator"),
        ("training-operator", "kubeflow/training-operator:v1.9", "training-operator"),
        ("volcano-scheduler", "x", "volcano"),
        ("my-release", "docker.io/volcanosh/vc-scheduler:v1.15", "volcano"),
        ("koord-scheduler", "registry:5000/koordinator-sh/koord-scheduler@sha256:0", "koordinator"),
        ("scheduler-plugins-scheduler", "x", "coscheduling"),
        ("second", "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7", "coscheduling"),
        ("kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19", "kueue"),
        ("yunikorn-scheduler", "apache/yunikorn:scheduler-1.9", "yunikorn"),
        ("kai-scheduler-default", "ghcr.io/nvidia/kai-scheduler/scheduler:v0.13", "kai"),
        ("gpu-hami-scheduler", "projecthami/hami:v2.10", "hami"),
        ("yunikorn-admission-controller", "apache/yunikorn:admission-1.9", ""),
        ("volcano-controllers", "volcanosh/vc-controller-manager:v1.15", ""),
        ("my-app", "registry.k8s.io/kube-scheduler:v1.36", ""),
        ("web", "nginx", ""),
    ],
)
def test_programs_are_known_by_name_or_image(name: str, image: str, kind: str) -> None:
    """As their projects' own manifests have them; a chart may rename one."""
    assert [kind] * bool(kind) == list(find_programs([deployment(name, image)]))


@pytest.mark.parametrize(
    ("args", "gangs"),
    [
        ((), ""),
        (("--gang-scheduling=volcano",), "volcano"),
        (("-gang-scheduling", "my-scheduler", "--v=2"), "my-scheduler"),
        (("--gang-scheduler-name=volcano",), "volcano"),
        (("--gang-scheduling=",), ""),
        (("--gang-scheduling",), ""),
    ],
)
def test_an_operators_gang_scheduler_is_read_from_its_arguments(args: tuple[str, ...], gangs: str) -> None:
    """One dash or two, as one word or two."""
    assert gangs == find_programs([deployment("mpi-operator", "x", *args)])["mpi-operator"].gangs


def test_of_several_the_one_that_is_ready_counts() -> None:
    """An old release may still be there."""
    deployments = [
        deployment("volcano-scheduler", "x", ready=0, namespace="old"),
        deployment("volcano-scheduler", "x", namespace="new"),
    ]
    program = find_programs(deployments)["volcano"]

    assert (True, "Deployment new/volcano-scheduler") == (program.ready, program.location)


@pytest.mark.parametrize("allowed", [True, False])
def test_rights_are_asked_of_the_server_itself(allowed: bool) -> None:
    """In the namespace, or the whole cluster, and only of what is served."""
    facts, transport = found({}, "scheduling.volcano.sh/v1beta1", access=True, allowed=allowed)
    reviews = [call.body["spec"]["resourceAttributes"] for call in transport.calls if call.method == "POST"]

    assert {
        "verb": "create",
        "group": "kubeflow.org",
        "resource": "mpijobs",
        "namespace": "default",
    } in reviews
    assert {"verb": "list", "group": "", "resource": "nodes"} in reviews
    assert "create podgroups.scheduling.volcano.sh" in [review.what for review in facts.access]
    assert {allowed} == {review.allowed for review in facts.access}
    assert not [review for review in facts.access if "resource.k8s.io" in review.what]


def test_a_server_that_does_not_answer_about_rights_leaves_them_open() -> None:
    """Unknown is no refusal."""
    opened, _ = session(
        lambda call: refusal(403, "Forbidden", "no") if call.method == "POST" else Cluster({})(call)
    )

    assert {None} == {review.allowed for review in detect(opened, access=True).access}
