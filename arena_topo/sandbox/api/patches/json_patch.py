"""JSON Patch (RFC 6902) and JSON Merge Patch (RFC 7386)."""

import copy
from typing import Any

from arena_topo.sandbox.api.refusals import Refusal, bad_request


def merge_patch(target: Any, patch: Any) -> Any:
    """Return *target* with a merge patch applied."""
    if not isinstance(patch, dict):
        return copy.deepcopy(patch)
    merged = dict(target) if isinstance(target, dict) else {}
    for name, value in patch.items():
        if value is None:
            merged.pop(name, None)
        else:
            merged[name] = merge_patch(merged.get(name), value)
    return merged


def json_patch(target: Any, operations: Any) -> Any:
    """Return *target* with a JSON patch applied; raises Refusal where the patch does not apply."""
    if not isinstance(operations, list):
        raise bad_request(
            "error decoding patch: json: cannot unmarshal object into Go value of type jsonpatch.Patch"
        )
    document = copy.deepcopy(target)
    for operation in operations:
        document = _apply(document, operation)
    return document


def _apply(document: Any, operation: dict[str, Any]) -> Any:
    path = _tokens(operation.get("path", ""))
    match operation.get("op"):
        case "add":
            return _add(document, path, copy.deepcopy(operation.get("value")))
        case "remove":
            return _remove(document, path)
        case "replace":
            _look_up(document, path, "replace")
            return _replace(document, path, copy.deepcopy(operation.get("value")))
        case "copy" | "move" as op:
            source = _tokens(operation.get("from", ""))
            value = copy.deepcopy(_look_up(document, source, op))
            return _add(_remove(document, source) if op == "move" else document, path, value)
        case "test":
            if _look_up(document, path, "test") != operation.get("value"):
                raise _unprocessable(f"testing value {operation.get('path')} failed: test failed")
            return document
        case other:
            raise bad_request(f"Unexpected kind: {other}")


def _unprocessable(why: str) -> Refusal:
    return Refusal(422, "Invalid", f"the server rejected our request due to an error in our request: {why}")


def _tokens(path: str) -> list[str]:
    return [part.replace("~1", "/").replace("~0", "~") for part in path.split("/")[1:]]


def _look_up(document: Any, path: list[str], operation: str) -> Any:
    value = document
    for part in path:
        try:
            value = value[int(part)] if isinstance(value, list) else value[part]
        except (KeyError, IndexError, ValueError, TypeError):
            text = f"{operation} operation does not apply: doc is missing path: /{'/'.join(path)}"
            raise _unprocessable(f"{text}: missing value") from None
    return value


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    holder, last = _look_up(document, path[:-1], "add"), path[-1]
    if isinstance(holder, list):
        holder.insert(len(holder) if last == "-" else _index(last), value)
    else:
        holder[last] = value
    return document


def _replace(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value
    holder, last = _look_up(document, path[:-1], "replace"), path[-1]
    holder[_index(last) if isinstance(holder, list) else last] = value
    return document


def _remove(document: Any, path: list[str]) -> Any:
    _look_up(document, path, "remove")
    holder, last = _look_up(document, path[:-1], "remove"), path[-1]
    del holder[_index(last) if isinstance(holder, list) else last]
    return document


def _index(text: str) -> int:
    try:
        return int(text)
    except ValueError:
        raise _unprocessable(f"unable to parse index {text!r}") from None
