"""How a job ended, by its status, whatever its kind and version."""

from dataclasses import dataclass

from arena_topo.model.objects import Object

# Not asked of the kinds, whose table get and logs do without: a test compares them.
SUCCEEDED = ("Succeeded", "Complete", "Completed")
"""The conditions of jobs of all kinds that have ended well; none uses the word of another for anything else."""

FAILED = ("Failed",)
_ALPHA_FINAL = ("Succeeded", "Failed")


@dataclass(frozen=True, slots=True)
class Ending:
    """How a job ended; ``message`` is what its operator says of it, which may be nothing."""

    succeeded: bool
    message: str = ""


def ending(job: Object) -> Ending | None:
    """Return how *job* ended, None while it has not."""
    if condition := final_condition(job):
        return Ending(condition["type"] in SUCCEEDED, str(condition.get("message") or ""))
    # v1alpha1 writes no conditions, only the state of its launcher.
    state = (job.get("status") or {}).get("launcherStatus")
    return Ending(state == "Succeeded") if state in _ALPHA_FINAL else None


def true_condition(job: Object, *kinds: str) -> Object | None:
    """Return the first condition of *job* that is true and one of *kinds*, None where there is none."""
    conditions = (job.get("status") or {}).get("conditions") or ()
    return next(
        (
            condition
            for condition in conditions
            if condition["type"] in kinds and condition.get("status") == "True"
        ),
        None,
    )


def final_condition(job: Object) -> Object | None:
    """Return the condition that says how *job* ended, None while it has not; v1alpha1 writes none."""
    return true_condition(job, *SUCCEEDED, *FAILED)


def has_ended(job: Object) -> bool:
    """Whether *job* has ended or is being deleted: it keeps what its pods hold, and reserves nothing more."""
    return bool(job["metadata"].get("deletionTimestamp") or ending(job))


def ended_without_condition(job: Object) -> bool:
    """Whether *job* has ended as one of v1alpha1, which writes no conditions, only the state of its launcher."""
    return (job.get("status") or {}).get("launcherStatus") in _ALPHA_FINAL
