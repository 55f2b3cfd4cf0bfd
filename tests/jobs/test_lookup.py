"""A job is found in the version that is served, in as few calls as can be."""

from pathlib import Path

import pytest

from arena_topo.errors import Forbidden, NotFound
from arena_topo.jobs.lookup import fetch_job_view, look_up_job, of_type
from arena_topo.kinds.mpijob import ApiVersion
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


@pytest.mark.parametrize("version", ApiVersion)
def test_a_job_is_read_in_two_calls(
    version: ApiVersion, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The job and its pods, once it is known which version the server serves."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    calls = []
    for _ in range(2):
        opened, transport = session(serving(version), server="https://one.example.com")
        assert version.value == fetch_job_view(opened, "job").version
        calls.append(len(transport.calls))

    assert [2 + list(ApiVersion).index(version), 2] == calls


def test_a_version_that_is_no_longer_served_is_found_out(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """What was remembered is a hint, of one server alone."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    found = []
    for version, server in ((ApiVersion.V1, "a"), (ApiVersion.V2BETA1, "a"), (ApiVersion.V1ALPHA1, "b")):
        opened, _ = session(serving(version), server=server)
        found.append(fetch_job_view(opened, "job").version)

    assert ["v1", "v2beta1", "v1alpha1"] == found


def test_a_cache_that_cannot_be_written_is_done_without(monkeypatch: pytest.MonkeyPatch) -> None:
    """Every command looks again then."""
    monkeypatch.setenv("XDG_CACHE_HOME", "/dev/null/nowhere")
    opened, _ = session(serving(ApiVersion.V1), server="https://one.example.com")

    assert "v1" == fetch_job_view(opened, "job").version


def test_the_end_of_an_old_job_takes_a_third_call() -> None:
    """Only the launcher's batch Job tells it in v1alpha1."""
    ended = mpijob("job", ApiVersion.V1ALPHA1, status={"launcherStatus": "Succeeded"})
    inner = serving(ApiVersion.V1ALPHA1)
    opened, transport = session(
        lambda call: (
            Answer(body=ended)
            if call.path.endswith("/v1alpha1/namespaces/default/mpijobs/job")
            else inner(call)
        )
    )
    fetch_job_view(opened, "job")

    assert "/apis/batch/v1/namespaces/default/jobs/job-launcher" in [call.path for call in transport.calls]


def test_pods_are_asked_for_by_their_job() -> None:
    """So that pods of others cost the server's time alone."""
    opened, transport = session(serving(ApiVersion.V2BETA1))
    fetch_job_view(opened, "job")

    assert "training.kubeflow.org/job-name=job" == transport.calls[-1].query["labelSelector"]


def test_a_missing_job_is_told_by_the_version_that_is_served() -> None:
    """And no older version is asked, only whether other kinds are served."""
    opened, transport = session(serving(ApiVersion.V1))

    assert (ApiVersion.V1, None) == look_up_job(opened, "other")
    assert 3 == len(transport.calls)


def test_a_cluster_without_the_resource_is_reported() -> None:
    """After every version was tried, and other kinds were looked for."""
    opened, transport = session(lambda _: unserved())
    with pytest.raises(NotFound, match="this cluster has no MPIJob resource"):
        look_up_job(opened, "job")
    assert 4 == len(transport.calls)


@pytest.mark.parametrize(
    ("word", "kind", "operator"),
    [
        ("pytorchjob", "PyTorchJob", "the Kubeflow training operator"),
        ("jobset", "JobSet", "the JobSet controller"),
    ],
)
def test_a_cluster_without_another_kind_is_told_what_serves_it(word: str, kind: str, operator: str) -> None:
    """Each kind is some operator's."""
    opened, _ = session(lambda _: unserved())
    with pytest.raises(NotFound, match=f"this cluster has no {kind} resource") as caught:
        look_up_job(of_type(opened, word), "job")
    assert f"ask the cluster's admin to install {operator}" == caught.value.hint


def test_a_refusal_is_not_taken_for_a_missing_version() -> None:
    """It is the user's to know."""
    opened, _ = session(lambda _: refusal(403, "Forbidden", "no"))
    with pytest.raises(Forbidden):
        look_up_job(opened, "job")
