"""The runtime of a TrainJob, which the pod template lies in.

What of it decides a placement is written onto the job: later plans read only jobs, and most users cannot read
runtimes of other namespaces.
"""

from copy import deepcopy
from dataclasses import replace

from arena_topo.errors import Forbidden, NotFound, UsageError
from arena_topo.kinds.trainjob import TRAINJOB, with_patch, write_down_runtime
from arena_topo.kube.resources import Resource
from arena_topo.kube.session import Session
from arena_topo.manifest.render import Manifest
from arena_topo.model.objects import TRAINING_RUNTIME
from arena_topo.model.text.documents import fitted

_DEFAULT = "ClusterTrainingRuntime"
_RUNTIMES = {
    _DEFAULT: Resource(TRAINJOB.group, TRAINJOB.version, "clustertrainingruntimes", namespaced=False),
    "TrainingRuntime": Resource(TRAINJOB.group, TRAINJOB.version, "trainingruntimes"),
}


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
    write_down_runtime(job, runtime, f"{kind} {name}")
    return replace(manifest, job=job)
