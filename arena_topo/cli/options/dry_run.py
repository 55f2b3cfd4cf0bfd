"""kubectl's ``--dry-run``."""

from enum import Enum

from arena_topo.cli.options.notations import Notation
from arena_topo.cli.terminal import warn
from arena_topo.errors import UsageError


class DryRun(Enum):
    """Who checks a job that is not created: nobody, since it is created; this program; or the API server too."""

    NONE = "none"
    CLIENT = "client"
    SERVER = "server"


class DryRunMode(Notation[DryRun]):
    """kubectl's ``--dry-run``."""

    name = "mode"
    bare = "bare"

    def read(self, text: str, flag: str) -> DryRun:
        """Return the mode; the flag alone means the client's, as in old versions of kubectl."""
        # The words of the warning and of the error are kubectl's own.
        if text == self.bare:
            warn(f"{flag} is deprecated and can be replaced with {flag}=client")
            return DryRun.CLIENT
        if text not in {mode.value for mode in DryRun}:
            raise UsageError(f'Invalid dry-run value ({text}). Must be "none", "server", or "client".')
        return DryRun(text)
