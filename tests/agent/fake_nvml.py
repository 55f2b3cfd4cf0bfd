"""NVML as the agent uses it, over a machine that a test describes."""

from collections.abc import Sequence
from types import SimpleNamespace

NVML_NVLINK_MAX_LINKS = 18
_LEVELS = {"PIX": 10, "PXB": 20, "PHB": 30, "NODE": 40, "SYS": 50}


class FakeNvml:
    """A machine by the words of its matrix; *switched* GPUs have their NVLinks into switches.

    *silent* makes the far ends of links untold, as drivers do for switches; *broken* makes every call fail.
    """

    class NVMLError(Exception):
        """What NVML raises."""

    NVML_NVLINK_MAX_LINKS = NVML_NVLINK_MAX_LINKS

    def __init__(
        self,
        words: Sequence[Sequence[str]],
        product: str = "Tesla V100-SXM2-16GB",
        *,
        switched: int = 0,
        silent: bool = False,
        broken: bool = False,
        mig: Sequence[int] = (),
        as_bytes: bool = False,
    ) -> None:
        self.words, self.product, self.switched = words, product, switched
        self.silent, self.broken, self.mig, self.as_bytes = silent, broken, mig, as_bytes

    def nvmlInit(self) -> None:  # noqa: N802  # NVML's own name
        """Connect to the driver."""
        if self.broken:
            raise self.NVMLError("Driver Not Loaded")

    def nvmlDeviceGetCount(self) -> int:  # noqa: N802  # NVML's own name
        """Return the number of GPUs."""
        return len(self.words)

    def nvmlDeviceGetHandleByIndex(self, index: int) -> int:  # noqa: N802  # NVML's own name
        """Return a handle, here the index."""
        return index

    def nvmlDeviceGetUUID(self, handle: int) -> str | bytes:  # noqa: N802  # NVML's own name
        """Return the UUID."""
        return self._text(f"GPU-{handle}")

    def nvmlDeviceGetName(self, _handle: int) -> str | bytes:  # noqa: N802  # NVML's own name
        """Return the product."""
        return self._text(self.product)

    def nvmlDeviceGetMemoryInfo(self, _handle: int) -> SimpleNamespace:  # noqa: N802  # NVML's own name
        """Return the memory in bytes."""
        return SimpleNamespace(total=16384 * 2**20)

    def nvmlDeviceGetPciInfo(self, handle: int) -> SimpleNamespace:  # noqa: N802  # NVML's own name
        """Return the bus id, with NVML's long domain."""
        return SimpleNamespace(busId=self._text(f"00000000:{handle + 16:02X}:00.0"))

    def nvmlDeviceGetMigMode(self, handle: int) -> tuple[int, int]:  # noqa: N802  # NVML's own name
        """Return the MIG mode now and after a reset."""
        if not self.mig:
            raise self.NVMLError("Not Supported")
        return int(handle in self.mig), 0

    def nvmlDeviceGetTopologyCommonAncestor(self, a: int, b: int) -> int:  # noqa: N802  # NVML's own name
        """Return the PCIe level between two GPUs; below NVLinks it is across the sockets here."""
        return _LEVELS.get(self.words[a][b], 50)

    def nvmlDeviceGetNvLinkState(self, handle: int, link: int) -> int:  # noqa: N802  # NVML's own name
        """Return whether a link is up."""
        ends = self._ends(handle)
        if not ends:
            raise self.NVMLError("Not Supported")
        return int(link < len(ends))

    def nvmlDeviceGetNvLinkRemoteDeviceType(self, handle: int, link: int) -> int:  # noqa: N802  # NVML's own name
        """Return what a link leads to: 0 a GPU, 2 a switch."""
        if self.silent:
            raise self.NVMLError("Not Supported")
        return 2 if self._ends(handle)[link] is None else 0

    def nvmlDeviceGetNvLinkRemotePciInfo(self, handle: int, link: int) -> SimpleNamespace:  # noqa: N802  # NVML's own name
        """Return the bus id of the far end of a link."""
        end = self._ends(handle)[link]
        assert end is not None
        return self.nvmlDeviceGetPciInfo(end)

    def _ends(self, handle: int) -> list[int | None]:
        if self.switched:
            return [None] * self.switched
        words = self.words[handle]
        return [
            other for other, word in enumerate(words) if word.startswith("NV") for _ in range(int(word[2:]))
        ]

    def _text(self, value: str) -> str | bytes:
        return value.encode() if self.as_bytes else value
