"""Pods and MPIJobs: scheduling, logs, objects, conditions, the end."""

import pytest

from tests.contract.bodies import affinity, mpijob, path_of, pod
from tests.contract.client import Object
from tests.contract.cluster import Cluster, conditions_of, eventually

_LABEL = "training.kubeflow.org"
COLLECTED = 75.0
"""Seconds until all is gone: a garbage collector looks for new resource types every half minute."""


def _started(cluster: Cluster, space: str, body: Object) -> Object:
    """Create a pod and return it once it runs."""
    assert cluster.admin.send("POST", path_of(space, "pods"), body).code == 201
    name = body["metadata"]["name"]

    def running() -> Object | None:
        created: Object = cluster.admin.get(path_of(space, "pods", name)).body
        return created if created["status"].get("phase") == "Running" else None

    return eventually(running, f"pod {name} to run") or {}


def _waiting(cluster: Cluster, space: str, body: Object, says: str = "") -> Object:
    """Create a pod and return its PodScheduled condition once it *says* that.

    What a scheduler says first may be of nodes as it knew them a moment ago.
    """
    name = body["metadata"]["name"]
    assert cluster.admin.send("POST", path_of(space, "pods"), body).code == 201

    def condition() -> Object | None:
        status = cluster.admin.get(path_of(space, "pods", name)).body["status"]
        found = next((c for c in status.get("conditions", []) if c["type"] == "PodScheduled"), None)
        return found if found and says in found.get("message", "") else None

    return eventually(condition, f"a condition that says {says!r}") or {}


def _event(cluster: Cluster, space: str, reason: str) -> Object:
    """Return the first event of a *reason*, once there is one:
    anyone who reports it does so next to what it is about.
    """

    def found() -> Object | None:
        events = cluster.admin.get(path_of(space, "events"), fieldSelector=f"reason={reason}").body["items"]
        return events[0] if events else None

    return eventually(found, f"an event {reason}") or {}


def _node_count(cluster: Cluster) -> int:
    return len(cluster.admin.get("/api/v1/nodes").body["items"])


def _conditions(cluster: Cluster, space: str, name: str) -> dict[str, tuple[str, str]]:
    return conditions_of(cluster.admin.get(path_of(space, "mpijobs", name)).body.get("status", {}))


def _run(cluster: Cluster, space: str, body: Object) -> Object:
    """Create an MPIJob and return its launcher's pod once the job is Running."""
    name = body["metadata"]["name"]
    assert cluster.admin.send("POST", path_of(space, "mpijobs"), body).code == 201
    eventually(lambda: "Running" in _conditions(cluster, space, name), "the job to run")
    selector = f"{_LABEL}/job-name={name},{_LABEL}/job-role=launcher"
    launcher: Object = cluster.admin.get(path_of(space, "pods"), labelSelector=selector).body["items"][0]
    return launcher


def test_a_pod_too_big_for_every_node_says_so(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """The scheduler counts the nodes that lack a resource."""
    count = _node_count(cluster)
    condition = _waiting(cluster, space, pod("a", gpus=1000), f"{count} Insufficient nvidia.com/gpu")

    assert len(nodes) <= count
    assert ("False", "Unschedulable") == (condition["status"], condition["reason"])
    assert condition["message"] == (
        f"0/{count} nodes are available: {count} Insufficient nvidia.com/gpu. no new claims to deallocate, "
        f"preemption: 0/{count} nodes are available: {count} Preemption is not helpful for scheduling."
    )


def test_a_pod_for_no_node_says_so(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """The scheduler counts the nodes that a selector does not choose."""
    count = _node_count(cluster)
    condition = _waiting(cluster, space, pod("a", node="nowhere"), f"{count} node(s) didn't match")

    assert len(nodes) <= count
    assert condition["message"].startswith(
        f"0/{count} nodes are available: {count} node(s) didn't match Pod's node affinity/selector."
    )


def test_a_full_node_has_no_victims(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """A node whose GPUs others of the same priority hold is distinguished from one that has too few."""
    _started(cluster, space, pod("holder", node=nodes[0], gpus=6))
    wanted = pod("a", node=nodes[0], gpus=4)
    condition = _waiting(cluster, space, wanted, "1 Insufficient nvidia.com/gpu")

    assert "1 Insufficient nvidia.com/gpu" in condition["message"]
    assert "1 No preemption victims found for incoming pod" in condition["message"]


def test_a_gated_pod_waits_for_its_gate(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """A pod with a scheduling gate says so and is not scheduled."""
    gate = [{"name": "arena-topo.dev/gang"}]
    condition = _waiting(cluster, space, pod("a", node=nodes[0], schedulingGates=gate))

    assert ("False", "SchedulingGated") == (condition["status"], condition["reason"])
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"


def test_a_running_pod_has_a_node_and_addresses(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """A pod that runs is on its node, Ready, with addresses and a running container."""
    running = _started(cluster, space, pod("a", node=nodes[1]))
    ready = {condition["type"]: condition["status"] for condition in running["status"]["conditions"]}

    assert nodes[1] == running["spec"]["nodeName"]
    assert ready["Ready"] == "True"
    assert {"podIP", "hostIP", "startTime"} <= running["status"].keys()
    assert "running" in running["status"]["containerStatuses"][0]["state"]


def test_a_pod_without_a_node_has_an_empty_log(cluster: Cluster, space: str) -> None:
    """The log of a pod that is not scheduled is empty, and no error."""
    _waiting(cluster, space, pod("a", node="nowhere"))
    answer = cluster.admin.get(path_of(space, "pods", "a") + "/log")

    assert (204, "") == (answer.code, answer.body)


def test_the_log_of_an_unknown_container_is_refused(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """A container that the pod does not have is a bad request."""
    _started(cluster, space, pod("a", node=nodes[0]))
    answer = cluster.admin.get(path_of(space, "pods", "a") + "/log", container="other")

    assert (400, "container other is not valid for pod a") == (answer.code, answer.message)


def test_the_log_of_two_containers_needs_a_name(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """With several containers the server asks which."""
    body = pod("a", node=nodes[0])
    body["spec"]["containers"].append({"name": "side", "image": "busybox:1.36"})
    _started(cluster, space, body)
    answer = cluster.admin.get(path_of(space, "pods", "a") + "/log")

    expected = "a container name must be specified for pod a, choose one of: [main side]"
    assert expected == answer.message


def test_logs_have_tails_and_times(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """TailLines gives the last lines, timestamps puts an RFC 3339 instant before each."""
    _started(cluster, space, pod("a", node=nodes[0]))
    cluster.print_lines(space, "a", "one", "two", "three")
    log = path_of(space, "pods", "a") + "/log"
    stamped = cluster.admin.get(log, timestamps="true").body.splitlines()

    assert cluster.admin.get(log).body == "one\ntwo\nthree\n"
    assert cluster.admin.get(log, tailLines="1").body == "three\n"
    assert ["one", "two", "three"] == [line.partition(" ")[2] for line in stamped]
    assert cluster.admin.get(log, sinceTime="2099-01-01T00:00:00Z").body == ""


def test_an_mpijob_becomes_the_operators_objects(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """A service, a hostfile in index order, a key, labelled workers and a launcher's Job."""
    launcher = _run(cluster, space, mpijob("vgg", nodes, gpus=2))
    config = cluster.admin.get(path_of(space, "configmaps", "vgg-config")).body
    secret = cluster.admin.get(path_of(space, "secrets", "vgg-ssh")).body
    worker = cluster.admin.get(path_of(space, "pods", "vgg-worker-1")).body
    service = cluster.admin.get(path_of(space, "services", "vgg")).body

    hosts = [f"vgg-worker-{index}.vgg.{space}.svc slots=2" for index in range(2)]
    assert hosts == config["data"]["hostfile"].splitlines()
    assert {"hostfile", "discover_hosts.sh"} == config["data"].keys()
    assert ("kubernetes.io/ssh-auth", {"ssh-privatekey", "ssh-publickey"}) == (
        secret["type"],
        set(secret["data"]),
    )
    assert service["spec"]["clusterIP"] == "None"
    expected = {
        "job-name": "vgg",
        "job-role": "worker",
        "operator-name": "mpi-operator",
        "replica-index": "1",
    }
    assert {f"{_LABEL}/{key}": value for key, value in expected.items()} == worker["metadata"]["labels"]
    assert worker["spec"]["containers"][0]["command"] == ["/usr/sbin/sshd", "-De"]
    assert {"app": "vgg"} == config["metadata"]["labels"] == secret["metadata"]["labels"]
    assert launcher["metadata"]["name"].startswith("vgg-launcher-")
    assert launcher["metadata"]["ownerReferences"][0]["name"] == "vgg-launcher"
    env = [variable["name"] for variable in launcher["spec"]["containers"][0]["env"]]
    assert "OMPI_MCA_orte_default_hostfile" in env
    assert "NVIDIA_VISIBLE_DEVICES" in env


@pytest.mark.parametrize(
    ("implementation", "variables", "first_host"),
    [
        pytest.param(
            "OpenMPI",
            {
                "OMPI_MCA_orte_keep_fqdn_hostnames": "true",
                "OMPI_MCA_orte_default_hostfile": "/etc/mpi/hostfile",
                "OMPI_MCA_plm_rsh_args": "-o ConnectionAttempts=10",
                "OMPI_MCA_orte_set_default_slots": "2",
            },
            "vgg-worker-0.vgg.{space}.svc slots=2",
            id="Open MPI",
        ),
        pytest.param(
            "Intel",
            {
                "I_MPI_HYDRA_HOST_FILE": "/etc/mpi/hostfile",
                "I_MPI_HYDRA_BOOTSTRAP_EXEC_EXTRA_ARGS": "-o ConnectionAttempts=10",
                "I_MPI_PERHOST": "2",
            },
            "vgg-worker-0.vgg.{space}.svc:2",
            id="Intel MPI",
        ),
        pytest.param(
            "MPICH",
            {"HYDRA_HOST_FILE": "/etc/mpi/hostfile", "HYDRA_LAUNCH_EXTRA_ARGS": "-o ConnectionAttempts=10"},
            "vgg-worker-0.vgg.{space}.svc:2",
            id="MPICH",
        ),
    ],
)
def test_a_launcher_gets_the_variables_of_its_mpi_and_no_other(
    cluster: Cluster,
    space: str,
    nodes: list[str],
    implementation: str,
    variables: dict[str, str],
    first_host: str,
) -> None:
    """What the operator does not set, no simulation may pretend:
    with Open MPI 5, for one, a job would seem to work.
    """
    body = mpijob("vgg", nodes, gpus=2)
    body["spec"]["mpiImplementation"] = implementation
    launcher = _run(cluster, space, body)
    worker = cluster.admin.get(path_of(space, "pods", "vgg-worker-0")).body
    config = cluster.admin.get(path_of(space, "configmaps", "vgg-config")).body
    own = {"K_MPI_JOB_ROLE": "launcher", "NVIDIA_VISIBLE_DEVICES": "", "NVIDIA_DRIVER_CAPABILITIES": ""}

    assert own | variables == _environment(launcher)
    assert {"K_MPI_JOB_ROLE": "worker"} == _environment(worker)
    assert first_host.format(space=space) == config["data"]["hostfile"].splitlines()[0]


def _environment(pod: Object) -> dict[str, str]:
    return {entry["name"]: entry.get("value", "") for entry in pod["spec"]["containers"][0]["env"]}


def test_a_daemon_runs_on_every_node_of_its_selector(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """Each of the nodes gets one pod that says for which node it is; the status counts them."""
    spec = pod("d", affinity=affinity(nodes))["spec"] | {"restartPolicy": "Always"}
    template = {"metadata": {"labels": {"app": "d"}}, "spec": spec}
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}}
    body["spec"] = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
    assert 201 == cluster.admin.send("POST", path_of(space, "daemonsets"), body).code

    def status() -> Object:
        found: Object = cluster.admin.get(path_of(space, "daemonsets", "d")).body.get("status", {})
        return found

    eventually(lambda: status().get("numberAvailable") == 2, "both daemons to run")
    pods = cluster.admin.get(path_of(space, "pods"), labelSelector="app=d").body["items"]

    assert sorted(nodes) == sorted(daemon["spec"]["nodeName"] for daemon in pods)
    assert {("DaemonSet", "d")} == {
        (owner["kind"], owner["name"]) for daemon in pods for owner in daemon["metadata"]["ownerReferences"]
    }
    counts = ("desiredNumberScheduled", "currentNumberScheduled", "numberReady", "updatedNumberScheduled")
    eventually(
        lambda: [2, 2, 2, 2, 1] == [status().get(name) for name in (*counts, "observedGeneration")],
        "all counts",
    )


def test_a_daemon_set_selects_its_own_pods(cluster: Cluster, space: str) -> None:
    """A selector that its template's labels do not match is invalid."""
    body = {"apiVersion": "apps/v1", "kind": "DaemonSet", "metadata": {"name": "d"}}
    template = {"metadata": {"labels": {"app": "e"}}, "spec": pod("d")["spec"] | {"restartPolicy": "Always"}}
    body["spec"] = {"selector": {"matchLabels": {"app": "d"}}, "template": template}
    answer = cluster.admin.send("POST", path_of(space, "daemonsets"), body)

    assert 422 == answer.code
    assert "`selector` does not match template `labels`" in answer.message


def test_the_schedulers_events_have_one_instant_and_no_count(
    cluster: Cluster, space: str, nodes: list[str]
) -> None:
    """They come by the newer API: anyone who reads lastTimestamp or count of every event stumbles here."""
    _started(cluster, space, pod("a", node=nodes[0]))
    found = _event(cluster, space, "Scheduled")

    assert ("Binding", "default-scheduler", {}) == (
        found["action"],
        found["reportingComponent"],
        found["source"],
    )
    assert (None, None) == (found["firstTimestamp"], found["lastTimestamp"])
    assert found["eventTime"]
    assert "count" not in found
    assert f"Successfully assigned {space}/a to {nodes[0]}" == found["message"]


def test_a_controllers_events_are_counted(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """They come by the older API, with a first and a last instant and a component."""
    _run(cluster, space, mpijob("vgg", nodes))
    found = _event(cluster, space, "SuccessfulCreate")

    assert (1, None, "job-controller") == (found["count"], found["eventTime"], found["source"]["component"])
    assert found["firstTimestamp"] == found["lastTimestamp"]
    assert ("Job", "vgg-launcher") == (found["involvedObject"]["kind"], found["involvedObject"]["name"])


def test_a_running_mpijob_counts_its_pods(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """Created and Running hold, and the replicas that are active are counted."""
    _run(cluster, space, mpijob("vgg", nodes))
    status = cluster.admin.get(path_of(space, "mpijobs", "vgg")).body["status"]
    messages = {condition["type"]: condition["message"] for condition in status["conditions"]}

    assert {"Launcher": {"active": 1}, "Worker": {"active": 2}} == status["replicaStatuses"]
    assert messages["Created"] == f"MPIJob {space}/vgg is created."
    assert messages["Running"] == f"MPIJob {space}/vgg is running."


def _ended(cluster: Cluster, space: str, name: str) -> dict[str, tuple[str, str]]:
    """Return the conditions of a job once one of them says that it has succeeded."""
    conditions = _conditions(cluster, space, name)
    return conditions if "Succeeded" in conditions else {}


def test_a_finished_mpijob_has_succeeded(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """Succeeded holds, Running no longer, and cleanPodPolicy Running takes the workers away."""
    body = mpijob("vgg", nodes, launched="sleep 2", cleanPodPolicy="Running")
    launcher = _run(cluster, space, body)
    cluster.finish(space, launcher["metadata"]["name"])
    conditions = eventually(lambda: _ended(cluster, space, "vgg"), "the job to succeed")
    workers = f"{_LABEL}/job-role=worker"
    eventually(
        lambda: not cluster.admin.get(path_of(space, "pods"), labelSelector=workers).body["items"],
        "the workers to go",
    )

    assert ("True", "MPIJobSucceeded") == conditions["Succeeded"]
    assert conditions["Running"][0] == "False"
    assert conditions["Created"] == ("True", "MPIJobCreated")
    assert "completionTime" in cluster.admin.get(path_of(space, "mpijobs", "vgg")).body["status"]


def test_a_suspended_mpijob_has_no_workers(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """With suspend the job says so and creates no pods; without it they are created."""
    body = mpijob("vgg", nodes, suspend=True)
    cluster.admin.send("POST", path_of(space, "mpijobs"), body)
    eventually(lambda: "Suspended" in _conditions(cluster, space, "vgg"), "the suspension")
    before = cluster.admin.get(path_of(space, "pods")).body["items"]
    patch = {"spec": {"runPolicy": {"suspend": False}}}
    cluster.admin.send("PATCH", path_of(space, "mpijobs", "vgg"), patch, "application/merge-patch+json")

    def resumed() -> dict[str, tuple[str, str]]:
        found = _conditions(cluster, space, "vgg")
        return found if found.get("Running", ("", ""))[0] == "True" else {}

    assert before == []
    assert eventually(resumed, "the job to run")["Suspended"] == ("False", "MPIJobResumed")


def test_a_waiting_launcher_comes_after_its_workers(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """With WaitForWorkersReady there is no launcher while a worker has no place."""
    body = mpijob("vgg", nodes, gpus=1000)
    body["spec"]["launcherCreationPolicy"] = "WaitForWorkersReady"
    cluster.admin.send("POST", path_of(space, "mpijobs"), body)
    eventually(lambda: len(cluster.admin.get(path_of(space, "pods")).body["items"]) == 2, "both workers")
    # The operator says so once it has created all that it creates.
    eventually(lambda: "Created" in _conditions(cluster, space, "vgg"), "the operator to be through")

    assert cluster.admin.get(path_of(space, "jobs", "vgg-launcher")).code == 404


def test_a_deleted_mpijob_leaves_nothing(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """With background propagation all that the job owned goes after it."""
    _run(cluster, space, mpijob("vgg", nodes))
    options = {"propagationPolicy": "Background", "gracePeriodSeconds": 0}
    answer = cluster.admin.send("DELETE", path_of(space, "mpijobs", "vgg"), options)

    def left() -> list[str]:
        names = []
        for resource in ("mpijobs", "jobs", "pods", "services", "secrets", "configmaps"):
            items = cluster.admin.get(path_of(space, resource)).body["items"]
            names += [
                item["metadata"]["name"] for item in items if item["metadata"]["name"].startswith("vgg")
            ]
        return names

    eventually(lambda: not left(), "everything of the job to go", COLLECTED)
    assert (200, "Success") == (answer.code, answer.body["status"])
    assert {"vgg", "mpijobs"} == {answer.body["details"]["name"], answer.body["details"]["kind"]}


def test_a_deletion_by_uid_spares_another(cluster: Cluster, space: str, nodes: list[str]) -> None:
    """A precondition on the uid that does not hold is a Conflict."""
    _started(cluster, space, pod("a", node=nodes[0]))
    options = {"preconditions": {"uid": "00000000-0000-0000-0000-000000000000"}}
    answer = cluster.admin.send("DELETE", path_of(space, "pods", "a"), options)

    assert (409, "Conflict") == (answer.code, answer.reason)
    assert answer.message.startswith(
        'Operation cannot be fulfilled on Pod "a": the UID in the precondition (00000000-0000-0000-0000-000000000000) '
        "does not match the UID in record ("
    )
