"""With the documented rules every command works for a user, and without one of them says which it lacks."""

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from arena_topo.jobs.clustersetuproles import TOPOLOGY_RULES, USER_RULES
from tests.controlplane import pods
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.logs import FakeLog
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.arena import Arena
from tests.e2e.pinning import mpijob, running_workers

_RBAC = "rbac.authorization.k8s.io"
_PLANNED = (
    "submit",
    "mpi",
    "--name=new",
    "--image=i",
    "--workers=2",
    "--gpus=1",
    "--gputopology=true",
    "--gang",
    "c",
)


@dataclass(frozen=True, slots=True)
class Lack:
    """A verb on a resource that a user does not have."""

    verb: str
    resource: str

    def of(self, rules: list[Object]) -> list[Object]:
        """Return *rules* without what is lacking."""
        return [cut for rule in rules for cut in self._cut(rule)]

    def _cut(self, rule: Object) -> Iterator[Object]:
        if self.resource not in rule["resources"] or self.verb not in rule["verbs"]:
            yield rule
            return
        others = [resource for resource in rule["resources"] if resource != self.resource]
        verbs = [verb for verb in rule["verbs"] if verb != self.verb]
        if others:
            yield {**rule, "resources": others}
        if verbs:
            yield {**rule, "resources": [self.resource], "verbs": verbs}


NOTHING = Lack("", "")


@dataclass(frozen=True, slots=True)
class Grants:
    """Gives users of one test the documented rules, less what they shall lack."""

    plane: ControlPlane
    namespace: str

    @property
    def kube(self) -> Kube:
        """The administrator's client."""
        return self.plane.kube

    def user(self, lack: Lack) -> Arena:
        """Return the tool as a user runs it who has everything but *lack*, once the server knows it."""
        name = f"user-{self.namespace}"
        subject = {"apiGroup": _RBAC, "kind": "User", "name": name}
        self._bind("Role", "RoleBinding", lack.of(USER_RULES), subject)
        self._bind("ClusterRole", "ClusterRoleBinding", lack.of(TOPOLOGY_RULES), subject)
        with self.plane.client(name) as client:
            eventually(lambda: _allowed(client), "the roles to take effect")
        return Arena(self.plane.kubeconfig(name, namespace=self.namespace))

    def _bind(self, role: str, binding: str, rules: list[Object], subject: Object) -> None:
        space = self.namespace if role == "Role" else None
        meta = {"name": f"test-{self.namespace}"}
        head = {"apiVersion": f"{_RBAC}/v1", "metadata": meta}
        reference = {"apiGroup": _RBAC, "kind": role, "name": meta["name"]}
        self.kube.create({**head, "kind": role, "rules": rules}, space)
        self.kube.create({**head, "kind": binding, "roleRef": reference, "subjects": [subject]}, space)

    def forget(self) -> None:
        """Take away what is not in the namespace."""
        for kind in ("ClusterRoleBinding", "ClusterRole"):
            self.kube.delete(f"{_RBAC}/v1", kind, f"test-{self.namespace}")


def _allowed(client: Kube) -> bool:
    """Whether the last of the grants, that in the cluster, has taken effect."""
    try:
        client.get("scheduling.k8s.io/v1", "PriorityClass", "system-node-critical")
    except KubeError as error:
        if error.code != 403:
            raise
        return False
    return True


@pytest.fixture
def grants(plane: ControlPlane, namespace: str) -> Iterator[Grants]:
    """Return what gives users their rights."""
    made = Grants(plane, namespace)
    yield made
    made.forget()


@pytest.fixture
def job(kube: Kube, namespace: str, gpu_nodes: list[str], fake_log: FakeLog) -> str:
    """Name of a job that runs and has said something."""
    del gpu_nodes
    fake_log.write("said")
    kube.create(mpijob("job", 1, {"nvidia.com/gpu": "1"}, {}), namespace)
    running_workers(kube, namespace, "job", 1)
    launcher = eventually(lambda: pods.of_job(kube, namespace, "job", "launcher"), "the launcher")[0]
    kube.wait_for("v1", "Pod", launcher["metadata"]["name"], namespace, until=pods.running)
    return "job"


def test_the_documented_rules_are_enough(grants: Grants, job: str) -> None:
    """To submit, plan, read, follow and delete."""
    user = grants.user(NOTHING)
    commands: list[tuple[str, ...]] = [
        _PLANNED,
        ("plan", "mpi", "--workers=2", "--gpus=1"),
        ("get", job),
        ("logs", job),
        ("topology",),
        ("top", "node"),
        ("doctor", "--strict"),
        ("delete", job, "--wait=false"),
        ("delete", "new", "--wait=false"),
    ]
    outcomes = [user(*command) for command in commands]

    failed = [(command, done.err) for command, done in zip(commands, outcomes, strict=True) if done.code]
    assert [] == failed


LACKS: list[tuple[str, str, tuple[str, ...]]] = [
    ("create", "mpijobs", _PLANNED),
    ("list", "mpijobs", _PLANNED),
    ("patch", "mpijobs", _PLANNED),
    ("patch", "pods", _PLANNED),
    ("list", "nodes", ("plan", "mpi", "--workers=2", "--gpus=1")),
    ("get", "mpijobs", ("get", "job")),
    ("list", "pods", ("get", "job")),
    ("get", "pods/log", ("logs", "job")),
    ("delete", "mpijobs", ("delete", "job")),
]


@pytest.mark.usefixtures("job")
@pytest.mark.parametrize(
    ("verb", "resource", "command"), LACKS, ids=[f"{verb} {what}" for verb, what, _ in LACKS]
)
def test_one_verb_less_is_told(grants: Grants, verb: str, resource: str, command: tuple[str, ...]) -> None:
    """By its name, and whom to ask; never a traceback."""
    outcome = grants.user(Lack(verb, resource))(*command)

    assert 1 == outcome.code, outcome.out
    assert f'cannot {verb} resource "{resource}"' in outcome.err
    assert "ask the cluster's admin for this permission" in outcome.err
    assert "Traceback" not in outcome.err
