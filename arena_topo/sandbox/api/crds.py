"""CustomResourceDefinitions: what they serve, and their conditions."""

import copy

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Column, Kind, Registry
from arena_topo.sandbox.api.schema import PRUNED, Schema
from arena_topo.sandbox.api.store import Store

CRD_KEY = ("apiextensions.k8s.io", "customresourcedefinitions")


def _kinds_of(crd: Object) -> list[Kind]:
    """Return the kinds that a CustomResourceDefinition serves."""
    spec = crd["spec"]
    names = spec["names"]
    return [
        Kind(
            group=spec["group"],
            version=version["name"],
            kind=names["kind"],
            plural=names["plural"],
            # The API server names a singular that a CRD leaves out after the kind.
            singular=names.get("singular") or names["kind"].lower(),
            namespaced=spec.get("scope") == "Namespaced",
            schema=_structural(version.get("schema", {}).get("openAPIV3Schema", {})),
            short_names=tuple(names.get("shortNames") or ()),
            categories=tuple(names.get("categories") or ()),
            subresources=("status",) if "status" in (version.get("subresources") or {}) else (),
            columns=tuple(_column(column) for column in version.get("additionalPrinterColumns") or ()),
            custom=True,
        )
        for version in spec["versions"]
        if version.get("served")
    ]


def _structural(schema: Schema) -> Schema:
    """Return *schema* marked so that fields it does not name are dropped."""
    marked = dict(schema)
    if marked.get("type") == "object":
        marked[PRUNED] = True
    if "properties" in marked:
        marked["properties"] = {name: _structural(field) for name, field in marked["properties"].items()}
    for keyword in ("items", "additionalProperties"):
        if isinstance(marked.get(keyword), dict):
            marked[keyword] = _structural(marked[keyword])
    return marked


def _column(column: Object) -> Column:
    return Column(column["name"], column.get("type", "string"), column["jsonPath"], column.get("priority", 0))


def establish(store: Store, registry: Registry, crd: Object, now: str) -> None:
    """Serve what *crd* defines and say so in its status."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    registry.remove(group, plural)
    for kind in _kinds_of(crd):
        registry.add(kind)
    names = {"singular": crd["spec"]["names"]["kind"].lower(), **crd["spec"]["names"]}
    names.setdefault("listKind", crd["spec"]["names"]["kind"] + "List")
    earlier = crd.get("status", {}).get("storedVersions") or []
    storage = [version["name"] for version in crd["spec"]["versions"] if version.get("storage")]
    # Objects may still be stored in a version that is the storage version no longer.
    stored = [*earlier, *(name for name in storage if name not in earlier)]
    conditions = [
        {"type": type_, "status": "True", "reason": reason, "message": message, "lastTransitionTime": now}
        for type_, reason, message in (
            ("NamesAccepted", "NoConflicts", "no conflicts found"),
            ("Established", "InitialNamesAccepted", "the initial names have been accepted"),
        )
    ]
    status = {"acceptedNames": names, "storedVersions": stored, "conditions": conditions}
    # A CRD that was restored with the state is established already; writing it again would be a change.
    if (crd.get("status", {}).get("acceptedNames"), earlier) != (names, stored):
        body = copy.deepcopy(crd)
        body["spec"]["names"] = names
        store.put(CRD_KEY, body | {"status": status})


def withdraw(store: Store, registry: Registry, crd: Object) -> None:
    """Stop serving what *crd* defined, and drop its objects."""
    group, plural = crd["spec"]["group"], crd["spec"]["names"]["plural"]
    registry.remove(group, plural)
    for stored in list(store.scan((group, plural))):
        store.drop((group, plural), stored.body)
