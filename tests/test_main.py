"""The process of the command line ends with its code, whatever its threads still do."""

import subprocess
import sys

import pytest

_PROGRAM = """
import atexit, os, sys, threading
from arena_topo import __main__
from arena_topo.cli import errors

class Kept:
    def __del__(self, write=os.write):
        write(1, b"; taken down")

def ends(args):
    sys.kept = Kept()
    atexit.register(print, "cleaned up", end="", flush=True)
    if {waits}:
        threading.Thread(target=threading.Event().wait, daemon=True).start()
    sys.stdout.write("the end of the table; ")
    return 4

errors.run = ends
__main__.main()
"""


@pytest.mark.parametrize(("waits", "last"), [(False, "; taken down"), (True, "")])
def test_a_thread_that_still_reads_keeps_its_libraries_to_the_end(waits: bool, last: str) -> None:
    """What was printed arrives and what cleans up runs; Python
    and its libraries stay whole until the process is gone.
    """
    done = subprocess.run(
        [sys.executable, "-c", _PROGRAM.format(waits=waits)], check=False, capture_output=True, text=True
    )

    assert (4, f"the end of the table; cleaned up{last}", "") == (done.returncode, done.stdout, done.stderr)
