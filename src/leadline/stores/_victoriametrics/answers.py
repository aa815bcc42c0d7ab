"""Answers of VictoriaMetrics as groups of series.

Source: VictoriaMetrics 1.93, "How to export data in JSON line format"; app/vmselect/prometheus/export.qtpl: infinite
values are texts.
"""

from __future__ import annotations

import json
import re
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from typing import IO, TYPE_CHECKING, Any

import numpy as np

from leadline.core.model.capture import NS_PER_S, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity, EntityColumn

if TYPE_CHECKING:
    from numpy.typing import NDArray

NS_PER_MS = 1_000_000
SELECTOR_BYTES_MAX = 8192  # Judgement: half of what VictoriaMetrics takes (-search.maxQueryLen)
SOURCE_LABELS = ("source", "importer", "tool", "host", "tool_version", "clock")


@dataclass(frozen=True, slots=True, eq=False)
class ExportedSeries:
    """A series as it was exported: ascending times, each once."""

    metric: str
    entity: str
    origin: tuple[str, ...]
    times_ns: NDArray[np.int64]
    values: NDArray[np.float32]


def source_labels(source: SourceInfo) -> list[tuple[str, str]]:
    """The labels of a source: those that do not change from capture to capture."""
    clock = "" if source.clock_known else "assumed"
    texts = (source.name, source.importer, source.tool, source.host or "", source.tool_version or "", clock)
    return list(zip(SOURCE_LABELS, texts, strict=True))


def source_of(origin: tuple[str, ...], groups: Sequence[SeriesGroup]) -> SourceInfo:
    """The source of labels, with the span of its series."""
    name, importer, tool, host, version, clock = origin
    return SourceInfo(
        name or "store",
        importer or "store",
        tool or "store",
        host or None,
        version or None,
        start_ns=min(int(group.times_ns[0]) for group in groups),
        end_ns=max(int(group.times_ns[-1]) for group in groups),
        clock_known=not clock,
        series_count=sum(len(group.entities) for group in groups),
    )


def selectors(metrics: Collection[str] | None, entities: Collection[Entity] | None) -> list[str]:
    """PromQL selectors of series; where these would be too long, of more series than are wanted."""
    wanted = 'entity!=""'
    if entities is not None:
        texts = sorted(str(entity) for entity in entities)
        pattern = "|".join(map(re.escape, texts))
        if len(texts) == 1:
            wanted = f"entity={quoted(texts[0])}"
        elif len(pattern.encode()) <= SELECTOR_BYTES_MAX:
            wanted = f"entity=~{quoted(pattern)}"
    if metrics is None:
        return [f"{{{wanted}}}"]
    return [f"{{__name__={quoted(name)},{wanted}}}" for name in sorted(metrics)]


def quoted(text: str) -> str:
    """A text of PromQL."""
    return json.dumps(text, ensure_ascii=False)


def series_of(lines: IO[bytes], span_ns: tuple[int, int], wanted: frozenset[str] | None) -> list[ExportedSeries]:
    """The exported series of wanted entities with samples in a span; of samples of the same time the first one."""
    from pydantic_core import from_json  # noqa: PLC0415 - faster than json, and nobody else here needs it

    parts: dict[tuple[str, str, tuple[str, ...]], list[tuple[Any, Any]]] = {}
    for line in lines:
        row = from_json(line)
        labels = row["metric"]
        if wanted is None or labels.get("entity") in wanted:
            origin = tuple(labels.get(name, "") for name in SOURCE_LABELS)
            times_ns = np.array(row["timestamps"], dtype=np.int64) * NS_PER_MS
            values = np.array(row["values"], dtype=np.float64).astype(np.float32)
            parts.setdefault((labels["__name__"], labels["entity"], origin), []).append((times_ns, values))
    series = []
    for key, rows in parts.items():
        times_ns, values = rows[0] if len(rows) == 1 else (np.concatenate(part) for part in zip(*rows, strict=True))
        if np.any(times_ns[1:] <= times_ns[:-1]):
            times_ns, first = np.unique(times_ns, return_index=True)
            values = values[first]
        inside = (times_ns >= span_ns[0]) & (times_ns < span_ns[1])
        if not inside.all():
            times_ns, values = times_ns[inside], values[inside]
        if len(times_ns):
            series.append(ExportedSeries(*key, times_ns, values))
    return series


def grouped(series: Iterable[ExportedSeries]) -> tuple[list[SeriesGroup], list[SourceInfo]]:
    """Series as groups of those that were sampled together, and the sources of these.

    An entity that several sources have the same metric of is kept of each.
    """
    rows: dict[tuple[str, tuple[str, ...], bytes], list[ExportedSeries]] = {}
    for one in series:
        rows.setdefault((one.metric, one.origin, one.times_ns.tobytes()), []).append(one)
    places = {origin: place for place, origin in enumerate(dict.fromkeys(origin for _, origin, _ in rows))}
    columns: dict[tuple[str, ...], EntityColumn] = {}
    groups = []
    for (metric, origin, _), members in rows.items():
        members.sort(key=lambda member: member.entity)
        names = tuple(member.entity for member in members)
        if names not in columns:
            columns[names] = EntityColumn([Entity.parse(name) for name in names])
        times_ns = members[0].times_ns
        interval_s = float(np.median(np.diff(times_ns))) / NS_PER_S if len(times_ns) > 1 else float("nan")
        values = np.stack([member.values for member in members])
        groups.append(SeriesGroup(metric, columns[names], times_ns, values, interval_s, places[origin]))
    sources = [source_of(origin, [g for g in groups if g.source == place]) for origin, place in places.items()]
    return groups, sources
