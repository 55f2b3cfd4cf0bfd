"""A job is created in order with what belongs to it, and nothing is left half created."""

from dataclasses import replace

import pytest

from arena_topo.errors import ArenaTopoError, Conflict, Forbidden, NotFound
from arena_topo.jobs.create import create
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.render import Manifest, RenderContext, render
from arena_topo.model.objects import Object
from tests.fakes import Answer, refusal, session
from tests.jobs.servers import FILES, JOB, Server

PLAIN = render(JOB, RenderContext())
WITH_FILE = render(replace(JOB, pod=FILES), RenderContext())


def created(
    server: Server, manifest: Manifest = PLAIN, *, dry_run: bool = False
) -> tuple[tuple[Object, ...], list[str]]:
    """Return what was created, and the calls as METHOD plural."""
    opened, transport = session(server)
    objects = create(opened, manifest, dry_run=dry_run).objects
    return objects, [
        f"{call.method} {call.path.rsplit('/', 1)[-1]}{' dry' if 'dryRun' in call.query else ''}"
        for call in transport.calls
    ]


@pytest.mark.parametrize("version", ApiVersion)
def test_the_job_is_created_in_its_version(version: ApiVersion) -> None:
    """In one call, and Arena's record of it in another."""
    objects, calls = created(Server(version), render(JOB, RenderContext(version)))

    assert f"kubeflow.org/{version.value}" == objects[0]["apiVersion"]
    assert ["POST mpijobs", "POST configmaps"] == calls


def test_fields_that_the_server_does_not_know_are_errors() -> None:
    """The server would drop them in silence otherwise."""
    opened, transport = session(Server())
    create(opened, PLAIN)

    assert "Strict" == transport.calls[-1].query["fieldValidation"]


def test_a_name_that_is_taken_meanwhile_is_told_too() -> None:
    """The server decides."""
    with pytest.raises(Conflict, match="the job job already exists, please delete it first"):
        created(Server(post_mpijobs=refusal(409, "AlreadyExists", "exists")))


def test_a_namespace_that_does_not_exist_is_told() -> None:
    """With how to make it."""
    with pytest.raises(NotFound, match="namespace default does not exist") as caught:
        created(Server(post_mpijobs=refusal(404, "NotFound", "", name="default", kind="namespaces")))
    assert "kubectl create namespace default" in caught.value.hint


def test_files_are_tried_out_created_after_the_job_and_owned_by_it() -> None:
    """Killed in between, the job is there and can be deleted with all that is its."""
    objects, calls = created(Server(), WITH_FILE)

    assert ["POST configmaps dry", "POST mpijobs", "POST configmaps", "POST configmaps"] == calls
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "job", "uid": "u1"}
    assert [owner] == objects[1]["metadata"]["ownerReferences"]


def test_what_was_created_says_what_it_is() -> None:
    """Also where a server in between answers without its kind."""
    untyped = Answer(body={"metadata": {"name": "job-files", "namespace": "default", "uid": "u2"}})
    objects, _ = created(Server(post_configmaps=untyped), WITH_FILE)

    assert [("kubeflow.org/v2beta1", "MPIJob"), ("v1", "ConfigMap")] == [
        (each["apiVersion"], each["kind"]) for each in objects
    ]


def test_files_that_the_server_refuses_stop_the_job() -> None:
    """Before it exists."""
    opened, transport = session(Server(post_configmaps_dry=refusal(403, "Forbidden", "no")))
    with pytest.raises(Forbidden):
        create(opened, WITH_FILE)
    assert "POST" not in [call.method for call in transport.calls if call.path.endswith("/mpijobs")]


def test_files_that_fail_late_take_the_job_with_them() -> None:
    """The very job that was created, by its uid."""
    opened, transport = session(Server(post_configmaps=refusal(500, "InternalError", "etcd")))
    with pytest.raises(ArenaTopoError, match="etcd"):
        create(opened, WITH_FILE)
    last = transport.calls[-1]
    assert ("DELETE", {"uid": "u1"}) == (last.method, last.body["preconditions"])


def test_a_server_side_dry_run_creates_nothing() -> None:
    """Every creation is one."""
    opened, transport = session(Server())
    create(opened, WITH_FILE, dry_run=True)

    assert {"All"} == {call.query.get("dryRun", "") for call in transport.calls if call.method == "POST"}
