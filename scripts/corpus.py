"""The corpus report: every rule over every sample recording. ``make corpus`` writes it, a test compares it.

A change in an importer or rule shows as a difference of ``tests/corpus.tsv``: file, importer, series, results, findings
(or the error that is right for what is no recording). Binary sar files are left out: what can be read of them depends
on the sadf that is installed.
"""

from __future__ import annotations

import sys
from pathlib import Path

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.model.errors import LeadlineError

ROOT = Path(__file__).resolve().parent.parent
REPORT = ROOT / "tests" / "corpus.tsv"
SAMPLES = ROOT.parent / "shared" / "samples"
KINDS = (
    *("esxtop", "perfmon", "sysstat", "fio", "ioping", "pgbench"),
    *("sysbench", "hammerdb", "iperf3", "vdbench", "vscsistats"),
)
HEADER = "file\timporter\tseries\tresults\tfindings"


def files() -> list[Path]:
    """The sample files of the kinds Leadline imports, in order."""
    return [path for kind in KINDS for path in sorted((SAMPLES / kind).iterdir()) if path.is_file()]


def depends_on_sadf(path: Path) -> bool:
    """Whether a file is a binary sar recording, packed or not."""
    return path.name.endswith(".bin.xz") or "__sa-sysstat-" in path.name or "sysstat__data-" in path.name


def line(path: Path) -> str:
    """One line of the report. Anything but a capture or one of our errors propagates."""
    name = path.relative_to(SAMPLES).as_posix()
    try:
        capture = import_paths([path]).capture
    except LeadlineError as error:
        return f"{name}\t-\t-\t-\t{error.code} error"
    importers = ",".join(sorted({source.importer for source in capture.sources}))
    findings = " ".join(f"{f.severity.label}:{f.rule}" for f in diagnose(capture).findings)
    return f"{name}\t{importers}\t{capture.series_count}\t{len(capture.results)}\t{findings}"


def report() -> str:
    """The whole report."""
    return "\n".join([HEADER, *(line(path) for path in files() if not depends_on_sadf(path))]) + "\n"


def main() -> int:
    """Write the report; exit 2 when there are no samples."""
    if not SAMPLES.is_dir():
        print("the sample recordings are not beside this checkout", file=sys.stderr)
        return 2
    REPORT.write_text(report(), encoding="utf-8")
    print(f"{REPORT.relative_to(ROOT)}: {len(files())} files")
    return 0


if __name__ == "__main__":
    sys.exit(main())
