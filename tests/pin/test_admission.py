"""The admission policy that an admin installs; what it does is tested on a real API server (tests/e2e)."""

import hashlib
import json
import re
from typing import Any

import pytest

from arena_topo.model.plan_record import MOST_WORKERS
from arena_topo.pin.admission import APIS, VERSION, installed_version, policy_objects, sets_gangs
from arena_topo.pin.run_lists import encoded

KNOWN = {1: "488fbef87609d039", 2: "83730c1c206e89cf", 3: "d1398d4382b91864", 4: "da1e6b14d3876415"}


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
    """Anyone who changed it."""
    assert 0 == installed_version({"metadata": metadata})


@pytest.mark.parametrize("gangs", [True, False])
def test_a_policy_names_gangs_only_where_pods_can_be_in_one(gangs: bool) -> None:
    """A server that does not know the field refuses the whole policy."""
    policy = policy_objects("v1", gangs=gangs)[0]

    assert gangs is sets_gangs(policy)
    assert gangs is ("schedulingGroup" in json.dumps(policy))


def variables(name: str) -> dict[str, str]:
    """Return the variables of the policy that belong to one list, by what follows its name."""
    found = policy_objects("v1", gangs=False)[0]["spec"]["variables"]
    return {
        each["name"].removeprefix(name): each["expression"] for each in found if each["name"].startswith(name)
    }


@pytest.mark.parametrize("name", ["node", "gpus", "claim"])
def test_a_list_is_taken_apart_only_where_it_has_the_form_of_one(name: str) -> None:
    """Anybody may write one, and only expressions over a hundred numbers look at its entries."""
    found = variables(name)

    assert re.search(r"\.matches\('\^.*\$'\) \? .*\.split\(','\) : \[''\]$", found["Runs"])
    assert all(re.search(r"variables\.(blocks|steps)\b", found[part]) for part in ("Block", "Found"))
    assert not any(f"variables.{name}Runs.filter" in text for text in found.values())


@pytest.mark.parametrize(
    ("text", "is_a_list"),
    [
        (encoded(["a", "b", "", "c"]), True),
        (encoded(["GPU-a+GPU-b"] * 3 + ["u:v"]), True),
        (encoded([f"node-{i}" for i in range(MOST_WORKERS)]), True),
        ("", False),
        ("node-a", False),
        ("0:a,x:b,2:", False),
        ("0:a,", False),
        (",0:a", False),
        ("-1:a", False),
        ("1234567890:a", False),
    ],
)
def test_the_form_is_that_of_the_lists_that_are_written(text: str, is_a_list: bool) -> None:
    """And there are as many blocks as the longest of them needs."""
    found = re.search(r"matches\('(.*?)'\)", variables("node")["Runs"])

    assert found
    assert is_a_list is bool(re.search(found[1], text))
    most = re.search(r"size\(variables\.nodeRuns\) > (\d+) ", variables("node")["Block"])
    assert most
    assert int(most[1]) >= max(MOST_WORKERS + 1, text.count(",") + 1)


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
