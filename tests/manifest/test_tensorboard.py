"""TensorBoard runs where the logs are, and reads them from where the job writes them."""

from dataclasses import replace

import pytest

from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.manifest.pods import companions, worker
from arena_topo.model.job import Claim, JobSpec, PodOptions, TensorBoard

JOB = JobSpec(
    name="job",
    namespace="ml",
    image="i",
    command=("c",),
    pod=PodOptions(claims=(Claim("data", "/data"),), pull_secrets=("s",), priority="high"),
    tensorboard=TensorBoard("t:1", "/training_logs"),
)


def writing_to(logs: str) -> JobSpec:
    """Return the job with its logs in *logs*."""
    return replace(JOB, tensorboard=TensorBoard("t:1", logs))


def mounted(job: JobSpec) -> tuple[bool, bool]:
    """Return whether a worker of *job* has the folder for the logs, and mounts it."""
    pod = worker(job, gpu_resource="nvidia.com/gpu", host_network=False)
    volume, mount = ({item["name"] for item in items} for items in (pod.volumes, pod.mounts))
    return "training-logs-volume" in volume, "training-logs-volume" in mount


@pytest.mark.parametrize(
    ("logs", "local"),
    [
        ("/training_logs", True),
        ("/data", False),
        ("/data/logs/", False),
        ("/data/../logs", True),
        ("/database", True),
        ("hdfs://h/logs", False),
    ],
)
def test_logs_outside_of_a_claim_are_in_a_folder_of_the_node(logs: str, local: bool) -> None:
    """The job mounts it too; no other job has it."""
    job = writing_to(logs)
    pod = companions(job, ApiVersion.V2BETA1)[1]["spec"]["template"]["spec"]
    command = pod["containers"][0]["command"]

    assert (local, local) == mounted(job)
    assert ("/output/training_logs" if local else logs) == command[command.index("--logdir") + 1]
    folder = {"path": "/arena_logs/ml/job", "type": "DirectoryOrCreate"}
    claim = {"claimName": "data"}
    assert [folder if local else claim] == [
        volume.get("hostPath") or volume["persistentVolumeClaim"] for volume in pod["volumes"]
    ]


@pytest.mark.parametrize(
    ("version", "label"),
    [
        (ApiVersion.V2BETA1, ("training.kubeflow.org/replica-index", "0")),
        (ApiVersion.V1, ("training.kubeflow.org/replica-index", "0")),
        (ApiVersion.V1ALPHA1, ("statefulset.kubernetes.io/pod-name", "job-worker-0")),
    ],
)
def test_it_runs_beside_the_first_worker(version: ApiVersion, label: tuple[str, str]) -> None:
    """By the labels that the operator of the version gives it."""
    pod = companions(JOB, version)[1]["spec"]["template"]["spec"]
    term = pod["affinity"]["podAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"][0]

    assert label in term["labelSelector"]["matchLabels"].items()
    assert ([{"name": "s"}], "high") == (pod["imagePullSecrets"], pod["priorityClassName"])


def test_the_service_selects_it_and_arena_finds_it() -> None:
    """By the labels by which `arena get` looks for its address."""
    service, deployment = companions(JOB, ApiVersion.V2BETA1)

    assert service["spec"]["selector"] == deployment["spec"]["template"]["metadata"]["labels"]
    assert {"release": "job", "role": "tensorboard"}.items() <= service["metadata"]["labels"].items()
    assert "NodePort" == service["spec"]["type"]


def test_a_job_without_it_has_nothing() -> None:
    """No object, no volume."""
    job = replace(JOB, tensorboard=None)

    assert ((), False, False) == (companions(job, ApiVersion.V1), *mounted(job))
