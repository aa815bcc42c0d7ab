"""I/O traces, their replay and their model as text."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from leadline.app.traces.tracing import QUANTILES, WAYS
from leadline.core.model.units import duration
from leadline.faces.cli.output import console
from leadline.faces.describing import sparkline
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from collections.abc import Iterable

    from rich.console import Console

    from leadline.app.traces.modelling import Model
    from leadline.app.traces.replaying import Replayed
    from leadline.app.traces.tracing import DiskTrace, LimitTable, TraceReport

TITLES = {
    "io_size_bytes": "IO lengths in bytes",
    "seek_distance_blocks": "distance in LBNs between successive commands",
    "seek_distance_blocks_closest": "distance in LBNs from the closest of previous 16",
    "outstanding_count": "outstanding IOs when a new IO is issued",
    "latency_us": "latency of IOs in microseconds",
    "interarrival_us": "time between IOs in microseconds",
}
_BAR = 24


def size(bytes_: float) -> str:
    """A size for people.

    >>> size(8192), size(3 * 2**30), size(512)
    ('8 KiB', '3 GiB', '512 B')
    """
    value, unit = float(bytes_), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB"):
        if value < 1024:
            break
        value, unit = value / 1024, larger
    return f"{value:.3g} {unit}"


def show_traces(reports: Iterable[TraceReport], *, histograms: bool) -> None:
    """Every disk of every trace."""
    out = console()
    for report in reports:
        for disk in report.disks:
            show_disk(out, f"{disk.name} ({report.files.format})", disk, histograms=histograms)


def show_disk(out: Console, title: str, disk: DiskTrace, *, histograms: bool) -> None:
    """A disk: what there was, percentiles, histograms, burstiness, and what a cache would do."""
    facts = disk.facts
    wrapped(out, title, "", style="bold")
    long = "no times" if disk.duration_s != disk.duration_s else duration(disk.duration_s)
    rate = disk.request_count / disk.duration_s
    per_s = "" if rate != rate else f", {rate:,.0f}/s"  # noqa: PLR0124
    wrapped(out, f"{disk.request_count:,} requests in {long}{per_s}, {_pct(facts['read_share'])} reads", "  ")
    moved = f"{size(facts['read_bytes'])} read, {size(facts['write_bytes'])} written"
    wrapped(out, f"{moved}; working set {size(facts['working_set_bytes'])}, in pages of 4 KiB", "  ")
    streams = facts["read_stream_count"] + facts["write_stream_count"]
    wrapped(out, f"sequential: {_pct(facts['sequential_share'])} of requests, {streams:,} streams of 8 or more", "  ")
    if facts["pause_count"]:
        pauses = f"{facts['pause_count']:,} pauses of half a second or more, {facts['pause_ns'] / 1e9:,.1f} s in all"
        wrapped(out, pauses, "  ")
    out.print()
    out.print(_percentiles(disk))
    if histograms:
        _show_histograms(out, disk.tables())
    _show_burstiness(out, disk)
    _show_curve(out, disk)
    out.print()


def _percentiles(disk: DiskTrace) -> Any:  # noqa: ANN401 - a rich table
    table = plain_table("", "p50", "p95", "p99", "p99.9", right=("p50", "p95", "p99", "p99.9"))
    for kind, name, unit in (
        ("io_size_bytes", "size, KiB", 1 / 1024),
        ("latency_us", "latency, ms", 1e-3),
        ("interarrival_us", "between requests, ms", 1e-3),
        ("outstanding_count", "outstanding", 1.0),
    ):
        for way in WAYS:
            quantiles = disk.quantiles(kind, way)
            if way == "all" or quantiles["p50"] == quantiles["p50"]:
                cells = ["-" if v != v else f"{v * unit:.3g}" for v in quantiles.values()]  # noqa: PLR0124
                table.add_row(f"{name}, {way}", *cells)
    return table


def _show_histograms(out: Console, tables: list[LimitTable]) -> None:
    """All, reads and writes side by side; rows nobody fell into at either end are left out."""
    for kind, title in TITLES.items():
        parts = [table for table in tables if table.kind == kind and table.total]
        if not parts:
            continue
        out.print()
        wrapped(out, title, "", style="bold")
        shown = plain_table("at most", *(p.way for p in parts), "", right=("at most", *(p.way for p in parts)))
        used = np.flatnonzero([sum(p.counts[i] for p in parts) for i in range(len(parts[0].counts))])
        most = max(parts[0].counts)
        for index in range(int(used[0]), int(used[-1]) + 1):
            limits = parts[0].limits
            limit = f"{limits[index]:,}" if index < len(limits) else f"> {limits[-1]:,}"
            bar = "█" * round(_BAR * parts[0].counts[index] / most) if most else ""
            shown.add_row(limit, *(f"{p.counts[index]:,}" for p in parts), bar)
        out.print(shown)


def _show_burstiness(out: Console, disk: DiskTrace) -> None:
    known = [part for part in disk.burstiness() if part.dispersion == part.dispersion]
    if not known:
        return
    out.print()
    wrapped(out, "burstiness (1: as random as can be, more: bursts)", "", style="bold")
    table = plain_table(
        "window", "dispersion", "peak/mean", "idle", right=("window", "dispersion", "peak/mean", "idle")
    )
    for part in known:
        table.add_row(
            f"{part.window_s:g} s", f"{part.dispersion:.3g}", f"{part.peak_to_mean:.3g}", _pct(part.idle_share)
        )
    out.print(table)


def _show_curve(out: Console, disk: DiskTrace) -> None:
    curve = disk.curve()
    if not curve:
        return
    out.print()
    wrapped(out, "misses of an LRU cache of 4 KiB pages, reads and writes", "", style="bold")
    ratios = np.array([ratio for _, ratio in curve])
    wrapped(out, f"{size(curve[0][0])} {sparkline(ratios, 40)} {size(curve[-1][0])}", "  ")
    table = plain_table("cache", "misses", right=("cache", "misses"))
    for bytes_, ratio in curve:
        table.add_row(size(bytes_), f"{100 * ratio:.1f} %")
    out.print(table)


def _pct(share: float | None) -> str:
    return "-" if share is None or share != share else f"{100 * share:.1f} %"  # noqa: PLR0124


def show_replay(done: Replayed) -> None:
    """How like the original a replay was, and what the target answered."""
    out = console()
    first, second = done.original, done.replay
    wrapped(out, f"{second.request_count:,} requests replayed on {done.plan.path}", "", style="bold")
    table = plain_table("p50 / p99", "distance", "", "original", "replay", right=("distance",))
    kinds = {"size": "io_size_bytes", "interarrival": "interarrival_us", "latency": "latency_us"}
    kinds["outstanding"] = "outstanding_count"
    for part in done.likeness:
        distance = "-" if part.distance != part.distance else f"{part.distance:.3f}"
        word = part.word if part.is_load else "(the target's)"
        cells = [_two(disk, kinds[part.name]) if part.name in kinds else "" for disk in (first, second)]
        table.add_row(part.name, distance, word, *cells)
    out.print(table)
    wrapped(out, done.sentence, "", style="bold")
    if done.punctuality.request_count:
        wrapped(out, done.punctuality.sentence, "")
    wrapped(out, "distance: largest difference of the cumulative shares, or of the shares; 0 alike, 1 not at all", "  ")
    out.print()
    out.print(_latencies(done))
    for note in done.notes:
        wrapped(out, note, "note: ", style="yellow")


def _latencies(done: Replayed) -> Any:  # noqa: ANN401 - a rich table
    """Latency percentiles of the replay beside those recorded, for each direction that has any."""
    names = tuple(QUANTILES)
    table = plain_table("latency, ms", "", *names, right=names)
    for way in WAYS:
        for title, disk in (("recorded", done.original), ("replayed", done.replay)):
            values = disk.quantiles("latency_us", way)
            if values["p50"] == values["p50"]:
                table.add_row(way, title, *(f"{values[name] * 1e-3:.3g}" for name in names))
            elif way == "all":
                table.add_row(way, title, *("-" for _ in names))
    return table


def _two(disk: DiskTrace, kind: str) -> str:
    quantiles = disk.quantiles(kind)
    scale, unit = (1 / 1024, " KiB") if "bytes" in kind else (1e-3, " ms") if kind.endswith("_us") else (1.0, "")
    if quantiles["p50"] != quantiles["p50"]:
        return "not measured"
    return f"{quantiles['p50'] * scale:.3g} / {quantiles['p99'] * scale:.3g}{unit}"


def show_model(model: Model) -> None:
    """Distances per characteristic and number of streams, on stderr: stdout is the workload file."""
    out = console(stderr=True)
    heads = [str(len(candidate.workload.io)) for candidate in model.candidates]
    table = plain_table("distance with streams:", *heads, right=tuple(heads))
    for name in model.candidates[0].distances:
        values = [candidate.distances[name] for candidate in model.candidates]
        table.add_row(name, *("-" if value != value else f"{value:.3f}" for value in values))  # noqa: PLR0124
    table.add_row("mean", *(f"{candidate.distance:.3f}" for candidate in model.candidates))
    out.print(table)
    for candidate in model.candidates:
        wrapped(out, candidate.shape, f"{len(candidate.workload.io)}: ")
    for note in model.notes:
        wrapped(out, note, "note: ", style="yellow")
