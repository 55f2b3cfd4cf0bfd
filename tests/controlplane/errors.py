"""What can go wrong between a fresh machine and a running control plane."""


class ControlPlaneError(Exception):
    """The control plane cannot be had or did not start; the message says why."""


class ToolchainMissing(ControlPlaneError):
    """No usable Go compiler, and none could be installed."""


class BuildFailed(ControlPlaneError):
    """A component could not be built; the message ends with the compiler's last lines."""
