"""Syslog: the bytes that servers of each transport get."""

from __future__ import annotations

import re
import socket
import struct
import threading
from pathlib import Path
from typing import Any

import pytest
from pydantic import ValidationError

from leadline.core.contracts.notifier import NoticeState
from leadline.core.model.errors import ToolError
from leadline.core.model.vocabulary import Severity
from leadline.core.system.sockets import socket_folder
from leadline.notifiers import _connection, syslog
from tests.notifiers.receivers import HOST, a_notice, free_port

# RFC 5424, section 6.
FORM = re.compile(
    r"<(?P<pri>\d+)>1 (?P<time>\S+) (?P<host>\S+) leadline (?P<process>\d+) (?P<id>\S+) "
    r"\[leadline@32473(?P<fields>(?: [a-z]+=\"(?:[^\"\\\]]|\\.)*\")*)\] \ufeff(?P<message>.*)",
    re.DOTALL,
)


def settings(**keys: Any) -> syslog.SyslogSettings:
    return syslog.SyslogSettings.model_validate(keys)


def parsed(message: bytes) -> dict[str, str]:
    match = FORM.fullmatch(message.decode())
    assert match is not None, message
    return match.groupdict()


def over_udp(notice: Any, **keys: Any) -> bytes:
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as server:
        server.bind((HOST, 0))
        server.settimeout(5)
        syslog.send(settings(transport="udp", host=HOST, port=server.getsockname()[1], **keys), notice)
        return server.recv(65536)


def test_a_datagram_is_a_message_of_rfc_5424() -> None:
    parts = parsed(over_udp(a_notice(title="Disk sdb\nis slow: ä"), facility="local3"))
    assert int(parts["pri"]) == 19 * 8 + 3
    assert parts["time"] == "2026-05-28T20:26:40.123Z"
    assert parts["id"] == "opened"
    assert parts["message"] == "HIGH: Disk sdb is slow: ä"
    assert ' cause="disk-capped"' in parts["fields"]
    closed = parsed(over_udp(a_notice(NoticeState.CLOSED, severity=Severity.CRITICAL)))
    assert (int(closed["pri"]), closed["time"]) == (3 * 8 + 5, "2026-05-28T20:36:40.123Z")


def test_what_would_end_a_field_is_escaped() -> None:
    parts = parsed(over_udp(a_notice(entity='a"b\\c]d\ne')))
    assert ' entity="a\\"b\\\\c\\]d e"' in parts["fields"]


def test_a_long_datagram_is_cut_between_characters() -> None:
    message = over_udp(a_notice(title="ä" * 3000))
    assert len(message) in (syslog.DATAGRAM_BYTES_MAX - 1, syslog.DATAGRAM_BYTES_MAX)
    assert message.decode().endswith("ä")


def _serve_once(server: socket.socket, received: list[bytes], *, is_rude: bool = False) -> threading.Thread:
    def take() -> None:
        connection, _ = server.accept()
        with connection:
            if is_rude:
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
                return
            while part := connection.recv(4096):
                received.append(part)

    thread = threading.Thread(target=take)
    thread.start()
    return thread


def test_a_stream_counts_its_octets() -> None:
    received: list[bytes] = []
    with socket.create_server((HOST, 0)) as server:
        thread = _serve_once(server, received)
        syslog.send(settings(transport="tcp", host=HOST, port=server.getsockname()[1]), a_notice(title="ä" * 3000))
        thread.join()
    count, _, message = b"".join(received).partition(b" ")
    assert int(count) == len(message)
    assert parsed(message)["message"].count("ä") == 3000


def test_a_server_that_breaks_off_or_is_down_has_not_taken_it(monkeypatch: pytest.MonkeyPatch) -> None:
    with socket.create_server((HOST, 0)) as server:
        thread = _serve_once(server, [], is_rude=True)
        with pytest.raises(ToolError, match=r"reset|[Bb]roken|not connected"):
            syslog.send(settings(transport="tcp", host=HOST, port=server.getsockname()[1]), a_notice())
        thread.join()
    with pytest.raises(ToolError, match="Connection refused"):
        syslog.send(settings(transport="tcp", host=HOST, port=free_port()), a_notice())
    assert _connection.TIMEOUT_S == 10.0
    monkeypatch.setattr(syslog, "END_S", 0.2)
    with socket.create_server((HOST, 0)) as server:  # takes it, and says nothing
        syslog.send(settings(transport="tcp", host=HOST, port=server.getsockname()[1]), a_notice())


@pytest.mark.parametrize("kind", [socket.SOCK_DGRAM, socket.SOCK_STREAM])
def test_the_socket_of_this_machine_gets_it(kind: socket.SocketKind) -> None:
    with socket_folder() as folder, socket.socket(socket.AF_UNIX, kind) as server:
        path = folder / "log"
        server.bind(str(path))
        received: list[bytes] = []
        if kind == socket.SOCK_STREAM:
            server.listen()
            thread = _serve_once(server, received)
            syslog.send(settings(path=path), a_notice())
            thread.join()
        else:
            syslog.send(settings(path=path), a_notice())
            received.append(server.recv(65536))
    message = b"".join(received)
    assert message.endswith(b"\0") == (kind == socket.SOCK_STREAM)
    assert parsed(message.rstrip(b"\0"))["message"].startswith("HIGH: ")


def test_no_socket_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ToolError, match="No such file"):
        syslog.send(settings(path=tmp_path / "log"), a_notice())


@pytest.mark.parametrize(
    "keys", [{"transport": "udp"}, {"host": "x"}, {"facility": "kern"}, {"transport": "tls", "host": "x"}]
)
def test_settings_that_make_no_sense_are_refused(keys: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        settings(**keys)
