"""The type of API objects in the API's own shape, before a reader has looked at them."""

from typing import Any

from arena_topo.errors import DocumentError

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON decodes it."""


def section(item: Object, key: str) -> Object:
    """Return the mapping at *key* of *item*, put there where there is none. Raises ``DocumentError`` for anything else."""
    # Not setdefault: a key without a value, as in a template's "affinity:", reads as None.
    if item.get(key) is None:
        item[key] = {}
    value = item[key]
    if not isinstance(value, dict):
        raise DocumentError(f"{key} is {value!r}, expected a mapping", hint="correct it in the template")
    return value


def entries(item: Object, key: str) -> list[Any]:
    """Return the list at *key* of *item*, put there where there is none. Raises ``DocumentError`` for anything else."""
    if item.get(key) is None:
        item[key] = []
    value = item[key]
    if not isinstance(value, list):
        raise DocumentError(f"{key} is {value!r}, expected a list", hint="correct it in the template")
    return value
