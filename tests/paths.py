"""Where the tests find the project and their data, however deep in the tree they stand."""

from pathlib import Path

ROOT = Path(__file__).parent.parent
DATA = ROOT / "tests" / "data"
GOLDEN = DATA / "golden"
