"""Prometheus Alertmanager, which groups, silences and routes alerts of a whole site.

Sends:
    An alert by `POST /api/v2/alerts` with `startsAt` of the incident. Its labels are `alertname` (LeadlineIncident),
    `incident`, `severity` and those of the settings; title, text, entity and cause are annotations, since they may
    change while an incident lasts. When the severity changes, the alert of the severity before is ended by `endsAt`;
    a notice that the incident has closed ends all of them.

Settings:
    `url` of Alertmanager, without `/api`; of a cluster, each member is a receiver. `user` with `password_file`,
    `password_env` or `password_keyring`; without a user the password is a bearer token. `ca_file`. `labels`, by name.
    `expires_hours`: after so long an alert ends by itself, 24 by default, if nobody says that the incident has closed.

When it fails:
    A status of 200 to 299 counts as taken. No answer for 10 s, another status or an untrusted certificate is an error.

Sources:
    Alertmanager 0.27, api/v2/openapi.yaml, postableAlerts; api/v2/api.go: an alert without `endsAt` ends after
    `resolve_timeout`, and one that ended before it starts is refused.
    Alertmanager 0.27, notify/notify.go, DedupStage.needsUpdate: ended alerts that nobody was notified of send nothing.
    Prometheus documentation, "Data model": names of labels.
    Judgement: 24 hours is longer than an incident that nobody looks after, and ends one whose end was lost.
"""

from __future__ import annotations

import json
import re
import time
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

from pydantic import Field, model_validator

from leadline.core.contracts.notifier import Notice, NoticeState, NotifierMeta
from leadline.core.model.vocabulary import Severity
from leadline.core.system.secret_sources import SecretSettings
from leadline.notifiers._connection import authorization, post
from leadline.notifiers._wording import moment, one_line, web_link

META = NotifierMeta(receiver="Alertmanager", is_machine=True)
ALERT_NAME = "LeadlineIncident"
TEST_S = 300  # after which the alert of a test ends
_NS_PER_S = 1_000_000_000
_LABEL = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*")
_RESERVED = {"alertname", "incident", "severity"}


class AlertmanagerSettings(SecretSettings):
    """What ``watch.yaml`` may say of an Alertmanager."""

    url: str = Field(pattern=r"^https?://[!-?A-~]+$")
    user: str = ""
    ca_file: Path | None = None
    labels: dict[str, str] = Field(default_factory=dict)
    expires_hours: float = Field(24.0, gt=0.0, le=24.0 * 365)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        wrong = [name for name in self.labels if not _LABEL.fullmatch(name) or name in _RESERVED]
        if wrong:
            message = f"labels: {', '.join(wrong)} cannot be the name of one here"
            raise ValueError(message)
        if "?" in self.url or "#" in self.url or not urlsplit(self.url).hostname:
            message = "url is http://HOST:PORT, without user, password and query"
            raise ValueError(message)
        return self


Settings = AlertmanagerSettings


def send(settings: AlertmanagerSettings, notice: Notice) -> None:
    """Send a notice as the alerts that become of it.

    Raises:
        ToolError: Alertmanager cannot be reached, or refuses; the password cannot be read.
    """
    headers = {"User-Agent": "Leadline", "Content-Type": "application/json"}
    if word := authorization(settings.user, settings.password("password of Alertmanager")):
        headers["Authorization"] = word
    content = json.dumps(_alerts(settings, notice, time.time_ns())).encode()
    post(f"{settings.url.rstrip('/')}/api/v2/alerts", content, headers, settings.ca_file)


def _alerts(settings: AlertmanagerSettings, notice: Notice, now_ns: int) -> list[dict[str, Any]]:
    """The alert of the incident's severity, and ended ones of others that it may have had."""
    closed_ns = notice.closed_ns if notice.closed_ns is not None else now_ns
    if notice.state is NoticeState.CLOSED:
        return [_alert(settings, notice, severity, closed_ns) for severity in Severity]
    life_s = TEST_S if notice.state is NoticeState.TEST else settings.expires_hours * 3600.0
    open_alert = _alert(settings, notice, notice.severity, now_ns + int(life_s * _NS_PER_S))
    if notice.state not in (NoticeState.WORSENED, NoticeState.REOPENED):
        return [open_alert]
    others = [severity for severity in Severity if severity != notice.severity]
    return [open_alert, *(_alert(settings, notice, severity, now_ns) for severity in others)]


def _alert(settings: AlertmanagerSettings, notice: Notice, severity: Severity, end_ns: int) -> dict[str, Any]:
    labels = {"alertname": ALERT_NAME, "incident": notice.incident, "severity": severity.label}
    annotations = {
        "summary": one_line(notice.title),
        "description": notice.text,
        "entity": notice.entity,
        "cause": notice.cause,
        "state": notice.state.value,
        "capture": notice.capture,
        "link": notice.link,
    }
    return {
        "labels": {**settings.labels, **labels},
        "annotations": {name: text for name, text in annotations.items() if text},
        "startsAt": moment(notice.opened_ns),
        "endsAt": moment(max(end_ns, notice.opened_ns)),
        "generatorURL": web_link(notice),
    }
