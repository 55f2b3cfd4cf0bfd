"""What messages call the pods of each kind of job."""

import pytest

from arena_topo.kinds.table import kind_of
from arena_topo.model.kind import chief_title, planned_noun
from tests.jobs.manifests import MANIFESTS

_TITLES = {
    "MPIJob.v2beta1": ("the launcher", "worker"),
    "MPIJob.v1": ("the launcher", "worker"),
    "MPIJob.v1alpha1": ("the launcher", "worker"),
    "PyTorchJob": ("the master", "pod"),
    "TFJob": ("worker 0", "pod"),
    "TrainJob": ("node 0", "pod"),
    "JobSet": ("the leader", "pod"),
    "Job": ("worker 0", "worker"),
}


@pytest.mark.parametrize("which", MANIFESTS)
def test_messages_name_what_the_kind_has(which: str) -> None:
    """The launcher of an MPIJob alone; of others the first pod by its role."""
    job = MANIFESTS[which]
    kind = kind_of(job)

    assert _TITLES[which] == (chief_title(kind, job), planned_noun(kind))


@pytest.mark.parametrize("which", MANIFESTS)
def test_a_job_without_pods_has_a_title_all_the_same(which: str) -> None:
    """Jobs of others may lack every role."""
    job = {**MANIFESTS[which], "spec": {}}

    assert chief_title(kind_of(job), job)
