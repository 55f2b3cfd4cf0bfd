"""What a Node object says of what the node offers."""

import pytest

from arena_topo.errors import DocumentError
from arena_topo.topology.objects import node_facts
from tests.topology.objects import node


def test_a_node_tells_what_it_offers() -> None:
    """Amounts, taints, readiness and address; of the annotations only those that a reader uses."""
    raw = node(annotations={"hami.io/node-nvidia-register": "[]"})
    raw["spec"] |= {"unschedulable": True, "taints": [{"key": "gpu", "effect": "NoSchedule"}]}
    facts = node_facts(raw)

    assert facts.name == facts.hostname == "gpu-1"
    assert facts.allocatable["cpu"] == 95500
    assert facts.capacity["nvidia.com/gpu"] == 8
    assert (facts.ready, facts.unschedulable, facts.address) == (True, True, "192.168.7.186")
    assert [("gpu", "", "NoSchedule")] == [(taint.key, taint.value, taint.effect) for taint in facts.taints]
    assert {"hami.io/node-nvidia-register": "[]"} == facts.annotations


def test_a_node_without_a_ready_condition_is_not_ready() -> None:
    """What the kubelet never reported is not assumed."""
    raw = node()
    raw["status"]["conditions"] = []

    assert not node_facts(raw).ready


@pytest.mark.parametrize("amount", ["much", "1..5"])
def test_a_malformed_quantity_is_refused(amount: str) -> None:
    """The key is named."""
    broken = node()
    broken["status"]["allocatable"]["cpu"] = amount

    with pytest.raises(DocumentError, match="allocatable: "):
        node_facts(broken)
