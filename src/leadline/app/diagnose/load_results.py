"""What load tools measured: the disk under their own load, not under the database's."""

from __future__ import annotations

from typing import TYPE_CHECKING

from leadline.core.model.answer import LoadMeasured
from leadline.core.model.result import Subject, run_together

if TYPE_CHECKING:
    from leadline.core.model.capture import Capture


def slowest_result(capture: Capture) -> LoadMeasured | None:
    """The slowest operation that a load tool did on a disk; None where none was measured."""
    measured = [(result, each) for result in run_together(capture.results) for each in result.measured(Subject.DISK)]
    if not measured:
        return None
    result, operation = max(measured, key=lambda pair: pair[1].mean_ms)
    return LoadMeasured(
        result.tool, result.job, operation.name, operation.latency_words(), operation.mean_ms, len(measured)
    )
