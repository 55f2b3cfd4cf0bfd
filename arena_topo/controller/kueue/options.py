"""What a queued job asks of its places: annotations of a planned template, as Kueue hands on nothing else of a job."""

from arena_topo.controller.kueue.workloads import PlannedJob
from arena_topo.errors import DocumentError
from arena_topo.jobs.placement.options import PlanOptions, options_from_annotation
from arena_topo.model.keys import PLACEMENT_OPTIONS, PREFERRED_LEVEL, REQUIRED_LEVEL
from arena_topo.model.notation.bounded_json import read_json


def options_of(planned: PlannedJob) -> PlanOptions:
    """Return what ``submit`` has left for the planner, or what a user has written himself: a level of the fabric.

    Raises ``DocumentError`` for options that cannot be read.
    """
    annotations = {
        key: str(value)
        for replicas in reversed(planned.roles)
        for key, value in ((replicas.template.get("metadata") or {}).get("annotations") or {}).items()
    }
    found: dict[str, str] = {}
    if text := annotations.get(PLACEMENT_OPTIONS):
        try:
            document = read_json(text)
        except ValueError as error:
            raise DocumentError(f"the annotation {PLACEMENT_OPTIONS} cannot be read: {error}") from error
        if not isinstance(document, dict):
            raise DocumentError(f"the annotation {PLACEMENT_OPTIONS} is no mapping")
        found = {str(key): str(value) for key, value in document.items()}
    for key, annotation in (("required", REQUIRED_LEVEL), ("preferred", PREFERRED_LEVEL)):
        if level := annotations.get(annotation):
            found.setdefault(key, level)
    return options_from_annotation(found)
