"""``python -m tests.controlplane build`` and ``... up``: the test control plane for a developer's own use."""

import argparse
import sys
import threading

from tests.controlplane.binaries.ensure import ensure_built, ensure_extras
from tests.controlplane.binaries.tools import EXTRAS
from tests.controlplane.components.options import Options, coscheduling, native_gang
from tests.controlplane.errors import ControlPlaneError
from tests.controlplane.machines.logs import FakeLog
from tests.controlplane.machines.nodes import create_nodes, two_v100
from tests.controlplane.plane import ControlPlane

_NODES = {"none": list, "two-v100": two_v100}
_GANGS = {"none": Options, "native": native_gang, "coscheduling": coscheduling}


def main() -> int:
    """Parse the command line, act, and return the exit code."""
    parser = argparse.ArgumentParser(prog="python -m tests.controlplane", description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    build = commands.add_parser("build", help="build what is missing into the cache")
    build.add_argument("--coscheduling", action="store_true", help="the second scheduler too")
    build.add_argument("--extras", action="store_true", help="all that only some tests need, too")
    up = commands.add_parser("up", help="run a control plane until Ctrl-C")
    up.add_argument("--nodes", choices=_NODES, default="two-v100")
    up.add_argument("--gang", choices=_GANGS, default="none", help="how gangs are scheduled")
    arguments = parser.parse_args()
    try:
        if arguments.command == "build":
            ensure_built(coscheduling=arguments.coscheduling or arguments.extras)
            ensure_extras(EXTRAS if arguments.extras else ())
        else:
            _up(arguments.nodes, arguments.gang)
    except ControlPlaneError as error:
        sys.stderr.write(f"error: {error}\n")
        return 1
    except KeyboardInterrupt:
        return 130
    return 0


def _up(nodes: str, gang: str) -> None:
    with ControlPlane(_GANGS[gang]()) as plane:
        create_nodes(plane.kube, _NODES[nodes]())
        log = FakeLog.of_namespace(plane.kube, plane.folder, "default")
        log.write("total images/sec: 991.92")
        sys.stderr.write(
            f"up in {plane.startup_seconds:.1f} s; Ctrl-C stops\n"
            f"logs of the components: {plane.folder / 'logs'}\n"
            f"log of every pod in namespace default: {log.path}\n"
        )
        sys.stdout.write(f"export KUBECONFIG={plane.admin_kubeconfig}\n")
        sys.stdout.flush()
        threading.Event().wait()


if __name__ == "__main__":
    sys.exit(main())
