"""Damaged recordings and pastes, and what is read of them: ``make bench-damage``.

Takes the text files of recorded incidents and the importers' seeds. A damaged file has one to five rows torn in half,
and messages in the midst of others; it is held against the same file without the torn rows. A paste has a random dress
and is held against the file itself. Counts the samples that are read as they were, and whether as many lines are said
to be left out as were torn. A message may count as left out or not: some tools' output has such lines of its own.
"""

from __future__ import annotations

import argparse
import random
import re
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from benches.incidents.recordings import unpack
from leadline.app.read.importing import import_paths, importers_for, recognise
from leadline.core.io.source import Source, is_text
from leadline.core.model.capture import Capture
from leadline.core.model.errors import InputError

ROOT = Path(__file__).resolve().parent.parent
FILES, PASTES, SEED = 1000, 500, 32
SIZE_MIN, SIZE_MAX, LINES_MIN = 500, 400_000, 20
ARCHIVES = 40
GOAL_READ, GOAL_COUNTED = 0.99, 1.0
# A document that is torn inside a line has no rows; a pasted one is seldom whole.
DOCUMENTS = (".json", ".jsonl", ".xml", ".html", ".ovf", ".yaml", ".xlsx", ".parquet")
MESSAGES = (
    "Connection to db01 closed.",
    "packet_write_wait: Connection to 10.0.0.7 port 22: Broken pipe",
    "*** Error in collector: timeout after 30 s ***",
    "Warning: the clock was adjusted",
    "~",
)
_ROW = re.compile(r"(?:.*?\d[\d.,:]*){4}")


def main() -> int:
    """Damage, read, count, print; exit 1 when a goal is missed."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--files", type=int, default=FILES)
    parser.add_argument("--pastes", type=int, default=PASTES)
    parser.add_argument("--archives", type=int, default=ARCHIVES, help="of recorded incidents to take files from")
    parser.add_argument("--no-goal", action="store_true", help="exit 0 whatever is read")
    parser.add_argument("--seed", type=int, default=SEED)
    options = parser.parse_args()
    generator = random.Random(options.seed)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        texts = list(recordings(folder / "clean", options.archives, generator))
        sys.stdout.write(f"{len(texts)} files of {len({tool for tool, *_ in texts})} tools\n")
        is_good = tried("damaged files", options.files, folder, texts, generator, damaged)
        is_good &= tried("pastes", options.pastes, folder, texts, generator, dressed)
    return 0 if is_good or options.no_goal else 1


def recordings(folder: Path, archive_count: int, generator: random.Random) -> Iterator[tuple[str, str, list[str]]]:
    """Tool, name and lines of text files that are read without any complaint."""
    paths = sorted(path for path in (ROOT / "tests" / "importers" / "seeds").rglob("*") if path.is_file())
    archives = sorted((ROOT / "incidents" / "recorded").rglob("*.tar.xz"))
    for number, archive in enumerate(generator.sample(archives, min(archive_count, len(archives)))):
        unpack(archive, folder / str(number))
        paths += sorted(path for path in (folder / str(number)).rglob("*") if path.is_file())
    for path in paths:
        if path.suffix in DOCUMENTS or not SIZE_MIN <= path.stat().st_size <= SIZE_MAX:
            continue
        source = Source(str(path), path)
        known = recognise(source, importers_for(source)) if is_text(source.head) else None
        lines = source.text().splitlines()
        if known is None or len(lines) < LINES_MIN or sum(map(_is_row, lines)) < LINES_MIN:
            continue
        try:
            if series(import_paths([path]).capture):
                yield known[0], path.name, lines
        except InputError:
            continue


def _is_row(line: str) -> bool:
    return _ROW.match(line) is not None


Damaged = tuple[list[str], list[str], range]  # as it is read, as it is held against, how many lines may be left out


def damaged(lines: list[str], generator: random.Random) -> Damaged:
    """One to five rows torn in half, or messages among them, none of them the last."""
    rows = [n for n, line in enumerate(lines) if _is_row(line) and len(lines) // 10 < n < len(lines) - 2]
    torn = set(generator.sample(rows, min(generator.randint(0, 3), len(rows))))
    bad = [
        line[: generator.randint(len(line) // 3, len(line) * 2 // 3)] if n in torn else line
        for n, line in enumerate(lines)
    ]
    messages = generator.randint(0 if torn else 1, 5 - len(torn))
    for at in sorted(generator.sample(range(len(bad) // 10 + 3, len(bad)), messages), reverse=True):
        bad.insert(at, generator.choice(MESSAGES))
    return bad, [line for n, line in enumerate(lines) if n not in torn], range(len(torn), len(torn) + messages + 1)


def dressed(lines: list[str], generator: random.Random) -> Damaged:
    """The lines as somebody pasted them."""
    bad = list(lines)
    for dress in generator.sample(list(DRESS), generator.randint(1, 2)):
        bad = DRESS[dress](bad)
    return bad, lines, range(1)


DRESS: dict[str, Callable[[list[str]], list[str]]] = {
    "prompt": lambda lines: ["[root@db01 ~]# cat recording.txt", *lines, "[root@db01 ~]# "],
    "fence": lambda lines: ["Here is what I see:", "", "```", *lines, "```", "", "Any ideas?"],
    "quote": lambda lines: [f"> {line}" for line in lines],
    "indentation": lambda lines: [f"    {line}" for line in lines],
    "colours": lambda lines: [f"\x1b[1m{lines[0]}\x1b[0m", *lines[1:]],
    "entities": lambda lines: [line.replace("&", "&amp;").replace("<", "&lt;").replace(">", "&gt;") for line in lines],
    "fence of tildes": lambda lines: ["~~~", *lines, "~~~"],
    "windows": lambda lines: [f"{line}\r" for line in lines],
}


def tried(
    what: str,
    count: int,
    folder: Path,
    texts: list[tuple[str, str, list[str]]],
    generator: random.Random,
    damage: Callable[[list[str], random.Random], Damaged],
) -> bool:
    """Read that many, each beside what it is held against; whether the goals are met."""
    read = whole = counted = 0
    refused: Counter[str] = Counter()
    lossy: Counter[str] = Counter()
    tools = sorted({tool for tool, *_ in texts})
    by_tool = {tool: [text for text in texts if text[0] == tool] for tool in tools}
    done = 0
    while done < count:
        tool, name, lines = generator.choice(by_tool[generator.choice(tools)])
        bad, good, counts = damage(lines, generator)
        path = folder / name
        path.write_text("\n".join(good) + "\n", encoding="utf-8")
        try:
            clean = series(import_paths([path]).capture)
        except InputError:
            continue  # what was torn is no row but part of something larger, as a histogram
        done += 1
        path.write_text("\n".join(bad) + "\n", encoding="utf-8")
        size = sum(len(values) for values in clean.values())
        whole += size
        try:
            capture = import_paths([path]).capture
        except InputError:
            refused[tool] += 1
            continue
        same = sum(_same(values, series(capture).get(key)) for key, values in clean.items())
        read += same
        lossy[tool] += same < size
        counted += said(capture) in counts
    path.unlink()
    share, share_counted = read / whole, counted / count
    sys.stdout.write(
        f"{count} {what}: {share:.2%} of the sound samples read as they were (goal {GOAL_READ:.0%}), "
        f"{sum(refused.values())} refused, damage counted exactly in {share_counted:.1%}\n"
        f"  refused: {dict(+refused)}\n  with samples lost: {dict(+lossy)}\n"
    )
    return share >= GOAL_READ


def series(capture: Capture) -> dict[tuple[str, str], np.ndarray]:
    """Values of every series, those that were measured; of results their numbers."""
    values = {
        (group.metric, entity.label()): row[np.isfinite(row)]
        for group in capture.groups
        for entity, row in zip(group.entities, np.asarray(group.values), strict=True)
    }
    for index, result in enumerate(capture.results):
        for operation in result.operations:
            numbers = [operation.per_s, operation.bytes_per_s, operation.count, *operation.latency_ms.values()]
            values["result", f"{index} {operation.name}"] = np.array([one for one in numbers if np.isfinite(one)])
    return {key: row for key, row in values.items() if len(row)}


def _same(clean: np.ndarray, read: np.ndarray | None) -> int:
    """How many of the values are there: equal in number and order, or as a multiset."""
    if read is None:
        return 0
    if len(read) == len(clean) and np.array_equal(clean, read):
        return len(clean)
    left = Counter(read.tolist())
    return sum(min(count, left[value]) for value, count in Counter(clean.tolist()).items())


def said(capture: Capture) -> int:
    """How many lines a capture says were left out."""
    return sum(w.count for one in capture.sources for w in one.warnings if w.code == "left-out")


if __name__ == "__main__":
    sys.exit(main())
