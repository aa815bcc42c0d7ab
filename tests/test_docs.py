"""What the guides show is what the program prints."""

from __future__ import annotations

import io
import re

import pytest
from rich.console import Console

from leadline.app.diagnose.diagnosing import diagnose, metrics_read
from leadline.app.read.importing import import_paths
from leadline.core.contracts.importer import Request
from leadline.core.system.tools import TOOLS, examine
from leadline.faces.cli.lazy_verbs import verb_stems
from leadline.faces.cli.main import VERBS
from leadline.faces.terminal import show_diagnosis
from leadline.formats.inventory_file import parse_inventory
from scripts import gallery, screenshot, verbs_page
from scripts.lists import LISTS, PAGES, renewed
from tests.conftest import ROOT

BLOCK = re.compile(r"^```\n(.*?)^```", re.MULTILINE | re.DOTALL)


def test_the_tutorial_shows_what_is_printed() -> None:
    if not examine(next(tool for tool in TOOLS if tool.name == "sadf")).is_present:
        pytest.skip("the tutorial's output includes the binary sar recording, which needs sadf")
    path = ROOT / "examples" / "incidents" / "throttled-wal-disk"
    capture = import_paths([path], Request(metrics=metrics_read())).capture
    stream = io.StringIO()
    console = Console(file=stream, width=80, highlight=False, emoji=False, color_system=None)
    for everything in (False, True):
        show_diagnosis(console, diagnose(capture), capture, everything=everything)
    printed = "\n".join(line.rstrip() for line in stream.getvalue().splitlines())
    shown = [block for block in BLOCK.findall((ROOT / "docs" / "tutorial.md").read_text()) if "db01 loop1" in block]
    assert len(shown) == 2
    for block in shown:
        assert block.strip() in printed


def test_the_inventory_guide_is_an_inventory() -> None:
    text = (ROOT / "docs" / "guides" / "inventory.md").read_text()
    example = re.search(r"```yaml\n(.*?)```", text, re.DOTALL)
    assert example is not None
    assert len(parse_inventory(example[1], "guide").facts) > 10


@pytest.mark.parametrize("name", PAGES)
def test_lists_of_units_are_those_there_are(name: str) -> None:
    text = (ROOT / name).read_text(encoding="utf-8")
    assert set(re.findall(r"<!-- list: (\w+) -->", text)) & set(LISTS), "the page has a list"
    assert text == renewed(text), "run `python -m scripts.lists`"


def test_the_gallery_shows_what_is_printed() -> None:
    assert gallery.PAGE.read_text(encoding="utf-8") == gallery.page(), "run `make gallery`"
    blocks = BLOCK.findall(gallery.PAGE.read_text(encoding="utf-8"))
    assert len(blocks) == len(gallery.SHOWN)
    assert max(len(block.splitlines()) for block in blocks) <= 24


def test_the_picture_of_the_readme_shows_what_is_answered() -> None:
    title = screenshot.title_of(screenshot.PICTURE.read_bytes())
    assert title == screenshot.answer(), "run `python -m scripts.screenshot`, and look at the picture"
    assert title in " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


def test_a_title_is_part_of_a_picture_that_can_be_read() -> None:
    png = screenshot.titled((ROOT / "docs" / "gallery" / "slow-disk-2.png").read_bytes(), "Nein: größer als 3 ms")
    assert screenshot.title_of(png) == "Nein: größer als 3 ms"
    assert screenshot.title_of((ROOT / "docs" / "gallery" / "slow-disk-2.png").read_bytes()) == ""


@pytest.mark.slow
def test_the_page_of_verbs_shows_what_is_printed() -> None:
    """Outputs of the machine are those of the page; every other one is printed anew."""
    text = verbs_page.PAGE.read_text(encoding="utf-8")
    assert text == verbs_page.page(text, machine=False), "run `python -m scripts.verbs_page`"
    assert set(verbs_page.SHOWN) == set(verb_stems(VERBS))
