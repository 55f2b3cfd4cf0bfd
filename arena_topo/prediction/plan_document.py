"""Reading from a plan's document what a forecast needs of it: how many ranks, and what they exchange over."""

from dataclasses import dataclass, replace

from arena_topo.errors import DocumentError
from arena_topo.model.notation.strict_documents import Part
from arena_topo.model.plan.placement import Prediction, Range, Transport


@dataclass(frozen=True, slots=True)
class PlannedGang:
    """The number of ranks of a gang, what it will probably see, and its GPUs' names as far as they are known."""

    ranks: int
    prediction: Prediction
    products: tuple[str, ...] = ()

    @property
    def transport(self) -> Transport:
        """What the farthest neighbours exchange over."""
        return self.prediction.across or self.prediction.inside

    def assuming(self, assumption: str) -> "PlannedGang":
        """Return the same gang with the further *assumption*."""
        assumptions = (*self.prediction.assumptions, assumption)
        return replace(self, prediction=replace(self.prediction, assumptions=assumptions))


def read_planned_gang(document: object, source: str) -> PlannedGang:
    """Return what the document of a placement says; its other fields are ignored.

    Fields are those of ``model.plan.placement.Placement``, by name, transports by value. Raises ``DocumentError`` naming
    the place in *source* and the reason.
    """
    top = Part(document, source)
    if top.has("placement"):
        top = top.part("placement")
    if not top.has("prediction"):
        raise DocumentError(
            f"{top.place} has no prediction",
            hint="give a placement, as `arena-topo plan -o json` prints it for a gang that fits",
        )
    workers, gpus = top.take("workers", int), top.take("gpus", int)
    if workers < 1 or gpus < 1:
        raise DocumentError(
            f"{top.place} has {workers} workers of {gpus} GPUs: expected at least one of each"
        )
    prediction = _prediction(top.part("prediction"), workers * gpus)
    return PlannedGang(workers * gpus, prediction, top.strings("products") if top.has("products") else ())


def _prediction(part: Part, ranks: int) -> Prediction:
    across = _transport(part, "across") if part.has("across") else None
    bandwidth = part.part("busbw")
    low, likely, high = (bandwidth.take(key, float) for key in ("low", "likely", "high"))
    if not 0 <= low <= likely <= high or (ranks > 1 and low == 0):
        raise DocumentError(
            f"{bandwidth.place} is {low:g}, {likely:g}, {high:g}: expected rising bandwidths in GB/s"
        )
    return Prediction(
        Range(low, likely, high), _transport(part, "inside"), across, part.strings("assumptions")
    )


def _transport(part: Part, key: str) -> Transport:
    word = part.take(key, str)
    try:
        return Transport(word)
    except ValueError as error:
        transports = ", ".join(transport.value for transport in Transport)
        raise DocumentError(f"{part.place}.{key} is {word!r}, expected one of: {transports}") from error
