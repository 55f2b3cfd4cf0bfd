"""A job at the terminal of its user while it runs: its
log, ``exec`` and ``attach``, through the API server.
"""

import os
import pty
import re
import select
import struct
import subprocess
import termios
from fcntl import ioctl

import pytest

from tests.controlplane.polling import eventually
from tests.ranks.jobs import Jobs, mpirun, ranks_in, running_ranks

pytestmark = pytest.mark.usefixtures("nodes")

_SILENCE_SECONDS = 60.0
"""How long a terminal may print nothing before its test fails, with what it printed."""


def test_commands_run_in_the_instances_of_a_job(jobs: Jobs) -> None:
    """With the instance's own variables and GPUs, stdin to
    its end, both outputs, and the command's exit code.
    """
    jobs.submit("open", workers=2, gpus=2, command=mpirun(4, "--until", "/go"))
    running_ranks(jobs, "open", 4)
    script = "echo $(hostname) $CUDA_VISIBLE_DEVICES; ls /dev | grep -c nvidia; echo oh >&2; exit 3"
    done = jobs.arena("exec", "open", "-i", "1", "--", "sh", "-c", script)
    assert (3, "oh\n") == (done.code, done.err)
    name, gpus, count = done.out.split()
    assert ("open-worker-1", "2") == (name, count)
    assert gpus in {"0,1", "2,3"}

    text = os.urandom(1 << 20)
    echo = subprocess.run(
        [jobs.arena.program, "exec", "open", "--stdin", "--", "cat"],
        input=text,
        capture_output=True,
        env=jobs.arena.env,
        check=False,
        timeout=60,
    )
    assert (0, b"", True) == (echo.returncode, echo.stderr, text == echo.stdout)

    assert 4 == len(ranks_in(jobs.arena("logs", "open", "--since=1h").out))
    lines = jobs.arena("logs", "open", "--tail=2", "--timestamps").out.splitlines()
    assert [True, True] == [re.match(r"\d{4}-\d\d-\d\dT[\d:.]+Z rank=", line) is not None for line in lines]
    at_a_terminal(jobs, "open")
    assert 0 == jobs.arena("exec", "open", "-i", "0", "--", "touch", "/go").code
    assert 4 == len(ranks_in(jobs.log("open")))
    jobs.wait("open", "SUCCEEDED")


def at_a_terminal(jobs: Jobs, name: str) -> None:
    """Attach to the launcher with a terminal, type commands, interrupt one, and leave with a code."""
    near, far = pty.openpty()
    ioctl(far, termios.TIOCSWINSZ, struct.pack("HHHH", 33, 101, 0, 0))
    printed = bytearray()

    def shows(words: bytes) -> None:
        """Read on until *words* come, behind those that came before."""
        while words not in printed:
            ready, _, _ = select.select([near], [], [], _SILENCE_SECONDS)
            assert ready, f"no {words!r} in {bytes(printed)!r}; exit code {process.poll()}"
            printed.extend(os.read(near, 1 << 16))
        del printed[: printed.index(words) + len(words)]

    process = subprocess.Popen(
        [jobs.arena.program, "attach", name, "--", "bash", "--norc"],
        stdin=far,
        stdout=far,
        stderr=subprocess.PIPE,
        env=jobs.arena.env,
    )
    try:
        # What is typed before the terminal is raw is thrown away, and the size follows the start of the
        # process.
        shows(b"# ")
        os.write(near, b"until [ \"$(stty size)\" = '33 101' ]; do :; done; echo at $(tty) of $(hostname)\n")
        shows(b"at /dev/pts/")
        shows(f"of {name}-launcher".encode())
        # What is typed before the next prompt may be thrown away with the interrupted line.
        shows(b"# ")
        # In one process: between two commands the shell would take the interrupt, and the second would sleep.
        os.write(near, b"sh -c \"echo sleep''s; exec sleep 600\"\n")
        shows(b"sleeps")
        os.write(near, b"\x03")
        shows(b"# ")
        os.write(near, b"echo inter''rupted $?\n")
        shows(b"interrupted 130")
        shows(b"# ")
        os.write(near, b"exit 5\n")
        assert 5 == eventually(process.poll, "the end of the shell")
    finally:
        process.kill()
        process.communicate()
        os.close(near)
        os.close(far)
