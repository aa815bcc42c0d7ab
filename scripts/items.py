"""What the founding documents ask for, and what does it here: the page ``docs/items.md`` of ``docs/items.csv``.

``python -m scripts.items`` writes the page. ``python -m scripts.items --draw 60 --seed 7`` runs the commands of so many
rows, drawn at random, and prints the exit status and the seconds of each: 0 and 1 are as they should be. It exits
with 1 when one of them fails.
"""

from __future__ import annotations

import argparse
import csv
import os
import random
import shlex
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from leadline.core.contracts.discovery import unit_modules

ROOT = Path(__file__).resolve().parent.parent
TABLE, PAGE = ROOT / "docs" / "items.csv", ROOT / "docs" / "items.md"
TIMEOUT_S = 60.0
STATES = {"there": "there", "part": "in part", "open": "open", "not": "not built"}
DOCUMENTS = {
    "S0": "Virtual infrastructure for I/O-intensive databases",
    "S1": "Hospitals' databases: measuring and sizing",
    "S2": "Notes on VMware, vSAN and their tools",
    "S3": "A slow disk of a guest: iostat, fio, ioping",
    "S4": "Generations of processors and density",
}
# Where the reference has a page: the folder of each kind of reference.
FOLDERS = {"rule": "rules", "importer": "importers", "experiment": "experiments", "scenario": "scenarios"}
FOLDERS |= {"planner": "planners", "guide": "guides", "collector": "collectors", "target": "targets"}
FOLDERS |= {"driver": "benchmarks", "notifier": "notifiers"}
HEAD = """\
# What the founding documents ask for

Leadline was founded on five documents. Each thing that was found in them has a row here: what does it, how to see it,
and the test that holds it. What is not there says why. The page is generated from `docs/items.csv`
(`python -m scripts.items`); `python -m scripts.items --draw 60` runs the commands of rows drawn at random.

"There" says that the command shows it and that the test file covers what does it. Where the first trial of a row
deviated from its document, the row says "in part" and how.
"""


@dataclass(frozen=True, slots=True)
class Item:
    """A row of the table."""

    id: str
    item: str
    by: tuple[str, ...]
    run: str
    test: str
    state: str
    reason: str


def items() -> list[Item]:
    """The rows, in the order of the table."""
    with TABLE.open(encoding="utf-8", newline="") as stream:
        return [
            Item(
                row["id"],
                row["item"],
                tuple(part.strip() for part in row["by"].split(";") if part.strip()),
                row["run"],
                row["test"],
                row["state"],
                row["reason"],
            )
            for row in csv.DictReader(stream)
        ]


def page() -> str:
    """The text of the page."""
    rows = items()
    counts = ", ".join(f"{sum(row.state == state for row in rows)} {words}" for state, words in STATES.items())
    parts = [HEAD, f"{len(rows)} rows: {counts}.", ""]
    for document, title in DOCUMENTS.items():
        some = [row for row in rows if row.id.startswith(f"{document}.")]
        parts += [f"## {title}", "", "| | item | by | see it | test | |", "|---|---|---|---|---|---|"]
        parts += [_row(row) for row in some]
        parts.append("")
    return "\n".join(parts)


def _row(row: Item) -> str:
    by = ", ".join(_link(reference) for reference in row.by)
    run = f"`{_plain(row.run)}`" if row.run else ""
    test = f"`{row.test.removeprefix('tests/')}`" if row.test else ""
    state = STATES[row.state] + (f": {_plain(row.reason)}" if row.reason else "")
    return f"| {row.id} | {_plain(row.item)} | {by} | {run} | {test} | {state} |"


def _link(reference: str) -> str:
    kind, _, name = reference.partition(":")
    folder = FOLDERS.get(kind)
    is_unit = folder is not None and name in unit_modules("benchmark" if kind == "driver" else kind)
    return f"[{name}](reference/{folder}/{name}.md)" if is_unit else f"{kind} {name}"


def _plain(text: str) -> str:
    return text.replace("|", "\\|").replace("<", "&lt;")


def draw(count: int, seed: int) -> int:
    """Run the commands of rows drawn at random; how many failed."""
    rows = [row for row in items() if row.run]
    drawn = random.Random(seed).sample(rows, min(count, len(rows)))
    failed = 0
    with tempfile.TemporaryDirectory() as home:
        environment = {**os.environ, "LEADLINE_HOME": home, "NO_COLOR": "1"}
        for row in drawn:
            words = shlex.split(row.run)
            words[0] = str(Path(sys.executable).with_name(words[0]))
            began = time.monotonic()
            try:
                done = subprocess.run(
                    words, cwd=ROOT, env=environment, capture_output=True, text=True, timeout=TIMEOUT_S, check=False
                )
                status, is_right = str(done.returncode), done.returncode in (0, 1) and bool(done.stdout.strip())
                last = done.stderr.strip().splitlines()[-1:] if not is_right else []
            except subprocess.TimeoutExpired:
                status, is_right, last = f"not ended in {TIMEOUT_S:.0f} s", False, []
            failed += not is_right
            mark = "" if is_right else f"  FAILED {' '.join(last)}"
            print(f"{row.id} {status} {time.monotonic() - began:5.1f} s  {row.run}{mark}", flush=True)
    print(f"{len(drawn) - failed} of {len(drawn)} commands as they should be")
    return failed


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(prog="python -m scripts.items", description=__doc__.split("\n\n")[0])
    parser.add_argument("--draw", type=int, default=0, help="run the commands of so many rows drawn at random")
    parser.add_argument("--seed", type=int, default=7)
    options = parser.parse_args()
    if options.draw:
        return 1 if draw(options.draw, options.seed) else 0
    PAGE.write_text(page(), encoding="utf-8")
    print(f"docs/items.md: {len(items())} rows")
    return 0


if __name__ == "__main__":
    sys.exit(main())
