"""Who an object belongs to: the garbage collector deletes it with its owner."""

from collections.abc import Mapping
from typing import Any


def owner_reference(owner: Mapping[str, Any]) -> dict[str, str]:
    """Return the reference to *owner*, an object as the server has it."""
    meta = owner["metadata"]
    return {
        "apiVersion": owner["apiVersion"],
        "kind": owner["kind"],
        "name": meta["name"],
        "uid": meta["uid"],
    }
