"""Objects that the API server refuses although their fields have the right names: what arena-topo writes next
to jobs.

Where the sandbox took one, a mistake in what we write would show on a real cluster only.
"""

import pytest

from tests.contract.bodies import config_map
from tests.contract.client import MERGE_PATCH, Object
from tests.contract.cluster import Cluster

_LAYOUT = "2006-01-02T15:04:05.000000Z07:00"
_PATHS = {
    "Lease": "/apis/coordination.k8s.io/v1/namespaces/{space}/leases",
    "ConfigMap": "/api/v1/namespaces/{space}/configmaps",
    "Event": "/api/v1/namespaces/{space}/events",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{space}/resourceclaims",
}


def lease(**spec: object) -> Object:
    """Return a Lease with *spec*."""
    head = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    return {**head, "metadata": {"name": "a"}, "spec": {"holderIdentity": "one", **spec}}


def event(**fields: object) -> Object:
    """Return an event about a pod, as the newer API has them."""
    body = {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": "a"},
        "involvedObject": {"kind": "Pod", "name": "p", "namespace": "{space}"},
        "reason": "Tried",
        "message": "m",
        "type": "Normal",
        "action": "Trying",
        "eventTime": "2026-01-02T03:04:05.000006Z",
        "reportingComponent": "arena-topo.dev/controller",
        "reportingInstance": "one",
    }
    return body | fields


def claim(request: Object) -> Object:
    """Return a claim with one request."""
    head = {"apiVersion": "resource.k8s.io/v1", "kind": "ResourceClaim", "metadata": {"name": "a"}}
    return {**head, "spec": {"devices": {"requests": [request]}}}


def exactly(**fields: object) -> Object:
    """Return a request of devices of one class."""
    return {"name": "gpus", "exactly": {"deviceClassName": "gpu.nvidia.com", **fields}}


def in_namespace(value: object, space: str) -> object:
    """Return *value* with the name of the test's namespace where it says so."""
    if isinstance(value, dict):
        return {key: in_namespace(each, space) for key, each in value.items()}
    return value.format(space=space) if value == "{space}" else value


def path(kind: str, space: str) -> str:
    """Return the path of the objects of a kind."""
    return _PATHS[kind].format(space=space)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            lease(leaseDurationSeconds=0),
            'Lease.coordination.k8s.io "a" is invalid: spec.leaseDurationSeconds: Invalid value: 0: must be greater than 0',
            id="a Lease of no time",
        ),
        pytest.param(
            lease(leaseDurationSeconds=-5),
            'Lease.coordination.k8s.io "a" is invalid: spec.leaseDurationSeconds: Invalid value: -5: must be greater than 0',
            id="a Lease of less than no time",
        ),
        pytest.param(
            lease(leaseTransitions=-1),
            'Lease.coordination.k8s.io "a" is invalid: spec.leaseTransitions: Invalid value: -1: must be greater than or '
            "equal to 0",
            id="fewer than no transitions",
        ),
        pytest.param(
            lease(renewTime="2026-01-02T03:04:05Z"),
            'Lease in version "v1" cannot be handled as a Lease: parsing time "2026-01-02T03:04:05Z" as '
            f'"{_LAYOUT}": cannot parse "Z" as ".000000"',
            id="an instant without microseconds",
        ),
        pytest.param(
            lease(acquireTime="2026-01-02T03:04:05.123Z"),
            'Lease in version "v1" cannot be handled as a Lease: parsing time "2026-01-02T03:04:05.123Z" as '
            f'"{_LAYOUT}": cannot parse ".123Z" as ".000000"',
            id="an instant with milliseconds",
        ),
        pytest.param(
            lease(renewTime="now"),
            f'Lease in version "v1" cannot be handled as a Lease: parsing time "now" as "{_LAYOUT}": cannot parse "now" '
            'as "2006"',
            id="no instant",
        ),
        pytest.param(
            lease(renewTime="2026-13-02T03:04:05.000006Z"),
            'Lease in version "v1" cannot be handled as a Lease: parsing time "2026-13-02T03:04:05.000006Z": month out of '
            "range",
            id="a thirteenth month",
        ),
        pytest.param(
            config_map("a", None, **{"a/b": "1"}),
            'ConfigMap "a" is invalid: data[a/b]: Invalid value: "a/b": a valid config key must consist of alphanumeric '
            "characters, '-', '_' or '.' (e.g. 'key.name',  or 'KEY_NAME',  or 'key-name', regex used for validation is "
            "'[-._a-zA-Z0-9]+')",
            id="a key that is a path",
        ),
        pytest.param(
            config_map("a", None, **{"..": "1"}),
            'ConfigMap "a" is invalid: data[..]: Invalid value: "..": must not be \'..\'',
            id="a key that is a folder",
        ),
        pytest.param(
            config_map("a", big="x" * (1024 * 1024 + 1)),
            'ConfigMap "a" is invalid: []: Too long: may not be more than 1048576 bytes',
            id="too much data",
        ),
        pytest.param(
            event(action=""),
            'Event "a" is invalid: action: Required value',
            id="an event without an action",
        ),
        pytest.param(
            event(reportingInstance=""),
            'Event "a" is invalid: reportingInstance: Required value',
            id="an event of nobody",
        ),
        pytest.param(
            event(message="x" * 1025),
            'Event "a" is invalid: message: Invalid value: "": can have at most 1024 characters',
            id="an event that says too much",
        ),
        pytest.param(
            event(reason="x" * 129),
            'Event "a" is invalid: reason: Invalid value: "": can have at most 128 characters',
            id="a reason that says too much",
        ),
        pytest.param(
            event(eventTime=None, involvedObject={"kind": "Pod", "name": "p", "namespace": "default"}),
            'Event "a" is invalid: involvedObject.namespace: Invalid value: "default": does not match event.namespace',
            id="an event about another namespace",
        ),
        pytest.param(
            claim({"name": "gpus"}),
            'ResourceClaim.resource.k8s.io "a" is invalid: spec.devices.requests[0]: Required value: exactly one of '
            "`exactly` or `firstAvailable` is required",
            id="a request for nothing",
        ),
        pytest.param(
            claim(exactly(count=-1)),
            'ResourceClaim.resource.k8s.io "a" is invalid: spec.devices.requests[0].exactly.count: Invalid value: -1: '
            "must be greater than zero",
            id="fewer than no GPUs",
        ),
        pytest.param(
            claim(exactly(allocationMode="All", count=2)),
            'ResourceClaim.resource.k8s.io "a" is invalid: spec.devices.requests[0].exactly.count: Invalid value: 2: '
            "must not be specified when allocationMode is 'All'",
            id="two of all",
        ),
        pytest.param(
            claim({"name": "gpus", "exactly": {"deviceClassName": "", "count": 1}}),
            'ResourceClaim.resource.k8s.io "a" is invalid: spec.devices.requests[0].exactly.deviceClassName: Required value',
            id="GPUs of no class",
        ),
    ],
)
def test_what_is_not_valid_is_refused(cluster: Cluster, space: str, body: Object, message: str) -> None:
    """With the API server's words, and nothing is stored."""
    answer = cluster.admin.send("POST", path(body["kind"], space), in_namespace(body, space))

    assert message == answer.message
    assert 404 == cluster.admin.get(f"{path(body['kind'], space)}/a").code


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(
            lease(leaseDurationSeconds=1, renewTime="2026-01-02T03:04:05.000006+01:00"), id="a Lease"
        ),
        pytest.param(lease(holderIdentity="", leaseTransitions=0, renewTime=None), id="nobody's Lease"),
        pytest.param(config_map("a", None, **{".a.b_C-1": "", "empty": ""}), id="a ConfigMap"),
        pytest.param(event(message="x" * 1024), id="an event"),
        pytest.param(claim(exactly()), id="a claim of one GPU"),
        pytest.param(claim(exactly(allocationMode="All")), id="a claim of all GPUs"),
    ],
)
def test_what_is_valid_is_stored(cluster: Cluster, space: str, body: Object) -> None:
    """Also at the edge of what may be."""
    answer = cluster.admin.send("POST", path(body["kind"], space), in_namespace(body, space))
    assert 201 == answer.code, answer.message


def test_a_change_is_checked_as_well(cluster: Cluster, space: str) -> None:
    """A valid object does not become one that is not."""
    leases = path("Lease", space)
    assert 201 == cluster.admin.send("POST", leases, lease(leaseDurationSeconds=10)).code
    zero = {"spec": {"leaseDurationSeconds": 0}}
    answer = cluster.admin.send("PATCH", f"{leases}/a", zero, MERGE_PATCH)

    assert (422, "Invalid") == (answer.code, answer.reason)
    assert 10 == cluster.admin.get(f"{leases}/a").body["spec"]["leaseDurationSeconds"]


def test_the_spec_of_a_claim_does_not_change(cluster: Cluster, space: str) -> None:
    """Other GPUs are another claim."""
    claims = path("ResourceClaim", space)
    assert 201 == cluster.admin.send("POST", claims, claim(exactly(count=1))).code
    answer = cluster.admin.send("PATCH", f"{claims}/a", {"spec": {"devices": {"requests": []}}}, MERGE_PATCH)

    assert 422 == answer.code
    assert answer.message.startswith('ResourceClaim.resource.k8s.io "a" is invalid: spec: Invalid value: ')
    assert answer.message.endswith(": field is immutable")


def test_an_immutable_config_map_does_not_change(cluster: Cluster, space: str) -> None:
    """Neither its data nor that it is immutable."""
    maps = path("ConfigMap", space)
    assert 201 == cluster.admin.send("POST", maps, config_map("a", x="1") | {"immutable": True}).code
    answer = cluster.admin.send("PATCH", f"{maps}/a", {"data": {"x": "2"}}, MERGE_PATCH)

    expected = 'ConfigMap "a" is invalid: data: Forbidden: field is immutable when `immutable` is set'
    assert (422, expected) == (answer.code, answer.message)
