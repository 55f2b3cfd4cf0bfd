"""Code is fetched by Arena's init container into the job's working directory."""

from dataclasses import replace

import pytest

from arena_topo.manifest import pods
from arena_topo.manifest.pods import launcher, worker
from arena_topo.model.job import CodeSync, Compute, JobSpec, PodOptions

GIT = CodeSync("git", "https://git.example.com/ml/vgg16.git", "git-sync:1")
JOB = JobSpec(
    name="job",
    namespace="default",
    image="i",
    command=("c",),
    compute=Compute(cpu="2"),
    pod=PodOptions(code=GIT, working_dir="/work", pull_policy="Never"),
)


@pytest.mark.parametrize(
    ("source", "name"),
    [
        ("https://git.example.com/ml/vgg16.git", "vgg16"),
        ("https://git.example.com/ml/vgg16/", "vgg16"),
        ("git@git.example.com:ml/vgg16.git", "vgg16"),
        ("vgg16", "vgg16"),
    ],
)
def test_a_repository_is_called_as_its_last_part(source: str, name: str) -> None:
    """Its code is in a folder of that name."""
    assert name == pods.project_name(source)


def test_git_is_told_what_and_where() -> None:
    """By variables that every version of git-sync reads, after the job's own."""
    container = pods.init_container(GIT, pull_policy="Never", env=[{"name": "A", "value": "b"}], resources={})

    assert {
        "A": "b",
        "GIT_SYNC_REPO": GIT.source,
        "GIT_SYNC_DEST": "vgg16",
        "GIT_SYNC_ROOT": "/code",
        "GIT_SYNC_ONE_TIME": "true",
    } == {item["name"]: item["value"] for item in container["env"]}
    assert "resources" not in container


def test_rsync_is_a_command() -> None:
    """No shell reads the source."""
    code = CodeSync("rsync", "10.0.0.1::backup/$(data)", "rsync:1")
    pod = worker(replace(JOB, pod=replace(JOB.pod, code=code)), gpu_resource="g", host_network=False)

    assert ["rsync", "-avP", "10.0.0.1::backup/$$(data)", "/code"] == pod.init_containers[0]["command"]


@pytest.mark.parametrize(("working_dir", "path"), [("/work", "/work/code"), ("/", "/code"), ("", "/code")])
def test_the_code_is_in_the_working_directory(working_dir: str, path: str) -> None:
    """Of launcher and workers."""
    job = replace(JOB, pod=replace(JOB.pod, working_dir=working_dir))
    for pod in (launcher(job, host_network=False), worker(job, gpu_resource="g", host_network=False)):
        assert {"name": "code-sync", "mountPath": path} in pod.mounts
        assert {"name": "code-sync", "emptyDir": {}} in pod.volumes


def test_the_init_container_costs_no_more_than_the_pod() -> None:
    """It requests what the job's own container does, without devices."""
    pod = worker(replace(JOB, gpus=1), gpu_resource="nvidia.com/gpu", host_network=False)

    assert {"cpu": "2"} == pod.init_containers[0]["resources"]["limits"]
