"""PyTorchJobs and TFJobs: services, pods and what they are told, conditions, the end, another size."""

import json

import pytest

from tests.contract.client import Object
from tests.contract.cluster import Cluster, eventually

_LABEL = "training.kubeflow.org"
_KINDS = {
    "pytorchjobs": ("PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
    "tfjobs": ("TFJob", "tfReplicaSpecs", "tensorflow"),
}


def path(space: str, resource: str, name: str = "") -> str:
    """Return the path of a job of one of the kinds, or of an object of the core."""
    root = "/apis/kubeflow.org/v1" if resource in _KINDS else "/api/v1"
    base = f"{root}/namespaces/{space}/{resource}"
    return f"{base}/{name}" if name else base


def job(resource: str, nodes: list[str], roles: dict[str, int], **spec: object) -> Object:
    """Return a job with a number of pods for each of *roles*, which run for a while on *nodes*."""
    kind, specs, container = _KINDS[resource]
    terms = [{"matchExpressions": [{"key": "kubernetes.io/hostname", "operator": "In", "values": nodes}]}]
    required = {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}
    pod = {
        "containers": [{"name": container, "image": "i", "command": ["sleep", "infinity"]}],
        "affinity": {"nodeAffinity": required},
    }
    replicas = {
        role: {"replicas": count, "restartPolicy": "Never", "template": {"spec": pod}}
        for role, count in roles.items()
    }
    return {
        "apiVersion": "kubeflow.org/v1",
        "kind": kind,
        "metadata": {"name": "job"},
        "spec": {specs: replicas, **spec},
    }


def pods(cluster: Cluster, space: str) -> dict[str, Object]:
    """Return the pods of the job by name."""
    found = cluster.admin.get(path(space, "pods"), labelSelector=f"{_LABEL}/job-name=job").body["items"]
    return {pod["metadata"]["name"]: pod for pod in found}


def running(cluster: Cluster, space: str, resource: str, body: Object, count: int) -> dict[str, Object]:
    """Create a job and return its *count* pods once all of them run, and the job says so."""
    assert 201 == cluster.admin.send("POST", path(space, resource), body).code
    eventually(lambda: "Running" in conditions(cluster, space, resource), "the job to run")
    return all_running(cluster, space, count)


def all_running(cluster: Cluster, space: str, count: int) -> dict[str, Object]:
    """Return the pods of the job once there are *count* and all of them run."""

    def found() -> dict[str, Object]:
        each = pods(cluster, space)
        whole = len(each) == count and all(pod["status"].get("phase") == "Running" for pod in each.values())
        return each if whole else {}

    return eventually(found, f"{count} pods that run")


def conditions(cluster: Cluster, space: str, resource: str) -> dict[str, tuple[str, str]]:
    """Return the state and the reason of each condition of the job."""
    status = cluster.admin.get(path(space, resource, "job")).body.get("status", {})
    return {each["type"]: (each["status"], each["reason"]) for each in status.get("conditions", [])}


def environment(pod: Object) -> dict[str, str]:
    """Return the variables of a pod's container."""
    return {each["name"]: each.get("value", "") for each in pod["spec"]["containers"][0].get("env", ())}


def test_a_pytorchjob_becomes_pods_and_services_of_one_name(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """Labelled by role and index, and each told its rank."""
    body = job("pytorchjobs", nodes, {"Master": 1, "Worker": 2}, nprocPerNode="2")
    found = running(cluster, space, "pytorchjobs", body, 3)

    assert {"job-master-0", "job-worker-0", "job-worker-1"} == found.keys()
    labels = {
        "job-name": "job",
        "operator-name": "pytorchjob-controller",
        "replica-type": "worker",
        "replica-index": "1",
    }
    assert {f"{_LABEL}/{key}": value for key, value in labels.items()} == found["job-worker-1"]["metadata"][
        "labels"
    ]
    assert "master" == found["job-master-0"]["metadata"]["labels"][f"{_LABEL}/job-role"]
    service = cluster.admin.get(path(space, "services", "job-worker-1")).body["spec"]
    assert ("None", 23456) == (service["clusterIP"], service["ports"][0]["port"])
    assert {
        "PYTHONUNBUFFERED": "1",
        "MASTER_ADDR": "job-master-0",
        "MASTER_PORT": "23456",
        "PET_MASTER_ADDR": "job-master-0",
        "PET_MASTER_PORT": "23456",
        "WORLD_SIZE": "6",
        "RANK": "2",
        "PET_NODE_RANK": "2",
        "PET_NPROC_PER_NODE": "2",
        "PET_NNODES": "3",
    } == environment(found["job-worker-1"])
    assert {"Created", "Running"} == conditions(cluster, space, "pytorchjobs").keys()


def test_an_elastic_pytorchjob_meets_at_worker_0_and_changes_its_size(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """It has no master, whose role worker 0 has; the highest indices leave."""
    policy = {"minReplicas": 1, "maxReplicas": 4, "rdzvBackend": "c10d", "maxRestarts": 3}
    body = job("pytorchjobs", nodes, {"Worker": 2}, elasticPolicy=policy)
    found = running(cluster, space, "pytorchjobs", body, 2)
    assert {
        "PYTHONUNBUFFERED": "1",
        "PET_RDZV_ENDPOINT": "job-worker-0:23456",
        "PET_RDZV_BACKEND": "c10d",
        "PET_MAX_RESTARTS": "3",
        "PET_NPROC_PER_NODE": "auto",
        "PET_NNODES": "1:4",
    } == environment(found["job-worker-1"])
    roles = [
        found[f"job-worker-{index}"]["metadata"]["labels"].get(f"{_LABEL}/job-role") for index in range(2)
    ]
    assert ["master", None] == roles

    for count in (3, 1):
        change = {"spec": {"pytorchReplicaSpecs": {"Worker": {"replicas": count}}}}
        answer = cluster.admin.send(
            "PATCH", path(space, "pytorchjobs", "job"), change, media="application/merge-patch+json"
        )
        assert 200 == answer.code, answer.message
        assert {f"job-worker-{index}" for index in range(count)} == all_running(cluster, space, count).keys()


def test_a_tfjob_tells_each_pod_all_others(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """By their services; the chief has the role of a master."""
    roles = {"Chief": 1, "Worker": 1, "PS": 2, "Evaluator": 1}
    found = running(cluster, space, "tfjobs", job("tfjobs", nodes, roles), 5)

    def host(role: str, index: int) -> str:
        return f"job-{role}-{index}.{space}.svc:2222"

    assert {
        "cluster": {
            "chief": [host("chief", 0)],
            "evaluator": [host("evaluator", 0)],
            "ps": [host("ps", 0), host("ps", 1)],
            "worker": [host("worker", 0)],
        },
        "task": {"type": "ps", "index": 1},
        "environment": "cloud",
    } == json.loads(environment(found["job-ps-1"])["TF_CONFIG"])
    masters = [name for name, pod in found.items() if f"{_LABEL}/job-role" in pod["metadata"]["labels"]]
    assert ["job-chief-0"] == masters


@pytest.mark.parametrize("resource", list(_KINDS))
def test_a_suspended_job_has_no_pods_until_it_is_resumed(
    cluster: Cluster, space: str, nodes: list[str], resource: str
) -> None:
    """Both are told by conditions."""
    body = job(resource, nodes, {"Worker": 2}, runPolicy={"suspend": True})
    assert 201 == cluster.admin.send("POST", path(space, resource), body).code
    kind = _KINDS[resource][0]
    eventually(
        lambda: conditions(cluster, space, resource).get("Suspended") == ("True", f"{kind}Suspended"),
        "the job to be suspended",
    )
    assert {} == pods(cluster, space)

    change = {"spec": {"runPolicy": {"suspend": False}}}
    cluster.admin.send("PATCH", path(space, resource, "job"), change, media="application/merge-patch+json")
    all_running(cluster, space, 2)
    eventually(
        lambda: conditions(cluster, space, resource).get("Suspended") == ("False", f"{kind}Resumed"),
        "the job to be resumed",
    )
