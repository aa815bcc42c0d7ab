"""What load tools measured, as a sentence of the verdict: the disk under their own load, not under the database's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.model.result import Subject, run_together

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture


def measured_sentence(capture: Capture) -> str:
    """The slowest operation that a load tool did on a disk, as an answer; empty where none was measured."""
    measured = [(result, each) for result in run_together(capture.results) for each in result.measured(Subject.DISK)]
    if not measured:
        return ""
    result, operation = max(measured, key=lambda pair: pair[1].mean_ms)
    others = f", the slowest of {len(measured)} results" if len(measured) > 1 else ""
    run = f"{result.tool} {result.job}, {operation.name}"
    return (
        f"Not while a load tool measured it: {run}: {operation.latency_words()}{others}. "
        "What the database waited for was not recorded."
    )
