"""Schedulers and operators that a cluster runs, recognized by their Deployments.

Names and images are those of the projects' own manifests and charts.
"""

import re
from collections.abc import Iterable, Iterator

from arena_topo.cluster.capabilities.system_namespaces import is_system
from arena_topo.model.notation.shapes import Each, Part, count, fitted, name, text
from arena_topo.model.objects import Object
from arena_topo.model.plan.capabilities import Program

_IMAGES = {
    "mpi-operator": r"(^|/)mpi-operator",
    "training-operator": r"(^|/)training-operator",
    "volcano": r"(^|/)vc-scheduler",
    "koordinator": r"(^|/)koord-scheduler",
    "coscheduling": r"(^|/)scheduler-plugins/kube-scheduler$",
    "kueue": r"(^|/)kueue$",
    "yunikorn": r"(^|/)yunikorn$",
    "hami": r"(^|/)(hami|vgpu)$",
    "kai": r"(^|/)kai-scheduler/scheduler$",
}
"""Patterns of images without tag, for Deployments that a chart's release has renamed."""

_NAMES = {
    "mpi-operator": r"mpi-operator",
    "training-operator": r"training-operator",
    "volcano": r"volcano-scheduler",
    "koordinator": r"koord-scheduler",
    "coscheduling": r"scheduler-plugins-scheduler",
    "kueue": r"kueue-controller-manager",
    "yunikorn": r"yunikorn-scheduler",
    "hami": r"(.*-)?hami-scheduler",
    "kai": r"kai-scheduler(-default)?",
}
"""Patterns of the whole names of Deployments, where a chart's release has kept them."""

_SHARED_IMAGES = frozenset({"hami", "yunikorn"})
"""Projects that ship their scheduler and other programs in one image."""

_GANG_FLAGS = re.compile(r"^--?gang-schedul(?:ing|er-name)(?:=(.*))?$")


_CONTAINER = Part({"image": text, "command": Each(text), "args": Each(text)})
_POD = Part({"spec": Part({"containers": Each(_CONTAINER)})})
_DEPLOYMENT = Part(
    {
        "metadata": Part({"name": name, "namespace": name}, {"name": "", "namespace": ""}),
        "spec": Part({"template": _POD}),
        "status": Part({"readyReplicas": count}),
    },
    {"metadata": {"name": "", "namespace": ""}},
)
"""What is read of a Deployment, which anybody may have written."""


def find_programs(deployments: Iterable[Object]) -> dict[str, Program]:
    """Return the programs by their kind (``volcano``, ``mpi-operator``); of several of a kind the first that is ready.

    Those in other namespaces than the system's may be anybody's, and would decide how the jobs of all are submitted.
    """
    programs: dict[str, Program] = {}
    for deployment in (fitted(item, _DEPLOYMENT) for item in deployments):
        if not is_system(deployment["metadata"].get("namespace", "")):
            continue
        for kind in _kinds(deployment):
            program = _program(deployment)
            # An old release may still be there, scaled down.
            if kind not in programs or (program.ready and not programs[kind].ready):
                programs[kind] = program
    return programs


def _kinds(deployment: Object) -> Iterator[str]:
    own_name = deployment["metadata"]["name"]
    images = [_without_tag(str(container.get("image", ""))) for container in _containers(deployment)]
    for kind, pattern in _NAMES.items():
        if re.fullmatch(pattern, own_name) or any(_matches(kind, own_name, image) for image in images):
            yield kind


def _matches(kind: str, name: str, image: str) -> bool:
    """Whether *image* is of *kind*; where its image is shared, the name must say that it is the scheduler."""
    return bool(re.search(_IMAGES[kind], image)) and (kind not in _SHARED_IMAGES or "scheduler" in name)


def _without_tag(image: str) -> str:
    """Return an image without digest and tag."""
    image = image.partition("@")[0]
    # A registry may have a port, so that the first colon need not begin the tag: registry:5000/kueue/kueue:v0.19.
    head, slash, last = image.rpartition("/")
    return head + slash + last.partition(":")[0]


def _program(deployment: Object) -> Program:
    meta, status = deployment["metadata"], deployment.get("status") or {}
    return Program(
        name=meta["name"],
        namespace=meta.get("namespace", ""),
        ready=(status.get("readyReplicas") or 0) > 0,
        gangs=_gangs(_arguments(deployment)),
    )


def _gangs(arguments: list[str]) -> str:
    """Return the gang scheduler that an operator's arguments name, by Go's rules for flags."""
    for index, argument in enumerate(arguments):
        if match := _GANG_FLAGS.match(argument):
            # Without an equals sign the value is the next word.
            following = arguments[index + 1] if index + 1 < len(arguments) else ""
            return following if match[1] is None else str(match[1])
    return ""


def _arguments(deployment: Object) -> list[str]:
    return [
        str(argument)
        for container in _containers(deployment)
        for key in ("command", "args")
        for argument in container.get(key) or ()
    ]


def _containers(deployment: Object) -> list[Object]:
    spec = ((deployment.get("spec") or {}).get("template") or {}).get("spec") or {}
    return list(spec.get("containers") or ())
