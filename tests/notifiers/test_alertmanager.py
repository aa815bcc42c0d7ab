"""Alertmanager: the alerts it is sent, and that a real one opens and ends them."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from leadline.core.contracts.notifier import NoticeState
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import Severity
from leadline.notifiers import alertmanager
from tests.conftest import ROOT
from tests.notifiers.receivers import HOST, PASSWORD, a_notice, free_port, http_server

PROGRAM = shutil.which("alertmanager", path=os.pathsep.join([str(ROOT / ".tools" / "bin"), os.environ["PATH"]]))


def settings(**keys: Any) -> alertmanager.AlertmanagerSettings:
    return alertmanager.AlertmanagerSettings.model_validate(keys)


def test_an_alert_has_labels_that_last_and_ends_by_itself(password_file: Path) -> None:
    before = time.time()
    with http_server() as inbox:
        keys = {"url": f"http://{HOST}:{inbox.port}/am/", "labels": {"site": "eu"}, "expires_hours": 2}
        alertmanager.send(settings(**keys, password_file=password_file), a_notice())
    assert inbox.paths == ["/am/api/v2/alerts"]
    assert inbox.sent_headers[0]["Authorization"] == f"Bearer {PASSWORD}"
    (alert,) = json.loads(inbox.bodies[0])
    assert alert["labels"] == {
        "alertname": "LeadlineIncident",
        "incident": "2026-11-26-7",
        "severity": "high",
        "site": "eu",
    }
    assert alert["annotations"]["cause"] == "disk-capped"
    assert alert["startsAt"] == "2026-05-28T20:26:40.123Z"
    assert before + 7100 < _seconds(alert["endsAt"]) < time.time() + 7300


def test_a_close_ends_the_alert_of_every_severity() -> None:
    with http_server() as inbox:
        alertmanager.send(settings(url=f"http://{HOST}:{inbox.port}"), a_notice(NoticeState.CLOSED))
    alerts = json.loads(inbox.bodies[0])
    assert {alert["labels"]["severity"] for alert in alerts} == {severity.label for severity in Severity}
    assert {alert["endsAt"] for alert in alerts} == {"2026-05-28T20:36:40.123Z"}


def test_a_refusal_is_an_error() -> None:
    with http_server(status=400, answer=b'"start time must be before end time"') as inbox:
        with pytest.raises(ToolError, match=r"status 400 .*start time must be before end time"):
            alertmanager.send(settings(url=f"http://{HOST}:{inbox.port}"), a_notice())


@pytest.mark.parametrize(
    "keys",
    [
        {"url": "am:9093"},
        {"url": "http://me:x@am"},
        {"url": "http://am?x"},
        {"url": "http://am", "labels": {"a-b": "c"}},
        {"url": "http://am", "labels": {"severity": "c"}},
        {"url": "http://am", "expires_hours": 0},
    ],
)
def test_settings_that_make_no_sense_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(**keys)


@pytest.fixture
def real_url(tmp_path: Path) -> Iterator[str]:
    if PROGRAM is None:
        pytest.skip("alertmanager is not built (scripts/setup.sh does, where Go is)")
    (tmp_path / "alertmanager.yml").write_text("route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
    url = f"http://{HOST}:{free_port()}"
    words = [PROGRAM, "--config.file=alertmanager.yml", "--storage.path=data", "--cluster.listen-address="]
    with (tmp_path / "log").open("wb") as log:
        server = subprocess.Popen(
            [*words, f"--web.listen-address={url.removeprefix('http://')}"], cwd=tmp_path, stdout=log, stderr=log
        )
    try:
        deadline = time.monotonic() + 20
        while True:
            try:
                asked(f"{url}/api/v2/status")
                break
            except OSError:
                assert time.monotonic() < deadline, (tmp_path / "log").read_text()
                time.sleep(0.05)
        yield url
    finally:
        server.kill()
        server.wait()


@pytest.mark.real
def test_a_real_alertmanager_opens_changes_and_ends_an_incident(real_url: str) -> None:
    def severities() -> list[str]:
        return sorted(alert["labels"]["severity"] for alert in asked(f"{real_url}/api/v2/alerts"))

    assert severities() == []
    alertmanager.send(settings(url=real_url), a_notice())
    assert severities() == ["high"]
    worse = a_notice(NoticeState.WORSENED, severity=Severity.CRITICAL, cause="disk-full", entity="db01/sdc")
    alertmanager.send(settings(url=real_url), worse)
    assert severities() == ["critical"]
    (alert,) = asked(f"{real_url}/api/v2/alerts")
    assert alert["annotations"]["cause"] == "disk-full"
    assert alert["generatorURL"] == "https://watch.example/incidents/7?a=1&b=2"
    alertmanager.send(settings(url=real_url), a_notice(NoticeState.CLOSED, severity=Severity.CRITICAL))
    assert severities() == []
    alertmanager.send(settings(url=real_url), a_notice(NoticeState.TEST, incident="test", severity=Severity.INFO))
    assert severities() == ["info"]


def asked(url: str) -> Any:
    with urllib.request.urlopen(url, timeout=5) as answer:
        return json.load(answer)


def _seconds(text: str) -> float:
    from datetime import datetime

    return datetime.fromisoformat(text).timestamp()
