"""Draw incidents from DBPA, a public set of labelled database anomalies, and write them as plain tables.

    python -m incidents.others.extract_dbpa FOLDER

FOLDER holds ``metrics_mysql.csv`` and, in a folder for each machine, the unpacked ``mysql_*.7z`` of
https://github.com/hjhhsy120/DBPA_dataset (commit 53c2d93, MIT licence): dstat's numbers every five seconds of MySQL
8 under anomalies that were set from outside. A seed draws the incidents; nothing else chooses them.
"""

from __future__ import annotations

import csv
import io
import pickle
import random
import sys
import tarfile
from collections.abc import Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent / "dbpa"
SEED = 15
PER_KIND = 8
HEALTHY = "normal"
KINDS = ("concurrent_commits", "concurrent_inserts", "heavy_workload", "io_saturation", "lock_waits", "missing_indexes")
NORMAL_ROWS = 36  # consecutive windows of twelve samples, joined: three minutes


class PlainUnpickler(pickle.Unpickler):
    """Reads dates, lists and numbers, and nothing that could run."""

    def find_class(self, module: str, name: str) -> Any:  # noqa: ANN401 - the interface is pickle's
        """Only ``datetime``."""
        if (module, name) == ("datetime", "datetime"):
            return datetime
        raise pickle.UnpicklingError(f"{module}.{name} is not plain data")


def header(folder: Path) -> list[str]:
    """Names of the columns, each with dstat's group, as the set's list of metrics has them."""
    groups, names, *_ = csv.reader((folder / "metrics_mysql.csv").read_text(encoding="utf-8").splitlines())
    group = ""
    found: list[str] = []
    for part, name in zip(groups + [""] * (len(names) - len(groups)), names, strict=True):
        group = part or group
        found.append("time" if not found else f"{group.removeprefix('mysql5 time').strip() or 'cpu'}: {name}")
    return found


def incidents(folder: Path) -> Iterator[tuple[str, str, list[list[Any]], tuple[int, int] | None]]:
    """Machine, kind, samples and the marked rows (first, last) of every incident whose rows are marked."""
    for machine in sorted(path for path in folder.iterdir() if path.is_dir()):
        for kind in KINDS:
            with (machine / f"{kind}_data.pickle").open("rb") as file:
                for samples, marks, *_ in PlainUnpickler(file).load():
                    first, last = marks[0], marks[1] - 1 if len(marks) > 1 else len(samples) - 1
                    if 3 <= first < last:  # something healthy before it
                        yield machine.name, kind, samples, (first, last)
        with (machine / f"{HEALTHY}_data.pickle").open("rb") as file:
            windows = [samples for samples, *_ in PlainUnpickler(file).load()]
        joined: list[list[Any]] = []
        for window in windows:
            if joined and (window[0][0] - joined[-1][0]).total_seconds() > 10:
                joined = []
            joined += [row for row in window if not joined or row[0] > joined[-1][0]]
            if len(joined) >= NORMAL_ROWS:
                yield machine.name, HEALTHY, joined[:NORMAL_ROWS], None
                joined = []


def main() -> int:
    """Write ``dbpa/tables.tar.xz`` and ``dbpa/truth.tsv``."""
    if len(sys.argv) != 2 or not Path(sys.argv[1]).is_dir():
        sys.stderr.write("name the folder with the unpacked set\n")
        return 2
    folder = Path(sys.argv[1])
    columns = header(folder)
    by_kind: dict[str, list[Any]] = {}
    for incident in incidents(folder):
        by_kind.setdefault(incident[1], []).append(incident)
    generator = random.Random(SEED)
    truth = ["file\tcause\tmachine\tfirst_abnormal_row\tlast_abnormal_row\trows\tset_aside"]
    with tarfile.open(HERE / "tables.tar.xz", "w:xz", preset=9) as packed:
        for kind in sorted(by_kind):
            drawn = generator.sample(by_kind[kind], min(PER_KIND, len(by_kind[kind])))
            aside = set(generator.sample(range(len(drawn)), len(drawn) // 2))
            for index, (machine, _, samples, rows) in enumerate(drawn):
                name = f"{kind.replace('_', '-')}-{index + 1:02}.csv"
                text = io.StringIO()
                writer = csv.writer(text, lineterminator="\n")
                writer.writerow(columns)
                writer.writerows([row[0].isoformat(sep=" "), *row[1:]] for row in samples)
                data = text.getvalue().encode()
                member = tarfile.TarInfo(name)
                member.size, member.mtime = len(data), int(datetime(2023, 1, 1, tzinfo=UTC).timestamp())
                packed.addfile(member, io.BytesIO(data))
                first, last = ("", "") if rows is None else map(str, rows)
                cells = (name, kind, machine, first, last, str(len(samples)), "yes" if index in aside else "no")
                truth.append("\t".join(cells))
    (HERE / "truth.tsv").write_text("\n".join(truth) + "\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main())
