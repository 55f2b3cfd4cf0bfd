"""Names and texts of others reach no terminal, picture or
page raw, in whatever form they are shown; data stays data.
"""

import json
from dataclasses import replace
from xml.etree import ElementTree as ET

import pytest

from arena_topo.model.cluster import Fabric, Fact, Gpu, GpuNode, Holder, Nic, Snapshot, Taint
from arena_topo.model.reports import Finding, State
from arena_topo.model.text.yaml import load
from arena_topo.output.render import FORMS, render_topology
from arena_topo.output.reports import findings_text
from arena_topo.output.text import Span, rendered, tabulate
from arena_topo.output.top_node import node_details, top_nodes
from arena_topo.topology.files import read_snapshot
from tests.planner.fleets import V100, node

HOSTILE = "x\x1b[2J\x9b31m\x07\x00\r\n\t\u202e\u200b\u2066\ufeff\u2028<script>&\"'\U000e0041"


def hostile_node() -> GpuNode:
    """Return a node every text of which is hostile."""
    gpus = tuple(
        Gpu(index, f"{HOSTILE}{index}", HOSTILE, 16384, 0, HOSTILE, (HOSTILE, HOSTILE)) for index in range(8)
    )
    return replace(
        node("n", links=V100),
        name=HOSTILE,
        hostname=HOSTILE,
        address=HOSTILE,
        machine=HOSTILE,
        labels={f"node-role.kubernetes.io/{HOSTILE}": HOSTILE},
        taints=(Taint(HOSTILE, HOSTILE, "NoSchedule"),),
        gpus=gpus,
        nics=(Nic(HOSTILE, 0, 1.0),),
        used=frozenset({0}),
        holders=(Holder(HOSTILE, HOSTILE, HOSTILE, 1, (0,), HOSTILE), Holder(HOSTILE, "b", "", 1)),
        facts=(Fact("links", HOSTILE, assumed=True),),
    )


SNAPSHOT = Snapshot(
    nodes=(hostile_node(),),
    fabric=Fabric((HOSTILE,), {HOSTILE: (HOSTILE,)}, HOSTILE),
    cluster=HOSTILE,
    taken=HOSTILE,
    warnings=tuple([HOSTILE] * 10_000),
)


def check_seen(text: str) -> None:
    """Check that every character of *text* is seen, but for its own line breaks."""
    assert text.replace("\n", "").isprintable()


@pytest.mark.parametrize("named", [False, True], ids=["cluster", "node"])
@pytest.mark.parametrize("form", FORMS)
def test_a_topology_shows_what_others_wrote(form: str, named: bool) -> None:
    """In every form; ten thousand warnings do not flood the views."""
    text = render_topology(SNAPSHOT, [HOSTILE] if named else [], form)
    check_seen(text)
    if form in {"svg", "html", "dot", "graphml", "text"}:
        assert len(text.splitlines()) < 400
    if form in {"svg", "graphml"}:
        ET.fromstring(text)
    if form in {"svg", "html"}:
        assert "<script>" not in text


def test_documents_are_the_data_itself() -> None:
    """Read back they are what was written."""
    assert SNAPSHOT == read_snapshot(json.loads(render_topology(SNAPSHOT, (), "json")))
    assert SNAPSHOT == read_snapshot(load(render_topology(SNAPSHOT, (), "yaml"), name="yaml"))


def test_tables_show_what_others_wrote() -> None:
    """One line for each row."""
    shown = [
        top_nodes(SNAPSHOT.nodes),
        node_details(SNAPSHOT.nodes),
        tabulate([[HOSTILE, "x"], ["y", "z"]]),
        rendered([[Span(HOSTILE, "bold")]], colour=False),
    ]
    for text in shown:
        check_seen(text)
    assert 2 == len(shown[2].splitlines())


def test_a_finding_shows_what_others_wrote() -> None:
    """Names of programs come from Deployments of anybody."""
    finding = Finding(
        topic="x", state=State.OK, found=HOSTILE, evidence=HOSTILE, follows=HOSTILE, command=HOSTILE
    )
    text = findings_text([finding], [finding.found], verbose=True)
    check_seen(text)
    assert 9 == len(text.splitlines())
