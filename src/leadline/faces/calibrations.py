"""Calibrations as text and as plain data: what was fitted to each disk, simulated beside what was recorded."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite
from typing import TYPE_CHECKING, Any

from leadline.app.simulate.calibrating_checks import NEAR_PCT, worst_of
from leadline.app.simulate.calibrating_laws import most_of
from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from pathlib import Path

    from leadline.app.simulate.calibrating_fits import Calibrated, Compared, Fitted

WORDS = {"iops": "per s", "latency_ms_mean": "mean ms", "latency_ms_p95": "p95 ms"}
NAMES = {"latency_ms_mean": "latency", "iops": "throughput", "latency_ms_p95": "p95"}


def show_calibration(calibrated: Calibrated, output: Path, *, quiet: bool = False) -> None:
    """Print, for each disk, what was fitted, the simulated numbers beside the recorded ones, and the next command."""
    out = console()
    for disk in calibrated.disks:
        out.print(disk.name, style="bold", markup=False)
        wrapped(out, disk.sentence, "- ")
        for note in disk.notes:
            wrapped(out, note, "- ")
        table = plain_table(
            "load", "measure", "recorded", "95 %", "simulated", "distance", right=("recorded", "simulated", "distance")
        )
        for before, row in zip((None, *disk.compared), disk.compared, strict=False):
            is_same = before is not None and before.load == row.load
            table.add_row("" if is_same else row.load, *_cells(row))
        out.print(table)
        wrapped(out, f"largest distance: {_distances(disk)}")
        for warning in disk.warnings:
            wrapped(out, f"warning: {warning}", style="yellow")
    first = calibrated.disks[0].name
    count, far = len(calibrated.disks), sum(bool(disk.warnings) for disk in calibrated.disks)
    summary = f"{count} disk{'s' * (count != 1)}, {far} further than {NEAR_PCT:g} % from the recording somewhere"
    wrapped(out, f"compared with the intervals that the fit did not use: {summary}")
    wrapped(out, f"written: {output}")
    if not quiet:
        wrapped(out, f"next: leadline simulate {output} --vary vms.{first}.iops_limit=null,2000", style="dim")


def _cells(row: Compared) -> tuple[str, str, str, str, str]:
    recorded = _number(row.recorded) if isfinite(row.recorded) else "not recorded"
    interval = f"{_number(row.low)} to {_number(row.high)}" if isfinite(row.low) else ""
    distance = f"{row.distance_pct:+.1f} %" if isfinite(row.distance_pct) else "-"
    return WORDS[row.measure], recorded, interval, _number(row.simulated), distance


def _distances(disk: Fitted) -> str:
    """The largest distance of each measure, for people."""
    return ", ".join(
        f"{NAMES[name]} {value:+.1f} %" if isfinite(value) else f"{NAMES[name]} not recorded"
        for name, value in worst_of(disk).items()
    )


def calibration_document(calibrated: Calibrated, output: Path) -> dict[str, Any]:
    """Plain data for ``--json``."""
    return {
        "scenario": str(output),
        "bound_pct": NEAR_PCT,
        "disks": [
            {
                "name": disk.name,
                "entity": str(disk.seen.entity),
                "line": None if disk.line is None else asdict(disk.line),
                "device": disk.device,
                "most_per_s": most_of(disk.device),
                "streams": list(disk.streams),
                "recording": disk.recording,
                "arrivals": [asdict(window) for window in disk.arrivals],
                "compared": [{**asdict(row), "distance_pct": row.distance_pct} for row in disk.compared],
                "distance_pct": worst_of(disk),
                "warnings": list(disk.warnings),
                "notes": list(disk.notes),
            }
            for disk in calibrated.disks
        ],
    }


def _number(value: float) -> str:
    if not isfinite(value):
        return "-"
    return f"{value:,.0f}" if abs(value) >= 1000 else f"{value:.3g}"
