"""A page per example of the lab: its question, set-up, command, what came out here, what it means and what not.

What came out is ``examples/lab/results/NAME.json``, written by ``leadline lab run examples/lab/NAME.yaml --json``.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from leadline.lab.specification import Lab, read_lab

EXAMPLES = Path(__file__).resolve().parent.parent / "examples" / "lab"


def write(target: Path) -> int:
    """Write the pages and their list; how many there are."""
    folder = target / "labs"
    folder.mkdir()
    labs = {path: read_lab(path) for path in sorted(EXAMPLES.glob("*.yaml"))}
    for path, lab in labs.items():
        (folder / f"{lab.name}.md").write_text(_page(path, lab), encoding="utf-8")
    lines = ["# Labs", "", "What guests on this hypervisor were asked; see [the guide](../guides/lab.md).", ""]
    lines += [f"- [{lab.name}](labs/{lab.name}.md): {lab.question}" for lab in labs.values()]
    (target / "labs.md").write_text("\n".join([*lines, ""]), encoding="utf-8")
    return len(labs)


def _page(path: Path, lab: Lab) -> str:
    command = f"leadline lab run examples/lab/{path.name} --html {lab.name}.html"
    lines = [f"# {lab.name}", "", f"**{lab.question}**", "", "## Set-up", ""]
    lines += ["```yaml", path.read_text(encoding="utf-8").strip(), "```", "", "## Command", ""]
    lines += ["```", command, "```", "", "## Result", "", *_result(lab.name), ""]
    lines += ["## What it means", "", lab.means, "", "## What it does not", "", lab.does_not_mean, ""]
    return "\n".join(lines)


def _result(name: str) -> list[str]:
    file = EXAMPLES / "results" / f"{name}.json"
    if not file.exists():
        return ["Not recorded yet: run the command."]
    held: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
    keys = list(held["rows"][0]["variant"]) if held["rows"] else []
    heads = ["guest", *keys, "per s", "95 %", "mean ms", "p50 ms", "p99 ms"]
    lines = [f"| {' | '.join(heads)} |", f"|{'---|' * len(heads)}"]
    for row in held["rows"]:
        span = "" if row["low"] is None else f"{row['low']:,.0f} to {row['high']:,.0f}"
        times = [row["mean_ms"], row["percentiles_ms"].get("p50"), row["percentiles_ms"].get("p99")]
        shown = [f"{row['per_s']:,.0f}", span, *("" if value is None else f"{value:.3g}" for value in times)]
        lines.append(f"| {' | '.join([row['guest'], *map(str, row['variant'].values()), *shown])} |")
    lines += ["", *(f"- {sentence}" for sentence in held["sentences"])]
    lines += [f"- Found: {finding}" for finding in held["findings"]]
    lines += [f"- Note: {note}" for note in held["notes"]]
    return [*lines, "", f"By {held['accelerator']['name']}: {held['accelerator']['reason']}."]
