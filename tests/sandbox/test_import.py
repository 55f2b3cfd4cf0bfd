"""An imported cluster shows in the sandbox what it showed by itself."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from arena_topo.errors import DocumentError
from arena_topo.model.cluster import Fabric, Fact, Gpu, GpuNode, Holder, ShareMode, Snapshot, Taint
from arena_topo.sandbox import layouts, lifecycle
from arena_topo.sandbox.layouts import layout_document
from arena_topo.sandbox.lifecycle import Home
from arena_topo.topology.formats.nvidia_smi import parse_matrix
from tests.cli.conftest import Invoke, invoke
from tests.paths import DATA
from tests.sandbox.served import served
from tests.sandbox.views import ageless, reimported, settled, views
from tests.topology.test_snapshot_file import rich_snapshot

__all__ = ["invoke"]
V100 = DATA / "topologies" / "v100-sxm2-8gpu-driver580.txt"
AT = "2026-11-21T08:00:00Z"


@pytest.mark.parametrize("layout", layouts.names())
def test_every_layout_survives_an_import(tmp_path: Path, layout: str) -> None:
    """The whole snapshot is the same: links, GPUs, users, NICs, sources, amounts, taints and fabric."""
    with served(tmp_path / "first", layout) as home:
        before = settled(home.kubeconfig)
    after = reimported(tmp_path, before)

    assert views(before) == views(after)
    assert before == after


def v100(name: str, source: str, **more: object) -> GpuNode:
    """Return a ready node of eight V100 whose facts come from *source*."""
    machine = parse_matrix(V100.read_text(), "x", "Tesla V100-SXM2-16GB")
    node = GpuNode(
        name,
        hostname=name,
        labels={"kubernetes.io/hostname": name},
        address="10.0.0.1",
        allocatable={"cpu": 95_500, "memory": 2**39, "pods": 110, "nvidia.com/gpu": 8},
        machine=machine.machine,
        gpus=machine.gpus,
        links=machine.links,
        nics=machine.nics,
        used=frozenset(),
        facts=tuple(Fact(subject, source) for subject in ("links", "gpus", "nics")),
    )
    return replace(node, **more)  # type: ignore[arg-type]  # fields of the node


def as_a_live_cluster_shows(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* with the taints that a cluster's own controllers put on cordoned and lost nodes."""
    lost = tuple(
        Taint("node.kubernetes.io/unreachable", "", effect) for effect in ("NoSchedule", "NoExecute")
    )
    cordoned = (Taint("node.kubernetes.io/unschedulable", "", "NoSchedule"),)
    nodes = [
        replace(
            node,
            taints=(*node.taints, *(() if node.ready else lost), *(cordoned if node.unschedulable else ())),
        )
        for node in snapshot.nodes
    ]
    return ageless(replace(snapshot, nodes=tuple(nodes), cluster="", warnings=()))


def test_a_cluster_with_something_of_everything_survives_an_import(tmp_path: Path) -> None:
    """It has ACK's measured links, jobs that hold GPUs, a cordoned and tainted node, and a lost one."""
    before = as_a_live_cluster_shows(rich_snapshot())
    after = reimported(tmp_path, before)

    assert views(before) == views(replace(after, warnings=()))


def test_what_jobs_hold_is_held_again(tmp_path: Path) -> None:
    """The same pods of the same jobs hold the same GPUs, and the same room is left."""
    holders = (
        Holder("team-a", "train-worker-0", "train", 2, (0, 3), "Running"),
        Holder("team-b", "notebook", "", 1, (5,), "Running"),
    )
    requested = {"nvidia.com/gpu": 3, "cpu": 12_500, "memory": 2**33, "pods": 9}
    users = Fact("used", "Node a annotation arena-topo.dev/gpu-topology")
    source = "Node a annotation arena-topo.dev/gpu-topology"
    node = v100("a", source, holders=holders, requested=requested, used=frozenset({0, 3, 5}))
    before = Snapshot((replace(node, facts=(*node.facts, users)),))
    imported = reimported(tmp_path, before).nodes[0]

    assert holders == imported.holders
    assert frozenset({0, 3, 5}) == imported.used
    for resource in ("nvidia.com/gpu", "cpu", "memory", "pods"):
        free = node.allocatable[resource] - node.requested[resource]
        assert free == imported.allocatable[resource] - imported.requested[resource], resource


def test_gpus_that_are_shared_or_broken_stay_so(tmp_path: Path) -> None:
    """HAMi publishes sharing and health of each GPU, and both are kept."""
    source = "Node a annotation hami.io/node-nvidia-score"
    gpus = tuple(
        Gpu(i, f"GPU-{i}", "Tesla V100-SXM2-16GB", 16384, 0, healthy=i != 7, mode=ShareMode.SHARED)
        for i in range(8)
    )
    facts = (Fact("links", source), Fact("gpus", source))
    node = v100("a", source, gpus=gpus, nics=(), facts=facts)
    imported = reimported(tmp_path, Snapshot((node,))).nodes[0]

    assert gpus == imported.gpus
    assert node.links == imported.links


def test_facts_from_a_source_that_a_sandbox_lacks_are_in_the_annotation(tmp_path: Path) -> None:
    """The facts of Koordinator's Device move into our annotation, and the hardware is the same."""
    node = v100("a", "Device a")
    imported = reimported(tmp_path, Snapshot((node,))).nodes[0]

    assert (node.links, node.gpus, node.nics) == (imported.links, imported.gpus, imported.nics)
    assert {"Node a annotation arena-topo.dev/gpu-topology"} == {fact.source for fact in imported.facts}


def test_a_lost_node_stays_lost_and_keeps_its_pods(tmp_path: Path) -> None:
    """The node is not ready and its pods stay, as in the minutes before their eviction."""
    holders = (Holder("default", "train-0", "", 8, None, "Running"),)
    requested = {"nvidia.com/gpu": 8, "pods": 1}
    before = Snapshot((v100("a", "Device a", ready=False, holders=holders, requested=requested),))
    imported = reimported(tmp_path, before).nodes[0]

    assert (False, holders) == (imported.ready, imported.holders)


@pytest.mark.parametrize(
    ("source", "tiers"),
    [
        ("Topology default", ("example.com/row", "example.com/rack")),
        ("ClusterNetworkTopology default", ("row", "rack")),
        ("HyperNodes", ("row", "rack")),
    ],
)
def test_a_declared_fabric_is_declared_again(tmp_path: Path, source: str, tiers: tuple[str, ...]) -> None:
    """The tiers keep their own names, and a node outside of all domains stays outside."""
    places = {"a": ("x", "r1"), "b": ("x", "r1"), "c": ("y", "r2"), "d": ("", "")}
    nodes = tuple(
        v100(
            name,
            "Device a",
            labels={tier: domain for tier, domain in zip(tiers, path, strict=True) if "/" in tier and domain},
        )
        for name, path in places.items()
    )
    before = Snapshot(nodes, Fabric(tiers, places, source))

    assert before.fabric == reimported(tmp_path, before).fabric


def test_the_command_writes_a_layout_that_starts(invoke: Invoke, tmp_path: Path) -> None:
    """A saved machine is written as YAML or JSON, by the name of the file."""
    yaml, json_ = tmp_path / "mine.yaml", tmp_path / "mine.json"
    for file in (yaml, json_):
        outcome = invoke("sandbox", "import", "--from", str(V100), "-o", str(file))
        assert 0 == outcome.code, outcome.err
        assert f"arena-topo sandbox start --layout {file}" in outcome.err
    printed = invoke("sandbox", "import", "--from", str(V100))

    assert yaml.read_text() == printed.out
    assert "snapshot" in json.loads(json_.read_text())
    assert layouts.load(str(yaml), AT).objects == layouts.load(str(json_), AT).objects


def test_a_layout_may_be_named_from_its_own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The server runs in another one."""
    monkeypatch.chdir(tmp_path)
    Path("mine.yaml").write_text("nodes: [{name: base, publish: []}]", "utf-8")
    home = Home(tmp_path / "home")
    lifecycle.start(home, "mine.yaml", speed=20)
    try:
        assert ["base"] == [node.name for node in settled(home.kubeconfig).nodes]
    finally:
        lifecycle.remove(home)


def test_an_imported_layout_that_was_broken_is_refused_by_place(tmp_path: Path) -> None:
    """The error names the path of the unknown key, as for a saved snapshot."""
    layout = layout_document(rich_snapshot())
    layout["snapshot"]["nodes"][0]["redy"] = False
    file = tmp_path / "mine.json"
    file.write_text(json.dumps(layout), "utf-8")
    with pytest.raises(DocumentError, match=r"snapshot\.nodes\[0\]\.redy is an unknown key"):
        layouts.load(str(file), AT)


def test_a_file_that_cannot_be_written_is_said(invoke: Invoke) -> None:
    """A path that cannot be written is one clear error."""
    outcome = invoke("sandbox", "import", "--from", str(V100), "-o", "/nowhere/x.yaml")

    assert (2, "") == (outcome.code, outcome.out)
    assert "/nowhere/x.yaml cannot be written" in outcome.err
