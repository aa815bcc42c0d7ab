"""Changes to a recording that keep most of its structure, so that importers read on behind the first line.

The structure is taken from the bytes themselves: workbooks (ZIP), other binary files, JSON (whole or one value a line),
markup, and else text: lines, blocks between blank lines, tables of lines with as many cells. Every choice is the
caller's random generator's, so a number names an input.
"""

from __future__ import annotations

import io
import json
import re
import zipfile
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from random import Random
from typing import Any

from leadline.core.io.source import is_text

# Numbers, times, units and words as recorders in other locales, broken recorders or attackers write them.
NUMBERS = (
    *("", "0", "-1", "-0.0", "1e999", "-1e308", "nan", "NaN", "inf", "-", "N/A", "null", "1,5", "1.234,5", "1 234"),
    *("9223372036854775808", "18446744073709551616", "4294967295", "2147483648", "0x10", "1e-320", "٣", "½", "1_000"),
    *("100.5", "1000000", "99999999999999999999999999", "00012", "+5", ".5", "5.", "1e5", "12k", "3%", "9" * 400),
)
TIMES = (
    *("00:00:00", "23:59:59", "23:59:60", "24:00:00", "25:61:61", "12:00:00 AM", "11:59:59 PM", "02:30:00", "1:2:3"),
    *("00.00.00", "99:99", "10:00:00.123456789", "10:00:00,5", "2026-03-29 02:30:00"),
)
DATES = (
    *("1970-01-01", "0000-00-00", "9999-12-31", "2026-02-30", "02/30/2026", "31/12/2026", "12/31/26", "31.12.2026"),
    *("1969-12-31", "2262-04-12", "10000-01-01", "2026-13-01", "1.1.1"),
)
UNITS = (
    "B",
    "kB",
    "KiB",
    "MB",
    "MiB",
    "GB",
    "T",
    "Kbit",
    "ns",
    "us",
    "µs",
    "ms",
    "msec",
    "usec",
    "s",
    "sec",
    "%",
    "/s",
)
WORDS = (
    "",
    " ",
    "x" * 5000,
    "é",
    "Физический диск",
    "\x00",
    '"',
    "'",
    ",",
    "all",
    "Average:",
    "nan",
    "\ufeff",
    "🙂",
    "%",
    "{",
)
SCALARS: tuple[Any, ...] = (
    *(None, True, False, "", "text", "1,5", 0, -1, 2**63, -(2**64), 10**400, 1e308, float("nan"), float("inf"), [], {}),
    *([[]], {"": None}, "9" * 400, "2026-02-30T25:00:00Z", 0.1, [None]),
)
ENCODINGS = ("utf-16", "utf-16-le", "utf-8-sig", "cp1251", "latin-1", "utf-32")
# Separators, decimal signs, quotes and line ends, and what other programs write for them.
_EXCHANGES = (
    *((",", ";"), (",", "\t"), (".", ","), ("\t", " "), (" ", "\t"), (";", ","), ('"', ""), (":", "."), ("=", ":")),
    *(("\n", "\r\n"), ("\n", "\r"), ("\n", "\n\n"), ("\r\n", "\n"), ("\n", "\x0b"), ("\n", "\u2028")),
)
DEPTH = 3000  # beyond what recursion takes

_NUMBER = re.compile(r"(?<![\w.])-?\d+(?:[.,]\d+)?(?![\w.])")
_TIME = re.compile(r"\d{1,2}:\d{2}(?::\d{2})?(?:[.,]\d+)?(?: ?[AP]M)?")
_DATE = re.compile(r"\d{4}[-/.]\d{1,2}[-/.]\d{1,2}|\d{1,2}[-/.]\d{1,2}[-/.]\d{2,4}")
_UNIT = re.compile(r"(?<=[\d\s(/])(?:[kKMGT]i?B|[kKMG]bit|[num]s(?:ec)?|%|sec)\b")
_WORD = re.compile(r"[^\W\d]\w+")
_TAG = re.compile(r"<[^<>]+>")
_ATTRIBUTE = re.compile(r'(?<==")[^"]*(?=")')
_BETWEEN_TAGS = re.compile(r"(?<=>)[^<>]+(?=<)")


def mutated(whole: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A recording changed in one to three places.

    Args:
        whole: a valid recording.
        others: valid recordings of the same importer, to mix with.
        rng: makes every choice.
    """
    if rng.random() < 0.04:
        return _noise(whole, rng)
    data = whole
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        data = _of_family(data)(data, others, rng)
    if rng.random() < 0.1:
        data = _bytes(data, others, rng)
    return data


def _noise(whole: bytes, rng: Random) -> bytes:
    """Up to 200 bytes of no structure, alone or behind a beginning of the recording."""
    letters = rng.choice((bytes(range(256)), b" 0123456789\nskipe"))
    noise = bytes(rng.choices(letters, k=rng.randrange(201)))
    lines = whole.splitlines(keepends=True)
    return b"".join(lines[: rng.choice((0, 0, 1, 2, rng.randrange(len(lines) + 1)))]) + noise


def _of_family(data: bytes) -> Callable[[bytes, Sequence[bytes], Random], bytes]:
    """What changes data of this structure."""
    if data.startswith(b"PK\x03\x04"):
        return _workbook
    if not is_text(data):
        return _bytes
    head = data.lstrip()[:1]
    if head in (b"{", b"["):
        return _json
    return _markup if head == b"<" else _text


def _bytes(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A field of the header or elsewhere set to a limit, or bytes flipped, dropped, repeated, cut."""
    content = bytearray(data)
    at = rng.randrange(min(len(content), rng.choice((16, 64, 512, 1 << 30))) or 1)
    length = rng.choice((1, 2, 4, 8, 8, 64))
    kind = rng.randrange(6)
    if kind == 0:
        at -= at % length
        content[at : at + length] = rng.choice((0, 1, 0x7F, 0x80, 0xFF)).to_bytes(1, "little") * length
    elif kind == 1:
        at -= at % length
        content[at : at + length] = rng.randrange(1 << min(8 * length, 32)).to_bytes(
            length, rng.choice(("little", "big"))
        )
    elif kind == 2:
        content[at : at + 1] = bytes([rng.randrange(256)])
    elif kind == 3:
        del content[at : at + length]
    elif kind == 4:
        content[at:at] = content[at : at + length]
    else:
        del content[rng.randrange(len(content) + 1) :]
    return bytes(content)


@dataclass(slots=True)
class _Part:
    """A file of a workbook."""

    name: str
    content: bytes


def _workbook(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """A part of a workbook changed as markup, dropped, emptied, renamed, repeated, or cut."""
    try:
        with zipfile.ZipFile(io.BytesIO(data)) as archive:
            parts = [_Part(member.filename, archive.read(member)) for member in archive.infolist()]
    except Exception:
        return _bytes(data, others, rng)
    if not parts:
        return _bytes(data, others, rng)
    chosen = rng.choice(parts)
    kind = rng.randrange(12)
    if kind == 0:
        parts.remove(chosen)
    elif kind == 1:
        chosen.content = b""
    elif kind == 2:
        chosen.name = rng.choice(parts).name.upper()
    elif kind == 3:
        chosen.content = rng.choice(parts).content
    else:
        chosen.content = _markup(chosen.content, [], rng)
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", rng.choice((zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED))) as archive:
        for name, content in {part.name: part.content for part in parts}.items():
            archive.writestr(zipfile.ZipInfo(name), content)
    return packed.getvalue()


def _json(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """Values of a JSON text, or of one of its lines, changed; at times the text itself."""
    if rng.random() < 0.15:
        return _text(data, others, rng)
    text = data.decode("utf-8", "replace")
    with suppress(ValueError, RecursionError):
        return _json_text(json.loads(text), rng).encode("utf-8", "replace")
    lines = text.splitlines()
    index = rng.randrange(len(lines) or 1)
    with suppress(ValueError, RecursionError, IndexError):
        lines[index] = _json_text(json.loads(lines[index]), rng)
        return "\n".join(lines).encode("utf-8", "replace")
    return _text(data, others, rng)


def _json_text(root: Any, rng: Random) -> str:  # noqa: ANN401 - any JSON value
    """A JSON value with one to four of its places changed, as text; a key may stand there twice."""
    holder = [root]
    twice = None
    for _ in range(rng.choice((1, 1, 2, 4))):
        places = _places(holder)
        parent, key = rng.choice(places)
        old = parent[key]
        kind = rng.randrange(9)
        if kind == 0 and parent is not holder:
            del parent[key]
        elif kind == 1 and isinstance(parent, list):
            parent[key:key] = [old] * rng.choice((1, 2, 200))
        elif kind == 1:
            twice = str(key)
        elif kind == 2:
            other, place = rng.choice(places)
            with suppress(LookupError):
                parent[key] = json.loads(json.dumps(other[place]))
        elif kind == 3:
            parent[key] = [old] if rng.random() < 0.5 else {"a": old}
        elif kind == 4 and isinstance(old, int | float):
            parent[key] = rng.choice((str(old), -old, old // 3, old * 10 ** rng.choice((3, 9, 18))))
        elif kind == 5 and isinstance(old, str):
            parent[key] = _text(old.encode("utf-8", "replace"), [], rng).decode("utf-8", "replace")
        else:
            parent[key] = rng.choice(SCALARS)
    text = json.dumps(holder[0], indent=rng.choice((None, 1)), ensure_ascii=rng.random() < 0.5)
    if twice is not None:
        text = text.replace(f'"{twice}":', f'"{twice}": {json.dumps(rng.choice(SCALARS))}, "{twice}":', 1)
    if rng.random() < 0.02:
        text = text.replace(rng.choice(("1", "null", '""')), "[" * DEPTH + "]" * DEPTH, 1)
    return text


def _places(holder: list[Any]) -> list[tuple[Any, Any]]:
    """Every place of a JSON value, as what it is in and the key or index there."""
    places: list[tuple[Any, Any]] = []
    waiting: list[Any] = [holder]
    while waiting and len(places) < 20_000:
        inside = waiting.pop()
        for key in list(inside) if isinstance(inside, dict) else range(len(inside)):
            places.append((inside, key))
            if isinstance(inside[key], dict | list):
                waiting.append(inside[key])
    return places


def _markup(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """Tags, attributes or the texts between them changed, dropped, repeated or exchanged."""
    if rng.random() < 0.3:
        return _text(data, others, rng)
    text = data.decode("utf-8", "replace")
    found = list(rng.choice((_TAG, _ATTRIBUTE, _BETWEEN_TAGS)).finditer(text))
    if not found:
        return _text(data, others, rng)
    one, other = sorted(rng.sample(found, 2) if len(found) > 1 else found * 2, key=lambda match: match.start())
    kind = rng.randrange(8)
    if kind == 0:
        new = ""
    elif kind == 1:
        new = one[0] * rng.choice((2, 2, DEPTH))
    elif kind == 2:
        new = other[0]
    elif kind == 3:
        new = one[0].upper()
    elif kind == 4:
        return (text[: one.start()] + text[other.start() :]).encode("utf-8", "replace")
    elif kind == 5:
        return (text[: other.end()] + text[one.start() :]).encode("utf-8", "replace")
    elif one[0].startswith("<"):
        new = rng.choice(
            ("<!DOCTYPE a [<!ENTITY b 'c'>]>", "<!--", "<![CDATA[", "<a b=", "</table>", "<td colspan=99999999>")
        )
    else:
        new = rng.choice((*NUMBERS, *WORDS, *TIMES, *DATES, "&b;", "&#0;", "&#99999999;", "&lt;"))
    return (text[: one.start()] + new + text[one.end() :]).encode("utf-8", "replace")


def _text(data: bytes, others: Sequence[bytes], rng: Random) -> bytes:
    """Lines, blocks, columns, numbers, times, units, words, separators, line ends or the encoding of a text changed."""
    text, encoding = _decoded(data)
    change: Callable[..., Any] = rng.choice(_TEXT_CHANGES)
    if change is _mixed:
        texts = [_decoded(other)[0] for other in others if is_text(other)] or [text]
        text = _mixed(text, rng.choice(texts), rng)
    elif change is _encoded:
        return _encoded(text, rng)
    else:
        text = str(change(text, rng))
    return text.encode(encoding, "replace")


def _decoded(data: bytes) -> tuple[str, str]:
    """The text of bytes, and the encoding that gives the bytes back."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", "replace"), "utf-16"
    with suppress(UnicodeDecodeError):
        return data.decode("utf-8"), "utf-8"
    return data.decode("latin-1"), "latin-1"


def _replaced(pattern: re.Pattern[str], values: Sequence[str], text: str, rng: Random) -> str:
    """The text with one to three matches, or one match wherever it stands, replaced."""
    found = list(pattern.finditer(text))
    if not found:
        return text
    if rng.random() < 0.15:
        return text.replace(rng.choice(found)[0], rng.choice(values))
    for match in sorted(rng.sample(found, min(len(found), rng.choice((1, 1, 3)))), key=lambda m: -m.start()):
        new = rng.choice(found)[0] if rng.random() < 0.3 else rng.choice(values)
        text = text[: match.start()] + new + text[match.end() :]
    return text


def _numbers(text: str, rng: Random) -> str:
    return _replaced(_NUMBER, NUMBERS, text, rng)


def _times(text: str, rng: Random) -> str:
    return _replaced(rng.choice((_TIME, _DATE)), TIMES + DATES, text, rng)


def _units(text: str, rng: Random) -> str:
    return _replaced(_UNIT, UNITS, text, rng)


def _words(text: str, rng: Random) -> str:
    return _replaced(_WORD, WORDS, text, rng)


def _lines(text: str, rng: Random) -> str:
    """Lines dropped, repeated, exchanged, cut, blanked or joined."""
    lines = text.split("\n")
    one, other = rng.randrange(len(lines)), rng.randrange(len(lines))
    near = min(one + rng.choice((1, 2, 5)), len(lines) - 1)
    kind = rng.randrange(8)
    if kind == 0:
        del lines[one : near + 1]
    elif kind == 1:
        lines[one:one] = lines[one : near + 1] * rng.choice((1, 1, 50))
    elif kind == 2:
        lines[one], lines[near] = lines[near], lines[one]
    elif kind == 3:
        lines[one] = lines[one][: rng.randrange(len(lines[one]) + 1)]
    elif kind == 4:
        lines.insert(one, "")
    elif kind == 5:
        lines[one : near + 1] = [rng.choice(("", " ", "\t")).join(lines[one : near + 1])]
    elif kind == 6:
        lines.insert(other, lines[one])
    else:
        del lines[one:]
        lines.append(text.split("\n")[one][: rng.randrange(80)])
    return "\n".join(lines)


def _blocks(text: str, rng: Random) -> str:
    """Blocks between blank lines dropped, repeated, exchanged or interleaved."""
    blocks = re.split(r"\n[ \t\r]*\n", text)
    one, other = rng.randrange(len(blocks)), rng.randrange(len(blocks))
    kind = rng.randrange(4)
    if kind == 0:
        del blocks[one]
    elif kind == 1:
        blocks.insert(other, blocks[one])
    elif kind == 2:
        blocks[one], blocks[other] = blocks[other], blocks[one]
    else:
        blocks[one] = _interleaved(blocks[one], blocks[other])
    return "\n\n".join(blocks)


def _interleaved(one: str, other: str) -> str:
    """Lines of two texts in turn, as two recorders leave them that write to one file."""
    first, second = one.split("\n"), other.split("\n")
    woven = [line for pair in zip(first, second, strict=False) for line in pair]
    return "\n".join([*woven, *first[len(second) :], *second[len(first) :]])


def _columns(text: str, rng: Random) -> str:
    """A column of a table exchanged with another, repeated, dropped, blanked, renamed, or set to one value."""
    lines = text.split("\n")
    separator = rng.choice([s for s in (",", ";", "\t", "|") if s in text] or [None])
    split: Callable[[str], list[str]] = (
        (lambda line: line.split(separator)) if separator else (lambda line: re.findall(r"\s*\S+", line))
    )
    start = rng.randrange(len(lines))
    width = len(split(lines[start]))
    end = start + 1
    while end < len(lines) and len(split(lines[end])) == width:
        end += 1
    if width < 2:
        return _lines(text, rng)
    one, other, kind, value = rng.randrange(width), rng.randrange(width), rng.randrange(6), rng.choice(NUMBERS)
    if rng.random() < 0.4:
        end = start + 1
    for index in range(start, end):
        cells = split(lines[index])
        if kind == 0:
            cells[one], cells[other] = cells[other], cells[one]
        elif kind == 1:
            cells.insert(other, cells[one])
        elif kind == 2:
            del cells[one]
        elif kind == 3:
            cells[one] = "" if separator else " -"
        elif kind == 4:
            cells[one] = cells[one] + "x"
        else:
            cells[one] = value if separator else f" {value}"
        lines[index] = (separator or "").join(cells)
    return "\n".join(lines)


def _separators(text: str, rng: Random) -> str:
    """Another separator, decimal sign, quote or line end, everywhere or from some line on."""
    old, new = rng.choice(_EXCHANGES)
    at = rng.choice((0, rng.randrange(len(text) + 1)))
    return text[:at] + text[at:].replace(old, new)


def _mixed(text: str, other: str, rng: Random) -> str:
    """The beginning of one text and the end of another, both in a row, or both interleaved."""
    kind = rng.randrange(4)
    if kind == 0:
        return text + other
    if kind == 1:
        return _interleaved(text, other)
    lines, more = text.split("\n"), other.split("\n")
    if kind == 2:
        return "\n".join(lines[: rng.randrange(len(lines)) + 1] + more[rng.randrange(len(more)) :])
    at, start = rng.randrange(len(lines)), rng.randrange(len(more))
    lines[at:at] = more[start : start + rng.choice((1, 3, 20))]
    return "\n".join(lines)


def _encoded(text: str, rng: Random) -> bytes:
    """The text in another encoding, some of its letters in another script."""
    if rng.random() < 0.5:
        text = _words(text, rng)
    return text.encode(rng.choice(ENCODINGS), "replace")


# What keeps the structure comes up more often than what breaks it.
_TEXT_CHANGES: tuple[Any, ...] = (
    *(_numbers, _numbers, _numbers, _times, _times, _units, _words, _columns, _columns, _columns),
    *(_lines, _lines, _lines, _blocks, _blocks, _separators, _mixed, _mixed, _encoded),
)
