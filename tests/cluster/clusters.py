"""Clusters that serve what a test says, and the facts that are found there."""

from collections.abc import Mapping
from typing import Any

from arena_topo.cluster.capabilities import detect, detect_with_access
from arena_topo.kinds.mpijob import ApiVersion
from tests.fakes import Answer, Call, FakeTransport, refusal, session, unserved


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
    return (detect_with_access if access else detect)(opened), transport


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
