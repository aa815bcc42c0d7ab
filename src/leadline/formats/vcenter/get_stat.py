"""Rows of PowerCLI's Get-Stat, whatever people made of them: CSV, pivoted CSV, a console's table or list.

A row is a sample: a time, a counter, an entity, an instance and a value, each as the text that was printed.

Source: VMware PowerCLI reference: Get-Stat, the properties of Sample. PowerShell reference: Export-Csv.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import lru_cache
from pathlib import PurePosixPath

from leadline.core.io.source import Source
from leadline.core.model.capture import CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.formats.stamps import parse_stamp
from leadline.formats.vcenter.numbers import bad_line, cell_number

RECORD = "Get-Stat -Entity (Get-VM db01) -Realtime -Stat cpu.*,mem.*,virtualdisk.* | Export-Csv -NoType stat.csv"
WITH_NAMES = "Select Timestamp,Entity,MetricId,Value,Unit,Instance | Export-Csv -NoType stat.csv"
_GROUPS = "cpu|mem|disk|virtualdisk|net|datastore|storageadapter|storagepath|power|sys|rescpu|clusterservices"
COUNTER = re.compile(
    rf"(?<![a-z0-9])(?:{_GROUPS})\.[a-z]\w{{1,40}}\.(?:average|summation|latest|minimum|maximum|none)(?![a-z0-9])",
    re.IGNORECASE,
)
_HEAD_LINES = 4  # a #TYPE line and empty ones may come before the header
_DELIMITERS = (",", ";", "\t", "|")
_TIMES = ("timestamp", "time", "date", "datetime", "date/time")
# Names that scripts give the column of the entity, and what the entity then is.
ENTITY_COLUMNS = {
    "entity": "",
    "entityname": "",
    "name": "",
    "vm": "VirtualMachine",
    "vmname": "VirtualMachine",
    "virtualmachine": "VirtualMachine",
    "vmhost": "HostSystem",
    "host": "HostSystem",
    "hostname": "HostSystem",
    "esxi": "HostSystem",
    "datastore": "Datastore",
}
_ALIASES = {"metric": "metricid", "stat": "metricid", "counter": "metricid", "intervalsec": "intervalsecs"}
_CLOCK = re.compile(r"(\d{1,2}:\d\d)(\s*[AaPp]\.?\s?[Mm]\.?)?")


@dataclass(frozen=True, slots=True)
class StatRow:
    """One sample as it was printed.

    Attributes:
        kind: what vCenter calls the kind of the entity ("VirtualMachine"); "" where the export does not say.
        minute: the time was printed without seconds.
    """

    line: int
    timestamp: str = ""
    value: str = ""
    metric: str = ""
    entity: str = ""
    kind: str = ""
    unit: str = ""
    interval: str = ""
    instance: str = ""
    minute: bool = False


@dataclass(frozen=True, slots=True)
class DelimitedHeader:
    """The header of a CSV.

    Attributes:
        line: its index.
        columns: positions of the columns that are a sample's properties, by their name in lower case.
        counters: of a pivoted table: what each further column holds, by its position.
        metric: the counter that only the file's name says; "" where the columns say it.
        entity: the entity that only the file's name says.
        width: how many columns there are.
    """

    line: int
    delimiter: str
    columns: dict[str, int]
    width: int
    counters: dict[int, StatRow] = field(default_factory=dict)
    metric: str = ""
    entity: str = ""

    @property
    def is_complete(self) -> bool:
        """Whether the metric of each value is known."""
        return bool(self.counters or self.metric or "metricid" in self.columns)


def delimited_header(text: str, name: str) -> DelimitedHeader | None:
    """The header of Get-Stat's samples as CSV, pivoted or not; None when the text heads no such table.

    Args:
        text: the beginning of the file.
        name: the name of the file, which may say the counter and the entity.
    """
    for number, line in enumerate(text.lstrip("\ufeff").splitlines()[:_HEAD_LINES]):
        for delimiter in _DELIMITERS:
            if delimiter not in line:
                continue
            try:
                cells = next(csv.reader([line], delimiter=delimiter, skipinitialspace=True), [])
            except csv.Error:
                continue
            header = _header_of(number, delimiter, [cell.strip() for cell in cells], name)
            if header is not None:
                return header
    return None


def _header_of(number: int, delimiter: str, cells: list[str], name: str) -> DelimitedHeader | None:
    columns: dict[str, int] = {}
    for index, cell in enumerate(cells):
        label = cell.casefold()
        label = _ALIASES.get(label, label)
        columns.setdefault("timestamp" if label in _TIMES else label, index)
    if "timestamp" not in columns:
        return None
    counters = {index: _counter_column(cell) for index, cell in enumerate(cells) if COUNTER.search(cell)}
    metric, entity = named_in(name)
    header = DelimitedHeader(number, delimiter, columns, len(cells), counters, entity=entity)
    if counters:
        return header
    if "value" in columns:
        if "metricid" in columns:
            return header
        known = {"timestamp", "value", "unit", "instance", "intervalsecs", "entityid", *ENTITY_COLUMNS}
        is_plain = set(columns) <= known and (metric or "timestamp" in {cell.casefold() for cell in cells})
        return replace(header, metric=metric) if is_plain else None
    if metric and len(columns) > 1 and not any(cell_number(cell) is not None for cell in cells):
        others = {
            i: StatRow(0, metric=metric, entity=cell) for i, cell in enumerate(cells) if i != columns["timestamp"]
        }
        return replace(header, counters={i: row for i, row in others.items() if row.entity}, metric=metric)
    return None


def named_in(name: str) -> tuple[str, str]:
    """The counter and the entity that a file's name says.

    >>> named_in("out/db01_cpu.ready.summation.csv")
    ('cpu.ready.summation', 'db01')
    """
    stem = PurePosixPath(name.rpartition("!")[2].replace("\\", "/")).name
    match = COUNTER.search(stem.replace("_", " "))
    if match is None:
        return "", ""
    rest = [stem[: match.start()].strip(" _-."), re.sub(r"\.\w{1,5}$", "", stem[match.end() :]).strip(" _-.")]
    return match[0], next((part for part in rest if part), "")


def _counter_column(heading: str) -> StatRow:
    """A heading with a counter, and what else it names: an entity before it, an instance or a unit behind it."""
    match = COUNTER.search(heading)
    before = heading[: match.start()].strip(" _-:.\\/|()[]") if match else ""
    after = heading[match.end() :].strip(" _-:.\\/|()[]") if match else ""
    counter = match[0] if match else ""
    if after and (after in {"%", "ms", "KB", "KBps", "MHz"} or after.casefold() in {"percent", "millisecond"}):
        return StatRow(0, metric=counter, entity=before, unit=after)
    is_instance = re.fullmatch(r"\d{1,4}|vm(?:nic|hba|k)\d+|(?:naa|eui|t10|mpx)\..*|\w{3,5}\d+:\d+", after) is not None
    return StatRow(
        0, metric=counter, entity=before or ("" if is_instance else after), instance=after if is_instance else ""
    )


def delimited_rows(
    text: str, header: DelimitedHeader, source: Source, builder: CaptureBuilder, *, truncate_last: bool
) -> Iterator[StatRow]:
    """The samples of a CSV; a last line that was cut off is dropped and said.

    Raises:
        InputError: a row has other columns.
    """
    lines = text.splitlines()
    whole = text.endswith(("\n", "\r")) and not truncate_last
    last = len(lines)
    while last and not lines[last - 1].strip():
        last -= 1
    reader = csv.reader(
        (line.replace("\0", "") for line in lines[header.line + 1 : last]),
        delimiter=header.delimiter,
        skipinitialspace=True,
    )
    while True:
        try:
            cells = next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            raise bad_line(source, header.line + 1 + reader.line_num, str(error), "a row of quoted cells") from error
        line = header.line + 1 + reader.line_num
        if not any(cell.strip() for cell in cells):
            continue
        cells = [cell.strip() for cell in cells]
        while len(cells) > header.width and not cells[-1]:
            cells.pop()
        rows = _rows_of(cells, header, line) if len(cells) == header.width else []
        if line >= last and not whole and not all(_is_sound(row) for row in rows or [StatRow(line)]):
            builder.warn("cut", "the last row was cut off and left out")
            return
        if not rows:
            raise bad_line(source, line, f"{len(cells)} cells", f"{header.width}, as the header has")
        yield from rows


def _is_sound(row: StatRow) -> bool:
    return (not row.value or cell_number(row.value) is not None) and parse_stamp(row.timestamp) is not None


def _rows_of(cells: list[str], header: DelimitedHeader, line: int) -> list[StatRow]:
    known = {name: cells[index] for name, index in header.columns.items()}
    base = row_of(known, line)
    if header.counters:
        return [_pivoted(base, column, cells[index], header.entity) for index, column in header.counters.items()]
    if base.metric and base.entity:
        return [base]
    return [replace(base, metric=base.metric or header.metric, entity=base.entity or header.entity)]


def _pivoted(base: StatRow, column: StatRow, value: str, entity: str) -> StatRow:
    """The sample in a cell of a pivoted table."""
    return replace(
        base,
        value=value,
        metric=column.metric,
        entity=column.entity or base.entity or entity,
        kind="" if column.entity else base.kind,
        unit=column.unit or base.unit,
        instance=column.instance or base.instance,
    )


def row_of(known: dict[str, str], line: int) -> StatRow:
    """The sample with some properties, by their names in lower case."""
    stamp, minute = with_seconds(known.get("timestamp", ""))
    entity, kind = next(((known[n], kind) for n, kind in ENTITY_COLUMNS.items() if known.get(n)), ("", ""))
    return StatRow(
        line,
        stamp,
        known.get("value", ""),
        known.get("metricid", ""),
        entity,
        known.get("entityid", "").rpartition("/")[2].rpartition("=")[2].partition("-")[0] or kind,
        known.get("unit", ""),
        known.get("intervalsecs", ""),
        known.get("instance", ""),
        minute,
    )


@lru_cache(maxsize=4096)  # a moment has a row for each counter
def with_seconds(stamp: str) -> tuple[str, bool]:
    """A time with its seconds, which a spreadsheet drops when it stores a CSV; and whether they were missing.

    >>> with_seconds("11/20/2026 8:30 AM"), with_seconds("20.11.2026 08:30:20")
    (('11/20/2026 8:30:00 AM', True), ('20.11.2026 08:30:20', False))
    """
    if parse_stamp(stamp) is not None:
        return stamp, False
    match = _CLOCK.search(stamp)
    if match is None or stamp[match.end() :].strip():
        return stamp, False
    longer = f"{stamp[: match.start()]}{match[1]}:00{match[2] or ''}"
    return (longer, True) if parse_stamp(longer) is not None else (stamp, False)


def nameless(source: Source) -> InputError:
    """The refusal of samples of which nothing says the counter."""
    return InputError(
        source.name,
        found="times and values, and nothing that says of which counter, of which VM or host",
        expected="the columns Entity and MetricId too, or a file name with both: db01-cpu.ready.summation.csv",
        advice=f"Export it with its names: Get-Stat ... | {WITH_NAMES}",
    )
