"""The jobs of kubeflow/training-operator: a template for each role under one key of the spec.

Source: training-operator 1.9 (pkg/controller.v1/common/pod.go, pkg/apis/kubeflow.org/v1).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field

from arena_topo.model import keys
from arena_topo.model.kind import Elastic, Loose, Member, Replicas
from arena_topo.model.objects import Object
from arena_topo.model.text.json import optional_number


# Each is one of a kind, and a key of dictionaries by that.
@dataclass(frozen=True, slots=True, kw_only=True, eq=False)
class TrainingOperatorKind:
    """A ``Kind`` of kubeflow.org/v1.

    ``specs`` is the key of the replica specs; ``roles`` gives the name of each role, as pods have it, its key
    there, in the order of ranks. ``serves`` and ``anywhere`` are as in ``Replicas``, by role.
    """

    kind: str
    plural: str
    words: tuple[str, ...]
    container: str
    specs: str
    roles: Mapping[str, str]
    serves: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    anywhere: frozenset[str] = frozenset()
    elastic: Elastic | None = None
    group: str = "kubeflow.org"
    version: str = "v1"
    job_label: str = keys.OPERATOR_JOB_NAME
    suspend: tuple[str, ...] = ("runPolicy", "suspend")
    loose: Loose = Loose.EVERYTHING
    succeeded: str = "Succeeded"
    failed: str = "Failed"
    served_by: str = "the Kubeflow training operator"
    refused_by: Mapping[str, str] = field(default_factory=dict)
    listed: str = ""

    @property
    def ranks(self) -> tuple[str, ...]:
        """All roles are planned."""
        return tuple(self.roles)

    @property
    def selector(self) -> str:
        """The label selector of the pods of all jobs of this kind."""
        return f"{keys.OPERATOR_NAME}={self._operator}"

    @property
    def pod_spec_path(self) -> tuple[str, ...]:
        """The keys from a job to the spec of its pods."""
        return ("spec", self.specs, "*", "template", "spec")

    @property
    def is_pinnable(self) -> str:
        """A pod that the operator created for a job of this kind."""
        labels = "object.metadata.labels"
        return (
            f"has({labels}) && '{keys.OPERATOR_NAME}' in {labels} && '{keys.OPERATOR_REPLICA_INDEX}' in {labels} && "
            f"{labels}['{keys.OPERATOR_NAME}'] == '{self._operator}'"
        )

    @property
    def index(self) -> str:
        """Its index in its role."""
        return f"int(object.metadata.labels['{keys.OPERATOR_REPLICA_INDEX}'])"

    @property
    def _operator(self) -> str:
        return f"{self.kind.lower()}-controller"

    def counts(self, job: Object) -> bool:  # noqa: ARG002  # no other kind is made of these
        """Whether *job* was submitted by a user."""
        return True

    def replicas(self, job: Object) -> list[Replicas]:
        """Return the pods of *job*, by role in the order of ranks."""
        specs = job["spec"].get(self.specs) or {}
        return [
            Replicas(
                role,
                # The operator's default; zero is a number too.
                1 if specs[key].get("replicas") is None else int(specs[key]["replicas"]),
                specs[key].get("template") or {},
                f"/spec/{self.specs}/{key}/template",
                labels=self._labels(job, role),
                serves=self.serves.get(role, ()),
                anywhere=role in self.anywhere,
            )
            for role, key in self.roles.items()
            if specs.get(key)
        ]

    def _labels(self, job: Object, role: str) -> dict[str, str]:
        return {
            self.job_label: str((job.get("metadata") or {}).get("name", "")),
            keys.OPERATOR_NAME: self._operator,
            keys.OPERATOR_REPLICA_TYPE: role,
        }

    def member(self, pod: Object) -> Member | None:
        """Return which pod of its job *pod* is."""
        labels = pod["metadata"].get("labels") or {}
        role = str(labels.get(keys.OPERATOR_REPLICA_TYPE))
        index = optional_number(labels.get(keys.OPERATOR_REPLICA_INDEX))
        if role not in self.roles or index is None:
            return None
        return Member(str(labels.get(self.job_label, "")), role, index)

    def pod_name(self, member: Member) -> str:
        """Return the name of a pod."""
        return f"{member.job}-{member.role}-{member.index}"

    def is_chief(self, pod: Object) -> bool:
        """Whether the end of *pod* is the job's: the master, the chief, or worker 0 without either."""
        return (pod["metadata"].get("labels") or {}).get(keys.OPERATOR_JOB_ROLE) == "master"

    def chief_role(self, job: Object) -> str:
        """Return the first role of the job by rank: master or chief, and the workers' without either."""
        return next((replicas.role for replicas in self.replicas(job)), "pod")


# The PyTorchJob: a master, which is rank 0, and workers; the operator sets what torchrun reads.
#
# Without a master torchrun's rendezvous is at worker 0, which is rank 0 then. Source: training-operator 1.9
# (pkg/apis/kubeflow.org/v1/pytorch_types.go, pkg/controller.v1/pytorch).

PYTORCHJOB = TrainingOperatorKind(
    kind="PyTorchJob",
    plural="pytorchjobs",
    words=("pytorchjob", "pytorch", "py"),
    container="pytorch",
    specs="pytorchReplicaSpecs",
    roles={"master": "Master", "worker": "Worker"},
    # Without rdzvHost the rendezvous is at worker 0, even if there is a master.
    elastic=Elastic("worker", "/spec/pytorchReplicaSpecs/Worker/replicas", keeps=1),
)


# The TFJob: a chief, workers, parameter servers and an evaluator, of which a job may lack any; all know all
# by TF_CONFIG.
#
# Source: training-operator 1.9 (pkg/apis/kubeflow.org/v1/tensorflow_types.go, pkg/controller.v1/tensorflow).

TFJOB = TrainingOperatorKind(
    kind="TFJob",
    plural="tfjobs",
    words=("tfjob", "tf", "tensorflow"),
    container="tensorflow",
    specs="tfReplicaSpecs",
    # Chief and master are two names for one role.
    roles={"chief": "Chief", "master": "Master", "worker": "Worker", "ps": "PS", "evaluator": "Evaluator"},
    serves={"ps": ("worker", "chief", "master")},
    anywhere=frozenset({"evaluator"}),
)
