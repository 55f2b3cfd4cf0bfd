"""Label and field selectors of list, watch and delete requests."""

import re
from collections.abc import Callable, Mapping
from typing import Any

from arena_topo.model.cluster.scheduling import Requirement
from arena_topo.model.objects import Object
from arena_topo.sandbox.api.kinds import Kind
from arena_topo.sandbox.api.status_errors import bad_request

Matcher = Callable[[Object], bool]

_SET = re.compile(r"(?P<key>[\w./-]+)\s+(?P<sign>in|notin)\s*\((?P<values>[^)]*)\)")
_EQUALITY = re.compile(r"(?P<key>[\w./-]+)\s*(?P<sign>==|!=|=|>|<)\s*(?P<values>[\w.-]*)")
_PRESENCE = re.compile(r"(?P<sign>!?)\s*(?P<key>[\w./-]+)")
_SEPARATOR = re.compile(r",(?![^(]*\))")  # a comma that is not inside of parentheses
_OPERATORS = {"in": "In", "notin": "NotIn", "=": "In", "==": "In", "!=": "NotIn", ">": "Gt", "<": "Lt"}

_INVOLVED = ("kind", "namespace", "name", "uid", "apiVersion", "resourceVersion", "fieldPath")
_FIELDS: Mapping[str, frozenset[str]] = {
    "pods": frozenset({"spec.nodeName", "spec.schedulerName", "status.phase"}),
    "nodes": frozenset({"spec.unschedulable"}),
    "events": frozenset({"reason", "type"} | {f"involvedObject.{key}" for key in _INVOLVED}),
}
"""The fields by which lists of a resource can be narrowed, beside name and namespace."""


def label_selector(text: str) -> list[Requirement]:
    """Return the requirements of a label selector; raises StatusError when it is malformed.

    Example: ``tier in (gold, iron),!own`` is ``tier In gold, iron`` and ``own DoesNotExist``.
    """
    return [_label_term(term.strip()) for term in _SEPARATOR.split(text) if term.strip()]


def _label_term(term: str) -> Requirement:
    if match := _SET.fullmatch(term) or _EQUALITY.fullmatch(term):
        values = tuple(value.strip() for value in match["values"].split(","))
        return Requirement(match["key"], _OPERATORS[match["sign"]], values)
    if match := _PRESENCE.fullmatch(term):
        return Requirement(match["key"], "DoesNotExist" if match["sign"] else "Exists")
    raise bad_request(f'unable to parse requirement: found "{term}"')


def _field_term(term: str, kind: Kind) -> Matcher:
    match = re.fullmatch(r"([\w.]+)\s*(==|!=|=)\s*(.*)", term)
    if match is None:
        raise bad_request(f"invalid selector: '{term}'; can't understand '{term}'")
    path, sign, value = match.groups()
    if path not in _FIELDS.get(kind.plural, frozenset()) | {"metadata.name", "metadata.namespace"}:
        # Kinds with conversions of field labels word it otherwise than those with the two common fields.
        if kind.plural in _FIELDS or kind.custom:
            raise bad_request(f"field label not supported: {path}")
        common = '"metadata.name", "metadata.namespace"'
        raise bad_request(f'"{path}" is not a known field selector: only {common}')
    return lambda obj: (_field(obj, path) == value) != (sign == "!=")


def _field(obj: Object, path: str) -> str:
    value: Any = obj
    for part in path.split("."):
        value = value.get(part) if isinstance(value, dict) else None
    if isinstance(value, bool):
        return str(value).lower()
    # An absent boolean of a built-in object is false for selectors, any other absent field the empty text.
    if value is None:
        return "false" if path == "spec.unschedulable" else ""
    return str(value)


def matcher(labels: str, fields: str, kind: Kind) -> Matcher:
    """Return the test of a request's selectors; an empty selector matches everything. Raises StatusError."""
    requirements = label_selector(labels)
    field_tests = [_field_term(term.strip(), kind) for term in fields.split(",") if term.strip()]

    def matches(obj: Object) -> bool:
        own = obj["metadata"].get("labels") or {}
        labelled = all(requirement.holds(own) for requirement in requirements)
        return labelled and all(test(obj) for test in field_tests)

    return matches
