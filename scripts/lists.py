"""Write the lists of units in README.md and the guides from the units themselves: ``python -m scripts.lists``.

A list stands between ``<!-- list: NAME -->`` and ``<!-- end of list -->``; `LISTS` says what is written there. A unit
that ``make new`` has written is listed once its docstring is.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Callable, Mapping
from pathlib import Path
from types import ModuleType
from typing import cast

from leadline.app.explain.explaining import proven_on
from leadline.core.contracts.benchmark import Benchmark
from leadline.core.contracts.collector import Collector
from leadline.core.contracts.discovery import load_units
from leadline.core.contracts.docstrings import title
from leadline.core.contracts.importer import Importer

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("README.md", "docs/guides/recordings.md", "docs/guides/plan.md", "docs/guides/simulate.md")
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


LISTS: dict[str, Callable[[], str]] = {
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
