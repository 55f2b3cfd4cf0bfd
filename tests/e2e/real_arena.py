"""Running kubeflow/arena 0.15.5 itself, to see that it and arena-topo understand each other's jobs."""

import os
import shutil
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.binaries.ensure import Built
from tests.e2e.arena import PROGRAM, Arena


@dataclass(frozen=True, slots=True)
class RealArena(Arena):
    """The original, with its charts and the kubectl that it starts, in a home of its own."""

    home: Path = Path()

    @property
    def env(self) -> dict[str, str]:
        """The environment that Arena runs in: it asks for
        its user by name, and looks for charts in its home.
        """
        path = f"{self.home / 'bin'}{os.pathsep}{os.environ['PATH']}"
        return {
            "HOME": str(self.home),
            # It writes the rendered job into a temporary file, and leaves it there.
            "TMPDIR": str(self.home),
            "USER": "tester",
            "PATH": path,
            "KUBECONFIG": str(self.kubeconfig),
        }


def real_arena(built: Built, kubeconfig: Path, home: Path) -> RealArena:
    """Return Arena with *home*, which is filled as its installer would."""
    shutil.copytree(built.manifest("mpijob-chart"), home / "charts" / "mpijob")
    (home / "bin").mkdir()
    # Arena starts kubectl under a name of its own.
    (home / "bin" / "arena-kubectl").symlink_to(PROGRAM.parent / "kubectl")
    return RealArena(kubeconfig, program=built.binary("arena"), home=home)
