"""What the tool shows of a sandbox, less what the clock decides."""

from contextlib import closing
from dataclasses import replace
from pathlib import Path

from arena_topo.cluster.snapshot import take_snapshot
from arena_topo.kube import ConnectionFlags
from arena_topo.kube.session import connect
from arena_topo.model.cluster import Snapshot
from arena_topo.output.render import render_topology
from arena_topo.output.text import document
from arena_topo.output.top_node import node_details, top_nodes
from arena_topo.sandbox.layouts import layout_document
from tests.contract.cluster import eventually
from tests.sandbox.served import served


def ageless(snapshot: Snapshot) -> Snapshot:
    """Return *snapshot* without its instant and the ages of its facts."""
    nodes = [
        replace(node, facts=tuple(replace(fact, age=fact.age and 0.0) for fact in node.facts))
        for node in snapshot.nodes
    ]
    return replace(snapshot, taken="", nodes=tuple(nodes))


def settled(kubeconfig: Path) -> Snapshot:
    """Return the cluster once its nodes have reported and its pods run."""

    def settled_snapshot() -> Snapshot | None:
        seen = take_snapshot(session)
        reported = all(node.address for node in seen.nodes)
        runs = all(holder.phase == "Running" for node in seen.nodes for holder in node.holders)
        return seen if reported and runs else None

    with closing(connect(ConnectionFlags(kubeconfig=str(kubeconfig)))) as session:
        seen = eventually(settled_snapshot, "the sandbox to settle")
        assert seen is not None
        return ageless(seen)


def reimported(folder: Path, snapshot: Snapshot) -> Snapshot:
    """Return what a sandbox shows that was started with the layout of *snapshot*."""
    file = folder / "imported.yaml"
    file.write_text(document(layout_document(snapshot), "yaml"), "utf-8")
    with served(folder / "imported", str(file)) as home:
        return settled(home.kubeconfig)


def views(snapshot: Snapshot) -> dict[str, str]:
    """Return what `topology` and `top node` print of *snapshot*, in their forms."""
    names = [node.name for node in snapshot.nodes]
    return {
        "topology": render_topology(snapshot),
        "topology of every node": render_topology(snapshot, names),
        "top node": top_nodes(snapshot.nodes),
        "top node -d": node_details(snapshot.nodes),
    }
