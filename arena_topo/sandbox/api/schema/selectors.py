"""Label and field selectors of list, watch and delete requests."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from arena_topo.model.objects import Object
from arena_topo.sandbox.api.refusals import bad_request

Matcher = Callable[[Object], bool]

_SET = re.compile(r"(?P<key>[\w./-]+)\s+(?P<op>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUALITY = re.compile(r"(?P<key>[\w./-]+)\s*(?P<op>==|!=|=|>|<)\s*(?P<value>[\w.-]*)")
_PRESENCE = re.compile(r"(?P<not>!?)\s*(?P<key>[\w./-]+)")
_SEPARATOR = re.compile(r",(?![^(]*\))")

_FIELDS: Mapping[str, frozenset[str]] = {
    "pods": frozenset(
        {
            "spec.nodeName",
            "spec.restartPolicy",
            "spec.schedulerName",
            "spec.serviceAccountName",
            "status.phase",
            "status.podIP",
        }
    ),
    "nodes": frozenset({"spec.unschedulable"}),
    "events": frozenset(
        {
            "involvedObject.kind",
            "involvedObject.namespace",
            "involvedObject.name",
            "involvedObject.uid",
            "involvedObject.apiVersion",
            "involvedObject.resourceVersion",
            "involvedObject.fieldPath",
            "reason",
            "reportingComponent",
            "source",
            "type",
        }
    ),
    "namespaces": frozenset({"status.phase", "name"}),
    "secrets": frozenset({"type"}),
    "jobs": frozenset({"status.successful"}),
}


def label_selector(text: str) -> Callable[[Mapping[str, str]], bool]:
    """Return the test of a label selector; raises Refusal when it is malformed."""
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
    "=": lambda found, wanted: found == wanted,
    "==": lambda found, wanted: found == wanted,
    "!=": lambda found, wanted: found != wanted,
    ">": lambda found, wanted: _number(found) > _number(wanted),
    "<": lambda found, wanted: _number(found) < _number(wanted),
}


def field_selector(text: str, plural: str, *, custom: bool = False) -> Matcher:
    """Return the test of a field selector; raises Refusal for a field that the resource does not know."""
    tests = [_field_term(term.strip(), plural, custom=custom) for term in text.split(",") if term.strip()]
    return lambda obj: all(test(obj) for test in tests)


def _field_term(term: str, plural: str, *, custom: bool) -> Matcher:
    match = re.fullmatch(r"([\w.]+)\s*(==|!=|=)\s*(.*)", term)
    if match is None:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    path, operator, value = match.groups()
    if path not in _FIELDS.get(plural, frozenset()) | {"metadata.name", "metadata.namespace"}:
        if plural in _FIELDS or custom:
            raise bad_request(f"field label not supported: {path}")
        known = '"metadata.name", "metadata.namespace"'
        raise bad_request(f'"{path}" is not a known field selector: only {known}')
    return lambda obj: (_field(obj, path) == value) != (operator == "!=")


def _field(obj: Object, path: str) -> str:
    if path == "name":
        path = "metadata.name"
    if path == "source":
        path = "source.component"
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    if value is None:
        return "false" if path == "spec.unschedulable" else ""
    return str(value)


def matcher(labels: str, fields: str, plural: str, *, custom: bool = False) -> Matcher:
    """Return the test of both selectors of a request; empty ones match everything."""
    label_test = label_selector(labels) if labels else None
    field_test = field_selector(fields, plural, custom=custom) if fields else None

    def matches(obj: Object) -> bool:
        if label_test is not None and not label_test(obj["metadata"].get("labels") or {}):
            return False
        return field_test is None or field_test(obj)

    return matches
