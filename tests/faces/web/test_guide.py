"""The guide of a watch, its unit of systemd and its container file say what there is; the first picture comes soon."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from urllib.error import URLError

import pytest
import yaml
from pydantic import BaseModel

from leadline.app.watch.settings import (
    PageSettings,
    ReceiverSettings,
    SourceSettings,
    StoreSettings,
    WatchSettings,
    read_settings,
)
from leadline.core.contracts.discovery import unit_modules
from tests.faces.web.conftest import get

GUIDE = Path("docs/guides/watch.md")
EXAMPLES = Path("examples/watch")
LEADLINE = [sys.executable, "-c", "from leadline.faces.cli.main import run; run()"]
SOON_S = 60.0


def blocks() -> list[str]:
    return re.findall(r"```yaml\n(.*?)```", GUIDE.read_text(encoding="utf-8"), re.DOTALL)


def test_the_settings_of_the_guide_are_read_and_have_every_key(tmp_path: Path) -> None:
    path = tmp_path / "watch.yaml"
    path.write_text(blocks()[0], encoding="utf-8")
    settings = read_settings(path)
    text = blocks()[0]
    models: tuple[type[BaseModel], ...] = (
        SourceSettings,
        StoreSettings,
        ReceiverSettings,
        PageSettings,
        WatchSettings,
    )
    missing = [f"{model.__name__}.{name}" for model in models for name in model.model_fields if f"{name}:" not in text]
    assert missing == []
    defaults = StoreSettings()
    assert settings.store.model_copy(update={"folder": None}) == defaults
    assert (settings.window_minutes, settings.judge_every_s, settings.read_every_s) == (20.0, 10.0, 5.0)
    assert settings.page == PageSettings()


def test_the_page_of_the_guide_may_listen_elsewhere() -> None:
    page = yaml.safe_load(blocks()[1])["page"]
    assert PageSettings.model_validate(page).host_port() == ("0.0.0.0", 7177)


def test_the_guide_names_every_notifier() -> None:
    text = GUIDE.read_text(encoding="utf-8")
    assert [name for name in unit_modules("notifier") if f"| `{name}` |" not in text] == []


def test_the_service_runs_the_verb_and_may_write_to_its_folder_alone() -> None:
    unit = (EXAMPLES / "leadline-watch.service").read_text(encoding="utf-8")
    keys = dict(line.split("=", 1) for line in unit.splitlines() if "=" in line and not line.startswith("#"))
    assert keys["ExecStart"].endswith("leadline watch run --settings /etc/leadline/watch.yaml")
    assert keys["ProtectSystem"] == "strict"
    assert keys["StateDirectory"] == "leadline"
    assert "ReadWritePaths" not in keys


def test_the_container_runs_as_nobody_of_importance() -> None:
    lines = (EXAMPLES / "Containerfile").read_text(encoding="utf-8").splitlines()
    assert [line for line in lines if line.startswith("USER")][-1] == "USER 10001:10001"
    assert 'ENTRYPOINT ["leadline", "watch"]' in lines


@pytest.mark.skipif(not Path("/proc/stat").exists(), reason="this machine is no Linux")
def test_from_nothing_to_the_first_picture(tmp_path: Path) -> None:
    """A new user types two commands and opens the address that is printed."""
    environment = {**os.environ, "HOME": str(tmp_path), "LEADLINE_HOME": str(tmp_path / "home")}
    environment["PYTHONPATH"] = str(Path("src").absolute())
    began = time.monotonic()
    init = [*LEADLINE, "watch", "init", "--yes"]
    subprocess.run(init, cwd=tmp_path, env=environment, check=True, capture_output=True, timeout=SOON_S)
    text = (tmp_path / "watch.yaml").read_text(encoding="utf-8")
    (tmp_path / "watch.yaml").write_text(f"{text}\npage: {{listen: '127.0.0.1:0'}}\n", encoding="utf-8")
    watch = [*LEADLINE, "watch", "run", "--seconds", "60"]
    with subprocess.Popen(watch, cwd=tmp_path, env=environment, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            address = next(line for line in process.stderr if line.startswith("page:")).split()[1]
            shown = ""
            while "Judged at" not in shown and time.monotonic() - began < SOON_S:
                try:
                    shown = get(address)
                except URLError:
                    shown = ""
                time.sleep(0.2)
        finally:
            process.terminate()
            process.communicate(timeout=30)
    assert "Judged at" in shown
    assert "1 guest" in shown
