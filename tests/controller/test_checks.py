"""Which AdmissionChecks are ours, and what their parameters say."""

from datetime import timedelta

import pytest

from arena_topo.controller.objects import Faults
from arena_topo.controller.workloads import read_checks
from arena_topo.model.objects import Object
from tests.controller.workload_objects import check

PARAMETERS = {"apiGroup": "arena-topo.dev", "kind": "PlannerParameters", "name": "p"}


def parameters(**spec: object) -> Object:
    """Return PlannerParameters."""
    return {"metadata": {"name": "p"}, "spec": spec}


def test_checks_are_ours_by_their_controller() -> None:
    """Whatever their names."""
    other = {**check("arena-topo"), "spec": {"controllerName": "somebody"}}
    assert {"mine"} == set(read_checks([other, check("mine")], [], Faults()))


@pytest.mark.parametrize(
    ("given", "spec", "expected", "fault"),
    [
        ({}, {}, None, ""),
        ({"parameters": PARAMETERS}, {"reserveAfter": "10m"}, timedelta(minutes=10), ""),
        ({"parameters": PARAMETERS}, {"reserveAfter": "0"}, timedelta(), ""),
        ({"parameters": PARAMETERS}, {}, None, ""),
        ({"parameters": PARAMETERS}, {"reserveAfter": "soon"}, None, "reserveAfter is 'soon'"),
        ({"parameters": PARAMETERS}, {"reserveAfter": "3000000h"}, None, "reserveAfter is '3000000h'"),
        ({"parameters": {**PARAMETERS, "name": "q"}}, {}, None, "there are no PlannerParameters 'q'"),
        ({"parameters": {**PARAMETERS, "kind": "ConfigMap"}}, {}, None, "expected PlannerParameters"),
    ],
)
def test_parameters(given: Object, spec: Object, expected: timedelta | None, fault: str) -> None:
    """A time, or what is wrong with them."""
    found = read_checks([check(**given)], [parameters(**spec)], Faults())["planner"]
    assert expected == found.reserve_after
    assert fault in found.fault
    assert bool(fault) is bool(found.fault)
