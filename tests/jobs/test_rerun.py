"""A job is found again in whatever was saved of it, or one clear error says why not."""

from dataclasses import replace
from typing import Any

import pytest

from arena_topo.errors import DocumentError, NotFound, UsageError
from arena_topo.jobs.options import PlaceOptions
from arena_topo.jobs.prepare import prepare
from arena_topo.jobs.sources import FromEarlierJob, source_from_cluster, source_from_documents
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.render import RenderContext, render
from arena_topo.model.objects import Object
from tests.fakes import session
from tests.jobs.servers import FILES, JOB, Server
from tests.objects import mpijob

SAVED = mpijob("job")
CONFIG: Object = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "job-files"},
    "data": {"file-0": "a"},
}


@pytest.mark.parametrize(
    "documents",
    [
        [SAVED],
        [SAVED, CONFIG],
        [{"apiVersion": "v1", "kind": "List", "items": [CONFIG, SAVED]}],
        [{"name": "job", "status": "SUCCEEDED", "manifest": SAVED}],
    ],
    ids=["kubectl", "documents", "list", "get"],
)
def test_a_job_is_found_in_what_was_saved_of_it(documents: list[object]) -> None:
    """By kubectl, by submit, or by get."""
    assert SAVED == source_from_documents(documents, "f").job


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([], "f has 0 MPIJobs, and rerun takes one"),
        ([SAVED, SAVED], "f has 2 MPIJobs"),
        (["text"], "f holds something that is not a Kubernetes object"),
        ([{"name": "job", "status": "SUCCEEDED"}], "f has 0 MPIJobs"),
        ([{**SAVED, "metadata": {}}], "f: the MPIJob has no name"),
        ([{**SAVED, "spec": None}], "f: the MPIJob has no spec"),
        ([{**SAVED, "apiVersion": "kubeflow.org/v9"}], "unknown version v9"),
    ],
)
def test_anything_else_is_one_clear_error(documents: list[object], message: str) -> None:
    """It names the file."""
    with pytest.raises(DocumentError, match=message):
        source_from_documents(documents, "f")


def again(source: FromEarlierJob, name: str = "", server: Server | None = None) -> Any:
    """Return the job that would be created."""
    opened, _ = session(server or Server())
    return prepare(opened, replace(source, name=name).request(opened, PlaceOptions())).manifest


def test_files_that_were_saved_with_the_job_are_created_again() -> None:
    """Under the new job's name."""
    job = render(replace(JOB, pod=FILES), RenderContext()).job
    manifest = again(FromEarlierJob(job=job, others=(CONFIG,)), "next")
    (files,) = manifest.companions

    assert ("next", "next-files", {"file-0": "a"}) == (
        manifest.job["metadata"]["name"],
        files["metadata"]["name"],
        files["data"],
    )


def test_files_that_are_gone_are_named() -> None:
    """Without them the job would never start."""
    job = render(replace(JOB, pod=FILES), RenderContext()).job
    with pytest.raises(NotFound, match="its ConfigMap job-files does not exist any more"):
        again(FromEarlierJob(job=job))


def test_a_job_that_is_gone_is_found_in_a_file_alone() -> None:
    """The hint says which files will do."""
    opened, _ = session(Server())
    with pytest.raises(NotFound) as caught:
        source_from_cluster(opened, "job")
    assert "arena-topo rerun -f FILE" in caught.value.hint


@pytest.mark.parametrize(
    ("name", "server", "message"),
    [
        ("A", Server(), "the job name 'A' must consist of lower case"),
        ("", Server(ApiVersion.V1), "an MPIJob of v2beta1, and this cluster serves v1"),
    ],
)
def test_what_cannot_be_is_refused(name: str, server: Server, message: str) -> None:
    """Before anything is created."""
    with pytest.raises(UsageError, match=message):
        again(FromEarlierJob(job=SAVED), name, server)
