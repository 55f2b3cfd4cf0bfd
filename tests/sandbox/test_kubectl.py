"""The real kubectl is happy with the sandbox."""

import json

import pytest

from arena_topo.agent.manifests import agent_objects
from arena_topo.cluster.setup import SetupFacts, setup_objects
from arena_topo.output.text import objects
from tests.contract.bodies import mpijob, pod
from tests.contract.cluster import eventually
from tests.sandbox.conftest import Kubectl

_NODES = ["cn-shanghai.192.168.16.172", "cn-shanghai.192.168.16.173"]
_BENCHMARK = "mpirun -np 4 python /examples/pytorch_synthetic_benchmark.py --model=vgg16 --batch-size=64"


def _job(command: str = _BENCHMARK) -> str:
    body = mpijob("vgg", _NODES, workers=4, cleanPodPolicy="Running")
    launcher = body["spec"]["mpiReplicaSpecs"]["Launcher"]["template"]["spec"]
    launcher["containers"][0]["command"] = ["sh", "-c", command]
    return json.dumps(body)


def test_version_says_that_it_is_a_simulation(kubectl: Kubectl) -> None:
    """The server's version names the sandbox."""
    assert "Server Version: v1.36.3+arena-topo-sandbox" in kubectl("version").stdout


def test_nodes_are_listed_as_a_table(kubectl: Kubectl) -> None:
    """``get nodes`` shows both servers Ready."""
    lines = kubectl("get", "nodes").stdout.splitlines()

    assert ["NAME", "STATUS", "ROLES", "AGE", "VERSION"] == lines[0].split()
    assert [[name, "Ready", "<none>"] for name in _NODES] == [line.split()[:3] for line in lines[1:]]


def test_describe_node_counts_its_gpus(kubectl: Kubectl) -> None:
    """``describe node`` shows capacity and what is allocated."""
    shown = kubectl("describe", "node", _NODES[0]).stdout

    assert "nvidia.com/gpu:     8" in shown
    assert "Allocated resources:" in shown


def test_an_applied_job_runs_to_its_end(kubectl: Kubectl) -> None:
    """apply, wait and logs -f show the benchmark from start to end."""
    applied = kubectl("apply", "-f", "-", stdin=_job())
    kubectl("wait", "--for=condition=Running", "mpijob/vgg", "--timeout=60s")
    log = kubectl("logs", "-f", "job/vgg-launcher").stdout.splitlines()
    waited = kubectl("wait", "--for=condition=Succeeded", "mpijob/vgg", "--timeout=60s")

    assert applied.stdout == "mpijob.kubeflow.org/vgg created\n"
    assert waited.stdout == "mpijob.kubeflow.org/vgg condition met\n"
    assert ["[arena-topo sandbox] simulated", "Model: vgg16", "Batch size: 64"] == log[:3]
    assert "Number of GPUs: 4" == log[3]
    assert [f"Iter #{index}" for index in range(10)] == [line.partition(":")[0] for line in log[6:16]]
    assert log[-1].startswith("Total img/sec on 4 GPU(s): ")


def test_strict_validation_reaches_the_user(kubectl: Kubectl) -> None:
    """Apply refuses a field that the MPIJob does not have."""
    body = json.loads(_job())
    body["spec"]["bogus"] = 1
    refused = kubectl("apply", "-f", "-", stdin=json.dumps(body))

    assert refused.returncode == 1
    assert 'unknown field "spec.bogus"' in refused.stderr


def test_apply_again_changes_only_what_differs(kubectl: Kubectl) -> None:
    """A second apply is unchanged, a third with another value configures."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    answers = [kubectl("apply", "-f", "-", stdin=json.dumps(manifest)).stdout for _ in range(2)]
    changed = json.dumps(manifest | {"data": {"y": "2"}})
    answers.append(kubectl("apply", "-f", "-", stdin=changed).stdout)
    data = json.loads(kubectl("get", "configmap", "a", "-o", "json").stdout)["data"]

    assert ["configmap/a created\n", "configmap/a unchanged\n", "configmap/a configured\n"] == answers
    assert {"y": "2"} == data


def test_server_side_apply_conflicts_with_another_manager(kubectl: Kubectl) -> None:
    """Apply --server-side creates, and reports the conflict to another manager."""
    manifest = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "a"}, "data": {"x": "1"}}
    created = kubectl("apply", "--server-side", "-f", "-", stdin=json.dumps(manifest))
    other = json.dumps(manifest | {"data": {"x": "2"}})
    refused = kubectl("apply", "--server-side", "--field-manager=other", "-f", "-", stdin=other)

    assert created.stdout == "configmap/a serverside-applied\n"
    assert 'Apply failed with 1 conflict: conflict with "kubectl": .data.x' in refused.stderr


def test_server_side_apply_of_a_job(kubectl: Kubectl) -> None:
    """A custom resource with lists of containers can be applied by the server, twice."""
    answers = [kubectl("apply", "--server-side", "-f", "-", stdin=_job()).stdout for _ in range(2)]

    assert ["mpijob.kubeflow.org/vgg serverside-applied\n"] * 2 == answers


def test_get_watch_follows_a_pod(kubectl: Kubectl) -> None:
    """``get -w`` shows a pod become Running."""
    body = pod("a", node=_NODES[0], command="sleep 30")
    kubectl("apply", "-f", "-", stdin=json.dumps(body))
    lines = kubectl.lines_until("Running", "get", "pods", "-w", "--request-timeout=60s")

    assert "Running" in lines[-1]
    assert lines[0].split() == ["NAME", "READY", "STATUS", "RESTARTS", "AGE"]


def test_describe_says_why_a_pod_waits(kubectl: Kubectl) -> None:
    """``describe pod`` ends with the scheduler's event."""
    kubectl("apply", "-f", "-", stdin=json.dumps(pod("a", gpus=9)))
    kubectl("wait", "--for=condition=PodScheduled=False", "pod/a", "--timeout=60s")
    shown = kubectl("describe", "pod", "a").stdout

    assert "FailedScheduling" in shown
    assert "0/2 nodes are available: 2 Insufficient nvidia.com/gpu." in shown


def test_delete_waits_for_the_end(kubectl: Kubectl) -> None:
    """``delete`` returns once the pod is gone."""
    kubectl("apply", "-f", "-", stdin=json.dumps(pod("a", node=_NODES[0])))
    kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=60s")
    deleted = kubectl("delete", "pod", "a")

    assert deleted.stdout.startswith('pod "a" deleted')
    assert kubectl("get", "pod", "a").stderr == 'Error from server (NotFound): pods "a" not found\n'


@pytest.mark.parametrize(
    "words",
    [("exec", "a", "--", "hostname"), ("attach", "a"), ("port-forward", "a", "2222:22")],
    ids=lambda words: words[0],
)
def test_what_needs_a_process_is_refused(kubectl: Kubectl, words: tuple[str, ...]) -> None:
    """Nothing runs in a pod of the sandbox, and a made-up answer would be taken for a container's."""
    kubectl("apply", "-f", "-", stdin=json.dumps(pod("a", node=_NODES[0], command="sleep 30")))
    kubectl("wait", "--for=condition=Ready", "pod/a", "--timeout=60s")
    refused = kubectl(*words)

    assert 1 == refused.returncode
    assert "the sandbox runs no processes: pod a has a log, and nothing to run commands in" in refused.stderr


def test_labels_are_changed_by_strategic_patch(kubectl: Kubectl) -> None:
    """``label`` and ``patch`` reach a node."""
    kubectl("label", "node", _NODES[0], "tier=gold", "--overwrite")
    listed = kubectl("get", "nodes", "-l", "tier=gold", "-o", "name").stdout
    kubectl("label", "node", _NODES[0], "tier-")

    assert f"node/{_NODES[0]}\n" == listed


def test_cordon_keeps_pods_away(kubectl: Kubectl) -> None:
    """A cordoned node shows SchedulingDisabled, and takes no pod."""
    kubectl("cordon", _NODES[1])
    shown = kubectl("get", "node", _NODES[1]).stdout
    kubectl("apply", "-f", "-", stdin=json.dumps(pod("a", node=_NODES[1])))
    kubectl("wait", "--for=condition=PodScheduled=False", "pod/a", "--timeout=60s")
    why = kubectl("get", "pod", "a", "-o", "jsonpath={.status.conditions[0].message}").stdout
    kubectl("uncordon", _NODES[1])

    assert "Ready,SchedulingDisabled" in shown
    assert "1 node(s) were unschedulable" in why


def test_the_agents_manifest_is_applied_and_runs(kubectl: Kubectl, space: str) -> None:
    """``agent manifest | kubectl apply -f -``: account, role, binding and a daemon on each node with GPUs."""
    manifest = objects(agent_objects("agent:1", space), "yaml")
    applied = kubectl("apply", "-f", "-", stdin=manifest)
    rolled_out = kubectl("rollout", "status", "daemonset/arena-topo-agent", "--timeout=60s")
    shown = kubectl("get", "daemonset").stdout.splitlines()
    removed = kubectl("delete", "-f", "-", stdin=manifest)

    assert "daemonset.apps/arena-topo-agent created" in applied.stdout
    assert "successfully rolled out" in rolled_out.stdout
    assert ["arena-topo-agent", "2", "2", "2", "2", "2"] == shown[1].split()[:6]
    assert (0, 0) == (applied.returncode, removed.returncode)


def test_the_objects_of_the_setup_are_applied(kubectl: Kubectl, space: str) -> None:
    """``cluster setup --users`` without the policy, which the sandbox does not serve: roles and bindings."""
    prepared, _ = setup_objects(SetupFacts(policy_api=""), ["group:research"], space)
    manifest = objects(prepared, "yaml")
    applied = kubectl("apply", "--server-side", "-f", "-", stdin=manifest)
    removed = kubectl("delete", "-f", "-", stdin=manifest)

    assert (0, "") == (applied.returncode, applied.stderr)
    assert len(prepared) == len(applied.stdout.splitlines())
    assert 0 == removed.returncode


@pytest.mark.parametrize("command", ["exit 3", "bash -c 'exit 7'"])
def test_a_job_whose_launcher_fails_has_failed(kubectl: Kubectl, command: str) -> None:
    """Any command that says itself that it ends with another code than 0."""
    body = json.loads(_job(command))
    body["spec"]["runPolicy"]["backoffLimit"] = 0
    body["spec"]["mpiReplicaSpecs"]["Launcher"]["restartPolicy"] = "Never"
    kubectl("apply", "-f", "-", stdin=json.dumps(body))
    waited = kubectl("wait", "--for=condition=Failed", "mpijob/vgg", "--timeout=60s")

    assert waited.stdout == "mpijob.kubeflow.org/vgg condition met\n"


def test_the_log_of_a_container_that_crashes_is_shown(kubectl: Kubectl) -> None:
    """While it waits for its next start its last log is there, and ``describe`` says that it backs off."""
    body = pod("a", node=_NODES[0], command="echo x; exit 3")
    body["spec"]["restartPolicy"] = "Always"
    kubectl("apply", "-f", "-", stdin=json.dumps(body))
    state = "jsonpath={.status.containerStatuses[0].state.waiting.reason}=CrashLoopBackOff"
    kubectl("wait", f"--for={state}", "pod/a", "--timeout=60s")
    # By now it may have been started again, and have printed nothing yet.
    log = eventually(lambda: kubectl("logs", "a").stdout, "a line in the log")
    shown = kubectl("describe", "pod", "a").stdout

    assert "nothing is executed here" in log
    assert "Back-off restarting failed container main in pod a_" in shown
    assert {"Scheduled", "Pulled", "Created", "Started", "BackOff"} <= set(shown.split())
