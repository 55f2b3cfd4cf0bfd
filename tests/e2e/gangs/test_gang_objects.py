"""What every back-end adds passes the strict validation of a real API server, and nothing of it is dropped.

The definitions of other projects' PodGroups are written here, with the fields and rules that they really
have.
"""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pytest
import yaml

from arena_topo.gang.backends import decorate
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.gang import decorated, gang_of
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model.job import Compute, JobSpec
from arena_topo.pin.admission import policy_objects
from tests.controlplane.availability import require_built
from tests.controlplane.binaries.ensure import ensure_built
from tests.controlplane.components import install
from tests.controlplane.components.options import Options, native_gang
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.definitions import definition
from tests.gang.test_backends import KNOWN, LEGAL, ids

TEXT, WHOLE = {"type": "string"}, {"type": "integer", "format": "int32"}
QUANTITY = {"anyOf": [{"type": "integer"}, {"type": "string"}], "x-kubernetes-int-or-string": True}
RESOURCES = {"type": "object", "additionalProperties": QUANTITY}
NETWORK = {
    "mode": {"type": "string", "enum": ["hard", "soft"]},
    "highestTierAllowed": {"type": "integer"},
    "highestTierName": TEXT,
}
VOLCANO = {
    "minMember": WHOLE,
    "minTaskMember": {"type": "object", "additionalProperties": WHOLE},
    "queue": TEXT,
    "priorityClassName": TEXT,
    "minResources": RESOURCES,
    "networkTopology": {"type": "object", "properties": NETWORK},
}
COSCHEDULING = {
    "minMember": {**WHOLE, "minimum": 1},
    "minResources": RESOURCES,
    "scheduleTimeoutSeconds": WHOLE,
}
KOORDINATOR_LAYERS = {
    "topologyLayer": TEXT,
    "parentTopologyLayer": TEXT,
    "labelKey": {"type": "array", "items": TEXT},
}
LEVELS = {
    "levels": {
        "type": "array",
        "maxItems": 16,
        "items": {"type": "object", "required": ["nodeLabel"], "properties": {"nodeLabel": TEXT}},
    }
}


def strict(kind: str, plural: str, api: str, spec: dict[str, Any], *, namespaced: bool = True) -> Object:
    """Return a definition whose ``spec`` has these fields and no others."""
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": spec}, "status": {"type": "object"}},
    }
    return definition(kind, plural, api, schema, namespaced=namespaced)


DEFINITIONS = [
    strict("PodGroup", "podgroups", "scheduling.volcano.sh/v1beta1", VOLCANO),
    strict("PodGroup", "podgroups", "scheduling.x-k8s.io/v1alpha1", COSCHEDULING),
    strict("LocalQueue", "localqueues", "kueue.x-k8s.io/v1beta2", {"clusterQueue": TEXT}),
    strict("Topology", "topologies", "kueue.x-k8s.io/v1beta2", LEVELS, namespaced=False),
    strict("Topology", "topologies", "kai.scheduler/v1alpha1", LEVELS, namespaced=False),
    strict(
        "ClusterNetworkTopology",
        "clusternetworktopologies",
        "scheduling.koordinator.sh/v1alpha1",
        {
            "networkTopologySpec": {
                "type": "array",
                "items": {"type": "object", "properties": KOORDINATOR_LAYERS},
            }
        },
        namespaced=False,
    ),
]


@pytest.fixture(scope="module")
def kube(pytestconfig: pytest.Config) -> Iterator[Kube]:
    """Run an API server that serves every version of MPIJob
    and every gang's objects, and nothing that acts on them.
    """
    require_built(pytestconfig)
    gangs = native_gang()
    alone = Options(
        mpijob=None,
        operator=False,
        nodes=False,
        feature_gates=gangs.feature_gates,
        runtime_config={**gangs.runtime_config, "admissionregistration.k8s.io/v1beta1": True},
    )
    with ControlPlane(alone) as plane:
        wanted = [*DEFINITIONS, _every_mpijob()]
        for each in wanted:
            plane.kube.create(each)
        eventually(lambda: install.established(plane.kube, wanted), "the custom resources")
        yield plane.kube


def _every_mpijob() -> Object:
    """Return one definition with the versions of all three projects, each with the schema that it really has.

    It stores in a version of its own that keeps everything: what is lost is lost to the schema that was
    asked.
    """
    built = ensure_built()
    found = [
        definition
        for version in ApiVersion
        for definition in yaml.safe_load_all(built.manifest(f"mpijob-{version.value}.yaml").read_text())
        if definition and definition["metadata"]["name"] == "mpijobs.kubeflow.org"
    ]
    versions = {each["name"]: each for definition in found for each in definition["spec"]["versions"]}
    served = [{**versions[version.value], "served": True, "storage": False} for version in ApiVersion]
    everything = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    stored = {"name": "v0", "served": False, "storage": True, "schema": {"openAPIV3Schema": everything}}
    spec = {**found[0]["spec"], "versions": [*served, stored]}
    return {**found[0], "spec": spec, "status": {}}


def _job(version: ApiVersion) -> Object:
    spec = JobSpec(
        name="job",
        namespace="default",
        image="i",
        command=("c",),
        workers=4,
        gpus=2,
        slots=2,
        compute=Compute(cpu="8", memory="64Gi"),
    )
    return render(spec, RenderContext(version)).job


@pytest.mark.parametrize(("backend", "version"), LEGAL, ids=ids)
def test_every_object_is_taken_as_it_was_sent(kube: Kube, backend: str, version: ApiVersion) -> None:
    """Job and companions, from the packaged templates, in each version that the back-end can take."""
    rendered = _job(version)
    known = {key: value for key, value in KNOWN[backend].items() if key != "placement"}
    added = decorate(backend, replace(gang_of(rendered), **known))
    objects = [decorated(rendered, added), *added.companions]
    stored = [_tried(kube, item) for item in objects]

    assert [[]] * len(objects) == [_lost(sent, kept) for sent, kept in zip(objects, stored, strict=True)]


def _tried(kube: Kube, item: Object) -> Any:
    """Return an object as the API server would store it."""
    path = kube.path(item["apiVersion"], item["kind"], "default")
    return kube.request("POST", path, item, query={"dryRun": "All", "fieldValidation": "Strict"})


def _lost(sent: Any, kept: Any, path: str = "") -> list[str]:
    """Return what was sent and is not there, by its path."""
    if isinstance(sent, dict):
        return [
            loss
            for key, value in sent.items()
            for loss in _lost(value, kept.get(key) if isinstance(kept, dict) else None, f"{path}/{key}")
        ]
    if isinstance(sent, list):
        others = kept if isinstance(kept, list) else []
        return [
            loss
            for at, value in enumerate(sent)
            for loss in _lost(value, others[at] if at < len(others) else None, f"{path}/{at}")
        ]
    return [] if sent == kept else [f"{path}: {sent!r} -> {kept!r}"]


def test_a_field_that_does_not_exist_is_refused(kube: Kube) -> None:
    """So that these tests can fail."""
    (group,) = decorate("volcano", gang_of(_job(ApiVersion.V2BETA1))).companions
    with pytest.raises(KubeError, match=r'unknown field "spec.minMembers"'):
        _tried(kube, {**group, "spec": {"minMembers": 4}})


@pytest.mark.parametrize("gangs", [True, False])
@pytest.mark.parametrize("api", ["v1", "v1beta1"])
def test_the_admission_policy_is_taken_in_every_version_that_can_be_had(
    kube: Kube, api: str, gangs: bool
) -> None:
    """Kubernetes 1.36 serves two of the three."""
    for sent in policy_objects(api, gangs=gangs):
        assert [] == _lost(sent, _tried(kube, sent))


def test_the_oldest_mpijob_drops_gates(kube: Kube) -> None:
    """Which is why gangs by gates are refused there."""
    rendered = _job(ApiVersion.V1ALPHA1)
    rendered["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "arena-topo.dev/gang"}]
    with pytest.raises(KubeError, match=r'unknown field "spec.template.spec.schedulingGates"'):
        _tried(kube, rendered)
