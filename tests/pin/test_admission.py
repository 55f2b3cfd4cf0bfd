"""The admission policy that an admin installs; what it does is tested on a real API server (tests/e2e)."""

import hashlib
import json
from typing import Any

import pytest

from arena_topo.pin.admission import APIS, VERSION, installed_version, policy_objects, sets_gangs

KNOWN = {1: "488fbef87609d039", 2: "83730c1c206e89cf", 3: "d1398d4382b91864"}


def digest() -> str:
    """Return what names the policy's behaviour."""
    spec = policy_objects("v1", gangs=True)[0]["spec"]
    return hashlib.sha256(json.dumps(spec, sort_keys=True).encode()).hexdigest()[:16]


def test_every_change_of_the_policy_raises_its_version() -> None:
    """An installed one is known to be old by its number alone: raise VERSION, and write its digest here."""
    assert KNOWN[VERSION] == digest()


@pytest.mark.parametrize("api", APIS)
def test_the_binding_names_the_policy(api: str) -> None:
    """In the version of the API that the cluster serves."""
    policy, binding = policy_objects(api, gangs=False)

    assert f"admissionregistration.k8s.io/{api}" == policy["apiVersion"] == binding["apiVersion"]
    assert policy["metadata"]["name"] == binding["spec"]["policyName"]


def test_an_installed_policy_tells_its_version() -> None:
    """By a label."""
    assert VERSION == installed_version(policy_objects("v1", gangs=True)[0])


@pytest.mark.parametrize(
    "metadata", [{}, {"labels": None}, {"labels": {"arena-topo.dev/policy-version": "x"}}]
)
def test_a_policy_that_does_not_tell_is_the_oldest(metadata: dict[str, Any]) -> None:
    """Whoever changed it."""
    assert 0 == installed_version({"metadata": metadata})


@pytest.mark.parametrize("gangs", [True, False])
def test_a_policy_names_gangs_only_where_pods_can_be_in_one(gangs: bool) -> None:
    """A server that does not know the field refuses the whole policy."""
    policy = policy_objects("v1", gangs=gangs)[0]

    assert gangs is sets_gangs(policy)
    assert gangs is ("schedulingGroup" in json.dumps(policy))


def test_a_worker_that_cannot_be_pinned_does_not_slip_through() -> None:
    """And no pod of anybody else is looked at twice."""
    spec = policy_objects("v1", gangs=True)[0]["spec"]

    assert ("Fail", ["CREATE"]) == (
        spec["failurePolicy"],
        spec["matchConstraints"]["resourceRules"][0]["operations"],
    )
    assert ["asks-for-a-place", "has-an-index"] == [
        condition["name"] for condition in spec["matchConditions"]
    ]
