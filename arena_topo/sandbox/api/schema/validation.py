"""Checking values against structural schemas, worded as the API server words it."""

import json
import re
from collections.abc import Callable, Iterator
from typing import Any

from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.refusals import Cause, Refusal, bad_request
from arena_topo.sandbox.api.schema.structural import Schema, walk

_TYPES: dict[str, tuple[type, ...]] = {
    "object": (dict,),
    "array": (list,),
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
}
_GO = {"object": "map[string]interface {}", "array": "[]interface {}", "string": "string"}
_BOUNDS: dict[str, tuple[Callable[[float, float], bool], str]] = {
    "minimum": (lambda value, bound: value >= bound, "greater than or equal to"),
    "maximum": (lambda value, bound: value <= bound, "less than or equal to"),
}


def has_type(value: Any, name: str) -> bool:
    """Whether *value* is of the JSON type *name*."""
    if name in {"integer", "number"} and isinstance(value, bool):
        return False
    return isinstance(value, _TYPES.get(name, (object,)))


def type_name(value: Any) -> str:
    """Return the JSON type of *value*."""
    if value is None:
        return "null"
    order = ("boolean", "integer", "number", "string", "array", "object")
    return next(name for name in order if isinstance(value, _TYPES[name]))


def schema_errors(obj: Any, schema: Schema) -> list[Cause]:
    """Return what a custom resource breaks of its schema."""
    return [cause for path, value, below in walk(obj, schema) for cause in _errors(path, value, below)]


def _errors(path: str, value: Any, schema: Schema) -> Iterator[Cause]:
    if value is None and schema.get("nullable"):
        return
    expected = schema.get("type")
    either = schema.get("x-kubernetes-int-or-string")
    if expected and not either and not has_type(value, expected):
        shown, got = json.dumps(type_name(value)), type_name(value)
        text = f'Invalid value: {shown}: {path} in body must be of type {expected}: "{got}"'
        yield Cause(path, "FieldValueTypeInvalid", text)
        return
    if isinstance(value, dict):
        for name in schema.get("required", ()):
            if name not in value:
                where = f"{path}.{name}" if path else name
                yield Cause(where, "FieldValueRequired", "Required value")
    if "enum" in schema and value not in schema["enum"]:
        allowed = ", ".join(json.dumps(each) for each in schema["enum"])
        text = f"Unsupported value: {json.dumps(value)}: supported values: {allowed}"
        yield Cause(path, "FieldValueNotSupported", text)
    yield from _bound_errors(path, value, schema)


def _bound_errors(path: str, value: Any, schema: Schema) -> Iterator[Cause]:
    if isinstance(value, int | float) and not isinstance(value, bool):
        for keyword, (holds, words) in _BOUNDS.items():
            if keyword in schema and not holds(value, schema[keyword]):
                text = f"Invalid value: {value}: {path} in body should be {words} {schema[keyword]:g}"
                yield Cause(path, "FieldValueInvalid", text)
    if isinstance(value, str):
        pattern = schema.get("pattern")
        if pattern and not re.search(pattern, value):
            shown = json.dumps(value)
            text = f"Invalid value: {shown}: {path} in body should match '{pattern}'"
            yield Cause(path, "FieldValueInvalid", text)
        if "maxLength" in schema and len(value) > schema["maxLength"]:
            text = f"Too long: may not be more than {schema['maxLength']} bytes"
            yield Cause(path, "FieldValueTooLong", text)


def check_types(obj: Any, schema: Schema, kind: Kind) -> None:
    """Raise Refusal where a built-in object cannot be decoded into its Go type."""
    for path, value, below in walk(obj, schema):
        expected = below.get("type")
        if expected and value is not None and not has_type(value, expected):
            raise undecodable(
                kind, f"json: cannot unmarshal {_json_word(value)} into Go {_target(path, below)}"
            )


def undecodable(kind: Kind, why: str) -> Refusal:
    """Return the refusal of a body that does not decode into *kind*."""
    return bad_request(f'{kind.kind} in version "{kind.version}" cannot be handled as a {kind.kind}: {why}')


def _json_word(value: Any) -> str:
    words = {"boolean": "bool", "integer": "number"}
    return words.get(type_name(value), type_name(value))


def _target(path: str, schema: Schema) -> str:
    go = {"integer": schema.get("format", "int32"), "boolean": "bool", "string": "string"}
    bare = re.sub(r"\[\d+\]", "", path)
    return f"struct field .{bare} of type {go.get(schema['type'], _GO.get(schema['type'], schema['type']))}"
