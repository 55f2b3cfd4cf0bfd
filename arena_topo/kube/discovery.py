"""Which API groups, versions and resources a server serves, by its discovery documents, which every user may read."""

from collections import Counter
from collections.abc import Sequence

from arena_topo.errors import NotFound
from arena_topo.kube.session import Session
from arena_topo.model.kind import Kind, api_version


def served_versions(session: Session) -> frozenset[str]:
    """Return every ``group/version`` that is served, the core API's ``v1`` aside. One call."""
    groups = session.get("/apis").get("groups") or []
    return frozenset(
        str(version["groupVersion"]) for group in groups for version in group.get("versions") or []
    )


def preferred_version(served: frozenset[str], group: str, versions: Sequence[str]) -> str:
    """Return the first of *versions* in which *group* is among the *served*, empty where none is."""
    return next((version for version in versions if f"{group}/{version}" in served), "")


def version_of_resource(
    session: Session, served: frozenset[str], group: str, versions: Sequence[str], plural: str
) -> str:
    """Return the first of *versions* in which *group* serves the resource *plural*, empty where none does.

    For resources that a group has in some of its versions only. One call for each version that is served, until the
    resource is found.
    """
    for version in versions:
        if f"{group}/{version}" in served:
            resources = session.get(f"/apis/{group}/{version}").get("resources") or ()
            if any(resource["name"] == plural for resource in resources):
                return version
    return ""


def served_kinds(session: Session, kinds: Sequence[Kind]) -> tuple[Kind, ...]:
    """Return those of *kinds* that are served, the first version of each alone. One call, and one for each version of a group that several kinds share.

    A group serves its resources one by one: that of the training operator has some of its kinds on one cluster, and all on
    another.
    """
    try:
        versions = served_versions(session)
    except NotFound:
        # A proxy may let through what it knows alone: then no kind can be found, as with none that is served.
        return ()
    left = [kind for kind in kinds if api_version(kind) in versions]
    from arena_topo.kinds.table import KINDS

    shared = Counter(map(api_version, KINDS))
    # A version of a group with one kind of job is served for that.
    resources = {
        version: _resources(session, version)
        for version in dict.fromkeys(map(api_version, left))
        if shared[version] > 1
    }
    found = (kind for kind in left if kind.plural in resources.get(api_version(kind), {kind.plural}))
    newest: dict[str, Kind] = {}
    for kind in found:
        newest.setdefault(kind.kind, kind)
    return tuple(newest.values())


def _resources(session: Session, version: str) -> frozenset[str]:
    try:
        resources = session.get(f"/apis/{version}").get("resources") or ()
    except NotFound:
        return frozenset()
    return frozenset(resource["name"] for resource in resources)
