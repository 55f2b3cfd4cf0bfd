"""Label and field selectors of list, watch and delete requests."""

import operator
import re
from collections.abc import Callable, Mapping
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.status_errors import bad_request

Matcher = Callable[[Object], bool]

_SET = re.compile(r"(?P<key>[\w./-]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUALITY = re.compile(r"(?P<key>[\w./-]+)\s*(?P<op>==|!=|=|>|<)\s*(?P<value>[\w.-]*)")
_PRESENCE = re.compile(r"(?P<not>!?)\s*(?P<key>[\w./-]+)")
_SEPARATOR = re.compile(r",(?![^(]*\))")

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Mapping[str, frozenset[str]] = {
    "pods": frozenset({"spec.nodeName", "spec.schedulerName", "status.phase"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "events": frozenset({"reason", "type"} | {f"involvedObject.{key}" for key in _INVOLVED}),
}
"""The fields by which lists of a resource can be narrowed, beside name and namespace."""


def label_selector(text: str) -> Callable[[Mapping[str, str]], bool]:
    """Return the test of a label selector; raises StatusError when it is malformed."""
    tests = [_label_term(term.strip()) for term in _SEPARATOR.split(text) if term.strip()]
    return lambda labels: all(test(labels) for test in tests)


def _label_term(term: str) -> Callable[[Mapping[str, str]], bool]:
    if match := _SET.fullmatch(term):
        key, values = match["key"], {value.strip() for value in match["values"].split(",")}
        negated = match["op"] == "notin"
        return lambda labels: (labels.get(key) in values) != negated
    if match := _EQUALITY.fullmatch(term):
        key, value, compare = match["key"], match["value"], _COMPARISONS[match["op"]]
        return lambda labels: compare(labels.get(key), value)
    if match := _PRESENCE.fullmatch(term):
        key, absent = match["key"], bool(match["not"])
        return lambda labels: (key in labels) != absent
    raise bad_request(f'unable to parse requirement: found "{term}"')


def _number(text: str | None) -> float:
    return int(text) if text and text.lstrip("-").isdigit() else float("nan")


_COMPARISONS: Mapping[str, Callable[[str | None, str], bool]] = {
    "=": operator.eq,
    "==": operator.eq,
    "!=": operator.ne,
    ">": lambda value, bound: _number(value) > _number(bound),
    "<": lambda value, bound: _number(value) < _number(bound),
}


def _field_term(term: str, kind: Kind) -> Matcher:
    match = re.fullmatch(r"([\w.]+)\s*(==|!=|=)\s*(.*)", term)
    if match is None:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    path, sign, value = match.groups()
    if path not in _FIELDS.get(kind.plural, frozenset()) | {"metadata.name", "metadata.namespace"}:
        # Kinds with conversions of field labels word it otherwise than those with the two common fields.
        if kind.plural in _FIELDS or kind.custom:
            raise bad_request(f"field label not supported: {path}")
        known = '"metadata.name", "metadata.namespace"'
        raise bad_request(f'"{path}" is not a known field selector: only {known}')
    return lambda obj: (_field(obj, path) == value) != (sign == "!=")


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "false" if path == "spec.unschedulable" else ""
    return str(value)


def matcher(labels: str, fields: str, kind: Kind) -> Matcher:
    """Return the test of a request's selectors, empty ones of which match everything; raises StatusError."""
    label_test = label_selector(labels)
    field_tests = [_field_term(term.strip(), kind) for term in fields.split(",") if term.strip()]

    def matches(obj: Object) -> bool:
        own = obj["metadata"].get("labels") or {}
        return label_test(own) and all(test(obj) for test in field_tests)

    return matches
