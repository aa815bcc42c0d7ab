"""The picture of the report in the documentation: ``python -m scripts.screenshot`` (needs Debian's chromium).

Made of an example incident, so that it changes when the report does; look at it before committing it.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from playwright.sync_api import sync_playwright

from leadline.app.diagnose.diagnosing import diagnose
from leadline.app.read.importing import import_paths
from leadline.faces.report import write_report

ROOT = Path(__file__).resolve().parent.parent
INCIDENT = ROOT / "examples" / "incidents" / "throttled-wal-disk"
PICTURE = ROOT / "docs" / "images" / "report.png"
SIZE_MAX = 300_000
WIDTH, HEIGHT = 1060, 1700


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
        page.screenshot(path=PICTURE)
        browser.close()
    size = PICTURE.stat().st_size
    print(f"{PICTURE.relative_to(ROOT)}: {size / 1000:.0f} kB")
    return 1 if size > SIZE_MAX else 0


if __name__ == "__main__":
    sys.exit(main())
