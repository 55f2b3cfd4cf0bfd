"""What a served resource type is, and the table of all of them."""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Any

VERBS = ("create", "delete", "get", "list", "patch", "update", "watch")

ResourceKey = tuple[str, str]
"""Group and plural: objects of all versions of a resource are stored together."""


@dataclass(frozen=True, slots=True)
class Column:
    """A printer column of a custom resource; ``path`` is its JSON path."""

    name: str
    type: str
    path: str
    priority: int = 0


@dataclass(frozen=True, slots=True)
class Kind:
    """One version of one resource type.

    ``schema`` is a structural schema (references by name into the server's components), ``custom`` says
    whether a CRD defines it, ``virtual`` that it is answered and never stored, as access reviews are.
    """

    group: str
    version: str
    kind: str
    plural: str
    singular: str
    namespaced: bool
    schema: dict[str, Any] = field(default_factory=dict, compare=False, repr=False)
    short_names: tuple[str, ...] = ()
    categories: tuple[str, ...] = ()
    subresources: tuple[str, ...] = ()
    verbs: tuple[str, ...] = VERBS
    columns: tuple[Column, ...] = ()
    custom: bool = False
    virtual: bool = False

    @property
    def key(self) -> ResourceKey:
        """The key under which its objects are stored."""
        return (self.group, self.plural)

    @property
    def api_version(self) -> str:
        """The ``apiVersion`` of its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version

    @property
    def resource(self) -> str:
        """The plural with its group, as messages name it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural

    @property
    def group_kind(self) -> str:
        """The kind with its group, as messages name it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def has_status(self) -> bool:
        """Whether status is written apart from the rest."""
        return "status" in self.subresources

    @property
    def root(self) -> str:
        """The URL path of its group and version, without the slash before it."""
        return f"apis/{self.api_version}" if self.group else f"api/{self.version}"


class Registry:
    """All kinds that are served."""

    def __init__(self, kinds: Iterable[Kind] = ()) -> None:
        self._kinds: dict[tuple[str, str, str], Kind] = {}
        for kind in kinds:
            self.add(kind)

    def __iter__(self) -> Iterator[Kind]:
        return iter(self._kinds.values())

    def add(self, kind: Kind) -> None:
        """Serve *kind*, replacing what was served in its place."""
        self._kinds[kind.group, kind.version, kind.plural] = kind

    def remove(self, group: str, plural: str) -> None:
        """Stop serving all versions of this resource."""
        for key in [k for k in self._kinds if (k[0], k[2]) == (group, plural)]:
            del self._kinds[key]

    def find(self, group: str, version: str, plural: str) -> Kind | None:
        """Return the kind of a URL's group, version and plural."""
        return self._kinds.get((group, version, plural))

    def of(self, api_version: str, kind: str) -> Kind | None:
        """Return the kind that an object's ``apiVersion`` and ``kind`` name."""
        served = self._kinds.values()
        return next((k for k in served if (k.kind, k.api_version) == (kind, api_version)), None)

    def stored(self, key: ResourceKey) -> Kind | None:
        """Return any version of the resource stored under *key*."""
        return next((kind for kind in self._kinds.values() if kind.key == key), None)

    def groups(self) -> dict[str, list[str]]:
        """Return the versions of every group, in order of registration."""
        groups: dict[str, list[str]] = {}
        for kind in self._kinds.values():
            versions = groups.setdefault(kind.group, [])
            if kind.version not in versions:
                versions.append(kind.version)
        return groups
