"""Receivers that tests run: a mail server with TLS and login, an HTTP server, and what they were sent."""

from __future__ import annotations

import datetime
import ipaddress
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from email import message_from_bytes, policy
from email.message import EmailMessage
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from aiosmtpd.controller import Controller
from aiosmtpd.smtp import SMTP, AuthResult
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

from leadline.core.contracts.notifier import Notice, NoticeState
from leadline.core.model.vocabulary import Severity

PASSWORD = "kaleidoscope-77-zebra"
HOST = "127.0.0.1"
OPENED_NS = 1_780_000_000_123_000_000


def a_notice(state: NoticeState = NoticeState.OPENED, **changes: Any) -> Notice:
    fields: dict[str, Any] = {
        "incident": "2026-11-26-7",
        "state": state,
        "severity": Severity.HIGH,
        "entity": "db01/sdb",
        "cause": "disk-capped",
        "title": "Disk sdb is probably capped at 500 IOPS",
        "text": "Disk sdb answers 500 requests/s <and> no more.\n\n  Raise the limit.",
        "opened_ns": OPENED_NS,
        "link": "https://watch.example/incidents/7?a=1&b=2",
        "capture": "/srv/leadline/incidents/7.parquet",
    }
    if state is NoticeState.CLOSED:
        fields["closed_ns"] = OPENED_NS + 600_000_000_000
    return Notice(**{**fields, **changes})


@dataclass(frozen=True)
class Certificate:
    """A certificate for 127.0.0.1 that signs itself."""

    path: Path
    key: Path

    def server_context(self) -> ssl.SSLContext:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        context.load_cert_chain(self.path, self.key)
        return context


def make_certificate(folder: Path, address: str = HOST) -> Certificate:
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "leadline test")])
    now = datetime.datetime.now(datetime.UTC)
    certificate = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - datetime.timedelta(days=1))
        .not_valid_after(now + datetime.timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ipaddress.ip_address(address))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    own = Certificate(folder / "server.pem", folder / "server.key")
    own.path.write_bytes(certificate.public_bytes(serialization.Encoding.PEM))
    own.key.write_bytes(
        key.private_bytes(serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption())
    )
    return own


@dataclass
class MailBox:
    """What a mail server took: the mails, and who logged in."""

    port: int = 0
    mails: list[EmailMessage] = field(default_factory=list)
    recipients: list[list[str]] = field(default_factory=list)
    logins: list[tuple[bytes, bytes]] = field(default_factory=list)
    refused: frozenset[str] = frozenset()

    async def handle_RCPT(self, server: Any, session: Any, envelope: Any, address: str, options: Any) -> str:
        del server, session, options
        if address in self.refused:
            return "550 no such mailbox"
        envelope.rcpt_tos.append(address)
        return "250 OK"

    async def handle_DATA(self, server: Any, session: Any, envelope: Any) -> str:
        del server, session
        mail = message_from_bytes(envelope.content, policy=policy.default)
        assert isinstance(mail, EmailMessage)
        self.mails.append(mail)
        self.recipients.append(list(envelope.rcpt_tos))
        return "250 taken"

    def login(self, *words: Any) -> AuthResult:
        data = words[-1]
        self.logins.append((data.login, data.password))
        return AuthResult(success=data.password == PASSWORD.encode(), handled=False)


class _MailServer(Controller):
    """Listens on any free port."""

    def __init__(self, box: MailBox, certificate: Certificate | None, *, is_tls: bool, port: int) -> None:
        self.certificate, self.is_tls = certificate, is_tls
        context = certificate.server_context() if certificate and is_tls else None
        super().__init__(box, hostname=HOST, port=port, ssl_context=context, ready_timeout=10.0)

    def factory(self) -> SMTP:
        secured: dict[str, Any] = {}
        if self.certificate and not self.is_tls:
            secured = {"tls_context": self.certificate.server_context(), "require_starttls": True}
        if self.certificate:
            secured |= {
                "authenticator": self.handler.login,
                "auth_required": not self.is_tls,  # aiosmtpd warns where it knows of no STARTTLS
                "auth_require_tls": not self.is_tls,
            }
        return SMTP(self.handler, **secured)


@contextmanager
def mail_server(
    certificate: Certificate | None = None, *, is_tls: bool = False, port: int = 0, refused: tuple[str, ...] = ()
) -> Iterator[MailBox]:
    """A mail server that wants STARTTLS (or TLS at once) and a login where it has a certificate."""
    box = MailBox(port or free_port(), refused=frozenset(refused))
    server = _MailServer(box, certificate, is_tls=is_tls, port=box.port)
    server.start()
    try:
        yield box
    finally:
        server.stop()


def free_port() -> int:
    import socket

    with socket.socket() as one:
        one.bind((HOST, 0))
        return int(one.getsockname()[1])


@dataclass
class Inbox:
    """What an HTTP server was sent, and what it answers."""

    port: int = 0
    status: int = 200
    answer: bytes = b"ok"
    headers: dict[str, str] = field(default_factory=dict)
    paths: list[str] = field(default_factory=list)
    bodies: list[bytes] = field(default_factory=list)
    sent_headers: list[dict[str, str]] = field(default_factory=list)


@contextmanager
def http_server(certificate: Certificate | None = None, port: int = 0, **answer: Any) -> Iterator[Inbox]:
    """An HTTP or HTTPS server that takes POST."""
    inbox = Inbox(**answer)

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            inbox.paths.append(self.path)
            inbox.bodies.append(self.rfile.read(int(self.headers["Content-Length"])))
            inbox.sent_headers.append(dict(self.headers.items()))
            self.send_response(inbox.status)
            for name, value in inbox.headers.items():
                self.send_header(name, value)
            self.send_header("Content-Length", str(len(inbox.answer)))
            self.end_headers()
            self.wfile.write(inbox.answer)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer((HOST, port), Handler) as server:
        if certificate is not None:
            server.socket = certificate.server_context().wrap_socket(server.socket, server_side=True)
        inbox.port = server.server_address[1]
        thread = threading.Thread(target=server.serve_forever, args=(0.05,))
        thread.start()
        try:
            yield inbox
        finally:
            server.shutdown()
            thread.join()
