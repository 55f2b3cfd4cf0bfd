"""Which instances of a job are meant: the launcher, all, those of a role, or some by name and index."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from arena_topo.errors import NotFound, UsageError
from arena_topo.jobs.logs.wait import can_be_of
from arena_topo.kinds.mpijob import Role, is_launcher, parse_worker_name, worker_count, worker_name
from arena_topo.model.notation.words import natural_sort_key, plural
from arena_topo.model.objects import Object

_RANGE = r"(?:worker-)?(\d{1,7})(?:-(\d{1,7}))?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """Some instances of a job; without anything it is the launcher.

    ``indices`` are workers by number, ``names`` are pods; ``role`` means all of a role, ``every`` simply all.
    """

    every: bool = False
    role: Role | None = None
    indices: tuple[range, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def one(self) -> bool:
        """Whether one instance at most is meant."""
        if self.every or self.role is Role.WORKER:
            return False
        return sum(map(len, self.indices)) + len(self.names) + (self.role is Role.LAUNCHER) <= 1

    def name_in(self, job: str) -> str:
        """Return the name of the one instance that is meant, empty for the launcher."""
        if self.names:
            return self.names[0]
        return worker_name(job, self.indices[0][0]) if self.indices else ""

    def among(self, job: str, pods: Sequence[Object]) -> list[Object]:
        """Return those of *pods* that are meant, the launcher first and workers by number."""
        meant = [pod for pod in pods if self._holds(job, pod)]
        return sorted(
            meant, key=lambda pod: (not is_launcher(pod), natural_sort_key(pod["metadata"]["name"]))
        )

    def check(self, job: Object) -> None:
        """Raise ``NotFound`` where *job* cannot have one of these instances."""
        name = job["metadata"]["name"]
        # A range may be as long as its user likes, and its last number is the one that counts.
        asked = [*self.names, *(worker_name(name, each[-1]) for each in self.indices)]
        for instance in asked:
            if not can_be_of(job, instance):
                workers = plural(worker_count(job), "worker")
                raise NotFound(
                    f"invalid instance name {instance} in job {name}, which has {workers}",
                    hint=f"see arena-topo get {name}",
                )

    def _holds(self, job: str, pod: Object) -> bool:
        name = pod["metadata"]["name"]
        if self.every or name in self.names:
            return True
        if is_launcher(pod):
            # Named instances and the role of workers leave the launcher out, unless it is asked for as well.
            return self.role is Role.LAUNCHER or (not self.indices and not self.names and self.role is None)
        worker = parse_worker_name(name)
        if worker is None or worker.job != job:
            return False
        return self.role is Role.WORKER or any(worker.index in each for each in self.indices)


def parse_instances(text: str, role: str, *, every: bool) -> Instances:
    """Return the instances of ``--instance``, ``--role`` and ``--all``.

    For example ``0-3,7`` means five workers, ``vgg16-worker-2`` one, ``launcher`` the launcher. Raises ``UsageError``.
    """
    if every + bool(role) + bool(text) > 1:
        raise UsageError("at most one of --instance, --role and --all may be used")
    if not text:
        return Instances(every=every, role=Role(role.capitalize()) if role else None)
    indices, names, launcher = [], [], False
    for part in text.split(","):
        if match := re.fullmatch(_RANGE, part, re.ASCII):
            indices.append(_indices(match, part))
        elif part == "launcher":
            launcher = True
        elif part:
            names.append(part)
        else:
            raise UsageError(
                f"--instance: {text!r} has an empty part", hint="write for example 0-3,7 or vgg16-worker-2"
            )
    return Instances(indices=tuple(indices), names=tuple(names), role=Role.LAUNCHER if launcher else None)


def _indices(match: re.Match[str], part: str) -> range:
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"--instance: {part!r} ends before it begins", hint=f"write {last}-{first}")
    return range(first, last + 1)
