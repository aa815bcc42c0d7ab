"""The live page in a real browser: wide and on a phone, light and dark, live and without a script."""

from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from playwright.sync_api import expect, sync_playwright

from leadline.app.watch.watching import Watch
from leadline.faces.web.serving import ServedPage, serve
from leadline.stores.incidents import Remark
from tests.faces.test_report_browser import CHROMIUM, CHROMIUM_ARGUMENTS
from tests.faces.web.conftest import HOST, HOSTILE, VMS

if TYPE_CHECKING:
    from playwright.sync_api import Browser, Page

WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 400, "height": 800}


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    if not CHROMIUM.exists():
        pytest.skip(f"{CHROMIUM} is not installed")
    with sync_playwright() as player:
        chromium = player.chromium.launch(executable_path=CHROMIUM, args=CHROMIUM_ARGUMENTS)
        yield chromium
        chromium.close()


def visit(browser: Browser, address: str, **options: Any) -> tuple[Page, list[str]]:
    """A page, and what went wrong while it opened: messages, errors, requests for anything elsewhere."""
    tab = browser.new_page(**options)
    trouble: list[str] = []
    root = "/".join(address.split("/")[:3])
    tab.on("console", lambda message: trouble.append(message.text))
    tab.on("pageerror", lambda error: trouble.append(str(error)))
    tab.on("request", lambda request: None if request.url.startswith(root) else trouble.append(request.url))
    tab.goto(address)
    return tab, trouble


def addresses(page: ServedPage, watch: Watch) -> dict[str, str]:
    """The pages by name."""
    (incident,) = watch.incidents.open_ones()
    named = {"now": "", "incidents": "incidents", "estate": "estate", "top": "top", "sources": "sources"}
    named["incident"] = f"incidents/{incident.id}"
    named["guest"] = f"entity?name={quote('guest:db01')}"
    named["host"] = f"entity?name={quote(str(HOST))}"
    return {name: page.address + path for name, path in named.items()}


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("view", [WIDE, PHONE], ids=["wide", "phone"])
def test_every_page_opens_without_trouble_and_fits(
    browser: Browser, page: ServedPage, watch: Watch, view: dict[str, int], scheme: str, tmp_path: Path
) -> None:
    for name, address in addresses(page, watch).items():
        tab, trouble = visit(browser, address, viewport=view, color_scheme=scheme)
        tab.wait_for_selector("html[data-live]", state="attached")
        wide = tab.evaluate("document.documentElement.scrollWidth")
        tab.screenshot(path=tmp_path / f"{name}.png", full_page=True)
        ground = tab.evaluate("getComputedStyle(document.body).backgroundColor")
        tab.close()
        assert trouble == [], name
        assert wide <= view["width"], name
        assert (ground == "rgb(255, 255, 255)") is (scheme == "light")


def test_a_name_that_is_a_script_is_shown_and_not_run(browser: Browser, page: ServedPage) -> None:
    tab, trouble = visit(browser, f"{page.address}entity?name={quote(str(VMS[-1]), safe='')}")
    expect(tab.locator("h1")).to_contain_text(HOSTILE)
    assert trouble == []
    tab.close()


def test_a_page_follows_the_watch_without_being_loaded_again(browser: Browser, page: ServedPage, watch: Watch) -> None:
    (incident,) = watch.incidents.open_ones()
    tab, trouble = visit(browser, f"{page.address}incidents/{incident.id}")
    tab.wait_for_selector("html[data-live]", state="attached")
    tab.wait_for_timeout(1500)
    watch.incidents.remark(incident.id, Remark(time.time_ns(), "bob", "I saw it, too"))
    expect(tab.get_by_text("I saw it, too")).to_be_visible(timeout=10_000)
    assert trouble == []
    tab.close()


def test_who_copies_a_command_is_not_interrupted(browser: Browser, page: ServedPage, watch: Watch) -> None:
    (incident,) = watch.incidents.open_ones()
    tab, _ = visit(browser, f"{page.address}incidents/{incident.id}")
    tab.wait_for_selector("html[data-live]", state="attached")
    tab.wait_for_timeout(1500)
    tab.evaluate("getSelection().selectAllChildren(document.querySelector('.command code'))")
    watch.incidents.remark(incident.id, Remark(time.time_ns(), "eve", "Nobody sees this yet"))
    tab.wait_for_timeout(3500)
    assert tab.evaluate("getSelection().toString()").startswith("leadline diagnose")
    assert tab.get_by_text("Nobody sees this yet").count() == 0
    tab.close()


def test_it_says_when_the_watch_does_not_answer(browser: Browser, watch: Watch) -> None:
    served = serve(watch)
    tab, _ = visit(browser, served.address)
    tab.wait_for_selector("html[data-live]", state="attached")
    served.close()
    expect(tab.locator("#connection")).to_contain_text("The watch does not answer", timeout=10_000)
    tab.close()


def test_it_works_without_a_script(browser: Browser, page: ServedPage) -> None:
    context = browser.new_context(java_script_enabled=False)
    tab = context.new_page()
    tab.goto(page.address)
    assert tab.locator("noscript meta[http-equiv=refresh]").count() == 1 or "refresh" in tab.content()
    tab.get_by_role("link", name="Top talkers").click()
    tab.locator("select[name=metric]").select_option("cpu_ready_pct")
    tab.get_by_role("button", name="Show").click()
    expect(tab.locator("tr th").first).to_contain_text(HOSTILE)
    assert tab.locator(".talkers tr").count() == len(VMS)
    context.close()


def test_it_is_used_with_the_keyboard(browser: Browser, page: ServedPage) -> None:
    tab, trouble = visit(browser, page.address)
    tab.keyboard.press("Tab")
    expect(tab.get_by_role("link", name="Skip to the content")).to_be_focused()
    assert tab.locator("h1").count() == 1
    assert trouble == []
    tab.close()
