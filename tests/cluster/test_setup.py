"""The admin's one-time part is printed, applied and taken away as a whole."""

import re
from typing import Any

import pytest

from arena_topo.cluster.setup import (
    TOPOLOGY_RULES,
    USER_RULES,
    SetupFacts,
    apply,
    bindings,
    installed_objects,
    remove,
    setup_facts,
    setup_objects,
)
from arena_topo.errors import UsageError
from arena_topo.model.text.yaml import load
from tests.fakes import Answer, Call, missing, session, unserved
from tests.paths import ROOT

PAGE = (ROOT / "docs" / "reference" / "permissions.md").read_text()


def kinds(objects: list[dict[str, Any]]) -> list[str]:
    """Return the kinds of objects."""
    return [item["kind"] for item in objects]


def test_the_setup_is_policy_and_roles() -> None:
    """Roles bind nobody unless users are named."""
    objects, notes = setup_objects(SetupFacts(), (), "ml")

    expected = ["MutatingAdmissionPolicy", "MutatingAdmissionPolicyBinding", "ClusterRole", "ClusterRole"]
    assert expected == kinds(objects)
    assert ["the roles are not bound to anyone: --users binds them"] == list(notes)


@pytest.mark.parametrize(
    ("who", "subject"),
    [
        ("user:ann@example.com", {"kind": "User", "name": "ann@example.com"}),
        ("group:oidc:ml/team", {"kind": "Group", "name": "oidc:ml/team"}),
        ("serviceaccount:ml/ci", {"kind": "ServiceAccount", "namespace": "ml", "name": "ci"}),
    ],
)
def test_users_are_bound_to_both_roles(who: str, subject: dict[str, str]) -> None:
    """In their namespace to submit, in the cluster to see its topology."""
    in_namespace, in_cluster = bindings(who, "ml")

    assert ("RoleBinding", "ml") == (in_namespace["kind"], in_namespace["metadata"]["namespace"])
    assert "ClusterRoleBinding" == in_cluster["kind"]
    for binding in (in_namespace, in_cluster):
        assert subject.items() <= binding["subjects"][0].items()


def test_each_user_has_bindings_of_their_own() -> None:
    """Anyone who is added later takes nobody's away."""
    names = {bindings(who, "ml")[0]["metadata"]["name"] for who in ("user:a", "group:a", "user:b")}

    assert 3 == len(names)


@pytest.mark.parametrize("who", ["ann", "user:", "robot:r2", "serviceaccount:ci", "serviceaccount:a/b/c"])
def test_whoever_names_nobody_is_reported(who: str) -> None:
    """With how to write it."""
    with pytest.raises(UsageError, match="is not a user") as caught:
        setup_objects(SetupFacts(), (who,), "ml")
    assert "group:NAME" in caught.value.hint


def test_a_cluster_without_the_policys_api_gets_the_roles_alone() -> None:
    """And learns what is missing."""
    objects, notes = setup_objects(SetupFacts(policy_api=""), ("user:a",), "ml")

    assert ["ClusterRole", "ClusterRole", "RoleBinding", "ClusterRoleBinding"] == kinds(objects)
    assert "does not serve MutatingAdmissionPolicy" in notes[0]


def test_the_form_of_the_policy_is_what_is_served() -> None:
    """Its version, and whether pods can be in a gang."""
    paths = {
        "/apis": {
            "groups": [
                {"versions": [{"groupVersion": "admissionregistration.k8s.io/v1beta1"}]},
                {"versions": [{"groupVersion": "scheduling.k8s.io/v1beta1"}]},
            ]
        },
        "/apis/admissionregistration.k8s.io/v1beta1": {"resources": [{"name": "mutatingadmissionpolicies"}]},
        "/apis/scheduling.k8s.io/v1beta1": {"resources": [{"name": "podgroups"}]},
    }
    opened, _ = session(lambda call: Answer(body=paths[call.path]))

    assert SetupFacts(policy_api="v1beta1", gangs=True, validates=False, kueue="") == setup_facts(opened)


def test_everything_is_applied_to_its_own_place() -> None:
    """By server-side apply, taking over what an older one set."""
    opened, transport = session(lambda call: Answer(body=call.body))
    objects, _ = setup_objects(SetupFacts(), ("user:a",), "ml")
    done = list(apply(opened, objects))

    assert objects == done
    assert {"PATCH"} == {call.method for call in transport.calls}
    assert {"true"} == {call.query["force"] for call in transport.calls}
    rbac = "/apis/rbac.authorization.k8s.io/v1"
    assert (
        "/apis/admissionregistration.k8s.io/v1/mutatingadmissionpolicies/arena-topo"
        == transport.calls[0].path
    )
    assert transport.calls[4].path.startswith(f"{rbac}/namespaces/ml/rolebindings/arena-topo-user-")


def cluster_with(*names: str, owned: str = "") -> Any:
    """Return a script that has ClusterRoles of *names*, and nothing else of the setup."""

    def script(call: Call) -> Answer:
        if call.method == "DELETE":
            return missing("gone") if call.path.endswith("/gone") else Answer(body={})
        if not call.path.endswith("/clusterroles"):
            return unserved()
        owner = {"ownerReferences": [{"name": "x"}]}
        items = [
            {"metadata": {"name": name, "uid": name, **(owner if name == owned else {})}} for name in names
        ]
        return Answer(body={"items": items})

    return script


def test_what_is_there_is_found_by_our_label_and_taken_away() -> None:
    """Only the very objects that were seen; what has gone meanwhile is gone."""
    opened, transport = session(cluster_with("a", "gone"))
    found = installed_objects(opened)
    done = list(remove(opened, found))

    assert ["a", "gone"] == [item["metadata"]["name"] for item in found]
    assert ["a"] == [item["metadata"]["name"] for item in done]
    asked = [call for call in transport.calls if call.method == "GET"]
    assert {"app.kubernetes.io/managed-by=arena-topo"} == {call.query["labelSelector"] for call in asked}
    assert {"uid": "a"} == transport.calls[-2].body["preconditions"]


def test_what_belongs_to_something_else_is_left() -> None:
    """An operator may hand our label on to what it makes for a job."""
    opened, _ = session(cluster_with("a", "b", owned="b"))

    assert ["a"] == [item["metadata"]["name"] for item in installed_objects(opened)]


def documented(role: str) -> list[Any]:
    """Return the rules of *role* in the page on permissions."""
    blocks = [load(block, name="a block") for block in re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)]
    (found,) = [block["rules"] for block in blocks if block["metadata"]["name"] == role]
    return list(found)


def test_the_roles_are_the_documented_ones() -> None:
    """What the page shows in full comes first."""
    for name, rules in (("arena-topo-user", USER_RULES), ("arena-topo-topology", TOPOLOGY_RULES)):
        shown = documented(name)
        assert shown == rules[: len(shown)]


def test_every_further_right_is_named_on_the_page() -> None:
    """With its group, verb and resources."""
    further = USER_RULES[6:] + TOPOLOGY_RULES[2:]
    words = {
        word for rule in further for word in (*rule["apiGroups"], *rule["resources"], *rule["verbs"]) if word
    }

    assert set() == {word for word in words if f"`{word}`" not in PAGE}
