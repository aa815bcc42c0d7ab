"""Read a recording with damaged lines: they are left out, counted and named, and the rest is read.

An importer refuses a file at the first line that is none of its tool's, and says which. That keeps importers simple and
strict, and it shows where the damage is. Here that line is taken out and the importer is asked again, until it is
satisfied. So a stray message, a torn row or an odd section costs its own lines and nothing else, in every format.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from leadline.core.io.source import Source
from leadline.core.model.capture import LEFT_OUT, Capture, Warn
from leadline.core.model.errors import InputError
from leadline.core.model.units import several
from leadline.core.system.leftovers import scratch_folder

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from leadline.core.contracts.importer import Request

Reader = Callable[[Source, "Request"], Capture | None]

SIZE_MAX = 1 << 30  # bytes; a larger file is refused at its first damaged line
PASSES_MAX = 400  # how often an importer is asked again
READ_AGAIN_MAX = 64 << 20  # bytes that are read again in all, of a small file ...
READ_AGAIN_TIMES = 24  # ... and of a large one in times its size
_SHOWN_LINES, _SHOWN_CHARACTERS = 5, 40
_SCRAP_WORDS = 2
_NEWLINE, _RETURN = b"\n\r"  # old exports of a Mac have the second alone


def read_sound(source: Source, request: Request, read: Reader, refusal: InputError) -> Capture | None:
    """The capture of the sound lines of a file, whose source says what was left out.

    Args:
        source: the file.
        request: what is wanted.
        read: reads a file; None where no importer knows it.
        refusal: the error of the first try.

    Raises:
        InputError: the refusal, where it names no line or leaving lines out does not help.
    """
    if _line_of(refusal, source) is None or source.path.stat().st_size > SIZE_MAX:
        raise refusal
    with scratch_folder("sound") as folder:
        written = replace(source, path=folder / "sound")
        return _Mending.of(source, written).read(request, read, refusal)


def left_out_count(capture: Capture) -> int:
    """How many damaged lines were left out of a capture."""
    return sum(warning.count for one in capture.sources for warning in one.warnings if warning.code == LEFT_OUT)


def _line_of(error: InputError, source: Source) -> int | None:
    """The line an error is about, numbered from 0; None where it names none."""
    match = re.match(r":(\d{1,10})(?![^: ])", error.where.removeprefix(source.name))
    return int(match[1]) - 1 if match and error.where.startswith(source.name) and match[1] != "0" else None


def _is_empty(capture: Capture) -> bool:
    """Whether headings are all that is left."""
    return bool(capture.groups) and not capture.results and not any(len(group.times_ns) for group in capture.groups)


@dataclass(slots=True)
class _Mending:
    """A damaged file, and the lines that were taken out of it so far.

    Attributes:
        source: the file.
        written: where what is left of it is written, under the same name.
        data: its bytes.
        ends: int64 [lines], where each line ends.
        left_out: lines that were taken out, numbered from 0.
    """

    source: Source
    written: Source
    data: bytes
    ends: NDArray[np.int64]
    left_out: frozenset[int] = frozenset()
    read_again: int = 0
    passes: int = field(default=0)

    @classmethod
    def of(cls, source: Source, written: Source) -> _Mending:
        """Begin with the whole file."""
        data = source.content()
        if data.startswith((b"\xff\xfe", b"\xfe\xff")):
            data = source.text().encode()
        end = _NEWLINE if b"\n" in data else _RETURN
        ends = np.flatnonzero(np.frombuffer(data, dtype=np.uint8) == end) + 1
        if data and data[-1] != end:
            ends = np.append(ends, len(data))
        return cls(source, written, data, ends)

    def read(self, request: Request, read: Reader, refusal: InputError) -> Capture | None:
        """Ask again and again, until nothing is refused or no line helps.

        Raises:
            InputError: the refusal.
        """
        outcome: Capture | InputError | None = refusal
        while isinstance(outcome, InputError):
            place = _line_of(outcome, self.source)
            at = None if place is None else self._line_in_file(place, self.left_out)
            outcome = None if at is None else self._further(at, request, read)
            if at is None or (isinstance(outcome, InputError) and self._reached(outcome) <= at):
                raise refusal
        if outcome is not None and _is_empty(outcome):
            raise refusal
        return None if outcome is None else self._noted(outcome, refusal)

    def _further(self, at: int, request: Request, read: Reader) -> Capture | InputError | None:
        """Leave out what takes the importer furthest past the damage at a line; what comes of it."""
        tried: list[tuple[int, frozenset[int], InputError]] = []
        for left_out in self._ways(at):
            outcome = self._without(left_out, request, read)
            self.left_out = left_out
            if not isinstance(outcome, InputError):
                return outcome
            reached = self._reached(outcome)
            tried.append((reached, left_out, outcome))
            if reached > at + 1:  # trouble in the very next line is rather the wrong line left out
                break
        _, self.left_out, error = max(tried, key=lambda way: way[0])
        return error

    def _ways(self, at: int) -> list[frozenset[int]]:
        """What may be left out for the damage at a line to be gone, likeliest first.

        A blank line where none belongs is seen at the line after it, and so is a line that breaks off within quotes or
        within a document, or a word alone that might have been a name. A blank line is no damage where the line before
        it is.
        """
        before = next((n for n in range(at - 1, max(at - 3, -1), -1) if n not in self.left_out), None)
        ways = [self.left_out | self._alike(at)]
        if before is not None:
            is_first = self._is_blank(before) != self._is_blank(at) or self._is_scrap(before)
            left_out = {before} if self._is_blank(before) else self._alike(before)
            ways.insert(0 if is_first else 1, self.left_out | left_out)
        return ways

    def _alike(self, at: int) -> set[int]:
        """The line, with all that are the same where it has no number in it: a message that came again and again."""
        text = self._line(at)
        if not text.strip() or re.search(rb"\d", text):
            return {at}
        alike, position = {at}, self.data.find(text)
        while position >= 0:
            number = int(np.searchsorted(self.ends, position, side="right"))
            if self._line(number) == text:
                alike.add(number)
            position = self.data.find(text, int(self.ends[number]))
        return alike

    def _without(self, left_out: frozenset[int], request: Request, read: Reader) -> Capture | InputError | None:
        """What comes of the file without some lines."""
        self.passes += 1
        self.read_again += len(self.data)
        if self.passes > PASSES_MAX or self.read_again > max(READ_AGAIN_MAX, READ_AGAIN_TIMES * len(self.data)):
            return InputError(self.source.name, found="too much damage", expected="sound lines", advice="Record again.")
        parts, begin = [], 0
        for number in sorted(left_out):
            parts.append(memoryview(self.data)[begin : self._start(number)])
            begin = int(self.ends[number])
        self.written.path.write_bytes(b"".join([*parts, memoryview(self.data)[begin:]]))
        mtime_ns = self.source.mtime_ns
        os.utime(self.written.path, ns=(mtime_ns, mtime_ns))
        try:
            return read(replace(self.written), request)  # another one: a source remembers how its file begins
        except InputError as error:
            return error

    def _reached(self, error: InputError) -> int:
        """How far the importer comes: the line it refuses; -1 where it names none."""
        place = _line_of(error, self.source)
        reached = None if place is None else self._line_in_file(place, self.left_out)
        return -1 if reached is None else reached

    def _line_in_file(self, place: int, left_out: frozenset[int]) -> int | None:
        """Which line of the file a line of what is left of it is."""
        for number in sorted(left_out):
            if number > place:
                break
            place += 1
        return place if place < len(self.ends) else None

    def _start(self, number: int) -> int:
        return int(self.ends[number - 1]) if number else 0

    def _line(self, number: int) -> bytes:
        return self.data[self._start(number) : int(self.ends[number])]

    def _is_blank(self, number: int) -> bool:
        return not self._line(number).strip()

    def _is_scrap(self, number: int) -> bool:
        """Whether a line breaks off within quotes, or is a word or two without a number."""
        line = self._line(number)
        return line.count(b'"') % 2 == 1 or (len(line.split()) <= _SCRAP_WORDS and not re.search(rb"\d", line))

    def _noted(self, capture: Capture, refusal: InputError) -> Capture:
        """The capture, whose source says what was left out of it."""
        numbers = sorted(self.left_out)
        shown = ", ".join(f"{number + 1:,}" for number in numbers[:_SHOWN_LINES])
        more = f" and {len(numbers) - _SHOWN_LINES:,} more" if len(numbers) > _SHOWN_LINES else ""
        text = self._line(numbers[0]).decode("utf-8", errors="replace").strip()
        first = f"{text[:_SHOWN_CHARACTERS]!r} is not {refusal.expected}" if text else "it is blank"
        message = (
            f"left out: {several(len(numbers), 'damaged line')} of {len(self.ends):,} "
            f"(line{'s' * (len(numbers) > 1)} {shown}{more}); of the first: {first}"
        )
        warning = Warn(LEFT_OUT, message, len(numbers))
        sources = capture.sources
        sources[:1] = [replace(one, warnings=(*one.warnings, warning)) for one in sources[:1]]
        return capture
