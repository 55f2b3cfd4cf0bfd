"""Gangs of a small job in every version, as the tests of back-ends ask for them."""

from dataclasses import replace
from typing import Any

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.gang import gang_of
from arena_topo.model.gang import Gang
from tests.objects import mpijob

V2, V1, ALPHA = ApiVersion.V2BETA1, ApiVersion.V1, ApiVersion.V1ALPHA1


def job_of_four_workers(version: ApiVersion = V2, *, waits: bool = True) -> dict[str, Any]:
    """Return an MPIJob of four workers; under v2beta1 its launcher waits for them unless told otherwise."""
    mpi_job = mpijob("job", version)
    if version is V2 and waits:
        mpi_job["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    return mpi_job


def gang(version: ApiVersion = V2, *, waits: bool = True, **known: Any) -> Gang:
    """Return the gang of that job, with what is *known* of the cluster and asked by the user."""
    return replace(gang_of(job_of_four_workers(version, waits=waits)), **known)
