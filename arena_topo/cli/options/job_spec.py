"""From what was typed to a job: every value is checked here, once, with a message that names its flag."""

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from arena_topo.cli.options.notations import duration, pairs, pattern_toleration
from arena_topo.errors import UsageError
from arena_topo.model.job import validation
from arena_topo.model.job.job_spec import (
    Claim,
    Compute,
    ConfigFile,
    EnvSource,
    HostDirectory,
    JobSpec,
    LauncherOptions,
    PodOptions,
    RunOptions,
)
from arena_topo.model.keys import NVIDIA_GPU
from arena_topo.model.notation.quantity import checked_quantity

Values = Mapping[str, Any]

_PULL_POLICIES = ("Always", "IfNotPresent", "Never")
_CLEAN_POLICIES = ("None", "Running", "All")


def job_spec(
    values: Values, *, words: Sequence[str], argv: tuple[str, ...] | None, namespace: str
) -> JobSpec:
    """Return the job that the flags in *values* describe.

    *words* are the arguments outside of flags, joined as Arena joins them and run by a shell; *argv* is what
    followed ``--``, run as it is. Raises ``UsageError``.
    """
    _check_text(values, words, argv or ())
    validation.check_job_name(values["name"])
    if not values["image"]:
        raise UsageError("--image must be set", hint="for example --image=registry.example.com/train:1.0")
    gpus, workers = _at_least("--gpus", values["gpus"], 0), _at_least("--workers", values["workers"], 1)
    slots = values["slots_per_worker"]
    return JobSpec(
        name=values["name"],
        namespace=namespace,
        image=values["image"],
        command=_command(values["shell"], words, argv),
        workers=workers,
        gpus=gpus,
        compute=_compute("", values["cpu"], values["memory"]),
        slots=max(gpus, 1) if slots is None else _at_least("--slots-per-worker", slots, 1),
        gang=values["gang"],
        topology=values["gputopology"],
        pod=_pod(values),
        launcher=LauncherOptions(
            compute=_compute("launcher-", values["launcher_cpu"], values["launcher_memory"]),
            selector=_labels("--launcher-selector", values["launcher_selector"]),
            mounts=values["mounts_on_launcher"],
        ),
        run=RunOptions(
            retry=_at_least("--retry", values["retry"], 0),
            clean_policy=_one_of("--clean-task-policy", values["clean_task_policy"], _CLEAN_POLICIES),
            ttl=duration("--ttl-after-finished", values["ttl_after_finished"]),
            timeout=duration("--running-timeout", values["running_timeout"]),
        ),
    )


def _pod(values: Values) -> PodOptions:
    return PodOptions(
        env=_env(values["env"]),
        env_from=tuple(_env_source(text) for text in values["env_from"]),
        labels=_labels("--label", values["label"]),
        annotations=_annotations(values["annotation"]),
        selector=_labels("--selector", values["selector"]),
        tolerations=tuple(pattern_toleration(text) for text in values["toleration"]),
        devices=_devices(values["device"]),
        claims=_claims(values["data"]),
        directories=tuple(_directory(text) for text in values["data_dir"]),
        files=tuple(_file(text) for text in values["config_file"]),
        working_dir=values["working_dir"],
        priority=values["priority"],
        scheduler=values["scheduler"],
        pull_policy=_one_of("--image-pull-policy", values["image_pull_policy"], _PULL_POLICIES),
        pull_secrets=tuple(values["image_pull_secret"]),
        shared_memory=_quantity("--share-memory", values["share_memory"]),
        host_network=values["host_network"],
        host_ipc=values["host_ipc"],
        host_pid=values["host_pid"],
        rdma=values["rdma"],
    )


def _command(shell: str, words: Sequence[str], argv: tuple[str, ...] | None) -> tuple[str, ...]:
    if words and argv:
        raise UsageError(
            "the job's command was given twice: before and after --",
            hint="give one quoted string, or everything after --",
        )
    if argv:
        return argv
    if not any(words):
        raise UsageError(
            "not found command args: the job has no command",
            hint='give it at the end, for example "mpirun -np 4 python train.py", or after --',
        )
    return (shell, "-c", " ".join(words))


def _check_text(values: Values, words: Sequence[str], argv: Sequence[str]) -> None:
    """Refuse bytes that are no UTF-8 and NULs: the API carries text."""
    named = [(f"--{key.replace('_', '-')}", each) for key, value in values.items() for each in _texts(value)]
    for flag, text in [*named, *(("the command", word) for word in (*words, *argv))]:
        try:
            text.encode()
        except UnicodeEncodeError as error:
            raise UsageError(f"{flag} has bytes that are not UTF-8 text: {text!a}") from error


def _texts(value: Any) -> Sequence[str]:
    if isinstance(value, str):
        return (value,)
    return value if isinstance(value, tuple) else ()


def _at_least(flag: str, number: int, least: int) -> int:
    if number < least:
        raise UsageError(f"{flag} is invalid: {number} is less than {least}")
    return int(number)


def _one_of(flag: str, text: str, allowed: Sequence[str]) -> str:
    if text not in allowed:
        raise UsageError(f"unsupported {flag} {text!r}", hint=f"use one of {', '.join(allowed)}")
    return text


def _quantity(flag: str, text: str) -> str:
    return checked_quantity(flag, text) if text else ""


def _compute(prefix: str, cpu: str, memory: str) -> Compute:
    return Compute(cpu=_quantity(f"--{prefix}cpu", cpu), memory=_quantity(f"--{prefix}memory", memory))


def _env(texts: Sequence[str]) -> Mapping[str, str]:
    env = pairs("--env", texts)
    for name in env:
        validation.check_env_name(name)
    return env


def _labels(flag: str, texts: Sequence[str]) -> Mapping[str, str]:
    labels = pairs(flag, texts)
    validation.check_labels(flag, labels)
    return labels


def _annotations(texts: Sequence[str]) -> Mapping[str, str]:
    annotations = pairs("--annotation", texts)
    for key in annotations:
        validation.check_key("--annotation", key)
    return annotations


def _env_source(text: str) -> EnvSource:
    kind, slash, name = text.partition("/")
    kinds = {
        "secret": "secret",
        "secrets": "secret",
        "configmap": "configmap",
        "configmaps": "configmap",
        "cm": "configmap",
    }
    if not slash or kind.lower() not in kinds:
        raise UsageError(f"--env-from: {text!r} is not KIND/NAME", hint="use secret/NAME or configmap/NAME")
    validation.check_object_name("--env-from", name)
    return EnvSource(kinds[kind.lower()], name)


def _devices(texts: Sequence[str]) -> Mapping[str, str]:
    devices = pairs("--device", texts)
    for name, count in devices.items():
        validation.check_key("--device", name)
        if name == NVIDIA_GPU:
            raise UsageError(f"please use '--gpus {count}' instead of '--device {name}={count}'")
        checked_quantity(f"--device {name}", count)
    return devices


def _claims(texts: Sequence[str]) -> tuple[Claim, ...]:
    claims: dict[str, Claim] = {}
    for text in texts:
        name, colon, path = text.partition(":")
        if not colon or not path.startswith("/"):
            raise UsageError(f"dataset {text} has incorrect format, should like data_name:/data0")
        validation.check_object_name("--data", name)
        if name in claims:
            raise UsageError(f"your PVC name: {name} is repeated, please check it")
        claims[name] = Claim(name, path)
    return tuple(claims.values())


def _directory(text: str) -> HostDirectory:
    source, colon, path = text.partition(":")
    target = path if colon else source
    for each in (source, target):
        if not each.startswith("/"):
            raise UsageError(f"invalid dataDir: '{text}' must be absolute", hint="write DIR or DIR:PATH")
    if os.path.normpath(target) == "/":
        raise UsageError("invalid specification: dataDir can't be '/'")
    return HostDirectory(source, target)


def _file(text: str) -> ConfigFile:
    source, colon, path = text.partition(":")
    target = path if colon else str(Path(source).absolute())
    if not source or not target.startswith("/"):
        raise UsageError(
            f"--config-file: {text!r} is not FILE or FILE:PATH with an absolute PATH in the container",
            hint="for example --config-file=./train.yaml:/etc/train/train.yaml",
        )
    try:
        return ConfigFile(target, Path(source).read_bytes())
    except OSError as error:
        raise UsageError(f"--config-file: {source} cannot be read: {error.strerror}") from error
