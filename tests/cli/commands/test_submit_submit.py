"""What is typed after submit mpi becomes a job, or one clear error."""

import json
import shlex
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from arena_topo.kube.kubeconfig import Target
from arena_topo.manifest.pods import literal
from tests.cli.conftest import Invoke, Serve
from tests.documented_jobs import DOCUMENTED_JOBS, DocumentedJob
from tests.examples import examples
from tests.jobs.servers import Server

BASE = ("submit", "mpi", "--dry-run=client", "-o", "json", "--name=job", "--image=i")


def made(invoke: Invoke, *args: str) -> Any:
    """Return the first object that a dry run prints."""
    outcome = invoke(*BASE, *args)
    assert 0 == outcome.code, outcome.err
    printed = json.loads(outcome.out)
    return printed["items"][0] if printed["kind"] == "List" else printed


def container(job: Any, role: str = "Worker") -> Any:
    """Return the container of a role."""
    return job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]["containers"][0]


def pod_spec(job: Any, role: str = "Worker") -> Any:
    """Return the pod of a role."""
    return job["spec"]["mpiReplicaSpecs"][role]["template"]["spec"]


@pytest.mark.parametrize("documented", DOCUMENTED_JOBS, ids=lambda documented: documented.name)
def test_the_documented_commands_are_taken_as_they_are(invoke: Invoke, documented: DocumentedJob) -> None:
    """All eight, with Arena's flags and spelling."""
    outcome = invoke(*documented.argv, "--dry-run=client", "-o", "json")
    job = json.loads(outcome.out)
    launcher = container(job, "Launcher")

    assert (documented.name, 4) == (
        job["metadata"]["name"],
        job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"],
    )
    assert ["sh", "-c", documented.argv[-1]] == launcher["args"]
    assert ("aliyun.com/gpu" in container(job)["resources"]["limits"]) is documented.has_topology


@pytest.mark.parametrize("alias", ["mpi", "mpijob", "mj"])
def test_submit_has_arenas_aliases(invoke: Invoke, alias: str) -> None:
    """All three make the same job."""
    assert 0 == invoke("submit", alias, *BASE[2:], "x").code


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=examples(60))
@given(
    words=st.lists(
        st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\x00")), min_size=1, max_size=4
    )
)
def test_what_follows_two_dashes_reaches_the_container_word_by_word(invoke: Invoke, words: list[str]) -> None:
    """No shell, no joining, no option parsing; another pair of dashes is a word like any other."""
    assert [literal(word) for word in words] == container(made(invoke, "--", *words), "Launcher")["args"]


def test_one_quoted_string_is_run_by_the_shell(invoke: Invoke) -> None:
    """Several arguments are joined by a blank, as Arena joins them."""
    assert ["bash", "-c", "a  b c"] == container(made(invoke, "--shell=bash", "a  b", "c"), "Launcher")[
        "args"
    ]


@pytest.mark.parametrize(
    "value", ["#x", "a: b", '"q"', "'", "a\nb", "true", "1e-3", "${X}", "é😀", "", "a=b", " x "]
)
def test_an_environment_value_is_kept(invoke: Invoke, value: str) -> None:
    """Each of the ones that Arena mangles."""
    assert {"name": "X", "value": value} in container(made(invoke, "--env", f"X={value}", "c"))["env"]


@pytest.mark.parametrize(
    ("flag", "expected"),
    [
        ("--gang", True),
        ("--gang=true", True),
        ("--gang=1", True),
        ("--gang=false", False),
        ("--gang=F", False),
    ],
)
def test_flags_are_switched_as_in_go(invoke: Invoke, flag: str, expected: bool) -> None:
    """A flag that stands alone does not swallow the command."""
    job = made(invoke, flag, "command")
    labels = job["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["metadata"]["labels"]

    assert expected is ("pod-group.scheduling.sigs.k8s.io/name" in labels)
    assert ["sh", "-c", "command"] == container(job, "Launcher")["args"]


def test_every_flag_reaches_the_job(invoke: Invoke, tmp_path: Path) -> None:
    """Each in its place."""
    file = tmp_path / "a.yaml"
    file.write_text("a: 1")
    flags = f"""
        --workers=3 --gpus=2 --cpu=500m --memory=1Gi --share-memory=4Gi --slots-per-worker=1 --device=example.com/x=1
        --rdma -e A=1 --env=B=2 --env-from=secret/s --env-from=configmap/c -d pvc:/data --data-dir=/mnt:/m
        --config-file={file}:/etc/a --working-dir=/w -l team=x -a note=y --selector=pool=p --toleration=k=v:NoSchedule,Equal
        -p high --scheduler=s --image-pull-policy=Never --image-pull-secret=r --hostNetwork --hostPID
        --launcher-cpu=1 --launcher-memory=2Gi --launcher-selector=pool=cpu --mounts-on-launcher --retry=2
        --clean-task-policy=None --ttl-after-finished=1h --running-timeout=90
    """
    job = made(invoke, *shlex.split(flags), "c")
    worker, launcher = pod_spec(job), pod_spec(job, "Launcher")

    assert (3, 1, 2) == (
        job["spec"]["mpiReplicaSpecs"]["Worker"]["replicas"],
        job["spec"]["slotsPerWorker"],
        job["spec"]["runPolicy"]["backoffLimit"],
    )
    assert {
        "cleanPodPolicy": "None",
        "backoffLimit": 2,
        "ttlSecondsAfterFinished": 3600,
        "activeDeadlineSeconds": 90,
    } == job["spec"]["runPolicy"]
    limits = {"cpu": "500m", "memory": "1Gi", "nvidia.com/gpu": "2", "rdma/hca": "1", "example.com/x": "1"}
    assert limits == container(job)["resources"]["limits"] == container(job)["resources"]["requests"]
    assert {"cpu": "1", "memory": "2Gi"} == container(job, "Launcher")["resources"]["limits"]
    assert [{"secretRef": {"name": "s"}}, {"configMapRef": {"name": "c"}}] == container(job)["envFrom"]
    assert {"/dev/shm", "/data", "/m", "/etc/a"} == {
        mount["mountPath"] for mount in container(job)["volumeMounts"]
    }
    assert {"/dev/shm", "/data", "/m", "/etc/a"} == {
        mount["mountPath"] for mount in container(job, "Launcher")["volumeMounts"]
    }
    assert ({"pool": "p"}, {"pool": "cpu"}) == (worker["nodeSelector"], launcher["nodeSelector"])
    assert [{"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}] == worker["tolerations"]
    assert ("high", "s", True, True) == (
        worker["priorityClassName"],
        worker["schedulerName"],
        worker["hostNetwork"],
        worker["hostPID"],
    )
    assert ("Never", "/w", [{"name": "r"}]) == (
        container(job)["imagePullPolicy"],
        container(job)["workingDir"],
        worker["imagePullSecrets"],
    )
    assert ("x", "y") == (job["metadata"]["labels"]["team"], job["metadata"]["annotations"]["note"])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("all", {"operator": "Exists"}),
        ("k=v:NoSchedule,Equal", {"key": "k", "operator": "Equal", "value": "v", "effect": "NoSchedule"}),
        ("k=v", {"key": "k", "operator": "Equal", "value": "v"}),
        ("k", {"key": "k", "operator": "Exists"}),
        ("k:NoExecute", {"key": "k", "operator": "Exists", "effect": "NoExecute"}),
        ("k=:NoExecute,Exists", {"key": "k", "operator": "Exists", "effect": "NoExecute"}),
    ],
)
def test_a_toleration_is_arenas_or_a_part_of_it(invoke: Invoke, text: str, expected: dict[str, str]) -> None:
    """Arena's whole form, and what kubectl's users would write."""
    assert [expected] == pod_spec(made(invoke, f"--toleration={text}", "c"))["tolerations"]


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["--name=A", "c"], 2, "the job name 'A' must consist of lower case"),
        (["--name=", "c"], 2, "--name must be set"),
        (["--image=", "c"], 2, "--image must be set"),
        ([], 2, "the job has no command"),
        (["c", "--", "d"], 2, "the job's command was given twice"),
        (["--gpus=-1", "c"], 2, "--gpus: "),
        (["--gpus=two", "c"], 2, "--gpus: 'two' is not a whole number"),
        (["--workers=0", "c"], 2, "--workers: "),
        (["--cpu=lots", "c"], 2, "--cpu: 'lots' is not a quantity"),
        (["--memory=4 GB", "c"], 2, "--memory: "),
        (["--launcher-memory=x", "c"], 2, "--launcher-memory: "),
        (["--share-memory=x", "c"], 2, "--share-memory: "),
        (["--env=NOVALUE", "c"], 2, "--env: 'NOVALUE' is not NAME=VALUE"),
        (["--label=a=b c", "c"], 2, "cannot be the value of label"),
        (["--selector=x", "c"], 2, "--selector: 'x' is not NAME=VALUE"),
        (["--toleration=a=b:Never", "c"], 2, "--toleration: 'a=b:Never' is not"),
        (["--device=nvidia.com/gpu=1", "c"], 2, "use '--gpus 1' instead"),
        (["--device=x", "c"], 2, "--device: 'x' is not NAME=VALUE"),
        (["--data=pvc", "c"], 2, "--data: 'pvc' is not PVC:PATH"),
        (["--data=p:/a", "--data=p:/b", "c"], 2, "--data: the claim p is given twice"),
        (["--data-dir=relative", "c"], 2, "--data-dir: 'relative' is not DIR or DIR:PATH with absolute paths"),
        (["--data-dir=/x:/", "c"], 2, "--data-dir: a directory cannot be mounted at /"),
        (["--data-dir=/mnt://", "c"], 2, "--data-dir: a directory cannot be mounted at /"),
        (["--data-dir=/mnt:/./", "c"], 2, "--data-dir: a directory cannot be mounted at /"),
        (["--data-dir=/mnt:/data:ro", "c"], 2, "--data-dir: '/data:ro' has a colon"),
        (["--data=pvc://", "c"], 2, "--data: a directory cannot be mounted at /"),
        (["--running-timeout=500ms", "c"], 2, "--running-timeout: 500ms is less than 1 s"),
        (["--running-timeout=0", "c"], 2, "--running-timeout: 0 is less than 1 s"),
        (["--ttl-after-finished=500ms", "c"], 2, "--ttl-after-finished: 500ms is not a whole number of seconds"),
        (["--ttl-after-finished=1500ms", "c"], 2, "--ttl-after-finished: 1500ms is not a whole number"),
        (["--ttl-after-finished=700000h", "c"], 2, "--ttl-after-finished: 700000h is more than 2147483647 s"),
        (["--memory=1e400", "c"], 2, "--memory: '1e400' is more than a quantity can be"),
        (["--queue=q", "c"], 2, "--queue=q has no effect without --gang"),
        (["--gang-scheduler=volcano", "c"], 2, "--gang-scheduler=volcano has no effect without --gang"),
        (["--plan", "c"], 2, "--plan goes with --dry-run=server"),
        (["--min-workers=2", "--max-workers=8", "--workers=1", "c"], 2, "--workers=1 is not between --min-workers=2 and --max-workers=8"),
        (["--wait=soon", "c"], 2, "--wait: 'soon' is neither a duration nor one of placed, running, succeeded"),
        (["--wait=running,soon", "c"], 2, "--wait: 'soon' is not a duration"),
        (["--config-file=/nowhere:/x", "c"], 2, "--config-file: /nowhere cannot be read"),
        (["--config-file=/dev/zero:/x", "c"], 2, "--config-file: /dev/zero cannot be read: it has more than 4 MiB"),
        (["--config-file=/:/x", "c"], 2, "--config-file: / cannot be read: Is a directory"),
        (["--file=/dev/zero"], 2, "--file: /dev/zero cannot be read: it has more than 4 MiB"),
        (["--config-file=x:y", "c"], 2, "is not FILE or FILE:PATH"),
        (["--env-from=vault/x", "c"], 2, "--env-from: 'vault/x' is not KIND/NAME"),
        (["--clean-task-policy=Some", "c"], 2, "unsupported --clean-task-policy 'Some'"),
        (["--image-pull-policy=Often", "c"], 2, "unsupported --image-pull-policy 'Often'"),
        (["--ttl-after-finished=soon", "c"], 2, "--ttl-after-finished: 'soon' is not a duration"),
        (["--api-version=v9", "c"], 2, "--api-version: 'v9' is not a version of MPIJob"),
        (["--dry-run=maybe", "c"], 2, 'Invalid dry-run value (maybe). Must be "none", "server", or "client".'),
        (["--gang=maybe", "c"], 2, "'maybe' is neither true nor false"),
        (["--namespace=A", "c"], 2, "'A' is not a valid namespace"),
        (["--request-timeout=soon", "c"], 2, "--request-timeout: 'soon' is not a duration"),
        (["--api-version=v1alpha1", "--running-timeout=1h", "c"], 2, "--running-timeout cannot be expressed in MPIJob v1alpha1"),
        (["--template=/nowhere", "c"], 2, "template /nowhere cannot be read"),
        (["--no-such-flag", "c"], 2, "there is no flag --no-such-flag"),
        (["--env", "X=\udcff", "c"], 2, "--env has bytes that are not UTF-8 text"),
        (["\udcff"], 2, "the command has bytes that are not UTF-8 text"),
        (["--", "\udcff"], 2, "the command has bytes that are not UTF-8 text"),
    ],
)  # fmt: skip
def test_bad_input_gets_one_clear_error(invoke: Invoke, args: list[str], code: int, message: str) -> None:
    """On stderr, with the exit code for usage, and nothing on stdout."""
    outcome = invoke(*BASE, *args)

    assert (code, "") == (outcome.code, outcome.out)
    errors = [each for each in outcome.err.splitlines() if each.startswith("error: ")]
    assert 1 == len(errors)
    assert message in errors[0]
    assert "Traceback" not in outcome.err


@pytest.mark.parametrize(("given", "start"), [((), 8), (("--workers=1",), 1), (("--workers=3",), 3)])
@pytest.mark.parametrize("kind", ["mpi", "pytorch"])
def test_an_elastic_job_starts_with_the_number_that_is_given(
    invoke: Invoke, kind: str, given: tuple[str, ...], start: int
) -> None:
    """One is a number too; without any the job has the
    most that it may have, of which as many start as fit.
    """
    flags = ("--min-workers=1", "--max-workers=8", *given)
    outcome = invoke("submit", kind, "--dry-run=client", "-o", "json", "--name=job", "--image=i", *flags, "c")
    printed = json.loads(outcome.out)
    # An MPIJob has a file with its hosts next to it.
    spec = next(each["spec"] for each in printed.get("items", [printed]) if "Job" in each["kind"])

    assert start == (spec.get("mpiReplicaSpecs") or spec["pytorchReplicaSpecs"])["Worker"]["replicas"]


def test_a_dry_run_without_a_cluster_says_that_none_was_asked(invoke: Invoke) -> None:
    """And uses today's version and the default namespace."""
    outcome = invoke("submit", "mpi", "--dry-run=client", "--name=a", "--image=i", "c")

    assert "mpijob.kubeflow.org/a created (dry run)\n" == outcome.out
    assert "no cluster reachable" in outcome.err


def test_a_bare_dry_run_is_the_clients_and_warns(invoke: Invoke) -> None:
    """As kubectl does."""
    outcome = invoke("submit", "mpi", "--dry-run", "--name=a", "--image=i", "-o", "name", "c")

    assert "mpijob.kubeflow.org/a\n" == outcome.out
    assert "warning: --dry-run is deprecated" in outcome.err


@pytest.mark.parametrize("mode", ["client", "server"])
def test_the_kubeconfig_is_resolved_once(
    invoke: Invoke, serve: Serve, monkeypatch: pytest.MonkeyPatch, mode: str
) -> None:
    """For the namespace and for the connection."""
    transport, asked = serve(Server()), []
    target = Target("here", "default", {"server": "https://api:6443"}, {})

    def resolve(*args: object) -> Target:
        asked.append(args)
        return target

    monkeypatch.setattr("arena_topo.kube.kubeconfig.resolve", resolve)
    outcome = invoke("submit", "mpi", f"--dry-run={mode}", "--name=job", "--image=i", "c")

    assert (0, 1) == (outcome.code, len(asked)), outcome.err
    assert transport.calls


def test_a_dry_run_for_a_named_cluster_needs_that_cluster(invoke: Invoke) -> None:
    """A kubeconfig that was given is not ignored."""
    outcome = invoke(*BASE, "--kubeconfig=/nowhere", "c")

    assert (1, "") == (outcome.code, outcome.out)
    assert "kubeconfig /nowhere does not exist" in outcome.err


def test_kubectls_flags_may_stand_before_the_command(invoke: Invoke) -> None:
    """As Arena's may."""
    outcome = invoke("-n", "ml", "--request-timeout=5s", *BASE, "c")

    assert "ml" == json.loads(outcome.out)["metadata"]["namespace"]
