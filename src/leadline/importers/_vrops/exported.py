"""Statistics as vrops-export writes them: a value per resource, moment and name, in JSON of three shapes or CSV.

The names are those of the definition file it ran with; those of its samples are known. With ``allMetrics`` they are the
keys of vROps.

Source: vrops-export, samples/*.yaml and docs/json.md.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any

# Name in the definitions that come with vrops-export -> key of vROps.
KEYS = {
    "cpuDemand": "cpu|demandPct",
    "cpuReady": "cpu|readyPct",
    "cpuCostop": "cpu|costopPct",
    "memDemand": "mem|guest_demand",
    "memSwapOut": "mem|swapoutRate_average",
    "memSwapIn": "mem|swapinRate_average",
    "netBytesRx": "net|bytesRx_average",
    "netBytesTx": "net|bytesTx_average",
    "vmUsed": "diskspace|used",
}
_NOT_VALUES = frozenset({"t", "timestamp", "resourceName", "resName", "resourceId"})


@dataclass(frozen=True, slots=True)
class Exported:
    """One value: what it is of, the time as it was printed, the key of vROps where it is known, and the number."""

    resource: str
    moment: str
    key: str
    value: float


def is_exported(document: dict[str, Any]) -> bool:
    """Whether a JSON document is one of the three shapes."""
    first = next(iter(_records(document)), {})
    return isinstance(first.get("resourceName"), str) and ("t" in first or isinstance(first.get("metrics"), list))


def of_document(document: dict[str, Any]) -> Iterator[Exported]:
    """The values of a JSON document: a record per resource, per resource and moment, or per value."""
    for record in _records(document):
        resource = str(record.get("resourceName"))
        if isinstance(record.get("metrics"), list):
            for metric in record["metrics"]:
                for sample in metric.get("samples") or ():
                    yield from _value(resource, sample.get("t"), metric.get("name"), sample.get("v"))
        elif "metric" in record:
            yield from _value(resource, record.get("t"), record["metric"], record.get("v"))
        else:
            for name, value in record.items():
                yield from _value(resource, record.get("t"), name, value)


def of_rows(text: str) -> Iterator[Exported]:
    """The values of a CSV with the columns ``timestamp`` and ``resName``; a cell that is no number is left out."""
    for row in csv.DictReader(io.StringIO(text)):
        for name, cell in row.items():
            try:
                value = float(cell)
            except (TypeError, ValueError):
                continue  # empty, or a property
            yield from _value(str(row.get("resName")), row.get("timestamp"), name, value)


def runs_of(
    values: Iterable[Exported], times_ns: dict[str, int]
) -> dict[str, dict[str, tuple[list[int], list[float]]]]:
    """Resource -> key -> times in UTC nanoseconds and values, of printed times that are resolved."""
    runs: dict[str, dict[str, tuple[list[int], list[float]]]] = {}
    for one in values:
        times, numbers = runs.setdefault(one.resource, {}).setdefault(one.key, ([], []))
        times.append(times_ns[one.moment])
        numbers.append(one.value)
    return runs


def _records(document: dict[str, Any]) -> list[dict[str, Any]]:
    records = document.get("data")
    return [record for record in records if isinstance(record, dict)] if isinstance(records, list) else []


def _value(resource: str, moment: Any, name: Any, value: Any) -> Iterator[Exported]:  # noqa: ANN401 - whatever JSON holds
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if isinstance(moment, str) and isinstance(name, str) and is_number and name not in _NOT_VALUES:
        yield Exported(resource, moment, KEYS.get(name, name), float(value))
