"""What a job names and does not bring with it: claims, Secrets, ConfigMaps, accounts and queues.

What is missing is a warning and not a refusal. Kubernetes lets pods name what is created later: kubelets and
controllers try again until it is there, and some users do create a job first and its Secret afterwards. Of
what the user cannot read nothing is said.
"""

from collections.abc import Iterator
from itertools import chain, islice
from typing import Any, NamedTuple

from arena_topo.cluster.capabilities import KUEUE_GROUP, KUEUE_VERSIONS
from arena_topo.kube.resources import Resource
from arena_topo.kube.served import ServedApis
from arena_topo.kube.session import Session
from arena_topo.manifest.render import Manifest
from arena_topo.model.keys import KUEUE_QUEUE
from arena_topo.model.objects import Object

_MOST = 32
"""Names that are looked up; templates of users may have any number."""


class _Named(NamedTuple):
    """An object of the job's namespace, and what happens to the job without it."""

    kind: str
    name: str
    otherwise: str


_WAIT = "pods that use it wait until it is created"
_NO_POD = "no pod is created until it is"
_NO_CREDENTIALS = "images are pulled without its credentials"

_PLURALS = {
    "PersistentVolumeClaim": "persistentvolumeclaims",
    "Secret": "secrets",
    "ConfigMap": "configmaps",
    "ServiceAccount": "serviceaccounts",
}

# Kueue's queue of a namespace, and those of schedulers, which all namespaces share.
_QUEUES = {
    "kueue": ("LocalQueue", KUEUE_GROUP, KUEUE_VERSIONS, "localqueues"),
    "volcano": ("Queue", "scheduling.volcano.sh", ("v1beta1",), "queues"),
    "kai": ("Queue", "scheduling.run.ai", ("v2",), "queues"),
}


def missing_references(session: Session, manifest: Manifest, backend: str, queue: str) -> Iterator[str]:
    """Yield a sentence for each object that *manifest* names and that does not exist.

    *queue* is that of the gang's *backend*. One call for each name; of the objects themselves, Secrets among
    them, only the metadata is sent.
    """
    namespace = str(manifest.job["metadata"]["namespace"])
    brought = {(str(item["kind"]), str(item["metadata"]["name"])) for item in manifest.companions}
    templates = (replicas.pods for replicas in manifest.kind.replicas(manifest.job))
    named = dict.fromkeys(chain.from_iterable(map(_named_by, templates)))
    for kind, name, otherwise in islice((one for one in named if one[:2] not in brought), _MOST):
        if session.exists(Resource("", "v1", _PLURALS[kind]).path(namespace, name)) is False:
            yield f"{kind} {name} does not exist in namespace {namespace}: {otherwise}"
    yield from _missing_queue(session, manifest, backend, queue)


def _missing_queue(session: Session, manifest: Manifest, backend: str, queue: str) -> Iterator[str]:
    metadata = manifest.job["metadata"]
    # A manifest may be in a queue of Kueue without any flag.
    if own := _mapping(metadata.get("labels")).get(KUEUE_QUEUE):
        backend, queue = "kueue", str(own)
    if not queue or backend not in _QUEUES:
        return
    kind, group, versions, plural = _QUEUES[backend]
    version = ServedApis(session).preferred(group, versions)
    is_of_namespace = kind == "LocalQueue"
    path = Resource(group, version, plural, namespaced=is_of_namespace).path(metadata["namespace"], queue)
    if version and session.exists(path) is False:
        where = f" in namespace {metadata['namespace']}" if is_of_namespace else ""
        yield f"{kind} {queue} does not exist{where}: the job waits until it is created"


def _named_by(template: Object) -> Iterator[_Named]:
    """Yield what the pods of *template* cannot do without.

    A template of a manifest is not validated yet: what has another shape than the API's names nothing.
    """
    spec = _mapping(template.get("spec"))
    yield from _of("ServiceAccount", spec.get("serviceAccountName"), _NO_POD)
    for volume in _mappings(spec.get("volumes")):
        claim = _mapping(volume.get("persistentVolumeClaim"))
        yield from _of("PersistentVolumeClaim", claim.get("claimName"))
        yield from _required("Secret", volume.get("secret"), "secretName")
        yield from _required("ConfigMap", volume.get("configMap"))
        for source in _mappings(_mapping(volume.get("projected")).get("sources")):
            yield from _required("Secret", source.get("secret"))
            yield from _required("ConfigMap", source.get("configMap"))
    for container in (*_mappings(spec.get("initContainers")), *_mappings(spec.get("containers"))):
        for source in _mappings(container.get("envFrom")):
            yield from _required("Secret", source.get("secretRef"))
            yield from _required("ConfigMap", source.get("configMapRef"))
        for variable in _mappings(container.get("env")):
            value = _mapping(variable.get("valueFrom"))
            yield from _required("Secret", value.get("secretKeyRef"))
            yield from _required("ConfigMap", value.get("configMapKeyRef"))
    for secret in _mappings(spec.get("imagePullSecrets")):
        yield from _of("Secret", secret.get("name"), _NO_CREDENTIALS)


def _required(kind: str, source: object, key: str = "name") -> Iterator[_Named]:
    named = _mapping(source)
    if not named.get("optional"):
        yield from _of(kind, named.get(key))


def _of(kind: str, name: object, otherwise: str = _WAIT) -> Iterator[_Named]:
    if isinstance(name, str) and name:
        yield _Named(kind, name, otherwise)


def _mapping(value: object) -> dict[str, Any]:
    return value if isinstance(value, dict) else {}


def _mappings(value: object) -> list[dict[str, Any]]:
    return [item for item in value if isinstance(item, dict)] if isinstance(value, list) else []
