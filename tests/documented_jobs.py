"""The vendor's eight documented jobs, as data."""

import shlex
from dataclasses import dataclass

from arena_topo.model.text.yaml import load
from tests.paths import DATA

_FILE = DATA / "documented_jobs.yaml"


@dataclass(frozen=True, slots=True)
class DocumentedJob:
    """One documented job: the command as typed, the table it shows, the log it prints."""

    framework: str
    command: str
    table: str
    log: str

    @property
    def argv(self) -> list[str]:
        """The words after the program's name, as a shell splits them."""
        return shlex.split(self.command.replace("\\\n", " "))[1:]

    @property
    def name(self) -> str:
        """The job's name."""
        return next(word.partition("=")[2] for word in self.argv if word.startswith("--name="))

    @property
    def has_topology(self) -> bool:
        """Whether the job asks for a placement by topology."""
        return "--gputopology=true" in self.argv


DOCUMENTED_JOBS = [DocumentedJob(**entry) for entry in load(_FILE.read_bytes(), name=str(_FILE))]
