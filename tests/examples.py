"""How many examples a property is tested with."""

from hypothesis import settings


def examples(full: int) -> int:
    """Return *full* under the profile ``full``, and as much less under others as they have fewer examples.

    With the 20 of ``quick``, ``examples(500)`` is 100.
    """
    return max(1, full * settings().max_examples // 100)
