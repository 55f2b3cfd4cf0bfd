"""The type of API objects in the API's own shape, before a reader has looked at them."""

from typing import Any

Object = dict[str, Any]
"""A Kubernetes object, or a part of one, as JSON decodes it."""
