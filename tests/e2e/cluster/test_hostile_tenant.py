"""One tenant writes whatever a tenant may write, and another
one plans and submits undisturbed, on a real API server.
"""

import json
import sys
import uuid
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from arena_topo.model.keys import (
    ACK_ALLOCATION,
    ACK_GPU_GROUP,
    HAMI_ALLOCATED,
    KOORDINATOR_ALLOCATION,
    KOORDINATOR_DEVICES,
    PLAN,
    PLANNED,
)
from tests.controlplane.components import install
from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes, remove_pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.objects import mpijob

API, KIND = "kubeflow.org/v2beta1", "MPIJob"
NODES = ("hostile-0", "hostile-1")
DEEP = "[" * 60_000 + "]" * 60_000

HONEST = {"v": 1, "stage": "confirmed", "written": "9999-12-31T23:59:59-23:59", "each": {"nvidia.com/gpu": 8}}
EVERYTHING = {"nodes": [[name, 1] for name in NODES], "gpus": [["0,1,2,3,4,5,6,7", 2]]}
PLANS = {
    "deep": DEEP,
    "billion": json.dumps({**HONEST, "nodes": [[NODES[0], 10**9]], "gpus": [["0", 10**9]]}),
    "infinite": '{"v":1,"stage":"confirmed","nodes":[["hostile-0",1e999]],"gpus":[["0",1e999]]}',
    "suspended": json.dumps({**HONEST, **EVERYTHING}),
    "proposed": json.dumps({**HONEST, **EVERYTHING, "stage": "proposed"}),
    "escape": json.dumps({**HONEST, "stage": "\x1b[2J\u202e"}),
    "half": r'{"v":1,"stage":"\ud800"}',
    "shapes": '{"v":1,"stage":"confirmed","nodes":{"a":null},"gpus":[[[],{}]],"each":[1]}',
}
PODS = {
    "ack": {ACK_ALLOCATION: DEEP},
    "ack-group": {ACK_GPU_GROUP: "9" * 5000},
    "scheduler": {KOORDINATOR_ALLOCATION: json.dumps({"allocatedGPUs": {"0": ["1" * 5000]}})},
    "minors": {KOORDINATOR_DEVICES: '{"gpu":[{"minor":-1},{"minor":1e999}]}'},
    "deep-devices": {KOORDINATOR_DEVICES: DEEP},
    "all": {KOORDINATOR_DEVICES: json.dumps({"gpu": [{"minor": minor} for minor in range(8)]})},
    "hami": {HAMI_ALLOCATED: "\x1b[31m;:,,"},
}


@pytest.fixture
def nodes(plane: ControlPlane, namespace: str) -> Iterator[list[str]]:
    """Names of two servers of eight GPUs."""
    names = create_nodes(plane.kube, [NodeSpec(name) for name in NODES])
    yield names
    delete_jobs(plane.kube, namespace)
    delete_nodes(plane.kube, names)


@pytest.fixture
def tenant(plane: ControlPlane) -> Iterator[str]:
    """Namespace of the tenant, who must not disturb anybody."""
    name = f"hostile-{uuid.uuid4().hex[:8]}"
    plane.kube.create(install.namespace(name))
    plane.kube.wait_for("v1", "ServiceAccount", "default", name)
    yield name
    delete_jobs(plane.kube, name)
    plane.kube.delete("v1", "Namespace", name)
    eventually(lambda: not remove_pods(plane.kube, name), f"the end of the pods in {name}")


def delete_jobs(kube: Kube, namespace: str) -> None:
    """Delete the jobs of *namespace*, whose plans would reserve nodes in other tests."""
    for job in kube.list(API, KIND, namespace):
        kube.delete(API, KIND, job["metadata"]["name"], namespace)
    eventually(lambda: not kube.list(API, KIND, namespace), "the jobs to go")


def suspended_job(name: str, plan: str) -> Object:
    """Return a job that never runs, asks for no GPUs, and carries *plan*."""
    job = mpijob(name, workers=2)
    job["metadata"] = {"name": name, "labels": {PLANNED: "true"}, "annotations": {PLAN: plan}}
    for replicas in job["spec"]["mpiReplicaSpecs"].values():
        replicas["template"]["spec"]["containers"] = [{"name": "mpi", "image": "busybox"}]
    job["spec"]["runPolicy"] = {"suspend": True}
    return job


def pod_without_requests(name: str, annotations: dict[str, str]) -> Object:
    """Return a pod on one of the servers that requests nothing."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "annotations": annotations},
        "spec": {"containers": [{"name": "main", "image": "busybox"}], "nodeName": NODES[0]},
    }


def claim(api: str) -> Object:
    """Return a claim whose parameters, which its driver alone reads, nest deeper than Python does."""
    lists: list[object] = []
    # The server admits 10 KiB of them.
    for _ in range(4000):
        lists = [lists]
    opaque = {"driver": "example.com", "parameters": {"x": lists}}
    config = [{"requests": ["gpu"], "opaque": opaque}]
    request = {"name": "gpu", "exactly": {"deviceClassName": "example.com"}}
    return {
        "apiVersion": api,
        "kind": "ResourceClaim",
        "metadata": {"name": "deep"},
        "spec": {"devices": {"requests": [request], "config": config}},
    }


@contextmanager
def deep_stack() -> Iterator[None]:
    """Let the test itself write and read what nests deeper than Python does by default."""
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(20_000)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


def write_everything(kube: Kube, tenant: str) -> None:
    """Write each kind of hostile object into the namespace of *tenant*."""
    for name, plan in PLANS.items():
        kube.create(suspended_job(name, plan), tenant)
    for name, annotations in PODS.items():
        kube.create(pod_without_requests(name, annotations), tenant)


def test_a_hostile_tenant_disturbs_nobody(
    arena: Arena, kube: Kube, namespace: str, tenant: str, nodes: list[str]
) -> None:
    """Every GPU is planned with; the tenant's objects are named in
    few warnings, and nothing of them acts on a terminal.
    """
    write_everything(kube, tenant)
    eventually(lambda: len(kube.list("v1", "Pod", tenant)) == len(PODS), "the tenant's pods")

    planned = arena("plan", "mpi", "--workers=2", "--gpus=8", "-o", "json")
    assert 0 == planned.code, planned.err
    assert set(nodes) == {slot["node"] for slot in json.loads(planned.out)["slots"]}
    assert f"{tenant}/" in planned.err
    assert len(planned.err.splitlines()) <= 10

    for command in (("topology",), ("topology", NODES[0]), ("top", "node", "-d"), ("doctor",)):
        shown = arena(*command)
        assert 0 == shown.code, shown.err
        assert (shown.out + shown.err).replace("\n", "").isprintable()
        assert "internal error" not in shown.err

    flags = ("--gputopology", "--workers=2", "--gpus=8", "--image=busybox", "--pin=nodes")
    submitted = arena("submit", "mpi", "--name=honest", *flags, "--", "true")
    assert (0, "mpijob.kubeflow.org/honest created\n") == (submitted.code, submitted.out), submitted.err
    assert "waits for a placement" not in submitted.err
    assert set(nodes) == {
        found["spec"]["nodeName"]
        for found in eventually(lambda: workers(kube, namespace), "two workers with a node")
    }


def workers(kube: Kube, namespace: str) -> list[Object] | None:
    """Return the workers of the job once both have a node."""
    found = kube.list("v1", "Pod", namespace, labelSelector="training.kubeflow.org/job-role=worker")
    return found if len(found) == 2 and all(each["spec"].get("nodeName") for each in found) else None


@pytest.mark.usefixtures("nodes")
def test_a_claim_with_deep_parameters_hides_no_other(arena: Arena, kube: Kube, tenant: str) -> None:
    """Its creator may put any JSON there, and anyone who plans lists the claims of all namespaces."""
    with deep_stack():
        kube.create(claim("resource.k8s.io/v1"), tenant)
    outcome = arena("plan", "mpi", "--workers=2", "--gpus=8")
    assert 0 == outcome.code, outcome.err


@pytest.mark.usefixtures("nodes")
def test_a_real_job_reserves_and_is_named(arena: Arena, kube: Kube, tenant: str) -> None:
    """Its plan counts for the GPUs that it asks for; doctor and top say whose they are."""
    job = suspended_job("real", json.dumps({**HONEST, **EVERYTHING}))
    job["spec"]["runPolicy"] = {"suspend": False}
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    template["containers"][0]["resources"] = {"limits": {"nvidia.com/gpu": "8"}}
    # Behind a gate of somebody else the workers never get a node.
    template["schedulingGates"] = [{"name": "example.com/never"}]
    kube.create(job, tenant)
    assert 3 == arena("plan", "mpi", "--workers=2", "--gpus=8").code
    words = f"{tenant}/real: 16 nvidia.com/gpu on hostile-0, hostile-1, confirmed, since 20"
    assert f"reserved for {words}" in arena("top", "node").err
    assert words in arena("doctor", "-v").out
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "gpus"},
        "spec": {"hard": {"requests.nvidia.com/gpu": "8"}},
    }
    kube.create(quota, tenant)
    assert 0 == arena("plan", "mpi", "--workers=1", "--gpus=8").code
