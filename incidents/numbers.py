"""Numbers of a recording inside its fault and outside: whether the fault shows in what the tools printed.

The tools' files are read by a few lines here, not by Leadline: the check must not share the faults of what is tried.
"""

from __future__ import annotations

import csv
import math
import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

EDGE_S = 1.0  # samples this near to a change of phase belong to neither side
_PGBENCH = re.compile(r"^progress: (?P<at>[\d.]+) s, (?P<tps>[\d.]+) tps, lat (?P<ms>[\d.]+|NaN) ms")
_SYSBENCH = re.compile(r"^(?P<at>\S+) \[ \d+s \] thds: \d+ tps: (?P<tps>[\d.]+) .*lat \(ms,95%\): (?P<ms>[\d.]+)")
_STAMP = re.compile(r"(\d{4}-\d\d-\d\d[ T]\d\d:\d\d:\d\d)")
Sample = tuple[datetime, dict[str, float]]
# iostat's column -> our name, and the rate without which it means nothing.
_IOSTAT = {
    "r/s": ("reads_per_s", ""),
    "w/s": ("writes_per_s", ""),
    "f/s": ("flushes_per_s", ""),
    "rkB/s": ("read_kb_per_s", ""),
    "wkB/s": ("write_kb_per_s", ""),
    "r_await": ("read_ms", "r/s"),
    "w_await": ("write_ms", "w/s"),
    "f_await": ("flush_ms", "f/s"),
    "aqu-sz": ("queue_depth", ""),
    "%util": ("util_pct", ""),
}


@dataclass(frozen=True)
class Phase:
    """A stretch of the recording in which nothing was changed; half-open, UTC."""

    name: str
    start: datetime
    end: datetime

    def holds(self, at: datetime) -> bool:
        """Whether a sample taken then is safely inside."""
        return (at - self.start).total_seconds() >= EDGE_S and (self.end - at).total_seconds() > EDGE_S / 2


@dataclass(frozen=True)
class Numbers:
    """Each measure in the fault and in the healthy phase before it: medians, means, the largest, sample counts."""

    inside: Mapping[str, float]
    outside: Mapping[str, float]
    mean_inside: Mapping[str, float]
    largest_inside: Mapping[str, float]
    mean_outside: Mapping[str, float]
    count_inside: Mapping[str, int]


def read(folder: Path, phases: Iterable[Phase], roles: Mapping[str, str]) -> Numbers:
    """The numbers of a recording; ``roles`` maps a disk's role to its device name."""
    samples = [*_iostat(folder, roles), *_vmstat(folder), *_load(folder), *_psi(folder), *_log(folder)]
    by_phase = {phase.name: phase for phase in phases}
    samples += _standstills(samples)
    inside, outside = (_columns(samples, by_phase[name]) for name in ("fault", "healthy"))
    return Numbers(
        {name: median(values) for name, values in inside.items()},
        {name: median(values) for name, values in outside.items()},
        {name: sum(values) / len(values) for name, values in inside.items()},
        {name: max(values) for name, values in inside.items()},
        {name: sum(values) / len(values) for name, values in outside.items()},
        {name: len(values) for name, values in inside.items()},
    )


def _standstills(samples: Iterable[Sample]) -> list[Sample]:
    """How long no transaction had ended, at each sample of the load."""
    since, found = None, list[Sample]()
    for at, values in samples:
        if "transactions_per_s" in values:
            if values["transactions_per_s"] > 0 or since is None:
                since = at
            found.append((at, {"standstill_s": (at - since).total_seconds()}))
    return found


def _columns(samples: Iterable[Sample], phase: Phase) -> dict[str, list[float]]:
    columns: dict[str, list[float]] = {}
    for at, values in samples:
        if phase.holds(at):
            for name, number in values.items():
                if not math.isnan(number):
                    columns.setdefault(name, []).append(number)
    return columns


def _lines(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text(encoding="utf-8", errors="replace").splitlines() if path.exists() else []


def _at(text: str) -> datetime:
    return datetime.fromisoformat(text.replace(" ", "T")).replace(tzinfo=UTC)


def _iostat(folder: Path, roles: Mapping[str, str]) -> Iterator[Sample]:
    by_device = {device: role for role, device in roles.items()}
    at, header, values = None, list[str](), dict[str, float]()
    cpu = False
    for line in _lines(folder, "iostat.txt"):
        cells = line.split()
        if (stamp := _STAMP.match(line)) is not None:
            if at is not None:
                yield at, values
            at, values = _at(stamp[1]), {}
        elif cells and cells[0] == "Device":
            header = cells
        elif cells and cells[0] == "avg-cpu:":
            cpu = True
        elif cpu and cells:
            cpu = False
            user, nice, system, wait, steal, idle = map(float, cells)
            values |= {"cpu_busy_pct": user + nice + system + steal, "cpu_iowait_pct": wait, "cpu_idle_pct": idle}
        elif cells and (role := by_device.get(cells[0])) is not None and len(cells) == len(header):
            row = dict(zip(header[1:], map(float, cells[1:]), strict=True))
            for column, (name, rate) in _IOSTAT.items():
                if column in row and (not rate or row[rate] > 0):
                    values[f"{role}_{name}"] = row[column]
    if at is not None:
        yield at, values


def _vmstat(folder: Path) -> Iterator[Sample]:
    header: list[str] = []
    for line in _lines(folder, "vmstat.txt"):
        cells = line.split()
        if cells[:2] == ["r", "b"]:
            header = cells[:17]
        elif header and (stamp := _STAMP.search(line)) is not None and len(cells) >= len(header):
            row = dict(zip(header, map(float, cells), strict=False))
            yield (
                _at(stamp[1]),
                {
                    "run_queue": row["r"],
                    "blocked": row["b"],
                    "swap_in_kb_per_s": row["si"],
                    "swap_out_kb_per_s": row["so"],
                },
            )


def _psi(folder: Path) -> Iterator[Sample]:
    """Share of the time between two samples that some task waited, percent, from the total's growth."""
    at, path = None, ""
    before: dict[str, tuple[datetime, float]] = {}
    for line in _lines(folder, "psi.txt"):
        if line.startswith("# "):
            at = datetime.fromisoformat(line[2:].strip()).astimezone(UTC)
        elif line.startswith("## "):
            path = line[3:].rpartition("/")[2]
        elif at is not None and path == "loadavg":
            yield at, {"load_average": float(line.split()[0])}
            path = ""
        elif at is not None and line.startswith("some "):
            total = float(line.rpartition("=")[2])
            if path in before:
                since, old = before[path]
                yield at, {f"{path}_pressure_pct": (total - old) / 1e4 / max((at - since).total_seconds(), 1e-3)}
            before[path] = at, total


def _log(folder: Path) -> Iterator[Sample]:
    """Checkpoints as the server's log has them."""
    for line in _lines(folder, "postgresql.log"):
        if "checkpoint starting" in line and (stamp := _STAMP.match(line)) is not None:
            yield _at(stamp[1]), {"checkpoint": 1.0}


def _load(folder: Path) -> Iterator[Sample]:
    for line in _lines(folder, "pgbench.txt"):
        if (found := _PGBENCH.match(line)) is not None:
            at = datetime.fromtimestamp(float(found["at"]), UTC)
            yield at, {"transactions_per_s": float(found["tps"]), "latency_ms": float(found["ms"])}
    for line in _lines(folder, "sysbench.stamped"):
        if (found := _SYSBENCH.match(line)) is not None:
            at = datetime.fromisoformat(found["at"]).astimezone(UTC)
            yield at, {"transactions_per_s": float(found["tps"]), "latency_ms": float(found["ms"])}


def wait_shares(path: Path, phase: Phase) -> dict[str, float]:
    """Share of the client sessions' active time per wait event (``CPU``: none), largest first, from a history."""
    counts: dict[str, int] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            at = datetime.fromisoformat(row["now"]).astimezone(UTC)
            is_client = row["pid"] and row["backend_type"] in ("client backend", "")
            if not is_client or not phase.start <= at < phase.end or row["state"] != "active":
                continue
            event = f"{row['wait_event_type']}:{row['wait_event']}" if row["wait_event_type"] else "CPU"
            counts[event] = counts.get(event, 0) + 1
    total = sum(counts.values())
    return {event: count / total for event, count in sorted(counts.items(), key=lambda pair: -pair[1])}
