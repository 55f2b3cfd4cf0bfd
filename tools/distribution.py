"""Build the source distribution and the wheel, check both, try the wheel, and pack it into a single file:
``python -m tools.distribution``.

The wheel is built from the source distribution, as an index's users get it, and tried in an environment of
its own.
"""

import shutil
import subprocess
import sys
import tempfile
import venv
from pathlib import Path

from tools import sbom, single_file

ROOT = Path(__file__).parent.parent
_DRY_RUN = ("submit", "mpi", "--dry-run=client", "-o", "name", "--name=a", "--image=b", "--", "true")


def main() -> int:
    """Build into ``dist/`` and return the exit code."""
    try:
        distribute(ROOT)
    except subprocess.CalledProcessError as error:
        return error.returncode
    return 0


def distribute(root: Path) -> None:
    """Replace ``dist/`` by a checked source distribution and wheel of *root*; raise CalledProcessError."""
    out = root / "dist"
    shutil.rmtree(out, ignore_errors=True)
    _run(sys.executable, "-m", "build", "--outdir", out, root)
    files = sorted(out.iterdir())
    _run(sys.executable, "-m", "twine", "check", "--strict", *files)
    (wheel,) = (path for path in files if path.suffix == ".whl")
    with tempfile.TemporaryDirectory() as folder:
        _try(wheel, Path(folder))
    # Of the environment in which the release was tested; the name is the wheel's, which has the version.
    version = wheel.name.split("-")[1]
    bill = out / f"arena-topo-{version}.cdx.json"
    sbom.write(bill, version)
    packed = single_file.pack(wheel, out / f"{single_file.NAME}-{version}.pyz")
    files += [bill, packed]
    print("built and checked:", *(path.relative_to(root) for path in files))


def _try(wheel: Path, folder: Path) -> None:
    """Install *wheel* with its dependencies, and run it far from the checkout, under both of its names.

    The home folder is empty, so that neither a kubeconfig nor templates of the maintainer's are used.
    """
    venv.create(folder, with_pip=True)
    programs = folder / "bin"
    _run(programs / "python", "-m", "pip", "install", "--quiet", "--disable-pip-version-check", wheel)
    _run(programs / "python", "-m", "pip", "check", cwd=folder)
    alone = {"HOME": str(folder), "PATH": str(programs)}
    _run(programs / "arena-topo", "--version", cwd=folder, env=alone)
    _run(
        programs / "kubectl-arena_topo", *_DRY_RUN, cwd=folder, env=alone
    )  # reads the templates in the wheel


def _run(*command: str | Path, cwd: Path | None = None, env: dict[str, str] | None = None) -> None:
    print("$", *command, flush=True)
    subprocess.run(command, check=True, cwd=cwd, env=env)


if __name__ == "__main__":
    sys.exit(main())
