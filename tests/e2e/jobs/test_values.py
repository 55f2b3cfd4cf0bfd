"""What a user types reaches the real pod byte for byte, in strict validation."""

import json
from pathlib import Path

from arena_topo.manifest.pods import literal
from tests.controlplane.kube import Kube
from tests.controlplane.machines import pods
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena

TRICKY = ["#c", "a: b", 'say "x"', "it's", "two\nlines\n", "true", "1e-3", "0o17", "y", "~", "${X}", "$X", "é😀\u2028", " x ", "\\n", "a\tb", "{{ x }}", "%s", "-", "[1]", "*", "&a", "!x", "|", ">"]  # fmt: skip


def test_every_tricky_value_reaches_the_pod(
    arena: Arena, kube: Kube, namespace: str, gpu_nodes: list[str]
) -> None:
    """As environment values, annotations, and words of the command, of launcher and workers."""
    del gpu_nodes
    flags = [f"--env=V{at}={value}" for at, value in enumerate(TRICKY)]
    flags += [f"--annotation=v{at}={value}" for at, value in enumerate(TRICKY)]
    outcome = arena("submit", "mpi", "--name=job", "--image=i", "--working-dir=/a b", *flags, "--", *TRICKY)
    assert 0 == outcome.code, outcome.err
    found = eventually(
        lambda: two if len(two := pods.of_job(kube, namespace, "job")) == 2 else None, "two pods"
    )

    for pod in found:
        container = pod["spec"]["containers"][0]
        env = {each["name"]: each.get("value", "") for each in container["env"]}
        assert [literal(value) for value in TRICKY] == [env[f"V{at}"] for at in range(len(TRICKY))]
        assert TRICKY == [pod["metadata"]["annotations"][f"v{at}"] for at in range(len(TRICKY))]
        assert "/a b" == container["workingDir"]
    launcher = pods.of_job(kube, namespace, "job", "launcher")[0]
    assert TRICKY == launcher["spec"]["containers"][0]["args"]


def test_every_flag_passes_strict_validation(
    arena: Arena, kube: Kube, namespace: str, tmp_path: Path
) -> None:
    """The job and its ConfigMap exist as asked, the latter owned by the former."""
    file = tmp_path / "train.yaml"
    file.write_text("lr: 1e-3\n")
    kube.create(
        {
            "apiVersion": "scheduling.k8s.io/v1",
            "kind": "PriorityClass",
            "metadata": {"name": namespace},
            "value": 1,
        }
    )
    outcome = arena(
        "submit", "mpi", "--name=job", "--image=i", "--workers=2", "--gpus=1", "--cpu=1", "--memory=1Gi", "--gang",
        "--gputopology=true", "--rdma", "--device=example.com/x=1", "--env-from=secret/s", "--data=claim:/data",
        "--data-dir=/mnt:/m", f"--config-file={file}:/etc/train.yaml", "--label=team=x", "--selector=pool=p",
        "--toleration=all", f"--priority={namespace}", "--scheduler=other", "--image-pull-secret=r", "--hostPID",
        "--hostIPC", "--launcher-cpu=1", "--launcher-memory=1Gi", "--launcher-selector=a=b", "--mounts-on-launcher",
        "--retry=1", "--clean-task-policy=Running", "--ttl-after-finished=1h", "--running-timeout=2h",
        "--expect-nodes", "c",
    )  # fmt: skip
    kube.delete("scheduling.k8s.io/v1", "PriorityClass", namespace)

    assert (0, "mpijob.kubeflow.org/job created\nconfigmap/job-files created\n") == (
        outcome.code,
        outcome.out,
    ), outcome.err
    config = kube.get("v1", "ConfigMap", "job-files", namespace)
    assert {"file-0": "lr: 1e-3\n"} == config["data"]
    assert "job" == config["metadata"]["ownerReferences"][0]["name"]
    assert 0 == arena("delete", "job").code
    eventually(lambda: kube.find("v1", "ConfigMap", "job-files", namespace) is None, "the ConfigMap to go")


def test_a_server_side_dry_run_changes_nothing(arena: Arena, kube: Kube, namespace: str) -> None:
    """It prints what the server would make of it."""
    outcome = arena("submit", "mpi", "--name=job", "--image=i", "--dry-run=server", "-o", "json", "c")

    assert "job" == json.loads(outcome.out)["metadata"]["name"]
    assert json.loads(outcome.out)["metadata"]["uid"]
    assert [] == kube.list("kubeflow.org/v2beta1", "MPIJob", namespace)


def test_what_a_dry_run_prints_kubectl_creates(arena: Arena, kube: Kube, namespace: str) -> None:
    """The YAML is a manifest like any other."""
    line = "arena-topo submit mpi --name=job --image=i --dry-run=client -o yaml -- echo 1e-3 y | kubectl create --validate=strict -f -"
    outcome = arena.shell(line)

    assert "mpijob.kubeflow.org/job created\n" == outcome.out, outcome.err
    job = kube.get("kubeflow.org/v2beta1", "MPIJob", "job", namespace)
    container = job["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]["containers"][0]
    assert ["echo", "1e-3", "y"] == container["args"]
