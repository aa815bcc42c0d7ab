"""A file to import: its name, its beginning, its text. What the bytes mean is the importers' business."""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

HEAD_BYTES = 64 * 1024
SHOWN_BYTES = 16  # of a binary file's beginning: its magic number is in them
SHOWN_CHARACTERS = 40
LINE_MAX = 4096
_DOCUMENTS = ("{", "[", "<")
# Only tried where a line begins: tried at every character, it takes longer than all importers together.
_LONG_LINE = re.compile(rf"(?<![^\r\n])([^\r\n]{{{LINE_MAX}}})[^\r\n]++")


@dataclass(frozen=True)
class Source:
    """One file to import.

    Attributes:
        name: what the user would call it: the path as given, with ``!member`` for what lies in an archive.
        path: where its bytes are now.
        named: the user named this very file, so failing to recognise it is an error, not a note.
        command: the command line above it, where it is part of a paste.
    """

    name: str
    path: Path
    named: bool = True
    command: str = ""

    @cached_property
    def head(self) -> bytes:
        """The first 64 KiB."""
        with self.path.open("rb") as stream:
            return stream.read(HEAD_BYTES)

    @cached_property
    def head_text(self) -> str:
        """What a file is recognised by: the first 64 KiB as text, each line cut at 4 Ki characters.

        Only headers of tables are longer in what tools write, but a damaged or hostile line may be. A document (JSON,
        XML, HTML) may stand on one line, so its lines are whole.
        """
        text = self.head_uncut
        return text if text.lstrip("\ufeff \t\r\n").startswith(_DOCUMENTS) else _LONG_LINE.sub(r"\1", text)

    @cached_property
    def head_uncut(self) -> str:
        """The first 64 KiB as text, lines of any length: for tables, whose headers may be long, and exact searches."""
        return decode(self.head)

    def content(self) -> bytes:
        """The whole file, to the size it has when reading begins: a recording that still grows has an end, too."""
        with self.path.open("rb") as stream:
            return stream.read(os.fstat(stream.fileno()).st_size)

    def text(self) -> str:
        """The whole file as text: by byte-order mark, else UTF-8, else cp1251; line ends as they are."""
        return decode(self.content())

    def lines(self) -> list[str]:
        """The lines of the whole file, whatever its line ends."""
        return self.text().splitlines()

    def beginning(self) -> str:
        """What the file begins with, for messages: its first line, or bytes in hexadecimal where these are no text."""
        if not self.head:
            return "is empty"
        if not is_text(self.head):
            return f"begins with the bytes {self.head[:SHOWN_BYTES].hex(' ')}, which are no text"
        shown = self.head_text.strip().splitlines()[:1]
        return f"begins with {shown[0][:SHOWN_CHARACTERS]!r}" if shown else "holds nothing but blanks"

    @property
    def mtime_ns(self) -> int:
        """When the file was last written, UTC nanoseconds; the best guess for a recording without a date."""
        return self.path.stat().st_mtime_ns


# Every control character but those that texts hold: backspace to carriage return, and the escape of terminals.
_NEVER_IN_TEXT = bytes([*range(0x08), *range(0x0E, 0x1B), *range(0x1C, 0x20), 0x7F])


def is_text(head: bytes) -> bool:
    """Whether the beginning of a file may be text: UTF-16 by its mark, or bytes without control characters.

    >>> is_text("Физический диск".encode("cp1251")), is_text(bytes.fromhex("7f454c46 02010100"))
    (True, False)
    """
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        return True
    return len(head.translate(None, _NEVER_IN_TEXT)) == len(head)


def decode(data: bytes) -> str:
    """Text of unknown encoding: UTF-16 or UTF-8 by byte-order mark, else UTF-8, else cp1251 (never fails)."""
    if data.startswith((b"\xff\xfe", b"\xfe\xff")):
        return data.decode("utf-16", errors="replace")
    body = data.removeprefix(b"\xef\xbb\xbf")
    for cut in range(4):  # the head may end inside a character of up to four bytes
        try:
            return body[: len(body) - cut].decode("utf-8")
        except UnicodeDecodeError as error:
            if error.start < len(body) - 4:
                break
    return body.decode("cp1251", errors="replace")


def shown_name(path: str | os.PathLike[str]) -> str:
    r"""A path as text that can be printed and stored: bytes that are no UTF-8 as ``\xNN``.

    >>> print(shown_name(os.fsdecode(b"d\xe9.csv")))
    d\xe9.csv
    """
    return os.fsencode(path).decode("utf-8", errors="backslashreplace")
