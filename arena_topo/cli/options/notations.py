"""Small notations inside of flags: ``name=value``, tolerations, durations."""

from collections.abc import Sequence

from arena_topo.errors import UsageError
from arena_topo.model.cluster.scheduling import Toleration
from arena_topo.model.notation.durations import parse_duration

_EFFECTS = ("NoSchedule", "PreferNoSchedule", "NoExecute")


def pairs(flag: str, texts: Sequence[str]) -> dict[str, str]:
    """Return ``name=value`` texts as a mapping, the last of a name winning. Raises ``UsageError``."""
    found: dict[str, str] = {}
    for text in texts:
        name, equals, value = text.partition("=")
        if not equals or not name:
            raise UsageError(f"{flag}: {text!r} is not NAME=VALUE", hint=f"for example {flag}=name=value")
        found[name] = value
    return found


def pattern_toleration(text: str) -> Toleration:
    """Return the toleration of Arena's ``key=value:effect,operator``, of its parts, or of ``all``.

    Without a value the operator is ``Exists``, without an effect every effect is meant. Raises ``UsageError``.
    """
    if text == "all":
        return Toleration(operator="Exists")
    rest, _, operator = text.partition(",")
    pair, _, effect = rest.partition(":")
    key, equals, value = pair.partition("=")
    operator = operator or ("Equal" if equals else "Exists")
    wrong = (
        not key
        or operator not in ("Equal", "Exists")
        or (effect and effect not in _EFFECTS)
        or (operator == "Exists" and value)
    )
    if wrong:
        raise UsageError(
            f"--toleration: {text!r} is not KEY[=VALUE][:EFFECT][,OPERATOR]",
            hint=f"effects are {', '.join(_EFFECTS)}; operators are Equal and Exists, the latter without a value",
        )
    return Toleration(key=key, operator=operator, value=value, effect=effect)


def duration(flag: str, text: str) -> int | None:
    """Return the whole seconds of a duration such as ``90s``, ``12h`` or ``3600``, None for no text.

    Raises ``UsageError``.
    """
    if not text:
        return None
    try:
        seconds = float(text) if text.isdecimal() else parse_duration(text)
    except ValueError as error:
        raise UsageError(f"{flag}: {error}") from error
    return int(seconds)
