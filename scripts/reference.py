"""Write docs/reference from the units themselves: a page per rule, importer and fault, and the tables.

The pages are not committed: they cannot differ from the code. Run by ``make docs``.
"""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import Any, cast

from leadline.app.explain.explaining import coverage, explain, list_units, where_reported
from leadline.core.contracts.discovery import KINDS, load_units
from leadline.core.contracts.docstrings import paragraphs
from leadline.core.contracts.experiment import Experiment
from leadline.core.contracts.rule import Rule
from leadline.core.model.metrics import metrics
from leadline.core.model.vocabulary import Layer
from leadline.estate.knowledge.settings import settings
from scripts import house, labs, lists

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "docs" / "reference"
TITLES = {
    "rule": "Rules",
    "importer": "Recordings",
    "fault": "Faults for generated captures",
    "collector": "Live sources",
    "target": "What Leadline can change",
    "benchmark": "Load drivers",
    "scenario": "Simulated systems",
    "experiment": "Published figures",
    "planner": "Planners",
    "notifier": "Receivers of notices",
    "guide": "Guides",
}


def main() -> None:
    """Write everything anew."""
    lists.main()
    shutil.rmtree(TARGET, ignore_errors=True)
    TARGET.mkdir(parents=True)
    count = 0
    for kind in KINDS:
        folder = TARGET / f"{kind}s"
        folder.mkdir()
        for name, _ in list_units(kind):
            (folder / f"{name}.md").write_text(page(explain(f"{kind}:{name}")), encoding="utf-8")
            count += 1
        (TARGET / f"{kind}s.md").write_text(index(kind), encoding="utf-8")
    (TARGET / "metrics.md").write_text(metric_table(), encoding="utf-8")
    (TARGET / "settings.md").write_text(settings_table(), encoding="utf-8")
    (TARGET / "coverage.md").write_text(coverage_table(), encoding="utf-8")
    (TARGET / "house.md").write_text(house.page(), encoding="utf-8")
    count += labs.write(TARGET)
    print(f"docs/reference: {count} pages of units, {len(metrics())} metrics")


def settings_table() -> str:
    """Every setting by kind, with the rules that need it."""
    needing: dict[str, list[str]] = {}
    for name, module in load_units("rule").items():
        for need in cast("Rule", module).META.needs:
            for part in need.split("|"):
                if "." in part:
                    needing.setdefault(part, []).append(name)
    lines = ["# Settings", "", "The keys of the [inventory file](../guides/inventory.md), by kind of entity.", ""]
    for kind, known in settings().items():
        lines += [
            f"## {kind.value}",
            "",
            "| setting | type | meaning | read from | needed by |",
            "|---|---|---|---|---|",
        ]
        for setting in known.values():
            rules = ", ".join(f"[{rule}](rules/{rule}.md)" for rule in needing.get(f"{kind.value}.{setting.name}", []))
            fed = "by hand" if setting.is_by_hand else "recordings"
            lines.append(f"| {setting.name} | {setting.type} | {cell(setting.meaning)} | {fed} | {rules} |")
        lines.append("")
    return "\n".join(lines)


def coverage_table() -> str:
    """Each entry of the researched catalogue: the rule it became, the advice it gives, or why it is neither."""
    lines = ["# Coverage of the catalogue", "", "| entry | is | which, or why |", "|---|---|---|"]
    lines += [f"| {entry} | {kind} | {cell(text)} |" for entry, (kind, text) in coverage().items()]
    return "\n".join([*lines, ""])


def page(content: dict[str, Any]) -> str:
    """A unit's page."""
    lines = [f"# {content['name']}", "", cell(content["title"]), ""]
    for heading, text in content["sections"].items():
        lines += [f"## {heading}", ""]
        for paragraph in paragraphs(text, itemised=heading == "Sources"):
            lines += [paragraph if paragraph.startswith((" ", "..")) else cell(paragraph), ""]
    for name, value in content.get("facts", {}).items():
        if isinstance(value, dict) and value:
            lines += [f"## {name.capitalize()}", "", "| | |", "|---|---|"]
            lines += [f"| {key} | {cell(str(item))} |" for key, item in value.items()] + [""]
        elif value and not isinstance(value, dict):
            shown = ", ".join(value) if isinstance(value, list) else str(value)
            lines += [f"**{name}**: {cell(shown)}", ""]
    return "\n".join(lines)


def index(kind: str) -> str:
    """The list of a kind's units; rules by layer."""
    lines = [f"# {TITLES[kind]}", ""]
    if kind == "rule":
        modules = load_units("rule")
        for layer in Layer:
            own = [(n, t) for n, t in list_units(kind) if modules[n].META.layer is layer]
            if own:
                lines += [f"## {layer.value}", "", "| code | rule | severity | finds |", "|---|---|---|---|"]
                for name, text in own:
                    meta = modules[name].META
                    link = f"[{name}](rules/{name}.md)"
                    lines.append(f"| {meta.code} | {link} | {meta.severity.label} | {cell(text)} |")
                lines.append("")
        return "\n".join(lines)
    if kind == "experiment":
        return "\n".join([*lines, *figure_table(), ""])
    lines += ["| name | what |", "|---|---|"]
    lines += [f"| [{name}]({kind}s/{name}.md) | {cell(text)} |" for name, text in list_units(kind)]
    if kind == "importer":
        lines += ["", "## What to record", "", lists.commands()]
    return "\n".join([*lines, ""])


def figure_table() -> list[str]:
    """Every published figure: what was published, what counts as reproduced, how it is made."""
    lines = [
        "Verdicts are not kept: `leadline reproduce` makes them anew, see [the guide](../guides/reproduce.md).",
        "",
        "| figure | published | counts as reproduced | by | calibrated on |",
        "|---|---|---|---|---|",
    ]
    for name, module in load_units("experiment").items():
        meta = cast("Experiment", module).META
        near = "the ordering" if meta.kind == "ordering" else f"{meta.kind}, within {100.0 * meta.tolerance:g} %"
        cells = (cell(meta.claim), near, " and ".join(meta.by), cell(meta.calibrated))
        lines.append(f"| [{name}](experiments/{name}.md) | {' | '.join(cells)} |")
    return lines


def metric_table() -> str:
    """Every metric with where each tool reports it."""
    lines = ["# Metrics", "", "| metric | unit | layer | better | meaning | reported by |", "|---|---|---|---|---|---|"]
    for known in metrics().values():
        tools = "; ".join(f"{tool}: {', '.join(fields[:4])}" for tool, fields in where_reported(known.name).items())
        lines.append(
            f"| {known.name} | {known.unit} | {known.layer.value} | {known.better.value} | {cell(known.meaning)} "
            f"| {cell(tools)} |"
        )
    return "\n".join([*lines, ""])


def cell(text: str) -> str:
    """Text that is safe in a Markdown table or paragraph."""
    return re.sub(r"([|<>*_\[\]])", r"\\\1", " ".join(text.split()))


if __name__ == "__main__":
    main()
