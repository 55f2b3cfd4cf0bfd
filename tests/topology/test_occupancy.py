"""Which pods hold which GPUs, whichever source says so."""

from arena_topo.model.keys import GPU_TOPOLOGY
from tests.topology.clusters import PRODUCT, agent_value, cluster, one
from tests.topology.objects import (
    koordinator_device,
    node,
    pod,
)


def test_a_pod_whose_gpus_are_not_known_leaves_the_used_ones_unknown() -> None:
    """A wrong set of free GPUs would be worse than none."""
    known = pod("a", 2, annotations={"topology.kubernetes.io/gpu-group": "0,3"})

    assert one(cluster([node(labels=PRODUCT)], [known, pod("b", 1)])).used is None


def test_the_agent_publishes_the_gpus_of_pods_without_annotations() -> None:
    """It reads them from the kubelet."""
    gpu_node = one(
        cluster([node(annotations={GPU_TOPOLOGY: agent_value(a=[1, 2], gone=[7])})], [pod("a", 2)])
    )

    assert gpu_node.used == frozenset({1, 2})
    assert gpu_node.facts[-1].source == f"Node gpu-1 annotation {GPU_TOPOLOGY}"


def test_koordinators_status_names_the_used_gpus() -> None:
    """Pods may ask by Koordinator's own resources; the GPUs are taken anyway."""
    entry = {"name": "a", "namespace": "default", "minors": [2, 3]}
    device = koordinator_device(status={"allocations": [{"type": "gpu", "entries": [entry]}]})
    asking = pod(
        "a",
        200,
        "koordinator.sh/gpu-core",
        annotations={"scheduling.koordinator.sh/device-allocated": '{"gpu":[{"minor":2},{"minor":3}]}'},
    )
    gpu_node = one(cluster([node()], [asking], devices=[device]))

    assert (gpu_node.used, gpu_node.gpu_free, gpu_node.holders[0].gpus) == (frozenset({2, 3}), 6, 2)


def test_a_pod_that_claims_a_gpu_its_node_lacks_is_warned_of() -> None:
    """The used GPUs are not known then."""
    snapshot = cluster(
        [node(labels=PRODUCT)], [pod("a", 1, annotations={"topology.kubernetes.io/gpu-group": "9"})]
    )

    assert snapshot.nodes[0].used is None
    assert snapshot.warnings == ("Pod default/a holds GPUs [9], but its node has 8; they are not used",)
