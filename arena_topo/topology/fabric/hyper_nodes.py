"""Volcano's HyperNodes: a tree of network domains whose leaves select nodes by name, pattern or label.

Source: topology.volcano.sh/v1alpha1; a lower tier is closer.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from arena_topo.model.cluster.snapshot import Fabric
from arena_topo.topology.raw_objects import (
    Malformed,
    RawObject,
    items,
    mapping,
    name,
    optional_string,
    read_each,
    string,
    whole_number,
)

Labels = Mapping[str, str]


@dataclass(frozen=True, slots=True)
class _HyperNode:
    """One domain: its tier, and its members among nodes or among other HyperNodes."""

    name: str
    tier: int
    tier_name: str
    nodes: tuple[RawObject, ...]
    children: tuple[RawObject, ...]


def read_hyper_nodes(nodes: Mapping[str, Labels], objects: Iterable[RawObject], told: list[str]) -> Fabric:
    """Return the fabric that HyperNodes make of *nodes*, which are given with their labels; empty without any.

    What cannot be read is added to *told*.
    """
    found = list(read_each(objects, _hyper_node, told))
    if not found:
        return Fabric()
    order = sorted({each.tier for each in found}, reverse=True)
    names = {each.tier: each.tier_name or f"tier-{each.tier}" for each in reversed(found)}
    paths = {node: [""] * len(order) for node in nodes}
    inside: dict[str, set[str]] = {}
    for each in sorted(found, key=lambda each: (each.tier, each.name)):
        try:
            members = _members(each, nodes, inside)
        except Malformed as error:
            told.append(f"HyperNode {each.name}: {error}; skipped")
            continue
        inside[each.name] = members
        for node in sorted(members):
            place = paths[node]
            if place[order.index(each.tier)]:
                told.append(
                    f"node {node} is in HyperNodes {place[order.index(each.tier)]} and {each.name} "
                    f"of tier {each.tier}; the former counts"
                )
            else:
                place[order.index(each.tier)] = each.name
    return Fabric(
        tuple(names[tier] for tier in order),
        {node: tuple(path) for node, path in paths.items()},
        "HyperNodes",
    )


def _hyper_node(raw: RawObject) -> Iterator[_HyperNode]:
    spec = mapping(raw, "spec")
    members: dict[str, list[RawObject]] = {"Node": [], "HyperNode": []}
    for each in items(spec, "members"):
        kind = string(each, "type")
        if kind not in members:
            raise Malformed(f"spec.members type is {kind!r}, expected Node or HyperNode")
        members[kind].append(mapping(each, "selector"))
    tier_name = optional_string(spec, "tierName")
    yield _HyperNode(
        name(raw), whole_number(spec, "tier"), tier_name, tuple(members["Node"]), tuple(members["HyperNode"])
    )


def _members(each: _HyperNode, nodes: Mapping[str, Labels], inside: Mapping[str, set[str]]) -> set[str]:
    """Return the nodes below a HyperNode; *inside* has those of the lower tiers."""
    found: set[str] = set()
    for selector in each.nodes:
        found |= _selected(selector, nodes)
    for selector in each.children:
        for child in _selected(selector, {child: {} for child in inside}):
            found |= inside[child]
    return found


def _selected(selector: RawObject, candidates: Mapping[str, Labels]) -> set[str]:
    if "exactMatch" in selector:
        exact = string(mapping(selector, "exactMatch"), "name")
        return {exact} & set(candidates)
    if "regexMatch" in selector:
        written = string(mapping(selector, "regexMatch"), "pattern")
        try:
            with warnings.catch_warnings(action="ignore"):  # Go reads what Python only warns of
                pattern = re.compile(written)
        except re.error as error:
            raise Malformed(f"spec.members regexMatch {written!r}: {error}") from error
        return {each for each in candidates if pattern.search(each)}
    wanted = mapping(mapping(selector, "labelMatch"), "matchLabels")
    if not wanted:
        raise Malformed("spec.members has a selector that selects nothing")
    return {each for each, labels in candidates.items() if wanted.items() <= labels.items()}
