"""The cluster as a tree of fabric domains with their GPUs counted, as every view shows it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from arena_topo.errors import UsageError
from arena_topo.model.cluster.snapshot import Fabric, GpuNode, Snapshot
from arena_topo.model.notation.words import natural_sort_key

_MOST_DRAWN = 256
"""GPUs that are drawn of a node whose GPUs are only counted; no node has more, and garbled counts have no end."""

_MOST_MARKS = 64
"""More marks than any node has GPUs: a count beyond it is garbled, and would flood the view."""


_MOST_WARNINGS = 20


@dataclass(frozen=True, slots=True)
class Domain:
    """A domain of a tier with the domains below it, or at the finest tier the nodes in it.

    ``tier`` is the tier's name, empty for the cluster itself; ``name`` is empty for nodes outside of every domain.
    """

    tier: str
    name: str
    domains: tuple["Domain", ...]
    nodes: tuple[GpuNode, ...]

    @property
    def all_nodes(self) -> Iterator[GpuNode]:
        """Every node in this domain."""
        yield from self.nodes
        for domain in self.domains:
            yield from domain.all_nodes

    @property
    def total(self) -> int:
        """The number of GPUs that the nodes can give when empty."""
        return sum(node.gpu_total for node in self.all_nodes)

    @property
    def free(self) -> int:
        """The number of GPUs that no pod has requested yet, on nodes that take pods."""
        return sum(available(node) for node in self.all_nodes)


def available(node: GpuNode) -> int:
    """Return the number of free GPUs of *node*; none where it takes no pods now."""
    return node.gpu_free if node.ready and not node.unschedulable else 0


def gpu_count(node: GpuNode) -> int:
    """Return how many GPUs of *node* a view draws: those of its links, else those listed, else those counted."""
    return node.links.size if node.links is not None else len(node.gpus) or min(node.gpu_total, _MOST_DRAWN)


def cluster_domains(snapshot: Snapshot) -> Domain:
    """Return the tree over all nodes with GPUs."""
    nodes = [node for node in snapshot.nodes if node.gpu_total or node.gpus]
    return _domain("", snapshot.cluster or "cluster", nodes, snapshot.fabric, 0)


def select_nodes(snapshot: Snapshot, names: Sequence[str]) -> Snapshot:
    """Return *snapshot* with only the nodes *names*; all of them where no name is given.

    Raises ``UsageError`` for a name that no node has.
    """
    by_name = {node.name: node for node in snapshot.nodes}
    for name in names:
        if name not in by_name:
            raise UsageError(f"there is no node {name}", hint="`arena-topo topology` lists the nodes")
    # A name that is given twice is one node.
    return (
        replace(snapshot, nodes=tuple(by_name[name] for name in dict.fromkeys(names))) if names else snapshot
    )


def _domain(tier: str, name: str, nodes: Sequence[GpuNode], fabric: Fabric, level: int) -> Domain:
    if level == len(fabric.tiers):
        return Domain(tier, name, (), tuple(sorted(nodes, key=lambda node: natural_sort_key(node.name))))
    members: dict[str, list[GpuNode]] = {}
    for node in nodes:
        # A fabric need not know every node: the others are in a domain without a name.
        path = fabric.paths.get(node.name, ())
        members.setdefault(path[level] if path else "", []).append(node)
    below = tuple(
        _domain(fabric.tiers[level], domain, members[domain], fabric, level + 1)
        for domain in sorted(members, key=natural_sort_key)
    )
    return Domain(tier, name, below, ())


def first_warnings(warnings: Sequence[str]) -> list[str]:
    """Return as many of *warnings* as a view shows, and how many more there are; ten thousand would hide the view."""
    more = len(warnings) - _MOST_WARNINGS
    return [*warnings[:_MOST_WARNINGS], *([f"and {more} more; -o json lists them all"] if more > 0 else [])]


def state_marks(node: GpuNode) -> list[str]:
    """Return a word for each GPU of *node*: ``used``, ``free`` or ``bad``; without known indices the used ones first."""
    if node.gpus and node.used is not None:
        return [
            "bad" if not gpu.healthy else "used" if gpu.index in node.used else "free" for gpu in node.gpus
        ]
    # Only counts are known, so marks cannot stand for certain GPUs.
    used = node.gpu_total - node.gpu_free
    counted = (("used", used), ("free", node.gpu_free), ("bad", node.unhealthy))
    return [word for word, count in counted for _ in range(min(count, _MOST_MARKS))]


def remarks(node: GpuNode) -> list[str]:
    """Return short remarks on what keeps pods off *node*, and on what of it is assumed or not known."""
    words = []
    if not node.ready:
        words.append("not ready")
    if node.unschedulable:
        words.append("cordoned")
    words += [f"taint {taint.key}" for taint in node.taints if taint.effect in ("NoSchedule", "NoExecute")]
    if node.links is None:
        words.append("links not known")
    elif any(fact.assumed for fact in node.facts if fact.subject == "links"):
        words.append("links assumed")
    # The other policies keep no pod off a node.
    if node.zones and node.zones.policy and node.zones.policy.refuses:
        words.append(f"{node.zones.policy.value} for each {node.zones.scope.value}")
    if node.gpus and node.used is None:
        words.append("used GPUs not known")
    return words
