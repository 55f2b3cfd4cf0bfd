"""What planned jobs rely on: conditional patches, suspended jobs, gates, and how they are removed."""

from tests.contract.bodies import mpijob, path_of, pod
from tests.contract.client import JSON_PATCH, MERGE_PATCH, Object
from tests.contract.cluster import Cluster, eventually

PLAN = "arena-topo.dev/plan"
PLAN_AT = "/metadata/annotations/arena-topo.dev~1plan"
WORKER_AT = "/spec/mpiReplicaSpecs/Worker/template"
GATE = {"name": "arena-topo.dev/gang"}
PLANNED = {"arena-topo.dev/planned": "true"}


def _planned(nodes: list[str], *, gated: bool = False, suspend: bool = False) -> Object:
    """Return a job of two workers that bears a plan."""
    job = mpijob("job", nodes, suspend=suspend)
    job["metadata"] |= {"annotations": {PLAN: "proposed"}, "labels": PLANNED}
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["metadata"] = {"labels": PLANNED}
    if gated:
        template["spec"]["schedulingGates"] = [GATE]
    return job


def _workers(cluster: Cluster, space: str) -> list[Object]:
    answer = cluster.admin.get(path_of(space, "pods"), labelSelector="training.kubeflow.org/job-role=worker")
    return sorted(answer.body["items"], key=lambda worker: str(worker["metadata"]["name"]))


def _two_workers(cluster: Cluster, space: str) -> list[Object]:
    def both() -> list[Object] | None:
        workers = _workers(cluster, space)
        return workers if len(workers) == 2 else None

    return eventually(both, "two workers") or []


def test_a_patch_whose_test_fails_changes_nothing(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """It is refused as invalid, so that only a client that has read the plan can replace it."""
    assert 201 == cluster.admin.send("POST", path_of(space, "mpijobs"), _planned(nodes, suspend=True)).code
    operations = [
        {"op": "test", "path": PLAN_AT, "value": "another"},
        {"op": "replace", "path": PLAN_AT, "value": "confirmed"},
    ]
    answer = cluster.admin.send("PATCH", path_of(space, "mpijobs", "job"), operations, JSON_PATCH)
    assert (422, "Invalid") == (answer.code, answer.reason)
    left = cluster.admin.get(path_of(space, "mpijobs", "job")).body["metadata"]["annotations"]
    assert "proposed" == left[PLAN]


def test_a_suspended_job_creates_its_pods_once_it_is_released(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """The pods follow the template of that moment: plan, pins and suspension change in one patch."""
    assert 201 == cluster.admin.send("POST", path_of(space, "mpijobs"), _planned(nodes, suspend=True)).code
    job = eventually(lambda: _suspended(cluster, space), "the operator to suspend it") or {}
    assert [] == _workers(cluster, space)
    template = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]
    template["metadata"]["annotations"] = {"arena-topo.dev/pin-nodes": "0:a,2:"}
    operations = [
        {"op": "test", "path": PLAN_AT, "value": "proposed"},
        {"op": "replace", "path": PLAN_AT, "value": "confirmed"},
        {"op": "replace", "path": WORKER_AT, "value": template},
        {"op": "add", "path": "/spec/runPolicy/suspend", "value": False},
    ]
    assert 200 == cluster.admin.send("PATCH", path_of(space, "mpijobs", "job"), operations, JSON_PATCH).code
    assert ["0:a,2:"] * 2 == [
        worker["metadata"]["annotations"]["arena-topo.dev/pin-nodes"]
        for worker in _two_workers(cluster, space)
    ]


def _suspended(cluster: Cluster, space: str) -> Object | None:
    job: Object = cluster.admin.get(path_of(space, "mpijobs", "job")).body
    conditions = job.get("status", {}).get("conditions", [])
    suspended = any((c["type"], c["status"]) == ("Suspended", "True") for c in conditions)
    return job if suspended else None


def test_gated_workers_wait_until_one_patch_gives_them_a_node(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """The patch holds for the state that was read; a worker that is recreated is gated again."""
    assert 201 == cluster.admin.send("POST", path_of(space, "mpijobs"), _planned(nodes, gated=True)).code
    first = _two_workers(cluster, space)[0]
    name = first["metadata"]["name"]
    assert [GATE] == first["spec"]["schedulingGates"]
    assert "nodeName" not in first["spec"]
    scheduled = eventually(lambda: _scheduled(cluster, space, name), "the scheduler to see the worker") or {}
    assert ("False", "SchedulingGated") == (scheduled["status"], scheduled["reason"])

    place = {"nodeSelector": {"kubernetes.io/hostname": nodes[1]}, "schedulingGates": []}
    stale: Object = {"metadata": {"resourceVersion": "1"}, "spec": place}
    answer = cluster.admin.send("PATCH", path_of(space, "pods", name), stale, MERGE_PATCH)
    assert (409, "Conflict") == (answer.code, answer.reason)
    eventually(lambda: _released(cluster, space, name, place), "a patch of the state that is there")
    eventually(lambda: _node(cluster, space, name) == nodes[1], "the worker to be bound")

    uid = first["metadata"]["uid"]
    cluster.admin.send("DELETE", path_of(space, "pods", name), {"gracePeriodSeconds": 0})
    again = eventually(lambda: _recreated(cluster, space, name, uid), "the worker to be recreated") or {}
    assert [GATE] == again["spec"]["schedulingGates"]


def _scheduled(cluster: Cluster, space: str, name: str) -> Object | None:
    """Return the PodScheduled condition of a pod once it has one."""
    conditions = cluster.admin.get(path_of(space, "pods", name)).body["status"].get("conditions", [])
    return next((condition for condition in conditions if condition["type"] == "PodScheduled"), None)


def _released(cluster: Cluster, space: str, name: str, place: Object) -> bool:
    """Release a pod as it is now; return False if somebody
    else, such as the scheduler, wrote it in between.
    """
    now = cluster.admin.get(path_of(space, "pods", name)).body["metadata"]["resourceVersion"]
    fresh: Object = {"metadata": {"resourceVersion": now}, "spec": place}
    answer = cluster.admin.send("PATCH", path_of(space, "pods", name), fresh, MERGE_PATCH)
    assert answer.code in {200, 409}, answer.message
    return answer.code == 200


def _node(cluster: Cluster, space: str, name: str) -> str:
    return str(cluster.admin.get(path_of(space, "pods", name)).body["spec"].get("nodeName", ""))


def _recreated(cluster: Cluster, space: str, name: str, uid: str) -> Object | None:
    answer = cluster.admin.get(path_of(space, "pods", name))
    if answer.code != 200 or answer.body["metadata"]["uid"] == uid:
        return None
    recreated: Object = answer.body
    return recreated


def test_gates_are_removed_and_never_added(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """A pod without gates cannot get one, and keeps the node selector that it has."""
    body = pod("gated", schedulingGates=[GATE])
    assert 201 == cluster.admin.send("POST", path_of(space, "pods"), body).code
    more: Object = {"spec": {"schedulingGates": [GATE, {"name": "example.com/other"}]}}
    assert 422 == cluster.admin.send("PATCH", path_of(space, "pods", "gated"), more, MERGE_PATCH).code
    released: Object = {"spec": {"schedulingGates": [], "nodeSelector": {"kubernetes.io/hostname": nodes[0]}}}
    assert 200 == cluster.admin.send("PATCH", path_of(space, "pods", "gated"), released, MERGE_PATCH).code
    moved: Object = {"spec": {"nodeSelector": {"kubernetes.io/hostname": nodes[1]}}}
    assert 422 == cluster.admin.send("PATCH", path_of(space, "pods", "gated"), moved, MERGE_PATCH).code


def test_planned_jobs_and_workers_are_found_over_all_namespaces(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """A label selector lists both without naming a namespace."""
    assert 201 == cluster.admin.send("POST", path_of(space, "mpijobs"), _planned(nodes, gated=True)).code
    _two_workers(cluster, space)
    selector = "arena-topo.dev/planned=true"
    jobs = cluster.admin.get("/apis/kubeflow.org/v2beta1/mpijobs", labelSelector=selector).body["items"]
    pods = cluster.admin.get("/api/v1/pods", labelSelector=selector).body["items"]
    assert ["job"] == [job["metadata"]["name"] for job in jobs if job["metadata"]["namespace"] == space]
    assert 2 == sum(worker["metadata"]["namespace"] == space for worker in pods)


def test_the_server_says_what_its_caller_may_do(cluster: Cluster, space: str) -> None:
    """The administrator may do everything, a stranger may not."""
    attributes = {"verb": "patch", "group": "kubeflow.org", "resource": "mpijobs", "namespace": space}
    review: Object = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SelfSubjectAccessReview",
        "spec": {"resourceAttributes": attributes},
    }
    reviews = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    answers = [client.send("POST", reviews, review) for client in (cluster.admin, cluster.stranger)]
    assert [201, 201] == [answer.code for answer in answers]
    assert [True, False] == [answer.body["status"]["allowed"] for answer in answers]
