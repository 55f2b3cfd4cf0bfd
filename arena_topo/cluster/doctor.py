"""What a cluster supports for gangs and pinning.

A table of checks, each of which turns facts into one finding.
No request is sent here: ``detect_with_access`` in ``capabilities.py`` has read the facts.
"""

import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from hashlib import md5

from arena_topo.cluster.capabilities import POD_FIELDS
from arena_topo.errors import Forbidden, NotFound
from arena_topo.gang.auto import choose_backend
from arena_topo.kube.resources import CONFIG_MAPS, SELF_SUBJECT_REVIEWS
from arena_topo.kube.session import Session
from arena_topo.model.gang import AccessReview, ClusterFacts
from arena_topo.model.keys import CONTROLLER
from arena_topo.model.kind import Kind
from arena_topo.model.reports import Finding, State
from arena_topo.model.text.words import plural
from arena_topo.pin.admission import VERSION

_OPERATOR = "https://raw.githubusercontent.com/kubeflow/mpi-operator/v0.8.2/deploy/v2beta1/mpi-operator.yaml"
_SETUP = "arena-topo cluster setup --apply"
_CONTROLLER_SETUP = "arena-topo controller manifest --image IMAGE | kubectl apply -f -"
_LIST_DEPLOYMENTS = "GET /apis/apps/v1/deployments"
_MAY_LIST_DEPLOYMENTS = "kubectl auth can-i list deployments -A"
_GANG_SCHEDULERS = ("volcano", "koordinator", "kai", "yunikorn", "coscheduling", "kueue")


@dataclass(frozen=True, slots=True)
class Subject:
    """The facts about a cluster, for a user who submits to *namespace*, through *queue* if any."""

    facts: ClusterFacts
    namespace: str
    queue: str = ""

    @property
    def version(self) -> Kind | None:
        """The version of MPIJob in which jobs are submitted."""
        return self.facts.versions[0] if self.facts.versions else None


@dataclass(frozen=True, slots=True, kw_only=True)
class CheckResult:
    """What a check finds and what follows for jobs.

    ``evidence`` in place of what the check always looks at.
    """

    state: State
    found: str
    follows: str
    evidence: str = ""
    command: str = ""


@dataclass(frozen=True, slots=True)
class _Check:
    """One row of the table: its title, what it looks at, and what it finds.

    None where there is nothing to judge.
    """

    title: str
    looks_at: str
    run: Callable[[Subject], CheckResult | None]


def diagnose(facts: ClusterFacts, *, namespace: str, queue: str = "") -> tuple[Finding, ...]:
    """Return the findings on *facts* for a user who submits to *namespace*, through *queue* if any."""
    subject = Subject(facts, namespace, queue)
    return tuple(
        Finding(
            topic=check.title,
            state=result.state,
            found=result.found,
            evidence=result.evidence or check.looks_at,
            follows=result.follows,
            command=result.command,
        )
        for check in (*_CHECKS, *_access_checks(facts))
        if (result := check.run(subject))
    )


_SUMMED_UP = ("MPIJob", "Gang", "Pins of workers", "Pins of GPUs")
"""The checks that say what a job gets where nothing is wrong."""


def verdict(findings: Sequence[Finding]) -> tuple[str, ...]:
    """Return what *findings* come to in one sentence, and then the commands that would improve it.

    For example, ``No problems. MPIJob: v2beta1 served. Gang: --gang means gates.``
    """
    problems = [finding for finding in findings if finding.state is State.PROBLEM]
    told = problems or [finding for finding in findings if finding.topic in _SUMMED_UP]
    counted = f"{plural(len(problems), 'problem')}." if problems else "No problems."
    sentence = " ".join((counted, *(f"{finding.topic}: {finding.found}." for finding in told)))
    topics: dict[str, list[str]] = {}
    # What is wrong comes before what could be better; what runs well needs no command, but for its own pages.
    for finding in sorted(findings, key=lambda finding: finding.state is not State.PROBLEM):
        if finding.command and finding.topic != "Reservations":
            topics.setdefault(finding.command, []).append(finding.topic)
    return sentence, *(f"for {' and '.join(names)}: {command}" for command, names in topics.items())


def _kubernetes(subject: Subject) -> CheckResult:
    return CheckResult(
        state=State.OK,
        found=subject.facts.kubernetes or "unknown version",
        follows="the API server answers",
    )


def _mpijob(subject: Subject) -> CheckResult:
    if not subject.version:
        return CheckResult(
            state=State.PROBLEM,
            found="not served",
            evidence="no kubeflow.org/v2beta1, v1 or v1alpha1 in GET /apis",
            follows="no job can be submitted",
            command=f"kubectl apply --server-side -f {_OPERATOR}",
        )
    versions = ", ".join(version.version for version in subject.facts.versions)
    return CheckResult(
        state=State.OK,
        found=f"{versions} served",
        follows=f"jobs are submitted as {subject.version.version}",
    )


def _worker_template(subject: Subject) -> CheckResult | None:
    facts = subject.facts
    if not subject.version:
        return None
    evidence = f"the schema of MPIJob {subject.version.version} in /openapi/v3"
    if facts.worker_fields is None:
        return CheckResult(
            state=State.UNKNOWN,
            found="its schema cannot be read",
            evidence=evidence,
            follows="neither scheduling gates nor DRA claims are written into templates",
        )
    kept = ", ".join(field for field in POD_FIELDS if facts.keeps(field))
    has_gates = facts.keeps("schedulingGates")
    return CheckResult(
        state=State.OK if has_gates else State.ABSENT,
        found=f"keeps {kept}" if kept else "drops scheduling gates, DRA claims and scheduling groups",
        evidence=evidence,
        follows="workers can wait at gates until their gang fits"
        if has_gates
        else "gangs on a stock scheduler need the admission policy; scheduling gates need mpi-operator >= 0.5 "
        "or training-operator >= 1.7",
    )


def _operator(subject: Subject) -> CheckResult | None:
    if not subject.version:
        return None
    program = subject.facts.operator
    if program is None:
        # It may run under another name, or outside of the cluster.
        is_forbidden = subject.facts.programs is None
        return CheckResult(
            state=State.UNKNOWN,
            found="you cannot list Deployments"
            if is_forbidden
            else "no Deployment of it was found in a system namespace",
            follows="its --gang-scheduling is unknown, so arena-topo names its own PodGroups and passes the gang size "
            "to the operator just in case",
            command=_MAY_LIST_DEPLOYMENTS if is_forbidden else "",
        )
    flag = f", with --gang-scheduling={program.gangs}" if program.gangs else ", without --gang-scheduling"
    return CheckResult(
        state=State.OK if program.ready else State.PROBLEM,
        found=f"{_readiness(ready=program.ready)}{flag}",
        evidence=program.location,
        follows="it creates the PodGroups itself" if program.gangs else "arena-topo creates the PodGroups",
        command="" if program.ready else f"kubectl describe deployment -n {program.namespace} {program.name}",
    )


def _gang_schedulers(subject: Subject) -> CheckResult:
    programs = subject.facts.programs
    if programs is None:
        return CheckResult(
            state=State.UNKNOWN,
            found="you cannot list Deployments",
            follows="a gang scheduler whose API is served is assumed to run",
            command=_MAY_LIST_DEPLOYMENTS,
        )
    # An operator, or HAMi by itself, keeps no gang together.
    schedulers = {kind: programs[kind] for kind in _GANG_SCHEDULERS if kind in programs}
    if not schedulers and subject.facts.ack:
        return CheckResult(
            state=State.OK,
            found="ACK's own",
            evidence="label ack.node.gpu.schedule=topology",
            follows="it starts the workers of a gang together",
        )
    if not schedulers:
        return CheckResult(
            state=State.ABSENT,
            found="none runs in a system namespace",
            follows="gangs are kept together by what the stock scheduler offers",
        )
    return CheckResult(
        state=State.OK if all(program.ready for program in schedulers.values()) else State.PROBLEM,
        found=", ".join(f"{kind} {_readiness(ready=program.ready)}" for kind, program in schedulers.items()),
        evidence=", ".join(program.location for program in schedulers.values()),
        follows="--gang-scheduler puts jobs under them",
    )


def _gang(subject: Subject) -> CheckResult | None:
    facts = subject.facts
    if not subject.version:
        return None
    chosen = choose_backend(facts, kind=subject.version, queue=subject.queue)
    evidence = "; ".join(chosen.reasons)
    if not chosen.backend:
        # The setup helps where kube-scheduler has PodGroups: its policy puts workers into them.
        return CheckResult(
            state=State.PROBLEM,
            found="nothing here keeps a gang together",
            evidence=evidence,
            follows="workers start one by one, and two half-started jobs can deadlock",
            command=_SETUP if facts.policy.api and facts.pod_groups else "",
        )
    return CheckResult(
        state=State.OK,
        found=f"--gang means {chosen.backend}",
        evidence=evidence,
        follows="all workers of a job start together, or none",
    )


def _admission_policy(subject: Subject) -> CheckResult:
    policy = subject.facts.policy
    if not policy.api:
        return CheckResult(
            state=State.ABSENT,
            found="MutatingAdmissionPolicy is not served",
            evidence="no such resource of admissionregistration.k8s.io",
            follows="workers are pinned by gates or node affinity"
            + ("; Kubernetes 1.36 serves it by default" if _is_before_1_36(subject.facts.kubernetes) else ""),
        )
    evidence = f"admissionregistration.k8s.io/{policy.api} MutatingAdmissionPolicy arena-topo"
    if policy.version is None:
        return CheckResult(
            state=State.UNKNOWN,
            found="you are not allowed to see whether it is installed",
            evidence=evidence,
            follows="no job relies on it",
            command="kubectl auth can-i get mutatingadmissionpolicies",
        )
    if policy.current:
        return CheckResult(
            state=State.OK,
            found=f"version {policy.version} installed",
            evidence=evidence,
            follows="each worker gets its planned node, claim and gang, and so does a recreated worker",
        )
    if policy.version == 0:
        return CheckResult(
            state=State.ABSENT,
            found="not installed, or without its binding",
            evidence=evidence,
            follows="no job relies on it",
            command=_SETUP,
        )
    # The version is right and the policy is still not current: it lacks the part that hands workers to
    # PodGroups.
    reason = (
        "from before this cluster served PodGroups"
        if policy.version >= VERSION
        else f"and this program has version {VERSION}"
    )
    return CheckResult(
        state=State.PROBLEM,
        found=f"version {policy.version} installed, {reason}",
        evidence=evidence,
        follows="MPIJobs rely on it, and other kinds of jobs do not"
        if policy.mpijobs
        else "no job relies on it",
        command=_SETUP,
    )


def _is_before_1_36(version: str) -> bool:
    """Whether *version*, such as ``v1.35.2``, is of a Kubernetes that serves the policy only on request."""
    found = re.match(r"v1\.(\d{1,4})", version)
    return found is not None and int(found[1]) < 36


def _native_gangs(subject: Subject) -> CheckResult | None:
    facts = subject.facts
    if not facts.pod_groups:
        return None
    is_reached = facts.policy.mpijobs and facts.policy.gangs
    return CheckResult(
        state=State.OK if is_reached else State.ABSENT,
        found=f"PodGroup of scheduling.k8s.io/{facts.pod_groups} served",
        evidence=f"GET /apis/scheduling.k8s.io/{facts.pod_groups}",
        follows="kube-scheduler itself keeps gangs together, if its feature GangScheduling is on"
        if is_reached
        else "MPIJobs cannot use it without the admission policy",
        command="" if is_reached else _SETUP,
    )


def _pins_of_workers(subject: Subject) -> CheckResult:
    policy = subject.facts.policy
    if policy.mpijobs:
        return CheckResult(
            state=State.OK,
            found="by the admission policy",
            evidence=f"version {policy.version} of it",
            follows="--pin workers puts worker i on its planned node",
        )
    command = _SETUP if policy.api else ""
    if subject.facts.keeps("schedulingGates"):
        return CheckResult(
            state=State.OK,
            found="by scheduling gates",
            evidence="MPIJob keeps schedulingGates",
            follows="--pin workers puts worker i on its planned node; a recreated worker waits for arena-topo resume",
            command=command,
        )
    return CheckResult(
        state=State.ABSENT,
        found="only by node affinity",
        evidence="neither admission policy nor scheduling gates",
        follows="the job stays on the planned nodes; the scheduler chooses which worker runs on which of them",
        command=command,
    )


def _pins_of_gpus(subject: Subject) -> CheckResult:
    facts = subject.facts
    follows = "--pin gpus gives each worker its planned GPUs"
    # A claim of its own for each worker needs the policy: a template has the same claims for all.
    if facts.policy.mpijobs and facts.dra_drivers:
        drivers = ", ".join(facts.dra_drivers)
        return CheckResult(
            state=State.OK, found="by DRA claims", evidence=f"ResourceSlices of {drivers}", follows=follows
        )
    # Nodes or Deployments may be hidden from the caller: either is enough.
    if facts.hami or "hami" in (facts.programs or {}):
        return CheckResult(
            state=State.OK,
            found="by HAMi's annotation",
            evidence="HAMi's scheduler or register",
            follows=follows,
        )
    if facts.ack:
        return CheckResult(
            state=State.OK,
            found="by ACK's scheduler, which chooses them itself",
            evidence="label ack.node.gpu.schedule=topology",
            follows="jobs with --gputopology get well connected GPUs",
        )
    return CheckResult(
        state=State.UNKNOWN if facts.dra_drivers is None else State.ABSENT,
        found="nothing on this cluster can allocate specific GPUs",
        evidence="no DRA driver with the admission policy, no HAMi, no ACK scheduler",
        follows="the kubelet chooses which GPUs of its node a worker gets: a plan predicts them and cannot enforce them",
    )


def _waiting_jobs(subject: Subject) -> CheckResult | None:
    room = subject.facts.waiting
    if room is None or not (room.kueue or room.controller):
        return None
    if not room.kueue:
        return CheckResult(
            state=State.OK,
            found="the controller places them, the oldest first",
            evidence="its Lease",
            follows="for one team: with quotas, shares or priorities between teams Kueue is the better choice, and asks "
            "the controller to place the workers",
        )
    if not room.queues:
        return CheckResult(
            state=State.ABSENT,
            found="Kueue admits them, and no queue asks our planner to place them",
            follows="Kueue counts quota, and what it admits may still wait for a node, or lie across racks",
            command=f"{_SETUP} --kueue",
        )
    names = ", ".join(room.queues)
    if not room.controller:
        return CheckResult(
            state=State.PROBLEM,
            found=f"{names} asks our planner, and no controller answers",
            follows="these queues admit nothing",
            command=_CONTROLLER_SETUP,
        )
    if room.quota != room.gpus:
        more = room.quota > room.gpus
        return CheckResult(
            state=State.PROBLEM,
            found=f"{names}: quota for {room.quota} GPUs, and the nodes have {room.gpus}",
            follows="jobs get quota and no room, and Kueue preempts nobody for them"
            if more
            else "GPUs beyond the quota stay idle",
            command=f"kubectl edit clusterqueue {room.queues[0]}",
        )
    return CheckResult(
        state=State.OK,
        found=f"{names} asks our planner, and the controller answers",
        follows="a job starts on its planned nodes once it has quota",
    )


def _controller_token(subject: Subject) -> CheckResult | None:
    if subject.facts.controller_limited is not False:
        return None
    return CheckResult(
        state=State.ABSENT,
        found="no admission policy limits what it can change",
        follows="a process that gets hold of it can change every job and delete every pod of the cluster",
        command=_CONTROLLER_SETUP,
    )


def _access_checks(facts: ClusterFacts) -> Iterator[_Check]:
    """Yield a check for each permission that was refused; where none was, one for all of them."""
    refused = [review for review in facts.access if review.allowed is False]
    for review in refused:
        yield _Check("Rights", "SelfSubjectAccessReview", partial(_refused_access, review))
    if facts.access and not refused:
        yield _Check("Rights", "SelfSubjectAccessReview", _access)


def _refused_access(review: AccessReview, subject: Subject) -> CheckResult:
    is_cluster_wide = review.what.endswith("-A")
    # Optional permissions serve some options of some commands; without the others submit, get or logs fail.
    return CheckResult(
        state=State.ABSENT if review.optional else State.PROBLEM,
        found=f"you cannot {review.what.removesuffix(' -A')}{' in the whole cluster' if is_cluster_wide else ''}",
        evidence=f"kubectl auth can-i {review.what}{'' if is_cluster_wide else f' -n {subject.namespace}'}",
        follows=f"needed for: {review.purpose}",
        command=f"{_SETUP} --users user:NAME -n {subject.namespace}",
    )


def _access(subject: Subject) -> CheckResult:
    if any(review.allowed is None for review in subject.facts.access):
        return CheckResult(
            state=State.UNKNOWN, found="the server does not say", follows="a command may be refused"
        )
    return CheckResult(
        state=State.OK,
        found=f"you may do everything in {subject.namespace}",
        follows="no command will be refused",
    )


def _readiness(*, ready: bool) -> str:
    return "runs" if ready else "is not ready"


_CHECKS = (
    _Check("Kubernetes", "GET /version", _kubernetes),
    _Check("MPIJob", "kubeflow.org in GET /apis", _mpijob),
    _Check("Worker template", "/openapi/v3", _worker_template),
    _Check("MPI operator", _LIST_DEPLOYMENTS, _operator),
    _Check("Gang schedulers", _LIST_DEPLOYMENTS, _gang_schedulers),
    _Check("Gang", "all of the above", _gang),
    _Check("Admission policy", "admissionregistration.k8s.io in GET /apis", _admission_policy),
    _Check("Native gangs", "GET /apis/scheduling.k8s.io", _native_gangs),
    _Check(
        "Waiting jobs",
        "ClusterQueues, AdmissionChecks, the controller's Lease, and the GPUs of the nodes",
        _waiting_jobs,
    ),
    _Check(
        "Controller's token",
        f"ValidatingAdmissionPolicy {CONTROLLER} and its binding",
        _controller_token,
    ),
    _Check("Pins of workers", "the admission policy, and the schema of MPIJob", _pins_of_workers),
    _Check(
        "Pins of GPUs", "ResourceSlices, Deployments, and the labels and annotations of nodes", _pins_of_gpus
    ),
)
"""The checks in the order in which they are reported; those of the caller's access follow them."""


# Who the user is, for the API server and for Arena.
#
# Arena reads the name from a token review, and calls everybody with a certificate ``kubecfg:certauth:admin``;
# the API server itself knows the name of any user. Source: kubeflow/arena 0.15.5,
# pkg/apis/config/{user,arenaconfig}.go.


@dataclass(frozen=True, slots=True)
class Identity:
    """A user's name; the hash of it that Arena puts on jobs.

    It also says whether Arena's configuration names the caller an admin.
    """

    name: str
    id: str
    is_admin: bool


def whoami(session: Session, *, arena_namespace: str) -> Identity:
    """Return the user of *session*. Raises what the server says; an older one than 1.28 has no answer."""
    review = {"apiVersion": "authentication.k8s.io/v1", "kind": "SelfSubjectReview"}
    answer = session.create(SELF_SUBJECT_REVIEWS.path(), review)
    name = str(((answer.get("status") or {}).get("userInfo") or {}).get("username") or "")
    return Identity(name, _id_of(name), name in _admins(session, arena_namespace))


def _id_of(name: str) -> str:
    return md5(name.encode(), usedforsecurity=False).hexdigest()


def _admins(session: Session, namespace: str) -> set[str]:
    try:
        config = session.get(CONFIG_MAPS.path(namespace, "arena-config"))
    # Without Arena there is no such object, and its readers have no need of a right to it.
    except (NotFound, Forbidden):
        return set()
    listed = str((config.get("data") or {}).get("adminUsers") or "")
    return {name.strip() for name in listed.split(",") if name.strip()}
