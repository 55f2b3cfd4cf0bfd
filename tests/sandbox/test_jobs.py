"""Jobs that end by the clock."""

from tests.contract.bodies import pod
from tests.contract.client import Client, Object
from tests.contract.cluster import eventually


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


def _ends(client: Client, space: str, name: str) -> list[tuple[str, str]]:
    status = client.get(f"{_jobs(space)}/{name}").body.get("status", {})
    return [(condition["type"], condition["reason"]) for condition in status.get("conditions", [])]


def test_a_job_ends_at_its_deadline(client: Client, space: str) -> None:
    """A job that runs longer than its deadline has Failed, and its pods are gone."""
    client.send("POST", _jobs(space), _job("slow", "sleep infinity", activeDeadlineSeconds=1))
    eventually(lambda: _ends(client, space, "slow"), "the end")
    eventually(lambda: not client.get(f"/api/v1/namespaces/{space}/pods").body["items"], "its pods to go")

    assert [("Failed", "DeadlineExceeded")] == _ends(client, space, "slow")


def test_a_finished_job_is_deleted_after_its_time_to_live(client: Client, space: str) -> None:
    """With ttlSecondsAfterFinished a job and its pod go by themselves."""
    client.send("POST", _jobs(space), _job("brief", "sleep 1", ttlSecondsAfterFinished=1))
    eventually(lambda: client.get(f"{_jobs(space)}/brief").code == 404, "the job to go")
    eventually(lambda: not client.get(f"/api/v1/namespaces/{space}/pods").body["items"], "its pod to go")


def test_a_failing_job_gives_up_at_its_limit(client: Client, space: str) -> None:
    """A job whose pods fail more often than its limit has Failed."""
    client.send("POST", _jobs(space), _job("broken", "sleep 1; exit 3", backoffLimit=1))
    eventually(lambda: _ends(client, space, "broken"), "the end")
    pods = client.get(f"/api/v1/namespaces/{space}/pods").body["items"]
    codes = [obj["status"]["containerStatuses"][0]["state"]["terminated"]["exitCode"] for obj in pods]

    assert [("Failed", "BackoffLimitExceeded")] == _ends(client, space, "broken")
    assert codes == [3, 3]
