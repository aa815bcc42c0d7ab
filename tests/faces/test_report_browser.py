"""The HTML report in a real browser: it draws, is searched, prints, is read without a mouse, and obeys no name."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from playwright.sync_api import expect, sync_playwright

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import Imported
from leadline.core.model.capture import Capture
from leadline.core.model.finding import Diagnosis
from leadline.core.model.vocabulary import EntityKind
from leadline.faces.notebook import Recording, Report
from leadline.faces.report import write_report
from leadline.faces.report.figures import LINES_MAX, finding_charts
from tests.faces.report_samples import NS, group_of

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

CHROMIUM = Path("/usr/bin/chromium")
CHROMIUM_ARGUMENTS = [
    "--no-sandbox",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
]


@pytest.fixture(scope="module")
def chromium() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        yield browser
        browser.close()


def opened(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str]]:
    """The page of a report, and what went wrong while it opened: messages, errors, requests for anything else."""
    page = browser.new_page(**options)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.on("request", lambda request: trouble.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    page.wait_for_selector("html[data-ready]", state="attached")
    if failed := page.evaluate("document.documentElement.dataset.failed"):
        trouble.append(failed)
    return page, trouble


@pytest.mark.smoke
def test_it_opens_without_trouble_and_draws_every_finding(chromium: Browser, report: Path) -> None:
    page, trouble = opened(chromium, report)
    assert trouble == []
    charts = page.locator("[data-chart]")
    assert charts.count() >= 2
    for k in range(charts.count()):
        assert charts.nth(k).locator("path.line").count() >= 1
        assert charts.nth(k).locator("rect.window").count() >= 1
    assert page.locator(".finding line.limit").count() >= 1
    page.close()


def test_a_notebook_shows_the_charts_of_the_report(
    chromium: Browser, generated: tuple[Diagnosis, Imported], tmp_path: Path
) -> None:
    diagnosis, imported = generated
    report = Report(diagnosis, imported.capture)
    finding = next(f for f in diagnosis.findings if f.rule == "cpu-ready-high")
    views = [report.charts(finding), Recording(imported.capture).chart("disk_device_latency_ms", "device:")]
    notebook = tmp_path / "notebook.html"
    notebook.write_text("".join(view._repr_html_() for view in views), encoding="utf-8")
    page = chromium.new_page()
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("pageerror", lambda error: trouble.append(str(error)))
    page.goto(notebook.as_uri())
    frames = [page.frame_locator("iframe").nth(k) for k in range(2)]
    drawn = sum(len(chart.lines) for chart in finding_charts(finding, imported.capture))
    for frame, lines in zip(frames, (drawn, LINES_MAX), strict=True):
        expect(frame.locator("path.line")).to_have_count(lines)
    expect(frames[0].locator("line.limit")).to_have_count(1)
    expect(frames[0].locator("rect.window")).to_have_count(len(finding.windows))
    assert trouble == []
    page.close()


def test_the_script_reads_what_python_packed(
    chromium: Browser, report: Path, generated: tuple[Diagnosis, Imported]
) -> None:
    page, _ = opened(chromium, report)
    device = next(iter(generated[1].capture.of("disk_device_latency_ms", EntityKind.DEVICE)))
    read = page.evaluate(
        """async ([metric, entity]) => {
            const store = window.leadlineBrowser.store;
            for (let i = 0; i < store.size; i++) {
                if (store.metric(i).name === metric && store.entity(i).full === entity) {
                    const { times, values } = await store.read(i);
                    return [Array.from(times), Array.from(values)];
                }
            }
        }""",
        ["disk_device_latency_ms", str(device.entities[2])],
    )
    assert read[0] == (device.times_ns // 1_000_000).tolist()
    assert np.array(read[1]) == pytest.approx(device.values[2], rel=2.0**-11)
    page.close()


def test_thinned_series_are_read_at_their_own_times(chromium: Browser, tmp_path: Path) -> None:
    random = np.random.default_rng(11)
    group = group_of(random.random((300, 5_000)), step_s=1.0)
    write_report(tmp_path / "r.html", diagnose(Capture()), Imported(Capture(groups=[group])))
    page, trouble = opened(chromium, tmp_path / "r.html")
    assert trouble == []
    script = "async (i) => { const r = await leadlineBrowser.store.read(i); return [[...r.times], [...r.values]]; }"
    for number in (0, 255, 256, 299):
        times, values = page.evaluate(script, number)
        index = (np.array(times, dtype=np.int64) * 1_000_000 - group.times_ns[0]) // NS
        assert 100 < len(index) <= 600
        assert values == pytest.approx(group.values[number, index], rel=2.0**-10, abs=1e-4)
        assert max(values) == pytest.approx(group.values[number].max(), rel=2.0**-10)
    page.close()


def test_a_report_of_nothing_opens(chromium: Browser, tmp_path: Path) -> None:
    write_report(tmp_path / "r.html", diagnose(Capture()), Imported(Capture()))
    page, trouble = opened(chromium, tmp_path / "r.html")
    assert trouble == []
    expect(page.locator("#browser caption")).to_have_text("0 series match")
    page.close()


def test_series_are_searched_listed_and_overlaid(chromium: Browser, report: Path) -> None:
    page, trouble = opened(chromium, report)
    browser = page.locator("#browser")
    browser.get_by_label("Metric").select_option("")
    browser.get_by_label("Search").fill("vm001 disk_reads")
    expect(browser.locator("caption")).to_have_text("2 series match")
    names = browser.locator("tbody th[scope=row]").all_text_contents()
    assert names
    assert all("vm001" in name for name in names)
    browser.get_by_role("button", name="Draw the first 8").click()
    expect(browser.locator("path.line")).to_have_count(2)
    browser.get_by_label("Search").fill("no such thing")
    expect(browser.locator("caption")).to_have_text("0 series match")
    browser.get_by_role("button", name="Draw none").click()
    expect(browser.locator("path.line")).to_have_count(0)
    assert trouble == []
    page.close()


def test_the_list_is_ordered_and_cut(chromium: Browser, report: Path) -> None:
    page, _ = opened(chromium, report)
    page.select_option('[data-role="metric"]', label="disk_device_latency_ms")
    page.select_option('[data-role="order"]', "max")
    page.select_option('[data-role="top"]', "10")
    cells = page.locator("#browser tbody td:nth-child(6)").all_text_contents()
    highest = [float(cell.removesuffix(" ms").replace(",", "")) for cell in cells]
    assert 1 < len(highest) <= 10
    assert highest == sorted(highest, reverse=True)
    page.close()


def test_a_chart_has_its_numbers_as_a_table(chromium: Browser, report: Path) -> None:
    page, _ = opened(chromium, report)
    figure = page.locator("article.finding figure").first
    figure.locator("summary").click()
    figure.locator("[data-samples] tbody tr").first.wait_for()
    assert figure.locator("[data-samples] tbody tr").count() == 120
    assert "while it happened" in figure.inner_text()
    page.close()


def test_the_keyboard_reads_a_chart(chromium: Browser, report: Path) -> None:
    page, _ = opened(chromium, report)
    page.locator("article.finding .plot").first.focus()
    page.keyboard.press("ArrowRight")
    said = page.locator("article.finding .chart [aria-live]").first.inner_text()
    assert re.search(r"\d\d:\d\d:\d\d UTC", said)
    page.keyboard.press("Tab")
    assert page.evaluate("document.activeElement.tagName") == "SUMMARY"
    page.close()


def test_hostile_names_do_nothing(chromium: Browser, hostile: Path) -> None:
    page, trouble = opened(chromium, hostile)
    page.get_by_label("Search").fill("img")
    expect(page.locator("#browser caption")).not_to_have_text("0 series match")
    assert trouble == []
    assert page.title() != "owned"
    assert page.locator("img").count() == 0
    assert "<img src=x" in page.locator("#browser").inner_text()
    page.close()


def test_everything_has_a_name_for_a_screen_reader(chromium: Browser, report: Path) -> None:
    page, _ = opened(chromium, report)
    unnamed = page.evaluate(
        """() => [...document.querySelectorAll("input, select, button, [role=img], [role=region], section")]
            .filter((e) => !(e.labels && e.labels.length) && !e.textContent.trim()
                && !e.getAttribute("aria-label") && !e.getAttribute("aria-labelledby"))
            .map((e) => e.outerHTML.slice(0, 80))"""
    )
    assert unnamed == []
    assert page.evaluate("[...document.querySelectorAll('h1')].length") == 1
    assert page.locator("main").count() == page.locator("header.top").count() == page.locator("footer").count() == 1
    missing = page.evaluate(
        """() => [...document.querySelectorAll("[aria-labelledby]")]
            .filter((e) => !document.getElementById(e.getAttribute("aria-labelledby"))).length"""
    )
    assert missing == 0
    ids = page.evaluate("[...document.querySelectorAll('[id]')].map((e) => e.id)")
    assert len(ids) == len(set(ids))
    page.close()


_CONTRASTS = """() => {
    const light = (text) => {
        const parts = text.match(/[\\d.]+/g).slice(0, 3).map((v) => v / 255)
            .map((v) => (v <= 0.04045 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4));
        return 0.2126 * parts[0] + 0.7152 * parts[1] + 0.0722 * parts[2];
    };
    const ground = (e) => {
        for (; e; e = e.parentElement) {
            const colour = getComputedStyle(e).backgroundColor;
            if (colour !== "rgba(0, 0, 0, 0)") return colour;
        }
        return "rgb(255, 255, 255)";
    };
    const low = [];
    for (const e of document.querySelectorAll("body *:not(script):not(style)")) {
        if (![...e.childNodes].some((n) => n.nodeType === 3 && n.textContent.trim())) continue;
        const style = getComputedStyle(e);
        const svg = e instanceof SVGElement;
        const [a, b] = [light(svg ? style.fill : style.color), light(ground(e))].sort((x, y) => y - x);
        if ((a + 0.05) / (b + 0.05) < 4.5) low.push(`${e.tagName} ${e.className}: ${e.textContent}`);
    }
    return low;
}"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_has_contrast_in_both_schemes(chromium: Browser, report: Path, scheme: Any) -> None:
    page, _ = opened(chromium, report, color_scheme=scheme)
    assert page.evaluate(_CONTRASTS) == []
    before = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != before
    assert page.evaluate(_CONTRASTS) == []
    page.close()


@pytest.mark.parametrize("width", [375, 1280])
def test_nothing_runs_over_the_edge(chromium: Browser, report: Path, width: int) -> None:
    page, _ = opened(chromium, report, viewport={"width": width, "height": 800})
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_it_prints_light_with_charts_and_without_controls(chromium: Browser, report: Path) -> None:
    page, _ = opened(chromium, report, color_scheme="dark")
    page.emulate_media(media="print", color_scheme="dark")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"
    assert not page.locator("#browser").is_visible()
    assert not page.locator("#theme").is_visible()
    assert page.locator("article.finding path.line").first.is_visible()
    assert page.pdf(format="A4").startswith(b"%PDF")
    page.close()
