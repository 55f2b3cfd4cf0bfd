"""The pod templates inside an MPIJob of any version."""

from collections.abc import Iterator, Mapping

from arena_topo.errors import DocumentError
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.objects import Object

WORKER, LAUNCHER = "Worker", "Launcher"


def version_of(job: Object) -> ApiVersion:
    """Return the version of the MPIJob *job*. Raises ``DocumentError`` when it is something else."""
    group, _, version = str(job.get("apiVersion", "")).partition("/")
    if group != "kubeflow.org" or job.get("kind") != "MPIJob":
        raise DocumentError(
            f"the template renders a {job.get('kind')} of {job.get('apiVersion')}, not an MPIJob",
            hint="the first object of a template must be kubeflow.org/v2beta1, v1 or v1alpha1 MPIJob",
        )
    try:
        return ApiVersion(version)
    except ValueError as error:
        raise DocumentError(f"the template renders an MPIJob of {version}, which is not known") from error


def templates(job: Object) -> Mapping[str, Object]:
    """Return the pod template of each role; v1alpha1 has one for both, called the worker's."""
    spec = job["spec"]
    try:
        if version_of(job) is ApiVersion.V1ALPHA1:
            return {WORKER: spec["template"]}
        return {role: spec["mpiReplicaSpecs"][role]["template"] for role in (WORKER, LAUNCHER)}
    except (KeyError, TypeError) as error:
        raise DocumentError(
            "the template renders an MPIJob without a pod template for launcher and workers",
            hint="compare it with the packaged one: arena-topo submit mpi --dry-run=client -o yaml",
        ) from error


def workers_of(job: Object) -> int:
    """Return the number of workers."""
    spec = job["spec"]
    if version_of(job) is ApiVersion.V1ALPHA1:
        return int(spec.get("replicas") or 0)
    return int(spec["mpiReplicaSpecs"][WORKER].get("replicas") or 0)


def containers(template: Object) -> Iterator[Object]:
    """Yield the containers of a pod template."""
    yield from (template.get("spec") or {}).get("containers") or ()
