"""PyTorchJobs and TFJobs: services, pods and what they are told, conditions, the end, another size."""

import json

import pytest

from tests.contract.bodies import affinity, path_of
from tests.contract.client import Object
from tests.contract.cluster import Cluster, conditions_of, eventually, pods_of, running_pods

_LABEL = "training.kubeflow.org"
_OWN = f"{_LABEL}/job-name=job"
_KINDS = {
    "pytorchjobs": ("PyTorchJob", "pytorchReplicaSpecs", "pytorch"),
    "tfjobs": ("TFJob", "tfReplicaSpecs", "tensorflow"),
}


def training_job(resource: str, nodes: list[str], roles: dict[str, int], **spec: object) -> Object:
    """Return a job with a number of pods for each of *roles*, which run for a while on *nodes*."""
    kind, specs, container = _KINDS[resource]
    pod = {
        "containers": [{"name": container, "image": "i", "command": ["sleep", "infinity"]}],
        "affinity": affinity(nodes),
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


def all_running(cluster: Cluster, space: str, count: int) -> dict[str, Object]:
    """Return the pods of the job by name once there are *count* and all of them run."""
    return {pod["metadata"]["name"]: pod for pod in running_pods(cluster, space, _OWN, count)}


def created_and_running(
    cluster: Cluster, space: str, resource: str, body: Object, count: int
) -> dict[str, Object]:
    """Create a job and return its *count* pods once all of them run, and the job says so."""
    assert 201 == cluster.admin.send("POST", path_of(space, resource), body).code
    eventually(lambda: "Running" in conditions(cluster, space, resource), "the job to run")
    return all_running(cluster, space, count)


def conditions(cluster: Cluster, space: str, resource: str) -> dict[str, tuple[str, str]]:
    """Return the state and the reason of each condition of the job."""
    return conditions_of(cluster.admin.get(path_of(space, resource, "job")).body.get("status", {}))


def environment(pod: Object) -> dict[str, str]:
    """Return the variables of a pod's container."""
    return {each["name"]: each.get("value", "") for each in pod["spec"]["containers"][0].get("env", ())}


def test_a_pytorchjob_becomes_pods_and_services_of_one_name(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """Labelled by role and index, and each told its rank."""
    body = training_job("pytorchjobs", nodes, {"Master": 1, "Worker": 2}, nprocPerNode="2")
    found = created_and_running(cluster, space, "pytorchjobs", body, 3)

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
    service = cluster.admin.get(path_of(space, "services", "job-worker-1")).body["spec"]
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
    body = training_job("pytorchjobs", nodes, {"Worker": 2}, elasticPolicy=policy)
    found = created_and_running(cluster, space, "pytorchjobs", body, 2)
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
            "PATCH", path_of(space, "pytorchjobs", "job"), change, media="application/merge-patch+json"
        )
        assert 200 == answer.code, answer.message
        assert {f"job-worker-{index}" for index in range(count)} == all_running(cluster, space, count).keys()


def test_a_tfjob_tells_each_pod_all_others(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """By their services; the chief has the role of a master."""
    roles = {"Chief": 1, "Worker": 1, "PS": 2, "Evaluator": 1}
    found = created_and_running(cluster, space, "tfjobs", training_job("tfjobs", nodes, roles), 5)

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
    body = training_job(resource, nodes, {"Worker": 2}, runPolicy={"suspend": True})
    assert 201 == cluster.admin.send("POST", path_of(space, resource), body).code
    kind = _KINDS[resource][0]
    eventually(
        lambda: conditions(cluster, space, resource).get("Suspended") == ("True", f"{kind}Suspended"),
        "the job to be suspended",
    )
    assert [] == pods_of(cluster, space, _OWN)

    change = {"spec": {"runPolicy": {"suspend": False}}}
    cluster.admin.send("PATCH", path_of(space, resource, "job"), change, media="application/merge-patch+json")
    all_running(cluster, space, 2)
    eventually(
        lambda: conditions(cluster, space, resource).get("Suspended") == ("False", f"{kind}Resumed"),
        "the job to be resumed",
    )
