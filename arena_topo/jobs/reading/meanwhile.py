"""What is read in a thread of its own, while its caller reads something else."""

import threading
from collections.abc import Callable
from typing import Generic, TypeVar

Value = TypeVar("Value")


class Meanwhile(Generic[Value]):
    """What *read* returns or raises, which is asked for at once and awaited where it is needed.

    A transport has a connection for each thread, so that the server works on both answers at the same time.
    """

    def __init__(self, read: Callable[[], Value]) -> None:
        self._read = read
        self._value: Value | None = None
        self._error: Exception | None = None
        # A daemon: whoever has failed meanwhile, or was interrupted, does not wait for the other answer.
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        try:
            self._value = self._read()
        except Exception as error:  # noqa: BLE001  # it is raised where the value is needed
            self._error = error

    def result(self) -> Value:
        """Return the value, or raise why there is none."""
        self._thread.join()
        if self._error is not None:
            raise self._error
        return self._value  # type: ignore[return-value]  # reading returned it
