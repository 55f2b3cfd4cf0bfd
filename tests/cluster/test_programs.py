"""Schedulers and operators are recognized by their Deployments."""

import pytest

from arena_topo.cluster.capabilities import find_programs
from tests.cluster.clusters import deployment


@pytest.mark.parametrize(
    ("name", "image", "kind"),
    [
        ("mpi-operator", "mpioperator/mpi-operator:0.8.2", "mpi-operator"),
        ("training-operator", "kubeflow/training-operator:v1.9", "training-operator"),
        ("volcano-scheduler", "x", "volcano"),
        ("my-release", "docker.io/volcanosh/vc-scheduler:v1.15", "volcano"),
        ("koord-scheduler", "registry:5000/koordinator-sh/koord-scheduler@sha256:0", "koordinator"),
        ("scheduler-plugins-scheduler", "x", "coscheduling"),
        ("second", "registry.k8s.io/scheduler-plugins/kube-scheduler:v0.34.7", "coscheduling"),
        ("kueue-controller-manager", "registry.k8s.io/kueue/kueue:v0.19", "kueue"),
        ("yunikorn-scheduler", "apache/yunikorn:scheduler-1.9", "yunikorn"),
        ("kai-scheduler-default", "ghcr.io/nvidia/kai-scheduler/scheduler:v0.13", "kai"),
        ("gpu-hami-scheduler", "projecthami/hami:v2.10", "hami"),
        ("yunikorn-admission-controller", "apache/yunikorn:admission-1.9", ""),
        ("volcano-controllers", "volcanosh/vc-controller-manager:v1.15", ""),
        ("my-app", "registry.k8s.io/kube-scheduler:v1.36", ""),
        ("web", "nginx", ""),
    ],
)
def test_programs_are_known_by_name_or_image(name: str, image: str, kind: str) -> None:
    """As their projects' own manifests have them; a chart may rename one."""
    assert [kind] * bool(kind) == list(find_programs([deployment(name, image)]))


@pytest.mark.parametrize(
    ("args", "gangs"),
    [
        ((), ""),
        (("--gang-scheduling=volcano",), "volcano"),
        (("-gang-scheduling", "my-scheduler", "--v=2"), "my-scheduler"),
        (("--gang-scheduler-name=volcano",), "volcano"),
        (("--gang-scheduling=",), ""),
        (("--gang-scheduling",), ""),
    ],
)
def test_an_operators_gang_scheduler_is_read_from_its_arguments(args: tuple[str, ...], gangs: str) -> None:
    """One dash or two, as one word or two."""
    assert gangs == find_programs([deployment("mpi-operator", "x", *args)])["mpi-operator"].gangs


def test_of_several_the_one_that_is_ready_counts() -> None:
    """An old release may still be there."""
    deployments = [
        deployment("volcano-scheduler", "x", ready=0, namespace="old-system"),
        deployment("volcano-scheduler", "x", namespace="new-system"),
    ]
    program = find_programs(deployments)["volcano"]

    assert (True, "Deployment new-system/volcano-scheduler") == (program.ready, program.location)


@pytest.mark.parametrize(
    ("namespace", "is_believed"),
    [
        *(
            (name, True)
            for name in ("mpi-operator", "kubeflow", "volcano-system", "kube-system", "scheduler-plugins")
        ),
        *((name, False) for name in ("default", "team-a", "kubeflow-ann", "system-a", "my-volcano", "")),
    ],
)
def test_what_a_tenant_deploys_is_no_program_of_the_cluster(
    namespace: str, is_believed: bool
) -> None:  # a table
    """By its names and its image it would decide which gang scheduler everybody's jobs are put under."""
    forged = deployment(
        "mpi-operator", "mpioperator/mpi-operator:0.8.2", "--gang-scheduling=volcano", namespace=namespace
    )

    assert ({"mpi-operator"} if is_believed else set()) == find_programs([forged]).keys()
