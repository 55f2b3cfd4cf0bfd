"""A cluster's facts as findings: each with its evidence, what follows, and what would improve it. Pure."""

from collections.abc import Iterator

from arena_topo.cluster.doctor.pins import pin_findings
from arena_topo.gang.auto import choose
from arena_topo.model.cluster.finding import Finding, State
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.plan.capabilities import AccessReview, ClusterFacts

_OPERATOR = "https://raw.githubusercontent.com/kubeflow/mpi-operator/v0.8.2/deploy/v2beta1/mpi-operator.yaml"
_MAY_DO_WITHOUT = ("volcano", "koordinator", "kai", "yunikorn", "coscheduling", "kueue")


def diagnose(facts: ClusterFacts, *, namespace: str, queue: str = "") -> tuple[Finding, ...]:
    """Return the findings on *facts* for a user who submits to *namespace*, through *queue* if one is named."""
    version = facts.versions[0] if facts.versions else None
    return (
        _kubernetes(facts),
        _mpijob(facts),
        *([_template(facts, version), _operator(facts)] if version else []),
        _schedulers(facts),
        *([_gang(facts, version, queue)] if version else []),
        *pin_findings(facts),
        *_rights(facts, namespace),
    )


def _kubernetes(facts: ClusterFacts) -> Finding:
    return Finding(
        topic="Kubernetes",
        state=State.OK,
        found=facts.kubernetes or "a version that it does not tell",
        evidence="GET /version",
        follows="the API server answers",
    )


def _mpijob(facts: ClusterFacts) -> Finding:
    if not facts.versions:
        return Finding(
            topic="MPIJob",
            state=State.PROBLEM,
            found="not served",
            evidence="no kubeflow.org/v2beta1, v1 or v1alpha1 in GET /apis",
            follows="no job can be submitted",
            command=f"kubectl apply --server-side -f {_OPERATOR}",
        )
    names = ", ".join(each.value for each in facts.versions)
    return Finding(
        topic="MPIJob",
        state=State.OK,
        found=f"{names} served",
        evidence="kubeflow.org in GET /apis",
        follows=f"jobs are submitted as {facts.versions[0].value}",
    )


def _template(facts: ClusterFacts, version: ApiVersion) -> Finding:
    evidence = f"the schema of MPIJob {version.value} in /openapi/v3"
    if facts.worker_fields is None:
        return Finding(
            topic="Worker template",
            state=State.UNKNOWN,
            found="its schema cannot be read",
            evidence=evidence,
            follows="neither scheduling gates nor DRA claims are written into templates",
        )
    kept = [name for name in ("schedulingGates", "resourceClaims", "schedulingGroup") if facts.keeps(name)]
    gated = facts.keeps("schedulingGates")
    return Finding(
        topic="Worker template",
        state=State.OK if gated else State.ABSENT,
        found=f"keeps {', '.join(kept)}"
        if kept
        else "drops scheduling gates, DRA claims and scheduling groups",
        evidence=evidence,
        follows="jobs can be held back until their gang fits"
        if gated
        else "gangs on a stock scheduler need the admission policy; gates take mpi-operator 0.5 or training-operator 1.7",
    )


def _operator(facts: ClusterFacts) -> Finding:
    program = facts.operator
    if program is None:
        unseen = facts.programs is None
        return Finding(
            topic="MPI operator",
            state=State.UNKNOWN,
            found="you may not list Deployments" if unseen else "no Deployment of it was found",
            evidence="GET /apis/apps/v1/deployments",
            follows="its --gang-scheduling is not known: PodGroups get a name that it does not write, and it is told "
            "the gang's size in case",
            command="kubectl auth can-i list deployments -A" if unseen else "",
        )
    gangs = f", with --gang-scheduling={program.gangs}" if program.gangs else ", without --gang-scheduling"
    return Finding(
        topic="MPI operator",
        state=State.OK if program.ready else State.PROBLEM,
        found=f"{'runs' if program.ready else 'is not ready'}{gangs}",
        evidence=program.location,
        follows="it makes the PodGroups itself" if program.gangs else "PodGroups are made by arena-topo",
        command="" if program.ready else f"kubectl describe deployment -n {program.namespace} {program.name}",
    )


def _schedulers(facts: ClusterFacts) -> Finding:
    evidence = "GET /apis/apps/v1/deployments"
    if facts.programs is None:
        return Finding(
            topic="Gang schedulers",
            state=State.UNKNOWN,
            found="you may not list Deployments",
            evidence=evidence,
            follows="a gang scheduler whose API is served is taken to run",
            command="kubectl auth can-i list deployments -A",
        )
    found = {kind: facts.programs[kind] for kind in _MAY_DO_WITHOUT if kind in facts.programs}
    if not found:
        return Finding(
            topic="Gang schedulers",
            state=State.ABSENT,
            found="none runs",
            evidence=evidence,
            follows="gangs are kept by the stock scheduler's own means",
        )
    ready = all(program.ready for program in found.values())
    return Finding(
        topic="Gang schedulers",
        state=State.OK if ready else State.PROBLEM,
        found=", ".join(f"{kind} {'runs' if each.ready else 'is not ready'}" for kind, each in found.items()),
        evidence=", ".join(each.location for each in found.values()),
        follows="jobs can be put under them with --gang-scheduler",
    )


def _gang(facts: ClusterFacts, version: ApiVersion, queue: str) -> Finding:
    chosen = choose(facts, version=version, queue=queue)
    evidence = "; ".join(chosen.reasons)
    if not chosen.backend:
        return Finding(
            topic="Gang",
            state=State.PROBLEM,
            found="nothing here keeps a gang together",
            evidence=evidence,
            follows="workers start one by one, and two jobs that fit only half can block each other",
            command="arena-topo cluster setup --apply" if facts.policy.api and facts.pod_groups else "",
        )
    return Finding(
        topic="Gang",
        state=State.OK,
        found=f"--gang means {chosen.backend}",
        evidence=evidence,
        follows="all workers of a job start together, or none",
    )


def _rights(facts: ClusterFacts, namespace: str) -> Iterator[Finding]:
    refused = [right for right in facts.access if right.allowed is False]
    if facts.access and not refused:
        unknown = any(right.allowed is None for right in facts.access)
        yield Finding(
            topic="Rights",
            state=State.UNKNOWN if unknown else State.OK,
            found="the server does not tell" if unknown else f"you may do everything in {namespace}",
            evidence="SelfSubjectAccessReview",
            follows="no command will be refused" if not unknown else "a command may be refused",
        )
    for right in refused:
        yield _refused(right, namespace)


def _refused(right: AccessReview, namespace: str) -> Finding:
    where = "" if right.what.endswith("-A") else f" -n {namespace}"
    return Finding(
        topic="Rights",
        state=State.ABSENT if right.optional else State.PROBLEM,
        found=f"you may not {right.what.removesuffix(' -A')}{' in the whole cluster' if not where else ''}",
        evidence=f"kubectl auth can-i {right.what}{where}",
        follows=f"needed for: {right.purpose}",
        command=f"arena-topo cluster setup --apply --users user:NAME -n {namespace}",
    )
