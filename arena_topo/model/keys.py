"""Every label, annotation and resource name that crosses the wire, in one place.

Sources: kubeflow/arena 0.15.5 (charts/mpijob, pkg/apis/types), kubeflow/mpi-operator 0.8.2,
kubeflow/training-operator 1.9 (pkg/apis), JobSet 0.12 (api/jobset/v1alpha2) and k8s.io/api/batch/v1.
"""

OUR_DOMAIN = "arena-topo.dev"
MANAGED_BY = "app.kubernetes.io/managed-by"
OWN_NAME = "arena-topo"

# Labels of Arena's charts, by which Arena's own commands find jobs.
ARENA_APP = "app"
ARENA_APP_VALUE = "mpijob"
ARENA_RELEASE = "release"
ARENA_CREATED_BY = "createdBy"
ARENA_CREATED_BY_VALUE = "MPIJob"
ARENA_MODEL_NAME = "modelName"
ARENA_REQUESTED_GPUS = "requestGPUsOfJobOwner"

# Labels that the operators put on pods; v1alpha1 has two of its own.
OPERATOR_JOB_NAME = "training.kubeflow.org/job-name"
OPERATOR_JOB_ROLE = "training.kubeflow.org/job-role"
OPERATOR_REPLICA_TYPE = "training.kubeflow.org/replica-type"
OPERATOR_REPLICA_INDEX = "training.kubeflow.org/replica-index"
OPERATOR_NAME = "training.kubeflow.org/operator-name"
ALPHA_JOB_NAME = "mpi_job_name"
ALPHA_ROLE = "mpi_role_type"

# Labels of pods of an indexed Job, and of the Jobs of a JobSet.
BATCH_JOB_NAME = "batch.kubernetes.io/job-name"
COMPLETION_INDEX = "batch.kubernetes.io/job-completion-index"
JOBSET_NAME = "jobset.sigs.k8s.io/jobset-name"
JOBSET_ROLE = "jobset.sigs.k8s.io/replicatedjob-name"
JOBSET_JOB_INDEX = "jobset.sigs.k8s.io/job-index"
JOBSET_GLOBAL_INDEX = "jobset.sigs.k8s.io/job-global-index"

# Labels of Arena's --gang and --gputopology.
GANG_NAME = "pod-group.scheduling.sigs.k8s.io/name"
GANG_MIN_AVAILABLE = "pod-group.scheduling.sigs.k8s.io/min-available"
TOPOLOGY_NAME = "gpu-topology"
TOPOLOGY_REPLICA = "gpu-topology-replica"

# The label that puts a node of ACK into topology mode.
ACK_SCHEDULE = "ack.node.gpu.schedule"
ACK_SCHEDULE_TOPOLOGY = "topology"

# What schedulers read from jobs and pods.
KUEUE_QUEUE = "kueue.x-k8s.io/queue-name"
KUEUE_JOB_UID = "kueue.x-k8s.io/job-uid"
KUBE_QUEUE_SUSPEND = "scheduling.x-k8s.io/suspend"
KAI_QUEUE = "kai.scheduler/queue"
KOORDINATOR_GANG = "gang.scheduling.koordinator.sh"
YUNIKORN = "yunikorn.apache.org"
ACK_LEVEL = "alibabacloud.com/topology-aware-constraint"
COSCHEDULING_GROUP = "scheduling.x-k8s.io/pod-group"
VOLCANO_GROUP = "scheduling.k8s.io/group-name"
HAMI_USE_GPUS = "nvidia.com/use-gpuuuid"

# Annotations of GPUs in use, and of the links on a node, as their vendors write them.
ACK_GPU_GROUP = "topology.kubernetes.io/gpu-group"
ACK_ALLOCATION = "gputopology.alibabacloud.com/allocation"
KOORDINATOR_ALLOCATION = "topology.scheduling.koordinator.sh/gpu"
KOORDINATOR_DEVICES = "scheduling.koordinator.sh/device-allocated"
HAMI_REGISTER = "hami.io/node-nvidia-register"
HAMI_SCORE = "hami.io/node-nvidia-score"
HAMI_ALLOCATED = "hami.io/vgpu-devices-allocated"

# Our own labels, annotations and gates.
GPU_TOPOLOGY = f"{OUR_DOMAIN}/gpu-topology"
REQUIRED_LEVEL = f"{OUR_DOMAIN}/required-topology"
PREFERRED_LEVEL = f"{OUR_DOMAIN}/preferred-topology"
PIN_NODES = f"{OUR_DOMAIN}/pin-nodes"
PIN_GPUS = f"{OUR_DOMAIN}/pin-gpus"
PIN_CLAIMS = f"{OUR_DOMAIN}/pin-claims"
PIN_OFFSET = f"{OUR_DOMAIN}/pin-offset"
PODS_PER_JOB = f"{OUR_DOMAIN}/pods-per-job"
POD_REQUESTS = f"{OUR_DOMAIN}/pod-requests"
POD_COUNT = f"{OUR_DOMAIN}/pod-count"
POD_GROUP = f"{OUR_DOMAIN}/pod-group"
ELASTIC = f"{OUR_DOMAIN}/elastic"
POLICY_VERSION = f"{OUR_DOMAIN}/policy-version"
GANG_GATE = f"{OUR_DOMAIN}/gang"
MODEL_SOURCE = f"{OUR_DOMAIN}/model-source"
PLAN = f"{OUR_DOMAIN}/plan"
MOVES = f"{OUR_DOMAIN}/moves"
HANG = f"{OUR_DOMAIN}/hang"
PLANNED = f"{OUR_DOMAIN}/planned"
CLAIMED_GPUS = f"{OUR_DOMAIN}/claimed-gpus"
PLANNED_JOB = f"{OUR_DOMAIN}/job"
LAUNCHER_OF = f"{OUR_DOMAIN}/launcher-of"
PLACEMENT_OPTIONS = f"{OUR_DOMAIN}/placement-options"
PLANNED_KIND = f"{OUR_DOMAIN}/kind"
SNAPSHOT_WRITTEN = f"{OUR_DOMAIN}/snapshot-written"
SNAPSHOT_PARTS = f"{OUR_DOMAIN}/snapshot-parts"
TRAINING_JOB = f"{OUR_DOMAIN}/training-job"

# The controller's Lease and its Deployment.
CONTROLLER = "arena-topo-controller"
CONTROLLER_NAMESPACE = "arena-topo-system"
HANGS_IN = f"{OUR_DOMAIN}/hangs-in"

# By it Kueue's AdmissionChecks are known as ours.
CHECK_CONTROLLER = f"{OUR_DOMAIN}/planner"

HOSTNAME = "kubernetes.io/hostname"
CLIQUE = "nvidia.com/gpu.clique"
"""On the nodes of an NVL72 rack: whose GPUs reach each other over NVLink."""

# Extended resources, and the device class of DRA.
NVIDIA_GPU = "nvidia.com/gpu"
DRA_GPU = "gpu.nvidia.com"
ACK_GPU = "aliyun.com/gpu"
AMD_GPU = "amd.com/gpu"
GPU_RESOURCES = (NVIDIA_GPU, ACK_GPU, AMD_GPU)
"""The extended resources by which nodes offer whole GPUs."""
RDMA = "rdma/hca"
