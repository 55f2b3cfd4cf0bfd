"""The PyTorchJob: a master, which is rank 0, and workers; the operator sets what torchrun reads.

Without a master torchrun's rendezvous is at worker 0, which is rank 0 then. Source: training-operator 1.9
(pkg/apis/kubeflow.org/v1/pytorch_types.go, pkg/controller.v1/pytorch).
"""

from arena_topo.kinds.training_operator import TrainingOperatorKind
from arena_topo.model.job.kind import Elastic

PYTORCHJOB = TrainingOperatorKind(
    kind="PyTorchJob",
    plural="pytorchjobs",
    words=("pytorchjob", "pytorch", "py"),
    container="pytorch",
    specs="pytorchReplicaSpecs",
    roles={"master": "Master", "worker": "Worker"},
    # Without rdzvHost the rendezvous is at worker 0, also where there is a master.
    elastic=Elastic("worker", "/spec/pytorchReplicaSpecs/Worker/replicas", keeps=1),
)
