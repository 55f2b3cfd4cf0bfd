"""Table of what is built: which binary comes from which package of which pinned module."""

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
    """One Go module of this folder, with the binaries and the manifests that come out of it."""

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


_KWOK_CRDS = ("stages", "logs", "clusterlogs", "execs", "clusterexecs", "attaches", "clusterattaches")

TOOLS = (
    Tool("etcd", (Binary("etcd", "go.etcd.io/etcd/server/v3"),)),
    Tool(
        "kwok",
        (Binary("kwok", "sigs.k8s.io/kwok/cmd/kwok"),),
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
        ),
    ),
    Tool(
        "mpi-operator",
        (Binary("mpi-operator", "github.com/kubeflow/mpi-operator/cmd/mpi-operator"),),
        (
            Manifests(
                "github.com/kubeflow/mpi-operator",
                {"mpijob-v2beta1.yaml": "manifests/base/kubeflow.org_mpijobs.yaml"},
            ),
        ),
        Patch(
            "github.com/kubeflow/mpi-operator",
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
    Tool(
        "kubernetes",
        (
            _kubernetes("kube-apiserver"),
            _kubernetes("kube-scheduler"),
            _kubernetes("kube-controller-manager"),
        ),
    ),
)

COSCHEDULING = Tool(
    "coscheduling",
    (Binary("coscheduling", "sigs.k8s.io/scheduler-plugins/cmd/scheduler"),),
    (Manifests("sigs.k8s.io/scheduler-plugins", {"podgroup.yaml": "manifests/coscheduling/crd.yaml"}),),
)

ARENA = Tool(
    "arena",
    (Binary("arena", "github.com/kubeflow/arena/cmd/arena"),),
    (Manifests("github.com/kubeflow/arena", {"mpijob-chart": "charts/mpijob"}),),
)
