"""Code that is fetched before the job starts, as Arena fetches it: an init container, and a volume that both mount.

Source: kubeflow/arena 0.15.5, charts/mpijob/templates/mpijob.yaml and pkg/argsbuilder/submit_sync_code.go.
"""

from arena_topo.model.job.job_spec import CodeSync
from arena_topo.model.objects import Object

_VOLUME, _ROOT = "code-sync", "/code"


def volume() -> Object:
    """Return the volume of the code."""
    return {"name": _VOLUME, "emptyDir": {}}


def mount(working_dir: str) -> Object:
    """Return where the job finds the code: ``code`` in its working directory, ``/code`` without one."""
    return {"name": _VOLUME, "mountPath": f"{working_dir.rstrip('/')}{_ROOT}"}


def init_container(code: CodeSync, *, pull_policy: str, env: list[Object], resources: Object) -> Object:
    """Return the container that fetches *code*, with the job's own *env* (proxies, credentials) and *resources*."""
    container: Object = {
        "name": "init-code",
        "image": code.image,
        "imagePullPolicy": pull_policy,
        "env": env,
        "volumeMounts": [{"name": _VOLUME, "mountPath": _ROOT}],
    }
    if resources:
        container["resources"] = resources
    if code.mode == "rsync":
        return {**container, "command": ["rsync", "-avP", code.source, _ROOT]}
    # These names are those of git-sync 3; version 4 knows them too.
    git = {
        "GIT_SYNC_REPO": code.source,
        "GIT_SYNC_DEST": project_name(code.source),
        "GIT_SYNC_ROOT": _ROOT,
        "GIT_SYNC_ONE_TIME": "true",
    }
    return {**container, "env": [*env, *({"name": name, "value": value} for name, value in git.items())]}


def project_name(source: str) -> str:
    """Return the folder of a repository's code, by its URL: ``vgg16`` of ``https://git.example.com/ml/vgg16.git``."""
    return source.strip("/").rpartition("/")[2].removesuffix(".git")
