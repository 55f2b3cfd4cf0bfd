"""Figures as a run would keep them, with numbers that are easy to follow."""

from benchmarks.worth.figures import Check, Figures, GangFigures

GANG = GangFigures(
    network="2 nodes of 4 GPUs",
    tiers=2,
    ranks=4,
    planned="aaaa",
    worst="abab",
    seeds=["abab", "aabb", "abab", "abab"],
    predicted={"16 MiB": 2.5, "step": 1.5},
    wires=None,
    measured={
        "abab": {
            "1 MiB": [(4.0, 1.0)],
            "16 MiB": [(8.0, 2.0)],
            "64 MiB": [(5.0, 1.0)],
            "step": [(3.0, 1.0)],
        },
        "aabb": {"1 MiB": [(2.0, 1.0)], "16 MiB": [(2.0, 1.0)], "step": [(1.5, 1.0)]},
    },
)
FIGURES = Figures(
    machine="2 cores, load 1.0 to 2.0",
    minutes=9.0,
    inside={"2 nodes of 4 GPUs": 2e8},
    gangs=[GANG],
    checks=[Check("planned", "aaaa", 0.5, 0.6)],
)
