"""Which API groups, versions and resources a server serves, by its discovery documents, which every user may read."""

from collections.abc import Sequence

from arena_topo.kube.session import Session


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
