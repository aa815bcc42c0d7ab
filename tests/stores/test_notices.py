"""The queue of notices: what is due when, in which order, how often, and what a kill leaves."""

from __future__ import annotations

import sqlite3
import stat
from pathlib import Path

import pytest

from leadline.core.contracts.notifier import Notice, NoticeState
from leadline.core.model.errors import InputError, ToolError
from leadline.core.model.vocabulary import Severity
from leadline.core.system.secret import Secret
from leadline.stores.notices import HOUR_NS, HOURLY_MAX, ROUND_MAX, Delivery, NoticeQueue, ReceiverState

S = 1_000_000_000
DAY = 24 * HOUR_NS
NOW = 1_780_000_000 * S


def notice(
    incident: str, state: NoticeState = NoticeState.OPENED, severity: Severity = Severity.HIGH, text: str = "text"
) -> Notice:
    return Notice(incident, state, severity, f"db/{incident}", "disk-capped", f"Title {incident}", text, NOW)


def incidents(deliveries: tuple[Delivery, ...]) -> list[str]:
    return [delivery.notice.incident for delivery in deliveries]


@pytest.fixture
def queue(tmp_path: Path) -> NoticeQueue:
    return NoticeQueue(tmp_path / "watch")


def test_a_notice_is_due_until_each_receiver_has_taken_it(queue: NoticeQueue) -> None:
    wanted = notice("1", NoticeState.CLOSED)
    assert len(queue.put(wanted, ["mail", "chat"])) == 2
    again = NoticeQueue(queue.folder)
    due = again.due(NOW)
    assert [(delivery.receiver, delivery.notice, delivery.tries) for delivery in due] == [
        ("mail", wanted, 0),
        ("chat", wanted, 0),
    ]
    again.sent(due[0].id, NOW)
    again.sent(due[0].id, NOW)
    assert [delivery.receiver for delivery in queue.due(NOW)] == ["chat"]
    assert queue.states() == {"chat": ReceiverState(1, 0, 0, ""), "mail": ReceiverState(0, 1, 0, "")}


def test_what_fails_is_tried_again_ever_later_and_given_up_after_a_day(queue: NoticeQueue) -> None:
    (number,) = queue.put(notice("1"), ["mail"])
    now, waits = NOW, []
    while queue.states()["mail"].waiting_count:
        queue.failed(number, "no  answer\nfrom it", now)
        wait = 1
        while queue.states()["mail"].waiting_count and not queue.due(now + wait * S):
            wait = next(step for step in (10, 60, 300, 900, 3600) if step > wait)
        waits.append(wait)
        now += wait * S
    assert waits[:6] == [10, 60, 300, 900, 3600, 3600]
    assert DAY <= now - NOW <= DAY + 2 * HOUR_NS
    assert queue.states()["mail"] == ReceiverState(0, 0, 1, "no answer from it")
    assert queue.due(now + DAY) == ()


def test_a_receiver_that_is_back_gets_everything_in_order(queue: NoticeQueue) -> None:
    for number in range(3):
        queue.put(notice(str(number)), ["mail"])
    first = queue.due(NOW)[0]
    queue.failed(first.id, "down", NOW)
    assert queue.due(NOW + 9 * S) == ()
    later = queue.due(NOW + 10 * S)
    assert incidents(later) == ["0", "1", "2"]
    for delivery in later:
        queue.sent(delivery.id, NOW + 11 * S)
    assert queue.states()["mail"] == ReceiverState(0, 3, 0, "")


def test_one_notice_that_is_refused_does_not_keep_back_others(queue: NoticeQueue) -> None:
    queue.put(notice("bad"), ["mail"])
    queue.put(notice("good"), ["mail"])
    now = NOW
    for _ in range(3):
        bad = queue.due(now)[0]
        assert bad.notice.incident == "bad"
        queue.failed(bad.id, "refused", now)
        now += 301 * S
    queue.failed(queue.due(now)[0].id, "refused", now)
    now += 60 * S
    assert incidents(queue.due(now)) == ["good"]


def test_notices_of_one_incident_keep_their_order(queue: NoticeQueue) -> None:
    opened = queue.put(notice("1"), ["mail"])[0]
    for _ in range(3):
        queue.failed(opened, "refused", NOW)
    queue.put(notice("1", NoticeState.CLOSED), ["mail"])
    queue.put(notice("2"), ["mail"])
    assert incidents(queue.due(NOW + 61 * S)) == ["2"]
    due = queue.due(NOW + 301 * S)
    assert [delivery.notice.state for delivery in due if delivery.notice.incident == "1"] == ["opened", "closed"]


def test_what_is_over_the_limit_becomes_one_notice(queue: NoticeQueue) -> None:
    for number in range(HOURLY_MAX + 11):
        severity = Severity.CRITICAL if number == 25 else Severity.LOW
        queue.put(notice(str(number), severity=severity), ["mail"])
    queue.put(notice("30", NoticeState.CLOSED), ["mail"])
    due = queue.due(NOW)
    assert incidents(due)[:-1] == [str(number) for number in range(HOURLY_MAX - 1)]
    summary = due[-1].notice
    assert summary.title == "12 further incidents"
    assert summary.severity is Severity.CRITICAL
    assert summary.text.splitlines()[1] == "critical opened   Title 25"
    assert summary.text.splitlines()[-1] == "high     closed   Title 30", "what is over comes last"
    assert max(map(len, summary.text.splitlines())) <= 80
    for delivery in due:
        queue.sent(delivery.id, NOW)
    assert queue.due(NOW + HOUR_NS - 1) == ()
    queue.put(notice("x"), ["mail"])
    queue.put(notice("y"), ["mail"])
    assert queue.due(NOW + HOUR_NS - 1) == ()
    assert incidents(queue.due(NOW + HOUR_NS)) == ["x", "y"]


def test_a_summary_that_waits_takes_in_what_comes_after_it(tmp_path: Path) -> None:
    queue = NoticeQueue(tmp_path, {"mail": 1, "pipe": None})
    for number in range(3):
        queue.put(notice(str(number)), ["mail", "pipe"])
    mail, *pipe = sorted(queue.due(NOW), key=lambda delivery: delivery.receiver)
    assert mail.notice.title == "3 further incidents"
    assert incidents(tuple(pipe)) == ["0", "1", "2"], "one without a limit gets all"
    assert incidents(queue.due(NOW)).count(mail.notice.incident) == 1, "asked again, it is the same"
    queue.put(notice("3"), ["mail"])
    queue.put(notice("0", NoticeState.CLOSED), ["mail"])
    (mail,) = (delivery for delivery in queue.due(NOW) if delivery.receiver == "mail")
    assert mail.notice.title == "4 further incidents"
    assert "closed   Title 0" in mail.notice.text
    queue.sent(mail.id, NOW)
    assert queue.states()["mail"] == ReceiverState(0, 1, 0, "")


def test_a_receiver_that_was_down_long_gets_its_notices_in_rounds(tmp_path: Path) -> None:
    queue = NoticeQueue(tmp_path, {"pipe": None})
    for number in range(ROUND_MAX + 1):
        queue.put(notice(str(number)), ["pipe"])
    due = queue.due(NOW)
    assert incidents(due) == [str(number) for number in range(ROUND_MAX)]
    for delivery in due[:2]:
        queue.sent(delivery.id, NOW)
    assert incidents(queue.due(NOW))[-1] == str(ROUND_MAX)


def test_a_clock_that_jumps_neither_stops_nor_gives_up(queue: NoticeQueue) -> None:
    (number,) = queue.put(notice("1"), ["mail"])
    queue.failed(number, "down", NOW)
    assert incidents(queue.due(NOW - 30 * DAY)) == ["1"]
    queue.failed(number, "down", NOW + 30 * DAY)
    assert incidents(queue.due(NOW + 30 * DAY + 61 * S)) == ["1"]


def test_no_secret_is_stored(queue: NoticeQueue) -> None:
    Secret("kaleidoscope-99-quagga")
    (number,) = queue.put(notice("1", text="login with kaleidoscope-99-quagga fails"), ["mail"])
    queue.failed(number, "535 kaleidoscope-99-quagga is wrong", NOW)
    assert queue.due(NOW + 10 * S)[0].notice.text == "login with *** fails"
    assert queue.states()["mail"].error == "535 *** is wrong"
    files = list(queue.folder.iterdir())
    assert [path for path in files if b"quagga" in path.read_bytes()] == []
    assert {stat.S_IMODE(path.stat().st_mode) for path in files} == {0o600}
    assert stat.S_IMODE(queue.folder.stat().st_mode) == 0o700


def test_what_cannot_be_sent_as_utf_8_is_replaced(queue: NoticeQueue) -> None:
    queue.put(notice("1\udce4", text="disk \udce4 ä \0"), ["mail"])
    (delivery,) = queue.due(NOW)
    assert delivery.notice.incident == "1?"
    assert delivery.notice.text == "disk ? ä \0"
    assert queue.put(notice("2"), []) == ()


def test_what_is_over_is_forgotten_and_counted(queue: NoticeQueue) -> None:
    for number in range(4):
        now = NOW + number * 4 * DAY
        queue.sent(queue.put(notice(str(number)), ["mail"])[0], now)
    with sqlite3.connect(queue.folder / "notices.sqlite") as base:
        kept = [base.execute(f"select count(*) from {table}").fetchone()[0] for table in ("delivery", "notice")]
    base.close()
    assert kept == [2, 2]
    assert queue.states()["mail"].sent_count == 4


def test_a_folder_or_file_that_cannot_be_used_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    with pytest.raises(ToolError, match="cannot be used"):
        NoticeQueue(tmp_path / "file" / "watch").put(notice("1"), ["mail"])
    (tmp_path / "notices.sqlite").write_bytes(b"no database at all" * 100)
    with pytest.raises(InputError, match="damaged"):
        NoticeQueue(tmp_path).due(NOW)
