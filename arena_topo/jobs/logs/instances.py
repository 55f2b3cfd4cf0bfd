"""Which instances of a job are meant: the launcher, all, those of a role, or some by name and index."""

import re
from collections.abc import Sequence
from dataclasses import dataclass

from arena_topo.errors import NotFound, UsageError
from arena_topo.jobs.logs.wait import can_be_of
from arena_topo.jobs.lookup import ServedJob
from arena_topo.kinds.mpijob import parse_worker_name, worker_count, worker_name
from arena_topo.model import keys
from arena_topo.model.notation.words import natural_sort_key, plural
from arena_topo.model.objects import Object

_LAUNCHER, _WORKER = "launcher", "worker"
_RANGE = r"(?:worker-)?(\d{1,7})(?:-(\d{1,7}))?"


@dataclass(frozen=True, slots=True, kw_only=True)
class Instances:
    """Some instances of a job; without anything it is the launcher, or what takes its place in jobs of other kinds.

    ``indices`` are workers by number, ``names`` are pods; ``role`` means all of a role, ``every`` simply all.
    """

    every: bool = False
    role: str = ""
    indices: tuple[range, ...] = ()
    names: tuple[str, ...] = ()

    @property
    def one(self) -> bool:
        """Whether one instance at most is meant."""
        if self.every or self.role not in ("", _LAUNCHER):
            return False
        return sum(map(len, self.indices)) + len(self.names) + bool(self.role) <= 1

    def name_in(self, job: str) -> str:
        """Return the name of the one instance that is meant, empty for the launcher."""
        if self.names:
            return self.names[0]
        return worker_name(job, self.indices[0][0]) if self.indices else ""

    def among(self, served: ServedJob, pods: Sequence[Object]) -> list[Object]:
        """Return those of *pods* that are meant, the launcher first and workers by number."""
        meant = [pod for pod in pods if self._holds(served, pod)]
        return sorted(
            meant, key=lambda pod: (not served.kind.is_chief(pod), natural_sort_key(pod["metadata"]["name"]))
        )

    def check(self, served: ServedJob) -> None:
        """Raise ``NotFound`` where a job cannot have one of these instances."""
        name, roles = served.name, roles_of(served)
        if self.role not in ("", _LAUNCHER, *roles):
            raise NotFound(
                f"job {name} has no instances of role {self.role}", hint=f"its roles are {', '.join(roles)}"
            )
        # A range may be as long as its user likes, and its last number is the one that counts.
        asked = [*self.names, *(worker_name(name, each[-1]) for each in self.indices)]
        for instance in asked:
            if not can_be_of(served, instance):
                raise NotFound(
                    f"invalid instance name {instance} in job {name}, which has {_pods(served)}",
                    hint=f"see arena-topo get {name}",
                )

    def _holds(self, served: ServedJob, pod: Object) -> bool:
        if self.every or pod["metadata"]["name"] in self.names:
            return True
        # Named instances and roles leave the launcher out, unless it is asked for as well.
        are_chosen = self.indices or self.names or self.role not in ("", _LAUNCHER)
        if served.kind.is_chief(pod) and (self.role == _LAUNCHER or not are_chosen):
            return True
        member = served.kind.member(pod)
        if member is None or member.job != served.name:
            return False
        is_asked_for = member.role == _WORKER and any(member.index in each for each in self.indices)
        return is_asked_for or member.role == self.role


def role_of(pod: Object) -> tuple[str, int | None]:
    """Return the role of *pod* in its job and its index in that, None for a launcher, of which there is one.

    For example ``("worker", 2)``, ``("master", 0)``, ``("launcher", None)``.
    """
    if worker := parse_worker_name(pod["metadata"]["name"]):
        return _WORKER, worker.index
    labels = pod["metadata"].get("labels") or {}
    # Most logs are of MPIJobs, and need not import the other kinds.
    if labels.get(keys.OPERATOR_REPLICA_TYPE, _LAUNCHER) == _LAUNCHER and keys.COMPLETION_INDEX not in labels:
        return _LAUNCHER, None
    from arena_topo.kinds.table import OTHER_KINDS

    members = filter(None, (kind.member(pod) for kind in OTHER_KINDS))
    return next(((member.role, member.index) for member in members), (_LAUNCHER, None))


def roles_of(served: ServedJob) -> list[str]:
    """Return the roles of a job, in the order of its kind."""
    roles = [role.role for role in served.kind.replicas(served.job)]
    # v1alpha1 has one template for both of its roles.
    return [*roles, _LAUNCHER] if roles == [_WORKER] and served.kind.plural == "mpijobs" else roles


def _pods(served: ServedJob) -> str:
    """Return the pods that can be named, such as ``4 workers``."""
    if served.kind.plural == "mpijobs":
        return plural(worker_count(served.job), "worker")
    return " and ".join(plural(role.count, role.role) for role in served.kind.replicas(served.job))


def parse_instances(text: str, role: str, *, every: bool) -> Instances:
    """Return the instances of ``--instance``, ``--role`` and ``--all``.

    For example ``0-3,7`` means five workers, ``vgg16-worker-2`` one, ``launcher`` the launcher. Raises ``UsageError``.
    """
    if every + bool(role) + bool(text) > 1:
        raise UsageError("at most one of --instance, --role and --all may be used")
    if not text:
        return Instances(every=every, role=role.lower())
    indices, names, launcher = [], [], False
    for part in text.split(","):
        if match := re.fullmatch(_RANGE, part, re.ASCII):
            indices.append(_indices(match, part))
        elif part == _LAUNCHER:
            launcher = True
        elif part:
            names.append(part)
        else:
            raise UsageError(
                f"--instance: {text!r} has an empty part", hint="write for example 0-3,7 or vgg16-worker-2"
            )
    return Instances(indices=tuple(indices), names=tuple(names), role=_LAUNCHER if launcher else "")


def _indices(match: re.Match[str], part: str) -> range:
    first, last = int(match[1]), int(match[2] or match[1])
    if last < first:
        raise UsageError(f"--instance: {part!r} ends before it begins", hint=f"write {last}-{first}")
    return range(first, last + 1)
