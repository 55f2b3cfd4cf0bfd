"""Versions pinned by the modules of this folder."""

import re

from tests.controlplane.errors import BuildFailed
from tests.controlplane.paths import SOURCES


def pinned_version(folder: str, module: str) -> str:
    """Return the version of ``module`` that ``folder``'s
    go.mod requires; raise BuildFailed if it does not.
    """
    text = (SOURCES / folder / "go.mod").read_text()
    pinned = re.search(rf"^\s*(?:require )?{re.escape(module)} (v\S+)", text, re.MULTILINE)
    if pinned is None:
        raise BuildFailed(f"{folder}/go.mod does not pin {module}")
    return pinned.group(1)
