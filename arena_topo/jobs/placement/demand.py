"""What the planner is asked: the demand of a job of any kind, read from its pod templates."""

from collections.abc import Mapping

from arena_topo.jobs.placement.options import PlanOptions
from arena_topo.kinds.table import kind_of
from arena_topo.model import keys
from arena_topo.model.cluster.pod_requests import aligned_requests, pod_spec_requests
from arena_topo.model.cluster.scheduling import Requirement, SelectorTerm, Toleration
from arena_topo.model.cluster.snapshot import Snapshot
from arena_topo.model.job.kind import is_planned, planned_replicas
from arena_topo.model.notation.bounded_json import optional_number
from arena_topo.model.notation.quantity import Resources
from arena_topo.model.objects import Object
from arena_topo.model.plan.demand import Demand
from arena_topo.model.plan.parallelism import check_ranks


def demand_of(job: Object, snapshot: Snapshot, options: PlanOptions) -> Demand:
    """Return what the pods of *job* request from the cluster in *snapshot*.

    Raises ``UsageError`` where the axes of *options* are not those of as many ranks as the job has.
    """
    kind = kind_of(job)
    worker, *alike = planned_replicas(kind, job)
    others = [pods for pods in kind.replicas(job) if not is_planned(kind, pods.role)]
    spec = worker.template.get("spec") or {}
    requests = _requests(worker.template)
    gpu_resource = _gpu_resource(requests, snapshot)
    # v1alpha1 has one template: what its launcher requests is the operator's to decide, and nothing is set aside.
    gpus = requests.get(gpu_resource, 0)
    workers = worker.count + sum(pods.count for pods in alike)
    if options.parallel:
        # Frameworks run a rank for each GPU, whether mpirun starts it or a worker's own launcher does.
        slots = job["spec"].get("slotsPerWorker")
        check_ranks(options.parallel, workers, gpus or (slots if isinstance(slots, int) else 1))
    launcher = others[0].template if others else None
    return Demand(
        workers=workers,
        gpus=gpus,
        requests={name: amount for name, amount in requests.items() if name != gpu_resource},
        launcher=None if launcher is None else _requests(launcher),
        launcher_selector=((launcher or {}).get("spec") or {}).get("nodeSelector") or {},
        gpu_resource=gpu_resource,
        one_per_node=_takes_host_port(spec),
        node_selector=spec.get("nodeSelector") or {},
        affinity=_required_affinity(spec),
        tolerations=tuple(_toleration(toleration) for toleration in spec.get("tolerations") or ()),
        policy=options.policy,
        required_level=options.required_level,
        preferred_level=options.preferred_level,
        coalesce=options.coalesce,
        objective=options.objective,
        parallel=options.parallel,
        containers=aligned_requests(spec),
    )


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
