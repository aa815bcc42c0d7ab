"""What many hosts did as text and as plain data; and which share of the theoretical maximum was reached."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leadline.faces.cli.output import console
from leadline.faces.tables import plain_table
from leadline.faces.terminal import wrapped

if TYPE_CHECKING:
    from leadline.app.measure.hosts import HostResult, HostsResult
    from leadline.core.model.run import Run
    from leadline.faces.theoretical import Theoretical


def show_hosts(done: HostsResult, most: Theoretical | None = None) -> None:
    """Print a row per host, mark the outliers, then the numbers of all hosts together."""
    out = console()
    slow = done.outliers()
    share = () if most is None else ("of max",)
    table = plain_table("host", "per s", "MiB/s", "p95 ms", *share, "", right=("per s", "MiB/s", "p95 ms", *share))
    for result in done.hosts:
        mark = "failed" if result.error is not None else "far from the others" if result in slow else ""
        reached = () if most is None else (_pct(most.share(result.per_s, result.bytes_per_s)),)
        numbers = (f"{result.per_s:,.0f}", f"{result.bytes_per_s / 2**20:,.1f}", f"{result.p95_ms:.3g}")
        table.add_row(result.host.address, *(text.replace("nan", "-") for text in numbers), *reached, mark)
    out.print(table)
    for result in slow:
        wrapped(out, f"{result.host.address}: {_why(result, done)}", "slow   ", style="yellow")
    for result in done.hosts:
        if result.error is not None:
            wrapped(out, f"{result.host.address}: {result.error}", "failed ", style="yellow")
    shown = "  ".join(f"{name} {ms:.3g}" for name, (ms, _) in done.percentiles_ms().items())
    nothing = "not measured" if done.histogram is None else "too few samples"
    wrapped(out, f"{done.per_s:,.0f} operations/s in all; pooled, ms: {shown or nothing}")
    if most is not None:
        good = [result for result in done.hosts if result.error is None]
        left = "" if len(good) == len(done.hosts) else f" (of the {len(good)} that did not fail)"
        whole = _pct(most.share(done.per_s, done.bytes_per_s, len(good))) if good else "-"
        wrapped(out, f"{whole} of the theoretical maximum in all{left}: {most.sentence(len(good) or 1)}")


def show_share(run: Run, most: Theoretical) -> None:
    """The share a run on one machine reached."""
    wrapped(console(), f"{_pct(share_of(run, most))} of the theoretical maximum: {most.sentence()}")


def share_of(run: Run, most: Theoretical) -> float:
    """The share a run on one machine reached; NaN when it was not measured."""
    pooled = run.pooled()
    return most.share(sum(part.per_s for part in pooled), sum(part.bytes_per_s for part in pooled))


def hosts_document(done: HostsResult, most: Theoretical | None = None) -> dict[str, Any]:
    """Return the result of many hosts as plain data, for ``--json``."""
    slow = done.outliers()
    document: dict[str, Any] = {
        "per_s": done.per_s,
        "bytes_per_s": done.bytes_per_s,
        "percentiles_ms": {name: ms for name, (ms, _) in done.percentiles_ms().items()},
        "start_spread_s": done.start_spread_s,
        "hosts": [
            {
                "host": result.host.address,
                "per_s": result.per_s,
                "bytes_per_s": result.bytes_per_s,
                "p95_ms": result.p95_ms,
                "outlier": result in slow,
                "error": result.error,
                "notes": list(result.notes),
                **({} if most is None else {"theoretical_share": most.share(result.per_s, result.bytes_per_s)}),
            }
            for result in done.hosts
        ],
    }
    if most is not None:
        count = sum(result.error is None for result in done.hosts)
        share = most.share(done.per_s, done.bytes_per_s, count) if count else float("nan")
        document["theoretical"] = {"per_host": most.per_host, "unit": most.unit, "host_count": count, "share": share}
    return document


def _why(result: HostResult, done: HostsResult) -> str:
    p95_ms, per_s = done.median_of_others(result)
    return (
        f"p95 {result.p95_ms:.3g} ms where the others have {p95_ms:.3g}, "
        f"{result.per_s:,.0f} operations/s where they have {per_s:,.0f} (medians)"
    )


def _pct(share: float) -> str:
    return "-" if share != share else f"{100.0 * share:.3g} %"  # noqa: PLR0124 - NaN is not measured
