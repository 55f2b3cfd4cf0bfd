"""What of a placement can be made to hold on a cluster, and by what."""

from collections.abc import Iterator

from arena_topo.model.cluster.finding import Finding, State
from arena_topo.model.plan.capabilities import ClusterFacts
from arena_topo.pin.admission import VERSION

_SETUP = "arena-topo cluster setup --apply"


def pin_findings(facts: ClusterFacts) -> Iterator[Finding]:
    """Yield what is found of the admission policy, of the stock scheduler's gangs, and of means for exact GPUs."""
    yield _policy(facts)
    if facts.pod_groups:
        yield _pod_groups(facts)
    yield _workers(facts)
    yield _gpus(facts)


def _policy(facts: ClusterFacts) -> Finding:
    policy = facts.policy
    if not policy.api:
        return Finding(
            topic="Admission policy",
            state=State.ABSENT,
            found="MutatingAdmissionPolicy is not served",
            evidence="no such resource of admissionregistration.k8s.io",
            follows="workers are pinned by gates or node affinity; Kubernetes 1.36 serves it by default",
        )
    where = f"admissionregistration.k8s.io/{policy.api} MutatingAdmissionPolicy arena-topo"
    if policy.version is None:
        return Finding(
            topic="Admission policy",
            state=State.UNKNOWN,
            found="you may not look whether it is installed",
            evidence=where,
            follows="it is not relied on",
            command="kubectl auth can-i get mutatingadmissionpolicies",
        )
    if policy.current:
        return Finding(
            topic="Admission policy",
            state=State.OK,
            found=f"version {policy.version} installed",
            evidence=where,
            follows="each worker gets its planned node, claim and gang, also when it is made again",
        )
    absent = policy.version == 0
    return Finding(
        topic="Admission policy",
        state=State.ABSENT if absent else State.PROBLEM,
        found="not installed, or without its binding"
        if absent
        else f"version {policy.version} installed, {_older(facts)}",
        evidence=where,
        follows="it is not relied on",
        command=_SETUP,
    )


def _older(facts: ClusterFacts) -> str:
    if facts.policy.version == VERSION:
        return "from before this cluster served PodGroups"
    return f"and this program has version {VERSION}"


def _pod_groups(facts: ClusterFacts) -> Finding:
    reached = facts.policy.current and facts.policy.gangs
    return Finding(
        topic="Native gangs",
        state=State.OK if reached else State.ABSENT,
        found=f"PodGroup of scheduling.k8s.io/{facts.pod_groups} served",
        evidence=f"GET /apis/scheduling.k8s.io/{facts.pod_groups}",
        follows="kube-scheduler itself keeps gangs together, if its feature GangScheduling is on"
        if reached
        else "MPIJobs cannot reach it without the admission policy",
        command="" if reached else _SETUP,
    )


def _workers(facts: ClusterFacts) -> Finding:
    if facts.policy.current:
        return Finding(
            topic="Pins of workers",
            state=State.OK,
            found="by the admission policy",
            evidence=f"version {facts.policy.version} of it",
            follows="--pin workers puts worker i on its planned node",
        )
    if facts.keeps("schedulingGates"):
        return Finding(
            topic="Pins of workers",
            state=State.OK,
            found="by scheduling gates",
            evidence="MPIJob keeps schedulingGates",
            follows="--pin workers puts worker i on its planned node; one that is made again waits for arena-topo resume",
            command=_SETUP if facts.policy.api else "",
        )
    return Finding(
        topic="Pins of workers",
        state=State.ABSENT,
        found="by node affinity alone",
        evidence="neither admission policy nor scheduling gates",
        follows="the job stays on the planned nodes; which worker is on which is the scheduler's choice",
        command=_SETUP if facts.policy.api else "",
    )


def _gpus(facts: ClusterFacts) -> Finding:
    if facts.policy.current and facts.dra_drivers:
        found, evidence = "by DRA claims", f"ResourceSlices of {', '.join(facts.dra_drivers)}"
    elif facts.hami or "hami" in (facts.programs or {}):
        found, evidence = "by HAMi's annotation", "HAMi's scheduler or register"
    elif facts.ack:
        found, evidence = (
            "by ACK's scheduler, which chooses them itself",
            "label ack.node.gpu.schedule=topology",
        )
    else:
        return Finding(
            topic="Pins of GPUs",
            state=State.UNKNOWN if facts.dra_drivers is None else State.ABSENT,
            found="nothing here hands out chosen GPUs",
            evidence="no DRA driver with the admission policy, no HAMi, no ACK scheduler",
            follows="which GPUs of its node a worker gets is the kubelet's choice: plans predict it, no more",
        )
    return Finding(
        topic="Pins of GPUs",
        state=State.OK,
        found=found,
        evidence=evidence,
        follows="--pin gpus makes the planned GPUs hold"
        if not facts.ack
        else "jobs with --gputopology get well connected GPUs",
    )
