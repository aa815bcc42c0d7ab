"""Notebooks and scripts: ``leadline.open("cap.csv").diagnose()``."""

from __future__ import annotations

import io
from pathlib import Path
from typing import TYPE_CHECKING

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.diagnose.grouping import grouped
from leadline.app.read.importing import Imported, import_paths
from leadline.app.showing import choose, export
from leadline.core.contracts.importer import Request
from leadline.core.io.outputs import Output
from leadline.core.io.parquet import table
from leadline.core.model.errors import UsageError
from leadline.core.model.profile import Profile
from leadline.core.system.extras import require
from leadline.faces.report.view import CHART_PX, PAGE_PX, View
from leadline.faces.words.findings import Quotes
from leadline.faces.words.screen import screen_text

if TYPE_CHECKING:
    import polars as pl
    import pyarrow as pa

    from leadline.core.model.capture import Capture
    from leadline.core.model.finding import Diagnosis, Finding
    from leadline.core.model.result import Result


def open(
    *paths: str | Path,
    metrics: set[str] | None = None,
    timezone: str | None = None,
    date: str | None = None,
    clock_offsets: dict[str, float] | None = None,
) -> Recording:
    """Recordings opened for a notebook or script.

    Args:
        paths: files, folders or archives.
        metrics: canonical metrics to read; all by default.
        timezone: IANA zone of times printed without one; UTC by default.
        date: ISO date of times printed without one; the file's last change by default.
        clock_offsets: seconds to add to the times of a source, by file name.

    Raises:
        InputError: a file is missing, damaged or not recognised.
    """
    request = Request(None if metrics is None else frozenset(metrics), timezone, date)
    imported = import_paths([Path(path) for path in paths], request, clock_offsets=clock_offsets)
    return Recording(imported.capture)


class Recording:
    """One or several recordings on one time line."""

    def __init__(self, capture: Capture) -> None:
        self.capture = capture

    def diagnose(self, profile: Profile | None = None) -> Report:
        """Findings and verdict; shows itself in a notebook."""
        return Report(diagnose(self.capture, profile), self.capture)

    @property
    def metrics(self) -> list[str]:
        """Metrics present."""
        return self.capture.metrics()

    @property
    def results(self) -> list[Result]:
        """Results of load tools."""
        return self.capture.results

    def series(self, metric: str = "", entity: str = "") -> pl.DataFrame:
        """Samples in long form: time (UTC), entity, metric, unit, value (null is "not measured"), since_boot.

        A sample with since_boot is an average since boot, not of an interval: filter it out before computing.

        Raises:
            UsageError: nothing matches.
            ToolError: Polars is not installed.
        """
        require("polars")
        import polars as pl  # noqa: PLC0415 - 0.3 s that only this needs

        chosen = choose(self.capture, [metric] if metric else [], [entity] if entity else [])
        frames = [
            pl.DataFrame(
                {
                    "time": pl.Series(group.times_ns).cast(pl.Datetime("ns", "UTC")),
                    "entity": str(group.entities[row]),
                    "metric": group.metric,
                    "unit": group.unit,
                    "value": pl.Series(group.values[row].astype("float64")).fill_nan(None),
                    "since_boot": pl.Series(group.boot_marks()),
                }
            )
            for group, row in chosen
        ]
        return pl.concat(frames)

    def chart(self, metric: str, entity: str = "") -> View:
        """Return the chart of a metric: its series overlaid; of many, those that reach highest.

        Args:
            metric: a canonical metric.
            entity: part of the names of entities; all of them by default.

        Raises:
            UsageError: nothing matches.
        """
        from leadline.faces.report.figures import series_chart  # noqa: PLC0415 - only drawing needs it
        from leadline.faces.report.page import charts_page  # noqa: PLC0415

        chosen = choose(self.capture, [metric], [entity] if entity else [])
        chart = series_chart([group.take([row]) for group, row in chosen])
        return View(charts_page([chart], self.capture), CHART_PX)

    def to_arrow(self) -> pa.Table:
        """One row per series, as in the Parquet file."""
        return table(self.capture)

    def save(self, path: str | Path, *, force: bool = False) -> None:
        """Write ``.parquet`` or ``.csv``; a file that Leadline did not write is replaced only with ``force``.

        Raises:
            UsageError: the ending is neither, or it must not or cannot be written there.
            ToolError: writing failed; what was there before still is.
        """
        export(self.capture, Output(Path(path), "save", force, "Name another file or pass force=True."))

    def __repr__(self) -> str:
        names = ", ".join(source.name for source in self.capture.sources)
        return f"Recording({names}: {self.capture.series_count} series)"


class Report:
    """A diagnosis that prints itself; its parts are attributes of ``diagnosis``."""

    def __init__(self, diagnosis: Diagnosis, capture: Capture) -> None:
        self.diagnosis = diagnosis
        self.capture = capture

    @property
    def verdict(self) -> str:
        """The first screen as text: the answer, what it cost users, what was seen, what to do."""
        quotes = Quotes(grouped(self.diagnosis.findings, self.capture))
        return screen_text(self.diagnosis, quotes, self.capture.span_ns())

    @property
    def findings(self) -> tuple[Finding, ...]:
        """Findings, causes first."""
        return self.diagnosis.findings

    def charts(self, finding: Finding | None = None) -> View:
        """Return the charts that show a finding, the first one by default: its series, its limit, when it held.

        Raises:
            UsageError: there is no finding, or this one is of a setting and has no chart.
        """
        from leadline.faces.report.figures import finding_charts  # noqa: PLC0415 - only drawing needs it
        from leadline.faces.report.page import charts_page, limits_used  # noqa: PLC0415

        chosen = finding or next(iter(self.findings), None)
        limits = {} if chosen is None else limits_used(Profile())[chosen.rule]
        charts = [] if chosen is None else finding_charts(chosen, self.capture, limits)
        if not charts:
            raise UsageError(
                "charts",
                found="no finding" if chosen is None else f"finding {chosen.rule}, of which nothing was recorded",
                expected="a finding with series",
                advice="Name another one of `findings`, or draw a metric with `chart` of the recording.",
            )
        return View(charts_page(charts, self.capture), CHART_PX * len(charts))

    def page(self) -> View:
        """Return the whole report: verdict, time line, latency by layer, findings with their charts, all series."""
        from leadline.faces.report.page import page  # noqa: PLC0415

        return View(page(self.diagnosis, Imported(self.capture)), PAGE_PX)

    def __repr__(self) -> str:
        return self._text()

    def _repr_html_(self) -> str:
        from html import escape  # noqa: PLC0415 - only notebooks need it

        return f"<pre style='line-height:1.3'>{escape(self._text())}</pre>"

    def _text(self) -> str:
        from rich.console import Console  # noqa: PLC0415 - only printing needs it

        from leadline.faces.terminal import show_diagnosis  # noqa: PLC0415

        stream = io.StringIO()
        plain = Console(file=stream, width=80, highlight=False, emoji=False, force_jupyter=False, color_system=None)
        show_diagnosis(plain, self.diagnosis, self.capture)
        return stream.getvalue()
