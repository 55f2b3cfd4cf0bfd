"""The objects of the agent ask for little."""

import pytest

from arena_topo.agent.manifests import agent_objects


def test_the_agent_may_read_and_patch_nodes_and_nothing_else() -> None:
    """One rule, no privileges, a read-only root."""
    account, role, binding, _, _, daemons = agent_objects("registry.example/arena-topo:1", "kube-system")
    container = daemons["spec"]["template"]["spec"]["containers"][0]

    assert [{"apiGroups": [""], "resources": ["nodes"], "verbs": ["get", "patch"]}] == role["rules"]
    assert {
        "allowPrivilegeEscalation": False,
        "readOnlyRootFilesystem": True,
        "capabilities": {"drop": ["ALL"]},
    } == (container["securityContext"])
    assert account["metadata"]["name"] == binding["subjects"][0]["name"]
    assert role["metadata"]["name"] == binding["roleRef"]["name"]
    assert (
        daemons["spec"]["selector"]["matchLabels"].items()
        <= daemons["spec"]["template"]["metadata"]["labels"].items()
    )
    assert {mount["name"] for mount in container["volumeMounts"]} == {
        volume["name"] for volume in daemons["spec"]["template"]["spec"]["volumes"]
    }


def test_a_runtime_class_is_set_where_asked() -> None:
    """Clusters whose default runtime knows no GPUs need one."""
    plain, named = (agent_objects("i", "n", runtime_class=name)[5] for name in ("", "nvidia"))

    assert "runtimeClassName" not in plain["spec"]["template"]["spec"]
    assert named["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"


def test_no_other_pod_gets_the_agents_token() -> None:
    """A pod that names the account has no token by that alone; the agent's asks for it."""
    objects = agent_objects("i", "n")

    assert objects[0]["automountServiceAccountToken"] is False
    assert objects[-1]["spec"]["template"]["spec"]["automountServiceAccountToken"] is True


@pytest.mark.parametrize("skip_users", [True, False])
def test_root_is_for_the_kubelets_socket_alone(skip_users: bool) -> None:
    """Without it the agent is nobody, mounts nothing of the host, and could run in any namespace."""
    spec = agent_objects("i", "n", skip_users=skip_users)[-1]["spec"]["template"]["spec"]
    user = {"runAsUser": 65532, "runAsGroup": 65532, "runAsNonRoot": True} if skip_users else {"runAsUser": 0}

    assert {**user, "seccompProfile": {"type": "RuntimeDefault"}} == spec["securityContext"]
    assert skip_users is ("volumes" not in spec) is ("volumeMounts" not in spec["containers"][0])
    assert skip_users is ("--skip-users" in spec["containers"][0]["args"])


def test_a_cluster_without_policies_gets_none() -> None:
    """It would refuse the whole setup."""
    kinds = [item["kind"] for item in agent_objects("i", "n", policy=False)]

    assert ["ServiceAccount", "ClusterRole", "ClusterRoleBinding", "DaemonSet"] == kinds
