"""Lines of time that a collector or a loop of a shell puts before each block of a tool that prints none.

``zzz ***Thu Nov 20 10:00:00 CET 2025`` of OSWatcher and ExaWatcher, and what ``date`` prints. The time is put before each
line of the block's table, as wrappers do that the importers know. A tool averages its first report since boot: in a
block of several that one is left out.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from leadline.formats.loadtool import zone_named

_MONTHS = {name: number for number, name in enumerate("Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec".split(), 1)}
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)\w{0,6},? "
_MONTH = "|".join(_MONTHS)
_CLOCK = r"(?P<clock>\d{1,2}:\d\d:\d\d)(?: (?P<half>[AP]M))?"
_ZONE = r"(?: (?P<zone>[A-Z]{1,5}|[+-]\d\d(?::?\d\d)?))?"
_STAMPS = tuple(
    re.compile(rf"^(?:zzz \*\*\*|# ?|==+ ?)?{form}(?: Sample interval: \d+ \w+)?[ =]*$")
    for form in (
        rf"{_DAY}(?P<month>{_MONTH})\w{{0,6}} {{1,2}}(?P<day>\d{{1,2}}) {_CLOCK}{_ZONE} (?P<year>20\d\d)",
        rf"{_DAY}(?P<day>\d{{1,2}}) (?P<month>{_MONTH})\w{{0,6}} (?P<year>20\d\d),? {_CLOCK}{_ZONE}",
        r"(?P<iso>20\d\d-\d\d-\d\d[ T]\d\d:\d\d:\d\d)(?:[.,]\d{1,9})?(?: ?(?P<zone>Z|[A-Z]{2,5}|[+-]\d\d(?::?\d\d)?))?",
    )
)
_OWN_TIME = re.compile(r"^(?:Time: \d\d:\d\d:\d\d|\d\d[/.-]\d\d[/.-]\d{2,4} \d\d:\d\d:\d\d|20\d\d-\d\d-\d\dT)", re.MULTILINE)
_VMSTAT_HEAD = re.compile(r"^\s*(?:procs|--procs|kthr|r\s+b\s)")
_NUMBERS = re.compile(r"^[\s\d.,:%-]+$")


@dataclass(frozen=True, slots=True)
class Stamped:
    """A text without its lines of time.

    Attributes:
        text: with the times before its lines, or as it was where the tool prints its own.
        timezone: of the lines of time, as an offset's name in the time zone database; None where they name none.
        since_boot_count: first reports of blocks that were left out.
    """

    text: str
    timezone: str | None
    since_boot_count: int


def moment_of(line: str) -> datetime | None:
    """The time of a line that holds nothing else; without an offset where none is named."""
    for pattern in _STAMPS:
        match = pattern.match(line.strip())
        if match is None:
            continue
        parts = match.groupdict()
        try:
            return _moment(parts)
        except ValueError:
            return None
    return None


def _moment(parts: dict[str, str | None]) -> datetime:
    if parts.get("iso"):
        moment = datetime.fromisoformat(str(parts["iso"]))
    else:
        form = "%I:%M:%S %p" if parts.get("half") else "%H:%M:%S"
        clock = f"{parts['clock']} {parts['half']}" if parts.get("half") else str(parts["clock"])
        day = datetime(int(str(parts["year"])), _MONTHS[str(parts["month"])], int(str(parts["day"])))  # noqa: DTZ001
        moment = datetime.combine(day.date(), datetime.strptime(clock, form).time())  # noqa: DTZ007
    zone = parts.get("zone")
    if not zone:
        return moment
    if zone[0] in "+-":
        return datetime.fromisoformat(f"{moment.isoformat()}{zone[:3]}:{zone[-2:] if len(zone) > 3 else '00'}")
    known = UTC if zone == "Z" else zone_named(zone)
    return moment if known is None else moment.replace(tzinfo=known)


def without_stamps(text: str) -> Stamped | None:
    """A text without lines of time; None where it has none between the blocks of a table."""
    lines = text.splitlines()
    stamps = {place: moment for place, line in enumerate(lines) if (moment := moment_of(line)) is not None}
    if not stamps or min(stamps) > 3:
        return None
    places = [*stamps, len(lines)]
    zones = {moment.utcoffset() for moment in stamps.values()}
    timezone = _zone_name(zones.pop()) if len(zones) == 1 else None
    blocks = [lines[place + 1 : places[number + 1]] for number, place in enumerate(stamps)]
    if _OWN_TIME.search("\n".join(blocks[0])) is not None:
        return Stamped("\n".join(line for block in blocks for line in block) + "\n", timezone, 0)
    written: list[str] = []
    left_out = 0
    for moment, block in zip(stamps.values(), blocks, strict=True):
        rows, count = _dated(moment, block)
        written += rows
        left_out += count
    return Stamped("\n".join(written) + "\n", timezone, left_out) if written else None


def _dated(moment: datetime, block: list[str]) -> tuple[list[str], int]:
    """The lines of a block with times, and how many reports since boot were left out."""
    rows: list[str] = []
    report, count = -1, sum(_is_report(block, place) for place in range(len(block)))
    left_out = 0
    for place, line in enumerate(block):
        if _is_report(block, place):
            report += 1
        if not line.strip():
            continue
        if report == 0 and count > 1:
            left_out += _is_report(block, place)
            if _VMSTAT_HEAD.match(block[0]) is not None or _NUMBERS.match(line) is not None or report == 0:
                continue
        time = moment + timedelta(seconds=max(report, 0))
        rows.append(f"{time.isoformat(sep='T')} {line}")
    return rows, left_out


def _is_report(block: list[str], place: int) -> bool:
    """Whether a report begins with a line: a row of vmstat, or the head of iostat's devices."""
    line = block[place]
    if any(_VMSTAT_HEAD.match(one) for one in block[:4]):
        return _NUMBERS.match(line) is not None and bool(line.strip())
    return line.startswith("avg-cpu") or (line.startswith("Device") and not any(o.startswith("avg-cpu") for o in block))


def _zone_name(offset: timedelta | None) -> str | None:
    if offset is None or offset.total_seconds() % 3600:
        return None
    hours = int(offset.total_seconds() // 3600)
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"
