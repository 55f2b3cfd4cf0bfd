"""A cluster is read in few calls, page by page, and what cannot be read is named."""

from typing import Any

import pytest

from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.errors import DocumentError, Forbidden
from tests.fakes import Answer, Call, refusal, session
from tests.objects import ready_node

NODE = ready_node("n1", {"cpu": "8", "memory": "64Gi", "pods": "110", "nvidia.com/gpu": "8"})


def pod_on_n1(name: str, gpus: Any = "1", **spec: Any) -> dict[str, Any]:
    """Return a pod on n1."""
    container = {"name": "c", "resources": {"requests": {"cpu": "500m", "nvidia.com/gpu": gpus}}}
    labels = {"training.kubeflow.org/job-name": "job"}
    return {
        "metadata": {"name": name, "namespace": "ml", "labels": labels, "annotations": {"x": "y"}},
        "spec": {"nodeName": "n1", "containers": [container], **spec},
        "status": {"phase": "Running"},
    }


class Cluster:
    """Serves nodes and pods in pages of one; *groups* are the served group versions."""

    def __init__(
        self, pods: list[dict[str, Any]], groups: tuple[str, ...] = (), /, **special: Answer
    ) -> None:
        self.pods, self.groups, self.special = pods, groups, special

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        plural = call.path.rpartition("/")[2]
        if answer := self.special.get(plural):
            return answer
        if plural == "apis":
            names = [{"groupVersion": group} for group in self.groups]
            return Answer(body={"groups": [{"name": "g", "versions": names}]})
        if plural == "pods":
            at = int(call.query.get("continue", "0"))
            more = str(at + 1) if at + 1 < len(self.pods) else ""
            return Answer(body={"items": self.pods[at : at + 1], "metadata": {"continue": more}})
        return Answer(body={"items": [NODE] if plural == "nodes" else []})


def test_pods_are_read_page_by_page_and_counted_on_their_node() -> None:
    """Requests add up as the scheduler adds them."""
    opened, transport = session(
        Cluster([pod_on_n1("a"), pod_on_n1("b", "2"), pod_on_n1("c", "1", initContainers=[])])
    )
    node = take_snapshot(opened).nodes[0]

    assert (4, 1500, 3) == tuple(node.requested[name] for name in ("nvidia.com/gpu", "cpu", "pods"))
    assert ["job"] == sorted({holder.job for holder in node.holders})
    pods = [call for call in transport.calls if call.path.endswith("/pods")]
    assert [None, "1", "2"] == [call.query.get("continue") for call in pods]
    assert "status.phase!=Succeeded,status.phase!=Failed" == pods[0].query["fieldSelector"]


def test_only_what_is_served_is_asked_for() -> None:
    """In the newest version that is served."""
    groups = ("resource.k8s.io/v1beta1", "resource.k8s.io/v1", "kueue.x-k8s.io/v1beta1")
    opened, transport = session(Cluster([], groups))
    take_snapshot(opened)
    paths = {call.path for call in transport.calls}

    assert {
        "/apis", "/api/v1/nodes", "/api/v1/pods", "/apis/resource.k8s.io/v1/resourceslices",
        "/apis/resource.k8s.io/v1/resourceclaims", "/apis/kueue.x-k8s.io/v1beta1/topologies",
    } == paths  # fmt: skip


def test_what_the_user_may_not_read_is_named() -> None:
    """The rest is shown anyway."""
    no = refusal(403, "Forbidden", "no")
    opened, _ = session(Cluster([pod_on_n1("a")], ("resource.k8s.io/v1",), pods=no, resourceslices=no))
    snapshot = take_snapshot(opened)

    assert 8 == snapshot.nodes[0].gpu_free
    assert ["pods", "resourceslices"] == sorted(
        w.split()[3].rstrip(":") for w in snapshot.warnings if w.startswith("you cannot")
    )


def test_who_may_not_list_nodes_gets_the_servers_refusal() -> None:
    """There is nothing to show."""
    opened, _ = session(Cluster([], nodes=refusal(403, "Forbidden", "cannot list nodes")))
    with pytest.raises(Forbidden, match="cannot list nodes"):
        take_snapshot(opened)


def test_a_pod_that_cannot_be_read_is_named_and_left_out() -> None:
    """The others count."""
    opened, _ = session(Cluster([pod_on_n1("bad", "many"), pod_on_n1("good")]))
    snapshot = take_snapshot(opened)

    assert 1 == snapshot.nodes[0].requested["nvidia.com/gpu"]
    assert ["Pod ml/bad: 'many' is not a quantity; skipped"] == [w for w in snapshot.warnings if "Pod" in w]


def test_the_warning_about_a_pod_is_bounded_whatever_its_names() -> None:
    """A server that lets a name be of any length fills no terminal with it."""
    bad = pod_on_n1("n" * 5000, gpus="many")
    bad["metadata"]["namespace"] = "1," * 5000
    opened, _ = session(Cluster([bad]))
    snapshot = take_snapshot(opened)
    warning = next(warning for warning in snapshot.warnings if warning.startswith("Pod 1,1,"))
    assert warning.endswith("...: 'many' is not a quantity; skipped")
    assert 1000 > len(warning)


def test_an_answer_that_is_no_list_is_an_error() -> None:
    """Named by its path."""
    opened, _ = session(Cluster([], nodes=Answer(body={"items": 1})))
    with pytest.raises(DocumentError, match="GET /api/v1/nodes"):
        take_snapshot(opened)
