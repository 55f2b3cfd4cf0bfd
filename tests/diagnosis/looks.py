"""Looks at ranks as the sources make them, two seconds apart."""

from arena_topo.diagnosis.verdict import Frame, Look, Rank

REDUCE = (
    Frame("sched_yield", "libc.so.6"),
    Frame("PMPI_Allreduce", "libmpi.so.40"),
    Frame("step", "train.py:5"),
)
BARRIER = (Frame("PMPI_Barrier", "libmpi.so.40"), Frame("step", "train.py:9"))
LOAD = (Frame("clock_nanosleep", "libc.so.6"), Frame("load", "train.py:4"), Frame("<module>", "train.py:7"))
TRAIN = (Frame("forward", "train.py:30"), Frame("<module>", "train.py:7"))


def rank(
    number: int,
    *stacks: tuple[Frame, ...],
    cpu: float = 0.0,
    moved: int | None = 0,
    state: str = "S",
    wait: str = "",
    pause: float = 2.0,
) -> Rank:
    """Return a rank with a look for each of *stacks*, which
    used *cpu* seconds and moved so many bytes in between.
    """
    looks = tuple(
        Look(
            at=100 + pause * place,
            state=state,
            wait=wait,
            cpu=cpu * place,
            moved=None if moved is None else moved * place,
            stack=stack,
        )
        for place, stack in enumerate(stacks)
    )
    return Rank(
        number=number, pod=f"job-worker-{number // 2}", node=f"n{number // 2}", gpu=number % 2, looks=looks
    )
