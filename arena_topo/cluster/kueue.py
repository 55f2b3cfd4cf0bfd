"""What an admin sets up so that our planner answers Kueue: the admission check, and the kind of its parameters."""

from arena_topo.cluster.capabilities.queues import GROUP
from arena_topo.cluster.rbac import LABELS
from arena_topo.model.keys import CHECK_CONTROLLER, OUR_DOMAIN
from arena_topo.model.objects import Object

CHECK = "arena-topo"
"""The name that setup gives the check; the controller knows its checks by their ``controllerName``."""

PARAMETERS_KIND, PARAMETERS = "PlannerParameters", "plannerparameters"


def kueue_objects(version: str) -> list[Object]:
    """Return the definition of PlannerParameters and an AdmissionCheck in *version* of Kueue's API."""
    check = {
        "apiVersion": f"{GROUP}/{version}",
        "kind": "AdmissionCheck",
        "metadata": {"name": CHECK, "labels": LABELS},
        "spec": {"controllerName": CHECK_CONTROLLER},
    }
    return [_parameters_definition(), check]


def queue_line() -> str:
    """Return what an admin writes into a ClusterQueue for it."""
    return (
        "a ClusterQueue asks the planner once it names the check: kubectl patch clusterqueue NAME --type=merge -p "
        f'\'{{"spec":{{"admissionChecksStrategy":{{"admissionChecks":[{{"name":"{CHECK}"}}]}}}}}}\''
    )


def _parameters_definition() -> Object:
    reserve_after = {
        "type": "string",
        "maxLength": 32,
        "description": "Time with quota and without a place after which a place is kept for a job, such as 10m.",
    }
    schema = {
        "type": "object",
        "required": ["spec"],
        "properties": {"spec": {"type": "object", "properties": {"reserveAfter": reserve_after}}},
    }
    version = {
        "name": "v1alpha1",
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{PARAMETERS}.{OUR_DOMAIN}", "labels": LABELS},
        "spec": {
            "group": OUR_DOMAIN,
            "scope": "Cluster",
            "names": {
                "kind": PARAMETERS_KIND,
                "plural": PARAMETERS,
                "singular": PARAMETERS,
                "listKind": f"{PARAMETERS_KIND}List",
            },
            "versions": [version],
        },
    }
