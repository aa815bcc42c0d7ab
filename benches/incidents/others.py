"""The diagnosis on incidents that others recorded and labelled: tables with a row a moment, and which rows are bad.

- DBSherlock (Yoon, Niu, Mozafari, SIGMOD 2016): MySQL under TPC-C, one second, 94 columns, ten causes, six compounds;
  in ``../shared/dbsherlock``.
- DBPA (Huang and others, SIGMOD 2023): MySQL 8 on machines of 32 and 64 cores, dstat's numbers every five seconds, six
  causes and healthy windows; in ``incidents/others/dbpa``, half of it set aside.

Both are read through table maps that know no label; nothing is learned from the labels. Counted apart, because they are
the worst: wrong clearances, where the disk is cleared and I/O was the cause. A finding below medium, which the headline
passes over, is no finding here. Beside it stands what a list of thresholds says of the same numbers, as a spreadsheet
would: the disk is to blame when it is over a limit in one sample of twenty.
"""

from __future__ import annotations

import csv
import tarfile
import tempfile
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benches.incidents.judging import disk_of
from benches.incidents.naming import Naming, named, naming_table
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.model.capture import Capture
from leadline.core.model.finding import Finding, Window
from leadline.core.model.vocabulary import Severity
from tests.conftest import ROOT

HERE = Path(__file__).resolve().parent
OVERLAP_MIN = 0.5  # of the found and the marked rows, by union
# Rules of thumb: over 90 % busy, over 20 % of the CPUs' time waiting for it.
THRESHOLDS = {"guest_disk_util_pct": 90.0, "guest_cpu_iowait_pct": 20.0}


@dataclass(frozen=True, slots=True)
class LabelledSet:
    """A set of tables and what is known of them.

    Attributes:
        name: for the page.
        folder: holds ``truth.tsv`` and the tables, or ``tables.tar.xz`` with them.
        table_map: how they are read.
        layers: of which one is to blame, by part of the cause's name; of a compound every part counts.
        disk_causes: parts of causes that are the disk's.
        other_causes: causes that are certainly not.
        healthy: the name of windows with nothing wrong.
        is_named: the labels are kinds of cause that rules name.
    """

    name: str
    folder: Path
    table_map: Path
    layers: dict[str, set[str]]
    disk_causes: tuple[str, ...]
    other_causes: tuple[str, ...]
    healthy: str = ""
    is_named: bool = False


SETS = (
    LabelledSet(
        "DBSherlock, MySQL under TPC-C",
        ROOT.parent / "shared" / "dbsherlock",
        HERE / "dbsherlock.map.yaml",
        {
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
        },
        ("I/O Saturation", "CPU,IO,Network"),
        ("CPU Saturation", "Lock Contention", "Network Congestion", "Poorly Written Query"),
        is_named=True,
    ),
    LabelledSet(
        "DBPA, MySQL 8 on 32 and 64 cores",
        ROOT / "incidents" / "others" / "dbpa",
        HERE / "dbpa.map.yaml",
        {
            "concurrent_commits": {"database"},
            "concurrent_inserts": {"database"},
            "heavy_workload": {"database", "guest"},
            "io_saturation": {"guest", "storage-path", "datastore"},
            "lock_waits": {"database"},
            "missing_indexes": {"database"},
        },
        ("io_saturation",),
        ("lock_waits", "normal"),
        healthy="normal",
    ),
)


@dataclass(frozen=True, slots=True)
class Incident:
    """What was said of one incident."""

    cause: str
    is_set_aside: bool
    disk: str  # yes, no, or unknown
    top: Finding | None
    is_layer_right: bool
    is_time_right: bool
    is_disk_to_blame: bool
    is_disk_innocent: bool
    is_over_threshold: bool
    naming: Naming | None = None

    def is_cleared_wrongly(self, disk: str) -> bool:
        """Whether that answer clears the disk, and it is the cause."""
        return disk == "no" and self.is_disk_to_blame

    def is_accused_wrongly(self, disk: str) -> bool:
        """Whether that answer accuses the disk, and the cause is another."""
        return disk == "yes" and self.is_disk_innocent

    @property
    def threshold_answer(self) -> str:
        """What thresholds say of the disk."""
        return "yes" if self.is_over_threshold else "no"

    def to_dict(self) -> dict[str, object]:
        """Plain data for ``--json``."""
        return {
            "cause": self.cause,
            "is_set_aside": self.is_set_aside,
            "disk": self.disk,
            "rule": None if self.top is None else self.top.rule,
            "is_layer_right": self.is_layer_right,
            "is_time_right": self.is_time_right,
            "threshold_disk": self.threshold_answer,
            "told": None if self.naming is None else self.naming.told,
            "found": None if self.naming is None else self.naming.found,
            "overlap": None if self.naming is None else round(self.naming.overlap, 3),
        }


def judged(labelled: LabelledSet, folder: Path, row: dict[str, str]) -> Incident:
    """Diagnose one incident of the list."""
    capture = import_paths([folder / row["file"]], Request(map_file=labelled.table_map)).capture
    diagnosis = diagnose(capture)
    weighty = (finding for finding in diagnosis.findings if finding.severity >= Severity.MEDIUM)
    top = next((finding for finding in weighty if not finding.is_symptom), None)
    layers = {layer for part, layers in labelled.layers.items() if part in row["cause"] for layer in layers}
    is_healthy = row["cause"] == labelled.healthy
    return Incident(
        row["cause"],
        row.get("set_aside") == "yes",
        disk_of(diagnosis.answer.disk),
        top,
        top is None if is_healthy else top is not None and top.layer.value in layers,
        not is_healthy and top is not None and _overlap(top.windows, capture, row) >= OVERLAP_MIN,
        any(part in row["cause"] for part in labelled.disk_causes),
        row["cause"] in labelled.other_causes,
        any(
            float(np.nanquantile(values, 0.95)) > limit
            for metric, limit in THRESHOLDS.items()
            for group in capture.of(metric)
            for values in group.values
        ),
        named(row["cause"], capture, (int(row["first_abnormal_row"]), int(row["last_abnormal_row"])))
        if labelled.is_named
        else None,
    )


def _overlap(windows: Iterable[Window], capture: Capture, row: dict[str, str]) -> float:
    """The share of the windows' rows and the marked rows together that is both."""
    times_ns = max((group.times_ns for group in capture.groups), key=len)
    said = {
        index
        for window in windows
        for index, time_ns in enumerate(times_ns)
        if window.start_ns <= int(time_ns) <= window.end_ns
    }
    marked = set(range(int(row["first_abnormal_row"]), int(row["last_abnormal_row"]) + 1))
    return len(said & marked) / len(said | marked)


@contextmanager
def _tables(labelled: LabelledSet) -> Iterator[Path]:
    """The folder the tables lie in, unpacked where they are packed."""
    packed = labelled.folder / "tables.tar.xz"
    if not packed.exists():
        yield labelled.folder
        return
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as folder:
        with tarfile.open(packed) as tables:
            tables.extractall(folder, filter="data")
        yield Path(folder)


def measured_incidents(
    labelled: LabelledSet, progress: Callable[[str], None], count: int | None = None
) -> list[Incident]:
    """Diagnose the incidents of a set, or the first few; none where it does not lie beside this checkout."""
    if not labelled.folder.is_dir():
        return []
    with (labelled.folder / "truth.tsv").open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream, delimiter="\t"))
    incidents = []
    with _tables(labelled) as folder:
        for row in rows[:count]:
            incidents.append(judged(labelled, folder, row))
            progress(row["file"])
    return incidents


def table(incidents: list[Incident]) -> Iterator[str]:
    """The table by cause; those set aside are a line of their own."""
    yield f"{'':<39}{'thresholds: disk':>17}  {'diagnosis: disk':>16}  {'is it the disk?':>15}{'layer':>7}{'time':>6}"
    wrongly = f"{'cleared':>9}{'accused':>8}{'cleared':>10}{'accused':>8}"
    yield f"{'cause':<36}{'n':>3}{wrongly}{'yes':>8}{'no':>4}{'?':>5}{'right':>7}{'right':>6}   top finding"
    shown = [one for one in incidents if not one.is_set_aside]
    for cause in sorted({one.cause for one in shown}):
        yield _line(cause, (one for one in shown if one.cause == cause))
    aside = [one for one in incidents if one.is_set_aside]
    yield _line("all" if not aside else "all that are open", shown)
    if aside:
        yield _line("all set aside", aside, is_closed=True)
    namings = [one.naming for one in incidents if one.naming is not None]
    if namings:
        yield ""
        yield from naming_table(namings)


def _line(name: str, incidents: Iterable[Incident], *, is_closed: bool = False) -> str:
    some = list(incidents)
    answers = Counter(one.disk for one in some)
    tops = Counter("nothing explains it" if one.top is None else one.top.rule for one in some)
    shown = "" if is_closed else ", ".join(f"{rule} {count}" for rule, count in tops.most_common(2))
    return (
        f"{name:<36}{len(some):>3}{sum(one.is_cleared_wrongly(one.threshold_answer) for one in some):>9}"
        f"{sum(one.is_accused_wrongly(one.threshold_answer) for one in some):>8}"
        f"{sum(one.is_cleared_wrongly(one.disk) for one in some):>10}"
        f"{sum(one.is_accused_wrongly(one.disk) for one in some):>8}"
        f"{answers['yes']:>8}{answers['no']:>4}{answers['unknown']:>5}"
        f"{sum(one.is_layer_right for one in some):>7}{sum(one.is_time_right for one in some):>6}   {shown}"
    ).rstrip()
