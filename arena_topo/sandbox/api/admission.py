"""From a request's body to an object that may be stored: identity, unknown fields, defaults, checks."""

import copy
import json
import secrets
import uuid
from collections.abc import Iterable, Mapping
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import rules
from arena_topo.sandbox.api import schema as defaults
from arena_topo.sandbox.api import schema as structural
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.requests import (
    Cause,
    DeleteOptions,
    StatusError,
    WriteOptions,
    bad_request,
    invalid,
    number_of,
)

# No vowels and no 0, 1 or 3, so that a random suffix spells no word: k8s.io/apimachinery pkg/util/rand.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_DELETE_OPTIONS = Kind(
    "meta.k8s.io", "v1", "DeleteOptions", "deleteoptions", "deleteoptions", namespaced=False
)
_MAX_GENERATED_NAME = 58  # with its suffix, a generated name has at most the 63 characters of a DNS label
_GENERATED = frozenset({"pods", "jobs", "daemonsets", "deployments", "statefulsets"})
_FIXED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_SET_BY_SERVER = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields")


def random_suffix() -> str:
    """Return five characters as the API server appends them to ``generateName``."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX_LENGTH))


def has_generation(kind: Kind) -> bool:
    """Whether the API server counts the changes of this kind's spec."""
    return kind.custom or kind.plural in _GENERATED


def check_identity(kind: Kind, namespace: str, body: Any) -> Object:
    """Return *body* as an object of *kind* in *namespace*; raises StatusError where it contradicts them."""
    if not isinstance(body, dict) or not body.get("kind"):
        raise bad_request("Object 'Kind' is missing in the request body")
    if body.get("apiVersion") != kind.api_version:
        raise bad_request(
            f"the API version in the data ({body.get('apiVersion', '')}) does not match the expected API "
            f"version ({kind.api_version})"
        )
    if body["kind"] != kind.kind:
        text = f'no kind "{body["kind"]}" is registered for version "{kind.api_version}"'
        raise bad_request(
            f'{body["kind"]} in version "{kind.version}" cannot be handled as a {kind.kind}: {text}'
        )
    meta = dict(body.get("metadata") or {})
    # A namespace on a cluster-wide object is ignored; on any other it must be the one of the URL.
    if not kind.namespaced:
        meta.pop("namespace", None)
    elif meta.setdefault("namespace", namespace) != namespace:
        raise bad_request(
            "the namespace of the provided object does not match the namespace sent on the request"
        )
    return {**body, "metadata": meta}


def prune(kind: Kind, body: Object, options: WriteOptions) -> Object:
    """Return *body* without unknown fields; raises StatusError where validation is strict."""
    # kubectl asks for Strict; a client that asks for nothing gets the default, a warning, and the field is
    # dropped.
    pruned, unknown = structural.prune(body, structural.root_schema(kind.schema))
    if unknown and options.validation != "Ignore":
        texts = [f'unknown field "{path}"' for path in sorted(unknown)]
        if options.validation == "Strict":
            raise structural.undecodable(kind, f"strict decoding error: {', '.join(texts)}")
        options.warnings.extend(texts)
    obj: Object = pruned
    return obj


def decode(kind: Kind, body: Object, options: WriteOptions) -> Object:
    """Return *body* with known fields only, of the right types where it is built in, and with defaults."""
    obj, schema = prune(kind, body, options), structural.root_schema(kind.schema)
    if kind.custom:
        filled: Object = structural.fill_defaults(obj, schema)
        # What its schema refuses is refused in the end, and has no shape in which defaults would fit.
        has_more = kind.resource in defaults.DEFAULTS and not structural.schema_errors(filled, schema)
        return defaults.kind_defaults(kind, filled) if has_more else filled
    # Go decodes null into the zero value, which is left out on the way back; a CRD may allow null as a value.
    typed: Object = structural.without_nulls(obj)
    structural.check_types(typed, schema, kind)
    return defaults.kind_defaults(kind, typed)


def check(kind: Kind, obj: Object, causes: Iterable[Cause] = ()) -> None:
    """Raise StatusError with all that is wrong with *obj*; *causes* are by the rules of its kind."""
    errors, name = list(rules.metadata_errors(obj["metadata"])), obj["metadata"].get("name", "")
    if not kind.custom:
        errors += causes
    else:
        errors += structural.schema_errors(obj, structural.root_schema(kind.schema))
    if errors:
        raise invalid(kind, name, errors)
    # The rules of a custom kind besides its schema are those of a webhook, which is asked last.
    if kind.custom and (broken := list(causes)):
        error = invalid(kind, name, broken)
        error.message = f'admission webhook "v{kind.singular}.kb.io" denied the request: {error.message}'
        raise error


def initial(kind: Kind, obj: Object, now: str) -> Object:
    """Return *obj* with the fields that the server sets on a new object."""
    meta = dict(obj["metadata"])
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"][:_MAX_GENERATED_NAME] + random_suffix()
    for name in _SET_BY_SERVER:
        meta.pop(name, None)
    meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now}
    if has_generation(kind):
        meta["generation"] = 1
    created: Object = {**copy.deepcopy(obj), "metadata": meta}
    if kind.resource == "jobs.batch":
        created = defaults.selecting_its_pods(created)
    # A layout creates its nodes with their status; every other status is for controllers to write.
    if kind.has_status and kind.plural != "nodes":
        created.pop("status", None)
        created |= _initial_status(kind)
    return created


def _initial_status(kind: Kind) -> Object:
    if kind.custom:
        return {}
    if kind.plural == "pods":
        return {"status": {"phase": "Pending"}}
    if kind.plural == "namespaces":
        return {"status": {"phase": "Active"}}
    return {"status": {"loadBalancer": {}} if kind.plural == "services" else {}}


def keep_identity(live: Object, obj: Object) -> Object:
    """Return *obj* with the metadata that nobody may change, from *live*."""
    old, meta = live["metadata"], dict(obj["metadata"])
    # Only the server sets these; what a client sends for them is replaced without an error.
    for name in _FIXED:
        meta.pop(name, None)
        if name in old:
            meta[name] = old[name]
    # A write without a version is unconditional: it applies to whatever is stored.
    meta.setdefault("resourceVersion", old["resourceVersion"])
    if meta.get("name") != old["name"]:
        name = meta.get("name", "")
        raise bad_request(
            f"the name of the object ({name}) does not match the name on the URL ({old['name']})"
        )
    return {**obj, "metadata": meta}


def delete_options(body: Any, query: Mapping[str, str]) -> DeleteOptions:
    """Return the options of a deletion, from the body or else from the query; raises StatusError."""
    options = _delete_body(body)
    grace = options.get("gracePeriodSeconds", number_of(query, "gracePeriodSeconds"))
    propagation = options.get("propagationPolicy", query.get("propagationPolicy"))
    if propagation not in {None, "Foreground", "Background", "Orphan"}:
        supported = '"Foreground", "Background", "Orphan", "nil"'
        raise _unsupported("propagationPolicy", propagation, supported)
    dry_run = options.get("dryRun") or [value for key, value in query.items() if key == "dryRun"]
    if set(dry_run) - {"All"}:
        raise _unsupported("dryRun", dry_run, '"All"')
    preconditions = options.get("preconditions") or {}
    return DeleteOptions(
        grace=grace,
        propagation=propagation,
        uid=preconditions.get("uid", ""),
        version=preconditions.get("resourceVersion", ""),
        dry_run=bool(dry_run),
    )


def _delete_body(body: Any) -> Object:
    """Return the body of a deletion; raises StatusError where its fields have not the right types."""
    if body is None:
        return {}
    if not isinstance(body, dict):
        word = "array" if isinstance(body, list) else "string"
        raise bad_request(f"couldn't get version/kind; json parse error: json: cannot unmarshal {word}")
    schema = structural.resolve({"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.DeleteOptions"})
    if mismatch := structural.type_mismatch(body, schema):
        path, got, go = mismatch
        text = f"json: cannot unmarshal {got} into Go struct field DeleteOptions.{path} of type {go}"
        raise bad_request(text)
    return {key: value for key, value in body.items() if value is not None}


def _unsupported(field: str, value: object, supported: str) -> StatusError:
    text = f"Unsupported value: {json.dumps(value)}: supported values: {supported}"
    return invalid(_DELETE_OPTIONS, "", [Cause(field, "FieldValueNotSupported", text)])
