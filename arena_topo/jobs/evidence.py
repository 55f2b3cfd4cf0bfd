"""What the controller saw of a job that does not get on, kept in a ConfigMap that goes with its job.

It has the answer of ``why`` as its document, and packed, for each pod, what was seen of its ranks
(``POD.looks.gz``) and the last lines of its log (``POD.log.gz``): as much as there is room for. Anyone who
may write ConfigMaps may write one like it, so that what is read is bounded and no name is trusted.
"""

import gzip
import json
import re
import zlib
from base64 import b64decode, b64encode
from collections.abc import Iterable, Mapping

from arena_topo.errors import DocumentError, NotFound
from arena_topo.kube.resources import CONFIG_MAPS
from arena_topo.kube.session import Session
from arena_topo.model.keys import MANAGED_BY, OWN_NAME
from arena_topo.model.objects import Object
from arena_topo.model.text.json import read_json
from arena_topo.model.text.words import plural

VERDICT = "verdict.json"
"""The file with the answer."""

EVIDENCE = ".hang"
"""How the names of these ConfigMaps end, which the admission policy knows."""

_PACKED = ".gz"
_NAME = re.compile(r"[a-z0-9][a-z0-9.-]{0,252}\.(looks|log)|left-out\.txt")

_MOST_KEPT = 900_000
"""Bytes of a ConfigMap as it is sent; the API server takes 1 MiB."""
_MOST_VERDICT, _FEW, _MOST_TEXT = 200_000, 20, 1000
"""Characters of the answer; a longer one keeps only so many ranks and groups, and so much of each text."""
_MOST_READ = 8 << 20
"""Bytes of one file when it is read."""


def evidence_name(kind: str, job: str) -> str:
    """Return the name of the ConfigMap with what was seen of *job*, of the kind *kind*."""
    return f"{job}.{kind.lower()}{EVIDENCE}"


def evidence_object(
    job: Object,
    verdict: Object,
    *,
    logs: Mapping[str, str],
    looks: Mapping[str, bytes],
    first: Iterable[str] = (),
) -> Object:
    """Return the ConfigMap with what was seen of *job*, the *logs* and the pods that are named *first*."""
    meta, text = job["metadata"], json.dumps(verdict)
    if len(text) > _MOST_VERDICT:
        text = json.dumps(_shortened(verdict))
    files = {f"{pod}.log": log.encode(errors="replace") for pod, log in logs.items()}
    for pod in [*(pod for pod in first if pod in looks), *looks]:
        files.setdefault(f"{pod}.looks", looks[pod])
    packed: dict[str, str] = {}
    left = _MOST_KEPT - len(text)
    for name, data in files.items():
        value = b64encode(gzip.compress(data, mtime=0)).decode()
        if len(value) + len(name) <= left:
            packed[f"{name}{_PACKED}"] = value
            left -= len(value) + len(name)
    more = len(files) - len(packed)
    note = {"left-out.txt": f"there was no room for {plural(more, 'file')}\n"} if more else {}
    owner = {"apiVersion": job["apiVersion"], "kind": job["kind"], "name": meta["name"], "uid": meta["uid"]}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": evidence_name(job["kind"], meta["name"]),
            "namespace": meta["namespace"],
            "labels": {MANAGED_BY: OWN_NAME},
            "ownerReferences": [owner],
        },
        "immutable": True,
        "data": {VERDICT: text, **note},
        "binaryData": packed,
    }


def kept_evidence(session: Session, job: Object) -> tuple[Object, dict[str, str]]:
    """Return the answer that was kept of *job*, and the other files by their names.

    Raises ``NotFound`` where nothing was kept, and ``DocumentError``.
    """
    name = evidence_name(job["kind"], job["metadata"]["name"])
    try:
        found = session.get(CONFIG_MAPS.path(session.namespace, name))
    except NotFound as error:
        raise NotFound(
            f"nothing was kept of the job {job['metadata']['name']}",
            hint="the controller keeps what it sees of jobs that were submitted with --on-hang",
            status=404,
        ) from error
    data, packed = found.get("data"), found.get("binaryData")
    if not isinstance(data, dict) or not isinstance(packed or {}, dict):
        raise DocumentError(f"the ConfigMap {name} holds no evidence")
    try:
        verdict = read_json(str(data[VERDICT]))
    except (KeyError, ValueError):
        verdict = None
    if not isinstance(verdict, dict):
        raise DocumentError(f"the ConfigMap {name} has no answer that can be read")
    files = {key: str(text) for key, text in data.items() if _NAME.fullmatch(key)}
    for key, text in (packed or {}).items():
        if _NAME.fullmatch(short := key.removesuffix(_PACKED)):
            files[short] = _unpacked(str(text))
    return verdict, files


def _unpacked(text: str) -> str:
    try:
        data = zlib.decompressobj(wbits=31).decompress(b64decode(text), _MOST_READ)
    except (ValueError, zlib.error) as error:
        raise DocumentError("a file of the evidence cannot be unpacked") from error
    return data.decode(errors="replace")


def _shortened(verdict: Object) -> Object:
    """Return *verdict* with only a few ranks and groups, and the beginning of each text."""
    return {
        key: value[:_MOST_TEXT]
        if isinstance(value, str)
        else [_shortened(each) for each in value[:_FEW]]
        if isinstance(value, list) and all(isinstance(each, dict) for each in value)
        else value[:_MOST_TEXT]
        if isinstance(value, list)
        else value
        for key, value in verdict.items()
    }
