"""Which APIs a server serves: the one place that asks, and what one command remembers of it for the next.

Discovery documents may be read by every user. The kind of job that was found last is kept for each server in
the user's cache folder: a hint, never the truth.
"""

import os
from binascii import crc32
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TypeVar

from arena_topo.errors import NotFound
from arena_topo.files import cache_folder, make_private
from arena_topo.kinds.mpijob import ApiVersion
from arena_topo.kube.session import Session, is_unserved
from arena_topo.model.kind import Kind, api_version

Read = TypeVar("Read")

_MOST_SERVERS = 100
"""Servers that are remembered; clusters for tests come and go, each at an address of its own."""


@dataclass(frozen=True, slots=True)
class ServedApis:
    """What the server of *session* serves.

    A command reads each discovery document once (``Session.discovery``).
    """

    session: Session

    @property
    def versions(self) -> frozenset[str]:
        """Every ``group/version``, the core API's ``v1`` aside. One call."""
        groups = self.session.discovery("/apis").get("groups") or []
        return frozenset(
            str(version["groupVersion"]) for group in groups for version in group.get("versions") or []
        )

    def preferred(self, group: str, versions: Sequence[str]) -> str:
        """Return the first of *versions* in which *group* is served, empty where none is."""
        served = self.versions
        return next((version for version in versions if f"{group}/{version}" in served), "")

    def version_with(self, group: str, versions: Sequence[str], plural: str) -> str:
        """Return the first of *versions* in which *group* serves the resource *plural*, else empty.

        For resources that a group has in some of its versions only. One call for each version that is served,
        until the resource is found.
        """
        served = self.versions
        return next(
            (
                version
                for version in versions
                if f"{group}/{version}" in served and plural in self._resources(f"{group}/{version}")
            ),
            "",
        )

    def kinds(self, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
        """Return those of *kinds* that are served, each in its first served version.

        One call, and one for each version of a group that several kinds share. A group serves its resources
        one by one: that of the training operator has some of its kinds on one cluster, and all on another.
        """
        try:
            versions = self.versions
        except NotFound:
            # A proxy may pass on only what it knows: then no kind can be found, as with none that is served.
            return ()
        from arena_topo.kinds.table import KINDS

        shared = Counter(map(api_version, KINDS))
        newest: dict[str, Kind] = {}
        for kind in kinds:
            version = api_version(kind)
            # A version of a group with one kind of job is served for that.
            if version in versions and (shared[version] == 1 or self._has(version, kind.plural)):
                newest.setdefault(kind.kind, kind)
        return tuple(newest.values())

    def _has(self, version: str, plural: str) -> bool:
        try:
            return plural in self._resources(version)
        except NotFound:
            return False

    def _resources(self, version: str) -> frozenset[str]:
        resources = self.session.discovery(f"/apis/{version}").get("resources") or ()
        return frozenset(resource["name"] for resource in resources)

    # The kinds of jobs that the user means, MPIJob first. The others are imported only where they are needed.

    @property
    def means_mpijobs(self) -> bool:
        """Whether the user means MPIJobs, perhaps among others."""
        kinds = self.session.kinds
        return not kinds or any(isinstance(kind, ApiVersion) for kind in kinds)

    def other_kinds(self) -> tuple[Kind, ...]:
        """Return the kinds besides MPIJob that are served, of those that the user means."""
        others = self._others()
        return self.kinds(others) if others else ()

    def _others(self) -> list[Kind]:
        from arena_topo.kinds.table import OTHER_KINDS

        return [kind for kind in OTHER_KINDS if kind in self.session.kinds or not self.session.kinds]

    def likely_kinds(self) -> Iterator[Kind]:
        """Yield the kinds in which a job may be found.

        The one that was found last, MPIJob, and then what else is served.
        So that most lookups take one call, and none takes a call for each kind that exists.
        """
        recent, meant = self.recent, self.session.kinds
        versions = [version for version in ApiVersion if version in meant or not meant]
        # The other kinds are imported where one was found last, or no MPIJob has the name.
        if recent and recent not in {version.value for version in ApiVersion}:
            yield from (kind for kind in self._others() if _word(kind) == recent)
        yield from sorted(versions, key=lambda version: version.value != recent)
        left = [kind for kind in self._others() if _word(kind) != recent]
        # Of a kind that the user names, asking for the job itself tells whether it is served.
        yield from left if len(left) < 2 else self.kinds(left)

    def read_mpijobs(self, read: Callable[[ApiVersion], Read]) -> tuple[ApiVersion, Read]:
        """Return the served version of MPIJob and what *read* returns for it.

        It raises ``NotFound`` for any other. The version that this server had the last time is tried first,
        then the newest, so that it takes one call. Raises ``NotFound`` when the cluster serves no MPIJob at
        all.
        """
        recent = self.recent
        for version in sorted(ApiVersion, key=lambda version: version.value != recent):
            try:
                value = read(version)
            except NotFound as error:
                if is_unserved(error):
                    continue
                raise
            self.remember(version)
            return version, value
        raise self.no_kind()

    def no_kind(self) -> NotFound:
        """Return the error for a cluster that serves none of the kinds that the user means."""
        if self.means_mpijobs:
            resource = "MPIJob resource (kubeflow.org/v2beta1, v1 or v1alpha1)"
            servers = [ApiVersion.V2BETA1.served_by]
        else:
            kinds = self.session.kinds
            resource = f"{' or '.join(dict.fromkeys(kind.kind for kind in kinds))} resource"
            servers = [kind.served_by for kind in kinds]
        return NotFound(
            f"this cluster has no {resource}",
            hint=f"ask the cluster's admin to install {' or '.join(dict.fromkeys(servers))}",
            status=404,
        )

    @property
    def recent(self) -> str:
        """The kind that this server had the last time, as ``remember`` keeps it.

        Empty where nothing is known.
        """
        server = self.session.server
        try:
            return _file(server).read_text("utf-8").strip() if server else ""
        except OSError:
            return ""

    def remember(self, kind: Kind) -> None:
        """Keep *kind* for the next command; where the cache cannot be written, it stays empty."""
        # Most lookups confirm what is cached, and then nothing is written.
        if not self.session.server or self.recent == _word(kind):
            return
        file = _file(self.session.server)
        try:
            make_private(file.parent)
            # Readers in other processes see the old file or the new one, never half of one.
            temporary = file.with_suffix(f".{os.getpid()}")
            temporary.write_text(_word(kind), "utf-8")
            temporary.replace(file)
            _prune(file.parent)
        except OSError:
            return


def _word(kind: Kind) -> str:
    """Return what is kept of *kind*: of MPIJob its version, which lists are read in as well."""
    return kind.version if isinstance(kind, ApiVersion) else kind.kind


def _file(server: str) -> Path:
    # Two servers of one sum would cost each other a call. hashlib takes longer to import than all the rest of
    # this module.
    return cache_folder() / "mpijob-version" / f"{crc32(server.encode()):08x}"


def _prune(folder: Path) -> None:
    """Remove the files that were written first, beyond as many as are kept."""
    newest_first = sorted(folder.iterdir(), key=lambda file: file.stat().st_mtime_ns, reverse=True)
    for file in newest_first[_MOST_SERVERS:]:
        # Another process may prune at the same time.
        file.unlink(missing_ok=True)
