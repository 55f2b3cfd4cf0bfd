"""The training operator (kubeflow.org/v1), for PyTorchJobs and TFJobs: services, pods, conditions, clean-up.

Workers of a PyTorchJob with a master do not wait for its name in an init container here: names resolve at
once.

Source: github.com/kubeflow/training-operator 1.9 (pkg/controller.v1/{common,pytorch,tensorflow}).
"""

import copy
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial

from arena_topo.kinds.training_operator import PYTORCHJOB, TFJOB, TrainingOperatorKind
from arena_topo.model.keys import (
    OPERATOR_JOB_NAME,
    OPERATOR_JOB_ROLE,
    OPERATOR_NAME,
    OPERATOR_REPLICA_INDEX,
    OPERATOR_REPLICA_TYPE,
)
from arena_topo.model.kind import Member, is_suspended
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import ResourceKey
from arena_topo.sandbox.api.objects import Api, timestamp
from arena_topo.sandbox.sim.objects import (
    PODS,
    clean_up,
    controlled,
    delete,
    holds,
    owner_reference,
    put_status,
    record_event,
    set_condition,
    sync_each,
)

_Variables = list[tuple[str, str]]


@dataclass(frozen=True, slots=True)
class _Framework:
    """What a kind's controller does in a way of its own.

    ``port`` is its pods' name and number; ``chiefs`` are the roles whose end is the job's, the first that a
    job has, or worker 0; ``environment`` is what a pod finds in its environment.
    """

    kind: TrainingOperatorKind
    port: tuple[str, int]
    chiefs: tuple[str, ...]
    environment: Callable[[Object, Member], _Variables]

    @property
    def jobs(self) -> ResourceKey:
        """The resource of its jobs."""
        return (self.kind.group, self.kind.plural)


def step(api: Api) -> None:
    """Bring every job to where it should be."""
    for framework in _FRAMEWORKS:
        sync_each(api, framework.jobs, partial(_sync, api, framework))


def _sync(api: Api, framework: _Framework, job: Object) -> None:
    kind, status = framework.kind, copy.deepcopy(job.get("status", {}))
    name = f"{kind.kind} {job['metadata']['name']}"
    _set(api, job, status, "Created", f"{name} is created.", recorded=False)
    if any(holds({"status": status}, end) for end in ("Succeeded", "Failed")):
        clean_up(api, job)
    elif is_suspended(kind, job):
        for pod in controlled(api, job, PODS):
            delete(api, pod)
        _set(api, job, status, "Suspended", f"{name} is suspended.")
        _unset(kind, status, "Running", f"{name} is suspended.")
        status.pop("startTime", None)
    else:
        if holds({"status": status}, "Suspended"):
            _unset(kind, status, "Suspended", f"{name} is resumed.")
        status.setdefault("startTime", timestamp())
        _keep_pods(api, framework, job)
        _report(api, framework, job, status)
    put_status(api, framework.jobs, job, status)


def _set(
    api: Api, job: Object, status: Object, condition: str, message: str, *, recorded: bool = True
) -> None:
    """Set a condition in place, *recorded* by an event; a job that has ended is not Running."""
    reason = f"{job['kind']}{condition}"
    if not set_condition(status, condition, "True", reason, message, updated="lastUpdateTime"):
        return
    if condition in ("Succeeded", "Failed"):
        status["completionTime"] = timestamp()
        for other in status["conditions"]:
            other["status"] = "False" if other["type"] == "Running" else other["status"]
    if recorded:
        record_event(api, job, f"{job['kind'].lower()}-controller", reason, message)


def _unset(kind: TrainingOperatorKind, status: Object, condition: str, message: str) -> None:
    reason = f"{kind.kind}{'Resumed' if condition == 'Suspended' else 'Suspended'}"
    set_condition(status, condition, "False", reason, message, updated="lastUpdateTime")


def _members(framework: _Framework, job: Object) -> Iterator[tuple[Member, Object]]:
    """Yield each pod that the job wants, with its template."""
    for replicas in framework.kind.replicas(job):
        for index in range(replicas.count):
            yield Member(job["metadata"]["name"], replicas.role, index), replicas.template


def _keep_pods(api: Api, framework: _Framework, job: Object) -> None:
    """Create missing services and pods, delete those beyond their number and those to be tried again."""
    namespace, pods = job["metadata"]["namespace"], api.kind("v1", "Pod")
    wanted = {framework.kind.pod_name(member): member for member, _ in _members(framework, job)}
    for pod in controlled(api, job, PODS):
        failed = pod["status"].get("phase") == "Failed"
        member = wanted.get(pod["metadata"]["name"])
        # A pod whose policy lets it try again is recreated under its name.
        if member is None or (failed and _policy(framework, job, member) != "Never"):
            delete(api, pod)
    for member, template in _members(framework, job):
        name = framework.kind.pod_name(member)
        if api.find(api.kind("v1", "Service"), namespace, name) is None:
            api.create(api.kind("v1", "Service"), namespace, _service(framework, job, member))
        if api.find(pods, namespace, name) is None:
            api.create(pods, namespace, _pod(framework, job, member, template))


def _policy(framework: _Framework, job: Object, member: Member) -> str:
    specs = job["spec"][framework.kind.specs]
    return str(specs[framework.kind.roles[member.role]].get("restartPolicy") or "Never")


def _labels(framework: _Framework, job: Object, member: Member) -> dict[str, str]:
    return {
        OPERATOR_NAME: f"{framework.kind.kind.lower()}-controller",
        OPERATOR_JOB_NAME: member.job,
        OPERATOR_REPLICA_TYPE: member.role,
        OPERATOR_REPLICA_INDEX: str(member.index),
        **({OPERATOR_JOB_ROLE: "master"} if _is_chief(framework, job, member) else {}),
    }


def _is_chief(framework: _Framework, job: Object, member: Member) -> bool:
    roles = [replicas.role for replicas in framework.kind.replicas(job)]
    chief = next((role for role in framework.chiefs if role in roles), None)
    return member.role == chief if chief else (member.role, member.index) == ("worker", 0)


def _meta(framework: _Framework, job: Object, member: Member) -> Object:
    return {
        "name": framework.kind.pod_name(member),
        "namespace": job["metadata"]["namespace"],
        "labels": _labels(framework, job, member),
        "ownerReferences": [owner_reference(job)],
    }


def _service(framework: _Framework, job: Object, member: Member) -> Object:
    """Return the headless service by which the others find a pod."""
    name, number = framework.port
    spec = {
        "clusterIP": "None",
        "clusterIPs": ["None"],
        "selector": _labels(framework, job, member),
        "ports": [{"name": name, "port": number, "targetPort": number, "protocol": "TCP"}],
    }
    return {"apiVersion": "v1", "kind": "Service", "metadata": _meta(framework, job, member), "spec": spec}


def _pod(framework: _Framework, job: Object, member: Member, template: Object) -> Object:
    meta, given = _meta(framework, job, member), template.get("metadata") or {}
    meta["labels"] = {**(given.get("labels") or {}), **meta["labels"]}
    meta["annotations"] = dict(given.get("annotations") or {})
    spec = copy.deepcopy(template["spec"])
    spec["restartPolicy"] = _policy(framework, job, member)
    name, number = framework.port
    for container in spec["containers"]:
        variables = framework.environment(job, member)
        container.setdefault("env", []).extend({"name": key, "value": value} for key, value in variables)
        ports = container.setdefault("ports", []) if container["name"] == framework.kind.container else None
        # The operator's default, without which it does not know where the pods meet.
        if ports is not None and not any(port.get("name") == name for port in ports):
            ports.append({"name": name, "containerPort": number, "protocol": "TCP"})
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _report(api: Api, framework: _Framework, job: Object, status: Object) -> None:
    """Read the pods' state into *status*; how the chief ends, the job does."""
    kind, pods = framework.kind, controlled(api, job, PODS)
    specs = job["spec"][kind.specs]
    name = f"{kind.kind} {job['metadata']['namespace']}/{job['metadata']['name']}"
    status["replicaStatuses"] = {}
    for role, key in kind.roles.items():
        if specs.get(key):
            controller = f"{kind.kind.lower()}-controller"
            selector = (
                f"{OPERATOR_JOB_NAME}={job['metadata']['name']},{OPERATOR_NAME}={controller},"
                f"{OPERATOR_REPLICA_TYPE}={role}"
            )
            phases = [pod["status"].get("phase") for pod in pods if _role(pod) == role]
            counts = {
                word: phases.count(phase)
                for word, phase in (("active", "Running"), ("succeeded", "Succeeded"), ("failed", "Failed"))
                if phases.count(phase)
            }
            status["replicaStatuses"][key] = {**counts, "selector": selector}
    chiefs = [pod for pod in pods if pod["metadata"]["labels"].get(OPERATOR_JOB_ROLE) == "master"]
    failed = [pod for pod in pods if pod["status"].get("phase") == "Failed"]
    if any(pod["status"].get("phase") == "Succeeded" for pod in chiefs):
        _set(api, job, status, "Succeeded", f"{name} successfully completed.")
    elif failed:
        role = kind.roles[_role(failed[0])]
        message = (
            f"{kind.kind} {job['metadata']['name']} is failed because {len(failed)} {role} replica(s) failed."
        )
        _set(api, job, status, "Failed", message)
    elif any(pod["status"].get("phase") == "Running" for pod in chiefs):
        _set(api, job, status, "Running", f"{name} is running.", recorded=False)


def _role(pod: Object) -> str:
    return str(pod["metadata"]["labels"].get(OPERATOR_REPLICA_TYPE, ""))


def _torch_environment(job: Object, member: Member) -> _Variables:
    """Return what torchrun, and a script that starts its ranks itself, read."""
    spec, name = job["spec"], job["metadata"]["name"]
    roles = {replicas.role: replicas.count for replicas in PYTORCHJOB.replicas(job)}
    # The operator's default.
    processes, total = str(spec.get("nprocPerNode") or "auto"), sum(roles.values())
    variables: _Variables = [("PYTHONUNBUFFERED", "1")]
    if "master" in roles:
        ranks = int(processes) if processes.isdecimal() else 1
        rank = str(member.index + (member.role == "worker"))
        where = [("ADDR", f"{name}-master-0"), ("PORT", str(_TORCH_PORT))]
        variables += [(f"{prefix}MASTER_{key}", value) for prefix in ("", "PET_") for key, value in where]
        variables += [("WORLD_SIZE", str(total * ranks)), ("RANK", rank), ("PET_NODE_RANK", rank)]
    variables.append(("PET_NPROC_PER_NODE", processes))
    policy = spec.get("elasticPolicy")
    if policy is None:
        return [*variables, ("PET_NNODES", str(total))]
    least, most = policy.get("minReplicas"), policy.get("maxReplicas")
    nodes = f"{least}:{most}" if least is not None and most is not None else str(roles.get("worker", 0))
    host, port = policy.get("rdzvHost") or f"{name}-worker-0", policy.get("rdzvPort") or _TORCH_PORT
    variables.append(("PET_RDZV_ENDPOINT", f"{host}:{port}"))
    variables.append(("PET_RDZV_BACKEND", str(policy.get("rdzvBackend") or "c10d")))
    if policy.get("maxRestarts") is not None:
        variables.append(("PET_MAX_RESTARTS", str(policy["maxRestarts"])))
    return [*variables, ("PET_NNODES", nodes)]


def _tensorflow_environment(job: Object, member: Member) -> _Variables:
    """Return ``TF_CONFIG``: where all pods are, by role."""
    namespace, roles = job["metadata"]["namespace"], TFJOB.replicas(job)
    # A job of a single pod has nobody to find.
    if sum(replicas.count for replicas in roles) < 2:
        return []
    cluster = {
        replicas.role: [
            f"{TFJOB.pod_name(Member(member.job, replicas.role, index))}.{namespace}.svc:{_TENSORFLOW_PORT}"
            for index in range(replicas.count)
        ]
        for replicas in roles
    }
    config = {
        "cluster": dict(sorted(cluster.items())),
        "task": {"type": member.role, "index": member.index},
        "environment": "cloud",
    }
    return [("TF_CONFIG", json.dumps(config, separators=(",", ":")))]


_TORCH_PORT, _TENSORFLOW_PORT = 23456, 2222
_FRAMEWORKS = (
    _Framework(PYTORCHJOB, ("pytorchjob-port", _TORCH_PORT), ("master",), _torch_environment),
    _Framework(TFJOB, ("tfjob-port", _TENSORFLOW_PORT), ("chief", "master"), _tensorflow_environment),
)
WATCHED = (*(framework.jobs for framework in _FRAMEWORKS), PODS, ("", "services"))
