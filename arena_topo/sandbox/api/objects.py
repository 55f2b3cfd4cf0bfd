"""The verbs of the API server over its store, for requests and controllers alike.

Sources: k8s.io/apiserver pkg/registry/rest (create.go, update.go, delete.go) and
registry/generic/registry/store.go.
"""

import copy
import secrets
import uuid
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from typing import Any

import jsonpatch
from jsonpatch import JsonPointerException

from arena_topo.model.objects import Object
from arena_topo.model.text.quantity import parse_instant
from arena_topo.sandbox.api import patches, rules, schema
from arena_topo.sandbox.api.resources import (
    Cause,
    DeleteOptions,
    Kind,
    Registry,
    StatusError,
    WriteOptions,
    bad_request,
    conflict,
    details_of,
    forbidden,
    invalid,
    not_found,
    unsupported_media,
)
from arena_topo.sandbox.api.store import Store

_JSON_PATCH = "application/json-patch+json"
_MERGE_PATCH = "application/merge-patch+json"
_STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCH = "application/apply-patch+yaml"
FOREGROUND = "foregroundDeletion"
_DEFAULTS = WriteOptions()
_NAMESPACES = ("", "namespaces")


def timestamp(instant: datetime | None = None) -> str:
    """Return *instant*, by default the present one, as objects carry it."""
    return (instant or datetime.now(UTC)).strftime("%Y-%m-%dT%H:%M:%SZ")


class Api:
    """Create, read, change and delete objects by the API server's rules.

    The functions of ``after_create`` are called with each new object; every method raises StatusError as the
    server would answer.
    """

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store = store
        self.registry = registry
        self.after_create: list[Callable[[Kind, Object], None]] = []

    def kind(self, api_version: str, kind: str) -> Kind:
        """Return a served kind; raises LookupError when it is not served."""
        served = self.registry.of(api_version, kind)
        if served is None:
            raise LookupError(f"{kind} of {api_version} is not served")
        return served

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return an object or None."""
        stored = self.store.get(kind.key, namespace if kind.namespaced else "", name)
        return stored.body if stored else None

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return an object."""
        obj = self.find(kind, namespace, name)
        if obj is None:
            raise not_found(kind, name)
        return obj

    def create(self, kind: Kind, namespace: str, body: Any, options: WriteOptions = _DEFAULTS) -> Object:
        """Create an object and return it."""
        obj = _decode(kind, _check_identity(kind, namespace, body), options)
        obj = _initial(kind, obj, timestamp())
        _check(kind, obj, rules.create_errors(kind, obj))
        root, writer = schema.root_schema(kind), _writer(kind, options)
        obj["metadata"]["managedFields"] = patches.after_update(None, obj, root, writer)
        return self._store_new(kind, obj, options)

    def _store_new(self, kind: Kind, obj: Object, options: WriteOptions) -> Object:
        name, namespace = obj["metadata"]["name"], obj["metadata"].get("namespace", "")
        if kind.namespaced:
            self._check_namespace(kind, namespace, name)
        if self.find(kind, namespace, name) is not None:
            text = f'{kind.resource} "{name}" already exists'
            raise StatusError(409, "AlreadyExists", text, details_of(kind, name))
        # A dry run passes every check and stops short of the store.
        if options.dry_run:
            return obj
        stored = self.store.put(kind.key, obj)
        for hook in self.after_create:
            hook(kind, stored)
        return stored

    def _check_namespace(self, kind: Kind, namespace: str, name: str) -> None:
        stored = self.store.get(_NAMESPACES, "", namespace)
        if stored is None:
            details = {"name": namespace, "kind": "namespaces"}
            raise StatusError(404, "NotFound", f'namespaces "{namespace}" not found', details)
        if "deletionTimestamp" in stored.body["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise forbidden(kind, name, why)

    def update(
        self, kind: Kind, namespace: str, name: str, body: Any, options: WriteOptions = _DEFAULTS
    ) -> Object:
        """Replace an object, or its status where ``options.subresource`` says so, and return it."""
        obj = _check_identity(kind, namespace, body)
        live = self.get(kind, namespace, name)
        # Built-in kinds allow an unconditional update, custom resources do not.
        if kind.custom and not obj["metadata"].get("resourceVersion"):
            text = "Invalid value: 0: must be specified for an update"
            raise invalid(kind, name, [Cause("metadata.resourceVersion", "FieldValueInvalid", text)])
        return self._replace(kind, live, _decode(kind, obj, options), options)

    def patch(
        self,
        kind: Kind,
        namespace: str,
        name: str,
        patch: Any,
        *,
        media: str,
        options: WriteOptions = _DEFAULTS,
    ) -> Object:
        """Change an object by a patch of the media type *media* and return it."""
        if media == APPLY_PATCH:
            return self._apply(kind, namespace, name, patch, options)
        live = self.get(kind, namespace, name)
        # The object may be stored in another version: a patch is for the version of its URL.
        base = live | {"apiVersion": kind.api_version, "kind": kind.kind}
        if media == _JSON_PATCH:
            changed = _json_patched(base, patch)
        elif media == _MERGE_PATCH:
            changed = patches.merge_patch(base, patch)
        elif media == _STRATEGIC_PATCH and not kind.custom:
            changed = patches.strategic_patch(base, patch, schema.root_schema(kind))
        else:
            raise unsupported_media(media, [_JSON_PATCH, _MERGE_PATCH, APPLY_PATCH])
        obj = _check_identity(kind, live["metadata"].get("namespace", ""), changed)
        return self._replace(kind, live, _decode(kind, obj, options), options)

    def _apply(self, kind: Kind, namespace: str, name: str, body: Any, options: WriteOptions) -> Object:
        """Apply a configuration on the server, which creates the object if it does not exist."""
        obj = _check_identity(kind, namespace, body)
        if obj["metadata"].get("managedFields"):
            raise bad_request("metadata.managedFields must be nil")
        obj["metadata"].setdefault("name", name)
        root, writer = schema.root_schema(kind), _writer(kind, options, "Apply")
        pruned = _prune(kind, obj, options)
        live = self.find(kind, namespace, name)
        merged = patches.apply(live, pruned, root, writer, force=options.force)
        owners = merged["metadata"].pop("managedFields")
        # Defaults are filled after the merge: a manager must not come to own fields that it did not send.
        merged = _decode(kind, merged, options)
        if live is not None:
            merged["metadata"]["managedFields"] = owners
            return self._replace(kind, live, merged, options, applied=True)
        created = _initial(kind, merged, timestamp())
        _check(kind, created, rules.create_errors(kind, created))
        created["metadata"]["managedFields"] = owners
        return self._store_new(kind, created, options)

    def _replace(
        self, kind: Kind, live: Object, obj: Object, options: WriteOptions, *, applied: bool = False
    ) -> Object:
        _check_preconditions(kind, live, obj["metadata"])
        obj = _keep_identity(live, obj)
        obj = _written_part(kind, live, obj, options.subresource)
        # A write to the status cannot reach the spec, so the rules about changes of the spec do not apply.
        causes = [] if options.subresource else rules.update_errors(kind, live, obj)
        _check(kind, obj, causes)
        # Server-side apply has computed the owners already, as part of its merge.
        if not applied:
            root, writer = schema.root_schema(kind), _writer(kind, options)
            obj["metadata"]["managedFields"] = patches.after_update(live, obj, root, writer)
        obj["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        # A write that changes nothing keeps the version and wakes no watch, as on an API server.
        if obj == {**live, "apiVersion": obj["apiVersion"]}:
            return live
        if _has_generation(kind) and _desired(obj) != _desired(live):
            obj["metadata"]["generation"] = live["metadata"].get("generation", 1) + 1
        if options.dry_run:
            return obj
        # Removing the last finalizer of an object under deletion removes the object; a pod also waits for its
        # kubelet.
        meta = obj["metadata"]
        if "deletionTimestamp" in meta and not meta.get("finalizers") and live["metadata"].get("finalizers"):
            # ``drop`` answers with what is stored, so the state without finalizers is stored first.
            self.store.put(kind.key, obj)
            return self.store.drop(kind.key, obj)
        return self.store.put(kind.key, obj)

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> tuple[Object, bool]:
        """Delete an object; return its last state and whether it is already gone."""
        live = self.get(kind, namespace, name)
        preconditions = (("UID", "uid", options.uid), ("ResourceVersion", "resourceVersion", options.version))
        for word, field, required in preconditions:
            if required and required != live["metadata"][field]:
                raise _unmet(kind, name, word, required, live["metadata"][field])
        return (live, True) if options.dry_run else self._delete(kind, live, options)

    def _delete(self, kind: Kind, live: Object, options: DeleteOptions) -> tuple[Object, bool]:
        meta, grace = live["metadata"], _grace_seconds(kind, live, options)
        finalizers = list(meta.get("finalizers") or [])
        # A deletion without a policy keeps the finalizers there are; any policy replaces that of an earlier
        # deletion.
        if options.propagation is not None:
            finalizers = [name for name in finalizers if name != FOREGROUND]
            finalizers += [FOREGROUND] if options.propagation == "Foreground" else []
        # A namespace stays until the garbage collector has emptied it.
        if kind.key == _NAMESPACES:
            if "deletionTimestamp" in meta:
                return live, False
            body = copy.deepcopy(live) | {"status": {"phase": "Terminating"}}
            body["metadata"]["deletionTimestamp"] = timestamp()
            return self.store.put(kind.key, body), False
        if not finalizers and grace == 0:
            return self.store.drop(kind.key, live), True
        pending = meta.get("deletionGracePeriodSeconds")
        # A second deletion changes something only where it shortens the grace period or asks for other
        # finalizers.
        shortens = pending is not None and grace < pending
        if "deletionTimestamp" in meta and not shortens and finalizers == meta.get("finalizers", []):
            return live, False
        body = copy.deepcopy(live)
        ends = timestamp(datetime.now(UTC) + timedelta(seconds=grace))
        body["metadata"] |= {"deletionTimestamp": ends, "deletionGracePeriodSeconds": grace}
        body["metadata"] |= {"finalizers": finalizers} if finalizers else {}
        # Controllers treat an object under deletion differently, so its generation goes up, as for a new
        # spec.
        if "generation" in meta and "deletionTimestamp" not in meta:
            body["metadata"]["generation"] += 1
        return self.store.put(kind.key, body), False


def _json_patched(document: Object, operations: Any) -> Any:
    """Return *document* with a JSON patch (RFC 6902) applied; raises StatusError where it does not apply."""
    if not isinstance(operations, list):
        word = "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        raise bad_request(word)
    try:
        return jsonpatch.apply_patch(document, operations)
    except jsonpatch.InvalidJsonPatch as error:
        raise bad_request(str(error)) from error
    except (jsonpatch.JsonPatchException, JsonPointerException) as error:
        text = f"the server rejected our request due to an error in our request: {error}"
        raise StatusError(422, "Invalid", text) from error


def _check_preconditions(kind: Kind, live: Object, meta: Object) -> None:
    old = live["metadata"]
    if meta.get("uid") and meta["uid"] != old["uid"]:
        why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {old['uid']}"
        raise conflict(kind, old["name"], why)
    if meta.get("resourceVersion") and meta["resourceVersion"] != old["resourceVersion"]:
        raise conflict(kind, old["name"])


def _unmet(kind: Kind, name: str, word: str, required: str, actual: str) -> StatusError:
    happened = "deleted and then recreated" if word == "UID" else "modified"
    text = (
        f'Operation cannot be fulfilled on {kind.group_kind} "{name}": '
        f"the {word} in the precondition ({required}) does not match the {word} in record ({actual}). "
        f"The object might have been {happened}"
    )
    return StatusError(409, "Conflict", text, details_of(kind, name) | {"kind": kind.kind})


def _written_part(kind: Kind, live: Object, obj: Object, subresource: str) -> Object:
    """Return *live* with what a write to the object, or to its status, may change, from *obj*."""
    # A write to the status of a built-in object may change labels and annotations, too; one to a custom one
    # may not.
    if subresource == "status":
        meta = {**live["metadata"]}
        for field in ("labels", "annotations") if not kind.custom else ():
            if field in obj["metadata"]:
                meta[field] = obj["metadata"][field]
        changed = {**live, "metadata": meta}
        changed.pop("status", None)
        return copy.deepcopy(changed | ({"status": obj["status"]} if "status" in obj else {}))
    if kind.has_status:
        obj = {key: value for key, value in obj.items() if key != "status"}
        obj |= {"status": live["status"]} if "status" in live else {}
    return copy.deepcopy(obj)


def _grace_seconds(kind: Kind, live: Object, options: DeleteOptions) -> int:
    """Return the seconds that a pod with a node is given to end; everything else ends at once."""
    if kind.key != ("", "pods"):
        return 0
    if not live["spec"].get("nodeName") or live["status"].get("phase") in {"Succeeded", "Failed"}:
        return 0
    grace = live["spec"].get("terminationGracePeriodSeconds", 30) if options.grace is None else options.grace
    return max(int(grace), 0)


def _writer(kind: Kind, options: WriteOptions, operation: str = "Update") -> patches.Writer:
    return patches.Writer(options.manager, operation, kind.api_version, timestamp(), options.subresource)


def _desired(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in {"metadata", "status", "apiVersion"}}


def seconds_since(instant: str) -> float:
    """Return the seconds that have passed since an instant of an object."""
    return (datetime.now(UTC) - parse_instant(instant)).total_seconds()


# From a request's body to an object that may be stored: identity, unknown fields, defaults, checks.

# No vowels and no 0, 1 or 3, so that a random suffix spells no word: k8s.io/apimachinery pkg/util/rand.
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"
_SUFFIX_LENGTH = 5
_MAX_GENERATED_NAME = 58  # with its suffix, a generated name has at most the 63 characters of a DNS label
_GENERATED = frozenset({"pods", "jobs", "daemonsets", "deployments", "statefulsets"})
_FIXED = ("uid", "creationTimestamp", "deletionTimestamp", "deletionGracePeriodSeconds", "generation")
_SET_BY_SERVER = ("deletionTimestamp", "deletionGracePeriodSeconds", "selfLink", "managedFields")


def random_suffix() -> str:
    """Return five characters as the API server appends them to ``generateName``."""
    return "".join(secrets.choice(_ALPHABET) for _ in range(_SUFFIX_LENGTH))


def _has_generation(kind: Kind) -> bool:
    """Whether the API server counts the changes of this kind's spec."""
    return kind.custom or kind.plural in _GENERATED


def _check_identity(kind: Kind, namespace: str, body: Any) -> Object:
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


def _prune(kind: Kind, body: Object, options: WriteOptions) -> Object:
    """Return *body* without unknown fields; raises StatusError where validation is strict."""
    # kubectl asks for Strict; a client that asks for nothing gets the default, a warning, and the field is
    # dropped.
    pruned, unknown = schema.prune(body, schema.root_schema(kind))
    if unknown and options.validation != "Ignore":
        texts = [f'unknown field "{path}"' for path in sorted(unknown)]
        if options.validation == "Strict":
            raise schema.undecodable(kind, f"strict decoding error: {', '.join(texts)}")
        options.warnings.extend(texts)
    obj: Object = pruned
    return obj


def _decode(kind: Kind, body: Object, options: WriteOptions) -> Object:
    """Return *body* with known fields only, of the right types where it is built in, and with defaults."""
    obj, root = _prune(kind, body, options), schema.root_schema(kind)
    if kind.custom:
        filled: Object = schema.fill_defaults(obj, root)
        # What its schema refuses is refused in the end, and has no shape in which defaults would fit.
        has_more = kind.resource in schema.DEFAULTS and not schema.schema_errors(filled, root)
        return schema.kind_defaults(kind, filled) if has_more else filled
    # Go decodes null into the zero value, which is left out on the way back; a CRD may allow null as a value.
    typed: Object = schema.without_nulls(obj)
    schema.check_types(typed, root, kind)
    return schema.kind_defaults(kind, typed)


def _check(kind: Kind, obj: Object, causes: Iterable[Cause] = ()) -> None:
    """Raise StatusError with all that is wrong with *obj*; *causes* are by the rules of its kind."""
    errors, name = list(rules.metadata_errors(obj["metadata"])), obj["metadata"].get("name", "")
    if not kind.custom:
        errors += causes
    else:
        errors += schema.schema_errors(obj, schema.root_schema(kind))
    if errors:
        raise invalid(kind, name, errors)
    # The rules of a custom kind besides its schema are those of a webhook, which is asked last.
    if kind.custom and (broken := list(causes)):
        error = invalid(kind, name, broken)
        error.message = f'admission webhook "v{kind.singular}.kb.io" denied the request: {error.message}'
        raise error


def _initial(kind: Kind, obj: Object, now: str) -> Object:
    """Return *obj* with the fields that the server sets on a new object."""
    meta = dict(obj["metadata"])
    if meta.get("resourceVersion"):
        raise bad_request("resourceVersion should not be set on objects to be created")
    if not meta.get("name") and meta.get("generateName"):
        meta["name"] = meta["generateName"][:_MAX_GENERATED_NAME] + random_suffix()
    for name in _SET_BY_SERVER:
        meta.pop(name, None)
    meta |= {"uid": str(uuid.uuid4()), "creationTimestamp": now}
    if _has_generation(kind):
        meta["generation"] = 1
    created: Object = {**copy.deepcopy(obj), "metadata": meta}
    if kind.resource == "jobs.batch":
        created = schema.selecting_its_pods(created)
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


def _keep_identity(live: Object, obj: Object) -> Object:
    """Return *obj* with the metadata that clients cannot change, from *live*."""
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
