"""The runtime of a TrainJob.

The pod template lies in it, and what of that decides a placement is written onto the job.
Later plans read only jobs, and most users cannot read runtimes of other namespaces. For example, of a runtime
whose pods tolerate a taint and request 4 CPUs, and a job that asks for 8 GPUs a node, the job gets the
toleration in its own patch, and the annotation ``arena-topo.dev/pod-requests:
{"cpu":"4","nvidia.com/gpu":"8"}``.
"""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from dataclasses import replace

from arena_topo.errors import Forbidden, NotFound, UsageError
from arena_topo.kinds.jobset import NODE
from arena_topo.kinds.trainjob import MANAGER, TRAINJOB, with_patch
from arena_topo.kube.resources import Resource
from arena_topo.kube.session import Session
from arena_topo.manifest.render import Manifest
from arena_topo.model.keys import POD_COUNT, POD_REQUESTS
from arena_topo.model.objects import TRAINING_RUNTIME, Object, section
from arena_topo.model.pods import pod_spec_requests
from arena_topo.model.text.documents import fitted
from arena_topo.model.text.quantity import quantities

_DEFAULT = "ClusterTrainingRuntime"
_RUNTIMES = {
    _DEFAULT: Resource(TRAINJOB.group, TRAINJOB.version, "clustertrainingruntimes", namespaced=False),
    "TrainingRuntime": Resource(TRAINJOB.group, TRAINJOB.version, "trainingruntimes"),
}
_PLACEMENT = ("nodeSelector", "affinity", "tolerations")
"""Parts of a pod that decide where it may go, and that a patch may change."""


def with_runtime(session: Session, manifest: Manifest) -> Manifest:
    """Return *manifest* with what the runtime of a TrainJob says of placements; other kinds as they are.

    Raises ``NotFound`` for a runtime that does not exist, ``UsageError`` for one whose pods cannot be
    planned.
    """
    if manifest.kind is not TRAINJOB:
        return manifest
    job = with_patch(deepcopy(manifest.job))
    reference = job["spec"].get("runtimeRef") or {}
    kind, name = str(reference.get("kind") or _DEFAULT), str(reference.get("name") or "")
    resource = _RUNTIMES.get(kind)
    if resource is None or not name:
        raise UsageError(
            "spec.runtimeRef must name a ClusterTrainingRuntime, or a TrainingRuntime of the job's namespace"
        )
    path = resource.path(session.namespace if resource.namespaced else "", name)
    try:
        runtime = fitted(session.get(path), TRAINING_RUNTIME)
    except Forbidden:
        note = f"you cannot read the {kind} {name}: the job is planned by what it says itself"
        return replace(manifest, job=job, notes=(*manifest.notes, note))
    except NotFound as error:
        raise NotFound(
            f"the {kind} {name} does not exist",
            hint=f"kubectl get {resource.plural} lists what there is",
            status=404,
        ) from error
    _write_down(job, runtime, f"{kind} {name}")
    return replace(manifest, job=job)


def _write_down(job: Object, runtime: Object, name: str) -> None:
    """Add to *job*, which has our patch, what *runtime* says."""
    policy = runtime["spec"].get("mlPolicy") or {}
    if policy.get("mpi") is not None:
        raise UsageError(
            f"the {name} runs MPI with a launcher of its own, which cannot be placed",
            hint="use arena-topo submit mpi, or submit the job with kubectl",
        )
    pod = _pod_of(runtime)
    if pod is None:
        raise UsageError(
            f"the {name} has no replicated job {NODE!r} with a container {NODE!r}: its pods cannot be planned"
        )
    for patch in _patches_of_others(job):
        pod = {**pod, **_combined(pod, patch)}
    trainer = job["spec"].get("trainer") or {}
    pod = _with_resources(pod, trainer.get("resourcesPerNode") or {})
    (replicas,) = TRAINJOB.replicas(job)
    own = section(replicas.template, "spec")
    own.update(_combined(pod, own))
    annotations = section(job["metadata"], "annotations")
    requests = pod_spec_requests(pod)
    # What the job says itself need not be said twice.
    if requests != pod_spec_requests(replicas.pods["spec"]):
        annotations[POD_REQUESTS] = json.dumps(quantities(requests), separators=(",", ":"), sort_keys=True)
    if trainer.get("numNodes") is None and (nodes := policy.get("numNodes")):
        annotations[POD_COUNT] = str(nodes)
    if not annotations:
        del job["metadata"]["annotations"]


def _pod_of(runtime: Object) -> Object | None:
    template = runtime["spec"].get("template") or {}
    for role in (template.get("spec") or {}).get("replicatedJobs") or ():
        pod: Object = (((role.get("template") or {}).get("spec") or {}).get("template") or {}).get(
            "spec"
        ) or {}
        names = [container.get("name") for container in pod.get("containers") or ()]
        if role.get("name") == NODE and NODE in names:
            return pod
    return None


def _patches_of_others(job: Object) -> Iterator[Object]:
    """Yield the patches of other managers for the pods that train, in the order Trainer applies them."""
    for patch in job["spec"].get("runtimePatches") or ():
        spec = ((patch.get("trainingRuntimeSpec") or {}).get("template") or {}).get("spec") or {}
        for role in spec.get("replicatedJobs") or ():
            if patch.get("manager") != MANAGER and role.get("name") == NODE:
                template = ((role.get("template") or {}).get("spec") or {}).get("template") or {}
                yield template.get("spec") or {}


def _combined(pod: Object, patch: Object) -> Object:
    """Return where pods of *pod* with *patch* may go.

    Selectors add up, and the rest of a patch stands for the runtime's.
    """
    found = {key: patch.get(key) or pod.get(key) for key in _PLACEMENT}
    found["nodeSelector"] = {**(pod.get("nodeSelector") or {}), **(patch.get("nodeSelector") or {})}
    return {key: value for key, value in found.items() if value}


def _with_resources(pod: Object, asked: Object) -> Object:
    """Return *pod* with what the job asks for a node, in its container that trains.

    Each resource replaces the runtime's.
    """
    containers = [
        {**container, "resources": _merged(container.get("resources") or {}, asked)}
        if container.get("name") == NODE
        else container
        for container in pod["containers"]
    ]
    return {**pod, "containers": containers}


def _merged(base: Mapping[str, Object], asked: Mapping[str, Object]) -> Object:
    return {key: {**(base.get(key) or {}), **(asked.get(key) or {})} for key in ("requests", "limits")}
