"""A job becomes the objects that its version of the API takes, with every value unchanged."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.errors import DocumentError, UsageError
from arena_topo.kinds.jobset import JOBSET
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB
from arena_topo.manifest.pods import literal
from arena_topo.manifest.render import RenderContext, check_pod_names, render
from arena_topo.model.job import (
    Claim,
    CodeSync,
    Compute,
    ConfigFile,
    EnvSource,
    HostDirectory,
    JobSpec,
    LauncherOptions,
    MpiOptions,
    PodOptions,
    RoleSpec,
    RunOptions,
    TensorBoard,
    TrainedModel,
    WorkerRange,
)
from arena_topo.model.keys import ACK_GPU, NVIDIA_GPU
from arena_topo.model.pods import Toleration
from arena_topo.model.text.yaml import dump
from tests.paths import GOLDEN

STORE = "TORCH_DISABLE_SHARE_RDZV_TCP_STORE"
PLAIN = JobSpec(
    name="vgg16",
    namespace="ml",
    image="train:1",
    command=("sh", "-c", "mpirun -np 4 python t.py"),
    workers=4,
    gpus=1,
)
TOPOLOGY = replace(PLAIN, gang=True, topology=True)
FULL = replace(
    TOPOLOGY,
    compute=Compute(cpu="8", memory="64Gi"),
    slots=2,
    pod=PodOptions(
        env={"LR": "1e-3", "NOTE": 'a "b" # c: d'},
        env_from=(EnvSource("secret", "keys"), EnvSource("configmap", "settings")),
        labels={"team": "vision"},
        annotations={"note": "x: y"},
        selector={"pool": "a100"},
        tolerations=(Toleration("gpu", "Equal", "yes", "NoSchedule"), Toleration(operator="Exists")),
        devices={"example.com/fpga": "2"},
        claims=(Claim("data.set", "/data"),),
        directories=(HostDirectory("/mnt/x", "/x"),),
        files=(ConfigFile("/etc/a.yaml", b"a: 1\n"), ConfigFile("/etc/b.bin", b"\xff\x00")),
        working_dir="/work dir",
        priority="high",
        scheduler="other",
        pull_policy="Never",
        pull_secrets=("s1", "s2"),
        shared_memory="8Gi",
        host_pid=True,
        rdma=True,
    ),
    launcher=LauncherOptions(compute=Compute(cpu="1", memory="2Gi"), selector={"pool": "cpu"}),
    run=RunOptions(retry=2, clean_policy="Running", ttl=60, timeout=3600),
)
SERVED = replace(
    TOPOLOGY,
    kind="TFJob",
    pod=PodOptions(devices={"example.com/fpga": "2"}, selector={"pool": "a100"}, rdma=True),
    roles=(
        RoleSpec(name="chief", gpus=1, port=2224, compute=Compute(cpu="2")),
        RoleSpec(name="worker", pods=4, gpus=1, affinity="spread", required=True),
        RoleSpec(
            name="ps",
            pods=2,
            image="ps:1",
            compute=Compute(cpu="4"),
            limits=Compute(cpu="8", memory="16Gi"),
            selector={"pool": "cpu"},
            affinity="spread",
        ),
    ),
    run=RunOptions(retry=2, clean_policy="Running", ttl=60, timeout=3600, success_policy="AllWorkers"),
)
RANKS = replace(TOPOLOGY, kind="PyTorchJob", processes="gpu", run=RunOptions(clean_policy="Running"))
FULL_ALPHA = replace(
    FULL, slots=1, launcher=replace(FULL.launcher, selector={}), run=RunOptions(retry=2, clean_policy="None")
)
BESIDE = replace(
    PLAIN,
    pod=PodOptions(
        code=CodeSync("git", "https://git.example.com/ml/vgg16.git", "git-sync:1"), env={"A": "b"}
    ),
    tensorboard=TensorBoard("tensorboard:1", "/training_logs"),
    model=TrainedModel("vgg16", "pvc://ml/models/vgg16"),
)
V2, V1, ALPHA = ApiVersion.V2BETA1, ApiVersion.V1, ApiVersion.V1ALPHA1


def made(job: JobSpec, version: ApiVersion = V2, gpu_resource: str = NVIDIA_GPU) -> Any:
    """Return the MPIJob of *job*."""
    return render(job, RenderContext(version, gpu_resource)).job


def pod_of(job: Any, role: str = "Worker") -> Any:
    """Return the pod template of a role."""
    return job["spec"].get("template") or job["spec"]["mpiReplicaSpecs"][role]["template"]


@pytest.mark.parametrize(
    ("name", "job", "context"),
    [
        ("plain.v2beta1", PLAIN, RenderContext(V2)),
        ("topology.v2beta1", TOPOLOGY, RenderContext(V2)),
        ("topology-vendor.v2beta1", TOPOLOGY, RenderContext(V2, ACK_GPU)),
        ("topology-vendor.v1", TOPOLOGY, RenderContext(V1, ACK_GPU)),
        ("topology-vendor.v1alpha1", TOPOLOGY, RenderContext(ALPHA, ACK_GPU)),
        ("full.v2beta1", FULL, RenderContext(V2)),
        ("full.v1", FULL, RenderContext(V1)),
        ("full.v1alpha1", FULL_ALPHA, RenderContext(ALPHA)),
        ("companions.v2beta1", BESIDE, RenderContext(V2)),
        ("companions.v1alpha1", BESIDE, RenderContext(ALPHA)),
        ("topology.pytorchjob", RANKS, RenderContext(PYTORCHJOB)),
        ("served.tfjob", SERVED, RenderContext(TFJOB)),
    ],
)
def test_the_manifest_is_the_golden_one(name: str, job: JobSpec, context: RenderContext) -> None:
    """Every object, to the byte; tests/data/golden holds them."""
    text = "---\n".join(dump(item) for item in render(job, context).objects)

    assert (GOLDEN / f"{name}.yaml").read_text() == text


@given(text=st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00"), max_size=40))
@pytest.mark.parametrize("version", ApiVersion)
def test_every_value_reaches_the_manifest_unchanged(version: ApiVersion, text: str) -> None:
    """Any text at all, as a command, an environment value and an annotation."""
    pod = PodOptions(env={"X": text}, annotations={"x": text}, working_dir=text)
    job = made(replace(PLAIN, image=text, command=("sh", "-c", text), pod=pod), version)
    launcher = pod_of(job, "Launcher")
    container = launcher["spec"]["containers"][0]

    # Over ssh a script comes first, and the command is its arguments.
    assert ["sh", "-c", literal(text)] == container["args" if version is V2 else "command"]
    assert {"name": "X", "value": literal(text)} in container["env"]
    assert (text, text or None) == (container["image"], container.get("workingDir"))
    assert text == launcher["metadata"]["annotations"]["x"]
    assert job == json.loads(json.dumps(job))


def kubelet_expands(text: str, names: set[str]) -> str:
    """Return what the kubelet makes of *text*, by the rules of its expansion package."""
    out, position = [], 0
    while position < len(text):
        if text[position] == "$" and position + 1 < len(text):
            if text[position + 1] == "$":
                out.append("$")
                position += 2
                continue
            end = text.find(")", position)
            if text[position + 1] == "(" and end > 0:
                name = text[position + 2 : end]
                out.append(f"<{name}>" if name in names else text[position : end + 1])
                position = end + 1
                continue
        out.append(text[position])
        position += 1
    return "".join(out)


@given(st.text(alphabet="$(){}abX\\ ", max_size=30))
def test_the_kubelet_expands_nothing(text: str) -> None:
    """Neither $(NAME), nor $$, nor anything like them."""
    assert text == kubelet_expands(literal(text), {"a", "b", "X", "ab", ""})


def test_only_what_would_be_expanded_is_doubled() -> None:
    """A shell's own ${X} and $X stay as typed."""
    assert "${X} $X $ $$(date) $$$" == literal("${X} $X $ $(date) $$")


def test_a_gang_counts_its_workers_and_not_the_launcher() -> None:
    """The launcher starts after the workers: a gang that waited for it would wait forever."""
    job = made(TOPOLOGY)

    assert "4" == pod_of(job)["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io/min-available"]
    assert "mpijob-vgg16" == pod_of(job)["metadata"]["labels"]["pod-group.scheduling.sigs.k8s.io/name"]
    assert not [
        key
        for key in pod_of(job, "Launcher")["metadata"]["labels"]
        if "pod-group" in key or "gpu-topology" in key
    ]
    assert "WaitForWorkersReady" == job["spec"]["launcherCreationPolicy"]


def test_the_vendors_cluster_gets_the_vendors_resource() -> None:
    """And its two labels; elsewhere the GPUs keep their usual name."""
    vendor = pod_of(made(TOPOLOGY, V1, ACK_GPU))

    assert {"aliyun.com/gpu": "1"} == vendor["spec"]["containers"][0]["resources"]["limits"]
    assert ("vgg16", "4") == (
        vendor["metadata"]["labels"]["gpu-topology"],
        vendor["metadata"]["labels"]["gpu-topology-replica"],
    )
    assert {"nvidia.com/gpu": "1"} == pod_of(made(TOPOLOGY))["spec"]["containers"][0]["resources"]["limits"]


@pytest.mark.parametrize(
    ("job", "version", "resource", "network"),
    [
        (TOPOLOGY, V1, ACK_GPU, True),
        (TOPOLOGY, ALPHA, ACK_GPU, True),
        (TOPOLOGY, V2, ACK_GPU, False),
        (TOPOLOGY, V1, NVIDIA_GPU, False),
        (PLAIN, V1, ACK_GPU, False),
        (replace(PLAIN, pod=PodOptions(host_network=True)), V2, NVIDIA_GPU, True),
    ],
    ids=["vendor v1", "vendor v1alpha1", "ssh workers", "elsewhere", "no topology", "asked for"],
)
def test_the_hosts_network_is_used_where_it_works(
    job: JobSpec, version: ApiVersion, resource: str, network: bool
) -> None:
    """Two ssh servers of v2beta1 workers on one node would collide on port 22."""
    spec = pod_of(made(job, version, resource))["spec"]

    assert network is spec.get("hostNetwork", False)
    assert ("ClusterFirstWithHostNet" if network else None) == spec.get("dnsPolicy")


def test_of_a_gated_job_set_a_lost_pod_is_replaced_by_itself() -> None:
    """It may get another node. Pinned by its template it could not, and the whole set is started again."""
    job = replace(PLAIN, kind="JobSet", run=RunOptions(retry=3))
    for gated, expected in ((True, 3), (False, 0)):
        (role,) = render(job, RenderContext(JOBSET, gated=gated)).job["spec"]["replicatedJobs"]
        assert expected == role["template"]["spec"]["backoffLimit"]


def test_two_ssh_servers_on_one_host_are_warned_of() -> None:
    """When the user insists on the host's network."""
    job = replace(PLAIN, pod=PodOptions(host_network=True))

    assert "port 22" in render(job, RenderContext(V2)).notes[0]
    assert () == render(job, RenderContext(V1)).notes


def test_shared_memory_is_given_unless_the_hosts_is_used() -> None:
    """A volume over the host's /dev/shm would part pods that want to share it."""
    assert "dshm" == pod_of(made(TOPOLOGY))["spec"]["volumes"][0]["name"]
    assert "volumes" not in pod_of(made(replace(TOPOLOGY, pod=PodOptions(host_ipc=True))))["spec"]
    assert "volumes" not in pod_of(made(replace(TOPOLOGY, pod=PodOptions(shared_memory=""))))["spec"]


def test_claims_are_the_workers_unless_the_launcher_wants_them() -> None:
    """Arena's operator takes them off the launcher; the others leave that to us."""
    claims = PodOptions(claims=(Claim("data", "/data"),), shared_memory="")
    job = replace(PLAIN, pod=claims)

    assert "volumes" in pod_of(made(job))["spec"]
    assert "volumes" not in pod_of(made(job), "Launcher")["spec"]
    with_mounts = replace(job, launcher=LauncherOptions(mounts=True))
    assert "volumes" in pod_of(made(with_mounts), "Launcher")["spec"]


def test_a_job_without_gpus_sees_none() -> None:
    """The runtime would show it all of the node's."""
    names = {"workers": "2", "gpus": "0", "NVIDIA_VISIBLE_DEVICES": "void"}
    env = pod_of(made(replace(PLAIN, gpus=0, workers=2)))["spec"]["containers"][0]["env"]

    assert names == {variable["name"]: variable["value"] for variable in env}


def test_the_users_variable_wins() -> None:
    """Over the ones that are always there."""
    env = pod_of(made(replace(PLAIN, pod=PodOptions(env={"workers": "7"}))))["spec"]["containers"][0]["env"]

    assert {"name": "workers", "value": "7"} in env
    assert 1 == sum(variable["name"] == "workers" for variable in env)


def test_nodes_that_come_to_ranks_of_torch_need_a_store_of_the_ranks_own() -> None:
    """With that of torch's agents they wait forever; the user may say otherwise."""
    elastic = replace(PLAIN, kind="PyTorchJob", elastic=WorkerRange(1, 3))
    spoken = replace(elastic, pod=PodOptions(env={STORE: "0"}))
    found = [
        {variable["name"]: variable["value"] for variable in pod["spec"]["containers"][0]["env"]}
        for job in (elastic, spoken, replace(elastic, elastic=None))
        for pod in [
            next(iter(render(job, RenderContext(PYTORCHJOB)).job["spec"]["pytorchReplicaSpecs"].values()))[
                "template"
            ]
        ]
    ]

    assert ["1", "0", None] == [env.get(STORE) for env in found]


def test_devices_are_limits_too() -> None:
    """An extended resource that is requested without a limit is not valid, with and without GPUs."""
    resources = pod_of(made(replace(PLAIN, gpus=0, pod=PodOptions(devices={"amd.com/gpu": "1"}))))["spec"][
        "containers"
    ][0]["resources"]

    assert {"requests": {"amd.com/gpu": "1"}, "limits": {"amd.com/gpu": "1"}} == resources


@pytest.mark.parametrize(
    ("job", "flag"),
    [
        (replace(PLAIN, run=RunOptions(ttl=1)), "--ttl-after-finished"),
        (replace(PLAIN, run=RunOptions(timeout=1)), "--running-timeout"),
        (replace(PLAIN, slots=2), "--slots-per-worker"),
        (replace(PLAIN, launcher=LauncherOptions(selector={"a": "b"})), "--launcher-selector"),
    ],
)
def test_what_a_version_cannot_say_is_refused(job: JobSpec, flag: str) -> None:
    """Rather than dropped in silence."""
    with pytest.raises(UsageError, match=f"{flag} cannot be expressed in MPIJob v1alpha1"):
        made(job, ALPHA)
    assert made(job, V1)


def test_files_that_no_config_map_takes_are_refused() -> None:
    """1 MiB in all."""
    files = tuple(ConfigFile(f"/{i}", b"x" * 600_000) for i in range(2))
    with pytest.raises(UsageError, match="1200000 bytes together"):
        render(replace(PLAIN, pod=PodOptions(files=files)), RenderContext())


def test_arenas_readers_find_the_job() -> None:
    """By these labels, on the job and on its pods."""
    job = made(PLAIN)
    for labels in (
        job["metadata"]["labels"],
        pod_of(job)["metadata"]["labels"],
        pod_of(job, "Launcher")["metadata"]["labels"],
    ):
        assert ("mpijob", "vgg16") == (labels["app"], labels["release"])
    assert "4" == job["metadata"]["annotations"]["requestGPUsOfJobOwner"]


@pytest.mark.parametrize(
    ("mpi", "flag"),
    [
        (MpiOptions(implementation="MPICH"), "--mpi-implementation"),
        (MpiOptions(ssh_auth_path="/home/mpi/.ssh"), "--ssh-auth-mount-path"),
    ],
)
@pytest.mark.parametrize("version", [V1, ALPHA])
def test_ranks_that_start_without_ssh_have_no_choice_of_mpi(
    version: ApiVersion, mpi: MpiOptions, flag: str
) -> None:
    """The API server would drop the field, and the job would start with another MPI."""
    with pytest.raises(UsageError, match=flag):
        made(replace(PLAIN, mpi=mpi), version)


@pytest.mark.parametrize(("version", "policy"), [(V2, None), (V1, None), (ALPHA, "Never")])
def test_the_operator_sets_the_restart_policy(version: ApiVersion, policy: str | None) -> None:
    """The operators of v2beta1 and v1 warn of one in the template by an event; Arena's needs it."""
    assert policy == pod_of(made(PLAIN, version))["spec"].get("restartPolicy")


@pytest.mark.parametrize(
    "wrong",
    [
        "replicas: many\n      template: {}",
        "template:\n        spec: {containers: [{resources: {limits: {cpu: lots}}}]}",
        "template:\n        spec: {containers: [text]}",
        "template:\n        spec: text",
        "template: text",
    ],
)
def test_a_template_whose_pods_cannot_be_counted_is_one_clear_error(tmp_path: Path, wrong: str) -> None:
    """It names the template: nothing of it is sent."""
    file = tmp_path / "t.j2"
    head = "apiVersion: kubeflow.org/v2beta1\nkind: MPIJob\nmetadata: {name: a}\nspec:\n  mpiReplicaSpecs:\n"
    file.write_text(f"{head}    Worker:\n      {wrong}\n")
    with pytest.raises(DocumentError, match=r"template mpijob\.v2beta1\.yaml\.j2 renders .* that cannot be"):
        render(PLAIN, RenderContext(), template=str(file))


def test_host_names_of_workers_start_with_a_letter() -> None:
    """Under v2beta1 a worker's name is a host name; the other versions do not mind."""
    check_pod_names("0day", 1, ApiVersion.V1ALPHA1)
    with pytest.raises(UsageError, match="must start with a letter"):
        check_pod_names("0day", 1, ApiVersion.V2BETA1)


def test_the_last_worker_needs_a_name_too() -> None:
    """63 characters are allowed for NAME-worker-N."""
    check_pod_names("a" * 49, 10**6, ApiVersion.V1)
    with pytest.raises(UsageError, match="would have 64 characters"):
        check_pod_names("a" * 49, 10**6 + 1, ApiVersion.V1)
