"""What a list of pins costs a real API server by its size: CPU seconds for one pod, next to the same text
under another key.

    python -m benchmarks.controller.policy [OTHER.json ...]

starts an API server, installs the admission policy of this checkout, and then each of OTHER, policies as
``arena-topo cluster setup -o json`` of another version prints them, or their ``spec`` alone. Anybody may
write such a list into a pod, so that no list of 256 kB may cost more than a tenth of a second.
"""

import json
import os
import sys
from collections.abc import Iterator
from pathlib import Path

from arena_topo.pin.admission import policy_objects
from arena_topo.pin.run_lists import pin_annotations
from tests.controlplane.components.options import api_only
from tests.controlplane.kube import Kube, KubeError, Object
from tests.controlplane.plane import ControlPlane
from tests.controlplane.polling import eventually
from tests.e2e.pinning import acts, tried

_REPEATED = 5
_ENOUGH = 5.0
"""CPU seconds after which a text is not tried again."""
_TICKS = os.sysconf("SC_CLK_TCK")
_NODES, _GPUS, _CLAIMS, _OFFSET = (
    f"arena-topo.dev/{key}" for key in ("pin-nodes", "pin-gpus", "pin-claims", "pin-offset")
)


def lists() -> Iterator[tuple[str, dict[str, str]]]:
    """Yield annotations, honest ones first, and what each is called."""
    for count in (1_000, 5_000):
        yield f"{count:,} nodes", pin_annotations(nodes=[f"gpu-node-{i:09d}" for i in range(count)])
    both = pin_annotations(
        nodes=[f"gpu-node-{i:09d}" for i in range(5_000)], claims=[f"job-gpus-{i}" for i in range(5_000)]
    )
    yield "5,000 nodes and claims", both
    for count in (5_000, 50_000, 125_000):
        yield f"{count:,} entries without a colon", {_NODES: ",".join(["x"] * count)}
    for name, text in (
        ("commas", "," * 260_000),
        ("digits", "1" * 260_000),
        ("colons", ":" * 260_000),
        ("10,001 runs", ",".join(f"{i}:" for i in range(10_001))),
        ("37,000 runs", ",".join(f"{i}:" for i in range(37_000))),
        ("86,000 times the same run", ",".join(["0:"] * 86_000)),
        ("one run with a long value", "0:" + "x" * 260_000),
    ):
        yield name, {_NODES: text}
    yield "long UUIDs", {_GPUS: "0:" + "+" * 260_000}
    yield "a long claim", {_CLAIMS: "0:" + "x" * 260_000}
    yield "an offset of digits", {_NODES: "0:a,9:", _OFFSET: "9" * 260_000}
    third = ",".join(f"{i}:" for i in range(10_201))
    yield "three lists of 10,201 runs", {_NODES: third, _GPUS: third, _CLAIMS: third}


def cpu_seconds(process: int) -> float:
    """Return the time that *process* has used."""
    # After the name, which may hold blanks: utime and stime are the 14th and the 15th field (proc(5)).
    fields = Path(f"/proc/{process}/stat").read_text("utf-8").rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def cost(kube: Kube, process: int, annotations: dict[str, str]) -> tuple[float, str]:
    """Return the CPU seconds of *process* for a pod with *annotations*, and what became of the pod."""
    before, done, outcome = cpu_seconds(process), 0, ""
    while done < _REPEATED and cpu_seconds(process) - before < _ENOUGH:
        done += 1
        try:
            made = tried(kube, "job-worker-4", annotations)
            outcome = "pinned" if made["spec"].get("nodeSelector") else "not pinned"
        except KubeError as error:
            outcome = f"refused, {str(error)[:3]}"
    return (cpu_seconds(process) - before) / done, outcome


def install(kube: Kube, spec: Object | None) -> None:
    """Install the policy with *spec*, this checkout's if there is none, and return once it acts."""
    policy, binding = policy_objects("v1", gangs=False)
    for item in (binding, policy):
        if kube.find(item["apiVersion"], item["kind"], item["metadata"]["name"]):
            kube.delete(item["apiVersion"], item["kind"], item["metadata"]["name"])
    eventually(lambda: not acts(kube), "the policy before it to be gone")
    for item in ({**policy, "spec": spec} if spec else policy, binding):
        kube.apply(item)
    eventually(lambda: acts(kube), "the policy to act")


def main(*files: str) -> None:
    """Print a table for this checkout's policy, and one for each of *files*."""
    specs: dict[str, Object | None] = {"this checkout": None}
    for name in files:
        document = json.loads(Path(name).read_text("utf-8"))
        specs[name] = document.get("spec", document)
    with ControlPlane(api_only(None)) as plane:
        process = plane.processes.pids["kube-apiserver"]
        account = {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "default"}}
        eventually(lambda: plane.kube.find("v1", "Namespace", "default"), "the namespace")
        plane.kube.create(account, "default")
        for title, spec in specs.items():
            install(plane.kube, spec)
            print(f"\n{title}\n{'bytes':>8} {'other key':>10} {'CPU s':>8}  list")
            for name, annotations in lists():
                size = sum(map(len, annotations.values()))
                other, _ = cost(
                    plane.kube, process, {f"note.{key}": text for key, text in annotations.items()}
                )
                own, outcome = cost(plane.kube, process, annotations)
                print(f"{size:8,} {other:10.3f} {own:8.3f}  {name}: {outcome}", flush=True)


if __name__ == "__main__":
    main(*sys.argv[1:])
