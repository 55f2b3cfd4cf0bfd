"""What is read of a cluster before a submit, in as few calls as that takes."""

from dataclasses import replace

import pytest

from arena_topo.errors import Conflict, NotFound, UsageError
from arena_topo.jobs.options import PlaceOptions
from arena_topo.jobs.prepare import TargetCluster, look
from arena_topo.jobs.sources import JobRequest
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.model.job import JobSpec, PodOptions
from tests.fakes import Answer, refusal, session, unserved
from tests.jobs.servers import JOB, Server
from tests.objects import mpijob


def seen(server: Server, job: JobSpec = JOB) -> tuple[TargetCluster, list[str]]:
    """Return the cluster, and the calls as METHOD plural."""
    opened, transport = session(server)
    cluster = look(opened, JobRequest(job=job, place=PlaceOptions()))
    return cluster, [f"{call.method} {call.path.rsplit('/', 1)[-1]}" for call in transport.calls]


@pytest.mark.parametrize("version", ApiVersion)
def test_the_served_version_is_found_by_looking_for_the_name(version: ApiVersion) -> None:
    """A plain job needs to know nothing else but whether the name is one of a job of another kind."""
    cluster, calls = seen(Server(version))

    assert (version, None) == (cluster.context.kind, cluster.facts)
    assert [*(["GET job"] * (1 + list(ApiVersion).index(version))), "GET apis"] == calls


def test_a_cluster_without_mpijobs_is_told() -> None:
    """With what to install."""
    opened, _ = session(lambda _: unserved())
    with pytest.raises(NotFound, match="this cluster has no MPIJob resource") as caught:
        look(opened, JobRequest(job=JOB, place=PlaceOptions()))
    assert "MPI operator" in caught.value.hint


def test_a_taken_name_is_told_before_anything_is_created() -> None:
    """In Arena's words, as a sentence."""
    opened, transport = session(lambda _: Answer(body=mpijob("job")))
    with pytest.raises(Conflict, match="the job job already exists, please delete it first"):
        look(opened, JobRequest(job=JOB, place=PlaceOptions()))
    assert ["GET"] == [call.method for call in transport.calls]


def test_a_priority_class_that_does_not_exist_is_told() -> None:
    """Pods that name it would be refused, one by one and out of sight."""
    with pytest.raises(UsageError, match="the priority high doesn't exist"):
        seen(Server(), replace(JOB, pod=PodOptions(priority="high")))


def test_who_may_not_look_at_priority_classes_may_submit() -> None:
    """The check is a courtesy."""
    server = Server(get_priorityclasses=refusal(403, "Forbidden", "no"))

    _, calls = seen(server, replace(JOB, pod=PodOptions(priority="high")))
    assert ["GET high", "GET job", "GET apis"] == calls


@pytest.mark.parametrize(
    ("server", "resource"),
    [
        (Server(vendor=True), "aliyun.com/gpu"),
        (Server(), "nvidia.com/gpu"),
        (Server(get_nodes=refusal(403, "Forbidden", "no")), "aliyun.com/gpu"),
    ],
    ids=["vendor's nodes", "other nodes", "may not look"],
)
def test_topology_asks_for_the_resource_that_the_nodes_offer(server: Server, resource: str) -> None:
    """The vendor's where a node is labelled for it, the usual one elsewhere."""
    cluster, _ = seen(server, replace(JOB, topology=True))

    assert resource == cluster.context.gpu_resource


def test_the_user_may_choose_the_version() -> None:
    """Over the one that is served."""
    opened, _ = session(Server())
    cluster = look(opened, JobRequest(job=JOB, place=PlaceOptions(), version=ApiVersion.V1))

    assert ApiVersion.V1 is cluster.context.kind
