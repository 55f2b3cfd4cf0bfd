"""JobSets: the Service and the Jobs of each role, what their
pods say of themselves, restarts, suspension, the end.
"""

from tests.contract.bodies import affinity, path_of, pod
from tests.contract.client import MERGE_PATCH, Answer, Object
from tests.contract.cluster import Cluster, begun_pods, conditions_of, eventually, pods_of, running_pods

_DOMAIN = "jobset.sigs.k8s.io"
_OWN = f"{_DOMAIN}/jobset-name=set"


def role(name: str, nodes: list[str], replicas: int = 1, pods: int = 2, **role_spec: object) -> Object:
    """Return a role of Jobs whose pods run for a while on *nodes*, and fail with the first of them."""
    spec = pod("p", command="sleep infinity", affinity=affinity(nodes))["spec"]
    template = {"parallelism": pods, "completions": pods, "backoffLimit": 0, "template": {"spec": spec}}
    return {"name": name, "replicas": replicas, "template": {"spec": template}, **role_spec}


def create(cluster: Cluster, space: str, *roles: Object, **spec: object) -> Object:
    """Create a set of *roles*."""
    body = {
        "apiVersion": "jobset.x-k8s.io/v1alpha2",
        "kind": "JobSet",
        "metadata": {"name": "set"},
        "spec": {"replicatedJobs": list(roles), **spec},
    }
    answer = cluster.admin.send("POST", path_of(space, "jobsets"), body)
    assert 201 == answer.code, answer.message
    created: Object = answer.body
    return created


def change(cluster: Cluster, space: str, **spec: object) -> Answer:
    """Change the spec of the set by a merge patch."""
    return cluster.admin.send("PATCH", path_of(space, "jobsets", "set"), {"spec": spec}, MERGE_PATCH)


def running(cluster: Cluster, space: str, count: int, *gone: Object) -> dict[str, Object]:
    """Return the pods by their host names once *count* of them run, and all of *gone* have gone."""
    return {pod["spec"]["hostname"]: pod for pod in running_pods(cluster, space, _OWN, count, *gone)}


def status(cluster: Cluster, space: str) -> Object:
    """Return the status of the set."""
    found: Object = cluster.admin.get(path_of(space, "jobsets", "set")).body.get("status", {})
    return found


def conditions(cluster: Cluster, space: str) -> dict[str, tuple[str, str]]:
    """Return the state and the reason of each condition of the set."""
    return conditions_of(status(cluster, space))


def said(cluster: Cluster, space: str, condition: str) -> Object:
    """Return the status of the set once it has a *condition*, with all that was written with it."""

    def found() -> Object:
        seen = status(cluster, space)
        return seen if condition in conditions_of(seen) else {}

    return eventually(found, f"the condition {condition}")


def delete_pod(cluster: Cluster, space: str, lost: Object) -> None:
    """Delete a pod at once."""
    cluster.admin.send("DELETE", path_of(space, "pods", lost["metadata"]["name"]), {"gracePeriodSeconds": 0})


def test_a_set_becomes_jobs_whose_pods_know_their_place(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """In the set, in the role, in the Job; one Service gives them their names."""
    created = create(cluster, space, role("lead", nodes, pods=1), role("work", nodes, replicas=2))
    found = running(cluster, space, 5)

    names = {"set-lead-0-0", "set-work-0-0", "set-work-0-1", "set-work-1-0", "set-work-1-1"}
    assert names == found.keys()
    meta = found["set-work-1-0"]["metadata"]
    own = {
        "jobset-name": "set",
        "jobset-uid": created["metadata"]["uid"],
        "replicatedjob-name": "work",
        "restart-attempt": "0",
        "replicatedjob-replicas": "2",
        "global-replicas": "3",
        "job-index": "1",
        "job-global-index": "2",
        "group-name": "default",
        "group-replicas": "3",
        "job-group-index": "2",
    }
    expected = {f"{_DOMAIN}/{key}": value for key, value in own.items()}
    for marks, more in ((meta["labels"], {f"{_DOMAIN}/priority": "0"}), (meta["annotations"], {})):
        ours = {key: value for key, value in marks.items() if key.startswith(_DOMAIN)}
        assert 40 == len(ours.pop(f"{_DOMAIN}/job-key"))
        assert {**expected, **more} == ours
    assert "0" == meta["labels"]["batch.kubernetes.io/job-completion-index"]
    assert "set" == found["set-work-1-0"]["spec"]["subdomain"]
    service = cluster.admin.get(path_of(space, "services", "set")).body["spec"]
    assert ("None", {f"{_DOMAIN}/jobset-name": "set"}) == (service["clusterIP"], service["selector"])
    assert service["publishNotReadyAddresses"] is True
    jobs = cluster.admin.get(path_of(space, "jobs")).body["items"]
    assert ["set-lead-0", "set-work-0", "set-work-1"] == [job["metadata"]["name"] for job in jobs]
    eventually(
        lambda: (
            status(cluster, space).get("replicatedJobsStatus")
            == [
                {"name": "work", "ready": 2, "succeeded": 0, "failed": 0, "active": 2, "suspended": 0},
                {"name": "lead", "ready": 1, "succeeded": 0, "failed": 0, "active": 1, "suspended": 0},
            ]
        ),
        "the Jobs to be counted",
    )
    assert {} == conditions(cluster, space)
    assert 0 == status(cluster, space)["restarts"]


def test_a_new_set_has_the_defaults_of_its_webhook(cluster: Cluster, space: str) -> None:
    """Pods find each other by name, all Jobs must succeed, and a container that fails is started again."""
    bare = role("work", ["nowhere"])
    del bare["template"]["spec"]["template"]["spec"]["restartPolicy"]
    del bare["replicas"]
    spec = create(cluster, space, bare, suspend=True)["spec"]

    assert {"enableDNSHostnames": True, "publishNotReadyAddresses": True} == spec["network"]
    assert {"operator": "All"} == spec["successPolicy"]
    assert {"startupPolicyOrder": "AnyOrder"} == spec["startupPolicy"]
    (only,) = spec["replicatedJobs"]
    assert (1, "default") == (only["replicas"], only["groupName"])
    job = only["template"]["spec"]
    assert ("Indexed", "OnFailure") == (job["completionMode"], job["template"]["spec"]["restartPolicy"])


def test_a_lost_pod_begins_the_set_anew_as_often_as_it_may(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """All Jobs are recreated, with the number of the attempt; after that it has failed."""
    create(cluster, space, role("work", nodes, replicas=2, pods=1), failurePolicy={"maxRestarts": 1})
    first = running(cluster, space, 2)
    delete_pod(cluster, space, first["set-work-0-0"])
    second = running(cluster, space, 2, *first.values())
    assert {"1"} == {each["metadata"]["labels"][f"{_DOMAIN}/restart-attempt"] for each in second.values()}
    eventually(
        lambda: conditions(cluster, space) == {"RestartingJobSet": ("False", "JobsReady")},
        "the set to be ready again",
    )
    assert (1, 1) == tuple(status(cluster, space)[key] for key in ("restarts", "restartsCountTowardsMax"))

    delete_pod(cluster, space, second["set-work-1-0"])
    failed = said(cluster, space, "Failed")
    eventually(lambda: not pods_of(cluster, space, _OWN), "its pods to go")
    assert {
        "Failed": ("True", "ReachedMaxRestarts"),
        "RestartingJobSet": ("False", "JobSetFailed"),
    } == conditions_of(failed)
    (message,) = [c["message"] for c in failed["conditions"] if c["type"] == "Failed"]
    assert "jobset failed due to reaching max number of restarts (first failed job: set-work-1)" == message
    assert "Failed" == failed["terminalState"]


def test_without_a_policy_the_first_failed_job_ends_the_set(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """It says which."""
    create(cluster, space, role("work", nodes))
    delete_pod(cluster, space, running(cluster, space, 2)["set-work-0-1"])

    assert {"Failed": ("True", "FailedJobs")} == conditions_of(said(cluster, space, "Failed"))


def test_a_set_completes_with_its_jobs(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """Its Jobs and their pods stay to be read."""
    brief = role("work", nodes)
    brief["template"]["spec"]["template"]["spec"]["containers"][0]["command"] = ["sh", "-c", "sleep 10"]
    create(cluster, space, brief)

    for name in begun_pods(cluster, space, _OWN, 2):
        cluster.finish(space, name)
    completed = said(cluster, space, "Completed")

    assert {"Completed": ("True", "AllJobsCompleted")} == conditions_of(completed)
    assert "Completed" == completed["terminalState"]
    assert {"Succeeded"} == {each["status"]["phase"] for each in pods_of(cluster, space, _OWN)}


def test_a_suspended_set_has_no_pods_and_takes_other_places(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """Its Jobs stay, suspended; resumed, they run where the template of the set says by then."""
    work = role("work", nodes)
    create(cluster, space, work)
    running(cluster, space, 2)
    moved = role("work", nodes)
    moved["template"]["spec"]["template"] |= {"metadata": {"labels": {"team": "x"}}}
    moved["template"]["spec"]["template"]["spec"]["nodeSelector"] = {"kubernetes.io/hostname": nodes[1]}
    now = cluster.admin.get(path_of(space, "jobsets", "set")).body["spec"]["replicatedJobs"][0]
    moved = _merged(now, moved)
    refused = change(cluster, space, replicatedJobs=[moved])
    assert (422, "Invalid") == (refused.code, refused.reason)
    assert "spec.replicatedJobs: Invalid value: " in refused.message
    assert refused.message.startswith('admission webhook "vjobset.kb.io" denied the request: ')
    assert refused.message.endswith(": field is immutable")

    assert 200 == change(cluster, space, suspend=True).code
    eventually(lambda: not pods_of(cluster, space, _OWN), "the pods to go")
    eventually(
        lambda: conditions(cluster, space) == {"Suspended": ("True", "SuspendedJobs")},
        "the set to be suspended",
    )
    assert 200 == change(cluster, space, replicatedJobs=[moved]).code
    assert 200 == change(cluster, space, suspend=False).code
    found = running(cluster, space, 2)
    assert {(nodes[1], "x")} == {
        (each["spec"]["nodeName"], each["metadata"]["labels"]["team"]) for each in found.values()
    }
    eventually(
        lambda: conditions(cluster, space) == {"Suspended": ("False", "ResumeJobs")}, "the set to be resumed"
    )


def _merged(now: Object, wanted: Object) -> Object:
    """Return what the server has *now* with what is *wanted*, as a merge patch would."""
    merged = dict(now)
    for key, value in wanted.items():
        both = isinstance(value, dict) and isinstance(now.get(key), dict)
        merged[key] = _merged(now[key], value) if both else value
    return merged


def test_a_role_waits_for_the_one_on_which_it_depends(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """Its Jobs are created once those of the other are ready."""
    behind = role("work", nodes, dependsOn=[{"name": "lead", "status": "Ready"}])
    first = role("lead", nodes, pods=1)
    first["template"]["spec"]["template"]["spec"]["schedulingGates"] = [{"name": "example.com/held"}]
    create(cluster, space, first, behind)
    held = eventually(lambda: pods_of(cluster, space, _OWN), "the first pod")
    assert ["set-lead-0-0"] == [pod["spec"]["hostname"] for pod in held]

    (name,) = [each["metadata"]["name"] for each in held]
    opened: Object = {"spec": {"schedulingGates": None}}
    assert 200 == cluster.admin.send("PATCH", path_of(space, "pods", name), opened, MERGE_PATCH).code
    running(cluster, space, 3)


def test_a_deleted_set_leaves_nothing(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """Its Jobs, their pods and its Service go with it."""
    create(cluster, space, role("work", nodes))
    running(cluster, space, 2)
    options = {"propagationPolicy": "Background"}
    assert 200 == cluster.admin.send("DELETE", path_of(space, "jobsets", "set"), options).code

    def left() -> list[str]:
        found = [
            cluster.admin.get(path_of(space, each)).body["items"] for each in ("jobs", "pods", "services")
        ]
        return [item["metadata"]["name"] for items in found for item in items]

    eventually(lambda: not left(), "everything of the set to go")
