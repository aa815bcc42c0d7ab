"""How many real files of how many authors each importer has read: ``make corpus`` counts, the guide and explain tell.

Counts the sample recordings beside the checkout, and those that ``tests/real_files.tsv`` names with repository, path
and commit, which were read from snapshots of public repositories and are kept nowhere.
"""

from __future__ import annotations

import csv
import sys
from collections import defaultdict
from pathlib import Path

from leadline.app.read.importing import import_paths
from leadline.core.model.errors import LeadlineError

ROOT = Path(__file__).resolve().parent.parent
SHARED = ROOT.parent / "shared"
FOLDERS = ("samples", "more_samples")
ELSEWHERE = ROOT / "tests" / "real_files.tsv"
COUNTS = ROOT / "src" / "leadline" / "app" / "explain" / "real_files.csv"
_NO_RECORDINGS = frozenset({"README.md", "PROVENANCE.tsv"})


def counts() -> dict[str, tuple[int, int]]:
    """Importer -> files that were read, and their authors."""
    owners: dict[str, list[str]] = defaultdict(list)
    for folder in FOLDERS:
        for path in sorted((SHARED / folder).rglob("*")):
            if not path.is_file() or path.name in _NO_RECORDINGS:
                continue
            try:
                sources = import_paths([path]).capture.sources
            except LeadlineError:
                continue
            for importer in {source.importer for source in sources}:
                owners[importer].append(path.name.partition("__")[0])
    with ELSEWHERE.open(encoding="utf-8", newline="") as stream:
        for row in csv.DictReader(stream, delimiter="\t"):
            if row["outcome"] == "read":
                owners[row["importer"]].append(row["repository"].partition("/")[0])
    return {name: (len(known), len(set(known))) for name, known in sorted(owners.items())}


def main() -> int:
    """Write the counts; exit 2 when there are no samples."""
    if not (SHARED / FOLDERS[0]).is_dir():
        print("the sample recordings are not beside this checkout", file=sys.stderr)
        return 2
    rows = [f"{name.replace('_', '-')},{files},{authors}" for name, (files, authors) in counts().items()]
    COUNTS.write_text("\n".join(["importer,files,authors", *rows]) + "\n", encoding="utf-8")
    print(f"{COUNTS.relative_to(ROOT)}: {len(rows)} importers")
    return 0


if __name__ == "__main__":
    sys.exit(main())
