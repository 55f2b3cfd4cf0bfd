"""The test control plane is what it claims to be: real components, fake nodes, steerable pods."""

from collections.abc import Callable

import pytest

from tests.controlplane.binaries.pins import pinned_version
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.machines import pods
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually


def _conditions(job: Object) -> set[str]:
    return {one["type"] for one in job.get("status", {}).get("conditions", ()) if one["status"] == "True"}


def test_it_reports_the_pinned_version(kube: Kube) -> None:
    """The API server says which Kubernetes it is, as released ones do."""
    assert pinned_version("kubernetes", "k8s.io/kubernetes") == kube.request("GET", "/version")["gitVersion"]


@pytest.mark.parametrize(
    ("exit_code", "outcome"), [(0, "Succeeded"), (3, "Failed")], ids=["succeeds", "fails"]
)
def test_the_operator_runs_a_job_until_its_launcher_ends(  # fixtures come by name
    kube: Kube,
    namespace: str,
    gpu_nodes: list[str],
    create_mpijob: Callable[..., list[Object]],
    exit_code: int,
    outcome: str,
) -> None:
    """An MPIJob gets launcher and workers on the GPU nodes and ends as its launcher ends."""
    members = create_mpijob(workers=4, gpus=1)
    assert {pod["spec"]["nodeName"] for pod in members} <= set(gpu_nodes)
    launcher = pods.of_job(kube, namespace, "job", "launcher")[0]
    pods.finish(kube, namespace, launcher["metadata"]["name"], exit_code)
    ended = kube.wait_for(*pods.MPIJOB, "job", namespace, until=lambda job: {outcome} <= _conditions(job))
    assert "Running" not in _conditions(ended)


def test_a_failed_container_says_code_and_reason(
    kube: Kube, namespace: str, gpu_nodes: list[str], create_pod: Callable[..., str]
) -> None:
    """A pod that a test ends reports its exit code and reason as a kubelet does."""
    pod = pods.finish(kube, namespace, create_pod(gpu_nodes[0]), 137, "OOMKilled")
    terminated = pod["status"]["containerStatuses"][0]["state"]["terminated"]
    assert ("Failed", 137, "OOMKilled") == (
        pod["status"]["phase"],
        terminated["exitCode"],
        terminated["reason"],
    )


def test_a_pod_can_end_by_itself_after_a_delay(
    kube: Kube, namespace: str, gpu_nodes: list[str], create_pod: Callable[..., str]
) -> None:
    """An annotation in the pod's template ends it some time after it became Running."""
    name = create_pod(gpu_nodes[0], **{pods.FINISH: "succeeded", pods.FINISH_AFTER: "500ms"})
    ended = kube.wait_for("v1", "Pod", name, namespace, until=pods.ended)
    assert "Succeeded" == ended["status"]["phase"]


@pytest.mark.parametrize("reason", ["ContainerCreating", "ImagePullBackOff"])
def test_a_pod_is_held_until_it_is_released(
    kube: Kube, namespace: str, gpu_nodes: list[str], create_pod: Callable[..., str], reason: str
) -> None:
    """A held pod is Pending with its containers waiting for the given reason, then runs."""

    def waiting(pod: Object) -> str:
        states = [one["state"] for one in pod["status"].get("containerStatuses", ())]
        return states[0].get("waiting", {}).get("reason", "") if states else ""

    name = create_pod(gpu_nodes[0], **{pods.HOLD: reason})
    held = kube.wait_for("v1", "Pod", name, namespace, until=waiting)
    assert ("Pending", reason) == (held["status"]["phase"], waiting(held))
    pods.release(kube, namespace, name)
    assert kube.wait_for("v1", "Pod", name, namespace, until=pods.running)


@pytest.mark.usefixtures("gpu_nodes")
def test_the_pods_of_an_ordinary_job_complete(kube: Kube, namespace: str) -> None:
    """A Job that no MPIJob owns runs to its end by itself."""
    template = {"spec": {"restartPolicy": "Never", "containers": [{"name": "main", "image": "busybox"}]}}
    job = {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": "job"},
        "spec": {"template": template},
    }
    kube.create(job, namespace)
    done = kube.wait_for(
        "batch/v1", "Job", "job", namespace, until=lambda job: {"Complete"} <= _conditions(job)
    )
    assert 1 == done["status"]["succeeded"]


def test_what_does_not_fit_stays_unschedulable(kube: Kube, namespace: str, gpu_nodes: list[str]) -> None:
    """The real scheduler counts the GPUs of the fake nodes."""
    limits = {"limits": {"nvidia.com/gpu": 9}}
    container = {"name": "main", "image": "busybox", "resources": limits}
    pod = {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": "pod"},
        "spec": {"containers": [container]},
    }
    kube.create(pod, namespace)

    def refusal(pod: Object) -> str:
        conditions = pod["status"].get("conditions", ())
        return next((str(one.get("message", "")) for one in conditions if one["type"] == "PodScheduled"), "")

    # What it says first may be of the nodes as it knew them a moment ago.
    count = f"{len(gpu_nodes)} Insufficient nvidia.com/gpu"
    refused = kube.wait_for("v1", "Pod", "pod", namespace, until=lambda pod: count in refusal(pod))
    assert "nodeName" not in refused["spec"]


def test_a_user_without_rights_is_refused(plane: ControlPlane, namespace: str) -> None:
    """RBAC is on: a user whom no binding names gets 403, one with a role gets what the role allows."""
    rules = [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]
    api = "rbac.authorization.k8s.io"
    role = {"apiVersion": f"{api}/v1", "kind": "Role", "metadata": {"name": "reader"}, "rules": rules}
    binding = {
        "apiVersion": f"{api}/v1",
        "kind": "RoleBinding",
        "metadata": {"name": "reader"},
        "roleRef": {"apiGroup": api, "kind": "Role", "name": "reader"},
        "subjects": [{"apiGroup": api, "kind": "Group", "name": "readers"}],
    }
    plane.kube.create(role, namespace)
    plane.kube.create(binding, namespace)
    with plane.client("eve") as eve, pytest.raises(KubeError) as refused:
        eve.list("v1", "Pod", namespace)
    assert (403, "Forbidden") == (refused.value.code, refused.value.status["reason"])
    with plane.client("rita", ["readers"]) as rita:
        assert [] == eventually(lambda: _attempt(rita, namespace), "the role to take effect")[0]


def _attempt(kube: Kube, namespace: str) -> list[list[Object]]:
    """List the pods, in a list of its own; nothing while
    the API server's authorizer has not seen the role yet.
    """
    try:
        return [kube.list("v1", "Pod", namespace)]
    except KubeError as error:
        if error.code != 403:
            raise
        return []
