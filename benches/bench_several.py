"""Several incidents in one call: ``python -m benches.bench_several`` draws pairs and triples of recordings by seed.

The folders of two or three recordings are named together, as people do. Counted is whether each incident is told, and
with its own cause first.
"""

from __future__ import annotations

import argparse
import random
import sys
import tempfile
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

from benches.incidents.judging import causes_of
from benches.incidents.recordings import TRUTH, Truth, archives, ns_of, unpack
from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.io.yaml_files import read_model
from leadline.core.model.finding import Window
from tests.conftest import ROOT

DRAWS, SEED = 60, 31
# Without a fault, or recorded on another machine with other names.
LEFT_OUT = ("healthy", "lab", "time-step")


def main() -> int:
    """Draw, diagnose, count, print what is not right."""
    parser = argparse.ArgumentParser(prog="bench_several", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--draws", type=int, default=DRAWS, metavar="N", help="pairs and triples in turn")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    known = [one for one in archives(ROOT / "incidents" / "recorded") if not one.parent.name.startswith(LEFT_OUT)]
    draws = [generator.sample(known, 2 + index % 2) for index in range(options.draws)]
    with ProcessPoolExecutor() as pool:
        judged = [one for some in pool.map(told, draws) for one in some]
    for name, is_told, is_right, rules in judged:
        if not is_right:
            print(f"{name}: {'told' if is_told else 'not told'}, {', '.join(rules) or 'no cause'}")
    count_told, count_right = sum(one[1] for one in judged), sum(one[2] for one in judged)
    print(
        f"{options.draws} draws: of {len(judged)} incidents {count_told} told, {count_right} with their own cause first"
    )
    return 0


def told(drawn: list[Path]) -> list[tuple[str, bool, bool, list[str]]]:
    """Name, told or not, right or not, and the first rules said of it, of each incident of a draw."""
    with tempfile.TemporaryDirectory() as name:
        truths, folders = [], []
        for index, archive in enumerate(drawn):
            folder = Path(name) / str(index)
            folder.mkdir()
            unpack(archive, folder)
            path = next(folder.rglob(TRUTH))
            truths.append(read_model(path, Truth, "the truth of a recording", "docs/incidents.md"))
            path.unlink()
            folders.append(path.parent)
        capture = import_paths(folders, Request(metrics=metrics_read(), timezone="UTC")).capture
    answers = diagnose(capture).answers
    judged = []
    for truth in truths:
        assert truth.fault is not None
        fault = Window(ns_of(truth.fault.start), ns_of(truth.fault.end))
        hits = [one for one in answers if one.incident is not None and one.incident.window.overlaps(fault)]
        firsts = [one.causes[0].finding for one in hits if one.causes]
        is_right = any(not truth.fault.causes.isdisjoint(causes_of(finding)) for finding in firsts)
        judged.append((f"{truth.kind} {truth.variant}", bool(hits), is_right, [finding.rule for finding in firsts]))
    return judged


if __name__ == "__main__":
    sys.exit(main())
