"""Which code page the names of a log that is not Unicode are in: the one in which most of them are known."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.formats.windows.localised import EnglishNames, translate
from leadline.formats.windows.pdh import PdhColumns

if TYPE_CHECKING:
    from leadline.core.io.source import Source

# Windows' own code pages, then those of its console, which typeperf's output is in when it was sent to a file.
_SINGLE = ("cp1252", "cp1250", "cp1251", "cp1254", "cp850", "cp852", "cp866", "cp857")
# Characters of two bytes, of which the second may look like a separator: the reader has to know before it splits.
_DOUBLE = ("gbk", "shift_jis", "euc-kr", "big5")


def open_log(
    source: Source, known: frozenset[tuple[str, str]], data: bytes | None = None
) -> tuple[PdhColumns, EnglishNames, str | None]:
    """The log, its names in English, and the code page that was chosen; None where it is Unicode or nothing is known.

    Args:
        source: the log.
        known: English objects and counters that need no translation.
        data: the recording in it, where that is not the whole file.

    Raises:
        InputError: it is no log, or has no column.
    """
    table = PdhColumns(source, data=data)
    if "UTF-" in table.file.dialect:
        return table, translate(table.counters, known), None
    chosen, best, page = table, translate(table.counters, known), None
    bytes_as_is = PdhColumns(source, encoding="windows-1252", data=data)
    for candidate in _SINGLE:
        respelt = bytes_as_is.respelt(candidate)
        translation = translate(respelt.counters, known)
        if translation.known_count > best.known_count:
            chosen, best, page = respelt, translation, candidate
    for candidate in _DOUBLE if best.known_count == 0 else ():
        opened = PdhColumns(source, encoding=candidate, data=data)
        translation = translate(opened.counters, known)
        if translation.known_count > best.known_count:
            chosen, best, page = opened, translation, candidate
    return chosen, best, page
