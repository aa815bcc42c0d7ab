"""A command: what it gets, what it never gets, and that it ends."""

from __future__ import annotations

import json
import os
import time
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from leadline.core.model.errors import ToolError
from leadline.notifiers import run_command
from tests.notifiers.receivers import PASSWORD, a_notice


def script(folder: Path, body: str) -> str:
    path = folder / "page.sh"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o700)
    return str(path)


def settings(*command: str, **keys: Any) -> run_command.RunCommandSettings:
    return run_command.RunCommandSettings.model_validate({"command": command, **keys})


def test_the_notice_is_on_standard_input(tmp_path: Path) -> None:
    command = script(tmp_path, f'cat > {tmp_path}/notice; printf "%s|" "$@" > {tmp_path}/words')
    run_command.send(settings(command, "a b", "$(id)"), a_notice(title="$(touch /tmp/never); `id`"))
    notice = json.loads((tmp_path / "notice").read_text())
    assert notice["title"] == "$(touch /tmp/never); `id`"
    assert notice["severity"] == "high"
    assert (tmp_path / "words").read_text() == "a b|$(id)|"


def test_no_secret_is_in_its_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("PGPASSWORD", "MAIL_PW", "AWS_SECRET_ACCESS_KEY"):
        monkeypatch.setenv(name, PASSWORD)
    monkeypatch.setenv("PAGER_REGION", "eu")
    command = script(tmp_path, f"env > {tmp_path}/environment")
    run_command.send(settings(command, keep_variables=["PAGER_REGION"]), a_notice())
    text = (tmp_path / "environment").read_text()
    assert PASSWORD not in text
    assert "PAGER_REGION=eu" in text
    assert f"PATH={os.environ['PATH']}" in text


def test_a_command_that_fails_is_an_error_with_its_complaint(tmp_path: Path) -> None:
    command = script(tmp_path, f"echo 'no route to pager, password={PASSWORD}' >&2; exit 3")
    with pytest.raises(ToolError, match=r"exit status 3 \(no route to pager") as caught:
        run_command.send(settings(command), a_notice())
    assert PASSWORD not in str(caught.value)
    with pytest.raises(ToolError, match="not installed"):
        run_command.send(settings("no-such-pager"), a_notice())
    (tmp_path / "text").write_text("no program")
    (tmp_path / "text").chmod(0o700)
    with pytest.raises(ToolError, match="cannot be started"):
        run_command.send(settings(str(tmp_path / "text")), a_notice())


def test_a_command_that_hangs_is_ended_with_its_children(tmp_path: Path) -> None:
    command = script(tmp_path, f"sleep 300 & echo $! > {tmp_path}/child; sleep 300")
    began = time.monotonic()
    with pytest.raises(ToolError, match=r"took longer than 0\.5 s"):
        run_command.send(settings(command, timeout_s=0.5), a_notice())
    assert time.monotonic() - began < 10
    child = Path(f"/proc/{(tmp_path / 'child').read_text().strip()}")
    deadline = time.monotonic() + 5
    while child.exists() and "\nState:\tZ" not in (child / "status").read_text():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_a_command_that_reads_nothing_and_writes_much_blocks_nobody(tmp_path: Path) -> None:
    command = script(tmp_path, "head -c 3000000 /dev/zero; head -c 3000000 /dev/zero >&2")
    run_command.send(settings(command), a_notice(text="x" * 300_000))


@pytest.mark.parametrize(
    "keys",
    [
        {"command": []},
        {"command": [""]},
        {"command": ["a\0b"]},
        {"command": ["a"], "keep_variables": ["PGPASSWORD"]},
        {"command": ["a"], "shell": True},
    ],
)
def test_settings_that_make_no_sense_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        run_command.RunCommandSettings.model_validate(keys)
