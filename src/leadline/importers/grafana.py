"""Grafana's data of a panel, and answers of Prometheus' query API.

Reads:
    The CSV of a panel (Inspect > Data > Download CSV; series joined by time, or one below the other), formatted or not,
    with ``sep=`` above it or not; the JSON of a panel's data (Inspect > JSON, or the answer of a query); and the JSON
    of Prometheus' ``query_range`` and ``query``. Series whose heading or labels hold the name of node_exporter,
    postgres_exporter, mysqld_exporter or a counter of CloudWatch or Azure Monitor.

Sample:
    .. code-block:: text

        "Time","node_load1{instance=""db01:9100""}"
        2026-11-20 08:30:00,3.42

        {"status":"success","data":{"resultType":"matrix","result":[
          {"metric":{"__name__":"node_load1","instance":"db01:9100"},"values":[[1795163400,"3.42"]]}]}}

Lost:
    Series with a free name in the legend ("Read latency") are not mapped: they are kept as ``raw.grafana.HEADING``
    where others are known; a file without any known name is for a map (``leadline import --suggest-map``). A function
    that a query applied and that the labels do not show. The page size of swapped pages.

Units:
    Those of the exporters, unless a cell names another ("3.42 ms", "7.5 GiB", "1.2 K"). Counters become rates. Times
    of CSV have the zone of the browser: UTC is assumed and said; numbers are seconds or milliseconds since 1970.

Sources:
    Grafana documentation, "The panel inspect view"; Grafana, data frames. Prometheus documentation, HTTP API.
    Prometheus data source of Grafana, legend: name and labels. Public examples of exported CSV of Explore.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.clouds import aws, azure
from leadline.formats.clouds.azure import counter_name
from leadline.formats.clouds.counters import CloudOwner
from leadline.formats.clouds.exporters import LEVELS, RATES, ExporterSeries, SeriesName, named_by, parse_series
from leadline.formats.clouds.panel_cells import cell_amount, epoch_of
from leadline.formats.clouds.periods import CloudSeries
from leadline.formats.json_documents import json_documents, number_in, object_in
from leadline.formats.samples import NS_PER_S, epoch_ns
from leadline.formats.stamps import StampReader, parse_stamp

META = ImporterMeta(
    tool="Grafana",
    marks=("time", '"resulttype"', '"schema"', '"fields"'),
    layers=(Layer.GUEST, Layer.VM, Layer.DATABASE),
    fields={**LEVELS, **RATES},
    record="curl -s 'http://PROMETHEUS:9090/api/v1/query_range?query=NAME&start=T&end=T&step=15s' > prometheus.json",
)

_MATRIX = re.compile(r'"resultType"\s*:\s*"(?:matrix|vector)"')
_FRAMES = re.compile(r'"(?:schema|series)"\s*:\s*[\[{]')
_FIELDS = re.compile(r'"fields"\s*:\s*\[')
_TIME_TYPE = re.compile(r'"type"\s*:\s*"time"')
_LONG = ("series", "time", "value")
_Points = list[tuple[int, float]]


class _Panel:
    """The series of a panel by what names them, and headings that name none."""

    def __init__(self) -> None:
        self.exporters = ExporterSeries()
        self.clouds = CloudSeries("grafana", {**aws.COUNTERS, **azure.COUNTERS}, aws.SHARES)
        self.unknown: list[str] = []

    def put(self, name: SeriesName | None, heading: str, points: _Points) -> None:
        """Add a series by its name, else by its heading."""
        label = aws.parse_label(heading)
        plain = counter_name(heading)
        if name is not None:
            self.exporters.put(name, points)
        elif label.name in aws.SURE_NAMES:
            self.clouds.put(label.owner, label.name, label.statistic, points, float(label.period_s) or math.nan)
        elif plain in azure.SURE_HEADINGS:
            self.clouds.put(CloudOwner(), plain, "", points)
        else:
            self.unknown.append(heading)
            self.clouds.put(CloudOwner(), heading.strip()[:100] or "value", "", points)

    @property
    def is_known(self) -> bool:
        """Whether any series is known."""
        return self.exporters.count > 0 or self.clouds.has_known


def sniff(source: Source) -> int:
    """Sure by the keys of an answer, or by a table of times whose headings name series that are known."""
    text = source.head_text
    if _MATRIX.search(text) and '"metric"' in text:
        return 91
    if _FIELDS.search(text) and _TIME_TYPE.search(text) and _FRAMES.search(text):
        return 88
    head = _head(text)
    if head is None:
        return 0
    if tuple(head[1][:3]) == _LONG:
        known = any(_is_known(cells[0]) for cells in _rows(text, head) if cells)
    else:
        known = any(_is_known(heading) for heading in head[2][1:])
    return 78 if known else 0


def read(source: Source, request: Request) -> Capture:
    """Series of machines, disks and databases.

    Raises:
        InputError: the JSON is damaged, or no series has a name that is known.
        UsageError: the request names a date or time zone that does not exist.
    """
    builder = CaptureBuilder(source.name, "grafana", META.tool)
    panel = _Panel()
    text = source.text().lstrip("\ufeff")
    known_clock = True
    if text.lstrip()[:1] in {"{", "["}:
        for document in _documents(text, source.name):
            _add_document(document, panel)
    else:
        known_clock = _add_table(text, source, request, builder, panel)
    if not panel.is_known:
        names = ", ".join(map(repr, panel.unknown[:5])) or "no series with values"
        raise InputError(
            source.name,
            found=names,
            expected="series whose names tell what they are, such as node_load1 or ReadLatency",
            advice="Download the CSV and write a map: leadline import --suggest-map FILE",
        )
    if panel.unknown:
        shown = ", ".join(map(repr, panel.unknown[:4]))
        builder.warn("unknown", f"series whose names do not tell what they are: {shown}", len(panel.unknown))
    panel.exporters.into(request, builder)
    panel.clouds.into(request, builder)
    return builder.build(clock_known=known_clock)


def _is_known(heading: str) -> bool:
    if parse_series(heading) is not None or aws.parse_label(heading).name in aws.SURE_NAMES:
        return True
    return counter_name(heading) in azure.SURE_HEADINGS


def _documents(text: str, name: str) -> Iterator[dict[str, Any]]:
    """The objects of a text; those in a list at its top, too."""
    if text.lstrip()[:1] == "[":
        try:
            values = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(
                name, found="damaged JSON", expected="a whole document", advice="Copy the JSON again."
            ) from error
        yield from (value for value in values if isinstance(value, dict))
        return
    yield from (one.value for one in json_documents(text, name).documents if isinstance(one.value, dict))


def _add_document(document: dict[str, Any], panel: _Panel) -> None:
    results = object_in(document, "data").get("result")
    for result in results if isinstance(results, list) else []:
        if isinstance(result, dict):
            _add_result(result, panel)
    for frame in _frames(document):
        _add_frame(frame, panel)


def _add_result(result: dict[str, Any], panel: _Panel) -> None:
    labels = object_in(result, "metric")
    pairs = result.get("values") if isinstance(result.get("values"), list) else [result.get("value")]
    points = []
    for pair in pairs or []:
        if isinstance(pair, list) and len(pair) == 2:
            time_ns = _seconds_ns(pair[0])
            if time_ns is not None:
                points.append((time_ns, _number(pair[1])))
    panel.put(named_by(labels), str(labels)[:100], points)


def _frames(document: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """The data frames of an answer, or of a panel's data."""
    if isinstance(object_in(document, "schema").get("fields"), list) or isinstance(document.get("fields"), list):
        yield document
    for answer in object_in(document, "results").values():
        frames = answer.get("frames") if isinstance(answer, dict) else None
        yield from (frame for frame in frames or [] if isinstance(frame, dict)) if isinstance(frames, list) else ()
    series = document.get("series")
    yield from (frame for frame in series if isinstance(frame, dict)) if isinstance(series, list) else ()


def _add_frame(frame: dict[str, Any], panel: _Panel) -> None:
    schema = frame.get("schema") if isinstance(frame.get("schema"), dict) else frame
    fields = schema.get("fields") if isinstance(schema, dict) else None
    fields = [one for one in fields if isinstance(one, dict)] if isinstance(fields, list) else []
    stored = object_in(frame, "data").get("values")
    columns = [
        _values(stored[index] if isinstance(stored, list) and index < len(stored) else one.get("values"))
        for index, one in enumerate(fields)
    ]
    times = next((column for one, column in zip(fields, columns, strict=True) if one.get("type") == "time"), [])
    moments = [_milliseconds_ns(value) for value in times]
    frame_name = str((schema or {}).get("name") or "")
    for one, column in zip(fields, columns, strict=True):
        if one.get("type") != "number":
            continue
        config = object_in(one, "config")
        shown = str(config.get("displayNameFromDS") or config.get("displayName") or "")
        name = str(one.get("name") or "")
        series = named_by(object_in(one, "labels"), name) or parse_series(shown) or parse_series(frame_name)
        points = [(t, _number(v)) for t, v in zip(moments, column, strict=False) if t is not None]
        panel.put(series, shown or (name if name.casefold() != "value" else frame_name) or "value", points)


def _values(column: Any) -> list[Any]:  # noqa: ANN401 - any JSON
    """The values of a column; older versions wrap them."""
    if isinstance(column, dict):
        column = column.get("buffer")
    return column if isinstance(column, list) else []


def _seconds_ns(value: Any) -> int | None:  # noqa: ANN401 - any JSON
    number = _number(value)
    return None if math.isnan(number) else epoch_ns(number, NS_PER_S)


def _milliseconds_ns(value: Any) -> int | None:  # noqa: ANN401 - any JSON
    number = _number(value)
    return None if math.isnan(number) else epoch_ns(number, 1_000_000)


def _number(value: Any) -> float:  # noqa: ANN401 - any JSON
    if isinstance(value, str):
        amount = cell_amount(value, "")
        return math.nan if amount is None else amount
    return number_in({"value": value}, "value")


def _head(text: str) -> tuple[str, list[str], list[str]] | None:
    """The delimiter and the cells of the heading, in lower case and as they are; None where it is no such table."""
    lines = text.lstrip("\ufeff \r\n").splitlines()[:2]
    first = lines[0] if lines and not lines[0].casefold().startswith("sep=") else lines[1] if len(lines) > 1 else ""
    for delimiter in (",", ";", "\t"):
        try:
            cells = [cell.strip() for cell in next(csv.reader([first], delimiter=delimiter), [])]
        except csv.Error:
            return None
        plain = [cell.casefold() for cell in cells]
        if len(cells) > 1 and (plain[0] == "time" or tuple(plain[:3]) == _LONG):
            return delimiter, plain, cells
    return None


def _rows(text: str, head: tuple[str, list[str], list[str]]) -> Iterator[list[str]]:
    """The cells of the rows below the heading."""
    lines = text.lstrip("\ufeff \r\n").splitlines()
    skip = 2 if lines and lines[0].casefold().startswith("sep=") else 1
    for line in lines[skip:]:
        try:
            yield [cell.strip() for cell in next(csv.reader([line], delimiter=head[0]), [])]
        except csv.Error:
            yield []


def _add_table(text: str, source: Source, request: Request, builder: CaptureBuilder, panel: _Panel) -> bool:
    """Add the series of a CSV; whether the zone of its times is known."""
    head = _head(text)
    rows = list(_rows(text, head)) if head is not None else []
    is_long = head is not None and tuple(head[1][:3]) == _LONG
    at = 1 if is_long else 0
    sound = [cells for cells in rows if len(cells) > at + 1 and _is_time(cells[at])]
    lost = sum(1 for cells in rows if any(cells)) - len(sound)
    if lost:
        builder.warn("left-out", "lines that are no row of the table were left out", lost)
    times, known = _times([cells[at] for cells in sound], source, request, builder)
    columns: dict[str, _Points] = {}
    for time_ns, cells in zip(times, sound, strict=True):
        headings, shown = ([cells[0]], cells[2:3]) if is_long else (head[2][1:] if head else [], cells[1:])
        for heading, cell in zip(headings, shown, strict=False):
            amount = cell_amount(cell, _unit_of(heading))
            if amount is None:
                builder.warn("no-number", "cells that are no numbers were left out")
            columns.setdefault(heading, []).append((time_ns, math.nan if amount is None else amount))
    for heading, points in columns.items():
        panel.put(parse_series(heading), heading, points)
    return known


def _is_time(cell: str) -> bool:
    return epoch_of(cell) is not None or parse_stamp(cell) is not None


def _times(cells: list[str], source: Source, request: Request, builder: CaptureBuilder) -> tuple[list[int], bool]:
    numbers = [epoch_of(cell) for cell in cells]
    if all(number is not None for number in numbers):
        return [number for number in numbers if number is not None], True
    stamps = [cell for cell, number in zip(cells, numbers, strict=True) if number is None]
    reader = StampReader.of(stamps, [], source, request, builder)
    read_times = iter(reader.times_ns(stamps, None).tolist())
    return [next(read_times) if number is None else number for number in numbers], reader.known


def _unit_of(heading: str) -> str:
    """The unit a series has by its name; empty where that is not known."""
    series = parse_series(heading)
    if series is not None:
        meant = LEVELS.get(series.name) or RATES.get(series.name)
        return meant.unit if meant is not None and (series.is_rate or series.name in LEVELS) else ""
    counter = aws.COUNTERS.get(aws.parse_label(heading).name) or azure.COUNTERS.get(counter_name(heading))
    return counter.unit if counter is not None else ""
