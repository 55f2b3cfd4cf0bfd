"""A line of a log."""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class LogLine:
    """A line as the container wrote it, with its end unless the log ends without one; ``stamp`` may be empty.

    ``instance`` is the pod's name, ``node`` where it runs; ``role`` is its role in the job, and ``index`` its index in that,
    None for a launcher.
    """

    instance: str
    container: str
    node: str
    stamp: bytes
    text: bytes
    role: str
    index: int | None
