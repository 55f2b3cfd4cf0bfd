"""The notations of the flags that describe a job, as click types."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from arena_topo.cli.options.notations import Duration, Notation
from arena_topo.errors import UsageError
from arena_topo.model.job import validation
from arena_topo.model.keys import NVIDIA_GPU
from arena_topo.model.notation.quantity import checked_quantity

if TYPE_CHECKING:
    from arena_topo.model.cluster.scheduling import Toleration
    from arena_topo.model.job.job_spec import Claim, ConfigFile, EnvSource, HostDirectory

# The API keeps such times in 32 bits.
_MOST_SECONDS = 2**31 - 1
_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")
# The names of the two kinds that kubectl takes: singular, plural, and the short one.
_ENV_KINDS = {
    "secret": "secret",
    "secrets": "secret",
    "configmap": "configmap",
    "configmaps": "configmap",
    "cm": "configmap",
}


class Text(Notation[str]):
    """A text that is sent as it is."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        del flag
        return text


class OneOf(Notation[str]):
    """One of a few words."""

    name = "text"

    def __init__(self, *allowed: str) -> None:
        self._allowed = allowed

    def read(self, text: str, flag: str) -> str:
        """Return *text*."""
        if text not in self._allowed:
            raise UsageError(f"unsupported {flag} {text!r}", hint=f"use one of {', '.join(self._allowed)}")
        return text


class Quantity(Notation[str]):
    """A Kubernetes quantity such as ``500m`` or ``64Gi``, or nothing."""

    name = "text"

    def read(self, text: str, flag: str) -> str:
        """Return *text*, which is a quantity."""
        return checked_quantity(flag, text) if text else ""


class WholeSeconds(Notation[int]):
    """A duration in whole seconds, as the API counts them."""

    name = "duration"
    empty_is_default = True

    def __init__(self, *, least: int = 0) -> None:
        self._duration = Duration(bare_seconds=True, least=least)

    def read(self, text: str, flag: str) -> int:
        """Return the seconds."""
        seconds = self._duration.read(text, flag)
        # Half a second rounded down to 0 would stop the job at once, or delete it as soon as it has ended.
        if seconds != int(seconds):
            raise UsageError(
                f"{flag}: {text} is not a whole number of seconds", hint="write for example 1s or 90s"
            )
        if seconds > _MOST_SECONDS:
            raise UsageError(
                f"{flag}: {text} is more than {_MOST_SECONDS} s, the longest time that the API takes"
            )
        return int(seconds)


class Pair(Notation[tuple[str, str]]):
    """``NAME=VALUE``; *check* takes the flag, the name and the value."""

    name = "name=value"

    def __init__(self, check: Callable[[str, str, str], None]) -> None:
        self._check = check

    def read(self, text: str, flag: str) -> tuple[str, str]:
        """Return the name and the value."""
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag}: {text!r} is not NAME=VALUE", hint=f"for example {flag}=name=value")
        self._check(flag, name, value)
        return name, value


class ArenaToleration(Notation["Toleration"]):
    """Arena's ``key=value:effect,operator``, its parts, or ``all``.

    Without a value the operator is ``Exists``, without an effect every effect is tolerated.
    """

    name = "toleration"

    def read(self, text: str, flag: str) -> "Toleration":
        """Return the toleration: ``gpu=a100:NoSchedule,Equal`` or ``gpu`` (whatever its value and effect)."""
        from arena_topo.model.cluster.scheduling import Toleration

        # A toleration that names no key and needs no value matches every taint.
        if text == "all":
            return Toleration(operator="Exists")
        rest, _, operator = text.partition(",")
        pair, _, effect = rest.partition(":")
        key, equals, value = pair.partition("=")
        operator = operator or ("Equal" if equals else "Exists")
        wrong = (
            not key
            or operator not in ("Equal", "Exists")
            or (effect and effect not in _EFFECTS)
            # The API server refuses a value beside Exists.
            or (operator == "Exists" and value)
        )
        if wrong:
            raise UsageError(
                f"{flag}: {text!r} is not KEY[=VALUE][:EFFECT][,OPERATOR]",
                hint=f"effects are {', '.join(_EFFECTS)}; operators are Equal and Exists, the latter without a value",
            )
        return Toleration(key=key, operator=operator, value=value, effect=effect)


class EnvSourceName(Notation["EnvSource"]):
    """``secret/NAME`` or ``configmap/NAME``."""

    name = "kind/name"

    def read(self, text: str, flag: str) -> "EnvSource":
        """Return the source."""
        from arena_topo.model.job.job_spec import EnvSource

        kind, slash, name = text.partition("/")
        if not slash or kind.lower() not in _ENV_KINDS:
            raise UsageError(f"{flag}: {text!r} is not KIND/NAME", hint="use secret/NAME or configmap/NAME")
        validation.check_object_name(flag, name)
        return EnvSource(_ENV_KINDS[kind.lower()], name)


class ClaimMount(Notation["Claim"]):
    """``PVC:PATH``."""

    name = "pvc:path"

    def read(self, text: str, flag: str) -> "Claim":
        """Return the claim."""
        from arena_topo.model.job.job_spec import Claim

        name, colon, path = text.partition(":")
        if not colon or not path.startswith("/"):
            raise UsageError(
                f"{flag}: {text!r} is not PVC:PATH with an absolute PATH",
                hint=f"for example {flag}=dataset:/data",
            )
        validation.check_object_name(flag, name)
        _check_mount(flag, path)
        return Claim(name, path)


class DirectoryMount(Notation["HostDirectory"]):
    """``DIR`` or ``DIR:PATH``."""

    name = "dir[:path]"

    def read(self, text: str, flag: str) -> "HostDirectory":
        """Return the directory; without a PATH it is mounted at the same path."""
        from arena_topo.model.job.job_spec import HostDirectory

        source, colon, path = text.partition(":")
        target = path if colon else source
        if not (source.startswith("/") and target.startswith("/")):
            raise UsageError(
                f"{flag}: {text!r} is not DIR or DIR:PATH with absolute paths",
                hint=f"for example {flag}=/mnt/data:/data",
            )
        _check_mount(flag, target)
        return HostDirectory(source, target)


class LocalFile(Notation["ConfigFile"]):
    """``FILE`` or ``FILE:PATH``; the file is read at once."""

    name = "file[:path]"

    def read(self, text: str, flag: str) -> "ConfigFile":
        """Return the file with its content."""
        from arena_topo.model.job.job_spec import ConfigFile
        from arena_topo.user_files import LARGEST_SETTING, read_bytes

        source, colon, path = text.partition(":")
        target = path if colon else str(Path(source).absolute())
        if not source or not target.startswith("/"):
            raise UsageError(
                f"{flag}: {text!r} is not FILE or FILE:PATH with an absolute PATH in the container",
                hint=f"for example {flag}=./train.yaml:/etc/train/train.yaml",
            )
        # At once, so that a wrong path is reported before anything is created.
        try:
            return ConfigFile(target, read_bytes(source, LARGEST_SETTING))
        except OSError as error:
            raise UsageError(f"{flag}: {source} cannot be read: {error.strerror}") from error


class AbsolutePath(Notation[str]):
    """An absolute path in the container; empty stays empty."""

    name = "path"

    def read(self, text: str, flag: str) -> str:
        """Return *text*, which is an absolute path."""
        if text and not text.startswith("/"):
            raise UsageError(f"{flag}: {text!r} is not an absolute path")
        return text


def _check_mount(flag: str, path: str) -> None:
    # There it would hide every file of the image, the job's program among them. POSIX keeps two slashes as they are.
    if os.path.normpath(path).strip("/") == "":
        raise UsageError(f"{flag}: a directory cannot be mounted at /", hint=f"for example {flag}=NAME:/data")
    if ":" in path:
        raise UsageError(f"{flag}: {path!r} has a colon, which the path of a mount must not have")


def _check_device(flag: str, name: str, count: str) -> None:
    validation.check_key(flag, name)
    # Slots, plans and requested GPUs are counted by --gpus, and two flags for one resource could disagree.
    if name == NVIDIA_GPU:
        raise UsageError(f"use '--gpus {count}' instead of '{flag} {name}={count}'")
    checked_quantity(f"{flag} {name}", count)


LABEL = Pair(lambda flag, name, value: validation.check_labels(flag, {name: value}))
ANNOTATION = Pair(lambda flag, name, _: validation.check_key(flag, name))
ENV = Pair(lambda _flag, name, _value: validation.check_env_name(name))
DEVICE = Pair(_check_device)
TEXT = Text()
QUANTITY = Quantity()
PULL_POLICY = OneOf("Always", "IfNotPresent", "Never")
CLEAN_POLICY = OneOf("All", "Running", "None")
ABSOLUTE_PATH = AbsolutePath()
MPI_IMPLEMENTATION = OneOf("OpenMPI", "MPICH", "Intel")
SECONDS = WholeSeconds()
PERIOD = WholeSeconds(least=1)
