"""What the planner is asked: the demand of a job of any kind, read from its pod templates."""

from collections.abc import Mapping, Sequence
from dataclasses import replace

from arena_topo.errors import DocumentError, UsageError
from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.kinds.table import kind_of
from arena_topo.model import keys
from arena_topo.model.cluster.pod_requests import aligned_requests, pod_spec_requests
from arena_topo.model.cluster.scheduling import Requirement, SelectorTerm, Toleration
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.kind import Replicas, is_planned, planned_replicas
from arena_topo.model.notation.bounded_json import cut, optional_number
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.objects import Object
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.parallelism import check_ranks
from arena_topo.model.plan.roles import GangDemand, Role, Slice, Spread

Question = Demand | GangDemand
"""What the planner is asked: about pods that are all alike, or about the roles of a gang."""

_REQUIRED, _PREFERRED = (
    f"{rule}DuringSchedulingIgnoredDuringExecution" for rule in ("required", "preferred")
)


def question_of(job: Object, snapshot: Snapshot, options: PlanOptions) -> Question:
    """Return what the pods of *job* request from the cluster in *snapshot*, by role where they are not alike.

    Raises ``UsageError`` for options that only a gang of pods that are alike can have, and ``DocumentError`` for a job
    without pods to plan.
    """
    gang = gang_of_roles(job, snapshot, options)
    if _are_alike(gang.roles):
        return demand_of(job, snapshot, options)
    for flag, is_used in (
        ("--parallel", options.parallel is not None),
        ("--coalesce", options.coalesce),
        ("--share-gpus", options.share_gpus),
    ):
        if is_used:
            roles = ", ".join(role.name for role in gang.roles)
            raise UsageError(
                f"{flag} is for jobs whose pods are all alike, and those of {roles} differ",
                hint="leave it out",
            )
    return gang


def asked_roles(question: Question) -> list[tuple[str, Demand]]:
    """Return what each role asks for, in the order of the numbers of their pods; one without a name where all are alike."""
    if isinstance(question, Demand):
        return [("", question)]
    return [(role.name, role.demand) for role in question.roles]


def gang_of_roles(job: Object, snapshot: Snapshot, options: PlanOptions) -> GangDemand:
    """Return what the planned roles of *job* request from the cluster in *snapshot*."""
    planned = [pods for pods in planned_replicas(kind_of(job), job) if pods.count > 0]
    names = [pods.role for pods in planned]
    return GangDemand(
        roles=tuple(_role(pods, names, snapshot) for pods in planned),
        policy=options.policy,
        required_level=options.required_level,
        preferred_level=options.preferred_level,
        objective=options.objective,
    )


def demand_of(job: Object, snapshot: Snapshot, options: PlanOptions) -> Demand:
    """Return what the pods of *job*, as many alike to the first, request from the cluster in *snapshot*.

    Raises ``UsageError`` where the axes of *options* are not those of as many ranks as the job has, and ``DocumentError``
    for a job without pods to plan.
    """
    kind = kind_of(job)
    planned = planned_replicas(kind, job)
    if not planned:
        # The API server takes a job that lacks the role whose pods are planned; its operator does not.
        raise DocumentError(f"the job {cut(str(job['metadata']['name']))} has no pods that could be planned")
    first = next((pods for pods in planned if pods.count), planned[0])
    others = [pods for pods in kind.replicas(job) if not is_planned(kind, pods.role)]
    role = _role(first, [first.role], snapshot)
    workers = sum(pods.count for pods in planned)
    if options.parallel:
        # Frameworks run a rank for each GPU, whether mpirun starts it or a worker's own launcher does.
        slots = job["spec"].get("slotsPerWorker")
        check_ranks(options.parallel, workers, role.gpus or (slots if isinstance(slots, int) else 1))
    # v1alpha1 has one template: what its launcher requests is the operator's to decide, and nothing is set aside.
    launcher = others[0].pods if others else None
    return replace(
        role.demand,
        workers=workers,
        launcher=None if launcher is None else _requests(launcher),
        launcher_selector=((launcher or {}).get("spec") or {}).get("nodeSelector") or {},
        policy=options.policy,
        required_level=options.required_level,
        preferred_level=options.preferred_level,
        coalesce=options.coalesce,
        objective=options.objective,
        parallel=options.parallel,
    )


def _are_alike(roles: Sequence[Role]) -> bool:
    """Whether pods of *roles* ask for the same, and for no more than places."""
    first = roles[0] if roles else None
    return first is None or (
        all(replace(role, name=first.name, pods=first.pods) == first for role in roles)
        and not (first.serves or first.anywhere or first.slices)
        # One pod to a node is what a demand can ask for as well, of all pods together.
        and (first.spread is Spread.NONE or (first.spread is Spread.REQUIRED and len(roles) == 1))
    )


def _role(pods: Replicas, names: Sequence[str], snapshot: Snapshot) -> Role:
    """Return what *pods*, of a job that has the roles *names*, ask for."""
    spec = pods.pods.get("spec") or {}
    requests = _requests(pods.pods)
    gpu_resource = _gpu_resource(requests, snapshot)
    apart = _near_itself(spec, pods, "podAntiAffinity")
    return Role(
        name=pods.role,
        pods=pods.count,
        gpus=requests.get(gpu_resource, 0),
        requests={name: amount for name, amount in requests.items() if name != gpu_resource},
        gpu_resource=gpu_resource,
        one_per_node=_takes_host_port(spec),
        node_selector=spec.get("nodeSelector") or {},
        affinity=_required_affinity(spec),
        tolerations=tuple(_toleration(toleration) for toleration in spec.get("tolerations") or ()),
        containers=aligned_requests(spec),
        spread={_REQUIRED: Spread.REQUIRED, _PREFERRED: Spread.PREFERRED}.get(apart, Spread.NONE),
        slices=(Slice(pods.count, "node"),) if _near_itself(spec, pods, "podAffinity") == _REQUIRED else (),
        serves=next((role for role in pods.serves if role in names), ""),
        anywhere=pods.anywhere,
    )


def _near_itself(spec: Object, pods: Replicas, rule: str) -> str:
    """Return by which term of its affinity *rule* a pod is to be near pods of its own role, or apart from them.

    The terms for nodes alone count: what a plan makes of any wider domain is the fabric's. Empty where there is none.
    """
    metadata = pods.pods.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), **pods.labels}
    affinity = (spec.get("affinity") or {}).get(rule) or {}
    for strength in (_REQUIRED, _PREFERRED):
        for entry in affinity.get(strength) or ():
            term = entry.get("podAffinityTerm") or entry
            if term.get("topologyKey") == keys.HOSTNAME and _selects(term.get("labelSelector"), labels):
                return strength
    return ""


def _selects(selector: Object | None, labels: Mapping[str, str]) -> bool:
    """Whether a label *selector* matches a pod with *labels*; none matches no pod."""
    if selector is None:
        return False
    equal = all(labels.get(key) == value for key, value in (selector.get("matchLabels") or {}).items())
    return equal and all(term.holds(labels) for term in _requirements(selector.get("matchExpressions")))


def _requests(template: Object) -> Resources:
    """Return what kube-scheduler will reserve for a pod of *template*."""
    requests = pod_spec_requests(template.get("spec") or {})
    annotations = (template.get("metadata") or {}).get("annotations") or {}
    claimed = optional_number(annotations.get(keys.CLAIMED_GPUS))
    # Once a job was created its claimed GPUs are a number in an annotation, and no container requests them.
    return requests if claimed is None else {**requests, keys.DRA_GPU: claimed}


def _gpu_resource(requests: Resources, snapshot: Snapshot) -> str:
    """Return the resource by which a worker requests its GPUs, empty where it has none.

    Some node of the cluster offers its GPUs by it, or it is named as a GPU of a vendor that none has.
    """
    offered = {node.gpu_resource for node in snapshot.nodes}
    candidates = [name for name in requests if name in offered or name.endswith("/gpu")]
    return max(candidates, key=lambda name: requests[name], default="")


def _takes_host_port(spec: Object) -> bool:
    """Whether a pod of *spec* takes a port of its node, which two alike cannot: kube-scheduler's plugin NodePorts."""
    ports = [port for container in spec.get("containers") or () for port in container.get("ports") or ()]
    # In the node's network every port that a container declares is the node's.
    return any(port.get("hostPort") or spec.get("hostNetwork") for port in ports)


def _toleration(raw: Object) -> Toleration:
    return Toleration(
        key=raw.get("key") or "",
        operator=raw.get("operator") or "Equal",
        value=raw.get("value") or "",
        effect=raw.get("effect") or "",
    )


def _required_affinity(spec: Object) -> tuple[SelectorTerm, ...]:
    affinity: Mapping[str, list[Object]] = ((spec.get("affinity") or {}).get("nodeAffinity") or {}).get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    ) or {}
    # Only what is required decides where a pod can go; preferences merely rank the nodes.
    return tuple(
        SelectorTerm(
            expressions=_requirements(term.get("matchExpressions")),
            fields=_requirements(term.get("matchFields")),
        )
        for term in affinity.get("nodeSelectorTerms") or ()
    )


def _requirements(raw: list[Object] | None) -> tuple[Requirement, ...]:
    return tuple(
        Requirement(str(entry.get("key")), str(entry.get("operator")), tuple(entry.get("values") or ()))
        for entry in raw or ()
    )
