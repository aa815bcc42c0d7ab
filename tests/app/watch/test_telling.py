"""Telling: notices reach real receivers once, whatever is down, killed or wrong in between."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from pydantic import BaseModel

from leadline.app.watch.telling import Receiver, SendingRound, Teller
from leadline.core.contracts.notifier import Notice
from leadline.core.model.errors import ToolError, UsageError
from leadline.notifiers.email import EmailSettings
from leadline.notifiers.run_command import RunCommandSettings
from leadline.notifiers.webhook import WebhookSettings
from leadline.stores.notices import NoticeQueue
from tests.notifiers.receivers import (
    HOST,
    PASSWORD,
    a_notice,
    free_port,
    http_server,
    mail_server,
    make_certificate,
)

S = 1_000_000_000


class Clock:
    """A clock that goes when it is told to."""

    def __init__(self) -> None:
        self.now_ns = 1_780_000_000 * S

    def __call__(self) -> int:
        return self.now_ns


def hook(port: int, name: str = "chat") -> Receiver:
    return Receiver(name, "webhook", WebhookSettings(url=f"http://{HOST}:{port}/"))


def taken(one: SendingRound) -> list[str]:
    return sorted(delivery.receiver for delivery in one.sent)


def test_a_receiver_that_is_down_gets_each_notice_once_when_it_is_back(tmp_path: Path) -> None:
    clock, port = Clock(), free_port()
    with http_server() as up:
        queue = NoticeQueue(tmp_path)
        teller = Teller(queue, [hook(port, "down"), hook(up.port, "up")], clock)
        for number in range(3):
            teller.tell(a_notice(incident=str(number)))
        first = teller.send_due()
        assert taken(first) == ["up"] * 3
        assert [failure.delivery.receiver for failure in first.failed] == ["down"], "one try, not three"
        assert "Connection refused" in first.failed[0].error
        assert teller.send_due() == SendingRound((), ())
        for seconds in (10, 60):
            clock.now_ns += seconds * S
            assert len(teller.send_due().failed) == 1
        with http_server(port=port) as back:
            clock.now_ns += 3600 * S
            assert taken(teller.send_due()) == ["down"] * 3
            clock.now_ns += 3600 * S
            assert teller.send_due() == SendingRound((), ())
            incidents = [json.loads(body)["incident"] for body in back.bodies]
        assert incidents == ["0", "1", "2"]
        assert len(up.bodies) == 3
    assert queue.states()["down"].waiting_count == 0


def test_all_kinds_of_receivers_are_told_and_no_password_is_anywhere(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCH_TEST_PW", PASSWORD)
    certificate, script = make_certificate(tmp_path), tmp_path / "page.sh"
    script.write_text(f"#!/bin/sh\nenv > {tmp_path}/environment\ncat /proc/[0-9]*/cmdline > {tmp_path}/words 2>&1\n")
    script.chmod(0o700)
    with mail_server(certificate) as box:
        mail = EmailSettings(
            host=HOST,
            port=box.port,
            ca_file=certificate.path,
            user="me",
            password_env="WATCH_TEST_PW",
            sender="a@example.org",
            recipients=("b@example.org",),
        )
        wrong = mail.model_copy(update={"user": "you", "password_env": "WATCH_WRONG_PW"})
        monkeypatch.setenv("WATCH_WRONG_PW", "brass-monkey-17")
        command = RunCommandSettings(command=(str(script),), keep_variables=("WATCH_TEST_PW",))
        receivers = [
            Receiver("command", "run-command", command),
            Receiver("mail", "email", mail),
            Receiver("wrong", "email", wrong),
        ]
        teller = Teller(NoticeQueue(tmp_path / "queue"), receivers, Clock())
        teller.tell(a_notice())
        one = teller.send_due()
    assert taken(one) == ["command", "mail"]
    assert len(box.mails) == 1
    assert "login refused" in one.failed[0].error
    places = [tmp_path / "environment", tmp_path / "words", *(tmp_path / "queue").iterdir()]
    text = b"".join(path.read_bytes() for path in places) + repr((one, receivers)).encode()
    assert str(script).encode() in text
    for secret in (PASSWORD, "brass-monkey-17"):
        assert secret.encode() not in text


def test_a_storm_is_one_message_more(tmp_path: Path) -> None:
    clock = Clock()
    with http_server() as person, http_server() as program:
        teller = Teller(
            NoticeQueue(tmp_path, {"a": 5, "b": None}), [hook(person.port, "a"), hook(program.port, "b")], clock
        )
        for number in range(16):
            teller.tell(a_notice(incident=str(number)))
        teller.send_due()
        titles = [json.loads(body)["title"] for body in person.bodies]
        teller.tell(a_notice(incident="16"))
        clock.now_ns += 3599 * S
        teller.send_due()
        assert len(person.bodies) == 5
        clock.now_ns += S
        teller.send_due()
    assert titles[4:] == ["12 further incidents"]
    assert [json.loads(body)["incident"] for body in person.bodies[5:]] == ["16"]
    assert len(program.bodies) == 17


def test_no_receiver_ends_a_round(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def defect(settings: BaseModel, notice: Notice) -> None:
        raise ZeroDivisionError(f"{settings}")

    monkeypatch.setattr("leadline.notifiers.webhook.send", defect)
    queue = NoticeQueue(tmp_path)
    Teller(queue, [hook(1, "gone")], Clock()).tell(a_notice())
    teller = Teller(queue, [hook(1)], Clock())
    teller.tell(a_notice())
    assert sorted(failure.error.split(" (")[0] for failure in teller.send_due().failed) == [
        "gone is no receiver any more",
        "webhook failed",
    ]


def test_what_was_taken_while_the_disk_was_full_is_not_sent_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    queue = NoticeQueue(tmp_path)
    keep: Callable[[int, int], None] = queue.sent

    def full(delivery: int, now_ns: int) -> None:
        raise ToolError("queue", found=f"full {delivery} {now_ns}", expected="room", advice="Make room.")

    with http_server() as inbox:
        teller = Teller(queue, [hook(inbox.port)], Clock())
        teller.tell(a_notice())
        monkeypatch.setattr(queue, "sent", full)
        for _ in range(3):
            with pytest.raises(ToolError, match="full"):
                teller.send_due()
        monkeypatch.setattr(queue, "sent", keep)
        assert taken(teller.send_due()) == ["chat"]
        assert teller.send_due() == SendingRound((), ())
        assert len(inbox.bodies) == 1


def test_receivers_that_cannot_be_are_refused(tmp_path: Path) -> None:
    queue = NoticeQueue(tmp_path)
    with pytest.raises(UsageError, match="two of one name"):
        Teller(queue, [hook(1), hook(2)], Clock())
    with pytest.raises(UsageError, match="no such unit"):
        Teller(queue, [Receiver("x", "pigeon", hook(1).settings)], Clock())
    with pytest.raises(UsageError, match="settings of another notifier"):
        Teller(queue, [Receiver("x", "email", hook(1).settings)], Clock())


CHILD = """
import itertools, sys, time
from pathlib import Path
from leadline.app.watch.telling import Receiver, Teller
from leadline.notifiers.webhook import WebhookSettings
from leadline.stores.notices import NoticeQueue
from tests.notifiers.receivers import a_notice
folder, port, name = sys.argv[1:]
queue = NoticeQueue(Path(folder), {"chat": None})
settings = WebhookSettings(url=f"http://127.0.0.1:{port}/")
teller = Teller(queue, [Receiver("chat", "webhook", settings)], time.time_ns)
for number in itertools.count():
    teller.tell(a_notice(incident=f"{name}-{number}"))
    print("put", f"{name}-{number}", flush=True)
    for delivery in teller.send_due().sent:
        print("sent", delivery.notice.incident, flush=True)
"""


def test_a_kill_between_put_and_sent_loses_nothing_and_repeats_nothing_acknowledged(tmp_path: Path) -> None:
    rng = random.Random(35)
    env = {**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)}
    put: set[str] = set()
    times_acknowledged: dict[str, int] = {}
    with http_server() as inbox:
        for round_number in range(4):
            words = [sys.executable, "-c", CHILD, str(tmp_path), str(inbox.port), str(round_number)]
            with subprocess.Popen(words, env=env, stdout=subprocess.PIPE, text=True) as child:
                assert child.stdout is not None
                lines = [child.stdout.readline()]
                time.sleep(rng.uniform(0.05, 0.4))
                child.kill()
                lines += child.stdout.readlines()
            whole = [line.split() for line in lines if line.endswith("\n")]
            put |= {incident for word, incident in whole if word == "put"}
            # One that a kill met before may have come twice by then.
            so_far = Counter(json.loads(body)["incident"] for body in inbox.bodies)
            times_acknowledged |= {incident: so_far[incident] for word, incident in whole if word == "sent"}
        Teller(NoticeQueue(tmp_path, {"chat": None}), [hook(inbox.port)], time.time_ns).send_due()
        times = Counter(json.loads(body)["incident"] for body in inbox.bodies)
    assert len(put) >= 4
    assert put <= set(times)
    assert {incident: times[incident] for incident in times_acknowledged} == times_acknowledged
    assert sum(times.values()) - len(times) <= 4, "a kill repeats at most the one notice it met"
    assert NoticeQueue(tmp_path).states()["chat"].waiting_count == 0
