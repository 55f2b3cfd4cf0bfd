"""Table of what is built: which binary comes from which package of which pinned module.

Tools of one folder are on the same versions of all libraries, so that what they share is compiled once.
"""

import re
from dataclasses import dataclass

from tests.controlplane.binaries.pins import pinned_version

_STRIP = ("-s", "-w")
_VERSION = "k8s.io/component-base/version"


@dataclass(frozen=True, slots=True)
class Binary:
    """One executable: its name, its Go package and the linker's flags."""

    name: str
    package: str
    ldflags: tuple[str, ...] = _STRIP

    @property
    def default_name(self) -> str:
        """What Go calls it: the last part of the package that is no version, as in ``etcd/server/v3``."""
        return next(part for part in reversed(self.package.split("/")) if not re.fullmatch(r"v\d+", part))


@dataclass(frozen=True, slots=True)
class Patch:
    """A text in a file of a module that has to be another one for tests, and why."""

    module: str
    file: str
    old: str
    new: str
    why: str


@dataclass(frozen=True, slots=True)
class Manifests:
    """Files and folders taken from a module, name in the cache -> path inside the module."""

    module: str
    files: dict[str, str]


@dataclass(frozen=True, slots=True)
class Tool:
    """Binaries and manifests that come out of one Go module of this folder, built by one command."""

    folder: str
    binaries: tuple[Binary, ...] = ()
    manifests: tuple[Manifests, ...] = ()
    patch: Patch | None = None


def _kubernetes(name: str) -> Binary:
    """Return a component of Kubernetes that knows its version: a plain ``go build`` would report v0.0.0."""
    version = pinned_version("kubernetes", "k8s.io/kubernetes")
    major, minor, _ = version.removeprefix("v").split(".")
    stamps = {"gitVersion": version, "gitMajor": major, "gitMinor": minor}
    ldflags = (*_STRIP, *(f"-X {_VERSION}.{key}={value}" for key, value in stamps.items()))
    return Binary(name, f"k8s.io/kubernetes/cmd/{name}", ldflags)


_MPI_OPERATOR = "github.com/kubeflow/mpi-operator"
_KWOK_CRDS = ("stages", "logs", "clusterlogs", "execs", "clusterexecs", "attaches", "clusterattaches")

TOOLS = (
    Tool(
        "kubernetes",
        (
            Binary("etcd", "go.etcd.io/etcd/server/v3"),
            Binary("kwok", "sigs.k8s.io/kwok/cmd/kwok"),
            Binary("mpi-operator", f"{_MPI_OPERATOR}/cmd/mpi-operator"),
            _kubernetes("kube-apiserver"),
            _kubernetes("kube-scheduler"),
            _kubernetes("kube-controller-manager"),
        ),
        (
            Manifests(
                "sigs.k8s.io/kwok",
                {f"crd-{name}.yaml": f"kustomize/crd/bases/kwok.x-k8s.io_{name}.yaml" for name in _KWOK_CRDS}
                | {
                    "node-initialize.yaml": "kustomize/stage/node/fast/node-initialize.yaml",
                    "node-heartbeat.yaml": (
                        "kustomize/stage/node/heartbeat-with-lease/node-heartbeat-with-lease.yaml"
                    ),
                },
            ),
            Manifests(_MPI_OPERATOR, {"mpijob-v2beta1.yaml": "manifests/base/kubeflow.org_mpijobs.yaml"}),
        ),
        Patch(
            _MPI_OPERATOR,
            "cmd/mpi-operator/app/server.go",
            'fmt.Sprintf(":%d", healthCheckPort)',
            '"127.0.0.1:0"',
            "the port of its health check is the constant 8080 on all interfaces: a second operator, or anything"
            " else that listens there, would end it",
        ),
    ),
    Tool(
        "crds",
        (),
        (
            Manifests(
                "github.com/kubeflow/arena",
                {"mpijob-v1alpha1.yaml": "arena-artifacts/crds/kubeflow.org_mpijobs.yaml"},
            ),
            Manifests(
                "github.com/kubeflow/training-operator",
                {"mpijob-v1.yaml": "manifests/base/crds/kubeflow.org_mpijobs.yaml"},
            ),
        ),
    ),
)

COSCHEDULING = Tool(
    "kubernetes-1.34",
    (Binary("coscheduling", "sigs.k8s.io/scheduler-plugins/cmd/scheduler"),),
    (Manifests("sigs.k8s.io/scheduler-plugins", {"podgroup.yaml": "manifests/coscheduling/crd.yaml"}),),
)

_TRAINER = "github.com/kubeflow/trainer/v2"
_TRAINING_OPERATOR = "github.com/kubeflow/training-operator"

EXTRAS = {
    "arena": Tool(
        "arena",
        (Binary("arena", "github.com/kubeflow/arena/cmd/arena"),),
        (Manifests("github.com/kubeflow/arena", {"mpijob-chart": "charts/mpijob"}),),
    ),
    "training-operator": Tool(
        "kubernetes-1.34",
        (Binary("training-operator", f"{_TRAINING_OPERATOR}/cmd/training-operator.v1"),),
        (
            Manifests(
                _TRAINING_OPERATOR,
                {
                    "training-operator-crds/pytorchjobs.yaml": "manifests/base/crds/kubeflow.org_pytorchjobs.yaml",
                    "training-operator-crds/tfjobs.yaml": "manifests/base/crds/kubeflow.org_tfjobs.yaml",
                    "training-operator-webhooks.yaml": "manifests/base/webhook/manifests.yaml",
                },
            ),
        ),
        Patch(
            _TRAINING_OPERATOR,
            "cmd/training-operator.v1/main.go",
            """\tdefer close(certsReady)
\tcertGenerationConfig := cert.Config{
\t\tWebhookSecretName:        webhookSecretName,
\t\tWebhookServiceName:       webhookServiceName,
\t\tWebhookConfigurationName: webhookConfigurationName,
\t}
\tif err = cert.ManageCerts(mgr, certGenerationConfig, certsReady); err != nil {
""",
            """\tclose(certsReady)
\tmgr.GetWebhookServer().(*webhook.DefaultServer).Options.Host = "127.0.0.1"
\tvar _ cert.Config
\tif err != nil {
""",
            "it makes certificates for the name of a Service, which nothing on loopback has, and waits for a Secret"
            " of them to be mounted at a fixed path in /tmp; and its webhooks listen on all interfaces",
        ),
    ),
    "kueue": Tool(
        "kubernetes",
        (Binary("kueue", "sigs.k8s.io/kueue/cmd/kueue"),),
        (Manifests("sigs.k8s.io/kueue", {"kueue-crds": "config/components/crd/bases"}),),
        Patch(
            "sigs.k8s.io/kueue",
            "cmd/kueue/main.go",
            'metricsCertPath := "/etc/kueue/metrics/certs"',
            'metricsCertPath := os.TempDir() + "/k8s-webhook-server/serving-certs"',
            "it insists on certificates at a path that only root can write, also where it serves no metrics",
        ),
    ),
    "jobset": Tool(
        "kubernetes",
        (Binary("jobset", "sigs.k8s.io/jobset"),),
        (
            Manifests(
                "sigs.k8s.io/jobset",
                {
                    "jobset-crds": "config/components/crd/bases",
                    "jobset-webhooks.yaml": "config/components/webhook/manifests.yaml",
                },
            ),
        ),
    ),
    "trainer": Tool(
        "kubernetes",
        (Binary("trainer", f"{_TRAINER}/cmd/trainer-controller-manager"),),
        (
            Manifests(
                _TRAINER,
                {
                    "trainer-crds": "manifests/base/crds",
                    "trainer-webhooks.yaml": "manifests/base/webhook/manifests.yaml",
                    "trainer-objects/torch.yaml": "manifests/base/runtimes/torch_distributed.yaml",
                },
            ),
        ),
    ),
}
"""What only some tests need: where one cannot be built, those alone are left out."""
