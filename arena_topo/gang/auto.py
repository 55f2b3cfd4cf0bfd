"""Which gang back-end a cluster's own means suggest, with the reasons. Pure: facts in, choice out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from arena_topo.model.job.gang import Gang
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.plan.capabilities import ClusterFacts

_SCHEDULERS = {
    "volcano": "scheduling.volcano.sh",
    "koordinator": "scheduling.koordinator.sh",
    "kai": "scheduling.run.ai",
    "yunikorn": "",
    "coscheduling": "scheduling.x-k8s.io",
    "kueue": "kueue.x-k8s.io",
}
"""Back-ends by the API group that each serves, in the order in which they are looked at."""

_NEED_QUEUE = frozenset({"kai", "kueue"})
_ONLY = {
    "kueue": frozenset({ApiVersion.V2BETA1}),
    "kai": frozenset({ApiVersion.V2BETA1, ApiVersion.V1}),
}


@dataclass(frozen=True, slots=True)
class Chosen:
    """The back-end, empty where there is none, and why it and none of those before it."""

    backend: str
    reasons: tuple[str, ...]


def choose(facts: ClusterFacts, *, version: ApiVersion, queue: str = "") -> Chosen:
    """Return the back-end that *facts* suggest for a job of *version*.

    What the operator itself does comes first: it cannot be avoided. Then the scheduler that the cluster was given for
    gangs, then the stock scheduler's own means.
    """
    reasons: list[str] = []
    for backend, fits, reason in _looked_at(facts, version, queue):
        reasons.append(reason)
        if fits:
            return Chosen(backend, tuple(reasons))
    return Chosen("", tuple(reasons))


def with_cluster_facts(gang: Gang, facts: ClusterFacts) -> Gang:
    """Return *gang* with what its back-end must know of the cluster."""
    return replace(
        gang,
        operator_gangs=facts.operator_gangs,
        api=facts.pod_groups,
        admission=facts.policy.current and facts.policy.gangs,
        keeps_gates=facts.worker_fields is None or facts.keeps("schedulingGates"),
    )


def _looked_at(facts: ClusterFacts, version: ApiVersion, queue: str) -> Iterator[tuple[str, bool, str]]:
    gangs = facts.operator_gangs
    if gangs and version is not ApiVersion.V1ALPHA1:
        backend = "volcano" if gangs == "volcano" else "coscheduling"
        yield backend, True, f"the MPI operator runs with --gang-scheduling={gangs}"
        return
    if facts.ack:
        yield "ack", True, "nodes are labelled for ACK's scheduler"
    for backend, group in _SCHEDULERS.items():
        found, evidence = _running(facts, backend, group)
        if not evidence:
            continue
        obstacle = _obstacle(backend, version, queue) if found else ""
        yield backend, found and not obstacle, f"{evidence}{obstacle}"
    yield from _stock(facts, version)


def _running(facts: ClusterFacts, backend: str, group: str) -> tuple[bool, str]:
    """Return whether a back-end's scheduler runs, as far as can be seen, and the evidence; none is no back-end."""
    served = bool(group) and facts.serves(group)
    if facts.programs is None:
        return served, f"{group} is served; whether {backend} runs, you may not see" if served else ""
    program = facts.programs.get(backend)
    if program is None:
        return False, f"{group} is served, but no Deployment of {backend} was found" if served else ""
    state = "runs" if program.ready else "is not ready"
    return program.ready, f"{backend} {state} ({program.location})"


def _obstacle(backend: str, version: ApiVersion, queue: str) -> str:
    if version not in _ONLY.get(backend, frozenset(ApiVersion)):
        return f", but it does not know MPIJob {version.value}"
    return ", but it needs a queue" if backend in _NEED_QUEUE and not queue else ""


def _stock(facts: ClusterFacts, version: ApiVersion) -> Iterator[tuple[str, bool, str]]:
    if facts.pod_groups:
        reached = facts.policy.current and facts.policy.gangs
        how = (
            "is reached through the admission policy"
            if reached
            else "needs the admission policy, which is not there"
        )
        yield "native", reached, f"PodGroup of scheduling.k8s.io/{facts.pod_groups} is served, and {how}"
    gated = version is not ApiVersion.V1ALPHA1 and facts.keeps("schedulingGates")
    kept = "keeps" if gated else "may drop" if facts.worker_fields is None else "drops"
    yield "gates", gated, f"MPIJob {version.value} {kept} scheduling gates"
