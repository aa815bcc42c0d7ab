r"""Registration files (.reg): what regedit and ``reg export`` write, and what they import.

A header, then keys in brackets, each followed by its values: ``"Name"="text"``, ``"Name"=dword:0000003c``,
``"Name"=hex(2):25,00,...`` (the number is the type, the bytes go on over lines that end in a backslash), ``@=`` for
the value without a name, ``"Name"=-`` and ``[-KEY]`` for what an import deletes. Text lies in UTF-16 with a byte-order
mark, or in UTF-8.

Sources: Microsoft Support 310516, How to add, modify, or delete registry subkeys and values by using a .reg file;
Microsoft, Registry Value Types (REG_SZ 1, REG_EXPAND_SZ 2, REG_BINARY 3, REG_DWORD 4, REG_MULTI_SZ 7, REG_QWORD 11).
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from leadline.core.model.errors import InputError, LimitError

BYTES_MAX = 256 * 1024**2  # Judgement: an export of HKLM\SOFTWARE has some 100 MB
HEADER = "Windows Registry Editor Version 5.00"
SZ, EXPAND_SZ, BINARY, DWORD, MULTI_SZ, QWORD = 1, 2, 3, 4, 7, 11

_SPACE = re.compile(r"[ \t\r\n]*")
_LINE = re.compile(r"[^\n]*")
_QUOTED = re.compile(r'"([^"\\]*(?:\\.[^"\\]*)*)"', re.DOTALL)
_DWORD_DATA = re.compile(r"dword:([0-9a-fA-F]{1,8})")
_HEX_HEAD = re.compile(r"hex(?:\(([0-9a-fA-F]{1,8})\))?:")
_HEX_DATA = re.compile(r"(?:[0-9a-fA-F, \t]++|\\[ \t]*+\r?\n)*+")
_BREAKS = re.compile(r"[\\ \t\r\n]+")
_ESCAPED = re.compile(r"\\(.)", re.DOTALL)
_LETTERS = {"n": "\n", "r": "\r", "0": "\0"}  # as Wine writes them; Windows escapes only backslash and quotation mark
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029\ud800-\udfff]")


@dataclass(frozen=True, slots=True)
class RegistryData:
    """What a registry value holds: its type as a number, and its bytes as the registry keeps them."""

    kind: int
    raw: bytes

    @classmethod
    def of_text(cls, text: str, kind: int = SZ) -> RegistryData:
        """A text of type REG_SZ or REG_EXPAND_SZ."""
        return cls(kind, _units(text) + b"\0\0")

    @classmethod
    def of_texts(cls, texts: tuple[str, ...]) -> RegistryData:
        """Texts of type REG_MULTI_SZ."""
        return cls(MULTI_SZ, b"".join(_units(text) + b"\0\0" for text in texts) + b"\0\0")

    @classmethod
    def of_number(cls, number: int, kind: int = DWORD) -> RegistryData:
        """A number of type REG_DWORD or REG_QWORD.

        Raises:
            OverflowError: it does not fit the type.
        """
        return cls(kind, number.to_bytes(8 if kind == QWORD else 4, "little"))


@dataclass(frozen=True, slots=True)
class RegistryEntry:
    r"""One line of a registration file.

    Attributes:
        key: the full path, ``HKEY_LOCAL_MACHINE\...``.
        name: the value; "" is the one without a name, None is a line of the key itself.
        data: what the value holds; None is a line that deletes the value, or the key.
        deletes: whether an import deletes the value or key.
    """

    key: str
    name: str | None
    data: RegistryData | None
    deletes: bool = False


def read_entries(path: Path) -> Iterator[RegistryEntry]:
    """The keys and values of a registration file, in its order.

    Raises:
        InputError: it is no registration file, or is damaged, with the line.
        LimitError: it is larger than `BYTES_MAX`.
    """
    name = str(path)
    try:
        with path.open("rb") as stream:
            content = stream.read(BYTES_MAX + 1)
    except OSError as error:
        raise _wrong(name, f"not readable ({error.strerror})") from error
    if len(content) > BYTES_MAX:
        raise LimitError(
            name,
            found=f"more than {BYTES_MAX >> 20} MiB",
            expected=f"at most {BYTES_MAX >> 20} MiB",
            advice="Export only the keys that the template names, each with `reg export KEY FILE`.",
        )
    return entries(_text(content, name), name)


def _text(content: bytes, name: str) -> str:
    try:
        if content.startswith(b"\xff\xfe"):
            return content[2:].decode("utf-16-le", "surrogatepass")  # the registry holds any 16 bits
        return content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        raise _wrong(name, f"bytes that are neither UTF-16 nor UTF-8 (byte {error.start})") from error


def entries(text: str, name: str) -> Iterator[RegistryEntry]:
    """The keys and values of the text of a registration file, in its order.

    Raises:
        InputError: the text is no registration file, or is damaged, with the line.
    """
    at = _after_space(text, 0)
    head = _line(text, at)
    if head.rstrip() != HEADER:
        raise _wrong(f"{name}:1", f"a first line {head[:40].rstrip()!r}", f"`{HEADER}`")
    at += len(head)
    key = ""
    while (at := _after_space(text, at)) < len(text):
        if text[at] == ";":
            at += len(_line(text, at))
        elif text[at] == "[":
            line = _line(text, at)
            key, deletes = _key(line.rstrip(), _where(name, text, at))
            yield RegistryEntry(key, None, None, deletes)
            key = "" if deletes else key
            at += len(line)
        elif not key:
            raise _wrong(_where(name, text, at), "a value before any key", "a key in brackets")
        else:
            entry, at = _value(text, at, key, name)
            yield entry


def _after_space(text: str, at: int) -> int:
    match = _SPACE.match(text, at)
    return match.end() if match else at


def _line(text: str, at: int) -> str:
    match = _LINE.match(text, at)
    return match[0] if match else ""


def _key(line: str, where: str) -> tuple[str, bool]:
    path = line[1:-1]
    deletes = path.startswith("-")
    path = path.removeprefix("-")
    if not line.endswith("]") or not path.startswith("HKEY_"):
        raise _wrong(where, f"a key {line[:60]!r}", r"[HKEY_...\...]")
    return path, deletes


def _value(text: str, at: int, key: str, name: str) -> tuple[RegistryEntry, int]:
    """The value that begins at a place, and the place after its line."""
    start = at
    if text[at] == "@":
        value_name, at = "", at + 1
    else:
        value_name, at = _quoted(text, at, name, 'a name: "Name"=... or @=...')
    if not text.startswith("=", at):
        raise _wrong(_where(name, text, start), f"{_line(text, start)[:60]!r}", "`=` after the name")
    at += 1
    data: RegistryData | None = None
    if text.startswith("-", at):
        at += 1
    else:
        data, at = _data(text, at, name)
    rest = _line(text, at)
    if rest.strip() and not rest.lstrip().startswith(";"):
        raise _wrong(_where(name, text, at), f"{rest[:40].rstrip()!r} after a value", "the end of the line")
    return RegistryEntry(key, value_name, data, data is None), at + len(rest)


def _data(text: str, at: int, name: str) -> tuple[RegistryData, int]:
    if text.startswith('"', at):
        value, at = _quoted(text, at, name, "a text that ends with a quotation mark")
        return RegistryData.of_text(value), at
    if number := _DWORD_DATA.match(text, at):
        return RegistryData.of_number(int(number[1], 16)), number.end()
    head = _HEX_HEAD.match(text, at)
    data = _HEX_DATA.match(text, head.end()) if head else None
    if head is None or data is None:
        raise _wrong(_where(name, text, at), f"data {_line(text, at)[:40].rstrip()!r}", '"text", dword: or hex:')
    raw: list[int] = []
    for pair in _BREAKS.sub("", data[0]).rstrip(",").split(","):
        if len(pair) > 2 or (not pair and raw):
            raise _wrong(_where(name, text, at), f"{pair[:20]!r} among the bytes", "two hexadecimal digits")
        if pair:
            raw.append(int(pair, 16))
    return RegistryData(int(head[1], 16) if head[1] else BINARY, bytes(raw)), data.end()


def _quoted(text: str, at: int, name: str, expected: str) -> tuple[str, int]:
    match = _QUOTED.match(text, at)
    if match is None:
        raise _wrong(_where(name, text, at), f"{_line(text, at)[:40].rstrip()!r}", expected)
    return _ESCAPED.sub(lambda one: _LETTERS.get(one[1], one[1]), match[1]), match.end()


def _where(name: str, text: str, at: int) -> str:
    return f"{name}:{text.count(chr(10), 0, at) + 1}"


def _wrong(where: str, problem: str, expected: str = "a registration file as `reg export` writes it") -> InputError:
    return InputError(where, found=problem, expected=expected, advice="Export it again: `reg export KEY FILE`.")


def value_line(name: str, data: RegistryData | None) -> str:
    r"""The line that sets a value, or deletes it when there is no data.

    >>> print(value_line("Path", RegistryData.of_text("C:\\")))
    "Path"="C:\\"
    >>> print(value_line("Wait", RegistryData.of_number(60)), value_line("", None))
    "Wait"=dword:0000003c @=-
    """
    shown = f'"{_escaped(name)}"' if name else "@"
    return f"{shown}={'-' if data is None else _shown(data)}"


def can_name(text: str) -> bool:
    """Whether a key or a value may be named so: a line break or a NUL would end it."""
    return _CONTROL.search(text) is None


def _shown(data: RegistryData) -> str:
    if data.kind == DWORD and len(data.raw) == 4:
        return f"dword:{int.from_bytes(data.raw, 'little'):08x}"
    if data.kind == SZ and len(data.raw) % 2 == 0 and data.raw.endswith(b"\0\0"):
        text = data.raw[:-2].decode("utf-16-le", "surrogatepass")
        if can_name(text):
            return f'"{_escaped(text)}"'
    digits = ",".join(f"{byte:02x}" for byte in data.raw)
    return f"hex:{digits}" if data.kind == BINARY else f"hex({data.kind:x}):{digits}"


def _escaped(text: str) -> str:
    return text.replace("\\", "\\\\").replace('"', '\\"')


def _units(text: str) -> bytes:
    return text.encode("utf-16-le", "surrogatepass")


def encoded(lines: list[str]) -> bytes:
    """A registration file of these lines: UTF-16 with a byte-order mark and CR LF."""
    body = "\r\n".join([HEADER, "", *lines, ""])
    return b"\xff\xfe" + _units(body)
