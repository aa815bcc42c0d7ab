"""E-mail over SMTP, encrypted, with the first screen of the answer.

Sends:
    One mail for each notice, as plain text and as HTML with the same words. The subject begins with the severity, or
    with what became of the incident. Mails of one incident are one thread: later ones refer to the first.

Settings:
    `host` and `port`, 587 by default. `tls`: `starttls`, the default; `tls` for a connection encrypted from the first
    byte (usually port 465); `none` for a relay on the same machine, and never with a password. `user` with
    `password_file`, `password_env` or `password_keyring`. `ca_file`: who signed the server's certificate. `sender`, and
    `recipients`, a list.

When it fails:
    The mail counts as taken when the server takes it for at least one recipient. One that it refuses is left out: the
    others would get the mail again with every further try. An untrusted certificate, a server without STARTTLS, a
    refused login, and no answer for 10 s are errors. A mail that is sent twice has the same Message-ID both times.

Sources:
    RFC 5321 (SMTP); RFC 3207 (STARTTLS); RFC 8314, section 3.3 (port 465).
    RFC 5322, section 3.6.4: Message-ID, In-Reply-To and References.
    RFC 3834, section 5: Auto-Submitted.
"""

from __future__ import annotations

import base64
import hashlib
import smtplib
import socket
from contextlib import suppress
from email.message import EmailMessage
from email.policy import SMTP as SMTP_POLICY
from email.utils import localtime
from html import escape
from pathlib import Path
from typing import Annotated, Literal, Self

from pydantic import Field, StringConstraints, model_validator

from leadline.core.contracts.notifier import Notice, NoticeState, NotifierMeta
from leadline.core.model.errors import ToolError
from leadline.core.system.secret import Secret, remember
from leadline.core.system.secret_sources import SecretSettings
from leadline.notifiers._connection import TIMEOUT_S, reason_of, tls_context, unreachable
from leadline.notifiers._wording import facts, head_line, web_link

META = NotifierMeta(receiver="a mail server")
MailAddress = Annotated[str, StringConstraints(pattern=r"^[!-?A-~]+@[!-;=?A-~]+$", max_length=254)]


class EmailSettings(SecretSettings):
    """What ``watch.yaml`` may say of a mail server."""

    host: str = Field(pattern=r"^[!-?A-~]+$")
    port: int = Field(587, ge=1, le=65535)
    tls: Literal["starttls", "tls", "none"] = "starttls"
    ca_file: Path | None = None
    user: str = ""
    sender: MailAddress
    recipients: tuple[MailAddress, ...] = Field(min_length=1)

    @model_validator(mode="after")
    def _sound(self) -> Self:
        problem = ""
        if bool(self.user) != self.has_password:
            problem = "user and the place of the password, both or neither"
        elif self.has_password and self.tls == "none":
            problem = "a password only with tls: starttls or tls"
        if problem:
            raise ValueError(problem)
        return self


Settings = EmailSettings


def send(settings: EmailSettings, notice: Notice) -> None:
    """Send a notice as one mail to all recipients.

    Raises:
        ToolError: the server cannot be reached or refuses; the password cannot be read.
    """
    where = f"mail server {settings.host}:{settings.port}"
    password = settings.password(f"password of {where}")
    mail = _mail(settings, notice)
    try:
        server = _connected(settings, where)
        try:
            if password:
                _log_in(server, settings.user, password)
            server.send_message(mail, settings.sender, list(settings.recipients))
        finally:
            with suppress(smtplib.SMTPException, OSError):
                server.quit()
            server.close()
    except smtplib.SMTPServerDisconnected as error:
        # What smtplib says of every broken connection; why it broke is the error before.
        raise unreachable(where, error.__context__ or error) from None
    except smtplib.SMTPException as error:
        raise _refused(where, error) from None
    except (OSError, ValueError) as error:
        raise unreachable(where, error) from None


def _connected(settings: EmailSettings, where: str) -> smtplib.SMTP:
    # Without a name of ours, smtplib asks the name server, which may take longer than all the rest.
    greeting = socket.gethostname() or "localhost"
    context = None if settings.tls == "none" else tls_context(settings.ca_file, where)
    if settings.tls == "tls":
        return smtplib.SMTP_SSL(settings.host, settings.port, greeting, timeout=TIMEOUT_S, context=context)
    server = smtplib.SMTP(settings.host, settings.port, greeting, timeout=TIMEOUT_S)
    if context is not None:
        try:
            server.starttls(context=context)
        except BaseException:
            server.close()
            raise
    return server


def _log_in(server: smtplib.SMTP, user: str, password: Secret) -> None:
    # The forms in which it goes over the line, and could come back in an answer.
    for form in (password.reveal(), f"\0{user}\0{password.reveal()}"):
        remember(base64.b64encode(form.encode()).decode())
    server.login(user, password.reveal())


def _refused(where: str, error: smtplib.SMTPException) -> ToolError:
    match error:
        case smtplib.SMTPAuthenticationError():
            words, advice = f"login refused ({_answer(error)})", "Check user and password."
        case smtplib.SMTPRecipientsRefused():
            answers = {f"{who}: {code} {_words(answer)}" for who, (code, answer) in error.recipients.items()}
            words, advice = f"no recipient taken ({'; '.join(sorted(answers))})", "Check recipients and sender."
        case smtplib.SMTPNotSupportedError():
            words, advice = f"not supported ({error})", "Check tls and the port; `tls: tls` is usually port 465."
        case smtplib.SMTPResponseException():
            words, advice = f"mail refused ({_answer(error)})", "See the server's log; the notice is tried again."
        case _:
            words, advice = reason_of(error), "Check host, port and tls; the notice is tried again."
    return ToolError(where, found=words[:400], expected="a server that takes the mail", advice=advice)


def _answer(error: smtplib.SMTPResponseException) -> str:
    return f"{error.smtp_code} {_words(error.smtp_error)}"


def _words(answer: bytes | str) -> str:
    text = answer if isinstance(answer, str) else answer.decode("utf-8", errors="replace")
    return " ".join(text.split())[:200]


def _mail(settings: EmailSettings, notice: Notice) -> EmailMessage:
    mail = EmailMessage(SMTP_POLICY)
    mail["Subject"] = f"[Leadline] {head_line(notice)}"
    mail["From"] = settings.sender
    mail["To"] = ", ".join(settings.recipients)
    mail["Date"] = localtime()
    mail["Auto-Submitted"] = "auto-generated"  # so that no absence assistant answers
    first, this = _message_ids(notice, settings.sender.rpartition("@")[2])
    mail["Message-ID"] = this
    if this != first:
        mail["In-Reply-To"] = first
        mail["References"] = first
    link = web_link(notice)
    lines = [notice.text.rstrip(), "", *(f"{word}: {value}" for word, value in facts(notice)), link]
    mail.set_content("\n".join(lines).rstrip() + "\n")
    mail.add_alternative(_html(notice, link), subtype="html")
    return mail


def _message_ids(notice: Notice, domain: str) -> tuple[str, str]:
    """The id of the incident's first mail, and of this one; the same again when a notice is sent again."""
    first = hashlib.sha256(notice.incident.encode()).hexdigest()[:32]
    if notice.state is NoticeState.OPENED:
        this = first
    else:
        words = (notice.state, notice.severity, notice.cause, notice.title, notice.text, notice.closed_ns)
        this = f"{first}.{hashlib.sha256(repr(words).encode()).hexdigest()[:16]}"
    return f"<{first}@leadline.{domain}>", f"<{this}@leadline.{domain}>"


def _html(notice: Notice, link: str) -> str:
    rows = "".join(
        f"<tr><td style='padding-right:1em'>{word}</td><td>{escape(value)}</td></tr>" for word, value in facts(notice)
    )
    anchor = f'<p><a href="{escape(link)}">Open the incident</a></p>' if link else ""
    return (
        f"<!doctype html><html lang='en'><body><h3>{escape(head_line(notice))}</h3>"
        f"<pre style='font-family:monospace'>{escape(notice.text.rstrip())}</pre><table>{rows}</table>{anchor}"
        "</body></html>\n"
    )
