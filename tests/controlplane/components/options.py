"""What a test may ask of its control plane."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal

NATIVE_GANG_GATES = {"GenericWorkload": True, "GangScheduling": True, "TopologyAwareWorkloadScheduling": True}


@dataclass(frozen=True, slots=True)
class Options:
    """The parts to start and how; the default is a whole cluster that serves MPIJob v2beta1.

    ``feature_gates`` go to the API server, and those that they know to the scheduler and the controllers.
    ``operator`` has an effect with MPIJob v2beta1 only: the older versions are served without an operator.
    ``operators`` are names of other operators (``tests.controlplane.operators``), in the order in which they
    start.
    """

    mpijob: Literal["v2beta1", "v1", "v1alpha1"] | None = "v2beta1"
    operator: bool = True
    nodes: bool = True
    coscheduling: bool = False
    feature_gates: Mapping[str, bool] = field(default_factory=dict)
    controller_gates: Mapping[str, bool] = field(default_factory=dict)
    runtime_config: Mapping[str, bool] = field(default_factory=dict)
    apiserver_args: Sequence[str] = ()
    operator_args: Sequence[str] = ()
    operators: tuple[str, ...] = ()


def api_only(mpijob: Literal["v2beta1", "v1", "v1alpha1"] | None) -> Options:
    """Return options for an API server that serves and validates, with nothing acting on what it stores."""
    return Options(mpijob=mpijob, operator=False, nodes=False)


def native_gang() -> Options:
    """Return options for the stock scheduler's own gangs (alpha in Kubernetes 1.36)."""
    return Options(
        feature_gates=NATIVE_GANG_GATES,
        controller_gates={"GenericWorkload": True},
        runtime_config={"scheduling.k8s.io/v1alpha2": True},
    )


def coscheduling() -> Options:
    """Return options for a second scheduler,
    ``scheduler-plugins-scheduler``, which the operator uses for gangs.
    """
    return Options(coscheduling=True, operator_args=("--gang-scheduling=scheduler-plugins-scheduler",))
