"""A value for a flag from somewhere else than the command line."""

import re
from collections.abc import Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Setting:
    """The values of one flag as they are written, and ``origin``: the variable, or the file with its line."""

    values: tuple[str, ...]
    origin: str


def variable_of(flags: Sequence[str]) -> str:
    """Return the variable for a flag with the names *flags*, the first long one of which counts.

    ``--gpus`` is ``ARENA_TOPO_GPUS``, ``--image-pull-secret`` is ``ARENA_TOPO_IMAGE_PULL_SECRET``, and
    ``--hostNetwork`` is ``ARENA_TOPO_HOST_NETWORK``.
    """
    words = re.sub(r"(?<=[a-z])(?=[A-Z])|-", "_", key_of(flags))
    return f"ARENA_TOPO_{words.upper()}"


def key_of(flags: Sequence[str]) -> str:
    """Return the name of a flag in a profile: its first long one, without the dashes."""
    return next((name for name in flags if name.startswith("--")), "").removeprefix("--")
