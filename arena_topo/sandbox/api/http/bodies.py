"""The bodies of requests: JSON or YAML."""

import json
from typing import Any

import yaml
from aiohttp import web

from arena_topo.sandbox.api import refusals

_TYPES = (
    "application/json",
    "application/yaml",
    "application/json-patch+json",
    "application/merge-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
)
_JSON = "application/json"


async def read_body(request: web.Request) -> Any:
    """Return the decoded body of a request; raises Refusal when it cannot be read."""
    raw = await request.read()
    if not raw:
        return None
    media = request.content_type
    if media not in (*_TYPES, "application/octet-stream"):
        raise refusals.unsupported_media(media, _TYPES[:2])
    try:
        return (
            yaml.safe_load(raw) if "yaml" in media and not raw.lstrip().startswith(b"{") else json.loads(raw)
        )
    except (ValueError, yaml.YAMLError) as error:
        raise refusals.bad_request(f"couldn't get version/kind; json parse error: {error}") from error
