"""The plan of a gang of roles, or why there is none, as text and as documents."""

from collections.abc import Iterator, Sequence

from arena_topo.model.notation.words import last_part, plural, runs, written_rate
from arena_topo.model.plan.roles import GangInfeasible, GangPlacement, GangVerdict, RolePlacement, StepTraffic
from arena_topo.output.lines import Line, Span, rendered, table_lines
from arena_topo.output.plan.render import step_lines

_MOST_ROWS = 40
_MOST_NODES = 8
"""Nodes of a role that are named on one line."""


def render_gang(name: str, verdict: GangVerdict, form: str = "text", *, colour: bool = False) -> str:
    """Return the plan of the gang *name* as ``text``, ``json`` or ``yaml``."""
    if form in ("json", "yaml"):
        from arena_topo.output.documents import document, plain
        from arena_topo.topology.snapshot_file import API_VERSION

        fits = isinstance(verdict, GangPlacement)
        head = {"apiVersion": API_VERSION, "kind": "GangPlan", "name": name, "fits": fits}
        return document({**head, **plain(verdict)}, form)
    lines = _refusal_lines(name, verdict) if isinstance(verdict, GangInfeasible) else _lines(name, verdict)
    return rendered(lines, colour=colour)


def placed_lines(name: str, verdict: GangPlacement) -> Iterator[Line]:
    """Yield the gang's roles and where they go, a line for each, and what its parameter servers cost."""
    yield _summary_line(name, verdict)
    for role in verdict.roles:
        nodes = [share.node for share in role.shares]
        shown = ", ".join(nodes[:_MOST_NODES]) + (
            f" and {len(nodes) - _MOST_NODES} more" * (len(nodes) > _MOST_NODES)
        )
        yield [Span(f"  {role.role}: {shown}", "")]
    if verdict.traffic and verdict.traffic.servers:
        yield [Span(f"  - {_faster(verdict.traffic)}", "")]


def _summary_line(name: str, verdict: GangPlacement) -> Line:
    pods = ", ".join(f"{len(role.slots)} {role.role}" for role in verdict.roles)
    return [Span(name, "bold"), Span(f"  {pods}; {_where(verdict)}", "")]


def _lines(name: str, verdict: GangPlacement) -> Iterator[Line]:
    yield _summary_line(name, verdict)
    yield []
    rows = list(_rows(verdict))
    yield from table_lines([("ROLE", "NODE", "PODS", "GPUS", "INSIDE", "DOMAIN"), *rows[:_MOST_ROWS]])
    if len(rows) > _MOST_ROWS:
        yield [
            Span(f"and {plural(len(rows) - _MOST_ROWS, 'more row')}; -o json lists all {len(rows)}", "dim")
        ]
    if any(share.busbw is not None for role in verdict.roles for share in role.shares):
        yield [Span("INSIDE: busbw in GB/s of the links between the role's GPUs on the node", "dim")]
    if verdict.traffic:
        yield []
        yield from _traffic_lines(verdict.traffic)
    yield []
    yield [Span("Why", "bold")]
    yield from _why_lines(verdict)
    yield from ([Span(f"note: {note}", "yellow")] for note in verdict.notes)


def _where(verdict: GangPlacement) -> str:
    match verdict.level:
        case "node":
            return f"node {verdict.domain}"
        case "cluster":
            return "across the cluster"
        case level:
            return f"{last_part(level)} {verdict.domain}"


def _rows(verdict: GangPlacement) -> Iterator[Sequence[str]]:
    for role in verdict.roles:
        for share in role.shares:
            yield (
                role.role,
                share.node,
                runs(share.workers),
                _gpus_text(role, share.gpus, len(share.workers)),
                written_rate(share.busbw),
                "/".join(share.domain) or "-",
            )


def _gpus_text(role: RolePlacement, gpus: Sequence[int] | None, pods: int) -> str:
    if not role.gpus:
        return "-"
    return f"any {pods * role.gpus}" if gpus is None else ",".join(map(str, gpus))


def _traffic_lines(traffic: StepTraffic) -> Iterator[Line]:
    yield [Span("Exchange of a step, for each GB of parameters", "bold")]
    if not (traffic.servers or traffic.all_reduce):
        yield [Span("  stays on one node: no NIC carries any of it", "")]
        return
    ways = [
        ("parameter servers", traffic.servers),
        ("all-reduce on the workers' nodes", traffic.all_reduce),
    ]
    ways += [(_summing(count), seconds) for count, seconds in traffic.with_cpu_nodes]
    width = max(len(way) for way, _ in ways)
    for way, seconds in ways:
        yield [Span(f"  {way:<{width}}  {seconds:.3g} s{_against(seconds, traffic.servers)}", "")]
    yield [Span(f"  - {_faster(traffic)}", "")]
    if brought := _brought(traffic.with_cpu_nodes):
        yield [Span(f"  - {brought}", "")]
    yield [Span(f"  - {_room(traffic.available)}", "dim")]
    yield [Span("  - time of the slowest NIC alone; summing on other nodes as BytePS does it", "dim")]
    if traffic.assumed:
        yield [
            Span(
                "  - some nodes do not publish the rate of their NICs: the lowest that is known is assumed",
                "dim",
            )
        ]


def _faster(traffic: StepTraffic) -> str:
    servers, ring = traffic.servers, traffic.all_reduce
    if _alike(servers, ring):
        return "parameter servers and all-reduce are as fast on these nodes"
    if ring < servers:
        return "all-reduce is faster on these nodes than parameter servers"
    return "parameter servers are faster on these nodes than all-reduce"


def _summing(cpu_nodes: int) -> str:
    if not cpu_nodes:
        return "the same, summed inside each node first"
    return f"that with {plural(cpu_nodes, 'node')} without GPUs to sum"


def _brought(with_cpu_nodes: Sequence[tuple[int, float]]) -> str:
    """Return what nodes that only sum would bring, empty where the workers are on one node."""
    if not with_cpu_nodes:
        return ""
    (_, without), *_, (most, least) = with_cpu_nodes
    if _alike(least, without):
        return "nodes without GPUs to sum would bring nothing: each worker's node still sends all it has"
    return f"{plural(most, 'node')} without GPUs to sum would make a step's exchange {1 - least / without:.0%} shorter"


def _alike(seconds: float, others: float) -> bool:
    return abs(seconds - others) < others / 200


def _room(available: int) -> str:
    if not available:
        return "no node without GPUs has room for a parameter server now"
    have = "has" if available == 1 else "have"
    return f"{plural(available, 'node')} without GPUs {have} room for a parameter server now"


def _against(seconds: float, servers: float) -> str:
    """Return how a way compares with parameter servers, empty where it is as fast."""
    if not servers or not seconds or _alike(seconds, servers):
        return ""
    change = seconds / servers - 1
    return f", {abs(change):.0%} {'longer' if change > 0 else 'shorter'}"


def _why_lines(verdict: GangPlacement) -> Iterator[Line]:
    for title, steps in (("gang", verdict.why), *((role.role, role.why) for role in verdict.roles)):
        yield [Span(f"  {title}", "")]
        yield from ([Span("  ", ""), *line] for line in step_lines(steps))


def _refusal_lines(name: str, verdict: GangInfeasible) -> Iterator[Line]:
    yield [Span(name, "bold"), Span("  does not fit: ", "red"), Span(verdict.summary, "")]
    if not verdict.proven:
        yield [Span("  (heuristic: a place may have been overlooked)", "dim")]
    for role in verdict.roles:
        yield []
        yield [Span(role.role, "bold"), Span("" if role.answer else "  fits by itself", "")]
        if role.answer:
            facts = [reason.text for reason in role.answer.reasons]
            for line in (*facts, *role.answer.levels, *role.answer.remedies):
                yield [Span(f"  {line}", "")]
    if verdict.remedies:
        yield []
        yield [Span("What would help", "bold")]
        yield from ([Span(f"  {line}", "")] for line in verdict.remedies)
