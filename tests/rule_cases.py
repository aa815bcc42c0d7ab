"""Rule cases as data: all cases of a rule in ``tests/cases/rules/<rule-name>.yaml``, one document each.

A document starts with a comment that says why the case is there, and has:

- ``case``: its name. The first word says what the rule does: *fires*, *warning* (it fires below its full severity),
  *quiet*, *threshold* (a value exactly at the limit) or *skipped* (what the rule needs was not recorded).
- ``interval_s`` and ``series``: entity, metric, values as [value, count] runs or plain numbers; null is not measured.
  An interval of ``.nan`` is that of one sample at the recording's start.
- ``incident_s``: start and end of the incident in seconds from the recording's start; the rest is its normal.
- ``results``: what load tools measured: tool, job, operation, per_s, mean_ms and, where known, bytes_per_s, p99_ms,
  start_s and duration_s.
- ``inventory`` (the inventory format) and ``limits`` (overrides), where the case needs them.
- ``expect``: the findings by entity, severity and window (seconds from the recording's start), and words that the
  summary or the advice ``says``; or ``skipped: true``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import yaml

from leadline.core.contracts.rule import Scope
from leadline.core.model.capture import Capture, CaptureBuilder
from leadline.core.model.entities import Entity
from leadline.core.model.finding import Window
from leadline.core.model.incident import Basis, Incident
from leadline.core.model.result import Operation, Result
from leadline.formats.inventory_file import parse_inventory

CASES = Path(__file__).parent / "cases" / "rules"
KINDS = frozenset({"fires", "warning", "quiet", "threshold", "skipped"})
START_NS = 1_700_000_000_000_000_000
_Loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)  # ten times as fast where libyaml is there


@dataclass(frozen=True, slots=True)
class RuleCase:
    """One document of a rule's case file."""

    rule: str
    name: str
    document: dict[str, Any]

    @property
    def kind(self) -> str:
        """What the rule does in this case: the first word of the name."""
        return self.name.partition("_")[0]


@cache
def rule_cases() -> dict[str, list[RuleCase]]:
    """The cases of every rule that has a file, in the order of the file."""
    return {path.stem: cases_of(path) for path in sorted(CASES.glob("*.yaml"))}


def cases_of(path: Path) -> list[RuleCase]:
    """The cases of one file."""
    documents = yaml.load_all(path.read_text(encoding="utf-8"), _Loader)
    return [RuleCase(path.stem, document["case"], document) for document in documents]


def capture_of(case: dict[str, Any]) -> Capture:
    builder = CaptureBuilder("case", "case", "case")
    interval_s = float(case.get("interval_s", 5))
    step_ns = 0 if math.isnan(interval_s) else round(interval_s * 1e9)
    for series in case.get("series", []):
        values = np.array(_expanded(series["values"]), dtype=np.float64)
        times = START_NS + step_ns * np.arange(1, len(values) + 1, dtype=np.int64)
        builder.add_series(series["metric"], Entity.parse(series["entity"]), times, values, interval_s=interval_s)
    builder.results.extend(map(_result_of, case.get("results", [])))
    if "inventory" in case:
        builder.inventory.merge(parse_inventory(yaml.safe_dump(case["inventory"]), "case"))
    return builder.build()


def _result_of(plain: dict[str, Any]) -> Result:
    latency = {name: plain[f"{name}_ms"] for name in ("mean", "p99") if f"{name}_ms" in plain}
    size = plain.get("bytes_per_s", float("nan"))
    operation = Operation(plain["operation"], plain["per_s"], size, latency_ms=latency)
    start_ns = START_NS + round(plain["start_s"] * 1e9) if "start_s" in plain else None
    duration_s = plain.get("duration_s", float("nan"))
    return Result(plain["tool"], plain["job"], (operation,), duration_s, start_ns, source="case")


def scope_of(case: dict[str, Any]) -> Scope | None:
    """What the rule is asked about; None where the case names no incident."""
    if "incident_s" not in case:
        return None
    start_ns, end_ns = (START_NS + round(second * 1e9) for second in case["incident_s"])
    first_ns, last_ns = capture_of(case).span_ns() or (0, 0)
    normal = [(first_ns - 1, start_ns), (end_ns, last_ns)]
    windows = tuple(Window(first, last) for first, last in normal if last > first)
    return Scope(Incident(Window(start_ns, end_ns), windows, Basis.TOLD))


def _expanded(values: list[Any]) -> list[float]:
    out: list[float] = []
    for item in values:
        value, count = item if isinstance(item, list) else (item, 1)
        out.extend([float("nan") if value is None else float(value)] * count)
    return out
