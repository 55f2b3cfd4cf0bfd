"""Structural schemas: following references, dropping unknown fields, filling defaults.

Rules: the Kubernetes documentation on structural schemas, and
k8s.io/apiextensions-apiserver/pkg/apiserver/schema (pruning, defaulting, listtype).
"""

import copy
from collections.abc import Iterator
from typing import Any

from arena_topo.sandbox.api.schema.builtins import components

Schema = dict[str, Any]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_META = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_STRING = {"type": "string"}


def resolve(schema: Schema | None) -> Schema:
    """Return *schema* with its reference followed; its own keywords win."""
    if not schema:
        return {}
    reference = schema.get("$ref")
    if reference is None:
        return schema
    target = components().get(reference, {})
    return target if len(schema) == 1 else {**target, **schema}


def child(schema: Schema, name: str) -> Schema | None:
    """Return the schema of field *name*, or None if the schema does not know it."""
    properties = schema.get("properties")
    if properties is not None and name in properties:
        return resolve(properties[name])
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return resolve(extra)
    return {} if extra is True or _is_open(schema) else None


def _is_open(schema: Schema) -> bool:
    """Whether any field is welcome: asked for, or the schema does not speak of fields."""
    if schema.get(_PRESERVE):
        return True
    return "properties" not in schema and "additionalProperties" not in schema and not schema.get("custom")


def root_schema(schema: Schema) -> Schema:
    """Return an object's schema whose apiVersion, kind and metadata are those of every object."""
    found = resolve(schema)
    fields = {"apiVersion": _STRING, "kind": _STRING, "metadata": _META}
    return {**found, "properties": {**found.get("properties", {}), **fields}}


def prune(value: Any, schema: Schema, path: str = "") -> tuple[Any, list[str]]:
    """Return *value* without the fields that *schema* does not know, and those fields' paths."""
    if isinstance(value, dict):
        return _prune_object(value, schema, path)
    if isinstance(value, list):
        items = resolve(schema.get("items"))
        pruned = [prune(each, items, f"{path}[{index}]") for index, each in enumerate(value)]
        return [each for each, _ in pruned], [name for _, unknown in pruned for name in unknown]
    return value, []


def _prune_object(value: dict[str, Any], schema: Schema, path: str) -> tuple[dict[str, Any], list[str]]:
    if schema.get("x-kubernetes-embedded-resource"):
        schema = root_schema(schema)
    kept, unknown = {}, []
    for name, each in value.items():
        where = f"{path}.{name}" if path else name
        below = child(schema, name)
        if below is None:
            unknown.append(where)
            continue
        kept[name], found = prune(each, below, where)
        unknown += found
    return kept, unknown


def fill_defaults(value: Any, schema: Schema) -> Any:
    """Return *value* with the schema's defaults where fields are absent (and null where not nullable)."""
    if isinstance(value, list):
        items = resolve(schema.get("items"))
        return [fill_defaults(each, items) for each in value]
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for name, each in schema.get("properties", {}).items():
        below = resolve(each)
        if (
            "default" in below
            and filled.get(name) is None
            and (name not in filled or not below.get("nullable"))
        ):
            filled[name] = copy.deepcopy(below["default"])
    for name, each in filled.items():
        below = child(schema, name) or {}
        filled[name] = fill_defaults(each, below)
    return filled


def without_nulls(value: Any) -> Any:
    """Return *value* without fields that are null, as decoding into typed structures leaves them."""
    if isinstance(value, dict):
        return {name: without_nulls(each) for name, each in value.items() if each is not None}
    return [without_nulls(each) for each in value] if isinstance(value, list) else value


def walk(value: Any, schema: Schema, path: str = "") -> Iterator[tuple[str, Any, Schema]]:
    """Yield every value with its path and schema, from the root down."""
    yield path, value, schema
    if isinstance(value, dict):
        for name, each in value.items():
            below = child(schema, name)
            if below is not None:
                yield from walk(each, below, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        items = resolve(schema.get("items"))
        for index, each in enumerate(value):
            yield from walk(each, items, f"{path}[{index}]")
