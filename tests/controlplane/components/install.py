"""What a control plane holds before a test begins: custom
resources, KWOK's stages, the second scheduler's config.
"""

import json
from pathlib import Path
from typing import cast

import yaml

from tests.controlplane.binaries.ensure import Built
from tests.controlplane.components.commands import Site
from tests.controlplane.components.options import Options
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.paths import SOURCES


def definitions(built: Built, options: Options) -> list[Object]:
    """Return the custom resource definitions that ``options`` ask for."""
    paths = built.manifests("crd-*.yaml") if options.nodes else []
    if options.mpijob is not None:
        paths.append(built.manifest(f"mpijob-{options.mpijob}.yaml"))
    if options.coscheduling:
        paths.append(built.manifest("podgroup.yaml"))
    for operator in options.operators:
        paths += built.manifests(f"{operator}-crds/*.yaml")
    documents = [document for path in paths for document in load(path)]
    return [document for document in documents if document["kind"] == "CustomResourceDefinition"]


def established(kube: Kube, wanted: list[Object]) -> bool:
    """Tell whether the API server's discovery names the served versions of all ``wanted`` definitions."""
    try:
        for crd in wanted:
            group, kind = crd["spec"]["group"], crd["spec"]["names"]["kind"]
            for version in crd["spec"]["versions"]:
                if version["served"]:
                    kube.list(f"{group}/{version['name']}", kind, limit="1")
    except KubeError as error:
        if error.code != 404:
            raise
        return False
    return True


def stages(kube: Kube, built: Built) -> None:
    """Install what KWOK does to nodes (its own stages) and to pods (ours)."""
    files = [*built.manifests("node-*.yaml"), SOURCES / "stages" / "pods.yaml"]
    for stage in (stage for path in files for stage in load(path)):
        kube.apply(stage)


def namespace(name: str) -> Object:
    """Return a Namespace object."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def coscheduling_config(site: Site) -> Path:
    """Write the second scheduler's configuration and return its path."""
    profile = {
        "schedulerName": "scheduler-plugins-scheduler",
        "plugins": {
            "multiPoint": {"enabled": [{"name": "Coscheduling"}]},
            "queueSort": {"enabled": [{"name": "Coscheduling"}], "disabled": [{"name": "*"}]},
        },
        "pluginConfig": [{"name": "Coscheduling", "args": {"permitWaitingTimeSeconds": 10}}],
    }
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(site.kubeconfig)},
        "profiles": [profile],
    }
    path = site.folder / "coscheduling.yaml"
    path.write_text(json.dumps(document))
    return path


def load(path: Path) -> list[Object]:
    """Return the objects in the YAML file at *path*."""
    # The definitions of some operators take megabytes, which Python's own reader would take seconds for.
    documents = yaml.load_all(path.read_text(), Loader=getattr(yaml, "CSafeLoader", yaml.SafeLoader))
    return [cast("Object", document) for document in documents if document]
