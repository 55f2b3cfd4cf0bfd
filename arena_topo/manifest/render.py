"""A job, a version of the API, a cluster's habits: the objects that the API server gets."""

import base64
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from arena_topo.errors import DocumentError, UsageError
from arena_topo.manifest import pods
from arena_topo.manifest.templates import render as render_template
from arena_topo.model import keys
from arena_topo.model.job.job_spec import JobSpec
from arena_topo.model.job.mpijob import ApiVersion
from arena_topo.model.job.validation import check_for_version
from arena_topo.model.notation.yaml_documents import load
from arena_topo.model.objects import Object

_LARGEST_CONFIG_MAP = 1024 * 1024


@dataclass(frozen=True, slots=True)
class Habitat:
    """What the cluster has that shapes the manifest: its MPIJob version, and the resource of its GPUs."""

    version: ApiVersion = ApiVersion.V2BETA1
    gpu_resource: str = keys.NVIDIA_GPU


@dataclass(frozen=True, slots=True)
class Manifest:
    """The job, the objects that belong to it, and what the user should know about them."""

    job: Object
    companions: tuple[Object, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def objects(self) -> tuple[Object, ...]:
        """Every object, the job first."""
        return (self.job, *self.companions)


def manifest(job: JobSpec, habitat: Habitat, *, template: str = "") -> Manifest:
    """Return the objects of *job*; *template* is the user's own file or folder of templates.

    Raises ``UsageError`` for what this version of the API cannot express, ``DocumentError`` for a bad template.
    """
    check_for_version(job.name, job.workers, habitat.version)
    _check_expressible(job, habitat.version)
    name = f"mpijob.{habitat.version.value}.yaml.j2"
    rendered = _parse(name, render_template(name, _values(job, habitat), given=template))
    return Manifest(job=rendered, companions=_companions(job), notes=_notes(job, habitat))


def _values(job: JobSpec, habitat: Habitat) -> Mapping[str, Any]:
    network = uses_host_network(job, habitat)
    common = {
        "job": job,
        "labels": pods.job_labels(job),
        "annotations": pods.job_annotations(job),
        "launcher_resources": pods.launcher(job, host_network=network).resources,
    }
    if habitat.version is ApiVersion.V1ALPHA1:
        return {**common, "pod": pods.shared(job, gpu_resource=habitat.gpu_resource, host_network=network)}
    return {
        **common,
        "worker": pods.worker(job, gpu_resource=habitat.gpu_resource, host_network=network),
        "launcher": pods.launcher(job, host_network=network),
    }


def uses_host_network(job: JobSpec, habitat: Habitat) -> bool:
    """Whether the pods share the node's network: asked for, or Arena's way on the vendor's cluster.

    Not by itself under v2beta1: there every worker runs an ssh server on port 22, and two of them on one node
    would collide.
    """
    vendor = job.topology and habitat.gpu_resource == keys.ACK_GPU
    return job.pod.host_network or (vendor and habitat.version is not ApiVersion.V2BETA1)


def _check_expressible(job: JobSpec, version: ApiVersion) -> None:
    if version is not ApiVersion.V1ALPHA1:
        return
    asked = {
        "--ttl-after-finished": job.run.ttl is not None,
        "--running-timeout": job.run.timeout is not None,
        "--launcher-selector": bool(job.launcher.selector),
        "--slots-per-worker": job.slots != max(job.gpus, 1),
    }
    for flag, given in asked.items():
        if given:
            raise UsageError(
                f"{flag} cannot be expressed in MPIJob {version.value}, the version that this cluster serves",
                hint="leave it out, or ask the cluster's admin for mpi-operator 0.5 or later (v2beta1)",
            )


def _parse(name: str, text: str) -> Object:
    document = load(text, name=f"what template {name} renders to")
    if not isinstance(document, dict) or not document.get("kind") or not document.get("metadata"):
        raise DocumentError(f"template {name} does not render to one Kubernetes object")
    return document


def _companions(job: JobSpec) -> tuple[Object, ...]:
    if not job.pod.files:
        return ()
    total = sum(len(file.content) for file in job.pod.files)
    if total > _LARGEST_CONFIG_MAP:
        raise UsageError(
            f"--config-file: the files have {total} bytes together, and a ConfigMap takes 1048576",
            hint="put large files on a volume and mount it with --data",
        )
    texts, binaries = {}, {}
    for at, file in enumerate(job.pod.files):
        try:
            texts[f"file-{at}"] = file.content.decode()
        except UnicodeDecodeError:
            binaries[f"file-{at}"] = base64.b64encode(file.content).decode()
    metadata = {"name": pods.files_name(job), "namespace": job.namespace, "labels": pods.job_labels(job)}
    config: Object = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata}
    return (
        {**config, **({"data": texts} if texts else {}), **({"binaryData": binaries} if binaries else {})},
    )


def _notes(job: JobSpec, habitat: Habitat) -> tuple[str, ...]:
    notes = []
    if uses_host_network(job, habitat) and habitat.version is ApiVersion.V2BETA1 and job.workers > 1:
        notes.append(
            "with --hostNetwork every worker's ssh server takes port 22 of its node: "
            "workers that share a node cannot all start"
        )
    return tuple(notes)
