"""How a job that runs differs from what a submit of the same name would create."""

import re
from collections.abc import Iterator, Mapping
from copy import deepcopy
from difflib import unified_diff
from typing import Any

from arena_topo.errors import Forbidden
from arena_topo.jobs.lookup import look_up_job
from arena_topo.jobs.placement.enforcement import pins_of
from arena_topo.jobs.submit.rerun import record_of
from arena_topo.jobs.submit.submit import PreparedJob
from arena_topo.kinds.mpijob import pod_templates
from arena_topo.kube.resources import jobs_of
from arena_topo.kube.session import Session
from arena_topo.manifest.fresh import unplanned
from arena_topo.model.job.kind import containers
from arena_topo.model.notation.yaml_documents import dump
from arena_topo.model.objects import Object

_SECRET = re.compile(r"secret|token|passw|credential|api_?key|access_?key|private", re.IGNORECASE)
Place = tuple[str, int, str]
"""A variable: its role, the number of its container, and its name."""

_MASK, _BEFORE, _AFTER = "***", "*** (before)", "*** (after)"
"""What stands for values that may be secret, as in kubectl diff."""


def difference(session: Session, prepared: PreparedJob) -> tuple[str, tuple[str, ...]]:
    """Return the unified diff from the job as it is to the one that was prepared, empty where they are alike, and notes.

    What the server, a plan and a suspension put onto a job is no difference.
    """
    wanted, notes = _with_defaults(session, prepared)
    name = str(wanted["metadata"]["name"])
    _, existing = look_up_job(session, name)
    live: Object = {}
    if existing is not None:
        record = record_of(existing)
        live = _bare(unplanned(existing, pins_of(existing, record) if record else None))
    wanted = _bare(wanted)
    before, after = _masked(live, wanted)
    lines = unified_diff(_lines(before), _lines(after), f"live/{name}", f"submit/{name}", lineterm="")
    return "".join(f"{line}\n" for line in lines), notes


def _with_defaults(session: Session, prepared: PreparedJob) -> tuple[Object, tuple[str, ...]]:
    """Return the prepared job with the defaults of the server, which the job that runs has too."""
    manifest = prepared.manifest
    job = manifest.job
    name, namespace = job["metadata"]["name"], job["metadata"]["namespace"]
    # The name is taken, by the very job that is compared: the server tries the new one under another.
    metadata = {key: value for key, value in job["metadata"].items() if key != "name"}
    tried = {**job, "metadata": {**metadata, "generateName": f"{name[:40]}-"}}
    try:
        answer = session.create(jobs_of(manifest.kind).path(namespace), tried, dry_run=True)
    except Forbidden:
        note = "you may not create jobs here: the job is compared without the server's defaults"
        return unplanned(job, None), (note,)
    # A server that garbles its answer may leave out what every object has.
    kind = {key: job[key] for key in ("apiVersion", "kind")}
    return unplanned({**kind, **answer, "metadata": {**answer["metadata"], "name": name}}, None), ()


def _bare(value: Any) -> Any:
    """Return *value* with its keys in order, and without those that are empty, which mean the same as none."""
    if isinstance(value, dict):
        below = {key: _bare(value[key]) for key in sorted(value)}
        return {key: item for key, item in below.items() if item not in ({}, [], None)}
    return [_bare(item) for item in value] if isinstance(value, list) else value


def _lines(job: Object) -> list[str]:
    return dump(job).splitlines() if job else []


def _masked(before: Object, after: Object) -> tuple[Object, Object]:
    """Return copies of both jobs in which environment values that may be secret show only whether they differ."""
    old, new = dict(_secrets(before)), dict(_secrets(after))
    return _with_masks(before, old, new, _BEFORE), _with_masks(after, new, old, _AFTER)


def _with_masks(job: Object, own: Mapping[Place, Any], other: Mapping[Place, Any], mark: str) -> Object:
    """Return a copy of *job* with *mark* in place of the values of *own* that *other* has otherwise."""
    masked = deepcopy(job)
    for place, variable in _variables(masked):
        if place in own:
            variable["value"] = mark if other.get(place, own[place]) != own[place] else _MASK
    return masked


def _variables(job: Object) -> Iterator[tuple[Place, Object]]:
    for role, template in (pod_templates(job) if job else {}).items():
        for index, container in enumerate(containers(template)):
            for variable in container.get("env") or ():
                yield (role.value, index, str(variable.get("name"))), variable


def _secrets(job: Object) -> Iterator[tuple[Place, Any]]:
    for place, variable in _variables(job):
        if "value" in variable and _SECRET.search(place[2]):
            yield place, variable["value"]
