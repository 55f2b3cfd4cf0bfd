"""Where a pod may run: tolerations, node selectors and node affinity, by kube-scheduler's rules.

Source: ``k8s.io/component-helpers/scheduling/corev1`` (helpers.go, nodeaffinity).
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    # It is defined with all that a cluster has, of which a job names only its tolerations.
    from arena_topo.model.cluster import Taint

# PreferNoSchedule only makes a node less attractive.
_BLOCKING = frozenset({"NoSchedule", "NoExecute"})


@dataclass(frozen=True, slots=True)
class Toleration:
    """A toleration of a pod; empty fields match everything, as in the API."""

    key: str = ""
    operator: str = "Equal"
    value: str = ""
    effect: str = ""

    def tolerates(self, taint: "Taint") -> bool:
        """Whether this toleration covers *taint*."""
        if self.effect and self.effect != taint.effect:
            return False
        if self.key and self.key != taint.key:
            return False
        if self.operator == "Exists":
            return True
        # Without a key only Exists is valid: Equal would compare a value with that of any taint.
        return bool(self.key) and self.value == taint.value


def untolerated(taints: "tuple[Taint, ...]", tolerations: tuple[Toleration, ...]) -> "Taint | None":
    """Return the first of *taints* that keeps a pod with *tolerations* off a node, or None."""
    for taint in taints:
        if taint.effect in _BLOCKING and not any(toleration.tolerates(taint) for toleration in tolerations):
            return taint
    return None


@dataclass(frozen=True, slots=True)
class Requirement:
    """One expression of a node selector term: ``key operator values``."""

    key: str
    operator: str
    values: tuple[str, ...] = ()

    def holds(self, labels: Mapping[str, str]) -> bool:
        """Whether *labels* meet this requirement."""
        value = labels.get(self.key)
        match self.operator:
            case "In":
                return value is not None and value in self.values
            case "NotIn":  # a node without the label meets it too, as in the API
                return value is None or value not in self.values
            case "Exists":
                return value is not None
            case "DoesNotExist":
                return value is None
            case "Gt" | "Lt":
                return value is not None and _compare(self.operator, value, self.values)
            # kube-scheduler matches no node by an operator that it does not know.
            case _:
                return False


def _compare(operator: str, value: str, values: tuple[str, ...]) -> bool:
    try:
        left, right = int(value), int(values[0])
    # As in kube-scheduler, a label that is not a whole number meets neither operator.
    except (ValueError, IndexError):
        return False
    return left > right if operator == "Gt" else left < right


@dataclass(frozen=True, slots=True)
class SelectorTerm:
    """One term of a required node affinity; all of its requirements must hold.

    ``fields`` are requirements on ``metadata.name``, the only field that the API allows.
    """

    expressions: tuple[Requirement, ...] = ()
    fields: tuple[Requirement, ...] = ()

    def selects(self, name: str, labels: Mapping[str, str]) -> bool:
        """Whether the node *name* with *labels* meets this term; an empty term selects nothing."""
        if not self.expressions and not self.fields:
            return False
        fields = {"metadata.name": name}
        return all(expression.holds(labels) for expression in self.expressions) and all(
            field.holds(fields) for field in self.fields
        )
