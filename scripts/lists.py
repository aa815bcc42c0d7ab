"""Write the lists of units, and what the program prints, into README.md and the guides: ``python -m scripts.lists``.

A list stands between ``<!-- list: NAME -->`` and ``<!-- end of list -->``; `LISTS` says what is written there. A unit
that ``make new`` has written is listed once its docstring is.
"""

from __future__ import annotations

import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from benches.incidents import page
from leadline.app.explain.explaining import proven_on
from leadline.app.read.importing import import_paths
from leadline.core.contracts.benchmark import Benchmark
from leadline.core.contracts.collector import Collector
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.docstrings import title
from leadline.core.contracts.importer import Importer
from scripts import gallery
from tests.field.test_problems import NAMES, OUTCOMES, fields_of

ROOT = Path(__file__).resolve().parent.parent
PAGES = (
    "README.md",
    "docs/how-often-right.md",
    "docs/guides/recordings.md",
    "docs/guides/plan.md",
    "docs/guides/simulate.md",
)
EXAMPLE = "examples/incidents/throttled-wal-disk"
_LIST = re.compile(r"(<!-- list: (\w+) -->\n).*?(<!-- end of list -->)", re.DOTALL)


def written(kind: str) -> Mapping[str, ModuleType]:
    """The units of a kind that are no skeletons, by name."""
    return {name: module for name, module in load_units(kind).items() if "WRITE ME" not in (module.__doc__ or "")}


def tools() -> str:
    """The tools whose files are read, that are asked live, and that are driven."""
    reads = sorted({cast("Importer", module).META.tool for module in written("importer").values()}, key=str.casefold)
    asks = [cast("Collector", module).META.tool for module in written("collector").values()]
    drives = sorted({cast("Benchmark", module).META.program for module in written("benchmark").values()})
    return "\n\n".join(
        textwrap.fill(f"{what} {', '.join(names)}.", 120, break_long_words=False, break_on_hyphens=False)
        for what, names in (
            ("It reads files of", reads),
            ("It asks live:", asks),
            ("It drives, to load a disk:", drives),
        )
    )


def commands() -> str:
    """A table of the tools whose files are read, the command that records each best, and the real files it read."""
    lines = ["| tool | command | proven on |", "|---|---|---|"]
    for name, module in written("importer").items():
        meta = cast("Importer", module).META
        if meta.record:
            lines.append(f"| {meta.tool} | `{meta.record.replace('|', chr(92) + '|')}` | {proven_on(name)} |")
    return "\n".join(dict.fromkeys(lines))


def titles(kind: str) -> str:
    """A list of a kind's units with the first sentence of each."""
    return "\n".join(f"- `{name}`: {title(module.__doc__)}" for name, module in written(kind).items())


def first_screen() -> str:
    """What the first command of the README prints, in 80 columns."""
    return f"```\n$ leadline diagnose {EXAMPLE}\n{gallery.printed(import_paths([ROOT / EXAMPLE]).capture)}\n```"


def accuracy() -> str:
    """How often the answer is right: figures that `make bench-incidents` and the tests of public problems print."""
    views, full, short = (
        page.total("all views", "cleared disk"),
        page.total("full", "cause"),
        page.total("20-s", "cause"),
    )
    layers, who = page.total("all views", "cleared layer"), page.total("full", "who")
    accused, elsewhere = page.innocents("full"), page.innocents("other")
    rows = [
        ("**our own incidents**, faults set from outside with real tools, half of them set aside", ""),
        ("the disk or a layer cleared, and it is to blame", f"{views.some + layers.some} of {views.of:,} views"),
        ("the right cause first, from all recordings", f"{full.some} of {full.of}"),
        ("the right cause first, from 20 s of the fault and no healthy time", f"{short.some} of {short.of}"),
        ("who did it (statement, blocker, program) named, where a recorder saw it", f"{who.some} of {who.of}"),
        ("somebody innocent accused, from all recordings", f"{accused.some} of {accused.of}"),
        ("somebody innocent accused, from a part of them", f"{elsewhere.some} of {elsewhere.of:,}"),
        ("**incidents of others** (DBSherlock), nothing learned from their labels", ""),
        ("the right cause first, the time told / searched", page.named("all single")),
        ("each of several causes among the first three, told / searched", page.named("all compound")),
        ("**public problems** with a known answer, as people posted them", ""),
        *outcomes(),
    ]
    return "\n".join(["| of | it was |", "|---|---|", *(f"| {what} | {count} |" for what, count in rows)])


def outcomes() -> list[tuple[str, str]]:
    """What is said of the public problems of ``tests/field/problems``, as its test expects it."""
    counts = Counter(fields_of(name)["expected_outcome"] for name in NAMES)
    words = {
        "right": "the posted answer",
        "honest": "not known, with what to record",
        "missed": "nothing false, and not the answer",
        "refused": "not read",
        "wrong": "false",
    }
    return [(words[outcome], f"{counts[outcome]} of {len(NAMES)}") for outcome in OUTCOMES]


LISTS: dict[str, Callable[[], str]] = {
    "first_screen": first_screen,
    "accuracy": accuracy,
    "tools": tools,
    "commands": commands,
    "planners": lambda: titles("planner"),
    "systems": lambda: titles("scenario"),
}


def renewed(text: str) -> str:
    """A page with its lists as the units have them."""
    return _LIST.sub(lambda match: f"{match[1]}{LISTS[match[2]]()}\n{match[3]}", text)


def main() -> None:
    """Renew the pages."""
    for name in PAGES:
        path = ROOT / name
        path.write_text(renewed(path.read_text(encoding="utf-8")), encoding="utf-8")


if __name__ == "__main__":
    main()
