"""A rendered job with what its gang's back-end adds: nothing that the user set is lost or overridden."""

from collections.abc import Mapping
from copy import deepcopy
from typing import Any

from arena_topo.errors import UsageError
from arena_topo.kinds.table import check_templates, kind_of
from arena_topo.manifest.plan_on_job import suspend
from arena_topo.model.job.gang import Decoration
from arena_topo.model.job.kind import is_planned
from arena_topo.model.objects import Object, section


def decorated(job: Object, decoration: Decoration) -> Object:
    """Return the *job* of any kind with *decoration*; *job* itself stays as it is.

    The one template of v1alpha1 is the workers'. Raises ``UsageError`` where the job already says otherwise.
    """
    result = deepcopy(job)
    _metadata(result, "labels", "the job", decoration.job_labels)
    _metadata(result, "annotations", "the job", decoration.job_annotations)
    kind = kind_of(result)
    check_templates(kind, result)
    of_ranks = (decoration.worker_labels, decoration.worker_annotations)
    of_launcher = (decoration.launcher_labels, decoration.launcher_annotations)
    for replicas in kind.replicas(result):
        labels, annotations = of_ranks if is_planned(kind, replicas.role) else of_launcher
        template, whose = replicas.template, f"the {replicas.role}'s pods"
        _metadata(template, "labels", whose, {**decoration.pod_labels, **labels})
        _metadata(template, "annotations", whose, {**decoration.pod_annotations, **annotations})
        if decoration.scheduler_name:
            _set(section(template, "spec"), "schedulerName", whose, decoration.scheduler_name)
    if decoration.scheduling_policy:
        policy = section(section(result["spec"], "runPolicy"), "schedulingPolicy")
        for key, value in decoration.scheduling_policy.items():
            _set(policy, key, "the job's schedulingPolicy", value)
    if decoration.suspended:
        suspend(kind, result["spec"], suspended=True)
    return result


def _metadata(item: Object, field: str, whose: str, values: Mapping[str, str]) -> None:
    if not values:
        return
    present = section(section(item, "metadata"), field)
    for key, value in values.items():
        _set(present, key, whose, value)


def _set(values: Object, key: str, whose: str, value: Any) -> None:
    """Set a value that is not set yet; one that is set to another stops the submit, since both cannot be had."""
    # The user's own value could be overwritten, but then the job would not be the one that was submitted.
    if values.get(key, value) != value:
        raise UsageError(
            f"{key} of {whose} is {values[key]!r}, and the gang scheduler needs {value!r}",
            hint=f"leave {key} out of the job's flags and template, or choose another --gang-scheduler",
        )
    values[key] = value
