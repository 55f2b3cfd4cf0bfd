"""In which size a job may be: what is asked of it, against what it can be."""

from dataclasses import dataclass, replace

from arena_topo.errors import UsageError
from arena_topo.jobs.lookup import ServedJob
from arena_topo.jobs.placement.other_plans import settled
from arena_topo.jobs.placement.reservation import plan_of
from arena_topo.jobs.status.conditions import has_ended
from arena_topo.kinds.elastic import elastic_range, least_pods, pods_of_job
from arena_topo.model.job.job_spec import WorkerRange
from arena_topo.model.job.kind import is_suspended
from arena_topo.model.keys import KUEUE_QUEUE
from arena_topo.model.notation.words import plural
from arena_topo.model.plan.plan_record import PlanRecord, Stage


@dataclass(frozen=True, slots=True)
class ElasticJob:
    """A job that runs and may change its size: its number of pods, what that may become, and its plan if it has one."""

    served: ServedJob
    pods: int
    limits: WorkerRange
    record: PlanRecord | None


def elastic_job(served: ServedJob) -> ElasticJob:
    """Return what of *served* decides about its size. Raises ``UsageError`` for a job whose size must stay, and says why."""
    name, kind, job = served.name, served.kind, served.job
    limits = elastic_range(kind, job)
    if has_ended(job):
        raise UsageError(
            f"the job {name} has ended, so that nothing can grow or shrink",
            hint=f"arena-topo rerun {name} runs it again",
        )
    if queue := (job["metadata"].get("labels") or {}).get(KUEUE_QUEUE):
        raise UsageError(
            f"the job {name} is in queue {queue} of Kueue, which stops a {kind.kind} whose size changes and queues it again",
            hint="Kueue's elastic jobs are of batch and Ray alone; submit it in the size that it shall have",
        )
    record = plan_of(job)
    record = settled(job, record) if record else None
    if is_suspended(kind, job) or (record and record.stage is not Stage.CONFIRMED):
        raise UsageError(
            f"the job {name} does not run, so that nothing can grow or shrink",
            hint=f"arena-topo resume {name} starts it, as large as it fits",
        )
    if record and record.requested_options.get("parallel"):
        raise UsageError(
            f"the job {name} was laid out for its number of ranks, by --parallel={record.requested_options['parallel']}",
            hint="submit it again with the axes of its new size",
        )
    if record and record.roles:
        roles = ", ".join(role.name for role in record.roles)
        raise UsageError(
            f"the pods of {name} are not alike ({roles}), and more of one role are not planned beside the others",
            hint="an elastic job of workers alone, as --min-workers makes one, can grow",
        )
    pods = pods_of_job(kind, job)
    if record and len(record.slots) < pods:
        raise UsageError(
            f"{name} has {plural(pods, 'worker')} and places for {len(record.slots)}: somebody changed the number without them",
            hint=f"arena-topo suspend {name} and resume {name} plan it anew in that size",
        )
    # Places of workers that somebody has taken away are nobody's.
    record = replace(record, slots=record.slots[:pods]) if record else None
    return ElasticJob(served, pods, limits, record)


def check_size(elastic: ElasticJob, workers: int) -> None:
    """Raise ``UsageError`` where the job must not have as many pods as *workers*."""
    name, limits = elastic.served.name, elastic.limits
    if not limits.least <= workers <= limits.most:
        raise UsageError(
            f"{name} may have {limits.least} to {plural(limits.most, 'worker')}, and not {workers}",
            hint="these are the bounds that it was submitted with: --min-workers and --max-workers",
        )
    # The highest indices leave, so that what must stay is at the lowest.
    least = least_pods(elastic.served.kind, elastic.served.job)
    if workers < least:
        raise UsageError(
            f"{name} cannot have fewer than {plural(least, 'worker')}: its ranks meet at worker {least - 1}",
            hint="the operator takes the highest indices away, and the rendezvous would go with them",
        )
