"""Google Cloud Monitoring: answers of timeSeries.list in JSON.

Reads:
    The JSON of ``projects.timeSeries.list`` (REST API, client libraries, a list of series from a script): counters of
    Compute Engine's instances and their disks, and of Cloud SQL.

Sample:
    .. code-block:: text

        {"timeSeries": [{"metric": {"type": "compute.googleapis.com/instance/disk/read_ops_count",
            "labels": {"instance_name": "db01", "device_name": "data"}},
          "resource": {"type": "gce_instance", "labels": {"instance_id": "1"}}, "metricKind": "DELTA",
          "points": [{"interval": {"startTime": "2026-11-20T08:30:00Z", "endTime": "2026-11-20T08:31:00Z"},
            "value": {"int64Value": "18000"}}]}]}

Lost:
    Limits: the cloud exports no share of a limit that is in use; a limit shows as IOPS that stay while latency grows.
    Distributions, and counters that no metric has, which are kept as ``raw.google.COUNTER`` when everything is asked
    for.

Units:
    Counts and bytes are of an interval (DELTA), or per second where the query aligned them to a rate (GAUGE). Latency
    is microseconds, utilisation a ratio. A time is the end of its interval.

Sources:
    Google Cloud Monitoring API, projects.timeSeries. Compute Engine documentation, "Review disk metrics". Google Cloud
    metrics: Compute Engine; Cloud SQL.
"""

from __future__ import annotations

import json
import math
import re
from dataclasses import replace
from typing import Any

from leadline.core.contracts.importer import ImporterMeta, Request
from leadline.core.io.source import Source
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.errors import InputError
from leadline.core.model.vocabulary import Layer
from leadline.formats.clouds.counters import CloudCounter, CloudOwner, CloudPlace, Way, levels
from leadline.formats.clouds.periods import MEAN, SUM, CloudSeries
from leadline.formats.json_documents import json_documents, number_in, object_in
from leadline.formats.samples import iso_ns

_GCE, _SQL = "compute.googleapis.com/instance/", "cloudsql.googleapis.com/database/"
_SQL_DISK = "cloudsql-storage"


def _amounts(prefix: str, disk: str = "") -> dict[str, CloudCounter]:
    meant = {
        "read_ops_count": ("disk_reads_per_s", "per_s"),
        "write_ops_count": ("disk_writes_per_s", "per_s"),
        "read_bytes_count": ("disk_read_mib_per_s", "bytes_per_s"),
        "write_bytes_count": ("disk_write_mib_per_s", "bytes_per_s"),
    }
    return {
        f"{prefix}disk/{name}": CloudCounter(metric, unit, way=Way.AMOUNT, disk=disk)
        for name, (metric, unit) in meant.items()
    }


_COUNTERS: dict[str, CloudCounter] = {
    **_amounts(_GCE),
    **_amounts(_SQL, _SQL_DISK),
    **levels(
        CloudPlace.DISK,
        {
            f"{_GCE}disk/average_io_latency": ("guest_disk_await_ms", "us"),
            f"{_GCE}disk/average_io_queue_depth": ("guest_disk_queue_count", "count"),
        },
    ),
    **levels(
        CloudPlace.MACHINE,
        {
            f"{_GCE}cpu/utilization": ("guest_cpu_busy_pct", "ratio"),
            f"{_SQL}cpu/utilization": ("guest_cpu_busy_pct", "ratio"),
            f"{_SQL}memory/utilization": ("guest_memory_used_pct", "ratio"),
        },
    ),
    **levels(
        CloudPlace.DATABASE,
        {
            f"{_SQL}network/connections": ("db_sessions_count", "count"),
            f"{_SQL}mysql/queries": ("db_qps", "per_s"),
        },
    ),
}
_COUNTERS[f"{_SQL}mysql/queries"] = replace(_COUNTERS[f"{_SQL}mysql/queries"], way=Way.AMOUNT)
_RATE = " (rate)"  # of counters that the query made rates of
_ALL = _COUNTERS | {
    f"{name}{_RATE}": replace(counter, way=Way.LEVEL)
    for name, counter in _COUNTERS.items()
    if counter.way is Way.AMOUNT
}

META = ImporterMeta(
    tool="Google Cloud Monitoring",
    marks=('"metric"',),
    layers=(Layer.GUEST, Layer.DATABASE),
    fields={name: counter.field for name, counter in _COUNTERS.items()},
    record='curl -H "Authorization: Bearer $(gcloud auth print-access-token)" '
    "'https://monitoring.googleapis.com/v3/projects/PROJECT/timeSeries?filter=...' > monitoring.json",
)

_TYPE = re.compile(r'"type"\s*:\s*"[\w.-]{1,80}/[\w./-]{1,200}"')
_POINTS = re.compile(r'"(?:endTime|end_time)"\s*:')


def sniff(source: Source) -> int:
    """Sure by the type of a metric and the ends of intervals."""
    text = source.head_text
    is_series = '"metric"' in text and '"points"' in text
    return 90 if is_series and _POINTS.search(text) and _TYPE.search(text) else 0


def read(source: Source, request: Request) -> Capture:
    """Series of machines, their disks and their database.

    Raises:
        InputError: the JSON is damaged, or no known counter is in it.
    """
    builder = CaptureBuilder(source.name, "google-monitoring", META.tool)
    series = CloudSeries("google", _ALL, begins=False)
    for one in _series(source):
        _add(one, series, builder)
    if not series.has_known:
        raise InputError(
            source.name,
            found=", ".join(map(repr, series.names[:4])) or "no counter with values",
            expected=f"counters of machines, disks or databases, such as {_GCE}disk/read_ops_count",
            advice="Ask the API for those; a table is read with a map: leadline import --suggest-map FILE",
        )
    series.into(request, builder)
    return builder.build()


def _series(source: Source) -> list[dict[str, Any]]:
    """The series of all documents of a file."""
    text = source.text().lstrip("\ufeff")
    if text.lstrip()[:1] == "[":
        try:
            listed = json.loads(text)
        except (ValueError, RecursionError) as error:
            raise InputError(
                source.name, found="damaged JSON", expected="a whole document", advice="Ask for it again."
            ) from error
    else:
        listed = []
        for document in json_documents(text, source.name).documents:
            values = document.value.get("timeSeries", document.value.get("time_series", [document.value]))
            listed.extend(values if isinstance(values, list) else [])
    return [one for one in listed if isinstance(one, dict)]


def _add(one: dict[str, Any], series: CloudSeries, builder: CaptureBuilder) -> None:
    metric = object_in(one, "metric")
    name = metric.get("type")
    points = one.get("points")
    if not isinstance(name, str) or not isinstance(points, list):
        builder.warn("left-out", "parts without the type of a metric or points were left out")
        return
    known = _COUNTERS.get(name)
    is_amount = known is not None and known.way is Way.AMOUNT
    is_rate = is_amount and str(one.get("metricKind") or one.get("metric_kind") or "DELTA").upper() == "GAUGE"
    values: list[tuple[int, float]] = []
    period_s = math.nan
    for point in points:
        interval = object_in(point, "interval") if isinstance(point, dict) else {}
        end, start = (_time_ns(interval, key) for key in ("end", "start"))
        if end is None:
            builder.warn("no-time", "points without a time were left out")
            continue
        values.append((end, _value(point)))
        if start is not None and 0 < end - start:
            length_s = (end - start) / 1e9
            period_s = length_s if math.isnan(period_s) else max(period_s, length_s)
    statistic = SUM if is_amount and not is_rate else MEAN
    series.put(_owner(one, metric), f"{name}{_RATE}" if is_rate else name, statistic, values, period_s)


def _owner(one: dict[str, Any], metric: dict[str, Any]) -> CloudOwner:
    labels = object_in(metric, "labels")
    resource = object_in(object_in(one, "resource"), "labels")
    database = str(resource.get("database_id") or "").rpartition(":")[2]
    machine = str(labels.get("instance_name") or database or resource.get("instance_id") or "")
    return CloudOwner(machine[:128], str(labels.get("device_name") or "")[:128])


def _time_ns(interval: dict[str, Any], which: str) -> int | None:
    stamp = interval.get(f"{which}Time") or interval.get(f"{which}_time")
    return iso_ns(stamp) if isinstance(stamp, str) else None


def _value(point: dict[str, Any]) -> float:
    """The number of a point; 64-bit integers are texts in JSON."""
    value = object_in(point, "value")
    for key in ("doubleValue", "double_value", "int64Value", "int64_value"):
        number = value.get(key)
        if isinstance(number, str) and re.fullmatch(r"-?[0-9]{1,18}", number):
            return float(number)
        if number is not None:
            return number_in(value, key)
    return math.nan
