"""Volcano's HyperNodes: a tree of network domains whose leaves select nodes by name, pattern or label.

A lower tier is closer. For example, ``leaf-1`` of tier 1 selects the nodes a and b, ``leaf-2`` selects c, and
``spine`` of tier 2 selects the HyperNodes that match ``^leaf-``: then node a is in (spine, leaf-1), node c in
(spine, leaf-2). Source: volcano-sh/apis, topology.volcano.sh/v1alpha1.
"""

import re
import warnings
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass

from arena_topo.model.cluster.scheduling import Requirement
from arena_topo.model.cluster.snapshot import MOST_TIERS, Fabric
from arena_topo.model.notation.bounded_json import shown
from arena_topo.topology.raw_objects import (
    Malformed,
    RawObject,
    items,
    mapping,
    name,
    optional_string,
    read_each,
    skipped,
    string,
    string_mapping,
    whole_number,
)

Labels = Mapping[str, str]

_OPERATORS = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})
_MOST_PATTERN = 256
_MOST_REPEATS = 3
_REPEATED_GROUP = re.compile(r"\)[*+{]|\)\?[*+{]")
_REPEAT = re.compile(r"(?<!\\)[*+{]")
_BACK_REFERENCE = re.compile(r"\\[1-9]|\(\?(?!:)")


@dataclass(frozen=True, slots=True)
class _HyperNode:
    """One domain: its tier, and its members among nodes or among other HyperNodes."""

    name: str
    tier: int
    tier_name: str
    nodes: tuple[RawObject, ...]
    children: tuple[RawObject, ...]


def read_hyper_nodes(
    nodes: Mapping[str, Labels], objects: Iterable[RawObject], problems: list[str]
) -> Fabric:
    """Return the fabric that HyperNodes make of *nodes*, which are given with their labels; empty without any.

    What cannot be read is added to *problems*.
    """
    hyper_nodes = list(read_each(objects, _hyper_node, problems))
    if not hyper_nodes:
        return Fabric()
    order = sorted({hyper_node.tier for hyper_node in hyper_nodes}, reverse=True)
    if len(order) > MOST_TIERS:
        problems.append(f"HyperNodes have {len(order)} tiers, more than {MOST_TIERS}; they are not used")
        return Fabric()
    # Where HyperNodes of a tier disagree on its name, the first one counts.
    names = {
        hyper_node.tier: hyper_node.tier_name or f"tier-{hyper_node.tier}"
        for hyper_node in reversed(hyper_nodes)
    }
    paths = {node: [""] * len(order) for node in nodes}
    members: dict[str, set[str]] = {}
    # From the closest tier upwards, so that the members of a HyperNode's children are known before its own.
    for hyper_node in sorted(hyper_nodes, key=lambda hyper_node: (hyper_node.tier, hyper_node.name)):
        try:
            members[hyper_node.name] = _members(hyper_node, nodes, members)
        except Malformed as error:
            problems.append(skipped(f"HyperNode {hyper_node.name}", error))
            continue
        level = order.index(hyper_node.tier)
        shared = []
        for node in sorted(members[hyper_node.name]):
            if paths[node][level]:
                shared.append(node)
            else:
                paths[node][level] = hyper_node.name
        if shared:
            more = f" and {len(shared) - 1} more" if len(shared) > 1 else ""
            problems.append(
                f"node {shared[0]}{more} is in HyperNodes {paths[shared[0]][level]} and {hyper_node.name} "
                f"of tier {hyper_node.tier}; the former counts"
            )
    return Fabric(
        tuple(names[tier] for tier in order),
        {node: tuple(path) for node, path in paths.items()},
        "HyperNodes",
    )


def _hyper_node(raw: RawObject) -> Iterator[_HyperNode]:
    spec = mapping(raw, "spec")
    members: dict[str, list[RawObject]] = {"Node": [], "HyperNode": []}
    for member in items(spec, "members"):
        kind = string(member, "type")
        if kind not in members:
            raise Malformed(f"spec.members type is {kind!r}, expected Node or HyperNode")
        members[kind].append(mapping(member, "selector"))
    tier_name = optional_string(spec, "tierName")
    yield _HyperNode(
        name(raw), whole_number(spec, "tier"), tier_name, tuple(members["Node"]), tuple(members["HyperNode"])
    )


def _members(hyper_node: _HyperNode, nodes: Mapping[str, Labels], below: Mapping[str, set[str]]) -> set[str]:
    """Return the nodes in a HyperNode; *below* has those in the HyperNodes of lower tiers."""
    members: set[str] = set()
    for selector in hyper_node.nodes:
        members |= _selected(selector, nodes)
    for selector in hyper_node.children:
        for child in _selected(selector, {child: {} for child in below}):
            members |= below[child]
    return members


def _selected(selector: RawObject, candidates: Mapping[str, Labels]) -> set[str]:
    if "exactMatch" in selector:
        exact = string(mapping(selector, "exactMatch"), "name")
        # A HyperNode may go on naming a node that was removed, or one that has no GPUs.
        return {exact} & set(candidates)
    if "regexMatch" in selector:
        text = string(mapping(selector, "regexMatch"), "pattern")
        pattern = _pattern(text)
        # Not fullmatch: Go's MatchString, which Volcano uses, finds a pattern anywhere in a name.
        return {name for name in candidates if pattern.search(name)}
    match = mapping(selector, "labelMatch")
    required = string_mapping(match, "matchLabels")
    requirements = [_requirement(expression) for expression in items(match, "matchExpressions")]
    if not required and not requirements:
        raise Malformed("spec.members has a selector that selects nothing")
    return {
        name
        for name, labels in candidates.items()
        if required.items() <= labels.items()
        and all(requirement.holds(labels) for requirement in requirements)
    }


def _requirement(raw: RawObject) -> Requirement:
    """Return an expression of a label selector: ``{key: rack, operator: In, values: [r1, r2]}``; raises ``Malformed``."""
    operator, values = string(raw, "operator"), raw.get("values") or []
    if operator not in _OPERATORS:
        expected = ", ".join(sorted(_OPERATORS))
        raise Malformed(f"spec.members operator is {shown(operator)}, expected one of {expected}")
    if not isinstance(values, list) or not all(isinstance(value, str) for value in values):
        raise Malformed(f"spec.members values is {shown(values)}, expected a list of strings")
    return Requirement(string(raw, "key"), operator, tuple(values))


def _pattern(text: str) -> re.Pattern[str]:
    """Return the pattern *text* of node names; raises ``Malformed``.

    Go matches every pattern in linear time, and Python some of them in exponential time: ``(a+)+$`` on thirty letters
    takes minutes. Such patterns have a repeated group, or many repeats, and names of nodes need neither.
    """
    is_slow = (
        len(text) > _MOST_PATTERN
        or _REPEATED_GROUP.search(text)
        or _BACK_REFERENCE.search(text)
        or len(_REPEAT.findall(text)) > _MOST_REPEATS
    )
    if is_slow:
        raise Malformed(
            f"spec.members regexMatch {shown(text)} has a repeated group, or more than {_MOST_REPEATS} repeats"
        )
    try:
        with warnings.catch_warnings(action="ignore"):  # Go reads what Python only warns of
            return re.compile(text)
    except (re.error, OverflowError, RecursionError) as error:
        raise Malformed(f"spec.members regexMatch {shown(text)}: {error}") from error
