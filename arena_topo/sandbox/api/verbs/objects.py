"""The verbs of the API server over its store, for requests and controllers alike."""

import copy
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import refusals
from arena_topo.sandbox.api.kinds import Kind, Registry
from arena_topo.sandbox.api.options import DeleteOptions, WriteOptions
from arena_topo.sandbox.api.patches import json_patch, managed_fields, strategic
from arena_topo.sandbox.api.schema import rules, structural
from arena_topo.sandbox.api.store import Store
from arena_topo.sandbox.api.verbs import admission, deletion

PLAIN = WriteOptions()

JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
APPLY_PATCHES = ("application/apply-patch+yaml", "application/apply-patch+cbor")


def timestamp() -> str:
    """Return the present instant as objects carry it."""
    return datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")


class Api:
    """Create, read, change and delete objects by the API server's rules.

    ``registered`` is called after a write of a CRD, so that its resource is served; every method raises
    Refusal as the server would answer.
    """

    def __init__(self, store: Store, registry: Registry) -> None:
        self.store = store
        self.registry = registry
        self.after_create: list[Callable[[Kind, Object], None]] = []

    def kind(self, api_version: str, kind: str) -> Kind:
        """Return a served kind; raises LookupError when it is not served."""
        found = self.registry.of(api_version, kind)
        if found is None:
            raise LookupError(f"{kind} of {api_version} is not served")
        return found

    def get(self, kind: Kind, namespace: str, name: str) -> Object:
        """Return an object."""
        stored = self.store.get(kind.key, namespace if kind.namespaced else "", name)
        if stored is None:
            raise refusals.not_found(kind, name)
        return stored.body

    def find(self, kind: Kind, namespace: str, name: str) -> Object | None:
        """Return an object or None."""
        stored = self.store.get(kind.key, namespace if kind.namespaced else "", name)
        return stored.body if stored else None

    def create(self, kind: Kind, namespace: str, body: Any, options: WriteOptions = PLAIN) -> Object:
        """Create an object and return it."""
        obj = admission.checked_identity(kind, namespace, body)
        obj = admission.decoded(kind, obj, options)
        obj = admission.newborn(kind, obj, timestamp())
        admission.check(kind, obj, rules.create_errors(kind, obj))
        obj["metadata"]["managedFields"] = managed_fields.updated(
            None, obj, self._schema(kind), self._writer(kind, options)
        )
        return self._store_new(kind, obj, options)

    def _store_new(self, kind: Kind, obj: Object, options: WriteOptions) -> Object:
        name = obj["metadata"]["name"]
        if kind.namespaced:
            self._admit(kind, obj["metadata"]["namespace"], name)
        if self.find(kind, obj["metadata"].get("namespace", ""), name) is not None:
            raise refusals.already_exists(kind, name)
        if options.dry_run:
            return obj
        stored = self.store.put(kind.key, obj)
        for hook in self.after_create:
            hook(kind, stored)
        return stored

    def _admit(self, kind: Kind, namespace: str, name: str) -> None:
        stored = self.store.get(("", "namespaces"), "", namespace)
        if stored is None:
            text = f'namespaces "{namespace}" not found'
            raise refusals.Refusal(404, "NotFound", text, {"name": namespace, "kind": "namespaces"})
        if "deletionTimestamp" in stored.body["metadata"]:
            why = f"unable to create new content in namespace {namespace} because it is being terminated"
            raise refusals.forbidden(kind, name, why)

    def update(
        self, kind: Kind, namespace: str, name: str, body: Any, options: WriteOptions = PLAIN
    ) -> Object:
        """Replace an object, or its status where ``options.subresource`` says so, and return it."""
        obj = admission.checked_identity(kind, namespace, body)
        live = self.get(kind, namespace, name)
        version = obj["metadata"].get("resourceVersion")
        if not version and kind.custom:
            cause = refusals.Cause(
                "metadata.resourceVersion",
                "FieldValueInvalid",
                "Invalid value: 0: must be specified for an update",
            )
            raise refusals.invalid(kind, name, [cause])
        return self._replace(kind, live, admission.decoded(kind, obj, options), options)

    def patch(
        self, kind: Kind, namespace: str, name: str, patch: Any, *, media: str, options: WriteOptions = PLAIN
    ) -> Object:
        """Change an object by a patch of the media type *media* and return it."""
        if media in APPLY_PATCHES:
            return self._apply(kind, namespace, name, patch, options)
        live = self.get(kind, namespace, name)
        base = {key: value for key, value in live.items() if key not in {"apiVersion", "kind"}}
        base |= {"apiVersion": kind.api_version, "kind": kind.kind}
        match media:
            case _ if media == JSON_PATCH:
                changed = json_patch.json_patch(base, patch)
            case _ if media == STRATEGIC_PATCH and not kind.custom:
                changed = strategic.strategic_patch(base, patch, self._schema(kind))
            case _ if media == MERGE_PATCH:
                changed = json_patch.merge_patch(base, patch)
            case _:
                accepted = [JSON_PATCH, MERGE_PATCH, APPLY_PATCHES[0]]
                raise refusals.unsupported_media(media, accepted)
        obj = admission.checked_identity(kind, live["metadata"].get("namespace", ""), changed)
        return self._replace(kind, live, admission.decoded(kind, obj, options), options)

    def _apply(self, kind: Kind, namespace: str, name: str, body: Any, options: WriteOptions) -> Object:
        obj = admission.checked_identity(kind, namespace, body)
        if obj["metadata"].get("managedFields"):
            raise refusals.bad_request("metadata.managedFields must be nil")
        obj["metadata"].setdefault("name", name)
        root = self._schema(kind)
        pruned, unknown = structural.prune(obj, root)
        if unknown and options.validation == "Strict":
            admission.decoded(kind, obj, options)
        live = self.find(kind, namespace, name)
        writer = self._writer(kind, options, "Apply")
        merged = managed_fields.apply(live, pruned, root, writer, force=options.force)
        owners = merged["metadata"].pop("managedFields")
        merged = admission.decoded(kind, merged, options)
        if live is not None:
            merged["metadata"]["managedFields"] = owners
            return self._replace(kind, live, merged, options, owned=True)
        born = admission.newborn(kind, merged, timestamp())
        admission.check(kind, born, rules.create_errors(kind, born))
        born["metadata"]["managedFields"] = owners
        return self._store_new(kind, born, options)

    def _replace(
        self, kind: Kind, live: Object, obj: Object, options: WriteOptions, *, owned: bool = False
    ) -> Object:
        live["metadata"]["name"]
        self._check_preconditions(kind, live, obj["metadata"])
        obj = admission.same_identity(live, obj)
        obj = self._only(kind, live, obj, options.subresource)
        causes = [] if options.subresource else list(rules.update_errors(kind, live, obj))
        admission.check(kind, obj, causes)
        if not owned:
            writer = self._writer(kind, options)
            obj["metadata"]["managedFields"] = managed_fields.updated(live, obj, self._schema(kind), writer)
        obj["metadata"]["resourceVersion"] = live["metadata"]["resourceVersion"]
        if obj == {**live, "apiVersion": obj["apiVersion"]}:
            return live
        if admission.has_generation(kind) and _desired(obj) != _desired(live):
            obj["metadata"]["generation"] = live["metadata"].get("generation", 1) + 1
        if options.dry_run:
            return obj
        freed = "deletionTimestamp" in obj["metadata"] and not obj["metadata"].get("finalizers")
        if freed and (kind.plural != "pods" or live["metadata"].get("finalizers")):
            self.store.put(kind.key, obj)
            return deletion.finish(self.store, kind, obj)
        return self.store.put(kind.key, obj)

    @staticmethod
    def _check_preconditions(kind: Kind, live: Object, meta: Object) -> None:
        old, name = live["metadata"], live["metadata"]["name"]
        if meta.get("uid") and meta["uid"] != old["uid"]:
            why = f"Precondition failed: UID in precondition: {meta['uid']}, UID in object meta: {old['uid']}"
            raise refusals.conflict(kind, name, why)
        if meta.get("resourceVersion") and meta["resourceVersion"] != old["resourceVersion"]:
            raise refusals.stale(kind, name)

    @staticmethod
    def _only(kind: Kind, live: Object, obj: Object, subresource: str) -> Object:
        """Return what a write to the object, or to its status, may change."""
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

    def delete(self, kind: Kind, namespace: str, name: str, options: DeleteOptions) -> tuple[Object, bool]:
        """Delete an object; return its last state and whether it is already gone."""
        live = self.get(kind, namespace, name)
        preconditions = (("UID", "uid", options.uid), ("ResourceVersion", "resourceVersion", options.version))
        for word, field, wanted in preconditions:
            if wanted and wanted != live["metadata"][field]:
                raise refusals.unmet(kind, name, word, wanted, live["metadata"][field])
        if options.dry_run:
            return live, True
        return deletion.begin(self.store, kind, live, options, timestamp())

    def _schema(self, kind: Kind) -> structural.Schema:
        return structural.root_schema(kind.schema)

    @staticmethod
    def _writer(kind: Kind, options: WriteOptions, operation: str = "Update") -> managed_fields.Writer:
        return managed_fields.Writer(
            options.manager, operation, kind.api_version, timestamp(), options.subresource
        )


def _desired(obj: Object) -> Object:
    return {key: value for key, value in obj.items() if key not in {"metadata", "status", "apiVersion"}}
