"""A bill of materials lists everything that the package brings along, once, by name and version."""

import json
import re
from pathlib import Path

from tools.dependencies import Dependency, dependencies
from tools.sbom import document, write

PACKAGE = Dependency("arena-topo", "0", "Apache-2.0", ("a", "b"))
PARTS = [Dependency("a", "1", "MIT", ("b",)), Dependency("b", "2", "", ("missing",))]


def test_parts_have_references_and_dependencies() -> None:
    """What is not installed is left out, and so is a licence that nobody states."""
    bill = document("1.2.3", PACKAGE, PARTS)

    assert ("CycloneDX", "1.6", 1) == (bill["bomFormat"], bill["specVersion"], bill["version"])
    assert "pkg:pypi/arena-topo@1.2.3" == bill["metadata"]["component"]["purl"]
    assert [("a", "1", [{"expression": "MIT"}]), ("b", "2", None)] == [
        (part["name"], part["version"], part.get("licenses")) for part in bill["components"]
    ]
    assert [
        {"ref": "pkg:pypi/arena-topo@1.2.3", "dependsOn": ["pkg:pypi/a@1", "pkg:pypi/b@2"]},
        {"ref": "pkg:pypi/a@1", "dependsOn": ["pkg:pypi/b@2"]},
        {"ref": "pkg:pypi/b@2", "dependsOn": []},
    ] == bill["dependencies"]


def test_it_lists_what_is_installed(tmp_path: Path) -> None:
    """Every reference leads somewhere, and is a package URL."""
    write(tmp_path / "bill.json", "1.2.3")
    bill = json.loads((tmp_path / "bill.json").read_text())
    references = {part["bom-ref"] for part in bill["components"]}

    assert len(dependencies()) - 1 == len(references) == len(bill["components"])
    assert all(re.fullmatch(r"pkg:pypi/[a-z0-9.-]+@[^@]+", each) for each in references)
    assert all(set(each["dependsOn"]) <= references for each in bill["dependencies"])
