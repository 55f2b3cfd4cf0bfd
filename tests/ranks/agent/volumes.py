"""The volumes of a pod as folders, with the files, links and modes that a kubelet leaves."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from tests.controlplane.kube import Object
from tests.ranks.agent.environment import ReadData, ReadField

_FOLDER_MODE = 0o1777
"""So a kubelet leaves the folder of a Secret; sshd's StrictModes refuses such a ``/root/.ssh``."""
_FILE_MODE = 0o644
_UNITS = {"": 1, "k": 10**3, "M": 10**6, "G": 10**9, "Ki": 2**10, "Mi": 2**20, "Gi": 2**30, "Ti": 2**40}
_MEMORY = "2Gi"


@dataclass(frozen=True, slots=True)
class Volume:
    """A folder, and what must be mounted on it inside the
    container's mount namespace: a size in bytes, or nothing.
    """

    folder: Path
    memory: int = 0


def volumes(pod: Object, folder: Path, data: ReadData, field: ReadField, token: str) -> dict[str, Volume]:
    """Make the volumes of *pod* below *folder* and return them by name."""
    return {
        each["name"]: _volume(each, folder / each["name"], data, field, token)
        for each in pod["spec"].get("volumes") or []
    }


def mounts(container: Object, made: Mapping[str, Volume]) -> list[str]:
    """Return lines of shell that mount a container's volumes below ``$R``."""
    lines = [
        f'mount -t tmpfs -o mode=1777,size={volume.memory} tmpfs "{volume.folder}"'
        for volume in made.values()
        if volume.memory
    ]
    # A parent before what lies in it, whatever order the pod names them in.
    for mount in sorted(container.get("volumeMounts") or [], key=lambda one: str(one["mountPath"])):
        source = made[mount["name"]].folder / mount.get("subPath", "")
        target = f"$R{mount['mountPath']}"
        lines.append(
            f'if [ -d "{source}" ]; then mkdir -p "{target}"; '
            f'else mkdir -p "$(dirname "{target}")"; touch "{target}"; fi; mount --bind "{source}" "{target}"'
        )
        if mount.get("readOnly"):
            lines.append(f'mount -o remount,bind,ro "{target}"')
    return lines


def size(quantity: str) -> int:
    """Return the bytes of a quantity such as ``64Mi``."""
    match = re.fullmatch(r"(\d+)(\D*)", quantity)
    if match is None or match[2] not in _UNITS:
        raise ValueError(f"no size: {quantity}")
    return int(match[1]) * _UNITS[match[2]]


def _volume(volume: Object, folder: Path, data: ReadData, field: ReadField, token: str) -> Volume:
    if "hostPath" in volume:
        return Volume(Path(volume["hostPath"]["path"]))
    folder.mkdir(parents=True)
    if "emptyDir" in volume:
        folder.chmod(0o777)
        source = volume["emptyDir"]
        memory = source.get("medium") == "Memory"
        return Volume(folder, size(source.get("sizeLimit", _MEMORY)) if memory else 0)
    projected = volume.get("projected")
    sources: Sequence[Object] = projected["sources"] if projected else [volume]
    mode = projected.get("defaultMode") if projected else None
    files: dict[str, tuple[bytes, int]] = {}
    for source in sources:
        files |= _files(source, mode, data, field, token)
    _write(folder, files)
    return Volume(folder)


def _files(
    source: Object, mode: int | None, data: ReadData, field: ReadField, token: str
) -> dict[str, tuple[bytes, int]]:
    """Return the files of one source of a volume: path -> (content, mode)."""
    for key, kind in (("configMap", "ConfigMap"), ("secret", "Secret")):
        if key in source:
            entry = source[key]
            found = data(kind, entry.get("secretName") or entry["name"])
            default = entry.get("defaultMode", mode if mode is not None else _FILE_MODE)
            items = entry.get("items") or [{"key": name, "path": name} for name in found]
            return {item["path"]: (found[item["key"]], item.get("mode", default)) for item in items}
    if "downwardAPI" in source:
        items = source["downwardAPI"].get("items") or []
        return {item["path"]: (field(item["fieldRef"]["fieldPath"]).encode(), _FILE_MODE) for item in items}
    if "serviceAccountToken" in source:
        return {source["serviceAccountToken"]["path"]: (token.encode(), _FILE_MODE)}
    raise ValueError(f"a volume that the agent does not know: {sorted(source)}")


def _write(folder: Path, files: Mapping[str, tuple[bytes, int]]) -> None:
    """Write files as a kubelet does, which can replace them all at once: behind the link ``..data``."""
    behind = folder / "..data_"
    behind.mkdir()
    (folder / "..data").symlink_to(behind.name)
    for name, (content, mode) in files.items():
        path = behind / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(content)
        path.chmod(mode)
        top = folder / Path(name).parts[0]
        if not top.is_symlink():
            top.symlink_to(Path("..data") / top.name)
    folder.chmod(_FOLDER_MODE)
