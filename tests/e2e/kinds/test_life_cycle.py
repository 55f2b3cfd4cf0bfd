"""What a job of every kind promises from submit to delete, on a
real API server with the real operators: one table of the kinds.
"""

import json
import re
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import pytest

from tests.controlplane.kube import Kube, Object
from tests.controlplane.machines import pods
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import NodeSpec, create_nodes, delete_nodes
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena, Outcome
from tests.e2e.kinds.places import end, nodes_of, plan_on, tried

COMMAND = "torchrun --node-rank=$JOB_COMPLETION_INDEX train.py --note='a  b'"
POD_FLAGS = (
    *("--env=A=1", "--cpu=2", "--memory=4Gi", "--share-memory=1Gi", "--rdma"),
    *("--label=team=x", "--annotation=note=y", "--selector=a=b", "--toleration=all"),
)
"""What ``submit`` takes for the pods of nearly all kinds."""
LIMITS = ("--ttl-after-finished=1h", "--running-timeout=2h", "--working-dir=/work")


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """What differs from kind to kind in the life of the job ``bert``.

    ``objects``: what ``submit`` creates, the job itself first, each with its API version. ``pods``: how the
    names of its pods begin, by rank. ``own``: what the first pod says that those of other kinds do not.
    ``flags`` are all that submit takes for the kind, and ``stored`` is what they become, by its path in the
    job.
    """

    submit: tuple[str, ...]
    objects: tuple[tuple[str, str], ...]
    selector: str
    pods: tuple[str, ...]
    gpus: int
    own: Callable[[Object], object]
    expected: object
    flags: tuple[str, ...]
    stored: Mapping[str, object]
    retry: tuple[str, ...] = ()
    """With which the job continues once a pod is lost."""
    comes_back: bool = True
    """Whether a pod that is lost is recreated at once."""
    fails: bool = True
    """Whether it fails as soon as its pods do."""
    said: str = ""
    """What submit says of its shape."""
    roles: tuple[str, ...] = ()
    """Those of the plan, where they differ in what they request."""
    cpu_nodes: tuple[str, ...] = ()
    """Servers that its last pods need, which ask for no GPUs."""
    numbers: tuple[str, ...] = ("1",)
    """By which numbers the log of a pod can be asked for."""
    other: str = "mpijob"
    """A type that it is not."""

    @property
    def api(self) -> tuple[str, str]:
        """The API version and the kind."""
        return self.objects[0]

    @property
    def resource(self) -> str:
        """The name of the kind for kubectl."""
        return resource(*self.api)


def resource(version: str, kind: str) -> str:
    """Return what kubectl calls a kind."""
    return ".".join(filter(None, (kind.lower(), version.rpartition("/")[0])))


def environment(pod: Object) -> dict[str, str]:
    """Return the variables of a pod's only container."""
    (container,) = pod["spec"]["containers"]
    return {each["name"]: each.get("value", "") for each in container["env"]}


_ROLES = ("worker", "ps", "chief", "evaluator")

KINDS = {
    "Job": Kind(
        submit=("job", "--workers=3", "--gpus=2", "--image=i"),
        objects=(("batch/v1", "Job"), ("v1", "Service")),
        selector="batch.kubernetes.io/job-name=bert",
        pods=("bert-0-", "bert-1-", "bert-2-"),
        gpus=6,
        # The Service lets them find each other.
        own=lambda pod: (pod["spec"]["hostname"], pod["spec"]["subdomain"]),
        expected=("bert-0", "bert"),
        # Ten seconds after it was lost: test_manifest_file.py waits for it.
        comes_back=False,
        flags=("--retry=2", *LIMITS, *POD_FLAGS),
        stored={"spec.backoffLimit": 2, "spec.ttlSecondsAfterFinished": 3600},
    ),
    "JobSet": Kind(
        submit=("jobset", "--workers=3", "--gpus=2", "--image=i"),
        objects=(("jobset.x-k8s.io/v1alpha2", "JobSet"),),
        selector="jobset.sigs.k8s.io/jobset-name=bert",
        pods=("bert-worker-0-0-", "bert-worker-0-1-", "bert-worker-0-2-"),
        gpus=6,
        own=lambda pod: (pod["spec"]["hostname"], pod["spec"]["subdomain"]),
        expected=("bert-worker-0-0", "bert"),
        # A lost pod starts the set again.
        retry=("--retry=1",),
        flags=("--retry=2", *LIMITS, *POD_FLAGS),
        stored={"spec.failurePolicy.maxRestarts": 2},
    ),
    "TrainJob": Kind(
        submit=("train", "--workers=3", "--gpus=2", "--runtime=torch-distributed", "--image=i"),
        objects=(("trainer.kubeflow.org/v1alpha1", "TrainJob"),),
        selector="jobset.sigs.k8s.io/jobset-name=bert",
        pods=("bert-node-0-0-", "bert-node-0-1-", "bert-node-0-2-"),
        gpus=6,
        own=lambda pod: environment(pod)["PET_NNODES"],
        expected="3",
        # Its pods are those of a Job, which tries each of them again.
        comes_back=False,
        fails=False,
        numbers=(),
        # Trainer makes a JobSet of it, which is no job next to it.
        other="jobset",
        flags=(
            *("--running-timeout=2h", "--nproc-per-node=2", *POD_FLAGS),
            *("--data=claim:/data", "--data-dir=/a:/b", "--image-pull-secret=s", "--device=a.com/b=1"),
        ),
        stored={
            "spec.trainer.numNodes": 3,
            "spec.trainer.numProcPerNode": 2,
            "spec.activeDeadlineSeconds": 7200,
        },
    ),
    "PyTorchJob": Kind(
        submit=("pytorch", "--workers=4", "--gpus=2", "--image=i", "--nproc-per-node=2"),
        objects=(("kubeflow.org/v1", "PyTorchJob"),),
        selector="training.kubeflow.org/job-name=bert",
        pods=("bert-master-0", "bert-worker-0", "bert-worker-1", "bert-worker-2"),
        gpus=8,
        own=lambda pod: [environment(pod)[name] for name in ("PET_NNODES", "PET_NPROC_PER_NODE", "RANK")],
        expected=["4", "2", "0"],
        retry=("--retry=3",),
        flags=("--retry=2", *LIMITS, *POD_FLAGS),
        stored={
            "spec.nprocPerNode": "2",
            "spec.runPolicy.ttlSecondsAfterFinished": 3600,
            "spec.runPolicy.activeDeadlineSeconds": 7200,
        },
    ),
    "TFJob": Kind(
        submit=("tf", "--workers=3", "--gpus=4", "--ps=2", "--ps-cpu=4", "--chief", "--image=i"),
        objects=(("kubeflow.org/v1", "TFJob"),),
        selector="training.kubeflow.org/job-name=bert",
        pods=("bert-chief-0", "bert-worker-0", "bert-worker-1", "bert-worker-2", "bert-ps-0", "bert-ps-1"),
        gpus=16,
        own=lambda pod: {
            role: len(hosts) for role, hosts in json.loads(environment(pod)["TF_CONFIG"])["cluster"].items()
        },
        expected={"chief": 1, "worker": 3, "ps": 2},
        retry=("--retry=3",),
        # Its operator counts a running pod that is being deleted as failed, and with it mostly the job.
        comes_back=False,
        said="bert  1 chief, 3 workers, 2 ps",
        roles=("chief", "worker", "ps"),
        cpu_nodes=("cpu-a", "cpu-b"),
        flags=(
            *(f"--{role}-{flag}" for role in _ROLES for flag in ("cpu=2", "cpu-limit=4", "memory=1Gi")),
            *(
                f"--{role}-{flag}"
                for role in _ROLES
                for flag in ("memory-limit=2Gi", f"selector=role={role}")
            ),
            *("--evaluator", "--evaluator-gpus=1", "--worker-image=w", "--ps-image=p", "--ps-gpus=1"),
            *("--worker-port=2222", "--ps-port=2223", "--chief-port=2224", "--role-sequence=w,p,c,e"),
            *("--worker-affinity-policy=spread", "--worker-affinity-constraint=required"),
            *("--ps-affinity-policy=spread", "--success-policy=AllWorkers", "--clean-task-policy=All"),
            *("--retry=2", "--ttl-after-finished=1h", "--running-timeout=2h", "--env=A=1", "--label=team=x"),
            *("--annotation=note=y", "--selector=a=b", "--toleration=all", "--share-memory=1Gi", "--rdma"),
        ),
        stored={
            f"spec.tfReplicaSpecs.{name}.template.spec.nodeSelector": {"role": role}
            for name, role in zip(("Worker", "PS", "Chief", "Evaluator"), _ROLES, strict=True)
        },
    ),
}


@dataclass(frozen=True, slots=True)
class Life:
    """A job of one kind, as its user reads of it and as the cluster has it."""

    kind: Kind
    arena: Arena
    kube: Kube
    namespace: str
    gpu_nodes: list[str]

    def submit(self, *flags: str) -> Outcome:
        """Submit the job, which its user reads, and what of it is new to him."""
        outcome = self.arena("submit", *self.kind.submit, "--name=bert", *flags, COMMAND)
        created = "".join(f"{resource(*each)}/bert created\n" for each in self.kind.objects)
        assert (0, created) == (outcome.code, outcome.out), outcome.err
        told = f"`arena-topo get bert --type {self.kind.api[1].lower()} -n {self.namespace}`"
        assert told in outcome.err
        assert self.kind.said in outcome.err
        return outcome

    @property
    def plan(self) -> Object:
        """The plan that the job carries."""
        return plan_on(self.kube, self.namespace, self.kind.api)

    def pods(self, without: str = "") -> list[Object]:
        """Return the pods by rank, once all of them run, *without* the one of this uid."""
        count, selector = len(self.kind.pods), self.kind.selector
        found = pods.all_running(self.kube, self.namespace, selector, count, without)
        return [pod for name in self.kind.pods for pod in found if pod["metadata"]["name"].startswith(name)]

    def assert_in_places(self) -> None:
        """Fail unless each pod runs where it is planned: those without GPUs on the servers that have none."""
        found = pods.nodes_of(self.pods())
        assert nodes_of(self.plan) == found
        first = len(found) - len(self.kind.cpu_nodes)
        assert set(self.gpu_nodes) >= set(found[:first])
        assert set(self.kind.cpu_nodes) == set(found[first:])

    def assert_own(self) -> None:
        """Fail unless the first pod runs the command, and has what
        is its kind's own; and the plan says by what it holds.
        """
        first = self.pods()[0]
        (container,) = first["spec"]["containers"]
        assert ["sh", "-c", COMMAND] == container["command"]
        assert self.kind.expected == self.kind.own(first)
        roles = tuple(role["name"] for role in self.plan.get("roles", ()))
        assert ("admission", self.kind.roles) == (self.plan["means"], roles)

    def lose_a_pod(self) -> None:
        """Delete the second pod; once all run again, each is where it was."""
        before = self.pods()
        lost = before[1]["metadata"]
        self.kube.delete("v1", "Pod", lost["name"], self.namespace, gracePeriodSeconds="0")
        assert pods.nodes_of(before) == pods.nodes_of(self.pods(without=lost["uid"]))

    def assert_listed(self) -> None:
        """Fail unless the job is in every list, under its own type only."""
        assert f"{self.kind.resource}/bert running\n" == self.arena("wait", "bert", "--for=running").out
        assert f"{self.kind.resource}/bert\n" == self.arena("list", "-o", "name").out
        trainer, gpus, word = self.kind.api[1].upper(), self.kind.gpus, self.kind.submit[0]
        row = rf"^bert +RUNNING +{trainer} +\w+ +{gpus} +{gpus} "
        for command in (("list",), ("list", f"--type={word}"), ("top", "job")):
            found = self.arena(*command).out
            assert re.search(row, found, re.MULTILINE), found
        assert "RUNNING" in self.arena("get", "bert", f"--type={word}").out
        assert 1 == self.arena("get", "bert", f"--type={self.kind.other}").code
        assert "bert" not in self.arena("list", f"--type={self.kind.other}").out

    def assert_shown(self) -> None:
        """Fail unless get and describe show all of its pods, which
        of them is the first, and that they are where they must be.
        """
        names = [pod["metadata"]["name"] for pod in self.pods()]
        table = self.arena("get", "bert").out
        assert f"Trainer:   {self.kind.api[1].upper()}\n" in table
        assert [(name, str(name == names[0]).lower()) for name in sorted(names)] == re.findall(
            r"^  (bert-\S+) +Running +\w+ +(true|false) ", table, re.MULTILINE
        )
        described = self.arena("describe", "bert").out
        assert [] == [name for name in names if name not in described]
        noun = "pods" if self.kind.roles else "workers"
        assert f"{len(names)} of {len(names)} {noun} where planned (admission)" in described
        assert 0 == self.arena("events", "bert").code

    def assert_logged(self, log: FakeLog) -> None:
        """Fail unless the logs of its first and its last pod are read."""
        first, *_, last = (pod["metadata"]["name"] for pod in self.pods())
        for name in (first, last):
            log.wait_served(self.kube, self.namespace, name)
        log.write("step 1")
        assert "step 1\n" == self.arena("logs", "bert").out
        for instance in (last, *self.kind.numbers):
            assert "step 1\n" == self.arena("logs", "bert", "-i", instance, "--tail=1").out

    def suspend_and_resume(self) -> None:
        """Suspend the job, which then has no pods and says so, and resume it."""
        outcome = self.arena("suspend", "bert")
        assert 0 == outcome.code, outcome.err
        assert [] == self.kube.list("v1", "Pod", self.namespace)
        assert "SUSPENDED" == self.status()
        outcome = self.arena("resume", "bert")
        assert 0 == outcome.code, outcome.err

    def status(self) -> str:
        """Return the status that get shows."""
        found = re.search(r"^Status: +(\w+)", self.arena("get", "bert").out, re.MULTILINE)
        return found[1] if found else ""

    def assert_ends(self, status: str, exit_code: int) -> None:
        """End all pods with *exit_code*; fail unless the job
        has *status* then, whatever its operator calls that.
        """
        end(self.kube, self.namespace, self.pods(), exit_code)
        outcome = self.arena("wait", "bert", "--for=succeeded", "--timeout=3m")
        assert (5 if exit_code else 0) == outcome.code, outcome.err
        assert status == self.status()

    def assert_failed_pods_stay(self) -> None:
        """Fail unless a pod that failed is still there, whose log says why."""
        found = self.kube.list("v1", "Pod", self.namespace, labelSelector=self.kind.selector)
        assert "Failed" in [pod["status"]["phase"] for pod in found]

    def assert_deleted(self) -> None:
        """Delete the job, which the user reads, and nothing of it is left."""
        outcome = self.arena("delete", "bert")
        assert (0, "The training job bert has been deleted successfully\n") == (outcome.code, outcome.out)
        assert None is self.kube.find(*self.kind.api, "bert", self.namespace)

        def left() -> list[Object]:
            objects = (self.kube.find(*each, "bert", self.namespace) for each in self.kind.objects)
            return [*filter(None, objects), *self.kube.list("v1", "Pod", self.namespace)]

        eventually(lambda: not left(), "the end of all that belongs to the job")


@pytest.fixture(params=KINDS.values(), ids=list(KINDS))
def kind(request: pytest.FixtureRequest) -> Kind:
    """Return each of the kinds."""
    found: Kind = request.param
    return found


@pytest.fixture
def _cpu_nodes(plane: ControlPlane, kind: Kind) -> Iterator[None]:
    names = create_nodes(plane.kube, [NodeSpec(name, gpus=0) for name in kind.cpu_nodes])
    yield
    delete_nodes(plane.kube, names)


@pytest.fixture
def job(
    arena: Arena,
    kube: Kube,
    namespace: str,
    gpu_nodes: list[str],
    kind: Kind,
    _cpu_nodes: None,
) -> Life:
    """Return the life of a job of each kind, which is not submitted yet."""
    return Life(kind, arena, kube, namespace, gpu_nodes)


@pytest.mark.usefixtures("policy")
def test_a_job_runs_in_its_places_from_submit_to_delete(job: Life, fake_log: FakeLog) -> None:
    """Each pod on its own node, a lost one again, and all of them
    once it was suspended; all commands know it by its name only.
    """
    job.submit("--gputopology", "--pin=workers", *job.kind.retry)
    job.assert_in_places()
    job.assert_own()
    if job.kind.comes_back:
        job.lose_a_pod()
    job.assert_listed()
    job.assert_shown()
    job.assert_logged(fake_log)

    job.suspend_and_resume()
    job.assert_in_places()
    job.assert_ends("SUCCEEDED", exit_code=0)
    job.assert_deleted()


def test_without_the_policy_gates_hold_the_pods_until_all_have_a_place(job: Life) -> None:
    """The gate stays in the template: suspended and resumed,
    they are gated again; and a job fails when its pods do.
    """
    job.submit("--gang", "--gang-scheduler=gates")
    assert "by scheduling gates" in job.arena("describe", "bert").out
    job.assert_in_places()

    job.suspend_and_resume()
    job.assert_in_places()
    if job.kind.fails:
        job.assert_ends("FAILED", exit_code=3)
        job.assert_failed_pods_stay()


@pytest.mark.usefixtures("gpu_nodes")
def test_the_server_takes_every_flag(arena: Arena, kube: Kube, namespace: str, kind: Kind) -> None:
    """Under strict validation against the kind's own definition, and by the webhook of its operator."""
    flags = ("--name=bert", *kind.flags, "--dry-run=client", "-o", "yaml")
    outcome = arena("submit", *kind.submit, *flags, COMMAND)
    assert 0 == outcome.code, outcome.err

    stored = tried(kube, namespace, outcome.out)
    assert {name: "bert" for _, name in kind.objects} == {
        name: item["metadata"]["name"] for name, item in stored.items()
    }
    assert kind.stored == {path: at(stored[kind.api[1]], path) for path in kind.stored}


def at(item: Object, path: str) -> Any:
    """Return what is at *path* in an object, None where it has no such thing."""
    found: Any = item
    for key in path.split("."):
        found = (found or {}).get(key)
    return found
