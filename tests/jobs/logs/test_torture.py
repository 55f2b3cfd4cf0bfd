"""64 logs at once over real connections, with everything
done to them that happens in the field: ``logs -f --all``.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from tests.examples import examples
from tests.jobs.logs.torture import Torments, TorturedJob
from tests.kube.server import Reply, Seen, serve

WORKERS = 63
MOST_MEMORY = 150 * 1024
"""KiB; a Python with TLS connections to 64 kubelets takes a third of it, whatever they print."""


MEASURED = r"""
import atexit, pathlib, re, sys
from arena_topo.__main__ import main
peak = sys.argv.pop(1)
status = pathlib.Path("/proc/self/status")
atexit.register(lambda: pathlib.Path(peak).write_text(re.search(r"VmHWM:\s+(\d+)", status.read_text())[1]))
main()
"""
# What the kernel counts for a child begins with the memory of the process that started it, which is that of
# the tests.


def follow(job: TorturedJob, folder: Path) -> tuple[dict[str, list[bytes]], int]:
    """Return what ``logs -f --all`` prints of each instance, and the most memory that it took (KiB)."""

    def rule(seen: Seen) -> Reply:
        parts = urlsplit(seen.path)
        status, answer = job.answer(parts.path, dict(parse_qsl(parts.query)))
        if not isinstance(answer, Iterator):
            return Reply(status, json.dumps(answer).encode())
        reply = Reply()

        def chunks() -> Iterator[bytes]:
            for event in answer:
                if event == "drop":
                    reply.ending = "drop"
                    return
                assert isinstance(event, bytes)
                yield event

        reply.chunks = chunks()  # type: ignore[assignment]  # served as they come
        return reply

    with serve(folder, rule) as server, (folder / "out").open("wb") as out:
        flags: list[Any] = [
            f"--server={server.url}",
            f"--certificate-authority={server.authority.certificate}",
            "--token=t",
        ]
        env = {**os.environ, "HOME": str(folder), "KUBECONFIG": str(folder / "none")}
        with subprocess.Popen(
            [sys.executable, "-c", MEASURED, str(folder / "peak"), "logs", "-f", "job", "--all", *flags],
            stdout=out,
            stderr=subprocess.PIPE,
            env=env,
        ) as process:
            assert process.stderr is not None
            said = process.stderr.read()
    assert 0 == process.returncode, said[-2000:]
    texts: dict[str, list[bytes]] = {}
    for line in (folder / "out").read_bytes().splitlines():
        name, _, text = line.partition(b" ")
        texts.setdefault(name.decode(), []).append(text)
    return texts, int((folder / "peak").read_text())


@pytest.mark.timeout(1800)
def test_nothing_is_lost_or_repeated_of_64_logs_under_torture(tmp_path: Path) -> None:
    """Each over one connection at a time, in bounded memory."""
    torments = Torments(lines=examples(100), cuts=examples(10), refusals=2, restarts=1, recreations=1)
    job = TorturedJob(WORKERS, 7, torments, together=WORKERS + 1)
    texts, memory = follow(job, tmp_path)

    assert job.expected == texts
    assert WORKERS + 1 == len(texts)
    assert job.counts.cuts >= WORKERS
    assert WORKERS + 1 == job.most_streams
    assert memory < MOST_MEMORY
