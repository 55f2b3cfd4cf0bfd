"""The objects of the agent ask for little."""

from arena_topo.agent.manifests import agent_objects


def test_the_agent_may_read_and_patch_nodes_and_nothing_else() -> None:
    """One rule, no privileges, a read-only root."""
    account, role, binding, daemons = agent_objects("registry.example/arena-topo:1", "kube-system")
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
    plain, named = (agent_objects("i", "n", runtime_class=name)[3] for name in ("", "nvidia"))

    assert "runtimeClassName" not in plain["spec"]["template"]["spec"]
    assert named["spec"]["template"]["spec"]["runtimeClassName"] == "nvidia"
