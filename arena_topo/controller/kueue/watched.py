"""What is watched of Kueue, in the versions that the cluster serves."""

from dataclasses import dataclass

from arena_topo.cluster.capabilities.queues import GROUP, VERSIONS
from arena_topo.controller.kept import read_of_other, read_of_workload
from arena_topo.jobs.reading.watch import Collection
from arena_topo.kube.discovery import preferred_version, served_versions
from arena_topo.kube.resources import Resource
from arena_topo.kube.session import Session
from arena_topo.model.job.object_shapes import OBJECT, WORKLOAD
from arena_topo.model.keys import OUR_DOMAIN

WORKLOADS, CHECKS, FLAVORS = "workloads", "admissionchecks", "resourceflavors"
PARAMETERS = "plannerparameters"
_PARAMETERS_VERSION = "v1alpha1"


@dataclass(frozen=True, slots=True)
class KueueApi:
    """The resources of Kueue that are written to."""

    workloads: Resource
    checks: Resource


def kueue_api(session: Session) -> KueueApi | None:
    """Return the resources in the version that is served, None where the cluster has no Kueue that we know."""
    version = preferred_version(served_versions(session), GROUP, VERSIONS)
    if not version:
        return None
    return KueueApi(Resource(GROUP, version, WORKLOADS), Resource(GROUP, version, CHECKS, namespaced=False))


def kueue_collections(session: Session, api: KueueApi) -> dict[str, Collection]:
    """Return what is watched beside the cluster, by a word for each."""
    flavors = Resource(GROUP, api.workloads.version, FLAVORS, namespaced=False)
    found = {
        WORKLOADS: Collection(api.workloads.path(), WORKLOAD, read=read_of_workload),
        CHECKS: Collection(api.checks.path(), OBJECT, read=read_of_other),
        FLAVORS: Collection(flavors.path(), OBJECT, read=read_of_other),
    }
    served = served_versions(session)
    if f"{OUR_DOMAIN}/{_PARAMETERS_VERSION}" in served:
        parameters = Resource(OUR_DOMAIN, _PARAMETERS_VERSION, PARAMETERS, namespaced=False)
        found[PARAMETERS] = Collection(parameters.path(), OBJECT, read=read_of_other)
    return found
