"""The page of an easy fleet: the services of the datastore, every profile with its intervals, workers, comparison."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline.faces.fleets import COMPARED, SHOWN, closing_sentences, comparison_rows, latency_cells, rate_cells
from leadline.faces.report import write_page
from leadline.faces.report.page import standalone

if TYPE_CHECKING:
    from pathlib import Path

    from leadline.app.fleet.easy_run import EasyReport, ProfileResult
    from leadline.core.io.outputs import Output


def write_easy(output: Output | Path, report: EasyReport) -> int:
    """Write the page of an easy fleet; returns its size in bytes.

    Raises:
        UsageError: the file must not or cannot be written there.
        ToolError: writing failed; what was there before still is.
    """
    return write_page(output, easy_page(report))


def easy_page(report: EasyReport) -> str:
    """The whole page as a string."""
    order, easy = report.order, report.order.easy
    choices = easy.choices if easy is not None else ()
    return standalone(
        "fleet.html.j2",
        report=report,
        target=order.target,
        services=order.services,
        choices=choices,
        placements=order.plan.placements,
        rows=[(profile.name, [*rate_cells(profile), *latency_cells(profile)]) for profile in report.profiles],
        percentiles=SHOWN,
        profiles=[_profile(profile) for profile in report.profiles],
        compared=COMPARED,
        changes=comparison_rows(report),
        sentences=list(closing_sentences(report)),
    )


def _profile(profile: ProfileResult) -> dict[str, Any]:
    far = {part.name for part in profile.outliers()}
    rows = []
    for part in profile.workers:
        mark = part.error or ("far from the others" if part.name in far else "")
        cells = (f"{part.per_s:,.0f}", f"{part.bytes_per_s / 2**20:,.1f}", f"{part.p95_ms:.3g}")
        rows.append({"name": part.name, "cells": [cell.replace("nan", "–") for cell in cells], "mark": mark})
    return {"name": profile.name, "run": profile.run.id, "rows": rows}
