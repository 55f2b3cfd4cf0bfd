"""Each worker gets the very GPUs that it was planned: by DRA claims, or named to HAMi."""

import json
from collections.abc import Callable, Iterator

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes
from tests.controlplane.machines.pods import MPIJOB
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, submit_gang

DRA = "resource.k8s.io/v1"
DRIVER = "gpu.nvidia.com"
GANG = ("submit", "mpi", "--gang", "--gputopology", "--image=train")


def uuid(node: str, gpu: int) -> str:
    """Return the UUID of a test's GPU."""
    return f"GPU-{node}-{gpu}"


@pytest.fixture
def finished(plane: ControlPlane, namespace: str) -> Iterator[Callable[[], None]]:
    """Return a function that deletes all jobs of the test."""

    def finish() -> None:
        for job in plane.kube.list(*MPIJOB, namespace):
            plane.kube.delete(*MPIJOB, job["metadata"]["name"], namespace)
        eventually(lambda: not plane.kube.list(*MPIJOB, namespace), "the jobs to go")

    yield finish
    finish()


@pytest.fixture
def dra_nodes(plane: ControlPlane, finished: object) -> Iterator[list[str]]:
    """Names of two nodes whose four GPUs each are published by
    NVIDIA's DRA driver, and offered in no other way.
    """
    del finished
    kube = plane.kube
    names = create_nodes(kube, [NodeSpec(f"dra-{at}", gpus=0) for at in range(2)])
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    kube.create(
        {
            "apiVersion": DRA,
            "kind": "DeviceClass",
            "metadata": {"name": DRIVER},
            "spec": {"selectors": [selector]},
        }
    )
    for name in names:
        kube.create(resource_slice(name))
    yield names
    for name in names:
        kube.delete(DRA, "ResourceSlice", f"slice-{name}")
    kube.delete(DRA, "DeviceClass", DRIVER)
    delete_nodes(kube, names)


def resource_slice(node: str) -> Object:
    """Return what the driver publishes of a node."""
    devices = [
        {
            "name": f"gpu-{gpu}",
            "attributes": {
                "uuid": {"string": uuid(node, gpu)},
                "type": {"string": "gpu"},
                "index": {"int": gpu},
                "minor": {"int": gpu},
                "productName": {"string": "Tesla V100-SXM2-16GB"},
            },
        }
        for gpu in range(4)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices}
    return {"apiVersion": DRA, "kind": "ResourceSlice", "metadata": {"name": f"slice-{node}"}, "spec": spec}


def planned_gpus(kube: Kube, namespace: str, name: str) -> list[tuple[str, list[int]]]:
    """Return the node and the GPUs of each worker by the job's plan."""
    job = kube.get(*MPIJOB, name, namespace)
    plan = json.loads(job["metadata"]["annotations"]["arena-topo.dev/plan"])
    nodes = [node for node, count in plan["nodes"] for _ in range(count)]
    gpus = [[int(gpu) for gpu in text.split(",")] for text, count in plan["gpus"] for _ in range(count)]
    return list(zip(nodes, gpus, strict=True))


def given(kube: Kube, namespace: str, pod: Object) -> tuple[str, list[int]]:
    """Return the node and the devices that a pod's claim got."""
    name = pod["spec"]["resourceClaims"][0]["resourceClaimName"]
    claim = kube.get(DRA, "ResourceClaim", name, namespace)
    results = claim["status"]["allocation"]["devices"]["results"]
    return pod["spec"]["nodeName"], [int(each["device"].removeprefix("gpu-")) for each in results]


def workers_with_nodes(kube: Kube, namespace: str, name: str, workers: int) -> list[Object]:
    """Return the workers by index once all have a node."""

    def bound() -> list[Object] | None:
        found = pods.of_job(kube, namespace, name, "worker")
        return (
            found if len(found) == workers and all(each["spec"].get("nodeName") for each in found) else None
        )

    return eventually(bound, f"{workers} workers of {name} to have a node")


@pytest.mark.usefixtures("policy", "dra_nodes")
def test_each_worker_claims_the_gpus_that_it_was_planned(arena: Arena, kube: Kube, namespace: str) -> None:
    """Also when it is recreated; the claims go with the job."""
    outcome = submit_gang(arena, "gang", 3, 2)
    assert 0 == outcome.code, outcome.err
    assert "each on its own GPUs, by a DRA claim" in arena("describe", "gang").out
    plan = planned_gpus(kube, namespace, "gang")
    workers = workers_with_nodes(kube, namespace, "gang", 3)
    assert [(node, sorted(gpus)) for node, gpus in plan] == [
        (node, sorted(gpus)) for node, gpus in (given(kube, namespace, each) for each in workers)
    ]
    remade = pods.replaced(
        kube, namespace, workers[1]["metadata"]["name"], lambda pod: pod["spec"].get("nodeName")
    )
    assert (plan[1][0], sorted(plan[1][1])) == (
        remade["spec"]["nodeName"],
        sorted(given(kube, namespace, remade)[1]),
    )
    late = submit_gang(arena, "late", 3, 1)
    assert "late waits for a placement" in late.err
    assert 0 == arena("delete", "gang").code
    eventually(lambda: not _claims(kube, namespace, "gang"), "the claims to go")
    assert 0 == arena("resume", "late").code
    assert 3 == len(workers_with_nodes(kube, namespace, "late", 3))


def _claims(kube: Kube, namespace: str, job: str) -> list[Object]:
    return kube.list(DRA, "ResourceClaim", namespace, labelSelector=f"arena-topo.dev/job={job}")


@pytest.mark.usefixtures("policy", "dra_nodes")
def test_workers_of_a_node_may_share_its_gpus(arena: Arena, kube: Kube, namespace: str) -> None:
    """One claim for those of a node; each worker's own GPUs come first in what CUDA shows it."""
    outcome = submit_gang(arena, "gang", 4, 2, "--share-gpus")
    assert 0 == outcome.code, outcome.err
    assert "experimental" in arena("describe", "gang").out
    plan = planned_gpus(kube, namespace, "gang")
    workers = workers_with_nodes(kube, namespace, "gang", 4)
    claims = [each["spec"]["resourceClaims"][0]["resourceClaimName"] for each in workers]
    assert ["gang-worker-0-gpus"] * 2 + ["gang-worker-2-gpus"] * 2 == claims
    assert [4] * 4 == [len(given(kube, namespace, each)[1]) for each in workers]
    for (node, gpus), worker in zip(plan, workers, strict=True):
        shown = worker["metadata"]["annotations"]["nvidia.com/use-gpuuuid"].split(",")
        assert [uuid(node, gpu) for gpu in gpus] == shown[:2]
        assert {uuid(node, gpu) for gpu in range(4)} == set(shown)
        env = {each["name"]: each for each in worker["spec"]["containers"][0]["env"]}
        path = env["CUDA_VISIBLE_DEVICES"]["valueFrom"]["fieldRef"]["fieldPath"]
        assert "metadata.annotations['nvidia.com/use-gpuuuid']" == path
        assert "spec.nodeName" == env["NCCL_HOSTID"]["valueFrom"]["fieldRef"]["fieldPath"]


@pytest.mark.usefixtures("gpu_nodes")
def test_gpus_are_shared_by_claims_alone(arena: Arena, kube: Kube, namespace: str) -> None:
    """Elsewhere the flag is refused, with what to use instead."""
    outcome = submit_gang(arena, "gang", 2, 2, "--share-gpus")
    assert 2 == outcome.code
    assert "--share-gpus needs GPUs allocated by a DRA driver" in outcome.err
    assert [] == kube.list(*MPIJOB, namespace)


@pytest.mark.usefixtures("dra_nodes")
def test_without_the_policy_claims_cannot_be_handed_out(arena: Arena, kube: Kube, namespace: str) -> None:
    """One error says why and who can help, and nothing is created."""
    outcome = submit_gang(arena, "gang", 3, 2)
    assert 2 == outcome.code
    assert "the GPUs of this cluster are allocated by DRA claims" in outcome.err
    assert "cluster setup --apply" in outcome.err
    assert [] == kube.list(*MPIJOB, namespace)


@pytest.fixture
def hami_nodes(plane: ControlPlane, finished: object) -> Iterator[list[str]]:
    """Names of two nodes of four GPUs that HAMi has registered."""
    del finished

    def register(node: str) -> str:
        return json.dumps(
            [
                {
                    "id": uuid(node, gpu),
                    "index": gpu,
                    "count": 1,
                    "devmem": 16384,
                    "devcore": 100,
                    "type": "NVIDIA-Tesla V100-SXM2-16GB",
                    "numa": 0,
                    "mode": "hami-core",
                    "health": True,
                }
                for gpu in range(4)
            ]
        )

    specs = [
        NodeSpec(f"hami-{at}", gpus=4, annotations={"hami.io/node-nvidia-register": register(f"hami-{at}")})
        for at in range(2)
    ]
    names = create_nodes(plane.kube, specs)
    yield names
    delete_nodes(plane.kube, names)


@pytest.mark.usefixtures("hami_nodes")
@pytest.mark.parametrize("means", ["policy", "gates"])
def test_hami_is_told_the_gpus_of_each_worker(
    arena: Arena, kube: Kube, namespace: str, means: str, request: pytest.FixtureRequest
) -> None:
    """By the admission policy, or as the workers are released;
    a job that is suspended is free of them again.
    """
    if means == "policy":
        request.getfixturevalue("policy")
    tried = submit_gang(arena, "gang", 3, 2, "--pin=gpus", "--dry-run=server", "--plan")
    assert 0 == tried.code, tried.err
    outcome = submit_gang(arena, "gang", 3, 2, "--pin=gpus")
    assert 0 == outcome.code, outcome.err
    assert "each on its own GPUs, requested from HAMi by UUID" in arena("describe", "gang").out
    workers = workers_with_nodes(kube, namespace, "gang", 3)
    assert [
        (node, ",".join(uuid(node, gpu) for gpu in gpus))
        for node, gpus in planned_gpus(kube, namespace, "gang")
    ] == [
        (each["spec"]["nodeName"], each["metadata"]["annotations"]["nvidia.com/use-gpuuuid"])
        for each in workers
    ]
    suspended = arena("suspend", "gang")
    assert 0 == suspended.code, suspended.err
    template = kube.get(*MPIJOB, "gang", namespace)["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    assert "arena-topo.dev/pin-gpus" not in template["metadata"].get("annotations", {})


@pytest.mark.usefixtures("gpu_nodes")
def test_exact_gpus_are_refused_where_nothing_keeps_them(arena: Arena, kube: Kube, namespace: str) -> None:
    """NVIDIA's device plugin leaves the choice to the kubelet."""
    outcome = submit_gang(arena, "gang", 2, 2, "--pin=gpus")
    assert 2 == outcome.code
    assert "--pin=gpus cannot be enforced on this cluster" in outcome.err
    assert [] == kube.list(*MPIJOB, namespace)
