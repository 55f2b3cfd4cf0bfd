"""What ``why`` prints: the verdict first, who it is about, what the other ranks do, and what to do next."""

from typing import Any

from arena_topo.diagnosis.verdict import Group, State, Suspect, Verdict
from arena_topo.errors import DocumentError
from arena_topo.model.text.words import plural, printable, runs
from arena_topo.output.text import fitted, tabulate

_NONE = "N/A"
_MOST = 8
"""Rows of each table: an answer has the room of a screen, and JSON has all."""


def why_text(name: str, verdict: Verdict, width: int | None = None) -> str:
    """Return the answer as a screen of text; *width* is the room of the terminal, None for no bound."""
    parts = [f"{name} is {verdict.state.value}: {printable(verdict.message)}\n"]
    if verdict.suspects:
        rows = [
            ("RANK", "INSTANCE", "NODE", "GPU", "WHAT IT DOES"),
            *map(_suspect_row, verdict.suspects[:_MOST]),
        ]
        parts.append("\n" + _table(rows, width, ("GPU", "NODE")) + _rest(len(verdict.suspects)))
    if verdict.groups and (len(verdict.groups) > 1 or not verdict.suspects):
        rows = [("RANKS", "HOW MANY", "WHAT THEY DO")]
        rows += [
            (runs(group.ranks), plural(len(group.ranks), "rank"), printable(group.doing))
            for group in verdict.groups[:_MOST]
        ]
        parts.append("\n" + _table(rows, width, ("HOW MANY",)) + _rest(len(verdict.groups)))
    return "".join(parts)


def _table(rows: list[tuple[str, ...]], width: int | None, spare: tuple[str, ...]) -> str:
    table = fitted(rows, width, spare=spare, words=True)
    note = table.note("-o json has them")
    return tabulate(table.rows) + (f"({note})\n" if note else "")


def _rest(count: int) -> str:
    return f"and {count - _MOST} more: -o json has all\n" if count > _MOST else ""


def _suspect_row(suspect: Suspect) -> tuple[str, ...]:
    return (
        _NONE if suspect.rank is None else str(suspect.rank),
        suspect.pod or _NONE,
        suspect.node or _NONE,
        _NONE if suspect.gpu is None else str(suspect.gpu),
        printable(suspect.doing),
    )


def verdict_of(document: dict[str, Any]) -> Verdict:
    """Return the answer that a *document* has, which anyone may have written. Raises ``DocumentError``."""
    try:
        return Verdict(
            state=State(document["state"]),
            message=str(document["message"]),
            advice=str(document["advice"]),
            suspects=tuple(
                Suspect(
                    each["rank"] if isinstance(each["rank"], int) else None,
                    str(each["instance"]),
                    str(each["node"]),
                    each["gpu"] if isinstance(each["gpu"], int) else None,
                    str(each["doing"]),
                )
                for each in document["suspects"]
            ),
            groups=tuple(
                Group(str(each["doing"]), tuple(map(int, each["ranks"]))) for each in document["groups"]
            ),
            seconds=float(document["seconds"]),
            shared=str(document["shared"]),
        )
    except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
        raise DocumentError("the answer that was kept cannot be read") from error


def why_document(name: str, namespace: str, verdict: Verdict) -> dict[str, Any]:
    """Return the answer for JSON and YAML."""
    return {
        "name": name,
        "namespace": namespace,
        "state": verdict.state.value,
        "message": verdict.message,
        "advice": verdict.advice,
        "seconds": round(verdict.seconds, 2),
        "shared": verdict.shared,
        "suspects": [
            {
                "rank": suspect.rank,
                "instance": suspect.pod,
                "node": suspect.node,
                "gpu": suspect.gpu,
                "doing": suspect.doing,
            }
            for suspect in verdict.suspects
        ],
        "groups": [{"doing": group.doing, "ranks": list(group.ranks)} for group in verdict.groups],
    }
