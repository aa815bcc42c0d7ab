"""The HTML report in Chromium: size, time to write, time to open, memory, for 500, 5,000 and 20,000 series.

``python -m benches.bench_report [--series N ...] [--samples N]`` generates an esxtop capture with a fault for each
size, diagnoses it, writes the report and opens it from disk in a fresh headless Chromium. Times are counted from the
start of the navigation: until the findings and their charts are there, and until every series can be searched. It exits
with 1 when 20,000 series take more than the budget, and says so when Chromium is missing.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import psutil
from playwright.sync_api import sync_playwright

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.generating import FaultRequest, generate
from leadline.app.read.importing import import_paths
from leadline.faces.report import write_report
from leadline.generators.esxtop import shape_for_width

SERIES = (500, 5_000, 20_000)
SAMPLES = 360
BUDGET_S = 3.0
CHROMIUM = Path("/usr/bin/chromium")
ARGUMENTS = (
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--enable-precise-memory-info",
)
_MARKS = """() => Object.fromEntries(
    performance.getEntriesByType("mark").map((mark) => [mark.name, mark.startTime / 1000]))"""
_OVERLAY = """async () => {
    const start = performance.now();
    await window.leadlineBrowser.overlay(window.leadlineBrowser.listed.slice(0, 8));
    return performance.now() - start;
}"""
_SEARCH = """() => {
    const start = performance.now();
    document.querySelector('[data-role="metric"]').value = "";
    document.querySelector('[data-role="search"]').value = "vm";
    window.leadlineBrowser.list();
    return performance.now() - start;
}"""


@dataclass(frozen=True, slots=True)
class Opened:
    """What opening a report took; seconds, milliseconds and MiB."""

    findings_s: float
    browser_s: float
    search_ms: float
    overlay_ms: float
    heap_mib: float
    renderer_mib: float


def report_of(folder: Path, series: int, samples: int, *, noise: bool = False) -> tuple[Path, int, float]:
    """A report of about that many series: its path, its real count, and the seconds writing it took.

    With noise every value is replaced by a random one, which nothing can compress: the largest a report gets.
    """
    capture_path = folder / f"{series}.csv"
    generate(shape_for_width(series, samples), [FaultRequest("device-slow", 0)], capture_path, columns=series + 1)
    imported = import_paths([capture_path])
    diagnosis = diagnose(imported.capture)
    if noise:
        random = np.random.default_rng(1)
        imported.capture.groups = [replace(g, values=random.random(g.values.shape)) for g in imported.capture.groups]
    path = folder / f"{series}.html"
    start = time.perf_counter()
    write_report(path, diagnosis, imported)
    return path, imported.capture.series_count, time.perf_counter() - start


def opened(path: Path) -> Opened:
    """Open a report in a fresh browser."""
    before = {process.pid for process in psutil.Process().children(recursive=True)}
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=list(ARGUMENTS))
        tab = browser.new_page(viewport={"width": 1280, "height": 900})
        tab.goto(path.as_uri())
        tab.wait_for_selector("html[data-ready]", state="attached")
        failed = tab.evaluate("document.documentElement.dataset.failed")
        if failed:
            message = f"{path.name}: {failed}"
            raise RuntimeError(message)
        marks: dict[str, float] = tab.evaluate(_MARKS)
        memory: dict[str, Any] = tab.evaluate("({heap: performance.memory.usedJSHeapSize})")
        resident = renderer_mib(before)
        search_ms, overlay_ms = tab.evaluate(_SEARCH), tab.evaluate(_OVERLAY)
        browser.close()
    return Opened(
        marks["leadline-findings"],
        marks["leadline-browser"],
        search_ms,
        overlay_ms,
        memory["heap"] / 2**20,
        resident,
    )


def renderer_mib(before: set[int]) -> float:
    """Resident memory of the largest renderer process started since."""
    sizes = [0]
    for process in psutil.Process().children(recursive=True):
        try:
            if process.pid not in before and "--type=renderer" in process.cmdline():
                sizes.append(process.memory_info().rss)
        except psutil.NoSuchProcess:
            continue
    return max(sizes) / 2**20


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--series", type=int, nargs="+", default=list(SERIES))
    parser.add_argument("--samples", type=int, default=SAMPLES)
    parser.add_argument("--repeat", type=int, default=3, help="fresh browsers per report, the median counts")
    options = parser.parse_args(arguments)
    if not CHROMIUM.exists():
        print(f"not measured: {CHROMIUM} is not installed (apt-get install chromium)")
        return 0
    print(f"{'series':>8} {'MB':>6} {'write s':>8} {'findings s':>11} {'all series s':>13}", end="")
    print(f" {'search ms':>10} {'8 overlaid ms':>14} {'heap MiB':>9} {'process MiB':>12}")
    met = True
    with tempfile.TemporaryDirectory(prefix="leadline-bench-") as name:
        for series, noise in [*((series, False) for series in options.series), (max(options.series), True)]:
            path, count, write_s = report_of(Path(name), series, options.samples, noise=noise)
            runs = sorted((opened(path) for _ in range(options.repeat)), key=lambda run: run.browser_s)
            run = runs[len(runs) // 2]
            print(
                f"{count:>8,} {path.stat().st_size / 1e6:>6.2f} {write_s:>8.2f} {run.findings_s:>11.2f}"
                f" {run.browser_s:>13.2f} {run.search_ms:>10.0f} {run.overlay_ms:>14.0f} {run.heap_mib:>9.0f}"
                f" {run.renderer_mib:>12.0f}{'  every value random' if noise else ''}"
            )
            met &= series < SERIES[-1] or run.browser_s <= BUDGET_S
    if max(options.series) >= SERIES[-1]:
        print(f"budget of {BUDGET_S:g} s for {SERIES[-1]:,} series: {'met' if met else 'missed'}")
    return 0 if met else 1


if __name__ == "__main__":
    sys.exit(main())
