"""The environment and the command line of a container, as a kubelet composes them.

Source: ``makeEnvironmentVariables`` in k8s.io/kubernetes/pkg/kubelet/kubelet_pods.go, and
third_party/forked/golang/expansion for ``$(NAME)``.
"""

import re
from collections.abc import Callable, Mapping, Sequence

from tests.controlplane.kube import Object

_REFERENCE = re.compile(r"\$(\$|\(([^)]*)\))")
_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

ReadData = Callable[[str, str], Mapping[str, bytes]]
"""(kind, name) -> the data of a ConfigMap or a Secret."""
ReadField = Callable[[str], str]
"""A path of the downward API -> what the pod has there."""


def expanded(text: str, values: Mapping[str, str]) -> str:
    """Return *text* with ``$(NAME)`` replaced by its value,
    ``$$`` by ``$``, and unknown references as they are.
    """

    def value(match: re.Match[str]) -> str:
        return "$" if match[1] == "$" else values.get(match[2], match[0])

    return _REFERENCE.sub(value, text)


def image_environment(host: str) -> dict[str, str]:
    """Return what an image and its runtime set, before the pod's own variables."""
    return {"PATH": _PATH, "HOME": "/root", "HOSTNAME": host}


def environment(container: Object, data: ReadData, field: ReadField) -> dict[str, str]:
    """Return the variables that a pod gives *container*;
    later ones win, and may refer to those before them.
    """
    values: dict[str, str] = {}
    for source in container.get("envFrom") or []:
        for key, kind in (("configMapRef", "ConfigMap"), ("secretRef", "Secret")):
            if key in source:
                found = data(kind, source[key]["name"])
                values |= {source.get("prefix", "") + name: text.decode() for name, text in found.items()}
    for variable in container.get("env") or []:
        values[variable["name"]] = _value(variable, values, data, field)
    return values


def command(container: Object, values: Mapping[str, str]) -> list[str]:
    """Return the words of *container*'s command."""
    words: Sequence[str] = [*(container.get("command") or []), *(container.get("args") or [])]
    return [expanded(word, values) for word in words]


def _value(variable: Object, values: Mapping[str, str], data: ReadData, field: ReadField) -> str:
    source = variable.get("valueFrom")
    if not source:
        return expanded(variable.get("value", ""), values)
    if "fieldRef" in source:
        return field(source["fieldRef"]["fieldPath"])
    for key, kind in (("configMapKeyRef", "ConfigMap"), ("secretKeyRef", "Secret")):
        if key in source:
            return data(kind, source[key]["name"])[source[key]["key"]].decode()
    raise ValueError(f"variable {variable['name']} has a source that the agent does not know: {source}")
