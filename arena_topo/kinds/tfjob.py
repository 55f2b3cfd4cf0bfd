"""The TFJob: a chief, workers, parameter servers and an evaluator, of which a job may lack any; all know all by TF_CONFIG.

Source: training-operator 1.9 (pkg/apis/kubeflow.org/v1/tensorflow_types.go, pkg/controller.v1/tensorflow).
"""

from arena_topo.kinds.training_operator import TrainingOperatorKind

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
