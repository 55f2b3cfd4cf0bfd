"""The AdmissionChecks that are ours, by their controller and never by their names, and their parameters."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import timedelta

from arena_topo.controller.faults import Faults, Typed
from arena_topo.model.keys import CHECK_CONTROLLER, OUR_DOMAIN
from arena_topo.model.notation.bounded_json import shown
from arena_topo.model.notation.durations import parse_duration
from arena_topo.model.objects import Object

PARAMETERS_KIND = "PlannerParameters"
CHECK: Typed = ("kueue.x-k8s.io/v1beta2", "AdmissionCheck")


@dataclass(frozen=True, slots=True)
class Check:
    """A check of ours: after which time at its queue's head a place is kept for a job, None where it does not say.

    ``fault`` is what is wrong with its parameters, empty where nothing is.
    """

    object: Object
    reserve_after: timedelta | None = None
    fault: str = ""

    @property
    def uid(self) -> str:
        """The check's own."""
        return str(self.object["metadata"]["uid"])


def read_checks(checks: Iterable[Object], parameters: Iterable[Object], faults: Faults) -> dict[str, Check]:
    """Return those of *checks* that are ours, by name, with what the PlannerParameters that they name say.

    One at which anything fails is not served, and *faults* has it.
    """
    by_name = {str(item["metadata"]["name"]): item for item in parameters}
    found: dict[str, Check] = {}
    for item in checks:
        with faults.at(item, CHECK):
            if item["spec"].get("controllerName") == CHECK_CONTROLLER:
                found[str(item["metadata"]["name"])] = _check(item, by_name)
    return found


def _check(item: Object, parameters: dict[str, Object]) -> Check:
    named = item["spec"].get("parameters")
    if not isinstance(named, dict):
        return Check(item)
    group, kind, name = (str(named.get(key)) for key in ("apiGroup", "kind", "name"))
    if (group, kind) != (OUR_DOMAIN, PARAMETERS_KIND):
        return Check(
            item,
            fault=f"its parameters are {shown(kind)} of {shown(group)}, expected {PARAMETERS_KIND} of {OUR_DOMAIN}",
        )
    if name not in parameters:
        return Check(item, fault=f"there are no {PARAMETERS_KIND} {shown(name)}")
    text = parameters[name]["spec"].get("reserveAfter")
    if text is None:
        return Check(item)
    try:
        return Check(item, timedelta(seconds=parse_duration(str(text))))
    except (ValueError, OverflowError):
        return Check(
            item,
            fault=f"{PARAMETERS_KIND} {name}: reserveAfter is {shown(text)}, expected a duration such as 10m",
        )
