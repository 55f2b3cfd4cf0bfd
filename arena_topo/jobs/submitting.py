"""What ``submit`` does from a job to its places: gang, plan, pins, reservation."""

import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any

from arena_topo.cluster.session import Session
from arena_topo.errors import Forbidden
from arena_topo.gang.backends import decorate
from arena_topo.jobs.backends import Backend, choose_backend
from arena_topo.jobs.detection import detect
from arena_topo.jobs.pinning import Ground, Means, Pin, choose_means, held
from arena_topo.jobs.placing import Planner, Settled, Waiting, settle
from arena_topo.jobs.planning import PlanOptions, plan_object, reshaped
from arena_topo.jobs.reserving import Desk
from arena_topo.jobs.snapshot import take_snapshot
from arena_topo.jobs.submit import SubmitOptions, create, prepare
from arena_topo.jobs.waiting import Patience
from arena_topo.manifest.decorating import decorated
from arena_topo.manifest.render import Manifest
from arena_topo.model.clusterfacts import ClusterFacts
from arena_topo.model.jobspec import JobSpec
from arena_topo.model.labels import ACK_GPU
from arena_topo.model.placement import Placement
from arena_topo.model.planned import PlanRecord

Object = dict[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceOptions:
    """What the user asks of gang and placement.

    ``given``: a flag of the placement was typed, so that the job is planned even without ``--gputopology``.
    ``timeout`` is how long a job may wait for a place, in seconds: None for not at all, 0 for as long as it takes.
    """

    plan: PlanOptions = field(default_factory=PlanOptions)
    pin: Pin = Pin.AUTO
    gang_scheduler: str = "auto"
    queue: str = ""
    levels: tuple[str, ...] = ()
    given: bool = False
    timeout: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Submitted:
    """What was created: the objects, and the placement where the job has a plan."""

    objects: tuple[Object, ...]
    settled: Settled | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Prepared:
    """A job ready to be created: its objects, how it is kept together and pinned, and what to tell the user."""

    job: JobSpec
    manifest: Manifest
    facts: ClusterFacts | None = None
    means: Means | None = None
    notes: tuple[str, ...] = ()


def prepare_placed(
    session: Session, job: JobSpec, options: SubmitOptions, place: PlaceOptions
) -> Prepared:
    """Return the job as it would be created on this cluster, gang and means chosen.

    Raises what ``prepare`` raises, and ``UsageError`` for a gang scheduler or a pin that the cluster cannot keep.
    """
    rendered = prepare(session, job, options)
    if not (job.gang or job.topology or place.given):
        return Prepared(job=job, manifest=rendered, notes=rendered.notes)
    facts = detect(session)
    if place.plan.coalesce:
        job, rendered = _coalesced(session, job, options, place, rendered)
    backend = choose_backend(job, rendered.job, facts, place.gang_scheduler, place.queue) if job.gang else None
    vendor = job.topology and _asks_for(rendered.job, ACK_GPU)
    wanted = place.given or (job.topology and not vendor) or (backend is not None and backend.name == "gates")
    means = _means(backend, place, rendered.job, facts) if wanted else None
    if backend is None:
        return Prepared(job=job, manifest=rendered, facts=facts, means=means, notes=rendered.notes)
    decoration = decorate(backend.name, backend.gang)
    manifest = replace(
        rendered,
        job=decorated(rendered.job, replace(decoration, scheduling_gates=())),
        companions=(*rendered.companions, *decoration.companions),
    )
    notes = (*rendered.notes, *backend.notes, *decoration.notes)
    return Prepared(job=job, manifest=manifest, facts=facts, means=means, notes=notes)


def submit_placed(
    session: Session, ready: Prepared, options: SubmitOptions, place: PlaceOptions, tell: Callable[[str], None]
) -> Submitted:
    """Create the job that was prepared, planned and pinned where it shall be; *tell* hears what is waited for."""
    if options.dry_run or ready.means is None:
        made = create(session, _shown(ready), dry_run=options.dry_run)
        return Submitted(objects=made, notes=ready.notes)
    return _with_plan(session, ready, ready.means, place, tell)
