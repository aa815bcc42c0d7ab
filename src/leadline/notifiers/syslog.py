"""Syslog in the form of RFC 5424, over UDP, TCP or the socket of this machine.

Sends:
    One message for each notice: state, severity and title on one line, and every field but the text as structured data
    under `leadline@32473`. A screen of text is no line of a log; `capture` and `link` lead to it.

Settings:
    `transport`: `unix`, the default, with `path` (/dev/log); `udp` or `tcp`, with `host` and `port` (514).
    `facility`: `daemon` by default, or `user`, `local0` to `local7`.

When it fails:
    No connection, or no answer for 10 s, is an error. No form of syslog acknowledges: over UDP nobody knows whether a
    message arrived; over TCP a message counts as taken when the server has not broken the connection within 2 s of its
    end. Over UDP and the socket a message is cut at 2048 bytes. Nothing is encrypted.

Sources:
    RFC 5424, sections 6 and 6.3.3 (escapes), and 7.2.2 for the enterprise number 32473 of examples (RFC 5612).
    RFC 5426, section 3.2: a receiver should take 2048 bytes. RFC 6587, section 3.4.1: octet counting over TCP.
    unix(7): a socket of datagrams, or a stream.
"""

from __future__ import annotations

import errno
import os
import socket
from contextlib import suppress
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, model_validator

from leadline.core.contracts.notifier import Notice, NoticeState, NotifierMeta
from leadline.core.model.vocabulary import Severity
from leadline.notifiers._connection import TIMEOUT_S, unreachable
from leadline.notifiers._wording import head_line, moment, plain

META = NotifierMeta(receiver="syslog", is_machine=True)
DATAGRAM_BYTES_MAX = 2048
END_S = 2.0
BOM = b"\xef\xbb\xbf"
FACILITIES = {"user": 1, "daemon": 3, **{f"local{number}": 16 + number for number in range(8)}}
# Source: RFC 5424, table 2: critical 2, error 3, warning 4, notice 5, informational 6.
_LEVELS = {Severity.CRITICAL: 2, Severity.HIGH: 3, Severity.MEDIUM: 4, Severity.LOW: 5, Severity.INFO: 6}
_LEVEL_CLOSED = 5


class SyslogSettings(BaseModel):
    """What ``watch.yaml`` may say of a syslog server."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    transport: Literal["unix", "udp", "tcp"] = "unix"
    path: Path = Path("/dev/log")
    host: str = ""
    port: int = Field(514, ge=1, le=65535)
    facility: str = "daemon"

    @model_validator(mode="after")
    def _sound(self) -> Self:
        problem = ""
        if (self.transport == "unix") == bool(self.host):
            problem = "host with udp and tcp, and without unix"
        elif self.facility not in FACILITIES:
            problem = f"facility is one of {', '.join(FACILITIES)}"
        if problem:
            raise ValueError(problem)
        return self


Settings = SyslogSettings


def send(settings: SyslogSettings, notice: Notice) -> None:
    """Send a notice as one message.

    Raises:
        ToolError: there is no such server or socket, or it breaks the connection.
    """
    message = _message(settings, notice)
    where = str(settings.path) if settings.transport == "unix" else f"syslog {settings.host}:{settings.port}"
    try:
        match settings.transport:
            case "unix":
                _send_unix(str(settings.path), _cut(message))
            case "udp":
                _send_udp(settings.host, settings.port, _cut(message))
            case "tcp":
                with socket.create_connection((settings.host, settings.port), TIMEOUT_S) as connection:
                    _send_stream(connection, b"%d %b" % (len(message), message))
    except (OSError, ValueError) as error:
        raise unreachable(where, error) from None


def _send_udp(host: str, port: int, message: bytes) -> None:
    family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_DGRAM)[0]
    with socket.socket(family, kind, protocol) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(address)
        connection.send(message)


def _send_unix(path: str, message: bytes) -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as connection:
        connection.settimeout(TIMEOUT_S)
        try:
            connection.connect(path)
        except OSError as error:
            if error.errno != errno.EPROTOTYPE:
                raise
        else:
            connection.send(message)
            return
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as connection:
        connection.settimeout(TIMEOUT_S)
        connection.connect(path)
        _send_stream(connection, message + b"\0")  # what syslog(3) of the C library ends a message of a stream by


def _send_stream(connection: socket.socket, message: bytes) -> None:
    """Send all and say that it was all; a server that breaks off now has not taken it."""
    connection.sendall(message)
    connection.shutdown(socket.SHUT_WR)
    connection.settimeout(END_S)
    with suppress(TimeoutError):
        connection.recv(1)


def _message(settings: SyslogSettings, notice: Notice) -> bytes:
    level = _LEVEL_CLOSED if notice.state is NoticeState.CLOSED else _LEVELS[notice.severity]
    fields = {
        name: value for name, value in plain(notice).items() if value and name not in ("text", "title", "version")
    }
    pairs = "".join(f' {name}="{_escaped(str(value))}"' for name, value in fields.items())
    time_ns = notice.opened_ns if notice.closed_ns is None else notice.closed_ns
    header = (
        f"<{FACILITIES[settings.facility] * 8 + level}>1 {moment(time_ns)} {_host_name()} leadline {os.getpid()} "
        f"{notice.state.value} [leadline@32473{pairs}] "
    )
    return header.encode() + BOM + head_line(notice).encode()


def _host_name() -> str:
    name = "".join(letter for letter in socket.gethostname() if "!" <= letter <= "~")
    return name[:255] or "-"


def _escaped(text: str) -> str:
    for letter in ("\\", '"', "]"):
        text = text.replace(letter, f"\\{letter}")
    return " ".join(text.split())


def _cut(message: bytes) -> bytes:
    """A message of at most 2048 bytes that ends between two characters."""
    if len(message) <= DATAGRAM_BYTES_MAX:
        return message
    return message[:DATAGRAM_BYTES_MAX].decode("utf-8", errors="ignore").encode()
