"""Charts of one quantity against another: their whiskers, and the pages that show them, in a real browser too."""

from __future__ import annotations

import math
import re
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest
from playwright.sync_api import sync_playwright

from leadline.app.density.comparing import compare_density
from leadline.app.density.model import judge, parse_service_level
from leadline.app.density.results import Density
from leadline.app.density.steps import StepRule
from leadline.core.system.cgroups import InstanceLimits
from leadline.faces.report.density import density_charts, density_page
from leadline.faces.report.sweep import rate_chart, sweep_page
from leadline.faces.report.xy import Drawn, Line, Mark, XyChart, drawn
from tests.app.density.test_model import instance
from tests.faces.test_report_browser import CHROMIUM, CHROMIUM_ARGUMENTS
from tests.faces.test_sweep import CAPPED, outcome_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from playwright.sync_api import Browser, Page

LATENCIES_MS = {1: 10.0, 2: 10.0, 4: 14.3, 6: 30.0}  # of every instance, by their count; p95 is 1.39 times it


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as player:
        found = player.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        yield found
        found.close()


@pytest.fixture(scope="module")
def density() -> Density:
    """A density run judged from the seconds of its instances: held, held, near the bound, broke."""
    clauses = parse_service_level("p95<=20ms")
    levels = tuple(
        judge([instance(k + 1, ms, seed=count) for k in range(count)], clauses) for count, ms in LATENCIES_MS.items()
    )
    done, where, started = "done", "/srv", "2026-11-21T08:00:00"
    rule, nothing = StepRule(most=16), InstanceLimits()
    said = tuple(map(str, clauses))
    workload = {"name": "w"}
    return Density(
        "first", done, workload, where, (), started, 1, said, rule, math.nan, nothing, are_limited=False, levels=levels
    )


def of(*marks: Mark, log_y: bool = False) -> Drawn:
    found = drawn(XyChart("t", "x", "y", (Line("l", tuple((m.x, m.y) for m in marks), marks),), log_y=log_y))
    assert found is not None
    return found


def opened(browser: Browser, path: Path, **options: Any) -> tuple[Page, list[str]]:
    """A page without a script, and what went wrong while it opened: messages, requests for anything else."""
    page = browser.new_page(**options)
    trouble: list[str] = []
    page.on("console", lambda message: trouble.append(message.text))
    page.on("request", lambda request: trouble.append(request.url) if request.url != path.as_uri() else None)
    page.goto(path.as_uri())
    return page, trouble


# --- whiskers ---


def test_a_whisker_stands_where_the_axis_says() -> None:
    found = of(Mark(1.0, 50.0, "m", low=20.0, high=100.0), Mark(2.0, 60.0, "m"))
    place = {label: y for y, label in found.y_ticks}
    x, y, _, _ = found.marks[0]
    assert place["100"] < y < place["20"]
    assert found.whiskers == [
        (
            f"M{x:.1f},{place['20']:.1f}V{place['100']:.1f}"
            f"M{x - 4:.1f},{place['20']:.1f}H{x + 4:.1f}M{x - 4:.1f},{place['100']:.1f}H{x + 4:.1f}",
            0,
        )
    ]


@pytest.mark.parametrize(("low", "high"), [(math.nan, math.nan), (1.0, math.nan), (math.nan, 9.0), (1.0, math.inf)])
def test_an_interval_that_is_not_known_has_none(low: float, high: float) -> None:
    found = of(Mark(1.0, 5.0, "m", low=low, high=high))
    assert found.whiskers == []
    assert found.y_ticks == of(Mark(1.0, 5.0, "m")).y_ticks


def test_a_point_that_is_not_measured_has_none() -> None:
    found = of(Mark(1.0, 5.0, "m"), Mark(2.0, math.nan, "m", low=1.0, high=900.0))
    assert found.whiskers == []
    assert found.y_ticks[-1][1] == "5"


@pytest.mark.parametrize("log_y", [False, True])
def test_the_axis_is_long_enough_for_whiskers_and_one_that_goes_on_below_has_no_cap(log_y: bool) -> None:
    found = of(Mark(1.0, 5.0, "m", low=-3.0, high=70.0), log_y=log_y)
    ((shape, _),) = found.whiskers
    numbers = [float(text) for text in re.findall(r"(?<=,)[\d.]+|(?<=V)[\d.]+", shape)]
    assert shape.count("H") == 1
    assert found.floor == numbers[0] == max(numbers)
    assert min(numbers) >= found.y_ticks[-1][0]
    assert float(found.y_ticks[-1][1]) >= 70.0


# --- axes ---


def test_what_is_counted_has_no_ticks_between_whole_numbers() -> None:
    found = drawn(XyChart("t", "x", "y", (Line("l", ((1.0, 2.0), (2.0, 3.0))),), whole_x=True))
    assert found is not None
    assert [label for _, label in found.x_ticks] == ["0", "1", "2"]


def test_a_mark_beside_its_line_is_within_the_axes() -> None:
    found = drawn(XyChart("t", "x", "y", (Line("l", ((1.0, 2.0), (2.0, 3.0)), (Mark(7.0, 90.0, "again"),)),)))
    assert found is not None
    assert float(found.x_ticks[-1][1]) >= 7.0
    assert float(found.y_ticks[-1][1]) >= 90.0


def test_a_line_of_one_point_is_named_and_one_of_none_is_not() -> None:
    one, none = Line("one", ((1.0, 2.0),), (Mark(1.0, 2.0, "m"),)), Line("none", ((1.0, math.nan),))
    found = drawn(XyChart("t", "x", "y", (one, none)))
    assert found is not None
    assert (found.paths, [line.name for line in found.lines]) == ([], ["one"])


# --- pages ---


def test_the_curves_of_a_density_run(density: Density) -> None:
    rate, latency = density_charts([density, replace(density, id="second")])
    assert (rate.title, latency.title) == ("Operations per second of all instances", "p95 of the worst instance, ms")
    assert [(level.y, level.label) for level in latency.levels] == [(20.0, "20 is asked")]
    assert [line.name for line in rate.lines] == ["first", "second"]
    marks = latency.lines[0].marks
    assert [mark.x for mark in marks] == list(LATENCIES_MS)
    assert [mark.state for mark in marks] == ["cleared", "cleared", "suspected", "convicted"]
    for mark, level in zip(marks, density.levels, strict=True):
        assert (mark.y, mark.low, mark.high) == (level.worst_ms, *level.worst_ms_interval)
        assert mark.low <= mark.y <= mark.high
        assert mark.text in latency.summary
    assert "first, 6 instances: " in latency.summary


def test_a_density_page_of_nothing_has_no_curve(density: Density) -> None:
    page = density_page([replace(density, levels=())])
    assert "<svg" not in page
    assert "The curve" not in page


def test_names_are_escaped(density: Density) -> None:
    page = density_page([replace(density, id='"><script>alert(1)</script>')])
    assert "<script" not in page


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_both_pages_in_a_browser(browser: Browser, density: Density, tmp_path: Path, scheme: str) -> None:
    second = replace(density, id="second", levels=density.levels[:3])
    pages = {
        "density": density_page([density, second], compare_density(density, second)),
        "sweep": sweep_page(outcome_of(CAPPED)),
    }
    for name, html in pages.items():
        path = tmp_path / f"{name}.html"
        path.write_text(html, encoding="utf-8")
        page, trouble = opened(browser, path, color_scheme=scheme)
        assert trouble == []
        assert page.locator(".brand span").inner_text() == name
        assert page.locator("footer").inner_text().startswith("Written by Leadline")
        for figure in page.locator("figure.xy").all():
            frame = figure.locator("svg").bounding_box()
            assert frame is not None
            for shape in (*figure.locator("circle").all(), *figure.locator("text").all()):
                box = shape.bounding_box()
                assert box is not None
                assert frame["x"] <= box["x"]
                assert box["x"] + box["width"] <= frame["x"] + frame["width"] + 1.0
                assert frame["y"] <= box["y"] + 1.0
            keys = figure.locator(".key").evaluate_all("all => all.map(own => getComputedStyle(own).backgroundColor)")
            lines = figure.locator("path.line").evaluate_all("all => all.map(own => getComputedStyle(own).stroke)")
            assert keys == lines
        page.close()


def test_the_states_of_a_density_run_have_their_colours(browser: Browser, density: Density, tmp_path: Path) -> None:
    path = tmp_path / "density.html"
    path.write_text(density_page([density]), encoding="utf-8")
    page, trouble = opened(browser, path)
    assert trouble == []
    colour = "all => all.map(own => getComputedStyle(own)[own.tagName === 'circle' ? 'fill' : 'color'])"
    dots = page.locator("figure").last.locator("circle").evaluate_all(colour)
    cells = page.locator("tbody tr td:last-child").evaluate_all(colour)
    assert dots == cells
    assert len(set(dots)) == 3
    assert page.locator("figure").last.locator("path.whisker").count() == 4
    page.close()


def test_the_load_of_a_sweep_is_counted_in_whole_numbers() -> None:
    assert rate_chart(outcome_of({1: 100.0, 2: 190.0})).whole_x
