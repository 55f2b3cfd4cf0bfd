"""What an agent's token can do on a real API server, which knows on which node the agent's pod runs."""

import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from arena_topo.model.keys import GPU_TOPOLOGY
from tests.controlplane.kube import Kube, KubeError
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import PROGRAM, Arena
from tests.e2e.rights import token, with_token
from tests.paths import DATA

ACCOUNT = "arena-topo-agent"
MATRIX = str(DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt")


@pytest.fixture
def agents(plane: ControlPlane, namespace: str) -> Iterator[str]:
    """Install the agent in a namespace, and return it; the policy acts."""
    admin = Arena(plane.admin_kubeconfig)
    outcome = admin("cluster", "setup", "--apply", "--agent-image=i", f"--agent-namespace={namespace}")
    assert 0 == outcome.code, outcome.err
    yield namespace
    assert 0 == admin("cluster", "remove", "--apply").code


def agent_pod(kube: Kube, namespace: str, node: str) -> dict[str, Any]:
    """Return a pod of the agent's account on *node*."""
    spec = {"serviceAccountName": ACCOUNT, "nodeName": node, "containers": [{"name": "agent", "image": "i"}]}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": f"agent-{node}"}, "spec": spec}
    return kube.create(pod, namespace)


def test_an_agent_changes_one_annotation_of_its_own_node(
    plane: ControlPlane, kube: Kube, agents: str, gpu_nodes: list[str], tmp_path: Path
) -> None:
    """Not another node's, nothing else, and with no token that tells no node."""
    own, other = gpu_nodes
    bound = with_token(plane, token(kube, agents, ACCOUNT, agent_pod(kube, agents, own)), tmp_path / "bound")
    unbound = with_token(plane, token(kube, agents, ACCOUNT), tmp_path / "unbound")
    unwritten = {"metadata": {"annotations": {GPU_TOPOLOGY: None}}}
    run = ("agent", "run", "--once", f"--from={MATRIX}")

    def refused() -> bool:
        # Until the policy acts the agent may write there, and what is written already is not written again.
        kube.patch("v1", "Node", other, unwritten)
        outcome = bound(*run, f"--node={other}")
        return outcome.code == 1 and "the node that it runs on" in outcome.err

    eventually(refused, "the policy to act")
    assert GPU_TOPOLOGY not in kube.get("v1", "Node", other)["metadata"].get("annotations", {})
    outcome = bound(*run, f"--node={own}")
    assert 0 == outcome.code, outcome.err
    assert GPU_TOPOLOGY in kube.get("v1", "Node", own)["metadata"]["annotations"]
    # An agent writes what has changed alone.
    kube.patch("v1", "Node", own, unwritten)
    outcome = unbound(*run, f"--node={own}")
    assert (1, True) == (outcome.code, "the node that it runs on" in outcome.err), outcome.err


@pytest.mark.parametrize(
    "change",
    [
        ("label", "a=b"),
        ("annotate", "a=b"),
        ("annotate", "--overwrite", "kwok.x-k8s.io/node=other"),
        ("annotate", "kwok.x-k8s.io/node-"),
        ("taint", "a=b:NoSchedule"),
    ],
    ids=" ".join,
)
def test_nothing_else_of_a_node_is_the_agents(
    plane: ControlPlane,
    kube: Kube,
    agents: str,
    gpu_nodes: list[str],
    tmp_path: Path,
    change: tuple[str, ...],
) -> None:
    """Whatever a patch of nodes could do otherwise."""
    own = gpu_nodes[0]
    kube.patch("v1", "Node", own, {"metadata": {"annotations": {"kwok.x-k8s.io/node": "fake"}}})
    bound = with_token(plane, token(kube, agents, ACCOUNT, agent_pod(kube, agents, own)), tmp_path / "bound")
    verb, *rest = change
    command = [str(PROGRAM.parent / "kubectl"), f"--kubeconfig={bound.kubeconfig}", verb, "node", own, *rest]

    def said() -> str:
        before = kube.get("v1", "Node", own)
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        # Until the policy acts the change is made, and is undone for the next try.
        if done.returncode == 0:
            kube.patch("v1", "Node", own, {"metadata": {"labels": {"a": None}, "annotations": {"a": None, "kwok.x-k8s.io/node": "fake"}}, "spec": {"taints": before["spec"].get("taints")}})  # fmt: skip
        return done.stderr if done.returncode else ""

    assert "and nothing else" in eventually(said, "the policy to act")


def test_others_change_nodes_as_before(kube: Kube, agents: str, gpu_nodes: list[str]) -> None:
    """The policy looks at agents alone."""
    del agents
    try:
        kube.patch("v1", "Node", gpu_nodes[0], {"metadata": {"labels": {"mine": "yes"}}})
    except KubeError as error:
        pytest.fail(str(error))
    assert "yes" == kube.get("v1", "Node", gpu_nodes[0])["metadata"]["labels"]["mine"]
