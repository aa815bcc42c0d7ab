"""Mail: what a real server takes, how mails of an incident hang together, and what is refused without a secret."""

from __future__ import annotations

import socket
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from leadline.core.contracts.notifier import NoticeState
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import Severity
from leadline.notifiers import _connection, email
from tests.notifiers.receivers import HOST, PASSWORD, Certificate, a_notice, free_port, mail_server, make_certificate


def settings(port: int, certificate: Certificate | None = None, **more: Any) -> email.EmailSettings:
    trusted = {"ca_file": certificate.path} if certificate else {"tls": "none"}
    people = {"sender": "leadline@watch.example", "recipients": ["dba@example.org", "ops@example.org"]}
    return email.EmailSettings.model_validate({"host": HOST, "port": port, **people, **trusted, **more})


def test_a_mail_arrives_by_starttls_with_login(certificate: Certificate, password_file: Path) -> None:
    with mail_server(certificate) as box:
        email.send(settings(box.port, certificate, user="me", password_file=password_file), a_notice())
    (mail,) = box.mails
    assert box.recipients == [["dba@example.org", "ops@example.org"]]
    assert box.logins == [(b"me", PASSWORD.encode())]
    assert mail["Subject"] == "[Leadline] HIGH: Disk sdb is probably capped at 500 IOPS"
    assert mail["Auto-Submitted"] == "auto-generated"
    text, html = (mail.get_body((kind,)) for kind in ("plain", "html"))
    assert text is not None
    assert html is not None
    lines = text.get_content().splitlines()
    assert lines[:4] == ["Disk sdb answers 500 requests/s <and> no more.", "", "  Raise the limit.", ""]
    assert "https://watch.example/incidents/7?a=1&b=2" in text.get_content()
    assert "requests/s &lt;and&gt; no more." in html.get_content()
    assert 'href="https://watch.example/incidents/7?a=1&amp;b=2"' in html.get_content()
    assert PASSWORD not in mail.as_string()


def test_a_mail_arrives_by_tls_from_the_first_byte(certificate: Certificate, password_file: Path) -> None:
    with mail_server(certificate, is_tls=True) as box:
        email.send(settings(box.port, certificate, tls="tls", user="me", password_file=password_file), a_notice())
    assert len(box.mails) == 1


def test_mails_of_one_incident_are_one_thread() -> None:
    notices = [
        a_notice(),
        a_notice(NoticeState.WORSENED, severity=Severity.CRITICAL),
        a_notice(NoticeState.CLOSED),
        a_notice(NoticeState.REOPENED),
        a_notice(incident="another"),
    ]
    with mail_server() as box:
        for notice in [*notices, notices[1]]:
            email.send(settings(box.port), notice)
    first, worse, closed, back, other, again = box.mails
    assert first["References"] is None
    assert [mail["In-Reply-To"] for mail in (worse, closed)] == [first["Message-ID"]] * 2
    assert [mail["References"] for mail in (worse, closed)] == [first["Message-ID"]] * 2
    assert len({mail["Message-ID"] for mail in (first, worse, closed, back, other)}) == 5
    assert again["Message-ID"] == worse["Message-ID"], "one that is sent twice can be told to be the same"
    assert worse["Subject"].startswith("[Leadline] Worse, CRITICAL: ")
    assert closed["Subject"].startswith("[Leadline] Closed: ")
    assert back["Subject"].startswith("[Leadline] Back, HIGH: ")


def test_a_title_adds_no_header() -> None:
    with mail_server() as box:
        email.send(
            settings(box.port), a_notice(title="Disk\r\nBcc: all@example.org\r\n\r\nx", link="javascript:alert(1)")
        )
    (mail,) = box.mails
    assert mail["Bcc"] is None
    assert mail["Subject"] == "[Leadline] HIGH: Disk Bcc: all@example.org x"
    assert "javascript" not in mail.as_string()


def test_a_recipient_that_is_refused_is_left_out() -> None:
    with mail_server(refused=("dba@example.org",)) as box:
        email.send(settings(box.port), a_notice())
        assert box.recipients == [["ops@example.org"]]
    with mail_server(refused=("dba@example.org", "ops@example.org")) as box:
        with pytest.raises(ToolError, match=r"no recipient taken .*550 no such mailbox"):
            email.send(settings(box.port), a_notice())
        assert box.mails == []


def test_a_wrong_password_is_refused_without_saying_it(certificate: Certificate, tmp_path: Path) -> None:
    (tmp_path / "wrong").write_text("wrong-password-9x\n")
    with mail_server(certificate) as box, pytest.raises(ToolError, match="login refused") as caught:
        email.send(settings(box.port, certificate, user="me", password_file=tmp_path / "wrong"), a_notice())
    assert "wrong-password" not in f"{caught.value!r} {caught.value.to_dict()}"
    assert box.mails == []


def test_no_password_goes_to_a_server_that_is_not_trusted(
    certificate: Certificate, password_file: Path, tmp_path: Path
) -> None:
    elsewhere = make_certificate(tmp_path)
    for is_tls, tls in ((False, "starttls"), (True, "tls")):
        with mail_server(certificate, is_tls=is_tls) as box, pytest.raises(ToolError, match="is not trusted"):
            email.send(settings(box.port, elsewhere, tls=tls, user="me", password_file=password_file), a_notice())
        assert box.logins == []
    misnamed = make_certificate(tmp_path, "127.0.0.2")
    with mail_server(misnamed) as box, pytest.raises(ToolError, match="is not trusted"):
        email.send(settings(box.port, misnamed, user="me", password_file=password_file), a_notice())
    assert box.logins == []


def test_a_server_without_starttls_gets_nothing(certificate: Certificate, password_file: Path) -> None:
    with mail_server() as box, pytest.raises(ToolError, match="STARTTLS"):
        email.send(settings(box.port, certificate, user="me", password_file=password_file), a_notice())
    assert box.mails == []


def test_a_server_that_is_down_or_silent_is_an_error_in_time(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ToolError, match="Connection refused"):
        email.send(settings(free_port()), a_notice())
    assert _connection.TIMEOUT_S == 10.0
    for module in (email, _connection):
        monkeypatch.setattr(module, "TIMEOUT_S", 0.3)
    with socket.create_server((HOST, 0)) as silent:
        with pytest.raises(ToolError, match=r"no answer within 0\.3 s"):
            email.send(settings(silent.getsockname()[1]), a_notice())

    def hang_up() -> None:
        silent.accept()[0].close()

    with socket.create_server((HOST, 0)) as silent:
        thread = threading.Thread(target=hang_up)
        thread.start()
        with pytest.raises(ToolError, match="mail server"):
            email.send(settings(silent.getsockname()[1]), a_notice())
        thread.join()


@pytest.mark.parametrize(
    ("more", "message"),
    [
        ({"password": PASSWORD}, "Extra inputs"),
        ({"user": "me"}, "user and the place of the password"),
        ({"user": "me", "password_env": "MAIL_PW"}, "a password only with tls"),
        ({"recipients": []}, "at least 1 item"),
        ({"recipients": ["a@b\r\nBcc: c@d"]}, "match pattern"),
        ({"password_env": "A", "password_file": "b"}, "not several"),
        ({"password_keyring": PASSWORD}, "SERVICE/USER"),
        ({"password_env": PASSWORD}, "not its content"),
    ],
)
def test_settings_that_make_no_sense_are_refused_without_a_secret(more: dict[str, Any], message: str) -> None:
    with pytest.raises(ValidationError, match=message) as caught:
        settings(25, **more)
    assert PASSWORD not in str(caught.value)


def test_authorities_that_cannot_be_read_are_named(certificate: Certificate) -> None:
    with mail_server(certificate) as box, pytest.raises(ToolError, match=r"ca_file .*missing\.pem cannot be used"):
        email.send(settings(box.port, ca_file="missing.pem", tls="starttls"), a_notice())
