"""Azure Monitor: answers of its metrics API in JSON, and tables of its portal and of its logs in CSV.

Reads:
    ``az monitor metrics list`` in JSON (the same answer from the REST API, or several of them in one file): counters of
    virtual machines, managed disks, flexible servers of PostgreSQL and MySQL, and Azure SQL databases. CSV of the
    portal (a column of times, and one per counter whose heading holds the counter's name) and of the table AzureMetrics
    (``TimeGenerated``, ``MetricName``, ``Average`` ...).

Sample:
    .. code-block:: text

        {"interval": "PT1M", "value": [{"name": {"value": "Data Disk Latency"}, "unit": "MilliSeconds",
          "id": ".../virtualMachines/db01/providers/Microsoft.Insights/metrics/Data Disk Latency",
          "timeseries": [{"metadatavalues": [{"name": {"value": "lun"}, "value": "0"}],
            "data": [{"timeStamp": "2026-11-20T08:30:00Z", "average": 12.3, "maximum": 31.0}]}]}]}

Lost:
    Highest and lowest values where the mean is there: they are kept as ``raw.azure.COUNTER.maximum`` when everything is
    asked for. Of shares of a limit the highest is used where there is no mean. Which data disk a value is of, unless
    the answer is split by LUN: all of them are one disk then. Temporary disks, and counters that no metric has.

Units:
    Latency is milliseconds, throughput bytes per second, memory bytes. Used up credits are turned into credits left.
    A time is the beginning of its period, which the answer names.

Sources:
    Microsoft Learn: Azure Monitor REST API, Metrics - List; "Disk performance metrics"; supported metrics of
    Microsoft.Compute/virtualMachines, Microsoft.Compute/disks, Microsoft.DBforPostgreSQL/flexibleServers,
    Microsoft.DBforMySQL/flexibleServers and Microsoft.Sql/servers/databases; the table AzureMetrics.
"""

from __future__ import annotations

import math
import re
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.clouds.azure import COUNTERS, HEADINGS, SURE_HEADINGS, counter_name
from leadline.formats.clouds.counters import CloudOwner
from leadline.formats.clouds.periods import HIGHEST, LOWEST, MEAN, SUM, CloudSeries
from leadline.formats.clouds.tables import cells_of
from leadline.formats.json_documents import json_documents, number_in, object_in
from leadline.formats.samples import iso_ns
from leadline.formats.stamps import StampReader, parse_stamp
from leadline.formats.vcenter.numbers import cell_number

META = ImporterMeta(
    tool="Azure Monitor",
    marks=('"timeseries"', "timegenerated", "timestamp", "time (utc)"),
    layers=(Layer.GUEST, Layer.VM, Layer.DATABASE),
    fields={name: counter.field for name, counter in COUNTERS.items()},
    record="az monitor metrics list --resource ID --interval PT1M --aggregation Average Total "
    "--metrics 'Data Disk Latency' 'Data Disk IOPS Consumed Percentage' -o json > azure.json",
)

_SERIES = re.compile(r'"timeseries"\s*:\s*\[')
_NAMED = re.compile(r'"name"\s*:\s*\{|"localizedValue"')
_STATISTICS = {
    "average": MEAN,
    "avg": MEAN,
    "total": SUM,
    "sum": SUM,
    "maximum": HIGHEST,
    "max": HIGHEST,
    "minimum": LOWEST,
    "min": LOWEST,
}
_RESOURCE = re.compile(
    r"/(virtualMachines|virtualMachineScaleSets|disks|flexibleServers|servers|managedInstances)/([^/\s\"]{1,128})",
    re.IGNORECASE,
)
_INTERVAL = re.compile(r"PT?(?:(\d{1,4})D)?T?(?:(\d{1,4})H)?(?:(\d{1,4})M)?(?:(\d{1,6})S)?")
_TIME_NAMES = frozenset({"timegenerated", "timegenerated [utc]", "timestamp", "timestamp (utc)", "time (utc)"})
_WORD = re.compile(r"[^\s,;:()\[\]]+")


def sniff(source: Source) -> int:
    """Sure by the keys of the API's answer, or by names of its counters in a table with times."""
    text = source.head_text
    if _SERIES.search(text) and _NAMED.search(text) and '"timeStamp"' in text:
        return 92
    head = _head(text.splitlines()[:20])
    if head is None:
        return 0
    cells = [cell.casefold() for cell in head[1]]
    if "metricname" in cells and "timegenerated" in cells[0]:
        return 90
    return 74 if any(name in cell for cell in cells[1:] for name in SURE_HEADINGS) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of machines, their disks and their database.

    Raises:
        InputError: the JSON is damaged, or no known counter is in it.
        UsageError: the request names a date or time zone that does not exist.
    """
    builder = CaptureBuilder(source.name, "azure-monitor", META.tool)
    series = CloudSeries("azure", COUNTERS, again="ask for it with --aggregation Average Total")
    documents = json_documents(source.text().lstrip("\ufeff"), source.name)
    if documents.cut:
        builder.warn("cut", "the last answer was cut off and left out")
    for document in documents.documents:
        if isinstance(document.value, dict):
            _add_answer(document.value, series, builder)
    known = _add_table(documents.other_text.splitlines(), source, request, builder, series)
    if not series.has_known:
        names = ", ".join(map(repr, series.names[:5])) or "no counter with values"
        raise InputError(
            source.name,
            found=names,
            expected="counters of virtual machines, disks or databases, such as 'Data Disk Latency' or cpu_percent",
            advice="Export those, or write a map of a table: leadline import --suggest-map FILE",
        )
    series.into(request, builder)
    return builder.build(clock_known=known)


def _add_answer(answer: dict[str, Any], series: CloudSeries, builder: CaptureBuilder) -> None:
    period_s = _period_s(answer.get("interval"))
    values = answer.get("value")
    for counter in values if isinstance(values, list) else []:
        if not isinstance(counter, dict):
            continue
        name = object_in(counter, "name").get("value")
        runs = counter.get("timeseries")
        owner = _owner(str(counter.get("id") or ""))
        if not isinstance(name, str) or not isinstance(runs, list):
            builder.warn("left-out", "counters without a name or values were left out")
            continue
        for run in runs:
            if isinstance(run, dict):
                _add_run(_of_disk(owner, run), counter_name(name), run, period_s, (series, builder))


def _add_run(
    owner: CloudOwner,
    name: str,
    run: dict[str, Any],
    period_s: float,
    into: tuple[CloudSeries, CaptureBuilder],
) -> None:
    series, builder = into
    points = run.get("data")
    columns: dict[str, list[tuple[int, float]]] = {}
    for point in points if isinstance(points, list) else []:
        stamp = point.get("timeStamp") if isinstance(point, dict) else None
        time_ns = iso_ns(stamp) if isinstance(stamp, str) else None
        if time_ns is None:
            builder.warn("no-time", "values without a time were left out")
            continue
        for key, statistic in _STATISTICS.items():
            if point.get(key) is not None:
                columns.setdefault(statistic, []).append((time_ns, number_in(point, key)))
    for statistic, values in columns.items():
        series.put(owner, name, statistic, values, period_s)


def _owner(resource: str) -> CloudOwner:
    """The machine, server or disk in a resource's id; of a database on a server the server."""
    machine = disk = ""
    for kind, name in _RESOURCE.findall(resource[:1000]):
        if kind.casefold() == "disks":
            disk = name.casefold()  # the logs write all names in upper case
        else:
            machine = machine or name.casefold()
    return CloudOwner(machine, disk)


def _of_disk(owner: CloudOwner, run: dict[str, Any]) -> CloudOwner:
    """The owner with the disk that the answer is split by."""
    dimensions = run.get("metadatavalues")
    for dimension in dimensions if isinstance(dimensions, list) else []:
        if isinstance(dimension, dict) and str(object_in(dimension, "name").get("value")).casefold() == "lun":
            return CloudOwner(owner.machine, f"lun-{str(dimension.get('value'))[:20]}")
    return owner


def _period_s(interval: Any) -> float:  # noqa: ANN401 - any JSON
    match = _INTERVAL.fullmatch(interval) if isinstance(interval, str) else None
    if match is None:
        return math.nan
    days, hours, minutes, seconds = (int(part or 0) for part in match.groups())
    return float(((days * 24 + hours) * 60 + minutes) * 60 + seconds) or math.nan


def _head(lines: list[str]) -> tuple[int, list[str]] | None:
    """The index and cells of the heading of a table: the first line that begins with a name of times."""
    for index, line in enumerate(lines):
        cells = cells_of(line)
        if len(cells) > 1 and cells[0].casefold().lstrip("\ufeff") in _TIME_NAMES:
            return index, cells
    return None


def _named(heading: str) -> tuple[str, str, str] | None:
    """The counter, statistic and owner in a heading such as ``Data Disk Latency (Avg), db01``."""
    plain = " ".join(heading[:300].casefold().split())
    known = max((name for name in HEADINGS if name in plain), key=len, default=None)
    if known is None:
        return None
    before, _, after = plain.partition(known)
    words = _WORD.findall(f"{before} {after}".replace("(preview)", ""))
    if (before and before[-1:].isalnum()) or after[:1].isalnum() or after[:1] == "_" or before[-1:] == "_":
        return None
    statistic = next((_STATISTICS[word] for word in words if word in _STATISTICS), "")
    rest = [word for word in words if word not in _STATISTICS and word not in {"for", "of", "by"}]
    return counter_name(known), statistic, rest[0] if len(rest) == 1 else ""


def _add_table(
    lines: list[str], source: Source, request: Request, builder: CaptureBuilder, series: CloudSeries
) -> bool:
    """Add the rows of a table; whether the zone of its times is known."""
    head = _head(lines)
    if head is None:
        return True
    names = [cell.casefold().strip() for cell in head[1]]
    rows: list[list[str]] = []
    for line in lines[head[0] + 1 :]:
        cells = cells_of(line)
        if cells and parse_stamp(cells[0]) is not None:
            rows.append(cells)
        elif any(cells):
            builder.warn("left-out", "lines that are no row of a table were left out")
    if not rows:
        return True
    reader = StampReader.of([cells[0] for cells in rows], [], source, request, builder)
    times = reader.times_ns([cells[0] for cells in rows], None).tolist()
    add = _add_logged if "metricname" in names else _add_wide
    add(names if add is _add_logged else head[1], times, rows, series)
    return reader.known or "utc" in names[0]


def _add_wide(names: list[str], times: list[int], rows: list[list[str]], series: CloudSeries) -> None:
    for index, heading in enumerate(names[1:], 1):
        parsed = _named(heading)
        values = [_value(cells[index]) if index < len(cells) else math.nan for cells in rows]
        name, statistic, machine = parsed if parsed is not None else (heading[:100], "", "")
        series.put(CloudOwner(machine), name, statistic, zip(times, values, strict=True))


def _add_logged(names: list[str], times: list[int], rows: list[list[str]], series: CloudSeries) -> None:
    """Rows of the table AzureMetrics: one of each counter, resource and moment."""
    places = {name: index for index, name in enumerate(names)}

    def cell(cells: list[str], name: str) -> str:
        index = places.get(name, len(cells))
        return cells[index] if index < len(cells) else ""

    for time_ns, cells in zip(times, rows, strict=True):
        owner = _owner(cell(cells, "resourceid") or cell(cells, "_resourceid"))
        owner = owner if owner != CloudOwner() else CloudOwner(cell(cells, "resource").casefold())
        period_s = _period_s(cell(cells, "timegrain"))
        for key in ("average", "total", "maximum", "minimum"):
            text = cell(cells, key)
            if text:
                point = (time_ns, _value(text))
                name = counter_name(cell(cells, "metricname"))
                series.put(owner, name, _STATISTICS[key], [point], period_s)


def _value(text: str) -> float:
    number = cell_number(text.rstrip(" %")) if text else math.nan
    return math.nan if number is None else number
