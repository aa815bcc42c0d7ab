"""The page of a lab: the question, what came out with its intervals, and what it means for production."""

from __future__ import annotations

from math import isfinite
from typing import TYPE_CHECKING, Any

from leadline.app.lab.results import SHOWN
from leadline.faces.labs import accelerators
from leadline.faces.report.page import standalone
from leadline.faces.report.xy import Line, Mark, XyChart, drawn

if TYPE_CHECKING:
    from leadline.app.lab.results import LabOutcome, LabRow


def lab_page(outcome: LabOutcome) -> str:
    """The whole page as a string."""
    result = outcome.result
    lab = result.lab
    notes = dict.fromkeys(note for load in result.loads if load.run is not None for note in load.run.notes)
    return standalone(
        "lab.html.j2",
        lab=lab,
        accelerators=accelerators(outcome),
        charts=[chart for chart in map(drawn, lab_charts(outcome)) if chart is not None],
        keys=list(lab.cases()[0]),
        heads=["per s", "95 % between", "mean ms", *(f"{name} ms" for name in SHOWN)],
        rows=[_cells(row) for row in outcome.rows],
        sentences=outcome.sentences,
        findings=outcome.findings,
        errors=outcome.errors,
        notes=[*result.notes, *notes],
        guests=[_hardware(guest) for guest in lab.guests],
    )


def lab_charts(outcome: LabOutcome) -> list[XyChart]:
    """Operations per second and mean latency against the first key that varies and is a number, a line per guest."""
    rows = outcome.rows
    key = next((k for k in outcome.result.lab.cases()[0] if all(_is_number(r.variant.get(k)) for r in rows)), None)
    if key is None or not rows:
        return []
    lines: dict[str, list[LabRow]] = {}
    for row in rows:
        rest = ", ".join(f"{k} {v}" for k, v in row.variant.items() if k != key)
        lines.setdefault(f"{row.guest}{f', {rest}' if rest else ''}", []).append(row)
    rates, latencies = [], []
    for index, (name, lab_rows) in enumerate(lines.items()):
        lab_rows.sort(key=lambda row: float(row.variant[key]))
        text = [f"{name}, {row.label}: {row.per_s:,.0f}/s, mean {row.mean_ms:.3g} ms" for row in lab_rows]
        places = [float(row.variant[key]) for row in lab_rows]
        marks = tuple(
            Mark(x, row.per_s, words, low=row.low, high=row.high)
            for x, row, words in zip(places, lab_rows, text, strict=True)
        )
        rates.append(Line(name, tuple((mark.x, mark.y) for mark in marks), marks, index))
        times = tuple(Mark(x, row.mean_ms, words) for x, row, words in zip(places, lab_rows, text, strict=True))
        latencies.append(Line(name, tuple((mark.x, mark.y) for mark in times), times, index))
    return [
        XyChart(f"Operations per second against {key}", key, "operations per second", tuple(rates)),
        XyChart(f"Mean latency against {key}", key, "ms (logarithmic)", tuple(latencies), log_y=True),
    ]


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _cells(row: LabRow) -> dict[str, Any]:
    span = f"{row.low:,.0f} and {row.high:,.0f}" if isfinite(row.low) else "–"
    times = [row.mean_ms, *(row.percentiles_ms.get(name, float("nan")) for name in SHOWN)]
    cells = [f"{row.per_s:,.0f}", span, *(f"{value:.3g}" if isfinite(value) else "–" for value in times)]
    return {"guest": row.guest, "variant": list(row.variant.values()), "cells": cells, "runs": row.runs}


def _hardware(guest: Any) -> dict[str, Any]:  # noqa: ANN401 - a Guest
    disks = []
    for disk in guest.disks:
        settings = disk.model_dump(mode="json", exclude_defaults=True, exclude={"name", "adapter", "size"})
        adapter = next(adapter.type for adapter in guest.adapters if adapter.name == disk.adapter)
        more = ", ".join(f"{key} {_plain(value)}" for key, value in settings.items())
        disks.append(f"{disk.name}: {disk.size / 2**20:.0f} MiB on {adapter}{f', {more}' if more else ''}")
    name = guest.name if guest.count == 1 else f"{guest.count} x {guest.name}"
    where = f" on host CPUs {', '.join(map(str, guest.host_cpus))}" if guest.host_cpus else ""
    return {"name": name, "cpu": f"{guest.vcpus} vCPUs, {guest.memory / 2**20:.0f} MiB{where}", "disks": disks}


def _plain(value: object) -> str:
    return " ".join(f"{k} {v}" for k, v in value.items()) if isinstance(value, dict) else str(value)
