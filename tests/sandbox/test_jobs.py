"""Jobs on the sandbox: those that end by the clock, and JobSets and indexed Jobs as a user meets them."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest

from arena_topo.sandbox.sim.controllers import numbers
from tests.contract.bodies import pod
from tests.contract.client import Client, Object
from tests.contract.cluster import connected, eventually
from tests.e2e.arena import Arena
from tests.sandbox.served import served

_SELECTORS = {"jobset": "jobset.sigs.k8s.io/jobset-name=bert", "job": "batch.kubernetes.io/job-name=bert"}
_PATHS = {"jobset": "/apis/jobset.x-k8s.io/v1alpha2", "job": "/apis/batch/v1"}
_SHAPE = ("--name=bert", "--workers=3", "--gpus=4", "--image=i", "--gputopology")
_PODS = "/api/v1/namespaces/default/pods"


def _job(name: str, command: str, **spec: object) -> Object:
    template = {"spec": pod(name, command=command)["spec"]}
    return {
        "apiVersion": "batch/v1",
        "kind": "Job",
        "metadata": {"name": name},
        "spec": {"template": template, **spec},
    }


def _jobs(space: str) -> str:
    return f"/apis/batch/v1/namespaces/{space}/jobs"


def _end(client: Client, space: str, name: str) -> tuple[str, str] | None:
    """Return the condition by which a job has ended, and its reason."""
    status = client.get(f"{_jobs(space)}/{name}").body.get("status", {})
    held = {condition["type"]: condition["reason"] for condition in status.get("conditions", [])}
    return next(((word, held[word]) for word in ("Complete", "Failed") if word in held), None)


def test_a_job_ends_at_its_deadline(client: Client, space: str) -> None:
    """A job that runs longer than its deadline has Failed, and its pods are gone."""
    client.send("POST", _jobs(space), _job("slow", "sleep infinity", activeDeadlineSeconds=1))
    eventually(lambda: _end(client, space, "slow"), "the end")
    eventually(lambda: not client.get(f"/api/v1/namespaces/{space}/pods").body["items"], "its pods to go")

    assert ("Failed", "DeadlineExceeded") == _end(client, space, "slow")


def test_a_finished_job_is_deleted_after_its_time_to_live(client: Client, space: str) -> None:
    """With ttlSecondsAfterFinished a job and its pod go by themselves."""
    client.send("POST", _jobs(space), _job("brief", "sleep 1", ttlSecondsAfterFinished=1))
    eventually(lambda: client.get(f"{_jobs(space)}/brief").code == 404, "the job to go")
    eventually(lambda: not client.get(f"/api/v1/namespaces/{space}/pods").body["items"], "its pod to go")


def test_a_failing_job_gives_up_at_its_limit(client: Client, space: str) -> None:
    """A job whose pods fail more often than its limit has Failed."""
    client.send("POST", _jobs(space), _job("broken", "sleep 1; exit 3", backoffLimit=1))
    eventually(lambda: _end(client, space, "broken"), "the end")
    pods = client.get(f"/api/v1/namespaces/{space}/pods").body["items"]
    codes = [obj["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for obj in pods]

    assert ("Failed", "BackoffLimitExceeded") == _end(client, space, "broken")
    assert codes == [3, 3]


def test_operators_make_no_more_pods_than_are_planned() -> None:
    """A real one begins with two billion; here they would take the memory of the user's machine."""
    assert [3, 10_000] == [len(numbers(count)) for count in (3, 2**31 - 1)]


@pytest.fixture
def servers(tmp_path: Path) -> Iterator[tuple[Arena, Client]]:
    """Return the tool and a client of a sandbox of two DGX-1."""
    with served(tmp_path / "home", "two-dgx1") as home, connected(home) as cluster:
        yield Arena(home.kubeconfig), cluster.admin


def running(client: Client, kind: str) -> list[str]:
    """Return the node of each pod of the job, by its index, once all three run."""

    def found() -> list[Object]:
        listed = client.get(_PODS, labelSelector=_SELECTORS[kind]).body["items"]
        phases = [pod["status"].get("phase") for pod in listed]
        return sorted(listed, key=index_of) if phases == ["Running"] * 3 else []

    return [pod["spec"]["nodeName"] for pod in eventually(found, "three pods that run")]


def index_of(pod: Object) -> int:
    """Return the index of a pod in its Job."""
    return int(pod["metadata"]["labels"]["batch.kubernetes.io/job-completion-index"])


def planned_nodes(client: Client, kind: str) -> list[str]:
    """Return the node of each pod by the plan on the job."""
    job = client.get(f"{_PATHS[kind]}/namespaces/default/{kind}s/bert").body
    plan = json.loads(job["metadata"]["annotations"]["arena-topo.dev/plan"])
    return [node for node, count in plan["nodes"] for _ in range(count)]


@pytest.mark.parametrize("kind", ["jobset", "job"])
def test_a_job_runs_where_it_is_planned_also_when_it_is_resumed(
    servers: tuple[Arena, Client], kind: str
) -> None:
    """Suspended it has no pods; every command finds it by its name, and nothing is left of it in the end."""
    arena, client = servers
    outcome = arena("submit", kind, *_SHAPE, "sleep 90000")
    assert 0 == outcome.code, outcome.err
    assert planned_nodes(client, kind) == running(client, kind)
    assert f"Trainer:   {kind.upper()}" in arena("get", "bert").out
    assert "sleep 90000" in arena("logs", "bert", "--tail=1").out

    assert 0 == arena("suspend", "bert").code
    assert [] == client.get(_PODS, labelSelector=_SELECTORS[kind]).body["items"]
    outcome = arena("resume", "bert")
    assert 0 == outcome.code, outcome.err
    assert planned_nodes(client, kind) == running(client, kind)

    assert 0 == arena("delete", "bert").code
    eventually(lambda: not client.get(_PODS).body["items"], "the end of its pods")


@pytest.mark.parametrize(
    ("kind", "command", "word", "code"),
    # The first pod must not end before the gates of the last are removed, even on a busy machine.
    [("job", "sleep 1", "SUCCEEDED", 0), ("jobset", "sleep 20; exit 3", "FAILED", 5)],
)
def test_a_job_ends_as_its_pods_do(
    servers: tuple[Arena, Client], kind: str, command: str, word: str, code: int
) -> None:
    """`wait` and `get` say how."""
    arena, _ = servers
    outcome = arena("submit", kind, *_SHAPE, "--retry=0", command)
    assert 0 == outcome.code, outcome.err
    assert code == arena("wait", "bert", "--for=succeeded").code
    assert word in arena("get", "bert").out


def test_a_manifest_of_a_set_is_planned(servers: tuple[Arena, Client], tmp_path: Path) -> None:
    """What `submit --dry-run` prints, submitted as a file."""
    arena, client = servers
    printed = arena("submit", "jobset", *_SHAPE, "--dry-run=client", "-o", "yaml", "sleep 90000")
    assert 0 == printed.code, printed.err
    file = tmp_path / "bert.yaml"
    file.write_text(printed.out, "utf-8")
    outcome = arena("submit", "-f", str(file))
    assert 0 == outcome.code, outcome.err
    assert planned_nodes(client, "jobset") == running(client, "jobset")
