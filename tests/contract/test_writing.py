"""Creating and changing objects."""

import uuid
from collections.abc import Iterator

import pytest

from tests.contract.bodies import config_map, mpijob, path_of, pod
from tests.contract.client import APPLY_PATCH, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH, Object
from tests.contract.cluster import Cluster, eventually


def _maps(space: str, name: str = "") -> str:
    return f"/api/v1/namespaces/{space}/configmaps" + (f"/{name}" if name else "")


def test_a_created_object_has_identity(cluster: Cluster, space: str) -> None:
    """The server gives a new object its namespace, a uid, a time and a version."""
    answer = cluster.admin.send("POST", _maps(space), config_map("a", x="1"))

    assert answer.code == 201
    assert space == answer.body["metadata"]["namespace"]
    assert {"uid", "creationTimestamp", "resourceVersion"} <= answer.body["metadata"].keys()


def test_a_dry_run_stores_nothing(cluster: Cluster, space: str) -> None:
    """A dry run answers like a creation, and the object is not there."""
    answer = cluster.admin.send("POST", _maps(space), config_map("a"), dryRun="All")

    assert answer.code == 201
    assert cluster.admin.get(_maps(space, "a")).code == 404


def test_a_taken_name_is_refused(cluster: Cluster, space: str) -> None:
    """A second object of a name is AlreadyExists, named with its resource."""
    cluster.admin.send("POST", _maps(space), config_map("a"))
    answer = cluster.admin.send("POST", _maps(space), config_map("a"))

    assert (409, "AlreadyExists") == (answer.code, answer.reason)
    assert answer.message == 'configmaps "a" already exists'
    assert {"name": "a", "kind": "configmaps"} == answer.body["details"]


def test_a_dry_run_of_a_taken_name_is_refused(cluster: Cluster, space: str) -> None:
    """A dry run finds that a name is taken."""
    cluster.admin.send("POST", path_of(space, "mpijobs"), mpijob("a", ["nowhere"], suspend=True))
    answer = cluster.admin.send("POST", path_of(space, "mpijobs"), mpijob("a", ["nowhere"]), dryRun="All")

    assert answer.message == 'mpijobs.kubeflow.org "a" already exists'


def test_an_absent_object_is_named(cluster: Cluster, space: str) -> None:
    """What is not there is NotFound, with the group in its resource's name."""
    answer = cluster.admin.get(path_of(space, "mpijobs", "nope"))

    assert (404, "NotFound") == (answer.code, answer.reason)
    assert answer.message == 'mpijobs.kubeflow.org "nope" not found'
    assert {"name": "nope", "group": "kubeflow.org", "kind": "mpijobs"} == answer.body["details"]


def test_an_unserved_resource_is_not_found(cluster: Cluster, space: str) -> None:
    """A resource of a group that is not served gives 404."""
    answer = cluster.admin.get(f"/apis/kubeflow.org/v1/namespaces/{space}/mpijobs")

    assert answer.code == 404


def test_an_absent_namespace_is_named(cluster: Cluster) -> None:
    """Nothing can be created where there is no namespace."""
    answer = cluster.admin.send("POST", _maps("no-such-space"), config_map("a"))

    assert (404, 'namespaces "no-such-space" not found') == (answer.code, answer.message)


@pytest.mark.parametrize(
    ("where", "path"),
    [
        pytest.param("job", "spec.bogus", id="top"),
        pytest.param("template", "spec.mpiReplicaSpecs.Worker.template.spec.bogus", id="template"),
    ],
)
def test_strict_validation_names_unknown_fields(cluster: Cluster, space: str, where: str, path: str) -> None:
    """With fieldValidation=Strict an unknown field of a custom resource is an error that names its path."""
    body = mpijob("a", ["nowhere"])
    target = body["spec"] if where == "job" else body["spec"]["mpiReplicaSpecs"]["Worker"]["template"]["spec"]
    target["bogus"] = 1
    answer = cluster.admin.send(
        "POST", path_of(space, "mpijobs"), body, fieldValidation="Strict", dryRun="All"
    )

    assert (400, "BadRequest") == (answer.code, answer.reason)
    assert f'strict decoding error: unknown field "{path}"' in answer.message


def test_strict_validation_of_a_built_in_kind(cluster: Cluster, space: str) -> None:
    """An unknown field of a pod is an error that names its path."""
    body = pod("a", bogus=1)
    answer = cluster.admin.send("POST", f"/api/v1/namespaces/{space}/pods", body, fieldValidation="Strict")

    assert answer.message == (
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.bogus"'
    )


def test_unknown_fields_are_dropped_with_a_warning(cluster: Cluster, space: str) -> None:
    """Without strict validation unknown fields vanish, and a Warning header says which."""
    body = config_map("a") | {"bogus": 1}
    answer = cluster.admin.send("POST", _maps(space), body, fieldValidation="Warn")

    assert "bogus" not in answer.body
    assert ('299 - "unknown field \\"bogus\\""',) == answer.warnings


def test_a_wrong_type_is_invalid(cluster: Cluster, space: str) -> None:
    """A value of the wrong type in a custom resource is Invalid with its path and both types."""
    body = mpijob("a", ["nowhere"])
    body["spec"]["slotsPerWorker"] = "two"
    answer = cluster.admin.send("POST", path_of(space, "mpijobs"), body, dryRun="All")

    assert (422, "Invalid") == (answer.code, answer.reason)
    assert answer.message == (
        'MPIJob.kubeflow.org "a" is invalid: spec.slotsPerWorker: Invalid value: "string": '
        'spec.slotsPerWorker in body must be of type integer: "string"'
    )


def test_a_value_outside_an_enum_is_invalid(cluster: Cluster, space: str) -> None:
    """A value that an enum does not have is Invalid, with the values there are."""
    body = mpijob("a", ["nowhere"])
    body["spec"]["mpiImplementation"] = "LAM"
    answer = cluster.admin.send("POST", path_of(space, "mpijobs"), body, dryRun="All")

    assert answer.message == (
        'MPIJob.kubeflow.org "a" is invalid: spec.mpiImplementation: Unsupported value: "LAM": '
        'supported values: "OpenMPI", "Intel", "MPICH"'
    )


def test_a_bad_name_is_invalid(cluster: Cluster, space: str) -> None:
    """A name that is no DNS subdomain is Invalid."""
    answer = cluster.admin.send("POST", _maps(space), config_map("No_Name"))

    assert (422, "Invalid") == (answer.code, answer.reason)
    assert answer.message.startswith(
        'ConfigMap "No_Name" is invalid: metadata.name: Invalid value: "No_Name": a lowercase RFC 1123 subdomain'
    )


def test_crd_defaults_are_filled(cluster: Cluster, space: str) -> None:
    """The MPIJob's own defaults are there after creation."""
    answer = cluster.admin.send("POST", path_of(space, "mpijobs"), mpijob("a", ["nowhere"]), dryRun="All")

    assert answer.body["spec"]["launcherCreationPolicy"] == "AtStartup"
    assert answer.body["spec"]["sshAuthMountPath"] == "/root/.ssh"


def test_a_stale_version_conflicts(cluster: Cluster, space: str) -> None:
    """A write on top of an old version is a Conflict."""
    first = cluster.admin.send("POST", _maps(space), config_map("a", x="1")).body
    cluster.admin.send("PUT", _maps(space, "a"), first | {"data": {"x": "2"}})
    answer = cluster.admin.send("PUT", _maps(space, "a"), first | {"data": {"x": "3"}})

    assert (409, "Conflict") == (answer.code, answer.reason)
    assert answer.message == (
        'Operation cannot be fulfilled on configmaps "a": the object has been modified; please apply your '
        "changes to the latest version and try again"
    )


def test_a_write_that_changes_nothing_keeps_the_version(cluster: Cluster, space: str) -> None:
    """The version moves only when something changes."""
    first = cluster.admin.send("POST", _maps(space), config_map("a", x="1")).body
    again = cluster.admin.send("PATCH", _maps(space, "a"), {"data": {"x": "1"}}, MERGE_PATCH).body

    assert first["metadata"]["resourceVersion"] == again["metadata"]["resourceVersion"]


@pytest.mark.parametrize(
    ("media", "patch"),
    [
        pytest.param(MERGE_PATCH, {"data": {"x": None, "y": "2"}}, id="merge"),
        pytest.param(STRATEGIC_PATCH, {"data": {"x": None, "y": "2"}}, id="strategic"),
        pytest.param(
            JSON_PATCH,
            [{"op": "remove", "path": "/data/x"}, {"op": "add", "path": "/data/y", "value": "2"}],
            id="json",
        ),
    ],
)
def test_patches_change_what_they_name(cluster: Cluster, space: str, media: str, patch: object) -> None:
    """All patch kinds remove and add fields."""
    cluster.admin.send("POST", _maps(space), config_map("a", x="1", z="3"))
    answer = cluster.admin.send("PATCH", _maps(space, "a"), patch, media)

    assert {"y": "2", "z": "3"} == answer.body["data"]


def test_custom_resources_take_no_strategic_patch(cluster: Cluster, space: str) -> None:
    """A strategic merge patch of a custom resource is an unsupported media type."""
    cluster.admin.send("POST", path_of(space, "mpijobs"), mpijob("a", ["nowhere"], suspend=True))
    answer = cluster.admin.send("PATCH", path_of(space, "mpijobs", "a"), {"spec": {}}, STRATEGIC_PATCH)

    assert (415, "UnsupportedMediaType") == (answer.code, answer.reason)


def test_apply_creates_and_owns(cluster: Cluster, space: str) -> None:
    """Server-side apply creates an object and another manager's value of the same field conflicts."""
    body = config_map("a", x="1")
    created = cluster.admin.send("PATCH", _maps(space, "a"), body, APPLY_PATCH, fieldManager="one")
    other = config_map("a", x="2")
    answer = cluster.admin.send("PATCH", _maps(space, "a"), other, APPLY_PATCH, fieldManager="two")

    assert created.code == 201
    assert (409, "Conflict") == (answer.code, answer.reason)
    assert answer.message == 'Apply failed with 1 conflict: conflict with "one": .data.x'


def test_forced_apply_takes_the_field(cluster: Cluster, space: str) -> None:
    """With force the value is written, and a field that a manager no longer applies is removed."""
    cluster.admin.send(
        "PATCH", _maps(space, "a"), config_map("a", x="1", y="1"), APPLY_PATCH, fieldManager="one"
    )
    cluster.admin.send(
        "PATCH", _maps(space, "a"), config_map("a", x="2"), APPLY_PATCH, fieldManager="two", force="true"
    )
    answer = cluster.admin.send("PATCH", _maps(space, "a"), config_map("a"), APPLY_PATCH, fieldManager="one")

    assert {"x": "2"} == answer.body["data"]


def test_a_gated_pod_takes_a_node_with_its_gate(cluster: Cluster, space: str) -> None:
    """One patch adds a node selector and removes the gate; an open pod's selector is fixed."""
    pods = f"/api/v1/namespaces/{space}/pods"
    cluster.admin.send("POST", pods, pod("a", schedulingGates=[{"name": "arena-topo.dev/gang"}]))
    pin = {"spec": {"nodeSelector": {"kubernetes.io/hostname": "nowhere"}, "schedulingGates": None}}
    opened = cluster.admin.send("PATCH", f"{pods}/a", pin, MERGE_PATCH)
    moved = {"spec": {"nodeSelector": {"kubernetes.io/hostname": "elsewhere"}}}
    answer = cluster.admin.send("PATCH", f"{pods}/a", moved, MERGE_PATCH)

    assert opened.code == 200
    assert (422, "Invalid") == (answer.code, answer.reason)
    assert answer.message.startswith('Pod "a" is invalid: spec: Forbidden: pod updates may not change fields')


def test_whoever_may_not_write_is_forbidden(cluster: Cluster, space: str) -> None:
    """Without permission a creation is Forbidden, with user, verb, resource, group and namespace."""
    answer = cluster.stranger.send("POST", path_of(space, "mpijobs"), mpijob("a", ["nowhere"]))

    assert (403, "Forbidden") == (answer.code, answer.reason)
    assert answer.message.startswith("mpijobs.kubeflow.org is forbidden: User ")
    assert answer.message.endswith(
        f'cannot create resource "mpijobs" in API group "kubeflow.org" in the namespace "{space}"'
    )


def test_access_reviews_say_what_is_allowed(cluster: Cluster, space: str) -> None:
    """A SelfSubjectAccessReview answers for the one who asks."""
    attributes = {"namespace": space, "verb": "create", "group": "kubeflow.org", "resource": "mpijobs"}
    body: Object = {"apiVersion": "authorization.k8s.io/v1", "kind": "SelfSubjectAccessReview"}
    body |= {"spec": {"resourceAttributes": attributes}}
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"

    assert cluster.admin.send("POST", path, body).body["status"]["allowed"] is True
    assert cluster.stranger.send("POST", path, body).body["status"]["allowed"] is False


@pytest.mark.parametrize(
    ("body", "message"),
    [
        pytest.param(
            {"gracePeriodSeconds": "abc"},
            "json: cannot unmarshal string into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            id="text",
        ),
        pytest.param(
            {"gracePeriodSeconds": True},
            "json: cannot unmarshal bool into Go struct field DeleteOptions.gracePeriodSeconds of type int64",
            id="truth",
        ),
        pytest.param(
            {"propagationPolicy": "Fg"},
            'DeleteOptions.meta.k8s.io "" is invalid: propagationPolicy: Unsupported value: "Fg": supported values: '
            '"Foreground", "Background", "Orphan", "nil"',
            id="policy",
        ),
        pytest.param(
            {"dryRun": ["x"]},
            'DeleteOptions.meta.k8s.io "" is invalid: dryRun: Unsupported value: ["x"]: supported values: "All"',
            id="dry run",
        ),
    ],
)
def test_wrong_options_of_a_deletion_are_refused(
    cluster: Cluster, space: str, body: Object, message: str
) -> None:
    """What cannot be read deletes nothing, and is named."""
    cluster.admin.send("POST", _maps(space), config_map("a"))
    answer = cluster.admin.send("DELETE", _maps(space, "a"), body)

    assert message == answer.message
    assert 200 == cluster.admin.get(_maps(space, "a")).code


def test_a_grace_period_that_is_no_number_is_refused(cluster: Cluster, space: str) -> None:
    """In the query, too."""
    cluster.admin.send("POST", _maps(space), config_map("a"))
    answer = cluster.admin.send("DELETE", _maps(space, "a"), gracePeriodSeconds="soon")

    assert (400, 'strconv.ParseInt: parsing "soon": invalid syntax') == (answer.code, answer.message)
    assert 200 == cluster.admin.get(_maps(space, "a")).code


_RBAC = "rbac.authorization.k8s.io"


@pytest.fixture
def suffix() -> str:
    """Return what makes the name of a cluster-wide object the test's own."""
    return uuid.uuid4().hex[:8]


@pytest.mark.parametrize(
    ("path", "body"),
    [
        pytest.param(
            "/apis/rbac.authorization.k8s.io/v1/clusterroles",
            {"kind": "ClusterRole", "rules": [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get"]}]},
            id="ClusterRole",
        ),
        pytest.param(
            "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings",
            {
                "kind": "ClusterRoleBinding",
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "view"},
                "subjects": [{"apiGroup": _RBAC, "kind": "Group", "name": "research"}],
            },
            id="ClusterRoleBinding",
        ),
        pytest.param(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{space}/roles",
            {"kind": "Role", "rules": [{"apiGroups": [""], "resources": ["pods"], "verbs": ["list"]}]},
            id="Role",
        ),
        pytest.param(
            "/apis/rbac.authorization.k8s.io/v1/namespaces/{space}/rolebindings",
            {
                "kind": "RoleBinding",
                "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "view"},
                "subjects": [{"apiGroup": _RBAC, "kind": "User", "name": "ana"}],
            },
            id="RoleBinding",
        ),
        pytest.param(
            "/api/v1/namespaces/{space}/serviceaccounts", {"kind": "ServiceAccount"}, id="ServiceAccount"
        ),
        pytest.param(
            "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
            {
                "kind": "ValidatingAdmissionPolicy",
                "spec": {
                    "validations": [{"expression": "true"}],
                    "matchConstraints": {
                        "resourceRules": [
                            {"apiGroups": ["example.org"], "apiVersions": ["v1"]}
                            | {"operations": ["CREATE"], "resources": ["widgets"]}
                        ]
                    },
                },
            },
            id="ValidatingAdmissionPolicy",
        ),
    ],
)
def test_what_an_admin_installs_is_applied_and_deleted(
    cluster: Cluster, space: str, suffix: str, path: str, body: Object
) -> None:
    """Roles, bindings, accounts and policies are created by apply, read back, and deleted."""
    name, group = f"contract-{suffix}", path.split("/")[2] if path.startswith("/apis/") else ""
    meta = {"name": name} | ({"namespace": space} if "{space}" in path else {})
    whole = {"apiVersion": f"{group}/v1" if group else "v1", "metadata": meta, **body}
    place = f"{path.format(space=space)}/{name}"
    applied = cluster.admin.send("PATCH", place, whole, APPLY_PATCH, fieldManager="contract")
    kept = cluster.admin.get(place)
    deleted = cluster.admin.send("DELETE", place)

    assert (201, 200, 200) == (applied.code, kept.code, deleted.code)
    assert (
        body.items()
        >= {key: kept.body[key] for key in ("kind", "rules", "roleRef", "subjects") if key in body}.items()
    )


_DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


@pytest.fixture
def definition(cluster: Cluster, suffix: str) -> Iterator[Object]:
    """Return a CRD of the test's own, whose objects have the field ``spec.size``."""
    group = f"g{suffix}.example.org"
    schema = {
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"size": {"type": "integer"}}}},
    }
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    names = {"plural": "widgets", "singular": "widget", "kind": "Widget"}
    spec = {"group": group, "scope": "Namespaced", "names": names, "versions": [version]}
    head = {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}
    name = f"widgets.{group}"
    body: Object = {**head, "metadata": {"name": name}, "spec": spec}
    assert cluster.admin.send("POST", _DEFINITIONS, body).code == 201
    yield body
    cluster.admin.send("DELETE", f"{_DEFINITIONS}/{name}")


def test_a_changed_definition_counts_at_once(cluster: Cluster, space: str, definition: Object) -> None:
    """A field that a CRD gains is kept in the objects that are written from then on."""
    group, name = definition["spec"]["group"], definition["metadata"]["name"]
    widgets = f"/apis/{group}/v1/namespaces/{space}/widgets"
    head = {"apiVersion": f"{group}/v1", "kind": "Widget", "spec": {"size": 1, "colour": "red"}}
    eventually(lambda: cluster.admin.get(widgets).code == 200, "the kind to be served")
    before = cluster.admin.send("POST", widgets, {**head, "metadata": {"name": "before"}}).body
    colour = {"op": "add", "value": {"type": "string"}}
    colour["path"] = "/spec/versions/0/schema/openAPIV3Schema/properties/spec/properties/colour"
    changed = cluster.admin.send("PATCH", f"{_DEFINITIONS}/{name}", [colour], JSON_PATCH)

    def keeps_the_field() -> bool:
        answer = cluster.admin.send("POST", widgets, {**head, "metadata": {"name": "after"}}, dryRun="All")
        return bool(answer.body["spec"].get("colour") == "red")

    assert {"size": 1} == before["spec"]
    assert 200 == changed.code
    eventually(keeps_the_field, "the new field to be kept")
