"""What wrk and wrk2 print, and the document of our own runs with every latency."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from leadline.app.read.importing import import_paths
from leadline.core.io.source import Source
from leadline.core.model.errors import InputError
from leadline.core.model.result import Result, Subject
from leadline.formats.wrk.report import ERRORS, MARK
from leadline.importers import wrk
from tests.conftest import FIXTURES
from tests.importers.load_tools import read, read_text, seed, warned

PRINTED = FIXTURES / "wrk"
WRK2 = seed("wrk2.txt")


def only(results: list[Result] | tuple[Result, ...]) -> Result:
    (result,) = results
    return result


def test_a_printed_run_has_its_rate_and_percentiles() -> None:
    result = only(read(wrk, PRINTED / "latency.txt").results)
    operation = result.operations[0]
    assert (result.tool, result.job, operation.name) == ("wrk", "http://127.0.0.1:8080/page", "http request")
    assert (operation.per_s, operation.count) == (11238.30, 22931)
    assert operation.bytes_per_s == pytest.approx(178.19 * 2**20)
    percentiles = {"p50": 1.06, "p75": 2.15, "p90": 3.97, "p99": 14.24}
    assert operation.latency_ms == pytest.approx({"mean": 1.92, "stddev": 2.61, "max": 29.98, **percentiles})
    assert result.duration_s == pytest.approx(22931 / 11238.30)
    assert result.workload == {"url": result.job, "threads": 2, "connections": 16}
    assert (result.error_count, operation.histogram) == (0, None)


def test_a_web_load_is_no_sample_of_a_disk_or_a_database() -> None:
    result = only(read(wrk, PRINTED / "latency.txt").results)
    assert all(result.measured(subject) == () for subject in Subject)


def test_errors_are_counted() -> None:
    status = only(read(wrk, PRINTED / "status.txt").results)
    assert (status.error_count, status.workload["status_error_count"]) == (9299, 9299)
    nothing = only(read(wrk, PRINTED / "no-response.txt").results)
    assert nothing.workload["read_error_count"] == nothing.error_count == 5983
    assert (nothing.operations[0].count, nothing.operations[0].latency_ms) == (0, {})
    assert nothing.duration_s == 1.1


def test_the_spectrum_of_wrk2_is_a_histogram(tmp_path: Path) -> None:
    result = only(read_text(wrk, tmp_path, WRK2).results)
    operation = result.operations[0]
    assert (result.tool, result.workload["rate_per_s"], result.workload["connections"]) == ("wrk2", 2000, 100)
    assert result.workload["url"] == "http://web1:8080/index.html"
    assert operation.latency_ms == pytest.approx(
        {"mean": 6.5, "stddev": 1.92, "max": 12.5, "p50": 6.67, "p75": 7.78, "p99": 11.18, "p99.9": 12.3}
    )
    assert operation.histogram is not None
    assert operation.histogram.total == 40000
    assert operation.histogram.quantile_bounds(0.5) == (0.921, 6.671)
    assert operation.histogram.quantile_bounds(0.99) == (7.783, 11.183)
    assert operation.histogram.quantile_bounds(0.0) == pytest.approx((0.920079, 0.921))


@pytest.mark.parametrize(
    ("printed", "ms"), [("635.91us", 0.63591), ("0.89ms", 0.89), ("1.98s", 1980.0), ("3.51m", 210600.0)]
)
def test_times_have_the_units_of_wrk(tmp_path: Path, printed: str, ms: float) -> None:
    text = (PRINTED / "latency.txt").read_text().replace("14.24ms", printed)
    assert only(read_text(wrk, tmp_path, text).results).operations[0].latency_ms["p99"] == pytest.approx(ms)


def test_what_was_not_measured_is_not_known(tmp_path: Path) -> None:
    text = WRK2.replace("6.50ms    1.92ms  12.50ms", "-nanus    -nanus   0.00us").replace("6.67ms", "-nanus")
    latency = only(read_text(wrk, tmp_path, text).results).operations[0].latency_ms
    assert "mean" not in latency
    assert "p50" not in latency


def test_runs_as_people_post_them(tmp_path: Path) -> None:
    """Several runs between other lines, quoted, with blanks lost, without the first line, with the head of a fork."""
    once = (PRINTED / "latency.txt").read_text()
    headless = once.partition("\n")[2].replace("   Max  ", "   99%  ").replace("22931", "22932")
    squeezed = "\n".join(" ".join(line.split()) for line in once.splitlines()).replace("22931", "22933")
    quoted = "".join(f"> {line}\n" for line in once.splitlines()).replace("22931", "22934")
    text = f"# Results\n\n```\n{once}```\nand\n```\n{headless}```\n{squeezed}\n\n{quoted}"
    capture = read_text(wrk, tmp_path, text)
    assert [result.operations[0].count for result in capture.results] == [22931, 22932, 22933, 22934]
    assert capture.results[1].workload == {"threads": 2, "connections": 16}
    assert capture.results[1].operations[0].latency_ms["p99"] == 14.24
    assert "max" not in capture.results[1].operations[0].latency_ms
    assert warned(capture) == []


def test_what_is_cut_or_damaged(tmp_path: Path) -> None:
    once = (PRINTED / "latency.txt").read_text()
    capture = read_text(wrk, tmp_path, once + once[:300])
    assert len(capture.results) == 1
    assert warned(capture) == ["cut"]
    with pytest.raises(InputError, match="no result of a run"):
        read_text(wrk, tmp_path, once[:300])
    with pytest.raises(InputError, match=r":12: .*line of wrk"):
        read_text(wrk, tmp_path, once.replace("11238.30", "112x") + once)


@pytest.mark.parametrize("name", ["latency.txt", "status.txt", "no-response.txt", "run.json"])
def test_it_is_recognised(name: str) -> None:
    assert import_paths([PRINTED / name]).capture.sources[0].importer == "wrk"


def test_autocannon_is_not_wrk(tmp_path: Path) -> None:
    path = tmp_path / "x.txt"
    path.write_text("Running 10s test @ http://localhost:3000\n10 connections\n\nStat 2.5% 50%\n")
    assert wrk.sniff(Source("x.txt", path)) == 0


def document(counts: dict[int, int], connections: int, duration_us: int, **other: Any) -> str:
    known = {"url": "http://u:pw@h/", "connections": connections, "threads": 1, "duration_us": duration_us}
    errors = dict.fromkeys(ERRORS, 0) | other.pop("errors", {})
    requests = {"requests": sum(counts.values()), "bytes": 100 * sum(counts.values())}
    rows = [[us, counts[us]] for us in sorted(counts)]
    return json.dumps({MARK: 1, **known, **requests, "errors": errors, "latencies_us": rows, **other}) + "\n"


def corrected(counts: dict[int, int], interval: int) -> dict[int, int]:
    """Do what wrk does to its histogram: for each latency n from twice the interval up, also n - interval and so on."""
    table = dict(counts)
    for n in range(2 * interval, max(table) + 1):
        count = table.get(n, 0)
        m = n - interval
        while count and m > interval:
            table[m] = table.get(m, 0) + count
            m -= interval
    return table


def test_requests_that_wrk_added_are_taken_out(tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    for _ in range(20):
        values = random.lognormal(4.0, 1.5, 400).astype(int) + 1
        counts = {int(value): int(count) for value, count in zip(*np.unique(values, return_counts=True), strict=True)}
        connections, duration_us = 8, int(values.sum() // 8) + 5
        interval = duration_us // (400 // connections)
        added = corrected(counts, interval)
        assert sum(added.values()) > 400
        text = document(counts, connections, duration_us, latencies_us=[[us, added[us]] for us in sorted(added)])
        operation = only(read_text(wrk, tmp_path, text, "run.json").results).operations[0]
        assert operation.histogram is not None
        assert operation.histogram.total == operation.count == 400
        assert operation.mean_ms == pytest.approx(values.mean() / 1000)
        rank = sorted(values)[int(np.ceil(0.9 * 400)) - 1]
        assert operation.histogram.quantile_bounds(0.9) == pytest.approx((rank / 1000, (rank + 1) / 1000))


def test_what_cannot_be_taken_out_is_said(tmp_path: Path) -> None:
    text = document({100: 5, 900: 5}, 2, 1_000, latencies_us=[[100, 5], [900, 7]])
    capture = read_text(wrk, tmp_path, text, "run.json")
    assert warned(capture) == ["corrected"]
    assert "mean" not in capture.results[0].operations[0].latency_ms


def test_a_real_document_has_every_request() -> None:
    capture = read(wrk, PRINTED / "run.json")
    result = only(capture.results)
    operation = result.operations[0]
    raw = json.loads((PRINTED / "run.json").read_text())
    assert operation.histogram is not None
    assert operation.count == raw["requests"] == operation.histogram.total
    assert sum(count for _, count in raw["latencies_us"]) > raw["requests"]
    assert (result.tool, result.job, result.workload["connections"]) == ("wrk", "web", raw["connections"])
    assert operation.latency_ms["max"] * 1000 == pytest.approx(raw["latencies_us"][-1][0])
    assert warned(capture) == []


def test_secrets_and_errors_of_a_document(tmp_path: Path) -> None:
    text = document({100: 8}, 1, 1_000, errors={"timeout": 0, "status": 3})
    result = only(read_text(wrk, tmp_path, text, "run.json").results)
    assert result.workload["url"] == "http://h/"
    assert (result.error_count, result.workload["status_error_count"]) == (3, 3)


@pytest.mark.parametrize(
    ("change", "complaint"),
    [
        ({"requests": "many"}, "no count of requests"),
        ({"connections": 0}, "no count of connections"),
        ({"latencies_us": [[5, 1], [5, 1]]}, "no ascending pairs"),
        ({"latencies_us": [[5]]}, "no ascending pairs"),
        ({"latencies_us": None}, "no ascending pairs"),
    ],
)
def test_a_damaged_document_is_refused(tmp_path: Path, change: dict[str, Any], complaint: str) -> None:
    whole = json.loads(document({100: 5}, 1, 1_000))
    with pytest.raises(InputError, match=complaint):
        read_text(wrk, tmp_path, json.dumps(whole | change) + "\n", "run.json")


def test_a_huge_document_costs_little(tmp_path: Path) -> None:
    """An interval of a microsecond would ask for millions of millions of additions."""
    rows = [[us, 1] for us in range(1, 60_000)]
    text = document({1: 59_999}, 1, 60_000, latencies_us=rows)
    assert only(read_text(wrk, tmp_path, text, "run.json").results).operations[0].count == 59_999


def test_both_kinds_are_read_by_name() -> None:
    paths = [PRINTED / "latency.txt", PRINTED / "run.json"]
    assert len(import_paths(paths).capture.results) == 2
