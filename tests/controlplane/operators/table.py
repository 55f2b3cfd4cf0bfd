"""How each operator is started: its configuration, its command line, and whether its webhooks are called."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tests.controlplane.binaries.ensure import Built

CERTIFICATES = "k8s-webhook-server/serving-certs"
"""Where controller-runtime looks for the certificate of webhooks, below the folder for temporary files."""


@dataclass(frozen=True, slots=True)
class Seat:
    """What one operator may use: the plane's folder, and ports on loopback of its own.

    ``operators``: the names of all operators of the plane, itself included.
    """

    folder: Path
    webhook_port: int
    health_port: int
    operators: tuple[str, ...]

    @property
    def health(self) -> str:
        """Address of its health checks."""
        return f"127.0.0.1:{self.health_port}"

    def config(self, name: str, document: dict[str, Any]) -> str:
        """Write the configuration of operator *name*, and return its path."""
        path = self.folder / f"{name}.json"
        path.write_text(json.dumps(document))
        return str(path)


@dataclass(frozen=True, slots=True)
class Operator:
    """An operator that runs outside of the cluster; its binary, its manifests and its process have one name.

    ``has_webhooks`` says whether the API server calls its webhooks.
    """

    namespace: str
    command: Callable[[Built, Seat], list[str]]
    has_webhooks: bool = True


def _training_operator(built: Built, seat: Seat) -> list[str]:
    return [
        str(built.binary("training-operator")),
        "--enable-scheme=pytorchjob",
        "--enable-scheme=tfjob",
        "--metrics-bind-address=0",
        f"--health-probe-bind-address={seat.health}",
        f"--webhook-server-port={seat.webhook_port}",
        "--controller-threads=4",
    ]


_ALONE = {"leaderElection": {"leaderElect": False}, "metrics": {"bindAddress": "0"}}


def _with_webhooks(name: str, group: str, certificates: str) -> Callable[[Built, Seat], list[str]]:
    """Return the command of an operator whose configuration is
    of *group*, and calls its *certificates* so.
    """

    def command(built: Built, seat: Seat) -> list[str]:
        config = _ALONE | {
            "apiVersion": f"{group}/v1alpha1",
            "kind": "Configuration",
            "health": {"healthProbeBindAddress": seat.health},
            "webhook": {"port": seat.webhook_port, "host": "127.0.0.1"},
            certificates: {"enable": False},
        }
        return [str(built.binary(name)), f"--config={seat.config(name, config)}"]

    return command


_jobset = _with_webhooks("jobset", "config.jobset.x-k8s.io", "internalCertManagement")
_trainer = _with_webhooks("trainer", "config.trainer.kubeflow.org", "certManagement")


_FRAMEWORKS = {
    "training-operator": ("kubeflow.org/pytorchjob", "kubeflow.org/tfjob"),
    "jobset": ("jobset.x-k8s.io/jobset",),
    "trainer": ("trainer.kubeflow.org/trainjob",),
}
"""What Kueue calls the kinds of jobs of each operator."""


def _kueue(built: Built, seat: Seat) -> list[str]:
    others = [framework for name in seat.operators for framework in _FRAMEWORKS.get(name, ())]
    config = _ALONE | {
        "apiVersion": "config.kueue.x-k8s.io/v1beta2",
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": seat.health},
        "webhook": {
            "port": seat.webhook_port,
            "host": "127.0.0.1",
            "certDir": str(seat.folder / CERTIFICATES),
        },
        "internalCertManagement": {"enable": False},
        "clientConnection": {"qps": 300, "burst": 500},
        "integrations": {"frameworks": ["kubeflow.org/mpijob", "batch/job", *others]},
    }
    # The visibility server insists on a certificate at a path that only root can write.
    gates = "--feature-gates=VisibilityOnDemand=false"
    return [str(built.binary("kueue")), f"--config={seat.config('kueue', config)}", gates]


OPERATORS = {
    "training-operator": Operator("kubeflow", _training_operator),
    "jobset": Operator("jobset-system", _jobset),
    # It makes JobSets of TrainJobs.
    "trainer": Operator("kubeflow-system", _trainer),
    # Without webhooks nothing is defaulted: who submits creates the job suspended, as `submit` does, and who
    # answers a check names the pod sets as Kueue does.
    "kueue": Operator("kueue-system", _kueue, has_webhooks=False),
}
"""In the order in which they start."""
