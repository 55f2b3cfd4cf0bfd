"""A page that shows a cluster: the overview, and every node behind its tile. It loads nothing and runs no scripts."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape

from arena_topo.model.cluster.snapshot import Fabric, GpuNode, Snapshot
from arena_topo.model.notation.printable import printable
from arena_topo.model.notation.words import last_part
from arena_topo.output.topology.domains import Domain, cluster_domains, first_warnings
from arena_topo.output.topology.svg.cluster import cluster_picture, domain_anchor, is_map
from arena_topo.output.topology.svg.elements import STYLE, Headline
from arena_topo.output.topology.svg.node import node_picture
from arena_topo.output.topology.svg.users import planned_gpus, user_colours

MOST_DRAWN = 64
"""In larger clusters only one node of each machine type is drawn."""

_MOST_TILES = 2000
"""A page with a tile for each of more nodes than that opens slowly."""

_PAGE_STYLE = """
:root { color-scheme: light dark; }
body { margin: 0; padding: 28px; font-family: system-ui, "Segoe UI", "DejaVu Sans", sans-serif;
  background: #e9edf2; color: #1d2733; }
@media (prefers-color-scheme: dark) { body { background: #0b0f14; color: #e6ebf1; } }
main { max-width: 1320px; margin: auto; }
svg { max-width: 100%; height: auto; }
.narrow { display: none; }
.nodes { display: grid; grid-template-columns: repeat(auto-fill, minmax(min(100%, 420px), 1fr)); gap: 18px; margin-top: 18px; }
figure { margin: 0; border-radius: 14px; scroll-margin-top: 18px; }
.zoomed { display: none; margin-top: 18px; overflow-x: auto; }
.zoomed:target { display: block; }
figure:target { outline: 3px solid #3b6fd4; outline-offset: 3px; }
h2 { font-size: 17px; margin: 26px 0 0; font-weight: 650; }
li { margin: 4px 0; }
a:focus-visible { outline: 3px solid #3b6fd4; outline-offset: 2px; }
footer { margin-top: 22px; font-size: 12px; }
@media (max-width: 700px) {
  body { padding: 4px; }
  .wide { display: none; }
  .narrow { display: block; }
  .zoomed svg { max-width: none; }
}
"""


def topology_page(snapshot: Snapshot, headline: Headline | None = None) -> str:
    """Return the page of *snapshot* as one HTML document that needs no network, with the *headline* of a plan."""
    root = cluster_domains(snapshot)
    nodes = list(root.all_nodes)
    colours = user_colours(nodes)
    planned = [node for node in nodes if planned_gpus(node)][:MOST_DRAWN]
    others = [node for node in nodes if not planned_gpus(node)]
    is_whole = len(nodes) <= MOST_DRAWN
    rest = others if is_whole else _one_of_each(others)
    # From a map without names one comes to the nodes of a domain, from tiles with names to the drawing of each.
    zooms = is_map(len(nodes)) and len(nodes) <= _MOST_TILES
    linked = "domain" if zooms else "node" if is_whole else ""
    overview = "".join(
        f'<div class="{width}">'
        f"{cluster_picture(snapshot, colours, headline=headline, linked=linked, narrow=width == 'narrow', styled=False)}</div>"
        for width in ("wide", "narrow")
    )
    domains = "".join(_zoomed(domain, snapshot, colours) for domain in _finest(root)) if zooms else ""
    headings = (
        "Planned nodes",
        ("Other nodes" if planned else "Nodes") if is_whole else "One node of each machine type",
    )
    figures = "".join(
        _figures(heading, listed, colours)
        for heading, listed in zip(headings, (planned, rest), strict=True)
        if listed
    )
    name = _escaped(f"{snapshot.cluster or 'cluster'}: GPU topology")
    return (
        f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{name}</title>'
        f'<meta name="viewport" content="width=device-width"><style>{STYLE}{_PAGE_STYLE}</style></head>'
        f'<body><main id="top">{overview}{domains}{figures}{_warnings(snapshot)}{_footer(snapshot)}</main></body></html>\n'
    )


def _figures(heading: str, nodes: Sequence[GpuNode], colours: Mapping[str, int]) -> str:
    drawn = "".join(
        f'<figure id="node-{_escaped(node.name)}">{node_picture(node, colours, styled=False)}</figure>'
        for node in nodes
    )
    return f'<h2>{heading}</h2><div class="nodes">{drawn}</div>'


def _finest(domain: Domain) -> Iterator[Domain]:
    """Yield the domains that have nodes."""
    if domain.nodes:
        yield domain
    for below in domain.domains:
        yield from _finest(below)


def _zoomed(domain: Domain, snapshot: Snapshot, colours: Mapping[str, int]) -> str:
    """Return one domain with a tile for each node; it is shown while the address names it."""
    tier = last_part(domain.tier)
    name = f"{tier} {domain.name}" if domain.name else f"in no {tier}" if tier else "cluster"
    own = replace(snapshot, nodes=domain.nodes, fabric=Fabric(), cluster=name)
    drawn = cluster_picture(own, colours, styled=False, large=True)
    return (
        f'<section class="zoomed" id="{_escaped(domain_anchor(domain))}">{drawn}'
        '<p><a href="#top">the whole cluster</a></p></section>'
    )


def _one_of_each(nodes: list[GpuNode]) -> list[GpuNode]:
    # By name, so that the page does not depend on the order in which the API server lists nodes.
    examples: dict[str, GpuNode] = {}
    for node in sorted(nodes, key=lambda node: node.name):
        examples.setdefault(node.machine, node)
    return list(examples.values())


def _warnings(snapshot: Snapshot) -> str:
    if not snapshot.warnings:
        return ""
    listed = first_warnings(snapshot.warnings)
    return f"<h2>Warnings</h2><ul>{''.join(f'<li>{_escaped(warning)}</li>' for warning in listed)}</ul>"


def _footer(snapshot: Snapshot) -> str:
    words = [f"fabric: {snapshot.fabric.source or 'not published'}"]
    if snapshot.taken:
        words.append(f"taken {snapshot.taken}")
    return f"<footer>{_escaped('  ·  '.join(words))}</footer>"


def _escaped(text: str) -> str:
    return escape(printable(text))
