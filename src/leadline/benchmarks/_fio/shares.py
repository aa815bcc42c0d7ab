"""Shares and rates as fio takes them: whole percents, and whole requests per second of each job."""

from __future__ import annotations

from typing import Any

from leadline.core.model.workload import Stream

ARRIVALS = {"poisson": "poisson", "even": "linear"}


def whole_percents(shares: dict[int, float]) -> dict[int, int]:
    """Shares as the whole percents fio takes, 100 in all; what was more than nothing is at least 1."""
    total = sum(shares.values())
    exact = {size: share * 100.0 / total for size, share in shares.items()}
    whole = {size: max(int(share), 1) for size, share in exact.items()}
    by_remainder = sorted(exact, key=lambda size: whole[size] - exact[size])
    for index in range(max(100 - sum(whole.values()), 0)):
        whole[by_remainder[index % len(by_remainder)]] += 1
    while sum(whole.values()) > 100 and max(whole.values()) > 1:
        whole[max(whole, key=lambda size: whole[size] - exact[size] if whole[size] > 1 else -101.0)] -= 1
    return whole


def arrivals_of(stream: Stream) -> str:
    """How requests of a rate come: as asked, but evenly where they are flushed and nothing was asked for.

    Source: fio, 909e2cc2 (version 3.42): until then a flush among random arrivals ended fio, which divided by zero.
    """
    return "even" if stream.sync_every and "arrivals" not in stream.model_fields_set else stream.arrivals


def rates_of_jobs(stream: Stream, jobs: int) -> list[tuple[int, dict[str, Any]]]:
    """Numbers of jobs, and the rates of each of them.

    Poisson arrivals are whole requests per second and job; jobs without one would have no limit at all and are left
    out. Even ones are bytes per second, which also holds for a mix of sizes.
    """
    if stream.rate_iops is None:
        return [(jobs, {})]
    rates, arrivals = (stream.rate_iops.read, stream.rate_iops.write), ARRIVALS[arrivals_of(stream)]
    if arrivals_of(stream) == "even":
        each = [max(round(rate * stream.mean_block_bytes / jobs), 1) if rate > 0 else 0 for rate in rates]
        return [(jobs, {"rate": ",".join(map(str, each)), "rate_process": arrivals})]
    whole = [max(round(rate), 1) if rate > 0 else 0 for rate in rates]
    jobs = min(jobs, *(rate for rate in whole if rate > 0))
    shared = [[rate // jobs + (index < rate % jobs) for rate in whole] for index in range(jobs)]
    counted: dict[str, int] = {}
    for job_rates in shared:
        text = ",".join(map(str, job_rates))
        counted[text] = counted.get(text, 0) + 1
    return [(count, {"rate_iops": text, "rate_process": arrivals}) for text, count in counted.items()]


def contents(compress_pct: float, dedupe_pct: float) -> list[str]:
    """The options of fio for the share of the data that can be compressed or deduplicated."""
    words = []
    if compress_pct:
        words.append(f"--buffer_compress_percentage={whole_percent(compress_pct)}")
    if dedupe_pct:
        words.append(f"--dedupe_percentage={whole_percent(dedupe_pct)}")
    return words


def whole_percent(share: float) -> int:
    """A share as fio takes it: a whole percent; what is neither nothing nor all stays so."""
    return int(share) if share in (0.0, 100.0) else min(max(int(share + 0.5), 1), 99)
