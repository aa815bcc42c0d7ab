"""What sysstat's tools write for machines: JSON of all of them, and XML, CSV and the database form of ``sadf``.

All become the tables of a `SysstatTables`, as its text does, with the names the form itself uses: ``disk.rkB`` in JSON,
``disk-device.rkB`` in XML (the element), ``DEV:rkB/s`` in CSV.
"""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ET
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from leadline.core.contracts.importer import Request
from leadline.core.io.clock import to_ns
from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.formats.sysstat.text import (
    PER_CPU,
    Banner,
    SysstatTables,
    clock_of,
    column_layout,
    dates,
    epoch_ns,
    moment_of,
    number,
    table_of,
)

ItemOf = Callable[[Mapping[str, Any]], str | None]

_ITEM_KEYS = frozenset({"number", "dev", "iface", "line", "cpu", "intr", "name", "fsname", "bus_number"})
_REPORT_END = "\n\t\t\t\t}"
_TIME = re.compile(r"((?:19|20)\d\d-\d\d-\d\d)[ T](\d\d)[:-](\d\d)[:-](\d\d)(?: (UTC|GMT))?")
_NOT_SAMPLED = frozenset({"usb-devices", "usb"})  # a list of what is plugged in
_SEPARATORS = {"csv": ";", "database": "\t"}


def read_json(
    source: Source, request: Request, builder: CaptureBuilder, item_of: ItemOf | None = None
) -> SysstatTables:
    """The tables of a JSON document; one cut in its last report loses that report, with a warning.

    Args:
        source: the file.
        request: zone of local times.
        builder: takes the warning.
        item_of: the item of an entry of a list, None to leave the entry out; by default its first value.

    Raises:
        InputError: it is not sysstat's JSON, or is damaged before its last report.
    """
    document = _load(source, builder)
    recording = SysstatTables(source)
    try:
        for host in document["sysstat"]["hosts"]:
            recording.banners.append(_banner_of(host))
            for report in host["statistics"]:
                moment = _json_moment(report.pop("timestamp"), recording, request)
                _fill(recording, moment, _rows("", report, item_of or _first_value))
    except (KeyError, TypeError, ValueError, AttributeError, OverflowError, RecursionError) as error:
        raise _foreign(source, f"JSON whose {type(error).__name__} at {error}") from error
    return _filled(recording)


def _load(source: Source, builder: CaptureBuilder) -> Any:  # noqa: ANN401 - a JSON document
    text = source.text()
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        end = text.rfind(_REPORT_END)  # the tools indent a report by four tabs, in every version
        try:
            repaired = json.loads(f"{text[: end + len(_REPORT_END)]}\n]}}]}}}}") if end >= 0 else None
        except (ValueError, RecursionError):
            repaired = None
        if repaired is None:
            raise _foreign(source, f"JSON that breaks ({error})", getattr(error, "lineno", None)) from error
        builder.warn("cut", "the file ends within a report; that report was left out")
        return repaired


def _banner_of(host: Mapping[str, Any]) -> Banner:
    cpus, machine = host.get("number-of-cpus"), host.get("machine")
    day = str(host.get("date") or host.get("file-date") or "")
    return Banner(
        str(host.get("sysname", "Linux")),
        str(host.get("release", "")),
        str(host["nodename"]),
        dates(day),
        machine if isinstance(machine, str) else None,
        cpus if isinstance(cpus, int) else None,
    )


def _json_moment(stamp: Any, recording: SysstatTables, request: Request) -> int:  # noqa: ANN401 - text or an object
    if isinstance(stamp, Mapping):
        zoned = stamp.get("tz") in {"UTC", "GMT"} or bool(stamp.get("utc"))
        return _absolute(f"{stamp['date']} {stamp['time']}{' UTC' if zoned else ''}", recording, request)
    clock = clock_of(stamp)
    if clock is None:
        raise ValueError(stamp)
    return moment_of(recording, clock[0])


def _absolute(text: str, recording: SysstatTables, request: Request) -> int:
    """A dated time of sadf as UTC nanoseconds; ValueError when it is none."""
    recording.absolute = True
    epoch = epoch_ns(text)
    if epoch is not None:
        return epoch
    match = _TIME.fullmatch(text.strip())
    if match is None:
        raise ValueError(text)
    zone = "+00:00" if match[5] else ""
    recording.zoned &= bool(zone)
    return to_ns(datetime.fromisoformat(f"{match[1]}T{match[2]}:{match[3]}:{match[4]}{zone}"), request)


def _rows(name: str, node: Any, item_of: ItemOf) -> Iterator[tuple[str, str, dict[str, float]]]:  # noqa: ANN401 - JSON
    """The rows of a report: (group, item, values) of each list entry and of each object with numbers of its own."""
    if isinstance(node, Mapping):
        numbers = _numbers(node)
        if numbers:
            yield name, "", numbers
        for key, child in node.items():
            if isinstance(child, Mapping | list):
                yield from _rows(str(key), child, item_of)
    elif isinstance(node, list):
        for entry in node:
            if not isinstance(entry, Mapping):
                raise TypeError(name)
            item = item_of(entry)
            numbers = _numbers(entry)
            if item is not None and numbers and name not in _NOT_SAMPLED:
                yield name, item, numbers


def _fill(recording: SysstatTables, moment: int, rows: Iterator[tuple[str, str, dict[str, float]]]) -> None:
    """Put the rows of one report into their tables; an item named twice in it is numbered."""
    seen: dict[tuple[str, str, tuple[str, ...]], int] = {}
    for group, item, values in rows:
        columns = tuple(f"{group}.{name}" if group else name for name in values)
        key = (group, item, columns)
        seen[key] = seen.get(key, 0) + 1
        name = item if seen[key] == 1 else f"{item}#{seen[key]}"
        table_of(recording, group, columns).add(moment, name, list(values.values()))


def _first_value(entry: Mapping[str, Any]) -> str | None:
    key, value = next(iter(entry.items()), ("", None))
    return str(value) if isinstance(value, str) or key in _ITEM_KEYS else ""


def _numbers(entry: Mapping[str, Any]) -> dict[str, float]:
    return {
        str(key): float(value)
        for key, value in entry.items()
        if isinstance(value, int | float) and not isinstance(value, bool) and key not in _ITEM_KEYS
        if PER_CPU.fullmatch(key) is None
    }


def read_xml(source: Source, request: Request) -> SysstatTables:
    """The tables of ``sadf -x``; entities a document declares itself are refused, they can grow without end.

    Raises:
        InputError: it is not sadf's XML, or is damaged.
    """
    text = source.text()
    if "<!ENTITY" in text:
        raise _foreign(source, "XML that declares entities")
    recording = SysstatTables(source)
    try:
        root = ET.fromstring(text.encode("utf-8", errors="replace"))  # entities are refused above
        for host in _named(root, "host"):
            facts = {_tag(child): (child.text or "").strip() for child in host}
            cpus = facts.get("number-of-cpus", "")
            known: dict[str, Any] = {"nodename": host.attrib["nodename"], **facts}
            known["number-of-cpus"] = int(cpus) if cpus.isdigit() and len(cpus) < 7 else None
            recording.banners.append(_banner_of(known))
            for report in (each for part in _named(host, "statistics") for each in _named(part, "timestamp")):
                moment = _json_moment(dict(report.attrib), recording, request)
                _fill(recording, moment, _xml_rows(report, ""))
    except (ET.ParseError, LookupError, ValueError, OverflowError) as error:
        raise _foreign(source, f"XML that breaks ({error})") from error
    return _filled(recording)


def _named(parent: ET.Element, name: str) -> list[ET.Element]:
    return [child for child in parent if _tag(child) == name]


def _tag(element: ET.Element) -> str:
    return element.tag.rpartition("}")[2]


def _xml_rows(node: ET.Element, of: str) -> Iterator[tuple[str, str, dict[str, float]]]:
    for element in node:
        leaves = {_tag(child): child.text or "" for child in element if not child.attrib and not len(child)}
        texts = {**element.attrib, **leaves}
        item = "/".join(value for key, value in texts.items() if key in _ITEM_KEYS) or of
        values = {}
        for key, value in texts.items():
            if key not in _ITEM_KEYS and key not in {"per", "unit"}:
                try:
                    values[key] = number(value.strip())
                except ValueError:
                    continue
        if values and _tag(element) not in _NOT_SAMPLED:
            yield _tag(element), item, values
        yield from _xml_rows(element, item)


def read_csv(source: Source, request: Request, builder: CaptureBuilder, groups: frozenset[str]) -> SysstatTables:
    """The tables of ``sadf -d``: headings that begin with ``#``, then rows of host, interval, time, item, numbers.

    Raises:
        InputError: a row in the middle fits no heading, or ``sadf -h`` folded the items into one row.
    """
    recording = SysstatTables(source)
    layout, width = None, 0
    lines = source.lines()
    for index, line in enumerate(lines, 1):
        cells = line.split(_SEPARATORS["csv"])
        if line.startswith("#"):
            if "[...]" in line:
                raise _foreign(source, "the folded form of sadf -h", index)
            layout, width = column_layout(cells[3:], groups, ()), len(cells)
            foldable = any(cell.endswith("*") for cell in cells)
            layout = None if foldable else layout
            continue
        if not line.strip() or len(cells) < 4 or "RESTART" in cells[3] or cells[3].startswith("COM "):
            recording.restart_count += len(cells) > 3 and "RESTART" in cells[3]
            if line.strip() and len(cells) < 4:
                _damaged(source, index, line, len(lines), builder)
            continue
        if layout is None:
            continue
        try:
            if len(cells) != width:
                raise ValueError(line)  # noqa: TRY301 - one way out for every damage
            row = layout.parse(" ".join(cell.replace(" ", "_") or "-" for cell in cells[3:]))
            moment = _absolute(cells[2], recording, request)
        except (ValueError, OverflowError):
            if all(name.endswith(("status", "product", "manufact")) is False for name in layout.columns):
                _damaged(source, index, line, len(lines), builder)
            continue
        if row is not None:
            _host(recording, cells[0])
            table_of(recording, layout.group, layout.columns).add(moment, _whole(row[0]), row[1])
    return _filled(recording)


def _whole(item: str) -> str:
    return "all" if item == "-1" else item


def read_database(source: Source, request: Request, builder: CaptureBuilder) -> SysstatTables:
    """The tables of ``sadf -p``: a line per value of host, interval, time, item, name, value.

    Raises:
        InputError: a line in the middle has another shape.
    """
    recording = SysstatTables(source)
    lines = source.lines()
    row = _DatabaseRow()
    for index, line in enumerate(lines, 1):
        cells = line.split(_SEPARATORS["database"])
        if len(cells) > 3 and ("RESTART" in cells[3] or cells[3].startswith("COM ")):
            recording.restart_count += "RESTART" in cells[3]
            continue
        try:
            host, _, stamp, item, name, value = cells
            moment = _absolute(stamp, recording, request)
        except (ValueError, OverflowError):
            if line.strip():
                _damaged(source, index, line, len(lines), builder)
            continue
        try:
            measured = number(value)
        except ValueError:
            continue  # a name, for instance of a USB device
        _host(recording, host)
        group, group_item = _database_group(item, name)
        column = f"{group}:{name}" if group else name
        if row.key != (moment, group, group_item) or column in row.values:
            row.into(recording)
            row = _DatabaseRow((moment, group, group_item))
        row.values[column] = measured
    row.into(recording)
    return _filled(recording)


@dataclass(slots=True)
class _DatabaseRow:
    """Values of one item at one moment, gathered from successive lines."""

    key: tuple[int, str, str] | None = None
    values: dict[str, float] = field(default_factory=dict)

    def into(self, recording: SysstatTables) -> None:
        if self.key is not None:
            moment, group, item = self.key
            table_of(recording, group, tuple(self.values)).add(moment, item, list(self.values.values()))


def _database_group(item: str, name: str) -> tuple[str, str]:
    """The group an item belongs to, which this form does not say, and the item's plain name."""
    if item == "-":
        return "", ""
    if item == "all" or re.fullmatch(r"cpu\d+", item):
        return "CPU", item.removeprefix("cpu")
    if name.startswith(("rx", "tx")) or name in {"%ifutil", "coll/s"}:
        return "IFACE", item
    return ("DEV", item) if name in _DEVICE_NAMES else ("item", item)


_DEVICE_NAMES = frozenset(
    "tps rd_sec/s wr_sec/s rkB/s wkB/s dkB/s avgrq-sz areq-sz avgqu-sz aqu-sz await svctm %util".split()
)


def _host(recording: SysstatTables, name: str) -> None:
    if not recording.banners:
        recording.banners.append(Banner("Linux", "", name, ()))


def _damaged(source: Source, index: int, line: str, line_count: int, builder: CaptureBuilder) -> None:
    if index < line_count:
        raise _foreign(source, f"{line.strip()[:60]!r}", index)
    builder.warn("cut", "the last line is cut and was left out")


def _filled(recording: SysstatTables) -> SysstatTables:
    if not any(table.moments for table in recording.tables.values()):
        raise _foreign(recording.source, "no sample")
    return recording


def _foreign(source: Source, problem: str, index: int | None = None) -> InputError:
    return InputError(
        source.name if index is None else f"{source.name}:{index}",
        found=problem,
        expected="what sadf -j, -x, -d or -p, or mpstat and pidstat with -o JSON write",
        advice="Export it again from the original, for instance sadf -j FILE -- -A > sar.json.",
    )
