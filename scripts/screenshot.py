"""The picture of the report in the documentation: ``python -m scripts.screenshot`` (needs Debian's chromium).

Made of an example incident, so that it changes when the report does; look at it before committing it. The picture holds
the answer that it shows as its title, so that a test sees when the program answers otherwise.
"""

from __future__ import annotations

import struct
import sys
import tempfile
import zlib
from pathlib import Path

from playwright.sync_api import sync_playwright

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.faces.report import write_report
from leadline.faces.words.findings import Quotes
from leadline.faces.words.screen import screens

ROOT = Path(__file__).resolve().parent.parent
INCIDENT = ROOT / "examples" / "incidents" / "throttled-wal-disk"
PICTURE = ROOT / "docs" / "images" / "report.png"
SIZE_MAX = 300_000
WIDTH, HEIGHT = 1060, 1700
_HEAD_BYTES = 33  # signature and IHDR of a PNG
_TITLE = b"iTXtTitle\0\0\0\0\0"


def answer() -> str:
    """The first line of the page, as the program says it now."""
    capture = import_paths([INCIDENT]).capture
    diagnosis = diagnose(capture)
    return screens(diagnosis, Quotes(), capture.span_ns())[0].lead


def titled(png: bytes, title: str) -> bytes:
    """A PNG with a title (Source: PNG specification, iTXt)."""
    chunk = _TITLE + title.encode()
    size, checksum = struct.pack(">I", len(chunk) - 4), struct.pack(">I", zlib.crc32(chunk))
    return png[:_HEAD_BYTES] + size + chunk + checksum + png[_HEAD_BYTES:]


def title_of(png: bytes) -> str:
    """The title of a PNG that `titled` made; empty where it has none."""
    if png[_HEAD_BYTES + 4 :][: len(_TITLE)] != _TITLE:
        return ""
    (size,) = struct.unpack(">I", png[_HEAD_BYTES:][:4])
    return png[_HEAD_BYTES + 4 + len(_TITLE) : _HEAD_BYTES + 8 + size].decode()


def main() -> int:
    """Write the picture; exit 1 when it is larger than a page of documentation should load."""
    imported = import_paths([INCIDENT])
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as player:
        path = Path(folder) / "report.html"
        write_report(path, diagnose(imported.capture), imported)
        arguments = ["--no-sandbox", "--disable-background-networking", "--disable-component-update", "--disable-sync"]
        browser = player.chromium.launch(executable_path="/usr/bin/chromium", args=arguments)
        page = browser.new_page(viewport={"width": WIDTH, "height": HEIGHT}, color_scheme="light")
        page.goto(path.as_uri())
        page.wait_for_selector("html[data-ready]", state="attached")
        PICTURE.parent.mkdir(exist_ok=True)
        PICTURE.write_bytes(titled(page.screenshot(), answer()))
        browser.close()
    size = PICTURE.stat().st_size
    print(f"{PICTURE.relative_to(ROOT)}: {size / 1000:.0f} kB")
    return 1 if size > SIZE_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
