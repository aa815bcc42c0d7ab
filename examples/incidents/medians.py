"""Medians per phase of a recorded incident: whether the fault shows in the numbers the tools printed."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

EDGE_S = 3.0  # samples this near to a change of phase belong to neither side
_PROGRESS = re.compile(r"^progress: (?P<at>[\d.]+) s, (?P<tps>[\d.]+) tps, lat (?P<ms>[\d.]+) ms")
_VMSTAT_TIME = re.compile(r"(\d{4}-\d\d-\d\d \d\d:\d\d:\d\d)$")


@dataclass(frozen=True)
class Phase:
    """A stretch of the recording in which nothing was changed; half-open, UTC."""

    name: str
    start: datetime
    end: datetime
    busy_seconds: int = 0  # in which the processors did more than the load asks of them

    def holds(self, at: datetime) -> bool:
        """Whether a sample taken then is safely inside."""
        return (at - self.start).total_seconds() >= EDGE_S and (self.end - at).total_seconds() > EDGE_S


Sample = tuple[datetime, dict[str, float]]


def of_phases(folder: Path, phases: Iterable[Phase], roles: Mapping[str, str]) -> dict[str, dict[str, float]]:
    """Phase -> measure -> median; ``roles`` maps a disk's role to its device name."""
    samples = [
        *_iostat(folder / "iostat.json", roles),
        *_vmstat(folder / "vmstat.txt"),
        *_pgbench(folder / "pgbench.txt"),
    ]
    table: dict[str, dict[str, float]] = {}
    for phase in phases:
        columns: dict[str, list[float]] = {}
        for at, values in samples:
            if phase.holds(at):
                for name, value in values.items():
                    columns.setdefault(name, []).append(value)
        table[phase.name] = {name: round(median(values), 3) for name, values in columns.items()}
    return table


def _iostat(path: Path, roles: Mapping[str, str]) -> list[Sample]:
    document = json.loads(path.read_text())
    samples: list[Sample] = []
    # The first report covers the time since boot.
    for report in document["sysstat"]["hosts"][0]["statistics"][1:]:
        busy = report["avg-cpu"]
        values = {"cpu_idle_pct": busy["idle"], "cpu_iowait_pct": busy["iowait"]}
        disks = {disk["disk_device"]: disk for disk in report["disk"]}
        for role, device in roles.items():
            disk = disks.get(device)
            if disk is None:
                continue
            # Linux counts the empty request that carries a flush as a write, too; a cap counts what carries data.
            values[f"{role}_writes_per_s"] = disk["w/s"]
            values[f"{role}_data_writes_per_s"] = disk["w/s"] - disk["f/s"]
            values[f"{role}_queue_depth"] = disk["aqu-sz"]
            # A rate of zero makes the average wait meaningless rather than zero.
            for name, column, rate in (("write", "w_await", "w/s"), ("flush", "f_await", "f/s")):
                if disk[rate] > 0:
                    values[f"{role}_{name}_latency_ms"] = disk[column]
        samples.append((datetime.fromisoformat(report["timestamp"]), values))
    return samples


def _vmstat(path: Path) -> list[Sample]:
    samples: list[Sample] = []
    for line in path.read_text().splitlines():
        stamp = _VMSTAT_TIME.search(line)
        if stamp is None:
            continue
        cells = line.split()
        at = datetime.strptime(stamp.group(1), "%Y-%m-%d %H:%M:%S").replace(tzinfo=UTC)
        samples.append((at, {"run_queue": float(cells[0]), "blocked": float(cells[1])}))
    return samples[1:]


def _pgbench(path: Path) -> list[Sample]:
    found = filter(None, map(_PROGRESS.match, path.read_text().splitlines()))
    return [
        (
            datetime.fromtimestamp(float(line["at"]), UTC),
            {"transactions_per_s": float(line["tps"]), "transaction_latency_ms": float(line["ms"])},
        )
        for line in found
    ]
