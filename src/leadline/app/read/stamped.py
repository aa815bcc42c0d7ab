"""Lines of time that a collector or a loop of a shell puts before each block of a tool that prints none.

``zzz ***Thu Nov 20 10:00:00 CET 2025`` of OSWatcher and ExaWatcher, and what ``date`` prints. The time is put before
each line of the block's table, as wrappers do that the importers know. A tool averages its first report since boot: in
a block of several that one is left out. The rows of vmstat in one block become one, their mean.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np

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
_OWN_TIME = re.compile(
    r"^(?:Time: \d\d:\d\d:\d\d|\d\d[/.-]\d\d[/.-]\d{2,4} \d\d:\d\d:\d\d|20\d\d-\d\d-\d\dT)", re.MULTILINE
)
_LINE_MAX = 120
_VMSTAT_HEAD = re.compile(r"^\s*(?:procs|--procs|kthr|r\s+b\s)")
_NUMBERS = re.compile(r"^[\s\d.,:%-]+$")


@dataclass(frozen=True, slots=True)
class Stamped:
    """A text without its lines of time.

    Attributes:
        text: with the times before its lines, or as it was where the tool prints its own.
        timezone: of the lines of time, as an offset's name in the time zone database; None where they name none.
        since_boot_count: first reports of blocks that were left out.
        unknown_zone: the abbreviation that the lines of time have, where it may mean several zones; else empty.
    """

    text: str
    timezone: str | None
    since_boot_count: int
    unknown_zone: str = ""


def moment_of(line: str) -> datetime | None:
    """The time of a line that holds nothing else; without an offset where none is named."""
    for pattern in _STAMPS if len(line) < _LINE_MAX else ():
        match = pattern.match(line.strip())
        if match is None:
            continue
        parts = match.groupdict()
        try:
            return _moment(parts)
        except ValueError:
            return None
    return None


def _unknown_zone(line: str) -> str:
    """The abbreviation in a line of time that may mean several zones; empty where there is none."""
    matches = (pattern.match(line.strip()) for pattern in _STAMPS)
    zone = next((match["zone"] for match in matches if match is not None), None) or ""
    return zone if zone.isalpha() and zone != "Z" and zone_named(zone) is None else ""


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
    """A text without lines of time; None where it does not begin with one."""
    lines = text.splitlines()
    stamps = {place: moment for place, line in enumerate(lines) if (moment := moment_of(line)) is not None}
    if not stamps or any(line.strip() for line in lines[: min(stamps)]):
        return None
    places = [*stamps, len(lines)]
    zones = {moment.utcoffset() for moment in stamps.values()}
    timezone = _zone_name(zones.pop()) if len(zones) == 1 else None
    unknown = "" if timezone is not None else _unknown_zone(lines[min(stamps)])
    blocks = [lines[place + 1 : places[number + 1]] for number, place in enumerate(stamps)]
    if _OWN_TIME.search("\n".join(blocks[0])) is not None:
        bare = "".join(f"{line}\n" for block in blocks for line in block)
        return Stamped(bare, timezone, 0, unknown)
    written: list[str] = []
    left_out = 0
    for moment, block in zip(stamps.values(), blocks, strict=True):
        rows, count = _dated(moment, block, is_first=not written)
        written += rows
        left_out += count
    return Stamped("\n".join(written) + "\n", timezone, left_out, unknown) if written else None


def _dated(moment: datetime, block: list[str], *, is_first: bool) -> tuple[list[str], int]:
    """The lines of a block with times, and how many reports since boot were left out.

    The one of the first block stays: importers know that the first report of a file is such.
    """
    lines = [line for line in block if line.strip()]
    is_vmstat = any(_VMSTAT_HEAD.match(line) for line in lines[:4])
    return (_of_vmstat if is_vmstat else _of_reports)(moment, lines, is_first)


def _of_vmstat(moment: datetime, lines: list[str], is_first: bool) -> tuple[list[str], int]:
    """The headings and one row: the mean of the block's rows, since it is one look at the machine."""
    rows = [line for line in lines if _NUMBERS.match(line) is not None]
    heads = [line for line in lines if _NUMBERS.match(line) is None]
    kept = [row.split() for row in rows[1:] or rows]
    if not kept or len({len(row) for row in kept}) != 1:  # a damaged block stays as it is, for the importer to name
        return [_stamped_line(moment, line) for line in lines], 0
    mean = np.array(kept, dtype=np.float64).mean(axis=0)
    row = " ".join(f"{value:.6g}" for value in mean.tolist())
    end = moment + timedelta(seconds=len(rows) - 1)
    since_boot = rows[: len(rows) - len(kept)]
    written = [*(_stamped_line(moment, line) for line in (*heads, *since_boot * is_first)), _stamped_line(end, row)]
    return written, len(since_boot) * (not is_first)


def _of_reports(moment: datetime, lines: list[str], is_first: bool) -> tuple[list[str], int]:
    """The reports of iostat, one second apart, without the first of several."""
    mark = "avg-cpu" if any(line.startswith("avg-cpu") for line in lines) else "Device"
    starts = [place for place, line in enumerate(lines) if line.startswith(mark)]
    left_out = len(starts) > 1 and not is_first
    written: list[str] = []
    for place, line in enumerate(lines):
        report = sum(start <= place for start in starts) - 1
        if not (left_out and report == 0):
            written.append(_stamped_line(moment + timedelta(seconds=max(report, 0)), line))
    return written, int(left_out)


def _stamped_line(moment: datetime, line: str) -> str:
    return f"{moment.isoformat(sep='T')} {line}"


def _zone_name(offset: timedelta | None) -> str | None:
    if offset is None or offset.total_seconds() % 3600:
        return None
    hours = int(offset.total_seconds() // 3600)
    return f"Etc/GMT{-hours:+d}" if hours else "UTC"
