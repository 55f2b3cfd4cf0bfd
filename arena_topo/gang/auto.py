"""Which gang back-end suits a cluster, with the reasons. Pure: facts in, choice out."""

from collections.abc import Iterator
from dataclasses import dataclass, replace

from arena_topo.errors import UsageError
from arena_topo.gang.backends import check_backend
from arena_topo.model.gang import ClusterFacts, Gang
from arena_topo.model.kind import Kind, title

_SCHEDULERS = {
    "volcano": "scheduling.volcano.sh",
    "koordinator": "scheduling.koordinator.sh",
    "kai": "scheduling.run.ai",
    "yunikorn": "",
    "coscheduling": "scheduling.x-k8s.io",
    "kueue": "kueue.x-k8s.io",
}
"""Back-ends in the order of preference, with the API group that each serves; YuniKorn serves none.

Schedulers made for gangs come before the plugin of the stock scheduler, and Kueue, which admits by quota,
comes last.
"""

_INSTALLATION = {
    "volcano": "https://volcano.sh/en/docs/installation",
    "koordinator": "https://koordinator.sh/docs/installation",
    "kai": "https://github.com/kai-scheduler/KAI-Scheduler",
    "coscheduling": "https://github.com/kubernetes-sigs/scheduler-plugins",
    "kueue": "https://kueue.sigs.k8s.io/docs/installation",
}

_NEED_QUEUE = frozenset({"kai", "kueue"})
_TAKE_QUEUE = _NEED_QUEUE | {"volcano", "yunikorn"}


@dataclass(frozen=True, slots=True)
class BackendChoice:
    """The back-end, empty if none fits, and why it fits and none of those before it."""

    backend: str
    reasons: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Candidate:
    backend: str
    fits: bool
    reason: str


def backend_for(facts: ClusterFacts, scheduler: str, *, kind: Kind, queue: str = "") -> str:
    """Return *scheduler*, which the user named, or for ``auto`` the first back-end that fits, if any.

    Raises ``UsageError`` for one that does not exist or is not installed, and for a *queue* if it has none.
    """
    if scheduler == "auto":
        backend = choose_backend(facts, kind=kind, queue=queue).backend
    else:
        check_backend(scheduler)
        _check_installed(facts, scheduler, kind, queue)
        backend = scheduler
    # Its name would be dropped without a word.
    if queue and backend and backend not in _TAKE_QUEUE:
        raise UsageError(
            f"--queue={queue}: the gang scheduler here is {backend}, which has no queues",
            hint=f"leave --queue out; it goes with {', '.join(sorted(_TAKE_QUEUE))}",
        )
    return backend


def choose_backend(facts: ClusterFacts, *, kind: Kind, queue: str = "") -> BackendChoice:
    """Return the first back-end that fits a job of *kind* on a cluster with *facts*.

    For example, on a cluster whose Volcano is not ready and whose MPIJob v2beta1 keeps scheduling gates, the
    reasons are "volcano is not ready (Deployment volcano-system/volcano-scheduler)" and "MPIJob v2beta1 keeps
    scheduling gates", and the back-end is ``gates``.
    """
    reasons: list[str] = []
    for candidate in _candidates(facts, kind, queue):
        reasons.append(candidate.reason)
        if candidate.fits:
            return BackendChoice(candidate.backend, tuple(reasons))
    return BackendChoice("", tuple(reasons))


def _check_installed(facts: ClusterFacts, backend: str, kind: Kind, queue: str) -> None:
    # Its PodGroups would be refused with a bare 404, or its pods would wait for it forever.
    group = _SCHEDULERS.get(backend, "")
    if not group or facts.serves(group):
        return
    others = choose_backend(facts, kind=kind, queue=queue).backend
    instead = (
        f"leave out --gang-scheduler, which takes {others} here"
        if others
        else "arena-topo doctor lists what is here"
    )
    raise UsageError(
        f"--gang-scheduler {backend} cannot be used: {backend} is not installed on this cluster, "
        f"which does not serve {group}",
        hint=f"{instead}; or ask the cluster's admin to install it: {_INSTALLATION[backend]}",
    )


def with_cluster_facts(gang: Gang, facts: ClusterFacts) -> Gang:
    """Return *gang* with what its back-end must know of the cluster."""
    return replace(
        gang,
        operator_gangs=facts.operator_gangs_for(gang.kind),
        api=facts.pod_groups,
        kai_topologies=facts.kai_topologies,
        admission=facts.policy.mpijobs and facts.policy.gangs,
        # A schema that the user may not read is taken to be a current one, which keeps gates.
        keeps_gates=facts.may_keep("schedulingGates"),
    )


def _candidates(facts: ClusterFacts, kind: Kind, queue: str) -> Iterator[_Candidate]:
    gangs = facts.operator_gangs_for(kind)
    # The operator puts every job under its own gang scheduler, whatever the job says. That of v1alpha1 has
    # none.
    if gangs and kind.suspend:
        backend = "volcano" if gangs == "volcano" else "coscheduling"
        yield _Candidate(backend, fits=True, reason=f"the MPI operator runs with --gang-scheduling={gangs}")
        return
    # ACK's scheduler is the cluster's own, so its labels are enough; the others must be known to run.
    if facts.ack:
        yield _Candidate("ack", fits=True, reason="nodes are labelled for ACK's scheduler")
    for backend, group in _SCHEDULERS.items():
        runs, evidence = _running(facts, backend, group)
        if not evidence:
            continue
        obstacle = _obstacle(backend, kind, queue) if runs else ""
        yield _Candidate(backend, fits=runs and not obstacle, reason=f"{evidence}{obstacle}")
    yield from _stock_candidates(facts, kind)


def _running(facts: ClusterFacts, backend: str, group: str) -> tuple[bool, str]:
    """Return whether a back-end's scheduler runs, and the evidence, empty if nothing indicates it."""
    served = bool(group) and facts.serves(group)
    if facts.programs is None:
        # All users can read the API groups: for one who cannot list Deployments they are evidence enough.
        return (
            served,
            f"{group} is served; you are not allowed to see whether {backend} runs" if served else "",
        )
    program = facts.programs.get(backend)
    if program is None:
        # Definitions outlive the scheduler that came with them: pods under its name would never start.
        return (
            False,
            f"{group} is served, but no Deployment of {backend} was found in a system namespace"
            if served
            else "",
        )
    state = "runs" if program.ready else "is not ready"
    return program.ready, f"{backend} {state} ({program.location})"


def _obstacle(backend: str, kind: Kind, queue: str) -> str:
    if backend in kind.refused_by:
        return f", but it does not support {title(kind)}"
    return ", but it needs a queue" if backend in _NEED_QUEUE and not queue else ""


def _stock_candidates(facts: ClusterFacts, kind: Kind) -> Iterator[_Candidate]:
    if facts.pod_groups:
        # MPIJob templates drop the field by which a pod joins a PodGroup, and only the policy can set it.
        reached = facts.policy.mpijobs and facts.policy.gangs
        how = (
            "is reached through the admission policy"
            if reached
            else "needs the admission policy, which is missing"
        )
        group = f"PodGroup of scheduling.k8s.io/{facts.pod_groups}"
        yield _Candidate("native", fits=reached, reason=f"{group} is served, and {how}")
    # Unlike a gate that the user names, one that is chosen must be known to be kept: dropped, the workers of
    # the gang would start one by one.
    kept = bool(kind.suspend) and facts.keeps("schedulingGates")
    verb = "keeps" if kept else "may drop" if facts.worker_fields is None else "drops"
    yield _Candidate("gates", fits=kept, reason=f"{title(kind)} {verb} scheduling gates")
