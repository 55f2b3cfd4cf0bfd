"""Names that Kubernetes accepts: checked before anything is sent.

Sources: ``k8s.io/apimachinery/pkg/util/validation``; the limit of 49 is Arena's (pkg/util/validate.go).
"""

import re
from collections.abc import Mapping

from arena_topo.errors import UsageError

_NAME = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?"


_SUBDOMAIN = r"[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*"


_QUALIFIED = r"[A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?"


_LABEL_VALUE = r"([A-Za-z0-9]([-A-Za-z0-9_.]*[A-Za-z0-9])?)?"


_ENV_NAME = r"[!-<>-~]+"


_LONGEST_JOB_NAME = 49


def check_job_name(name: str) -> None:
    """Raise ``UsageError`` unless *name* can name a job in every version of the API."""
    if not name:
        raise UsageError("--name must be set", hint="give the job a name, for example --name=vgg16")
    if len(name) > _LONGEST_JOB_NAME:
        raise UsageError(
            f"the job name {name} is too long: it has {len(name)} characters, and {_LONGEST_JOB_NAME} are allowed",
            hint="pods are named after the job, and their names are limited",
        )
    if not re.fullmatch(_NAME, name):
        raise UsageError(
            f"the job name {name!r} must consist of lower case alphanumeric characters or '-', "
            "and must start and end with an alphanumeric character",
            hint="for example --name=vgg16-4gpu",
        )


def check_namespace(namespace: str) -> None:
    """Raise ``UsageError`` unless *namespace* can be a namespace."""
    if not re.fullmatch(_NAME, namespace) or len(namespace) > 63:
        raise UsageError(
            f"{namespace!r} is not a valid namespace",
            hint="a namespace has lower case alphanumeric characters and '-', 63 at most",
        )


def is_object_name(name: str) -> bool:
    """Whether *name* can name an object such as a Secret."""
    return bool(re.fullmatch(_SUBDOMAIN, name)) and len(name) <= 253


def check_object_name(flag: str, name: str) -> None:
    """Raise ``UsageError`` unless *name* can name an object such as a Secret."""
    if not is_object_name(name):
        raise UsageError(
            f"{flag}: {name!r} is not a valid object name",
            hint="names have lower case alphanumeric characters, '-' and '.'",
        )


def check_key(flag: str, key: str) -> None:
    """Raise ``UsageError`` unless *key* is a qualified name such as ``example.com/rack``."""
    prefix, slash, name = key.rpartition("/")
    named = bool(re.fullmatch(_QUALIFIED, name)) and len(name) <= 63
    prefixed = not slash or (bool(re.fullmatch(_SUBDOMAIN, prefix)) and len(prefix) <= 253)
    if not (named and prefixed):
        raise UsageError(
            f"{flag}: {key!r} is not a qualified name",
            hint="write NAME or DOMAIN/NAME, for example team or example.com/team",
        )


def check_labels(flag: str, labels: Mapping[str, str]) -> None:
    """Raise ``UsageError`` unless every key and value can be a label."""
    for key, value in labels.items():
        check_key(flag, key)
        if len(value) > 63 or not re.fullmatch(_LABEL_VALUE, value):
            raise UsageError(
                f"{flag}: {value!r} cannot be the value of label {key!r}",
                hint="label values have at most 63 alphanumeric characters, '-', '_' and '.'",
            )


def check_env_name(name: str) -> None:
    """Raise ``UsageError`` unless *name* can name an environment variable (printable ASCII without ``=``)."""
    if not re.fullmatch(_ENV_NAME, name):
        raise UsageError(
            f"--env: {name!r} cannot name an environment variable", hint="for example --env=NCCL_DEBUG=INFO"
        )
