"""AWS CloudWatch: answers of the command line in JSON, and CSV of the console.

Reads:
    ``aws cloudwatch get-metric-statistics`` and ``get-metric-data`` in JSON, several answers in one file or in the
    files of one folder, and the CSV that the console downloads of a graph: counters of AWS/RDS (Aurora too), AWS/EBS
    and AWS/EC2. Tables whose heading is ``Timestamp`` and the names of such counters are read, too, and what
    get-metric-statistics prints with ``--output table``.

Sample:
    .. code-block:: text

        {"Label": "ReadLatency", "Datapoints": [
            {"Timestamp": "2026-11-20T08:30:00+00:00", "Average": 0.0123, "Unit": "Seconds"}]}

        Full label,db01 ReadLatency
        Label,ReadLatency
        2026/11/20 08:30:00,0.0123

Lost:
    get-metric-statistics does not name what its values are of, and get-metric-data and the console name no statistic:
    a mean is assumed, a sum where the counter is an amount, and it is said. Period: the shortest distance of values.
    Amounts of which only the mean is there (``VolumeReadOps`` as Average is a mean of parts of the period, by kind of
    instance), and the highest value of what is a mean, are kept as ``raw.cloudwatch.COUNTER`` when everything is asked
    for; so are counters that no metric has. Whose a volume is no answer says.

Units:
    Latencies of RDS are seconds, of EBS milliseconds or seconds of all requests; bytes; checks are 0 or 1. A time is
    the beginning of its period. Times of the console have no zone: they are those of the browser, or UTC as it was set.

Sources:
    Amazon CloudWatch API Reference, GetMetricStatistics and GetMetricData. Amazon RDS User Guide, Amazon EBS User Guide
    and Amazon EC2 User Guide, CloudWatch metrics. The console's CSV as public readers of it expect it.
"""

from __future__ import annotations

import math
import re
from typing import Any

from leadline.core.contracts.importer import Field, ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.clouds.aws import COUNTERS, NAMES, SHARES, STATISTICS, SURE_NAMES, AwsLabel, parse_label
from leadline.formats.clouds.counters import CloudOwner
from leadline.formats.clouds.periods import CloudSeries
from leadline.formats.clouds.tables import cells_of
from leadline.formats.json_documents import json_documents, number_in
from leadline.formats.samples import NS_PER_S, epoch_ns, iso_ns
from leadline.formats.stamps import StampReader, parse_stamp
from leadline.formats.vcenter.numbers import cell_number

META = ImporterMeta(
    tool="AWS CloudWatch",
    marks=('"datapoints"', '"metricdataresults"', "full label", "statuscode", "timestamp", "getmetricstatistics"),
    layers=(Layer.GUEST, Layer.VM, Layer.DATABASE),
    fields={name: counter.field for name, counter in COUNTERS.items()}
    | {share.time: Field(share.metric, "ms") for share in SHARES},
    record="aws cloudwatch get-metric-data --metric-data-queries file://queries.json > cloudwatch.json",
    joins=True,
)

_AGAIN = "export the statistics Average and Sum"
_DATA = re.compile(r'"MetricDataResults"\s*:\s*\[')
_STATISTICS = re.compile(r'"Datapoints"\s*:\s*\[')
_LABEL = re.compile(r'"Label"\s*:\s*"')
_HEAD = re.compile(r'^"?(?:Full label|StatusCode)"?,', re.MULTILINE)
_BOX = re.compile(r"^\|\|? +(?:GetMetricStatistics|Datapoints) +\|", re.MULTILINE)
_LABELS = re.compile(r'^"?Label"?,', re.MULTILINE)
_ROWS_OF_HEAD = frozenset(
    {
        "id",
        "statuscode",
        "messages",
        "full label",
        "label",
        "period",
        "statistic",
        "unit",
        "",
        "region",
        "color",
        "yaxis",
    }
)
_TIME_NAMES = frozenset({"timestamp"})
_Point = tuple[str, int, float]


def sniff(source: Source) -> int:
    """Sure by the keys of the answers, by the rows above a console's table, or by names of counters in a heading."""
    text = source.head_text
    if _DATA.search(text) or (_STATISTICS.search(text) and (_LABEL.search(text) or '"Unit"' in text)):
        return 92
    if _HEAD.search(text) and _LABELS.search(text):
        return 90
    if _BOX.search(text) and any(name in text for name in NAMES):
        return 85
    first = text.lstrip("\ufeff \r\n").partition("\n")[0]
    cells = cells_of(first)
    is_table = len(cells) > 1 and cells[0].casefold() in _TIME_NAMES
    return 75 if is_table and any(parse_label(cell).name in SURE_NAMES for cell in cells[1:]) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of machines, their disks and their database.

    Raises:
        InputError: the JSON is damaged, or no counter of RDS, EBS or EC2 is in it.
        UsageError: the request names a date or time zone that does not exist.
    """
    builder = CaptureBuilder(source.name, "cloudwatch", META.tool)
    series = CloudSeries("cloudwatch", COUNTERS, SHARES, _AGAIN)
    documents = json_documents(source.text().lstrip("\ufeff"), source.name)
    if documents.cut:
        builder.warn("cut", "the last answer was cut off and left out")
    for document in documents.documents:
        _add_answer(document.value, series, builder)
    _add_boxes(documents.other_text.splitlines(), series, builder)
    known = _add_tables(documents.other_text, source, request, builder, series)
    if not series.has_known and not any(name in NAMES for name in series.names):
        names = ", ".join(map(repr, series.names[:5])) or "no counter with values"
        raise InputError(
            source.name,
            found=names,
            expected="counters of AWS/RDS, AWS/EBS or AWS/EC2, such as ReadLatency or VolumeReadOps",
            advice="Name the counter in the label, or write a map: leadline import --suggest-map FILE",
        )
    series.into(request, builder)
    return builder.build(clock_known=known)


def _add_answer(answer: Any, series: CloudSeries, builder: CaptureBuilder) -> None:  # noqa: ANN401 - any JSON
    if not isinstance(answer, dict):
        return
    results = answer.get("MetricDataResults")
    for result in results if isinstance(results, list) else []:
        if isinstance(result, dict):
            _add_result(result, series, builder)
    points = answer.get("Datapoints")
    if isinstance(points, list):
        _add_datapoints(str(answer.get("Label") or ""), points, series, builder)
    if answer.get("NextToken"):
        builder.warn("more", "the answer has a NextToken: there are more values that are not in this file")


def _add_result(result: dict[str, Any], series: CloudSeries, builder: CaptureBuilder) -> None:
    times, values = result.get("Timestamps"), result.get("Values")
    if not isinstance(times, list) or not isinstance(values, list):
        return
    if len(times) != len(values):
        builder.warn("unequal", "series were left out whose times and values differ in number")
        return
    label = parse_label(str(result.get("Label") or ""))
    if label.name not in NAMES:
        by_id = parse_label(str(result.get("Id") or ""))
        label = by_id if by_id.name in NAMES else label
    status = str(result.get("StatusCode") or "Complete")
    if status != "Complete":
        builder.warn("more", f"the answer is not complete ({status[:20]})")
    moments = [_time_ns(time) for time in times]
    numbers = [_number(value) for value in values]
    _put(label, [(t, v) for t, v in zip(moments, numbers, strict=True) if t is not None], series)
    lost = moments.count(None)
    if lost:
        builder.warn("no-time", "values without a time were left out", lost)


def _add_datapoints(label: str, points: list[Any], series: CloudSeries, builder: CaptureBuilder) -> None:
    parsed = parse_label(label)
    columns: dict[str, list[tuple[int, float]]] = {}
    for point in points:
        time_ns = _time_ns(point.get("Timestamp")) if isinstance(point, dict) else None
        if time_ns is None:
            builder.warn("no-time", "values without a time were left out")
            continue
        further = point.get("ExtendedStatistics")
        for name, value in {**point, **(further if isinstance(further, dict) else {})}.items():
            statistic = STATISTICS.get(name.casefold(), name.casefold())
            if statistic not in {"timestamp", "unit", "extendedstatistics", "samplecount"}:
                columns.setdefault(statistic, []).append((time_ns, _number(value)))
    for statistic, values in columns.items():
        series.put(parsed.owner, parsed.name, statistic, values)


def _add_boxes(lines: list[str], series: CloudSeries, builder: CaptureBuilder) -> None:
    """Add what the command line draws as boxes: the label, the names of columns, and a row for each period."""
    label = ""
    names: list[str] = []
    points: list[Any] = []
    for line in lines:
        if not line.startswith("|"):
            continue
        cells = [cell.strip() for cell in line.strip().strip("|").split("|")]
        if cells[0] in {"GetMetricStatistics", "Label"}:
            _add_datapoints(label, points, series, builder)
            label, names, points = cells[1] if len(cells) == 2 else "", [], []
        elif "Timestamp" in cells:
            names = cells
        elif names and len(cells) == len(names):
            numbers = {name: cell_number(cell) for name, cell in zip(names, cells, strict=True) if name != "Timestamp"}
            points.append({"Timestamp": cells[names.index("Timestamp")], **numbers})
    _add_datapoints(label, points, series, builder)


def _put(label: AwsLabel, points: list[tuple[int, float]], series: CloudSeries) -> None:
    period_s = float(label.period_s) if label.period_s else math.nan
    series.put(label.owner, label.name, label.statistic, points, period_s)


def _time_ns(stamp: Any) -> int | None:  # noqa: ANN401 - any JSON
    if isinstance(stamp, str):
        return iso_ns(stamp)
    seconds = _number(stamp)
    return None if math.isnan(seconds) else epoch_ns(seconds, NS_PER_S)


def _number(value: Any) -> float:  # noqa: ANN401 - any JSON
    return number_in({"value": value}, "value")


def _add_tables(text: str, source: Source, request: Request, builder: CaptureBuilder, series: CloudSeries) -> bool:
    """Add the tables of a text: rows that name counters, and below them rows of a time and values."""
    heads: dict[str, list[str]] = {}
    rows: list[tuple[str, list[str], list[AwsLabel]]] = []
    labels: list[AwsLabel] = []
    lost = 0
    for line in text.splitlines():
        cells = cells_of(line)
        if len(cells) < 2 or line.startswith(("|", "+", "-")):
            continue
        name = cells[0].casefold()
        if name in _TIME_NAMES or name in _ROWS_OF_HEAD:
            if labels:
                heads, labels = {}, []
            heads["label" if name in _TIME_NAMES else name] = cells[1:]
        elif parse_stamp(cells[0]) is not None:
            labels = labels or _labels(heads)
            rows.append((cells[0], cells[1:], labels))
        else:
            lost += any(cells)
    if lost:
        builder.warn("left-out", "lines that are no row of a table were left out", lost)
    if not rows:
        return True
    reader = StampReader.of([stamp for stamp, _, _ in rows], [], source, request, builder)
    times = reader.times_ns([stamp for stamp, _, _ in rows], None).tolist()
    columns: dict[AwsLabel, list[tuple[int, float]]] = {}
    for time_ns, (_, cells, known) in zip(times, rows, strict=True):
        for label, cell in zip(known, cells, strict=False):
            value = cell_number(cell) if cell else math.nan
            if value is None:
                builder.warn("no-number", "values that are no numbers were left out")
            columns.setdefault(label, []).append((time_ns, math.nan if value is None else value))
    for label, points in columns.items():
        _put(label, points, series)
    return reader.known


def _labels(heads: dict[str, list[str]]) -> list[AwsLabel]:
    """What each column holds: by its full label, else by its label and the rows that name its statistic and period."""
    count = max((len(cells) for cells in heads.values()), default=0)
    labels = []
    for index in range(count):
        texts = [cells[index] for key in ("full label", "label") if index < len(cells := heads.get(key, []))]
        parsed = [parse_label(text) for text in texts]
        label = next((one for one in parsed if one.name in NAMES), parsed[-1] if parsed else AwsLabel("", CloudOwner()))
        statistic = _cell(heads, "statistic", index).casefold()
        period = _cell(heads, "period", index)
        labels.append(
            AwsLabel(
                label.name,
                label.owner,
                STATISTICS.get(statistic, statistic) or label.statistic,
                int(period) if period.isascii() and period.isdigit() and len(period) < 7 else label.period_s,
            )
        )
    return labels


def _cell(heads: dict[str, list[str]], row: str, index: int) -> str:
    cells = heads.get(row, [])
    return cells[index] if index < len(cells) else ""
