"""The command line of each component."""

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.binaries.ensure import Built
from tests.controlplane.components.options import Options
from tests.controlplane.components.pair import Pair

_UNTHROTTLED = ("--kube-api-qps=500", "--kube-api-burst=1000")
"""Components wait for the API server, not for the limits
by which they would spare that of a shared cluster.
"""


_CONTROLLERS = "--controllers=*,-endpoints-controller,-endpointslice-mirroring-controller,-ttl-controller"
"""Those of a cluster, but for Endpoints: nothing here reads them, and each pod of a job would be a write.

EndpointSlices come at once: where ranks run, a name that resolves late is told in the log of its job.
"""


@dataclass(frozen=True, slots=True)
class Site:
    """Where one control plane lives: its folder, its certificates and its ports on loopback."""

    folder: Path
    authority: Path
    server: Pair
    admin: Pair
    signing: Pair
    etcd_port: int
    etcd_peer_port: int
    api_port: int
    kubelet_port: int

    @property
    def url(self) -> str:
        """Address of the API server."""
        return f"https://127.0.0.1:{self.api_port}"

    @property
    def kubeconfig(self) -> Path:
        """The administrator's kubeconfig, which the components use too."""
        return self.folder / "admin.kubeconfig"


def etcd(built: Built, site: Site) -> list[str]:
    """Return the command of etcd: nothing it stores outlives the test, so nothing is synced to disk."""
    client, peer = f"http://127.0.0.1:{site.etcd_port}", f"http://127.0.0.1:{site.etcd_peer_port}"
    return [
        str(built.binary("etcd")),
        f"--data-dir={site.folder / 'etcd'}",
        f"--listen-client-urls={client}",
        f"--advertise-client-urls={client}",
        f"--listen-peer-urls={peer}",
        f"--initial-advertise-peer-urls={peer}",
        f"--initial-cluster=default={peer}",
        "--unsafe-no-fsync",
        "--log-level=warn",
    ]


def apiserver(built: Built, site: Site, options: Options) -> list[str]:
    """Return the command of kube-apiserver, with RBAC and client certificates as the way to sign in."""
    return [
        str(built.binary("kube-apiserver")),
        f"--etcd-servers=http://127.0.0.1:{site.etcd_port}",
        "--bind-address=127.0.0.1",
        f"--secure-port={site.api_port}",
        f"--tls-cert-file={site.server.certificate}",
        f"--tls-private-key-file={site.server.key}",
        f"--client-ca-file={site.authority}",
        "--service-account-issuer=https://kubernetes.default.svc",
        f"--service-account-key-file={site.signing.certificate}",
        f"--service-account-signing-key-file={site.signing.key}",
        "--authorization-mode=RBAC",
        "--service-cluster-ip-range=10.0.0.0/16",
        f"--kubelet-client-certificate={site.admin.certificate}",
        f"--kubelet-client-key={site.admin.key}",
        "--kubelet-preferred-address-types=InternalIP",
        *_gates(options.feature_gates),
        *_flag("runtime-config", options.runtime_config),
        *options.apiserver_args,
    ]


def controller_manager(built: Built, site: Site, options: Options) -> list[str]:
    """Return the command of kube-controller-manager; a stalled machine must not make nodes NotReady."""
    return [
        str(built.binary("kube-controller-manager")),
        f"--kubeconfig={site.kubeconfig}",
        f"--service-account-private-key-file={site.signing.key}",
        f"--root-ca-file={site.authority}",
        "--leader-elect=false",
        "--secure-port=0",
        "--bind-address=127.0.0.1",
        "--node-monitor-grace-period=1h",
        _CONTROLLERS,
        *_UNTHROTTLED,
        *_gates(options.controller_gates),
    ]


def scheduler(built: Built, site: Site, options: Options) -> list[str]:
    """Return the command of kube-scheduler."""
    return [
        str(built.binary("kube-scheduler")),
        f"--kubeconfig={site.kubeconfig}",
        "--leader-elect=false",
        "--secure-port=0",
        *_UNTHROTTLED,
        *_gates(options.feature_gates),
    ]


def kwok(built: Built, site: Site) -> list[str]:
    """Return the command of KWOK, which manages only the nodes that carry its annotation."""
    return [
        str(built.binary("kwok")),
        f"--kubeconfig={site.kubeconfig}",
        "--manage-all-nodes=false",
        "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake",
        "--enable-crds=Stage,Logs,ClusterLogs,Exec,ClusterExec,Attach,ClusterAttach",
        "--cidr=10.244.0.0/16",
        "--node-ip=127.0.0.1",
        f"--node-port={site.kubelet_port}",
        f"--server-address=127.0.0.1:{site.kubelet_port}",
        f"--tls-cert-file={site.server.certificate}",
        f"--tls-private-key-file={site.server.key}",
        "--node-lease-duration-seconds=40",
    ]


def mpi_operator(built: Built, site: Site, options: Options) -> list[str]:
    """Return the command of the MPI operator, which by default would work off ten events a second."""
    return [
        str(built.binary("mpi-operator")),
        f"--kubeConfig={site.kubeconfig}",
        "--lock-namespace=mpi-operator",
        *_UNTHROTTLED,
        "--controller-queue-rate-limit=500",
        "--controller-queue-burst=1000",
        *options.operator_args,
    ]


def coscheduling(built: Built, site: Site, config: Path) -> list[str]:
    """Return the command of the second scheduler, which reads its kubeconfig from ``config``."""
    return [
        str(built.binary("coscheduling")),
        f"--config={config}",
        f"--authentication-kubeconfig={site.kubeconfig}",
        f"--authorization-kubeconfig={site.kubeconfig}",
        "--secure-port=0",
    ]


def _gates(gates: Mapping[str, bool]) -> list[str]:
    return _flag("feature-gates", gates)


def _flag(name: str, values: Mapping[str, bool]) -> list[str]:
    if not values:
        return []
    return [f"--{name}=" + ",".join(f"{key}={str(value).lower()}" for key, value in values.items())]
