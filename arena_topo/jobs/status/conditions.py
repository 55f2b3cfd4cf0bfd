"""What the status of an MPIJob tells, in every version."""

from arena_topo.model.objects import Object


def ended(job: Object) -> bool:
    """Whether *job* has ended, or is being deleted: its pods hold what they hold, and nothing more is promised."""
    status = job.get("status") or {}
    conditions = {each["type"] for each in status.get("conditions") or () if each.get("status") == "True"}
    return bool(
        job["metadata"].get("deletionTimestamp")
        or conditions & {"Succeeded", "Failed"}
        or status.get("launcherStatus") in ("Succeeded", "Failed")
    )
