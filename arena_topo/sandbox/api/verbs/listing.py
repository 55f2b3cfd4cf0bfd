"""List requests: selectors, pages that stay one consistent snapshot, resource versions."""

import base64
import json
from dataclasses import dataclass

from arena_topo.model.objects import Object
from arena_topo.sandbox.api import refusals
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.schema.selectors import matcher
from arena_topo.sandbox.api.store import ObjectKey, Store, Stored


@dataclass(frozen=True, slots=True)
class Page:
    """Part of a list: its objects, the version they are of, and where the next part begins."""

    items: list[Stored]
    version: int
    token: str = ""
    remaining: int | None = None

    def meta(self) -> Object:
        """Return the ListMeta."""
        meta: Object = {"resourceVersion": str(self.version)}
        if self.token:
            meta["continue"] = self.token
        if self.remaining is not None:
            meta["remainingItemCount"] = self.remaining
        return meta


def page(store: Store, kind: Kind, namespace: str, query: dict[str, str]) -> Page:
    """Return the part of a list that a request asks for; raises Refusal for what cannot be answered."""
    matches = matcher(
        query.get("labelSelector", ""), query.get("fieldSelector", ""), kind.plural, custom=kind.custom
    )
    limit = int(query.get("limit") or 0)
    version, start = _from(store, query)
    table = as_of(store, kind, version)
    keys = [key for key in sorted(table) if (not namespace or key[0] == namespace) and key > start]
    found = [(key, table[key]) for key in keys if matches(table[key].body)]
    if not limit or len(found) <= limit:
        return Page([stored for _, stored in found], version)
    token = {"v": "meta.k8s.io/v1", "rv": version, "start": "/".join(found[limit - 1][0])}
    encoded = base64.urlsafe_b64encode(json.dumps(token).encode()).decode().rstrip("=")
    selective = query.get("labelSelector") or query.get("fieldSelector")
    remaining = None if selective else len(found) - limit
    return Page([stored for _, stored in found[:limit]], version, encoded, remaining)


def _from(store: Store, query: dict[str, str]) -> tuple[int, ObjectKey]:
    """Return the version to show and the key to begin after."""
    if token := query.get("continue", ""):
        version, start = _read_token(token)
        if version < store.floor:
            raise refusals.expired(
                "The provided continue parameter is too old to display a consistent list result. You can start "
                "a new list without the continue parameter, or use the continue token in this response to "
                "retrieve the remainder of the results. Continuing with the provided token results in an "
                "inconsistent list - objects that were created, modified, or deleted between the time the "
                "first chunk was returned and now may show up in the list."
            )
        return version, start
    wanted = version_of(query.get("resourceVersion", ""))
    if wanted > store.version:
        raise too_large(wanted, store.version)
    if query.get("resourceVersionMatch") == "Exact":
        if wanted < store.floor:
            raise refusals.expired(f"The resourceVersion for the provided list is too old ({wanted})")
        return wanted, ("", "")
    return store.version, ("", "")


def _read_token(token: str) -> tuple[int, ObjectKey]:
    try:
        content = json.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, _, name = content["start"].partition("/")
        return int(content["rv"]), (namespace, name)
    except (ValueError, KeyError, TypeError):
        raise refusals.bad_request("continue key is not valid: illegal base64 data") from None


def version_of(text: str) -> int:
    """Return a resource version as a number, 0 when there is none."""
    if not text:
        return 0
    if not text.isdigit():
        raise refusals.bad_request(f'invalid resource version: Invalid value: "{text}"')
    return int(text)


def too_large(wanted: int, current: int) -> refusals.Refusal:
    """Return the refusal of a version that is not there yet."""
    text = f"Too large resource version: {wanted}, current: {current}"
    return refusals.Refusal(504, "Timeout", text, {"retryAfterSeconds": 1})


def as_of(store: Store, kind: Kind, version: int) -> dict[ObjectKey, Stored]:
    """Return the objects of a kind as they were at *version*, by taking later changes back."""
    table = {
        (stored.body["metadata"].get("namespace", ""), stored.body["metadata"]["name"]): stored
        for stored in store.scan(kind.key)
    }
    for change in reversed(list(store.since(version)) if version < store.version else []):
        if change.resource != kind.key:
            continue
        if change.before is None:
            table.pop(change.key, None)
        else:
            table[change.key] = change.before
    return table


def encode_list(kind: Kind, found: Page) -> bytes:
    """Return a page as the JSON of a List."""
    head: Object = {"kind": f"{kind.kind}List", "apiVersion": kind.api_version, "metadata": found.meta()}
    body = json.dumps(head, separators=(",", ":"))[:-1].encode()
    return body + b',"items":[' + b",".join(each.encoded for each in found.items) + b"]}"
