r"""What others wrote, as it may stand in a terminal, a picture or a page: every character can be seen.

Names, messages and annotations may hold terminal escape sequences, line breaks that forge further lines, characters that
turn the direction of what follows, and characters of no width. Each is written as Python writes it in a literal:
``\x1b``, ``\n``, ``\u202e``.
"""

import re

# What Unicode calls controls, formats (directions, zero widths, tags), surrogates, private and unassigned characters, and
# separators other than the blank. Lists of ranges would age with each version of Unicode; Python has them.
_NOT_ASCII = re.compile(r"[^\x20-\x7e]")
_WIDEST = 0xFFFF
"""The last character that four digits write."""


def printable(text: str, *, keep: str = "") -> str:
    """Return *text* with every character that cannot be seen written out, except for those in *keep*."""
    # Nearly every text is printable as it is.
    if text.isprintable():
        return text
    return _NOT_ASCII.sub(
        lambda match: match[0] if match[0].isprintable() or match[0] in keep else _escape(match[0]), text
    )


def printable_lines(text: str) -> str:
    """Return *text*, whose line breaks and tabs are its author's own, with every other character seen."""
    return printable(text, keep="\n\t")


def printable_document(text: str, *, is_json: bool) -> str:
    r"""Return a JSON document, or a YAML document with quoted strings, that means the same and holds printable characters.

    Both write a character within quotes as ``\u202e``; of one that takes more digits JSON writes two halves.
    """
    if text.isascii() and "\x7f" not in text:
        return text
    wide = _halves if is_json else _escape
    return _NOT_ASCII.sub(
        lambda match: (
            match[0]
            if match[0].isprintable() or match[0] == "\n"
            else f"\\u{ord(match[0]):04x}"
            if ord(match[0]) <= _WIDEST
            else wide(match[0])
        ),
        text,
    )


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()


def _halves(character: str) -> str:
    high, low = divmod(ord(character) - _WIDEST - 1, 0x400)
    return f"\\u{0xD800 + high:04x}\\u{0xDC00 + low:04x}"
