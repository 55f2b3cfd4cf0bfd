"""The Lease by which one of several replicas decides: created once, renewed by the version that was read."""

from tests.contract.client import MERGE_PATCH, Object
from tests.contract.cluster import Cluster


def _leases(space: str, name: str = "") -> str:
    base = f"/apis/coordination.k8s.io/v1/namespaces/{space}/leases"
    return f"{base}/{name}" if name else base


def _lease(holder: str) -> Object:
    spec = {
        "holderIdentity": holder,
        "leaseDurationSeconds": 10,
        "acquireTime": "2026-01-02T03:04:05.000006Z",
        "renewTime": "2026-01-02T03:04:05.000006Z",
        "leaseTransitions": 0,
    }
    return {
        "apiVersion": "coordination.k8s.io/v1",
        "kind": "Lease",
        "metadata": {"name": "controller"},
        "spec": spec,
    }


def _renewed(version: str, **spec: object) -> Object:
    return {"metadata": {"resourceVersion": version}, "spec": spec}


def test_leases_are_discovered(cluster: Cluster) -> None:
    """They are served in namespaces, with the verbs that a replica needs."""
    resources = cluster.admin.get("/apis/coordination.k8s.io/v1").body["resources"]
    (found,) = [each for each in resources if each["name"] == "leases"]
    assert ("Lease", True) == (found["kind"], found["namespaced"])
    assert {"create", "get", "patch"} <= set(found["verbs"])


def test_a_lease_keeps_what_its_holder_wrote(cluster: Cluster, space: str) -> None:
    """Whose it is, for how long, and instants to the microsecond."""
    assert 201 == cluster.admin.send("POST", _leases(space), _lease("one")).code
    assert _lease("one")["spec"] == cluster.admin.get(_leases(space, "controller")).body["spec"]


def test_one_of_two_creates_a_lease(cluster: Cluster, space: str) -> None:
    """The other one hears that it is there already."""
    assert 201 == cluster.admin.send("POST", _leases(space), _lease("one")).code
    answer = cluster.admin.send("POST", _leases(space), _lease("two"))
    assert (409, "AlreadyExists") == (answer.code, answer.reason)
    assert 'leases.coordination.k8s.io "controller" already exists' == answer.message
    assert "one" == cluster.admin.get(_leases(space, "controller")).body["spec"]["holderIdentity"]


def test_one_of_two_takes_a_lease_that_both_have_read(cluster: Cluster, space: str) -> None:
    """The version moves with each renewal, and a write on top of an older one changes nothing."""
    first = cluster.admin.send("POST", _leases(space), _lease("one")).body["metadata"]["resourceVersion"]
    path = _leases(space, "controller")
    later = _renewed(first, holderIdentity="two", leaseTransitions=1, renewTime="2026-01-02T03:04:16.000000Z")
    taken = cluster.admin.send("PATCH", path, later, MERGE_PATCH)
    refused = cluster.admin.send("PATCH", path, _renewed(first, holderIdentity="three"), MERGE_PATCH)

    assert 200 == taken.code
    assert first != taken.body["metadata"]["resourceVersion"]
    assert (409, "Conflict") == (refused.code, refused.reason)
    found = cluster.admin.get(path).body["spec"]
    assert ("two", 10, 1) == (
        found["holderIdentity"],
        found["leaseDurationSeconds"],
        found["leaseTransitions"],
    )


def test_a_lease_may_be_nobodys(cluster: Cluster, space: str) -> None:
    """A holder that ends writes an empty name."""
    created = cluster.admin.send("POST", _leases(space), _lease("one")).body
    given_up = _renewed(created["metadata"]["resourceVersion"], holderIdentity="", leaseDurationSeconds=1)
    assert 200 == cluster.admin.send("PATCH", _leases(space, "controller"), given_up, MERGE_PATCH).code
    assert "" == cluster.admin.get(_leases(space, "controller")).body["spec"]["holderIdentity"]


def test_whoever_has_no_right_to_leases_holds_none(cluster: Cluster, space: str) -> None:
    """So that a second replica without the right cannot begin to decide."""
    answer = cluster.stranger.send("POST", _leases(space), _lease("one"))
    assert (403, "Forbidden") == (answer.code, answer.reason)
    assert 404 == cluster.admin.get(_leases(space, "controller")).code
