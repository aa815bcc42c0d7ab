"""Reports of runs and probes: made of real measurements, looked at in a real browser."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from playwright.sync_api import sync_playwright
from typer.testing import CliRunner

from leadline.app.probe.model import Observed, Pulse, judge
from leadline.app.probe.probing import Probed, ProbePlan, disk_line
from leadline.core.model.capture import Capture, SeriesGroup, SourceInfo
from leadline.core.model.entities import Entity
from leadline.core.model.errors import UsageError
from leadline.core.model.histogram import Histogram
from leadline.core.model.result import Operation, Result
from leadline.core.model.run import Run
from leadline.core.model.vocabulary import EntityKind
from leadline.core.system.tools import find_program
from leadline.faces.cli.main import build_app
from leadline.faces.probe_page import probe_lead
from leadline.faces.report.distribution import distribution
from leadline.faces.report.lead import Spread
from leadline.faces.run_page import run_lead
from tests.faces.report_samples import NS
from tests.faces.test_report_browser import CHROMIUM, CHROMIUM_ARGUMENTS, opened

if TYPE_CHECKING:
    from collections.abc import Iterator

    from playwright.sync_api import Browser

START = 1_700_000_000 * NS
LOAD = ("--set-size", "8m", "--seconds", "3", "--rounds", "1", "--warm-up", "0", "--yes", "--json")


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as player:
        found = player.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        yield found
        found.close()


@pytest.fixture
def scratch(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    if find_program("fio") is None:
        pytest.skip("fio is not installed")
    monkeypatch.setenv("LEADLINE_HOME", str(tmp_path / "home"))
    (tmp_path / "on").mkdir()
    return tmp_path


def call(*words: str) -> dict[str, Any]:
    done = CliRunner().invoke(build_app(), list(words), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    loaded: dict[str, Any] = json.loads(done.stdout)
    return loaded


# --- as a user sees it ---


@pytest.mark.real
def test_a_run_has_its_result_histogram_seconds_and_baseline(scratch: Path, browser: Browser) -> None:
    bench = ("bench", "run", "hci-8k-50-50", "--on", str(scratch / "on"), *LOAD)
    call(*bench, "--keep", "before")
    page_path = scratch / "run.html"
    made = call(*bench, "--repeat", "2", "--html", str(page_path))
    page, trouble = opened(browser, page_path)
    assert trouble == []
    assert "operations per second" in page.locator("h1").inner_text()
    assert page.locator(".answer dt").all_inner_texts() == ["How sure is that?", "Against before", "The rules say"]
    latency = page.locator("#latency table.measured")
    assert latency.locator("thead th").all_inner_texts() == [
        "percentile",
        "mixed read",
        "samples above it",
        "mixed write",
        "samples above it",
    ]
    assert latency.locator("tbody th").all_inner_texts()[:4] == ["p50", "p90", "p95", "p99"]
    assert page.locator("#latency .spread").count() == 2
    assert page.locator("#latency .spread rect").count() > 10
    assert page.locator("#seconds path.line").count() == 2
    assert page.locator("#repeats tbody tr").count() == 2
    assert page.locator("#baseline-1 tbody tr").count() >= 4
    assert page.locator("#timeline rect.phase").count() == 1
    assert page.locator("#layers li").count() > 5
    page.close()
    shown = scratch / "shown.html"
    call("runs", "show", made["runs"][0], "--json", "--html", str(shown))
    assert made["runs"][0] in shown.read_text()


@pytest.mark.real
def test_a_probe_shows_its_verdict_and_pulses_as_humps(scratch: Path, browser: Browser) -> None:
    path, folder = scratch / "probe.html", scratch / "probed"
    words = ("probe", "--on", str(scratch / "on"), "--seconds", "2", "--pulse", "4", "--set-size", "16m", "--yes")
    found = call(*words, "-o", str(folder), "--html", str(path), "--json")
    page, trouble = opened(browser, path)
    assert trouble == []
    ruling = found["verdict"]["ruling"]
    assert page.locator("h1").inner_text() == ("Not decided" if ruling == "undecided" else f"The disk is {ruling}")
    assert page.locator(".answer dd").first.inner_text() == found["verdict"]["sentence"]
    phases = page.locator("#timeline .track-row:has(rect.phase) .name").all_inner_texts()
    assert phases[:2] == ["round 1: the workload", "pulse, as hard as possible"]
    assert len(phases) == 3
    rate = page.locator("#rounds figure").first
    assert rate.locator("rect.window").count() == 2
    assert rate.locator("path.line").count() >= 1
    assert page.locator("#pulses tbody tr").count() == 2
    page.close()
    with pytest.raises(UsageError, match="an earlier probe"):
        CliRunner().invoke(build_app(), [*words, "-o", str(folder)], catch_exceptions=False)


def test_a_report_that_cannot_be_written_is_refused_before_anything_is_loaded(tmp_path: Path) -> None:
    nowhere = str(tmp_path / "none" / "r.html")
    on = ("--on", str(tmp_path), "--yes", "--html", nowhere)
    for words in (
        ["bench", "run", "hci-8k-50-50", *on],
        ["probe", *on, "-o", str(tmp_path / "p")],
        ["probe", "--from", "a", "--from", "b", "--html", nowhere],
        ["runs", "show", "last", "--html", nowhere],
    ):
        with pytest.raises(UsageError, match="there is no folder"):
            CliRunner().invoke(build_app(), words, catch_exceptions=False)
    assert list(tmp_path.iterdir()) == []


# --- what is drawn ---


def probed(hard_per_s: float, gentle_per_s: float) -> tuple[Probed, ProbePlan, Capture]:
    """Ten seconds of a workload at 50 per second, a pause of five, two pulses of ten seconds with a pause between."""
    disk, job = Entity(EntityKind.BLOCK_DEVICE, "vda"), Entity(EntityKind.JOB, "probe")
    sources = [
        SourceInfo("p/round-1/linux.txt", "linux", "linux", start_ns=START, end_ns=START + 10 * NS, series_count=2),
        SourceInfo("p/round-2/linux.txt", "linux", "linux", start_ns=START + 15 * NS, end_ns=START + 38 * NS),
        SourceInfo("p/round-2/hard.json", "fio", "fio"),
        SourceInfo("p/round-2/rate-90.json", "fio", "fio"),
    ]
    groups: list[SeriesGroup] = []

    def add(metric: str, entity: Entity, source: int, begin_s: int, values: list[float]) -> None:
        times = START + NS * (begin_s + 1 + np.arange(len(values), dtype=np.int64))
        groups.append(SeriesGroup(metric, [entity], times, np.array([values]), 1.0, source))

    second = [hard_per_s] * 10 + [0.0] * 3 + [gentle_per_s] * 10
    for source, begin, values in ((0, 0, [50.0] * 10), (1, 15, second)):
        add("disk_reads_per_s", disk, source, begin, values)
        add("disk_writes_per_s", disk, source, begin, [0.0] * len(values))
        add("guest_disk_await_ms_read", disk, source, begin, [1.0 if v > 0 else float("nan") for v in values])
        add("guest_disk_await_ms_write", disk, source, begin, [float("nan")] * len(values))
    for source, begin, value in ((2, 15, hard_per_s), (3, 28, gentle_per_s)):
        add("job_iops_read", job, source, begin, [value] * 10)
        add("job_latency_ms_read", job, source, begin, [2.0] * 10)
    results = [
        Result("fio", "probe", (Operation("read", 1.0),), 10.0, START + begin * NS, source=sources[k].name)
        for k, begin in ((2, 15), (3, 28))
    ]
    pulses = (Pulse(None, hard_per_s, 2.0, 3.0, 1.0, 32), Pulse(90.0, gentle_per_s, 1.0, 2.0, 1.0, 32))
    observed = Observed("vda", 50.0, 50.0, 1.0, 1.0)
    verdict = judge(observed, pulses[1], None, pulses[0], None)
    made = ProbePlan("/srv", Path("p"), 10.0, 10.0, None, 32, None)
    return Probed(observed, pulses, verdict, None, 70.0, ()), made, Capture(groups, sources, results=results)


@pytest.mark.parametrize(("hard", "logarithmic"), [(200.0, False), (50_000.0, True)])
def test_the_pulses_are_higher_than_what_is_between_them(hard: float, logarithmic: bool) -> None:
    lead = probe_lead(*probed(hard, 90.0))
    assert (lead.headline, lead.answers[0][0]) == ("The disk is cleared", "Is it the disk?")
    assert [phase.name for phase in lead.phases] == [
        "round 1: the workload",
        "pulse, as hard as possible",
        "pulse, 90 per second",
    ]
    rate, latency = lead.sections[0].charts
    assert rate.is_logarithmic is logarithmic
    assert not latency.is_logarithmic
    assert len(rate.windows) == 2
    counted, pulsed = rate.lines
    for window, level in zip(rate.windows, (hard, 90.0), strict=True):
        for line in (counted, pulsed):
            inside = (line.times_ns > window.start_ns) & (line.times_ns <= window.end_ns)
            known = line.values[0][inside]
            assert known[np.isfinite(known)].tolist() == [level] * 10
    between = (counted.times_ns > rate.windows[0].end_ns) & (counted.times_ns <= rate.windows[1].start_ns)
    assert counted.values[0][between].tolist() == [0.0] * 3
    assert np.isnan(counted.values[0][counted.times_ns == START + 10 * NS + 1]).all()  # a gap between the rounds


def test_the_disk_that_was_pulsed_is_drawn_though_another_was_busier() -> None:
    done, made, capture = probed(200.0, 90.0)
    other = replace(done, observed=Observed("loop0", 900.0, 900.0, 1.0, 1.0), disk="vda")
    lead = probe_lead(other, made, capture)
    assert ("Disk", "vda") in lead.facts
    assert lead.sections[0].charts[0].names[0] == "vda, the kernel's counters"


def test_a_disk_without_timed_requests_has_no_latency() -> None:
    capture = probed(200.0, 90.0)[2]
    line = disk_line(capture, "vda")
    assert line is not None
    assert np.isnan(line.await_ms[line.iops == 0.0]).all()
    assert np.isnan(line.await_ms).sum() == 3 + 1  # the pause between the pulses, the gap between the rounds
    assert disk_line(capture, "sdz") is None


def test_a_histogram_counts_every_request_once() -> None:
    edges = np.geomspace(0.01, 500.0, 300)
    counts = np.random.default_rng(4).integers(0, 50, 299)
    histogram = Histogram.of(edges[:-1].tolist(), edges[1:].tolist(), counts.tolist(), "ms")
    drawn = distribution(Spread("d read", histogram, (("p50", 3.0), ("p95", 3.3), ("p99", 300.0))))
    assert sum(int(count.replace(",", "")) for _, count, _ in drawn["rows"]) == counts.sum()
    assert drawn["total"] == f"{counts.sum():,}"
    assert [mark["line"] for mark in drawn["marks"]] == [0, 1, 0]  # neighbours are not written over each other
    assert [mark["anchor"] for mark in drawn["marks"]] == ["start", "start", "end"]
    assert all(0.0 <= float(column["height"]) <= drawn["height"] for column in drawn["columns"])
    ticks = [float(x.rstrip("%")) for x, _, _ in drawn["ticks"]]
    assert ticks == sorted(ticks)
    assert 2 <= len(ticks) <= 9


@pytest.mark.parametrize("bounds", [([5.0], [5.1]), ([0.0], [0.001]), ([100.0], [float("inf")])])
def test_a_histogram_of_one_bucket_is_drawn(bounds: tuple[list[float], list[float]]) -> None:
    drawn = distribution(Spread("d", Histogram.of(*bounds, [7], "ms")))
    assert [count for _, count, _ in drawn["rows"]] == ["7"]


def test_a_run_without_rounds_says_so() -> None:
    run = Run("1-x", "x", "interrupted", "fio", "/srv", "2026-11-21T00:00:00+00:00", 1, {"name": "x", "io": []})
    lead = run_lead(run, Capture())
    assert lead.headline == "x on /srv: nothing was measured"
    assert lead.answers[0][1].startswith("The run is interrupted")
    assert lead.phases == ()


def test_the_lowest_level_of_a_logarithmic_axis_stands_for_all_below(browser: Browser, tmp_path: Path) -> None:
    from leadline.app.diagnose.diagnosing import diagnose
    from leadline.app.read.importing import Imported
    from leadline.faces.report import write_measured

    done, made, capture = probed(50_000.0, 90.0)
    path = tmp_path / "r.html"
    write_measured(path, diagnose(Capture()), Imported(capture), probe_lead(done, made, capture))
    page, trouble = opened(browser, path)
    assert trouble == []
    levels = page.locator("#rounds figure").first.locator("svg text.tick").all_text_contents()
    assert [text for text in levels if text.endswith("/s")] == ["≤ 10/s", "100/s", "1,000/s", "10,000/s", "100,000/s"]
    lefts = page.evaluate("[...document.querySelectorAll('#rounds .legend')].map((own) => own.style.paddingLeft)")
    assert len(set(lefts)) == 1  # both charts on one time line
    page.close()
