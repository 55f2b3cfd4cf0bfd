"""Write what a release brings along as a software bill of materials: ``python -m tools.sbom FILE``.

The format is CycloneDX 1.6 (ECMA-424) in JSON. The versions are those of this environment, with which the
release was tested; what users install later may be newer within the bounds of pyproject.toml.
"""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from tools.dependencies import Dependency, dependencies


def document(version: str, package: Dependency, parts: Sequence[Dependency]) -> dict[str, Any]:
    """Return the bill of materials of *package* in *version*, which requires *parts*."""
    root = _purl(package.name, version)
    by_name = {part.name: _purl(part.name, part.version) for part in parts}
    return {
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "component": {
                "type": "application",
                "bom-ref": root,
                "name": package.name,
                "version": version,
                "purl": root,
                "licenses": [{"license": {"id": "Apache-2.0"}}],
            }
        },
        "components": [
            {
                "type": "library",
                "bom-ref": by_name[part.name],
                "name": part.name,
                "version": part.version,
                "purl": by_name[part.name],
                **({"licenses": [{"expression": part.licence}]} if part.licence else {}),
            }
            for part in parts
        ],
        "dependencies": [
            {"ref": reference, "dependsOn": [by_name[name] for name in part.requires if name in by_name]}
            for reference, part in ((root, package), *((by_name[part.name], part) for part in parts))
        ],
    }


def write(path: Path, version: str) -> None:
    """Write the bill of materials of *version* to *path*."""
    package, *parts = dependencies()
    path.write_text(json.dumps(document(version, package, parts), indent=2) + "\n", "utf-8")


def _purl(name: str, version: str) -> str:
    return f"pkg:pypi/{name}@{version}"


if __name__ == "__main__":
    from arena_topo import __version__

    write(Path(sys.argv[1]), __version__)
