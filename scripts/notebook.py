"""Write and execute ``examples/notebooks/diagnose.ipynb``: ``python -m scripts.notebook``.

The cells stand here as text, so that the notebook is made anew and never drifts from what the library does.
"""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import nbformat
from nbclient import NotebookClient

ROOT = Path(__file__).resolve().parent.parent
TARGET = ROOT / "examples" / "notebooks" / "diagnose.ipynb"
CELLS: list[tuple[str, str]] = [
    (
        "markdown",
        "# Why is it slow, is it the disk?\n\nA PostgreSQL server, recorded with iostat, vmstat and pgbench while "
        "something was wrong. `examples/incidents/throttled-wal-disk/truth.yaml` says what.",
    ),
    (
        "code",
        'import leadline\n\nrecording = leadline.open("../incidents/throttled-wal-disk")\n'
        "report = recording.diagnose()\nreport",
    ),
    ("markdown", "The evidence is data."),
    ("code", "top = report.findings[0]\n[(e.statement, e.value, e.unit) for e in top.evidence]"),
    ("markdown", 'Series are a Polars frame in long form; null is "not measured".'),
    (
        "code",
        'import polars as pl\n\nawait_ms = recording.series("guest_disk_await_ms_write", "loop1")\n'
        'await_ms.select(pl.col("value").median().alias("median ms"), pl.col("value").max().alias("highest ms"))',
    ),
    ("markdown", "Load tools' results keep mergeable histograms where the tool printed them."),
    (
        "code",
        "[(r.tool, o.name, round(o.per_s, 1)) for r in recording.results for o in r.operations if o.per_s == o.per_s]",
    ),
    ("markdown", "The charts of the HTML report; `report.page()` is the whole of it."),
    ("code", "report.charts(top)"),
]


def main() -> int:
    """Write the notebook with its outputs."""
    write(TARGET)
    print(TARGET.relative_to(ROOT))
    return 0


def write(path: Path) -> Any:  # noqa: ANN401 - nbformat has no types
    """Execute the cells beside the incidents and write the notebook; what ran is returned."""
    notebook = nbformat.v4.new_notebook()
    makers = {"markdown": nbformat.v4.new_markdown_cell, "code": nbformat.v4.new_code_cell}
    notebook.cells = [makers[kind](text, id=f"cell-{i}") for i, (kind, text) in enumerate(CELLS)]
    client = NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(TARGET.parent)}})
    client.execute()
    for cell in notebook.cells:
        cell.metadata.pop("execution", None)  # times of day would differ each time
    notebook.metadata.pop("language_info", None)
    notebook.metadata["kernelspec"] = {"display_name": "Python 3", "language": "python", "name": "python3"}
    nbformat.write(notebook, path)
    return notebook


if __name__ == "__main__":
    sys.exit(main())
