"""GPUs by claims that somebody else wrote are counted, at the price of one call."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from arena_topo.jobs.lookup import fetch_job_view
from arena_topo.jobs.status import with_claimed_gpus
from arena_topo.model.keys import CLAIMED_GPUS
from arena_topo.model.objects import Object
from tests.fakes import Answer, Call, Script, refusal, session, unserved
from tests.objects import mpijob, pod


def claiming(name: str, *claims: str, made: bool = True) -> Object:
    """Return a pod without requests whose claims were *made* from templates, or are named by it."""
    found = pod(name)
    found["spec"]["containers"][0]["resources"] = {}
    entries: list[Object] = [
        {"name": f"c{at}", "resourceClaimName": claim} for at, claim in enumerate(claims)
    ]
    found["spec"]["resourceClaims"] = (
        [{"name": e["name"], "resourceClaimTemplateName": "t"} for e in entries] if made else entries
    )
    if made:
        found["status"]["resourceClaimStatuses"] = entries
    return found


def claim(name: str, *requests: Object, allocated: int = 0) -> Object:
    """Return a claim with *requests*, of which *allocated* GPUs of NVIDIA's driver were given."""
    results = [{"driver": "gpu.nvidia.com", "pool": "n1", "device": f"gpu-{at}"} for at in range(allocated)]
    status = {"allocation": {"devices": {"results": results}}} if allocated else {}
    return {"metadata": {"name": name}, "spec": {"devices": {"requests": list(requests)}}, "status": status}


def exactly(count: int | None = None, device_class: str = "gpu.nvidia.com") -> Object:
    """Return a request of resource.k8s.io/v1."""
    return {"name": "r", "exactly": {"deviceClassName": device_class, **({"count": count} if count else {})}}


def serving(pods: list[Object], claims: list[Any], version: str = "v1") -> Script:
    """Return a script of a server that has a job with *pods*, and *claims* in one version."""

    def script(call: Call) -> Answer:
        if call.path.endswith("/pods"):
            return Answer(body={"items": pods})
        if call.path.endswith("/resourceclaims"):
            return Answer(body={"items": claims}) if f"/{version}/" in call.path else unserved()
        return Answer(body=mpijob("job")) if "/v2beta1/" in call.path else unserved()

    return script


@pytest.mark.parametrize(
    ("claims", "expected"),
    [
        ([claim("a", exactly(2))], 2),
        ([claim("a", exactly())], 1),
        ([claim("a", exactly(2), exactly(1, "gpu.amd.com"))], 3),
        ([claim("a", exactly(4, "nic.example.com"))], 0),
        ([claim("a", exactly(1), allocated=8)], 8),
        ([claim("a", {"name": "r", "deviceClassName": "gpu.nvidia.com", "count": 2})], 2),
        (
            [
                claim(
                    "a", {"name": "r", "firstAvailable": [{"deviceClassName": "gpu.nvidia.com", "count": 4}]}
                )
            ],
            4,
        ),
        ([claim("other", exactly(2))], 0),
    ],
)
def test_the_gpus_of_a_claim_are_those_of_its_pod(claims: list[Object], expected: int) -> None:
    """Those that were allocated, else those that it asks for, in every version of the API."""
    opened, _ = session(serving([claiming("job-worker-0", "a")], claims))

    assert expected == fetch_job_view(opened, "job").instances[0].gpus


@pytest.mark.parametrize("version", ["v1", "v1beta2", "v1beta1"])
def test_the_version_that_is_served_is_found(version: str) -> None:
    """For pods that name their claim, too."""
    opened, _ = session(
        serving([claiming("job-worker-0", "a", made=False)], [claim("a", exactly(2))], version)
    )

    assert 2 == fetch_job_view(opened, "job").instances[0].gpus


def test_jobs_without_claims_take_no_more_calls() -> None:
    """And neither do those whose number of GPUs submit wrote down."""
    ours = claiming("job-worker-0", "a")
    ours["metadata"]["annotations"] = {CLAIMED_GPUS: "4"}
    opened, transport = session(serving([ours], [claim("a", exactly(2))]))

    assert 4 == fetch_job_view(opened, "job").instances[0].gpus
    assert [] == [call.path for call in transport.calls if "resourceclaims" in call.path]


def test_who_may_not_list_claims_sees_the_job_all_the_same() -> None:
    """Without the GPUs of the claims."""

    def script(call: Call) -> Answer:
        if call.path.endswith("/resourceclaims"):
            return refusal(403, "Forbidden")
        return serving([claiming("job-worker-0", "a")], [])(call)

    opened, _ = session(script)

    assert 0 == fetch_job_view(opened, "job").instances[0].gpus


@given(
    st.recursive(
        st.none() | st.integers() | st.text(max_size=5),
        lambda below: (
            st.lists(below, max_size=3)
            | st.dictionaries(
                st.sampled_from(
                    [
                        "metadata",
                        "name",
                        "spec",
                        "devices",
                        "requests",
                        "exactly",
                        "count",
                        "status",
                        "allocation",
                        "results",
                        "driver",
                    ]
                ),
                below,
                max_size=4,
            )
        ),
        max_leaves=20,
    )
)
def test_a_claim_that_cannot_be_read_disturbs_nobody(spoiled: Any) -> None:
    """It counts nothing, and the others count."""
    pods = [claiming("job-worker-0", "a"), claiming("job-worker-1", "b")]
    broken = {"metadata": {"name": "b"}, "spec": spoiled, "status": spoiled}
    opened, _ = session(serving(pods, [broken, claim("a", exactly(2))]))

    first = with_claimed_gpus(opened, pods)[0]

    assert "2" == first["metadata"]["annotations"][CLAIMED_GPUS]
