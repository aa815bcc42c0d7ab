"""Recordings of typeperf that were copied from its console: the words around them, and lines the window broke."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from leadline.core.io.source import Source

COPIED_MAX_BYTES = 4 * 1024**2  # Judgement: more than that nobody copies from a window
WORDS_MAX_LINES = 8  # typeperf prints two lines at its end; then come a prompt and what was typed there
_HEADER = re.compile(rb'^"?\(PDH-', re.MULTILINE)
_ROW = re.compile(rb'^"?\d')
_QUOTE = b'"'


def copied(source: Source) -> tuple[bytes, str] | None:
    """The recording in a copy of a console and what was mended; None where the file is a recording as it is.

    Words are only taken off behind the last row, and only lines without a quotation mark, which no row is. Broken
    lines are only joined where the header is broken, too: elsewhere a line that is no row is damage.
    """
    if source.path.stat().st_size > COPIED_MAX_BYTES:
        return None
    data = source.content()
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        data = data.decode("utf-16", errors="replace").encode()
    header = _HEADER.search(data)
    if header is None or not data[header.start() :].startswith(_QUOTE):
        return None
    lines = data[header.start() :].splitlines()
    rows = _without_last_words(lines)
    if rows is None:
        return None
    taken, mended = len([line for line in lines[len(rows) :] if line.strip()]), []
    if taken:
        mended.append(f"{taken} lines behind the last row, which typeperf and the console print, were left out")
    joined = _joined(rows)
    if len(joined) < len(rows):
        mended.append(f"{len(rows) - len(joined)} lines the window had broken were joined")
    return (b"\n".join(joined) + b"\n", "; ".join(mended)) if mended else None


def _without_last_words(lines: list[bytes]) -> list[bytes] | None:
    """Lines up to the last that may belong to a row; None where more follows than a console prints."""
    end = len(lines)
    while end > 1 and _QUOTE not in lines[end - 1] and not _ROW.match(lines[end - 1].strip()):
        end -= 1
    words = [line for line in lines[end:] if line.strip()]
    return lines[:end] if len(words) <= WORDS_MAX_LINES else None


def _joined(lines: list[bytes]) -> list[bytes]:
    kept = [line for line in lines if line.strip()]
    if kept[0].count(_QUOTE) % 2 == 0 and (len(kept) == 1 or _ROW.match(kept[1])):
        return lines
    joined: list[bytes] = []
    for line in kept:
        if joined and not (_ROW.match(line) and joined[-1].count(_QUOTE) % 2 == 0):
            joined[-1] += line
        else:
            joined.append(line)
    return joined
