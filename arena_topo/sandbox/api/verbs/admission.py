"""From a request's body to an object that may be stored: identity, unknown fields, defaults, checks."""

import copy
import secrets
import uuid
from collections.abc import Iterable
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.options import WriteOptions
from arena_topo.sandbox.api.refusals import Cause, Refusal, bad_request, invalid
from arena_topo.sandbox.api.schema import defaults, rules, structural, validation

_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX = 5
_NAME_ROOM = 58
_GENERATED = frozenset({"pods", "jobs", "deployments", "statefulsets"})


def random_suffix() -> str:
    """Return five characters as the API server appends them to ``generateName``."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX))


def has_generation(kind: Kind) -> bool:
    """Whether the API server counts the changes of this kind's spec."""
    return kind.custom or kind.plural in _GENERATED


def checked_identity(kind: Kind, namespace: str, body: Any) -> Object:
    """Return *body* as an object of *kind* in *namespace*; raises Refusal where it says something else."""
    if not isinstance(body, dict) or not body.get("kind"):
        raise bad_request("Object 'Kind' is missing in the request body")
    if body.get("apiVersion") != kind.api_version:
        raise bad_request(
            f"the API version in the data ({body.get('apiVersion', '')}) does not match the expected API "
            f"version ({kind.api_version})"
        )
    if body["kind"] != kind.kind:
        raise bad_request(
            f'{body["kind"]} in version "{kind.version}" cannot be handled as a {kind.kind}: '
            f'no kind "{body["kind"]}" is registered for version "{kind.api_version}"'
        )
    meta = dict(body.get("metadata") or {})
    if kind.namespaced:
        if meta.setdefault("namespace", namespace) != namespace:
            raise bad_request(
                "the namespace of the provided object does not match the namespace sent on the request"
            )
    else:
        meta.pop("namespace", None)
    return {**body, "metadata": meta}


def decoded(kind: Kind, body: Object, options: WriteOptions) -> Object:
    """Return *body* without fields that *kind* does not know; raises Refusal if they must not be there."""
    root = structural.root_schema(kind.schema)
    pruned, unknown = structural.prune(body, root)
    if unknown and options.validation != "Ignore":
        texts = [f'unknown field "{path}"' for path in sorted(unknown)]
        if options.validation == "Strict":
            raise validation.undecodable(kind, f"strict decoding error: {', '.join(texts)}")
        options.warnings.extend(texts)
    obj: Object = pruned if kind.custom else structural.without_nulls(pruned)
    if not kind.custom:
        validation.check_types(obj, root, kind)
        return defaults.builtin_defaults(kind, obj)
    filled: Object = structural.fill_defaults(obj, structural.root_schema(kind.schema))
    return filled


def check(kind: Kind, obj: Object, causes: Iterable[Cause] = ()) -> None:
    """Raise Refusal with all that is wrong with *obj*."""
    found = [*rules.metadata_errors(obj["metadata"]), *causes]
    if kind.custom:
        found += validation.schema_errors(obj, structural.root_schema(kind.schema))
    if found:
        raise invalid(kind, obj["metadata"].get("name", ""), found)


def newborn(kind: Kind, obj: Object, now: str) -> Object:
    """Return *obj* with what the server gives to a new object."""
    meta = dict(obj["metadata"])
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"][:_NAME_ROOM] + random_suffix()
    for name in ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields"):
        meta.pop(name, None)
    meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now}
    if has_generation(kind):
        meta["generation"] = 1
    born = {**copy.deepcopy(obj), "metadata": meta}
    if kind.has_status and kind.plural != "nodes":
        born.pop("status", None)
        born |= _first_status(kind, born)
    return born


def _first_status(kind: Kind, obj: Object) -> Object:
    if kind.custom:
        return {}
    if kind.plural == "pods":
        status: Object = {"phase": "Pending", "qosClass": _qos(obj.get("spec", {}))}
        return {"status": status}
    if kind.plural == "namespaces":
        return {"status": {"phase": "Active"}}
    return {"status": {"loadBalancer": {}} if kind.plural == "services" else {}}


def _qos(spec: Object) -> str:
    resources = [each.get("resources") or {} for each in spec.get("containers") or []]
    if not any(each.get("limits") or each.get("requests") for each in resources):
        return "BestEffort"
    for each in resources:
        limits, requests = each.get("limits") or {}, each.get("requests") or {}
        if any(name not in limits or limits[name] != requests.get(name) for name in ("cpu", "memory")):
            return "Burstable"
    return "Guaranteed"


def same_identity(live: Object, obj: Object) -> Object:
    """Return *obj* with the metadata that nobody may change, from *live*."""
    old, meta = live["metadata"], dict(obj["metadata"])
    for name in ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation"):
        meta.pop(name, None)
        if name in old:
            meta[name] = old[name]
    meta.setdefault("resourceVersion", old["resourceVersion"])
    if meta.get("name") != old["name"]:
        raise Refusal(
            400,
            "BadRequest",
            f"the name of the object ({meta.get('name', '')}) does not match the name on the URL ({old['name']})",
        )
    return {**obj, "metadata": meta}
