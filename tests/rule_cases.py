"""Rule cases as data: ``tests/cases/rules/<rule-name>/<case>.yaml``.

A case has ``series`` (entity, metric, values as [value, count] runs or plain numbers; null is not measured),
``interval_s``, optionally ``inventory`` (the inventory format) and ``limits`` (overrides), and ``expect``: the findings
by entity, severity and window (seconds from the recording's start), or ``skipped: true``.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import yaml

from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.formats.inventory_file import parse_inventory

CASES = Path(__file__).parent / "cases" / "rules"
START_NS = 1_700_000_000_000_000_000


def case_files() -> list[Path]:
    return sorted(CASES.glob("*/*.yaml"))


def load_case(path: Path) -> dict[str, Any]:
    loaded: dict[str, Any] = yaml.safe_load(path.read_text())
    return loaded


def capture_of(case: dict[str, Any]) -> Capture:
    builder = CaptureBuilder("case", "case", "case")
    step_ns = round(case.get("interval_s", 5) * 1e9)
    for series in case.get("series", []):
        values = np.array(_expanded(series["values"]), dtype=np.float64)
        times = START_NS + step_ns * np.arange(1, len(values) + 1, dtype=np.int64)
        builder.add_series(
            series["metric"], Entity.parse(series["entity"]), times, values, interval_s=case.get("interval_s", 5)
        )
    if "inventory" in case:
        builder.inventory.merge(parse_inventory(yaml.safe_dump(case["inventory"]), "case"))
    return builder.build()


def _expanded(values: list[Any]) -> list[float]:
    out: list[float] = []
    for item in values:
        value, count = item if isinstance(item, list) else (item, 1)
        out.extend([float("nan") if value is None else float(value)] * count)
    return out
