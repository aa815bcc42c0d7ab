"""An easy fleet as text and as plain data: what was chosen, what each profile gave, how it compares."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.app.measure.comparing_runs import OPERATIONS
from leadline.faces.cli.output import console
from leadline.faces.easy import easy_document
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from leadline.app.fleet.easy_order import EasyOrder
    from leadline.app.fleet.easy_run import EasyReport, ProfileResult, WorkerPart
    from leadline.app.fleet.services import ServiceState

MIB = 1024**2
SHOWN = ("p50", "p95", "p99", "p99.9")
COMPARED = ("before", "now", "change %", "from", "to")


def show_easy(report: EasyReport) -> None:
    """Print the services of the datastore, the rates, latencies and workers of each profile, and the comparison."""
    out = console()
    wrapped(out, f"{report.order.target}, easy run {report.id}", style="bold")
    for state in report.order.services:
        wrapped(out, state.sentence, style="yellow" if state.is_on is not False else "")
    rates = plain_table("profile", "per s", "95 % between", "MiB/s", right=("per s", "MiB/s"))
    latencies = plain_table("pooled, ms", *SHOWN, right=SHOWN)
    workers = plain_table("workers", "per s, least", "median", "most", "p95 ms", "", right=("per s, least", "median"))
    for profile in report.profiles:
        rates.add_row(profile.name, *rate_cells(profile))
        latencies.add_row(profile.name, *latency_cells(profile))
        workers.add_row(profile.name, *spread_cells(profile), _far(profile.outliers()))
    for table in (rates, latencies, workers) if report.profiles else ():
        out.print(table, markup=False)
        out.print()
    changes = comparison_rows(report)
    if changes:
        table = plain_table("operations per s", *COMPARED, "", right=COMPARED)
        for name, cells, word in changes:
            table.add_row(name, *cells, word)
        out.print(table, markup=False)
        out.print()
    for sentence in closing_sentences(report):
        wrapped(out, sentence)


def closing_sentences(report: EasyReport) -> Iterator[str]:
    """What is said after the tables: comparisons, what is missing and why, and what was not removed."""
    compared = [(profile.name, profile.comparison) for profile in report.profiles if profile.comparison is not None]
    for basis in dict.fromkeys(comparison.basis for _, comparison in compared):
        yield f"against {report.against}: {basis}"
    unlike: dict[str, list[str]] = {}
    for name, comparison in compared:
        if comparison.certain:
            yield f"{name}: {comparison.sentence}"
        for text in comparison.unlike:
            unlike.setdefault(text, []).append(name)
    for text, names in unlike.items():
        which = "" if len(names) == len(compared) else f" ({', '.join(names)})"
        yield f"not alike{which}: {text}"
    if not report.against:
        yield "no earlier easy run on this datastore to compare with"
    if report.stopped:
        yield f"stopped: {report.stopped}"
    if report.missing:
        yield f"not measured: {', '.join(report.missing)}"
    yield f"kept as runs {report.id}.*: leadline runs list"
    if report.fleet is not None:
        for name, why in report.fleet.left.items():
            yield f"NOT REMOVED: {name} ({why}); leadline bench fleet --clean {report.fleet.id}"


def comparison_rows(report: EasyReport) -> list[tuple[str, list[str], str]]:
    """Operations per second of each profile before and now: name, cells as `COMPARED`, and the judgement in words."""
    rows = []
    for profile in report.profiles:
        metrics = () if profile.comparison is None else profile.comparison.metrics
        for part in (part for part in metrics if part.name == OPERATIONS):
            shares = [
                "-" if share != share else f"{100 * share:+.1f}"  # noqa: PLR0124 - NaN is not measured
                for share in (part.change, part.low, part.high)
            ]
            rows.append((profile.name, [_number(part.before), _number(part.after), *shares], part.word))
    return rows


def rate_cells(profile: ProfileResult) -> tuple[str, str, str]:
    """Operations per second, their 95 % interval, and MiB per second."""
    rate = profile.per_s()
    between = "too few seconds" if rate.too_few else f"{rate.low:,.0f} to {rate.high:,.0f}"
    return _number(rate.mean), between, _number(profile.pooled.bytes_per_s / MIB)


def latency_cells(profile: ProfileResult) -> list[str]:
    """Percentiles of the pooled requests with their 95 % intervals; a dash where there are too few requests."""
    known = profile.percentiles_ms()
    return [
        f"{known[name][0]:.3g} ({known[name][1]:.3g}-{known[name][2]:.3g})" if name in known else "-" for name in SHOWN
    ]


def spread_cells(profile: ProfileResult) -> tuple[str, str, str, str]:
    """Rate of the slowest, the median and the fastest worker, and their range of p95; of those that did not fail."""
    good = [part for part in profile.workers if part.error is None]
    if not good:
        return "-", "-", "-", "-"
    rates, p95_ms = [part.per_s for part in good], [part.p95_ms for part in good]
    least, median, most = min(rates), float(np.median(rates)), max(rates)
    return _number(least), _number(median), _number(most), f"{min(p95_ms):.3g} to {max(p95_ms):.3g}"


def _far(parts: list[WorkerPart]) -> str:
    return f"far from the others: {', '.join(part.name for part in parts)}" if parts else ""


def _number(value: float) -> str:
    if value != value:  # noqa: PLR0124 - NaN is not measured
        return "-"
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def order_document(order: EasyOrder) -> dict[str, Any]:
    """Return the plan as plain data."""
    return {
        "target": order.target,
        "easy": None if order.easy is None else easy_document(order.easy),
        "services": [_service(state) for state in order.services],
        "profiles": [workload.plain() for workload in order.workloads],
        "paths": list(order.paths),
        "workers": [
            {"worker": placed.name, "host": placed.host.name, "datastore": placed.datastore.name}
            for placed in order.plan.placements
        ],
    }


def easy_report_document(report: EasyReport) -> dict[str, Any]:
    """Return the whole report as plain data, for ``--json``."""
    fleet = report.fleet
    return {
        "id": report.id,
        "plan": order_document(report.order),
        "profiles": [_profile(profile) for profile in report.profiles],
        "missing": list(report.missing),
        "stopped": report.stopped or None,
        "against": report.against or None,
        "complete": report.is_whole,
        "left": {} if fleet is None else fleet.left,
    }


def _service(state: ServiceState) -> dict[str, Any]:
    return {"name": state.name, "on": state.is_on, "why": state.why}


def _profile(profile: ProfileResult) -> dict[str, Any]:
    far = {part.name for part in profile.outliers()}
    return {
        "name": profile.name,
        "run": profile.run.id,
        "per_s": profile.per_s().to_dict(),
        "bytes_per_s": profile.pooled.bytes_per_s,
        "percentiles_ms": {
            name: {"ms": ms, "low": low, "high": high} for name, (ms, low, high) in profile.percentiles_ms().items()
        },
        "start_spread_s": profile.pooled.start_spread_s,
        "workers": [
            {
                "worker": part.name,
                "per_s": part.per_s,
                "bytes_per_s": part.bytes_per_s,
                "p95_ms": part.p95_ms,
                "outlier": part.name in far,
                "error": part.error,
            }
            for part in profile.workers
        ],
        "comparison": None if profile.comparison is None else profile.comparison.to_dict(),
    }
