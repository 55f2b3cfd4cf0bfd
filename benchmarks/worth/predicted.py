"""What ``arena-topo predict`` says of a ring before it runs, given what is known of the network."""

import json
from collections.abc import Sequence
from pathlib import Path
from statistics import median

from arena_topo.prediction.training import RingSpeed, all_reduce
from benchmarks.worth.rings import MEBIBYTE, Ring, bytes_per_second
from benchmarks.worth.workloads import BATCH, FRAMEWORK, MODEL, RATE, SCALE
from tests.e2e.arena import Arena
from tests.ranks.fabric import Fabric

_GIGA = 1e9


class Predictor:
    """``predict`` with a placement and a calibration file of the user's own, which *folder* keeps.

    The placement has the ring, the domains of its nodes, and the bandwidth inside of a node, ``inside`` bytes
    per second, which is measured beforehand; the calibration has the rates of the uplinks. All are ``SCALE``
    times as large, as the step's gradients are.
    """

    def __init__(self, arena: Arena, fabric: Fabric, inside: float, folder: Path) -> None:
        self._arena, self._fabric, self._inside = arena, fabric, inside
        self._calibration, self._placement = folder / "calibration.json", folder / "placement.json"
        self._calibration.write_text(json.dumps(_calibration(fabric)), "utf-8")

    def seconds(self, ring: Ring) -> dict[str, float]:
        """Return how long an all-reduce of 16 MiB and a step take on *ring*."""
        self._placement.write_text(json.dumps(_document(ring, self._fabric, self._inside)), "utf-8")
        workload = (
            f"--model={MODEL}",
            f"--framework={FRAMEWORK}",
            f"--batch={BATCH}",
            f"--images-per-second={RATE}",
        )
        known = (f"--placement={self._placement}", f"--calibration={self._calibration}")
        outcome = self._arena("predict", *workload, *known, "-o", "json")
        if outcome.code:
            raise RuntimeError(outcome.err)
        answer = json.loads(outcome.out)
        speed = RingSpeed(answer["busbw"]["likely"] / SCALE, 0.0)
        return {
            "16 MiB": all_reduce(16 * MEBIBYTE, len(ring), speed),
            "step": answer["forecasts"][0]["stepSeconds"]["likely"],
        }

    def ratios(self, planned: Ring, seeds: Sequence[Ring]) -> dict[str, float]:
        """Return how many times as long both take in the middle of *seeds* as on the *planned* ring."""
        ahead = self.seconds(planned)
        known = {ring: self.seconds(ring) for ring in set(seeds)}
        return {work: median(known[ring][work] for ring in seeds) / ahead[work] for work in ahead}


def _document(ring: Ring, fabric: Fabric, inside: float) -> dict[str, object]:
    """Return the placement of *ring* as ``plan -o json`` has it, as far as ``predict`` reads it."""
    busbw = dict.fromkeys(("low", "likely", "high"), inside * SCALE / _GIGA)
    across = None if len(set(ring)) == 1 else "tcp"
    return {
        "workers": len(ring),
        "gpus": 1,
        "prediction": {"busbw": busbw, "inside": "pod-isolated socket", "across": across},
        "slots": [{"worker": rank, "node": node} for rank, node in enumerate(ring)],
        "shares": [{"node": node.name, "domain": [*reversed(node.switches)]} for node in fabric.nodes],
    }


def _calibration(fabric: Fabric) -> dict[str, object]:
    overlap = dict.fromkeys(("low", "likely", "high"), 1.0)
    return {
        "apiVersion": "arena-topo.dev/v1alpha1",
        "kind": "Calibration",
        "bandwidths": {"uplinks": [bytes_per_second(rate) * SCALE / _GIGA for rate in fabric.rates]},
        "frameworks": [{"name": FRAMEWORK, "exchange": "horovod", "overlap": overlap}],
        "speeds": [],
    }
