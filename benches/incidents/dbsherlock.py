"""The diagnosis on incidents that others recorded and labelled.

The tables of ``../shared/dbsherlock`` (MySQL under TPC-C, ten causes and six compounds, faults set from outside) are
read through ``dbsherlock.map.yaml``. Nothing is learned from the labels. Counted apart, because they are the
worst: wrong clearances, where the disk is cleared and I/O saturation was the cause. A finding below medium, which the
headline passes over, is no finding here. Beside it stands what a list of thresholds says of the same numbers, as a
spreadsheet would: the disk is to blame when it is over a limit in one sample of twenty.
"""

from __future__ import annotations

import csv
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benches.incidents.judging import disk_of
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.finding import Finding
from leadline.core.model.vocabulary import Severity
from tests.conftest import ROOT

DATA = ROOT.parent / "shared" / "dbsherlock"
MAP = Path(__file__).with_name("dbsherlock.map.yaml")
START_NS = 1_767_225_600 * 10**9  # `start` of the map
NS_PER_S = 10**9
OVERLAP_MIN = 0.5  # of the found and the marked rows, by union
# Layers of which one is to blame, by part of the cause's name; of a compound every part counts.
LAYERS = {
    "CPU": {"guest"},
    "I/O": {"guest", "storage-path", "datastore"},
    "IO": {"guest", "storage-path", "datastore"},
    "Network": {"network"},
    "Lock Contention": {"database"},
    "Poorly Written Query": {"database"},
    "Poor Physical Design": {"database"},
    "Workload Spike": {"database"},
    "DB Backup": {"database", "guest", "network"},
    "Table Restore": {"database", "guest"},
    "Flush Log/Table": {"database", "guest"},
}
# Rules of thumb: over 90 % busy, over 20 % of the CPUs' time waiting for it.
THRESHOLDS = {"guest_disk_util_pct": 90.0, "guest_cpu_iowait_pct": 20.0}
DISK_IS_THE_CAUSE = ("I/O Saturation", "CPU,IO,Network")
DISK_IS_NOT = ("CPU Saturation", "Lock Contention", "Network Congestion", "Poorly Written Query")


@dataclass(frozen=True, slots=True)
class Incident:
    """What was said of one incident."""

    cause: str
    disk: str  # yes, no, or unknown
    top: Finding | None
    is_layer_right: bool
    is_time_right: bool
    is_over_threshold: bool

    def is_cleared_wrongly(self, disk: str) -> bool:
        """Whether that answer clears the disk, and it is the cause."""
        return disk == "no" and any(part in self.cause for part in DISK_IS_THE_CAUSE)

    def is_accused_wrongly(self, disk: str) -> bool:
        """Whether that answer accuses the disk, and the cause is another."""
        return disk == "yes" and self.cause in DISK_IS_NOT

    @property
    def threshold_answer(self) -> str:
        """What thresholds say of the disk."""
        return "yes" if self.is_over_threshold else "no"

    def to_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "cause": self.cause,
            "disk": self.disk,
            "rule": None if self.top is None else self.top.rule,
            "is_layer_right": self.is_layer_right,
            "is_time_right": self.is_time_right,
            "threshold_disk": self.threshold_answer,
        }


def judged(row: dict[str, str]) -> Incident:
    """Diagnose one incident of the list."""
    capture = import_paths([DATA / row["file"]], Request(map_file=MAP)).capture
    diagnosis = diagnose(capture)
    disk = disk_of(diagnosis.verdict.is_it_the_disk)
    weighty = (finding for finding in diagnosis.findings if finding.severity >= Severity.MEDIUM)
    top = next((finding for finding in weighty if not finding.is_symptom), None)
    marked = set(range(int(row["first_abnormal_row"]), int(row["last_abnormal_row"]) + 1))
    layers = {layer for part, layers in LAYERS.items() if part in row["cause"] for layer in layers}
    return Incident(
        row["cause"],
        disk,
        top,
        top is not None and top.layer.value in layers,
        top is not None and _overlap(top, marked) >= OVERLAP_MIN,
        any(
            float(np.nanquantile(values, 0.95)) > limit
            for metric, limit in THRESHOLDS.items()
            for group in capture.of(metric)
            for values in group.values
        ),
    )


def _overlap(finding: Finding, marked: set[int]) -> float:
    rows = {
        row
        for window in finding.windows
        for row in range(
            round((window.start_ns - START_NS) / NS_PER_S), round((window.end_ns - START_NS) / NS_PER_S) + 1
        )
    }
    return len(rows & marked) / len(rows | marked)


def measured_incidents(progress: Callable[[str], None]) -> list[Incident]:
    """Diagnose every incident of the set; none where it does not lie beside this checkout."""
    if not DATA.is_dir():
        return []
    with (DATA / "truth.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    incidents = []
    for row in rows:
        incidents.append(judged(row))
        progress(row["file"])
    return incidents


def table(incidents: list[Incident]) -> Iterator[str]:
    """The table by cause."""
    yield f"{'':<39}{'thresholds: disk':>17}  {'diagnosis: disk':>16}  {'is it the disk?':>15}{'layer':>7}{'time':>6}"
    wrongly = f"{'cleared':>9}{'accused':>8}{'cleared':>10}{'accused':>8}"
    yield f"{'cause':<36}{'n':>3}{wrongly}{'yes':>8}{'no':>4}{'?':>5}{'right':>7}{'right':>6}   top finding"
    for cause in sorted({one.cause for one in incidents}):
        yield _line(cause, (one for one in incidents if one.cause == cause))
    yield _line("all", incidents)


def _line(name: str, incidents: Iterable[Incident]) -> str:
    some = list(incidents)
    answers = Counter(one.disk for one in some)
    tops = Counter("nothing explains it" if one.top is None else one.top.rule for one in some)
    return (
        f"{name:<36}{len(some):>3}{sum(one.is_cleared_wrongly(one.threshold_answer) for one in some):>9}"
        f"{sum(one.is_accused_wrongly(one.threshold_answer) for one in some):>8}"
        f"{sum(one.is_cleared_wrongly(one.disk) for one in some):>10}"
        f"{sum(one.is_accused_wrongly(one.disk) for one in some):>8}"
        f"{answers['yes']:>8}{answers['no']:>4}{answers['unknown']:>5}"
        f"{sum(one.is_layer_right for one in some):>7}{sum(one.is_time_right for one in some):>6}   "
        + ", ".join(f"{rule} {count}" for rule, count in tops.most_common(2))
    )
