"""What ``arena-topo predict`` says of a ring before it runs, given what is known of the network."""

import json
from pathlib import Path

from arena_topo.prediction.training import RingSpeed, all_reduce
from benchmarks.worth.rings import MEBIBYTE, Ring, bytes_per_second
from benchmarks.worth.workloads import BATCH, FRAMEWORK, MODEL, RATE, SCALE
from tests.e2e.arena import Arena
from tests.ranks.fabric import Fabric

_GIGA = 1e9


class Predictor:
    """``predict`` with a calibration file of the user's own, which *folder* keeps.

    The file has two bandwidths: that inside of a node, ``inside`` bytes per second, which is measured
    beforehand, and that between nodes, which is the rate of the uplinks. All are ``SCALE`` times as large, as
    the step's gradients are.
    """

    def __init__(self, arena: Arena, fabric: Fabric, inside: float, folder: Path) -> None:
        self._arena = arena
        self._file = folder / "calibration.json"
        self._file.write_text(json.dumps(_calibration(fabric, inside)), "utf-8")
        self._known: dict[tuple[int, str], dict[str, float]] = {}

    def seconds(self, ring: Ring) -> dict[str, float]:
        """Return how long an all-reduce of 16 MiB and a step take
        on *ring*: what counts is whether it leaves its node.
        """
        transport = "isolated" if len(set(ring)) == 1 else "tcp"
        key = len(ring), transport
        if key not in self._known:
            self._known[key] = self._predicted(*key)
        return self._known[key]

    def _predicted(self, ranks: int, transport: str) -> dict[str, float]:
        workload = (
            f"--model={MODEL}",
            f"--framework={FRAMEWORK}",
            f"--batch={BATCH}",
            f"--images-per-second={RATE}",
        )
        gang = (f"--ranks={ranks}", f"--transport={transport}", f"--calibration={self._file}")
        outcome = self._arena("predict", *workload, *gang, "-o", "json")
        if outcome.code:
            raise RuntimeError(outcome.err)
        answer = json.loads(outcome.out)
        speed = RingSpeed(answer["busbw"]["likely"] / SCALE, 0.0)
        return {
            "16 MiB": all_reduce(16 * MEBIBYTE, ranks, speed),
            "step": answer["forecasts"][0]["stepSeconds"]["likely"],
        }


def _calibration(fabric: Fabric, inside: float) -> dict[str, object]:
    rates = sorted(map(bytes_per_second, fabric.rates))
    # A ring is as fast as its slowest part; only one that stays below a switch is spared the spine.
    between = {"low": rates[0], "likely": rates[0], "high": rates[-1]}
    inner = dict.fromkeys(("low", "likely", "high"), inside)
    overlap = dict.fromkeys(("low", "likely", "high"), 1.0)
    return {
        "apiVersion": "arena-topo.dev/v1alpha1",
        "kind": "Calibration",
        "bandwidths": {"podIsolatedSocket": _scaled(inner), "tcp": _scaled(between)},
        "frameworks": [{"name": FRAMEWORK, "exchange": "horovod", "overlap": overlap}],
        "speeds": [],
    }


def _scaled(rates: dict[str, float]) -> dict[str, float]:
    return {name: rate * SCALE / _GIGA for name, rate in rates.items()}
