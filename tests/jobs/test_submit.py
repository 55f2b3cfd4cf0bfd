"""The line of a submit: each step once, reads first, writes last."""

from dataclasses import replace
from pathlib import Path

import pytest

from arena_topo.errors import ArenaTopoError
from arena_topo.jobs.options import PlaceOptions, SubmitOptions
from arena_topo.jobs.submit import prepare, prepare_offline
from arena_topo.kinds.mpijob import ApiVersion
from tests.fakes import session
from tests.jobs.servers import JOB, Server


def test_without_a_cluster_the_job_is_as_arena_renders_it() -> None:
    """In the newest version, with the vendor's resource."""
    job = prepare_offline(replace(JOB, topology=True), SubmitOptions()).manifest.job
    container = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]["containers"][0]

    assert ("kubeflow.org/v2beta1", {"aliyun.com/gpu": "1"}) == (
        job["apiVersion"],
        container["resources"]["limits"],
    )


def test_the_user_may_choose_the_version() -> None:
    """Over today's."""
    ready = prepare_offline(JOB, SubmitOptions(version=ApiVersion.V1))

    assert ApiVersion.V1 is ready.manifest.kind
    assert "kubeflow.org/v1" == ready.manifest.job["apiVersion"]


def test_a_template_must_render_an_mpijob(tmp_path: Path) -> None:
    """Nothing else is created in its name."""
    file = tmp_path / "t.j2"
    file.write_text('apiVersion: "v1"\nkind: "Secret"\nmetadata: {name: "x", namespace: "default"}\n')
    opened, transport = session(Server())
    with pytest.raises(ArenaTopoError, match="the template renders a Secret of v1, not an MPIJob"):
        prepare(opened, JOB, SubmitOptions(template=str(file)), PlaceOptions())
    assert {"GET"} == {call.method for call in transport.calls}


def test_a_gang_that_nothing_keeps_is_told() -> None:
    """The job is submitted all the same, as Arena would."""
    opened, _ = session(Server())
    ready = prepare(opened, replace(JOB, gang=True), SubmitOptions(), PlaceOptions())

    assert None is ready.enforcement
    assert ready.warnings[0].startswith("no gang scheduler on this cluster can honour --gang")
