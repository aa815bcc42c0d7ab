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
) -> tuple[PdhColumns, EnglishNames]:
    """The log in the code page that makes most of its names known, and these names in English.

    Where none is known in any, the reader's guess stays, of which it warns.

    Args:
        source: the log.
        known: English objects and counters that need no translation.
        data: the recording in it, where that is not the whole file.

    Raises:
        InputError: it is no log, or has no column.
    """
    guessed = PdhColumns(source, data=data)
    as_guessed = translate(guessed.counters, known)
    if "UTF-" in guessed.file.dialect:
        return guessed, as_guessed
    bytes_as_is = PdhColumns(source, encoding="windows-1252", data=data)
    tables = [bytes_as_is.respelt(page) for page in _SINGLE]
    translated = [(table, translate(table.counters, known)) for table in tables]
    if not any(names.known_count for _, names in translated):
        tables = [PdhColumns(source, encoding=page, data=data) for page in _DOUBLE]
        translated = [(table, translate(table.counters, known)) for table in tables]
    table, names = max(translated, key=lambda pair: pair[1].known_count)
    return (table, names) if names.known_count else (guessed, as_guessed)
