"""Lines of a Linux kernel log: their times in the forms of dmesg, journalctl and syslog, and what follows them."""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import TYPE_CHECKING

from leadline.core.io.clock import to_ns
from leadline.formats.esxi_lines import EsxiClock
from leadline.formats.stamps import YEARS

if TYPE_CHECKING:
    from leadline.core.contracts.importer import Request
    from leadline.core.io.source import Source
    from leadline.core.model.capture import CaptureBuilder

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
# What dmesg -x and -r put before a line, and what a syslog server does.
_PRIORITY = re.compile(r"(?:<\d{1,3}>|[a-z]{3,8} {0,4}:[a-z]{3,6} {0,5}: ?)")
_BOOT = re.compile(r"\[ {0,12}(\d{1,12}\.\d{1,9})(?: <[^>]{1,20}>)?\] ?(?:\[ {0,8}[TC]\d{1,10}\] ?)?")
_DAY_FIRST = re.compile(
    rf"\[(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun) (?P<month>{_MONTH}) {{1,2}}(?P<day>\d{{1,2}}) "
    rf"(?P<clock>{_CLOCK}) (?P<year>\d{{4}})\] ?"
)
_SHORT_DAY = re.compile(rf"\[(?P<month>{_MONTH}) {{0,2}}(?P<day>\d{{1,2}}) (?P<clock>\d\d:\d\d)\] ?")
_STEP = re.compile(r"\[ {0,12}\+(\d{1,12}\.\d{1,9})\] ?")
_ISO = re.compile(rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?: ?(?:Z|[+-]\d\d:?\d\d))? ")
_FULL = re.compile(rf"[A-Z][a-z]{{2}} (\d{{4}}-\d\d-\d\d {_CLOCK}) ([A-Z]{{1,5}}|[+-]\d\d(?:\d\d)?) ")
_BSD = re.compile(rf"{_MONTH} {{1,2}}\d{{1,2}} {_CLOCK} ")
_EPOCH = re.compile(r"(\d{9,10}\.\d{6}) (?=\S{1,255} \S{1,99}: )")
_SENDER = re.compile(r"(?:([\w.-]{1,255}) )?([A-Za-z][\w./@-]{0,99})(?:\[\d{1,10}\])?: ?")
_OF_OTHERS = re.compile(
    rf"(?:<\d{{1,3}}>)?(?:{_MONTH} {{1,2}}\d{{1,2}} {_CLOCK}|\d{{4}}-\d\d-\d\dT{_CLOCK}(?:Z|[+-]\d\d:?\d\d)?) "
    r"[\w.-]{1,255} (?!kernel|multipath|iscsid)[A-Za-z(][^\[:]{0,99}[\[:]"
)
_WITHOUT_SECONDS = re.compile(r"([A-Z].{5,10}\d\d:\d\d:)([0-5]\d) ")
_ANCHORS = (
    re.compile(r"setting system clock to \S{1,40}(?: \S{1,20})? \((\d{9,10})\)"),
    re.compile(r"\baudit\((\d{9,10}\.\d{3}):\d{1,15}\)"),
)
_FROM_KERNEL = frozenset({"kernel", "multipathd", "iscsid", "multipath"})
_NS_PER_S = 1_000_000_000


@dataclass(frozen=True, slots=True)
class KernelLine:
    """A line: when it was logged, in nanoseconds of UTC or since boot, by which machine, and its message.

    ``sender`` is the program of a line that syslog or the journal kept, empty in what dmesg prints.
    """

    moment_ns: int
    since_boot: bool
    host: str
    sender: str
    message: str

    @property
    def is_of_kernel(self) -> bool:
        """Whether the kernel wrote it, or a daemon that speaks of its disks."""
        return not self.sender or self.sender in _FROM_KERNEL


def stamp_end(line: str) -> int:
    """Where the time at the begin of a line ends; 0 where it begins with none."""
    start = _start(line)
    for pattern in (_BOOT, _DAY_FIRST, _SHORT_DAY, _STEP, _ISO, _FULL, _BSD, _EPOCH):
        match = pattern.match(line, start)
        if match is not None:
            return match.end()
    return 0


def is_quoted_with_time(line: str) -> bool:
    """Whether a time is seen once quote marks and indentation are taken off, and not before."""
    bare = line.replace("&gt;", ">").lstrip("> \t")
    return bare != line and stamp_end(bare) > 0


def is_of_others(line: str) -> bool:
    """Whether a line of a syslog is of another program than the kernel and the daemons of its disks."""
    return _OF_OTHERS.match(line) is not None


def sender_of(line: str) -> str | None:
    """Who wrote a line with a time: empty for one of dmesg; None for a line without a time or without a sender."""
    end = stamp_end(line)
    if not end:
        return None
    if _is_bracketed(line) and not _SENDER.match(line, end):
        return ""
    match = _SENDER.match(line, end)
    if match is None or match[1] is None:
        return "" if _is_bracketed(line) or "," in line[:end] else None
    return match[2]


def _start(line: str) -> int:
    match = _PRIORITY.match(line)
    return 0 if match is None else match.end()


def _is_bracketed(line: str) -> bool:
    return line.startswith("[", _start(line))


@dataclass(slots=True)
class KernelClock:
    """Turns the lines of a log into messages with times, and keeps what had to be assumed.

    Attributes:
        is_known: nothing had to be assumed so far.
        boots: nanoseconds of UTC at boot, by host, as lines tell both clocks.
    """

    source: Source
    request: Request
    builder: CaptureBuilder
    boots: dict[str, int] = field(default_factory=dict)
    _known: bool = True
    _step_ns: int | None = None
    _printed: EsxiClock | None = None
    _cached: tuple[str, int] = ("", 0)

    @property
    def is_known(self) -> bool:
        """No year and no zone had to be assumed so far."""
        return self._known and (self._printed is None or self._printed.is_known)

    def parse(self, line: str) -> KernelLine | None:
        """A line's parts; None where it begins with no time."""
        start = _start(line)
        try:
            return self._boot(line, start) or self._local(line, start) or self._printed_time(line, start)
        except ValueError:
            return None

    def _boot(self, line: str, start: int) -> KernelLine | None:
        match = _BOOT.match(line, start)
        if match is None:
            return None
        moment_ns = _ns(match[1])
        message = line[match.end() :]
        sender = _SENDER.match(message)
        if sender is not None and sender[1] is not None and sender[2] in _FROM_KERNEL:  # journalctl -o short-monotonic
            self._anchor(sender[1], moment_ns, message)
            return KernelLine(moment_ns, True, sender[1], sender[2], message[sender.end() :])
        self._anchor("", moment_ns, message)
        return KernelLine(moment_ns, True, "", "", message)

    def _anchor(self, host: str, moment_ns: int, message: str) -> None:
        for pattern in _ANCHORS if "audit(" in message or "system clock" in message else ():
            match = pattern.search(message)
            if match is not None:  # the last one is nearest to what is asked about
                self.boots[host] = _ns(match[1]) - moment_ns

    def _local(self, line: str, start: int) -> KernelLine | None:
        """``dmesg -T`` and ``dmesg -e``, in the machine's time."""
        if (match := _DAY_FIRST.match(line, start)) is not None:
            clock = match["clock"].replace(",", ".").partition(".")[0]
            text = f"{match['year']} {match['month']} {match['day']} {clock}"
            moment = datetime.strptime(text, "%Y %b %d %H:%M:%S")  # noqa: DTZ007
            if moment.year not in YEARS:
                raise ValueError(text)
            self._assume_zone()
            return KernelLine(to_ns(moment, self.request), False, "", "", line[match.end() :])
        if (match := _SHORT_DAY.match(line, start)) is not None:
            self._step_ns = self._clock(f"{match['month']} {match['day']} {match['clock']}:00 ")
            return KernelLine(self._step_ns, False, "", "", line[match.end() :])
        if (match := _STEP.match(line, start)) is not None and self._step_ns is not None:
            self._step_ns += _ns(match[1])
            return KernelLine(self._step_ns, False, "", "", line[match.end() :])
        return None

    def _printed_time(self, line: str, start: int) -> KernelLine | None:
        if (match := _FULL.match(line, start)) is not None:
            zone = "Z" if match[2] in {"UTC", "GMT"} else match[2] if match[2][0] in "+-" else ""
            moment_ns = self._clock(f"{match[1].replace(' ', 'T')}{zone} ")
        elif (match := _EPOCH.match(line, start)) is not None:
            moment_ns = _ns(match[1])
        else:
            match = _ISO.match(line, start) or _BSD.match(line, start)
            if match is None:
                return None
            moment_ns = self._clock(_iso(match[0]))
        return self._sent(moment_ns, line[match.end() :])

    def _sent(self, moment_ns: int, rest: str) -> KernelLine:
        sender = _SENDER.match(rest)
        if sender is None or sender[1] is None:  # dmesg --time-format iso
            return KernelLine(moment_ns, False, "", "", rest)
        message = rest[sender.end() :]
        twice = _BOOT.match(message)
        if twice is not None:
            message = message[twice.end() :]
        return KernelLine(moment_ns, False, sender[1], sender[2], message)

    def _clock(self, text: str) -> int:
        """UTC nanoseconds of a printed time.

        Raises:
            ValueError: there is no such time.
        """
        whole = _WITHOUT_SECONDS.fullmatch(text)
        if whole is not None and whole[1] != self._cached[0]:
            self._cached = (whole[1], self._parsed(f"{whole[1]}00 "))
        return self._parsed(text) if whole is None else self._cached[1] + int(whole[2]) * _NS_PER_S

    def _parsed(self, text: str) -> int:
        if self._printed is None:
            self._printed = EsxiClock(self.source, self.request, self.builder)
        timed = self._printed.parse(text)
        if timed is None:
            raise ValueError(text)
        return timed[0]

    def _assume_zone(self) -> None:
        if self.request.timezone is None and self._known:
            self.builder.warn("no-zone", "times have no zone and were taken as UTC; --timezone sets it")
            self._known = False

    def boot_of(self, host: str, last_ns: int) -> int:
        """When a host was booted, in nanoseconds of UTC; where no line tells, its last line is of the file's change."""
        if host not in self.boots:
            self.builder.warn(
                "since-boot",
                "times count from the boot: the last line was placed at the file's last change, so that all may be "
                "too late; `dmesg --time-format iso` tells them",
            )
            self._known = False
            self.boots[host] = self.source.mtime_ns - last_ns
        elif self.is_known:
            self.builder.warn(
                "since-boot", "times count from the boot, which was placed by a line that tells both clocks"
            )
            self._known = False
        return self.boots[host]


def _iso(text: str) -> str:
    """A printed time as `EsxiClock` reads it: a T before the clock and no blank before the zone."""
    if not text[:1].isdigit():
        return text
    day, clock = text[:10], text[11:].strip().replace(" ", "")
    return f"{day}T{clock} "


def _ns(seconds: str) -> int:
    whole, _, fraction = seconds.partition(".")
    return int(whole) * _NS_PER_S + int(fraction.ljust(9, "0")[:9])


def moment_text(time_ns: int) -> str:
    """A UTC nanosecond as ISO text for an event."""
    return datetime.fromtimestamp(time_ns / _NS_PER_S, tz=UTC).isoformat(timespec="milliseconds")
