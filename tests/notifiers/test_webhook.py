"""Webhooks: what a server is sent in each shape, and what never leaves: the path of a hook, a password."""

from __future__ import annotations

import base64
import json
import socket
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from leadline.core.contracts.notifier import NoticeState
from leadline.core.model.errors import ToolError
from leadline.notifiers import _connection, webhook
from tests.notifiers.receivers import HOST, PASSWORD, Certificate, a_notice, free_port, http_server


def settings(**keys: Any) -> webhook.WebhookSettings:
    return webhook.WebhookSettings.model_validate(keys)


def sent(notice: Any = None, **keys: Any) -> Any:
    """The JSON that a server was sent."""
    with http_server() as inbox:
        webhook.send(settings(url=f"http://{HOST}:{inbox.port}/hook", **keys), notice or a_notice())
    assert inbox.sent_headers[0]["Content-Type"] == "application/json"
    return json.loads(inbox.bodies[0])


def test_json_has_every_field_of_a_notice() -> None:
    assert sent(a_notice(NoticeState.CLOSED)) == {
        "version": 1,
        "incident": "2026-11-26-7",
        "state": "closed",
        "severity": "high",
        "entity": "db01/sdb",
        "cause": "disk-capped",
        "title": "Disk sdb is probably capped at 500 IOPS",
        "text": "Disk sdb answers 500 requests/s <and> no more.\n\n  Raise the limit.",
        "opened": "2026-05-28T20:26:40.123Z",
        "closed": "2026-05-28T20:36:40.123Z",
        "link": "https://watch.example/incidents/7?a=1&b=2",
        "capture": "/srv/leadline/incidents/7.parquet",
    }
    assert sent()["closed"] is None


def test_slack_gets_blocks_within_its_limits() -> None:
    message = sent(shape="slack")
    assert message["text"] == "HIGH: Disk sdb is probably capped at 500 IOPS"
    header, section, context = message["blocks"]
    assert header["text"] == {"type": "plain_text", "text": "HIGH: Disk sdb is probably capped at 500 IOPS"}
    assert "&lt;and&gt; no more." in section["text"]["text"]
    assert "<https://watch.example/incidents/7?a=1&amp;b=2|Open>" in context["elements"][0]["text"]
    long = sent(a_notice(text="```<!channel>\n" * 400, title="t" * 200), shape="slack")
    assert len(long["blocks"][0]["text"]["text"]) == 150
    text = long["blocks"][1]["text"]["text"]
    assert len(text) <= 3000
    assert text.count("```") == 2
    assert text.endswith("&lt;!channel&gt;\n...\n```")


def test_teams_gets_a_card_that_fits() -> None:
    message = sent(a_notice(text="\n".join(["x  y" + " z" * 38] * 200)), shape="teams")
    (attachment,) = message["attachments"]
    assert attachment["contentType"] == "application/vnd.microsoft.card.adaptive"
    card = attachment["content"]
    assert card["body"][0]["text"].startswith("HIGH: ")
    assert card["body"][1]["text"].startswith("x\u00a0\u00a0y")
    assert card["body"][webhook.TEAMS_LINES_MAX + 1]["text"] == "...\u00a0150\u00a0more\u00a0lines"
    assert card["actions"][0]["url"] == "https://watch.example/incidents/7?a=1&b=2"
    with http_server() as inbox:
        url = f"http://{HOST}:{inbox.port}/"
        webhook.send(settings(url=url, shape="teams"), a_notice(text="\n".join(["深" * 300] * 200)))
    assert len(inbox.bodies[0]) < 28_000
    assert "actions" not in sent(a_notice(link=""), shape="teams")["attachments"][0]["content"]


def test_a_template_makes_the_message(tmp_path: Path) -> None:
    path = tmp_path / "pager.json"
    path.write_text('{"summary": {{ title | tojson }}, "open": {{ (state != "closed") | tojson }}}')
    title = 'Disk "sdb" \\ <x>'
    assert sent(a_notice(title=title), template=path) == {"summary": title, "open": True}
    path.write_text("{{ severity | upper }} {{ entity }}")
    with http_server() as inbox:
        keys = {"template": path, "content_type": "text/plain", "headers": {"X-Priority": "1"}}
        webhook.send(settings(url=f"http://{HOST}:{inbox.port}/", **keys), a_notice())
    assert inbox.bodies == [b"HIGH db01/sdb"]
    assert inbox.sent_headers[0]["X-Priority"] == "1"
    assert inbox.sent_headers[0]["Content-Type"] == "text/plain"


@pytest.mark.parametrize(
    ("template", "message"),
    [
        ("{{ nothing }}", "fails"),
        ("{{ title", "fails"),
        ("{{ 1 // 0 }}", "fails"),
        ("{{ title + 1 }}", "fails"),
        ("{{ title.__class__.__mro__[1].__subclasses__() }}", "fails"),
        ("{% include '/etc/passwd' %}", "fails"),
        ('{"title": "{{ text }}"}', "no JSON"),
        ("x" * (webhook.TEMPLATE_BYTES_MAX + 1), "more than 256 KiB"),
        (None, "cannot be read"),
    ],
)
def test_a_template_that_fails_is_an_error_and_sends_nothing(
    template: str | None, message: str, tmp_path: Path
) -> None:
    path = tmp_path / "template.j2"
    if template is not None:
        path.write_text(template)
    with http_server() as inbox, pytest.raises(ToolError, match=message):
        webhook.send(settings(url=f"http://{HOST}:{inbox.port}/", template=path), a_notice())
    assert inbox.bodies == []


def test_passwords_are_sent_as_headers_only(password_file: Path, certificate: Certificate) -> None:
    with http_server(certificate) as inbox:
        keys = {"url": f"https://{HOST}:{inbox.port}/hook", "ca_file": certificate.path, "password_file": password_file}
        webhook.send(settings(**keys), a_notice())
        webhook.send(settings(**keys, user="me"), a_notice())
        webhook.send(settings(**keys, password_header="X-Api-Key"), a_notice())
    basic = base64.b64encode(f"me:{PASSWORD}".encode()).decode()
    first, second, third = inbox.sent_headers
    assert [one["Authorization"] for one in (first, second)] == [f"Bearer {PASSWORD}", f"Basic {basic}"]
    assert third["X-Api-Key"] == PASSWORD
    assert "Authorization" not in third
    assert PASSWORD.encode() not in b"".join(inbox.bodies)


def test_errors_name_neither_the_path_of_a_hook_nor_a_password(password_file: Path, tmp_path: Path) -> None:
    path = "/services/T012345/B067890/xyzzyplugh42?key=abracadabra"
    basic = base64.b64encode(f"me:{PASSWORD}".encode())
    with http_server(status=404, answer=f"Cannot POST {path} ".encode() + basic) as inbox:
        (tmp_path / "hook").write_text(f"http://{HOST}:{inbox.port}{path}\n")
        with pytest.raises(ToolError, match="status 404") as caught:
            webhook.send(settings(url_file=tmp_path / "hook", user="me", password_file=password_file), a_notice())
    assert inbox.paths == [path]
    text = f"{caught.value!r} {caught.value.to_dict()} {caught.value.__cause__!r}"
    assert f"http://{HOST}:{inbox.port}: status 404 (Cannot POST /" in text
    assert [
        word for word in ("T012345", "B067890", "xyzzyplugh42", "abracadabra", basic.decode()) if word in text
    ] == []


def test_a_redirection_is_not_followed(password_file: Path) -> None:
    with http_server() as elsewhere:
        there = {"Location": f"http://{HOST}:{elsewhere.port}/"}
        for status in (301, 302, 303, 307, 308):
            with http_server(status=status, headers=there) as inbox, pytest.raises(ToolError, match=f"status {status}"):
                webhook.send(settings(url=f"http://{HOST}:{inbox.port}/", password_file=password_file), a_notice())
    assert elsewhere.bodies == []


def test_a_server_that_is_down_silent_or_strange_is_an_error(
    monkeypatch: pytest.MonkeyPatch, certificate: Certificate
) -> None:
    with pytest.raises(ToolError, match="Connection refused"):
        webhook.send(settings(url=f"http://{HOST}:{free_port()}/"), a_notice())
    with http_server(certificate) as inbox, pytest.raises(ToolError, match=r"not trusted.*Name the authority"):
        webhook.send(settings(url=f"https://{HOST}:{inbox.port}/"), a_notice())
    monkeypatch.setattr(_connection, "TIMEOUT_S", 0.3)
    with socket.create_server((HOST, 0)) as silent, pytest.raises(ToolError, match=r"no answer within 0\.3 s"):
        webhook.send(settings(url=f"http://{HOST}:{silent.getsockname()[1]}/"), a_notice())


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({}, "url or url_file"),
        ({"url": "ftp://x/"}, "url is http"),
        ({"url": "https://me:hunter2@x/"}, "url is http"),
        ({"url": "https://x/\r\nX: y"}, "url is http"),
        ({"url": "https://x:99999/"}, "url is http"),
        ({"url": "https://x/", "shape": "slack", "template": "t"}, "either a template or a shape"),
        ({"url": "https://x/", "content_type": "text/plain"}, "only with a template"),
        ({"url": "https://x/", "headers": {"Authorization": "hunter2"}}, "headers other than"),
        ({"url": "https://x/", "headers": {"X": "a\nb"}}, "one line"),
        ({"url": "https://x/", "password_header": "X:", "password_env": "A"}, "password_header is the name"),
        ({"url": "https://x/", "password_header": "X", "user": "me", "password_env": "A"}, "has no user"),
    ],
)
def test_settings_that_make_no_sense_are_refused(keys: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        settings(**keys)
    assert "hunter2" not in str(caught.value)


def test_a_file_without_an_address_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "hook").write_text("swordfish-no-address\n")
    with pytest.raises(ToolError, match="no address in the first line") as caught:
        webhook.send(settings(url_file=tmp_path / "hook"), a_notice())
    assert "swordfish" not in str(caught.value)
