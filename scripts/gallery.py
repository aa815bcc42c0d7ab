"""The gallery of first screens in the documentation: ``python -m scripts.gallery``; ``--check`` writes nothing.

Each screen is what ``leadline diagnose`` prints of a recorded incident, so the page changes when the program does. The
pictures of the pages are made by ``--pictures`` (needs Debian's chromium); look at them before committing them.
"""

from __future__ import annotations

import argparse
import io
import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright
from rich.console import Console

from benches.incidents.recordings import TRUTH, Truth, read_recording, unpack
from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.core.io.yaml_files import read_model
from leadline.core.model.capture import Capture
from leadline.faces.report import write_report
from leadline.faces.terminal import show_diagnosis

ROOT = Path(__file__).resolve().parent.parent
RECORDED = ROOT / "incidents" / "recorded"
FOLDER = ROOT / "docs" / "gallery"
PAGE = FOLDER / "index.md"
# Kind and variant, and what the reader wants to know it by.
SHOWN = {
    "iops-limit-wal/1": "A disk with an IOPS limit",
    "slow-disk/2": "A slow disk",
    "disk-freezes/1": "A disk that stands still now and then",
    "missing-index/2": "A dropped index",
    "lock-waits/1": "A lock",
    "cpu-taken/1": "Another program on the CPUs",
    "noisy-program/2": "Another program on the disk",
    "network-loss/1": "A network that loses packets",
    "lab-cpu/2": "A hypervisor without free CPU",
    "two-faults/1": "Two faults at once",
}
WIDTH, HEIGHT = 1060, 1240
PICTURE_BYTES_MAX = 200_000


def screen_of(name: str, folder: Path) -> tuple[str, str]:
    """What was done to the machine, and the first screen of a recording in 80 columns."""
    recording = read_recording(RECORDED / f"{name}.tar.xz", folder)
    return recording.truth.summary, printed(recording.whole)


def printed(capture: Capture) -> str:
    """The first screen of a recording in 80 columns."""
    stream = io.StringIO()
    console = Console(file=stream, width=80, highlight=False, emoji=False, color_system=None)
    show_diagnosis(console, diagnose(capture), capture)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def page() -> str:
    """The page, as the program prints the screens now."""
    parts = [
        "# Gallery: what ten incidents look like\n",
        "Recorded on real machines with the fault set from outside (`incidents/`), as `leadline diagnose` answers",
        "them; made by `make gallery`. Below each screen is the page of `--html`.",
    ]
    for name, title in SHOWN.items():
        with tempfile.TemporaryDirectory() as folder:
            summary, text = screen_of(name, Path(folder))
        kind, variant = name.split("/")
        picture = f"{kind}-{variant}.png"
        parts.append(f"\n## {title}\n\nWhat was done: {summary}\n\n```\n{text}\n```")
        if (FOLDER / picture).is_file():
            parts.append(f"\n![The page of {title.lower()}]({picture})")
    return "\n".join(parts) + "\n"


def pictures() -> bool:
    """Write a picture of each page; false where one is larger than a page of documentation should load."""
    small = True
    arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
    with sync_playwright() as player:
        browser = player.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        for name in SHOWN:
            with tempfile.TemporaryDirectory() as folder:
                unpack(RECORDED / f"{name}.tar.xz", Path(folder))
                path = next(Path(folder).rglob(TRUTH))
                read_model(path, Truth, "the truth of a recording", "docs/incidents.md")
                path.unlink()
                imported = import_paths([path.parent])
                html = Path(folder) / "report.html"
                write_report(html, diagnose(imported.capture), imported)
                shown = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
                shown.goto(html.as_uri())
                shown.wait_for_selector("html[data-ready]", state="attached")
                picture = FOLDER / f"{name.replace('/', '-')}.png"
                shown.screenshot(path=picture)
                shown.close()
            size = picture.stat().st_size
            print(f"{picture.relative_to(ROOT)}: {size / 1000:.0f} kB")
            small &= size <= PICTURE_BYTES_MAX
        browser.close()
    return small


def main(arguments: list[str] | None = None) -> int:
    """Write the page, or compare it; exit 1 where it differs or a picture is too large."""
    parser = argparse.ArgumentParser(prog="gallery", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--check", action="store_true", help="compare with what the program prints now")
    parser.add_argument("--pictures", action="store_true", help="draw the pages anew, too")
    options = parser.parse_args(arguments)
    if options.check:
        return int(PAGE.read_text(encoding="utf-8") != page())
    FOLDER.mkdir(parents=True, exist_ok=True)
    are_small = pictures() if options.pictures else True
    PAGE.write_text(page(), encoding="utf-8")
    return int(not are_small)


if __name__ == "__main__":
    sys.exit(main())
