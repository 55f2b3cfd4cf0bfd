"""On which NUMA nodes the workers of a plan are, as a table and in one sentence."""

from collections.abc import Iterator, Sequence

from arena_topo.model.notation.words import plural, runs
from arena_topo.model.plan.placement import NodeAlignment, NodeShare, WorkerPlace
from arena_topo.output.lines import Line, Span, table_lines

_MOST_ROWS = 40
_MOST_TOLD = 4
"""Places of workers that are named one by one in a sentence."""
_HEADER = ("NODE", "WORKERS", "NUMA", "CPUS", "SWITCHES", "NICS", "HELD")


def alignment_lines(shares: Sequence[NodeShare]) -> Iterator[Line]:
    """Yield the table of the NUMA nodes, switches and NICs of each worker, and what holds it there; nothing where unknown."""
    rows = list(_rows(shares))
    if not rows:
        return
    # Columns in which no node has anything would only push the others apart.
    filled = [column for column in range(len(_HEADER)) if any(row[column] for row in rows)]
    shown = [tuple(row[column] or "-" for column in filled) for row in rows[:_MOST_ROWS]]
    yield from table_lines([tuple(_HEADER[column] for column in filled), *shown])
    if len(rows) > _MOST_ROWS:
        more = f"and {plural(len(rows) - _MOST_ROWS, 'more row')}; -o json lists all {len(rows)}"
        yield [Span(more, "dim")]
    yield from ([Span(text, "dim")] for text in _legend(rows, shares))


def alignment_text(shares: Sequence[NodeShare]) -> str:
    """Return on which NUMA nodes the workers are and whether that is enforced, in one sentence; empty where unknown.

    Of a gang on one node it says so of each worker.
    """
    known = [share.alignment for share in shares if share.alignment]
    if not known:
        return ""
    places = _by_place(shares[0]) if len(shares) == 1 else {}
    if 0 < len(places) <= _MOST_TOLD:
        where = "; ".join(_place_text(place, workers) for place, workers in places.items())
    else:
        counts = {len(place.numa) for alignment in known for place in alignment.workers}
        who = "each worker on" if len(counts) == 1 else "workers on up to"
        where = f"{who} {_nodes_text(max(counts))}"
    return f"{where}; {_held(known)}"


def _nodes_text(count: int) -> str:
    return "one NUMA node" if count == 1 else f"{count} NUMA nodes"


def _place_text(place: WorkerPlace, workers: Sequence[int]) -> str:
    who = f"worker {runs(workers)}" if len(workers) == 1 else f"workers {runs(workers)}"
    noun = "NUMA node" if len(place.numa) == 1 else "NUMA nodes"
    near = ", ".join((*place.switches, *place.nics))
    return f"{who} on {noun} {runs(place.numa)}" + (f" ({near})" if near else "")


def _held(known: Sequence[NodeAlignment]) -> str:
    enforced = sum(alignment.enforced for alignment in known)
    if enforced == len(known):
        return "enforced by the kubelet"
    return "predicted" if not enforced else f"enforced on {enforced} of {plural(len(known), 'node')}"


def _rows(shares: Sequence[NodeShare]) -> Iterator[tuple[str, ...]]:
    for share in shares:
        if share.alignment is None:
            continue
        held = "enforced" if share.alignment.enforced else "predicted"
        for place, workers in _by_place(share).items():
            yield (
                share.node,
                runs(workers),
                runs(place.numa),
                runs(place.cpus),
                ",".join(place.switches),
                ",".join(place.nics),
                held,
            )


def _by_place(share: NodeShare) -> dict[WorkerPlace, list[int]]:
    by_place: dict[WorkerPlace, list[int]] = {}
    if share.alignment:
        for worker, place in zip(share.workers, share.alignment.workers, strict=True):
            by_place.setdefault(place, []).append(worker)
    return by_place


def _legend(rows: Sequence[Sequence[str]], shares: Sequence[NodeShare]) -> Iterator[str]:
    cpus = (
        ", CPUS: those of its cores, if the kubelet's CPU manager is static"
        if any(row[3] for row in rows)
        else ""
    )
    yield f"NUMA: the NUMA nodes of a worker's GPUs{cpus}"
    policies = {
        share.alignment.policy.value
        for share in shares
        if share.alignment and share.alignment.enforced and share.alignment.policy
    }
    if policies:
        yield (
            f"enforced: by the kubelet ({', '.join(sorted(policies))}), which fails a worker that needs more NUMA nodes; "
            "which it takes is predicted"
        )
