"""Structural schemas: following references, dropping unknown fields, filling defaults, checking values.

Rules: the Kubernetes documentation on structural schemas, and k8s.io/apiextensions-apiserver/pkg/apiserver
(schema/pruning, schema/defaulting, validation), whose wording the errors have.
"""

import copy
import json
import re
from collections.abc import Iterator
from typing import Any

from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.schema import go_times
from arena_topo.sandbox.api.schema.builtins import components
from arena_topo.sandbox.api.status_errors import Cause, StatusError, bad_request

Schema = dict[str, Any]
_PRESERVE = "x-kubernetes-preserve-unknown-fields"
_META = {"$ref": "io.k8s.apimachinery.pkg.apis.meta.v1.ObjectMeta"}
_STRING = {"type": "string"}
_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_GO_TYPES = {"object": "map[string]interface {}", "array": "[]interface {}", "boolean": "bool"}


def resolve(schema: Schema | None) -> Schema:
    """Return *schema* with its reference followed; its own keywords take precedence."""
    if not schema:
        return {}
    reference = schema.get("$ref")
    if reference is None:
        return schema
    # A reference without other keywords is by far the most frequent case: it needs no copy.
    target = components().get(reference, {})
    return target if len(schema) == 1 else {**target, **schema}


def child(schema: Schema, name: str) -> Schema | None:
    """Return the schema of field *name*, or None if the schema does not know it."""
    properties = schema.get("properties")
    # Named fields take precedence over additionalProperties, as in every JSON schema.
    if properties is not None and name in properties:
        return resolve(properties[name])
    extra = schema.get("additionalProperties")
    if isinstance(extra, dict):
        return resolve(extra)
    return {} if extra is True or _is_open(schema) else None


def _is_open(schema: Schema) -> bool:
    """Whether any field is accepted: explicitly, or because the schema does not speak of fields."""
    if schema.get(_PRESERVE):
        return True
    return "properties" not in schema and "additionalProperties" not in schema and not schema.get("custom")


def root_schema(schema: Schema) -> Schema:
    """Return an object's schema whose apiVersion, kind and metadata are those of every object."""
    root = resolve(schema)
    fields = {"apiVersion": _STRING, "kind": _STRING, "metadata": _META}
    return {**root, "properties": {**root.get("properties", {}), **fields}}


def prune(value: Any, schema: Schema, path: str = "") -> tuple[Any, list[str]]:
    """Return *value* without the fields that *schema* does not know, and those fields' paths."""
    if isinstance(value, list):
        items = resolve(schema.get("items"))
        results = [prune(item, items, f"{path}[{index}]") for index, item in enumerate(value)]
        return [item for item, _ in results], [name for _, unknown in results for name in unknown]
    if not isinstance(value, dict):
        return value, []
    kept, unknown = {}, []
    for name, field in value.items():
        field_path = f"{path}.{name}" if path else name
        below = child(schema, name)
        if below is None:
            unknown.append(field_path)
        else:
            kept[name], dropped = prune(field, below, field_path)
            unknown += dropped
    return kept, unknown


def fill_defaults(value: Any, schema: Schema) -> Any:
    """Return *value* with the schema's defaults where fields are absent (and null where not nullable)."""
    if isinstance(value, list):
        items = resolve(schema.get("items"))
        return [fill_defaults(item, items) for item in value]
    if not isinstance(value, dict):
        return value
    filled = dict(value)
    for name, field in schema.get("properties", {}).items():
        below = resolve(field)
        absent = name not in filled or (filled[name] is None and not below.get("nullable"))
        if absent and "default" in below:
            filled[name] = copy.deepcopy(below["default"])
    return {name: fill_defaults(field, child(schema, name) or {}) for name, field in filled.items()}


def without_nulls(value: Any) -> Any:
    """Return *value* without fields that are null, as decoding into typed structures leaves them."""
    if isinstance(value, dict):
        return {name: without_nulls(field) for name, field in value.items() if field is not None}
    return [without_nulls(item) for item in value] if isinstance(value, list) else value


def _walk(value: Any, schema: Schema, path: str = "") -> Iterator[tuple[str, Any, Schema]]:
    """Yield every value with its path and schema, from the root down."""
    yield path, value, schema
    if isinstance(value, dict):
        for name, field in value.items():
            below = child(schema, name)
            if below is not None:
                yield from _walk(field, below, f"{path}.{name}" if path else name)
    elif isinstance(value, list):
        items = resolve(schema.get("items"))
        for index, item in enumerate(value):
            yield from _walk(item, items, f"{path}[{index}]")


def _has_type(value: Any, name: str) -> bool:
    # A Python bool is an int, a JSON boolean is not a number.
    if name in {"integer", "number"} and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES.get(name, (object,)))


def _type_name(value: Any) -> str:
    """Return the JSON type of *value*."""
    # Booleans come first, because they are integers to Python.
    order = ("boolean", "integer", "number", "string", "array", "object")
    return next((name for name in order if isinstance(value, _TYPES[name])), "null")


def schema_errors(obj: Any, schema: Schema) -> list[Cause]:
    """Return how a custom resource violates its schema."""
    return [cause for path, value, below in _walk(obj, schema) for cause in _errors(path, value, below)]


def _errors(path: str, value: Any, schema: Schema) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    expected = schema.get("type")
    if expected and not schema.get("x-kubernetes-int-or-string") and not _has_type(value, expected):
        got = _type_name(value)
        text = f'Invalid value: "{got}": {path} in body must be of type {expected}: "{got}"'
        yield Cause(path, "FieldValueTypeInvalid", text)
        # The other rules assume the type: they would only repeat the complaint.
        return
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                yield Cause(f"{path}.{name}" if path else name, "FieldValueRequired", "Required value")
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(json.dumps(item) for item in schema["enum"])
        text = f"Unsupported value: {json.dumps(value)}: supported values: {allowed}"
        yield Cause(path, "FieldValueNotSupported", text)
    # As JSON schema has it, a pattern may match anywhere in the value.
    pattern = schema.get("pattern")
    if pattern and isinstance(value, str) and not re.search(pattern, value):
        text = f"Invalid value: {json.dumps(value)}: {path} in body should match '{pattern}'"
        yield Cause(path, "FieldValueInvalid", text)


def check_types(obj: Any, schema: Schema, kind: Kind) -> None:
    """Raise StatusError where a built-in object cannot be decoded into its Go type."""
    if mismatch := type_mismatch(obj, schema):
        path, got, go = mismatch
        raise undecodable(kind, f"json: cannot unmarshal {got} into Go struct field .{path} of type {go}")
    if why := unreadable_time(obj, schema):
        raise undecodable(kind, why)


def unreadable_time(obj: Any, schema: Schema) -> str:
    """Return why an instant in *obj* cannot be read, in Go's words; empty where all can."""
    for _, value, below in _walk(obj, schema):
        layout = below.get("layout", "")
        if layout and isinstance(value, str) and (why := go_times.misfit(value, layout)):
            return why
    return ""


def type_mismatch(obj: Any, schema: Schema) -> tuple[str, str, str] | None:
    """Return where *obj* cannot be decoded into its Go type: the path, and in Go's words the types of both."""
    for path, value, below in _walk(obj, schema):
        expected = below.get("type")
        if expected and value is not None and not _has_type(value, expected):
            got = {"boolean": "bool", "integer": "number"}.get(_type_name(value), _type_name(value))
            # Go's decoder names the field by the struct's path, which has no indices.
            field = re.sub(r"\[\d+\]", "", path)
            go = below.get("format", "int32") if expected == "integer" else _GO_TYPES.get(expected, expected)
            return field, str(got), str(go)
    return None


def undecodable(kind: Kind, why: str) -> StatusError:
    """Return the error for a body that does not decode into *kind*."""
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')
