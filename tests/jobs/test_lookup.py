"""A job is found in the version that is served, in as few calls as can be."""

import pytest

from arena_topo.errors import Forbidden, NotFound
from arena_topo.jobs.lookup import look_up, view
from arena_topo.model.apiversion import ApiVersion
from tests.fakes import Answer, Call, Script, missing, refusal, session, unserved
from tests.objects import mpijob, pod


def serving(version: ApiVersion, *, pods: int = 3) -> Script:
    """Return a script that serves one version with one job."""

    def script(call: Call) -> Answer:
        if call.path.endswith("/pods"):
            return Answer(body={"items": [pod(f"job-worker-{at}") for at in range(pods)]})
        if call.path.startswith("/apis/batch/"):
            return missing("job-launcher")
        if f"/{version.value}/" not in call.path:
            return unserved()
        return Answer(body=mpijob("job", version)) if call.path.endswith("/job") else missing("other")

    return script


@pytest.mark.parametrize(
    ("version", "calls"),
    [(ApiVersion.V2BETA1, 2), (ApiVersion.V1, 3), (ApiVersion.V1ALPHA1, 5)],
    ids=lambda value: str(value),
)
def test_a_job_is_read_in_few_calls(version: ApiVersion, calls: int) -> None:
    """Two where the newest version is served: the job and its pods; more only to find out that it is not."""
    opened, transport = session(serving(version))

    assert version.value == view(opened, "job").version
    assert calls == len(transport.calls)


def test_pods_are_asked_for_by_their_job() -> None:
    """So that pods of others cost the server's time alone."""
    opened, transport = session(serving(ApiVersion.V2BETA1))
    view(opened, "job")

    assert "training.kubeflow.org/job-name=job" == transport.calls[-1].query["labelSelector"]


def test_a_missing_job_is_told_by_the_version_that_is_served() -> None:
    """And no older version is asked."""
    opened, transport = session(serving(ApiVersion.V1))

    assert (ApiVersion.V1, None) == look_up(opened, "other")
    assert 2 == len(transport.calls)


def test_a_cluster_without_the_resource_is_told() -> None:
    """After every version was tried."""
    opened, transport = session(lambda _: unserved())
    with pytest.raises(NotFound, match="this cluster has no MPIJob resource"):
        look_up(opened, "job")
    assert 3 == len(transport.calls)


def test_a_refusal_is_not_taken_for_a_missing_version() -> None:
    """It is the user's to know."""
    opened, _ = session(lambda _: refusal(403, "Forbidden", "no"))
    with pytest.raises(Forbidden):
        look_up(opened, "job")
