"""Submitting checks first, creates in order, and leaves nothing half made."""

from dataclasses import replace
from typing import Any

import pytest

from arena_topo.errors import ArenaTopoError, Conflict, Forbidden, NotFound, UsageError
from arena_topo.jobs.submit.create import SubmitOptions, create, offline, prepare
from arena_topo.model.job.job_spec import ConfigFile, JobSpec, PodOptions
from arena_topo.model.job.mpijob import ApiVersion
from tests.fakes import Answer, Call, missing, refusal, session, unserved
from tests.objects import mpijob

JOB = JobSpec(name="job", namespace="default", image="i", command=("c",), workers=2, gpus=1)
WITH_FILE = replace(JOB, pod=PodOptions(files=(ConfigFile("/a", b"a"),)))


class Server:
    """Serves MPIJobs of one version; *refuse* maps "METHOD plural" to an answer."""

    def __init__(
        self, version: ApiVersion = ApiVersion.V2BETA1, *, vendor: bool = False, **refuse: Answer
    ) -> None:
        self.version, self.vendor, self.refuse = version, vendor, refuse

    def __call__(self, call: Call) -> Answer:
        """Answer one call."""
        plural = next(
            part for part in ("mpijobs", "configmaps", "priorityclasses", "nodes") if f"/{part}" in call.path
        )
        dry = "_dry" if "dryRun" in call.query else ""
        if answer := self.refuse.get(f"{call.method.lower()}_{plural}{dry}"):
            return answer
        if plural == "mpijobs" and f"/{self.version.value}/" not in call.path:
            return unserved()
        if plural == "nodes":
            return Answer(body={"items": [{}] if self.vendor else []})
        if call.method == "GET":
            return missing("job")
        body = dict(call.body or {})
        body["metadata"] = {**body.get("metadata", {}), "uid": "u1"}
        return Answer(body=body)


def submitted(
    server: Server, job: JobSpec = JOB, options: SubmitOptions | None = None
) -> tuple[Any, list[str]]:
    """Return what was made, and the calls as METHOD plural."""
    opened, transport = session(server)
    plan = prepare(opened, job, options or SubmitOptions())
    made = create(opened, plan)
    return made, [
        f"{call.method} {call.path.rsplit('/', 1)[-1]}{' dry' if 'dryRun' in call.query else ''}"
        for call in transport.calls
    ]


@pytest.mark.parametrize("version", ApiVersion)
def test_the_job_is_made_in_the_version_that_is_served(version: ApiVersion) -> None:
    """Found out by looking for the name."""
    made, calls = submitted(Server(version))

    assert f"kubeflow.org/{version.value}" == made[0]["apiVersion"]
    assert ["GET job"] * (1 + list(ApiVersion).index(version)) + ["POST mpijobs"] == calls


def test_fields_that_the_server_does_not_know_are_errors() -> None:
    """The server would drop them in silence otherwise."""
    opened, transport = session(Server())
    create(opened, prepare(opened, JOB, SubmitOptions()))

    assert "Strict" == transport.calls[-1].query["fieldValidation"]


def test_a_cluster_without_mpijobs_is_told() -> None:
    """With what to install."""
    opened, _ = session(lambda _: unserved())
    with pytest.raises(NotFound, match="this cluster has no MPIJob resource") as caught:
        prepare(opened, JOB, SubmitOptions())
    assert "MPI operator" in caught.value.hint


def test_a_taken_name_is_told_before_anything_is_made() -> None:
    """In Arena's words."""
    opened, transport = session(lambda _: Answer(body=mpijob("job")))
    with pytest.raises(Conflict, match="the job job is already exist, please delete it first"):
        prepare(opened, JOB, SubmitOptions())
    assert ["GET"] == [call.method for call in transport.calls]


def test_a_name_that_is_taken_meanwhile_is_told_too() -> None:
    """The server decides."""
    with pytest.raises(Conflict, match="is already exist"):
        submitted(Server(post_mpijobs=refusal(409, "AlreadyExists", "exists")))


def test_a_namespace_that_does_not_exist_is_told() -> None:
    """With how to make it."""
    with pytest.raises(NotFound, match="namespace default does not exist") as caught:
        submitted(Server(post_mpijobs=refusal(404, "NotFound", "", name="default", kind="namespaces")))
    assert "kubectl create namespace default" in caught.value.hint


def test_files_are_tried_out_made_after_the_job_and_owned_by_it() -> None:
    """Killed in between, the job is there and can be deleted with all that is its."""
    made, calls = submitted(Server(), WITH_FILE)

    assert ["GET job", "POST configmaps dry", "POST mpijobs", "POST configmaps"] == calls
    owner = {"apiVersion": "kubeflow.org/v2beta1", "kind": "MPIJob", "name": "job", "uid": "u1"}
    assert [owner] == made[1]["metadata"]["ownerReferences"]


def test_files_that_the_server_refuses_stop_the_job() -> None:
    """Before it exists."""
    opened, transport = session(Server(post_configmaps_dry=refusal(403, "Forbidden", "no")))
    plan = prepare(opened, WITH_FILE, SubmitOptions())
    with pytest.raises(Forbidden):
        create(opened, plan)
    assert "POST" not in [call.method for call in transport.calls if call.path.endswith("/mpijobs")]


def test_files_that_fail_late_take_the_job_with_them() -> None:
    """The very job that was made, by its uid."""
    opened, transport = session(Server(post_configmaps=refusal(500, "InternalError", "etcd")))
    plan = prepare(opened, WITH_FILE, SubmitOptions())
    with pytest.raises(ArenaTopoError, match="etcd"):
        create(opened, plan)
    last = transport.calls[-1]
    assert ("DELETE", {"uid": "u1"}) == (last.method, last.body["preconditions"])


def test_a_priority_class_that_does_not_exist_is_told() -> None:
    """Pods that name it would be refused, one by one and out of sight."""
    with pytest.raises(UsageError, match="the priority high doesn't exist"):
        submitted(Server(), replace(JOB, pod=PodOptions(priority="high")))


def test_who_may_not_look_at_priority_classes_may_submit() -> None:
    """The check is a courtesy."""
    server = Server(get_priorityclasses=refusal(403, "Forbidden", "no"))

    assert submitted(server, replace(JOB, pod=PodOptions(priority="high")))[0]


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
    made, _ = submitted(server, replace(JOB, topology=True))
    container = made[0]["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]

    assert {resource: "1"} == container["resources"]["limits"]


def test_without_a_cluster_the_job_is_as_arena_renders_it() -> None:
    """In the newest version, with the vendor's resource."""
    job = offline(replace(JOB, topology=True), SubmitOptions()).job
    container = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]

    assert ("kubeflow.org/v2beta1", {"aliyun.com/gpu": "1"}) == (
        job["apiVersion"],
        container["resources"]["limits"],
    )


def test_the_user_may_choose_the_version() -> None:
    """Over the one that is served."""
    assert "kubeflow.org/v1" == offline(JOB, SubmitOptions(version=ApiVersion.V1)).job["apiVersion"]


def test_a_server_side_dry_run_makes_nothing() -> None:
    """Every creation is one."""
    opened, transport = session(Server())
    create(opened, prepare(opened, WITH_FILE, SubmitOptions()), dry_run=True)

    assert {"All"} == {call.query.get("dryRun", "") for call in transport.calls if call.method == "POST"}


def test_a_template_must_render_an_mpijob(tmp_path: Any) -> None:
    """Nothing else is created in its name."""
    file = tmp_path / "t.j2"
    file.write_text('apiVersion: "v1"\nkind: "Secret"\nmetadata: {name: "x", namespace: "default"}\n')
    with pytest.raises(ArenaTopoError, match="the template renders a Secret of v1, not an MPIJob"):
        submitted(Server(), options=SubmitOptions(template=str(file)))
